//go:build linux && (amd64 || arm64) && !android

package driver

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// build compiles the library that notes its calls.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("SKIPPED: the library that notes its calls is compiled with cc, which is not there")
	}
	path := filepath.Join(t.TempDir(), "libnotes.so")
	out, err := exec.Command(cc, append(flags, "-w", "-O1", "-shared", "-fPIC", "-o", path, "testdata/library.c")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// taken returns what the library noted since the last call.
func taken(t *testing.T, d Driver) string {
	t.Helper()
	opened, err := openLibrary(d.Path())
	require.NoError(t, err)
	var f func() string
	purego.RegisterFunc(&f, findSymbol(opened, "taken"))
	return f()
}

// Every argument arrives in its place, and every result comes back.
func TestCalls(t *testing.T) {
	d, err := Open(build(t))
	require.NoError(t, err)
	require.Equal(t, "init 0;", taken(t, d))
	v, err := d.Version()
	require.NoError(t, err)
	require.Equal(t, 13000, v)
	require.Equal(t, filepath.Base(d.Path()), "libnotes.so")

	n, err := d.DeviceCount()
	require.NoError(t, err)
	require.Equal(t, 3, n)
	name, err := d.DeviceName(2)
	require.NoError(t, err)
	require.Equal(t, "device 42", name)
	id, err := d.DeviceUUID(1)
	require.NoError(t, err)
	require.Equal(t, [16]byte{41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56}, id)
	size, err := d.DeviceMemory(1)
	require.NoError(t, err)
	require.EqualValues(t, uint64(41)<<32, size)
	a, err := d.Attribute(1, CapabilityMajor)
	require.NoError(t, err)
	require.Equal(t, 75041, a)
	_, err = d.Attribute(3, CapabilityMajor)
	require.ErrorIs(t, err, pass.ErrNoDevice)

	var f Launch
	const s = Stream(0x201)
	for _, c := range []struct {
		want string
		call func() error
	}{
		{"context 0 40;", func() error { return is(Context(0x100))(d.CreateContext(0)) }},
		{"", func() error { return is(Context(0x100))(d.Current()) }},
		{"current 0x101;", func() error { return d.SetCurrent(0x101) }},
		{"destroy context 0x101;", func() error { return d.DestroyContext(0x101) }},
		{"alloc 1000;", func() error { return is(Pointer(0x123456789A00))(d.Alloc(1000)) }},
		{"free 123456789a00;", func() error { return d.Free(0x123456789A00) }},
		{"grain 1 2 0;", func() error { return is(uint64(2 << 20))(d.Granularity(2)) }},
		{"reserve 8589934592 0 0 0;", func() error { return is(Pointer(0x7000))(d.Reserve(8 << 30)) }},
		{"unreserve 7000 4096;", func() error { return d.Unreserve(0x7000, 4096) }},
		{"create 4096 1 0 1 2 (nil) 0;", func() error { return is(Physical(0xABCDEF0123456789))(d.Create(2, 4096)) }},
		{"release abcdef0123456789;", func() error { return d.Release(0xABCDEF0123456789) }},
		{"map 7000 4096 0 abcdef0123456789 0;access 7000 4096 1 2 3 1;", func() error { return d.Map(2, 0x7000, 4096, 0xABCDEF0123456789) }},
		{"unmap 7000 4096;", func() error { return d.Unmap(0x7000, 4096) }},
		{"up 7000 0x9000 17 0x201;", func() error { return d.CopyToDevice(0x7000, 0x9000, 17, s) }},
		{"down 0x9000 7000 17 0x201;", func() error { return d.CopyToHost(0x9000, 0x7000, 17, s) }},
		{"across 7000 8000 17 0x201;", func() error { return d.CopyOnDevice(0x7000, 0x8000, 17, s) }},
		{"set 7000 fffffffe 17 0x201;", func() error { return d.Set32(0x7000, 0xFFFFFFFE, 17, s) }},
		{"launch 0x501 4294967295,2,3 4,5,6 7 0x201 word (nil);", func() error { return d.Launch(f, s) }},
		{"together 0x501 4294967295,2,3 4,5,6 7 0x201 word;", func() error {
			f := f
			f.Cooperative = true
			return d.Launch(f, s)
		}},
		{"launch 0x501 4294967295,2,3 4,5,6 7 0x201 word (nil) with 6=1;", func() error {
			f := f
			f.Early = true
			return d.Launch(f, s)
		}},
		{"launch graph 0x800 0x201;", func() error { return d.LaunchGraph(0x800, s) }},
		{"stream 1 -5;", func() error { return is(Stream(0x200))(d.CreateStream(-5)) }},
		{"destroy stream 0x201;", func() error { return d.DestroyStream(s) }},
		{"wait 0x201;", func() error { return d.Synchronize(s) }},
		{"", func() error { return is(true)(d.Query(s)) }},
		{"", func() error { return is(false)(d.Query(0x200)) }},
		{"event 0;", func() error { return is(Event(0x300))(d.CreateEvent()) }},
		{"record 0x300 0x201;", func() error { return d.Record(0x300, s) }},
		{"", func() error { return is(false)(d.QueryEvent(0x300)) }},
		{"elapsed 0x300 0x301;", func() error { return is(float32(1.5))(d.Elapsed(0x300, 0x301)) }},
		{"destroy event 0x300;", func() error { return d.DestroyEvent(0x300) }},
		{"load good 0;option 5;option 6;", func() error { return is(Module(0x400))(d.LoadModule([]byte("good"))) }},
		{"unload 0x400;", func() error { return d.UnloadModule(0x400) }},
		{"function 0x400 norm_layer;", func() error { return is(Function(0x500))(d.Function(0x400, "norm_layer")) }},
		{"attribute 0x500;", func() error { return is(74)(d.FunctionAttribute(0x500, FunctionRegisters)) }},
		{"set attribute 0x500 8 232448;", func() error { return d.AllowShared(0x500, 232448) }},
		{"occupancy 0x500 256 1024;", func() error { return is(6)(d.Occupancy(0x500, 256, 1024)) }},
		{"graph 0;", func() error { return is(Graph(0x600))(d.CreateGraph()) }},
		{"node 0x600 0x501 4294967295,2,3 4,5,6 7 word (nil) (nil) (nil);", func() error { return is(Node(0x700))(d.AddKernel(0x600, f)) }},
		{"node 0x600 0x501 4294967295,2,3 4,5,6 7 word (nil) (nil) (nil);node attribute 0x700 2 1;", func() error {
			f := f
			f.Cooperative = true
			return is(Node(0x700))(d.AddKernel(0x600, f))
		}},
		{"", func() error { return d.AddEdges(0x600, nil) }},
		{"edge 0x600 0x701>0x700 0,0,0;edge 0x600 0x702>0x703 1,0,1;", func() error {
			return d.AddEdges(0x600, []Edge{{From: 0x701, To: 0x700}, {0x702, 0x703, true}})
		}},
		{"instantiate 0x600 0;", func() error { return is(Exec(0x800))(d.Instantiate(0x600)) }},
		{"upload 0x800 0x201;", func() error { return d.Upload(0x800, s) }},
		{"destroy exec 0x800;", func() error { return d.DestroyExec(0x800) }},
		{"destroy graph 0x600;", func() error { return d.DestroyGraph(0x600) }},
		{"map 0 type 6 rank 2 at 0x8000 size 64,9 stride 128 box 32,4 step 1,1: 0 3 2 0;", func() error {
			m, err := d.EncodeTensorMap(TensorMap{Type: TensorF16, Address: 0x8000, Size: []uint64{64, 9}, Stride: []uint64{128}, Box: []uint32{32, 4},
				Swizzle: Swizzle128, Promote: 128})
			return errors.Join(err, is(byte(0x5A))(m[127], nil))
		}},
	} {
		// The arguments are fresh and nothing but the launch knows them.
		f = Launch{Function: 0x501, Grid: [3]uint32{1<<32 - 1, 2, 3}, Block: [3]uint32{4, 5, 6}, Shared: 7, Args: []byte("word")}
		require.NoError(t, c.call(), c.want)
		require.Equal(t, c.want, taken(t, d), c.want)
	}

	p, err := d.HostAlloc(64)
	require.NoError(t, err)
	require.Equal(t, "host 64 0;", taken(t, d))
	require.Equal(t, "host", string(unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), 4)))
	require.NoError(t, d.HostFree(p))
	require.Equal(t, "free host 1;", taken(t, d))
	free, total, err := d.MemInfo()
	require.NoError(t, err)
	require.EqualValues(t, 1<<33, free)
	require.EqualValues(t, 1<<37, total)
	least, greatest, err := d.PriorityRange()
	require.NoError(t, err)
	require.Equal(t, [2]int{0, -5}, [2]int{least, greatest})

	_, err = d.Alloc(1001)
	require.EqualError(t, err, "driver: cuMemAlloc_v2: text (NAME, 2)")
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	_, err = d.LoadModule([]byte("bad"))
	require.EqualError(t, err, "driver: cuModuleLoadDataEx: text (NAME, 2): line 1 line 2")
	_, err = d.LoadModule(nil)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = d.QueryEvent(0x301)
	require.EqualError(t, err, "driver: cuEventQuery: no description (no name, 700)")
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	_, err = d.EncodeTensorMap(TensorMap{Size: []uint64{1, 2}})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.NoError(t, d.Close())
}

// is returns a check of a result.
func is[T comparable](want T) func(T, error) error {
	return func(got T, err error) error {
		if err == nil && got != want {
			return errors.New("another result")
		}
		return err
	}
}

func TestOldAndIncompleteLibraries(t *testing.T) {
	d, err := Open(build(t, "-DOLD"))
	require.NoError(t, err)
	taken(t, d)
	require.NoError(t, d.AddEdges(0x600, []Edge{{0x702, 0x703, true}, {From: 0x701, To: 0x703}}))
	require.Equal(t, "whole edge 0x600 0x702>0x703;whole edge 0x600 0x701>0x703;", taken(t, d))
	_, err = d.EncodeTensorMap(TensorMap{})
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "of CUDA 12.1, has no cuTensorMapEncodeTiled, which needs 12.0")

	_, err = Open(build(t, "-DLESS"))
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "of CUDA 13.0, has no cuMemUnmap: want a driver of CUDA 12.0 or newer")
}

func BenchmarkCall(b *testing.B) {
	d, err := Open(build(b))
	require.NoError(b, err)
	b.Run("query", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.Query(0x201)
		}
	})
	b.Run("thread", func(b *testing.B) {
		b.ReportAllocs()
		t := NewThread(d)
		for b.Loop() {
			t.Do(func() error { return nil })
		}
	})
}
