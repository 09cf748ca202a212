package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/model/moonshine"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/model/whisper"
	"github.com/tandem-gpu/tandem/pass"
)

// decodedTokens are generated in a run of a decoder.
const decodedTokens = 60

// A transcriber is a session of Whisper or Moonshine.
type transcriber struct {
	encode func(ctx context.Context) error
	// decode returns the ids and their logarithms of probabilities.
	decode  func(ctx context.Context) ([]int, []float32, error)
	logits  func(context.Context, [][]int) (hidden, logits [][]float32, err error)
	classes int
	start   int // token that begins a text
	audio   time.Duration
	close   func() error
}

// encoder times the encoder. It is right if the decoder's logits are finite.
func (x transcriber) encoder(context.Context) (*subject, error) {
	return &subject{once: x.encode, audio: x.audio, close: x.close, check: func(ctx context.Context) error {
		_, logits, err := x.logits(ctx, [][]int{{x.start, x.start}})
		if err != nil {
			return err
		}
		return finite(logits[0], 2*x.classes)
	}}, nil
}

// decoder times the decoder from the text's beginning on, so that caches are half full on
// average.
func (x transcriber) decoder(ctx context.Context) (*subject, error) {
	if err := x.encode(ctx); err != nil {
		return nil, errors.Join(err, x.close())
	}
	var ids []int
	var probabilities []float32
	return &subject{ops: decodedTokens, close: x.close,
		once: func(ctx context.Context) (err error) {
			ids, probabilities, err = x.decode(ctx)
			return err
		},
		check: func(context.Context) error {
			if len(ids) != decodedTokens {
				return fmt.Errorf("want %d tokens, got %d: %w", decodedTokens, len(ids), pass.ErrInvalid)
			}
			return finite(probabilities, decodedTokens)
		}}, nil
}

func whisperEncoder(size string) func() (architecture, error) {
	return whisperOf(size, transcriber.encoder)
}

func whisperDecoder(size string) func() (architecture, error) {
	return whisperOf(size, transcriber.decoder)
}

func whisperOf(size string, part func(transcriber, context.Context) (*subject, error)) func() (architecture, error) {
	return func() (architecture, error) {
		cfg, err := whisper.Preset(size)
		if err != nil {
			return architecture{}, err
		}
		start := cfg.Tokens.Start
		// No token ends a text, so that it has the length that is wanted.
		cfg.Tokens = whisper.Tokens{End: -1, Start: -1, Translate: -1, Transcribe: -1, NoSpeech: -1, NoTimestamps: -1, FirstTimestamp: -1}
		open := func(ctx context.Context, dev pass.Device, src weights.Source, math pass.Math) (*subject, error) {
			m, err := whisper.Load(ctx, dev, src, cfg)
			if err != nil {
				return nil, err
			}
			s, err := m.NewSession(ctx, whisper.SessionConfig{Math: math})
			if err != nil {
				return nil, errors.Join(err, m.Close())
			}
			audio := kernel.Random(1, cfg.Samples(), 0.3)
			return part(transcriber{
				encode: func(ctx context.Context) error { return s.Encode(ctx, audio) },
				decode: func(ctx context.Context) ([]int, []float32, error) {
					d, err := s.Decode(ctx, whisper.Options{Mode: whisper.Raw, Prompt: []int{start}, MaxTokens: decodedTokens})
					if err != nil {
						return nil, nil, err
					}
					return d[0].IDs, d[0].LogProbs, nil
				},
				logits: s.Logits, classes: cfg.Classes, start: start,
				audio: time.Duration(len(audio)) * time.Second / sampleRate, close: closing(s, m),
			}, ctx)
		}
		return architecture{randomWeights{whisperTensors(cfg), pass.F16}, open}, nil
	}
}

func whisperTensors(c whisper.Config) tensorTable {
	t, d := tensorTable{}, c.Width
	attention := func(name string) {
		for _, part := range []string{"q_proj", "v_proj", "out_proj"} {
			t.biased(name+"."+part, d, d)
		}
		t.add(name+".k_proj", d, d)
		t.biased(name+"_layer_norm", d)
	}
	side := func(name string, layers, ffn, positions int) {
		t.add(name+".embed_positions", positions, d)
		t.biased(name+".layer_norm", d)
		for i := range layers {
			layer := fmt.Sprintf("%s.layers.%d.", name, i)
			attention(layer + "self_attn")
			if name == "decoder" {
				attention(layer + "encoder_attn")
			}
			t.biased(layer+"fc1", ffn, d)
			t.biased(layer+"fc2", d, ffn)
			t.biased(layer+"final_layer_norm", d)
		}
	}
	side("encoder", c.Layers, c.FFN, c.AudioPositions)
	side("decoder", c.DecoderLayers, c.DecoderFFN, c.TextPositions)
	t.biased("encoder.conv1", d, c.Mels, 3)
	t.biased("encoder.conv2", d, d, 3)
	t.add("decoder.embed_tokens", c.Classes, d)
	return t
}

func moonshineEncoder() (architecture, error) { return moonshineOf(transcriber.encoder) }

func moonshineDecoder() (architecture, error) { return moonshineOf(transcriber.decoder) }

func moonshineOf(part func(transcriber, context.Context) (*subject, error)) (architecture, error) {
	const seconds = 10
	cfg, err := moonshine.Preset("tiny")
	if err != nil {
		return architecture{}, err
	}
	cfg.End = -1 // as for Whisper
	open := func(ctx context.Context, dev pass.Device, src weights.Source, math pass.Math) (*subject, error) {
		m, err := moonshine.Load(ctx, dev, src, cfg)
		if err != nil {
			return nil, err
		}
		s, err := m.NewSession(ctx, moonshine.SessionConfig{Seconds: seconds, Math: math})
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		audio := noise(seconds, 1)
		return part(transcriber{
			encode: func(ctx context.Context) error { return s.Encode(ctx, audio) },
			decode: func(ctx context.Context) ([]int, []float32, error) {
				d, err := s.Decode(ctx, moonshine.Options{MaxTokens: decodedTokens})
				if err != nil {
					return nil, nil, err
				}
				return d[0].IDs, d[0].LogProbs, nil
			},
			logits: s.Logits, classes: cfg.Classes, start: cfg.Start,
			audio: seconds * time.Second, close: closing(s, m),
		}, ctx)
	}
	return architecture{randomWeights{moonshineTensors(cfg), pass.F16}, open}, nil
}

func moonshineTensors(c moonshine.Config) tensorTable {
	t, d := tensorTable{}, c.Width
	layer := func(name string, wide, ffn int, attentions, norms []string) {
		for _, attention := range attentions {
			for _, part := range []string{"q_proj", "k_proj", "v_proj", "o_proj"} {
				t.add(name+attention+"."+part, d, d)
			}
		}
		for _, norm := range slices.Concat([]string{"input_layernorm", "post_attention_layernorm"}, norms) {
			t.add(name+norm, d)
		}
		t.biased(name+"mlp.fc1", wide, d)
		t.biased(name+"mlp.fc2", d, ffn)
	}
	t.add("encoder.conv1", d, 1, 127)
	t.biased("encoder.groupnorm", d)
	t.biased("encoder.conv2", 2*d, d, 7)
	t.biased("encoder.conv3", d, 2*d, 3)
	for i := range c.Layers {
		layer(fmt.Sprintf("encoder.layers.%d.", i), c.FFN, c.FFN, []string{"self_attn"}, nil)
	}
	for i := range c.DecoderLayers {
		layer(fmt.Sprintf("decoder.layers.%d.", i), 2*c.DecoderFFN, c.DecoderFFN, []string{"self_attn", "encoder_attn"}, []string{"final_layernorm"})
	}
	t.add("encoder.layer_norm", d)
	t.add("decoder.norm", d)
	t.add("decoder.embed_tokens", c.Classes, d)
	return t
}
