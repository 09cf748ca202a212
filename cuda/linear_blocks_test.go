package cuda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Warpgroups take turns where a block has another tile, if sums have as many stages as shared
// memory holds: of four here, or of five, of which all but one wait. However many tiles a block has,
// nothing waits for ever, and results have the same bits.
func TestWideTurns(t *testing.T) {
	library(t, 90)
	const rows, n = 3*128 + 10, 330
	ways := []string{"wide 128x128", "wide 128x240", "wide 128x240, clusters of 2", "wide 128x256", "wide 128x256, clusters of 4"}
	for _, k := range []int{180, 250, 300, 500} {
		c := cases.Case{
			Name: fmt.Sprintf("depth %d", k), Op: pass.Gemm{Rows: rows},
			Inputs:  []cases.Tensor{values("A", "normal", 1, rows, k)},
			Params:  []cases.Param{{Field: "W", Weights: pass.LinearWeights{Parts: []pass.Tensor{weights(n, k)}}}},
			Outputs: []string{"C"},
		}
		want, err := c.Truth()
		require.NoError(t, err)
		var first []float32
		for _, sms := range []int{1, 4, 7} {
			gpu := drivertest.Hopper()
			gpu.SMs = sms
			for _, way := range ways {
				dev := emulated(t, gpu, Config{Ways: map[string]string{"": way}})
				got, err := compute(t.Context(), dev, c, pass.Fast)
				require.NoError(t, err, "%s, %s, %d multiprocessors", c.Name, way, sms)
				if first == nil {
					first = got
					require.LessOrEqual(t, distance(got, want[0].Float32s()), 5e-4, "%s, %s", c.Name, way)
				}
				require.Equal(t, first, got, "%s, %s, %d multiprocessors", c.Name, way, sms)
				require.Equal(t, way, dev.(Tunable).Boundaries()[0].Choice)
				require.NoError(t, dev.Close())
			}
		}
	}
}

// Blocks of a cluster that have no rows end first, and others must not reach for them then. A card
// seldom faults if they do, the emulator always.
func TestWideBlocksWithoutRows(t *testing.T) {
	library(t, 90)
	const rows, n, k = 2*128 + 44, 320, 320 // three blocks' rows
	times, rounds := 1, 1
	if onDevice() {
		times, rounds = 50, 400
	}
	for _, c := range []struct {
		way  string
		math pass.Math
	}{{"wide 128x160, clusters of 4", pass.Fast}, {"wide 128x160, clusters of 2", pass.Fast}, {"wide 128x128, clusters of 2", pass.Exact}} {
		dev := emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": c.way}})
		w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(n, k)}})
		require.NoError(t, err)
		ses, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		x, err := ses.Alloc(pass.F32, rows*k)
		require.NoError(t, err)
		y, err := ses.Alloc(pass.F32, rows*n)
		require.NoError(t, err)
		require.NoError(t, ses.Write(t.Context(), x.View(), values("x", "normal", rows, k).Float32s()))
		rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: c.math}, func(p pass.Pass) {
			for range times {
				p.Do(pass.Gemm{A: x.View(), W: w, C: y.View(), Rows: rows})
			}
		})
		require.NoError(t, err)
		for range rounds {
			_, err := rec.Run(t.Context())
			require.NoError(t, err, c.way)
		}
		require.Equal(t, c.way, dev.(Tunable).Boundaries()[0].Choice)
		require.NoError(t, ses.Close())
		require.NoError(t, dev.Close())
	}
}
