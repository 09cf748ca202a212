package cpu_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// A rig runs single ops over rows and items that lie apart.
type rig struct {
	testing.TB
	dev pass.Device
	ses pass.Session
	rng *rand.Rand
}

func newRig(t testing.TB) *rig {
	dev, ses := open(t, 3)
	return &rig{t, dev, ses, rand.New(rand.NewPCG(11, 12))}
}

func (r *rig) load(w pass.Weights) pass.Param {
	r.Helper()
	p, err := r.dev.Load(context.Background(), w)
	require.NoError(r, err)
	return p
}

// around fills the gaps between rows: a NaN, which must neither spread nor change.
const around = 0x7fc0_1234

// An area is batch × rows × cols elements on the device, with gaps around each row.
type area struct {
	pass.View
	rig               *rig
	batch, rows, cols int
	words             []uint32 // of the whole buffer, as written
}

func (r *rig) area(t pass.DType, batch, rows, cols int, word func(i int) uint32) *area {
	r.Helper()
	stride := cols + 5
	each := rows*stride + 7
	buffer, err := r.ses.Alloc(t, 3+batch*each)
	require.NoError(r, err)
	a := &area{pass.View{Buffer: buffer, Offset: 3, RowStride: stride, BatchStride: each}, r, batch, rows, cols, make([]uint32, buffer.Len())}
	for i := range a.words {
		a.words[i] = around
	}
	i := 0
	for b := range batch {
		for row := range rows {
			for c := range cols {
				a.words[a.at(b, row, c)] = word(i)
				i++
			}
		}
	}
	var data any = a.words
	if t == pass.F32 {
		data = floats(a.words)
	}
	require.NoError(r, r.ses.Write(context.Background(), buffer.View(), data))
	return a
}

func floats(words []uint32) []float32 {
	v := make([]float32, len(words))
	for i, w := range words {
		v[i] = math.Float32frombits(w)
	}
	return v
}

func (a *area) at(b, row, col int) int { return a.Offset + b*a.BatchStride + row*a.RowStride + col }

// floats puts values on the device; words does so with words.
func (r *rig) floats(batch, rows, cols int, values []float32) *area {
	r.Helper()
	require.Len(r, values, batch*rows*cols)
	return r.area(pass.F32, batch, rows, cols, func(i int) uint32 { return math.Float32bits(values[i]) })
}

func (r *rig) words(batch, rows, cols int, values ...uint32) *area {
	r.Helper()
	require.Len(r, values, batch*rows*cols)
	return r.area(pass.U32, batch, rows, cols, func(i int) uint32 { return values[i] })
}

// numbers puts a number for each item on the device, as indices and lengths lie.
func (r *rig) numbers(values ...uint32) pass.View { return r.words(1, 1, len(values), values...).View }

// output makes room for what an op writes. What it leaves out shows as NaN.
func (r *rig) output(batch, rows, cols int) *area {
	r.Helper()
	return r.area(pass.F32, batch, rows, cols, func(int) uint32 { return around })
}

// result returns the elements, once it has seen that those around them are as before.
func (a *area) result() []uint32 {
	a.rig.Helper()
	now := make([]uint32, len(a.words))
	if a.Buffer.Type() == pass.F32 {
		v := make([]float32, len(a.words))
		require.NoError(a.rig, a.rig.ses.Read(context.Background(), a.Buffer.View(), v))
		for i, v := range v {
			now[i] = math.Float32bits(v)
		}
	} else {
		require.NoError(a.rig, a.rig.ses.Read(context.Background(), a.Buffer.View(), now))
	}
	var values []uint32
	for b := range a.batch {
		for row := range a.rows {
			for c := range a.cols {
				at := a.at(b, row, c)
				values = append(values, now[at])
				now[at] = a.words[at]
			}
		}
	}
	require.Equal(a.rig, a.words, now, "elements outside the view")
	return values
}

func (a *area) values() []float32 {
	a.rig.Helper()
	return floats(a.result())
}

func (r *rig) try(ops ...pass.Op) error {
	r.Helper()
	ctx := context.Background()
	rec, err := r.ses.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(ops...) })
	require.NoError(r, err)
	defer rec.Close()
	_, err = rec.Run(ctx)
	return err
}

func (r *rig) do(ops ...pass.Op) {
	r.Helper()
	require.NoError(r, r.try(ops...))
}

// fails requires that a run fails and that its error says all of want.
func (r *rig) fails(op pass.Op, want ...string) {
	r.Helper()
	err := r.try(op)
	require.ErrorIs(r, err, pass.ErrInvalid)
	for _, w := range append(want, op.Name()) {
		require.ErrorContains(r, err, w)
	}
}

// close requires results within a tenth of the tolerance of exact math, and NaN and
// infinities where they are wanted.
func (r *rig) close(want []float64, got []float32, where ...any) {
	r.Helper()
	require.Len(r, got, len(want), where...)
	off, size := 0.0, 0.0
	for i, w := range want {
		g := float64(got[i])
		if math.IsNaN(w) || math.IsInf(w, 0) {
			if !(math.IsNaN(w) && math.IsNaN(g)) && w != g {
				require.Equal(r, w, g, "%v: element %d", where, i)
			}
			continue
		}
		off += (g - w) * (g - w)
		size += w * w
	}
	require.True(r, math.Sqrt(off) <= 5e-7*math.Sqrt(size), "off by %v of %v: %v", math.Sqrt(off), math.Sqrt(size), where)
}

// shape is the size of a test.
type shape struct{ batch, rows, cols int }

func (s shape) String() string { return fmt.Sprintf("%d×%d×%d", s.batch, s.rows, s.cols) }
func (s shape) len() int       { return s.batch * s.rows * s.cols }

// shapes are small, odd, and larger than a task in either direction.
var shapes = []shape{{1, 0, 3}, {1, 1, 1}, {2, 3, 2}, {3, 2, 7}, {2, 5, 64}, {2, 257, 65}, {1, 2, 20000}}

// rowwise wants of each row of x what f makes of it.
func rowwise(x []float32, cols int, f func(row []float64) []float64) []float64 {
	var want []float64
	for ; len(x) > 0; x = x[cols:] {
		row := make([]float64, cols)
		for i := range row {
			row[i] = float64(x[i])
		}
		want = append(want, f(row)...)
	}
	return want
}

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)
