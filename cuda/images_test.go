package cuda

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// loader is a driver of tests whose archive is the test's, and which notes what is loaded.
type loader struct {
	*drivertest.Driver
	archive  *kernels.Archive
	loaded   int
	unloaded int
	allowed  map[string]int
	names    map[driver.Function]string
}

func (l *loader) Archive() *kernels.Archive { return l.archive }

func (l *loader) LoadModule(image []byte) (driver.Module, error) {
	l.loaded++
	return l.Driver.LoadModule(image)
}

func (l *loader) UnloadModule(m driver.Module) error {
	l.unloaded++
	return l.Driver.UnloadModule(m)
}

func (l *loader) Function(m driver.Module, name string) (driver.Function, error) {
	f, err := l.Driver.Function(m, name)
	l.names[f] = name
	return f, err
}

func (l *loader) AllowShared(f driver.Function, bytes int) error {
	l.allowed[l.names[f]] = bytes
	return l.Driver.AllowShared(f, bytes)
}

// openImages returns the images of a device in memory.
func openImages(t *testing.T, gpu drivertest.Profile, archive *kernels.Archive, cfg Config) (*images, *loader, error) {
	t.Helper()
	l := &loader{
		Driver: drivertest.New(drivertest.Config{
			Devices: []drivertest.Profile{gpu},
			Functions: func(name string) (drivertest.Resources, bool) {
				return drivertest.Resources{Static: 1 << 10}, name != "move_copy"
			},
		}),
		archive: archive, allowed: map[string]int{}, names: map[driver.Function]string{},
	}
	d := &device{drv: l, thread: driver.NewThread(l), log: slog.New(slog.DiscardHandler)}
	t.Cleanup(d.thread.Close)
	list, err := list(context.Background(), l)
	require.NoError(t, err)
	d.gpu = list[0]
	err = d.do(func() (err error) {
		if d.context, err = l.CreateContext(0); err != nil {
			return err
		}
		d.attributes, err = readAttributes(l, 0)
		return err
	})
	require.NoError(t, err)
	d.attributes = cfg.Profile.over(d.attributes)
	m, err := newImages(d, cfg.Tier)
	if err == nil {
		t.Cleanup(m.close)
	}
	return m, l, err
}

func TestImagesOfTheBestTier(t *testing.T) {
	for _, c := range []struct {
		gpu  drivertest.Profile
		cfg  Config
		tier string
	}{
		{gpu: drivertest.Hopper(), tier: "sm_90a"},
		{gpu: drivertest.Turing(), tier: "sm_75"},
		{gpu: drivertest.Hopper(), cfg: Config{Profile: Profile{Capability: 80}}, tier: "ptx_80, compiled by the driver"},
		{gpu: drivertest.Hopper(), cfg: Config{Tier: "ptx_75"}, tier: "ptx_75, compiled by the driver"},
		{gpu: drivertest.Ampere(), cfg: Config{Tier: "sm_80"}, tier: "sm_80"},
	} {
		m, _, err := openImages(t, c.gpu, kernels.Nominal(), c.cfg)
		require.NoError(t, err)
		require.Equal(t, c.tier, m.tier())
	}
	for _, c := range []struct {
		gpu  drivertest.Profile
		tier string
		text string
	}{
		{drivertest.Turing(), "sm_80", "a device of capability 7.5 does not run kernels for sm_80"},
		{drivertest.Hopper(), "sm_80", "capability 9.0 does not run"},
		{drivertest.Hopper(), "sm90", `no kernels are compiled for "sm90"`},
	} {
		_, _, err := openImages(t, c.gpu, kernels.Nominal(), Config{Tier: c.tier})
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, c.text)
	}
	empty, err := kernels.OpenArchive(fstest.MapFS{"images/manifest.json": {Data: []byte("{}")}})
	require.NoError(t, err)
	_, _, err = openImages(t, drivertest.Hopper(), empty, Config{})
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "make kernels")
}

// A family is loaded when its first kernel is needed, and once.
func TestImagesAreLoadedOnce(t *testing.T) {
	m, l, err := openImages(t, drivertest.Hopper(), kernels.Nominal(), Config{})
	require.NoError(t, err)
	require.Zero(t, l.loaded)
	first, err := m.get("move_fill")
	require.NoError(t, err)
	require.Equal(t, "move_fill", first.entry.Name)
	again, err := m.get("move_fill")
	require.NoError(t, err)
	require.Same(t, first, again)
	_, err = m.get("move_gather")
	require.NoError(t, err)
	require.Equal(t, 1, l.loaded)
	_, err = m.get("norm_layer_384")
	require.NoError(t, err)
	require.Equal(t, 2, l.loaded)

	_, err = m.get("move_copy")
	require.ErrorContains(t, err, "kernel move_copy for sm_90a: ")
	m.close()
	require.Equal(t, 2, l.unloaded)
	m.close()
	require.Equal(t, 2, l.unloaded)
}

// What the tier lacks is refused by name, without loading anything.
func TestImagesThatAreMissing(t *testing.T) {
	var later string
	for _, f := range kernels.Families() {
		i := slices.IndexFunc(f.Entries, func(e kernels.Entry) bool { return e.From >= 90 })
		if i >= 0 {
			later = f.Entries[i].Name
		}
	}
	require.NotEmpty(t, later)
	m, l, err := openImages(t, drivertest.Turing(), kernels.Nominal(), Config{})
	require.NoError(t, err)
	require.False(t, m.has(later))
	_, err = m.get(later)
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "kernel "+later+" is not among those for sm_75, which NVIDIA Test 75 uses")
	_, err = m.get("nothing")
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.False(t, m.has("nothing"))
	require.True(t, m.has("move_fill"))
	require.Zero(t, l.loaded)

	damaged, err := kernels.OpenArchive(fstest.MapFS{"images/manifest.json": {Data: []byte(`{"families":[{"name":"other"}]}`)}})
	require.NoError(t, err)
	m, _, err = openImages(t, drivertest.Turing(), damaged, Config{})
	require.NoError(t, err)
	_, err = m.get("move_fill")
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "there is no image of move for sm_75")
}

// An image that the driver refuses is an error each time, and not kept.
func TestImagesThatDoNotLoad(t *testing.T) {
	m, l, err := openImages(t, drivertest.Hopper(), kernels.Nominal(), Config{})
	require.NoError(t, err)
	l.Fail("LoadModule", 1, driver.InvalidImage)
	_, err = m.get("move_fill")
	require.ErrorContains(t, err, "image of move")
	_, err = m.get("move_fill")
	require.NoError(t, err)
	l.Fail("Function", 1, driver.IllegalAddress)
	_, err = m.get("move_gather")
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	_, err = m.get("norm_layer_384")
	require.ErrorIs(t, err, pass.ErrDeviceLost)
}

// Kernels get the dynamic shared memory that they take; those whose launches say how much,
// what their own leaves of what there is.
func TestImagesShareMemory(t *testing.T) {
	m, l, err := openImages(t, drivertest.Hopper(), kernels.Nominal(), Config{Profile: Profile{SharedMemory: 100 << 10}})
	require.NoError(t, err)
	large, open, small, excessive := 0, 0, 0, 0
	for _, f := range kernels.Families() {
		for _, e := range f.Entries {
			if e.Name == "move_copy" {
				continue
			}
			_, err := m.get(e.Name)
			require.NoError(t, err)
			allowed, ok := l.allowed[e.Name]
			require.Equal(t, e.Shared <= 100<<10, m.has(e.Name), e.Name)
			switch {
			case e.Shared < 0:
				open++
				require.Equal(t, 99<<10, allowed, e.Name)
			case e.Shared+1<<10 > 100<<10: // with static shared memory
				excessive++
				require.False(t, ok, e.Name)
			case e.Shared > 0 && e.Shared+1<<10+systemShared > sharedByDefault: // static shared memory counts, too
				large++
				require.Equal(t, e.Shared, allowed, e.Name)
			default:
				small++
				require.False(t, ok, e.Name)
			}
		}
	}
	for _, n := range []int{large, open, small, excessive} {
		require.NotZero(t, n)
	}
}

// eager is a driver of tests that counts the edges along which kernels are launched early,
// and the kernels that are without any.
type eager struct {
	hostDriver
	edges, launches int
}

func (e *eager) Launch(l driver.Launch, s driver.Stream) error {
	if l.Early {
		e.launches++
	}
	return e.hostDriver.Launch(l, s)
}

func (e *eager) AddEdges(g driver.Graph, edges []driver.Edge) error {
	for _, edge := range edges {
		if edge.Programmatic {
			e.edges++
		}
	}
	return e.hostDriver.AddEdges(g, edges)
}

// Kernels are launched early only if they wait by themselves, which those compiled from PTX
// do not, not even on a device that could.
func TestEarlyLaunches(t *testing.T) {
	for tier, want := range map[string]int{"sm_90a": 1, "ptx_80": 0} {
		drv := &eager{hostDriver: hostDriver{drivertest.New(drivertest.Config{})}}
		cfg, err := Config{Tier: tier}.resolve()
		require.NoError(t, err)
		dev, err := open(t.Context(), drv, cfg)
		require.NoError(t, err)
		ses, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
			x := p.Temp(pass.F32, 64)
			p.Do(pass.Fill{To: x.View(), Rows: 1, Cols: 64, Value: 1})
			p.Do(pass.Fill{To: x.View(), Rows: 1, Cols: 32, Value: 2})
			p.Output(x.View(), 1)
		})
		require.NoError(t, err)
		for n := range 2 {
			_, err := rec.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, want*(n+1), drv.launches, "the first of a run comes behind a copy")
		}
		require.Equal(t, want, drv.edges, tier)
		i := slices.IndexFunc(dev.Info().Variants, func(v pass.Variant) bool { return v.Name == "programmatic launch" })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, want == 1, dev.Info().Variants[i].Used, tier)
		require.NoError(t, dev.Close())
	}
}
