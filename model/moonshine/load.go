package moonshine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/model/internal/held"
	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/model/internal/transcribecpp"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Model is a network on a device. It may be used from any goroutine: calls of Generate
// run at the same time, each in a session of its own. A [Session] is used by one
// goroutine at a time.
type Model struct {
	cfg    Config
	params held.Params

	stem        [len(stem)]pass.Param
	groupNorm   pass.Param
	turns       pass.Param // rope of the encoder
	encoder     []layer
	encoderNorm pass.Param

	tokens       pass.Param // the table of embeddings, and the output layer
	decoderTurns pass.Param
	decoder      []decoderLayer
	decoderNorm  pass.Param

	idle idle.Pool[*Session] // for Generate
}

type layer struct{ norm, qkv, out, ffnNorm, fc1, fc2 pass.Param }

type decoderLayer struct {
	layer
	crossNorm, q, kv, crossOut pass.Param
}

// stem are the convolutions before the encoder; none is padded.
var stem = [...]struct{ kernel, stride int }{{127, 64}, {7, 3}, {3, 2}}

// maxFrames bounds the encoder's frames: those of 128 s.
const maxFrames = 128 * SampleRate / 384

// maxIdle is the number of sessions that are kept for later calls of Generate.
const maxIdle = 2

// Load brings a model to a device. Tensors have the names of Hugging Face's checkpoints,
// with or without "model." before them, or those of transcribe.cpp, and keep their types;
// matrices that are used as one, such as those of queries, keys and values, must have the
// same. src is read during Load only. An error names the tensor, the shape that was
// wanted and the one given, and wraps pass.ErrInvalid, or is the device's or the
// source's; nothing is left on the device then. The device must stay open as long as the
// Model is used.
func Load(ctx context.Context, dev pass.Device, src weights.Source, cfg Config) (*Model, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg}
	m.idle.Most = maxIdle
	if src != nil {
		src = weights.RenamedIf(src, transcribecpp.Layouts(sttName)...)
	}
	l := weights.NewLoader(ctx, dev, src)
	d := cfg.Width
	m.stem[0] = l.Load(weights.Conv(l, "encoder.conv1", d, 1, stem[0].kernel, false))
	m.groupNorm = l.Load(weights.Norm(l, "encoder.groupnorm", d, true))
	m.stem[1] = l.Load(weights.Conv(l, "encoder.conv2", 2*d, d, stem[1].kernel, true))
	m.stem[2] = l.Load(weights.Conv(l, "encoder.conv3", d, 2*d, stem[2].kernel, true))
	m.turns = l.Load(pass.RopeWeights{Name: "encoder rope", Positions: maxFrames, Rot: cfg.rot(cfg.Heads), Base: cfg.Base}, nil)
	for i := range cfg.Layers {
		name := fmt.Sprintf("encoder.layers.%d.", i)
		m.encoder = append(m.encoder, loadLayer(l, name, "post_attention_layernorm", d, cfg.FFN, cfg.FFN))
	}
	m.encoderNorm = l.Load(weights.Norm(l, "encoder.layer_norm", d, false))
	m.tokens = l.Load(weights.Linear(l, d, weights.Rows("decoder.embed_tokens", cfg.Classes, false)))
	m.decoderTurns = l.Load(pass.RopeWeights{Name: "decoder rope", Positions: cfg.Positions, Rot: cfg.rot(cfg.DecoderHeads), Base: cfg.Base}, nil)
	for i := range cfg.DecoderLayers {
		name := fmt.Sprintf("decoder.layers.%d.", i)
		rows := func(part string) weights.Part { return weights.Rows(name+"encoder_attn."+part, d, false) }
		m.decoder = append(m.decoder, decoderLayer{
			layer:     loadLayer(l, name, "final_layernorm", d, 2*cfg.DecoderFFN, cfg.DecoderFFN),
			crossNorm: l.Load(weights.Norm(l, name+"post_attention_layernorm", d, false)),
			q:         l.Load(weights.Linear(l, d, rows("q_proj"))),
			kv:        l.Load(weights.Linear(l, d, rows("k_proj"), rows("v_proj"))),
			crossOut:  l.Load(weights.Linear(l, d, rows("o_proj"))),
		})
	}
	m.decoderNorm = l.Load(weights.Norm(l, "decoder.norm", d, false))
	if err := m.params.Take("moonshine", dev, l); err != nil {
		return nil, err
	}
	return m, nil
}

// loadLayer loads self-attention and the hidden layers, whose first is wider than the
// second where it has gates.
func loadLayer(l *weights.Loader, name, ffnNorm string, d, wide, ffn int) layer {
	rows := func(part string) weights.Part { return weights.Rows(name+"self_attn."+part, d, false) }
	return layer{
		norm:    l.Load(weights.Norm(l, name+"input_layernorm", d, false)),
		qkv:     l.Load(weights.Linear(l, d, rows("q_proj"), rows("k_proj"), rows("v_proj"))),
		out:     l.Load(weights.Linear(l, d, rows("o_proj"))),
		ffnNorm: l.Load(weights.Norm(l, name+ffnNorm, d, false)),
		fc1:     l.Load(weights.Linear(l, d, weights.Rows(name+"mlp.fc1", wide, true))),
		fc2:     l.Load(weights.Linear(l, ffn, weights.Rows(name+"mlp.fc2", d, true))),
	}
}

// sttNames turn the parts of names that Load asks for into those of transcribe.cpp, but
// for what differs between encoder and decoder.
var sttNames = strings.NewReplacer(
	"encoder.conv1.", "enc.conv.0.", "encoder.conv2.", "enc.conv.1.", "encoder.conv3.", "enc.conv.2.", "encoder.groupnorm.", "enc.conv.norm.",
	"decoder.embed_tokens.", "dec.token_embd.", "encoder.layer_norm.", "enc.final_norm.", "decoder.norm.", "dec.final_norm.",
	"encoder.layers.", "enc.blocks.", "decoder.layers.", "dec.blocks.",
	".encoder_attn.", ".cross_attn.", ".final_layernorm.", ".norm_ffn.", ".mlp.", ".ffn.",
	"_proj.", ".",
)

// sttName is the name of a tensor in the files of transcribe.cpp.
func sttName(name string) string {
	parts := [][2]string{{".input_layernorm.", ".norm_self."}, {".post_attention_layernorm.", ".norm_cross."}}
	if strings.HasPrefix(name, "encoder.") {
		parts = [][2]string{{".input_layernorm.", ".norm_attn."}, {".post_attention_layernorm.", ".norm_ffn."}, {".self_attn.", ".attn."}}
	}
	for _, p := range parts {
		name = strings.Replace(name, p[0], p[1], 1)
	}
	// A dot ends one part and begins the next.
	name = strings.Replace(name, ".o_proj.", ".out_proj.", 1)
	return sttNames.Replace(name)
}

// Config returns the model's configuration.
func (m *Model) Config() Config { return m.cfg }

// Close gives up the model's weights and the sessions of Generate. Other sessions are
// closed on their own, before or after; they return pass.ErrClosed from now on. Close may
// be called again, and on nil.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.params.Close(), m.idle.Close())
}
