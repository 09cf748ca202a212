package pass

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func made(s ParamShape) Param {
	lastID++
	return MakeParam(Ref{Device: 1, ID: lastID, Generation: 1}, s)
}

func TestPartsOfTheVocabularyCoverTheWhole(t *testing.T) {
	in, ids := buffer(F32, 100_000), buffer(U32, 1000)
	x := View{in, 7, 60, 2000}
	out := func() View { return View{buffer(F32, 100_000), 11, 80, 2000} }
	words := func() View { return View{buffer(U32, 100_000), 3, 5, 200} }
	rope, norm := made(RopeShape{100, 8}), made(NormShape{24, true})
	state := func() View { return View{Buffer: buffer(U32, 100), Offset: 5, RowStride: 2} }
	for _, op := range []Op{
		LayerNorm{X: x, W: norm, Y: out(), Batch: 3, Rows: 5, Cols: 24, Rotated: out(), Table: rope, Heads: 3, Pos: Const(4)},
		LayerNorm{X: x, W: norm, Y: out(), Batch: 3, Rows: 5, Cols: 24, Rotated: out(), Table: rope, Heads: 2, Pos: IndexEach(ids.At(4))},
		GroupNorm{X: x, W: norm, Y: out(), Batch: 3, Rows: 5, Cols: 24, Lengths: Fixed(1, 5, 0)},
		PoolNorm{X: x, W: norm, Y: out(), Batch: 3, Rows: 11, Cols: 24, Pool: 3, Abs: true, Lengths: ItemsIn(ids.View())},
		L2Norm{X: x, Y: out(), Batch: 3, Rows: 5, Cols: 24},
		Softmax{X: x, Y: out(), Batch: 3, Rows: 5, Cols: 24},
		LogSoftmax{X: x, Y: out(), Batch: 3, Rows: 5, Cols: 24},
		Argmax{X: x, IDs: words(), Batch: 3, Rows: 5, Cols: 24},
		Rope{X: out(), Table: rope, Batch: 3, Rows: 5, Heads: 4, HeadDim: 12, Pos: Const(7)},
		Add{A: x, B: x, Y: out(), Batch: 3, Rows: 5, Cols: 9},
		Add{A: x, B: in.View(), Y: out(), Batch: 3, Rows: 5, Cols: 9, OverBatch: true, OverRows: true},
		Scale{X: x, Y: out(), Batch: 3, Rows: 5, Cols: 9, Factor: 2},
		SwiGLU{X: x, Y: out(), Batch: 3, Rows: 5, Cols: 9},
		GLU{X: x, Y: out(), Batch: 3, Rows: 5, Cols: 9},
		Embed{IDs: ids.View(), Table: made(LinearShape{N: 9, K: 30, Type: F16}), Positions: made(LinearShape{N: 40, K: 30, Type: F32}), Out: out(), Batch: 3, Rows: 5, Pos: Const(2), IDRow: IndexIn(ids.At(500)), IDRows: 50},
		Attention{Q: x, K: x.At(100), V: x.At(200), O: out(), Batch: 3, Queries: 6, Keys: 9, Heads: 4, HeadDim: 12, Mask: Causal, Lengths: Fixed(6, 1, 0)},
		Attention{Q: x, K: x.At(100), V: x.At(200), O: out(), Q2: x, Positions: in.View(), Batch: 3, Queries: 6, Keys: 6, Heads: 4, HeadDim: 12},
		Conv1D{X: x, W: made(ConvShape{Out: 6, In: 4, Kernel: 3, Type: F32}), Y: out(), Batch: 3, In: 29, Abs: true, Pool: 3},
		ConvGLU{X: x, W: made(ConvGLUShape{Channels: 20, Kernel: 5}), Y: out(), Batch: 3, Rows: 12},
		Conv2D{X: x, W: made(Conv2DShape{Out: 8, In: 6, Size: 3, Type: F32}), Residual: x, Y: out(), Batch: 3, Height: 7, Width: 4, Stride: 2},
		DepthwiseConv2D{X: View{in, 7, 120, 20_000}, W: made(DepthwiseShape{Channels: 6}), Y: View{buffer(F32, 100_000), 11, 90, 20_000}, Batch: 3, Time: 19, Frequency: 13},
		DepthwiseConv2D{X: View{in, 7, 120, 20_000}, W: made(DepthwiseShape{Channels: 6, First: true}), Y: View{buffer(F32, 100_000), 11, 90, 20_000}, Batch: 3, Time: 19, Frequency: 13},
		StatsPool{X: x, Masks: x, Y: View{buffer(F32, 100_000), 11, 90, 2000}, Batch: 3, Height: 4, Width: 5, Channels: 6, Count: 7, Frames: 9},
		Permute{X: View{in, 7, 60, 2000}, Y: View{buffer(F32, 100_000), 11, 60, 2000}, Dims: [4]int{3, 4, 5, 6}, Order: [4]int{0, 3, 1, 2}},
		Copy{From: x, To: out(), Batch: 3, Rows: 5, Cols: 6, FromRow: IndexEach(ids.At(2)).Plus(3), FromRows: 9, ToRow: Const(2)},
		Advance{Index: state(), By: 1, IDs: words(), IDRows: 9, Stop: []uint32{3}, Done: state(), Batch: 3},
		LogMel{X: View{in, 7, 0, 5000}, W: made(MelShape{Frame: 400, FFT: 512, Hop: 160, Mels: 40}), Y: out(), Batch: 3, Samples: 3000},
	} {
		whole, err := Check(op)
		require.NoError(t, err, op.Name())
		again, err := Check(whole.Op)
		require.NoError(t, err, op.Name())
		require.Equal(t, whole, again, "defaults are explicit")
		for _, cut := range whole.Op.Cuts() {
			var flop float64
			written, want := map[[2]int]int{}, map[[2]int]int{}
			count(want, whole)
			for from := 0; from < cut.Extent; from += 2 {
				part, err := Part(whole, cut.Axis, from, min(from+2, cut.Extent))
				require.NoError(t, err, "%s along %v", op.Name(), cut.Axis)
				flop += part.Cost.FLOP
				count(written, part)
			}
			require.InDelta(t, whole.Cost.FLOP, flop, 1e-3+whole.Cost.FLOP*1e-12, "%s along %v", op.Name(), cut.Axis)
			if _, ok := op.(Argmax); ok && cut.Axis == AxisRows {
				for key := range written {
					written[key] = 1 // a part declares the rows before its own too
				}
			}
			require.Equal(t, want, written, "%s along %v", op.Name(), cut.Axis)
		}
	}
}

func TestVocabularyMistakesAreNamed(t *testing.T) {
	f, g, u := buffer(F32, 10_000), buffer(F32, 10_000), buffer(U32, 1000)
	rope := made(RopeShape{10, 8})
	cache := MakeCache(Ref{Device: 1, Session: 1, ID: 1, Generation: 1}, CacheConfig{Heads: 2, HeadDim: 8, Capacity: 10, Batch: 2, Type: F32})
	depthwise := made(DepthwiseShape{Channels: 2})
	for says, op := range map[string]Op{
		"layernorm: W: want 8 channels, given 4":                         LayerNorm{X: f.View(), W: made(NormShape{4, true}), Y: g.View(), Rows: 1, Cols: 8},
		"layernorm: Eps: want at least 0":                                LayerNorm{X: f.View(), W: made(NormShape{8, true}), Y: g.View(), Rows: 1, Cols: 8, Eps: float32(math.NaN())},
		"layernorm: Pos: want 3 rows from 8 on within 10":                LayerNorm{X: f.View(), W: made(NormShape{8, true}), Y: g.View(), Rows: 3, Cols: 8, Rotated: buffer(F32, 100).View(), Table: rope, Heads: 1, Pos: Const(8)},
		"layernorm: Heads: want heads of at least the 8":                 LayerNorm{X: f.View(), W: made(NormShape{8, true}), Y: g.View(), Rows: 3, Cols: 8, Rotated: buffer(F32, 100).View(), Table: rope, Heads: 2},
		"poolnorm: Epilogue: want none or leaky, given relu":             PoolNorm{X: f.View(), W: made(NormShape{8, true}), Y: g.View(), Rows: 1, Cols: 8, Epilogue: ReLU},
		"softmax: Cols: want at least 1, given 0":                        Softmax{X: f.View(), Y: g.View(), Rows: 1},
		"softmax: X and Y: want different buffers":                       Softmax{X: f.View(), Y: f.View(), Rows: 1, Cols: 4},
		"argmax: IDs: want type U32, given F32":                          Argmax{X: f.View(), IDs: g.View(), Rows: 1, Cols: 4},
		"argmax: IDRows: want at least 2 rows, given 1":                  Argmax{X: f.View(), IDs: u.View(), Rows: 2, Cols: 4, ToRow: IndexIn(u.View()), IDRows: 1},
		"rope: HeadDim: want at least 8, given 4":                        Rope{X: f.View(), Table: rope, Rows: 1, Heads: 1, HeadDim: 4},
		"rope: Pos: want 2 rows from 9 on within 10":                     Rope{X: f.View(), Table: rope, Rows: 2, Heads: 1, HeadDim: 8, Pos: Const(9)},
		"attention: HeadDim: want a multiple of 4 from 4 to 256":         Attention{Q: f.View(), K: f.View(), V: f.View(), O: g.View(), Queries: 1, Keys: 1, Heads: 1, HeadDim: 6},
		"attention: Queries: want as many as the 3 keys":                 Attention{Q: f.View(), K: f.View(), V: f.View(), O: g.View(), Q2: f.View(), Positions: f.View(), Queries: 2, Keys: 3, Heads: 1, HeadDim: 8},
		"attention: Mask: want none, causal or a band":                   Attention{Q: f.View(), K: f.View(), V: f.View(), O: g.View(), Queries: 2, Keys: 3, Heads: 1, HeadDim: 8, Mask: Band(-1, 2)},
		"attention: KeyLengths: item 0: want 0 to 3, given 4":            Attention{Q: f.View(), K: f.View(), V: f.View(), O: g.View(), Queries: 2, Keys: 3, Heads: 1, HeadDim: 8, KeyLengths: Fixed(4)},
		"append: Cache: want a cache, given none":                        Append{K: f.View(), V: g.View(), Rows: 1},
		"append: At: want 3 rows from 8 on within 10":                    Append{K: f.View(), V: g.View(), Cache: cache, Rows: 3, At: Const(8)},
		"append: Cache: want room for 3 items, given 2":                  Append{K: f.View(), V: g.View(), Cache: cache, Rows: 1, Batch: 3},
		"attend: Keys: want 0 rows from 11 on within 10":                 Attend{Q: f.View(), O: g.View(), Cache: cache, Queries: 1, Keys: Const(11)},
		"conv1d: Epilogue: want one that is not in place with Abs":       Conv1D{X: f.View(), W: made(ConvShape{Out: 1, In: 1, Kernel: 3, Type: F32}), Y: g.View(), In: 9, Pool: 2, Epilogue: Residual(1)},
		"conv2d: Stride: want 1 or 2, given 3":                           Conv2D{X: f.View(), W: made(Conv2DShape{Out: 1, In: 1, Size: 3, Type: F32}), Y: g.View(), Height: 4, Width: 4, Stride: 3},
		"depthwiseconv2d: Held: want rows 3 to 8 for output rows 2 to 4": DepthwiseConv2D{X: f.View(), W: depthwise, Y: g.View(), Time: 20, Frequency: 4, Held: Span{4, 20}, Out: Span{2, 4}},
		"logmel: Samples: want more than the 200 to reflect, given 150":  LogMel{X: f.View(), W: made(MelShape{Frame: 400, FFT: 400, Hop: 160, Mels: 8, PadLeft: 200, PadRight: 200, Padding: PadReflect}), Y: g.View(), Samples: 150},
		"statspool: Width: want at least 1, given 0":                     StatsPool{X: f.View(), Masks: f.View(), Y: g.View(), Frames: 1},
		"permute: Order: want a permutation":                             Permute{X: f.View(), Y: g.View(), Order: [4]int{0, 1, 1, 2}},
		"advance: Stop: want IDs and Done":                               Advance{Index: u.View(), Stop: []uint32{1}},
		"embed: Positions: want rows of 4":                               Embed{IDs: u.View(), Table: made(LinearShape{N: 4, K: 4, Type: F32}), Positions: made(LinearShape{N: 4, K: 5, Type: F32}), Out: f.View(), Rows: 1},
		"embed: Table: want no bias":                                     Embed{IDs: u.View(), Table: made(LinearShape{N: 4, K: 4, Type: F32, Bias: true}), Out: f.View(), Rows: 1},
		"swiglu: Cols: want a product that fits an int":                  SwiGLU{X: f.View(), Y: g.View(), Rows: 1, Cols: math.MaxInt},
	} {
		_, err := Check(op)
		require.ErrorIs(t, err, ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
}

func TestInPlaceForms(t *testing.T) {
	f, g := buffer(F32, 1000).View(), buffer(F32, 1000)
	norm := made(NormShape{8, true})
	for _, op := range []Op{
		LayerNorm{X: f, W: norm, Y: f, Rows: 2, Cols: 8},
		GroupNorm{X: f, W: norm, Y: f, Rows: 2, Cols: 8},
		Add{A: f, B: g.View(), Y: f, Rows: 2, Cols: 8},
		Scale{X: f, Y: f, Rows: 2, Cols: 8},
		SwiGLU{X: f, Y: f.Rows(16), Batch: 2, Rows: 2, Cols: 8},
		GLU{X: f.Rows(20), Y: f.Rows(20), Batch: 2, Rows: 2, Cols: 8},
	} {
		_, err := Check(op)
		require.NoError(t, err, op.Name())
	}
	for _, op := range []Op{
		PoolNorm{X: f, W: norm, Y: f, Rows: 2, Cols: 8},
		L2Norm{X: f, Y: f, Rows: 2, Cols: 8},
		Add{A: g.View(), B: f, Y: f, Rows: 2, Cols: 8},
		SwiGLU{X: f, Y: f, Rows: 2, Cols: 8}, // dense rows of Y do not lie where those of X do
		GLU{X: f, Y: f.At(8).Rows(16), Rows: 2, Cols: 8},
	} {
		_, err := Check(op)
		require.ErrorContains(t, err, "want different buffers", op.Name())
	}
}

func TestMelFrames(t *testing.T) {
	whisper := MelShape{Frame: 400, Hop: 160, PadLeft: 200, PadRight: 200, DropLast: true}
	require.Equal(t, 3000, whisper.Frames(480_000))
	parakeet := MelShape{Frame: 400, Hop: 160, PadLeft: 200, PadRight: 200}
	require.Equal(t, 1101, parakeet.Frames(176_000))
	kaldi := MelShape{Frame: 400, Hop: 160}
	require.Equal(t, 998, kaldi.Frames(160_000))
	require.Equal(t, 0, kaldi.Frames(399))
	require.Equal(t, 0, parakeet.Frames(0))
}

func TestRopeTable(t *testing.T) {
	w := RopeWeights{Positions: 5000, Rot: 4, Base: 10000}
	row := make([]float32, 4)
	w.Row(row, 3000)
	require.Equal(t, []float32{float32(math.Cos(3000)), float32(math.Cos(30)), float32(math.Sin(3000)), float32(math.Sin(30))}, row)
	for _, bad := range []RopeWeights{{Positions: 0, Rot: 2, Base: 1}, {Positions: 1, Rot: 3, Base: 1}, {Positions: 1, Rot: 2}, {Positions: 1, Rot: 2, Base: math.Inf(1)}} {
		_, err := bad.Shape()
		require.ErrorIs(t, err, ErrInvalid)
	}
}
