package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// fakeWays are the ways of a made-up device, the rule's first, and how long an op takes in
// each.
var fakeWays = map[string]time.Duration{"rule": 12 * time.Millisecond, "quick": 6 * time.Millisecond, "slow": 80 * time.Millisecond, "wrong": time.Microsecond, "long": 90 * time.Microsecond, "short": 30 * time.Microsecond}

// A fakeGPU computes on the CPU, and takes the time that ways take: tests that measure
// have a clock of their own, in which nothing else takes any.
type fakeGPU struct {
	pass.Device
	key cuda.TuneKey

	mu     sync.Mutex
	forced map[string]string
	asked  map[string]cuda.Boundary
	ran    []string // ways of the runs, those that follow each other once
	// wrong is the way whose results are wrong.
	wrong string
	// breaks is the way that cannot be recorded.
	breaks string
}

var fakeKey = cuda.TuneKey{Device: "Made Up 9000", Capability: 90, SMs: 132, Driver: "CUDA 13.0", Kernels: "abc"}

func newFake(t *testing.T) *fakeGPU {
	dev, err := cpu.Open(cpu.Config{Threads: 1})
	require.NoError(t, err)
	return &fakeGPU{Device: dev, key: fakeKey, forced: map[string]string{}, asked: map[string]cuda.Boundary{}, wrong: "wrong"}
}

func (d *fakeGPU) TuneKey() cuda.TuneKey { return d.key }

func (d *fakeGPU) Force(boundary, way string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if way == "" {
		delete(d.forced, boundary)
	} else {
		d.forced[boundary] = way
	}
}

func (d *fakeGPU) Boundaries() []cuda.Boundary {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []cuda.Boundary
	for _, name := range slices.Sorted(maps.Keys(d.asked)) {
		all = append(all, d.asked[name])
	}
	return all
}

func (d *fakeGPU) choose(boundary string, ways ...string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	way := ways[0]
	if f, ok := d.forced[boundary]; ok && slices.Contains(ways, f) {
		way = f
	}
	d.asked[boundary] = cuda.Boundary{Name: boundary, Ways: ways, Choice: way, Because: "by rule"}
	return way
}

func (d *fakeGPU) NewSession(cfg pass.SessionConfig) (pass.Session, error) {
	s, err := d.Device.NewSession(cfg)
	return fakeSession{s, d}, err
}

type fakeSession struct {
	pass.Session
	d *fakeGPU
}

type fakeRecording struct {
	pass.Recording
	d     *fakeGPU
	way   string
	takes time.Duration
}

func (r fakeRecording) Run(ctx context.Context, binds ...pass.Bind) (pass.Run, error) {
	run, err := r.Start(ctx, binds...)
	if err != nil {
		return run, err
	}
	return run, run.Wait(ctx)
}

func (r fakeRecording) Start(ctx context.Context, binds ...pass.Bind) (pass.Run, error) {
	run, err := r.Recording.Start(ctx, binds...)
	time.Sleep(r.takes)
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if n := len(r.d.ran); n == 0 || r.d.ran[n-1] != r.way {
		r.d.ran = append(r.d.ran, r.way)
	}
	return run, err
}

type fakePass struct {
	pass.Pass
	do func(pass.Op) pass.Op
}

func (p fakePass) Do(ops ...pass.Op) {
	for _, op := range ops {
		p.Pass.Do(p.do(op))
	}
}

// Record asks for a way for each op, and for those of a product in one of them.
func (s fakeSession) Record(ctx context.Context, opt pass.RecordOptions, f func(pass.Pass)) (pass.Recording, error) {
	var takes time.Duration
	var way string
	var broken error
	rec, err := s.Session.Record(ctx, opt, func(p pass.Pass) {
		f(fakePass{p, func(op pass.Op) pass.Op {
			way = s.way(op, opt.Math)
			if way == s.d.breaks {
				broken = pass.ErrOutOfMemory
			}
			takes += fakeWays[way]
			if g, ok := op.(pass.Gemm); ok && way == s.d.wrong {
				g.Epilogue = pass.Tanh
				return g
			}
			return op
		}})
	})
	if err == nil && broken != nil {
		rec.Close()
		return nil, broken
	}
	return fakeRecording{rec, s.d, way, takes}, err
}

func (s fakeSession) way(op pass.Op, m pass.Math) string {
	switch op := op.(type) {
	case pass.Gemm:
		if op.Rows == 1 {
			return s.d.choose("few rows", "rule", "slow")
		}
		return s.d.choose("product "+m.String(), "rule", "quick", "slow", "wrong")
	case pass.Map:
		return s.d.choose("map", "long", "short")
	case pass.Conv1D: // tiles are products, which the rule's way is not made of
		if s.d.choose("conv1d", "slow", "tiles") == "tiles" {
			return s.d.choose("product of tiles", "rule", "quick")
		}
		return "slow"
	}
	return s.d.choose("only", "rule")
}

// tune runs the program on a device.
func tune(t *testing.T, d pass.Device, all []work, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	p := program{work: all, stdout: &out, stderr: &errs, open: func(_ context.Context, name string) (pass.Device, error) {
		require.Equal(t, "fake", name)
		return d, nil
	}}
	code = p.run(t.Context(), append([]string{"--device", "fake", "--time", "80ms"}, args...))
	return code, out.String(), errs.String()
}
