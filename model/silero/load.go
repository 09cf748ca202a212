package silero

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/model/onnx"
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

// A Net is the network on a device. It may be used from any goroutine: calls of
// Probabilities run at the same time, each in a session of its own, and so do streams.
// A [Stream] and a [Streams] are each used by one goroutine at a time.
type Net struct {
	dev    pass.Device
	stft   pass.Param
	conv   [len(encoder)]pass.Param
	lstm   pass.Param
	head   pass.Param
	params []pass.Param // all of them
	closed atomic.Bool

	idle idle.Pool[*Stream] // for Probabilities
}

// maxFile is how much of a file is read: many times what the network has.
const maxFile = 64 << 20

// maxIdle is the number of sessions that are kept for later calls of Probabilities.
const maxIdle = 4

// Load brings the network to a device. src is an ONNX file, such as [Embedded] gives: the
// 16 kHz network of Silero VAD v5 or v6 as the authors publish it on its own
// (silero_vad_16k_op15.onnx). It is read to its end. An error names the tensor, the shape
// that was wanted and the one given, and wraps pass.ErrInvalid, or is the device's or the
// reader's. The device must stay open as long as the Net is used.
func Load(ctx context.Context, dev pass.Device, src io.Reader) (*Net, error) {
	if dev == nil || src == nil {
		return nil, fmt.Errorf("silero: load: want a device and a file, given nil: %w", pass.ErrInvalid)
	}
	f, err := onnx.Read(io.LimitReader(src, maxFile))
	if err != nil {
		return nil, fmt.Errorf("silero: %w", err)
	}
	n := &Net{dev: dev, idle: idle.Pool[*Stream]{Most: maxIdle}}
	if err := n.load(ctx, file{f}); err != nil {
		return nil, errors.Join(fmt.Errorf("silero: %w", err), n.Close())
	}
	return n, nil
}

func (n *Net) load(ctx context.Context, f file) error {
	param := func(to *pass.Param, w pass.Weights, err error) error {
		if err != nil {
			return err
		}
		if *to, err = n.dev.Load(ctx, w); err == nil {
			n.params = append(n.params, *to)
		}
		return err
	}
	basis, err := f.tensor("model.stft.forward_basis_buffer", 2*bins, 1, window)
	if err := param(&n.stft, pass.ConvWeights{Name: "stft", Weight: basis}, err); err != nil {
		return err
	}
	for i, layer := range encoder {
		name := fmt.Sprintf("model.encoder.%d.reparam_conv", i)
		w := pass.ConvWeights{Name: name}
		w.Weight, err = f.tensor(name+".weight", layer.out, layer.in, 3)
		if err == nil {
			w.Bias, err = f.vector(name+".bias", layer.out)
		}
		if err := param(&n.conv[i], w, err); err != nil {
			return err
		}
	}
	cell, err := f.cell("model.decoder.rnn")
	if err := param(&n.lstm, pass.LSTMWeights{Name: "rnn", Layers: [][]pass.LSTMCell{{cell}}}, err); err != nil {
		return err
	}
	head, err := f.tensor("model.decoder.decoder.2.weight", 1, features, 1)
	head.Shape = []int{1, features}
	var bias []float32
	if err == nil {
		bias, err = f.vector("model.decoder.decoder.2.bias", 1)
	}
	return param(&n.head, pass.LinearWeights{Name: "head", Parts: []pass.Tensor{head}, Bias: bias}, err)
}

// Close gives up the network's weights and the sessions of Probabilities. Streams are
// closed on their own, before or after; they return pass.ErrClosed from now on. Close may
// be called again, and on nil.
func (n *Net) Close() error {
	if n == nil || n.closed.Swap(true) {
		return nil
	}
	errs := []error{n.idle.Close()}
	for _, p := range n.params {
		if err := n.dev.Unload(p); !errors.Is(err, pass.ErrClosed) { // the device may be closed first
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (n *Net) usable() error {
	if n == nil || n.dev == nil {
		return fmt.Errorf("silero: net: not loaded: %w", pass.ErrInvalid)
	}
	if n.closed.Load() {
		return fmt.Errorf("silero: net: %w", pass.ErrClosed)
	}
	return nil
}

// A file is an ONNX file that should hold the network.
type file struct{ *onnx.File }

// tensor returns a tensor of the given shape whose values are finite.
func (f file) tensor(name string, shape ...int) (pass.Tensor, error) {
	t, err := f.Tensor(name)
	if err != nil {
		return t, fmt.Errorf("tensor %q: want shape %v: %w", name, shape, err)
	}
	if !slices.Equal(t.Shape, shape) {
		return t, fmt.Errorf("tensor %q: want shape %v, given %v: %w", name, shape, t.Shape, pass.ErrInvalid)
	}
	values, err := t.Float32s()
	if err != nil {
		return t, err
	}
	if i := notFinite(values); i >= 0 {
		return t, fmt.Errorf("tensor %q: want finite values, given %v at %d: %w", name, values[i], i, pass.ErrInvalid)
	}
	return t, nil
}

func (f file) vector(name string, n int) ([]float32, error) {
	t, err := f.tensor(name, n)
	if err != nil {
		return nil, err
	}
	return t.Float32s()
}

// cell returns the LSTM cell; its gates lie in the order i, f, g, o, with two bias
// vectors that are added.
func (f file) cell(name string) (cell pass.LSTMCell, err error) {
	if cell.Input, err = f.tensor(name+".weight_ih", 4*features, features); err != nil {
		return cell, err
	}
	if cell.Hidden, err = f.tensor(name+".weight_hh", 4*features, features); err != nil {
		return cell, err
	}
	if cell.Bias, err = f.vector(name+".bias_ih", 4*features); err != nil {
		return cell, err
	}
	second, err := f.vector(name+".bias_hh", 4*features)
	for i := range second {
		cell.Bias[i] += second[i]
	}
	return cell, err
}

// notFinite returns the index of the first value that is NaN or infinite, or -1.
func notFinite(values []float32) int {
	for i, v := range values {
		if v-v != 0 {
			return i
		}
	}
	return -1
}
