package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// count is a tensor whose bytes count up.
type countingData struct{ size int64 }

func (c countingData) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > c.size {
		return 0, fmt.Errorf("read beyond the end: %w", pass.ErrInvalid)
	}
	for i := range b {
		b[i] = byte(at + int64(i))
	}
	return len(b), nil
}

func countedTensor(t pass.DType, shape ...int) pass.Tensor {
	x := pass.Tensor{Name: "countedTensor", Type: t, Shape: shape}
	x.Data = countingData{x.Bytes()}
	return x
}

// numbered32 is a tensor whose elements are first, first + 1, …
func numbered32(first, step float32, shape ...int) pass.Tensor {
	x := pass.Tensor{Shape: shape}
	values := make([]float32, x.Len())
	for i := range values {
		values[i] = first + step*float32(i)
	}
	return pass.Float32s("numbered", values, shape...)
}

// filledWords returns the words of all buffers, filledWords in blocks of some words.
func filledWords(t *testing.T, w pass.Weights, limits driver.Limits, block int) [][]uint32 {
	p, err := pack(w, limits)
	require.NoError(t, err)
	var all [][]uint32
	for _, b := range p.buffers {
		words := make([]uint32, b.words)
		for i := range words {
			words[i] = 0xDEADBEEF
		}
		for from := 0; from < b.words; from += block {
			require.NoError(t, b.fill(words[from:min(from+block, b.words)], from))
		}
		all = append(all, words)
	}
	return all
}

func floatOf(w uint32) float32 { return math.Float32frombits(w) }

func bindingLimits(bytes uint64) driver.Limits {
	l := kernelLimits(256, 16<<10)
	l.MaxStorageBindingSize = bytes
	return l
}

// Rows of two parts, padded, cut into pieces of rows, in blocks that end anywhere.
func TestPackLinear(t *testing.T) {
	t.Parallel()
	w := pass.LinearWeights{
		Parts: []pass.Tensor{numbered32(0, 1, 3, 17), numbered32(1000, 1, 2, 17)},
		Bias:  []float32{1, 2, 3, 4, 5}, Dual: []float32{-1, -2},
	}
	for _, block := range []int{1, 7, 32, 1000} {
		all := filledWords(t, w, bindingLimits(2*32*4), block)
		require.Len(t, all, 4, "rows 0-1, 2-3, 4, biases")
		for row := range 5 {
			words := all[row/2][row%2*32:][:32]
			for k, word := range words {
				want := float32(0)
				if k < 17 {
					want = float32(17*row + k)
					if row >= 3 {
						want = float32(1000 + 17*(row-3) + k)
					}
				}
				require.Equal(t, math.Float32bits(want), word, "row %d, k %d", row, k)
			}
		}
		var biases []float32
		for _, word := range all[3] {
			biases = append(biases, floatOf(word))
		}
		require.Equal(t, []float32{1, 2, 3, 4, 5, -1, -2}, biases)
	}
	_, err := pack(w, bindingLimits(31*4))
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "a row of 128 bytes exceeds the device's 124")
}

// A dual bias without a bias: the first n are zeros.
func TestPackLinearDualAlone(t *testing.T) {
	t.Parallel()
	all := filledWords(t, pass.LinearWeights{Parts: []pass.Tensor{numbered32(0, 1, 2, 1)}, Dual: []float32{7}}, bindingLimits(1<<20), 3)
	require.Equal(t, []uint32{0, 0, math.Float32bits(7)}, all[1])
}

func TestPackLinearHalves(t *testing.T) {
	t.Parallel()
	for _, typ := range []pass.DType{pass.F16, pass.BF16} {
		x := countedTensor(typ, 2, 5)
		all := filledWords(t, pass.LinearWeights{Parts: []pass.Tensor{x}}, bindingLimits(1<<20), 3)
		require.Len(t, all, 1)
		require.Equal(t, []uint32{0x03020100, 0x07060504, 0x0908, 0, 0, 0, 0, 0, 0x0d0c0b0a, 0x11100f0e, 0x1312, 0, 0, 0, 0, 0}, all[0])
	}
}

// Q8_0: bytes and scales apart, an odd number of blocks in a piece.
func TestPackLinearQ8(t *testing.T) {
	t.Parallel()
	x := countedTensor(pass.Q8_0, 3, 96)
	raw := make([]byte, x.Bytes())
	_, err := x.Data.ReadAt(raw, 0)
	require.NoError(t, err)
	for _, limit := range []uint64{1 << 20, 96} { // all at once, and a row each
		all := filledWords(t, pass.LinearWeights{Parts: []pass.Tensor{x}}, bindingLimits(limit), 5)
		rows := 3 * 2 / len(all)
		for block := range 9 {
			piece, within := block/(3*rows), block%(3*rows)
			from := raw[block*pass.Q8BlockBytes:]
			scale := all[2*piece+1][within/2] >> (16 * (within % 2)) & 0xffff
			require.Equal(t, uint32(binary.LittleEndian.Uint16(from)), scale)
			for i := range 8 {
				require.Equal(t, binary.LittleEndian.Uint32(from[2+4*i:]), all[2*piece][within*8+i])
			}
		}
		last := all[len(all)-1]
		require.Zero(t, last[len(last)-1]>>16, "the half after the last scale")
	}
}

func TestPackConv(t *testing.T) {
	t.Parallel()
	w := pass.ConvWeights{Weight: numbered32(1, 1, 2, 3, 5), Bias: []float32{8, 9}}
	for _, block := range []int{1, 6, 100} {
		all := filledWords(t, w, bindingLimits(1<<20), block)
		require.Len(t, all, 2)
		for o := range 2 {
			for i := range 3 {
				for tap := range 5 {
					require.Equal(t, float32(1+(o*3+i)*5+tap), floatOf(all[0][o*16+tap*3+i]))
				}
			}
			require.Zero(t, all[0][o*16+15])
		}
		require.Equal(t, []uint32{math.Float32bits(8), math.Float32bits(9)}, all[1])
	}
}

func TestPackLSTM(t *testing.T) {
	t.Parallel()
	const in, h = 3, 5
	cell := func(base float32, bias []float32) pass.LSTMCell {
		return pass.LSTMCell{Input: numbered32(base, 1, 4*h, in), Hidden: numbered32(base+1000, 1, 4*h, h), Bias: bias}
	}
	bias := make([]float32, 4*h)
	for i := range bias {
		bias[i] = float32(i)
	}
	w := pass.LSTMWeights{Layers: [][]pass.LSTMCell{{cell(1, bias), cell(5001, nil)}}}
	for _, block := range []int{1, 13, 1 << 20} {
		all := filledWords(t, w, bindingLimits(1<<20), block)
		require.Len(t, all, 3, "input, biases, recurrent")
		for d := range 2 {
			base := float32(1 + 5000*d)
			for c := range h {
				for g := range 4 {
					row := (d*h+c)*4 + g
					source := g*h + c
					for k := range in {
						require.Equal(t, base+float32(source*in+k), floatOf(all[0][row*16+k]))
					}
					require.Equal(t, []uint32{0, 0}, all[0][row*16+in:][:2])
					require.Equal(t, float32(source*(1-d)), floatOf(all[1][row]))
					for k := range 32 {
						want := float32(0)
						if k < h {
							want = base + 1000 + float32(source*h+k)
						}
						require.Equal(t, want, floatOf(all[2][((d*32+k)*h+c)*4+g]))
					}
				}
			}
		}
	}
}

// Weights whose data end early fail with the tensor's name.
func TestPackTruncated(t *testing.T) {
	t.Parallel()
	x := numbered32(0, 1, 4, 8)
	x.Shape = []int{5, 8}
	for _, w := range []pass.Weights{
		pass.LinearWeights{Parts: []pass.Tensor{x}},
		pass.ConvWeights{Weight: pass.Tensor{Name: "numbered", Type: pass.F32, Shape: []int{5, 2, 4}, Data: x.Data}},
	} {
		p, err := pack(w, bindingLimits(1<<20))
		require.NoError(t, err)
		err = p.buffers[0].fill(make([]uint32, p.buffers[0].words), 0)
		require.ErrorContains(t, err, "numbered")
	}
}
