package goldens_test

import (
	"fmt"
	"math"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// An image says how channels-first images [batch][channel][height][width] lie.
type image struct{ batch, channels, height, width int }

func (i image) len() int { return i.batch * i.channels * i.height * i.width }

// channelsLast and channelsFirst turn an image over.
func (i image) channelsLast(x, y pass.View) pass.Op {
	return pass.Permute{X: x, Y: y, Dims: [4]int{i.batch, i.channels, i.height, i.width}, Order: [4]int{0, 2, 3, 1}}
}

func (i image) channelsFirst(x, y pass.View) pass.Op {
	return pass.Permute{X: x, Y: y, Dims: [4]int{i.batch, i.height, i.width, i.channels}, Order: [4]int{0, 3, 1, 2}}
}

// folded loads a convolution and the batch norm after it as one.
func (b *bench) folded(conv, norm string) pass.Param {
	b.Helper()
	weight, shape := b.weights(conv+".weight"), b.tensorAxes(conv+".weight", 4)
	gain, bias := b.vector(norm+".weight", shape[0]), b.vector(norm+".bias", shape[0])
	mean, variance := b.vector(norm+".running_mean", shape[0]), b.vector(norm+".running_var", shape[0])
	each := len(weight) / len(gain)
	for c := range gain {
		scale := float64(gain[c]) / math.Sqrt(float64(variance[c])+1e-5)
		for i := c * each; i < (c+1)*each; i++ {
			weight[i] = float32(float64(weight[i]) * scale)
		}
		bias[c] = float32(float64(bias[c]) - float64(mean[c])*scale)
	}
	return b.load(pass.Conv2DWeights{Name: conv, Weight: pass.Float32s(conv, weight, shape...), Bias: bias})
}

// residualBlocks is a residual block that keeps its size, and one that halves it.
func residualBlocks(b *bench) goldens.Results {
	shape := b.inputAxes("x", 4)
	in := image{shape[0], shape[1], shape[2], shape[3]}
	out := image{in.batch, b.tensorAxes("down.conv1.weight", 4)[0], (in.height-1)/2 + 1, (in.width-1)/2 + 1}
	same1, same2 := b.folded("same.conv1", "same.bn1"), b.folded("same.conv2", "same.bn2")
	down1, down2 := b.folded("down.conv1", "down.bn1"), b.folded("down.conv2", "down.bn2")
	shortcut := b.folded("down.shortcut.0", "down.shortcut.1")
	return b.run(func(p pass.Pass, output func(string, int) pass.View) {
		temp := func(i image) pass.View { return p.Temp(pass.F32, i.len()).View() }
		x, y1, same, y2, short, down := temp(in), temp(in), temp(in), temp(out), temp(out), temp(out)
		conv := func(i image, x pass.View, w pass.Param, residual, y pass.View, stride int, relu bool) pass.Op {
			return pass.Conv2D{X: x, W: w, Residual: residual, Y: y, Batch: i.batch, Height: i.height, Width: i.width, Stride: stride, ReLU: relu}
		}
		p.Do(
			in.channelsLast(b.upload(p, b.input("x", shape...)), x),
			conv(in, x, same1, pass.View{}, y1, 1, true),
			conv(in, y1, same2, x, same, 1, true),
			conv(in, same, down1, pass.View{}, y2, 2, true),
			conv(in, same, shortcut, pass.View{}, short, 2, false),
			conv(out, y2, down2, short, down, 1, true),
			in.channelsFirst(same, output("same", in.len())),
			out.channelsFirst(down, output("down", out.len())),
		)
		one := in // "same_conv1" is of the first item alone
		one.batch = 1
		p.Do(one.channelsFirst(y1, output("same_conv1", one.len())))
	})
}

func (b *bench) tensor(name string) pass.Tensor {
	b.Helper()
	t, err := b.Tensor(name)
	require.NoError(b, err)
	return t
}

// relativeAttention is attention with relative positions, whose biases are added to the
// queries before.
func relativeAttention(b *bench) goldens.Results {
	var config struct {
		Heads     int
		HeadDim   int `json:"head_dim"`
		Times     []int
		KeyLength int `json:"key_length"`
		Scale     float32
	}
	require.NoError(b, b.Configuration(&config))
	width := config.Heads * config.HeadDim
	return b.run(func(p pass.Pass, output func(string, int) pass.View) {
		u, v := b.upload(p, b.input("bias_u", config.Heads, config.HeadDim)), b.upload(p, b.input("bias_v", config.Heads, config.HeadDim))
		for _, t := range config.Times {
			in := func(name string, rows int) pass.View {
				return b.upload(p, b.input(fmt.Sprint(name, "_", t), rows, width))
			}
			q, qu, qv := in("q", t), p.Temp(pass.F32, t*width).View(), p.Temp(pass.F32, t*width).View()
			op := pass.Attention{
				Q: qu, K: in("k", t), V: in("v", t), Q2: qv, Positions: in("p", 2*t-1), O: output(fmt.Sprint("out_", t), t*width),
				Queries: t, Keys: t, Heads: config.Heads, HeadDim: config.HeadDim, Scale: config.Scale,
			}
			p.Do(
				pass.Add{A: q, B: u, Y: qu, Rows: t, Cols: width, OverRows: true},
				pass.Add{A: q, B: v, Y: qv, Rows: t, Cols: width, OverRows: true},
				op,
			)
			name := fmt.Sprint("out_", t, "_keys", config.KeyLength)
			if _, ok := b.Outputs[name]; ok {
				op.O, op.KeyLengths = output(name, t*width), pass.Fixed(config.KeyLength)
				p.Do(op)
			}
		}
	})
}

// statistics are means and deviations under masks.
func statistics(b *bench) goldens.Results {
	return b.run(func(p pass.Pass, output func(string, int) pass.View) {
		for name := range b.Outputs {
			set := strings.TrimPrefix(name, "pooled_")
			shape, masks := b.inputAxes("x_"+set, 4), b.inputAxes("masks_"+set, 3)
			in := image{shape[0], shape[1], shape[2], shape[3]}
			x := p.Temp(pass.F32, in.len()).View()
			p.Do(
				in.channelsLast(b.upload(p, b.input("x_"+set, shape...)), x),
				pass.StatsPool{
					X: x, Masks: b.upload(p, b.input("masks_"+set, in.batch, masks[1], masks[2])),
					Y:     output("pooled_"+set, in.batch*masks[1]*2*in.channels*in.height),
					Batch: in.batch, Height: in.height, Width: in.width, Channels: in.channels, Count: masks[1], Frames: masks[2],
				},
			)
		}
	})
}
