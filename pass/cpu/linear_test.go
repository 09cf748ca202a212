package cpu_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/tandem-gpu/tandem/pass"
)

// stored returns a tensor of n rows of k in a type of weights, and its values.
func (r *rig) stored(d pass.DType, n, k int) (pass.Tensor, []float32) {
	r.Helper()
	v := random(r.rng, n*k)
	var b []byte
	switch d {
	case pass.F32:
		return pass.Float32s("table", v, n, k), v
	case pass.F16:
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, float16.Fromfloat32(x).Bits())
		}
	case pass.BF16:
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(x)>>16))
		}
	case pass.Q8_0:
		for i := 0; i < len(v); i += pass.Q8Block {
			b = binary.LittleEndian.AppendUint16(b, float16.Fromfloat32(1./64).Bits())
			for j := range pass.Q8Block {
				b = append(b, byte(int8(30*v[i+j])))
			}
		}
	}
	tensor := pass.Tensor{Name: "table", Type: d, Shape: []int{n, k}, Data: bytes.NewReader(b)}
	v, err := tensor.Float32s()
	require.NoError(r, err)
	return tensor, v
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n, places = 13, 14
	for _, table := range []pass.DType{pass.F32, pass.F16, pass.BF16, pass.Q8_0} {
		for _, c := range []struct {
			batch, rows, k int
			positions      pass.DType // 0: none
			row, pos       pass.Index
			at, from       []int // of each item
		}{
			{batch: 1, rows: 1, k: 32, at: []int{0}},
			{batch: 1, rows: 0, k: 32, positions: pass.F32, at: []int{0}},
			{batch: 2, rows: 3, k: 96, positions: pass.F16, row: pass.Const(1), pos: pass.Const(11), at: []int{1, 1}, from: []int{11, 11}},
			{batch: 2, rows: 3, k: 64, positions: pass.Q8_0, row: pass.IndexEach(r.numbers(2, 0)).Plus(1), pos: pass.IndexIn(r.numbers(9)), at: []int{3, 1}, from: []int{9, 9}},
			{batch: 1, rows: 10, k: 9024, positions: pass.BF16, pos: pass.IndexEach(r.numbers(4)), at: []int{0}, from: []int{4}},
		} {
			t.Run(fmt.Sprintf("%v-%v-%dx%dx%d", table, c.positions, c.batch, c.rows, c.k), func(t *testing.T) {
				rowsOfIDs := c.rows + 3
				ids := make([]uint32, c.batch*rowsOfIDs)
				for i := range ids {
					ids[i] = uint32(r.rng.IntN(n))
				}
				tensor, values := r.stored(table, n, c.k)
				op := pass.Embed{Table: r.load(pass.LinearWeights{Parts: []pass.Tensor{tensor}}), Batch: c.batch, Rows: c.rows, IDRow: c.row, IDRows: rowsOfIDs, Pos: c.pos}
				var places1 []float32
				if c.positions != 0 {
					tensor, places1 = r.stored(c.positions, places, c.k)
					op.Positions = r.load(pass.LinearWeights{Parts: []pass.Tensor{tensor}})
				}
				want := []float32{}
				for b := range c.batch {
					for row := range c.rows {
						id := int(ids[b*rowsOfIDs+c.at[b]+row])
						for i := range c.k {
							v := values[id*c.k+i]
							if places1 != nil {
								v += places1[(c.from[b]+row)*c.k+i]
							}
							want = append(want, v)
						}
					}
				}
				out := r.output(c.batch, c.rows, c.k)
				op.IDs, op.Out = r.words(c.batch, rowsOfIDs, 1, ids...).View, out.View
				r.do(op)
				require.True(t, equal(want, out.values()))
			})
		}
	}
}

func TestEmbedRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tensor, values := r.stored(pass.F32, 5, 3)
	table := r.load(pass.LinearWeights{Parts: []pass.Tensor{tensor}})
	out := r.output(2, 2, 3)
	op := pass.Embed{IDs: r.words(2, 2, 1, 4, 3, 2, 5).View, Table: table, Out: out.View, Batch: 2, Rows: 2, IDRows: 2}
	r.fails(op, "IDs", "item 1, row 1", "less than 5", "given 5")
	require.Equal(t, values[:3], out.values()[9:], "a bad id reads row 0")
	op.IDs = r.words(2, 2, 1, math.MaxUint32, 3, 2, 1).View
	r.fails(op, "IDs", "item 0, row 0", "given 4294967295")

	op.IDs = r.words(2, 2, 1, 0, 0, 0, 0).View
	op.IDRow = pass.IndexEach(r.numbers(0, 1))
	r.fails(op, "IDRow", "item 1", "0 to 0", "given 1")
	op.IDRow = pass.Index{}
	op.Positions, op.Pos = table, pass.IndexIn(r.numbers(3)).Plus(1)
	r.fails(op, "Pos", "item 0", "0 to 3", "given 4")
}
