package gigaam

import (
	"context"
	"fmt"
	"time"

	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/internal/held"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Model is a network on a device. It may be used from any goroutine.
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
}

// Load brings a network to a device; see the package for the names of tensors. It has
// the heads that src has, one at least. An error names the tensor, what was wanted and
// what was given; nothing stays on the device then. src must stay open until Load
// returns, the device as long as the Model is used.
func Load(ctx context.Context, dev pass.Device, src weights.Source, cfg Config) (*Model, error) {
	if dev == nil || src == nil {
		return nil, fmt.Errorf("gigaam: load: want a device and weights, given nil: %w", pass.ErrInvalid)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg.defaults(), dev: dev}
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
			m.ctc = ctc.Load(l, name, m.cfg.Blocks.Width, m.cfg.Classes, m.cfg.Classes-1)
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

// NewRecogniser makes a recogniser with a session of its own. Zero fields of cfg are set:
// windows of 24 s that overlap by 4 s, and RNN-T rather than CTC if there are both.
func (m *Model) NewRecogniser(ctx context.Context, cfg asr.Config) (*asr.Recogniser, error) {
	if err := m.params.Usable(); err != nil {
		return nil, err
	}
	if cfg.Window == 0 {
		cfg.Window, cfg.Overlap = 24*time.Second, asr.DefaultOverlap
	}
	return asr.New(ctx, asr.Network{
		Device: m.dev, Encoder: m, FrontEnd: m.mel, CTC: m.ctc, Transducer: m.transducer,
		FrameSamples: 4 * 160,
	}, cfg)
}

// Close gives up the network's weights. Recognisers are closed on their own, before or
// after. Close may be called again, and on nil.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	return m.params.Close()
}
