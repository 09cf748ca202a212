// Package drivertest tests what is above the seam and what is below it.
//
// [Device] is a device in memory for tests of the gpu package: copies and clears are
// done for real, kernels are Go functions, and [Faults] makes it fail in the ways that
// real devices do. [Run] is the conformance suite that every provider passes, the
// device in memory included.
package drivertest
