package gpu

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// outputs runs a case in a layout and returns its outputs, densely.
func (b *bench) outputs(t *testing.T, c cases.Case, l cases.Layout) map[string][]uint32 {
	after := b.run(t, c, l)
	placed, err := cases.Place(c, l, 1)
	require.NoError(t, err)
	out := map[string][]uint32{}
	for _, a := range placed.Checked.Args {
		if a.Access&pass.Write == 0 {
			continue
		}
		name := a.Name
		if in, ok := c.Same[a.Name]; ok {
			name = in
		}
		for _, p := range placed.Buffers {
			if p.Name != name {
				continue
			}
			v := p.View
			if l == cases.Dense {
				v.RowStride, v.BatchStride = a.Cols, a.Rows*a.Cols
			}
			for item := range a.Batch {
				for row := range a.Rows {
					at := v.Offset + item*v.BatchStride + row*v.RowStride
					out[a.Name] = append(out[a.Name], after[name][at:at+a.Cols]...)
				}
			}
		}
	}
	return out
}

// rowCase is a case of an op that makes rows of rows: X around an offset, and weights of
// a norm if w is set.
func rowCase(op pass.Op, batch, rows, cols int, offset float32, w bool) cases.Case {
	c := cases.Case{Name: fmt.Sprintf("%s-%dx%dx%d", op.Name(), batch, rows, cols), Op: op, Outputs: cases.DefaultOutputs(op)}
	c.Inputs = []cases.Tensor{cases.F32("X", cases.Recipe(c.Name, 1, batch*rows*cols, 2, offset), batch, rows, cols)}
	if w {
		c.Params = []cases.Param{{Field: "W", Weights: pass.NormWeights{Gain: cases.Recipe("gain", 1, cols, 1, 1), Bias: cases.Recipe("bias", 1, cols, 1, 0)}}}
	}
	return c
}

func inPlace(c cases.Case) cases.Case {
	c.Name += "-in-place"
	c.Same = map[string]string{"Y": "X"}
	return c
}

func with32(c cases.Case, field string, numbers ...uint32) cases.Case {
	shape := []int{len(numbers)}
	if len(numbers) == 1 {
		shape = nil
	}
	c.Inputs = append(c.Inputs, cases.U32(field, numbers, shape...))
	return c
}

func layerNormCase(batch, rows, cols int, offset float32) cases.Case {
	return rowCase(pass.LayerNorm{Batch: batch, Rows: rows, Cols: cols}, batch, rows, cols, offset, true)
}

func softmaxCase(batch, rows, cols int) cases.Case {
	return rowCase(pass.Softmax{Batch: batch, Rows: rows, Cols: cols}, batch, rows, cols, 0, false)
}

func argmaxCase(batch, rows, cols int) cases.Case {
	c := rowCase(pass.Argmax{Batch: batch, Rows: rows, Cols: cols, IDRows: rows + 5, ToRow: pass.Const(1)}, batch, rows, cols, 0, false)
	c.Inputs = append(c.Inputs, cases.U32("IDs", make([]uint32, batch*(rows+5)), batch, rows+5, 1))
	return with32(c, "ToRow", 3)
}

func groupNormCase(batch, rows, cols int, offset float32) cases.Case {
	lengths := append(repeat(rows, batch-1), rows*3/5)
	return rowCase(pass.GroupNorm{Batch: batch, Rows: rows, Cols: cols, Lengths: pass.Fixed(lengths...)}, batch, rows, cols, offset, true)
}

func poolNormCase(op pass.PoolNorm, batch, rows, cols int) cases.Case {
	op.Batch, op.Rows, op.Cols = batch, rows, cols
	return rowCase(op, batch, rows, cols, 5, true)
}

func rotatedCase(batch, rows, heads, head, positions int, pos ...uint32) cases.Case {
	c := layerNormCase(batch, rows, heads*head, 0)
	op := c.Op.(pass.LayerNorm)
	op.Heads, op.Pos = heads, pass.Const(2)
	c.Op, c.Outputs = op, []string{"Y", "Rotated"}
	c.Params = append(c.Params, cases.Param{Field: "Table", Weights: pass.RopeWeights{Positions: positions, Rot: 16, Base: 10000}})
	return with32(c, "Pos", pos...)
}

func ropeCase(style pass.RopeStyle, batch, rows, heads, head, positions int, pos ...uint32) cases.Case {
	op := pass.Rope{Batch: batch, Rows: rows, Heads: heads, HeadDim: head, Style: style, Pos: pass.Const(1)}
	c := rowCase(op, batch, rows, heads*head, 0, false)
	c.Outputs = []string{"X"}
	c.Params = []cases.Param{{Field: "Table", Weights: pass.RopeWeights{Positions: positions, Rot: 16, Base: 10000}}}
	return with32(c, "Pos", pos...)
}

func embedCase(batch, rows, n, k, positions int, pos ...uint32) cases.Case {
	ids := cases.RecipeWords("ids", 1, batch*rows)
	for i := range ids {
		ids[i] %= uint32(n)
	}
	c := cases.Case{Name: fmt.Sprintf("embed-%dx%d-%dx%d-%d", batch, rows, n, k, positions), Op: pass.Embed{Batch: batch, Rows: rows, IDRows: rows, Pos: pass.Const(1)},
		Inputs: []cases.Tensor{cases.U32("IDs", ids, batch, rows, 1)}, Outputs: []string{"Out"},
		Params: []cases.Param{{Field: "Table", Weights: pass.LinearWeights{Parts: []pass.Tensor{randomTensor("table", 1, n, k)}}},
			{Field: "Positions", Weights: pass.LinearWeights{Parts: []pass.Tensor{randomTensor("positions", 1, positions, k)}}}}}
	return with32(c, "Pos", pos...)
}

func statsCase(batch, height, width, channels, masks, frames int, first ...float32) cases.Case {
	op := pass.StatsPool{Batch: batch, Height: height, Width: width, Channels: channels, Count: masks, Frames: frames}
	weights := cases.Recipe("masks", 1, batch*masks*frames, 0.5, 0.5)
	if first != nil { // and no others
		clear(weights)
		copy(weights, first)
	}
	return cases.Case{Name: fmt.Sprintf("statspool-%dx%dx%dx%d", batch, height, width, channels), Op: op, Outputs: []string{"Y"},
		Inputs: []cases.Tensor{cases.F32("X", cases.Recipe("image", 1, batch*height*width*channels, 1, 3), batch, height*width, channels), cases.F32("Masks", weights, batch, masks, frames)}}
}

func permuteCase(dims, order [4]int) cases.Case {
	c := rowCase(pass.Permute{Dims: dims, Order: order}, dims[0], dims[1]*dims[2], dims[3], 0, false)
	c.Name += fmt.Sprint(order)
	return c
}

// rowCases are larger than a workgroup in the direction in which they are summed, or have
// several workgroups and pieces.
func rowCases() []cases.Case {
	return []cases.Case{
		layerNormCase(2, 3, 9001, 1e4),
		inPlace(layerNormCase(1, 2, 20004, 1e4)),
		layerNormCase(3, 70, 5, 1e4),
		rowCase(pass.L2Norm{Rows: 2, Cols: 20001}, 1, 2, 20001, 0, false),
		softmaxCase(1, 2, 51865),
		rowCase(pass.LogSoftmax{Batch: 2, Rows: 2, Cols: 8196}, 2, 2, 8196, 0, false),
		softmaxCase(2, 37, 12),
		argmaxCase(2, 1, 51865),
		argmaxCase(2, 70, 9),
		// One id, after a kernel with bindings of the same kinds that needs more than a word.
		rowCase(pass.Argmax{Rows: 1, Cols: 8195}, 1, 1, 8195, 0, false),
		groupNormCase(2, 700, 36, 100),
		inPlace(groupNormCase(2, 5, 5001, 100)),
		poolNormCase(pass.PoolNorm{Pool: 3, Abs: true, Epilogue: pass.Leaky(0.1)}, 2, 1601, 37),
		poolNormCase(pass.PoolNorm{Pool: 7}, 1, 5000, 3),
		poolNormCase(pass.PoolNorm{}, 1, 5000, 2),
		rotatedCase(2, 9, 3, 20, 4000, 1000, 3000),
		ropeCase(pass.RopeHalves, 2, 9, 3, 20, 4000, 1010, 3000),
		ropeCase(pass.RopeInterleaved, 2, 9, 3, 20, 4000, 1010, 3000),
		embedCase(2, 9, 700, 52, 900, 310, 15),
		embedCase(2, 9, 700, 51, 900, 311),
		statsCase(2, 3, 700, 40, 2, 513),
		statsCase(1, 1, 9, 3, 1, 9, 0, 1, 1e-7, 0, 3e-8),
		groupNormCase(5000, 1, 1, 0),
		poolNormCase(pass.PoolNorm{}, 5000, 1, 1),
		permuteCase([4]int{3, 5, 40, 36}, [4]int{0, 2, 1, 3}),
		permuteCase([4]int{3, 5, 40, 36}, [4]int{0, 1, 3, 2}),
		permuteCase([4]int{2, 33, 4, 70}, [4]int{0, 3, 2, 1}),
		permuteCase([4]int{40, 3, 2, 50}, [4]int{3, 1, 2, 0}),
	}
}

// Rows are right and have the same bits, however they lie: what is read four by four and
// what is not.
func TestRowsInAllLayouts(t *testing.T) {
	t.Parallel()
	for _, limits := range []driver.Limits{{}, {MaxInvocations: 64, MaxWorkgroupStorage: 8 << 10}} {
		b := newBench(t, driver.DeviceConfig{Limits: limits}, nil)
		for _, c := range rowCases() {
			dense := b.outputs(t, c, cases.Dense)
			for _, l := range []cases.Layout{cases.Awkward, cases.Interleaved} {
				require.Equal(t, dense, b.outputs(t, c, l), "%s: %v", c.Name, l)
			}
		}
	}
}

// What limits make of an op changes no bit of it.
func TestRowsInParts(t *testing.T) {
	t.Parallel()
	plain := newBench(t, driver.DeviceConfig{}, nil)
	lesser := map[string]*bench{
		"bindings":   newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 64 << 10}}, nil),
		"workgroups": newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxWorkgroups: 2}}, nil),
		"rate":       newBench(t, driver.DeviceConfig{}, func(d *device) { d.rate.FLOP = 1e4 }),
	}
	more := map[string]int{}
	for _, c := range rowCases() {
		whole := plain.run(t, c, cases.Awkward)
		count := len(plain.dispatches)
		for name, b := range lesser {
			if name == "bindings" && !b.takes(t, c) {
				continue
			}
			require.Equal(t, whole, b.run(t, c, cases.Awkward), "%s: %s", name, c.Name)
			if len(b.dispatches) > count {
				more[name]++
			}
		}
	}
	for name := range lesser {
		require.Greater(t, more[name], 4, name)
	}
}

// takes reports whether a case can be cut to the device's bindings: rows and weights of
// norms are not cut.
func (b *bench) takes(t *testing.T, c cases.Case) bool {
	placed, err := cases.Place(c, cases.Awkward, 1)
	require.NoError(t, err)
	most := int(b.hw.limits.MaxStorageBindingSize)
	for _, a := range placed.Checked.Args {
		for _, p := range placed.Buffers {
			if p.Name == a.Name && 4*len(p.Words)/(a.Batch*a.Rows) > most-1024 {
				return false
			}
		}
	}
	for _, p := range c.Params {
		if w, ok := p.Weights.(pass.NormWeights); ok && 8*len(w.Gain) > most {
			return false
		}
	}
	return true
}

// A number on the device that is beyond its range fails the run, which says where; what
// is not in question is right.
func TestRowNumbersBeyondTheirRange(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{}, nil)
	ctx := context.Background()
	s, err := b.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	load := func(w pass.Weights) pass.Param {
		p, err := b.Load(ctx, w)
		require.NoError(t, err)
		return p
	}
	floats := func(n int) pass.Buffer {
		f, err := s.Alloc(pass.F32, n)
		require.NoError(t, err)
		require.NoError(t, s.Write(ctx, f.View(), cases.Recipe("floats", 1, n, 1, 0)))
		return f
	}
	numbers := func(n ...uint32) pass.View {
		u, err := s.Alloc(pass.U32, len(n))
		require.NoError(t, err)
		require.NoError(t, s.Write(ctx, u.View(), n))
		return u.View()
	}
	table, norm := load(pass.RopeWeights{Positions: 10, Rot: 4, Base: 10}), load(pass.NormWeights{Gain: []float32{1, 1, 1, 1}})
	rows := load(pass.LinearWeights{Parts: []pass.Tensor{randomTensor("rows", 1, 6, 4)}})
	x, y, z, out := floats(24), floats(24), floats(24), floats(8)
	index := func(n uint32, plus int) pass.Index { return pass.IndexIn(numbers(n)).Plus(plus) }
	for _, c := range []struct {
		says string
		op   func(over uint32) pass.Op
	}{
		{"rope: Pos", func(o uint32) pass.Op {
			return pass.Rope{X: y.View(), Table: table, Rows: 2, Heads: 1, HeadDim: 4, Pos: index(6+o, 2)}
		}},
		{"layernorm: Pos", func(o uint32) pass.Op {
			return pass.LayerNorm{X: x.View(), Y: y.View(), W: norm, Rows: 2, Cols: 4, Rotated: z.View(), Table: table, Heads: 1, Pos: index(6+o, 2)}
		}},
		{"groupnorm: Lengths", func(o uint32) pass.Op {
			return pass.GroupNorm{X: x.View(), Y: y.View(), W: norm, Batch: 2, Rows: 3, Cols: 4, Lengths: pass.ItemsIn(numbers(1, 3+o))}
		}},
		{"poolnorm: Lengths", func(o uint32) pass.Op {
			return pass.PoolNorm{X: x.View(), Y: y.View(), W: norm, Batch: 2, Rows: 3, Cols: 4, Lengths: pass.ItemsIn(numbers(1, 3+o))}
		}},
		{"argmax: ToRow", func(o uint32) pass.Op {
			return pass.Argmax{X: x.View(), IDs: numbers(make([]uint32, 5)...), Rows: 2, Cols: 4, IDRows: 5, ToRow: index(1+o, 2)}
		}},
		{"embed: IDRow", func(o uint32) pass.Op {
			return pass.Embed{IDs: numbers(1, 2, 3, 4), Table: rows, Out: out.View(), Rows: 2, IDRows: 4, IDRow: index(1+o, 1)}
		}},
		{"embed: Pos", func(o uint32) pass.Op {
			return pass.Embed{IDs: numbers(1, 2), Table: rows, Positions: rows, Out: out.View(), Rows: 2, Pos: index(3+o, 1)}
		}},
		{"embed: IDs:", func(o uint32) pass.Op {
			return pass.Embed{IDs: numbers(2, 5+o), Table: rows, Out: out.View(), Rows: 2}
		}},
		{"copy: FromRow", func(o uint32) pass.Op {
			return pass.Copy{From: x.View(), To: y.View(), Rows: 2, Cols: 4, FromRows: 6, FromRow: index(1+o, 3)}
		}},
		{"copy: ToRow", func(o uint32) pass.Op { // nothing is within range
			return pass.Copy{From: x.View(), To: y.View(), Rows: 2, Cols: 4, ToRows: 5 + 1 - int(o), ToRow: index(0, 4)}
		}},
		{"advance: Index:", func(o uint32) pass.Op {
			return pass.Advance{Index: numbers(2 + o), By: 1, IDs: numbers(0, 0, 0, 0), IDRows: 4, Plus: 1}
		}},
		{"advance: Index:", func(o uint32) pass.Op { return pass.Advance{Index: numbers(1<<32 - 1 - 1<<30 + o), By: 1 << 30} }},
	} {
		for over := range uint32(2) {
			rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(c.op(over)) })
			require.NoError(t, err)
			_, err = rec.Run(ctx)
			rec.Close()
			if over == 0 {
				require.NoError(t, err, c.says)
				continue
			}
			require.ErrorIs(t, err, pass.ErrInvalid, c.says)
			require.ErrorContains(t, err, c.says)
		}
	}
	// A bad id reads row 0.
	rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
		p.Do(pass.Embed{IDs: numbers(2, 6), Table: rows, Out: out.View(), Rows: 2})
	})
	require.NoError(t, err)
	_, err = rec.Run(ctx)
	require.ErrorIs(t, err, pass.ErrInvalid)
	got := make([]float32, 8)
	require.NoError(t, s.Read(ctx, out.View(), got))
	all := cases.Recipe("rows", 1, 24, 1, 0)
	require.Equal(t, append(all[8:12:12], all[:4]...), got)
}
