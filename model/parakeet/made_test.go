package parakeet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// small is a network of little width, with a TDT head or one of CTC.
func small(tdt bool) (source, Config) {
	c := Config{
		Blocks: conformer.Config{Width: 32, Layers: 2, Heads: 2, Hidden: 64, Kernel: 9, LinearBias: true},
		Mels:   80, Channels: 12, Scale: true, Classes: 12,
	}
	if tdt {
		c.Durations, c.Scale = []int{0, 1, 2, 3}, false
	}
	return made(c), c
}

// A source makes tensors up from their names, in the names of NeMo: values with a
// deviation like that of trained ones.
type source map[string][]int

func (s source) Tensor(name string) (pass.Tensor, error) {
	shape, ok := s[name]
	if !ok {
		return pass.Tensor{}, fmt.Errorf("no tensor %q: %w", name, pass.ErrInvalid)
	}
	values := make([]float32, pass.Tensor{Shape: shape}.Len())
	scale, offset := float32(0.1), float32(0)
	switch {
	case len(shape) > 1:
		scale = float32(1.5 / math.Sqrt(float64(len(values)/shape[0])))
	case strings.Contains(name, "norm") && !strings.HasSuffix(name, "bias"):
		offset = 1
	}
	goldens.Values(values, name, 11, scale, offset)
	return pass.Float32s(name, values, shape...), nil
}

func (s source) Names() (names []string) {
	for name := range s {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s source) linear(name string, shape ...int) {
	s[name+".weight"], s[name+".bias"] = shape, shape[:1]
}

func made(c Config) source {
	s := source{}
	d, channels := c.Blocks.Width, c.Channels
	for _, i := range []int{0, 2, 5} {
		s.linear(fmt.Sprint("encoder.pre_encode.conv.", i), channels, 1, 3, 3)
	}
	for _, i := range []int{3, 6} {
		s.linear(fmt.Sprint("encoder.pre_encode.conv.", i), channels, channels, 1, 1)
	}
	_, _, bins := c.bins()
	s.linear("encoder.pre_encode.out", d, channels*bins)
	for i := range c.Blocks.Layers {
		at := fmt.Sprintf("encoder.layers.%d.", i)
		for _, name := range []string{"norm_feed_forward1", "norm_self_att", "norm_conv", "norm_feed_forward2", "norm_out", "conv.batch_norm"} {
			s.linear(at+name, d)
		}
		s[at+"conv.batch_norm.running_mean"], s[at+"conv.batch_norm.running_var"] = []int{d}, []int{d}
		for _, name := range []string{"feed_forward1", "feed_forward2"} {
			s.linear(at+name+".linear1", c.Blocks.Hidden, d)
			s.linear(at+name+".linear2", d, c.Blocks.Hidden)
		}
		for _, name := range []string{"q", "k", "v", "out", "pos"} {
			s.linear(at+"self_attn.linear_"+name, d, d)
		}
		s[at+"self_attn.pos_bias_u"], s[at+"self_attn.pos_bias_v"] = []int{c.Blocks.Heads, d / c.Blocks.Heads}, []int{c.Blocks.Heads, d / c.Blocks.Heads}
		s[at+"conv.pointwise_conv1.weight"] = []int{2 * d, d, 1}
		s[at+"conv.depthwise_conv.weight"] = []int{d, 1, c.Blocks.Kernel}
		s[at+"conv.pointwise_conv2.weight"] = []int{d, d, 1}
	}
	if c.Durations == nil {
		s.linear("decoder.decoder_layers.0", c.Classes, d, 1)
		return s
	}
	const hidden, joint = 24, 20
	s["decoder.prediction.embed.weight"] = []int{c.Classes, hidden}
	s[lstmName+".weight_ih_l0"], s[lstmName+".weight_hh_l0"] = []int{4 * hidden, hidden}, []int{4 * hidden, hidden}
	s[lstmName+".bias_ih_l0"], s[lstmName+".bias_hh_l0"] = []int{4 * hidden}, []int{4 * hidden}
	s.linear("joint.enc", joint, d)
	s.linear("joint.pred", joint, hidden)
	s.linear("joint.joint_net.2", c.Classes+len(c.Durations), joint)
	return s
}
