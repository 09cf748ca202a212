package parakeet

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/internal/held"
	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Model is a network on a device. It may be used from any goroutine: calls of Transcribe
// run at the same time, each in a session of its own. A session is used by one goroutine
// at a time.
type Model struct {
	cfg        Config
	dev        pass.Device
	mel        pass.Param
	first      pass.Param // the first two convolutions of the subsampling
	second     pass.Param // the third
	between    pass.Param // the point-wise convolutions after them
	after      pass.Param
	linear     pass.Param
	blocks     []*conformer.Block
	ctc        *ctc.Head        // nil: none
	transducer *transducer.Head // nil: none
	params     held.Params

	idle idle.Pool[*asr.Session] // for Transcribe
}

// maxIdle is the number of sessions that are kept for later calls of Transcribe.
const maxIdle = 2

// Load brings a network to a device; see the package for the names of tensors. It has
// the heads that src has, one at least. src is read during Load only. An error names the
// tensor, the shape that was wanted and the one given, and wraps pass.ErrInvalid, or is
// the device's or the source's; nothing is left on the device then. The device must stay
// open as long as the Model is used.
func Load(ctx context.Context, dev pass.Device, src weights.Source, cfg Config) (*Model, error) {
	if dev == nil || src == nil {
		return nil, fmt.Errorf("parakeet: load: want a device and weights, given nil: %w", pass.ErrInvalid)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	l := weights.NewLoader(ctx, dev, named(src))
	if cfg.Channels == 0 {
		cfg.Channels = channels(l)
	}
	m := &Model{cfg: cfg, dev: dev}
	m.idle.Most = maxIdle
	m.mel = l.Load(frontend.Parakeet(cfg.Mels), nil)
	m.loadSubsampling(l)
	for i := range cfg.Blocks.Layers {
		m.blocks = append(m.blocks, conformer.Load(l, fmt.Sprintf("encoder.layers.%d", i), cfg.Blocks))
	}
	if next := fmt.Sprintf("encoder.layers.%d.norm_out.weight", cfg.Blocks.Layers); l.Has(next) {
		l.Fail(fmt.Errorf("want %d layers, given more: tensor %q: %w", cfg.Blocks.Layers, next, pass.ErrInvalid))
	}
	m.loadHeads(l)
	if err := m.params.Take("parakeet", dev, l); err != nil {
		return nil, err
	}
	return m, nil
}

// channels returns how many channels the subsampling has in a file.
func channels(l *weights.Loader) int {
	t, err := l.Tensor("encoder.pre_encode.conv.0.weight")
	l.Fail(err)
	if err != nil || len(t.Shape) == 0 || t.Shape[0] < 1 || t.Shape[0] > maxChannels {
		return 256 // what the tensor is then told to have
	}
	return t.Shape[0]
}

func (m *Model) loadSubsampling(l *weights.Loader) {
	c := m.cfg.Channels
	name := func(i int) string { return fmt.Sprintf("encoder.pre_encode.conv.%d", i) }
	depthwise := func(i int) (w pass.Tensor, b []float32) {
		w, err := weights.Tensor(l, name(i)+".weight", c, 3, 3)
		l.Fail(err)
		b, err = weights.Values(l, name(i)+".bias", c)
		l.Fail(err)
		return w, b
	}
	first := pass.DepthwiseWeights{Name: name(2)}
	first.First, first.FirstBias = depthwise(0)
	first.Weight, first.Bias = depthwise(2)
	m.first = l.Load(first, nil)
	m.between = l.Load(weights.Linear(l, c, weights.Rows(name(3), c, true)))
	second := pass.DepthwiseWeights{Name: name(5)}
	second.Weight, second.Bias = depthwise(5)
	m.second = l.Load(second, nil)
	m.after = l.Load(weights.Linear(l, c, weights.Rows(name(6), c, true)))
	_, _, bins := m.cfg.bins()
	m.linear = l.Load(weights.Linear(l, c*bins, weights.Rows("encoder.pre_encode.out", m.cfg.Blocks.Width, true)))
}

// loadHeads loads the heads that the source has.
func (m *Model) loadHeads(l *weights.Loader) {
	// A hybrid has its CTC head under another name.
	for _, name := range []string{"ctc_decoder.decoder_layers.0", "decoder.decoder_layers.0"} {
		if m.ctc == nil && l.Has(name+".weight") {
			m.ctc = ctc.Load(l, name, ctc.Config{Width: m.cfg.Blocks.Width, Classes: m.cfg.Classes, Blank: m.cfg.Classes - 1})
		}
	}
	names := transducer.Names{
		Embed: "decoder.prediction.embed", LSTM: lstmName,
		Enc: "joint.enc", Pred: "joint.pred", Out: "joint.joint_net.2",
	}
	switch {
	case l.Has(names.Out + ".weight"):
		m.transducer = transducer.Load(l, transducer.Config{
			Names: names, Width: m.cfg.Blocks.Width, Classes: m.cfg.Classes, Blank: m.cfg.Classes - 1,
			Durations: m.cfg.Durations, MaxSymbols: m.cfg.MaxSymbols,
		})
	case m.ctc == nil:
		l.Fail(fmt.Errorf("want tensor %q of a CTC head or %q of a transducer, given neither: %w", "decoder.decoder_layers.0.weight", names.Out+".weight", pass.ErrInvalid))
	}
}

// Config returns the configuration that the network was loaded with.
func (m *Model) Config() Config { return m.cfg }

// Network returns what package asr runs, for those who record it themselves. The encoder
// takes mel features [Items][Frames][Mels], and traces "subsampled", "layers.N" and
// "encoder".
func (m *Model) Network() asr.Network {
	return asr.Network{
		Name: "parakeet", Device: m.dev, Encoder: encoder{m}, FrontEnd: m.mel, CTC: m.ctc, Transducer: m.transducer,
		FrameSamples: 8 * 160, Vocabulary: m.cfg.Vocabulary,
		Usable: m.params.Usable,
	}
}

// NewSession opens a session. Zero fields of cfg are set: windows of 30 s that overlap by
// 4 s, and TDT or RNN-T rather than CTC if there are both. Work is compiled when it is
// first needed.
func (m *Model) NewSession(ctx context.Context, cfg asr.SessionConfig) (*asr.Session, error) {
	return asr.NewSession(ctx, m.Network(), cfg)
}

// open opens a session that nobody configured.
func (m *Model) open(ctx context.Context) (*asr.Session, error) {
	return m.NewSession(ctx, asr.SessionConfig{})
}

// Transcribe transcribes audio of any length, mono at 16 kHz, in a session of its own; see
// [asr.Session.Transcribe].
func (m *Model) Transcribe(ctx context.Context, samples []float32, opt asr.Options) (asr.Result, error) {
	return idle.Use(ctx, &m.idle, m.open, func(s *asr.Session) (asr.Result, error) { return s.Transcribe(ctx, samples, opt) })
}

// Close gives up the network's weights and the sessions of Transcribe. Other sessions are
// closed on their own, before or after; they return pass.ErrClosed from now on. Close may
// be called again, and on nil.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.params.Close(), m.idle.Close())
}
