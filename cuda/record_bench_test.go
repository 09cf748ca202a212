package cuda

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/mixed"
)

// What recording 1,000 ops costs the host: small ones of one kind, and of four kinds as a
// network has them, each with a temporary of its own. Without a GPU, a fake driver's part is
// in it.
func BenchmarkRecord(b *testing.B) {
	var log phaseLog
	cfg := Config{Logger: slog.New(&log)}
	dev, err := hosted(b, drivertest.New(drivertest.Config{}), cfg)
	if onDevice() {
		dev, err = Open(b.Context(), cfg)
	}
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
			w, err := mixed.Load(b.Context(), dev)
			require.NoError(b, err)
			record := func(rows int) pass.Recording {
				rec, err := w.Record(b.Context(), ses, pass.RecordOptions{Math: pass.Fast}, rows)
				require.NoError(b, err)
				return rec
			}
			rows := 32
			require.NoError(b, record(rows).Close())
			log = phaseLog{}
			closing := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				if name == "cold" {
					rows++
				}
				rec := record(rows)
				start := time.Now()
				require.NoError(b, rec.Close())
				closing += time.Since(start)
			}
			n := float64(b.N)
			for _, a := range log {
				b.ReportMetric(a.Value.Duration().Seconds()*1e6/n, a.Key+"-us")
			}
			b.ReportMetric(closing.Seconds()*1e6/n, "close-us")
		})
	}
}

// What a recording of 1,000 ops costs that nobody has made before: recorded, run once and
// closed; and each of its first runs, when there are more. Eager is with graphs that are made
// when it is recorded.
func BenchmarkRuns(b *testing.B) {
	dev, err := hosted(b, drivertest.New(drivertest.Config{}), Config{})
	if onDevice() {
		dev, err = Open(b.Context(), Config{})
	}
	require.NoError(b, err)
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	w, err := mixed.Load(b.Context(), dev)
	require.NoError(b, err)
	rows := 32
	x := make([]float32, 1<<20)
	for k := range 4 {
		runs, patience, name := []int{1, 4}[k%2], graphsAfter, ""
		if k >= 2 {
			patience, name = 0, "-eager"
		}
		b.Run(strconv.Itoa(runs)+name, func(b *testing.B) {
			dev.(opened).hw.patience = patience
			took := make([]time.Duration, runs+2)
			var since time.Time
			end := func(k int) {
				took[k] += time.Since(since)
				since = time.Now()
			}
			for b.Loop() {
				rows = max(33, (rows+1)%4096)
				since = time.Now()
				var in pass.Input
				rec, err := ses.Record(b.Context(), pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) { in = w.Do(p, rows) })
				require.NoError(b, err)
				end(0)
				for k := range runs {
					run, err := rec.Run(b.Context(), in.F32(x[:in.Len()]))
					require.NoError(b, err)
					run.Close()
					end(1 + k)
				}
				require.NoError(b, rec.Close())
				end(runs + 1)
			}
			for k, sum := range took {
				name := "run-" + strconv.Itoa(k)
				switch k {
				case 0:
					name = "record"
				case runs + 1:
					name = "close"
				}
				b.ReportMetric(sum.Seconds()*1e6/float64(b.N), name+"-us")
			}
		})
	}
}

// phaseLog adds up the phases of recordings.
type phaseLog []slog.Attr

func (p *phaseLog) Enabled(context.Context, slog.Level) bool { return true }
func (p *phaseLog) WithAttrs([]slog.Attr) slog.Handler       { return p }
func (p *phaseLog) WithGroup(string) slog.Handler            { return p }

func (p *phaseLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "cuda: recording" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Value.Kind() != slog.KindDuration {
			return true
		}
		for i := range *p {
			if was := &(*p)[i]; was.Key == a.Key {
				was.Value = slog.DurationValue(was.Value.Duration() + a.Value.Duration())
				return true
			}
		}
		*p = append(*p, a)
		return true
	})
	return nil
}
