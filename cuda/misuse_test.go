package cuda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// bounded fails a test whose work does not end.
func bounded(t *testing.T, work func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Fatal("does not end")
	}
}

// unready is a driver of which nobody hears that work has ended, if it is so at all.
type unready struct {
	hostDriver
	is bool
}

func (u unready) Query(s driver.Stream) (bool, error) {
	if u.is {
		return false, nil
	}
	return u.hostDriver.Query(s)
}

func (u unready) QueryEvent(e driver.Event) (bool, error) {
	if u.is {
		return false, nil
	}
	return u.hostDriver.QueryEvent(e)
}

// Whatever a Config holds: a device that computes or refuses, or the sentinel that says
// whose fault it is. Nothing panics, hangs or is left behind.
func TestOddConfigs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	fine := error(nil)
	for name, c := range map[string]struct {
		cfg  Config
		open error // nil: it opens
		run  error // then
	}{
		"device of blanks":           {cfg: Config{Device: "  "}, open: pass.ErrNoDevice},
		"device below zero":          {cfg: Config{Device: "-1"}, open: pass.ErrNoDevice},
		"device beyond all numbers":  {cfg: Config{Device: strings.Repeat("9", 400)}, open: pass.ErrNoDevice},
		"half a UUID":                {cfg: Config{Device: "GPU-abcd"}, open: pass.ErrNoDevice},
		"device of zero bytes":       {cfg: Config{Device: "\x00"}, open: pass.ErrNoDevice},
		"tier in capitals":           {cfg: Config{Tier: "SM_90A"}, open: pass.ErrInvalid},
		"tier of blanks":             {cfg: Config{Tier: " "}, open: pass.ErrInvalid},
		"tier above":                 {cfg: Config{Tier: "sm_100"}, open: pass.ErrInvalid},
		"tier of one generation":     {cfg: Config{Tier: "sm_90a", Profile: Profile{Capability: 75}}, open: pass.ErrInvalid},
		"capability below all":       {cfg: Config{Profile: Profile{Capability: 60}}, open: pass.ErrInvalid},
		"capability of a dot":        {cfg: Config{Profile: Profile{Capability: 9}}, open: pass.ErrInvalid},
		"capability above":           {cfg: Config{Profile: Profile{Capability: 120}}, open: fine},
		"one multiprocessor":         {cfg: Config{Profile: Profile{SMs: 1}}, open: fine},
		"more multiprocessors":       {cfg: Config{Profile: Profile{SMs: 1 << 40}}, open: fine},
		"a byte of shared memory":    {cfg: Config{Profile: Profile{SharedMemory: 1}}, open: fine, run: pass.ErrUnsupported},
		"more shared memory":         {cfg: Config{Profile: Profile{SharedMemory: 1 << 40}}, open: fine},
		"a byte of memory":           {cfg: Config{MemoryBudget: 1}, open: fine, run: pass.ErrOutOfMemory},
		"a moment":                   {cfg: Config{Watchdog: 1}, open: fine, run: pass.ErrTimeout},
		"an age":                     {cfg: Config{Watchdog: 1<<63 - 1}, open: fine},
		"tune file that is a folder": {cfg: Config{TuneFile: dir}, open: pass.ErrInvalid},
		"tune file without end":      {cfg: Config{TuneFile: "/dev/zero"}, open: pass.ErrInvalid},
		"empty tune file":            {cfg: Config{TuneFile: file("empty", "")}, open: pass.ErrInvalid},
		"tune file of null":          {cfg: Config{TuneFile: file("null", "null")}, open: pass.ErrInvalid},
		"tune file of a list":        {cfg: Config{TuneFile: file("list", strings.Repeat("[", 1<<20))}, open: pass.ErrInvalid},
		"tune file of a later form":  {cfg: Config{TuneFile: file("later", `{"format":2,"key":{},"pins":[]}`)}, open: pass.ErrInvalid},
		"tune file of others":        {cfg: Config{TuneFile: file("others", `{"format":1,"key":{"device":"x","capability":90,"sms":1,"driver":"d","kernels":"k"},"pins":[]}`)}, open: pass.ErrInvalid},
		"ways that nobody has":       {cfg: Config{Ways: map[string]string{"": "backwards", "gemm": "", "\x00": "x"}}, open: fine},
		"a trace that waits":         {cfg: Config{Trace: func(Trace) { time.Sleep(time.Millisecond) }}, open: fine},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounded(t, func() {
				drv := drivertest.New(drivertest.Config{Lazy: name == "a moment"})
				var dev pass.Device
				cfg, err := c.cfg.resolve()
				if err == nil {
					dev, err = open(t.Context(), unready{hostDriver{drv}, name == "a moment"}, cfg)
				}
				if c.open != nil {
					if dev != nil || !errors.Is(err, c.open) {
						t.Errorf("opened %v, error %v, want %v", dev, err, c.open)
					}
				} else if err != nil {
					t.Errorf("open: %v", err)
				} else {
					err := multiply(t.Context(), dev)
					if !errors.Is(err, c.run) {
						t.Errorf("run: %v, want %v", err, c.run)
					}
					if err := errors.Join(dev.Close(), dev.Close()); err != nil {
						t.Errorf("close: %v", err)
					}
				}
				if leaks := drv.Leaks(); len(leaks) > 0 {
					t.Errorf("left behind: %v", leaks)
				}
			})
		})
	}
}

// multiply computes a product, of halves on tensor cores where there is a way to.
func multiply(ctx context.Context, dev pass.Device) error {
	ses, err := dev.NewSession(pass.SessionConfig{})
	if err != nil {
		return err
	}
	const n = 200
	w, err := dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{weights(n, n)}})
	if err != nil {
		return err
	}
	rec, err := ses.Record(ctx, pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
		x, y := p.Temp(pass.F32, n*n), p.Temp(pass.F32, n*n)
		p.Do(pass.Fill{To: x.View(), Rows: n, Cols: n}, pass.Gemm{A: x.View(), W: w, C: y.View(), Rows: n})
		p.Output(y.View(), 1)
	})
	if err != nil {
		return err
	}
	_, err = rec.Run(ctx)
	return errors.Join(err, rec.Close(), ses.Close())
}

// What a driver says of its GPUs may make no sense.
func TestOddGPUs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*drivertest.Profile)
		is     error
	}{
		"no multiprocessors": {func(p *drivertest.Profile) { p.SMs = 0 }, pass.ErrNoDevice},
		"no capability":      {func(p *drivertest.Profile) { p.Capability = 0 }, pass.ErrNoDevice},
		"no name":            {func(p *drivertest.Profile) { p.Name = "" }, nil},
		"no memory":          {func(p *drivertest.Profile) { p.Memory = 0 }, pass.ErrOutOfMemory},
		"no clock":           {func(p *drivertest.Profile) { p.Clock, p.MemoryClock, p.MemoryBus = 0, 0, 0 }, nil},
		"a slice":            {func(p *drivertest.Profile) { p.SMs = 16 }, nil},
		"a later generation": {func(p *drivertest.Profile) { p.Capability = 200 }, nil},
	} {
		p := drivertest.Hopper()
		c.change(&p)
		drv := drivertest.New(drivertest.Config{Devices: []drivertest.Profile{p}})
		dev, err := hosted(t, drv, Config{})
		if err == nil {
			err = errors.Join(multiply(t.Context(), dev), dev.Close())
		}
		require.ErrorIs(t, err, c.is, name)
		require.Empty(t, drv.Leaks(), name)
	}
}

// Calls of the driver that fail while a device is opened: the error says which, and nothing
// is left behind. What fails of one GPU alone makes that one unusable.
func TestOpeningMayFail(t *testing.T) {
	t.Parallel()
	for _, call := range []string{
		"Version", "DeviceCount", "DeviceName", "DeviceUUID", "DeviceMemory", "Attribute", "CreateContext", "CreateStream", "SetCurrent",
	} {
		good := drivertest.New(drivertest.Config{})
		dev, err := hosted(t, good, Config{})
		require.NoError(t, err)
		times := good.Calls(call)
		require.NoError(t, dev.Close())
		for n := range times {
			for _, code := range []int{driver.InvalidValue, driver.NoDevice, driver.SystemNotReady, driver.Unknown, driver.OutOfMemory} {
				drv := drivertest.New(drivertest.Config{})
				drv.Fail(call, n+1, code)
				dev, err := hosted(t, drv, Config{})
				what := fmt.Sprintf("%s, time %d of %d, code %d", call, n+1, times, code)
				if err == nil { // when a thread gives its context back
					if err := dev.Close(); err != nil {
						require.Equal(t, "SetCurrent", call, what)
					}
				} else {
					require.True(t, errors.Is(err, pass.ErrNoDevice) || errors.Is(err, pass.ErrOutOfMemory), "%s: %v", what, err)
					require.ErrorContains(t, err, fmt.Sprint(code), what)
				}
				require.Empty(t, drv.Leaks(), what)
			}
		}
	}
}

// A context that has ended opens nothing.
func TestOpenHearsItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	drv := drivertest.New(drivertest.Config{})
	cfg, err := Config{}.resolve()
	require.NoError(t, err)
	_, err = open(ctx, hostDriver{drv}, cfg)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, drv.Calls("CreateContext"))
}

// shared is a driver that outlives a device, as the system's library does.
type shared struct{ hostDriver }

func (shared) Close() error { return nil }

// Devices open, work and close beside each other, and leave nothing.
func TestManyDevices(t *testing.T) {
	t.Parallel()
	drv := drivertest.New(drivertest.Config{Devices: []drivertest.Profile{drivertest.Hopper(), drivertest.Turing()}})
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for i := range 10 {
				cfg, err := Config{Device: fmt.Sprint((i + k) % 2)}.resolve()
				var dev pass.Device
				if err == nil {
					dev, err = open(t.Context(), shared{hostDriver{drv}}, cfg)
				}
				if err == nil {
					err = multiply(t.Context(), dev)
				}
				if err == nil {
					var closing sync.WaitGroup
					for range 3 {
						closing.Go(func() {
							if err := dev.Close(); err != nil {
								t.Error(err)
							}
						})
					}
					closing.Wait()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Empty(t, drv.Leaks())
}

// Rules know of a tier that was forced.
func TestRulesOfAForcedTier(t *testing.T) {
	t.Parallel()
	for tier, want := range map[string]int64{"": 90, "sm_90a": 90, "ptx_80": 80, "ptx_75": 75} {
		dev, err := hosted(t, drivertest.New(drivertest.Config{}), Config{Tier: tier})
		require.NoError(t, err)
		require.Contains(t, dev.Info().Limits, pass.Limit{Name: "compute capability × 10", Value: want}, tier)
		require.NoError(t, multiply(t.Context(), dev), tier)
		require.NoError(t, dev.Close())
	}
}

// loud is a logger that panics.
type loud struct{ slog.Handler }

func (loud) Enabled(context.Context, slog.Level) bool { return true }

func (loud) Handle(_ context.Context, r slog.Record) error { panic("no ear for " + r.Message) }

// A panic of the caller's logger is an error.
func TestLoggerThatPanics(t *testing.T) {
	t.Parallel()
	drv := drivertest.New(drivertest.Config{})
	_, err := hosted(t, drv, Config{Logger: slog.New(loud{})})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "no ear for cuda: opened")
	require.Empty(t, drv.Leaks())
}

// A profile makes a device less than it is, and never more.
func TestProfileIsNoMoreThanTheDevice(t *testing.T) {
	t.Parallel()
	limits := func(p Profile) []pass.Limit {
		dev, err := hosted(t, drivertest.New(drivertest.Config{}), Config{Profile: p})
		require.NoError(t, err)
		defer dev.Close()
		return dev.Info().Limits
	}
	require.Equal(t, limits(Profile{}), limits(Profile{Capability: 120, SMs: 1 << 40, SharedMemory: 1 << 40}))
	lesser := limits(Profile{Capability: 80, SMs: 14, SharedMemory: 100 << 10})
	require.Equal(t, []int64{80, 14, 100 << 10}, []int64{lesser[0].Value, lesser[1].Value, lesser[2].Value})
}

// sliced is a driver in whose contexts there are fewer multiprocessors than the GPU has, as
// where several processes share it.
type sliced struct{ hostDriver }

func (s sliced) Attribute(ordinal int, a driver.Attribute) (int, error) {
	n, err := s.hostDriver.Attribute(ordinal, a)
	if c, _ := s.Current(); a == driver.Multiprocessors && c != 0 {
		n = 20
	}
	return n, err
}

// Rules go by the multiprocessors that the context has.
func TestMultiprocessorsOfTheContext(t *testing.T) {
	t.Parallel()
	cfg, err := Config{Logger: slog.New(slog.DiscardHandler)}.resolve()
	require.NoError(t, err)
	dev, err := open(t.Context(), sliced{hostDriver{drivertest.New(drivertest.Config{})}}, cfg)
	require.NoError(t, err)
	defer dev.Close()
	require.Equal(t, 20, dev.(Tunable).TuneKey().SMs)
	require.Contains(t, dev.Info().Limits, pass.Limit{Name: "multiprocessors", Value: 20})
}
