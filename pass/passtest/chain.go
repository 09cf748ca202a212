package passtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// chained is what a chain of ops may be off: errors add up.
var chained = cases.Tolerance{L2: 1e-4, Max: 1e-4}

// A value is a temporary of a graph, and what it must hold.
type value struct {
	buffer pass.Buffer
	truth  cases.Tensor
}

// A graph records ops on temporaries and computes beside them what must come out.
type graph struct {
	t      testing.TB
	p      pass.Pass
	params map[string]pass.Param
	w      map[string]pass.Weights
}

// do records an op on values and returns its output, in a new temporary or, in place,
// over into.
func (g *graph) do(op pass.Op, inputs map[string]value, into *value, params ...string) value {
	g.t.Helper()
	c := cases.Case{Name: "graph", Op: op}
	views, handles := map[string]pass.View{}, map[string]pass.Param{}
	for name, v := range inputs {
		in := v.truth
		in.Name = name
		c.Inputs = append(c.Inputs, in)
		views[name] = v.buffer.View()
	}
	for i := 0; i < len(params); i += 2 {
		c.Params = append(c.Params, cases.Param{Field: params[i], Weights: g.w[params[i+1]]})
		handles[params[i]] = g.params[params[i+1]]
	}
	out := cases.DefaultOutputs(op)[0]
	c.Outputs = []string{out}
	if into != nil {
		held := into.truth
		held.Name = out
		c.Inputs = append(c.Inputs, held)
	}
	truth, err := c.Truth()
	ok(g.t, err, "truth")
	after := value{truth: truth[0]}
	if into != nil {
		after.buffer = into.buffer
	} else {
		after.buffer = g.p.Temp(truth[0].Type, len(truth[0].Words))
	}
	views[out] = after.buffer.View()
	bound, err := c.Bind(views, handles, nil)
	ok(g.t, err, "bind")
	g.p.Do(bound)
	return after
}

// graphWidth and graphRows are the shape of every value of a graph.
const (
	graphRows  = 13
	graphWidth = 24
)

// newGraph loads the weights that graphs use.
func newGraph(t testing.TB, dev pass.Device) *graph {
	t.Helper()
	g := &graph{t: t, params: map[string]pass.Param{}, w: map[string]pass.Weights{}}
	const n = graphWidth
	matrix := func(name string, shape ...int) pass.Tensor {
		size := 1
		for _, d := range shape {
			size *= d
		}
		return cases.Encode(name, pass.F32, cases.Recipe(name, 1, size, 0.25, 0), shape...)
	}
	g.w["linear"] = pass.LinearWeights{Name: "linear", Parts: []pass.Tensor{matrix("linear", n, n)}, Bias: cases.Recipe("bias", 1, n, 1, 0)}
	g.w["conv"] = pass.ConvWeights{Name: "conv", Weight: matrix("conv", n, n, 3)}
	g.w["lstm"] = pass.LSTMWeights{Name: "lstm", Layers: [][]pass.LSTMCell{{{Input: matrix("ih", 4*n, n), Hidden: matrix("hh", 4*n, n)}}}}
	for name, w := range g.w {
		p, err := dev.Load(background, w)
		ok(t, err, "load "+name)
		g.params[name] = p
	}
	return g
}

// step records one op, chosen by pick, on x, with y as what is written in place.
func (g *graph) step(pick int, x value, y *value) value {
	dims := pass.Map{Rows: graphRows, Cols: graphWidth}
	switch pick {
	case 0:
		return g.do(pass.Gemm{Rows: graphRows, Epilogue: pass.Tanh}, map[string]value{"A": x}, nil, "W", "linear")
	case 1:
		return g.do(pass.Conv1D{In: graphRows, PadLeft: 1, PadRight: 1, Epilogue: pass.Sigmoid}, map[string]value{"X": x}, nil, "W", "conv")
	case 2:
		return g.do(pass.LSTM{Time: graphRows}, map[string]value{"X": x}, nil, "W", "lstm")
	case 3:
		dims.Epilogue = pass.GELU
		return g.do(dims, map[string]value{"X": x}, nil)
	case 4:
		return g.do(pass.Copy{Rows: graphRows, Cols: graphWidth}, map[string]value{"From": x}, &value{g.p.Temp(pass.F32, graphRows*graphWidth), x.truth})
	case 5:
		return g.do(pass.Gemm{Rows: graphRows, Epilogue: pass.Residual(0.25)}, map[string]value{"A": x}, y, "W", "linear")
	case 6: // some rows of x over y
		return g.do(pass.Copy{Rows: 4, Cols: graphWidth, FromRow: pass.Const(2), ToRow: pass.Const(7), FromRows: graphRows, ToRows: graphRows}, map[string]value{"From": x}, y)
	}
	return g.do(pass.Fill{Rows: graphRows, Cols: graphWidth, Value: 0.5}, nil, nil)
}

// graphKinds is how many choices step has; those from graphInPlace on write over y.
const graphKinds, graphInPlace = 8, 5

// longChain is a chain of many ops, each on the output of the one before, whose
// temporaries live so shortly that all of them share little memory; every seventh is
// an output too, and so must survive.
func longChain(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	g := newGraph(t, dev)
	var in pass.Input
	var outs []pass.Output
	var wanted []cases.Tensor
	x := cases.F32("x", cases.Recipe("chain", 1, graphRows*graphWidth, 1, 0), 1, graphRows, graphWidth)
	rec, err := ses.Record(background, pass.RecordOptions{Label: "chain"}, func(p pass.Pass) {
		g.p = p
		in = p.Input(pass.F32, len(x.Words))
		v := value{in.Buffer, x}
		for i := range 60 {
			v = g.step(i%graphInPlace, v, nil)
			if i%7 == 0 {
				outs = append(outs, p.Output(v.buffer.View(), len(x.Words)))
				wanted = append(wanted, v.truth)
			}
		}
	})
	ok(t, err, "record")
	for range 2 {
		run, err := rec.Run(background, in.F32(x.Float32s()))
		ok(t, err, "run")
		for i, o := range outs {
			near(t, fmt.Sprintf("after op %d", 7*i), readOutput(t, run, o), wanted[i])
		}
		run.Close()
	}
}

// randomGraphs records random ops on random earlier values, keeps all of some and only
// parts of others alive to the end, and compares what is left.
func randomGraphs(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	g := newGraph(t, dev)
	graphs := 6
	if s.Full {
		graphs = 60
	}
	for seed := range graphs {
		randomGraph(t, ses, g, uint64(seed))
	}
}

func randomGraph(t testing.TB, ses pass.Session, g *graph, seed uint64) {
	t.Helper()
	const n = graphRows * graphWidth
	random := rand.New(rand.NewPCG(seed, 7))
	var in pass.Input
	var outs []pass.Output
	var kept []value
	x := cases.F32("x", cases.Recipe(fmt.Sprint("graph", seed), 1, n, 1, 0), 1, graphRows, graphWidth)
	rec, err := ses.Record(background, pass.RecordOptions{Label: "graph"}, func(p pass.Pass) {
		g.p = p
		in = p.Input(pass.F32, n)
		values := []value{{in.Buffer, x}}
		for range 30 {
			from := random.IntN(len(values))
			to := random.IntN(len(values))
			pick := random.IntN(graphKinds)
			if pick >= graphInPlace && (to == 0 || to == from) {
				pick = random.IntN(graphInPlace) // an input may not be written, nor what is read
			}
			v := g.step(pick, values[from], &values[to])
			if pick >= graphInPlace && v.buffer == values[to].buffer {
				values[to] = v
			} else if len(values) > 5 { // forget an old one, so that its memory is free
				values[1+random.IntN(len(values)-1)] = v
			} else {
				values = append(values, v)
			}
		}
		kept = values
		for _, v := range kept {
			outs = append(outs, p.Output(v.buffer.View(), n))
		}
	})
	ok(t, err, "record")
	run, err := rec.Run(background, in.F32(x.Float32s()))
	ok(t, err, "run")
	for i, o := range outs {
		near(t, fmt.Sprintf("graph %d, value %d", seed, i), readOutput(t, run, o), kept[i].truth)
	}
	ok(t, rec.Close(), "close")
}

func near(t testing.TB, what string, got []uint32, want cases.Tensor) {
	t.Helper()
	if err := cases.Compare(cases.Tensor{Type: want.Type, Words: got}, want, chained).Err(chained); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// overlappingReads multiplies frames of a signal that overlap: rows that are only read
// may lie closer than they are long.
func overlappingReads(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	const frames, hop = 9, 3
	g := newGraph(t, dev)
	signal := cases.Recipe("signal", 1, (frames-1)*hop+graphWidth, 1, 0)
	var framed []float32
	for f := range frames {
		framed = append(framed, signal[f*hop:f*hop+graphWidth]...)
	}
	c := cases.Case{Name: "frames", Op: pass.Gemm{Rows: frames}, Outputs: []string{"C"},
		Inputs: []cases.Tensor{cases.F32("A", framed, 1, frames, graphWidth)},
		Params: []cases.Param{{Field: "W", Weights: g.w["linear"]}}}
	want, err := c.Want()
	ok(t, err, "truth")
	var in pass.Input
	var out pass.Output
	rec, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, len(signal))
		y := p.Temp(pass.F32, frames*graphWidth)
		p.Do(pass.Gemm{A: in.View().Rows(hop), W: g.params["linear"], C: y.View(), Rows: frames})
		out = p.Output(y.View(), frames*graphWidth)
	})
	ok(t, err, "record")
	run, err := rec.Run(background, in.F32(signal))
	ok(t, err, "run")
	near(t, "frames", readOutput(t, run, out), want[0])
}

// sharedReads reads two arguments from one buffer, one behind the other: what is only
// read may share.
func sharedReads(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	const n = graphWidth
	g := newGraph(t, dev)
	tensor := func(name string, rows int) cases.Tensor {
		return cases.F32(name, cases.Recipe("shared"+name, 1, rows*n, 1, 0), 1, rows, n)
	}
	x, h, c := tensor("X", graphRows), tensor("H0", 1), tensor("C0", 1)
	whole := cases.Case{Name: "shared", Op: pass.LSTM{Time: graphRows}, Outputs: []string{"Y"},
		Inputs: []cases.Tensor{x, h, c}, Params: []cases.Param{{Field: "W", Weights: g.w["lstm"]}}}
	want, err := whole.Want()
	ok(t, err, "truth")
	var in pass.Input
	var out pass.Output
	rec, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, (graphRows+2)*n)
		y := p.Temp(pass.F32, graphRows*n)
		p.Do(pass.LSTM{X: in.View(), H0: in.At(graphRows * n), C0: in.At((graphRows + 1) * n), W: g.params["lstm"], Y: y.View(), Time: graphRows})
		out = p.Output(y.View(), graphRows*n)
	})
	ok(t, err, "record")
	run, err := rec.Run(background, in.F32(slices.Concat(x.Float32s(), h.Float32s(), c.Float32s())))
	ok(t, err, "run")
	near(t, "one buffer for three arguments", readOutput(t, run, out), want[0])
}
