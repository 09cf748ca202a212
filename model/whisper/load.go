package whisper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/internal/held"
	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/model/internal/transcribecpp"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Model is a network on a device. It may be used from any goroutine: calls of
// Transcribe run at the same time, each in a session of its own. A [Session] is used by
// one goroutine at a time.
type Model struct {
	cfg    Config
	params held.Params

	mel            pass.Param
	conv1, conv2   pass.Param
	audioPositions pass.Param
	encoder        []encoderLayer
	encoderNorm    pass.Param

	tokens        pass.Param // the table of embeddings, and the output layer
	textPositions pass.Param
	decoder       []decoderLayer
	decoderNorm   pass.Param

	idle idle.Pool[*Session] // for Transcribe
}

type encoderLayer struct{ norm, qkv, out, ffnNorm, fc1, fc2 pass.Param }

type decoderLayer struct {
	encoderLayer
	crossNorm, q, kv, crossOut pass.Param
}

// maxIdle is the number of sessions that are kept for later calls of Transcribe.
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
	m.mel = l.Load(frontend.Whisper(cfg.Mels), nil)
	m.conv1 = l.Load(weights.Conv(l, "encoder.conv1", d, cfg.Mels, 3, true))
	m.conv2 = l.Load(weights.Conv(l, "encoder.conv2", d, d, 3, true))
	m.audioPositions = l.Load(weights.Linear(l, d, weights.Rows("encoder.embed_positions", cfg.AudioPositions, false)))
	for i := range cfg.Layers {
		m.encoder = append(m.encoder, loadLayer(l, fmt.Sprintf("encoder.layers.%d.", i), d, cfg.FFN))
	}
	m.encoderNorm = l.Load(weights.Norm(l, "encoder.layer_norm", d, true))
	m.tokens = l.Load(weights.Linear(l, d, weights.Rows("decoder.embed_tokens", cfg.Classes, false)))
	m.textPositions = l.Load(weights.Linear(l, d, weights.Rows("decoder.embed_positions", cfg.TextPositions, false)))
	for i := range cfg.DecoderLayers {
		name := fmt.Sprintf("decoder.layers.%d.", i)
		layer := decoderLayer{encoderLayer: loadLayer(l, name, d, cfg.DecoderFFN)}
		layer.crossNorm = l.Load(weights.Norm(l, name+"encoder_attn_layer_norm", d, true))
		layer.q = l.Load(weights.Linear(l, d, weights.Rows(name+"encoder_attn.q_proj", d, true)))
		layer.kv = l.Load(weights.Linear(l, d, weights.Rows(name+"encoder_attn.k_proj", d, false), weights.Rows(name+"encoder_attn.v_proj", d, true)))
		layer.crossOut = l.Load(weights.Linear(l, d, weights.Rows(name+"encoder_attn.out_proj", d, true)))
		m.decoder = append(m.decoder, layer)
	}
	m.decoderNorm = l.Load(weights.Norm(l, "decoder.layer_norm", d, true))
	if err := m.params.Take("whisper", dev, l); err != nil {
		return nil, err
	}
	return m, nil
}

// loadLayer loads self-attention and the hidden layers.
func loadLayer(l *weights.Loader, name string, d, ffn int) encoderLayer {
	linear := func(name string, in, out int) pass.Param {
		return l.Load(weights.Linear(l, in, weights.Rows(name, out, true)))
	}
	return encoderLayer{
		norm: l.Load(weights.Norm(l, name+"self_attn_layer_norm", d, true)),
		qkv: l.Load(weights.Linear(l, d, weights.Rows(name+"self_attn.q_proj", d, true),
			weights.Rows(name+"self_attn.k_proj", d, false), weights.Rows(name+"self_attn.v_proj", d, true))),
		out:     linear(name+"self_attn.out_proj", d, d),
		ffnNorm: l.Load(weights.Norm(l, name+"final_layer_norm", d, true)),
		fc1:     linear(name+"fc1", d, ffn),
		fc2:     linear(name+"fc2", ffn, d),
	}
}

// sttNames turn the parts of names that Load asks for into those of transcribe.cpp, but
// for what differs between encoder and decoder.
var sttNames = strings.NewReplacer(
	"encoder.conv1.", "enc.conv.0.", "encoder.conv2.", "enc.conv.1.",
	"encoder.embed_positions.", "enc.pos_emb.", "decoder.embed_positions.", "dec.pos_emb.", "decoder.embed_tokens.", "dec.token_embd.",
	"encoder.layer_norm.", "enc.final_norm.", "decoder.layer_norm.", "dec.final_norm.",
	"encoder.layers.", "enc.blocks.", "decoder.layers.", "dec.blocks.",
	".encoder_attn_layer_norm.", ".norm_cross.", ".final_layer_norm.", ".norm_ffn.",
	".encoder_attn.", ".cross_attn.", ".fc1.", ".ffn.fc1.", ".fc2.", ".ffn.fc2.",
	"_proj.", ".",
)

// sttName is the name of a tensor in the files of transcribe.cpp.
func sttName(name string) string {
	attention, norm := ".self_attn.", ".norm_self."
	if strings.HasPrefix(name, "encoder.") {
		attention, norm = ".attn.", ".norm_attn."
	}
	name = strings.Replace(name, ".self_attn_layer_norm.", norm, 1)
	name = strings.Replace(name, ".self_attn.", attention, 1)
	return sttNames.Replace(name)
}

// Config returns the model's configuration.
func (m *Model) Config() Config { return m.cfg }

// Close gives up the model's weights and the sessions of Transcribe. Other sessions are
// closed on their own, before or after; they return pass.ErrClosed from now on. Close may
// be called again, and on nil.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.params.Close(), m.idle.Close())
}
