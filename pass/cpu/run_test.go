package cpu_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// shareable records ops that are each worth sharing between threads.
func shareable(t *testing.T, threads int) (rec pass.Recording, binds []pass.Bind, outs []pass.Output) {
	ctx := context.Background()
	dev, ses := open(t, threads)
	rng := rand.New(rand.NewPCG(7, 8))
	load := func(w pass.Weights) pass.Param {
		p, err := dev.Load(ctx, w)
		require.NoError(t, err)
		return p
	}
	tensor := func(shape ...int) pass.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		v := random(rng, n)
		for i := range v {
			v[i] *= 0.1
		}
		return pass.Float32s("w", v, shape...)
	}
	linear := load(pass.LinearWeights{Parts: []pass.Tensor{tensor(257, 300)}})
	conv := load(pass.ConvWeights{Weight: tensor(65, 33, 5)})
	var layers [][]pass.LSTMCell
	for _, in := range []int{33, 80, 80} {
		cell := func() pass.LSTMCell { return pass.LSTMCell{Input: tensor(160, in), Hidden: tensor(160, 40)} }
		layers = append(layers, []pass.LSTMCell{cell(), cell()})
	}
	lstm := load(pass.LSTMWeights{Layers: layers})
	norm := load(pass.NormWeights{Gain: random(rng, 1000), Bias: random(rng, 1000)})
	turns := load(pass.RopeWeights{Positions: 400, Rot: 100, Base: 10000})

	rec, err := ses.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
		input := func(n int) pass.View {
			in := p.Input(pass.F32, n)
			binds = append(binds, in.F32(random(rng, n)))
			return in.View()
		}
		output := func(n int) pass.View {
			v := p.Temp(pass.F32, n).View()
			outs = append(outs, p.Output(v, n))
			return v
		}
		p.Do(
			pass.Gemm{A: input(131 * 300), W: linear, C: output(131 * 257), Rows: 131, Epilogue: pass.SiLU},
			pass.Gemm{A: input(5 * 300), W: linear, C: output(5 * 257), Rows: 5},
			pass.Conv1D{X: input(3 * 200 * 33), W: conv, Y: output(3 * 200 * 65), Batch: 3, In: 200, PadLeft: 2, PadRight: 2, Padding: pass.PadReflect, Lengths: pass.Fixed(200, 9, 111)},
			pass.LSTM{X: input(19 * 21 * 33), W: lstm, Y: output(19 * 21 * 80), Batch: 19, Time: 21},
			pass.Map{X: input(300 * 1000), Y: output(300 * 1000), Rows: 300, Cols: 1000, Epilogue: pass.GELU},
			pass.Magnitude{X: input(300 * 2000), Y: output(300 * 1000), Rows: 300, Cols: 1000},
			pass.Copy{From: input(300 * 1000), To: output(300 * 1000), Rows: 2, Cols: 150 * 1000},

			pass.LayerNorm{X: input(70 * 1000), W: norm, Y: output(70 * 1000), Rows: 70, Cols: 1000, Rotated: output(70 * 1000), Table: turns, Heads: 10},
			pass.GroupNorm{X: input(70 * 1000), W: norm, Y: output(70 * 1000), Batch: 2, Rows: 35, Cols: 1000, Lengths: pass.Fixed(35, 17)},
			pass.PoolNorm{X: input(90 * 1000), W: norm, Y: output(44 * 1000), Batch: 2, Rows: 45, Cols: 1000, Pool: 2, Abs: true},
			pass.L2Norm{X: input(170 * 1000), Y: output(170 * 1000), Rows: 170, Cols: 1000},
			pass.Softmax{X: input(60 * 1000), Y: output(60 * 1000), Rows: 60, Cols: 1000},
			pass.LogSoftmax{X: input(60 * 1000), Y: output(60 * 1000), Rows: 60, Cols: 1000},
			pass.Add{A: input(80 * 1000), B: input(1000), Y: output(80 * 1000), Rows: 80, Cols: 1000, OverRows: true},
			pass.Scale{X: input(110 * 1000), Y: output(110 * 1000), Rows: 110, Cols: 1000, Factor: 3},
			pass.SwiGLU{X: input(60 * 1000), Y: output(60 * 500), Rows: 60, Cols: 500},
			pass.GLU{X: input(60 * 1000), Y: output(60 * 500), Rows: 60, Cols: 500},
			pass.Permute{X: input(300 * 1000), Y: output(300 * 1000), Dims: [4]int{1, 1, 300, 1000}, Order: [4]int{0, 1, 3, 2}},
			pass.StatsPool{X: input(10 * 100 * 64), Masks: input(3 * 50), Y: output(3 * 2 * 64 * 10), Height: 10, Width: 100, Channels: 64, Count: 3, Frames: 50},
		)
		turned, ids, rows := output(200*1000), p.Temp(pass.U32, 2000).View(), output(500*300)
		p.Do(
			pass.Copy{From: input(200 * 1000), To: turned, Rows: 200, Cols: 1000},
			pass.Rope{X: turned, Table: turns, Rows: 200, Heads: 10, HeadDim: 100},
			pass.Argmax{X: input(2000 * 257), IDs: ids, Rows: 2000, Cols: 257},
			pass.Embed{IDs: ids, Table: linear, Out: rows, Rows: 500},
			pass.Advance{Index: ids, By: 1, Batch: 500},
		)
	})
	require.NoError(t, err)
	return rec, binds, outs
}

// results runs them.
func results(t *testing.T, threads int) [][]float32 {
	rec, binds, outs := shareable(t, threads)
	run, err := rec.Run(context.Background(), binds...)
	require.NoError(t, err)
	var all [][]float32
	for _, o := range outs {
		v := make([]float32, o.Len())
		require.NoError(t, run.ReadF32(o, v))
		all = append(all, v)
	}
	return all
}

func TestSameBitsWithAnyNumberOfThreads(t *testing.T) {
	t.Parallel()
	want := results(t, 1)
	for _, threads := range []int{2, 3, 7} {
		for i, got := range results(t, threads) {
			require.True(t, equal(want[i], got), "op %d with %d threads", i, threads)
		}
	}
}

func equal(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// Numbers that lie on the device are checked there: the run fails and names them, and
// the recording stays usable.
func TestNumbersOnTheDeviceAreChecked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dev, ses := open(t, 2)
	load := func(w pass.Weights) pass.Param {
		p, err := dev.Load(ctx, w)
		require.NoError(t, err)
		return p
	}
	conv := load(pass.ConvWeights{Weight: pass.Float32s("w", make([]float32, 2*3*3), 2, 3, 3)})
	lstm := load(pass.LSTMWeights{Layers: [][]pass.LSTMCell{{{
		Input: pass.Float32s("i", make([]float32, 8*3), 8, 3), Hidden: pass.Float32s("h", make([]float32, 8*2), 8, 2)}}}})
	for _, c := range []struct {
		name      string
		op        func(p pass.Pass, numbers pass.View) pass.Op
		good, bad []uint32
		want      []string
	}{
		{"conv lengths", func(p pass.Pass, n pass.View) pass.Op {
			return pass.Conv1D{X: p.Input(pass.F32, 30).View(), W: conv, Y: p.Temp(pass.F32, 12).View(), Batch: 2, In: 5, Lengths: pass.ItemsIn(n)}
		}, []uint32{0, 5}, []uint32{5, 6}, []string{"conv1d", "Lengths", "item 1", "0 to 5", "given 6"}},
		{"reflected lengths", func(p pass.Pass, n pass.View) pass.Op {
			return pass.Conv1D{X: p.Input(pass.F32, 30).View(), W: conv, Y: p.Temp(pass.F32, 20).View(), Batch: 2, In: 5, PadLeft: 2, PadRight: 0,
				Padding: pass.PadReflect, Lengths: pass.ItemsIn(n)}
		}, []uint32{0, 3}, []uint32{2, 3}, []string{"conv1d", "Lengths", "item 0", "reflect", "given 2"}},
		{"lstm lengths", func(p pass.Pass, n pass.View) pass.Op {
			return pass.LSTM{X: p.Input(pass.F32, 24).View(), W: lstm, Y: p.Temp(pass.F32, 16).View(), Batch: 2, Time: 4, Lengths: pass.ItemsIn(n)}
		}, []uint32{4, 0}, []uint32{1 << 31, 0}, []string{"lstm", "Lengths", "item 0", "0 to 4", "given 2147483648"}},
		{"state rows", func(p pass.Pass, n pass.View) pass.Op {
			return pass.LSTM{X: p.Input(pass.F32, 24).View(), W: lstm, Y: p.Temp(pass.F32, 16).View(), Batch: 2, Time: 4, States: 7, StateRows: pass.ItemsIn(n)}
		}, []uint32{6, 0}, []uint32{0, 7}, []string{"lstm", "StateRows", "item 1", "0 to 6", "given 7"}},
		{"state rows twice", func(p pass.Pass, n pass.View) pass.Op {
			return pass.LSTM{X: p.Input(pass.F32, 24).View(), W: lstm, Y: p.Temp(pass.F32, 16).View(), Batch: 2, Time: 4, States: 7, StateRows: pass.ItemsIn(n)}
		}, []uint32{3, 2}, []uint32{3, 3}, []string{"lstm", "StateRows", "item 1", "row 3", "twice"}},
		{"from row", func(p pass.Pass, n pass.View) pass.Op {
			return pass.Copy{From: p.Input(pass.F32, 40).View(), To: p.Temp(pass.F32, 16).View(), Batch: 2, Rows: 2, Cols: 4, FromRows: 5, FromRow: pass.IndexEach(n)}
		}, []uint32{3, 0}, []uint32{3, 4}, []string{"copy", "FromRow", "item 1", "0 to 3", "given 4"}},
		{"to row", func(p pass.Pass, n pass.View) pass.Op {
			return pass.Copy{From: p.Input(pass.F32, 16).View(), To: p.Temp(pass.F32, 40).View(), Batch: 2, Rows: 2, Cols: 4, ToRows: 5, ToRow: pass.IndexIn(n)}
		}, []uint32{3, 9}, []uint32{4, 0}, []string{"copy", "ToRow", "item 0", "0 to 3", "given 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			numbers, err := ses.Alloc(pass.U32, 2)
			require.NoError(t, err)
			var r recorder
			rec, err := ses.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
				r.Pass = p
				p.Do(c.op(&r, numbers.View()))
			})
			require.NoError(t, err)
			run := func(n []uint32) error {
				require.NoError(t, ses.Write(ctx, numbers.View(), n))
				_, err := rec.Run(ctx, r.binds...)
				return err
			}
			require.NoError(t, run(c.good))
			err = run(c.bad)
			require.ErrorIs(t, err, pass.ErrInvalid)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.NoError(t, run(c.good), "the recording stays usable")
		})
	}
}

// recorder binds zeros to every input.
type recorder struct {
	pass.Pass
	binds []pass.Bind
}

func (r *recorder) Input(t pass.DType, n int) pass.Input {
	in := r.Pass.Input(t, n)
	r.binds = append(r.binds, in.F32(make([]float32, n)))
	return in
}

// requireNoAllocs measures more than once: the runtime allocates now and then, too.
func requireNoAllocs(t *testing.T, runs int, f func(), says ...any) {
	t.Helper()
	allocs := 1.0
	for i := 0; i < 5 && allocs > 0; i++ {
		allocs = testing.AllocsPerRun(runs, f)
	}
	require.Zero(t, allocs, says...)
}

func TestReplayAllocatesNothing(t *testing.T) {
	for _, threads := range []int{1, 2} {
		for name, record := range map[string]func() (pass.Recording, []pass.Bind, pass.Output){
			"network": func() (pass.Recording, []pass.Bind, pass.Output) {
				dev, ses := open(t, threads)
				const streams = 8 // enough to share
				rec, in, out := loadNetwork(t, dev).record(t, ses, streams)
				return rec, []pass.Bind{in.F32(make([]float32, streams*576))}, out
			},
			"ops": func() (pass.Recording, []pass.Bind, pass.Output) {
				rec, binds, outs := shareable(t, threads)
				return rec, binds, outs[len(outs)-1]
			},
		} {
			rec, binds, out := record()
			values := make([]float32, out.Len())
			requireNoAllocs(t, 3, func() {
				run, err := rec.Run(context.Background(), binds...)
				if err != nil {
					t.Fatal(err)
				}
				if err := run.ReadF32(out, values); err != nil {
					t.Fatal(err)
				}
				run.Close()
			}, "%s with %d threads", name, threads)
		}
	}
}

// A session's recordings share a workspace; one that grew later must not upset one
// that was compiled before.
func TestRecordingsShareAWorkspace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, ses := open(t, 1)
	type entry struct {
		rec  pass.Recording
		in   pass.Input
		out  pass.Output
		rows int
	}
	var all []entry
	for _, n := range []int{10, 5000, 300} {
		e := entry{rows: n}
		var err error
		e.rec, err = ses.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
			e.in = p.Input(pass.F32, n)
			y := p.Temp(pass.F32, n).View()
			p.Do(pass.Map{X: e.in.View(), Y: y, Rows: 1, Cols: n, Epilogue: pass.Leaky(2)})
			e.out = p.Output(y, n)
		})
		require.NoError(t, err)
		all = append(all, e)
		for _, e := range all {
			x, y := make([]float32, e.rows), make([]float32, e.rows)
			for i := range x {
				x[i] = float32(-i)
			}
			run, err := e.rec.Run(ctx, e.in.F32(x))
			require.NoError(t, err)
			require.NoError(t, run.ReadF32(e.out, y))
			for i := range y {
				require.Equal(t, float32(-2*i), y[i])
			}
		}
	}
	require.NoError(t, all[1].rec.Close())
	run, err := all[0].rec.Run(ctx, all[0].in.F32(make([]float32, 10)))
	require.NoError(t, err)
	run.Close()
}

func TestDump(t *testing.T) {
	t.Parallel()
	dev, ses := open(t, 1)
	rec, _, _ := loadNetwork(t, dev).record(t, ses, 2)
	var b strings.Builder
	require.NoError(t, rec.Dump(&b))
	for _, want := range []string{"conv1d: X 2×576×1", "conv [258][1][256] F32", "windows gathered", "windows in place", "lstm", "workspace"} {
		require.Contains(t, b.String(), want)
	}
}
