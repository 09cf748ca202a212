package passtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Fuzz makes the random recording of a seed, with random ops, shapes, views and cuts, and
// runs it on each device. Every op is judged by package truth on what the device itself
// gave it. The same recording without most of its outputs, so that temporaries share
// memory, and the same in parts must give the same bits. A fuzz target is
//
//	f.Fuzz(func(t *testing.T, seed uint64) { passtest.Fuzz(t, seed, devices...) })
func Fuzz(t testing.TB, seed uint64, devices ...pass.Device) {
	t.Helper()
	for _, dev := range devices {
		info := dev.Info()
		f := &fuzzer{TB: t, what: fmt.Sprintf("seed %d on %s, %s", seed, info.Backend, info.API), dev: dev, seed: seed}
		f.run()
	}
}

// FuzzFor fuzzes with seeds that follow each other for TANDEM_FUZZ_SECONDS, or as long as
// is usual, and logs the next seed. It stops at the first seed that fails.
func FuzzFor(t testing.TB, first uint64, usual time.Duration, devices ...pass.Device) {
	t.Helper()
	if s := os.Getenv("TANDEM_FUZZ_SECONDS"); s != "" {
		seconds, err := strconv.ParseFloat(s, 64)
		if err != nil || !(seconds >= 0 && seconds <= 1e6) {
			t.Fatalf("TANDEM_FUZZ_SECONDS: want a number of seconds, given %q", s)
		}
		usual = time.Duration(seconds * float64(time.Second))
	}
	seed := first
	for start := time.Now(); seed == first || time.Since(start) < usual && !t.Failed(); seed++ {
		Fuzz(t, seed, devices...)
	}
	t.Logf("fuzzed %d recordings from seed %d on", seed-first, first)
}

// randomRecordings is a part of the suite.
func randomRecordings(t testing.TB, s *suite) {
	dev := s.open(t)
	for seed := range uint64(20) {
		Fuzz(t, seed, dev)
	}
	FuzzFor(t, 1000, 2*time.Second, dev)
}

// A fuzzer is one random recording on one device.
type fuzzer struct {
	testing.TB
	what   string
	dev    pass.Device
	seed   uint64
	random *rand.Rand
	math   pass.Math
	steps  []*fuzzStep
	values []*fuzzValue
}

// A fuzzValue is a tensor that lies in a buffer of its own.
type fuzzValue struct {
	batch, rows, cols int
	view              pass.View // without a buffer
	length            int       // of the buffer
	input             []float32 // of the whole buffer; nil: made by a step
	by                int       // the step
}

// A fuzzStep is an op from values to a value.
type fuzzStep struct {
	c      cases.Case // its inputs get their words from the device
	inputs map[string]*fuzzValue
	out    *fuzzValue
	param  map[string]pass.Param
	caches map[string]pass.Cache
	// first, if not nil, records what comes before the op, and may add views.
	first func(p pass.Pass, at func(*fuzzValue) pass.View, views map[string]pass.View)
	// known, if not nil, adds to the case what first did.
	known func(c *cases.Case, words func(*fuzzValue) []uint32)
}

func (f *fuzzer) n(most int) int { return 1 + f.random.IntN(most) }

// value makes a value of a shape, with a random layout.
func (f *fuzzer) value(batch, rows, cols int) *fuzzValue {
	v := &fuzzValue{batch: batch, rows: rows, cols: cols}
	switch f.random.IntN(3) {
	case 0: // dense
		v.view = pass.View{RowStride: cols, BatchStride: rows * cols}
	case 1: // padded
		v.view = pass.View{Offset: f.random.IntN(9), RowStride: cols + f.random.IntN(6)}
		v.view.BatchStride = rows*v.view.RowStride + f.random.IntN(7)
	default: // items within rows
		v.view = pass.View{Offset: f.random.IntN(9), BatchStride: cols + f.random.IntN(6)}
		v.view.RowStride = batch*v.view.BatchStride + f.random.IntN(5)
	}
	v.length = v.view.Offset + (batch-1)*v.view.BatchStride + (rows-1)*v.view.RowStride + cols + f.random.IntN(4)
	return v
}

// pick returns an earlier value.
func (f *fuzzer) pick() *fuzzValue { return f.values[f.random.IntN(len(f.values))] }

// like returns another value of the same shape, or a new input of it.
func (f *fuzzer) like(v *fuzzValue, batch, rows, cols int) *fuzzValue {
	for range 4 {
		if w := f.pick(); w != v && w.batch == batch && w.rows == rows && w.cols == cols {
			return w
		}
	}
	return f.fresh(batch, rows, cols)
}

// fresh makes an input with NaN around its elements.
func (f *fuzzer) fresh(batch, rows, cols int) *fuzzValue { return f.spread(batch, rows, cols, 2, 0) }

// spread is fresh with values of a scale around an offset.
func (f *fuzzer) spread(batch, rows, cols int, scale, offset float32) *fuzzValue {
	v := f.value(batch, rows, cols)
	v.input = make([]float32, v.length)
	for i := range v.input {
		v.input[i] = nan32
	}
	data := cases.Recipe(fmt.Sprintf("fuzz %d.%d", f.seed, len(f.values)), 1, batch*rows*cols, scale, offset)
	v.each(func(i, at int) { v.input[at] = data[i] })
	f.values = append(f.values, v)
	return v
}

// each calls f with the number and the place of every element.
func (v *fuzzValue) each(f func(i, at int)) {
	i := 0
	for b := range v.batch {
		for r := range v.rows {
			for j := range v.cols {
				f(i, v.view.Offset+b*v.view.BatchStride+r*v.view.RowStride+j)
				i++
			}
		}
	}
}

// gather returns the elements of a buffer's words.
func (v *fuzzValue) gather(words []uint32) []uint32 {
	dense := make([]uint32, 0, v.batch*v.rows*v.cols)
	v.each(func(_, at int) { dense = append(dense, words[at]) })
	return dense
}

// add plans a step. The case's op has its sizes; params are loaded now.
func (f *fuzzer) add(c cases.Case, inputs map[string]*fuzzValue, output string, batch, rows, cols int) *fuzzStep {
	c.Name = fmt.Sprintf("step %d: %s to %dx%dx%d", len(f.steps), c.Op.Name(), batch, rows, cols)
	c.Outputs = []string{output}
	c = c.In(f.math)
	s := &fuzzStep{c: c, inputs: inputs, out: f.value(batch, rows, cols), param: loaded(f, f.dev, c)}
	s.out.by = len(f.steps)
	f.steps = append(f.steps, s)
	f.values = append(f.values, s.out)
	return s
}

// inPlace lets a step begin with a copy of a value where its output comes to lie, which
// the op has as the argument of the given name, be it the output itself or an input in
// the same view.
func (s *fuzzStep) inPlace(before *fuzzValue, name string) {
	output := s.c.Outputs[0]
	if name != output {
		s.c.Same = map[string]string{output: name}
	}
	s.first = func(p pass.Pass, at func(*fuzzValue) pass.View, views map[string]pass.View) {
		views[name] = views[output]
		p.Do(pass.Copy{From: at(before), To: views[name], Batch: before.batch, Rows: before.rows, Cols: before.cols})
	}
	s.known = func(c *cases.Case, words func(*fuzzValue) []uint32) {
		c.Inputs = append(c.Inputs, cases.Tensor{Name: name, Type: pass.F32, Shape: []int{before.batch, before.rows, before.cols}, Words: words(before)})
	}
}

// run makes the recording, runs it in several ways, and compares.
func (f *fuzzer) run() {
	f.Helper()
	f.random = rand.New(rand.NewPCG(f.seed, 11))
	ses := newSession(f, f.dev)
	if f.random.IntN(4) == 0 {
		f.math = pass.Fast
	}
	f.fresh(f.n(3), f.n(20), f.n(40))
	for range 3 + f.random.IntN(8) {
		f.step()
	}
	for _, s := range f.steps {
		s.caches = emptyCaches(f, ses, s.c)
	}
	last := len(f.steps) - 1
	all := f.execute(ses, false, func(int) bool { return true })
	few := f.execute(ses, false, func(i int) bool { return i == last || i%5 == 2 })
	parts := f.execute(ses, true, func(i int) bool { return i == last })
	for i, s := range f.steps {
		f.judge(s, all)
		for how, other := range map[string]map[*fuzzValue][]uint32{"with temporaries that share memory": few, "in parts": parts} {
			if got, ok := other[s.out]; ok {
				f.equal(fmt.Sprintf("%s: %s", f.steps[i].c.Name, how), s.out.gather(got), s.out.gather(all[s.out]))
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

// execute records the steps and returns what the buffers of inputs, and those of the
// steps that are asked for, hold at the end.
func (f *fuzzer) execute(ses pass.Session, parts bool, wanted func(step int) bool) map[*fuzzValue][]uint32 {
	f.Helper()
	buffers := map[*fuzzValue]pass.Buffer{}
	outputs := map[*fuzzValue]pass.Output{}
	var binds []pass.Bind
	rec, err := ses.Record(background, pass.RecordOptions{Label: f.what, Math: f.math}, func(p pass.Pass) {
		for _, v := range f.values {
			if v.input == nil {
				continue
			}
			in := p.Input(pass.F32, v.length)
			binds = append(binds, in.F32(v.input))
			buffers[v], outputs[v] = in.Buffer, p.Output(in.View(), v.length)
		}
		for i, s := range f.steps {
			buffers[s.out] = p.Temp(pass.F32, s.out.length)
			// What lies around the elements is read back too.
			p.Do(pass.Fill{To: buffers[s.out].View(), Rows: 1, Cols: s.out.length, Value: -77})
			f.record(p, s, buffers, parts)
			if wanted(i) {
				outputs[s.out] = p.Output(buffers[s.out].View(), s.out.length)
			}
		}
	})
	ok(f, err, f.what+": record")
	run, err := rec.Run(background, binds...)
	ok(f, err, f.what+": run")
	after := map[*fuzzValue][]uint32{}
	for v, o := range outputs {
		after[v] = readOutput(f, run, o)
	}
	ok(f, rec.Close(), "close the recording")
	return after
}

func (f *fuzzer) record(p pass.Pass, s *fuzzStep, buffers map[*fuzzValue]pass.Buffer, parts bool) {
	at := func(v *fuzzValue) pass.View {
		view := v.view
		view.Buffer = buffers[v]
		return view
	}
	views := map[string]pass.View{s.c.Outputs[0]: at(s.out)}
	for name, v := range s.inputs {
		views[name] = at(v)
	}
	if s.first != nil {
		s.first(p, at, views)
	}
	op, err := s.c.Bind(views, s.param, s.caches)
	ok(f, err, f.what+": bind")
	if !parts {
		p.Do(op)
		return
	}
	checked, err := pass.Check(op)
	ok(f, err, f.what+": "+s.c.Name)
	f.parts(p, checked, checked.Op.Cuts())
}

// parts records an op in random parts along each axis.
func (f *fuzzer) parts(p pass.Pass, op pass.Checked, cuts []pass.Cut) {
	if len(cuts) == 0 {
		p.Do(op.Op)
		return
	}
	cut := cuts[0]
	for from := 0; from < cut.Extent; {
		to := min(cut.Extent, from+f.n(max(1, cut.Extent)))
		part, err := pass.Part(op, cut.Axis, from, to)
		ok(f, err, f.what+": part")
		f.parts(p, part, cuts[1:])
		from = to
	}
}

// judge compares what a step made with what it must make of what it was given.
func (f *fuzzer) judge(s *fuzzStep, all map[*fuzzValue][]uint32) {
	f.Helper()
	for name, v := range s.inputs {
		s.c.Inputs = append(s.c.Inputs, cases.Tensor{Name: name, Type: pass.F32, Shape: []int{v.batch, v.rows, v.cols}, Words: v.gather(all[v])})
	}
	if s.known != nil {
		s.known(&s.c, func(v *fuzzValue) []uint32 { return v.gather(all[v]) })
	}
	want, err := s.c.Want()
	ok(f, err, f.what+": truth")
	got := cases.Tensor{Name: want[0].Name, Type: pass.F32, Words: s.out.gather(all[s.out])}
	report := cases.Compare(got, want[0], s.c.Limits())
	if report.Wrong == 0 && report.Max <= 1e-6 {
		report.L2 = 0 // random sums may cancel, and leave little but their roundings
	}
	if err := report.Err(s.c.Limits()); err != nil {
		f.Errorf("%s: %s: %v", f.what, s.c.Name, err)
	}
	around := append([]uint32(nil), all[s.out]...)
	const filler = 0xC29A0000 // −77
	s.out.each(func(_, at int) { around[at] = filler })
	for i, w := range around {
		if w != filler {
			f.Errorf("%s: %s: element %d of the buffer, outside of the view, was written", f.what, s.c.Name, i)
			return
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
