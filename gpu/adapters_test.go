package gpu

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// Adapters as systems offer them.
var (
	nvidia = driver.Adapter{Name: "NVIDIA GeForce RTX 5090", Vendor: "NVIDIA", VendorID: 0x10de, DeviceID: 0x2b85, API: driver.Vulkan, Type: driver.Discrete}
	intel  = driver.Adapter{Name: "Intel(R) UHD Graphics 770", Vendor: "Intel", VendorID: 0x8086, DeviceID: 0x4680, API: driver.Vulkan, Type: driver.Integrated}
	venus  = driver.Adapter{Name: "Virtio-GPU Venus (AMD Radeon)", Vendor: "AMD", VendorID: 0x1002, DeviceID: 0x744c, API: driver.Vulkan, Type: driver.Virtual}
	odd    = driver.Adapter{Name: "Odd Accelerator", Vendor: "0x1234", VendorID: 0x1234, DeviceID: 1, API: driver.Vulkan, Type: driver.Unknown}
	lvp    = driver.Adapter{Name: "llvmpipe (LLVM 19.1.7, 256 bits)", Vendor: "Mesa", VendorID: 0x10005, API: driver.Vulkan, Type: driver.CPU}
	warp   = driver.Adapter{Name: "Microsoft Basic Render Driver", Vendor: "Microsoft", VendorID: 0x1414, DeviceID: 0x8c, API: driver.D3D12, Type: driver.Unknown}
	apple  = driver.Adapter{Name: "Apple M4", API: driver.Metal, Type: driver.Integrated}
)

// through returns an adapter as another API offers it.
func through(a driver.Adapter, api driver.API) driver.Adapter {
	a.API = api
	return a
}

func renamed(a driver.Adapter, name string) driver.Adapter {
	a.Name = name
	return a
}

func unknown(a driver.Adapter) driver.Adapter {
	a.Type = driver.Unknown
	return a
}

// limited returns an adapter whose limits are the standard's, with changes.
func limited(a driver.Adapter, change func(*driver.Limits)) driver.Adapter {
	a.Limits = drivertest.DefaultLimits()
	if change != nil {
		change(&a.Limits)
	}
	return a
}

// offered gives adapters indices and limits, as a provider does.
func offered(list ...driver.Adapter) []driver.Adapter {
	for i := range list {
		list[i].Index = i
		if list[i].Limits == (driver.Limits{}) {
			list[i].Limits = drivertest.DefaultLimits()
		}
	}
	return list
}

// ranked writes a listing as "name:rank" in order of index.
func ranked(list []candidate) string {
	var parts []string
	for _, c := range list {
		short := strings.Fields(c.Name)[0]
		parts = append(parts, short+":"+string(rune('0'+c.Rank))+":"+strings.Join(c.APIs, "+"))
	}
	return strings.Join(parts, " ")
}

func TestRanking(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		list []driver.Adapter
		r    request
		want string // name:rank:apis of each adapter by index
	}{
		{"discrete beside integrated", offered(intel, nvidia), request{}, "NVIDIA:1:vulkan Intel(R):2:vulkan"},
		{"software first", offered(lvp, intel, nvidia), request{}, "NVIDIA:1:vulkan Intel(R):2:vulkan llvmpipe:0:vulkan"},
		{"all kinds", offered(lvp, odd, venus, intel, nvidia), request{software: true},
			"NVIDIA:1:vulkan Intel(R):2:vulkan Virtio-GPU:3:vulkan Odd:4:vulkan llvmpipe:5:vulkan"},
		{"software only", offered(lvp), request{}, "llvmpipe:0:vulkan"},
		{"software only, asked for", offered(lvp), request{software: true}, "llvmpipe:1:vulkan"},
		{"software by its name alone", offered(warp, renamed(venus, "Virtio-GPU Venus (llvmpipe)")), request{}, "Virtio-GPU:0:vulkan Microsoft:0:d3d12"},
		{"one device, two APIs, less preferred first", offered(through(nvidia, driver.D3D12), nvidia), request{}, "NVIDIA:1:vulkan+d3d12"},
		{"names differ between APIs, numbers do not", offered(through(renamed(venus, "AMD Radeon RX 7900"), driver.D3D12), venus), request{}, "Virtio-GPU:1:vulkan+d3d12"},
		{"no numbers, same name", offered(renamed(through(venus, driver.Vulkan), "apple m4"), apple), request{}, "Apple:1:metal+vulkan"},
		{"two alike", offered(nvidia, nvidia), request{}, "NVIDIA:1:vulkan NVIDIA:2:vulkan"},
		{"two alike, two APIs", offered(nvidia, through(nvidia, driver.D3D12), nvidia, through(nvidia, driver.D3D12)), request{}, "NVIDIA:1:vulkan+d3d12 NVIDIA:2:vulkan+d3d12"},
		{"one only through Direct3D", offered(through(nvidia, driver.D3D12), intel, through(intel, driver.D3D12)), request{}, "NVIDIA:1:d3d12 Intel(R):2:vulkan+d3d12"},
		{"software is no part of a hardware device", offered(renamed(lvp, "X"), driver.Adapter{Name: "X", API: driver.D3D12, Type: driver.Discrete}), request{}, "X:1:d3d12 X:0:vulkan"},
		{"OpenGL never", offered(through(nvidia, driver.OtherAPI)), request{}, "NVIDIA:0:other"},
		{"kind from the API that knows it", offered(unknown(nvidia), through(nvidia, driver.D3D12), intel), request{}, "NVIDIA:1:vulkan+d3d12 Intel(R):2:vulkan"},
		{"kind from the preferred API", offered(intel, nvidia, unknown(through(nvidia, driver.D3D12))), request{}, "NVIDIA:1:vulkan+d3d12 Intel(R):2:vulkan"},
		{"API asked for", offered(through(nvidia, driver.D3D12), intel, through(intel, driver.D3D12)), request{api: driver.Vulkan}, "NVIDIA:0:d3d12 Intel(R):1:vulkan+d3d12"},
		{"limits too low", offered(limited(nvidia, func(l *driver.Limits) { l.MaxInvocations = 32 }), intel), request{}, "NVIDIA:0:vulkan Intel(R):1:vulkan"},
		{"named software", offered(nvidia, lvp), request{adapter: "llvmpipe"}, "NVIDIA:0:vulkan llvmpipe:1:vulkan"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			list, err := judge(merge(test.list), test.r)
			require.NoError(t, err)
			require.Equal(t, test.want, ranked(list))
			for i, c := range list {
				require.Equal(t, i, c.Index)
				require.NotEmpty(t, c.Reason, c.Name)
				require.Equal(t, c.Rank > 0, len(c.ways) > 0, c.Name)
			}
		})
	}
}

// Indices must not move when something is asked for, or a listing could not be used to
// choose from.
func TestIndicesDoNotDependOnTheRequest(t *testing.T) {
	t.Parallel()
	groups := merge(offered(lvp, intel, nvidia, through(nvidia, driver.D3D12)))
	plain, err := judge(groups, request{})
	require.NoError(t, err)
	for _, r := range []request{{software: true}, {adapter: "intel"}, {api: driver.D3D12}} {
		list, err := judge(groups, r)
		require.NoError(t, err)
		for i := range list {
			require.Equal(t, plain[i].Name, list[i].Name)
		}
	}
}

func TestWaysFollowTheRequestedAPI(t *testing.T) {
	t.Parallel()
	groups := merge(offered(nvidia, through(nvidia, driver.D3D12), nvidia, through(nvidia, driver.D3D12)))
	list, err := judge(groups, request{})
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, []int{list[1].ways[0].Index, list[1].ways[1].Index})
	list, err = judge(groups, request{api: driver.D3D12})
	require.NoError(t, err)
	require.Len(t, list[1].ways, 1)
	require.Equal(t, 3, list[1].ways[0].Index)
}

func TestChoosingByName(t *testing.T) {
	t.Parallel()
	other := renamed(nvidia, "NVIDIA GeForce RTX 5090 D")
	list := offered(nvidia, other, intel, lvp)
	for _, test := range []struct {
		adapter string
		want    string // name that is taken
		is      error
		has     []string // in the error
	}{
		{adapter: "0", want: nvidia.Name},
		{adapter: "3", want: lvp.Name},
		{adapter: "intel", want: intel.Name},
		{adapter: "770", want: intel.Name}, // no such index: part of a name
		{adapter: "nvidia geforce rtx 5090", want: nvidia.Name},
		{adapter: "software", want: lvp.Name},
		{adapter: "integrated", want: intel.Name},
		{adapter: "discrete", want: nvidia.Name},
		{adapter: "nvidia", is: pass.ErrInvalid, has: []string{"Adapter", `"nvidia" names 2`, "0: NVIDIA GeForce RTX 5090 (discrete, vulkan, 10de:2b85)", "1: NVIDIA GeForce RTX 5090 D"}},
		{adapter: "radeon", is: pass.ErrInvalid, has: []string{`no adapter "radeon"`, "0: NVIDIA", "1: NVIDIA", "2: Intel", "3: llvmpipe"}},
		{adapter: "7", is: pass.ErrInvalid, has: []string{`"7" names 2`, "2: Intel", "3: llvmpipe"}}, // 770 and 19.1.7
		{adapter: "-1", is: pass.ErrInvalid, has: []string{`no adapter "-1"`}},
		{adapter: "virtual", is: pass.ErrNoDevice, has: []string{"no virtual adapter", "0: NVIDIA"}},
	} {
		t.Run(test.adapter, func(t *testing.T) {
			t.Parallel()
			got, err := judge(merge(list), request{adapter: test.adapter, adapterFrom: "Adapter"})
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
				require.Equal(t, test.is == pass.ErrInvalid, errors.Is(err, pass.ErrInvalid))
				for _, part := range test.has {
					require.ErrorContains(t, err, part)
				}
				return
			}
			require.NoError(t, err)
			for _, c := range got {
				if c.Rank == 1 {
					require.Equal(t, test.want, c.Name)
				} else if test.adapter != "discrete" {
					require.Zero(t, c.Rank, "only what is named is taken")
				}
			}
		})
	}
}

func TestTwoAlikeAreChosenByIndexOnly(t *testing.T) {
	t.Parallel()
	groups := merge(offered(nvidia, nvidia))
	_, err := judge(groups, request{adapter: strings.ToLower(nvidia.Name)})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "0: NVIDIA GeForce RTX 5090 (discrete, vulkan, 10de:2b85); 1: NVIDIA GeForce RTX 5090 (discrete, vulkan, 10de:2b85)")
	list, err := judge(groups, request{adapter: "1"})
	require.NoError(t, err)
	require.Zero(t, list[0].Rank)
	require.Equal(t, 1, list[1].Rank)
	require.Equal(t, 1, list[1].ways[0].Index)
}

func TestReasons(t *testing.T) {
	t.Parallel()
	groups := merge(offered(
		limited(nvidia, func(l *driver.Limits) { l.MaxStorageBuffers, l.MaxWorkgroupStorage = 4, 8<<10 }),
		intel, through(venus, driver.OtherAPI), lvp))
	reasons := func(r request) []string {
		list, err := judge(groups, r)
		require.NoError(t, err)
		var all []string
		for _, c := range list {
			all = append(all, c.Reason)
		}
		return all
	}
	require.Equal(t, []string{
		"vulkan: limits are too low: MaxStorageBuffers wanted 8, offered 4; MaxWorkgroupStorage wanted 16384, offered 8192",
		"first choice: integrated",
		"other: an API that is never taken",
		"computes on the CPU; software adapters are only taken when asked for: name it, or set Config.Software or TANDEM_SOFTWARE",
	}, reasons(request{}))
	require.Equal(t, `vulkan: TANDEM_API is "metal"`, reasons(request{api: driver.Metal, apiFrom: "TANDEM_API"})[1])
	named := reasons(request{adapter: "intel", adapterFrom: "TANDEM_ADAPTER"})
	require.Equal(t, `TANDEM_ADAPTER is "intel"`, named[1])
	require.Equal(t, `TANDEM_ADAPTER is "intel"`, named[3])
	require.Equal(t, "choice 2: software comes after integrated", reasons(request{software: true})[3])
	list, err := judge(merge(offered(nvidia, nvidia)), request{})
	require.NoError(t, err)
	require.Equal(t, "choice 2: also discrete, later in the list", list[1].Reason)
}

func TestAdapterDescription(t *testing.T) {
	t.Parallel()
	a := limited(nvidia, nil)
	a.Driver, a.Features = "570.86", driver.FeatureTimestamps|driver.FeatureF16
	other := limited(through(nvidia, driver.D3D12), func(l *driver.Limits) { l.MaxInvocations = 1024 })
	other.Driver = "32.0.15"
	list, err := judge(merge(offered(a, other)), request{api: driver.D3D12})
	require.NoError(t, err)
	require.Equal(t, "32.0.15", list[0].Driver)
	require.Empty(t, list[0].Features)
	require.Equal(t, 1024, list[0].Limits.Invocations)

	list, err = judge(merge(offered(a)), request{})
	require.NoError(t, err)
	require.Equal(t, Adapter{
		Name: "NVIDIA GeForce RTX 5090", Vendor: "NVIDIA", VendorID: 0x10de, DeviceID: 0x2b85, Kind: "discrete", Driver: "570.86",
		APIs: []string{"vulkan"}, Features: []string{"timestamps", "f16"}, Rank: 1, Reason: "first choice: discrete",
		Limits: Limits{BufferSize: 256 << 20, BindingSize: 128 << 20, StorageBuffers: 8, Workgroups: 65535, Invocations: 256, SharedMemory: 16 << 10},
	}, list[0].Adapter)
}
