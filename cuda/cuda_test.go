package cuda

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// The suite on the GPU, or on an emulated one.
func TestConformance(t *testing.T) {
	if !onDevice() {
		library(t, 90)
	}
	suite().Run(t, func(t testing.TB) pass.Device {
		dev := suiteDevice(t, Config{})
		patience := graphsAfter
		switch name := t.Name(); {
		case strings.Contains(name, "/chain/"): // what orders kernels is what is in question
			patience = 0
		case strings.Contains(name, "/cases"): // the second run, which has the same bits, is a graph
			patience = 1
		}
		dev.(opened).hw.patience = patience
		return dev
	})
}

func suite() passtest.Config {
	cfg := passtest.Config{BySize: true}
	if !onDevice() {
		cfg.Allocs = 500 // the host's driver keeps books
	}
	return cfg
}

// suiteDevice opens the GPU, or an emulated one of capability 9.0.
func suiteDevice(t testing.TB, cfg Config) pass.Device {
	t.Helper()
	cfg.Logger = used.logger()
	if !onDevice() {
		return emulated(t, drivertest.Hopper(), cfg)
	}
	dev, err := Open(context.Background(), cfg)
	require.NoError(t, err)
	return dev
}

// Lesser devices: what rules choose for them, from images that they can load. On a GPU
// their kernels are compiled from PTX.
func TestConformanceAsLesserDevice(t *testing.T) {
	if !onDevice() {
		library(t, 75)
		cfg := suite()
		cfg.Ops = cases.Ops()
		cfg.Run(t, func(t testing.TB) pass.Device { return emulated(t, drivertest.Turing(), Config{Logger: used.logger()}) })
		return
	}
	for _, as := range []struct {
		tier    string
		profile Profile
	}{
		{"ptx_75", Profile{Capability: 75, SMs: 40, SharedMemory: 64 << 10}},
		{"ptx_80", Profile{Capability: 86, SMs: 28, SharedMemory: 99 << 10}},
	} {
		t.Run(as.tier, func(t *testing.T) {
			cfg := suite()
			cfg.Ops = cases.Ops()
			cfg.Run(t, func(t testing.TB) pass.Device { return suiteDevice(t, Config{Tier: as.tier, Profile: as.profile}) })
		})
	}
}

// A recording gives the same bits a thousand times, whatever ran before.
func TestReplaysGiveTheSameBits(t *testing.T) {
	rounds := 1000
	if !onDevice() {
		rounds = 5
	}
	dev := suiteDevice(t, Config{})
	defer dev.Close()
	dev.(opened).hw.patience = graphsAfter
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(96, 200)}, Bias: make([]float32, 96)})
	require.NoError(t, err)
	for _, math := range []pass.Math{pass.Exact, pass.Fast} {
		var in pass.Input
		var out pass.Output
		rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: math}, func(p pass.Pass) {
			in = p.Input(pass.F32, 64*200)
			x, y, z := p.Temp(pass.F32, 64*96), p.Temp(pass.F32, 64*96), p.Temp(pass.F32, 64*96)
			p.Do(
				pass.Gemm{A: in.View(), W: w, C: x.View(), Rows: 64, Epilogue: pass.GELU},
				pass.Softmax{X: x.View(), Y: y.View(), Rows: 64, Cols: 96},
				pass.Attention{Q: x.View(), K: y.View(), V: x.View(), O: z.View(), Queries: 64, Keys: 64, Heads: 3, HeadDim: 32},
				pass.Add{A: z.View(), B: y.View(), Y: z.View(), Rows: 64, Cols: 96},
			)
			out = p.Output(z.View(), 64*96)
		})
		require.NoError(t, err)
		data := values("X", "normal", 64, 200).Float32s()
		var first []float32
		for range rounds {
			run, err := rec.Run(t.Context(), in.F32(data))
			require.NoError(t, err)
			got := make([]float32, 64*96)
			require.NoError(t, run.ReadF32(out, got))
			run.Close()
			if first == nil {
				first = got
			}
			require.True(t, slices.Equal(first, got))
		}
		require.NoError(t, rec.Close())
	}
}
