package wespeaker

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// An image is a batch of images, [batch][height·width][channels].
type image struct {
	v                              pass.View
	batch, height, width, channels int
}

func (i image) len() int { return i.batch * i.height * i.width * i.channels }

// convolve records a convolution, with what is added to it before ReLU.
func convolve(p pass.Pass, x image, w pass.Param, stride, out int, residual pass.View, relu bool) image {
	op := pass.Conv2D{X: x.v, W: w, Residual: residual, Batch: x.batch, Height: x.height, Width: x.width, Stride: stride, ReLU: relu}
	y := image{batch: x.batch, channels: out}
	y.height, y.width = op.Size()
	y.v = p.Temp(pass.F32, y.len()).View()
	op.Y = y.v
	p.Do(op)
	return y
}

// embed records the network: from features [batch][frames][mels] and masks
// [batch][masks][columns], one weight for each column of the last image, to embeddings
// [batch][masks][width].
func (m *Model) embed(p pass.Pass, features, masks pass.View, k size, count int, see func(string, image)) pass.View {
	c := m.cfg
	x := image{p.Temp(pass.F32, k.windows*k.frames*c.Mels).View(), k.windows, c.Mels, k.frames, 1}
	p.Do(pass.Permute{X: features, Y: x.v, Dims: [4]int{1, k.windows, k.frames, c.Mels}, Order: [4]int{0, 1, 3, 2}})
	x = convolve(p, x, m.stem, 1, c.Channels, pass.View{}, true)
	see("stem", x)
	for s, blocks := range m.stages {
		out := c.channels(s)
		for _, b := range blocks {
			y := convolve(p, x, b.conv1, b.stride, out, pass.View{}, true)
			if !b.shortcut.IsZero() {
				x = convolve(p, x, b.shortcut, b.stride, out, pass.View{}, false)
			}
			x = convolve(p, y, b.conv2, 1, out, x.v, true)
		}
		see(fmt.Sprint("layer", s+1), x)
	}
	pooled := p.Temp(pass.F32, k.windows*count*c.pooled()).View()
	e := p.Temp(pass.F32, k.windows*count*c.Width).View()
	p.Do(
		pass.StatsPool{
			X: x.v, Masks: masks, Y: pooled, Batch: k.windows,
			Height: x.height, Width: x.width, Channels: x.channels, Count: count, Frames: x.width,
		},
		pass.Gemm{A: pooled, W: m.linear, C: e, Rows: k.windows * count},
	)
	return e
}
