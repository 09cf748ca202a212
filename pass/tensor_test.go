package pass

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTensorDecode(t *testing.T) {
	bf := make([]byte, 2*3)
	for i, v := range []float32{1, -2.5, float32(math.Inf(1))} {
		binary.LittleEndian.PutUint16(bf[2*i:], uint16(math.Float32bits(v)>>16))
	}
	q8 := make([]byte, 2*Q8BlockBytes) // scales 0.5 and −2, values 0, 1, 2 … and −1, −2 …
	binary.LittleEndian.PutUint16(q8, 0x3800)
	binary.LittleEndian.PutUint16(q8[Q8BlockBytes:], 0xC000)
	wantQ8 := make([]float32, 64)
	for i := range 32 {
		q8[2+i] = byte(i)
		q8[Q8BlockBytes+2+i] = byte(-1 - i)
		wantQ8[i] = 0.5 * float32(i)
		wantQ8[32+i] = 2 * float32(1+i)
	}
	for _, c := range []struct {
		t    Tensor
		want []float32
	}{
		{Float32s("f32", []float32{1, 2, -3}, 3), []float32{1, 2, -3}},
		{Tensor{"f16", F16, []int{2, 2}, bytes.NewReader([]byte{0, 0x3C, 0, 0xC1, 1, 0, 0, 0x7C})}, []float32{1, -2.5, 5.9604645e-08, float32(math.Inf(1))}},
		{Tensor{"bf16", BF16, []int{3}, bytes.NewReader(bf)}, []float32{1, -2.5, float32(math.Inf(1))}},
		{Tensor{"q8", Q8_0, []int{2, 32}, bytes.NewReader(q8)}, wantQ8},
		{Float32s("none", nil, 0, 5), []float32{}},
	} {
		got, err := c.t.Float32s()
		require.NoError(t, err, c.t.Name)
		require.Equal(t, c.want, got, c.t.Name)
	}
}

func TestTensorDecodeInPieces(t *testing.T) {
	values := make([]float32, 100_000) // more than is decoded at a time
	for i := range values {
		values[i] = float32(i)
	}
	w := Float32s("w", values, len(values))
	got := make([]float32, 70_001)
	require.NoError(t, w.Decode(got, 12_345))
	for i, v := range got {
		require.Equal(t, float32(12_345+i), v)
	}
}

func TestTensorMistakes(t *testing.T) {
	data := bytes.NewReader(make([]byte, 100))
	for _, c := range []struct {
		t    Tensor
		says string
	}{
		{Tensor{"a", U32, []int{1}, data}, `tensor "a": type U32`},
		{Tensor{"b", F32, []int{-1}, data}, `tensor "b": shape [-1]`},
		{Tensor{"c", F32, []int{1 << 40, 1 << 40}, data}, `tensor "c": shape`},
		{Tensor{"d", Q8_0, []int{32, 33}, data}, `tensor "d": shape [32 33] does not fit type Q8_0`},
		{Tensor{"e", F32, []int{1}, nil}, `tensor "e": no data`},
	} {
		_, err := c.t.Float32s()
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}
	short := Tensor{"short", F32, []int{26}, data}
	_, err := short.Float32s()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, `tensor "short"`)
	require.ErrorIs(t, short.Decode(make([]float32, 2), 25), ErrInvalid)
	require.ErrorIs(t, Tensor{"q", Q8_0, []int{64}, data}.Decode(make([]float32, 32), 16), ErrInvalid)
}

func TestFloat32sReadsAnyBytes(t *testing.T) {
	values := []float32{1, -2, 3.5, math.MaxFloat32}
	var want bytes.Buffer
	require.NoError(t, binary.Write(&want, binary.LittleEndian, values))
	r := Float32s("w", values, 4).Data
	for at := range 17 {
		for n := range 18 {
			got := make([]byte, n)
			k, err := r.ReadAt(got, int64(at))
			require.Equal(t, min(n, 16-at), k)
			require.Equal(t, want.Bytes()[at:at+k], got[:k])
			require.Equal(t, n > 16-at, err == io.EOF)
		}
	}
}

func TestBytes(t *testing.T) {
	require.EqualValues(t, 12, F32.Bytes(3))
	require.EqualValues(t, 6, BF16.Bytes(3))
	require.EqualValues(t, 68, Q8_0.Bytes(64))
	require.EqualValues(t, -1, Q8_0.Bytes(33))
	require.EqualValues(t, -1, F32.Bytes(math.MaxInt))
	require.EqualValues(t, -1, U32.Bytes(-1))
	for _, typ := range []DType{F32, F16, BF16, U32, Q8_0} {
		got, err := ParseDType(typ.String())
		require.NoError(t, err)
		require.Equal(t, typ, got)
	}
	_, err := ParseDType("F64")
	require.ErrorIs(t, err, ErrInvalid)
}

// No tensor that was made by hand leads to a panic, or to memory for data that are not
// there.
func TestTensorMisuse(t *testing.T) {
	one := make([]float32, 1)
	data := bytes.NewReader(make([]byte, 64))
	for _, bad := range []Tensor{
		{}, {Type: F32}, {Type: U32, Shape: []int{1}, Data: data}, {Type: 99, Shape: []int{1}, Data: data},
		{Type: F32, Shape: []int{-1}, Data: data},
	} {
		require.ErrorIs(t, bad.Decode(one, 0), ErrInvalid, "%+v", bad)
		_, err := bad.Float32s()
		require.ErrorIs(t, err, ErrInvalid, "%+v", bad)
	}
	half := Tensor{Name: "w", Type: F32, Shape: []int{1 << 20, 1 << 19}, Data: data}
	require.NoError(t, half.Check())
	_, err := LinearWeights{Parts: []Tensor{half, half}}.Shape()
	require.NoError(t, err)
	_, err = LinearWeights{Parts: []Tensor{half, half, half}}.Shape()
	require.ErrorIs(t, err, ErrInvalid)
	_, err = Tensor{Name: "w", Type: F32, Shape: []int{1<<40 + 1}, Data: data}.Float32s()
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, `tensor "w"`)
	allocated := testing.AllocsPerRun(1, func() {
		_, err = Tensor{Name: "w", Type: F32, Shape: []int{1 << 28}, Data: data}.Float32s()
	})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, allocated, 20.0)
}
