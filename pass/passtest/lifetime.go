package passtest

import (
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// lifetimes: recordings keep what they use.
func lifetimes(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	w := one(t, dev)
	a := newAdder(t, ses, w, 6)
	run, err := a.rec.Start(background, a.bind(1))
	ok(t, err, "start")
	ok(t, dev.Unload(w), "unload while a recording uses it")
	ok(t, ses.Free(a.state), "free while a recording uses it")
	for range 4 { // what came free must not be given to others
		b, err := ses.Alloc(pass.F32, 6)
		ok(t, err, "alloc")
		ok(t, ses.Write(background, b.View(), []float32{9, 9, 9, 9, 9, 9}), "write")
		_, err = dev.Load(background, pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("nine", []float32{9}, 1, 1)}})
		ok(t, err, "load")
	}
	ok(t, run.Wait(background), "wait")
	a.wants(t, "run", run, 1)
	a.add(t, "after free and unload", 2, 1, 2)

	fails(t, "unload again", dev.Unload(w), pass.ErrClosed)
	fails(t, "free again", ses.Free(a.state), pass.ErrClosed)
	fails(t, "write to a freed buffer", ses.Write(background, a.state.View(), make([]float32, 6)), pass.ErrClosed)
	fails(t, "read of a freed buffer", ses.Read(background, a.state.View(), make([]float32, 6)), pass.ErrClosed)
	ok(t, a.rec.Close(), "close the recording")
	a.wants(t, "run of a closed recording", run, 1)
}

// badHandles: a handle that is closed, stale or of another owner is refused, with the
// names of the op and the argument.
func badHandles(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	w := one(t, dev)
	other, otherSes := s.session(t)
	sibling := newSession(t, dev)
	alloc := func(ses pass.Session) pass.Buffer {
		b, err := ses.Alloc(pass.F32, 4)
		ok(t, err, "alloc")
		return b
	}
	good, foreign, elsewhere := alloc(ses), alloc(otherSes), alloc(sibling)
	freed := alloc(ses)
	ok(t, ses.Free(freed), "free")
	alloc(ses) // likely in the slot of the freed one
	unloaded := one(t, dev)
	ok(t, dev.Unload(unloaded), "unload")
	one(t, dev)
	foreignParam := one(t, other)
	var temp pass.Buffer
	var input pass.Input
	_, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) {
		temp, input = p.Temp(pass.F32, 4), p.Input(pass.F32, 4)
	})
	ok(t, err, "record")
	forged := pass.MakeBuffer(good.Ref(), pass.F32, 400)
	forgedParam := pass.MakeParam(w.Ref(), pass.LinearShape{N: 4, K: 4, Type: pass.F32})

	gemm := func(a, c pass.Buffer, w pass.Param) pass.Gemm {
		return pass.Gemm{A: a.View(), W: w, C: c.View(), Rows: 4}
	}
	for _, row := range []struct {
		name     string
		op       pass.Op
		sentinel error
		arg      string
	}{
		{"buffer of another device", gemm(foreign, good, w), pass.ErrInvalid, "A"},
		{"buffer of another session", gemm(good, elsewhere, w), pass.ErrInvalid, "C"},
		{"temporary of another recording", gemm(temp, good, w), pass.ErrInvalid, "A"},
		{"input of another recording", gemm(input.Buffer, good, w), pass.ErrInvalid, "A"},
		{"freed buffer", gemm(good, freed, w), pass.ErrClosed, "C"},
		{"param of another device", gemm(good, alloc(ses), foreignParam), pass.ErrInvalid, "W"},
		{"unloaded param", gemm(good, alloc(ses), unloaded), pass.ErrClosed, "W"},
		{"buffer with another length", pass.Fill{To: forged.View(), Rows: 1, Cols: 400}, pass.ErrInvalid, "To"},
		{"param with another shape", pass.Gemm{A: good.View(), W: forgedParam, C: alloc(ses).View(), Rows: 1}, pass.ErrInvalid, "W"},
	} {
		_, err := ses.Record(background, pass.RecordOptions{Label: "bad"}, func(p pass.Pass) { p.Do(row.op) })
		fails(t, row.name, err, row.sentinel, row.op.Name(), row.arg)
	}
	for name, op := range map[string]func(p pass.Pass) pass.Op{
		"write to an input":     func(p pass.Pass) pass.Op { return pass.Fill{To: p.Input(pass.F32, 4).View(), Rows: 1, Cols: 4} },
		"read before any write": func(p pass.Pass) pass.Op { return gemm(p.Temp(pass.F32, 4), good, w) },
		"update before any write": func(p pass.Pass) pass.Op {
			g := gemm(good, p.Temp(pass.F32, 4), w)
			g.Epilogue = pass.Residual(1)
			return g
		},
	} {
		_, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) { p.Do(op(p)) })
		fails(t, name, err, pass.ErrInvalid)
	}

	four := make([]float32, 4)
	fails(t, "write to a buffer of another device", ses.Write(background, foreign.View(), four), pass.ErrInvalid)
	fails(t, "read of a buffer of another session", ses.Read(background, elsewhere.View(), four), pass.ErrInvalid)
	fails(t, "write to a temporary", ses.Write(background, temp.View(), four), pass.ErrInvalid)
	fails(t, "free of a buffer of another session", ses.Free(elsewhere), pass.ErrInvalid)
	fails(t, "free of a temporary", ses.Free(temp), pass.ErrInvalid)
	fails(t, "free of nothing", ses.Free(pass.Buffer{}), pass.ErrInvalid)
	fails(t, "unload of a param of another device", dev.Unload(foreignParam), pass.ErrInvalid)
	fails(t, "unload of nothing", dev.Unload(pass.Param{}), pass.ErrInvalid)
	a := newAdder(t, ses, w, 4)
	a.add(t, "afterwards", 1, 1)
}

// closing: everything closes again and in any order, and says so afterwards.
func closing(t testing.TB, s *suite) {
	for order := range 6 { // all orders of recording, session, device
		dev := s.openDevice(t)
		ses := newSession(t, dev)
		w := one(t, dev)
		a := newAdder(t, ses, w, 4)
		run, err := a.rec.Run(background, a.bind(1))
		ok(t, err, "run")
		closers := []func() error{a.rec.Close, ses.Close, dev.Close}
		first, rest := order%3, order/3
		second := (first + 1 + rest) % 3
		for _, i := range []int{first, second, 3 - first - second} {
			within(t, "close", func() { ok(t, closers[i](), "close") })
			within(t, "close again", func() { ok(t, closers[i](), "close again") })
			_, err := a.rec.Start(background, a.bind(1))
			fails(t, "start", err, pass.ErrClosed)
		}
		allClosed(t, dev, ses, a, w)
		run.Close()
		for _, c := range closers {
			ok(t, c(), "close at last")
		}
	}

	// Close waits for what runs.
	dev, ses := s.session(t)
	l := newLabour(t, dev, ses, 200, nil)
	for range 3 {
		_, err := l.rec.Start(background, l.bind())
		ok(t, err, "start")
	}
	within(t, "close with runs queued", func() { ok(t, dev.Close(), "close") })
	_, err := ses.Alloc(pass.F32, 1)
	fails(t, "alloc after the device was closed", err, pass.ErrClosed)
}

// allClosed calls everything after all was closed.
func allClosed(t testing.TB, dev pass.Device, ses pass.Session, a *adder, w pass.Param) {
	t.Helper()
	_, err := dev.Load(background, pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", []float32{1}, 1, 1)}})
	fails(t, "load", err, pass.ErrClosed)
	fails(t, "unload", dev.Unload(w), pass.ErrClosed)
	_, err = dev.NewSession(pass.SessionConfig{})
	fails(t, "new session", err, pass.ErrClosed)
	_, err = ses.Alloc(pass.F32, 1)
	fails(t, "alloc", err, pass.ErrClosed)
	fails(t, "free", ses.Free(a.state), pass.ErrClosed)
	fails(t, "write", ses.Write(background, a.state.View(), make([]float32, 4)), pass.ErrClosed)
	fails(t, "read", ses.Read(background, a.state.View(), make([]float32, 4)), pass.ErrClosed)
	_, err = ses.Record(background, pass.RecordOptions{}, func(pass.Pass) {})
	fails(t, "record", err, pass.ErrClosed)
	_, err = a.rec.Run(background, a.bind(1))
	fails(t, "run", err, pass.ErrClosed)
	if dev.Info().Backend == "" {
		t.Errorf("info after close: want the backend's name")
	}
}
