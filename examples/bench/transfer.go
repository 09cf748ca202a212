package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// transferCases move data between host and device. Bytes are those of the data, as they
// are on the host.
var transferCases = []benchmarkCase{
	{name: "read-back", shape: "4 bytes, the queue empty", make: on(readBack(1, false))},
	{name: "download", shape: "64 MiB", make: on(readBack(16<<20, true))},
	{name: "upload", shape: "64 MiB, until it is on the device", make: on(upload(16 << 20))},
	loadWeights(pass.F32),
	loadWeights(pass.F16),
	loadWeights(pass.Q8_0),
}

// copyCases show the speed of the device's own memory: each byte is read and written.
var copyCases = []benchmarkCase{
	kernelCase("256MiB", "65536×1024 F32", kernel.Kernel{Op: pass.Copy{Rows: 1 << 16, Cols: 1 << 10}, Args: []string{"From", "To"}}),
}

// readBack reads n elements.
func readBack(n int, rate bool) setup {
	return func(ctx context.Context, t *target) (*ready, error) {
		s, b, host, err := filled(ctx, t, n)
		if err != nil {
			return nil, err
		}
		back := make([]float32, n)
		r := &ready{once: func(ctx context.Context) (time.Duration, error) {
			clear(back)
			start := time.Now()
			err := s.Read(ctx, b.View(), back)
			took := time.Since(start)
			if err == nil {
				err = same(back, host)
			}
			return took, err
		}, ops: 1, close: s.Close}
		if rate {
			r.cost.Bytes = 4 * float64(n)
		}
		return r, nil
	}
}

// upload writes n elements. The device says when they are there: reading one of them
// takes its place behind the write.
func upload(n int) setup {
	return func(ctx context.Context, t *target) (*ready, error) {
		s, b, host, err := filled(ctx, t, n)
		if err != nil {
			return nil, err
		}
		last := make([]float32, 1)
		return &ready{once: func(ctx context.Context) (time.Duration, error) {
			host[n-1]++
			start := time.Now()
			err := s.Write(ctx, b.View(), host)
			if err == nil {
				err = s.Read(ctx, b.At(n-1), last)
			}
			took := time.Since(start)
			if err == nil {
				err = same(last, host[n-1:])
			}
			return took, err
		}, ops: 1, cost: pass.Cost{Bytes: 4 * float64(n)}, close: s.Close}, nil
	}
}

// filled makes a buffer of n random elements.
func filled(ctx context.Context, t *target, n int) (pass.Session, pass.Buffer, []float32, error) {
	s, err := t.dev.NewSession(pass.SessionConfig{Label: "bench"})
	if err != nil {
		return nil, pass.Buffer{}, nil, err
	}
	host := kernel.Random(1, n, 1)
	b, err := s.Alloc(pass.F32, n)
	if err == nil {
		err = s.Write(ctx, b.View(), host)
	}
	if err != nil {
		return nil, pass.Buffer{}, nil, errors.Join(err, s.Close())
	}
	return s, b, host, nil
}

func same(got, want []float32) error {
	for i, v := range got {
		if v != want[i] {
			return fmt.Errorf("wrong data: element %d: want %v, got %v", i, want[i], v)
		}
	}
	return nil
}

// loadWeights loads a matrix of 4096×4096 from memory, until the param can be used.
func loadWeights(typ pass.DType) benchmarkCase {
	const n = 4096
	return benchmarkCase{name: "load-" + typeName(typ), shape: fmt.Sprintf("%d×%d %v, from memory", n, n, typ), make: func() (setup, error) {
		w := cases.Encode("w", typ, kernel.Random(1, n*n, 1), n, n)
		return func(ctx context.Context, t *target) (*ready, error) {
			return &ready{once: func(ctx context.Context) (time.Duration, error) {
				start := time.Now()
				p, err := t.dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{w}})
				took := time.Since(start)
				if err != nil {
					return 0, err
				}
				return took, t.dev.Unload(p)
			}, ops: 1, cost: pass.Cost{Bytes: float64(w.Bytes())}, close: func() error { return nil }}, nil
		}, nil
	}}
}
