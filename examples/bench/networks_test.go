package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// A whole network is opened, checked and timed, and says what it holds: 1.47 million
// weights, most of them of the LSTM.
func TestNetwork(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := bench("--device", "cpu", "--time", "1ms", "--run", "^networks/segmentation/b1$")
	require.Empty(t, stderr)
	require.Equal(t, exitGood, code)
	require.Regexp(t, `(?m)^networks/segmentation/b1 +10 s`+aTime+aTime+aShare+aCount+aRate+`  [0-9.]+ MB: weights 6\.0, workspace [1-9][0-9]*\.\d, state 0\.0$`, stdout)
}

// Large networks are measured only if something is asked for by name.
func TestLarge(t *testing.T) {
	t.Parallel()
	all := []group{{"g", []benchmarkCase{{name: "small"}, {name: "big", large: true}}}}
	for _, tc := range []struct {
		run  string
		list bool
		want []string
	}{
		{"", false, []string{"g/small"}},
		{"", true, []string{"g/small", "g/big"}},
		{"big", false, []string{"g/big"}},
	} {
		var names []string
		for _, c := range (options{run: regexp.MustCompile(tc.run), list: tc.list}).choose(all) {
			names = append(names, c.name)
		}
		require.Equal(t, tc.want, names)
	}
}

// A network whose results are wrong is closed, and not timed; so is one that fails.
func TestWrongNetworks(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	for _, at := range []string{"once", "check"} {
		closed := 0
		fail := func(where string) func(context.Context) error {
			return func(context.Context) error {
				if where == at {
					return oops
				}
				return nil
			}
		}
		a := architecture{open: func(context.Context, pass.Device, weights.Source, pass.Math) (*subject, error) {
			return &subject{once: fail("once"), check: fail("check"), close: func() error { closed++; return nil }}, nil
		}}
		_, err := a.setup(t.Context(), &target{})
		require.ErrorIs(t, err, oops)
		require.Equal(t, 1, closed)
	}
}

func TestFinite(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	require.NoError(t, finite([]float32{0, 1}, 2))
	for _, wrong := range [][]float32{{0, 1, 2}, {1}, {1, nan}, {inf, 1}, {3, 3}} {
		require.ErrorIs(t, finite(wrong, 2), pass.ErrInvalid, wrong)
	}
}

func TestRandomWeights(t *testing.T) {
	t.Parallel()
	table := tensorTable{}
	table.biased("linear", 64, 300)
	table.batchNorm("norm", 5)
	w := randomWeights{table, pass.F16}
	require.Equal(t, []string{"linear.bias", "linear.weight", "norm.bias", "norm.running_mean", "norm.running_var", "norm.weight"}, w.Names())
	require.EqualValues(t, 2*64*300+4*(64+4*5), w.bytes())
	_, err := w.Tensor("other")
	require.ErrorIs(t, err, pass.ErrInvalid)

	matrix, err := w.Tensor("linear.weight")
	require.NoError(t, err)
	require.Equal(t, pass.F16, matrix.Type)
	values, err := matrix.Float32s()
	require.NoError(t, err)
	sum := 0.0
	for _, v := range values {
		sum += float64(v) * float64(v)
	}
	require.InEpsilon(t, 64, sum, 0.05) // each of 64 rows keeps the deviation of its inputs
	variance, err := weights.Values(w, "norm.running_var", 5)
	require.NoError(t, err)
	for _, v := range variance {
		require.InDelta(t, 1, v, 0.1)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	for dump, want := range map[string]int64{
		"2 ops\nworkspace: 4096 bytes, of which 64 scratch; 2 threads\n":                                                                   4096,
		"workspace: 3 buffers of 99 bytes in all, 1 of them scratch; largest set alive 80 bytes; the session's workspace has 1234 bytes\n": 1234,
		"nothing\n": 0,
	} {
		require.Equal(t, want, workspaceBytes([]byte(dump)), dump)
	}

	dev, err := cpu.Open(cpu.Config{Threads: 1})
	require.NoError(t, err)
	defer dev.Close()
	m := &metered{Device: dev}
	s, err := m.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	x, err := s.Alloc(pass.F32, 1000)
	require.NoError(t, err)
	_, err = s.NewCache(pass.CacheConfig{Batch: 2, Capacity: 10, Heads: 3, HeadDim: 4, Type: pass.F16})
	require.NoError(t, err)
	require.EqualValues(t, 4*1000+2*2*2*10*3*4, m.state)
	var last int64
	for _, n := range []int{1000, 10, 1000} { // one workspace, the largest
		r, err := s.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
			y := p.Temp(pass.F32, n)
			p.Do(pass.Softmax{X: x.View(), Y: y.View(), Rows: 1, Cols: n})
			p.Do(pass.Softmax{X: y.View(), Y: x.View(), Rows: 1, Cols: n})
		})
		require.NoError(t, err)
		var dump bytes.Buffer
		require.NoError(t, r.Dump(&dump))
		last = max(last, workspaceBytes(dump.Bytes()))
		require.Equal(t, last, m.workspace)
	}
	require.GreaterOrEqual(t, m.workspace, int64(4000))
	m.workspace, m.state = 2e6, 3e6
	require.Equal(t, "9.0 MB: weights 4.0, workspace 2.0, state 3.0", m.note(4e6))
}

// Times of a subject are of one of its ops.
func TestSubject(t *testing.T) {
	t.Parallel()
	calls := 0
	count := func(context.Context) error { calls++; return nil }
	a := architecture{open: func(context.Context, pass.Device, weights.Source, pass.Math) (*subject, error) {
		return &subject{once: count, check: func(context.Context) error { return nil }, ops: 7, audio: time.Second}, nil
	}}
	r, err := a.setup(t.Context(), &target{})
	require.NoError(t, err)
	require.Equal(t, 7, r.ops)
	require.Equal(t, time.Second, r.audio)
	_, err = r.once(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, calls)
}
