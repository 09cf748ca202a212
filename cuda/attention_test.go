package cuda

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// hopper opens the GPU, or an emulated one of capability 9.0.
func hopper(t testing.TB, cfg Config) pass.Device {
	t.Helper()
	if !onDevice() {
		return emulated(t, drivertest.Hopper(), cfg)
	}
	dev, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	return dev
}

// The cases of attention and caches in every way there is, of which the suite takes the
// rule's.
func TestAttentionWays(t *testing.T) {
	t.Parallel()
	if os.Getenv("TANDEM_FULL") != "1" && !onDevice() {
		t.Skip("takes long in the emulator: TANDEM_FULL=1")
	}
	for _, w := range []struct {
		way  string
		math pass.Math
	}{{"wgmma", pass.Fast}, {"wgmma-turns", pass.Fast}, {"wgmma-direct", pass.Fast}, {"mma", pass.Fast}, {"split", pass.Exact}} {
		t.Run(w.way, func(t *testing.T) {
			t.Parallel()
			passtest.Config{Math: []pass.Math{w.math}, Ops: []string{"attention", "attend"}}.Run(t, func(t testing.TB) pass.Device {
				return hopper(t, Config{Ways: map[string]string{"": w.way}})
			})
		})
	}
}

// attentionWays are all ways to compute attention of many queries, with the math they are
// for.
var attentionWays = []struct {
	way  string
	math pass.Math
}{
	{"wgmma-turns", pass.Fast}, {"wgmma", pass.Fast}, {"wgmma-direct", pass.Fast},
	{"mma", pass.Fast}, {"mma", pass.Exact}, {"split", pass.Exact},
}

// attentionOf returns what an op over the given queries, keys and values, and second queries
// and positions, if there are any, makes in a way.
func attentionOf(t *testing.T, way string, math pass.Math, op pass.Attention, q, k, v []float32, relative ...[]float32) []float32 {
	t.Helper()
	dev := hopper(t, Config{Ways: map[string]string{"": way}, Profile: Profile{SMs: 1}}) // works follow each other
	defer dev.Close()
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	put := func(x []float32) pass.View {
		b, err := s.Alloc(pass.F32, len(x))
		require.NoError(t, err)
		require.NoError(t, s.Write(t.Context(), b.View(), x))
		return b.View()
	}
	o := make([]float32, len(q))
	op.Q, op.K, op.V, op.O = put(q), put(k), put(v), put(o)
	if len(relative) > 0 {
		op.Q2, op.Positions = put(relative[0]), put(relative[1])
	}
	rec, err := s.Record(t.Context(), pass.RecordOptions{Math: math}, func(p pass.Pass) { p.Do(op) })
	require.NoError(t, err)
	_, err = rec.Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Read(t.Context(), op.O, o))
	return o
}

// Values that are not finite reach the queries that see them, in their dimension, and no
// others.
func TestAttentionOddValues(t *testing.T) {
	t.Parallel()
	const rows, dim = 150, 8
	q, k, v := cases.Recipe("q", 1, rows*dim, 1, 0), cases.Recipe("k", 1, rows*dim, 1, 0), cases.Recipe("v", 1, rows*dim, 1, 0)
	op := pass.Attention{Queries: rows, Keys: rows, Heads: 1, HeadDim: dim, Mask: pass.Band(20, 3)}
	odd := slices.Clone(v)
	odd[40*dim+3], odd[130*dim+6] = float32(math.NaN()), float32(math.Inf(1))
	for _, w := range attentionWays {
		usual, got := attentionOf(t, w.way, w.math, op, q, k, v), attentionOf(t, w.way, w.math, op, q, k, odd)
		for i := range rows {
			for d := range dim {
				x := float64(got[i*dim+d])
				sees := func(key int) bool { return i-20 <= key && key <= i+3 }
				switch {
				case d == 3 && sees(40):
					require.True(t, math.IsNaN(x), "%v: row %d: got %v", w, i, x)
				case d == 6 && sees(130):
					require.True(t, math.IsInf(x, 1), "%v: row %d: got %v", w, i, x)
				default:
					require.InDelta(t, usual[i*dim+d], x, 1e-3, "%v: row %d, dimension %d", w, i, d)
				}
			}
		}
	}
}

// Blocks of values of very different size: those far too small to be seen do no harm, and
// a query that sees small ones alone gets them.
func TestAttentionUnits(t *testing.T) {
	t.Parallel()
	const rows, dim = 300, 8
	q, k := cases.Recipe("q", 1, rows*dim, 1, 0), cases.Recipe("k", 1, rows*dim, 1, 0)
	for _, w := range attentionWays {
		for _, small := range []float32{1e-3, 1e-12, 1e-30} {
			v := make([]float32, rows*dim)
			for i := range v {
				v[i] = 1e6
				if block := i / dim / 64; block == 0 || block == 3 {
					v[i] = 1e6 * small
				}
			}
			o := attentionOf(t, w.way, w.math, pass.Attention{Queries: rows, Keys: rows, Heads: 1, HeadDim: dim, Mask: pass.Causal}, q, k, v)
			for i := range rows {
				require.False(t, math.IsNaN(float64(o[i*dim])) || math.IsInf(float64(o[i*dim]), 0), "%v, %v: row %d", w, small, i)
				if i < 64 && small > 1e-4 {
					require.InEpsilon(t, 1e6*small, o[i*dim], 1e-3, "%v, %v: row %d", w, small, i)
				}
			}
			for d := range dim { // row 299 sees 172 large values of 300, or 171 and a part
				require.InDelta(t, weightOf(q, k, dim, rows-1)*1e6, o[(rows-1)*dim+d], 2e-3*1e6, "%v, %v", w, small)
			}
		}
	}
}

// Numbers that halves have few digits of, or none, are as good as others.
func TestAttentionSmall(t *testing.T) {
	t.Parallel()
	const rows, dim, small = 150, 8, 1e-7
	q, k, v := cases.Recipe("q", 1, rows*dim, 1, 0), cases.Recipe("k", 1, rows*dim, 1, 0), cases.Recipe("v", 1, rows*dim, 1, 0)
	scaled := func(x []float32, by float32) []float32 {
		x = slices.Clone(x)
		for i := range x {
			x[i] *= by
		}
		return x
	}
	op := pass.Attention{Queries: rows, Keys: rows, Heads: 1, HeadDim: dim}
	want := attentionOf(t, "split", pass.Exact, op, q, k, v)
	for _, w := range attentionWays {
		got := attentionOf(t, w.way, w.math, op, scaled(q, 1/small), scaled(k, small), v)
		require.InDeltaSlice(t, want, got, 2e-3, "%v: keys", w)
		got = attentionOf(t, w.way, w.math, op, q, k, scaled(v, small))
		require.InDeltaSlice(t, want, scaled(got, 1/small), 2e-3, "%v: values", w)
	}
}

// Keys and values that bulk copies cannot fetch are not given to kernels that would.
func TestAttentionUnaligned(t *testing.T) {
	t.Parallel()
	const rows, dim = 20, 8
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	b, err := s.Alloc(pass.F32, 4*rows*dim)
	require.NoError(t, err)
	out, err := s.Alloc(pass.F32, 4*rows*dim)
	require.NoError(t, err)
	x, o := b.View(), out.View()
	for i, c := range []struct {
		q, k, v, o pass.View
		direct     bool
	}{
		{x, x, x, o, true},
		{x.At(8), x.At(4), x.Rows(dim + 4), o.At(4), true},
		{x.At(2), x, x, o, false},
		{x, x.At(2), x, o, false},
		{x, x, x.At(3), o, false},
		{x, x, x.Rows(dim + 2), o, false},
		{x, x.Batch(rows*dim + 1), x, o, false},
		{x, x, x, o.Rows(dim + 1), false},
	} {
		const batch = 2
		_, err := s.Record(t.Context(), pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
			p.Do(pass.Attention{Q: c.q, K: c.k, V: c.v, O: c.o, Batch: batch, Queries: rows, Keys: rows, Heads: 1, HeadDim: dim})
		})
		require.NoError(t, err)
		all := dev.(Tunable).Boundaries()
		require.Len(t, all, 1)
		require.Equal(t, c.direct, slices.Contains(all[0].Ways, "wgmma-direct"), "%d: %v", i, all[0].Ways)
	}
}

// Scores that grow from keys to keys, slowly, by more than halves hold and by more than F32
// does, beside such that fall, and keys that are no numbers: all ways give what FP32 does.
// Numbers are such that halves have them exactly.
func TestAttentionRises(t *testing.T) {
	t.Parallel()
	const rows, dim = 420, 8
	noise, v := cases.Recipe("k", 1, rows*dim, 1, 0), cases.Recipe("v", 1, rows*dim, 1, 0)
	for _, relative := range []bool{false, true} {
		for _, rise := range []float32{0, 3, 16, 48, float32(math.NaN())} {
			mask := pass.Band(300, 40)
			if rise == 16 || rise == 48 && !relative {
				mask = pass.Mask{}
			}
			if relative && rise == 16 {
				continue
			}
			q, k, q2, positions := make([]float32, rows*dim), make([]float32, rows*dim), make([]float32, rows*dim), make([]float32, (2*rows-1)*dim)
			for i := range q {
				q[i], k[i] = float32(1-i/dim%2*2), float32(math.Round(float64(noise[i])))
				q2[i] = q[i]
				if i%dim == 0 && rise == rise {
					k[i] = rise * float32(i/dim/20)
				}
			}
			for i := range positions {
				positions[i] = float32(i / dim * 7 % 5)
			}
			if rise != rise {
				k[333*dim+2] = rise
			}
			op := pass.Attention{Queries: rows, Keys: rows, Heads: 1, HeadDim: dim, Mask: mask}
			var more [][]float32
			if relative {
				more = [][]float32{q2, positions}
			}
			want := attentionOf(t, "split", pass.Exact, op, q, k, v, more...)
			for _, w := range attentionWays {
				if w.math == pass.Exact || relative && strings.HasPrefix(w.way, "wgmma") && w.way != "wgmma-turns" {
					continue
				}
				got := attentionOf(t, w.way, w.math, op, q, k, v, more...)
				for i := range want {
					x, y := float64(want[i]), float64(got[i])
					require.Equal(t, math.IsNaN(x), math.IsNaN(y), "%v, rise %v, relative %v: row %d", w, rise, relative, i/dim)
					if !math.IsNaN(x) {
						require.InDelta(t, x, y, 2e-3, "%v, rise %v, relative %v: row %d, dimension %d", w, rise, relative, i/dim, i%dim)
					}
				}
			}
		}
	}
}

// Queries that are taken in portions give what they do on matrix units, lengths and masks
// included.
func TestAttentionPortions(t *testing.T) {
	t.Parallel()
	const rows, dim = 2*splitRows + 30, 4
	q, k, v := cases.Recipe("q", 1, rows*dim, 1, 0), cases.Recipe("k", 1, rows*dim, 1, 0), cases.Recipe("v", 1, rows*dim, 1, 0)
	op := pass.Attention{Queries: rows, Keys: rows, Heads: 1, HeadDim: dim, Mask: pass.Band(300, 5), Lengths: pass.Fixed(rows - 9)}
	usual, got := attentionOf(t, "mma", pass.Exact, op, q, k, v), attentionOf(t, "split", pass.Exact, op, q, k, v)
	require.InDeltaSlice(t, usual, got, 1e-5)
}

// weightOf returns the part that keys outside of the blocks 0 and 3 have for the last row.
func weightOf(q, k []float32, dim, row int) float64 {
	var large, all float64
	for j := range row + 1 {
		score := 0.0
		for d := range dim {
			score += float64(q[row*dim+d]) * float64(k[j*dim+d])
		}
		weight := math.Exp(score / math.Sqrt(float64(dim)))
		all += weight
		if block := j / 64; block != 0 && block != 3 {
			large += weight
		}
	}
	return large / all
}

// Which kernels serve which device and shape.
func TestAttentionRule(t *testing.T) {
	t.Parallel()
	ways := func(tier string, shared int, fast, relative bool, queries, keys, dim int) []string {
		chosen, err := kernels.TierNamed(tier)
		require.NoError(t, err)
		d := &device{attributes: attributes{sharedMemory: shared}}
		d.kernels = &images{d: d, chosen: chosen, table: map[string]*place{}}
		for _, f := range kernels.Families() {
			for _, e := range f.Entries {
				d.kernels.table[e.Name] = &place{f.Name, e}
			}
		}
		a := attention{c: &compiler{d: d, fast: fast}, batch: 1, queries: queries, most: keys, heads: 20, dim: dim, relative: relative, mapped: true}
		_, ways := a.ways()
		return ways
	}
	require.Equal(t, []string{"split"}, ways("sm_90a", 227<<10, true, false, 8, 8, 64))
	require.Equal(t, []string{"wgmma-direct", "wgmma-turns", "wgmma", "mma", "split"}, ways("sm_90a", 227<<10, true, false, 9, 9, 64))
	require.Equal(t, []string{"wgmma-turns", "wgmma", "wgmma-direct", "mma", "split"}, ways("sm_90a", 227<<10, true, false, 4096, 4096, 64), "halves would be made too often")
	require.Equal(t, []string{"wgmma-turns", "wgmma", "mma", "split"}, ways("sm_90a", 227<<10, true, false, 9, 9, 128))
	require.Equal(t, []string{"mma", "split"}, ways("sm_90a", 227<<10, true, false, 9, 9, 256))
	require.Equal(t, []string{"wgmma-turns", "mma", "split"}, ways("sm_90a", 227<<10, true, true, 1, 1, 128))
	require.Equal(t, []string{"split"}, ways("sm_90a", 227<<10, false, false, 9, 9, 256), "there is no kernel")
	require.Equal(t, []string{"mma", "split"}, ways("sm_75", 64<<10, true, false, 9, 9, 128))
	require.Equal(t, []string{"split", "mma"}, ways("sm_90a", 227<<10, false, false, 32, 1500, 64), "few queries, many keys")
	require.Equal(t, []string{"mma", "split"}, ways("sm_90a", 227<<10, false, false, 33, 1500, 64))
	require.Equal(t, []string{"mma", "split"}, ways("sm_90a", 227<<10, false, false, 32, 32, 64))
	require.Equal(t, []string{"split"}, ways("sm_75", 64<<10, true, true, 9, 9, 128), "too little shared memory")
}
