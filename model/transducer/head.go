package transducer

import (
	"bytes"
	"fmt"

	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// Names are the names of the parts of a head in a source, without ".weight" and the like.
type Names struct {
	Embed string // of the predictor
	LSTM  string
	Enc   string // projects frames
	Pred  string // projects the predictor's output
	Out   string // scores classes and durations
}

// A Config says what a head is, as far as the shapes of its tensors don't.
type Config struct {
	Names     Names
	Width     int   // of the encoder's frames
	Classes   int   // with the blank
	Blank     int   // class that is no token
	Durations []int // of TDT, in frames, each at least 0; nil: RNN-T
	// MaxSymbols is how many tokens a frame may have at most; 0: ten.
	MaxSymbols int
	// ZeroStart says that the first input of the predictor is a zero vector; else it is
	// the row of the blank.
	ZeroStart bool
}

// A Head is the predictor and the joint network on a device.
type Head struct {
	cfg                         Config
	embed, lstm, enc, pred, out pass.Param
	shape                       pass.LSTMShape
	joint                       int // width of the joint network
	start                       int // row of the embedding for the first input
}

// Sizes beyond these are not networks, but damaged files.
const (
	maxClasses   = 1 << 20
	maxDurations = 64
	maxDuration  = 1 << 16
	maxWidth     = 1 << 14
	maxLayers    = 16
)

// Check returns an error that wraps pass.ErrInvalid and says what is wrong, or nil.
func (c Config) Check() error {
	switch {
	case c.Width < 1 || c.Width > maxWidth:
		return fmt.Errorf("transducer: width: want 1 to %d, given %d: %w", maxWidth, c.Width, pass.ErrInvalid)
	case c.Classes < 2 || c.Classes > maxClasses:
		return fmt.Errorf("transducer: classes: want 2 to %d, given %d: %w", maxClasses, c.Classes, pass.ErrInvalid)
	case c.Blank < 0 || c.Blank >= c.Classes:
		return fmt.Errorf("transducer: blank: want one of %d classes, given %d: %w", c.Classes, c.Blank, pass.ErrInvalid)
	case c.MaxSymbols < 0:
		return fmt.Errorf("transducer: symbols of a frame: want at least 1, or 0 for ten, given %d: %w", c.MaxSymbols, pass.ErrInvalid)
	case len(c.Durations) > maxDurations:
		return fmt.Errorf("transducer: durations: want at most %d, given %d: %w", maxDurations, len(c.Durations), pass.ErrInvalid)
	}
	for _, d := range c.Durations {
		if d < 0 || d > maxDuration {
			return fmt.Errorf("transducer: durations: want 0 to %d frames, given %d: %w", maxDuration, d, pass.ErrInvalid)
		}
	}
	return nil
}

// Load loads a head. The widths of predictor and joint network and the number of LSTM
// layers are those that the tensors have. The params and errors are the loader's.
func Load(l *weights.Loader, cfg Config) *Head {
	if cfg.MaxSymbols == 0 {
		cfg.MaxSymbols = 10
	}
	h := &Head{cfg: cfg, start: cfg.Blank}
	l.Fail(cfg.Check())
	hidden, layers := h.measure(l)
	embed, err := weights.Linear(l, hidden, weights.Rows(cfg.Names.Embed, cfg.Classes, false))
	if err == nil && cfg.ZeroStart {
		h.start = cfg.Classes
		embed.Parts = append(embed.Parts, zeros(embed.Parts[0].Type, hidden))
	}
	h.embed = l.Load(embed, err)
	h.lstm = l.Load(weights.LSTM(l, cfg.Names.LSTM, hidden, hidden, layers, 1))
	h.enc = l.Load(weights.Linear(l, cfg.Width, weights.Rows(cfg.Names.Enc, h.joint, true)))
	h.pred = l.Load(weights.Linear(l, hidden, weights.Rows(cfg.Names.Pred, h.joint, true)))
	h.out = l.Load(weights.Linear(l, h.joint, weights.Rows(cfg.Names.Out, cfg.Classes+len(cfg.Durations), true)))
	h.shape, _ = h.lstm.Shape().(pass.LSTMShape)
	return h
}

// measure finds the sizes that the configuration leaves open.
func (h *Head) measure(l *weights.Loader) (hidden, layers int) {
	size := func(name string, axis int) int {
		t, err := l.Tensor(name)
		if err != nil {
			l.Fail(fmt.Errorf("transducer: %w", err))
			return 1
		}
		if len(t.Shape) < 2 || t.Shape[axis] < 1 || t.Shape[axis] > maxWidth {
			l.Fail(fmt.Errorf("transducer: tensor %q: want two axes of 1 to %d, given %v: %w", name, maxWidth, t.Shape, pass.ErrInvalid))
			return 1
		}
		return t.Shape[axis]
	}
	hidden = size(h.cfg.Names.Embed+".weight", 1)
	h.joint = size(h.cfg.Names.Pred+".weight", 0)
	layers = 1
	for layers < maxLayers && l.Has(fmt.Sprintf("%s.weight_ih_l%d", h.cfg.Names.LSTM, layers)) {
		layers++
	}
	return hidden, layers
}

// zeros is one row of zeros, which are zero bytes in every type.
func zeros(t pass.DType, width int) pass.Tensor {
	z := pass.Tensor{Name: "start", Type: t, Shape: []int{1, width}}
	z.Data = bytes.NewReader(make([]byte, max(z.Bytes(), 0)))
	return z
}

// Joint returns the width of the joint network: that of projected frames.
func (h *Head) Joint() int { return h.joint }

// Hidden returns the width of the predictor.
func (h *Head) Hidden() int { return h.shape.Hidden }

// Project records the projection of frames x, dense [items][frames][width], to to,
// [items][frames][Joint], which has strides of its own.
func (h *Head) Project(p pass.Pass, x, to pass.View, items, frames int) {
	p.Do(pass.Gemm{A: x, W: h.enc, C: to, Batch: items, Rows: frames})
}

// Config returns the configuration that the head was loaded with.
func (h *Head) Config() Config { return h.cfg }
