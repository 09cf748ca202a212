package transducer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// BenchmarkStep measures a step of Parakeet TDT 0.6B v3: two LSTM layers of 640 and 8193
// classes. A token takes a step that feeds the predictor, a blank one that doesn't.
func BenchmarkStep(b *testing.B) {
	const hidden, classes, width = 640, 8193, 1024
	src := source{
		"embed.weight": {classes, hidden}, "enc.weight": {hidden, width}, "enc.bias": {hidden},
		"pred.weight": {hidden, hidden}, "pred.bias": {hidden}, "out.weight": {classes + 5, hidden}, "out.bias": {classes + 5},
	}
	for l := range 2 {
		src[fmt.Sprint("lstm.weight_ih_l", l)] = []int{4 * hidden, hidden}
		src[fmt.Sprint("lstm.weight_hh_l", l)] = []int{4 * hidden, hidden}
		src[fmt.Sprint("lstm.bias_l", l)] = []int{4 * hidden}
	}
	_, cfg := head(5)
	cfg.Width, cfg.Classes, cfg.Blank = width, classes, classes-1
	dev := undertest.First(b)
	l := weights.NewLoader(b.Context(), dev, src)
	h := transducer.Load(l, cfg)
	_, err := l.Params()
	require.NoError(b, err)
	for _, items := range []int{1, 8} {
		ses, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(b, err)
		d, err := h.NewDecoder(b.Context(), ses, transducer.DecoderConfig{Items: items, Frames: 375})
		require.NoError(b, err)
		for name, feed := range map[string]bool{"token": true, "blank": false} { // in any order
			in := make([]transducer.Input, items)
			for i := range in {
				in[i] = transducer.Input{Token: 3, Feed: feed, Frame: i}
			}
			b.Run(fmt.Sprintf("%s/%d items", name, items), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, err := d.Step(b.Context(), in)
					require.NoError(b, err)
				}
			})
		}
		require.NoError(b, ses.Close())
	}
}
