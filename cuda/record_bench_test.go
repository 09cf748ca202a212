package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// What recording 1,000 ops costs the host, without the driver's part: small ones of one
// kind, and of four kinds as a network has them, each with a temporary of its own.
func BenchmarkRecord(b *testing.B) {
	dev, err := hosted(b, drivertest.New(drivertest.Config{}), Config{})
	require.NoError(b, err)
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	b.Run("add", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rec, err := ses.Record(b.Context(), pass.RecordOptions{}, func(p pass.Pass) {
				x, y := p.Temp(pass.F32, 1024), p.Temp(pass.F32, 1024)
				p.Do(pass.Fill{To: x.View(), Rows: 1, Cols: 1024})
				for range 500 {
					p.Do(pass.Add{A: x.View(), B: x.View(), Y: y.View(), Rows: 1, Cols: 1024})
					p.Do(pass.Add{A: y.View(), B: y.View(), Y: x.View(), Rows: 1, Cols: 1024})
				}
				p.Output(x.View(), 1)
			})
			require.NoError(b, err)
			require.NoError(b, rec.Close())
		}
	})
	for _, name := range []string{"again", "cold"} {
		b.Run("mixed-"+name, func(b *testing.B) {
			m := newMixed(b, dev)
			rows := 32
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, m.record(b.Context(), ses, rows).Close())
				if name == "cold" {
					rows++
				}
			}
		})
	}
}
