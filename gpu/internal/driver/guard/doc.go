// Package guard keeps the books of a device: which objects are alive, what state they
// are in, and whether a call is one that the device would accept. Every provider asks it
// before it calls into its library, because libraries answer some mistakes with an abort
// of the process, others with an error on another call, and others not at all. One set
// of checks also means one set of words: all providers refuse the same things alike.
//
// A Book has no lock. The device that owns it calls it under its own. Objects are what all
// devices do alike with one to make and destroy what they have.
package guard
