package passtest

import (
	"fmt"
	"math"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// emptyThings: nothing is a valid amount of everything.
func emptyThings(t testing.TB, s *suite) {
	_, ses := s.session(t)
	nothing, err := ses.Alloc(pass.F32, 0)
	ok(t, err, "alloc of 0 elements")
	ok(t, ses.Write(background, nothing.View(), []float32{}), "write of 0 elements")
	ok(t, ses.Read(background, nothing.View(), []float32{}), "read of 0 elements")

	rec, err := ses.Record(background, pass.RecordOptions{}, func(pass.Pass) {})
	ok(t, err, "record without ops")
	run, err := rec.Run(background)
	ok(t, err, "run without ops")
	run.Close()

	state, err := ses.Alloc(pass.F32, 5)
	ok(t, err, "alloc")
	var in, unused pass.Input
	var none, kept, echoed pass.Output
	rec, err = ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, 0)
		unused = p.Input(pass.U32, 3)
		p.Temp(pass.F32, 0)
		p.Temp(pass.F32, 1000) // never used
		p.Do()
		p.Do(pass.Map{X: in.View(), Y: state.View(), Rows: 0, Cols: 9}, pass.Fill{To: state.View(), Rows: 7, Cols: 0, Value: 1})
		none = p.Output(nothing.View(), 0)
		kept = p.Output(state.At(1), 3)
		echoed = p.Output(unused.View(), 3)
	})
	ok(t, err, "record of empty ops")
	run, err = rec.Run(background, in.F32(nil), unused.U32([]uint32{1, 2, 3}))
	ok(t, err, "run of empty ops")
	ok(t, run.ReadF32(none, nil), "read of an empty output")
	same(t, "state that nothing was written to", readOutput(t, run, kept), []uint32{0, 0, 0})
	same(t, "input as output", readOutput(t, run, echoed), []uint32{1, 2, 3})
}

// badBinds: each input is bound once, with data of its type and length.
func badBinds(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	w := one(t, dev)
	a := newAdder(t, ses, w, 4)
	b := newAdder(t, ses, w, 4)
	four := make([]float32, 4)
	for _, row := range []struct {
		name  string
		binds []pass.Bind
	}{
		{"missing", nil},
		{"twice", []pass.Bind{a.bind(1), a.bind(1)}},
		{"too short", []pass.Bind{a.in.F32(four[:3])}},
		{"too long", []pass.Bind{a.in.F32(make([]float32, 5))}},
		{"no data", []pass.Bind{a.in.F32(nil)}},
		{"wrong type", []pass.Bind{a.in.U32(make([]uint32, 4))}},
		{"both types", []pass.Bind{{Input: a.in, F32: four, U32: make([]uint32, 4)}}},
		{"input of another recording", []pass.Bind{b.bind(1)}},
		{"one too many", []pass.Bind{a.bind(1), b.bind(1)}},
		{"no input", []pass.Bind{{F32: four}}},
		{"a buffer that is no input", []pass.Bind{pass.MakeInput(a.state).F32(four)}},
	} {
		run, err := a.rec.Start(background, row.binds...)
		fails(t, "start with a bind: "+row.name, err, pass.ErrInvalid, "input")
		if err == nil {
			_ = run.Wait(background)
		}
	}
	a.add(t, "after wrong binds", 2, 2)

	// The data are copied before Start returns.
	data := []float32{1, 2, 3, 4}
	b2, err := b.rec.Start(background, b.in.F32(data))
	ok(t, err, "start")
	copy(data, []float32{9, 9, 9, 9})
	ok(t, b2.Wait(background), "wait")
	got := make([]float32, 4)
	ok(t, b2.ReadF32(b.out, got), "read")
	same(t, "data changed after Start", got, []float32{1, 2, 3, 4})
}

// badOutputs: an output is read by its type and length, from its own run.
func badOutputs(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	w := one(t, dev)
	a, b := newAdder(t, ses, w, 4), newAdder(t, ses, w, 4)
	run, err := a.rec.Run(background, a.bind(1))
	ok(t, err, "run")
	fails(t, "too short", run.ReadF32(a.out, make([]float32, 3)), pass.ErrInvalid, "4", "3")
	fails(t, "too long", run.ReadF32(a.out, make([]float32, 5)), pass.ErrInvalid, "4", "5")
	fails(t, "wrong type", run.ReadU32(a.out, make([]uint32, 4)), pass.ErrInvalid, "F32")
	fails(t, "output of another recording", run.ReadF32(b.out, make([]float32, 4)), pass.ErrInvalid)
	fails(t, "no output", run.ReadF32(pass.Output{}, make([]float32, 4)), pass.ErrInvalid)
	a.wants(t, "after wrong reads", run, 1)
	fails(t, "zero run: wait", pass.Run{}.Wait(background), pass.ErrInvalid)
	fails(t, "zero run: read", pass.Run{}.ReadF32(a.out, make([]float32, 4)), pass.ErrInvalid)
	pass.Run{}.Close()

	for name, f := range map[string]func(pass.Pass){
		"beyond the end":        func(p pass.Pass) { p.Output(a.state.At(2), 3) },
		"negative offset":       func(p pass.Pass) { p.Output(a.state.At(-1), 2) },
		"negative length":       func(p pass.Pass) { p.Output(a.state.View(), -1) },
		"length that overflows": func(p pass.Pass) { p.Output(a.state.At(3), math.MaxInt) },
		"no view":               func(p pass.Pass) { p.Output(pass.View{}, 1) },
		"nothing written":       func(p pass.Pass) { p.Output(p.Temp(pass.F32, 2).View(), 2) },
	} {
		_, err := ses.Record(background, pass.RecordOptions{}, f)
		fails(t, "output: "+name, err, pass.ErrInvalid, "output")
	}
	for name, f := range map[string]func(pass.Pass){
		"type":             func(p pass.Pass) { p.Temp(pass.F16, 2) },
		"negative length":  func(p pass.Pass) { p.Temp(pass.F32, -2) },
		"absurd length":    func(p pass.Pass) { p.Temp(pass.F32, math.MaxInt/2) },
		"input of weights": func(p pass.Pass) { p.Input(pass.Q8_0, 32) },
		"input of -1":      func(p pass.Pass) { p.Input(pass.U32, -1) },
	} {
		_, err := ses.Record(background, pass.RecordOptions{}, f)
		fails(t, "temporary: "+name, err, pass.ErrInvalid)
	}
}

// queuedRuns starts runs without waiting and reads all of them afterwards, in the
// wrong order.
func queuedRuns(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	a := newAdder(t, ses, one(t, dev), 129)
	const count = 5
	var runs []pass.Run
	for i := range count {
		run, err := a.rec.Start(background, a.bind(float32(i+1)))
		ok(t, err, "start")
		runs = append(runs, run)
	}
	for i := count - 1; i >= 0; i-- {
		ok(t, runs[i].Wait(background), "wait")
		ok(t, runs[i].Wait(background), "wait again")
		a.wants(t, fmt.Sprintf("run %d", i), runs[i], []float32{1, 2, 3, 4, 5}[:i+1]...)
	}
	ok(t, a.rec.Close(), "close the recording")
	a.wants(t, "after the recording was closed", runs[2], 1, 2, 3)
}

// reusedRuns: a closed run can't be used, also when its memory serves a later one.
func reusedRuns(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	a := newAdder(t, ses, one(t, dev), 8)
	old, err := a.rec.Run(background, a.bind(1))
	ok(t, err, "run")
	kept, err := a.rec.Run(background, a.bind(2))
	ok(t, err, "run")
	old.Close()
	old.Close()
	for i := range 3 {
		run, err := a.rec.Run(background, a.bind(float32(3+i)))
		ok(t, err, "run")
		fails(t, "wait for a closed run", old.Wait(background), pass.ErrClosed)
		fails(t, "read from a closed run", old.ReadF32(a.out, make([]float32, 8)), pass.ErrClosed)
		old.Close()
		a.wants(t, "run after a closed one", run, []float32{1, 2, 3, 4, 5}[:3+i]...)
		run.Close()
	}
	a.wants(t, "run that was kept", kept, 1, 2)

	// Closing a run that has not been waited for neither stops it nor spoils the next.
	started, err := a.rec.Start(background, a.bind(6))
	ok(t, err, "start")
	started.Close()
	a.add(t, "after an unfinished run was closed", 7, 1, 2, 3, 4, 5, 6, 7)
}
