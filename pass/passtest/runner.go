package passtest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A way is how a case runs: where its buffers are, and in how many parts.
type way struct {
	layout cases.Layout
	temps  bool // temporaries and inputs, else buffers of the session
	parts  bool // in the smallest parts that the op's cuts allow
	twice  bool // two runs give the same bits
	math   pass.Math
}

// String names the way for error messages.
func (w way) String() string {
	s := fmt.Sprintf("%v, %v", w.math, w.layout)
	if w.temps {
		s += ", temporaries"
	}
	if w.parts {
		s += ", parts"
	}
	return s
}

// words of every buffer after a run, by the names of the placed buffers.
type words map[string][]uint32

// loaded brings the weights of a case to a device.
func loaded(t testing.TB, dev pass.Device, c cases.Case) map[string]pass.Param {
	t.Helper()
	params := map[string]pass.Param{}
	for _, p := range c.Params {
		h, err := dev.Load(context.Background(), p.Weights)
		ok(t, err, "load "+p.Field)
		params[p.Field] = h
	}
	return params
}

// execute runs a placed case and returns what its buffers hold afterwards.
func execute(t testing.TB, ses pass.Session, p *cases.Placed, params map[string]pass.Param, w way) words {
	t.Helper()
	if w.temps {
		return executeTemps(t, ses, p, params, w)
	}
	ctx := context.Background()
	kept := newCaches(t, ses, p)
	buffers := map[string]pass.Buffer{}
	for _, b := range p.Buffers {
		h, err := ses.Alloc(b.Type, len(b.Words))
		ok(t, err, "alloc "+b.Name)
		buffers[b.Name] = h
	}
	rec, err := ses.Record(ctx, pass.RecordOptions{Label: p.Case.Name, Math: w.math}, func(r pass.Pass) {
		record(t, r, p, buffers, params, kept.handles, w.parts)
	})
	ok(t, err, "record")
	once := func() words {
		kept.fill(t)
		for _, b := range p.Buffers {
			ok(t, ses.Write(ctx, buffers[b.Name].View(), hostData(b.Type, b.Words)), "write "+b.Name)
		}
		run, err := rec.Run(ctx)
		ok(t, err, "run")
		run.Close()
		after := words{}
		for _, b := range p.Buffers {
			data := hostData(b.Type, make([]uint32, len(b.Words)))
			ok(t, ses.Read(ctx, buffers[b.Name].View(), data), "read "+b.Name)
			after[b.Name] = hostWords(data)
		}
		kept.probe(t, after)
		return after
	}
	after := once()
	if w.twice {
		sameBits(t, "second run", once(), after)
	}
	ok(t, rec.Close(), "close the recording")
	kept.free(t, ses)
	for name, b := range buffers {
		ok(t, ses.Free(b), "free "+name)
	}
	return after
}

// executeTemps is execute on inputs and temporaries; those that are written are filled
// by copies first.
func executeTemps(t testing.TB, ses pass.Session, p *cases.Placed, params map[string]pass.Param, w way) words {
	t.Helper()
	ctx := context.Background()
	kept := newCaches(t, ses, p)
	buffers := map[string]pass.Buffer{}
	outputs := map[string]pass.Output{}
	var binds []pass.Bind
	rec, err := ses.Record(ctx, pass.RecordOptions{Label: p.Case.Name, Math: w.math}, func(r pass.Pass) {
		for _, b := range p.Buffers {
			n := len(b.Words)
			in := r.Input(b.Type, n)
			binds = append(binds, bind(in, b.Words))
			buffers[b.Name] = in.Buffer
			if b.Access&pass.Write != 0 {
				buffers[b.Name] = r.Temp(b.Type, n)
				r.Do(pass.Copy{From: in.View(), To: buffers[b.Name].View(), Rows: 1, Cols: n})
			}
		}
		record(t, r, p, buffers, params, kept.handles, w.parts)
		for _, b := range p.Buffers {
			outputs[b.Name] = r.Output(buffers[b.Name].View(), len(b.Words))
		}
	})
	ok(t, err, "record")
	once := func() words {
		kept.fill(t)
		run, err := rec.Run(ctx, binds...)
		ok(t, err, "run")
		after := words{}
		for _, b := range p.Buffers {
			after[b.Name] = readOutput(t, run, outputs[b.Name])
		}
		run.Close()
		kept.probe(t, after)
		return after
	}
	after := once()
	if w.twice {
		sameBits(t, "second run", once(), after)
	}
	ok(t, rec.Close(), "close the recording")
	kept.free(t, ses)
	return after
}

// record hands the op to the recording, whole or in parts.
func record(t testing.TB, r pass.Pass, p *cases.Placed, buffers map[string]pass.Buffer, params map[string]pass.Param, held map[string]pass.Cache, parts bool) {
	op, err := p.Op(buffers, params, held)
	if err != nil {
		t.Errorf("bind: %v", err)
		return
	}
	if !parts {
		r.Do(op)
		return
	}
	checked, err := pass.Check(op)
	if err != nil {
		t.Errorf("check: %v", err)
		return
	}
	recordParts(t, r, checked, checked.Op.Cuts())
}

// recordParts cuts along the first axis, then each part along the others. Parts may
// come in any order, so the last comes first.
func recordParts(t testing.TB, r pass.Pass, op pass.Checked, cuts []pass.Cut) {
	if len(cuts) == 0 {
		r.Do(op.Op)
		return
	}
	const most = 5 // parts along an axis
	cut := cuts[0]
	step := max(1, (cut.Extent+most-1)/most)
	for from := (cut.Extent - 1) / step * step; from >= 0 && cut.Extent > 0; from -= step {
		part, err := pass.Part(op, cut.Axis, from, min(from+step, cut.Extent))
		if err != nil {
			t.Errorf("part from %d along %v: %v", from, cut.Axis, err)
			return
		}
		recordParts(t, r, part, cuts[1:])
	}
}

func sameBits(t testing.TB, what string, got, want words) {
	t.Helper()
	for name, w := range want {
		for i := range w {
			if got[name][i] != w[i] {
				t.Errorf("%s: %s: element %d of the buffer: other bits: %#08x (%v), want %#08x (%v)", what, name, i,
					got[name][i], math.Float32frombits(got[name][i]), w[i], math.Float32frombits(w[i]))
				break
			}
		}
	}
}

// bind binds words to an input of either type.
func bind(in pass.Input, w []uint32) pass.Bind {
	if in.Type() == pass.U32 {
		return in.U32(w)
	}
	return in.F32(floats(w))
}

// readOutput returns the words of an output of either type.
func readOutput(t testing.TB, run pass.Run, o pass.Output) []uint32 {
	t.Helper()
	if o.Type() == pass.U32 {
		w := make([]uint32, o.Len())
		ok(t, run.ReadU32(o, w), "read")
		return w
	}
	f := make([]float32, o.Len())
	ok(t, run.ReadF32(o, f), "read")
	return hostWords(f)
}

// hostData returns words as Session.Write and Read take them.
func hostData(t pass.DType, w []uint32) any {
	if t == pass.U32 {
		return w
	}
	return floats(w)
}

func hostWords(data any) []uint32 {
	f, isFloat := data.([]float32)
	if !isFloat {
		return data.([]uint32)
	}
	w := make([]uint32, len(f))
	for i, v := range f {
		w[i] = math.Float32bits(v)
	}
	return w
}

func floats(w []uint32) []float32 {
	f := make([]float32, len(w))
	for i, v := range w {
		f[i] = math.Float32frombits(v)
	}
	return f
}
