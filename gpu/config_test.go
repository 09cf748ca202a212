package gpu

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// environment reads variables from "NAME=value" words.
func environment(words ...string) func(string) string {
	return func(name string) string {
		for _, w := range words {
			if value, ok := strings.CutPrefix(w, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestEnvironmentFillsWhatConfigLeavesOpen(t *testing.T) {
	t.Parallel()
	all := environment("TANDEM_ADAPTER= Intel ", "TANDEM_API=D3D12", "TANDEM_SOFTWARE=1", "TANDEM_PROVIDER=native", "TANDEM_WATCHDOG=3s", "TANDEM_DEBUG=true")
	r, err := Config{}.resolve(all)
	require.NoError(t, err)
	require.Equal(t, "intel", r.adapter)
	require.Equal(t, "TANDEM_ADAPTER", r.adapterFrom)
	require.Equal(t, driver.D3D12, r.api)
	require.Equal(t, "TANDEM_API", r.apiFrom)
	require.True(t, r.software)
	require.True(t, r.debug)
	require.Equal(t, 3*time.Second, r.watchdog)

	r, err = Config{Adapter: "NVIDIA", API: "Vulkan", Watchdog: time.Minute}.resolve(all)
	require.NoError(t, err)
	require.Equal(t, "nvidia", r.adapter)
	require.Equal(t, "Adapter", r.adapterFrom)
	require.Equal(t, driver.Vulkan, r.api)
	require.Equal(t, "API", r.apiFrom)
	require.Equal(t, time.Minute, r.watchdog)

	r, err = Config{}.resolve(environment())
	require.NoError(t, err)
	require.False(t, r.software)
	require.False(t, r.debug)
	require.Empty(t, r.adapter)
	require.Empty(t, r.api)
	require.NotNil(t, r.log)
}

// A value in Config that is good must hide one in the environment that is not.
func TestConfigHidesTheEnvironment(t *testing.T) {
	t.Parallel()
	_, err := Config{API: "vulkan", Provider: "native", Software: true, Watchdog: 1}.resolve(
		environment("TANDEM_API=opengl", "TANDEM_PROVIDER=x", "TANDEM_SOFTWARE=maybe", "TANDEM_WATCHDOG=soon"))
	require.NoError(t, err)
}

func TestValuesThatNameNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cfg  Config
		env  string
		want string
	}{
		{cfg: Config{API: "opengl"}, want: `gpu: API: want vulkan, metal or d3d12, given "opengl"`},
		{cfg: Config{API: "browser"}, want: `gpu: API: want vulkan, metal or d3d12`},
		{env: "TANDEM_API=dx12", want: `gpu: TANDEM_API: want vulkan, metal or d3d12, given "dx12"`},
		{cfg: Config{Provider: "mesa"}, want: `gpu: Provider: want native or dawn, given "mesa"`},
		{cfg: Config{Provider: "native", Library: "x.so"}, want: `gpu: Library: "x.so" is for provider dawn, Provider is "native"`},
		{env: "TANDEM_PROVIDER=x", want: "gpu: TANDEM_PROVIDER: want native"},
		{env: "TANDEM_SOFTWARE=maybe", want: `gpu: TANDEM_SOFTWARE: want 1 or 0, given "maybe"`},
		{env: "TANDEM_DEBUG=2", want: `gpu: TANDEM_DEBUG: want 1 or 0, given "2"`},
		{env: "TANDEM_WATCHDOG=30", want: `gpu: TANDEM_WATCHDOG: want a time such as 30s, given "30"`},
		{env: "TANDEM_WATCHDOG=-1s", want: `gpu: TANDEM_WATCHDOG: want at least 0, given -1s`},
		{cfg: Config{Watchdog: -1}, want: "gpu: Watchdog: want at least 0, given -1ns"},
		{cfg: Config{MemoryBudget: -1}, want: "gpu: MemoryBudget: want at least 0, given -1"},
		{cfg: Config{Limits: Limits{BindingSize: -4}}, want: "gpu: Limits.BindingSize: want at least 0, given -4"},
		{cfg: Config{Limits: Limits{Workgroups: -1}}, want: "gpu: Limits.Workgroups: want at least 0, given -1"},
	} {
		_, err := test.cfg.resolve(environment(test.env))
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, test.want)
	}
}

func TestLimitsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	l := Limits{BufferSize: 1, BindingSize: 2, StorageBuffers: 3, Workgroups: 4, Invocations: 5, SharedMemory: 6}
	seam, err := l.driver()
	require.NoError(t, err)
	require.Equal(t, driver.Limits{MaxBufferSize: 1, MaxStorageBindingSize: 2, MaxStorageBuffers: 3,
		MaxWorkgroups: 4, MaxInvocations: 5, MaxWorkgroupStorage: 6}, seam)
	require.Equal(t, l, limitsOf(seam))
}

// The package documentation has the list of variables that the code has.
func TestEnvironmentIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, v := range Environment() {
		require.Contains(t, strings.Join(strings.Fields(string(doc)), " "), "// "+v.Name+" "+v.Meaning)
	}
	require.Equal(t, len(Environment()), strings.Count(string(doc), "//\tTANDEM_"))
}
