package transducer

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A Step is a step of the search at a frame of an item.
type Step struct {
	Frame   int
	Token   int // class; the blank too
	Advance int // frames to the next step
}

// Greedy decodes the frames that lie in [Decoder.Frames], of lengths from 0 to Frames, an
// item each, from new. It calls visit with every step of every item, blanks too, those of
// an item in order. Each step takes the best class and, of TDT, the best duration:
//
//   - A token is fed to the predictor. RNN-T stays at the frame; TDT goes on by the
//     duration.
//   - A blank goes on by a frame, with TDT by the duration, if that is more. The
//     predictor stays.
//   - After MaxSymbols tokens on a frame it goes on by a frame at least.
func (d *Decoder) Greedy(ctx context.Context, lengths []int, visit func(item int, s Step)) error {
	n := d.cfg.Items
	if len(lengths) != n {
		return fmt.Errorf("transducer: greedy: want a length for each of %d items, given %d: %w", n, len(lengths), pass.ErrInvalid)
	}
	left, done := 0, make([]bool, n)
	for i, length := range lengths {
		if length < 0 || length > d.cfg.Frames {
			return fmt.Errorf("transducer: greedy: item %d: want 0 to %d frames, given %d: %w", i, d.cfg.Frames, length, pass.ErrInvalid)
		}
		if done[i] = length == 0; !done[i] {
			left++
		}
	}
	if left == 0 {
		return nil
	}
	if err := d.Reset(ctx); err != nil {
		return err
	}
	in, symbols := make([]Input, n), make([]int, n)
	for i := range in {
		in[i] = Input{Token: Start, Feed: true}
	}
	for left > 0 {
		choices, err := d.Step(ctx, in)
		if err != nil {
			return err
		}
		for i, choice := range choices {
			if done[i] {
				continue
			}
			s := d.head.cfg.advance(choice, in[i].Frame, &symbols[i])
			visit(i, s)
			if in[i].Feed = s.Token != d.head.cfg.Blank; in[i].Feed {
				in[i].Token = s.Token
			}
			if in[i].Frame += s.Advance; in[i].Frame >= lengths[i] {
				// It takes part in what is left of the others, and nothing comes of it.
				done[i], in[i].Frame, in[i].Feed = true, 0, false
				left--
			}
		}
	}
	return nil
}

// advance says what a choice leads to at a frame that has had so many symbols.
func (c Config) advance(choice Choice, frame int, symbols *int) Step {
	s := Step{Frame: frame, Token: choice.Token, Advance: choice.Duration}
	if s.Token == c.Blank {
		s.Advance = max(s.Advance, 1)
	} else if *symbols++; *symbols >= c.MaxSymbols {
		s.Advance = max(s.Advance, 1)
	}
	if s.Advance > 0 {
		*symbols = 0
	}
	return s
}
