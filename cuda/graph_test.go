package cuda

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

func TestDependencies(t *testing.T) {
	t.Parallel()
	read := func(from, to driver.Pointer) touch { return touch{from, to, false} }
	write := func(from, to driver.Pointer) touch { return touch{from, to, true} }
	of := func(all ...[]touch) []launch {
		var l []launch
		for _, t := range all {
			l = append(l, launch{touches: t})
		}
		return l
	}
	for _, c := range []struct {
		name string
		l    []launch
		want [][]int
	}{
		{"read after write", of([]touch{write(0, 8)}, []touch{read(4, 6), write(8, 9)}), [][]int{nil, {0}}},
		{"write after read", of([]touch{read(0, 8)}, []touch{write(7, 9)}), [][]int{nil, {0}}},
		{"write after write", of([]touch{write(0, 8)}, []touch{write(0, 1)}), [][]int{nil, {0}}},
		{"apart", of([]touch{write(0, 8)}, []touch{write(8, 16)}, []touch{read(16, 20)}), [][]int{nil, nil, nil}},
		{"readers side by side", of([]touch{write(0, 8)}, []touch{read(0, 8), write(8, 9)}, []touch{read(0, 8), write(9, 10)}, []touch{write(0, 4), read(8, 10)}),
			[][]int{nil, {0}, {0}, {1, 2}}},
		{"a chain has one edge each", of([]touch{write(0, 8)}, []touch{read(0, 8), write(8, 16)}, []touch{read(0, 16), write(16, 24)}), [][]int{nil, {0}, {1}}},
		{"in place", of([]touch{write(0, 8)}, []touch{read(0, 8), write(0, 8)}, []touch{read(0, 8)}), [][]int{nil, {0}, {1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, dependencies(c.l))
		})
	}
}

// Whatever the ranges: exactly the launches that touch something in common, of which one
// writes it, are ordered, and no edge says what others say already.
func TestDependenciesOrderConflictsOnly(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		launches := make([]launch, 1+r.IntN(40))
		for i := range launches {
			for range 1 + r.IntN(4) {
				from := driver.Pointer(r.IntN(60))
				launches[i].touches = append(launches[i].touches, touch{from, from + 1 + driver.Pointer(r.IntN(12)), r.IntN(3) == 0})
			}
		}
		n := len(launches)
		want, got := closure(n, func(i, k int) bool { return conflict(launches[k], launches[i]) }), [][]bool(nil)
		edges := dependencies(launches)
		has := func(i, k int) bool {
			for _, e := range edges[i] {
				if e == k {
					return true
				}
			}
			return false
		}
		got = closure(n, has)
		require.Equal(t, want, got, fmt.Sprint("round ", round))
		for i := range n {
			for _, k := range edges[i] {
				for _, other := range edges[i] {
					require.False(t, other != k && got[other][k], "launch %d waits for %d and for %d, which waits for it", i, k, other)
				}
			}
		}
	}
}

func conflict(a, b launch) bool {
	for _, s := range a.touches {
		for _, t := range b.touches {
			if s.from < t.to && t.from < s.to && (s.write || t.write) {
				return true
			}
		}
	}
	return false
}

// closure returns for i and k < i whether k comes before i by way of the relation.
func closure(n int, before func(i, k int) bool) [][]bool {
	all := make([][]bool, n)
	for i := range n {
		all[i] = make([]bool, n)
		for k := range i {
			if before(i, k) {
				all[i][k] = true
				for j := range k {
					all[i][j] = all[i][j] || all[k][j]
				}
			}
		}
	}
	return all
}
