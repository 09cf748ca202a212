// Package ctc reads the classes of frames, as connectionist temporal classification
// labels them (Graves et al., Connectionist temporal classification, 2006), along the
// best path: equal neighbours are one token, and the blank between them is none.
package ctc

import (
	"fmt"

	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Head gives each frame of an encoder a class: a linear layer.
type Head struct {
	w   pass.Param
	cfg Config
}

// A Config says what a head is.
type Config struct {
	Width   int // of the encoder's frames
	Classes int // with the blank
	Blank   int // class of frames without a token
}

// Check returns an error that wraps pass.ErrInvalid unless the blank is one of the classes.
func (c Config) Check() error {
	if c.Blank < 0 || c.Blank >= c.Classes {
		return fmt.Errorf("ctc: blank: want one of %d classes, given %d: %w", c.Classes, c.Blank, pass.ErrInvalid)
	}
	return nil
}

// Load loads the head of the given name, NAME.weight [Classes][Width] and NAME.bias; the
// params and errors are the loader's.
func Load(l *weights.Loader, name string, cfg Config) *Head {
	l.Fail(cfg.Check())
	return &Head{l.Load(weights.Linear(l, cfg.Width, weights.Rows(name, cfg.Classes, true))), cfg}
}

// Config returns the configuration that the head was loaded with.
func (h *Head) Config() Config { return h.cfg }

// Logits records the scores of rows frames of x, dense, and returns them: [rows][classes].
func (h *Head) Logits(p pass.Pass, x pass.View, rows int) pass.View {
	y := p.Temp(pass.F32, rows*h.cfg.Classes).View()
	p.Do(pass.Gemm{A: x, W: h.w, C: y, Rows: rows})
	return y
}

// Best records the choice of the best class of each row of logits: U32 [rows].
func (h *Head) Best(p pass.Pass, logits pass.View, rows int) pass.View {
	ids := p.Temp(pass.U32, rows).View()
	p.Do(pass.Argmax{X: logits, IDs: ids, Rows: rows, Cols: h.cfg.Classes})
	return ids
}

// A Span is a token and the frames that it was chosen for.
type Span struct {
	Token       int
	First, Last int
}

// Collapse returns the tokens of the classes of frames.
func (h *Head) Collapse(classes []uint32) []Span { return Collapse(classes, h.cfg.Blank) }

// Collapse returns the tokens of the classes of frames, one for each run of equal
// classes that is not of blanks.
func Collapse(classes []uint32, blank int) []Span {
	var spans []Span
	for i, c := range classes {
		switch {
		case int(c) == blank:
		case i > 0 && classes[i-1] == c:
			spans[len(spans)-1].Last = i
		default:
			spans = append(spans, Span{Token: int(c), First: i, Last: i})
		}
	}
	return spans
}
