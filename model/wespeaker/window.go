package wespeaker

import (
	"fmt"

	"github.com/tandem-gpu/tandem/model/internal/windows"
	"github.com/tandem-gpu/tandem/pass"
)

// SampleRate is the number of samples in a second.
const SampleRate = 16000

// MaxFrames is the most frames of a window, 60 s: longer audio is cut.
const MaxFrames = 6000

const (
	hop   = 160 // samples from one frame to the next
	frame = 400 // samples of a frame
)

// A Window is a piece of audio, and what to take of it.
type Window struct {
	// Samples are mono at 16 kHz in [−1, 1]: at least 400, and at most 60 s. Those beyond
	// the last whole frame are not looked at.
	Samples []float32
	// Features, [frames][mels], may be given in place of samples.
	Features []float32
	// Masks are the weights of time, at least 0, for each speaker: at most as many masks
	// as the session takes, of any length. Weight floor(i·length/columns) is that of
	// column i of the last image, one for 8 frames. None: everything has the same weight.
	Masks [][]float32
}

// samplesOf returns the samples that some frames touch.
func samplesOf(frames int) int { return frame + (frames-1)*hop }

// check returns the size of a window, for a single one.
func (s *Session) check(w Window) (size, error) {
	c := s.model.cfg
	k := size{windows: 1, features: w.Samples == nil}
	values := w.Samples
	switch {
	case (w.Samples == nil) == (w.Features == nil):
		return k, fmt.Errorf("want samples or features, given %d and %d: %w", len(w.Samples), len(w.Features), pass.ErrInvalid)
	case k.features:
		values, k.frames = w.Features, len(w.Features)/c.Mels
		if len(w.Features)%c.Mels != 0 || k.frames < 1 || k.frames > MaxFrames {
			return k, fmt.Errorf("want features of 1 to %d frames of %d bins, given %d: %w", MaxFrames, c.Mels, len(w.Features), pass.ErrInvalid)
		}
	case c.Mels != kaldiMels:
		return k, fmt.Errorf("want features, since the network has %d mel bins and not the %d of the front end: %w", c.Mels, kaldiMels, pass.ErrInvalid)
	default:
		if len(w.Samples) < frame || len(w.Samples) >= samplesOf(MaxFrames+1) {
			return k, fmt.Errorf("want %d to %d samples, given %d: %w", frame, samplesOf(MaxFrames+1)-1, len(w.Samples), pass.ErrInvalid)
		}
		k.frames = (len(w.Samples)-frame)/hop + 1
	}
	if err := windows.Finite("value", values); err != nil {
		return k, err
	}
	if len(w.Masks) > s.cfg.Masks {
		return k, fmt.Errorf("want at most %d masks, given %d: %w", s.cfg.Masks, len(w.Masks), pass.ErrInvalid)
	}
	for j, mask := range w.Masks {
		if len(mask) == 0 {
			return k, fmt.Errorf("mask %d: want at least one weight, given none: %w", j, pass.ErrInvalid)
		}
		for i, v := range mask {
			if !(v >= 0) || v-v != 0 {
				return k, fmt.Errorf("mask %d: weight %d: want at least 0, given %v: %w", j, i, v, pass.ErrInvalid)
			}
		}
	}
	return k, nil
}

// appendMask appends the weights of mask j for some columns; ones where there are no
// masks, zeros beyond the last.
func (w Window) appendMask(to []float32, j, columns int) []float32 {
	for i := range columns {
		v := float32(0)
		switch {
		case j < len(w.Masks):
			v = w.Masks[j][i*len(w.Masks[j])/columns]
		case len(w.Masks) == 0 && j == 0:
			v = 1
		}
		to = append(to, v)
	}
	return to
}
