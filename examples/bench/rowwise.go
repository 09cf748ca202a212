package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
)

// rowwiseCases are ops that go through rows once: the norm of a layer and the softmax of 8
// heads of large Whisper, and the choice of a token of its vocabulary.
var rowwiseCases = []benchmarkCase{
	rowwise("layernorm/1500x1280", 1500, 1280, pass.LayerNorm{Rows: 1500, Cols: 1280}, "Y", func() (pass.Weights, error) {
		return pass.NormWeights{Name: "bench", Gain: kernel.Random(111, 1280, 1), Bias: kernel.Random(112, 1280, 1)}, nil
	}),
	rowwise("softmax/12000x1500", 12000, 1500, pass.Softmax{Rows: 12000, Cols: 1500}, "Y", nil),
	rowwise("argmax/51865", 1, 51865, pass.Argmax{Rows: 1, Cols: 51865}, "IDs", nil),
}

func rowwise(name string, rows, cols int, op pass.Op, to string, load func() (pass.Weights, error)) benchmarkCase {
	k := kernel.Kernel{Op: op, Args: []string{"X", to}, Load: load}
	if to == "IDs" {
		k.IDs = to
	}
	return kernelCase(name, fmt.Sprintf("%d × %d", rows, cols), k)
}
