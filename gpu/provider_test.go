package gpu

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/dawn"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
	"github.com/tandem-gpu/tandem/shaders"
)

func TestProviderChoice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg           Config
		env           []string
		want, library string
	}{
		{Config{}, nil, "", ""},
		{Config{Provider: "Dawn"}, nil, providerDawn, ""},
		{Config{Library: "/A/b.so"}, nil, providerDawn, "/A/b.so"},
		{Config{}, []string{"TANDEM_DAWN=/A/b.so"}, providerDawn, "/A/b.so"},
		{Config{Library: "/A/b.so"}, []string{"TANDEM_DAWN=/c.so"}, providerDawn, "/A/b.so"},
		{Config{Provider: "native"}, []string{"TANDEM_DAWN=/A/b.so"}, providerNative, "/A/b.so"},
		{Config{}, []string{"TANDEM_PROVIDER=dawn"}, providerDawn, ""},
	} {
		r, err := c.cfg.resolve(environment(c.env...))
		require.NoError(t, err)
		require.Equal(t, c.want, r.provider, "%+v %v", c.cfg, c.env)
		require.Equal(t, c.library, r.dawn.Library)
	}
}

// Whoever insists on Dawn gets no other provider.
func TestNoOtherProvider(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.so")
	for _, cfg := range []Config{{Library: missing}, {Provider: "dawn", Library: missing, Software: true}} {
		_, err := Open(context.Background(), cfg)
		require.ErrorIs(t, err, pass.ErrNoDevice)
		require.ErrorContains(t, err, missing)
		_, err = Adapters(context.Background(), cfg)
		require.ErrorIs(t, err, pass.ErrNoDevice)
		require.ErrorContains(t, err, missing)
	}
}

type loadedProvider struct{ *drivertest.Provider }

func (loadedProvider) Library() string { return "/lib/dawn.so" }

func TestProviderName(t *testing.T) {
	t.Parallel()
	p := fake()
	require.Equal(t, p.Name(), providerName(p))
	require.Equal(t, p.Name()+" (/lib/dawn.so)", providerName(loadedProvider{p}))
}

func TestMatricesAreShown(t *testing.T) {
	t.Parallel()
	a := nvidia
	a.Features = driver.FeatureSubgroupMatrix
	a.Matrices = []driver.MatrixConfig{{Component: driver.F16, Result: driver.F32, M: 16, N: 8, K: 8}}
	require.Contains(t, whyNoMatrix(a, "dawn"), "there are matrix units (f16->f32 16x8x8)")
	require.Equal(t, "no matrix units through provider native", whyNoMatrix(nvidia, "native"))
	list, err := judge(merge([]driver.Adapter{a}), request{})
	require.NoError(t, err)
	require.Equal(t, []string{"subgroup-matrix", "matrix f16->f32 16x8x8"}, list[0].Features)
}

// dawnAdapter returns the adapter of the Dawn library to test on. Tests that need it are
// skipped where there is none, unless TANDEM_REQUIRE_DAWN=1.
func dawnAdapter(t testing.TB) (driver.Provider, driver.Adapter) {
	options, err := dawn.Options{}.FromEnvironment(os.Getenv)
	require.NoError(t, err)
	p, err := dawn.New(options)
	var list []driver.Adapter
	if err == nil {
		t.Cleanup(func() { p.Close() })
		list, err = p.Adapters(context.Background())
	}
	for _, a := range list {
		if (kindOf(a) == kindSoftware) != onHardware() {
			return p, a
		}
	}
	if os.Getenv("TANDEM_REQUIRE_DAWN") == "1" {
		t.Fatalf("TANDEM_REQUIRE_DAWN=1, and there is no adapter to test on among %d: %v", len(list), err)
	}
	t.Skipf("SKIPPED, no Dawn library or no adapter for it among %d (make dawn-test brings both): %v", len(list), err)
	panic("not reached")
}

// What passing strings and results through the library allocates for each run.
const dawnAllocs = 16

// The suite through Dawn, as Open finds it.
func TestConformanceThroughDawn(t *testing.T) {
	dawnAdapter(t)
	cfg := Config{Provider: "dawn", Adapter: kindSoftware}
	if onHardware() {
		cfg.Adapter = ""
	}
	passtest.Config{Allocs: dawnAllocs}.Run(t, func(t testing.TB) pass.Device {
		dev, err := Open(context.Background(), cfg)
		require.NoError(t, err)
		require.Contains(t, dev.Info().Provider, "dawn (/")
		return dev
	})
}

// Tint compiles every branch of every shader. It demands what naga does not, such as
// barriers in uniform control flow.
func TestVariantsCompileWithTint(t *testing.T) {
	t.Parallel()
	p, a := dawnAdapter(t)
	drv, err := p.Open(context.Background(), a.Index, driver.DeviceConfig{})
	require.NoError(t, err)
	defer drv.Close()
	entry := regexp.MustCompile(`@compute @workgroup_size\(\d+\)\s*fn (\w+)`)
	compiled := 0
	for name, list := range shaders.Variants() {
		for _, v := range list {
			text, err := shaders.Expand(name, v)
			require.NoError(t, err)
			m := entry.FindStringSubmatch(text)
			require.NotNil(t, m, "%s %v", name, v)
			id, err := drv.CreatePipeline(driver.PipelineDesc{Label: name, Source: text, Entry: m[1], Bindings: declared(t, text)})
			require.NoError(t, err, "%s %v", name, v)
			require.NoError(t, drv.DestroyPipeline(id))
			compiled++
		}
	}
	t.Logf("%d kernels", compiled)
}
