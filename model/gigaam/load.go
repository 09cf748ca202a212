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

// A Net is a network on a device. It may be used from any goroutine.
type Net struct {
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
// returns, the device as long as the Net is used.
func Load(ctx context.Context, dev pass.Device, src weights.Source, cfg Config) (*Net, error) {
	if dev == nil || src == nil {
		return nil, fmt.Errorf("gigaam: load: want a device and weights, given nil: %w", pass.ErrInvalid)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	n := &Net{cfg: cfg.defaults(), dev: dev}
	l := weights.NewLoader(ctx, dev, named(src))
	n.loadEncoder(l)
	n.loadHeads(l)
	if err := n.params.Take("gigaam", dev, l); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Net) loadEncoder(l *weights.Loader) {
	mel, d := frontend.GigaAM(), n.cfg.Blocks.Width
	n.mel = l.Load(mel, nil)
	n.conv[0] = l.Load(weights.Conv(l, "encoder.pre_encode.conv.0", d, mel.Mels, n.cfg.Kernel, true))
	n.conv[1] = l.Load(weights.Conv(l, "encoder.pre_encode.conv.2", d, d, n.cfg.Kernel, true))
	n.rotary = l.Load(pass.RopeWeights{Name: "rotary", Positions: n.cfg.Positions, Rot: d / n.cfg.Blocks.Heads, Base: n.cfg.Base}, nil)
	for i := range n.cfg.Blocks.Layers {
		n.blocks = append(n.blocks, conformer.Load(l, fmt.Sprintf("encoder.layers.%d", i), n.cfg.Blocks))
	}
	if next := fmt.Sprintf("encoder.layers.%d.norm_out.weight", n.cfg.Blocks.Layers); l.Has(next) {
		l.Fail(fmt.Errorf("want %d layers, given more: tensor %q: %w", n.cfg.Blocks.Layers, next, pass.ErrInvalid))
	}
}

// loadHeads loads the heads that the source has.
func (n *Net) loadHeads(l *weights.Loader) {
	for _, name := range []string{"head.decoder_layers.0", "head"} {
		if n.ctc == nil && l.Has(name+".weight") {
			n.ctc = ctc.Load(l, name, n.cfg.Blocks.Width, n.cfg.Classes, n.cfg.Classes-1)
		}
	}
	names := headNames()
	switch {
	case l.Has(names.Out + ".weight"):
		n.transducer = transducer.Load(l, headConfig(n.cfg.Blocks.Width, n.cfg.Classes, n.cfg.MaxSymbols))
	case n.ctc == nil:
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
func (n *Net) Config() Config { return n.cfg }

// NewRecogniser makes a recogniser with a session of its own. Zero fields of cfg are set:
// windows of 24 s that overlap by 4 s, and RNN-T rather than CTC if there are both.
func (n *Net) NewRecogniser(ctx context.Context, cfg asr.Config) (*asr.Recogniser, error) {
	if err := n.params.Usable(); err != nil {
		return nil, err
	}
	if cfg.Window == 0 {
		cfg.Window, cfg.Overlap = 24*time.Second, asr.DefaultOverlap
	}
	return asr.New(ctx, asr.Network{
		Device: n.dev, Encoder: n, FrontEnd: n.mel, CTC: n.ctc, Transducer: n.transducer,
		FrameSamples: 4 * 160,
	}, cfg)
}

// Close gives up the network's weights. Recognisers are closed on their own, before or
// after. Close may be called again, and on nil.
func (n *Net) Close() error {
	if n == nil {
		return nil
	}
	return n.params.Close()
}
