package gpu

import (
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// Packed says how the weights of one param are laid out on a device: what Load has to
// put where. It is a function of the weights and the device's limits alone.
type packed struct {
	shape   pass.ParamShape
	buffers []packedBuffer
}

// A packedBuffer is one device buffer of a param.
type packedBuffer struct {
	words int // 32-bit words
	// fill sets dst to the words [from, from+len(dst)), padding included. It reads no
	// more of the tensors than these words need.
	fill func(dst []uint32, from int) error
}

// pack lays out weights for a device with the given limits.
func pack(w pass.Weights, limits driver.Limits) (packed, error) {
	shape, err := w.Shape()
	if err != nil {
		return packed{}, err
	}
	var buffers []packedBuffer
	switch w := w.(type) {
	case pass.LinearWeights:
		buffers, err = packLinear(w, shape.(pass.LinearShape), limits)
	case pass.ConvWeights:
		buffers, err = packConv(w, shape.(pass.ConvShape), limits)
	case pass.Conv2DWeights:
		buffers, err = packConv2D(w, shape.(pass.Conv2DShape), limits)
	case pass.ConvGLUWeights:
		buffers, err = packConvGLU(w, shape.(pass.ConvGLUShape))
	case pass.DepthwiseWeights:
		buffers, err = packDepthwise(w, shape.(pass.DepthwiseShape))
	case pass.LSTMWeights:
		buffers, err = packLSTM(w, shape.(pass.LSTMShape), limits)
	case pass.MelWeights:
		buffers, err = packMel(w, shape.(pass.MelShape), limits)
	case pass.NormWeights:
		buffers, err = packNorm(w, limits)
	case pass.RopeWeights:
		buffers, err = packRope(w, shape.(pass.RopeShape), limits)
	default:
		err = fmt.Errorf("weights %T: %w", w, pass.ErrUnsupported)
	}
	if err != nil {
		return packed{}, err
	}
	for i, b := range buffers {
		if most := limits.MaxBufferSize; 4*uint64(b.words) > most {
			return packed{}, fmt.Errorf("%v: buffer %d: %d bytes exceed the device's %d for one buffer: %w", shape, i, 4*uint64(b.words), most, pass.ErrUnsupported)
		}
	}
	return packed{shape, buffers}, nil
}
