package main

import (
	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/pass"
)

// melCases are front ends: Whisper's, for 30 seconds.
var melCases = []benchmarkCase{
	kernelCase("whisper80", "30 s, 80 bins", kernel.Kernel{
		Op: pass.LogMel{Samples: 30 * sampleRate}, Args: []string{"X", "Y"},
		Load: func() (pass.Weights, error) { return frontend.Whisper(80), nil },
	}),
}
