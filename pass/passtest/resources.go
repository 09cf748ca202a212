package passtest

import (
	"runtime"
	"testing"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// replayAllocates: replaying a recording and reading its output allocates nothing.
func replayAllocates(t testing.TB, s *suite) {
	if raceEnabled {
		t.Log("not counted: the race detector allocates")
		return
	}
	dev, ses := s.session(t)
	a := newAdder(t, ses, one(t, dev), 64)
	data := make([]float32, a.n)
	binds := []pass.Bind{a.in.F32(data)}
	replay := func() {
		run, err := a.rec.Run(background, binds...)
		if err != nil {
			t.Fatalf("run: %v", err)
		}
		if err := run.ReadF32(a.out, data); err != nil {
			t.Fatalf("read: %v", err)
		}
		run.Close()
	}
	for range 5 {
		replay()
	}
	n := 0.0
	for range 5 { // the runtime allocates now and then, too
		if n = testing.AllocsPerRun(50, replay); n <= s.Allocs {
			return
		}
	}
	t.Errorf("a replay allocates %v times, want at most %v", n, s.Allocs)
}

// leaks: when devices are closed, no goroutine of theirs is left.
func leaks(t testing.TB, s *suite) {
	use := func() {
		dev := s.openDevice(t)
		w := one(t, dev)
		for range 3 {
			a := newAdder(t, newSession(t, dev), w, 8)
			_, err := a.rec.Start(background, a.bind(1))
			ok(t, err, "start")
		}
		ok(t, dev.Close(), "close")
	}
	use() // what a process starts once
	before := runtime.NumGoroutine()
	for range 5 {
		use()
	}
	after := 0
	// Goroutines end soon after what they were waited for.
	for until := time.Now().Add(6 * s.patience); ; time.Sleep(20 * time.Millisecond) {
		if after = runtime.NumGoroutine(); after <= before+s.Goroutines {
			return
		}
		if time.Now().After(until) {
			break
		}
	}
	stacks := make([]byte, 64<<10)
	t.Errorf("%d goroutines before, %d after five devices were closed:\n%s", before, after, stacks[:runtime.Stack(stacks, true)])
}
