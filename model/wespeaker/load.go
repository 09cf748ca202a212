package wespeaker

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/internal/held"
	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Model is a network on a device. It may be used from any goroutine: calls of Embed run
// at the same time, each in a session of its own. A [Session] is used by one goroutine at
// a time.
type Model struct {
	cfg    Config
	params held.Params

	mel    pass.Param // zero where there are other than 80 bins
	stem   pass.Param
	stages [4][]block
	linear pass.Param

	idle idle.Pool[*Session] // for Embed
}

// maxIdle is the number of sessions that are kept for later calls of Embed.
const maxIdle = 2

// A block is two convolutions, and what the input passes on its way around them.
type block struct {
	conv1, conv2 pass.Param
	shortcut     pass.Param // zero: nothing
	stride       int
}

// kaldiMels are the bins of the front end.
const kaldiMels = 80

// Load brings a network to a device. Tensors have the names of WeSpeaker's checkpoints
// under "resnet.", or without: conv1.weight [channels][1][3][3] and the batch norm bn1;
// layerS.B.conv1, bn1, conv2 and bn2 of block B of stage S, and where its input and
// output differ the convolution shortcut.0 of 1×1 and the batch norm shortcut.1;
// seg_1.weight [width][2·channels·lines] and seg_1.bias [width]. src is read during Load
// only. An error names the tensor, the shape that was wanted and the one given, and wraps
// pass.ErrInvalid, or is the device's or the source's; nothing is left on the device
// then. The device must stay open as long as the Model is used.
func Load(ctx context.Context, dev pass.Device, src weights.Source, cfg Config) (*Model, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg}
	m.idle.Most = maxIdle
	prefix := "resnet."
	if src != nil && !weights.Has(src, "resnet.conv1.weight") && weights.Has(src, "conv1.weight") {
		prefix = ""
	}
	l := weights.NewLoader(ctx, dev, src)
	if cfg.Mels == kaldiMels {
		m.mel = l.Load(frontend.Kaldi(), nil)
	}
	m.stem = l.Load(folded(l, prefix+"conv1", prefix+"bn1", cfg.Channels, 1, 3))
	in := cfg.Channels
	for s, blocks := range cfg.Blocks {
		out := cfg.channels(s)
		for i := range blocks {
			name := fmt.Sprintf("%slayer%d.%d.", prefix, s+1, i)
			b := block{stride: 1}
			if s > 0 && i == 0 {
				b.stride = 2
			}
			b.conv1 = l.Load(folded(l, name+"conv1", name+"bn1", out, in, 3))
			b.conv2 = l.Load(folded(l, name+"conv2", name+"bn2", out, out, 3))
			if b.stride != 1 || in != out {
				b.shortcut = l.Load(folded(l, name+"shortcut.0", name+"shortcut.1", out, in, 1))
			}
			m.stages[s] = append(m.stages[s], b)
			in = out
		}
	}
	m.linear = l.Load(weights.Linear(l, cfg.pooled(), weights.Rows(prefix+"seg_1", cfg.Width, true)))
	if err := m.params.Take("wespeaker", dev, l); err != nil {
		return nil, err
	}
	return m, nil
}

// normEps is that of all batch norms.
const normEps = 1e-5

// folded returns a convolution without bias and the batch norm after it as one.
func folded(src weights.Source, conv, norm string, out, in, size int) (pass.Conv2DWeights, error) {
	w, err := weights.Conv2D(src, conv, out, in, size, false)
	if err != nil {
		return w, err
	}
	b, err := weights.ReadBatchNorm(src, norm, out, normEps)
	if err != nil {
		return w, err
	}
	w.Weight, w.Bias, err = b.Fold(w.Weight, nil)
	return w, err
}

// Config returns the size of the network.
func (m *Model) Config() Config { return m.cfg }

// Embed takes any number of windows, in a session of its own; see [Session.Embed].
func (m *Model) Embed(ctx context.Context, windows ...Window) ([][][]float32, error) {
	return idle.Use(ctx, &m.idle, m.open, func(s *Session) ([][][]float32, error) { return s.Embed(ctx, windows...) })
}

// Close gives up the network's weights and the sessions of Embed. Other sessions are
// closed on their own, before or after; they return pass.ErrClosed from now on. Close may
// be called again, and on nil.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.params.Close(), m.idle.Close())
}
