package gpu

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/mixed"
)

// BenchmarkRecord times what recording 1,000 ops of four kinds costs the host, each with a
// temporary of its own, of sizes not seen before and as before: on a device in memory, and
// on the one under test with the share of its driver.
func BenchmarkRecord(b *testing.B) {
	memory := func(b *testing.B) (driver.Device, driver.Adapter) {
		return drivertest.New(drivertest.Config{Kernels: map[string]drivertest.Kernel{"mark": markDouble}}), driver.Adapter{Name: "memory", API: driver.OtherAPI}
	}
	vulkan := func(b *testing.B) (driver.Device, driver.Adapter) {
		p, a := testAdapter(b)
		drv, err := p.Open(b.Context(), a.Index, driver.DeviceConfig{Features: a.Features & driver.FeatureMappedStorage})
		require.NoError(b, err)
		return drv, a
	}
	for name, open := range map[string]func(b *testing.B) (driver.Device, driver.Adapter){"memory": memory, "vulkan": vulkan} {
		for _, again := range []bool{false, true} {
			kind := "/cold"
			if again {
				kind = "/again"
			}
			b.Run(name+kind, func(b *testing.B) {
				drv, a := open(b)
				timed := &toll{Device: drv}
				dev := newDevice(timed, a, options{})
				defer dev.Close()
				benchmarkRecord(b, dev, timed, again)
			})
		}
	}
}

func benchmarkRecord(b *testing.B, dev pass.Device, timed *toll, again bool) {
	w, err := mixed.Load(b.Context(), dev)
	require.NoError(b, err)
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	record := func(rows int) (closing time.Duration) {
		rec, err := w.Record(b.Context(), s, pass.RecordOptions{}, rows)
		require.NoError(b, err)
		start := time.Now()
		require.NoError(b, rec.Close())
		return time.Since(start)
	}
	rows := 32
	record(rows)
	*timed = toll{Device: timed.Device}
	var closing time.Duration
	b.ReportAllocs()
	for b.Loop() {
		if !again {
			rows++
		}
		closing += record(rows)
	}
	b.ReportMetric(float64(timed.took.Microseconds())/float64(b.N), "us-driver/op")
	b.ReportMetric(float64(timed.calls)/float64(b.N), "calls/op")
	b.ReportMetric(float64(closing.Microseconds())/float64(b.N), "us-close/op")
}

// toll adds up the calls of a driver that recording makes, and the time that they take.
type toll struct {
	driver.Device
	took  time.Duration
	calls int
}

func (t *toll) add(start time.Time) {
	t.took += time.Since(start)
	t.calls++
}

func (t *toll) CreateBuffer(desc driver.BufferDesc) (driver.BufferID, error) {
	defer t.add(time.Now())
	return t.Device.CreateBuffer(desc)
}

func (t *toll) DestroyBuffer(id driver.BufferID) error {
	defer t.add(time.Now())
	return t.Device.DestroyBuffer(id)
}

func (t *toll) CreateBindGroup(p driver.PipelineID, bindings []driver.Binding) (driver.BindGroupID, error) {
	defer t.add(time.Now())
	return t.Device.CreateBindGroup(p, bindings)
}

func (t *toll) DestroyBindGroup(id driver.BindGroupID) error {
	defer t.add(time.Now())
	return t.Device.DestroyBindGroup(id)
}

func (t *toll) Submit(c []driver.Command) (driver.Serial, error) {
	defer t.add(time.Now())
	return t.Device.Submit(c)
}

func (t *toll) WriteMapped(ctx context.Context, id driver.BufferID, offset uint64, src []byte, timeout time.Duration) error {
	defer t.add(time.Now())
	return t.Device.WriteMapped(ctx, id, offset, src, timeout)
}
