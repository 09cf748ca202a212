package gpu

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// BenchmarkReplay times a run with 512 words of input and 4 of output, and what each
// dispatch adds.
func BenchmarkReplay(b *testing.B) {
	for _, features := range []driver.Feature{0, driver.FeatureMappedStorage} {
		for _, dispatches := range []int{1, 10, 100, 1000} {
			timed := &stopwatch{}
			b.Run(fmt.Sprintf("%v/%d", features, dispatches), func(b *testing.B) {
				r := vulkanRig(b, driver.DeviceConfig{Features: features}, options{}, func(d driver.Device) driver.Device { timed.Device = d; return timed })
				start, _ := recordChain(b, r, dispatches)
				start()
				b.ReportAllocs()
				for b.Loop() {
					start()
				}
				b.ReportMetric(float64(timed.submit.Nanoseconds())/float64(timed.commands), "ns-submit/command")
				b.ReportMetric(float64(timed.transfer.Microseconds())/float64(timed.submits), "us-map/run")
			})
		}
	}
}

// stopwatch adds up the time that calls of the driver take on the host.
type stopwatch struct {
	driver.Device
	submit, transfer  time.Duration
	submits, commands int
}

func (s *stopwatch) Submit(c []driver.Command) (driver.Serial, error) {
	start := time.Now()
	serial, err := s.Device.Submit(c)
	s.submit += time.Since(start)
	s.submits++
	s.commands += len(c)
	return serial, err
}

func (s *stopwatch) WriteMapped(ctx context.Context, id driver.BufferID, offset uint64, src []byte, timeout time.Duration) error {
	start := time.Now()
	err := s.Device.WriteMapped(ctx, id, offset, src, timeout)
	s.transfer += time.Since(start)
	return err
}

// recordChain records a row of dispatches, each of which needs the one before, and
// returns a function that runs it, with the recording.
func recordChain(t testing.TB, r *rig, dispatches int) (run func(), rec pass.Recording) {
	ctx := context.Background()
	s, err := r.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	var in pass.Input
	var out pass.Output
	rec, err = s.Record(ctx, pass.RecordOptions{Label: "chain"}, func(p pass.Pass) {
		in = p.Input(pass.U32, 512)
		x, y := p.Temp(pass.U32, 512), p.Temp(pass.U32, 512)
		p.Do(dense(in.View(), x.View(), 512))
		for range dispatches - 1 {
			p.Do(dense(x.View(), y.View(), 512))
			x, y = y, x
		}
		out = p.Output(x.View(), 4)
	})
	require.NoError(t, err)
	data, got := sequence(512, 1), make([]uint32, 4)
	bind := in.U32(data)
	return func() {
		run, err := rec.Run(ctx, bind)
		if err == nil {
			err = run.ReadU32(out, got)
		}
		if err != nil || got[3] != data[3] {
			t.Fatal(err, got)
		}
		run.Close()
	}, rec
}
