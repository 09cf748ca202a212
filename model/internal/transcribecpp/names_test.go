package transcribecpp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConformer(t *testing.T) {
	t.Parallel()
	name := Conformer("decoder.lstm", "conv.batch_norm.", "conv.bn.", "encoder.pre_encode.out.", "enc.last.")
	for old, want := range map[string]string{
		"encoder.layers.0.norm_feed_forward1.weight":    "enc.blocks.0.norm_ff1.weight",
		"encoder.layers.11.feed_forward2.linear1.bias":  "enc.blocks.11.ff2.linear1.bias",
		"encoder.layers.0.norm_self_att.weight":         "enc.blocks.0.norm_attn.weight",
		"encoder.layers.0.self_attn.linear_q.weight":    "enc.blocks.0.attn.linear_q.weight",
		"encoder.layers.0.conv.pointwise_conv1.weight":  "enc.blocks.0.conv.pointwise1.weight",
		"encoder.layers.0.conv.depthwise_conv.weight":   "enc.blocks.0.conv.depthwise.weight",
		"encoder.layers.0.conv.batch_norm.running_mean": "enc.blocks.0.conv.bn.running_mean",
		"encoder.pre_encode.conv.0.weight":              "enc.pre_encode.conv.0.weight",
		"encoder.pre_encode.out.weight":                 "enc.last.weight",
		"decoder.lstm.weight_ih_l0":                     "pred.lstm.0.Wx",
		"decoder.lstm.weight_hh_l1":                     "pred.lstm.1.Wh",
		"decoder.lstm.bias_l1":                          "pred.lstm.1.bias",
		"decoder.lstm.bias_ih_l0":                       "decoder.lstm.bias_ih_l0", // has none of its own
		"joint.enc.weight":                              "joint.enc.weight",
	} {
		require.Equal(t, want, name(old))
	}
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	for _, l := range Layouts(func(name string) string { return "enc or dec " + name }) {
		want := "enc or dec x"
		if l.Prefix == "model." {
			want = "model.x"
		}
		require.Equal(t, want, l.Name("x"))
	}
}
