package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Encode rounds values to a type of weights and returns the tensor of them. The last
// axis of Q8_0 must be a multiple of 32.
func Encode(name string, t pass.DType, values []float32, shape ...int) pass.Tensor {
	var b []byte
	switch t {
	case pass.F16:
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, toHalf(v))
		}
	case pass.BF16:
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, toBrain(v))
		}
	case pass.Q8_0:
		for ; len(values) >= pass.Q8Block; values = values[pass.Q8Block:] {
			b = appendBlock(b, values[:pass.Q8Block])
		}
	default:
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return pass.Tensor{Name: name, Type: t, Shape: shape, Data: bytes.NewReader(b)}
}

// decode returns the elements of weights in float64, by arithmetic of its own.
func decode(t pass.Tensor) ([]float64, error) {
	n := t.Bytes()
	if n < 0 {
		return nil, invalid("tensor %q: %v does not fit %v", t.Name, t.Shape, t.Type)
	}
	b := make([]byte, n)
	if k, err := t.Data.ReadAt(b, 0); k < len(b) {
		return nil, fmt.Errorf("cases: tensor %q: %d of %d bytes: %w", t.Name, k, n, orUnexpected(err))
	}
	values := make([]float64, 0, t.Len())
	switch t.Type {
	case pass.F16:
		for ; len(b) > 0; b = b[2:] {
			values = append(values, fromHalf(binary.LittleEndian.Uint16(b)))
		}
	case pass.BF16:
		for ; len(b) > 0; b = b[2:] {
			values = append(values, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b))<<16)))
		}
	case pass.Q8_0:
		for ; len(b) > 0; b = b[pass.Q8BlockBytes:] {
			scale := fromHalf(binary.LittleEndian.Uint16(b))
			for _, q := range b[2:pass.Q8BlockBytes] {
				values = append(values, scale*float64(int8(q)))
			}
		}
	default:
		for ; len(b) > 0; b = b[4:] {
			values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	}
	return values, nil
}

func orUnexpected(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// toHalf rounds to the nearest binary16, ties to even.
func toHalf(v float32) uint16 {
	sign := uint16(math.Float32bits(v) >> 16 & 0x8000)
	x := math.Abs(float64(v))
	switch {
	case x != x:
		return sign | 0x7E00
	case x >= 65520:
		return sign | 0x7C00
	case x < 0x1p-14: // multiples of 2⁻²⁴; 1024 of them are the smallest normal number
		return sign | uint16(math.RoundToEven(x*0x1p24))
	}
	fraction, exponent := math.Frexp(x) // x = fraction·2^exponent, fraction in [0.5, 1)
	mantissa := math.RoundToEven(fraction * 2048)
	return sign | (uint16(exponent+13)<<10 + uint16(mantissa)) // mantissa's leading bit adds one to the exponent
}

func fromHalf(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exponent, mantissa := int(h>>10&31), float64(h&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(mantissa, -24)
	case 31:
		if mantissa != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+mantissa, exponent-25)
}

// toBrain rounds to the nearest bfloat16, ties to even.
func toBrain(v float32) uint16 {
	w := math.Float32bits(v)
	if v != v {
		return uint16(w>>16) | 0x40
	}
	return uint16((w + 0x7FFF + w>>16&1) >> 16)
}

// appendBlock appends 32 values as a Q8_0 block.
func appendBlock(b []byte, values []float32) []byte {
	largest := 0.0
	for _, v := range values {
		largest = max(largest, math.Abs(float64(v)))
	}
	half := toHalf(float32(largest / 127))
	b = binary.LittleEndian.AppendUint16(b, half)
	scale := fromHalf(half)
	for _, v := range values {
		q := 0.0
		if scale > 0 {
			q = min(max(math.RoundToEven(float64(v)/scale), -127), 127)
		}
		b = append(b, byte(int8(q)))
	}
	return b
}
