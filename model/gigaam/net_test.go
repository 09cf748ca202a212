package gigaam

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// small is a network of little width, with both heads or one.
func small() Config {
	return Config{Blocks: blocks(64, 2, 4, 128, 5), Classes: 12, Positions: 400}
}

// A source makes tensors up from their names, in the names of the authors: values with a
// deviation like that of trained ones.
type source map[string][]int

func (s source) Tensor(name string) (pass.Tensor, error) {
	shape, ok := s[name]
	if !ok {
		return pass.Tensor{}, fmt.Errorf("no tensor %q: %w", name, pass.ErrInvalid)
	}
	values := make([]float32, pass.Tensor{Shape: shape}.Len())
	scale, offset := float32(0.1), float32(0)
	switch {
	case len(shape) > 1:
		scale = float32(1.5 / math.Sqrt(float64(len(values)/shape[0])))
	case strings.Contains(name, "norm") && strings.HasSuffix(name, "weight"):
		offset = 1
	}
	goldens.Values(values, name, 11, scale, offset)
	return pass.Float32s(name, values, shape...), nil
}

func (s source) Names() (names []string) {
	for name := range s {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s source) linear(name string, shape ...int) {
	s[name+".weight"], s[name+".bias"] = shape, shape[:1]
}

func made(c Config, transducer bool) source {
	s := source{}
	d := c.Blocks.Width
	s.linear("encoder.pre_encode.conv.0", d, 64, 5)
	s.linear("encoder.pre_encode.conv.2", d, d, 5)
	for i := range c.Blocks.Layers {
		at := fmt.Sprintf("encoder.layers.%d.", i)
		for _, name := range []string{"norm_feed_forward1", "norm_self_att", "norm_conv", "norm_feed_forward2", "norm_out", "conv.batch_norm"} {
			s.linear(at+name, d)
		}
		for _, name := range []string{"feed_forward1", "feed_forward2"} {
			s.linear(at+name+".linear1", c.Blocks.Hidden, d)
			s.linear(at+name+".linear2", d, c.Blocks.Hidden)
		}
		for _, name := range []string{"q", "k", "v", "out"} {
			s.linear(at+"self_attn.linear_"+name, d, d)
		}
		s.linear(at+"conv.pointwise_conv1", 2*d, d, 1)
		s.linear(at+"conv.depthwise_conv", d, 1, c.Blocks.Kernel)
		s.linear(at+"conv.pointwise_conv2", d, d, 1)
	}
	if !transducer {
		s.linear("head.decoder_layers.0", c.Classes, d, 1)
		return s
	}
	const hidden, joint = 24, 20
	s["head.decoder.embed.weight"] = []int{c.Classes, hidden}
	s["head.decoder.lstm.weight_ih_l0"], s["head.decoder.lstm.weight_hh_l0"] = []int{4 * hidden, hidden}, []int{4 * hidden, hidden}
	s["head.decoder.lstm.bias_l0"] = []int{4 * hidden}
	s.linear("head.joint.enc", joint, d)
	s.linear("head.joint.pred", joint, hidden)
	s.linear("head.joint.joint_net.1", c.Classes, joint)
	return s
}

// toTranscribe turns the names of the authors into those of transcribe.cpp.
var toTranscribe = strings.NewReplacer(
	"encoder.layers.", "enc.blocks.", "encoder.pre_encode", "enc.pre_encode",
	"norm_feed_forward1", "norm_ff1", "norm_feed_forward2", "norm_ff2", "feed_forward1", "ff1", "feed_forward2", "ff2",
	"norm_self_att", "norm_attn", "self_attn.", "attn.", "pointwise_conv1", "pointwise1", "pointwise_conv2", "pointwise2",
	"depthwise_conv", "depthwise", "batch_norm", "ln", "head.decoder_layers.0", "head.ctc",
	"head.decoder.embed", "pred.embed", "head.joint.joint_net.1", "joint.out", "head.joint", "joint",
	"head.decoder.lstm.weight_ih_l0", "pred.lstm.0.Wx", "head.decoder.lstm.weight_hh_l0", "pred.lstm.0.Wh", "head.decoder.lstm.bias_l0", "pred.lstm.0.bias",
)

func metadata(c Config) gguf.Metadata {
	return gguf.Metadata{
		"general.architecture":                    "gigaam",
		"stt.gigaam.encoder.self_attention_model": "rotary",
		"stt.gigaam.encoder.conv_norm_type":       "layer_norm",
		"stt.gigaam.encoder.subsampling_factor":   uint32(4),
		"stt.gigaam.encoder.subs_kernel_size":     uint32(5),
		"stt.gigaam.encoder.pos_emb_max_len":      uint32(5000),
		"stt.gigaam.encoder.n_layers":             uint32(c.Blocks.Layers),
		"stt.gigaam.encoder.d_model":              uint32(c.Blocks.Width),
		"stt.gigaam.encoder.n_heads":              uint32(c.Blocks.Heads),
		"stt.gigaam.encoder.d_ff":                 uint32(c.Blocks.Hidden),
		"stt.gigaam.encoder.conv_kernel":          uint32(c.Blocks.Kernel),
		"stt.frontend.num_mels":                   uint32(64),
		"tokenizer.ggml.blank_token_id":           uint32(c.Classes - 1),
	}
}

func file(t *testing.T, m gguf.Metadata, src weights.Source, rename func(string) string) *gguf.File {
	t.Helper()
	var tensors []gguf.Tensor
	for _, name := range src.Names() {
		w, err := src.Tensor(name)
		require.NoError(t, err)
		w.Name = rename(name)
		tensors = append(tensors, gguf.Of(w))
	}
	var b bytes.Buffer
	require.NoError(t, gguf.Write(&b, tensors, m))
	f, err := gguf.New(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	return f
}

// A network is the same from the files of each publisher: it hears the same, whatever
// windows it gets and whatever fills them up, in batches and alone.
func TestTranscribe(t *testing.T) {
	speech, _, err := wav.ReadFile("../testdata/audio/jfk.wav")
	require.NoError(t, err)
	clips := [][]float32{speech[5000:49000], speech[60000:62000], speech[70000:110000], speech[:0], speech[:300], speech[20000:60160]}
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		for _, transducer := range []bool{false, true} {
			src := made(small(), transducer)
			inTranscribe := file(t, metadata(small()), src, toTranscribe.Replace)
			fromFile, err := FromGGUF(inTranscribe.Metadata())
			require.NoError(t, err)
			below := file(t, nil, src, func(name string) string { return "model." + name })
			var heard [][]asr.Result
			for i, src := range []weights.Source{src, inTranscribe, below} {
				net, err := Load(t.Context(), dev, src, []Config{small(), fromFile, small()}[i])
				require.NoError(t, err)
				require.Equal(t, transducer, net.transducer != nil)
				require.Equal(t, transducer, net.ctc == nil)
				window := 3 * time.Second * time.Duration(i+1)
				s, err := net.NewSession(t.Context(), asr.SessionConfig{Window: window, Overlap: time.Second, Batch: i + 1})
				require.NoError(t, err)
				all, err := s.TranscribeAll(t.Context(), clips, asr.Options{})
				require.NoError(t, err)
				heard = append(heard, all)
				require.NoError(t, s.Close())
				require.NoError(t, net.Close())
				require.NoError(t, net.Close())
			}
			require.Equal(t, heard[0], heard[1])
			require.Equal(t, heard[0], heard[2])
			require.Empty(t, heard[0][3].Tokens)
			require.Greater(t, len(heard[0][0].Tokens)+len(heard[0][2].Tokens)+len(heard[0][5].Tokens), 20, "a test of something")
		}
	})
}

func TestWindowLimit(t *testing.T) {
	t.Parallel()
	net, err := Load(t.Context(), undertest.Open(t, "cpu"), made(small(), false), small())
	require.NoError(t, err)
	_, err = net.NewSession(t.Context(), asr.SessionConfig{Window: 17 * time.Second})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "400 frames")
	_, err = net.Transcribe(t.Context(), nil, asr.Options{})
	require.ErrorContains(t, err, "400 frames", "the windows of sessions that nobody configured")
	s, err := net.NewSession(t.Context(), asr.SessionConfig{Window: 16 * time.Second})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, net.Close())
	require.NoError(t, (*Model)(nil).Close())
	_, err = net.NewSession(t.Context(), asr.SessionConfig{Window: 16 * time.Second})
	require.ErrorIs(t, err, pass.ErrClosed)
}

// Bad files are refused with one error that says what is wrong, and leave nothing on the
// device.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	dev := &undertest.Counted{Device: undertest.Open(t, "cpu")}
	for name, tc := range map[string]struct {
		change func(source, *Config)
		says   string
	}{
		"another network": {func(s source, _ *Config) { clear(s); s["encoder.subsampling.linear.weight"] = []int{1} }, `"encoder.pre_encode.conv.0.weight": want shape [64 64 5]`},
		"missing":         {func(s source, _ *Config) { delete(s, "encoder.layers.1.norm_out.bias") }, `"encoder.layers.1.norm_out.bias"`},
		"shape":           {func(_ source, c *Config) { c.Blocks.Hidden = 96 }, `"encoder.layers.0.feed_forward1.linear1.weight": want shape [96 64], given [128 64]`},
		"fewer layers":    {func(_ source, c *Config) { c.Blocks.Layers = 1 }, "want 1 layers, given more"},
		"more layers":     {func(_ source, c *Config) { c.Blocks.Layers = 3 }, `"encoder.layers.2.norm_feed_forward1.weight"`},
		"classes":         {func(_ source, c *Config) { c.Classes = 7 }, `want shape [7 64], given [12 64 1]`},
		"no heads":        {func(s source, _ *Config) { delete(s, "head.decoder_layers.0.weight") }, `"head.decoder_layers.0.weight" of a CTC head`},
		"configuration":   {func(_ source, c *Config) { c.Kernel = 4 }, "want an odd kernel"},
		"positions":       {func(_ source, c *Config) { c.Positions = 1 << 30 }, "positions: want 1 to"},
	} {
		src, cfg := made(small(), false), small()
		tc.change(src, &cfg)
		net, err := Load(t.Context(), dev, src, cfg)
		require.ErrorIs(t, err, pass.ErrInvalid, name)
		require.ErrorContains(t, err, tc.says, name)
		require.ErrorContains(t, err, "gigaam: ", name)
		require.Nil(t, net)
		require.Zero(t, dev.Held(), name)
	}
	for _, err := range []error{second(Load(t.Context(), nil, source{}, small())), second(Load(t.Context(), dev, nil, small()))} {
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
}

func second[T any](_ T, err error) error { return err }

func TestConfigs(t *testing.T) {
	t.Parallel()
	for name, n := range classes {
		c, err := Preset(name)
		require.NoError(t, err)
		require.NoError(t, c.Check())
		require.Equal(t, n, c.Classes)
		fromFile, err := FromGGUF(metadata(c))
		require.NoError(t, err)
		require.Equal(t, c, fromFile)
	}
	_, err := Preset("v2")
	require.ErrorIs(t, err, pass.ErrInvalid)
	for key, to := range map[string]any{
		"general.architecture": "parakeet", "stt.gigaam.encoder.self_attention_model": "rel_pos", "stt.gigaam.encoder.conv_norm_type": "batch_norm",
		"stt.gigaam.encoder.subsampling_factor": uint32(8), "stt.gigaam.encoder.d_model": uint64(1) << 50, "stt.frontend.num_mels": uint32(80),
		"stt.gigaam.encoder.n_heads": "many", "tokenizer.ggml.tokens": []bool{true}, "tokenizer.ggml.blank_token_id": int32(-1),
	} {
		m := metadata(small())
		m[key] = to
		_, err := FromGGUF(m)
		require.ErrorIs(t, err, pass.ErrInvalid, key)
	}
}
