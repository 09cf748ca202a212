package drivertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// bench is a driver with a current context, a stream and a function.
type bench struct {
	*Driver
	t        *testing.T
	context  driver.Context
	stream   driver.Stream
	module   driver.Module
	function driver.Function
}

func open(t *testing.T, c Config) *bench {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	b := &bench{Driver: New(c), t: t}
	var err error
	b.context, err = b.CreateContext(0)
	require.NoError(t, err)
	b.stream, err = b.CreateStream(0)
	require.NoError(t, err)
	b.module, err = b.LoadModule([]byte{1})
	require.NoError(t, err)
	b.function, err = b.Function(b.module, "kernel")
	require.NoError(t, err)
	return b
}

// close gives back what open made and wants nothing else to be left.
func (b *bench) close() {
	b.t.Helper()
	require.NoError(b.t, b.DestroyStream(b.stream))
	require.NoError(b.t, b.UnloadModule(b.module))
	require.NoError(b.t, b.DestroyContext(b.context))
	require.Empty(b.t, b.Leaks())
}

func (b *bench) launch(args ...byte) driver.Launch {
	return driver.Launch{Function: b.function, Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}, Args: args}
}

func code(t *testing.T, want int, err error) {
	t.Helper()
	var e *driver.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Code, err)
}

func at(p uintptr, n int) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n) }

func TestMemoryIsPoisonedAndChecked(t *testing.T) {
	b := open(t, Config{})
	p, err := b.Alloc(1000)
	require.NoError(t, err)
	require.Zero(t, p%256)
	h, err := b.HostAlloc(1000)
	require.NoError(t, err)
	require.NoError(t, b.CopyToHost(h, p, 1000, b.stream))
	for _, v := range at(h, 1000) {
		require.EqualValues(t, 0xFF, v)
	}
	copy(at(h, 1000), "abcdefgh")
	require.NoError(t, b.CopyToDevice(p+8, h, 8, b.stream))
	require.NoError(t, b.CopyOnDevice(p, p+8, 8, b.stream))
	require.NoError(t, b.Set32(p+4, 0x64636261, 1, b.stream))
	require.Equal(t, "abcdabcdabcdefgh", string(at(uintptr(p), 16)))

	code(t, driver.InvalidValue, b.CopyToHost(h, p+1, 1000, b.stream))
	code(t, driver.InvalidValue, b.CopyToHost(h+1, p, 1000, b.stream))
	code(t, driver.InvalidValue, b.CopyToDevice(p, uintptr(p), 8, b.stream)) // not page-locked
	code(t, driver.InvalidValue, b.Set32(p+1, 0, 1, b.stream))
	code(t, driver.InvalidValue, b.Free(p+1))
	require.NoError(t, b.Free(p))
	code(t, driver.InvalidValue, b.Free(p))
	code(t, driver.InvalidValue, b.CopyToHost(h, p, 8, b.stream))
	require.NoError(t, b.HostFree(h))
	b.close()
}

func TestMemoryEnds(t *testing.T) {
	b := open(t, Config{Devices: []Profile{{Name: "small", Capability: 75, SMs: 1, SharedMemory: 48 << 10, SharedPerSM: 64 << 10, Memory: 4 << 20}}})
	p, err := b.Alloc(3 << 20)
	require.NoError(t, err)
	_, err = b.Alloc(1<<20 + 1)
	code(t, driver.OutOfMemory, err)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	_, err = b.Create(0, 2<<20)
	code(t, driver.OutOfMemory, err)
	free, total, err := b.MemInfo()
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, free)
	require.EqualValues(t, 4<<20, total)
	require.NoError(t, b.Free(p))
	b.close()
}

func TestWritesAroundAPieceAreFound(t *testing.T) {
	for _, off := range []int{-1, 100} {
		b := open(t, Config{})
		p, err := b.Alloc(100)
		require.NoError(t, err)
		if off < 0 && uint64(p)%pageSize == 0 {
			t.Fatal("no slack before the piece")
		}
		*(*byte)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&p)), off)) = 0
		err = b.Free(p)
		code(t, driver.IllegalAddress, err)
		require.ErrorContains(t, err, "a piece of 100 bytes")
		code(t, driver.IllegalAddress, b.Synchronize(b.stream))
		require.NoError(t, b.DestroyContext(b.context))
	}
}

func TestVirtualMemory(t *testing.T) {
	b := open(t, Config{})
	g, err := b.Granularity(0)
	require.NoError(t, err)
	space, err := b.Reserve(64 * g)
	require.NoError(t, err)
	require.Zero(t, uint64(space)%g)
	_, err = b.Reserve(g + 1)
	code(t, driver.InvalidValue, err)
	one, err := b.Create(0, g)
	require.NoError(t, err)
	two, err := b.Create(0, 2*g)
	require.NoError(t, err)
	require.NoError(t, b.Map(0, space, g, one))
	code(t, driver.InvalidValue, b.Map(0, space, 2*g, two)) // taken
	code(t, driver.InvalidValue, b.Map(0, space+driver.Pointer(g), g, two))
	code(t, driver.InvalidValue, b.Map(0, space+driver.Pointer(63*g), 2*g, two))
	code(t, driver.InvalidValue, b.Map(0, space+driver.Pointer(4*g), g, one)) // mapped already
	require.EqualValues(t, 0xFF, at(uintptr(space), 1)[0])
	code(t, driver.InvalidValue, b.Set32(space, 7, g/4+1, b.stream))
	require.NoError(t, b.Map(0, space+driver.Pointer(g), 2*g, two))
	require.NoError(t, b.Set32(space, 7, 3*g/4, b.stream)) // across the border
	code(t, driver.InvalidValue, b.Release(one))
	code(t, driver.InvalidValue, b.Unreserve(space, 64*g))
	require.NoError(t, b.Unmap(space, g))
	code(t, driver.InvalidValue, b.Set32(space, 7, 1, b.stream))
	require.NoError(t, b.Map(0, space, g, one))
	require.EqualValues(t, 0xFF, at(uintptr(space), 1)[0])
	require.NoError(t, b.Unmap(space, g))
	require.NoError(t, b.Unmap(space+driver.Pointer(g), 2*g))
	require.NoError(t, b.Release(one))
	require.NoError(t, b.Release(two))
	require.NoError(t, b.Unreserve(space, 64*g))
	b.close()
}

func TestLazyStreamsWork(t *testing.T) {
	var ran []byte
	b := open(t, Config{Lazy: true, Kernel: func(name string, l driver.Launch) error {
		ran = append(ran, l.Args[0])
		l.Args[0] = 99 // its own copy
		return nil
	}})
	args := []byte{1}
	l := b.launch()
	l.Args = args
	require.NoError(t, b.Launch(l, b.stream))
	args[0] = 77 // the driver has copied it
	e, err := b.CreateEvent()
	require.NoError(t, err)
	done, err := b.QueryEvent(e)
	require.NoError(t, err)
	require.True(t, done, "never recorded")
	require.NoError(t, b.Record(e, b.stream))
	require.NoError(t, b.Launch(b.launch(2), b.stream))
	require.Empty(t, ran)
	_, err = b.Elapsed(e, e)
	code(t, driver.NotReady, err)
	done, err = b.QueryEvent(e)
	require.NoError(t, err)
	require.False(t, done)
	require.Equal(t, []byte{1}, ran)
	done, err = b.QueryEvent(e)
	require.NoError(t, err)
	require.True(t, done)
	done, err = b.Query(b.stream)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, []byte{1, 2}, ran)
	_, err = b.Elapsed(e, e)
	require.NoError(t, err)
	require.NoError(t, b.DestroyEvent(e))

	b.Stall(true)
	require.NoError(t, b.Launch(b.launch(3), b.stream))
	for range 3 {
		done, err = b.Query(b.stream)
		require.NoError(t, err)
		require.False(t, done)
	}
	b.Stall(false)
	require.NoError(t, b.Synchronize(b.stream))
	require.Equal(t, []byte{1, 2, 3}, ran)
	b.close()
}

// Nodes run in many orders, and only in those that the edges allow.
func TestGraphsRunInAnyOrder(t *testing.T) {
	var ran []byte
	b := open(t, Config{Kernel: func(_ string, l driver.Launch) error {
		ran = append(ran, l.Args[0])
		return nil
	}})
	g, err := b.CreateGraph()
	require.NoError(t, err)
	var nodes []driver.Node
	after := map[byte][]byte{3: {0, 1}, 4: {3}, 5: {2}}
	for i := range byte(6) {
		n, err := b.AddKernel(g, b.launch(i))
		require.NoError(t, err)
		nodes = append(nodes, n)
	}
	var edges []driver.Edge
	for i, before := range after {
		for _, j := range before {
			edges = append(edges, driver.Edge{From: nodes[j], To: nodes[i], Programmatic: j == 3})
		}
	}
	require.NoError(t, b.AddEdges(g, edges))
	for _, e := range []driver.Edge{edges[0], {From: 1, To: nodes[0]}, {From: nodes[0], To: 1}, {From: nodes[4], To: nodes[2]}, {From: nodes[0], To: nodes[0]}} {
		code(t, driver.InvalidValue, b.AddEdges(g, []driver.Edge{e}))
	}
	x, err := b.Instantiate(g)
	require.NoError(t, err)
	require.NoError(t, b.DestroyGraph(g)) // the instance lives on
	orders := map[string]bool{}
	for range 200 {
		ran = nil
		require.NoError(t, b.LaunchGraph(x, b.stream))
		require.Len(t, ran, 6)
		for i, before := range after {
			for _, j := range before {
				require.Less(t, slices.Index(ran, j), slices.Index(ran, i), ran)
			}
		}
		orders[fmt.Sprint(ran)] = true
	}
	require.Greater(t, len(orders), 20)
	require.NoError(t, b.DestroyExec(x))
	b.close()
}

func TestLaunchesAreChecked(t *testing.T) {
	b := open(t, Config{Functions: func(name string) (Resources, bool) {
		return Resources{MaxThreads: 256, Registers: 255, Cluster: 2}, name == "kernel"
	}})
	_, err := b.Function(b.module, "absent")
	code(t, driver.NotFound, err)
	for name, change := range map[string]func(l *driver.Launch){
		"empty grid":    func(l *driver.Launch) { l.Grid[1] = 0 },
		"high grid":     func(l *driver.Launch) { l.Grid[2] = 65536 },
		"empty block":   func(l *driver.Launch) { l.Block[0] = 0 },
		"threads":       func(l *driver.Launch) { l.Block[0] = 257 },
		"shared":        func(l *driver.Launch) { l.Shared = 48<<10 + 1 },
		"no arguments":  func(l *driver.Launch) { l.Args = nil },
		"cluster":       func(l *driver.Launch) { l.Grid[0] = 3 },
		"no function":   func(l *driver.Launch) { l.Function++ },
		"all resident ": func(l *driver.Launch) { l.Grid[0], l.Cooperative = 1<<20, true },
	} {
		l := b.launch(1)
		change(&l)
		require.Error(t, b.Launch(l, b.stream), name)
	}
	require.NoError(t, b.Launch(b.launch(1), b.stream))
	require.NoError(t, b.AllowShared(b.function, 227<<10))
	l := b.launch(1)
	l.Shared = 227 << 10
	require.NoError(t, b.Launch(l, b.stream))
	n, err := b.Occupancy(b.function, 256, 0)
	require.NoError(t, err)
	require.Equal(t, 1, n) // by registers
	n, err = b.Occupancy(b.function, 32, 113<<10)
	require.NoError(t, err)
	require.Equal(t, 2, n) // by shared memory
	code(t, driver.InvalidValue, b.AllowShared(b.function, 228<<10))
	b.close()
}

func TestFaults(t *testing.T) {
	b := open(t, Config{})
	b.Fail("Alloc", 2, driver.OutOfMemory)
	p, err := b.Alloc(4)
	require.NoError(t, err)
	_, err = b.Alloc(4)
	code(t, driver.OutOfMemory, err)
	require.EqualValues(t, 2, b.Calls("Alloc"))
	b.Fail("Kernel", 1, driver.MisalignedAddress)
	require.NoError(t, b.Launch(b.launch(1), b.stream)) // found out later
	code(t, driver.MisalignedAddress, b.Synchronize(b.stream))
	_, err = b.Alloc(4)
	code(t, driver.MisalignedAddress, err)
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	// It is given back nevertheless.
	code(t, driver.MisalignedAddress, b.Free(p))
	code(t, driver.MisalignedAddress, b.DestroyStream(b.stream))
	code(t, driver.MisalignedAddress, b.UnloadModule(b.module))
	require.NoError(t, b.DestroyContext(b.context))
	require.Empty(t, b.Leaks())
}

func TestKernelsFail(t *testing.T) {
	for name, kernel := range map[string]func(string, driver.Launch) error{
		"error": func(string, driver.Launch) error { return errors.New("a barrier that not all reach") },
		"panic": func(string, driver.Launch) error { panic("a barrier that not all reach") },
	} {
		b := open(t, Config{Kernel: kernel})
		require.NoError(t, b.Launch(b.launch(1), b.stream), name)
		err := b.Synchronize(b.stream)
		code(t, driver.LaunchFailed, err)
		require.ErrorContains(t, err, "kernel: ")
		require.ErrorContains(t, err, "a barrier that not all reach")
		require.NoError(t, b.DestroyContext(b.context))
	}
}

func TestLeaksAreNamed(t *testing.T) {
	b := open(t, Config{})
	_, err := b.Alloc(123)
	require.NoError(t, err)
	require.NoError(t, b.DestroyContext(b.context))
	leaks := fmt.Sprint(b.Leaks())
	for _, what := range []string{"123 bytes of device memory", "stream", "module"} {
		require.Contains(t, leaks, what)
	}
}

func TestThreadsAreTold(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads have no names here")
	}
	b := open(t, Config{})
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // ends the thread, on which nothing was current
		_, err := b.Alloc(4)
		failed <- err
	}()
	err := <-failed
	code(t, driver.InvalidContext, err)
	require.ErrorContains(t, err, "none is current on this thread")
	b.close()
}

func TestTensorMaps(t *testing.T) {
	b := open(t, Config{})
	good := driver.TensorMap{Type: driver.TensorF16, Address: 0x1000, Size: []uint64{100, 7}, Stride: []uint64{208}, Box: []uint32{64, 8}, Swizzle: driver.Swizzle128}
	m, err := b.EncodeTensorMap(good)
	require.NoError(t, err)
	require.EqualValues(t, 0x1000, binary.LittleEndian.Uint64(m[24:]))
	require.EqualValues(t, 7, binary.LittleEndian.Uint64(m[40:]))
	require.EqualValues(t, 208, binary.LittleEndian.Uint64(m[72:]))
	require.EqualValues(t, 8, binary.LittleEndian.Uint16(m[6:]))
	for name, change := range map[string]func(x *driver.TensorMap){
		"address": func(x *driver.TensorMap) { x.Address++ },
		"stride":  func(x *driver.TensorMap) { x.Stride = []uint64{200} },
		"box":     func(x *driver.TensorMap) { x.Box = []uint32{64, 257} },
		"swizzle": func(x *driver.TensorMap) { x.Box = []uint32{128, 8} },
		"rank":    func(x *driver.TensorMap) { x.Stride = nil },
	} {
		bad := good
		change(&bad)
		_, err := b.EncodeTensorMap(bad)
		require.Error(t, err, name)
	}
	b.close()
}
