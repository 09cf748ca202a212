package gigaam

import (
	"github.com/tandem-gpu/tandem/model/internal/transcribecpp"
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

// transcribe makes names of transcribe.cpp out of those of the authors.
var transcribe = transcribecpp.Conformer(lstmName,
	"conv.batch_norm.", "conv.ln.",
	"head.decoder_layers.0.", "head.ctc.",
	"head.decoder.embed.", "pred.embed.",
	"head.joint.joint_net.1.", "joint.out.",
	"head.joint.", "joint.",
)
