package windows

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left, most int
		want       []int
	}{
		{1, 1, []int{1}}, {3, 1, []int{1, 1, 1}}, {3, 8, []int{1, 1, 1}}, {7, 8, []int{4, 1, 1, 1}},
		{8, 8, []int{8}}, {21, 8, []int{8, 8, 4, 1}}, {70, 64, []int{64, 4, 1, 1}}, {63, 64, []int{16, 16, 16, 4, 4, 4, 1, 1, 1}},
	} {
		var got []int
		for left := c.left; left > 0; left -= got[len(got)-1] {
			got = append(got, Next(left, c.most))
		}
		require.Equal(t, c.want, got, "%d windows, at most %d", c.left, c.most)
	}
}

func TestFinite(t *testing.T) {
	t.Parallel()
	require.NoError(t, Finite("x", []float32{0, -math.MaxFloat32}))
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, n := range []int{2, 8, 13, 300_001} {
			for _, at := range []int{n - 1, n / 2} {
				x := make([]float32, n)
				require.NoError(t, Finite("sample", x))
				x[at], x[n-1] = float32(v), float32(v)
				err := Finite("sample", x)
				require.ErrorIs(t, err, pass.ErrInvalid)
				require.ErrorContains(t, err, fmt.Sprintf("sample %d: want a finite value", at))
			}
		}
	}
}

// What is kept is as it was then, though it is overwritten later.
func TestTrace(t *testing.T) {
	t.Parallel()
	dev, err := cpu.Open(cpu.Config{Threads: 1})
	require.NoError(t, err)
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	got := map[string][]float32{}
	see := func(name string, values []float32) { got[name] = values }
	var traced, silent Traced
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		x := p.Temp(pass.F32, 3).View()
		p.Do(pass.Fill{To: x, Rows: 1, Cols: 3, Value: 1})
		traced.Keep(p, see, "first", x.At(1), 2)
		silent.Keep(p, nil, "first", x, 3)
		p.Do(pass.Fill{To: x, Rows: 1, Cols: 3, Value: 2})
		traced.Keep(p, see, "second", x, 1)
	})
	require.NoError(t, err)
	run, err := rec.Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, traced.Report(run, see))
	require.NoError(t, silent.Report(run, nil))
	require.Equal(t, map[string][]float32{"first": {1, 1}, "second": {2}}, got)
}
