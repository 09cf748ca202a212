package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	tensors := []safetensors.Tensor{
		tensor("half", safetensors.F16, []byte{0, 0x3C}, 1),
		safetensors.Of(pass.Float32s("z<é", []float32{1, 2, 3}, 3, 1)),
		safetensors.Uint32s("b", []uint32{math.MaxUint32}),
		tensor("brain", safetensors.BF16, []byte{0x80, 0x3F}, 1),
		safetensors.Int64s("ids", []int64{-5, 6}, 2),
		safetensors.Int64s("none", nil, 2, 0),
	}
	metadata := map[string]string{"k2": "v", "k1": `"`}
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, tensors, metadata))
	n := binary.LittleEndian.Uint64(b.Bytes())
	require.Zero(t, n%8)
	require.Contains(t, b.String()[8:8+n], `{"__metadata__":{"k1":"\"","k2":"v"},"ids":`)

	f, err := open(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, []string{"b", "brain", "half", "ids", "none", "z<é"}, f.Names())
	require.Equal(t, metadata, f.Metadata())
	var back []safetensors.Tensor
	for _, name := range f.Names() {
		r, err := f.Raw(name)
		require.NoError(t, err)
		back = append(back, r)
	}
	require.Equal(t, []int{}, back[0].Shape, "a scalar")
	ids, err := f.Int64s("ids")
	require.NoError(t, err)
	require.Equal(t, []int64{-5, 6}, ids)
	z, err := f.Float64s("z<é")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3}, z)
	u, err := f.Int64s("b")
	require.NoError(t, err)
	require.Equal(t, []int64{math.MaxUint32}, u)

	var again bytes.Buffer
	require.NoError(t, safetensors.Write(&again, back, metadata))
	require.Equal(t, b.Bytes(), again.Bytes())

	b.Reset()
	require.NoError(t, safetensors.Write(&b, nil, nil))
	f, err = open(b.Bytes())
	require.NoError(t, err)
	require.Empty(t, f.Names())
	require.Empty(t, f.Metadata())

	b.Reset()
	long := make([]uint32, 100000)
	for i := range long {
		long[i] = uint32(i) * 7919
	}
	require.NoError(t, safetensors.Write(&b, []safetensors.Tensor{safetensors.Uint32s("long", long, len(long))}, nil))
	f, err = open(b.Bytes())
	require.NoError(t, err)
	got, err := f.Int64s("long")
	require.NoError(t, err)
	for i, v := range long {
		require.Equal(t, int64(v), got[i])
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	good := safetensors.Int64s("a", []int64{1}, 1)
	for _, c := range []struct {
		name    string
		tensors []safetensors.Tensor
		want    string
		is      error
	}{
		{"Q8_0", []safetensors.Tensor{safetensors.Of(pass.Tensor{Name: "q", Type: pass.Q8_0, Shape: []int{32}, Data: bytes.NewReader(nil)})}, `type "Q8_0"`, pass.ErrUnsupported},
		{"twice", []safetensors.Tensor{good, good}, "twice", pass.ErrInvalid},
		{"metadata", []safetensors.Tensor{{Name: "__metadata__", DType: safetensors.U8, Data: bytes.NewReader([]byte{1})}}, "reserved", pass.ErrInvalid},
		{"not UTF-8", []safetensors.Tensor{{Name: "\xFF", DType: safetensors.U8, Data: bytes.NewReader([]byte{1})}}, "UTF-8", pass.ErrInvalid},
		{"negative", []safetensors.Tensor{tensor("a", safetensors.U8, nil, -1)}, "shape [-1]", pass.ErrInvalid},
		{"no data", []safetensors.Tensor{{Name: "a", DType: safetensors.U8}}, "no data", pass.ErrInvalid},
		{"sum overflows", []safetensors.Tensor{tensor("a", safetensors.U8, nil, math.MaxInt), tensor("b", safetensors.U8, nil, math.MaxInt)}, `tensor "b": shape`, pass.ErrInvalid},
		{"short data", []safetensors.Tensor{tensor("a", safetensors.U8, []byte{1}, 2)}, `tensor "a": read 2 bytes at 0`, io.ErrUnexpectedEOF},
		{"bad data", []safetensors.Tensor{{Name: "a", DType: safetensors.U8, Data: failing{}}}, "failing", iotest.ErrTimeout},
	} {
		err := safetensors.Write(io.Discard, c.tensors, nil)
		require.ErrorIs(t, err, c.is, c.name)
		require.ErrorContains(t, err, c.want, c.name)
	}
	require.ErrorIs(t, safetensors.Write(io.Discard, nil, map[string]string{"a": "\xFF"}), pass.ErrInvalid)
	in, out := io.Pipe()
	in.Close()
	require.ErrorIs(t, safetensors.Write(out, []safetensors.Tensor{good}, nil), io.ErrClosedPipe)
}
