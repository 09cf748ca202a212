package passtest

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

var nan32 = float32(math.NaN())

// step plans one random op on an earlier value.
func (f *fuzzer) step() {
	x := f.pick()
	one := map[string]*fuzzValue{"X": x}
	same := func(op pass.Op, params ...cases.Param) {
		f.add(cases.Case{Op: op, Params: params}, one, "Y", x.batch, x.rows, x.cols)
	}
	inPlace := func(op pass.Op, params ...cases.Param) { // or not
		if f.random.IntN(2) == 0 {
			same(op, params...)
			return
		}
		f.add(cases.Case{Op: op, Params: params}, nil, "Y", x.batch, x.rows, x.cols).inPlace(x, "X")
	}
	switch f.random.IntN(24) {
	case 0, 1:
		f.gemm(x)
	case 2:
		f.conv1D(x)
	case 3:
		f.attention(x)
	case 4:
		same(pass.Map{Batch: x.batch, Rows: x.rows, Cols: x.cols, Epilogue: f.epilogue()})
	case 5:
		a := pass.Add{Batch: x.batch, Rows: x.rows, Cols: x.cols, OverBatch: f.random.IntN(2) == 0, OverRows: f.random.IntN(2) == 0}
		batch, rows := x.batch, x.rows
		if a.OverBatch {
			batch = 1
		}
		if a.OverRows {
			rows = 1
		}
		f.add(cases.Case{Op: a}, map[string]*fuzzValue{"A": x, "B": f.like(x, batch, rows, x.cols)}, "Y", x.batch, x.rows, x.cols)
	case 6:
		inPlace(pass.Scale{Batch: x.batch, Rows: x.rows, Cols: x.cols, Factor: float32(f.random.IntN(7)-3) / 2})
	case 7:
		inPlace(pass.LayerNorm{Batch: x.batch, Rows: x.rows, Cols: x.cols, Eps: 0.01}, f.norm(x.cols))
	case 8:
		inPlace(pass.GroupNorm{Batch: x.batch, Rows: x.rows, Cols: x.cols, Eps: 0.01, Lengths: f.lengths(x)}, f.norm(x.cols))
	case 9:
		pool := f.n(min(3, x.rows))
		op := pass.PoolNorm{Batch: x.batch, Rows: x.rows, Cols: x.cols, Pool: pool, Abs: f.random.IntN(2) == 0, Eps: 0.01, Epilogue: pass.Leaky(0.125)}
		f.add(cases.Case{Op: op, Params: []cases.Param{f.norm(x.cols)}}, one, "Y", x.batch, x.rows/pool, x.cols)
	case 10:
		same(pass.L2Norm{Batch: x.batch, Rows: x.rows, Cols: x.cols})
	case 11:
		same(pass.Softmax{Batch: x.batch, Rows: x.rows, Cols: x.cols})
	case 12:
		same(pass.LogSoftmax{Batch: x.batch, Rows: x.rows, Cols: x.cols})
	case 13:
		f.gate(x)
	case 14:
		f.lstm(x)
	case 15:
		f.permute(x)
	case 16:
		f.conv2D(x)
	case 17:
		f.rope(x)
	case 18:
		f.residual(x)
	case 19:
		f.cached(x)
	case 20:
		f.lookup(x)
	case 21:
		f.stats(x)
	case 22:
		f.copied(x)
	default:
		f.depthwise(x)
	}
}

func (f *fuzzer) epilogue() pass.Epilogue {
	all := []pass.Epilogue{pass.None, pass.SiLU, pass.ReLU, pass.Leaky(0.125), pass.GELU, pass.Tanh, pass.Sigmoid}
	return all[f.random.IntN(len(all))]
}

// lengths returns a random length of each item, or none.
func (f *fuzzer) lengths(x *fuzzValue) pass.Items {
	if f.random.IntN(2) == 0 {
		return pass.Items{}
	}
	n := make([]int, x.batch)
	for b := range n {
		n[b] = f.random.IntN(x.rows + 1)
	}
	return pass.Fixed(n...)
}

// numbers makes weights.
func (f *fuzzer) numbers(what string, n int, scale, offset float32) []float32 {
	return cases.Recipe(fmt.Sprintf("fuzz %d.%d %s", f.seed, len(f.steps), what), 1, n, scale, offset)
}

// matrix makes weights of a type that fits the last axis.
func (f *fuzzer) matrix(what string, taps int, shape ...int) pass.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	types := []pass.DType{pass.F32, pass.F32, pass.F16, pass.BF16}
	return cases.Encode(what, types[f.random.IntN(len(types))], f.numbers(what, n, float32(1.5/math.Sqrt(float64(taps))), 0), shape...)
}

// bias makes a bias, or none.
func (f *fuzzer) bias(n int) []float32 {
	if f.random.IntN(2) == 0 {
		return nil
	}
	return f.numbers("bias", n, 1, 0)
}

func (f *fuzzer) norm(n int) cases.Param {
	return cases.Param{Field: "W", Weights: pass.NormWeights{Gain: f.numbers("gain", n, 0.5, 1), Bias: f.bias(n)}}
}

func (f *fuzzer) gemm(x *fuzzValue) {
	n := f.n(70)
	g := pass.Gemm{Batch: x.batch, Rows: x.rows, Epilogue: f.epilogue()}
	w := pass.LinearWeights{Parts: []pass.Tensor{f.matrix("w", x.cols, n, x.cols)}, Bias: f.bias(n)}
	columns := n
	if f.random.IntN(3) == 0 {
		w.Dual = f.numbers("dual", f.n(n), 1, 0)
		columns += len(w.Dual)
	}
	if f.random.IntN(3) == 0 {
		g.Columns.From = f.random.IntN(columns)
		g.Columns.To = g.Columns.From + f.n(columns-g.Columns.From)
		columns = g.Columns.Len()
	}
	f.add(cases.Case{Op: g, Params: []cases.Param{{Field: "W", Weights: w}}}, map[string]*fuzzValue{"A": x}, "C", x.batch, x.rows, columns)
}

func (f *fuzzer) conv1D(x *fuzzValue) {
	kernel, out := f.n(min(5, x.rows)), f.n(40)
	v := pass.Conv1D{Batch: x.batch, In: x.rows, Stride: f.n(3), PadLeft: f.random.IntN(3), PadRight: f.random.IntN(3), Lengths: f.lengths(x), Epilogue: f.epilogue(), Abs: f.random.IntN(3) == 0}
	steps := (x.rows+v.PadLeft+v.PadRight-kernel)/v.Stride + 1
	if f.random.IntN(3) == 0 {
		v.Pool = f.n(min(3, steps))
		steps /= v.Pool
	}
	if f.random.IntN(3) == 0 {
		v.Out.From = f.random.IntN(steps)
		v.Out.To = v.Out.From + f.n(steps-v.Out.From)
		steps = v.Out.Len()
	}
	w := pass.ConvWeights{Weight: f.matrix("w", x.cols*kernel, out, x.cols, kernel), Bias: f.bias(out)}
	f.add(cases.Case{Op: v, Params: []cases.Param{{Field: "W", Weights: w}}}, map[string]*fuzzValue{"X": x}, "Y", x.batch, steps, out)
}

func (f *fuzzer) attention(x *fuzzValue) {
	dim := 4 * f.n(3)
	heads := x.cols / dim
	if heads == 0 {
		f.gemm(x)
		return
	}
	if heads*dim != x.cols { // of a value of as many columns as heads take
		x = f.fresh(x.batch, x.rows, heads*dim)
	}
	masks := []pass.Mask{{}, pass.Causal, pass.Band(f.random.IntN(9), f.random.IntN(9))}
	keys := f.n(30)
	a := pass.Attention{Batch: x.batch, Queries: x.rows, Heads: heads, HeadDim: dim, Mask: masks[f.random.IntN(len(masks))], Lengths: f.lengths(x)}
	inputs := map[string]*fuzzValue{"Q": x}
	if f.random.IntN(3) == 0 {
		keys = x.rows
		inputs["Q2"] = f.like(x, x.batch, x.rows, x.cols)
		inputs["Positions"] = f.fresh(1, 2*keys-1, x.cols)
	}
	a.Keys = keys
	inputs["K"] = f.like(x, x.batch, keys, x.cols)
	inputs["V"] = f.like(x, x.batch, keys, x.cols)
	a.KeyLengths = f.lengths(inputs["K"])
	f.add(cases.Case{Op: a}, inputs, "O", x.batch, x.rows, x.cols)
}

func (f *fuzzer) gate(x *fuzzValue) {
	if x.cols%2 != 0 {
		x = f.fresh(x.batch, x.rows, 2*x.cols)
	}
	inputs, half := map[string]*fuzzValue{"X": x}, x.cols/2
	switch f.random.IntN(4) {
	case 0:
		f.add(cases.Case{Op: pass.Magnitude{Batch: x.batch, Rows: x.rows, Cols: half}}, inputs, "Y", x.batch, x.rows, half)
	case 1:
		f.add(cases.Case{Op: pass.GLU{Batch: x.batch, Rows: x.rows, Cols: half}}, inputs, "Y", x.batch, x.rows, half)
	case 2:
		kernel := 2*f.random.IntN(4) + 1
		w := pass.ConvGLUWeights{Weight: f.matrix("w", kernel, half, kernel), Bias: f.bias(half), Gain: f.numbers("gain", half, 0.5, 1), Shift: f.numbers("shift", half, 1, 0), Normalised: f.random.IntN(2) == 0, Eps: 0.01}
		f.add(cases.Case{Op: pass.ConvGLU{Batch: x.batch, Rows: x.rows, Lengths: f.lengths(x)}, Params: []cases.Param{{Field: "W", Weights: w}}}, inputs, "Y", x.batch, x.rows, half)
	default:
		f.add(cases.Case{Op: pass.SwiGLU{Batch: x.batch, Rows: x.rows, Cols: half, GateFirst: f.random.IntN(2) == 0}}, inputs, "Y", x.batch, x.rows, half)
	}
}

func (f *fuzzer) lstm(x *fuzzValue) {
	hidden, directions := f.n(20), f.n(2)
	w := pass.LSTMWeights{}
	in := x.cols
	for range f.n(2) {
		var layer []pass.LSTMCell
		for range directions {
			layer = append(layer, pass.LSTMCell{Input: f.matrix("in", in, 4*hidden, in), Hidden: f.matrix("hidden", hidden, 4*hidden, hidden), Bias: f.bias(4 * hidden)})
		}
		w.Layers = append(w.Layers, layer)
		in = directions * hidden
	}
	f.add(cases.Case{Op: pass.LSTM{Batch: x.batch, Time: x.rows, Lengths: f.lengths(x)}, Params: []cases.Param{{Field: "W", Weights: w}}},
		map[string]*fuzzValue{"X": x}, "Y", x.batch, x.rows, in)
}

func (f *fuzzer) permute(x *fuzzValue) {
	p := pass.Permute{Dims: [4]int{x.batch, x.rows, 1, x.cols}}
	for i, axis := range f.random.Perm(4) {
		p.Order[i] = axis
	}
	out := p.Out()
	f.add(cases.Case{Op: p}, map[string]*fuzzValue{"X": x}, "Y", out[0], out[1]*out[2], out[3])
}

// conv2D takes the rows as an image of one line, or of one column.
func (f *fuzzer) conv2D(x *fuzzValue) {
	v := pass.Conv2D{Batch: x.batch, Height: 1, Width: x.rows, Stride: f.n(2), ReLU: f.random.IntN(2) == 0}
	if f.random.IntN(2) == 0 {
		v.Height, v.Width = v.Width, v.Height
	}
	if x.rows%4 == 0 {
		v.Height, v.Width = 4, x.rows/4
	}
	size, out := 1+2*f.random.IntN(2), f.n(30)
	height, width := v.Size()
	inputs := map[string]*fuzzValue{"X": x}
	if f.random.IntN(2) == 0 {
		inputs["Residual"] = f.like(x, x.batch, height*width, out)
	}
	w := pass.Conv2DWeights{Weight: f.matrix("w", x.cols*size*size, out, x.cols, size, size), Bias: f.bias(out)}
	f.add(cases.Case{Op: v, Params: []cases.Param{{Field: "W", Weights: w}}}, inputs, "Y", x.batch, height*width, out)
}

// depthwise takes the columns as frequencies of one channel, or channels of one.
func (f *fuzzer) depthwise(x *fuzzValue) {
	d := pass.DepthwiseConv2D{Batch: x.batch, Time: x.rows, Frequency: x.cols, Lengths: f.lengths(x)}
	channels, time, frequency := 1, (x.rows+1)/2, (x.cols+1)/2
	w := pass.DepthwiseWeights{}
	switch f.random.IntN(3) {
	case 0:
		channels = f.n(12)
		w.First, w.FirstBias = f.matrix("first", 9, channels, 3, 3), f.bias(channels)
		time, frequency = (time+1)/2, (frequency+1)/2
	case 1:
		channels, d.Frequency, frequency = x.cols, 1, 1
	}
	w.Weight, w.Bias = f.matrix("w", 9, channels, 3, 3), f.bias(channels)
	f.add(cases.Case{Op: d, Params: []cases.Param{{Field: "W", Weights: w}}}, map[string]*fuzzValue{"X": x}, "Y", x.batch, time, frequency*channels)
}
