package silero

import (
	_ "embed" // for the weights
	"sync"

	"github.com/tandem-gpu/tandem/model/onnx"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// The weights of Silero VAD v6, 16 kHz, Copyright (c) 2020-present Silero Team, under the
// MIT licence in LICENSE.silero-vad.
//
//go:embed silero_vad_16k.onnx
var embedded string

// Embedded returns the tensors of the ONNX file that is part of this package: the 16 kHz
// network of Silero VAD v6, with its weights as their authors publish them
// (silero_vad_16k_op15.onnx), under the MIT licence in LICENSE.silero-vad.
func Embedded() weights.Source {
	return &source{sync.OnceValues(func() (*onnx.File, error) { return onnx.Parse([]byte(embedded)) })}
}

// A source is a file that is parsed when it is first asked for something.
type source struct{ file func() (*onnx.File, error) }

func (s *source) Tensor(name string) (pass.Tensor, error) {
	f, err := s.file()
	if err != nil {
		return pass.Tensor{}, err
	}
	return f.Tensor(name)
}

func (s *source) Names() []string {
	f, err := s.file()
	if err != nil {
		return nil
	}
	return f.Names()
}
