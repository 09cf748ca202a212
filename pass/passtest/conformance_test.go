package passtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Ops with products run in every kind of math, with and without weights; the rest once.
func TestWaysOfMath(t *testing.T) {
	t.Parallel()
	s := newSuite(Config{}, nil)
	want := map[string]int{"gemm": 2, "attention": 2, "attend": 2, "softmax": 1, "add": 1}
	for _, e := range cases.All() {
		n, ok := want[e.Op]
		if !ok {
			continue
		}
		delete(want, e.Op)
		var math []pass.Math
		for _, w := range s.ways(e.Case()) {
			if !slices.Contains(math, w.math) {
				math = append(math, w.math)
			}
		}
		require.Len(t, math, n, e.Name)
	}
	require.Empty(t, want)
}
