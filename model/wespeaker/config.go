package wespeaker

import (
	"fmt"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/pass"
)

// A Config is the size of a network.
type Config struct {
	Mels     int    // bins, lines of the image
	Channels int    // of the first stage; each of the others has twice as many
	Blocks   [4]int // residual blocks of each stage
	Width    int    // elements of an embedding
}

// ResNet34 returns the size of the published network: 80 mel bins, from 32 channels on,
// 3, 4, 6 and 3 blocks, 256 elements.
func ResNet34() Config {
	return Config{Mels: 80, Channels: 32, Blocks: [4]int{3, 4, 6, 3}, Width: 256}
}

const (
	maxChannels = 1 << 10
	maxBlocks   = 100
	maxWidth    = 1 << 14
)

// Check returns an error that wraps pass.ErrInvalid and names the field, unless there
// are from 1 to 1024 bins and channels, 1 to 100 blocks in each stage and 1 to 16384
// elements.
func (c Config) Check() error {
	fields := []struct {
		name        string
		given, most int
	}{{"mels", c.Mels, frontend.MaxMels}, {"channels", c.Channels, maxChannels}, {"width", c.Width, maxWidth}}
	for i, n := range c.Blocks {
		fields = append(fields, struct {
			name        string
			given, most int
		}{fmt.Sprintf("blocks of stage %d", i+1), n, maxBlocks})
	}
	for _, f := range fields {
		if f.given < 1 || f.given > f.most {
			return fmt.Errorf("wespeaker: config: %s: want 1 to %d, given %d: %w", f.name, f.most, f.given, pass.ErrInvalid)
		}
	}
	return nil
}

// channels returns the channels of a stage, from 0 on.
func (c Config) channels(stage int) int { return c.Channels << stage }

// halved returns the size of a side of the image after so many stages that halve it.
func halved(n, stages int) int {
	for range stages {
		n = (n-1)/2 + 1
	}
	return n
}

// pooled returns how many means and deviations there are.
func (c Config) pooled() int { return 2 * c.channels(3) * halved(c.Mels, 3) }
