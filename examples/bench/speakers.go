package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/ge2e"
	"github.com/tandem-gpu/tandem/model/pyannote"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/model/wespeaker"
	"github.com/tandem-gpu/tandem/pass"
)

// windowSeconds is how long the windows of speaker networks are.
const windowSeconds = 10

// segmentation times pyannote's segmentation for a batch of windows.
func segmentation(batch int) func() (architecture, error) {
	return func() (architecture, error) {
		cfg := pyannote.Segmentation3()
		open := func(ctx context.Context, dev pass.Device, src weights.Source, math pass.Math) (*subject, error) {
			m, err := pyannote.Load(ctx, dev, src, cfg)
			if err != nil {
				return nil, err
			}
			s, err := m.NewSession(ctx, pyannote.SessionConfig{Batch: batch, Math: math})
			if err != nil {
				return nil, errors.Join(err, m.Close())
			}
			var windows, classes [][]float32
			for i := range batch {
				windows = append(windows, noise(windowSeconds, uint64(i)))
			}
			return &subject{
				audio: time.Duration(batch) * windowSeconds * time.Second, close: closing(s, m),
				once: func(ctx context.Context) (err error) {
					classes, err = s.Segment(ctx, windows...)
					return err
				},
				check: func(context.Context) error {
					return finite(slices.Concat(classes...), batch*pyannote.Frames(windowSeconds*sampleRate)*cfg.Classes)
				},
			}, nil
		}
		return architecture{randomWeights{segmentationTensors(cfg), pass.F32}, open}, nil
	}
}

func segmentationTensors(c pyannote.Config) tensorTable {
	const filters, channels = 80, 60
	t := tensorTable{}
	t.biased("sincnet.wav_norm1d", 1)
	t.add("sincnet.conv1d.0", filters, 1, 251)
	t.biased("sincnet.conv1d.1", channels, filters, 5)
	t.biased("sincnet.conv1d.2", channels, channels, 5)
	for i, n := range []int{filters, channels, channels} {
		t.biased(fmt.Sprint("sincnet.norm1d.", i), n)
	}
	lstmTensors(t, channels, c.Hidden, c.Layers, "", "_reverse")
	in := 2 * c.Hidden
	for i, out := range c.Linear {
		t.biased(fmt.Sprint("linear.", i), out, in)
		in = out
	}
	t.biased("classifier", c.Classes, in)
	return t
}

// lstmTensors adds a stack of layers, with a suffix for each direction.
func lstmTensors(t tensorTable, in, hidden, layers int, directions ...string) {
	for l := range layers {
		for _, direction := range directions {
			at := fmt.Sprint("_l", l, direction)
			t["lstm.weight_ih"+at], t["lstm.weight_hh"+at] = []int{4 * hidden, in}, []int{4 * hidden, hidden}
			t["lstm.bias_ih"+at], t["lstm.bias_hh"+at] = []int{4 * hidden}, []int{4 * hidden}
		}
		in = len(directions) * hidden
	}
}

// embedding times WeSpeaker's network for a batch of windows, with one speaker each.
func embedding(batch int) func() (architecture, error) {
	return func() (architecture, error) {
		cfg := wespeaker.ResNet34()
		open := func(ctx context.Context, dev pass.Device, src weights.Source, math pass.Math) (*subject, error) {
			m, err := wespeaker.Load(ctx, dev, src, cfg)
			if err != nil {
				return nil, err
			}
			s, err := m.NewSession(ctx, wespeaker.SessionConfig{Batch: batch, Masks: 1, Math: math})
			if err != nil {
				return nil, errors.Join(err, m.Close())
			}
			var windows []wespeaker.Window
			var embeddings [][][]float32
			for i := range batch {
				windows = append(windows, wespeaker.Window{Samples: noise(windowSeconds, uint64(i))})
			}
			return &subject{
				audio: time.Duration(batch) * windowSeconds * time.Second, close: closing(s, m),
				once: func(ctx context.Context) (err error) {
					embeddings, err = s.Embed(ctx, windows...)
					return err
				},
				check: func(context.Context) error {
					return finite(slices.Concat(slices.Concat(embeddings...)...), batch*cfg.Width)
				},
			}, nil
		}
		return architecture{randomWeights{wespeakerTensors(cfg), pass.F32}, open}, nil
	}
}

func wespeakerTensors(c wespeaker.Config) tensorTable {
	t := tensorTable{}
	conv := func(name, norm string, out, in, size int) {
		t.add("resnet."+name, out, in, size, size)
		t.batchNorm("resnet."+norm, out)
	}
	conv("conv1", "bn1", c.Channels, 1, 3)
	in, lines := c.Channels, c.Mels
	for stage, blocks := range c.Blocks {
		out := c.Channels << stage
		if stage > 0 {
			lines = (lines + 1) / 2
		}
		for i := range blocks {
			at := fmt.Sprintf("layer%d.%d.", stage+1, i)
			conv(at+"conv1", at+"bn1", out, in, 3)
			conv(at+"conv2", at+"bn2", out, out, 3)
			if in != out {
				conv(at+"shortcut.0", at+"shortcut.1", out, in, 1)
			}
			in = out
		}
	}
	t.biased("resnet.seg_1", c.Width, 2*in*lines)
	return t
}

// ge2eClip times the GE2E speaker encoder for a clip.
func ge2eClip() (architecture, error) {
	cfg := ge2e.Resemblyzer()
	open := func(ctx context.Context, dev pass.Device, src weights.Source, math pass.Math) (*subject, error) {
		m, err := ge2e.Load(ctx, dev, src, cfg)
		if err != nil {
			return nil, err
		}
		s, err := m.NewSession(ctx, ge2e.SessionConfig{Math: math})
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		clip := noise(windowSeconds, 1)
		var got ge2e.Utterance
		return &subject{
			audio: windowSeconds * time.Second, close: closing(s, m),
			once: func(ctx context.Context) (err error) {
				got, err = s.Embed(ctx, clip)
				return err
			},
			check: func(context.Context) error { return finite(got.Embedding, cfg.Width) },
		}, nil
	}
	t := tensorTable{}
	lstmTensors(t, frontend.GE2E().Mels, cfg.Hidden, cfg.Layers, "")
	t.biased("linear", cfg.Width, cfg.Hidden)
	return architecture{randomWeights{t, pass.F32}, open}, nil
}
