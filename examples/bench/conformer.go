package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// convGLUCases are what lies between the point-wise convolutions of Parakeet 0.6B, for 2
// minutes.
var convGLUCases = []benchmarkCase{convGLU("1500x1024-k9", 1500, 1024, 9)}

func convGLU(name string, rows, channels, taps int) benchmarkCase {
	shape := fmt.Sprintf("%d steps, %d channels, kernel %d", rows, channels, taps)
	return kernelCase(name, shape, kernel{op: pass.ConvGLU{Rows: rows}, args: []string{"X", "Y"}, load: func() (pass.Weights, error) {
		return pass.ConvGLUWeights{
			Name: "bench", Weight: cases.Encode("w", pass.F32, random(131, channels*taps, scale(taps)), channels, taps),
			Bias: random(132, channels, 1), Gain: random(133, channels, 1), Shift: random(134, channels, 1),
		}, nil
	}})
}
