package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

// raw makes a file of a header and data.
func raw(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func open(b []byte) (*safetensors.File, error) {
	return safetensors.New(bytes.NewReader(b), int64(len(b)))
}

func tensor(name string, t safetensors.DType, data []byte, shape ...int) safetensors.Tensor {
	return safetensors.Tensor{Name: name, DType: t, Shape: shape, Data: bytes.NewReader(data)}
}

func TestRead(t *testing.T) {
	t.Parallel()
	b := raw(`{"__metadata__":{"format":"pt","k":"v"},`+
		`"b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},`+
		` "a" : {"data_offsets":[0,8],"shape":[1,2],"dtype":"F32","more":[1,{}]},`+
		`"e":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]},`+
		`"s":{"dtype":"U8","shape":[],"data_offsets":[12,13]},`+
		`"x":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[13,16]}}  `,
		0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0, 0, 0x3C, 0, 0xB8, 7, 1, 2, 3)
	f, err := open(b)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "e", "s", "x"}, f.Names())
	require.Equal(t, map[string]string{"format": "pt", "k": "v"}, f.Metadata())

	for _, c := range []struct {
		name  string
		dtype pass.DType
		shape []int
		want  []float32
	}{
		{"a", pass.F32, []int{1, 2}, []float32{1, -2}},
		{"b", pass.F16, []int{2}, []float32{1, -0.5}},
		{"e", pass.F32, []int{0, 3}, []float32{}},
	} {
		p, err := f.Tensor(c.name)
		require.NoError(t, err)
		require.Equal(t, c.name, p.Name)
		require.Equal(t, c.dtype, p.Type)
		require.Equal(t, c.shape, p.Shape)
		got, err := p.Float32s()
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	ints, err := f.Int64s("s")
	require.NoError(t, err)
	require.Equal(t, []int64{7}, ints)

	x, err := f.Raw("x")
	require.NoError(t, err)
	require.Equal(t, safetensors.DType("F8_E4M3"), x.DType)
	data := make([]byte, 3)
	_, err = x.Data.ReadAt(data, 0)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 3}, data)
	_, err = f.Tensor("x")
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, `tensor "x": type "F8_E4M3"`)
	_, err = f.Int64s("x")
	require.ErrorIs(t, err, pass.ErrUnsupported)
	_, err = f.Float64s("s")
	require.ErrorIs(t, err, pass.ErrUnsupported)
	_, err = f.Int64s("a")
	require.ErrorIs(t, err, pass.ErrUnsupported)

	x.Shape[0] = 99
	again, err := f.Raw("x")
	require.NoError(t, err)
	require.Equal(t, []int{3}, again.Shape)
}

func TestValues(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	f64 := le.AppendUint64(le.AppendUint64(nil, math.Float64bits(0.1)), math.Float64bits(-1e300))
	for _, c := range []struct {
		t    safetensors.DType
		data []byte
		want []int64
	}{
		{safetensors.I64, []byte{1, 0, 0, 0, 0, 0, 0, 0x80}, []int64{math.MinInt64 + 1}},
		{safetensors.I32, []byte{0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0}, []int64{-1, 1}},
		{safetensors.I16, []byte{0xFF, 0xFF, 1, 0}, []int64{-1, 1}},
		{safetensors.I8, []byte{0xFF, 1}, []int64{-1, 1}},
		{safetensors.U64, []byte{0xFF, 0, 0, 0, 0, 0, 0, 0x7F}, []int64{0x7F000000000000FF}},
		{safetensors.U32, []byte{0xFF, 0xFF, 0xFF, 0xFF}, []int64{math.MaxUint32}},
		{safetensors.U16, []byte{0xFF, 0xFF}, []int64{65535}},
		{safetensors.U8, []byte{0xFF, 1}, []int64{255, 1}},
		{safetensors.Bool, []byte{0, 1}, []int64{0, 1}},
	} {
		got, err := tensor("x", c.t, c.data, len(c.want)).Int64s()
		require.NoError(t, err, c.t)
		require.Equal(t, c.want, got, c.t)
		_, err = tensor("x", c.t, c.data, len(c.want)).Float64s()
		require.ErrorIs(t, err, pass.ErrUnsupported)
	}
	for _, c := range []struct {
		t    safetensors.DType
		data []byte
		want []float64
	}{
		{safetensors.F64, f64, []float64{0.1, -1e300}},
		{safetensors.F32, []byte{0, 0, 0x80, 0x3F}, []float64{1}},
		{safetensors.F16, []byte{0, 0x3C}, []float64{1}},
		{safetensors.BF16, []byte{0x80, 0x3F}, []float64{1}},
	} {
		got, err := tensor("x", c.t, c.data, len(c.want)).Float64s()
		require.NoError(t, err, c.t)
		require.Equal(t, c.want, got, c.t)
	}
	_, err := tensor("x", safetensors.U64, bytes.Repeat([]byte{0xFF}, 8), 1).Int64s()
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = tensor("x", safetensors.I64, make([]byte, 15), 2).Int64s()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = tensor("x", safetensors.I64, nil, -1).Int64s()
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = safetensors.Tensor{DType: safetensors.I64}.Int64s()
	require.ErrorIs(t, err, pass.ErrInvalid)
	long := make([]int64, 100000)
	for i := range long {
		long[i] = int64(i) << 20
	}
	got, err := safetensors.Int64s("x", long, len(long)).Int64s()
	require.NoError(t, err)
	require.Equal(t, long, got)
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	two := func(a, b string) string {
		return fmt.Sprintf(`{"a":{"dtype":"U8","shape":[4],"data_offsets":%s},"b":{"dtype":"U8","shape":[4],"data_offsets":%s}}`, a, b)
	}
	huge := binary.LittleEndian.AppendUint64(nil, 100<<20+1)
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "0 bytes, want at least 8"},
		{"seven bytes", make([]byte, 7), "7 bytes, want at least 8"},
		{"header beyond the limit", append(huge, make([]byte, 20)...), "want at most 104857600"},
		{"header beyond the file", raw(`{}`)[:9], "header of 2 bytes in a file of 9"},
		{"all ones", bytes.Repeat([]byte{0xFF}, 32), "want at most 104857600"},
		{"empty header", raw(``), "does not begin with {"},
		{"space first", raw(` {}`), "does not begin with {"},
		{"array", raw(`[]`), "does not begin with {"},
		{"unfinished", raw(`{"a":{"dtype":"F32"`), `tensor "a"`},
		{"unfinished outside", raw(`{`), "header: end"},
		{"name is no string", raw(`{1:2}`), "header"},
		{"tensor is no object", raw(`{"a":1}`), `tensor "a"`},
		{"after the end", raw(`{} x`), "after its end"},
		{"second object", raw(`{}{}`), "after its end"},
		{"twice", raw(`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 0), `"a" comes twice`},
		{"metadata twice", raw(`{"__metadata__":{},"__metadata__":{}}`), "comes twice"},
		{"metadata of numbers", raw(`{"__metadata__":{"a":1}}`), "metadata"},
		{"no dtype", raw(`{"a":{"shape":[],"data_offsets":[0,1]}}`, 0), "want dtype, shape and two data_offsets"},
		{"no shape", raw(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 0), "want dtype, shape and two data_offsets"},
		{"one offset", raw(one("U8", "[1]", "[0]"), 0), "want dtype, shape and two data_offsets"},
		{"three offsets", raw(one("U8", "[1]", "[0,1,2]"), 0), "want dtype, shape and two data_offsets"},
		{"negative offset", raw(one("U8", "[1]", "[-1,0]"), 0), "bytes -1 to 0 of 1"},
		{"reverse offsets", raw(one("U8", "[1]", "[1,0]"), 0), "bytes 1 to 0 of 1"},
		{"beyond the file", raw(one("U8", "[2]", "[0,2]"), 0), "bytes 0 to 2 of 1"},
		{"huge offset", raw(one("U8", "[2]", "[0,18446744073709551615]"), 0), `tensor "a"`},
		{"fractional shape", raw(one("U8", "[1.5]", "[0,1]"), 0), `tensor "a"`},
		{"negative shape", raw(one("U8", "[-1]", "[0,1]"), 0), "shape [-1]"},
		{"shape overflows", raw(one("U8", "[4294967296,4294967296,4294967296]", "[0,1]"), 0), "shape [4294967296"},
		{"shape wraps to 0", raw(one("U8", "[4294967296,4294967296]", "[0,0]")), "shape [4294967296"},
		{"bytes overflow", raw(one("F64", "[1152921504606846977]", "[0,8]"), make([]byte, 8)...), "8 bytes, want -1"},
		{"shape too small", raw(one("F32", "[1]", "[0,8]"), make([]byte, 8)...), "8 bytes, want 4 for F32 and shape [1]"},
		{"shape too large", raw(one("F16", "[3]", "[0,4]"), make([]byte, 4)...), "4 bytes, want 6"},
		{"overlap", raw(two("[0,4]", "[2,6]"), make([]byte, 6)...), `tensor "b": overlaps`},
		{"gap", raw(two("[0,4]", "[5,9]"), make([]byte, 9)...), `tensor "b": gap before`},
		{"gap at the start", raw(one("U8", "[1]", "[1,2]"), 0, 0), "gap before"},
		{"bytes after", raw(one("U8", "[1]", "[0,1]"), 0, 0, 0), "2 bytes after the last tensor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := open(c.file)
			require.ErrorIs(t, err, pass.ErrInvalid)
			require.ErrorContains(t, err, "safetensors: ")
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	_, err := safetensors.New(bytes.NewReader(nil), 100)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = safetensors.New(bytes.NewReader(raw(`{"a`)[:9]), 100)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// A size and a length that lie cost nothing: memory grows with what arrives.
func TestAllocationsAreBounded(t *testing.T) {
	b := append(binary.LittleEndian.AppendUint64(nil, 100<<20), `{"a`...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := safetensors.New(bytes.NewReader(b), 1<<40)
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestMissingNamesTheNearest(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, []safetensors.Tensor{
		safetensors.Int64s("encoder.0.bias", nil, 0), safetensors.Int64s("encoder.0.weight", nil, 0),
	}, nil))
	f, err := open(b.Bytes())
	require.NoError(t, err)
	_, err = f.Tensor("encoder.0.weigth")
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.EqualError(t, err, `safetensors: no tensor "encoder.0.weigth" among 2; nearest is "encoder.0.weight": invalid`)
	_, err = f.Raw("unrelated")
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.NotContains(t, err.Error(), "nearest")
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) {
	return 0, fmt.Errorf("failing: %w", iotest.ErrTimeout)
}

func FuzzNew(f *testing.F) {
	f.Add(raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}}`, make([]byte, 8)...))
	f.Add(raw(`{"__metadata__":{"a":"b"},"x":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}`))
	f.Add(raw(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open(b)
		if err != nil {
			require.ErrorIs(t, err, pass.ErrInvalid)
			return
		}
		var all []safetensors.Tensor
		for _, name := range file.Names() {
			r, err := file.Raw(name)
			require.NoError(t, err)
			all = append(all, r)
			ints, intErr := r.Int64s()
			floats, floatErr := r.Float64s()
			require.LessOrEqual(t, len(ints)+len(floats), len(b))
			require.False(t, intErr == nil && floatErr == nil)
		}
		var first, second bytes.Buffer
		if err := safetensors.Write(&first, all, file.Metadata()); err != nil {
			require.True(t, errors.Is(err, pass.ErrUnsupported), err)
			return
		}
		back, err := open(first.Bytes())
		require.NoError(t, err)
		require.Equal(t, file.Names(), back.Names())
		require.NoError(t, safetensors.Write(&second, all, back.Metadata()))
		require.Equal(t, first.Bytes(), second.Bytes())
	})
}

func TestNothingGiven(t *testing.T) {
	_, err := safetensors.New(nil, 100)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = safetensors.Read(nil)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorIs(t, safetensors.Write(nil, nil, nil), pass.ErrInvalid)
}
