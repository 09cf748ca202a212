package silero

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/model/internal/held"
	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// Sizes of the layers.
const (
	window   = 256          // samples of the STFT
	hop      = 128          // samples from one frame to the next
	frames   = 4            // in a chunk
	bins     = window/2 + 1 // of the spectrum
	features = 128          // of a chunk, and of the state
)

// encoder are the convolutions after the spectrum: kernels of 3, one step of padding at
// both ends.
var encoder = [...]struct{ in, out, stride int }{{bins, 128, 1}, {128, 64, 2}, {64, 64, 2}, {64, features, 1}}

// A Model is the network on a device. It may be used from any goroutine: calls of
// Probabilities run at the same time, each in a session of its own, and so do streams.
// A [Stream] and a [Streams] are each used by one goroutine at a time.
type Model struct {
	dev    pass.Device
	stft   pass.Param
	conv   [len(encoder)]pass.Param
	lstm   pass.Param
	head   pass.Param
	params held.Params

	idle idle.Pool[*Stream] // for Probabilities
}

// maxIdle is the number of sessions that are kept for later calls of Probabilities.
const maxIdle = 4

// Load brings the network to a device. src has the tensors of the 16 kHz network of
// Silero VAD v5 or v6 as the authors publish it on its own (silero_vad_16k_op15.onnx):
// [Embedded], or a file that package onnx has read. It is read during Load only. An error
// names the tensor, the shape that was wanted and the one given, and wraps
// pass.ErrInvalid, or is the device's or the source's; nothing is left on the device
// then. The device must stay open as long as the Model is used.
func Load(ctx context.Context, dev pass.Device, src weights.Source) (*Model, error) {
	m := &Model{dev: dev}
	m.idle.Most = maxIdle
	l := weights.NewLoader(ctx, dev, src)
	basis, err := weights.Tensor(l, "model.stft.forward_basis_buffer", 2*bins, 1, window)
	m.stft = l.Load(pass.ConvWeights{Name: "stft", Weight: basis}, err)
	for i, layer := range encoder {
		m.conv[i] = l.Load(weights.Conv(l, fmt.Sprintf("model.encoder.%d.reparam_conv", i), layer.out, layer.in, 3, true))
	}
	cell, err := readCell(l, "model.decoder.rnn")
	m.lstm = l.Load(pass.LSTMWeights{Name: "rnn", Layers: [][]pass.LSTMCell{{cell}}}, err)
	m.head = l.Load(weights.Linear(l, features, weights.Rows("model.decoder.decoder.2", 1, true)))
	if err := m.params.Take("silero", dev, l); err != nil {
		return nil, err
	}
	return m, nil
}

// readCell returns the LSTM cell of the given name, which is a cell of PyTorch's and not
// a stack of layers: its names have no numbers.
func readCell(src weights.Source, name string) (cell pass.LSTMCell, err error) {
	if cell.Input, err = weights.Tensor(src, name+".weight_ih", 4*features, features); err != nil {
		return cell, err
	}
	if cell.Hidden, err = weights.Tensor(src, name+".weight_hh", 4*features, features); err != nil {
		return cell, err
	}
	if cell.Bias, err = weights.Values(src, name+".bias_ih", 4*features); err != nil {
		return cell, err
	}
	second, err := weights.Values(src, name+".bias_hh", 4*features)
	for i, v := range second {
		cell.Bias[i] += v
	}
	return cell, err
}

// Close gives up the network's weights and the sessions of Probabilities. Streams are
// closed on their own, before or after; they return pass.ErrClosed from now on. Close may
// be called again, and on nil.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.params.Close(), m.idle.Close())
}

// usable refuses models that Load did not make, and closed ones.
func (m *Model) usable() error {
	if m == nil {
		return fmt.Errorf("silero: model: not loaded: %w", pass.ErrInvalid)
	}
	return m.params.Usable()
}
