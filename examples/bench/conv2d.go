package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
)

// conv2DCases are convolutions of images: the second of a block of ResNet34's second
// stage, for 10 seconds of speech.
var conv2DCases = []benchmarkCase{
	conv2D("resnet34-64", pass.Conv2D{Height: 40, Width: 500, ReLU: true}, 64, 64, 3),
}

func conv2D(name string, op pass.Conv2D, out, in, size int) benchmarkCase {
	shape := fmt.Sprintf("%d × %d, %d→%d, kernel %d × %d", op.Height, op.Width, in, out, size, size)
	return kernelCase(name, shape, kernel.Conv2D(op, out, in, size))
}
