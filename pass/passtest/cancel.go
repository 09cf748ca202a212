package passtest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// endedContexts: a context that has ended stops a call before it does anything.
func endedContexts(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	a := newAdder(t, ses, one(t, dev), 3)
	ended, cancel := context.WithCancel(background)
	cancel()
	run, err := a.rec.Start(ended, a.bind(100))
	if err == nil {
		err = run.Wait(background)
	}
	fails(t, "start", err, context.Canceled)
	_, err = a.rec.Run(ended, a.bind(100))
	fails(t, "run", err, context.Canceled)
	fails(t, "write", ses.Write(ended, a.state.View(), []float32{7, 7, 7}), context.Canceled)
	fails(t, "read", ses.Read(ended, a.state.View(), make([]float32, 3)), context.Canceled)
	_, err = ses.Record(ended, pass.RecordOptions{}, func(pass.Pass) {})
	fails(t, "record", err, context.Canceled)
	_, err = dev.Load(ended, pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", []float32{1}, 1, 1)}})
	fails(t, "load", err, context.Canceled)

	late, cancel := context.WithDeadline(background, time.Now().Add(-time.Second))
	defer cancel()
	_, err = a.rec.Run(late, a.bind(100))
	fails(t, "run after the deadline", err, context.DeadlineExceeded)
	a.reset(t, ses) // a run that was dropped leaves undefined what it writes
	a.add(t, "afterwards", 1, 1)
}

// cancelQueued cancels a second replay while something long runs before it: it must
// fail, and not hand out what the first replay returned.
func cancelQueued(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	a := newAdder(t, ses, one(t, dev), 16)
	first, err := a.rec.Run(background, a.bind(1))
	ok(t, err, "first replay")
	for attempt := 4; ; attempt *= 4 {
		began := time.Now()
		if cancelBehind(t, dev, ses, a, attempt) {
			break
		}
		if spent := time.Since(began); spent > s.patience {
			t.Fatalf("a run that was cancelled %v before its turn was not dropped", spent)
		}
		a.reset(t, ses)
	}
	a.wants(t, "first replay", first, 1)
	a.reset(t, ses)
	a.add(t, "after the cancelled replay", 3, 3)
}

// cancelBehind cancels a replay that is behind a number of long runs and reports whether
// it was dropped. The first of those waits at its first report until that is done: so the
// replay's turn does not come before, however long this goroutine stands still.
func cancelBehind(t testing.TB, dev pass.Device, ses pass.Session, a *adder, runs int) (dropped bool) {
	cancelled := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(cancelled) })
	defer goOn()
	long := newLabour(t, dev, ses, 16, func(float64) { <-cancelled })
	var before []pass.Run
	for range runs {
		run, err := long.rec.Start(background, long.bind())
		ok(t, err, "start")
		before = append(before, run)
	}
	ctx, cancel := context.WithCancel(background)
	second, err := a.rec.Start(ctx, a.bind(2))
	cancel()
	ok(t, err, "second replay")
	goOn()
	err = second.Wait(background)
	for _, run := range before {
		ok(t, run.Wait(background), "what ran before")
		run.Close()
	}
	ok(t, long.rec.Close(), "close")
	if err == nil {
		second.Close()
		return false
	}
	fails(t, "wait for the second replay", err, context.Canceled)
	got := make([]float32, a.n)
	if err := second.ReadF32(a.out, got); err == nil {
		t.Errorf("the replay that was cancelled can be read: got %v; the first replay returned %v", got, a.sum(1))
	}
	return true
}

// cancelMiddle cancels a run at its first report of progress: the parts that have not
// begun are dropped. How long a run must be to have such parts depends on the device, so
// it is made longer until one is interrupted, or cancelled so early that it had to be.
func cancelMiddle(t testing.TB, s *suite) {
	const early = 0.25 // as much again may be under way by then
	dev, ses := s.session(t)
	interrupted, done := false, 1.0
	for steps := 64; !interrupted && done > early && steps <= 1<<22; steps *= 4 {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		reports := make(chan float64, 1)
		l := newLabour(t, dev, ses, steps, func(done float64) {
			select {
			case reports <- done:
			default:
			}
			cancel()
		})
		run, err := l.rec.Start(ctx, l.bind())
		ok(t, err, "start")
		within(t, "wait for a cancelled run", func() { err = run.Wait(background) })
		select {
		case done = <-reports:
		default:
		}
		if err != nil {
			interrupted = true
			fails(t, "wait", err, context.Canceled)
			if _, err := l.read(run); err == nil {
				t.Errorf("a run that was cancelled can be read")
			}
		}
		ok(t, l.rec.Close(), "close")
	}
	if !interrupted {
		t.Errorf("a run that was cancelled when %.0f %% of it was done was not interrupted", 100*done)
	}
	l := newLabour(t, dev, ses, 4, nil)
	var results [2][]float32
	for i := range results {
		run, err := l.rec.Run(background, l.bind())
		ok(t, err, "run afterwards")
		results[i], err = l.read(run)
		ok(t, err, "read")
	}
	if !slices.Equal(results[0], results[1]) {
		t.Errorf("runs after a cancelled one differ")
	}
}

// impatientWait: the end of the context of Wait ends the waiting, not the run.
func impatientWait(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	a := newAdder(t, ses, one(t, dev), 4)
	long := newLabour(t, dev, ses, 256, nil)
	before, err := long.rec.Start(background, long.bind())
	ok(t, err, "start")
	run, err := a.rec.Start(background, a.bind(1))
	ok(t, err, "start")
	ended, cancel := context.WithCancel(background)
	cancel()
	if err := run.Wait(ended); err != nil { // it may be done already
		fails(t, "wait with a context that has ended", err, context.Canceled)
	}
	ok(t, run.Wait(background), "wait again")
	a.wants(t, "run", run, 1)
	ok(t, before.Wait(background), "wait for the first")
}
