package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// layConv lays out convolution weights: a matrix of F32 [out][kernel·in], in each row
// tap after tap as the kernel walks over its input.
func layConv(s pass.ConvShape, limits driver.Limits) (matrixLayout, error) {
	return layMatrix(pass.LinearShape{N: s.Out, K: s.Kernel * s.In, Type: pass.F32, Bias: s.Bias}, limits)
}

func packConv(w pass.ConvWeights, s pass.ConvShape, limits driver.Limits) ([]packedBuffer, error) {
	m, err := layConv(s, limits)
	if err != nil {
		return nil, err
	}
	row := make([]float32, s.In*s.Kernel)
	encode := func(dst []uint32, o int) error {
		if err := w.Weight.Decode(row, o*len(row)); err != nil {
			return err
		}
		clear(dst[len(row):])
		for i := range s.In {
			for tap := range s.Kernel {
				dst[tap*s.In+i] = math.Float32bits(row[i*s.Kernel+tap])
			}
		}
		return nil
	}
	return m.pack(encode, nil, func(i int) float32 { return w.Bias[i] }), nil
}
