package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/gigaam"
	"github.com/tandem-gpu/tandem/model/parakeet"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A conformerModel is a network whose encoder is timed.
type conformerModel interface {
	Network() asr.Network
	Close() error
}

// conformerSubject times the encoder of a model from 10 seconds of mel features to frames.
func conformerSubject(ctx context.Context, dev pass.Device, model conformerModel, bins, width int, math pass.Math) (_ *subject, err error) {
	ses, err := dev.NewSession(pass.SessionConfig{Label: "bench"})
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	shut := closing(ses, model)
	encoder := model.Network().Encoder
	defer func() {
		if err != nil {
			err = errors.Join(err, shut())
		}
	}()
	const seconds = 10
	frames := encoder.Frames(seconds * sampleRate)
	state, err := encoder.State(ctx, ses, frames)
	if err != nil {
		return nil, err
	}
	b := conformer.Batch{Items: 1, Frames: frames}
	if !state.IsZero() {
		b.State = state.View()
	}
	rows := 0
	for _, n := range encoder.Stages(frames) {
		b.Lengths = append(b.Lengths, pass.Fixed(n))
		rows = n
	}
	features := kernel.Random(1, frames*bins, 1.7) // deviation 1, as front ends normalise to
	result := make([]float32, rows*width)
	var in pass.Input
	var out pass.Output
	rec, err := ses.Record(ctx, pass.RecordOptions{Label: "encoder", Math: math}, func(p pass.Pass) {
		in = p.Input(pass.F32, len(features))
		out = p.Output(encoder.Encode(p, &b, in.View()), len(result))
	})
	if err != nil {
		return nil, err
	}
	return &subject{
		audio: seconds * time.Second, close: shut,
		once: func(ctx context.Context) error {
			run, err := rec.Run(ctx, in.F32(features))
			if err == nil {
				err = run.ReadF32(out, result)
			}
			run.Close()
			return err
		},
		check: func(context.Context) error { return finite(result, len(result)) },
	}, nil
}

func parakeetEncoder(preset string) func() (architecture, error) {
	return func() (architecture, error) {
		cfg, err := parakeet.Preset(preset)
		if err != nil {
			return architecture{}, err
		}
		open := func(ctx context.Context, dev pass.Device, src weights.Source, math pass.Math) (*subject, error) {
			model, err := parakeet.Load(ctx, dev, src, cfg)
			if err != nil {
				return nil, err
			}
			return conformerSubject(ctx, dev, model, cfg.Mels, cfg.Blocks.Width, math)
		}
		return architecture{randomWeights{parakeetTensors(cfg), pass.F16}, open}, nil
	}
}

// parakeetTensors are those of an encoder and of a CTC head, since there must be a head.
func parakeetTensors(c parakeet.Config) tensorTable {
	t := tensorTable{}
	for _, i := range []int{0, 2, 5} {
		t.biased(fmt.Sprint("encoder.pre_encode.conv.", i), c.Channels, 1, 3, 3)
	}
	for _, i := range []int{3, 6} {
		t.biased(fmt.Sprint("encoder.pre_encode.conv.", i), c.Channels, c.Channels, 1, 1)
	}
	t.biased("encoder.pre_encode.out", c.Blocks.Width, c.Channels*c.Mels/8)
	conformerTensors(t, c.Blocks)
	t.biased("decoder.decoder_layers.0", c.Classes, c.Blocks.Width, 1)
	return t
}

func gigaamEncoder() (architecture, error) {
	cfg, err := gigaam.Preset("ctc")
	if err != nil {
		return architecture{}, err
	}
	bins, d := frontend.GigaAM().Mels, cfg.Blocks.Width
	open := func(ctx context.Context, dev pass.Device, src weights.Source, math pass.Math) (*subject, error) {
		model, err := gigaam.Load(ctx, dev, src, cfg)
		if err != nil {
			return nil, err
		}
		return conformerSubject(ctx, dev, model, bins, d, math)
	}
	t := tensorTable{}
	t.biased("encoder.pre_encode.conv.0", d, bins, cfg.Kernel)
	t.biased("encoder.pre_encode.conv.2", d, d, cfg.Kernel)
	conformerTensors(t, cfg.Blocks)
	t.biased("head.decoder_layers.0", cfg.Classes, d, 1)
	return architecture{randomWeights{t, pass.F16}, open}, nil
}

// conformerTensors adds the blocks of an encoder.
func conformerTensors(t tensorTable, c conformer.Config) {
	d := c.Width
	layer := func(biased bool, name string, shape ...int) {
		t.add(name, shape...)
		if biased {
			t.biased(name, shape...)
		}
	}
	for i := range c.Layers {
		at := fmt.Sprintf("encoder.layers.%d.", i)
		for _, name := range []string{"norm_feed_forward1", "norm_self_att", "norm_conv", "norm_feed_forward2", "norm_out"} {
			t.biased(at+name, d)
		}
		for _, name := range []string{"feed_forward1", "feed_forward2"} {
			layer(c.LinearBias, at+name+".linear1", c.Hidden, d)
			layer(c.LinearBias, at+name+".linear2", d, c.Hidden)
		}
		for _, name := range []string{"q", "k", "v", "out"} {
			layer(c.LinearBias, at+"self_attn.linear_"+name, d, d)
		}
		if !c.Rotary {
			t.add(at+"self_attn.linear_pos", d, d)
			for _, name := range []string{"u", "v"} {
				t[at+"self_attn.pos_bias_"+name] = []int{c.Heads, d / c.Heads}
			}
		}
		layer(c.ConvBias, at+"conv.pointwise_conv1", 2*d, d, 1)
		layer(c.ConvBias, at+"conv.depthwise_conv", d, 1, c.Kernel)
		layer(c.ConvBias, at+"conv.pointwise_conv2", d, d, 1)
		if c.LayerNorm {
			t.biased(at+"conv.batch_norm", d)
		} else {
			t.batchNorm(at+"conv.batch_norm", d)
		}
	}
}
