package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
)

// convGLUCases are what lies between the point-wise convolutions of Parakeet 0.6B, for 2
// minutes.
var convGLUCases = []benchmarkCase{convGLU("1500x1024-k9", 1500, 1024, 9)}

func convGLU(name string, rows, channels, taps int) benchmarkCase {
	shape := fmt.Sprintf("%d steps, %d channels, kernel %d", rows, channels, taps)
	return kernelCase(name, shape, kernel.ConvGLU(rows, channels, taps))
}
