package passtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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
	Config{}.fuzz(t, seed, devices...)
}

func (c Config) fuzz(t testing.TB, seed uint64, devices ...pass.Device) {
	t.Helper()
	for _, dev := range devices {
		info := dev.Info()
		f := &fuzzer{TB: t, what: fmt.Sprintf("seed %d on %s, %s", seed, info.Backend, info.API), dev: dev, seed: seed, bySize: c.BySize}
		f.run()
	}
}

// fuzzFor fuzzes with seeds that follow each other for TANDEM_FUZZ_SECONDS, or as long as
// is usual, and logs the next seed. It stops at the first seed that fails.
func (c Config) fuzzFor(t testing.TB, first uint64, usual time.Duration, devices ...pass.Device) {
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
		c.fuzz(t, seed, devices...)
	}
	t.Logf("fuzzed %d recordings from seed %d on", seed-first, first)
}

// randomRecordings is a part of the suite.
func randomRecordings(t testing.TB, s *suite) {
	dev := s.open(t)
	for seed := range uint64(20) {
		s.fuzz(t, seed, dev)
	}
	s.fuzzFor(t, 1000, 2*time.Second, dev)
}

// A fuzzer is one random recording on one device.
type fuzzer struct {
	testing.TB
	what    string
	dev     pass.Device
	seed    uint64
	random  *rand.Rand
	math    pass.Math
	rounds  int  // how often the recording runs
	bySize  bool // parts may be off in their last bits
	steps   []*fuzzStep
	values  []*fuzzValue
	numbers []*fuzzNumbers // for the step that is planned next
}

// A fuzzValue is a tensor that lies in a buffer of its own.
type fuzzValue struct {
	typ               pass.DType
	batch, rows, cols int
	view              pass.View // without a buffer
	length            int       // of the buffer
	input             []uint32  // of the whole buffer; nil: made by a step
	held              []uint32  // what state holds before the first run; nil: no state
}

// A fuzzStep is an op from values to values.
type fuzzStep struct {
	c       cases.Case // its inputs get their words from the device
	inputs  map[string]*fuzzValue
	outs    []*fuzzValue // by c.Outputs
	before  []fuzzBefore
	numbers []*fuzzNumbers
	param   map[string]pass.Param
	caches  map[string]pass.Cache
	// first, if not nil, records what comes before the op.
	first func(r *fuzzRecord)
	// known, if not nil, adds to the case what first did.
	known func(c *cases.Case, words func(*fuzzValue) []uint32)
}

// A fuzzBefore is what lies where an output comes to lie, and the argument that it is.
type fuzzBefore struct {
	argument string
	out      *fuzzValue
	value    *fuzzValue // copied to out; or, if out is state, a copy of out
}

func (f *fuzzer) n(most int) int { return 1 + f.random.IntN(most) }

// value makes a value of a shape, with a random layout.
func (f *fuzzer) value(t pass.DType, batch, rows, cols int) *fuzzValue {
	v := &fuzzValue{typ: t, batch: batch, rows: rows, cols: cols}
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

// pick returns an earlier value of type F32.
func (f *fuzzer) pick() *fuzzValue {
	for {
		if v := f.values[f.random.IntN(len(f.values))]; v.typ == pass.F32 {
			return v
		}
	}
}

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
	v := f.value(pass.F32, batch, rows, cols)
	data := cases.Recipe(fmt.Sprintf("fuzz %d.%d", f.seed, len(f.values)), 1, batch*rows*cols, scale, offset)
	v.input = v.scatter(hostWords(data), math.Float32bits(nan32))
	f.values = append(f.values, v)
	return v
}

// words makes an input of words less than most, with larger ones around them.
func (f *fuzzer) words(batch, rows, most int) *fuzzValue {
	v := f.value(pass.U32, batch, rows, 1)
	data := make([]uint32, batch*rows)
	for i := range data {
		data[i] = uint32(f.random.IntN(most))
	}
	v.input = v.scatter(data, farWord)
	f.values = append(f.values, v)
	return v
}

// farWord leads beyond everything, as an index and as an id.
const farWord = 0xFFFFFFFE

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

// scatter returns the words of a buffer with the given elements and others around them.
func (v *fuzzValue) scatter(dense []uint32, around uint32) []uint32 {
	words := slices.Repeat([]uint32{around}, v.length)
	v.each(func(i, at int) { words[at] = dense[i] })
	return words
}

// tensor returns the elements as an argument of a case.
func (v *fuzzValue) tensor(name string, dense []uint32) cases.Tensor {
	return cases.Tensor{Name: name, Type: v.typ, Shape: []int{v.batch, v.rows, v.cols}, Words: dense}
}

// add plans a step with one output. The case's op has its sizes; params are loaded now.
func (f *fuzzer) add(c cases.Case, inputs map[string]*fuzzValue, output string, batch, rows, cols int) *fuzzStep {
	return f.addAll(c, inputs, []string{output}, f.value(pass.F32, batch, rows, cols))
}

// addAll plans a step with outputs of the given names.
func (f *fuzzer) addAll(c cases.Case, inputs map[string]*fuzzValue, names []string, outs ...*fuzzValue) *fuzzStep {
	c.Name = fmt.Sprintf("step %d: %s to %dx%dx%d", len(f.steps), c.Op.Name(), outs[0].batch, outs[0].rows, outs[0].cols)
	c.Outputs = names
	c = c.In(f.math)
	s := &fuzzStep{inputs: inputs, outs: outs, numbers: f.numbers}
	for _, n := range s.numbers {
		c.Inputs = append(c.Inputs, n.tensor())
	}
	s.c, s.param, f.numbers = c, loaded(f, f.dev, c), nil
	f.steps = append(f.steps, s)
	f.values = append(f.values, outs...)
	return s
}

// over lets a step begin with a copy of a value where an output comes to lie, which the op
// has as the argument of the given name, be it the output itself or an input in the same
// view.
func (s *fuzzStep) over(output int, before *fuzzValue, argument string) {
	if name := s.c.Outputs[output]; name != argument {
		if s.c.Same == nil {
			s.c.Same = map[string]string{}
		}
		s.c.Same[name] = argument
	}
	s.before = append(s.before, fuzzBefore{argument, s.outs[output], before})
}

// hold makes state of an output that is updated in place: it holds what the given input
// does before the first run, and from then on what the run before left there.
func (s *fuzzStep) hold(output int, before *fuzzValue, argument string) {
	out := s.outs[output]
	out.held = out.scatter(before.gather(before.input), fuzzFiller)
	copied := *out
	copied.held = nil
	s.over(output, &copied, argument)
}
