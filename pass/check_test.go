package pass

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

var lastID uint32

func buffer(t DType, n int) Buffer {
	lastID++
	return MakeBuffer(Ref{Device: 1, Session: 1, ID: lastID, Generation: 1}, t, n)
}

func linear(n, k int) Param {
	return MakeParam(Ref{Device: 1, ID: 1, Generation: 1}, LinearShape{N: n, K: k, Type: F32})
}

func TestCheckMakesDefaultsExplicit(t *testing.T) {
	a, c := buffer(F32, 1000), buffer(F32, 1000)
	got, err := Check(Gemm{A: a.At(3), W: linear(4, 5), C: c.View().Rows(7), Rows: 6})
	require.NoError(t, err)
	require.Equal(t, Gemm{
		A: View{a, 3, 5, 30}, W: linear(4, 5), C: View{c, 0, 7, 42},
		Batch: 1, Rows: 6, Columns: Span{0, 4},
	}, got.Op)
	require.Equal(t, 2.0*6*4*5, got.Cost.FLOP)
	require.Equal(t, 4.0*(6*5+6*4+4*5), got.Cost.Bytes)
	again, err := Check(got.Op)
	require.NoError(t, err)
	require.Equal(t, got, again)
}

func TestViewsStayWithinTheirBuffers(t *testing.T) {
	out := buffer(F32, 10_000)
	try := func(n int, v View, batch int) error {
		v.Buffer = buffer(F32, n)
		_, err := Check(Map{X: v, Y: out.View(), Batch: batch, Rows: 3, Cols: 4})
		return err
	}
	require.NoError(t, try(12, View{}, 1))
	require.Error(t, try(11, View{}, 1))
	require.NoError(t, try(13, View{Offset: 1}, 1))
	require.Error(t, try(12, View{Offset: 1}, 1))
	require.NoError(t, try(24, View{RowStride: 10}, 1), "the last row is 4 long")
	require.Error(t, try(23, View{RowStride: 10}, 1))
	require.NoError(t, try(24+50, View{RowStride: 10, BatchStride: 50}, 2))
	require.Error(t, try(23+50, View{RowStride: 10, BatchStride: 50}, 2))
	require.NoError(t, try(5+12, View{BatchStride: 5}, 2), "rows that are read may overlap")
	for _, v := range []View{{Offset: -1}, {RowStride: -1}, {BatchStride: -4}, {Offset: math.MaxInt}, {RowStride: math.MaxInt}, {BatchStride: math.MaxInt / 2}} {
		err := try(1000, v, 3)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "map: X: want")
	}
}

func TestRowsThatAreWrittenDoNotOverlap(t *testing.T) {
	in := buffer(F32, 10_000)
	try := func(row, batch int) error {
		_, err := Check(Map{X: in.View(), Y: View{buffer(F32, 10_000), 0, row, batch}, Batch: 2, Rows: 3, Cols: 4})
		return err
	}
	require.NoError(t, try(4, 12))
	require.NoError(t, try(8, 4), "[row][item][column]")
	require.NoError(t, try(10, 5))
	require.NoError(t, try(9, 22))
	require.Error(t, try(3, 12))
	require.Error(t, try(4, 11))
	require.Error(t, try(8, 3))
	require.Error(t, try(7, 4))
	require.ErrorContains(t, try(3, 12), "map: Y: want rows that do not overlap")
}

func TestAliasing(t *testing.T) {
	b, other := buffer(F32, 1000), buffer(F32, 1000)
	_, err := Check(Map{X: b.View(), Y: b.At(500), Rows: 1, Cols: 4})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "map: X and Y")
	_, err = Check(Gemm{A: b.View(), W: linear(4, 4), C: b.At(500), Rows: 1, Epilogue: Residual(1)})
	require.ErrorContains(t, err, "gemm: A and C")

	w := MakeParam(Ref{Device: 1, ID: 2, Generation: 1}, LSTMShape{In: 4, Hidden: 4, Layers: 1, Directions: 1})
	h, c := buffer(F32, 4), buffer(F32, 4)
	lstm := LSTM{X: b.View(), W: w, Y: other.View(), Time: 2, H0: h.View(), C0: c.View(), H: h.View(), C: c.View()}
	_, err = Check(lstm)
	require.NoError(t, err, "state in place")
	lstm.C0, lstm.C = h.View(), h.View()
	_, err = Check(lstm)
	require.ErrorContains(t, err, "different buffers")
	big := buffer(F32, 8)
	lstm.H0, lstm.H, lstm.C0, lstm.C = big.View(), big.At(4), View{}, View{}
	_, err = Check(lstm)
	require.ErrorContains(t, err, "want h and c, or neither")
	lstm.C0, lstm.C = c.View(), c.View()
	_, err = Check(lstm)
	require.ErrorContains(t, err, "H0 and H: want different buffers", "in place is the very same view")
}

// Every part of an op touches exactly what its share of the whole touches.
func TestPartsCoverTheWhole(t *testing.T) {
	in, ids := buffer(F32, 100_000), buffer(U32, 100)
	conv := MakeParam(Ref{Device: 1, ID: 3, Generation: 1}, ConvShape{Out: 6, In: 4, Kernel: 3, Type: F32})
	lstm := MakeParam(Ref{Device: 1, ID: 4, Generation: 1}, LSTMShape{In: 4, Hidden: 5, Layers: 2, Directions: 2})
	out := func() View { return View{buffer(F32, 100_000), 11, 50, 1000} }
	x := View{in, 7, 60, 2000}
	for _, op := range []Op{
		Gemm{A: x, W: linear(13, 9), C: out(), Batch: 3, Rows: 17, Columns: Span{2, 12}},
		Conv1D{X: x, W: conv, Y: out(), Batch: 3, In: 19, Stride: 2, PadLeft: 1, PadRight: 2, Lengths: Fixed(3, 19, 0)},
		Conv1D{X: x, W: conv, Y: out(), Batch: 3, In: 19, Out: Span{4, 15}, Lengths: ItemsIn(ids.At(5))},
		LSTM{X: x, W: lstm, Y: out(), Batch: 3, Time: 8, H: out(), C: out(), Lengths: Fixed(1, 8, 0)},
		LSTM{X: x, W: lstm, Y: out(), Batch: 3, Time: 8, H: out(), C: out(), States: 9, StateRows: Fixed(8, 1, 4)},
		Map{X: x, Y: out(), Batch: 3, Rows: 5, Cols: 6},
		Magnitude{X: x, Y: out(), Batch: 3, Rows: 5, Cols: 6},
		Copy{From: x, To: out(), Batch: 3, Rows: 5, Cols: 6, FromRow: Const(2), ToRow: Const(3)},
		Copy{From: x, To: out(), Batch: 3, Rows: 5, Cols: 6, FromRow: IndexEach(ids.At(2)), FromRows: 9},
		Fill{To: out(), Batch: 3, Rows: 5, Cols: 6},
	} {
		whole, err := Check(op)
		require.NoError(t, err, op.Name())
		for _, cut := range whole.Op.Cuts() {
			var flop float64
			written := map[[2]int]int{} // buffer, element: times
			for from := 0; from < cut.Extent; from += 2 {
				part, err := Part(whole, cut.Axis, from, min(from+2, cut.Extent))
				require.NoError(t, err, "%s along %v", op.Name(), cut.Axis)
				flop += part.Cost.FLOP
				count(written, part)
			}
			require.InDelta(t, whole.Cost.FLOP, flop, 1e-6)
			want := map[[2]int]int{}
			count(want, whole)
			for key := range written {
				if _, ok := whole.Op.(LSTM); ok && whole.Op.(LSTM).States == 9 {
					written[key] = 1 // every part declares all rows of a state that is chosen by row
				}
			}
			require.Equal(t, want, written, "%s along %v", op.Name(), cut.Axis)
		}
		_, err = Part(whole, AxisBatch, 0, 4)
		require.ErrorIs(t, err, ErrInvalid)
		_, err = Part(whole, AxisBatch, 1, 1)
		require.ErrorIs(t, err, ErrInvalid)
	}
}

func count(into map[[2]int]int, c Checked) {
	for _, a := range c.Args {
		if a.Access&Write == 0 {
			continue
		}
		rows, base := a.Rows, 0
		if m, ok := c.Op.(Copy); ok { // of all the rows of its side, a copy writes some
			rows = m.Rows
			n, _ := m.ToRow.Const()
			base = n * a.View.RowStride
		}
		for b := range a.Batch {
			for r := range rows {
				for col := range a.Cols {
					into[[2]int{int(a.View.Buffer.Ref().ID), a.View.Offset + base + b*a.View.BatchStride + r*a.View.RowStride + col}]++
				}
			}
		}
	}
}

func TestConvSteps(t *testing.T) {
	conv := func(kernel, stride, left, right int) Conv1D {
		return Conv1D{W: MakeParam(Ref{}, ConvShape{Out: 1, In: 1, Kernel: kernel}), Stride: stride, PadLeft: left, PadRight: right}
	}
	require.Equal(t, 4, conv(256, 128, 0, 64).Steps(576))
	require.Equal(t, 2, conv(3, 2, 1, 1).Steps(4))
	require.Equal(t, 1, conv(3, 2, 1, 1).Steps(1))
	require.Equal(t, 0, conv(3, 2, 5, 5).Steps(0), "nothing is made of nothing")
	require.Equal(t, 0, conv(7, 1, 1, 1).Steps(4))
	require.Equal(t, 15975, conv(251, 10, 0, 0).Steps(160000))
	require.Equal(t, 0, conv(1, 1, math.MaxInt, 1).Steps(math.MaxInt))
}

func TestReflectionNeedsEnoughSteps(t *testing.T) {
	w := MakeParam(Ref{Device: 1, ID: 1, Generation: 1}, ConvShape{Out: 1, In: 1, Kernel: 3, Type: F32})
	op := Conv1D{X: buffer(F32, 100).View(), W: w, Y: buffer(F32, 100).View(), In: 4, PadRight: 3, Padding: PadReflect}
	_, err := Check(op)
	require.NoError(t, err)
	op.PadRight = 4
	_, err = Check(op)
	require.ErrorContains(t, err, "conv1d: PadLeft, PadRight: want less than the 4 input steps")
	op.PadRight, op.Lengths = 3, Fixed(3)
	_, err = Check(op)
	require.ErrorContains(t, err, "conv1d: Lengths: item 0: want more than the 3 steps")
	op.Lengths = Fixed(0)
	_, err = Check(op)
	require.NoError(t, err)
}

func TestMistakesAreNamed(t *testing.T) {
	x, y, u := buffer(F32, 1000), buffer(F32, 1000), buffer(U32, 1000)
	for says, op := range map[string]Op{
		"gemm: W: want pass.LinearShape, given no param":               Gemm{A: x.View(), C: y.View(), Rows: 1},
		"gemm: A: want a view of F32, given none":                      Gemm{W: linear(2, 2), C: y.View(), Rows: 1},
		"gemm: A: want type F32, given U32":                            Gemm{A: u.View(), W: linear(2, 2), C: y.View(), Rows: 1},
		"gemm: Rows: want at least 0, given -1":                        Gemm{A: x.View(), W: linear(2, 2), C: y.View(), Rows: -1},
		"gemm: Columns: want a range within 0 to 2, given 1 to 3":      Gemm{A: x.View(), W: linear(2, 2), C: y.View(), Rows: 1, Columns: Span{1, 3}},
		"conv1d: W: want pass.ConvShape, given param":                  Conv1D{X: x.View(), W: linear(2, 2), Y: y.View()},
		"map: Epilogue: want one that is not in place, given residual": Map{X: x.View(), Y: y.View(), Rows: 1, Cols: 1, Epilogue: Residual(2)},
		"map: Batch: want at least 0, given -2":                        Map{X: x.View(), Y: y.View(), Batch: -2},
		"copy: FromRow: want rows 5 to 7 within 6":                     Copy{From: x.View(), To: y.View(), Rows: 2, Cols: 1, FromRow: Const(5), FromRows: 6},
		"copy: ToRows: want at least 2 rows, given 0":                  Copy{From: x.View(), To: y.View(), Rows: 2, Cols: 1, ToRow: IndexIn(u.View())},
		"copy: FromRow: want type U32, given F32":                      Copy{From: x.View(), To: y.View(), Rows: 1, Cols: 1, FromRow: IndexIn(x.View()), FromRows: 2},
		"copy: To: want type F32, given U32":                           Copy{From: x.View(), To: u.View(), Rows: 1, Cols: 1},
		"fill: Value, Word":                                            Fill{To: u.View(), Rows: 1, Cols: 1, Value: 1},
		"op: want an op, given nil":                                    nil,
	} {
		_, err := Check(op)
		require.ErrorIs(t, err, ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
}

func TestEpilogueNames(t *testing.T) {
	for _, e := range []Epilogue{None, SiLU, ReLU, Leaky(0.01), Residual(0.5), GELU, GELUResidual, Tanh, Sigmoid} {
		got, err := ParseEpilogue(epilogueNames[e.Kind()], e.Alpha())
		require.NoError(t, err)
		require.Equal(t, e, got)
	}
	require.Equal(t, "leaky(0.01)", Leaky(0.01).String())
	_, err := ParseEpilogue("swish", 0)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = ParseEpilogue("silu", 2)
	require.ErrorIs(t, err, ErrInvalid)
}

func TestWeightShapes(t *testing.T) {
	w := func(shape ...int) Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return Float32s("w", make([]float32, n), shape...)
	}
	s, err := LinearWeights{Parts: []Tensor{w(2, 3), w(4, 3)}, Bias: make([]float32, 6), Dual: make([]float32, 5)}.Shape()
	require.NoError(t, err)
	require.Equal(t, LinearShape{N: 6, K: 3, Type: F32, Bias: true, Dual: 5}, s)
	require.Equal(t, 11, s.(LinearShape).Columns())
	s, err = ConvWeights{Weight: w(2, 3, 4)}.Shape()
	require.NoError(t, err)
	require.Equal(t, ConvShape{Out: 2, In: 3, Kernel: 4, Type: F32}, s)
	cell := func(in int) LSTMCell { return LSTMCell{Input: w(8, in), Hidden: w(8, 2), Bias: make([]float32, 8)} }
	s, err = LSTMWeights{Layers: [][]LSTMCell{{cell(3), cell(3)}, {cell(4), cell(4)}}}.Shape()
	require.NoError(t, err)
	require.Equal(t, LSTMShape{In: 3, Hidden: 2, Layers: 2, Directions: 2}, s)

	for says, bad := range map[string]Weights{
		"want at least one part":                                  LinearWeights{},
		"want [n][k] with n, k ≥ 1, given [2]":                    LinearWeights{Parts: []Tensor{w(2)}},
		"want [n][k] with n, k ≥ 1, given [2 0]":                  LinearWeights{Parts: []Tensor{w(2, 0)}},
		"part 1: want F32 with k = 3":                             LinearWeights{Parts: []Tensor{w(2, 3), w(2, 4)}},
		"bias: want 2 values, given 3":                            LinearWeights{Parts: []Tensor{w(2, 3)}, Bias: make([]float32, 3)},
		"dual: want at most n = 2 values":                         LinearWeights{Parts: []Tensor{w(2, 3)}, Dual: make([]float32, 3)},
		"want [out][in][kernel], each ≥ 1, given [2 3]":           ConvWeights{Weight: w(2, 3)},
		"bias: want 2 values, given 1":                            ConvWeights{Weight: w(2, 3, 4), Bias: make([]float32, 1)},
		"want at least one layer":                                 LSTMWeights{},
		"layer 1: want 1 directions, given 2":                     LSTMWeights{Layers: [][]LSTMCell{{cell(3)}, {cell(2), cell(2)}}},
		"layer 1, direction 0: input weights: want [8 2]":         LSTMWeights{Layers: [][]LSTMCell{{cell(3)}, {cell(3)}}},
		"layer 0, direction 0: hidden weights: want [8 2]":        LSTMWeights{Layers: [][]LSTMCell{{{Input: w(8, 3), Hidden: w(7, 2)}}}},
		"layer 0, direction 0: bias: want 8 values, given 1":      LSTMWeights{Layers: [][]LSTMCell{{{Input: w(8, 3), Hidden: w(8, 2), Bias: make([]float32, 1)}}}},
		`layer 0, direction 0: "w": want two axes`:                LSTMWeights{Layers: [][]LSTMCell{{{Input: w(8), Hidden: w(8, 2)}}}},
		`conv weights "": pass: tensor "": type DType(0): want F`: ConvWeights{},
	} {
		_, err := bad.Shape()
		require.ErrorIs(t, err, ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
}
