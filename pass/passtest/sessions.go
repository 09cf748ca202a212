package passtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// twoRecordings runs two recordings of one session by turns on one state: they share
// the workspace, and neither may spoil what the other keeps.
func twoRecordings(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	w := one(t, dev)
	a := newAdder(t, ses, w, 33)
	work := newLabour(t, dev, ses, 3, nil)
	twice, err := ses.Record(background, pass.RecordOptions{Label: "twice"}, func(p pass.Pass) {
		old := p.Temp(pass.F32, a.n)
		p.Do(pass.Copy{From: a.state.View(), To: old.View(), Rows: 1, Cols: a.n})
		p.Do(pass.Gemm{A: old.View(), W: w, C: a.state.View(), Rows: a.n, Epilogue: pass.Residual(1)})
	})
	ok(t, err, "record")
	var first []float32
	want := []float32{}
	for i := range 3 {
		v := float32(i + 1)
		want = append(want, v)
		a.add(t, "add", v, want...)
		run, err := work.rec.Run(background, work.bind())
		ok(t, err, "labour")
		y, err := work.read(run)
		ok(t, err, "read")
		if first == nil {
			first = y
		}
		same(t, "labour", y, first)
		_, err = twice.Run(background)
		ok(t, err, "twice")
		want = append(want, want...)
	}
	got := make([]float32, a.n)
	ok(t, ses.Read(background, a.state.View(), got), "read")
	same(t, "state", got, a.sum(want...))
}

// interleavedSessions drives several sessions from one goroutine by turns.
func interleavedSessions(t testing.TB, s *suite) {
	dev := s.open(t)
	w := one(t, dev)
	var adders []*adder
	for range 4 {
		adders = append(adders, newAdder(t, newSession(t, dev), w, 17))
	}
	runs := make([][]pass.Run, len(adders))
	for round := range 5 {
		for i, a := range adders {
			run, err := a.rec.Start(background, a.bind(float32(10*i+round)))
			ok(t, err, "start")
			runs[i] = append(runs[i], run)
		}
	}
	for i, a := range slices.Backward(adders) {
		var numbers []float32
		for round, run := range runs[i] {
			numbers = append(numbers, float32(10*i+round))
			ok(t, run.Wait(background), "wait")
			a.wants(t, fmt.Sprintf("session %d, run %d", i, round), run, numbers...)
		}
	}
}

// parallelSessions drives sessions from a goroutine each, with params in common, while
// others load and unload.
func parallelSessions(t testing.TB, s *suite) {
	dev := s.open(t)
	w := one(t, dev)
	errs := make(chan error, 100)
	var group sync.WaitGroup
	for i := range 6 {
		ses := newSession(t, dev)
		a := newAdder(t, ses, w, 65)
		l := newLabour(t, dev, ses, 2, nil)
		group.Add(1)
		go func() {
			defer group.Done()
			var numbers []float32
			for round := range 8 {
				v := float32(i + round)
				numbers = append(numbers, v)
				work, err := l.rec.Start(background, l.bind())
				if err != nil {
					errs <- err
					return
				}
				run, err := a.rec.Run(background, a.bind(v))
				if err != nil {
					errs <- err
					return
				}
				got := make([]float32, a.n)
				if err := run.ReadF32(a.out, got); err != nil {
					errs <- err
				} else if !slices.Equal(got, a.sum(numbers...)) {
					errs <- fmt.Errorf("session %d, round %d: got %v, want %v", i, round, got, a.sum(numbers...))
				}
				if err := work.Wait(background); err != nil {
					errs <- err
				}
				work.Close()
				run.Close()
			}
			if i%2 == 0 {
				if err := ses.Close(); err != nil {
					errs <- err
				}
			}
		}()
	}
	group.Add(1)
	go func() {
		defer group.Done()
		for range 20 {
			p, err := dev.Load(background, pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", make([]float32, 64), 8, 8)}})
			if err == nil {
				err = dev.Unload(p)
			}
			if err != nil {
				errs <- err
			}
			_ = dev.Info()
		}
	}()
	within(t, "sessions on goroutines", group.Wait)
	close(errs)
	for err := range errs {
		t.Errorf("%v", err)
	}
}
