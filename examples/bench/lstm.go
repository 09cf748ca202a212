package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
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
	return kernelCase(name, shape, kernel.LSTM(batch, steps, s))
}
