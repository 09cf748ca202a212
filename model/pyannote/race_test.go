//go:build race

package pyannote

const raced = true
