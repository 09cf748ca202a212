package pyannote

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A Config is the size of a network, behind the convolutions, which are always alike.
type Config struct {
	Layers  int   // of the LSTM
	Hidden  int   // units of each, in each direction
	Linear  []int // outputs of the linear layers before the last
	Classes int
}

// Segmentation3 returns the size of segmentation-3.0: 4 layers of 128 units, linear layers
// of 128 and 128, 7 classes.
func Segmentation3() Config {
	return Config{Layers: 4, Hidden: 128, Linear: []int{128, 128}, Classes: 7}
}

const (
	maxLayers = 64
	maxWidth  = 1 << 14
)

// Check returns an error that wraps pass.ErrInvalid and names the field, unless there are
// from 1 to 64 LSTM layers, at most 64 linear ones, and from 1 to 16384 of all else.
func (c Config) Check() error {
	type field struct {
		name               string
		given, least, most int
	}
	fields := []field{{"layers", c.Layers, 1, maxLayers}, {"hidden", c.Hidden, 1, maxWidth}, {"classes", c.Classes, 1, maxWidth}, {"linear layers", len(c.Linear), 0, maxLayers}}
	for i, n := range c.Linear {
		fields = append(fields, field{fmt.Sprint("linear layer ", i), n, 1, maxWidth})
	}
	for _, f := range fields {
		if f.given < f.least || f.given > f.most {
			return fmt.Errorf("pyannote: config: %s: want %d to %d, given %d: %w", f.name, f.least, f.most, f.given, pass.ErrInvalid)
		}
	}
	return nil
}

// Sizes of audio and of the convolutions.
const (
	SampleRate = 16000 // samples in a second
	FrameStep  = 270   // samples from one frame to the next
	FrameField = 991   // samples that the convolutions see for a frame
)

const (
	filters  = 80  // of the first convolution, half of them cosines
	taps     = 251 // of a filter
	stride   = 10
	channels = 60 // of the other convolutions
	kernel   = 5
	pool     = 3 // steps, after each
	stages   = 3
)

// Frames returns how many frames a window of some samples has: 589 for ten seconds, none
// for fewer than 991 samples.
func Frames(samples int) int { return steps(samples)[stages] }

// steps returns the samples, and how many steps there are after each convolution and the
// pooling behind it.
func steps(samples int) [stages + 1]int {
	n := [stages + 1]int{max(samples, 0)}
	for i := range stages {
		k, by := kernel, 1
		if i == 0 {
			k, by = taps, stride
		}
		if n[i] >= k {
			n[i+1] = ((n[i]-k)/by + 1) / pool
		}
	}
	return n
}
