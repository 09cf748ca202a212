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
		f.update(f.add(cases.Case{Op: op, Params: params}, nil, "Y", x.batch, x.rows, x.cols), 0, x, "X")
	}
	switch f.random.IntN(28) {
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
		f.layerNorm(x)
	case 8:
		inPlace(pass.GroupNorm{Batch: x.batch, Rows: x.rows, Cols: x.cols, Eps: 0.01, Lengths: f.lengths(x)}, f.norm(x.cols))
	case 9:
		pool := f.n(min(3, x.rows))
		op := pass.PoolNorm{Batch: x.batch, Rows: x.rows, Cols: x.cols, Pool: pool, Abs: f.random.IntN(2) == 0, Lengths: f.lengths(x), Eps: 0.01, Epilogue: pass.Leaky(0.125)}
		f.add(cases.Case{Op: op, Params: []cases.Param{f.norm(x.cols)}}, one, "Y", x.batch, x.rows/pool, x.cols)
	case 10:
		same(pass.L2Norm{Batch: x.batch, Rows: x.rows, Cols: x.cols})
	case 11:
		same(pass.Softmax{Batch: x.batch, Rows: x.rows, Cols: x.cols})
	case 12:
		same(pass.LogSoftmax{Batch: x.batch, Rows: x.rows, Cols: x.cols})
	case 13:
		f.gate(x)
	case 14, 15:
		f.lstm(x)
	case 16:
		f.permute(x)
	case 17:
		f.conv2D(x)
	case 18:
		f.rope(x)
	case 19:
		f.residual(x)
	case 20:
		f.cached(x)
	case 21:
		f.decode(x)
	case 22:
		f.lookup(x)
	case 23:
		f.stats(x)
	case 24:
		f.copied(x)
	case 25:
		f.advance(f.counters(f.n(40), 20), 20, f.random.IntN(5))
	case 26:
		f.mel(x.batch)
	default:
		f.depthwise(x)
	}
}

func (f *fuzzer) epilogue() pass.Epilogue {
	all := []pass.Epilogue{pass.None, pass.SiLU, pass.ReLU, pass.Leaky(0.125), pass.GELU, pass.Tanh, pass.Sigmoid}
	return all[f.random.IntN(len(all))]
}

// draw makes numbers of weights.
func (f *fuzzer) draw(what string, n int, scale, offset float32) []float32 {
	return cases.Recipe(fmt.Sprintf("fuzz %d.%d %s", f.seed, len(f.steps), what), 1, n, scale, offset)
}

// matrix makes weights of a type that fits the last axis.
func (f *fuzzer) matrix(what string, taps int, shape ...int) pass.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	types := []pass.DType{pass.F32, pass.F32, pass.F16, pass.BF16}
	if len(shape) == 2 && what == "w" && shape[1]%pass.Q8Block == 0 {
		types = append(types, pass.Q8_0)
	}
	return cases.Encode(what, types[f.random.IntN(len(types))], f.draw(what, n, float32(1.5/math.Sqrt(float64(taps))), 0), shape...)
}

// bias makes a bias, or none.
func (f *fuzzer) bias(n int) []float32 {
	if f.random.IntN(2) == 0 {
		return nil
	}
	return f.draw("bias", n, 1, 0)
}

func (f *fuzzer) norm(n int) cases.Param {
	return cases.Param{Field: "W", Weights: pass.NormWeights{Gain: f.draw("gain", n, 0.5, 1), Bias: f.bias(n)}}
}

func (f *fuzzer) gemm(x *fuzzValue) {
	n := f.n(70)
	g := pass.Gemm{Batch: x.batch, Rows: x.rows, Epilogue: f.epilogue()}
	w := pass.LinearWeights{Parts: []pass.Tensor{f.matrix("w", x.cols, n, x.cols)}, Bias: f.bias(n)}
	columns := n
	if f.random.IntN(3) == 0 {
		w.Dual = f.draw("dual", f.n(n), 1, 0)
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
	v := pass.Conv1D{Batch: x.batch, In: x.rows, Stride: f.n(3), PadLeft: f.random.IntN(3), PadRight: f.random.IntN(3), Epilogue: f.epilogue(), Abs: f.random.IntN(3) == 0}
	if pad := max(v.PadLeft, v.PadRight); pad < x.rows && f.random.IntN(3) == 0 {
		v.Padding = pass.PadReflect
		v.Lengths = f.items("Lengths", x.batch, func(int) int { return f.reflected(x.rows, pad) })
	} else {
		v.Lengths = f.lengths(x)
	}
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

// reflected returns a random length that has what is reflected of it, or 0.
func (f *fuzzer) reflected(most, pad int) int {
	if n := f.random.IntN(most + 1); n > pad {
		return n
	}
	return 0
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
	a.KeyLengths = f.items("KeyLengths", x.batch, func(int) int { return f.random.IntN(keys + 1) })
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
		w := pass.ConvGLUWeights{Weight: f.matrix("w", kernel, half, kernel), Bias: f.bias(half), Gain: f.draw("gain", half, 0.5, 1), Shift: f.draw("shift", half, 1, 0), Normalised: f.random.IntN(2) == 0, Eps: 0.01}
		f.add(cases.Case{Op: pass.ConvGLU{Batch: x.batch, Rows: x.rows, Lengths: f.lengths(x)}, Params: []cases.Param{{Field: "W", Weights: w}}}, inputs, "Y", x.batch, x.rows, half)
	default:
		f.add(cases.Case{Op: pass.SwiGLU{Batch: x.batch, Rows: x.rows, Cols: half, GateFirst: f.random.IntN(2) == 0}}, inputs, "Y", x.batch, x.rows, half)
	}
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

// depthwise takes the columns as frequencies of one channel, or channels of one, and the
// rows as all of an image or a part of it.
func (f *fuzzer) depthwise(x *fuzzValue) {
	d := pass.DepthwiseConv2D{Batch: x.batch, Time: x.rows, Frequency: x.cols}
	channels, frequency, first := 1, (x.cols+1)/2, false
	w := pass.DepthwiseWeights{}
	switch f.random.IntN(3) {
	case 0:
		channels, first, frequency = f.n(12), true, (frequency+1)/2
		w.First, w.FirstBias = f.matrix("first", 9, channels, 3, 3), f.bias(channels)
	case 1:
		channels, d.Frequency, frequency = x.cols, 1, 1
	}
	if f.random.IntN(2) == 0 {
		d.Held.From = f.random.IntN(20)
		d.Held.To = d.Held.From + x.rows
		d.Time = d.Held.To + f.random.IntN(20)
	}
	if d.Out = withinHeld(d, first); d.Out.Len() == 0 {
		d.Held, d.Time = pass.Span{}, x.rows
		d.Out = withinHeld(d, first)
	}
	d.Lengths = f.items("Lengths", x.batch, func(int) int { return f.random.IntN(d.Time + 1) })
	w.Weight, w.Bias = f.matrix("w", 9, channels, 3, 3), f.bias(channels)
	f.add(cases.Case{Op: d, Params: []cases.Param{{Field: "W", Weights: w}}}, map[string]*fuzzValue{"X": x}, "Y", x.batch, d.Out.Len(), frequency*channels)
}

// withinHeld returns the output rows that need no other rows of the image than are held.
func withinHeld(d pass.DepthwiseConv2D, first bool) pass.Span {
	held := d.Held.Resolve(d.Time)
	needs := func(row, rows int) (from, to int) { return max(2*row-1, 0), min(2*row+2, rows) }
	middle := d.Time // rows of the image that the last convolution reads
	if first {
		middle = (middle + 1) / 2
	}
	out := pass.Span{}
	for row := range (middle + 1) / 2 {
		from, to := needs(row, middle)
		if first {
			from, _ = needs(from, d.Time)
			_, to = needs(to-1, d.Time)
		}
		switch {
		case from < held.From || to > held.To:
		case out.Len() == 0:
			out = pass.Span{From: row, To: row + 1}
		default:
			out.To = row + 1
		}
	}
	return out
}
