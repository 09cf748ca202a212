package cuda

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// An lstmTiming is a recurrence of a network.
type lstmTiming struct {
	name                           string
	in, hidden, layers, directions int
	time                           int
	batches                        []int
	inPlace                        bool
	ways                           []string // beside the chosen one
}

func lstmTimings() []lstmTiming {
	return []lstmTiming{
		{"segmentation", 60, 128, 4, 2, 589, []int{1, 8, 32, 128}, false, []string{"cluster_128x8x1", "cluster_128x4x1", "cluster_128x2x1", "resident_128x1", "resident_128x2"}},
		{"ge2e", 40, 256, 3, 1, 160, []int{1, 32}, false, []string{"cluster_256x8x1", "cluster_256x8x4", "step_1", "step_8"}},
		{"silero", 128, 128, 1, 1, 1, []int{1, 256}, true, []string{"step_1", "step_8", "cluster_128x8x1"}},
		{"decoder", 640, 640, 2, 1, 1, []int{1, 8}, true, []string{"step_1", "step_8"}},
	}
}

// BenchmarkLSTM times recurrences on the GPU, each a graph of its own.
func BenchmarkLSTM(b *testing.B) {
	if !onDevice() {
		b.Skip("measures a GPU: TANDEM_DEVICES=cuda")
	}
	for _, l := range lstmTimings() {
		for _, batch := range l.batches {
			for _, way := range append([]string{""}, l.ways...) {
				name := way
				if way == "" {
					name = "chosen"
				}
				b.Run(fmt.Sprintf("%s/b%d/%s", l.name, batch, name), func(b *testing.B) { l.run(b, batch, way) })
			}
		}
	}
}

func (l lstmTiming) run(b *testing.B, batch int, way string) {
	ctx := context.Background()
	dev, err := Open(ctx, Config{Ways: map[string]string{"": way}})
	require.NoError(b, err)
	defer dev.Close()
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	defer s.Close()
	m := &rowMaker{b, dev, s}
	op := pass.LSTM{
		X: m.floats(batch * l.time * l.in), Y: m.floats(batch * l.time * l.directions * l.hidden), Batch: batch, Time: l.time,
		W: m.load(lstmCase{in: l.in, hidden: l.hidden, layers: l.layers, directions: l.directions}.weights()),
	}
	if l.inPlace {
		n := batch * l.layers * l.directions * l.hidden
		op.H, op.C = m.floats(n), m.floats(n)
		op.H0, op.C0 = op.H, op.C
	}
	rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
	require.NoError(b, err)
	for range 20 { // an idle card runs slowly
		_, err = rec.Run(ctx)
		require.NoError(b, err)
	}
	for b.Loop() {
		_, err := rec.Run(ctx)
		require.NoError(b, err)
	}
	seconds := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(seconds*1e3, "ms")
	b.ReportMetric(seconds*1e6/float64(l.time*l.layers), "us/step")
	b.ReportMetric(seconds*1e6/float64(batch), "us/item")
}
