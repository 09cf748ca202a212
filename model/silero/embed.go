package silero

import (
	_ "embed" // for the weights
	"io"
	"strings"
)

// The weights of Silero VAD v6, 16 kHz, Copyright (c) 2020-present Silero Team, under the
// MIT licence in LICENSE.silero-vad.
//
//go:embed silero_vad_16k.onnx
var embedded string

// Embedded returns a reader of the ONNX file that is part of this package: the 16 kHz
// network of Silero VAD v6, with its weights as their authors publish them
// (silero_vad_16k_op15.onnx), under the MIT licence in LICENSE.silero-vad.
func Embedded() io.Reader { return strings.NewReader(embedded) }
