// Package mixed records many small ops of four kinds, as networks have them, each of which
// writes a temporary of its own that the next one reads. What recording costs is measured
// with it, whatever the backend.
package mixed

import (
	"context"
	"errors"

	"github.com/tandem-gpu/tandem/pass"
)

// Ops is how many ops a recording has, and Width how many columns everything in it.
const (
	Ops   = 1000
	Width = 64
)

// Weights are what the ops use.
type Weights struct{ linear, conv pass.Param }

// Load loads the weights, all zero. The caller unloads them.
func Load(ctx context.Context, dev pass.Device) (w Weights, err error) {
	const taps = 3
	zeros := make([]float32, Width*Width*taps)
	if w.linear, err = dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", zeros[:Width*Width], Width, Width)}}); err != nil {
		return w, err
	}
	if w.conv, err = dev.Load(ctx, pass.ConvWeights{Weight: pass.Float32s("w", zeros, Width, Width, taps)}); err != nil {
		return Weights{}, errors.Join(err, w.Unload(dev))
	}
	return w, nil
}

// Unload gives up what was loaded.
func (w Weights) Unload(dev pass.Device) error {
	var errs []error
	for _, p := range []pass.Param{w.linear, w.conv} {
		if !p.IsZero() {
			errs = append(errs, dev.Unload(p))
		}
	}
	return errors.Join(errs...)
}

// Record records the ops on the given number of rows; see Do.
func (w Weights) Record(ctx context.Context, ses pass.Session, opt pass.RecordOptions, rows int) (pass.Recording, error) {
	return ses.Record(ctx, opt, func(p pass.Pass) { w.Do(p, rows) })
}

// Do has the ops done on the given number of rows: those of an input, which it returns, and
// the output as large.
func (w Weights) Do(p pass.Pass, rows int) pass.Input {
	in := p.Input(pass.F32, rows*Width)
	x := in.View()
	for i := range Ops {
		y := p.Temp(pass.F32, rows*Width).View()
		switch i % 4 {
		case 0:
			p.Do(pass.Gemm{A: x, W: w.linear, C: y, Rows: rows})
		case 1:
			p.Do(pass.Map{X: x, Y: y, Rows: rows, Cols: Width, Epilogue: pass.SiLU})
		case 2:
			p.Do(pass.Conv1D{X: x, W: w.conv, Y: y, In: rows, PadLeft: 1, PadRight: 1})
		case 3:
			p.Do(pass.Copy{From: x, To: y, Rows: rows, Cols: Width})
		}
		x = y
	}
	p.Output(x, rows*Width)
	return in
}
