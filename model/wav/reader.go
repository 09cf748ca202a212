package wav

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// A Reader reads the samples of a file as they arrive, in memory that does not depend
// on the length. One goroutine at a time may use it.
type Reader struct {
	src    *source
	format Format
	big    bool  // samples are big-endian
	left   int64 // bytes of data not read yet, or unknownSize
	frames int64 // frames delivered
	raw    []byte
	have   int // bytes in raw
	values []float64
	err    error // sticks
}

// NewReader reads the header of the file in, up to the first sample. It buffers: how
// far in is read is not specified. Where the samples come before their format, it
// seeks if in is an io.Seeker that can, and else holds the samples in memory. Errors
// are those of [Decode].
func NewReader(in io.Reader) (*Reader, error) {
	r, err := newReader(in)
	if err != nil {
		return nil, fmt.Errorf("wav: %w", err)
	}
	return r, nil
}

func newReader(in io.Reader) (*Reader, error) {
	if in == nil {
		return nil, fmt.Errorf("want an input, given nil: %w", pass.ErrInvalid)
	}
	src, err := newSource(in)
	if err != nil {
		return nil, err
	}
	h := &header{src: src}
	left, err := h.read()
	if err != nil {
		return nil, err
	}
	r := &Reader{src: src, format: h.format, left: left, big: h.order == binary.BigEndian}
	frame := int64(r.format.frameBytes())
	if there := src.size - src.pos; src.size >= 0 && (left < 0 || left > there) {
		r.format.Frames = max(0, there) / frame
		r.format.Truncated = left > there
	} else if left >= 0 {
		r.format.Frames = left / frame
	}
	perBlock := max(1, (16<<10)/frame)
	r.raw = make([]byte, perBlock*frame)
	r.values = make([]float64, perBlock*int64(r.format.Channels))
	return r, nil
}

// Format returns what is known about the file so far: Frames and Truncated are final
// once Read has returned io.EOF.
func (r *Reader) Format() Format { return r.format }

// Read fills dst with the next samples, mixed down to one channel, and returns how many
// there were: at least one, unless dst is empty or there is an error. It returns as
// soon as there are some, and io.EOF at the end. A float sample that is NaN or infinite
// is an error wrapping pass.ErrInvalid that names it; the samples before are returned.
// Errors stick.
func (r *Reader) Read(dst []float32) (int, error) {
	n, err := r.read(dst)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("wav: %w", err)
	}
	return n, err
}

func (r *Reader) read(dst []float32) (int, error) {
	if r.src == nil {
		return 0, fmt.Errorf("reader not opened: %w", pass.ErrInvalid)
	}
	if r.err != nil {
		return 0, r.err
	}
	if len(dst) == 0 {
		return 0, nil
	}
	frame := r.format.frameBytes()
	if err := r.fill(min(len(r.raw), satMul(len(dst), frame))); err != nil {
		r.err = err
		return 0, err
	}
	n := r.have / frame
	values := r.values[:n*r.format.Channels]
	if r.big {
		reverseBytes(r.raw[:n*frame], r.format.Bits/8)
	}
	r.format.expand(values, r.raw[:n*frame])
	r.have = copy(r.raw, r.raw[n*frame:r.have])
	k, err := r.mix(dst[:n], values)
	r.frames += int64(k)
	r.err = err
	return k, err
}

// fill reads until there is a whole frame, and at most to a level of want bytes.
func (r *Reader) fill(want int) error {
	frame := r.format.frameBytes()
	for idle := 0; r.have < frame; {
		b := r.raw[r.have:want]
		if r.left >= 0 {
			b = b[:min(int64(len(b)), r.left)]
		}
		if len(b) == 0 {
			return r.end()
		}
		n, err := r.src.Read(b)
		r.have += n
		if r.left >= 0 {
			r.left -= int64(n)
		}
		switch {
		case r.have >= frame:
			return nil // an error comes again
		case err == io.EOF:
			return r.end()
		case err != nil:
			return fmt.Errorf("read sample %d: %w", r.frames, err)
		case n > 0:
			idle = 0
		case idle == 100:
			return fmt.Errorf("read sample %d: %w", r.frames, io.ErrNoProgress)
		default:
			idle++
		}
	}
	return nil
}

// end settles what was not known before.
func (r *Reader) end() error {
	r.format.Frames = r.frames
	r.format.Truncated = r.left > 0 || r.have > 0
	return io.EOF
}

// mix writes the mean of each frame of values. It returns how many samples are good.
func (r *Reader) mix(dst []float32, values []float64) (int, error) {
	channels := r.format.Channels
	if channels == 1 && r.format.Encoding != Float {
		for i := range dst {
			dst[i] = float32(values[i])
		}
		return len(dst), nil
	}
	for i := range dst {
		sum := 0.0
		for _, v := range values[i*channels : (i+1)*channels] {
			sum += v
		}
		mean := float32(sum / float64(channels))
		if d := mean - mean; d != 0 { // NaN, as of infinities: 0 for all else
			return i, r.notFinite(i, values[i*channels:(i+1)*channels])
		}
		dst[i] = mean
	}
	return len(dst), nil
}

// notFinite is the error for a frame whose mean is not finite.
func (r *Reader) notFinite(i int, frame []float64) error {
	at := r.frames + int64(i)
	for c, v := range frame {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("sample %d of channel %d is %v: want finite values: %w", at, c, v, pass.ErrInvalid)
		}
	}
	return fmt.Errorf("sample %d is beyond the range of float32: %w", at, pass.ErrInvalid)
}

// satMul returns a·b for positive a and b, or the largest int.
func satMul(a, b int) int {
	if a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}
