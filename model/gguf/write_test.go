package gguf

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// everything are metadata of all types.
var everything = Metadata{
	"i8": int8(-8), "i16": int16(-16), "i32": int32(-32), "i64": int64(math.MinInt64),
	"u8": uint8(8), "u16": uint16(16), "u32": uint32(math.MaxUint32), "u64": uint64(math.MaxUint64),
	"f32": float32(1.5), "f64": math.Pi, "yes": true, "text": "ünï",
	"i8s": []int8{-1, 2}, "i16s": []int16{-3}, "i32s": []int32{4, -5}, "i64s": []int64{6},
	"u8s": []uint8{1}, "u16s": []uint16{2, 3}, "u32s": []uint32{4}, "u64s": []uint64{5, 1 << 63},
	"f32s": []float32{0.5, -1}, "f64s": []float64{2.5}, "bools": []bool{true, false, true}, "texts": []string{"a", "", "ccc"},
	"none":   []float32{},
	"nested": []any{[]int32{1, 2}, []string{"x"}, []any{[]uint8{}, []any{}}},
}

func tensors() []Tensor {
	return []Tensor{
		Of(pass.Float32s("b", []float32{1, 2, 3, 4, 5, 6}, 3, 2)),
		{"a", F16, []int{1, 2, 1}, bytes.NewReader([]byte{0, 0x3c, 0, 0x40})},
		{"scalar", F32, nil, bytes.NewReader(make([]byte, 4))},
		{"empty", F32, []int{0, 5}, bytes.NewReader(nil)},
		{"q", Q8_0, []int{2, 32}, bytes.NewReader(bytes.Repeat([]byte{1}, 68))},
		{"bf", BF16, []int{1, 1, 1, 1}, bytes.NewReader([]byte{0, 0xbf})},
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for _, alignment := range []uint32{0, 1, 8, 64} {
		m := Metadata{}
		for k, v := range everything {
			m[k] = v
		}
		if alignment > 0 {
			m[alignmentKey] = alignment
		}
		var b, again bytes.Buffer
		require.NoError(t, Write(&b, tensors(), m))
		require.NoError(t, Write(&again, tensors(), m))
		require.Equal(t, b.Bytes(), again.Bytes())
		f, err := read(b.Bytes())
		require.NoError(t, err)
		require.Equal(t, 3, f.Version())
		require.Equal(t, m, f.Metadata())
		require.Len(t, f.Names(), 6)
		for _, want := range tensors() {
			got, err := f.Raw(want.Name)
			require.NoError(t, err)
			require.Equal(t, want.Type, got.Type)
			require.Equal(t, append([]int{}, want.Shape...), got.Shape)
			size, _ := want.bytes()
			data, err := io.ReadAll(io.NewSectionReader(got.Data, 0, 1<<20))
			require.NoError(t, err)
			wanted, err := io.ReadAll(io.NewSectionReader(want.Data, 0, size))
			require.NoError(t, err)
			require.Equal(t, wanted, data)
		}
	}
}

// The bytes are those of the format, not only what this package reads.
func TestWriteBytes(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, Write(&b, tensors()[:2], Metadata{"b": int16(-2), "a": []any{[]bool{true}}}))
	want := begin(3, 2, 2).text("a").u32(9).u32(9).u64(1).u32(7).u64(1).raw(1).text("b").u32(3).raw(0xfe, 0xff)
	want = want.tensor("b", 0, 0, 2, 3).tensor("a", 1, 32, 1, 2, 1).pad(32)
	for _, v := range []float32{1, 2, 3, 4, 5, 6} {
		want = want.u32(math.Float32bits(v))
	}
	want = want.pad(32).raw(0, 0x3c, 0, 0x40).pad(32)
	require.Equal(t, []byte(want), b.Bytes())
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	some := bytes.NewReader(make([]byte, 64))
	deep := any([]uint8{1})
	for range maxDepth {
		deep = []any{deep}
	}
	for name, c := range map[string]struct {
		m    Metadata
		t    []Tensor
		is   error
		says string
	}{
		"value":     {Metadata{"k": 1}, nil, pass.ErrUnsupported, `gguf: write: key "k": value of type int`},
		"element":   {Metadata{"k": []any{uint8(1)}}, nil, pass.ErrUnsupported, "element 0 of an array of arrays"},
		"deep":      {Metadata{"k": deep}, nil, pass.ErrInvalid, "arrays within arrays"},
		"key":       {Metadata{string(make([]byte, 65536)): true}, nil, pass.ErrInvalid, "key of 65536 bytes"},
		"alignment": {Metadata{alignmentKey: uint32(3)}, nil, pass.ErrInvalid, "power of two"},
		"type":      {nil, []Tensor{Of(pass.Tensor{Name: "t", Type: pass.U32, Shape: []int{1}, Data: some})}, pass.ErrUnsupported, `tensor "t"`},
		"axes":      {nil, []Tensor{{"t", F32, []int{1, 1, 1, 1, 1}, some}}, pass.ErrInvalid, "shape [1 1 1 1 1]"},
		"shape":     {nil, []Tensor{{"t", F32, []int{-1}, some}}, pass.ErrInvalid, "shape [-1]"},
		"blocks":    {nil, []Tensor{{"t", Q8_0, []int{32, 1}, some}}, pass.ErrInvalid, "does not fit type Q8_0"},
		"no data":   {nil, []Tensor{{"t", F32, []int{1}, nil}}, pass.ErrInvalid, "want data"},
		"twice":     {nil, []Tensor{{"t", F32, []int{1}, some}, {"t", F32, []int{1}, some}}, pass.ErrInvalid, "a name that comes once"},
		"overflow":  {nil, []Tensor{{"a", F32, []int{1 << 60}, some}, {"b", F32, []int{1 << 60}, some}}, pass.ErrInvalid, "no place"},
		"short":     {nil, []Tensor{{"t", F32, []int{17}, some}}, io.ErrUnexpectedEOF, `tensor "t": byte 64 of 68`},
	} {
		err := Write(io.Discard, c.t, c.m)
		require.ErrorIs(t, err, c.is, name)
		require.ErrorContains(t, err, c.says, name)
	}
	full := errors.New("full")
	for n := range 3 {
		require.ErrorIs(t, Write(&limited{n, full}, tensors()[:2], nil), full)
	}
}

// limited takes so many writes.
type limited struct {
	n   int
	err error
}

func (l *limited) Write(b []byte) (int, error) {
	if l.n--; l.n < 0 {
		return 0, l.err
	}
	return len(b), nil
}
