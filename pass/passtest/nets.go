package passtest

import (
	"context"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

var background = context.Background()

// An adder is a recording with state: it adds its input to the state and returns the
// sum, so every run that is missing, doubled or out of order shows.
type adder struct {
	n     int
	rec   pass.Recording
	state pass.Buffer
	in    pass.Input
	out   pass.Output
}

// one is a 1×1 matrix that multiplies by 1.
func one(t testing.TB, dev pass.Device) pass.Param {
	t.Helper()
	p, err := dev.Load(background, pass.LinearWeights{Name: "one", Parts: []pass.Tensor{pass.Float32s("one", []float32{1}, 1, 1)}})
	ok(t, err, "load")
	return p
}

func newAdder(t testing.TB, ses pass.Session, w pass.Param, n int) *adder {
	t.Helper()
	a := &adder{n: n}
	var err error
	a.state, err = ses.Alloc(pass.F32, n)
	ok(t, err, "alloc")
	a.rec, err = ses.Record(background, pass.RecordOptions{Label: "adder"}, func(p pass.Pass) {
		a.in = p.Input(pass.F32, n)
		p.Do(pass.Gemm{A: a.in.View(), W: w, C: a.state.View(), Rows: n, Epilogue: pass.Residual(1)})
		a.out = p.Output(a.state.View(), n)
	})
	ok(t, err, "record")
	return a
}

// bind binds the same number to all elements.
func (a *adder) bind(v float32) pass.Bind {
	data := make([]float32, a.n)
	for i := range data {
		data[i] = v + float32(i)/1024
	}
	return a.in.F32(data)
}

// sum is what the state holds after the numbers were added once each.
func (a *adder) sum(numbers ...float32) []float32 {
	data := make([]float32, a.n)
	for _, v := range numbers {
		for i := range data {
			data[i] += v + float32(i)/1024
		}
	}
	return data
}

// wants requires a run's output.
func (a *adder) wants(t testing.TB, what string, run pass.Run, numbers ...float32) {
	t.Helper()
	got := make([]float32, a.n)
	if err := run.ReadF32(a.out, got); err != nil {
		t.Errorf("%s: read: %v", what, err)
		return
	}
	same(t, what, got, a.sum(numbers...))
}

// add runs the adder once and requires its output.
func (a *adder) add(t testing.TB, what string, v float32, numbers ...float32) {
	t.Helper()
	run, err := a.rec.Run(background, a.bind(v))
	ok(t, err, what)
	a.wants(t, what, run, numbers...)
	run.Close()
}

// reset makes the state zero.
func (a *adder) reset(t testing.TB, ses pass.Session) {
	t.Helper()
	ok(t, ses.Write(background, a.state.View(), make([]float32, a.n)), "write")
}

// A labour is a recording of many products, to be interrupted.
type labour struct {
	rec pass.Recording
	in  pass.Input
	out pass.Output
}

const labourSize = 64 // rows and columns of each product

func newLabour(t testing.TB, dev pass.Device, ses pass.Session, steps int, progress func(float64)) labour {
	t.Helper()
	const n = labourSize
	w, err := dev.Load(background, pass.LinearWeights{Name: "labour", Parts: []pass.Tensor{pass.Float32s("w", cases.Recipe("labour", 1, n*n, 0.2, 0), n, n)}})
	ok(t, err, "load")
	var l labour
	l.rec, err = ses.Record(background, pass.RecordOptions{Label: "labour", Progress: progress}, func(p pass.Pass) {
		l.in = p.Input(pass.F32, n*n)
		x, y := l.in.Buffer, p.Temp(pass.F32, n*n)
		for range steps {
			p.Do(pass.Gemm{A: x.View(), W: w, C: y.View(), Rows: n, Epilogue: pass.Tanh})
			x, y = y, p.Temp(pass.F32, n*n)
		}
		l.out = p.Output(x.View(), n*n)
	})
	ok(t, err, "record")
	ok(t, dev.Unload(w), "unload")
	return l
}

func (l labour) bind() pass.Bind {
	return l.in.F32(cases.Recipe("labour.x", 1, labourSize*labourSize, 1, 0))
}

// read returns the output of a run.
func (l labour) read(run pass.Run) ([]float32, error) {
	y := make([]float32, labourSize*labourSize)
	return y, run.ReadF32(l.out, y)
}
