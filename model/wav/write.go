package wav

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Write writes samples as a file of one channel of 16-bit PCM at the given rate in Hz.
// A sample is scaled by 2^15, rounded to nearest and cut to the range of 16 bits; NaN is
// an error wrapping pass.ErrInvalid, as is a rate that is not positive, or more samples
// than the 32-bit sizes of the header can tell.
func Write(w io.Writer, rate int, samples []float32) error {
	const head = 44
	if w == nil {
		return fmt.Errorf("wav: write: want an output, given nil: %w", pass.ErrInvalid)
	}
	if rate <= 0 || rate > math.MaxInt32 {
		return fmt.Errorf("wav: write: sample rate %d Hz: want 1 to %d: %w", rate, math.MaxInt32, pass.ErrInvalid)
	}
	if int64(len(samples)) > (streamedFrom-head)/2 {
		return fmt.Errorf("wav: write: %d samples: want at most %d: %w", len(samples), (streamedFrom-head)/2, pass.ErrInvalid)
	}
	size := uint32(2 * len(samples))
	order := binary.LittleEndian
	b := make([]byte, 0, 16<<10)
	b = append(b, "RIFF"...)
	b = order.AppendUint32(b, head-8+size)
	b = append(b, "WAVEfmt "...)
	b = order.AppendUint32(b, 16)
	b = order.AppendUint16(b, tagPCM)
	b = order.AppendUint16(b, 1) // channel
	b = order.AppendUint32(b, uint32(rate))
	b = order.AppendUint32(b, 2*uint32(rate))
	b = order.AppendUint16(b, 2) // bytes of a frame
	b = order.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = order.AppendUint32(b, size)
	for i, v := range samples {
		if v != v {
			return fmt.Errorf("wav: write: sample %d is NaN: %w", i, pass.ErrInvalid)
		}
		v := math.RoundToEven(float64(v) * (1 << 15))
		b = order.AppendUint16(b, uint16(int16(min(max(v, math.MinInt16), math.MaxInt16))))
		if len(b)+2 > cap(b) {
			if _, err := w.Write(b); err != nil {
				return fmt.Errorf("wav: write: %w", err)
			}
			b = b[:0]
		}
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("wav: write: %w", err)
	}
	return nil
}
