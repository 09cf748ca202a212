package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// on returns a system with the given provider and environment.
func on(p driver.Provider, env ...string) system {
	return system{environment(env...), func(request) (driver.Provider, error) { return p, nil }}
}

func fake(list ...driver.Adapter) *drivertest.Provider { return &drivertest.Provider{List: list} }

func TestOpenTakesTheBest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		list []driver.Adapter
		cfg  Config
		env  string
		want string
	}{
		{name: "hardware", list: []driver.Adapter{lvp, intel, nvidia}, want: nvidia.Name},
		{name: "hardware although software is allowed", list: []driver.Adapter{lvp, intel}, cfg: Config{Software: true}, want: intel.Name},
		{name: "software allowed", list: []driver.Adapter{lvp}, cfg: Config{Software: true}, want: lvp.Name},
		{name: "software only", list: []driver.Adapter{nvidia, lvp}, cfg: Config{Adapter: "software"}, want: lvp.Name},
		{name: "software by environment", list: []driver.Adapter{lvp}, env: "TANDEM_SOFTWARE=1", want: lvp.Name},
		{name: "named by environment", list: []driver.Adapter{nvidia, intel}, env: "TANDEM_ADAPTER=uhd", want: intel.Name},
		{name: "config before environment", list: []driver.Adapter{nvidia, intel}, cfg: Config{Adapter: "0"}, env: "TANDEM_ADAPTER=uhd", want: nvidia.Name},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dev, err := on(fake(test.list...), test.env).open(t.Context(), test.cfg)
			require.NoError(t, err)
			require.Equal(t, test.want, dev.Info().Name)
			require.NoError(t, dev.Close())
		})
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	gone := fmt.Errorf("memory: the adapter is gone: %w", pass.ErrNoDevice)
	for _, test := range []struct {
		name string
		p    *drivertest.Provider
		cfg  Config
		is   error
		want string // the whole message, without the sentinel at its end
	}{
		{"no adapter", fake(), Config{}, pass.ErrNoDevice, "gpu: open: drivertest: no adapter: the list of this provider is empty: no device"},
		{"software only", fake(renamed(lvp, "llvmpipe")), Config{}, pass.ErrNoDevice,
			"gpu: open: no adapter that may be taken: 0: llvmpipe (software, vulkan, 10005:0000): computes on the CPU; " +
				"software adapters are only taken when asked for: name it, or set Config.Software or TANDEM_SOFTWARE"},
		{"API that nothing has", fake(intel), Config{API: "metal"}, pass.ErrNoDevice,
			`gpu: open: no adapter that may be taken: 0: Intel(R) UHD Graphics 770 (integrated, vulkan, 8086:4680): vulkan: API is "metal"`},
		{"named through an API it lacks", fake(nvidia, through(intel, driver.D3D12)), Config{Adapter: "nvidia", API: "d3d12"}, pass.ErrNoDevice,
			`gpu: open: no adapter that may be taken: 0: NVIDIA GeForce RTX 5090 (discrete, vulkan, 10de:2b85): vulkan: API is "d3d12"`},
		{"vanished", &drivertest.Provider{List: []driver.Adapter{nvidia}, OpenErr: map[int]error{0: gone}}, Config{}, pass.ErrNoDevice,
			"gpu: open: 0: NVIDIA GeForce RTX 5090 through vulkan: memory: the adapter is gone: no device"},
		{"named one vanished, others are not mentioned", &drivertest.Provider{List: []driver.Adapter{intel, nvidia}, OpenErr: map[int]error{1: gone}}, Config{Adapter: "nvidia"}, pass.ErrNoDevice,
			"gpu: open: 0: NVIDIA GeForce RTX 5090 through vulkan: memory: the adapter is gone: no device"},
		{"limit", fake(nvidia), Config{Limits: Limits{SharedMemory: 1 << 20}}, pass.ErrUnsupported,
			"gpu: open: 0: NVIDIA GeForce RTX 5090 through vulkan: driver: open NVIDIA GeForce RTX 5090 (vulkan): MaxWorkgroupStorage wanted 1048576, offered 16384: unsupported"},
		{"name", fake(nvidia), Config{Adapter: "radeon"}, pass.ErrNoDevice,
			`gpu: Adapter: no adapter "radeon"; there are: 0: NVIDIA GeForce RTX 5090 (discrete, vulkan, 10de:2b85): no device: invalid`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dev, err := on(test.p).open(t.Context(), test.cfg)
			require.Nil(t, dev)
			require.ErrorIs(t, err, test.is)
			require.EqualError(t, err, test.want)
		})
	}
}

// Without a name the next adapter, or the next API of the same one, is as good as
// asked for.
func TestOpenGoesOnToTheNext(t *testing.T) {
	t.Parallel()
	broken := fmt.Errorf("memory: broken driver: %w", pass.ErrNoDevice)
	list := []driver.Adapter{nvidia, through(nvidia, driver.D3D12), intel}
	var log bytes.Buffer
	p := &drivertest.Provider{List: list, OpenErr: map[int]error{0: broken}}
	dev, err := on(p).open(t.Context(), Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.Equal(t, "d3d12", dev.Info().API)
	require.NoError(t, dev.Close())
	require.Contains(t, log.String(), "broken driver")

	p = &drivertest.Provider{List: list, OpenErr: map[int]error{0: broken, 1: broken}}
	dev, err = on(p).open(t.Context(), Config{})
	require.NoError(t, err)
	require.Equal(t, intel.Name, dev.Info().Name)
	require.NoError(t, dev.Close())

	p = &drivertest.Provider{List: list, OpenErr: map[int]error{0: broken, 1: broken}}
	_, err = on(p).open(t.Context(), Config{Adapter: "discrete"})
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "through vulkan: memory: broken driver: no device; 0: NVIDIA GeForce RTX 5090 through d3d12: memory")
}

func TestOpenPassesOnLimitsFeaturesAndBudget(t *testing.T) {
	t.Parallel()
	a := limited(intel, nil)
	a.Features = driver.FeatureTimestamps | driver.FeatureMappedStorage | driver.FeatureF16
	b := limited(nvidia, nil)
	b.Features = a.Features
	p := fake(a, b)
	dev, err := on(p).open(t.Context(), Config{Adapter: "intel", Limits: Limits{BindingSize: 1 << 20}, MemoryBudget: 64 << 20})
	require.NoError(t, err)
	defer dev.Close()
	require.EqualValues(t, 1<<20, p.Opened[0].Limits().MaxStorageBindingSize)
	require.EqualValues(t, 256<<20, p.Opened[0].Limits().MaxBufferSize)
	require.Equal(t, driver.FeatureTimestamps|driver.FeatureMappedStorage, p.Opened[0].Features())
	_, err = p.Opened[0].CreateBuffer(driver.BufferDesc{Size: 65 << 20, Usage: driver.Storage})
	require.ErrorIs(t, err, pass.ErrOutOfMemory)

	discrete, err := on(p).open(t.Context(), Config{})
	require.NoError(t, err)
	defer discrete.Close()
	require.Equal(t, driver.FeatureTimestamps, p.Opened[1].Features(), "mapping pays only where memory is the host's")
}

func TestAdaptersLists(t *testing.T) {
	t.Parallel()
	list, err := on(fake(lvp, nvidia)).adapters(t.Context(), Config{})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "0: NVIDIA GeForce RTX 5090 (discrete, vulkan, 10de:2b85)", list[0].String())
	require.Zero(t, list[1].Rank)
	_, err = on(fake()).adapters(t.Context(), Config{})
	require.ErrorIs(t, err, pass.ErrNoDevice)
	_, err = on(fake(nvidia), "TANDEM_ADAPTER=radeon").adapters(t.Context(), Config{})
	require.ErrorContains(t, err, "TANDEM_ADAPTER: no adapter \"radeon\"")
}

// slow is a provider whose Open takes until it is let go.
type slow struct {
	*drivertest.Provider
	entered, release chan struct{}
	opened           chan driver.Device
}

func (s slow) Open(_ context.Context, i int, cfg driver.DeviceConfig) (driver.Device, error) {
	close(s.entered)
	<-s.release
	d, err := s.Provider.Open(context.Background(), i, cfg)
	s.opened <- d
	return d, err
}

// What comes after ctx has ended is closed.
func TestOpenHonoursCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := slow{fake(nvidia), make(chan struct{}), make(chan struct{}), make(chan driver.Device, 1)}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		go func() {
			<-p.entered
			cancel(cause)
		}()
		_, err := on(p).open(ctx, Config{})
		require.ErrorIs(t, err, cause)
		require.EqualError(t, err, "gpu: open: enough")
		close(p.release)
		late := <-p.opened
		synctest.Wait()
		_, err = late.CreateBuffer(driver.BufferDesc{Size: 4, Usage: driver.Storage})
		require.ErrorIs(t, err, pass.ErrClosed)
	})
}

func TestOpenDoesNothingOnceCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		asked := make(chan bool, 1)
		s := system{environment(), func(request) (driver.Provider, error) {
			asked <- true
			return fake(nvidia), nil
		}}
		_, err := s.open(ctx, Config{})
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Empty(t, asked, "the provider was asked")
	})
}

type panics struct{ *drivertest.Provider }

func (panics) Adapters(context.Context) ([]driver.Adapter, error) { panic("driver bug") }

func TestNoPanicComesOutOfOpen(t *testing.T) {
	t.Parallel()
	_, err := on(panics{}).open(t.Context(), Config{})
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "driver bug")
}

// needVulkan skips the test where there is no Vulkan at all.
func needVulkan(t *testing.T) {
	_, err := Adapters(t.Context(), Config{Software: true})
	if err != nil && os.Getenv("TANDEM_REQUIRE_GPU") != "" {
		t.Fatalf("TANDEM_REQUIRE_GPU is set: %v", err)
	}
	if err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
}

func TestOpenOnThisMachine(t *testing.T) {
	needVulkan(t)
	dev, err := Open(t.Context(), Config{Software: true})
	require.NoError(t, err)
	require.NotEmpty(t, dev.Info().Name)
	require.NoError(t, dev.Close())
	require.NoError(t, dev.Close())
}

func TestBrokenDriverPath(t *testing.T) {
	needVulkan(t)
	if runtime.GOOS != "linux" {
		t.Skip("the path is one of the Vulkan loader on Linux")
	}
	t.Setenv("VK_DRIVER_FILES", "/no/such/driver.json")
	t.Setenv("VK_ICD_FILENAMES", "/no/such/driver.json")
	_, err := Open(t.Context(), Config{Software: true})
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "VK_DRIVER_FILES names /no/such/driver.json, which cannot be read")
}

func TestNilContext(t *testing.T) {
	var none context.Context
	_, err := Open(none, Config{})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "want a context, given nil")
	_, err = Adapters(none, Config{})
	require.ErrorIs(t, err, pass.ErrInvalid)
}
