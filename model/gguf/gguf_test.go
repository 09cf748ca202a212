package gguf

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// A builder makes files by hand, right or wrong.
type builder []byte

func (b builder) u32(v uint32) builder { return binary.LittleEndian.AppendUint32(b, v) }
func (b builder) u64(v uint64) builder { return binary.LittleEndian.AppendUint64(b, v) }
func (b builder) text(s string) builder {
	return append(b.u64(uint64(len(s))), s...)
}
func (b builder) raw(bytes ...byte) builder { return append(b, bytes...) }
func (b builder) pad(to int) builder {
	for len(b)%to != 0 {
		b = append(b, 0)
	}
	return b
}

// tensor describes a tensor; the axes are innermost first, as in files.
func (b builder) tensor(name string, typ uint32, offset uint64, axes ...uint64) builder {
	b = b.text(name).u32(uint32(len(axes)))
	for _, n := range axes {
		b = b.u64(n)
	}
	return b.u32(typ).u64(offset)
}

func begin(version uint32, tensors, metadata uint64) builder {
	return builder(magic).u32(version).u64(tensors).u64(metadata)
}

func read(b []byte) (*File, error) { return New(bytes.NewReader(b), int64(len(b))) }

// byHand is a file with a tensor of each type that can be loaded, and one that cannot.
func byHand(version uint32) []byte {
	b := begin(version, 5, 2).text("general.alignment").u32(4).u32(64).text("a.b").u32(9).u32(8).u64(2).text("x").text("")
	b = b.tensor("w", 0, 0, 3, 2).tensor("half", 1, 64, 2).tensor("brain", 30, 128, 1, 1, 2).tensor("q", 8, 192, 32, 1).tensor("k", 12, 256, 256)
	b = b.pad(64)
	for i := range 6 {
		b = b.u32(math.Float32bits(float32(i)))
	}
	b = b.pad(64).raw(0x00, 0x3c, 0x00, 0xc0).pad(64).raw(0x80, 0x3f, 0x40, 0xc0).pad(64).raw(0x00, 0x38) // 0.5
	for i := range 32 {
		b = b.raw(byte(int8(i - 16)))
	}
	return b.pad(64).raw(make([]byte, 144)...)
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, version := range []uint32{2, 3} {
		b := byHand(version)
		f, err := Read(iotest.OneByteReader(bytes.NewReader(b)))
		require.NoError(t, err)
		require.EqualValues(t, version, f.Version())
		require.Equal(t, []string{"brain", "half", "k", "q", "w"}, f.Names())
		require.Equal(t, Metadata{"general.alignment": uint32(64), "a.b": []string{"x", ""}}, f.Metadata())
		quantised := make([]float32, 32)
		for i := range quantised {
			quantised[i] = float32(i-16) / 2
		}
		for _, c := range []struct {
			name   string
			typ    pass.DType
			shape  []int
			values []float32
		}{
			{"w", pass.F32, []int{2, 3}, []float32{0, 1, 2, 3, 4, 5}},
			{"half", pass.F16, []int{2}, []float32{1, -2}},
			{"brain", pass.BF16, []int{2, 1, 1}, []float32{1, -3}},
			{"q", pass.Q8_0, []int{1, 32}, quantised},
		} {
			p, err := f.Tensor(c.name)
			require.NoError(t, err)
			require.Equal(t, c.typ, p.Type)
			require.Equal(t, c.shape, p.Shape)
			values, err := p.Float32s()
			require.NoError(t, err)
			require.Equal(t, c.values, values)
			p.Shape[0] = 99
			again, err := f.Tensor(c.name)
			require.NoError(t, err)
			require.Equal(t, c.shape, again.Shape)
		}
		_, err = f.Tensor("k")
		require.ErrorIs(t, err, pass.ErrUnsupported)
		require.EqualError(t, err, `gguf: tensor "k": type Q4_K: want F32, F16, BF16 or Q8_0: unsupported`)
		raw, err := f.Raw("k")
		require.NoError(t, err)
		require.Equal(t, Tensor{Name: "k", Type: 12, Shape: []int{256}}, raw)
		_, err = f.Tensor("hald")
		require.EqualError(t, err, `gguf: no tensor "hald" among 5; nearest is "half": invalid`)
		require.NoError(t, f.Close())
		_, err = f.Tensor("w")
		require.ErrorIs(t, err, pass.ErrClosed)
	}
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	one := func(typ uint32, offset uint64, axes ...uint64) builder {
		return begin(3, 1, 0).tensor("t", typ, offset, axes...).pad(32)
	}
	nested := begin(3, 0, 1).text("k").u32(9)
	for range 9 {
		nested = nested.u32(9).u64(1)
	}
	alignment := func(typ, v uint32) builder {
		return begin(3, 0, 1).text("general.alignment").u32(typ).u32(v)
	}
	for name, c := range map[string]struct {
		b    []byte
		is   error
		says string
	}{
		"empty":              {nil, pass.ErrInvalid, "0 bytes, want at least 8"},
		"magic":              {builder("GGML").u32(3).u64(0).u64(0), pass.ErrInvalid, `begins with "GGML", want "GGUF"`},
		"big-endian":         {builder(magic).raw(0, 0, 0, 3).u64(0).u64(0), pass.ErrUnsupported, "big-endian"},
		"big-endian magic":   {builder("FUGG").raw(0, 0, 0, 3).u64(0).u64(0), pass.ErrUnsupported, "big-endian"},
		"version 1":          {begin(1, 0, 0), pass.ErrUnsupported, "version 1: want 2 or 3"},
		"version 4":          {begin(4, 0, 0), pass.ErrUnsupported, "version 4: want 2 or 3"},
		"no counts":          {builder(magic).u32(3), pass.ErrInvalid, "number of tensors"},
		"2^63 tensors":       {begin(3, 1<<63, 0), pass.ErrInvalid, "9223372036854775808 tensors, where 8 bytes are left"},
		"2^63 metadata":      {begin(3, 0, 1<<63), pass.ErrInvalid, "9223372036854775808 metadata, where 0 bytes are left"},
		"a tensor too many":  {one(0, 0, 0)[:24+24], pass.ErrInvalid, "tensor 0 of 1"},
		"long key":           {begin(3, 0, 1).u64(1 << 40).raw(make([]byte, 64)...), pass.ErrInvalid, "key: string of 1099511627776 bytes, want at most 65535"},
		"key beyond the end": {begin(3, 0, 1).u64(100).raw(make([]byte, 64)...), pass.ErrInvalid, "key: string of 100 bytes at 32, where 64 are left"},
		"long string":        {begin(3, 0, 1).text("k").u32(8).u64(1<<63 + 5), pass.ErrInvalid, `key "k": string of`},
		"no value":           {begin(3, 0, 1).text("keykeykeykey"), pass.ErrInvalid, `key "keykeykeykey"`},
		"value type":         {begin(3, 0, 1).text("k").u32(13).u64(0), pass.ErrInvalid, "value type 13: want 0 to 12"},
		"element type":       {begin(3, 0, 1).text("k").u32(9).u32(13).u64(0), pass.ErrInvalid, "value type 13: want 0 to 12"},
		"bool":               {begin(3, 0, 1).text("k").u32(7).raw(2), pass.ErrInvalid, "bool: want 0 or 1, given 2"},
		"long array":         {begin(3, 0, 1).text("k").u32(9).u32(10).u64(1 << 61).u64(0), pass.ErrInvalid, "2305843009213693952 elements of an array, where 8 bytes are left"},
		"numbers":            {begin(3, 0, 1).text("k").u32(9).u32(10).u64(2).u64(0), pass.ErrInvalid, "2 × 8 bytes at 49, where 8 are left"},
		"strings":            {begin(3, 0, 1).text("k").u32(9).u32(8).u64(2).text("abc"), pass.ErrInvalid, "array of 2, where 11 bytes are left"},
		"arrays":             {begin(3, 0, 1).text("k").u32(9).u32(9).u64(2).u32(0).u64(0).u64(0), pass.ErrInvalid, "array of 2, where 20 bytes are left"},
		"deep arrays":        {nested, pass.ErrInvalid, "arrays within arrays: want at most 8"},
		"key twice":          {begin(3, 0, 2).text("k").u32(7).raw(1).text("k").u32(7).raw(1), pass.ErrInvalid, `key "k" comes twice`},
		"alignment 0":        {alignment(4, 0), pass.ErrInvalid, "power of two and at most 1048576, given 0"},
		"alignment 48":       {alignment(4, 48), pass.ErrInvalid, "given 48"},
		"alignment 2^21":     {alignment(4, 1<<21), pass.ErrInvalid, "given 2097152"},
		"alignment float":    {alignment(6, 0x42000000), pass.ErrInvalid, "want a uint32, given float32"},
		"long name":          {begin(3, 1, 0).u64(70000).raw(make([]byte, 70000)...), pass.ErrInvalid, "name: string of 70000 bytes, want at most 65535"},
		"axes":               {one(0, 0, 1, 1, 1, 1, 1), pass.ErrInvalid, `"t": 5 axes, want at most 4`},
		"axis of 2^63":       {one(0, 0, 1<<63), pass.ErrInvalid, `"t": axis of 9223372036854775808`},
		"overflow":           {one(0, 0, 1<<32, 1<<32), pass.ErrInvalid, "shape [4294967296 4294967296] does not fit type F32"},
		"bytes overflow":     {one(0, 0, 1<<62), pass.ErrInvalid, "does not fit type F32"},
		"blocks":             {one(8, 0, 33).raw(make([]byte, 68)...), pass.ErrInvalid, `tensor "t": shape [33] does not fit type Q8_0`},
		"10 GB":              {one(0, 0, 10<<28).raw(make([]byte, 900)...), pass.ErrInvalid, `tensor "t": 10737418240 bytes of F32 at 0, where the data have 900`},
		"offset":             {one(0, 64, 1).raw(make([]byte, 64)...), pass.ErrInvalid, "4 bytes of F32 at 64, where the data have 64"},
		"offset 2^63":        {one(0, 1<<63, 1).raw(make([]byte, 64)...), pass.ErrInvalid, "at 9223372036854775808, where the data have 64"},
		"offset 2^64 - 32":   {one(0, 1<<64-32, 1).raw(make([]byte, 64)...), pass.ErrInvalid, "at 18446744073709551584, where the data have 64"},
		"offset aligned":     {one(0, 16, 1).raw(make([]byte, 64)...), pass.ErrInvalid, "at 16: want a multiple of the alignment 32"},
		"unknown offset":     {one(12, 96, 256).raw(make([]byte, 64)...), pass.ErrInvalid, "at 96, where the data have 64"},
		"overlap": {begin(3, 2, 0).tensor("b", 0, 32, 1).tensor("a", 0, 0, 9).pad(32).raw(make([]byte, 64)...), pass.ErrInvalid,
			`tensor "b": at 32, before the end of "a" at 36`},
		"tensor twice": {begin(3, 2, 0).tensor("a", 0, 32, 1).tensor("a", 0, 0, 1).pad(32).raw(make([]byte, 64)...), pass.ErrInvalid, `tensor "a" comes twice`},
	} {
		_, err := read(c.b)
		require.ErrorIs(t, err, c.is, name)
		require.ErrorContains(t, err, c.says, name)
		require.True(t, strings.HasPrefix(err.Error(), "gguf: "), err)
		require.Less(t, len(err.Error()), 1000, name)
	}
}

// A file that ends anywhere before its end is refused, and what is left out of a lie
// about its size.
func TestCut(t *testing.T) {
	t.Parallel()
	b := byHand(3)
	b = b[:len(b)-144] // what is not known to belong to k
	for n := range len(b) - 30 {
		_, err := read(b[:n])
		require.ErrorIs(t, err, pass.ErrInvalid, "%d bytes", n)
		f, err := New(bytes.NewReader(b[:n]), int64(len(b)))
		if err != nil {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
			continue
		}
		q, err := f.Tensor("q")
		require.NoError(t, err)
		_, err = q.Float32s()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
	}
}

// Claims of a file of 1 KB that is said to have 1 TB cost no memory.
func TestClaims(t *testing.T) {
	for name, b := range map[string]builder{
		"tensors":  begin(3, 1<<33, 0),
		"metadata": begin(3, 0, 1<<33),
		"string":   begin(3, 0, 1).text("k").u32(8).u64(1 << 28),
		"numbers":  begin(3, 0, 1).text("k").u32(9).u32(12).u64(1 << 25),
		"strings":  begin(3, 0, 1).text("k").u32(9).u32(8).u64(1 << 25),
		"arrays":   begin(3, 0, 1).text("k").u32(9).u32(9).u64(1 << 25),
	} {
		b := append(b, bytes.Repeat([]byte{0}, 1024-len(b))...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New(bytes.NewReader(b), 1<<40)
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20), name)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "model.gguf")
	b := byHand(3)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	f, err := Open(path)
	require.NoError(t, err)
	w, err := f.Tensor("w")
	require.NoError(t, err)
	values, err := w.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 2, 3, 4, 5}, values)
	_, err = w.Data.ReadAt(make([]byte, 1), 24)
	require.Equal(t, io.EOF, err)
	_, err = f.Tensor("x.half")
	require.EqualError(t, err, `gguf: model.gguf: no tensor "x.half" among 5; nearest is "half": invalid`)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	require.NoError(t, (*File)(nil).Close())
	_, err = f.Tensor("w")
	require.ErrorIs(t, err, pass.ErrClosed)
	_, err = w.Float32s()
	require.Error(t, err, "the data of a closed file")

	_, err = Open(dir)
	require.ErrorContains(t, err, "is a directory")
	_, err = Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, n := range []int{0, 100} {
		require.NoError(t, os.WriteFile(path, b[:n], 0o600))
		_, err = Open(path)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, path)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(byHand(2))
	f.Add(byHand(3)[:300])
	var b bytes.Buffer
	require.NoError(f, Write(&b, tensors(), everything))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := read(b)
		if err != nil {
			return
		}
		m := file.Metadata()
		for _, key := range m.Keys() {
			m.Int(key)
			m.Ints(key)
			m.Floats(key)
		}
		var all []Tensor
		for _, name := range file.Names() {
			p, err := file.Tensor(name)
			if err != nil {
				require.ErrorIs(t, err, pass.ErrUnsupported)
				continue
			}
			_, err = p.Float32s()
			require.NoError(t, err)
			all = append(all, Of(p))
		}
		var once, twice bytes.Buffer
		require.NoError(t, Write(&once, all, m))
		again, err := read(once.Bytes())
		require.NoError(t, err)
		for i, a := range all {
			all[i], err = again.Raw(a.Name)
			require.NoError(t, err)
		}
		require.NoError(t, Write(&twice, all, again.Metadata()))
		require.True(t, bytes.Equal(once.Bytes(), twice.Bytes()))
	})
}

func TestNothingGiven(t *testing.T) {
	t.Parallel()
	_, err := New(nil, 100)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = Read(nil)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorIs(t, Write(nil, nil, nil), pass.ErrInvalid)
}
