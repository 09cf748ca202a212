package drivertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// patience bounds every wait of the suite, software adapters on a busy machine included.
const patience = 5 * time.Minute

// Run is the conformance suite of providers. open returns a fresh device each time; its
// memory budget is Budget, and it has FeatureTimestamps if the adapter does. The device
// in memory needs the kernels of Kernels.
func Run(t *testing.T, open func(t testing.TB) driver.Device) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, b *bench)
	}{
		{"round trip at any offset", testRoundTrip},
		{"buffers start with zeros", testZeros},
		{"writes come before the next submit", testWriteOrder},
		{"a dispatch", testDispatch},
		{"commands see earlier ones", testChain},
		{"dynamic offsets", testDynamicOffsets},
		{"groups fit equal layouts", testSharedLayout},
		{"time stamps", testTimestamps},
		{"refused buffers", testRefusedBuffers},
		{"refused maps", testRefusedMaps},
		{"refused writes", testRefusedWrites},
		{"refused pipelines", testRefusedPipelines},
		{"refused groups", testRefusedGroups},
		{"refused commands", testRefusedCommands},
		{"stale and foreign names", testNames},
		{"over the memory budget", testBudget},
		{"waiting", testWaiting},
		{"use after close", testAfterClose},
		{"four goroutines", testConcurrent},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			b := &bench{TB: t, Device: d, ctx: context.Background(), open: open}
			c.test(t, b)
			require.NoError(t, d.Err())
			require.NoError(t, d.Close())
			require.NoError(t, d.Close(), "a second Close")
			require.Zero(t, d.Ledger(), "ledger after Close")
		})
	}
}

// Budget is the memory budget with which Run wants its devices opened.
const Budget = 64 << 20

// bench is a device with shorthands that fail the test.
type bench struct {
	testing.TB
	driver.Device
	ctx  context.Context
	open func(testing.TB) driver.Device
}

// inMemory reports whether the device cannot judge WGSL.
func (b *bench) inMemory() bool {
	_, ok := b.Device.(*Device)
	return ok
}

func (b *bench) buffer(size uint64, usage driver.BufferUsage) driver.BufferID {
	b.Helper()
	id, err := b.CreateBuffer(driver.BufferDesc{Label: "test", Size: size, Usage: usage})
	require.NoError(b, err)
	return id
}

// work makes a buffer that kernels use and that can be filled and read.
func (b *bench) work(size uint64) driver.BufferID {
	b.Helper()
	return b.buffer(size, driver.Storage|driver.CopySrc|driver.CopyDst)
}

func (b *bench) pipeline(k wgsl) driver.PipelineID {
	b.Helper()
	id, err := b.CreatePipeline(k.desc())
	require.NoError(b, err)
	return id
}

func (b *bench) group(p driver.PipelineID, bindings ...driver.Binding) driver.BindGroupID {
	b.Helper()
	id, err := b.CreateBindGroup(p, bindings)
	require.NoError(b, err)
	return id
}

func (b *bench) submit(commands ...driver.Command) driver.Serial {
	b.Helper()
	serial, err := b.Submit(commands)
	require.NoError(b, err)
	return serial
}

// fill puts words into a buffer.
func (b *bench) fill(id driver.BufferID, words ...uint32) {
	b.Helper()
	data := make([]byte, 0, 4*len(words))
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	require.NoError(b, b.Write(id, 0, data))
}

// words reads count words of a buffer through a staging buffer.
func (b *bench) words(id driver.BufferID, count int) []uint32 {
	b.Helper()
	staging := b.buffer(uint64(4*count), driver.MapRead|driver.CopyDst)
	b.submit(driver.Copy(staging, 0, id, 0, uint64(4*count)))
	data := make([]byte, 4*count)
	require.NoError(b, b.ReadMapped(b.ctx, staging, 0, data, patience))
	require.NoError(b, b.DestroyBuffer(staging))
	words := make([]uint32, count)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return words
}

func testRoundTrip(t *testing.T, b *bench) {
	const size = 4096
	up := b.buffer(size, driver.MapWrite|driver.CopySrc)
	down := b.buffer(size, driver.MapRead|driver.CopyDst)
	random := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(random.Uint32())
	}
	require.NoError(t, b.WriteMapped(b.ctx, up, 0, want, patience))
	for _, r := range [][2]uint64{{0, 0}, {0, 1}, {1, 1}, {3, 9}, {7, 2}, {13, 4000}, {size - 1, 1}, {size - 5, 5}, {size, 0}} {
		part := bytes.Repeat([]byte{byte(r[0])}, int(r[1]))
		require.NoError(t, b.WriteMapped(b.ctx, up, r[0], part, patience), "%v", r)
		copy(want[r[0]:], part)
		b.submit(driver.Copy(down, 0, up, 0, size))
		got := bytes.Repeat([]byte{0xee}, int(r[1])+2)
		require.NoError(t, b.ReadMapped(b.ctx, down, r[0], got[1:len(got)-1], patience), "%v", r)
		require.Equal(t, want[r[0]:r[0]+r[1]], got[1:len(got)-1], "%v", r)
		require.EqualValues(t, 0xee, got[0])
		require.EqualValues(t, 0xee, got[len(got)-1])
	}
	all := make([]byte, size)
	require.NoError(t, b.ReadMapped(b.ctx, down, 0, all, patience))
	require.Equal(t, want, all)
}

func testZeros(t *testing.T, b *bench) {
	id := b.work(64)
	require.Equal(t, make([]uint32, 16), b.words(id, 16))
}

func testWriteOrder(t *testing.T, b *bench) {
	id, other := b.work(16), b.work(16)
	b.fill(id, 1, 2, 3, 4)
	require.NoError(t, b.Write(id, 8, []byte{9, 0, 0, 0}))
	require.NoError(t, b.Write(id, 16, nil))
	b.submit(driver.Copy(other, 0, id, 0, 16), driver.Clear(id, 4, 8))
	require.Equal(t, []uint32{1, 2, 9, 4}, b.words(other, 4))
	require.Equal(t, []uint32{1, 0, 0, 4}, b.words(id, 4))

	// A buffer with a write outstanding may be destroyed.
	b.fill(other, 7)
	require.NoError(t, b.DestroyBuffer(other))
	b.submit()
	require.Equal(t, []uint32{1}, b.words(id, 1))
}

func testDispatch(t *testing.T, b *bench) {
	p := b.pipeline(addOne)
	id := b.work(1024)
	g := b.group(p, driver.Binding{Buffer: id, Offset: 256, Size: 512})
	b.fill(id, make([]uint32, 256)...)
	b.submit(driver.Dispatch(p, g, 2, 1, 1), driver.Dispatch(p, g, 1, 1, 1))
	want := make([]uint32, 256)
	for i := range 128 {
		want[64+i] = 1
		if i < 64 {
			want[64+i] = 2
		}
	}
	require.Equal(t, want, b.words(id, 256))
}

func testChain(t *testing.T, b *bench) {
	p := b.pipeline(addOne)
	x, y := b.work(256), b.work(256)
	gx, gy := b.group(p, driver.Binding{Buffer: x, Size: 256}), b.group(p, driver.Binding{Buffer: y, Size: 256})
	b.submit(
		driver.Dispatch(p, gx, 1, 1, 1),
		driver.Copy(y, 0, x, 0, 256),
		driver.Dispatch(p, gy, 1, 1, 1),
		driver.Dispatch(p, gy, 1, 1, 1),
		driver.Clear(x, 0, 128),
		driver.Dispatch(p, gx, 1, 1, 1),
	)
	require.EqualValues(t, []uint32{3, 3}, b.words(y, 2))
	got := b.words(x, 64)
	require.EqualValues(t, 1, got[31])
	require.EqualValues(t, 2, got[32])
}

func testDynamicOffsets(t *testing.T, b *bench) {
	p := b.pipeline(addUniform)
	align := max(b.Limits().UniformOffsetAlignment, 16)
	id, u := b.work(256), b.buffer(uint64(4*align), driver.Uniform|driver.CopyDst)
	for i := range 4 {
		require.NoError(t, b.Write(u, uint64(i)*uint64(align), []byte{byte(10 << i), 0, 0, 0}))
	}
	g := b.group(p, driver.Binding{Buffer: id, Size: 256}, driver.Binding{Buffer: u, Size: 16})
	b.submit(driver.Dispatch(p, g, 1, 1, 1, align), driver.Dispatch(p, g, 1, 1, 1, 3*align), driver.Dispatch(p, g, 1, 1, 1, 0))
	require.EqualValues(t, 20+80+10, b.words(id, 1)[0])

	for name, c := range map[string]driver.Command{
		"none given": driver.Dispatch(p, g, 1, 1, 1),
		"two given":  driver.Dispatch(p, g, 1, 1, 1, 0, 0),
		"unaligned":  driver.Dispatch(p, g, 1, 1, 1, 4),
		"outside":    driver.Dispatch(p, g, 1, 1, 1, 4*align),
	} {
		b.refuseCommand(name, c)
	}
}

func testSharedLayout(t *testing.T, b *bench) {
	p, q := b.pipeline(addOne), b.pipeline(double)
	id := b.work(256)
	g := b.group(p, driver.Binding{Buffer: id, Size: 256})
	require.NoError(t, b.DestroyPipeline(p))
	b.fill(id, 5)
	b.submit(driver.Dispatch(q, g, 1, 1, 1))
	require.EqualValues(t, 10, b.words(id, 1)[0])
	b.refuseCommand("destroyed pipeline", driver.Dispatch(p, g, 1, 1, 1))
	other := b.pipeline(addUniform)
	b.refuseCommand("group of another layout", driver.Dispatch(other, g, 1, 1, 1, 0))
}

func testTimestamps(t *testing.T, b *bench) {
	timer, ok := b.Device.(driver.Timer)
	if !ok || b.Features()&driver.FeatureTimestamps == 0 {
		t.Skip("the device has no time stamps")
	}
	q, err := timer.CreateQueries(2)
	require.NoError(t, err)
	to := b.buffer(512, driver.Resolve|driver.CopySrc)
	b.submit(driver.Timestamp(q, 0), driver.Timestamp(q, 1), driver.ResolveTimestamps(to, 256, q, 0, 2))
	got := b.words(to, 128)
	first, second := uint64(got[64])|uint64(got[65])<<32, uint64(got[66])|uint64(got[67])<<32
	require.GreaterOrEqual(t, second, first)
	require.NotZero(t, second)
	b.refuseCommand("stamp outside", driver.Timestamp(q, 2))
	b.refuseCommand("resolve outside", driver.ResolveTimestamps(to, 256, q, 1, 2))
	b.refuseCommand("resolve unaligned", driver.ResolveTimestamps(to, 8, q, 0, 2))
	require.NoError(t, timer.DestroyQueries(q))
	b.refuseCommand("destroyed queries", driver.Timestamp(q, 0))
	for _, count := range []uint32{0, driver.MaxQueries + 1} {
		_, err = timer.CreateQueries(count)
		b.invalid(err)
	}
}
