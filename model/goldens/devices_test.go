package goldens_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// A bench runs ops for a case on a device. What goes wrong ends the test.
type bench struct {
	testing.TB
	*goldens.Case

	dev   pass.Device
	binds []pass.Bind
}

func (b *bench) load(w pass.Weights) pass.Param {
	b.Helper()
	p, err := b.dev.Load(b.Context(), w)
	require.NoError(b, err)
	return p
}

func (b *bench) weights(name string) []float32 {
	b.Helper()
	v, err := b.Float32s(name)
	require.NoError(b, err)
	return v
}

// vector returns n weights.
func (b *bench) vector(name string, n int) []float32 {
	b.Helper()
	v := b.weights(name)
	require.Len(b, v, n, "%s: weights %q", b.Case.Name, name)
	return v
}

func (b *bench) input(name string, shape ...int) []float32 {
	b.Helper()
	v, err := b.InputOf(name, shape...)
	require.NoError(b, err)
	return v
}

func (b *bench) inputAxes(name string, n int) []int {
	b.Helper()
	shape, err := b.InputAxes(name, n)
	require.NoError(b, err)
	return shape
}

func (b *bench) tensorAxes(name string, n int) []int {
	b.Helper()
	shape, err := b.TensorAxes(name, n)
	require.NoError(b, err)
	return shape
}

// upload makes an input of the recording that holds values.
func (b *bench) upload(p pass.Pass, values []float32) pass.View {
	in := p.Input(pass.F32, len(values))
	b.binds = append(b.binds, in.F32(values))
	return in.View()
}

// run records f, which makes temporaries of the outputs that it names, and runs it once.
func (b *bench) run(f func(p pass.Pass, output func(name string, n int) pass.View)) goldens.Results {
	b.Helper()
	ses, err := b.dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	defer ses.Close()
	outs := map[string]pass.Output{}
	b.binds = nil
	rec, err := ses.Record(b.Context(), pass.RecordOptions{Label: b.Case.Name}, func(p pass.Pass) {
		f(p, func(name string, n int) pass.View {
			v := p.Temp(pass.F32, n).View()
			outs[name] = p.Output(v, n)
			return v
		})
	})
	require.NoError(b, err)
	run, err := rec.Run(b.Context(), b.binds...)
	require.NoError(b, err)
	got := goldens.Results{}
	for name, o := range outs {
		values := make([]float32, o.Len())
		require.NoError(b, run.ReadF32(o, values))
		got[name] = values
	}
	return got
}
