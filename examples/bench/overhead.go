package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/mixed"
)

// overheadCases are what calls cost, whatever they compute.
//
// Start returns when a run is queued; what the backend does to submit it goes on beside
// the caller, and is part of the total. The dispatch floor is what one more of many
// small dependent ops costs: (t(1000) − t(1)) / 999.
var overheadCases = []benchmarkCase{
	{name: "open-cold", shape: "the first in this process", make: on(openCold)},
	{name: "open-warm", shape: "beside an open one", make: on(openWarm)},
	{name: "session", shape: "open one", make: on(openSession)},
	{name: "record-1000-cold", shape: "1000 ops, sizes not seen before", make: on(recordCold)},
	{name: "record-1000-again", shape: "1000 ops, as before", make: on(recordAgain)},
	{name: "replay-1-start", shape: "1 op, call of Start", make: on(replay(1, true))},
	{name: "replay-1-total", shape: "1 op, to its end", make: on(replay(1, false))},
	{name: "replay-1000-start", shape: "1000 dependent ops, call of Start", make: on(replay(1000, true))},
	{name: "replay-1000-total", shape: "1000 dependent ops, to the end", make: on(replay(1000, false))},
	{name: "dispatch-floor", shape: "one more of 1000 dependent ops", make: on(dispatchFloor)},
	{name: "round-trip", shape: "2 KiB in, one op, 2 KiB out", make: on(roundTrip)},
}

// on is the make of a case whose host side is nothing.
func on(s setup) func() (setup, error) { return func() (setup, error) { return s, nil } }

func openCold(_ context.Context, t *target) (*ready, error) {
	return &ready{
		once:   func(context.Context) (time.Duration, error) { return t.opened, nil },
		ops:    1,
		single: true,
		close:  func() error { return nil },
	}, nil
}

func openWarm(_ context.Context, t *target) (*ready, error) {
	return &ready{
		once: func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			dev, err := t.open(ctx)
			took := time.Since(start)
			if err != nil {
				return 0, err
			}
			return took, dev.Close()
		},
		ops:   1,
		close: func() error { return nil },
	}, nil
}

func openSession(_ context.Context, t *target) (*ready, error) {
	return &ready{
		once: func(context.Context) (time.Duration, error) {
			start := time.Now()
			s, err := t.dev.NewSession(pass.SessionConfig{Label: "bench"})
			took := time.Since(start)
			if err != nil {
				return 0, err
			}
			return took, s.Close()
		},
		ops:   1,
		close: func() error { return nil },
	}, nil
}

// record times recordings of the ops of package mixed, of the number of rows that rows
// returns, and closes them.
func record(ctx context.Context, t *target, rows func() int) (*ready, error) {
	session, err := t.dev.NewSession(pass.SessionConfig{Label: "bench"})
	if err != nil {
		return nil, err
	}
	w, err := mixed.Load(ctx, t.dev)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return &ready{once: func(ctx context.Context) (time.Duration, error) {
		n := rows()
		start := time.Now()
		rec, err := w.Record(ctx, session, pass.RecordOptions{Label: "bench", Math: t.math}, n)
		took := time.Since(start)
		if err != nil {
			return 0, err
		}
		return took, rec.Close()
	}, ops: 1, close: func() error { return errors.Join(session.Close(), w.Unload(t.dev)) }}, nil
}

// recordCold gives each recording a number of rows that none had before. That kernels
// are compiled already is the point: a first recording has seen to it.
func recordCold(ctx context.Context, t *target) (*ready, error) {
	rows := 32
	return record(ctx, t, func() int { rows++; return rows })
}

func recordAgain(ctx context.Context, t *target) (*ready, error) {
	return record(ctx, t, func() int { return 32 })
}

// pingPong records n small ops of which each needs the one before.
func pingPong(ctx context.Context, t *target, n int) (pass.Session, pass.Recording, error) {
	const cols = 256
	s, err := t.dev.NewSession(pass.SessionConfig{Label: "bench", Latency: pass.Interactive})
	if err != nil {
		return nil, nil, err
	}
	var b [2]pass.Buffer
	for i := range b {
		if b[i], err = s.Alloc(pass.F32, cols); err != nil {
			return nil, nil, errors.Join(err, s.Close())
		}
	}
	rec, err := s.Record(ctx, pass.RecordOptions{Label: "bench"}, func(p pass.Pass) {
		for i := range n {
			p.Do(pass.Map{X: b[i%2].View(), Y: b[1-i%2].View(), Rows: 1, Cols: cols, Epilogue: pass.ReLU})
		}
	})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, rec, nil
}

// replay times starts of a recording of n ops: the call of Start alone, or all to the
// end.
func replay(n int, start bool) setup {
	return func(ctx context.Context, t *target) (*ready, error) {
		s, rec, err := pingPong(ctx, t, n)
		if err != nil {
			return nil, err
		}
		r := &ready{ops: 1, close: s.Close}
		r.once = func(ctx context.Context) (time.Duration, error) {
			begin := time.Now()
			run, err := rec.Start(ctx)
			started := time.Since(begin)
			if err != nil {
				return 0, err
			}
			if err := run.Wait(ctx); err != nil {
				return 0, err
			}
			total := time.Since(begin)
			run.Close()
			if start {
				return started, nil
			}
			return total, nil
		}
		if r.note, err = allocations(ctx, r.once); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return r, nil
	}
}

// allocations says how many objects a replay allocates, in all of the program.
func allocations(ctx context.Context, once func(context.Context) (time.Duration, error)) (string, error) {
	const runs = 16
	var before, after runtime.MemStats
	for i := range 2 * runs { // the first half fills pools
		if i == runs {
			runtime.ReadMemStats(&before)
		}
		if _, err := once(ctx); err != nil {
			return "", err
		}
	}
	runtime.ReadMemStats(&after)
	return fmt.Sprintf("%.0f allocations", float64(after.Mallocs-before.Mallocs)/runs), nil
}

func dispatchFloor(ctx context.Context, t *target) (*ready, error) {
	one, err := replay(1, false)(ctx, t)
	if err != nil {
		return nil, err
	}
	thousand, err := replay(1000, false)(ctx, t)
	if err != nil {
		return nil, errors.Join(err, one.close())
	}
	return &ready{
		once: func(ctx context.Context) (time.Duration, error) {
			short := time.Duration(math.MaxInt64)
			for range 3 { // a hiccup in a short run would count twice
				d, err := one.once(ctx)
				if err != nil {
					return 0, err
				}
				short = min(short, d)
			}
			long, err := thousand.once(ctx)
			return long - short, err
		},
		ops:   999,
		close: func() error { return errors.Join(one.close(), thousand.close()) },
	}, nil
}

// roundTrip is the least that a caller waits for an answer.
func roundTrip(ctx context.Context, t *target) (*ready, error) {
	const n = 512
	s, err := t.dev.NewSession(pass.SessionConfig{Label: "bench", Latency: pass.Interactive})
	if err != nil {
		return nil, err
	}
	var in pass.Input
	var out pass.Output
	rec, err := s.Record(ctx, pass.RecordOptions{Label: "bench"}, func(p pass.Pass) {
		in = p.Input(pass.F32, n)
		y := p.Temp(pass.F32, n)
		p.Do(pass.Map{X: in.View(), Y: y.View(), Rows: 1, Cols: n, Epilogue: pass.ReLU})
		out = p.Output(y.View(), n)
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	host, back := kernel.Random(1, n, 1), make([]float32, n)
	return &ready{
		once: func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			run, err := rec.Run(ctx, in.F32(host))
			if err != nil {
				return 0, err
			}
			defer run.Close()
			err = run.ReadF32(out, back)
			took := time.Since(start)
			for i, v := range back {
				if err == nil && v != max(host[i], 0) {
					err = fmt.Errorf("wrong result: element %d: want %v, got %v", i, max(host[i], 0), v)
				}
			}
			return took, err
		},
		ops:   1,
		close: s.Close,
	}, nil
}
