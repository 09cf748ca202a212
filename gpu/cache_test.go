package gpu

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// A finite value that F16 would turn into infinity fails the run, as on the CPU; what is
// infinite or NaN already is stored.
func TestF16CacheRefusesWhatItWouldMakeInfinite(t *testing.T) {
	testAdapter(t)
	cfg := Config{Adapter: kindSoftware, API: "vulkan"}
	if onHardware() {
		cfg.Adapter = ""
	}
	ctx := context.Background()
	dev, err := Open(ctx, cfg)
	require.NoError(t, err)
	defer dev.Close()
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, typ := range []pass.DType{pass.F16, pass.F32} {
		cache, err := s.NewCache(pass.CacheConfig{Heads: 1, HeadDim: 4, Capacity: 4, Type: typ})
		require.NoError(t, err)
		for _, onDevice := range []bool{false, true} {
			var in pass.Input
			var index pass.Input
			rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
				in = p.Input(pass.F32, 4)
				at := pass.Const(1)
				if onDevice {
					index = p.Input(pass.U32, 1)
					at = pass.IndexIn(index.View())
				}
				p.Do(pass.Append{K: in.View(), V: in.View(), Cache: cache, Rows: 1, At: at})
			})
			require.NoError(t, err)
			for _, c := range []struct {
				value float32
				fits  bool
			}{{65504, true}, {65519, true}, {65520, false}, {-1e30, false}, {inf, true}, {-inf, true}, {nan, true}, {0, true}} {
				binds := []pass.Bind{in.F32([]float32{1, 2, c.value, 3})}
				if onDevice {
					binds = append(binds, index.U32([]uint32{1}))
				}
				_, err := rec.Run(ctx, binds...)
				if c.fits || typ == pass.F32 {
					require.NoError(t, err, "%v %v", typ, c.value)
					continue
				}
				require.ErrorIs(t, err, pass.ErrInvalid, "%v %v", typ, c.value)
				require.ErrorContains(t, err, "append: K or V: a finite value is beyond the range of an F16 cache")
			}
		}
	}
}
