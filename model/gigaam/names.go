package gigaam

import (
	"strings"

	"github.com/tandem-gpu/tandem/model/weights"
)

// named shows the tensors of src by the names of the authors' checkpoints.
func named(src weights.Source) weights.Source {
	switch {
	case weights.Has(src, "enc.pre_encode.conv.0.weight"):
		return weights.Renamed(src, transcribe)
	case weights.Has(src, "model.encoder.pre_encode.conv.0.weight"):
		return weights.Under(src, "model.")
	}
	return src
}

// lstmName is the LSTM of the predictor.
const lstmName = "head.decoder.lstm"

// From the names of the authors to those of transcribe.cpp, but for the LSTM.
var transcribeNames = strings.NewReplacer(
	"encoder.layers.", "enc.blocks.",
	"encoder.pre_encode.", "enc.pre_encode.",
	"norm_feed_forward", "norm_ff",
	"feed_forward", "ff",
	"norm_self_att.", "norm_attn.",
	"self_attn.", "attn.",
	"conv.pointwise_conv", "conv.pointwise",
	"conv.depthwise_conv.", "conv.depthwise.",
	"conv.batch_norm.", "conv.ln.",
	"head.decoder_layers.0.", "head.ctc.",
	"head.decoder.embed.", "pred.embed.",
	"head.joint.joint_net.1.", "joint.out.",
	"head.joint.", "joint.",
)

// transcribe returns the name in transcribe.cpp's files. An LSTM layer N has
// pred.lstm.N.Wx, .Wh and .bias, the sum of two.
func transcribe(name string) string {
	if rest, ok := strings.CutPrefix(name, lstmName+"."); ok {
		kind, layer, _ := strings.Cut(rest, "_l")
		if short, ok := map[string]string{"weight_ih": "Wx", "weight_hh": "Wh", "bias": "bias"}[kind]; ok {
			return "pred.lstm." + layer + "." + short
		}
	}
	return transcribeNames.Replace(name)
}
