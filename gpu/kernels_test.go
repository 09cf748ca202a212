package gpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A bench runs cases on software Vulkan and sees the dispatches that they become.
type bench struct {
	pass.Device
	hw         *device
	dispatches []dispatch
}

func newBench(t *testing.T, cfg driver.DeviceConfig, change func(*device)) *bench {
	p, a := testAdapter(t)
	drv, err := p.Open(context.Background(), a.Index, cfg)
	require.NoError(t, err)
	b := &bench{hw: newHardware(drv, a, options{})}
	b.hw.compile = func(c *compiler) error {
		err := c.compile()
		b.dispatches = c.dispatches
		return err
	}
	if change != nil {
		change(b.hw)
	}
	b.Device = backend.New(b.hw)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// run runs a case, compares it with the truth, and returns the words of all buffers.
func (b *bench) run(t *testing.T, c cases.Case, l cases.Layout) map[string][]uint32 {
	ctx := context.Background()
	placed, err := cases.Place(c, l, 1)
	require.NoError(t, err)
	wanted, err := c.Want()
	require.NoError(t, err)
	s, err := b.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	params, buffers := map[string]pass.Param{}, map[string]pass.Buffer{}
	for _, p := range c.Params {
		params[p.Field], err = b.Load(ctx, p.Weights)
		require.NoError(t, err)
		defer b.Unload(params[p.Field])
	}
	for _, p := range placed.Buffers {
		buffers[p.Name], err = s.Alloc(p.Type, len(p.Words))
		require.NoError(t, err)
		require.NoError(t, s.Write(ctx, buffers[p.Name].View(), hostWords(p.Type, p.Words)))
	}
	op, err := placed.Op(buffers, params, nil)
	require.NoError(t, err)
	rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
	require.NoError(t, err)
	_, err = rec.Run(ctx)
	require.NoError(t, err)
	after := map[string][]uint32{}
	for _, p := range placed.Buffers {
		data := hostWords(p.Type, make([]uint32, len(p.Words)))
		require.NoError(t, s.Read(ctx, buffers[p.Name].View(), data))
		words, ok := data.([]uint32)
		if !ok {
			words = cases.F32("", data.([]float32)).Words
		}
		after[p.Name] = words
		require.NoError(t, placed.Check(p.Name, words, wanted), "%s, %v", c.Name, l)
	}
	return after
}

// hostWords returns words as host data of a buffer's type.
func hostWords(t pass.DType, words []uint32) any {
	if t == pass.U32 {
		return words
	}
	return cases.Tensor{Type: pass.F32, Words: words}.Float32s()
}

func randomTensor(name string, scale float32, shape ...int) pass.Tensor {
	n := pass.Tensor{Shape: shape}.Len()
	return pass.Float32s(name, cases.Recipe(name, 1, n, scale, 0), shape...)
}

func randomInput(name string, shape ...int) cases.Tensor {
	return cases.F32(name, cases.Recipe("in/"+name, 1, pass.Tensor{Shape: shape}.Len(), 1, 0), shape...)
}

func gemmCase(rows, n, k int, e pass.Epilogue) cases.Case { return typedGemm(pass.F32, rows, n, k, e) }

func typedGemm(t pass.DType, rows, n, k int, e pass.Epilogue) cases.Case {
	part := func(name string, n int) pass.Tensor {
		return cases.Encode(name, t, cases.Recipe(name, 1, n*k, 0.1, 0), n, k)
	}
	w := pass.LinearWeights{Parts: []pass.Tensor{part("w0", n-n/3), part("w1", n/3)}, Bias: cases.Recipe("bias", 1, n, 1, 0), Dual: cases.Recipe("dual", 1, n/4, 1, 0)}
	c := cases.Case{Name: fmt.Sprintf("gemm-%dx%dx%d", rows, n, k), Op: pass.Gemm{Rows: rows, Epilogue: e},
		Inputs: []cases.Tensor{randomInput("A", 1, rows, k)}, Params: []cases.Param{{Field: "W", Weights: w}}, Outputs: []string{"C"}}
	if e.InPlace() {
		c.Inputs = append(c.Inputs, randomInput("C", 1, rows, n+n/4))
	}
	return c
}

func convCase(batch, in, channels, out int) cases.Case {
	w := pass.ConvWeights{Weight: randomTensor("w", 0.2, out, channels, 5), Bias: cases.Recipe("bias", 1, out, 1, 0)}
	return cases.Case{Name: fmt.Sprintf("conv-%dx%d-%dto%d", batch, in, channels, out),
		Op:     pass.Conv1D{Batch: batch, In: in, Stride: 2, PadLeft: 3, PadRight: 2, Padding: pass.PadReflect, Lengths: pass.Fixed(append([]int{in - 7}, repeat(in, batch-1)...)...), Epilogue: pass.SiLU},
		Inputs: []cases.Tensor{randomInput("X", batch, in, channels)}, Params: []cases.Param{{Field: "W", Weights: w}}, Outputs: []string{"Y"}}
}

func repeat(n, times int) []int {
	all := make([]int, times)
	for i := range all {
		all[i] = n
	}
	return all
}

func lstmCase(batch, time, in, hidden, layers, directions int) cases.Case {
	w := pass.LSTMWeights{}
	for l := range layers {
		var layer []pass.LSTMCell
		for d := range directions {
			name := fmt.Sprint("w", l, d)
			layer = append(layer, pass.LSTMCell{Input: randomTensor(name+"i", 0.3, 4*hidden, in), Hidden: randomTensor(name+"h", 0.1, 4*hidden, hidden), Bias: cases.Recipe(name, 1, 4*hidden, 1, 0)})
		}
		w.Layers, in = append(w.Layers, layer), directions*hidden
	}
	states := layers * directions
	c := cases.Case{Name: fmt.Sprintf("lstm-%dx%d-%d-l%dd%d", batch, time, hidden, layers, directions),
		Op:     pass.LSTM{Batch: batch, Time: time, Lengths: pass.Fixed(append(repeat(time, batch-1), time/2)...)},
		Params: []cases.Param{{Field: "W", Weights: w}}, Outputs: []string{"Y", "H", "C"}, Same: map[string]string{"H": "H0", "C": "C0"}}
	c.Inputs = []cases.Tensor{randomInput("X", batch, time, w.Layers[0][0].Input.Shape[1]), randomInput("H0", batch, states, hidden), randomInput("C0", batch, states, hidden)}
	return c
}

// Every tile, and sums in stretches, on shapes that are no multiple of any: right, and
// with the same bits as in parts of a few rows.
func TestTiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{}, nil)
	for _, c := range []struct {
		c     cases.Case
		tile  int
		long  bool
		parts bool
	}{
		{gemmCase(1301, 1215, 33, pass.GELU), 128, false, true},
		{gemmCase(1280, 1280, 32, pass.Residual(0.5)), 128, false, false},
		{gemmCase(701, 703, 37, pass.None), 64, false, true},
		{gemmCase(20, 30, longSum+129, pass.SiLU), 32, true, true},
		{convCase(2, 1401, 3, 1215), 128, false, false},
		{convCase(3, 1200, 4, 400), 64, false, false},
	} {
		for _, l := range []cases.Layout{cases.Dense, cases.Awkward} {
			whole := b.run(t, c.c, l)
			v := b.dispatches[0].kernel.kernel.values
			require.Equal(t, [2]any{c.tile, c.long}, [2]any{v["Tile"], v["Long"]}, c.c.Name)
			if c.parts && l == cases.Awkward {
				b.sameInParts(t, c.c, whole)
			}
		}
	}
}

// Sums of very many products that all have one sign, which is where rounding adds up.
func TestLongSums(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{}, nil)
	for _, rows := range []int{2, 20} {
		for _, k := range []int{longSum, 20000} {
			w := pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", cases.Recipe("w", 1, 9*k, 0.5, 0.5), 9, k)}}
			b.run(t, cases.Case{Name: fmt.Sprintf("long-%dx%d", rows, k), Op: pass.Gemm{Rows: rows}, Params: []cases.Param{{Field: "W", Weights: w}}, Outputs: []string{"C"},
				Inputs: []cases.Tensor{cases.F32("A", cases.Recipe("a", 1, rows*k, 0.5, 0.5), 1, rows, k)}}, cases.Dense)
		}
	}
}

// Numbers on the device that are beyond their range fail the run, name their field, and
// nothing outside of the op's views is written or read; the session stays usable.
func TestNumbersBeyondTheirRange(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBench(t, driver.DeviceConfig{}, nil)
	conv := convCase(2, 12, 3, 4)
	lstm := lstmCase(2, 3, 4, 5, 1, 1)
	s, err := b.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	load := func(c cases.Case) pass.Param {
		p, err := b.Load(ctx, c.Params[0].Weights)
		require.NoError(t, err)
		return p
	}
	buffer := func(typ pass.DType, n int) pass.View {
		x, err := s.Alloc(typ, n)
		require.NoError(t, err)
		return x.View()
	}
	numbers, h, c := buffer(pass.U32, 4), buffer(pass.F32, 4*5), buffer(pass.F32, 4*5)
	length, row := pass.ItemsIn(numbers), pass.ItemsIn(numbers.At(2))
	reflect := pass.Conv1D{X: buffer(pass.F32, 2*12*3), W: load(conv), Y: buffer(pass.F32, 2*12*4), Batch: 2, In: 12, PadLeft: 2, PadRight: 2, Padding: pass.PadReflect, Lengths: length}
	walk := pass.LSTM{X: buffer(pass.F32, 2*3*4), W: load(lstm), Y: buffer(pass.F32, 2*3*5), Batch: 2, Time: 3, H0: h, C0: c, H: h, C: c, States: 3}
	apart := walk
	apart.H, apart.C = buffer(pass.F32, 3*5), buffer(pass.F32, 3*5)
	with := func(l pass.LSTM, lengths, rows pass.Items) pass.LSTM {
		l.Lengths, l.StateRows = lengths, rows
		return l
	}
	for _, c := range []struct {
		op    pass.Op
		words []uint32 // two lengths, two rows
		field string
	}{
		{reflect, []uint32{12, 13, 0, 0}, "Lengths"},
		{reflect, []uint32{0xFFFFFFFF, 12, 0, 0}, "Lengths"},
		{reflect, []uint32{12, 2, 0, 0}, "Lengths"}, // too short to reflect
		{with(walk, length, pass.Items{}), []uint32{3, 4, 0, 0}, "Lengths"},
		{with(walk, pass.Items{}, row), []uint32{0, 0, 1, 3}, "StateRows"},
		{with(apart, pass.Items{}, row), []uint32{0, 0, 0xFFFFFFFF, 0}, "StateRows"},
		{with(walk, length, row), []uint32{9, 0, 2, 9}, "Lengths or StateRows"},
	} {
		require.NoError(t, s.Write(ctx, h, make([]float32, 20)))
		rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(c.op) })
		require.NoError(t, err)
		require.NoError(t, s.Write(ctx, numbers, c.words))
		_, err = rec.Run(ctx)
		require.ErrorIs(t, err, pass.ErrInvalid, "%v", c.words)
		require.ErrorContains(t, err, c.op.Name()+": "+c.field, "%v", c.words)
		after := make([]float32, 20)
		require.NoError(t, s.Read(ctx, h, after))
		require.Equal(t, make([]float32, 5), after[15:], "a row beyond the state was written")
		require.NoError(t, s.Write(ctx, numbers, []uint32{3, 3, 0, 1}))
		_, err = rec.Run(ctx)
		require.NoError(t, err, "the same recording with numbers in range")
	}
}

// The functions of the epilogues, closely: erf within 2e-7, and small arguments with all
// their digits.
func TestEpilogueAccuracy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBench(t, driver.DeviceConfig{}, nil)
	s, err := b.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	var values []float32
	for x := float32(-20); x <= 20; x += 1.0 / 128 {
		values = append(values, x)
	}
	for x := float32(1); x > 1e-30; x /= 1.7 {
		values = append(values, x, -x)
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		e     pass.Epilogue
		truth func(x float64) float64
		most  func(x, y float64) float64
	}{
		{pass.GELU, func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }, func(x, y float64) float64 { return 1e-7*math.Abs(x) + 1e-7*math.Abs(y) }},
		{pass.Sigmoid, sigmoid, func(x, y float64) float64 { return 4e-7 * y }},
		{pass.SiLU, func(x float64) float64 { return x * sigmoid(x) }, func(x, y float64) float64 { return 4e-7*math.Abs(y) + 1e-38 }},
		{pass.Tanh, math.Tanh, func(x, y float64) float64 { return 4e-7*math.Abs(y) + 1e-38 }},
	} {
		x, err := s.Alloc(pass.F32, len(values))
		require.NoError(t, err)
		y, err := s.Alloc(pass.F32, len(values))
		require.NoError(t, err)
		require.NoError(t, s.Write(ctx, x.View(), values))
		rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
			p.Do(pass.Map{X: x.View(), Y: y.View(), Rows: 1, Cols: len(values), Epilogue: c.e})
		})
		require.NoError(t, err)
		_, err = rec.Run(ctx)
		require.NoError(t, err)
		got := make([]float32, len(values))
		require.NoError(t, s.Read(ctx, y.View(), got))
		for i, v := range values {
			want := c.truth(float64(v))
			require.InDelta(t, want, float64(got[i]), c.most(float64(v), want), "%v(%v)", c.e, v)
		}
	}
}

// sameInParts runs a Gemm case for its first rows only, which other kernels take.
func (b *bench) sameInParts(t *testing.T, c cases.Case, whole map[string][]uint32) {
	for _, rows := range []int{3, 17} {
		part := c
		g := c.Op.(pass.Gemm)
		g.Rows = rows
		part.Op = g
		k := c.Inputs[0].Shape[2]
		part.Inputs = []cases.Tensor{{Name: "A", Type: pass.F32, Shape: []int{1, rows, k}, Words: c.Inputs[0].Words[:rows*k]}}
		after := b.run(t, part, cases.Awkward)
		placed, err := cases.Place(part, cases.Awkward, 1)
		require.NoError(t, err)
		for _, p := range placed.Buffers {
			if p.Name == "C" {
				for r := range rows {
					at := p.View.Offset + r*p.View.RowStride
					require.Equal(t, whole["C"][at:at+7], after["C"][at:at+7], "%d rows: %s of row %d", rows, c.Name, r)
				}
			}
		}
	}
}

// What limits make of an op changes no bit of it: fewer workgroups, smaller bindings,
// less work in a dispatch.
func TestSplits(t *testing.T) {
	t.Parallel()
	plain := newBench(t, driver.DeviceConfig{}, nil)
	lesser := map[string]*bench{
		"bindings":   newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 64 << 10}}, nil),
		"workgroups": newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxWorkgroups: 2}}, nil),
		"rate":       newBench(t, driver.DeviceConfig{}, func(d *device) { d.rate.FLOP = 1e5 }),
	}
	list := []struct {
		c    cases.Case
		more []string // the lesser devices that need more dispatches
	}{
		{gemmCase(90, 300, 70, pass.Residual(2)), []string{"bindings", "workgroups", "rate"}},
		{gemmCase(5, 900, 40, pass.GELU), []string{"bindings", "workgroups", "rate"}},
		{typedGemm(pass.F16, 21, 700, 70, pass.None), []string{"bindings", "workgroups", "rate"}},
		{typedGemm(pass.Q8_0, 6, 700, 160, pass.None), []string{"bindings", "workgroups", "rate"}},
		{typedGemm(pass.Q8_0, 40, 700, 160, pass.None), []string{"bindings", "workgroups", "rate"}},
		{convCase(2, 130, 6, 200), []string{"workgroups", "rate"}},
		{convCase(1, 60, 64, 90), []string{"bindings", "rate"}},
		{lstmCase(5, 90, 7, 33, 2, 2), []string{"bindings", "workgroups", "rate"}},
		{lstmCase(3, 41, 64, 33, 1, 1), []string{"rate"}},
	}
	for _, c := range list {
		whole := plain.run(t, c.c, cases.Awkward)
		count := len(plain.dispatches)
		for name, b := range lesser {
			require.Equal(t, whole, b.run(t, c.c, cases.Awkward), "%s: %s", name, c.c.Name)
			for _, more := range c.more {
				if more == name {
					require.Greater(t, len(b.dispatches), count, "%s: %s", name, c.c.Name)
				}
			}
		}
	}
}

// An LSTM whose state is too large for workgroup memory.
func TestLSTMBeyondWorkgroupMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxWorkgroupStorage: 4096, MaxInvocations: 64}}, nil)
	for _, c := range []cases.Case{lstmCase(3, 4, 5, 401, 1, 2), lstmCase(300, 2, 3, 350, 1, 1)} {
		b.run(t, c, cases.Dense)
		v := b.dispatches[len(b.dispatches)-2].kernel.kernel
		require.Equal(t, "steps", v.entry)
		require.Equal(t, false, v.values["InWorkgroup"])
	}
}

// Many items, of which a workgroup takes several, and a last one that is not full.
func TestLSTMManyItems(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{}, nil)
	for _, invocations := range []uint32{64, 1024} {
		if invocations < 1024 {
			b = newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxInvocations: invocations}}, nil)
		}
		for batch, items := range map[int]int{257: 2, 515: 4, 1027: 8} {
			b.run(t, lstmCase(batch, 2, 3, 40, 1, 1), cases.Dense)
			require.Equal(t, items, b.dispatches[len(b.dispatches)-1].kernel.kernel.values["Items"])
		}
	}
}
