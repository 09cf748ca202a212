package gigaam

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/transducertest"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// TestGoldens runs every golden case of the family on every device, and prints how close
// each output is.
func TestGoldens(t *testing.T) {
	folders, err := goldens.Folders(filepath.Join("..", "testdata", "goldens"))
	require.NoError(t, err)
	runners := map[string]func(*testing.T, *goldens.Case, pass.Device) goldens.Results{"gigaam-v3-ctc": encoderCase, "gigaam-v3-rnnt": headCase}
	ran := map[string]bool{}
	for _, dir := range folders {
		c, err := goldens.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		run := runners[c.Model]
		if run == nil {
			continue
		}
		ran[c.Model] = true
		t.Run(c.Name, func(t *testing.T) {
			undertest.EachMath(t, func(t *testing.T, dev pass.Device, m pass.Math) {
				require.NoError(t, c.Check(t.Output(), run(t, c, dev), m))
			})
		})
	}
	require.Len(t, ran, len(runners))
}

// caseConfig is the configuration of a case with an encoder.
type caseConfig struct {
	Width   int `json:"d_model"`
	Heads   int
	Hidden  int `json:"d_ff"`
	Kernel  int `json:"conv_kernel"`
	Layers  int
	Base    float64 `json:"rope_base"`
	Lengths []int
	Blank   int
}

func (c caseConfig) config() Config {
	return Config{Blocks: blocks(c.Width, c.Layers, c.Heads, c.Hidden, c.Kernel), Classes: c.Blank + 1, Base: c.Base}
}

// encoderCase runs an encoder with a CTC head.
func encoderCase(t *testing.T, c *goldens.Case, dev pass.Device) goldens.Results {
	var config caseConfig
	require.NoError(t, c.Configuration(&config))
	net, err := Load(t.Context(), dev, c, config.config())
	require.NoError(t, err)
	defer func() { require.NoError(t, net.Close()) }()
	shape, err := c.InputAxes("mel", 3)
	require.NoError(t, err)
	require.Len(t, config.Lengths, shape[0], "a length for each item")
	mel, err := c.Input("mel")
	require.NoError(t, err)
	outputs := encode(t, net, transposed(mel, shape[1], shape[2]), shape[2], config.Lengths)
	results := goldens.Results{}
	for name, values := range outputs {
		rows := encoder{net}.Stages(shape[2])[2]
		cols := len(values) / rows / len(config.Lengths)
		for i, length := range config.Lengths {
			results[fmt.Sprint(name, ".", i)] = values[i*rows*cols:][:encoder{net}.Stages(length)[2]*cols]
		}
	}
	return results
}

// transposed returns the items of x, [rows][cols] each, as [cols][rows].
func transposed(x []float32, rows, cols int) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		item, r, c := i/(rows*cols), i/cols%rows, i%cols
		y[item*rows*cols+c*rows+r] = v
	}
	return y
}

// encode runs the encoder on features of items of the given lengths, of frames rows each,
// and returns what it traces, and the log-probabilities.
func encode(t *testing.T, net *Model, x []float32, frames int, lengths []int) map[string][]float32 {
	t.Helper()
	ses, err := net.dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, ses.Close()) }()
	outs := map[string]pass.Output{}
	var in pass.Input
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, len(x))
		b := conformer.Batch{Items: len(lengths), Frames: frames}
		for stage := range (encoder{net}).Stages(frames) {
			var of []int
			for _, n := range lengths {
				of = append(of, encoder{net}.Stages(n)[stage])
			}
			b.Lengths = append(b.Lengths, pass.Fixed(of...))
		}
		b.Trace = func(name string, v pass.View, rows, cols int) { outs[name] = p.Output(v, len(lengths)*rows*cols) }
		y := encoder{net}.Encode(p, &b, in.View())
		rows := len(lengths) * encoder{net}.Stages(frames)[2]
		n := rows * net.ctc.Config().Classes
		logs := p.Temp(pass.F32, n).View()
		p.Do(pass.LogSoftmax{X: net.ctc.Logits(p, y, rows), Y: logs, Rows: rows, Cols: net.ctc.Config().Classes})
		outs["log_probabilities"] = p.Output(logs, n)
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

// headCase runs an RNN-T head on the frames of a case.
func headCase(t *testing.T, c *goldens.Case, dev pass.Device) goldens.Results {
	var config struct {
		Classes, Blank int
		Width          int `json:"encoder_width"`
		Symbols        int `json:"max_symbols_per_frame"`
	}
	require.NoError(t, c.Configuration(&config))
	require.Equal(t, config.Classes-1, config.Blank)
	l := weights.NewLoader(t.Context(), dev, c)
	head := transducer.Load(l, headConfig(config.Width, config.Classes, config.Symbols))
	_, err := l.Params()
	require.NoError(t, err)
	shape, err := c.InputAxes("encoded", 2)
	require.NoError(t, err)
	x, err := c.InputOf("encoded", shape[0], config.Width)
	require.NoError(t, err)
	results := goldens.Results{"encoder_projected": project(t, dev, head, x, len(x)/config.Width)}
	transducertest.Run(t, transducertest.Case{
		Device: dev, Head: head, Config: head.Config(),
		Frames: results["encoder_projected"].([]float32),
		Inputs: slices.Insert(slices.Clone(c.PredictorInputIDs), 0, transducer.Start), At: c.JointFrames, Predictor: "hidden",
	}, results)
	return results
}

// project returns the projection of frames.
func project(t *testing.T, dev pass.Device, head *transducer.Head, x []float32, frames int) []float32 {
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, ses.Close()) }()
	var in pass.Input
	var out pass.Output
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, len(x))
		y := p.Temp(pass.F32, frames*head.Joint())
		head.Project(p, in.View(), y.View(), 1, frames)
		out = p.Output(y.View(), y.Len())
	})
	require.NoError(t, err)
	run, err := rec.Run(t.Context(), in.F32(x))
	require.NoError(t, err)
	values := make([]float32, out.Len())
	require.NoError(t, run.ReadF32(out, values))
	return values
}
