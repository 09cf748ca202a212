package cuda

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// lstmCase is an LSTM with ragged lengths and a state in place, of which it uses some rows.
type lstmCase struct {
	gpu                            drivertest.Profile
	sms                            int // 0: the device's
	in, hidden, layers, directions int
	batch, time                    int
	types                          [2]pass.DType // of the directions; 0: F32
	kernel                         string        // that Dump names
}

func (l lstmCase) weights() pass.LSTMWeights {
	w := pass.LSTMWeights{Name: "W"}
	in := l.in
	for i := range l.layers {
		var layer []pass.LSTMCell
		for d := range l.directions {
			name, typ := fmt.Sprintf("%d.%d", i, d), l.types[d]
			if typ == 0 {
				typ = pass.F32
			}
			matrix := func(part string, k int) pass.Tensor {
				return cases.Encode(name+part, typ, cases.Recipe(name+part, 1, 4*l.hidden*k, 1.5/float32(k), 0), 4*l.hidden, k)
			}
			layer = append(layer, pass.LSTMCell{Input: matrix("input", in), Hidden: matrix("hidden", l.hidden), Bias: cases.Recipe(name+"bias", 1, 4*l.hidden, 1, 0)})
		}
		w.Layers = append(w.Layers, layer)
		in = l.directions * l.hidden
	}
	return w
}

func (l lstmCase) make() cases.Case {
	states, rows, lengths := l.batch+2, []int{}, []int{}
	for b := range l.batch {
		rows = append(rows, (b+2)%states)
		lengths = append(lengths, max(l.time-b*(l.time/3+1), 0))
	}
	lengths[0] = l.time
	c := cases.Case{
		Name:    fmt.Sprintf("lstm-%dx%d-%dto%d-l%dd%d", l.batch, l.time, l.in, l.hidden, l.layers, l.directions),
		Op:      pass.LSTM{Batch: l.batch, Time: l.time, States: states, Lengths: pass.Fixed(lengths...), StateRows: pass.Fixed(rows...)},
		Params:  []cases.Param{{Field: "W", Weights: l.weights()}},
		Outputs: []string{"Y", "H", "C"},
		Same:    map[string]string{"H": "H0", "C": "C0"},
	}
	c.Inputs = []cases.Tensor{cases.F32("X", cases.Recipe(c.Name, 1, l.batch*l.time*l.in, 1, 0), l.batch, l.time, l.in)}
	vectors := l.layers * l.directions
	for _, name := range []string{"H0", "C0"} {
		c.Inputs = append(c.Inputs, cases.F32(name, cases.Recipe(name, 1, states*vectors*l.hidden, 1, 0), states, vectors, l.hidden))
	}
	return c
}

// uses reports whether the op's program has a kernel.
func (l lstmCase) uses(t *testing.T, dev pass.Device, c cases.Case) string {
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	op := c.Op.(pass.LSTM)
	alloc := func(n int) pass.View {
		b, err := s.Alloc(pass.F32, n)
		require.NoError(t, err)
		return b.View()
	}
	state := op.States * l.layers * l.directions * l.hidden
	op.X, op.Y = alloc(l.batch*l.time*l.in), alloc(l.batch*l.time*l.directions*l.hidden)
	op.H0, op.C0 = alloc(state), alloc(state)
	op.H, op.C = op.H0, op.C0
	op.W, err = dev.Load(context.Background(), l.weights())
	require.NoError(t, err)
	rec, err := s.Record(context.Background(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, rec.Dump(&b))
	return b.String()
}

// Every kernel, with layers on top of each other.
func TestLSTMWays(t *testing.T) {
	t.Parallel()
	hopper, turing := drivertest.Hopper(), drivertest.Turing()
	for _, l := range []lstmCase{
		{gpu: hopper, in: 7, hidden: 100, layers: 2, directions: 2, batch: 3, time: 7, kernel: "lstm_cluster_128x8x1"},
		{gpu: hopper, in: 7, hidden: 128, layers: 1, directions: 1, batch: 4, time: 4, sms: 20, kernel: "lstm_cluster_128x4x1"},
		{gpu: hopper, in: 7, hidden: 100, layers: 1, directions: 2, batch: 3, time: 4, sms: 12, kernel: "lstm_cluster_128x2x1"},
		{gpu: hopper, in: 3, hidden: 140, layers: 2, directions: 2, batch: 6, time: 5, sms: 16, kernel: "lstm_cluster_256x8x4"},
		{gpu: hopper, in: 3, hidden: 200, layers: 1, directions: 2, batch: 2, time: 5, kernel: "lstm_cluster_256x8x1"},
		{gpu: hopper, in: 3, hidden: 256, layers: 1, directions: 1, batch: 2, time: 3, kernel: "lstm_cluster_256x8x1"},
		{gpu: hopper, in: 9, hidden: 128, layers: 1, directions: 2, batch: 5, time: 4, sms: 4, kernel: "lstm_resident_128x2"},
		{gpu: hopper, in: 9, hidden: 50, layers: 2, directions: 2, batch: 5, time: 6, sms: 4, kernel: "lstm_resident_64x4"},
		{gpu: hopper, in: 9, hidden: 31, layers: 1, directions: 2, batch: 5, time: 6, sms: 4, kernel: "lstm_resident_32x4"},
		{gpu: hopper, in: 9, hidden: 31, layers: 1, directions: 2, batch: 5, time: 6, kernel: "lstm_resident_32x1"},
		{gpu: turing, in: 4, hidden: 131, layers: 2, directions: 2, batch: 9, time: 4, kernel: "lstm_step_8"},
		{gpu: hopper, in: 4, hidden: 1030, layers: 1, directions: 1, batch: 1, time: 3, kernel: "lstm_step_1"},
		{gpu: hopper, in: 40, hidden: 128, layers: 2, directions: 1, batch: 3, time: 1, kernel: "lstm_whole_2"},
		{gpu: hopper, in: 1029, hidden: 30, layers: 1, directions: 2, batch: 9, time: 2, kernel: "lstm_whole_8"},
		{gpu: hopper, in: 40, hidden: 128, layers: 2, directions: 2, batch: 3, time: 2, types: [2]pass.DType{pass.F16, pass.F16}, kernel: "lstm_step_2"},
		{gpu: turing, in: 9, hidden: 128, layers: 1, directions: 2, batch: 2, time: 4, types: [2]pass.DType{pass.F32, pass.F16}, kernel: "lstm_resident_128x1"},
		{gpu: turing, in: 9, hidden: 200, layers: 1, directions: 2, batch: 3, time: 3, types: [2]pass.DType{pass.F32, pass.F16}, kernel: "lstm_step_2"},
	} {
		t.Run(fmt.Sprintf("%s-%dx%d-%d", l.kernel, l.batch, l.time, l.gpu.Capability), func(t *testing.T) {
			t.Parallel()
			dev := emulated(t, l.gpu, Config{Profile: Profile{SMs: l.sms}})
			defer dev.Close()
			c := l.make()
			require.Contains(t, l.uses(t, dev, c), l.kernel)
			prove(t, dev, c)
		})
	}
}

// Stretches of time whose gates do not fit scratch memory at once: the state goes from
// launch to launch.
func TestLSTMInStretches(t *testing.T) {
	before := stretchBytes
	defer func() { stretchBytes = before }()
	for _, l := range []lstmCase{
		{gpu: drivertest.Hopper(), in: 7, hidden: 100, layers: 2, directions: 2, batch: 3, time: 11, kernel: "lstm_cluster_128x8x1"},
		{gpu: drivertest.Hopper(), in: 7, hidden: 20, layers: 2, directions: 2, batch: 3, time: 11, kernel: "lstm_resident_32x1"},
		{gpu: drivertest.Hopper(), in: 7, hidden: 260, layers: 1, directions: 2, batch: 3, time: 5, kernel: "lstm_step_2"},
	} {
		stretchBytes = 4 * l.batch * l.directions * 4 * l.hidden * 2
		dev := emulated(t, l.gpu, Config{})
		c := l.make()
		dump := l.uses(t, dev, c)
		require.GreaterOrEqual(t, strings.Count(dump, l.kernel), l.layers*((l.time+1)/2), dump)
		prove(t, dev, c)
		require.NoError(t, dev.Close())
	}
}

// Rows of the state that are given on the device and are none, or twice, fail the run and
// touch no other rows.
func TestLSTMRowsOnDevice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for _, time := range []int{1, 3} {
		for _, rows := range [][]uint32{{1, 1}, {3, 0}, {0, 1 << 31}} {
			s, err := dev.NewSession(pass.SessionConfig{})
			require.NoError(t, err)
			l := lstmCase{in: 2, hidden: 4, layers: 1, directions: 1}
			op := pass.LSTM{Batch: 2, Time: time, States: 3}
			op.W, err = dev.Load(ctx, l.weights())
			require.NoError(t, err)
			alloc := func(typ pass.DType, n int) pass.Buffer {
				b, err := s.Alloc(typ, n)
				require.NoError(t, err)
				return b
			}
			given := alloc(pass.U32, 2)
			op.X, op.Y, op.StateRows = alloc(pass.F32, 4*time).View(), alloc(pass.F32, 8*time).View(), pass.ItemsIn(given.View())
			op.H, op.C = alloc(pass.F32, 12).View(), alloc(pass.F32, 12).View()
			before := slices.Repeat([]float32{7}, 12)
			require.NoError(t, s.Write(ctx, op.H, before))
			require.NoError(t, s.Write(ctx, given.View(), rows))
			rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
			require.NoError(t, err)
			_, err = rec.Run(ctx)
			require.ErrorIs(t, err, pass.ErrInvalid)
			after := make([]float32, 12)
			require.NoError(t, s.Read(ctx, op.H, after))
			require.Equal(t, before[8:], after[8:], "row 2 belongs to no item")
			require.NoError(t, s.Close())
		}
	}
}
