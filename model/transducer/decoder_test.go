package transducer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

const width, hidden, joint, classes = 12, 20, 16, 7

// A source makes tensors up from their names.
type source map[string][]int

func (s source) Tensor(name string) (pass.Tensor, error) {
	shape, ok := s[name]
	if !ok {
		return pass.Tensor{}, fmt.Errorf("no tensor %q: %w", name, pass.ErrInvalid)
	}
	values := make([]float32, pass.Tensor{Shape: shape}.Len())
	goldens.Values(values, name, 7, 1.5, 0)
	return pass.Float32s(name, values, shape...), nil
}

func (s source) Names() (names []string) {
	for name := range s {
		names = append(names, name)
	}
	return names
}

func head(durations int) (source, transducer.Config) {
	cfg := transducer.Config{
		Names: transducer.Names{Embed: "embed", LSTM: "lstm", Enc: "enc", Pred: "pred", Out: "out"},
		Width: width, Classes: classes, Blank: classes - 1, MaxSymbols: 4,
	}
	for d := range durations {
		cfg.Durations = append(cfg.Durations, d)
	}
	s := source{
		"embed.weight": {classes, hidden}, "enc.weight": {joint, width}, "enc.bias": {joint},
		"pred.weight": {joint, hidden}, "pred.bias": {joint},
		"out.weight": {classes + durations, joint}, "out.bias": {classes + durations},
	}
	for l := range 2 {
		s[fmt.Sprint("lstm.weight_ih_l", l)] = []int{4 * hidden, hidden}
		s[fmt.Sprint("lstm.weight_hh_l", l)] = []int{4 * hidden, hidden}
		s[fmt.Sprint("lstm.bias_l", l)] = []int{4 * hidden}
	}
	return s, cfg
}

func load(t *testing.T, dev pass.Device, src weights.Source, cfg transducer.Config) *transducer.Head {
	l := weights.NewLoader(t.Context(), dev, src)
	h := transducer.Load(l, cfg)
	_, err := l.Params()
	require.NoError(t, err)
	require.Equal(t, []int{joint, hidden}, []int{h.Joint(), h.Hidden()})
	return h
}

// decode decodes items of the given lengths together, from new, twice.
func decode(t *testing.T, dev pass.Device, h *transducer.Head, most int, frames []float32, lengths ...int) [][]transducer.Step {
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, ses.Close()) }()
	d, err := h.NewDecoder(t.Context(), ses, transducer.DecoderConfig{Items: len(lengths), Frames: most})
	require.NoError(t, err)
	require.NoError(t, ses.Write(t.Context(), d.Frames().Buffer.View(), frames))
	var all [2][][]transducer.Step
	for i := range all {
		all[i] = make([][]transducer.Step, len(lengths))
		require.NoError(t, d.Greedy(t.Context(), lengths, func(item int, s transducer.Step) { all[i][item] = append(all[i][item], s) }))
	}
	require.Equal(t, all[0], all[1], "a search begins anew")
	return all[0]
}

// Items of a batch are decoded as they are alone, and an item has the steps of its frames.
func TestBatch(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		for _, durations := range []int{0, 4} {
			src, cfg := head(durations)
			h := load(t, dev, src, cfg)
			lengths := []int{9, 0, 23, 1, 16}
			const most = 23
			frames := make([]float32, len(lengths)*most*joint)
			goldens.Values(frames, "frames", 3, 16, 0)
			together := decode(t, dev, h, most, frames, lengths...)
			tokens, blanks := 0, 0
			for i, n := range lengths {
				alone := decode(t, dev, h, most, frames[i*most*joint:][:most*joint], n)
				require.Equal(t, alone[0], together[i], "item %d", i)
				at := 0
				for _, s := range together[i] {
					require.Equal(t, at, s.Frame)
					require.Less(t, at, n)
					at += s.Advance
					if s.Token == cfg.Blank {
						blanks++
					} else {
						tokens++
					}
				}
				require.GreaterOrEqual(t, at, n)
			}
			require.Greater(t, tokens, 10, "a test of something")
			require.Greater(t, blanks, 3)
		}
	})
}

func TestDecoderRefuses(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		src, cfg := head(0)
		h := load(t, dev, src, cfg)
		ses, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		defer func() { require.NoError(t, ses.Close()) }()
		for _, bad := range []transducer.DecoderConfig{{}, {Items: 1}, {Frames: 1}, {Items: -1, Frames: 3}, {Items: 1 << 40, Frames: 1 << 40}} {
			_, err := h.NewDecoder(t.Context(), ses, bad)
			require.ErrorIs(t, err, pass.ErrInvalid)
		}
		d, err := h.NewDecoder(t.Context(), ses, transducer.DecoderConfig{Items: 2, Frames: 5})
		require.NoError(t, err)
		ok := transducer.Input{Token: transducer.Start, Feed: true}
		for _, bad := range [][]transducer.Input{nil, {ok}, {ok, {Token: classes}}, {ok, {Token: -2}}, {ok, {Frame: 5}}, {{Frame: -1}, ok}} {
			_, err := d.Step(t.Context(), bad)
			require.ErrorIs(t, err, pass.ErrInvalid, "%v", bad)
		}
		for _, bad := range [][]int{nil, {1}, {1, 6}, {-1, 1}} {
			require.ErrorIs(t, d.Greedy(t.Context(), bad, nil), pass.ErrInvalid, "%v", bad)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, d.Greedy(ctx, []int{5, 5}, func(int, transducer.Step) {}), context.Canceled)
	})
}

// What is wrong with a file is said by the name of the tensor, and nothing stays behind.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	dev := &undertest.Counted{Device: undertest.Open(t, "cpu")}
	for name, c := range map[string]struct {
		change func(source, *transducer.Config)
		says   string
	}{
		"missing":   {func(s source, _ *transducer.Config) { delete(s, "pred.bias") }, `"pred.bias"`},
		"classes":   {func(_ source, c *transducer.Config) { c.Classes++ }, `"embed.weight": want shape [8 20], given [7 20]`},
		"durations": {func(_ source, c *transducer.Config) { c.Durations = []int{0, 1} }, `"out.weight": want shape [9 16], given [7 16]`},
		"width":     {func(_ source, c *transducer.Config) { c.Width = 13 }, `"enc.weight": want shape [16 13], given [16 12]`},
		"one axis":  {func(s source, _ *transducer.Config) { s["embed.weight"] = []int{140} }, `"embed.weight": want two axes`},
		"huge":      {func(s source, _ *transducer.Config) { s["pred.weight"] = []int{1 << 40, 0} }, `"pred.weight": want two axes`},
		"lstm":      {func(s source, _ *transducer.Config) { s["lstm.weight_hh_l1"] = []int{80, 21} }, `"lstm.weight_hh_l1": want shape [80 20]`},
		"blank":     {func(_ source, c *transducer.Config) { c.Blank = 7 }, "blank: want one of 7"},
	} {
		src, cfg := head(0)
		c.change(src, &cfg)
		l := weights.NewLoader(t.Context(), dev, src)
		transducer.Load(l, cfg)
		_, err := l.Params()
		require.ErrorIs(t, err, pass.ErrInvalid, name)
		require.ErrorContains(t, err, c.says, name)
		require.Zero(t, dev.Held(), name)
	}
}
