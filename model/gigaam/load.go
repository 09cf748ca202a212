package gigaam

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	conv       [2]pass.Param
	rotary     pass.Param
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
		return nil, fmt.Errorf("gigaam: load: want a device and weights, given nil: %w", pass.ErrInvalid)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg.defaults(), dev: dev}
	m.idle.Most = maxIdle
	l := weights.NewLoader(ctx, dev, named(src))
	m.loadEncoder(l)
	m.loadHeads(l)
	if err := m.params.Take("gigaam", dev, l); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Model) loadEncoder(l *weights.Loader) {
	mel, d := frontend.GigaAM(), m.cfg.Blocks.Width
	m.mel = l.Load(mel, nil)
	m.conv[0] = l.Load(weights.Conv(l, "encoder.pre_encode.conv.0", d, mel.Mels, m.cfg.Kernel, true))
	m.conv[1] = l.Load(weights.Conv(l, "encoder.pre_encode.conv.2", d, d, m.cfg.Kernel, true))
	m.rotary = l.Load(pass.RopeWeights{Name: "rotary", Positions: m.cfg.Positions, Rot: d / m.cfg.Blocks.Heads, Base: m.cfg.Base}, nil)
	for i := range m.cfg.Blocks.Layers {
		m.blocks = append(m.blocks, conformer.Load(l, fmt.Sprintf("encoder.layers.%d", i), m.cfg.Blocks))
	}
	if next := fmt.Sprintf("encoder.layers.%d.norm_out.weight", m.cfg.Blocks.Layers); l.Has(next) {
		l.Fail(fmt.Errorf("want %d layers, given more: tensor %q: %w", m.cfg.Blocks.Layers, next, pass.ErrInvalid))
	}
}

// loadHeads loads the heads that the source has.
func (m *Model) loadHeads(l *weights.Loader) {
	for _, name := range []string{"head.decoder_layers.0", "head"} {
		if m.ctc == nil && l.Has(name+".weight") {
			m.ctc = ctc.Load(l, name, ctc.Config{Width: m.cfg.Blocks.Width, Classes: m.cfg.Classes, Blank: m.cfg.Classes - 1})
		}
	}
	names := headNames()
	switch {
	case l.Has(names.Out + ".weight"):
		m.transducer = transducer.Load(l, headConfig(m.cfg.Blocks.Width, m.cfg.Classes, m.cfg.MaxSymbols))
	case m.ctc == nil:
		l.Fail(fmt.Errorf("want tensor %q of a CTC head or %q of a transducer, given neither: %w", "head.decoder_layers.0.weight", names.Out+".weight", pass.ErrInvalid))
	}
}

func headNames() transducer.Names {
	return transducer.Names{
		Embed: "head.decoder.embed", LSTM: lstmName,
		Enc: "head.joint.enc", Pred: "head.joint.pred", Out: "head.joint.joint_net.1",
	}
}

// headConfig is that of an RNN-T head over frames of some width.
func headConfig(width, classes, symbols int) transducer.Config {
	return transducer.Config{
		Names: headNames(), Width: width, Classes: classes, Blank: classes - 1,
		MaxSymbols: symbols, ZeroStart: true,
	}
}

// Config returns the configuration that the network was loaded with.
func (m *Model) Config() Config { return m.cfg }

// Network returns what package asr runs, for those who record it themselves. The encoder
// takes mel features [Items][Frames][64], and traces "subsampled", "layers.N" and
// "encoder".
func (m *Model) Network() asr.Network {
	return asr.Network{
		Name: "gigaam", Device: m.dev, Encoder: encoder{m}, FrontEnd: m.mel, CTC: m.ctc, Transducer: m.transducer,
		FrameSamples: 4 * 160, Vocabulary: m.cfg.Vocabulary,
		Window: 24 * time.Second, Overlap: asr.DefaultOverlap,
		Usable: m.params.Usable,
	}
}

// NewSession opens a session. Zero fields of cfg are set: windows of 24 s that overlap by
// 4 s, and RNN-T rather than CTC if there are both. Work is compiled when it is first
// needed.
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
