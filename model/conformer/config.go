package conformer

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A Config is the geometry of the blocks of an encoder.
type Config struct {
	Width  int // of a frame
	Layers int // blocks
	Heads  int // of attention; Width/Heads is a multiple of 4, at most 256
	Hidden int // width within the feed-forward parts
	Kernel int // of the convolution over time; odd

	LinearBias bool // the feed-forward parts and attention have biases
	ConvBias   bool // the three convolutions have biases
	LayerNorm  bool // in the convolution, layer norm instead of batch norm
	Rotary     bool // attention by rotary positions instead of relative ones
}

// Sizes beyond these are not networks, but damaged files.
const (
	maxWidth  = 1 << 14
	maxHidden = 1 << 16
	maxLayers = 1 << 9
)

// Check returns an error that wraps pass.ErrInvalid and says what is wrong, or nil.
func (c Config) Check() error {
	for _, v := range []struct {
		name      string
		given, to int
	}{
		{"width", c.Width, maxWidth}, {"layers", c.Layers, maxLayers}, {"heads", c.Heads, maxWidth},
		{"hidden width", c.Hidden, maxHidden}, {"kernel", c.Kernel, 1 << 10},
	} {
		if v.given < 1 || v.given > v.to {
			return fmt.Errorf("conformer: %s: want 1 to %d, given %d: %w", v.name, v.to, v.given, pass.ErrInvalid)
		}
	}
	if d := c.Width / c.Heads; c.Width%c.Heads != 0 || d%4 != 0 || d > 256 {
		return fmt.Errorf("conformer: heads: want a number that divides the width of %d into multiples of 4 up to 256, given %d: %w", c.Width, c.Heads, pass.ErrInvalid)
	}
	if c.Kernel%2 == 0 {
		return fmt.Errorf("conformer: kernel: want an odd number, given %d: %w", c.Kernel, pass.ErrInvalid)
	}
	return nil
}
