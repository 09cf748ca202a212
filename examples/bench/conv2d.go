package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// conv2DCases are convolutions of images: the second of a block of ResNet34's second
// stage, for 10 seconds of speech.
var conv2DCases = []benchmarkCase{
	conv2D("resnet34-64", pass.Conv2D{Height: 40, Width: 500, ReLU: true}, 64, 64, 3),
}

func conv2D(name string, op pass.Conv2D, out, in, size int) benchmarkCase {
	shape := fmt.Sprintf("%d × %d, %d→%d, kernel %d × %d", op.Height, op.Width, in, out, size, size)
	return kernelCase(name, shape, kernel{op: op, args: []string{"X", "Residual", "Y"}, load: func() (pass.Weights, error) {
		sums := in * size * size
		t := cases.Encode("w", pass.F32, random(121, out*sums, scale(sums)), out, in, size, size)
		return pass.Conv2DWeights{Name: "bench", Weight: t, Bias: random(122, out, 1)}, nil
	}})
}
