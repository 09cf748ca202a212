package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/pass"
)

// A Result is what --json prints with --device.
type Result struct {
	Wanted  string  `json:"wanted"`            // the name given to --device
	Device  *Device `json:"device,omitempty"`  // the device, if it opened
	OpenMS  float64 `json:"open_ms"`           // from nothing to an open device, in milliseconds
	FirstMS float64 `json:"first_ms"`          // the self-test with everything to be compiled
	AgainMS float64 `json:"again_ms"`          // its recording once more
	Passed  bool    `json:"passed"`            // whether the device computed rightly
	Failure string  `json:"failure,omitempty"` // why not
}

// check opens a device by the name given to --device and lets it compute.
func check(ctx context.Context, name string, timeout time.Duration) *Result {
	opening, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := time.Now()
	dev, err := device.Open(opening, name)
	if err != nil {
		return &Result{Wanted: name, Failure: device.Line(err)}
	}
	return checkDevice(ctx, name, dev, time.Since(start))
}

// checkDevice lets an open device compute, and closes it.
func checkDevice(ctx context.Context, name string, dev pass.Device, opened time.Duration) *Result {
	info := dev.Info()
	r := &Result{Wanted: name, OpenMS: milliseconds(opened)}
	r.Device = &Device{Backend: info.Backend, Name: info.Name, Kind: info.Kind, APIs: []string{info.API}, Driver: info.Driver, Usable: true}
	r.Device.take(info)
	first, again, err := selfTest(ctx, dev)
	r.FirstMS, r.AgainMS = milliseconds(first), milliseconds(again)
	if err = errors.Join(err, dev.Close()); err != nil {
		r.Failure = device.Line(err)
	}
	r.Passed = err == nil
	return r
}

// Shape of the self-test: small, but more than one element of everything.
const (
	testIn   = 48
	testOut  = 20
	testFill = 3
)

// selfTest runs a recording of a fill, a copy and a product twice, with different
// inputs. All numbers are small integers, so the results are exact on any device.
func selfTest(ctx context.Context, dev pass.Device) (first, again time.Duration, err error) {
	weights := make([]float32, testOut*testIn)
	for i := range weights {
		weights[i] = float32(i%7 - 3)
	}
	bias := make([]float32, testOut)
	for j := range bias {
		bias[j] = float32(j)
	}
	start := time.Now()
	w, err := dev.Load(ctx, pass.LinearWeights{Name: "self-test", Parts: []pass.Tensor{pass.Float32s("w", weights, testOut, testIn)}, Bias: bias})
	if err != nil {
		return 0, 0, err
	}
	session, err := dev.NewSession(pass.SessionConfig{Label: "self-test"})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	var in pass.Input
	var out pass.Output
	rec, err := session.Record(ctx, pass.RecordOptions{Label: "self-test"}, func(p pass.Pass) {
		in = p.Input(pass.F32, testIn)
		x, y := p.Temp(pass.F32, 2*testIn), p.Temp(pass.F32, 2*testOut)
		p.Do(
			pass.Fill{To: x.View(), Rows: 1, Cols: testIn, Value: testFill},
			pass.Copy{From: in.View(), To: x.At(testIn), Rows: 1, Cols: testIn},
			pass.Gemm{A: x.View(), W: w, C: y.View(), Rows: 2},
		)
		out = p.Output(y.View(), 2*testOut)
	})
	if err != nil {
		return 0, 0, err
	}
	for n := range 2 {
		if n == 1 {
			start = time.Now()
		}
		x := make([]float32, testIn)
		for k := range x {
			x[k] = float32((k+n)%5 - 2)
		}
		run, err := rec.Run(ctx, in.F32(x))
		if err != nil {
			return first, again, err
		}
		got := make([]float32, 2*testOut)
		if err := run.ReadF32(out, got); err != nil {
			return first, again, err
		}
		if n == 0 {
			first = time.Since(start)
		} else {
			again = time.Since(start)
		}
		if err := compare(got, weights, bias, x); err != nil {
			return first, again, fmt.Errorf("run %d: %w", n+1, err)
		}
	}
	return first, again, nil
}

// compare evaluates the self-test in float64 and returns the first difference.
func compare(got, weights, bias, x []float32) error {
	for row := range 2 {
		for j := range testOut {
			want := float64(bias[j])
			for k := range testIn {
				v := float64(testFill)
				if row == 1 {
					v = float64(x[k])
				}
				want += v * float64(weights[j*testIn+k])
			}
			if value := got[row*testOut+j]; float64(value) != want {
				return fmt.Errorf("row %d, column %d: want %v, got %v", row, j, want, value)
			}
		}
	}
	return nil
}
