package backend

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

func TestTemporariesDoNotOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	worst, worstColour := 0.0, 0.0
	for range 300 {
		steps := 1 + rng.IntN(60)
		p := &Plan{Steps: make([]pass.Checked, steps)}
		for range 1 + rng.IntN(80) {
			first := rng.IntN(steps+1) - 1
			last := min(first+rng.IntN(5), steps)
			p.Temps = append(p.Temps, Temp{Len: rng.IntN(1000), First: first, Last: last})
		}
		align := 1 << rng.IntN(7)
		offsets, length := p.Pack(align)
		colours, lengths := p.Colour()
		sum := 0
		for _, n := range lengths {
			sum += n
		}
		for i, a := range p.Temps {
			require.Zero(t, offsets[i]%align)
			require.LessOrEqual(t, offsets[i]+a.Len, length)
			if a.Len > 0 {
				require.LessOrEqual(t, a.Len, lengths[colours[i]])
			}
			for c := range colours[i] { // the first that is free
				beside := false
				for j, b := range p.Temps {
					beside = beside || colours[j] == c && b.Len >= a.Len && b.overlaps(a)
				}
				require.True(t, beside, "temporary %d could have had buffer %d", i, c)
			}
			for j, b := range p.Temps[:i] {
				if !a.overlaps(b) || a.Len == 0 || b.Len == 0 {
					continue
				}
				require.NotEqual(t, colours[i], colours[j])
				require.True(t, offsets[i]+a.Len <= offsets[j] || offsets[j]+b.Len <= offsets[i])
			}
		}
		if align == 1 {
			worst = max(worst, float64(length)/float64(max(p.Alive(), 1)))
			worstColour = max(worstColour, float64(sum)/float64(max(p.Alive(), 1)))
		}
	}
	t.Logf("packed: at most %.2f of the largest set alive; whole buffers: %.2f", worst, worstColour)
	require.Less(t, worst, 1.35)
	require.Less(t, worstColour, 1.8)
}

// A network's activations: each op reads what the one before wrote.
func TestChainNeedsTwoTemporaries(t *testing.T) {
	p := &Plan{Steps: make([]pass.Checked, 10)}
	for i := range 9 {
		p.Temps = append(p.Temps, Temp{Len: 100, First: i, Last: i + 1})
	}
	_, length := p.Pack(1)
	require.Equal(t, 200, length)
	_, lengths := p.Colour()
	require.Equal(t, []int{100, 100}, lengths)
}

func TestTable(t *testing.T) {
	var tab table[string]
	a, ga := tab.add("a")
	b, gb := tab.add("b")
	require.NotEqual(t, a, b)
	v, ok := tab.remove(a, ga)
	require.True(t, ok)
	require.Equal(t, "a", v)
	_, ok = tab.get(a, ga)
	require.False(t, ok, "removed")
	_, ok = tab.get(a, ga+1)
	require.False(t, ok, "the generation of an empty slot")
	c, gc := tab.add("c")
	require.Equal(t, a, c)
	_, ok = tab.get(a, ga)
	require.False(t, ok, "the slot is another's now")
	v, _ = tab.get(c, gc)
	require.Equal(t, "c", v)
	_, ok = tab.get(0, 1)
	require.False(t, ok)
	_, ok = tab.get(9, 1)
	require.False(t, ok)
	require.ElementsMatch(t, []string{"c", "b"}, tab.drain())
	_, ok = tab.get(b, gb)
	require.False(t, ok)
}
