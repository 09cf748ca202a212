package conformer

import (
	"fmt"

	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Block is the weights of one block on a device.
type Block struct {
	cfg      Config
	ff       [2]feedForward
	normAttn pass.Param
	qkv      pass.Param // relative: [q + u | k | v | q + v]; rotary: [q | k]
	value    pass.Param // rotary: v
	position pass.Param // relative
	out      pass.Param
	normConv pass.Param
	expand   pass.Param // the point-wise convolutions, and that between them
	conv     pass.Param
	project  pass.Param
	normOut  pass.Param
}

type feedForward struct{ norm, up, down pass.Param }

// Load loads the block whose tensors have names that begin with prefix, such as
// "encoder.layers.0". The params, and errors, are the loader's.
func Load(l *weights.Loader, prefix string, cfg Config) *Block {
	b := &Block{cfg: cfg}
	at := func(name string) string { return prefix + "." + name }
	norm := func(name string) pass.Param { return l.Load(weights.Norm(l, at(name), cfg.Width, true)) }
	linear := func(in int, parts ...weights.Part) pass.Param { return l.Load(weights.Linear(l, in, parts...)) }
	for i := range b.ff {
		name := fmt.Sprintf("feed_forward%d", i+1)
		b.ff[i] = feedForward{
			norm: norm("norm_" + name),
			up:   linear(cfg.Width, weights.Rows(at(name+".linear1"), cfg.Hidden, cfg.LinearBias)),
			down: linear(cfg.Hidden, weights.Rows(at(name+".linear2"), cfg.Width, cfg.LinearBias)),
		}
	}
	b.normAttn = norm("norm_self_att")
	b.loadAttention(l, at)
	b.normConv = norm("norm_conv")
	b.expand = linear(cfg.Width, weights.Rows(at("conv.pointwise_conv1"), 2*cfg.Width, cfg.ConvBias))
	b.conv = l.Load(depthwise(l, at, cfg))
	b.project = linear(cfg.Width, weights.Rows(at("conv.pointwise_conv2"), cfg.Width, cfg.ConvBias))
	b.normOut = norm("norm_out")
	return b
}

func (b *Block) loadAttention(l *weights.Loader, at func(string) string) {
	d, biased := b.cfg.Width, b.cfg.LinearBias
	rows := func(name string) weights.Part { return weights.Rows(at("self_attn.linear_"+name), d, biased) }
	b.out = l.Load(weights.Linear(l, d, rows("out")))
	if b.cfg.Rotary {
		b.qkv = l.Load(weights.Linear(l, d, rows("q"), rows("k")))
		b.value = l.Load(weights.Linear(l, d, rows("v")))
		return
	}
	b.position = l.Load(weights.Linear(l, d, weights.Rows(at("self_attn.linear_pos"), d, false)))
	w, err := weights.Linear(l, d, rows("q"), rows("k"), rows("v"))
	l.Fail(err)
	u, err := weights.Values(l, at("self_attn.pos_bias_u"), b.cfg.Heads, d/b.cfg.Heads)
	l.Fail(err)
	v, err := weights.Values(l, at("self_attn.pos_bias_v"), b.cfg.Heads, d/b.cfg.Heads)
	l.Fail(err)
	if err == nil {
		dual(&w, u, v)
	}
	b.qkv = l.Load(w, nil)
}

// dual adds u to the bias of the first outputs of w, and gives these outputs once more
// with v added.
func dual(w *pass.LinearWeights, u, v []float32) {
	if w.Bias == nil {
		w.Bias = make([]float32, 3*len(v))
	}
	w.Dual = make([]float32, len(v))
	for i := range min(len(u), len(w.Bias)) {
		w.Dual[i] = w.Bias[i] + v[i]
		w.Bias[i] += u[i]
	}
}

// depthwise returns the convolution over time with its normalisation.
func depthwise(src weights.Source, at func(string) string, cfg Config) (pass.ConvGLUWeights, error) {
	name, norm := at("conv.depthwise_conv"), at("conv.batch_norm")
	w := pass.ConvGLUWeights{Name: name, Normalised: cfg.LayerNorm}
	var err error
	if w.Weight, err = weights.Tensor(src, name+".weight", cfg.Width, cfg.Kernel); err != nil {
		return w, err
	}
	if cfg.ConvBias {
		if w.Bias, err = weights.Values(src, name+".bias", cfg.Width); err != nil {
			return w, err
		}
	}
	if cfg.LayerNorm {
		n, err := weights.Norm(src, norm, cfg.Width, true)
		w.Gain, w.Shift = n.Gain, n.Bias
		return w, err
	}
	n, err := weights.ReadBatchNorm(src, norm, cfg.Width, 1e-5)
	if err == nil {
		w.Gain, w.Shift = n.Affine()
	}
	return w, err
}
