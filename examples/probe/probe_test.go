package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// fake is a device that describes itself.
type fake struct {
	pass.Device
	info pass.Info
	err  error // of Close
}

func (f fake) Info() pass.Info { return f.info }
func (f fake) Close() error    { return f.err }

func opens(info pass.Info) func(context.Context) (pass.Device, error) {
	return func(context.Context) (pass.Device, error) { return fake{info: info}, nil }
}

// workstation is a machine with a bit of everything.
func workstation() []source {
	limits := gpu.Limits{BufferSize: 2 << 30, BindingSize: 2<<30 - 4, StorageBuffers: 8, Workgroups: 65535, Invocations: 1024, SharedMemory: 48 << 10}
	adapter := func(index int, name, kind, reason string) *gpu.Adapter {
		return &gpu.Adapter{Index: index, Name: name, Kind: kind, Vendor: "NVIDIA", VendorID: 0x10de, DeviceID: 0x2335,
			APIs: []string{"vulkan", "d3d12"}, Features: []string{"timestamps"}, Limits: limits, Reason: reason}
	}
	return []source{
		{
			Candidate: tandem.Candidate{Backend: "cuda", Name: "NVIDIA H200", Kind: "discrete", API: "cuda", Driver: "CUDA 13.0", Usable: true,
				GPU: &cuda.GPU{Ordinal: 0, UUID: "GPU-00112233-4455-6677-8899-aabbccddeeff", Capability: 90, SMs: 132, Memory: 150754820096, Library: "libcuda.so.1"}},
			open: opens(pass.Info{Provider: "libcuda.so.1", Memory: 150754820096, Limits: []pass.Limit{{Name: "multiprocessors", Value: 132}, {Name: "shared memory bytes", Value: 227 << 10}},
				Variants: []pass.Variant{{Name: "kernels", Used: true, Reason: "sm_90a"}}}),
		},
		{
			Candidate: tandem.Candidate{Backend: "cuda", Name: "Quadro P400", Kind: "discrete", API: "cuda", Driver: "CUDA 13.0", Reason: "compute capability 6.1, 7.5 or later is needed",
				GPU: &cuda.GPU{Ordinal: 1, UUID: "GPU-01234567-89ab-cdef-0123-456789abcdef", Capability: 61, SMs: 2, Memory: 2 << 30, Library: "libcuda.so.1"}},
		},
		{Candidate: tandem.Candidate{Backend: "gpu", Reason: "no driver: no device"}},
		{
			Candidate: tandem.Candidate{Backend: "gpu", Name: "NVIDIA H200", Kind: "discrete", API: "vulkan d3d12", Driver: "570.86", Usable: true,
				Adapter: adapter(0, "NVIDIA H200", "discrete", "first choice: discrete")},
			open: opens(pass.Info{Provider: "native", Limits: []pass.Limit{{Name: "buffer bytes", Value: 1 << 30}, {Name: "workgroups", Value: 65535}},
				Variants: []pass.Variant{{Name: "matrix", Reason: "no matrix units"}, {Name: "mapped memory", Used: true, Reason: "forced"}}}),
		},
		{
			Candidate: tandem.Candidate{Backend: "gpu", Name: "Broken", Kind: "integrated", API: "vulkan", Usable: true, Adapter: adapter(1, "Broken", "integrated", "choice 2")},
			open:      func(context.Context) (pass.Device, error) { return nil, errors.New("gpu: open:\nthe driver crashed") },
		},
		{
			Candidate: tandem.Candidate{Backend: "gpu", Name: "Old", Kind: "integrated", API: "vulkan", Reason: "limits are too low",
				Adapter: adapter(2, "Old", "integrated", "limits are too low")},
		},
		{
			Candidate: tandem.Candidate{Backend: "cpu", Name: "A processor", Kind: "cpu", API: "go", Driver: "go1.25", Usable: true},
			open:      opens(pass.Info{Threads: 8, Memory: 3 << 29}),
		},
	}
}

func report(t *testing.T) *Report {
	r := collect(t.Context(), workstation())
	for i := range r.Devices {
		if r.Devices[i].Usable {
			r.Devices[i].OpenMS = 12.34
		}
	}
	r.Version, r.Go, r.Platform, r.Cgo = "v0.1.0", "go1.25.0", "linux/amd64", true
	r.Vulkan = Search{
		Loader:    []Place{{Path: "/lib/libvulkan.so.1"}, {Path: "/usr/lib/libvulkan.so.1", Found: true}},
		Manifests: []Place{{Path: "/etc/vulkan/icd.d/nvidia.json", Found: true, Detail: "libGLX_nvidia.so.0, Vulkan 1.4.303"}},
		Loaded:    []string{"/usr/lib/libvulkan.so.1.4.309"},
	}
	r.Modules = []Module{{"nvidia", "570.86.15"}}
	r.Environment = []Setting{{"TANDEM_ADAPTER", "adapter to take", ""}, {"TANDEM_API", "API to use", "vulkan"}}
	return r
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), got)
}

func TestReportAsText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, writeReport(&out, report(t)))
	golden(t, "report.txt", out.String())
}

func TestReportAsJSON(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, show(&out, true, report(t), nil))
	golden(t, "report.json", out.String())
}

func TestResult(t *testing.T) {
	t.Parallel()
	d := &Device{Backend: "gpu", Name: "NVIDIA H200", Kind: "discrete", APIs: []string{"vulkan"}, Driver: "570.86", Usable: true}
	for name, r := range map[string]*Result{
		"cuda.txt": {Wanted: "cuda", OpenMS: 250.04, FirstMS: 8.01, AgainMS: 0.125, Passed: true, Device: &Device{
			Backend: "cuda", Name: "NVIDIA H200", Kind: "discrete", APIs: []string{"cuda"}, Driver: "CUDA 13.0", Usable: true,
			Variants: []Variant{{Name: "kernels", Used: true, Reason: "sm_90a"}, {Name: "tensor cores", Used: true, Reason: "there"}}}},
		"passed.txt": {Wanted: "0", Device: d, OpenMS: 150.04, FirstMS: 40.01, AgainMS: 0.125, Passed: true},
		"wrong.txt":  {Wanted: "0", Device: d, OpenMS: 150.04, FirstMS: 40.01, Failure: "run 1: row 0, column 3: want 5, got 4"},
		"absent.txt": {Wanted: "gpu", Failure: "tandem: no device: gpu: open: no adapter"},
	} {
		var out strings.Builder
		require.NoError(t, writeResult(&out, r))
		golden(t, name, out.String())
	}
}

func TestUsable(t *testing.T) {
	t.Parallel()
	list := workstation()
	require.True(t, collect(t.Context(), list).usable())
	require.False(t, collect(t.Context(), list[4:6]).usable())
	require.False(t, collect(t.Context(), nil).usable())
	list[3].open = func(context.Context) (pass.Device, error) { return fake{err: errors.New("lost")}, nil }
	r := collect(t.Context(), list[3:4])
	require.False(t, r.usable(), "a device that fails at once is not usable")
	require.Equal(t, "lost", r.Devices[0].Reason)
}

func TestSelfTestOnTheCPU(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--device", "cpu", "--json"}, &out, &errs), errs.String())
	var r Result
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.True(t, r.Passed)
	require.Equal(t, "cpu", r.Device.Backend)
	require.Positive(t, r.FirstMS)
	require.Positive(t, r.AgainMS)
}

func TestSelfTestOnSoftwareVulkan(t *testing.T) {
	t.Parallel()
	if _, err := gpu.Adapters(t.Context(), gpu.Config{Adapter: "software"}); err != nil {
		if os.Getenv("TANDEM_REQUIRE_GPU") != "" {
			t.Fatalf("TANDEM_REQUIRE_GPU is set: %v", err)
		}
		t.Skipf("NOT TESTED: %v", err)
	}
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--device", "software"}, &out, &errs), out.String())
	require.Contains(t, out.String(), "self-test  passed")
}

// wrong is a device whose weights are not those that were loaded.
type wrong struct{ pass.Device }

func (d wrong) Load(ctx context.Context, w pass.Weights) (pass.Param, error) {
	l := w.(pass.LinearWeights)
	values, err := l.Parts[0].Float32s()
	if err != nil {
		return pass.Param{}, err
	}
	values[testIn+1]++
	l.Parts = []pass.Tensor{pass.Float32s("w", values, testOut, testIn)}
	return d.Device.Load(ctx, l)
}

func TestSelfTestFindsWrongNumbers(t *testing.T) {
	t.Parallel()
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(t, err)
	r := checkDevice(t.Context(), "cpu", wrong{dev}, 0)
	require.False(t, r.Passed)
	require.Contains(t, r.Failure, "run 1: row 0, column 1: want")
}

func TestCompareLooksAtEveryElement(t *testing.T) {
	t.Parallel()
	x, bias := make([]float32, testIn), make([]float32, testOut)
	weights, got := make([]float32, testOut*testIn), make([]float32, 2*testOut)
	require.NoError(t, compare(got, weights, bias, x))
	for i := range got {
		got[i] = 1
		require.Error(t, compare(got, weights, bias, x), i)
		got[i] = 0
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		code int
		out  string
		errs string
	}{
		{[]string{"--help"}, exitOK, "usage: probe", ""},
		{[]string{"--nonsense"}, exitUsage, "", "nonsense; see probe --help\n"},
		{[]string{"more"}, exitUsage, "", `unexpected argument "more"`},
		{[]string{"--timeout", "0s"}, exitUsage, "", "--timeout: want a time above 0"},
		{[]string{"--device", "cuda"}, exitFailed, "cuda", ""},
		{[]string{"--device", "cuda:7"}, exitFailed, "cuda: open", ""},
		{[]string{"--device", "gpu:no such card"}, exitFailed, "failed", ""},
		{[]string{"--device", "no such card"}, exitUsage, "", "--device: want cuda, gpu, software or cpu"},
	} {
		var out, errs strings.Builder
		require.Equal(t, test.code, run(t.Context(), test.args, &out, &errs), test.args)
		require.Contains(t, out.String(), test.out)
		require.Contains(t, errs.String(), test.errs)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// The report of this machine has the CPU at least.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--json"}, &out, &errs), errs.String())
	var r Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	last := r.Devices[len(r.Devices)-1]
	require.Equal(t, "cpu", last.Backend)
	require.True(t, last.Usable)
	for _, d := range r.Devices {
		require.True(t, d.Usable || d.Reason != "", d)
	}
	var names []string
	for _, s := range r.Environment {
		names = append(names, s.Name)
	}
	require.Subset(t, names, []string{"TANDEM_ADAPTER", "TANDEM_CUDA_DEVICE", "TANDEM_CUDA_TUNE"})
	require.Equal(t, exitFailed, run(t.Context(), []string{"--device", "cpu"}, full{}, &errs), "output that cannot be written")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(data), 0o644))
		return path
	}
	library := write("lib/libvulkan.so.1", "")
	good := write("icd/good.json", `{"ICD": {"library_path": "libgood.so", "api_version": "1.3.1"}}`)
	bad := write("icd/bad.json", `{`)
	missing := filepath.Join(dir, "none.json")
	getenv := func(env map[string]string) func(string) string { return func(name string) string { return env[name] } }

	s := searchVulkan("linux", getenv(map[string]string{"LD_LIBRARY_PATH": filepath.Dir(library), "VK_DRIVER_FILES": good + string(filepath.ListSeparator) + missing}))
	require.Equal(t, Place{Path: library, Found: true}, s.Loader[0])
	require.Equal(t, []Place{{Path: good, Found: true, Detail: "libgood.so, Vulkan 1.3.1"}, {Path: missing}}, s.Manifests)

	s = searchVulkan("linux", getenv(map[string]string{"VK_ICD_FILENAMES": filepath.Join(dir, "icd")}))
	require.Len(t, s.Manifests, 2)
	require.Contains(t, s.Manifests[0].Path, bad)
	require.Contains(t, s.Manifests[0].Detail, "cannot be read")

	s = searchVulkan("linux", getenv(map[string]string{"HOME": dir, "VK_ADD_DRIVER_FILES": good}))
	require.Equal(t, good, s.Manifests[0].Path)
	require.Contains(t, s.Manifests[1].Path, filepath.Join(dir, ".config"))

	require.Equal(t, Search{Loader: []Place{}, Manifests: []Place{}, Loaded: []string{}}, searchVulkan("darwin", getenv(nil)))
	require.Empty(t, loaderVariables("darwin"))
}

func TestVulkanLibraries(t *testing.T) {
	t.Parallel()
	maps := "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libvulkan.so.1.3.2\n7f01-7f02 r--p 0 08:01 1 /usr/lib/libvulkan.so.1.3.2\n" +
		"7f03-7f04 r-xp 0 08:01 2 /usr/lib/libc.so.6\n7f05-7f06 rw-p 0 0 0 [heap]\n7f07-7f08 r-xp 0 08:01 3 /usr/lib/libGLX_nvidia.so.570\n"
	require.Equal(t, []string{"/usr/lib/libvulkan.so.1.3.2", "/usr/lib/libGLX_nvidia.so.570"}, vulkanLibraries(maps))
}

func TestModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, data := range map[string]string{"nvidia/version": "570.1\n", "i915/refcnt": "1", "release": "6.1.0\n"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(data), 0o644))
	}
	require.Equal(t, []Module{{"i915", "6.1.0"}, {"nvidia", "570.1"}}, modules(dir, filepath.Join(dir, "release")))
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 48 << 10: "48 KiB", 1536: "1.5 KiB", 2<<30 - 4: "2.0 GiB", 2 << 30: "2 GiB", 1<<63 - 1: "8 EiB"} {
		require.Equal(t, want, size(n), fmt.Sprint(n))
	}
}
