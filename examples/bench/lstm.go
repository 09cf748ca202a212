package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// lstmCases are the recurrences of speaker networks: that of pyannote's segmentation for
// windows of 10 seconds (4 layers of two directions), and that of the GE2E speaker encoder
// for 1.6 seconds.
var lstmCases = []benchmarkCase{
	lstm("segmentation/b1", 1, 589, pass.LSTMShape{In: 60, Hidden: 128, Layers: 4, Directions: 2}),
	lstm("segmentation/b32", 32, 589, pass.LSTMShape{In: 60, Hidden: 128, Layers: 4, Directions: 2}),
	lstm("ge2e/b1", 1, 160, pass.LSTMShape{In: 40, Hidden: 256, Layers: 3, Directions: 1}),
	lstm("ge2e/b32", 32, 160, pass.LSTMShape{In: 40, Hidden: 256, Layers: 3, Directions: 1}),
}

func lstm(name string, batch, steps int, s pass.LSTMShape) benchmarkCase {
	shape := fmt.Sprintf("%d×%d steps, %d→%d, %d layers × %d", batch, steps, s.In, s.Hidden, s.Layers, s.Directions)
	return kernelCase(name, shape, kernel{
		op: pass.LSTM{Batch: batch, Time: steps}, args: []string{"X", "Y"},
		load: func() (pass.Weights, error) { return lstmWeights(s), nil },
	})
}

// lstmWeights makes weights of the size that networks are initialised with: up to
// 1/√hidden.
func lstmWeights(s pass.LSTMShape) pass.LSTMWeights {
	w := pass.LSTMWeights{Name: "bench"}
	in, seed := s.In, uint64(200)
	matrix := func(name string, cols int) pass.Tensor {
		seed++
		return cases.Encode(name, pass.F32, random(seed, 4*s.Hidden*cols, scale(3*s.Hidden)), 4*s.Hidden, cols)
	}
	for range s.Layers {
		var layer []pass.LSTMCell
		for range s.Directions {
			layer = append(layer, pass.LSTMCell{Input: matrix("input", in), Hidden: matrix("hidden", s.Hidden), Bias: random(seed+1000, 4*s.Hidden, scale(3*s.Hidden))})
		}
		w.Layers = append(w.Layers, layer)
		in = s.Directions * s.Hidden
	}
	return w
}
