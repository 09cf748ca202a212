package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

func TestDot8(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, k := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 255, 256, 257, 260, 511, 513, 20000} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			a, w := make([]float32, k), make([]panelRow, k)
			var want, size, got [lanes]float64
			for i := range a {
				a[i] = float32(rng.NormFloat64())
				for j := range lanes {
					w[i][j] = float32(rng.NormFloat64()) + 0.5
					want[j] += float64(a[i]) * float64(w[i][j])
					size[j] += math.Abs(float64(a[i]) * float64(w[i][j]))
				}
			}
			for j := range got {
				got[j] = float64(j) // it adds
			}
			fine, coarse, exact := got, 0.0, 0.0
			dot8(&got, a, w)
			dotFine(&fine, a, w)
			for j := range got {
				require.InDelta(t, want[j]+float64(j), got[j], 5e-7*size[j]+1e-9, "lane %d", j)
				require.InDelta(t, want[j]+float64(j), fine[j], 4e-7*size[j]/math.Sqrt(float64(k+1))+1e-9, "lane %d of fine sums", j)
				coarse += math.Pow(got[j]-want[j]-float64(j), 2)
				exact += math.Pow(fine[j]-want[j]-float64(j), 2)
			}
			if k > 200 {
				require.Less(t, exact, coarse/5, "fine sums are off by less than half of what others are")
			}
		})
	}
}

// A sum over many terms of one sign is where plain float32 sums drift.
func TestDot8DoesNotDrift(t *testing.T) {
	t.Parallel()
	const k = 20000
	a, w := make([]float32, k), make([]panelRow, k)
	want := 0.0
	for i := range a {
		a[i] = 0.1 + float32(i%7)*1e-3
		w[i] = panelRow{0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3}
		want += float64(a[i]) * float64(float32(0.3))
	}
	var got [lanes]float64
	dot8(&got, a, w)
	require.InEpsilon(t, want, got[7], 2e-6)
}

func TestMatrixPacksEveryWeightOnce(t *testing.T) {
	t.Parallel()
	for _, shape := range [][2]int{{1, 1}, {7, 3}, {8, 4}, {9, 5}, {17, 33}} {
		n, k := shape[0], shape[1]
		v := make([]float32, n*k)
		for i := range v {
			v[i] = float32(i + 1)
		}
		m, err := newMatrix(&ledger{limit: 1 << 30}, n, k, nil)
		require.NoError(t, err)
		require.NoError(t, m.fill(t.Context(), pass.Float32s("w", v, n, k), 0))
		for o := range panelsOf(n) * lanes {
			for i := range k {
				want := float32(0) // beyond n
				if o < n {
					want = v[o*k+i]
				}
				require.Equal(t, want, m.panel(o / lanes)[i][o%lanes], "output %d, input %d", o, i)
			}
		}
	}
}

func TestMatrixPacksTapsTogether(t *testing.T) {
	t.Parallel()
	const out, in, kernel = 9, 3, 4
	v := make([]float32, out*in*kernel)
	for i := range v {
		v[i] = float32(i + 1)
	}
	m, err := newMatrix(&ledger{limit: 1 << 30}, out, in*kernel, nil)
	require.NoError(t, err)
	require.NoError(t, m.fillTaps(t.Context(), pass.Float32s("w", v, out, in, kernel), in, kernel))
	for o := range out {
		for i := range in {
			for j := range kernel {
				require.Equal(t, v[(o*in+i)*kernel+j], m.panel(o / lanes)[j*in+i][o%lanes])
			}
		}
	}
}

func TestGridCoversEveryOutputOnce(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]int{{0, 4, 8}, {1, 1, 1}, {1, 64, 1024}, {3, 5, 20000}, {63, 9, 16}, {64, 9, 16}, {65, 9, 300}, {500, 130, 1280}} {
		rows, panels := c[0], c[1]
		g := newGrid(rows, panels, c[2])
		require.LessOrEqual(t, g.rows, maxRows)
		seen := make([]int, rows*panels)
		for i := range g.tasks {
			row, rowEnd, panel, panelEnd := g.task(i, rows, panels)
			for r := row; r < rowEnd; r++ {
				for p := panel; p < panelEnd; p++ {
					seen[r*panels+p]++
				}
			}
		}
		for i, n := range seen {
			require.Equal(t, 1, n, "%v: output %d", c, i)
		}
	}
}
