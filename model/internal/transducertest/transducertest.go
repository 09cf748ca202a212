// Package transducertest runs the golden cases of transducers. Only tests import it.
package transducertest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/pass"
)

// A Case is what a golden case says of its head.
type Case struct {
	Device    pass.Device
	Head      *transducer.Head
	Config    transducer.Config
	Frames    []float32 // projected
	Inputs    []int     // of the predictor, one after the other
	At        []int     // frames that are joined with each; nil: all
	Predictor string    // what of the trace is stored as the predictor's output
}

// Run adds to results what a case stores: the predictor's outputs for its inputs, their
// joint scores at some frames, and every step of the greedy search.
func Run(t *testing.T, c Case, results goldens.Results) {
	t.Helper()
	ctx := t.Context()
	length := len(c.Frames) / c.Head.Joint()
	if c.At == nil {
		for i := range length {
			c.At = append(c.At, i)
		}
	}
	ses, err := c.Device.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, ses.Close()) }()
	trace := map[string][]float32{}
	d, err := c.Head.NewDecoder(ctx, ses, transducer.DecoderConfig{
		Items: 1, Frames: length,
		Trace: func(name string, v []float32) { trace[name] = slices.Clone(v) },
	})
	require.NoError(t, err)
	require.NoError(t, ses.Write(ctx, d.Frames().Buffer.View(), c.Frames))

	scores := c.Config.Classes + len(c.Config.Durations)
	joint := make([]float32, len(c.At)*len(c.Inputs)*scores)
	var predictor []float32
	for i, id := range c.Inputs {
		for j, frame := range c.At {
			_, err := d.Step(ctx, []transducer.Input{{Token: id, Feed: j == 0, Frame: frame}})
			require.NoError(t, err)
			copy(joint[(j*len(c.Inputs)+i)*scores:], trace["logits"])
		}
		predictor = append(predictor, trace[c.Predictor]...)
	}
	results["joint"], results["predictor"] = joint, predictor

	var steps, tokens, frames, advances []int64
	var margins []float32
	require.NoError(t, d.Greedy(ctx, []int{length}, func(_ int, s transducer.Step) {
		steps = append(steps, int64(s.Frame), int64(s.Token), int64(s.Advance))
		margins = append(margins, margin(trace["logits"][:c.Config.Classes]))
		if c.Config.Durations != nil {
			margins = append(margins, margin(trace["logits"][c.Config.Classes:]))
		}
		if s.Token != c.Config.Blank {
			tokens, frames, advances = append(tokens, int64(s.Token)), append(frames, int64(s.Frame)), append(advances, int64(s.Advance))
		}
	}))
	results["steps"], results["tokens"], results["token_frames"], results["token_advances"] = steps, tokens, frames, advances
	results["step_margins"] = margins
}

// margin returns by how much the best score is above the second.
func margin(scores []float32) float32 {
	best, second := math.Inf(-1), math.Inf(-1)
	for _, v := range scores {
		if s := float64(v); s > best {
			best, second = s, best
		} else {
			second = max(second, s)
		}
	}
	return float32(best - second)
}
