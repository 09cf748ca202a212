package guard

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

func newBook() *Book[int, int, int, int] {
	return New[int, int, int, int](driver.Limits{
		MaxBufferSize: 1 << 20, MaxStorageBindingSize: 4096, MaxUniformBindingSize: 4096, MaxStorageBuffers: 8, MaxUniformBuffers: 8,
		MaxDynamicUniforms: 8, MaxBindings: 16, MaxWorkgroups: 100, StorageOffsetAlignment: 256, UniformOffsetAlignment: 256,
	}, 0, 0)
}

func TestTable(t *testing.T) {
	t.Parallel()
	a, b := newTable[int]("thing", nextTag()), newTable[int]("thing", nextTag())
	one, two := 1, 2
	first, err := a.add(&one)
	require.NoError(t, err)
	require.NotZero(t, first)
	got, err := a.get(first)
	require.NoError(t, err)
	require.Same(t, &one, got)

	_, err = b.get(first)
	require.ErrorContains(t, err, "is not of this device")
	_, err = a.get(0)
	require.ErrorContains(t, err, "no thing given")
	_, err = a.get(first + 1)
	require.ErrorContains(t, err, "is destroyed")

	a.remove(first)
	_, err = a.get(first)
	require.ErrorContains(t, err, "is destroyed")
	second, err := a.add(&two)
	require.NoError(t, err)
	require.NotEqual(t, first, second, "the slot is the same, the name is not")
	_, err = a.get(first)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.Len(t, a.slots, 1)

	// The generation wraps without ever being 0.
	a.slots[0].generation = generationMask
	a.remove(uint64(0))
	require.EqualValues(t, 1, a.slots[0].generation)
	a.clear()
	_, err = a.get(second)
	require.ErrorIs(t, err, pass.ErrInvalid)
}

func TestMapRange(t *testing.T) {
	t.Parallel()
	const size = 100 // a multiple of 4 and not of 8
	for offset := uint64(0); offset < size; offset++ {
		for length := uint64(1); offset+length <= size; length++ {
			start, n := MapRange(offset, length)
			require.Zero(t, start%8)
			require.Zero(t, n%4)
			require.LessOrEqual(t, start, offset)
			require.GreaterOrEqual(t, start+n, offset+length)
			require.LessOrEqual(t, start+n, uint64(size))
		}
	}
}

func TestMappedBuffersAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.features = driver.FeatureMappedStorage
	desc := driver.BufferDesc{Size: 256, Usage: driver.MapWrite | driver.Storage | driver.CopyDst | driver.CopySrc}
	require.NoError(t, b.CheckBuffer(desc))
	id, err := b.AddBuffer(desc, 7)
	require.NoError(t, err)
	other, err := b.AddBuffer(desc, 8)
	require.NoError(t, err)
	p, err := b.AddPipeline(driver.PipelineDesc{Bindings: []driver.BindingKind{driver.StorageReadWrite}}, 0)
	require.NoError(t, err)
	bindings := []driver.Binding{{Buffer: id, Size: 256}}
	pipeline, buffers, err := b.CheckGroup(p, bindings)
	require.NoError(t, err)
	g, err := b.AddGroup(pipeline, bindings, buffers, 0)
	require.NoError(t, err)

	dispatch, copyFrom, copyTo := driver.Dispatch(p, g, 1, 1, 1), driver.Copy(other, 0, id, 0, 4), driver.Copy(id, 0, other, 0, 4)
	try := func() []error {
		_, _, dispatched := b.Dispatch(&dispatch)
		_, _, from := b.Copy(&copyFrom)
		_, _, to := b.Copy(&copyTo)
		_, written := b.CheckWrite(id, 0, 4)
		_, mapped := b.CheckMap(id, driver.MapWrite, 0, 4)
		return []error{dispatched, from, to, written, mapped}
	}
	for _, err := range try() {
		require.NoError(t, err)
	}
	o, err := b.CheckMap(id, driver.MapWrite, 0, 256)
	require.NoError(t, err)
	o.Mapped = true
	for i, err := range try() {
		require.ErrorIs(t, err, pass.ErrInvalid, "%d", i)
		require.ErrorContains(t, err, "is being read or written", "%d", i)
	}
	_, err = b.RemoveBuffer(id)
	require.ErrorIs(t, err, pass.ErrInvalid)
	o.Mapped = false
	_, err = b.RemoveBuffer(id)
	require.NoError(t, err)
}

func TestClash(t *testing.T) {
	t.Parallel()
	const r, w, u = driver.StorageRead, driver.StorageReadWrite, driver.UniformBlock
	at := func(buffer driver.BufferID, offset, size uint64) driver.Binding {
		return driver.Binding{Buffer: buffer, Offset: offset, Size: size}
	}
	for _, c := range []struct {
		name string
		k, l driver.BindingKind
		g, h driver.Binding
		want bool
	}{
		{"two reads", r, r, at(1, 0, 256), at(1, 0, 256), false},
		{"read and uniform", r, u, at(1, 0, 256), at(1, 0, 256), false},
		{"different buffers", w, w, at(1, 0, 256), at(2, 0, 256), false},
		{"read and write apart in one buffer", r, w, at(1, 0, 256), at(1, 512, 256), true},
		{"uniform and write apart", w, u, at(1, 0, 256), at(1, 512, 256), true},
		{"two writes apart", w, w, at(1, 0, 256), at(1, 256, 256), false},
		{"two writes that overlap", w, w, at(1, 0, 260), at(1, 256, 256), true},
		{"one inside the other", w, w, at(1, 256, 4), at(1, 0, 1024), true},
	} {
		require.Equal(t, c.want, clash(c.k, c.l, c.g, c.h), c.name)
		require.Equal(t, c.want, clash(c.l, c.k, c.h, c.g), c.name+", the other way round")
	}
}

func TestDispatchAllocatesNothing(t *testing.T) {
	b := newBook()
	desc := driver.BufferDesc{Size: 4096, Usage: driver.Storage | driver.Uniform}
	id, err := b.AddBuffer(desc, 0)
	require.NoError(t, err)
	second, err := b.AddBuffer(desc, 0)
	require.NoError(t, err)
	p, err := b.AddPipeline(driver.PipelineDesc{Bindings: []driver.BindingKind{driver.StorageReadWrite, driver.UniformDynamic}}, 0)
	require.NoError(t, err)
	bindings := []driver.Binding{{Buffer: id, Size: 4096}, {Buffer: second, Size: 16}}
	pipeline, buffers, err := b.CheckGroup(p, bindings)
	require.NoError(t, err)
	g, err := b.AddGroup(pipeline, bindings, buffers, 0)
	require.NoError(t, err)
	c := driver.Dispatch(p, g, 1, 1, 1, 256)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _, err = b.Dispatch(&c) }))
	require.NoError(t, err)
}

// Sums of offsets and sizes near the top of the range do not wrap.
func FuzzRanges(f *testing.F) {
	f.Add(uint64(0), uint64(4), uint64(4))
	f.Add(^uint64(3), uint64(8), uint64(16))
	f.Fuzz(func(t *testing.T, offset, size, whole uint64) {
		o := &Buffer[int]{Size: whole}
		inside := offset <= whole && size <= whole && offset+size <= whole && offset+size >= offset
		require.Equal(t, inside, o.within(offset, size) == nil)
	})
}
