package parakeet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/transducertest"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

// caseConfig is the configuration of a golden case.
type caseConfig struct {
	Encoder    encoderJSON
	Classes    int `json:"vocab_size"`
	Blank      int
	Lengths    []int
	Durations  []int
	MaxSymbols int `json:"max_symbols_per_frame"`
}

func (c caseConfig) config() Config {
	n := c.Encoder.config()
	n.Classes, n.Durations, n.MaxSymbols = c.Classes, c.Durations, c.MaxSymbols
	return n
}

// openCase opens a golden case that is here.
func openCase(t testing.TB, name string) (*goldens.Case, caseConfig) {
	c, err := goldens.Open(filepath.Join("..", "testdata", "goldens", name))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	var config caseConfig
	require.NoError(t, c.Configuration(&config))
	return c, config
}

// TestGoldens runs every golden case of the family on every device, and prints how close
// each output is.
func TestGoldens(t *testing.T) {
	folders, err := goldens.Folders(filepath.Join("..", "testdata", "goldens"))
	require.NoError(t, err)
	ran := map[string]bool{}
	for _, dir := range folders {
		c, err := goldens.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		if !strings.HasPrefix(c.Model, "parakeet-") {
			continue
		}
		ran[c.Model] = true
		var config caseConfig
		require.NoError(t, c.Configuration(&config))
		require.Equal(t, config.Classes-1, config.Blank)
		t.Run(c.Name, func(t *testing.T) {
			undertest.EachMath(t, func(t *testing.T, dev pass.Device, m pass.Math) {
				net, err := Load(t.Context(), dev, c, config.config())
				require.NoError(t, err)
				defer func() { require.NoError(t, net.Close()) }()
				results := goldens.Results{}
				encodeCase(t, c, config, net, results)
				if net.transducer != nil {
					transducertest.Run(t, transducertest.Case{
						Device: dev, Head: net.transducer, Config: net.transducer.Config(),
						Frames: results["encoder_projected"].([]float32),
						Inputs: c.PredictorInputIDs, At: c.JointFrames, Predictor: "predictor",
					}, results)
				}
				require.NoError(t, c.Check(t.Output(), results, m))
			})
		})
	}
	require.Len(t, ran, 3, "CTC, RNN-T and TDT")
}

// encodeCase runs the encoder and what follows it at once over the features of a case.
func encodeCase(t *testing.T, c *goldens.Case, config caseConfig, net *Model, results goldens.Results) {
	shape, err := c.InputAxes("input_features", 3)
	require.NoError(t, err)
	x, err := c.Input("input_features")
	require.NoError(t, err)
	lengths := config.Lengths
	if lengths == nil {
		lengths = slices.Repeat([]int{shape[1]}, shape[0])
	}
	require.Len(t, lengths, shape[0], "a length for each item")
	outputs := encode(t, net, x, shape[1], lengths)
	for name, values := range outputs {
		rows := encoder{net}.Stages(shape[1])[2]
		cols := len(values) / rows / len(lengths)
		for i, length := range lengths {
			item := values[i*rows*cols:][:encoder{net}.Stages(length)[2]*cols]
			if config.Lengths != nil {
				results[fmt.Sprint(name, ".", i)] = item
			} else {
				results[name] = item
			}
		}
	}
}

// encode runs the encoder on features of items of the given lengths, of frames rows each,
// and returns what it traces, and the outputs of the heads.
func encode(t *testing.T, net *Model, x []float32, frames int, lengths []int) map[string][]float32 {
	t.Helper()
	ses, err := net.dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, ses.Close()) }()
	state, err := encoder{net}.State(t.Context(), ses, frames+37) // more than needed
	require.NoError(t, err)
	outs := map[string]pass.Output{}
	var in pass.Input
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, len(x))
		b := batch(net, frames, lengths)
		b.State = state.View()
		b.Trace = func(name string, v pass.View, rows, cols int) { outs[name] = p.Output(v, len(lengths)*rows*cols) }
		y := encoder{net}.Encode(p, &b, in.View())
		rows := len(lengths) * encoder{net}.Stages(frames)[2]
		if net.ctc != nil {
			outs["logits"] = p.Output(net.ctc.Logits(p, y, rows), rows*net.ctc.Config().Classes)
		}
		if net.transducer != nil {
			projected := p.Temp(pass.F32, rows*net.transducer.Joint())
			net.transducer.Project(p, y, projected.View(), len(lengths), encoder{net}.Stages(frames)[2])
			outs["encoder_projected"] = p.Output(projected.View(), projected.Len())
		}
	})
	require.NoError(t, err)
	run, err := rec.Run(t.Context(), in.F32(x))
	require.NoError(t, err)
	values := map[string][]float32{}
	for name, o := range outs {
		values[name] = make([]float32, o.Len())
		require.NoError(t, run.ReadF32(o, values[name]))
	}
	return values
}

func batch(net *Model, frames int, lengths []int) conformer.Batch {
	b := conformer.Batch{Items: len(lengths), Frames: frames}
	for stage := range (encoder{net}).Stages(frames) {
		var of []int
		for _, n := range lengths {
			of = append(of, encoder{net}.Stages(n)[stage])
		}
		b.Lengths = append(b.Lengths, pass.Fixed(of...))
	}
	return b
}
