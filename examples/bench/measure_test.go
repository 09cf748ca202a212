package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

func TestStatistics(t *testing.T) {
	t.Parallel()
	var s samples
	for _, ms := range []int{9, 1, 8, 2, 7, 3, 6, 4, 5, 100, 10} {
		s.runs = append(s.runs, time.Duration(ms)*time.Millisecond)
	}
	r := &ready{ops: 2, cost: pass.Cost{FLOP: 30, Bytes: 60}, audio: 9 * time.Second, note: "n"}
	got := s.result(r) // of 1 … 10, 100 ms: the 10th percentile is 2, the 90th 10
	require.Equal(t, result{Runs: 11, Ops: 2, Median: 0.003, Min: 0.0005, Spread: 8.0 / 6, FLOPs: 30 / 0.003, Bytes: 60 / 0.003, RealTime: 3000, Note: "n"}, got)
	s.runs = s.runs[:10] // an even number: between 5 and 6
	require.InDelta(t, 0.00275, s.result(r).Median, 1e-12)
}

// Runs pass in a clock of their own, so that it is known how many there are.
func TestTake(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		each   time.Duration // of a run
		first  time.Duration
		single bool
		limit  time.Duration
		rest   time.Duration
		runs   int
		calls  int
	}{
		"short runs":             {time.Millisecond, 0, false, 20 * time.Millisecond, 0, 20, 20 + 20},
		"short warm-up":          {time.Millisecond, 0, false, time.Second, 0, 1000, 300 + 1000},
		"at least three":         {time.Second, time.Second, false, 1, 0, leastRuns, 1 + leastRuns},
		"long runs once":         {patience + 1, 0, false, time.Millisecond, 0, 1, 1},
		"no run if one was long": {time.Second, patience + 1, false, time.Millisecond, 0, 1, 0},
		"not had twice":          {time.Second, 0, true, time.Millisecond, 0, 1, 1},
		"after a rest":           {time.Millisecond, 0, false, 20 * time.Millisecond, time.Second, 20, 20},
		"not had twice, rested":  {time.Second, 0, true, time.Millisecond, time.Second, 1, 1},
		"long runs once, rested": {patience + 1, 0, false, time.Millisecond, time.Second, 1, 1},
		"no more than are kept":  {time.Millisecond, 0, false, time.Hour, 0, mostRuns, 300 + mostRuns},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s samples
			calls := 0
			r := &ready{single: tc.single, first: tc.first, once: func(context.Context) (time.Duration, error) {
				calls++
				time.Sleep(tc.each)
				return tc.each, nil
			}}
			require.NoError(t, s.take(t.Context(), r, pace{tc.limit, tc.rest}), name)
			if tc.runs == 1 { // nor in a second round
				require.NoError(t, s.take(t.Context(), r, pace{tc.limit, tc.rest}), name)
			}
			require.Len(t, s.runs, tc.runs, name)
			require.Equal(t, tc.calls, calls, name)
		})
	}
}

// Devices are measured in turn, so that what changes with time strikes both.
func TestInTurn(t *testing.T) {
	t.Parallel()
	var order []string
	c := benchmarkCase{name: "c", make: on(func(_ context.Context, t *target) (*ready, error) {
		return &ready{ops: 1, close: func() error { return nil }, once: func(context.Context) (time.Duration, error) {
			if n := len(order); n == 0 || order[n-1] != t.name {
				order = append(order, t.name)
			}
			return time.Millisecond, nil
		}}, nil
	})}
	results := measureOn(context.Background(), c, []*target{{name: "a"}, {name: "b"}}, pace{time: time.Millisecond})
	require.Equal(t, []string{"a", "b", "a", "b"}, order)
	require.Len(t, results, 2)
	require.GreaterOrEqual(t, results[1].Runs, 2*leastRuns)
}

// A case that fails anywhere says so, and closes what it opened.
func TestFailures(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	failing := func(at string) benchmarkCase {
		return benchmarkCase{name: at, make: func() (setup, error) {
			if at == "make" {
				return nil, oops
			}
			return func(context.Context, *target) (*ready, error) {
				if at == "setup" {
					return nil, oops
				}
				r := &ready{ops: 1, once: func(context.Context) (time.Duration, error) { return 1, nil }, close: func() error { return nil }}
				if at == "once" {
					r.once = func(context.Context) (time.Duration, error) { return 0, oops }
				}
				if at == "close" {
					r.close = func() error { return oops }
				}
				return r, nil
			}, nil
		}}
	}
	for _, at := range []string{"make", "setup", "once", "close"} {
		var out strings.Builder
		targets := []*target{{name: "a"}}
		r := &report{w: &out, targets: targets, opt: options{pace: pace{time: time.Millisecond}}}
		require.False(t, r.measure(context.Background(), failing(at), targets), at)
		require.Regexp(t, "^"+at+" +failed on a: oops\n$", out.String())
	}
}

// A saboteur is a device that computes one kind of op wrongly.
type saboteur struct {
	pass.Device
	spoil func(pass.Op) pass.Op
}

type sabotagedSession struct {
	pass.Session
	spoil func(pass.Op) pass.Op
}

type sabotagedPass struct {
	pass.Pass
	spoil func(pass.Op) pass.Op
}

func (d saboteur) NewSession(cfg pass.SessionConfig) (pass.Session, error) {
	s, err := d.Device.NewSession(cfg)
	return sabotagedSession{s, d.spoil}, err
}

func (s sabotagedSession) Record(ctx context.Context, opt pass.RecordOptions, f func(pass.Pass)) (pass.Recording, error) {
	return s.Session.Record(ctx, opt, func(p pass.Pass) { f(sabotagedPass{p, s.spoil}) })
}

func (p sabotagedPass) Do(ops ...pass.Op) {
	for _, op := range ops {
		p.Pass.Do(p.spoil(op))
	}
}

// Results that are wrong are not timed, be it in the last row or the last item only.
func TestWrongResults(t *testing.T) {
	t.Parallel()
	gemm := gemm(5, 64, 96, pass.Q8_0)
	conv := conv("c", pass.Conv1D{Batch: 3, In: 7}, pass.ConvShape{Out: 5, In: 4, Kernel: 3})
	lstm := lstm("l", 2, 5, pass.LSTMShape{In: 4, Hidden: 8, Layers: 2, Directions: 2})
	kernels := map[string]benchmarkCase{
		"gemm": gemm, "conv1d": conv, "lstm": lstm,
		"attention": kernelCase("a", "", kernel.RelativeAttention(5, 2, 4)),
		"depthwise": kernelCase("d", "", kernel.FirstDepthwise(61, 16, 4)),
		"plain":     attention("p", 1, 6, 2, 4),
		"argmax":    rowwise("r", 3, 50, pass.Argmax{Batch: 3, Rows: 1, Cols: 50}, "IDs", nil),
	}
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(t, err)
	defer dev.Close()
	for name, c := range kernels { // they are right as they are
		good := measureOn(context.Background(), c, []*target{{dev: dev, time: time.Millisecond}}, pace{time: time.Millisecond})
		require.Empty(t, good[0].Error, name)
	}
	for _, c := range sileroCases {
		kernels[c.name] = c
	}
	for name, tc := range map[string]struct {
		of    string
		spoil func(pass.Op) pass.Op
	}{
		"last row of a product": {"gemm", func(op pass.Op) pass.Op {
			g := op.(pass.Gemm)
			g.A.Offset, g.C.Offset, g.Rows = 0, 0, g.Rows-1
			return g
		}},
		"epilogue": {"gemm", func(op pass.Op) pass.Op {
			g := op.(pass.Gemm)
			g.Epilogue = pass.ReLU
			return g
		}},
		"last item": {"conv1d", func(op pass.Op) pass.Op {
			v := op.(pass.Conv1D)
			v.Batch--
			return v
		}},
		"last step": {"conv1d", func(op pass.Op) pass.Op {
			v := op.(pass.Conv1D)
			v.Out = pass.Span{To: v.Out.To - 1}
			return v
		}},
		"length": {"lstm", func(op pass.Op) pass.Op {
			l := op.(pass.LSTM)
			l.Lengths = pass.Fixed(5, 4)
			return l
		}},
		"last head": {"attention", func(op pass.Op) pass.Op {
			a := op.(pass.Attention)
			a.Heads--
			return a
		}},
		"last query": {"plain", func(op pass.Op) pass.Op {
			a := op.(pass.Attention)
			a.Queries--
			return a
		}},
		"last row of an image": {"depthwise", func(op pass.Op) pass.Op {
			d := op.(pass.DepthwiseConv2D)
			d.Out = pass.Span{To: d.Out.To - 1}
			return d
		}},
		"ids": {"argmax", func(op pass.Op) pass.Op {
			a := op.(pass.Argmax)
			a.X.Offset, a.Cols = 1, a.Cols-1
			return a
		}},
		"file":    {"file-10min", spoilHead},
		"streams": {"streams-256", spoilHead},
		"stream":  {"stream-1", spoilHead},
	} {
		c := kernels[tc.of]
		bad := measureOn(context.Background(), c, []*target{{name: "bad", dev: saboteur{dev, tc.spoil}, time: time.Millisecond}}, pace{time: time.Millisecond})
		require.Contains(t, bad[0].Error, "wrong result, not timed", name)
	}
}

func spoilHead(op pass.Op) pass.Op {
	if g, ok := op.(pass.Gemm); ok {
		g.Epilogue = pass.Tanh
		return g
	}
	return op
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0: "0 ns", 2.5e-9: "2.5 ns", 1.2345e-5: "12.35 µs", 0.0105: "10.5 ms", 75: "75 s", -2e-6: "-2 µs"} {
		require.Equal(t, want, duration(seconds))
	}
	for v, want := range map[float64]string{0: "", 0.01234: "0.0123", 39.87: "39.9", 5234.6: "5235"} {
		require.Equal(t, want, number(v))
	}
	require.Equal(t, `bench --run 'a|b' 'it'\''s' ''`, commandLine([]string{"--run", "a|b", "it's", ""}))
}
