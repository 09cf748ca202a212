// Package transcribecpp knows how transcribe.cpp names tensors in its GGUF files, as far as
// several networks have that in common.
package transcribecpp

import (
	"strings"

	"github.com/tandem-gpu/tandem/model/weights"
)

// Layouts are the layouts of networks with an encoder and a decoder: files of
// transcribe.cpp, whose names name makes of those that a loader asks for, and checkpoints
// with "model." before each name.
func Layouts(name func(string) string) []weights.Layout {
	return []weights.Layout{
		{Prefix: "enc.", Name: name},
		{Prefix: "dec.", Name: name},
		{Prefix: "model.", Name: func(name string) string { return "model." + name }},
	}
}

// Conformer returns what turns names of a conformer.Block and of the predictor's LSTM,
// whose own name is lstm, into those of transcribe.cpp. Pairs of old and new parts of names
// are a network's own, and go before the others. An LSTM layer N has pred.lstm.N.Wx, .Wh and
// .bias, the sum of two.
func Conformer(lstm string, pairs ...string) func(name string) string {
	parts := strings.NewReplacer(append(pairs,
		"encoder.layers.", "enc.blocks.",
		"encoder.pre_encode.", "enc.pre_encode.",
		"norm_feed_forward", "norm_ff",
		"feed_forward", "ff",
		"norm_self_att.", "norm_attn.",
		"self_attn.", "attn.",
		"conv.pointwise_conv", "conv.pointwise",
		"conv.depthwise_conv.", "conv.depthwise.",
	)...)
	kinds := map[string]string{"weight_ih": "Wx", "weight_hh": "Wh", "bias": "bias"}
	return func(name string) string {
		if rest, ok := strings.CutPrefix(name, lstm+"."); ok {
			kind, layer, _ := strings.Cut(rest, "_l")
			if short, ok := kinds[kind]; ok {
				return "pred.lstm." + layer + "." + short
			}
		}
		return parts.Replace(name)
	}
}
