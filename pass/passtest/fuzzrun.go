package passtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A fuzzRecord is one recording of the steps.
type fuzzRecord struct {
	*fuzzer
	ses     pass.Session
	p       pass.Pass
	parts   bool // every op in random parts
	buffers map[*fuzzValue]pass.Buffer
	outputs map[*fuzzValue]pass.Output
	views   map[string]pass.View // of the step that is recorded
	binds   []pass.Bind
	states  []pass.Buffer
	stated  int // of states, in the recording that is made
	caches  []pass.Cache
}

// fuzzFiller is what lies around the elements of outputs: −77.
const fuzzFiller = 0xC29A0000

// run makes the recording, runs it in several ways, and compares.
func (f *fuzzer) run() {
	f.Helper()
	f.random = rand.New(rand.NewPCG(f.seed, 11))
	ses := newSession(f, f.dev)
	if f.random.IntN(4) == 0 {
		f.math = pass.Fast
	}
	f.rounds = max(1, f.random.IntN(4))
	f.fresh(f.n(3), f.n(20), f.n(40))
	for range 3 + f.random.IntN(8) {
		f.step()
	}
	last := len(f.steps) - 1
	all := f.execute(ses, asOne, func(int) bool { return true })
	few := f.execute(ses, anew, func(i int) bool { return i == last || i%5 == 2 })
	parts := f.execute(ses, inParts, func(i int) bool { return i == last })
	for round := range min(len(all), len(few), len(parts)) {
		for _, s := range f.steps {
			f.judge(s, all, round)
			for i, out := range s.outs {
				for how, other := range map[string]map[*fuzzValue][]uint32{"with temporaries that share memory": few[round], "in parts": parts[round]} {
					if got, ok := other[out]; ok && !(f.bySize && how == "in parts") {
						f.equal(fmt.Sprintf("%s: %s, run %d, %s", s.c.Name, s.c.Outputs[i], round, how), out.gather(got), out.gather(all[round][out]))
					}
				}
			}
		}
	}
	for _, s := range f.steps {
		for _, p := range s.param {
			ok(f, f.dev.Unload(p), "unload")
		}
	}
	ok(f, ses.Close(), "close the session")
}

// How the steps are recorded.
type fuzzWay int

const (
	asOne   fuzzWay = iota // with copies of what state held before
	anew                   // again for each run, after the recording before was closed
	inParts                // every op in random parts
)

// execute records the steps and returns, for each run, what the buffers of inputs, and
// those of the steps that are asked for, hold at the end; as one, what state held before as
// well.
func (f *fuzzer) execute(ses pass.Session, way fuzzWay, wanted func(step int) bool) []map[*fuzzValue][]uint32 {
	f.Helper()
	r := &fuzzRecord{fuzzer: f, ses: ses, parts: way == inParts, buffers: map[*fuzzValue]pass.Buffer{}, outputs: map[*fuzzValue]pass.Output{}}
	for _, s := range f.steps {
		s.caches = emptyCaches(f, ses, s.c)
		for _, h := range s.caches {
			r.caches = append(r.caches, h)
		}
	}
	record := func(p pass.Pass) {
		r.p, r.binds, r.stated = p, nil, 0
		for _, v := range f.values {
			switch {
			case v.input != nil:
				in := p.Input(v.typ, v.length)
				r.binds = append(r.binds, bind(in, v.input))
				r.buffers[v], r.outputs[v] = in.Buffer, p.Output(in.View(), v.length)
			case v.held != nil:
				r.buffers[v] = r.state(v.typ, v.held)
			}
		}
		for i, s := range f.steps {
			r.step(s, way == asOne)
			if wanted(i) {
				for _, out := range s.outs {
					r.outputs[out] = p.Output(r.buffers[out].View(), out.length)
				}
			}
		}
	}
	options := pass.RecordOptions{Label: f.what, Math: f.math}
	rec, err := ses.Record(background, options, record)
	ok(f, err, f.what+": record")
	var runs []map[*fuzzValue][]uint32
	for round := range f.rounds {
		if way == anew && round > 0 {
			ok(f, rec.Close(), "close the recording")
			if round > 1 {
				f.larger(ses, round)
			}
			rec, err = ses.Record(background, options, record)
			ok(f, err, f.what+": record again")
		}
		run, err := rec.Run(background, r.binds...)
		if err != nil {
			f.Errorf("%s: run: %v", f.what, err)
			break
		}
		after := map[*fuzzValue][]uint32{}
		for v, o := range r.outputs {
			after[v] = readOutput(f, run, o)
		}
		run.Close()
		runs = append(runs, after)
	}
	ok(f, rec.Close(), "close the recording")
	for _, b := range r.states {
		ok(f, ses.Free(b), "free state")
	}
	for _, h := range r.caches {
		ok(f, ses.FreeCache(h), "free a cache")
	}
	return runs
}

// larger makes and closes a recording that needs more temporary memory than those before.
func (f *fuzzer) larger(ses pass.Session, times int) {
	most := 0
	for _, v := range f.values {
		most += v.length
	}
	rec, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) {
		x, y := p.Temp(pass.F32, most*times), p.Temp(pass.F32, most*times)
		p.Do(pass.Fill{To: x.View(), Rows: 1, Cols: x.Len()}, pass.Copy{From: x.View(), To: y.View(), Rows: 1, Cols: x.Len()})
	})
	ok(f, err, "record more")
	ok(f, rec.Close(), "close what is larger")
}

// state makes state that holds words, once for all recordings of the steps.
func (r *fuzzRecord) state(t pass.DType, words []uint32) pass.Buffer {
	r.stated++
	if r.stated <= len(r.states) {
		return r.states[r.stated-1]
	}
	b, err := r.ses.Alloc(t, len(words))
	ok(r, err, "alloc")
	ok(r, r.ses.Write(background, b.View(), hostData(t, words)), "write")
	r.states = append(r.states, b)
	return b
}

// at returns where a value lies.
func (r *fuzzRecord) at(v *fuzzValue) pass.View {
	view := v.view
	view.Buffer = r.buffers[v]
	return view
}

// step records a step; with copies, of what state holds before it too.
func (r *fuzzRecord) step(s *fuzzStep, copies bool) {
	r.views = map[string]pass.View{}
	for i, out := range s.outs {
		if out.held == nil {
			r.buffers[out] = r.p.Temp(out.typ, out.length)
			// What lies around the elements is read back too.
			fill := pass.Fill{To: r.buffers[out].View(), Rows: 1, Cols: out.length, Value: -77}
			if out.typ == pass.U32 {
				fill.Value, fill.Word = 0, fuzzFiller
			}
			r.p.Do(fill)
		}
		r.views[s.c.Outputs[i]] = r.at(out)
	}
	for name, v := range s.inputs {
		r.views[name] = r.at(v)
	}
	for _, n := range s.numbers {
		r.views[n.name] = r.place(n)
	}
	for _, b := range s.before {
		v := b.value
		r.views[b.argument] = r.at(b.out)
		switch {
		case b.out.held == nil:
			r.p.Do(pass.Copy{From: r.at(v), To: r.at(b.out), Batch: v.batch, Rows: v.rows, Cols: v.cols})
		case copies:
			r.buffers[v] = r.p.Temp(v.typ, v.length)
			r.p.Do(pass.Copy{From: r.buffers[b.out].View(), To: r.buffers[v].View(), Rows: 1, Cols: v.length})
			r.outputs[v] = r.p.Output(r.buffers[v].View(), v.length)
		}
	}
	if s.first != nil {
		s.first(r)
	}
	op, err := s.c.Bind(r.views, s.param, s.caches)
	ok(r, err, r.what+": bind")
	if !r.parts {
		r.p.Do(op)
		return
	}
	checked, err := pass.Check(op)
	ok(r, err, r.what+": "+s.c.Name)
	r.cut(checked, checked.Op.Cuts())
}

// cut records an op in random parts along each axis.
func (r *fuzzRecord) cut(op pass.Checked, cuts []pass.Cut) {
	if len(cuts) == 0 {
		r.p.Do(op.Op)
		return
	}
	cut := cuts[0]
	for from := 0; from < cut.Extent; {
		to := min(cut.Extent, from+r.n(max(1, cut.Extent)))
		part, err := pass.Part(op, cut.Axis, from, to)
		ok(r, err, r.what+": part")
		r.cut(part, cuts[1:])
		from = to
	}
}

// judge compares what a step made in a run with what it must make of what it was given.
func (f *fuzzer) judge(s *fuzzStep, runs []map[*fuzzValue][]uint32, round int) {
	f.Helper()
	after := runs[round]
	words := func(v *fuzzValue) []uint32 { return v.gather(after[v]) }
	c := s.c
	c.Inputs = nil
	for _, n := range s.numbers {
		t := n.tensor()
		if n.now != nil {
			t.Words = words(n.now)
		}
		c.Inputs = append(c.Inputs, t)
	}
	for name, v := range s.inputs {
		c.Inputs = append(c.Inputs, v.tensor(name, words(v)))
	}
	for _, b := range s.before {
		c.Inputs = append(c.Inputs, b.value.tensor(b.argument, words(b.value)))
		if b.out.held != nil {
			was := b.out.held
			if round > 0 {
				was = runs[round-1][b.out]
			}
			f.equal(fmt.Sprintf("%s: %s before run %d", c.Name, b.argument, round), after[b.value], was)
		}
	}
	if s.known != nil {
		s.known(&c, words)
	}
	wanted, err := c.Want()
	ok(f, err, f.what+": truth")
	for i, out := range s.outs {
		name := c.Outputs[i]
		want := wanted[slices.IndexFunc(wanted, func(t cases.Tensor) bool { return t.Name == name })]
		report := cases.Compare(out.tensor(name, words(out)), want, c.Limits())
		if report.Wrong == 0 && report.Max <= 1e-6 {
			report.L2 = 0 // random sums may cancel, and leave little but their roundings
		}
		if err := report.Err(c.Limits()); err != nil {
			f.Errorf("%s: %s, run %d: %v", f.what, c.Name, round, err)
		}
		around := slices.Clone(after[out])
		out.each(func(_, at int) { around[at] = fuzzFiller })
		if at := slices.IndexFunc(around, func(w uint32) bool { return w != fuzzFiller }); at >= 0 {
			f.Errorf("%s: %s: %s: element %d of the buffer, outside of the view, was written", f.what, c.Name, name, at)
		}
	}
}

func (f *fuzzer) equal(what string, got, want []uint32) {
	f.Helper()
	for i := range want {
		if got[i] != want[i] {
			f.Errorf("%s: %s: element %d has other bits: %#08x, want %#08x", f.what, what, i, got[i], want[i])
			return
		}
	}
}
