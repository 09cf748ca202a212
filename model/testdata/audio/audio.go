// Package audio holds recordings for tests and examples. One of them is for programs
// that show something without being given a file.
package audio

import (
	_ "embed" // for the recording
	"strings"
)

//go:embed jfk.wav
var jfk string

// JFK returns a reader of a WAVE file: eleven seconds of John F. Kennedy's inaugural
// address of 1961, 16-bit mono at 16 kHz, a work of the United States government in the
// public domain.
func JFK() *strings.Reader { return strings.NewReader(jfk) }
