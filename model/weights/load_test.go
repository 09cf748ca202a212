package weights

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// counting is a device that counts what is on it.
type counting struct {
	pass.Device
	params map[pass.Param]bool
}

func (c *counting) Load(ctx context.Context, w pass.Weights) (pass.Param, error) {
	p, err := c.Device.Load(ctx, w)
	if err == nil {
		c.params[p] = true
	}
	return p, err
}

func (c *counting) Unload(p pass.Param) error {
	delete(c.params, p)
	return c.Device.Unload(p)
}

func newCounting(t *testing.T) *counting {
	dev, err := cpu.Open(cpu.Config{Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return &counting{dev, map[pass.Param]bool{}}
}

// reads counts what is asked of a source.
type reads struct {
	memory
	n int
}

func (r *reads) Tensor(name string) (pass.Tensor, error) {
	r.n++
	return r.memory.Tensor(name)
}

func TestLoader(t *testing.T) {
	t.Parallel()
	ctx, dev := context.Background(), newCounting(t)
	src := memory{}.add("a.weight", count(0, 4), 2, 2).add("a.bias", count(0, 2), 2).add("n.weight", count(0, 2), 2)
	l := NewLoader(ctx, dev, src)
	require.Equal(t, src.Names(), l.Names())
	require.True(t, Has(l, "a.bias"))
	require.False(t, Has(l, "n.bias"))
	a := l.Load(Linear(l, 2, Rows("a", 2, true)))
	n := l.Load(Norm(l, "n", 2, false))
	require.Equal(t, pass.NormShape{N: 2}, n.Shape())
	params, err := l.Params()
	require.NoError(t, err)
	require.Equal(t, []pass.Param{a, n}, params)
	require.Len(t, dev.params, 2)
	require.NoError(t, Unload(dev, params))
	require.Empty(t, dev.params)
	require.NoError(t, Unload(dev, params), "of what is not there any more")
}

func TestLoaderFails(t *testing.T) {
	t.Parallel()
	dev := newCounting(t)
	ctx, cancel := context.WithCancel(context.Background())
	src := &reads{memory: memory{}.add("a.weight", count(0, 4), 2, 2).add("b.weight", []float32{1, 2, nan, 3}, 2, 2)}
	for _, c := range []struct {
		ctx   context.Context
		fail  func(l *Loader)
		is    error
		says  string
		reads int
	}{
		{ctx, func(l *Loader) { l.Load(Linear(l, 2, Rows("x", 2, false))) }, pass.ErrInvalid, `weights: tensor "x.weight"`, 2},
		{ctx, func(l *Loader) { l.Load(Linear(l, 2, Rows("b", 2, false))) }, pass.ErrInvalid, `tensor "b.weight": want finite values`, 2},
		{ctx, func(l *Loader) { l.Load(pass.NormWeights{}, nil) }, pass.ErrInvalid, "norm weights", 1},
		{ctx, func(l *Loader) { l.Fail(pass.ErrUnsupported); l.Fail(pass.ErrClosed) }, pass.ErrUnsupported, "", 1},
		{ctx, func(*Loader) { cancel() }, context.Canceled, "weights: ", 1},
	} {
		src.n = 0
		l := NewLoader(c.ctx, dev, src)
		l.Load(Linear(l, 2, Rows("a", 2, false)))
		require.Len(t, dev.params, 1)
		c.fail(l)
		require.True(t, l.Load(Linear(l, 2, Rows("a", 2, false))).IsZero())
		params, err := l.Params()
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
		require.Nil(t, params)
		require.Empty(t, dev.params, "nothing stays")
		require.Equal(t, c.reads, src.n, "nothing more is read")
	}
	for _, l := range []*Loader{NewLoader(context.Background(), nil, src), NewLoader(context.Background(), dev, nil)} {
		l.Load(Norm(l, "n", 2, false))
		require.Equal(t, l.src == nil, l.Names() == nil)
		_, err := l.Params()
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
}
