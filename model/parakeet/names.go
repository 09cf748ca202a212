package parakeet

import (
	"strings"

	"github.com/tandem-gpu/tandem/model/internal/transcribecpp"
	"github.com/tandem-gpu/tandem/model/weights"
)

// named shows the tensors of src by the names of NeMo, whoever published it: those of
// transformers and of transcribe.cpp are known by their projection after subsampling.
func named(src weights.Source) weights.Source {
	switch {
	case weights.Has(src, "encoder.subsampling.linear.weight"):
		return weights.Renamed(src, transformers.Replace)
	case weights.Has(src, "enc.pre_encode.out.weight"):
		return weights.Renamed(src, transcribe)
	}
	return src
}

// From the names of NeMo to those of transformers.
var transformers = strings.NewReplacer(
	"encoder.pre_encode.conv.", "encoder.subsampling.layers.",
	"encoder.pre_encode.out.", "encoder.subsampling.linear.",
	"self_attn.linear_q.", "self_attn.q_proj.",
	"self_attn.linear_k.", "self_attn.k_proj.",
	"self_attn.linear_v.", "self_attn.v_proj.",
	"self_attn.linear_out.", "self_attn.o_proj.",
	"self_attn.linear_pos.", "self_attn.relative_k_proj.",
	"self_attn.pos_bias_", "self_attn.bias_",
	"conv.batch_norm.", "conv.norm.",
	"ctc_decoder.decoder_layers.0.", "ctc_head.",
	"decoder.decoder_layers.0.", "ctc_head.",
	"decoder.prediction.embed.", "decoder.embedding.",
	"decoder.prediction.dec_rnn.lstm.", "decoder.lstm.",
	"joint.enc.", "encoder_projector.",
	"joint.pred.", "decoder.decoder_projector.",
	"joint.joint_net.2.", "joint.head.",
)

// transcribe makes names of transcribe.cpp out of those of NeMo.
var transcribe = transcribecpp.Conformer(lstmName,
	"conv.batch_norm.", "conv.bn.",
	"ctc_decoder.decoder_layers.0.", "head.ctc.",
	"decoder.decoder_layers.0.", "head.ctc.",
	"decoder.prediction.embed.", "pred.embed.",
	"joint.joint_net.2.", "joint.out.",
)

// lstmName is the LSTM of the predictor.
const lstmName = "decoder.prediction.dec_rnn.lstm"
