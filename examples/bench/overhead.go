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

// A chain is a session with weights for recordings of many small ops.
type chain struct {
	t            *target
	session      pass.Session
	linear, conv pass.Param
}

// chainWidth is the number of columns of everything in a chain.
const chainWidth = 64

func newChain(ctx context.Context, t *target) (_ *chain, err error) {
	c := &chain{t: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.session, err = t.dev.NewSession(pass.SessionConfig{Label: "bench"}); err != nil {
		return nil, err
	}
	w := kernel.Random(1, chainWidth*chainWidth*3, 0.1)
	c.linear, err = t.dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", w[:chainWidth*chainWidth], chainWidth, chainWidth)}})
	if err != nil {
		return nil, err
	}
	c.conv, err = t.dev.Load(ctx, pass.ConvWeights{Weight: pass.Float32s("w", w, chainWidth, chainWidth, 3)})
	return c, err
}

func (c *chain) close() error {
	var errs []error
	if c.session != nil {
		errs = append(errs, c.session.Close())
	}
	for _, p := range []pass.Param{c.linear, c.conv} {
		if !p.IsZero() {
			errs = append(errs, c.t.dev.Unload(p))
		}
	}
	return errors.Join(errs...)
}

// record times the recording of 1000 ops of four kinds, as a network has them: each
// writes a temporary of its own, which the next one reads.
func (c *chain) record(ctx context.Context, rows int) (time.Duration, error) {
	start := time.Now()
	rec, err := c.session.Record(ctx, pass.RecordOptions{Label: "bench", Math: c.t.math}, func(p pass.Pass) {
		x := p.Input(pass.F32, rows*chainWidth).View()
		for i := range 1000 {
			y := p.Temp(pass.F32, rows*chainWidth).View()
			switch i % 4 {
			case 0:
				p.Do(pass.Gemm{A: x, W: c.linear, C: y, Rows: rows})
			case 1:
				p.Do(pass.Map{X: x, Y: y, Rows: rows, Cols: chainWidth, Epilogue: pass.SiLU})
			case 2:
				p.Do(pass.Conv1D{X: x, W: c.conv, Y: y, In: rows, PadLeft: 1, PadRight: 1})
			case 3:
				p.Do(pass.Copy{From: x, To: y, Rows: rows, Cols: chainWidth})
			}
			x = y
		}
		p.Output(x, rows*chainWidth)
	})
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	return took, rec.Close()
}

// recordCold gives each recording a number of rows that none had before. That kernels
// are compiled already is the point: a first recording has seen to it.
func recordCold(ctx context.Context, t *target) (*ready, error) {
	c, err := newChain(ctx, t)
	if err != nil {
		return nil, err
	}
	rows := 32
	return &ready{once: func(ctx context.Context) (time.Duration, error) {
		rows++
		return c.record(ctx, rows)
	}, ops: 1, close: c.close}, nil
}

func recordAgain(ctx context.Context, t *target) (*ready, error) {
	c, err := newChain(ctx, t)
	if err != nil {
		return nil, err
	}
	return &ready{once: func(ctx context.Context) (time.Duration, error) {
		return c.record(ctx, 32)
	}, ops: 1, close: c.close}, nil
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
