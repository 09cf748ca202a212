package ge2e

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A Config is the size of a network.
type Config struct {
	Layers int // of the LSTM
	Hidden int // units of each
	Width  int // elements of an embedding
}

// Resemblyzer returns the size of the network that Resemblyzer publishes: three layers of
// 256 units, and embeddings of 256 elements.
func Resemblyzer() Config { return Config{Layers: 3, Hidden: 256, Width: 256} }

const (
	maxLayers = 64
	maxWidth  = 1 << 14
)

// Check returns an error that wraps pass.ErrInvalid and names the field, unless there
// are from 1 to 64 layers, and units and elements from 1 to 16384.
func (c Config) Check() error {
	for _, f := range []struct {
		name        string
		given, most int
	}{{"layers", c.Layers, maxLayers}, {"hidden", c.Hidden, maxWidth}, {"width", c.Width, maxWidth}} {
		if f.given < 1 || f.given > f.most {
			return fmt.Errorf("ge2e: config: %s: want 1 to %d, given %d: %w", f.name, f.most, f.given, pass.ErrInvalid)
		}
	}
	return nil
}
