package parakeet

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// toNeMo turns the names of transformers into those of NeMo.
var toNeMo = strings.NewReplacer(
	"subsampling.layers.", "pre_encode.conv.", "subsampling.linear.", "pre_encode.out.",
	"q_proj", "linear_q", "relative_k_proj", "linear_pos", "k_proj", "linear_k", "v_proj", "linear_v", "o_proj", "linear_out",
	"bias_u", "pos_bias_u", "bias_v", "pos_bias_v", "conv.norm.", "conv.batch_norm.",
	"ctc_head.", "decoder.decoder_layers.0.", "encoder_projector.", "joint.enc.",
	"decoder.decoder_projector.", "joint.pred.", "joint.head.", "joint.joint_net.2.",
	"decoder.embedding.", "decoder.prediction.embed.", "decoder.lstm.", "decoder.prediction.dec_rnn.lstm.",
)

// toTranscribe turns the names of NeMo into those of transcribe.cpp, but for biases of the
// LSTM.
var toTranscribe = strings.NewReplacer(
	"encoder.layers.", "enc.blocks.", "encoder.pre_encode", "enc.pre_encode",
	"norm_feed_forward1", "norm_ff1", "norm_feed_forward2", "norm_ff2", "feed_forward1", "ff1", "feed_forward2", "ff2",
	"norm_self_att", "norm_attn", "self_attn.", "attn.", "pointwise_conv1", "pointwise1", "pointwise_conv2", "pointwise2",
	"depthwise_conv", "depthwise", "batch_norm", "bn", "decoder.decoder_layers.0.", "head.ctc.",
	"decoder.prediction.embed.", "pred.embed.", "joint.joint_net.2.", "joint.out.",
	"decoder.prediction.dec_rnn.lstm.weight_ih_l0", "pred.lstm.0.Wx", "decoder.prediction.dec_rnn.lstm.weight_hh_l0", "pred.lstm.0.Wh",
	"decoder.prediction.dec_rnn.lstm.weight_ih_l1", "pred.lstm.1.Wx", "decoder.prediction.dec_rnn.lstm.weight_hh_l1", "pred.lstm.1.Wh",
)

// tensors returns those of a case under the names that rename gives; LSTM biases that are
// summed are under those of transcribe.cpp.
func tensors(t *testing.T, c *goldens.Case, summed bool, rename func(string) string) []gguf.Tensor {
	var all []gguf.Tensor
	for _, name := range c.Names() {
		w, err := c.Tensor(name)
		require.NoError(t, err)
		if at := strings.Index(name, "bias_ih_l"); summed && at >= 0 {
			values, err := w.Float32s()
			require.NoError(t, err)
			second, err := c.Float32s(strings.Replace(name, "_ih_", "_hh_", 1))
			require.NoError(t, err)
			for i, v := range second {
				values[i] += v
			}
			all = append(all, gguf.Of(pass.Float32s("pred.lstm."+name[at+len("bias_ih_l"):]+".bias", values, w.Shape...)))
			continue
		}
		if summed && strings.Contains(name, "bias_hh_l") {
			continue
		}
		w.Name = rename(name)
		all = append(all, gguf.Of(w))
	}
	return all
}

func file(t *testing.T, m gguf.Metadata, all []gguf.Tensor) (*gguf.File, []byte) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, gguf.Write(&b, all, m))
	f, err := gguf.New(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	return f, b.Bytes()
}

func metadata(c caseConfig) gguf.Metadata {
	m := gguf.Metadata{
		"general.architecture":                      "parakeet",
		"stt.frontend.num_mels":                     uint32(c.Encoder.Mels),
		"stt.parakeet.encoder.n_layers":             uint32(c.Encoder.Layers),
		"stt.parakeet.encoder.d_model":              uint32(c.Encoder.Width),
		"stt.parakeet.encoder.n_heads":              uint32(c.Encoder.Heads),
		"stt.parakeet.encoder.d_ff":                 uint32(c.Encoder.Hidden),
		"stt.parakeet.encoder.conv_kernel":          uint32(c.Encoder.Kernel),
		"stt.parakeet.encoder.subsampling_factor":   uint32(8),
		"stt.parakeet.encoder.subsampling_channels": uint32(256),
		"stt.parakeet.encoder.use_bias":             c.Encoder.Bias,
		"stt.parakeet.encoder.xscaling":             c.Encoder.Scale,
		"stt.parakeet.encoder.att_context_left":     int32(-1),
		"tokenizer.ggml.blank_token_id":             uint32(c.Blank),
	}
	if c.Durations != nil {
		m["stt.parakeet.tdt.durations"] = []int32{0, 1, 2, 3, 4}
		m["stt.parakeet.tdt.max_symbols"] = uint32(10)
	}
	return m
}

// A network is the same from the files of each publisher.
func TestNames(t *testing.T) {
	t.Parallel()
	dev := undertest.Open(t, "cpu")
	for _, name := range []string{"parakeet-256", "parakeet-tdt"} {
		c, config := openCase(t, name)
		inTranscribe, _ := file(t, metadata(config), tensors(t, c, true, func(s string) string { return toTranscribe.Replace(toNeMo.Replace(s)) }))
		inNeMo, _ := file(t, nil, tensors(t, c, false, toNeMo.Replace))
		fromFile, err := FromGGUF(inTranscribe.Metadata())
		require.NoError(t, err)
		want := config.config()
		want.Channels = 256
		require.Equal(t, want, fromFile)
		shape := c.Inputs["input_features"].Shape
		x, err := c.Input("input_features")
		require.NoError(t, err)
		var results []map[string][]float32
		for _, src := range []weights.Source{c, inNeMo, inTranscribe} {
			net, err := Load(t.Context(), dev, src, fromFile)
			require.NoError(t, err)
			results = append(results, encode(t, net, x[:64*shape[2]], 64, []int{64}))
			if net.transducer != nil {
				require.Equal(t, 160, net.transducer.Hidden())
			}
			require.NoError(t, net.Close())
			require.NoError(t, net.Close())
		}
		require.NotEmpty(t, results[0]["encoder"])
		require.Equal(t, results[0], results[1])
		require.Equal(t, results[0], results[2])
	}
}

// cutFile returns a file that was cut, after it was opened, within a tensor, and the
// whole.
func cutFile(t *testing.T, src source, name string) (weights.Source, []byte) {
	var all []gguf.Tensor
	for _, name := range src.Names() {
		w, err := src.Tensor(name)
		require.NoError(t, err)
		all = append(all, gguf.Of(w))
	}
	f, whole := file(t, nil, all)
	w, err := f.Tensor(name)
	require.NoError(t, err)
	beginning := make([]byte, 64)
	_, err = w.Data.ReadAt(beginning, 0)
	require.NoError(t, err)
	at := bytes.Index(whole, beginning)
	require.Positive(t, at)
	short, err := gguf.New(shortened{bytes.NewReader(whole), int64(at) + 100}, int64(len(whole)))
	require.NoError(t, err)
	return short, whole
}

// replaced shows a tensor of a source as another.
type replaced struct {
	weights.Source
	name string
	with pass.Tensor
}

func (r replaced) Tensor(name string) (pass.Tensor, error) {
	if name == r.name {
		return r.with, nil
	}
	return r.Source.Tensor(name)
}

// without hides a tensor.
type without struct {
	weights.Source
	name string
}

func (w without) Tensor(name string) (pass.Tensor, error) {
	if name == w.name {
		return w.Source.Tensor(name + "?")
	}
	return w.Source.Tensor(name)
}

// Bad files are refused with one error that says what is wrong, and leave nothing on the
// device.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	dev := &undertest.Counted{Device: undertest.Open(t, "cpu")}
	c, good := small(false)
	const linear = "encoder.layers.1.feed_forward2.linear2.weight"
	w, err := c.Tensor(linear)
	require.NoError(t, err)
	values, err := w.Float32s()
	require.NoError(t, err)
	values[777] = float32(math.NaN())
	short, whole := cutFile(t, c, "encoder.pre_encode.out.weight")
	for name, tc := range map[string]struct {
		src    weights.Source
		change func(*Config)
		says   []string
	}{
		"another network": {gigaamNames{}, nil, []string{`"encoder.pre_encode.conv.0.weight"`}},
		"missing":         {without{c, "encoder.layers.1.norm_conv.bias"}, nil, []string{`"encoder.layers.1.norm_conv.bias": want shape [32]`}},
		"shape":           {c, func(c *Config) { c.Blocks.Hidden = 96 }, []string{`"encoder.layers.0.feed_forward1.linear1.weight": want shape [96 32], given [64 32]`}},
		"mels":            {c, func(c *Config) { c.Mels = 128 }, []string{`"encoder.pre_encode.out.weight": want shape [32 192], given [32 120]`}},
		"fewer layers":    {c, func(c *Config) { c.Blocks.Layers = 1 }, []string{"want 1 layers, given more"}},
		"more layers":     {c, func(c *Config) { c.Blocks.Layers = 3 }, []string{`"encoder.layers.2.norm_feed_forward1.weight"`}},
		"classes":         {c, func(c *Config) { c.Classes = 7 }, []string{`want shape [7 32], given [12 32 1]`}},
		"NaN":             {replaced{c, linear, pass.Float32s(linear, values, 32, 64)}, nil, []string{linear, "want finite values", "777"}},
		"type":            {replaced{c, linear, pass.Tensor{Name: linear, Type: pass.U32, Shape: []int{32, 64}, Data: bytes.NewReader(nil)}}, nil, []string{linear, "type"}},
		"overflow":        {replaced{c, linear, pass.Tensor{Name: linear, Type: pass.F32, Shape: []int{1 << 40, 1 << 40}, Data: bytes.NewReader(nil)}}, nil, []string{linear}},
		"cut":             {short, nil, []string{"encoder.pre_encode.out.weight", "unexpected EOF"}},
		"configuration":   {c, func(c *Config) { c.Blocks.Heads = 3 }, []string{"heads: want a number that divides"}},
		"no heads":        {hidden{c, "decoder.decoder_layers.0.weight"}, nil, []string{`"decoder.decoder_layers.0.weight" of a CTC head`}},
	} {
		cfg := good
		if tc.change != nil {
			tc.change(&cfg)
		}
		net, err := Load(t.Context(), dev, tc.src, cfg)
		require.Error(t, err, name)
		require.Nil(t, net, name)
		if name != "cut" {
			require.ErrorIs(t, err, pass.ErrInvalid, name)
		}
		for _, says := range append(tc.says, "parakeet: ") {
			require.ErrorContains(t, err, says, name)
		}
		require.Zero(t, dev.Held(), name)
	}
	_, err = Load(t.Context(), nil, c, good)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = Load(t.Context(), dev, nil, good)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = gguf.New(bytes.NewReader(whole[:len(whole)/2]), int64(len(whole)/2))
	require.ErrorIs(t, err, pass.ErrInvalid, "half a file")
}

// hidden is a source that does not list a tensor.
type hidden struct {
	weights.Source
	name string
}

func (h hidden) Names() (names []string) {
	for _, name := range h.Source.Names() {
		if name != h.name {
			names = append(names, name)
		}
	}
	return names
}

// gigaamNames is a source of another network.
type gigaamNames struct{}

func (gigaamNames) Names() []string { return []string{"head.weight"} }

func (gigaamNames) Tensor(string) (pass.Tensor, error) { return pass.Tensor{}, pass.ErrInvalid }

// shortened is a file that ends early, as one that was cut after it was opened.
type shortened struct {
	*bytes.Reader
	size int64
}

func (s shortened) ReadAt(b []byte, at int64) (int, error) {
	if at >= s.size {
		return 0, io.EOF
	}
	if n := s.size - at; int64(len(b)) > n {
		k, _ := s.Reader.ReadAt(b[:n], at)
		return k, io.EOF
	}
	return s.Reader.ReadAt(b, at)
}
