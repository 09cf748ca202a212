package undertest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// A Source is a set of tensors in memory.
type Source map[string]pass.Tensor

// Tensor returns the named tensor.
func (s Source) Tensor(name string) (pass.Tensor, error) {
	t, ok := s[name]
	if !ok {
		return t, fmt.Errorf("no tensor %q: %w", name, pass.ErrInvalid)
	}
	return t, nil
}

// Names returns the names of all tensors, sorted.
func (s Source) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Random adds a tensor whose values are those of the recipe of the golden cases.
func (s Source) Random(name string, scale, offset float32, shape ...int) {
	values := make([]float32, pass.Tensor{Shape: shape}.Len())
	goldens.Values(values, name, 1, scale, offset)
	s[name] = pass.Float32s(name, values, shape...)
}

// with returns a copy with one tensor changed.
func (s Source) with(name string, values []float32, shape ...int) Source {
	c := maps.Clone(s)
	c[name] = pass.Float32s(name, values, shape...)
	return c
}

// Refuses loads a network again and again from a source in which one tensor is missing, of
// another shape, or not finite, and checks that each is refused by one error that names the
// tensor and what is wrong, and that nothing stays on the device.
func Refuses(t *testing.T, src Source, load func(context.Context, pass.Device, Source) (io.Closer, error)) {
	t.Helper()
	dev := &Counted{Device: Open(t, "cpu")}
	ctx := t.Context()
	refused := func(src Source, name, what string) {
		t.Helper()
		_, err := load(ctx, dev, src)
		require.ErrorIs(t, err, pass.ErrInvalid, "%s: %s", name, what)
		require.ErrorContains(t, err, strconv.Quote(name), what)
		require.ErrorContains(t, err, what)
		require.Zero(t, dev.Held(), "%s: %s: what stays on the device", name, what)
	}
	for _, name := range src.Names() {
		missing := maps.Clone(src)
		delete(missing, name)
		shape := src[name].Shape
		refused(missing, name, fmt.Sprintf("want shape %v", shape))
		values, err := src[name].Float32s()
		require.NoError(t, err)
		longer := slices.Clone(shape)
		longer[0]++
		refused(src.with(name, append(slices.Clone(values), values[:len(values)/shape[0]]...), longer...), name,
			fmt.Sprintf("want shape %v, given %v", shape, longer))
		last := len(values) - 1
		values[last] = float32(math.NaN())
		refused(src.with(name, values, shape...), name, fmt.Sprintf("given NaN or infinity as element %d", last))
	}
	closer, err := load(ctx, dev, src)
	require.NoError(t, err)
	require.Positive(t, dev.Held())
	require.NoError(t, closer.Close())
	require.NoError(t, closer.Close())
	require.Zero(t, dev.Held())
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = load(canceled, dev, src)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, dev.Held())
	_, err = load(ctx, nil, src)
	require.ErrorIs(t, err, pass.ErrInvalid)
}
