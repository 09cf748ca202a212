package cuda

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// loadLinear puts the weights of a Gemm, or a table of Embed, on the device.
func loadLinear(ctx context.Context, d *device, w pass.LinearWeights, s pass.LinearShape) (*linearParam, error) {
	m, err := d.newMatrix(w.Name, s.Type, s.N, s.K)
	if err != nil {
		return nil, err
	}
	p := &linearParam{matrix: m, shape: s}
	if err := p.load(ctx, w); err != nil {
		p.Free()
		return nil, fmt.Errorf("linear weights %q: %w", w.Name, err)
	}
	return p, nil
}

func (p *linearParam) load(ctx context.Context, w pass.LinearWeights) error {
	row := 0
	for _, t := range w.Parts {
		if err := p.fillRows(ctx, t, row, t.Shape[0]); err != nil {
			return err
		}
		row += t.Shape[0]
		p.tensors = append(p.tensors, t.Shape[0])
	}
	if !p.shape.Bias && p.shape.Dual == 0 {
		return nil
	}
	values := make([]uint32, 0, p.shape.N+p.shape.Dual)
	if p.shape.Bias {
		values = appendBits(values, w.Bias)
		for _, b := range w.Bias {
			if size := float32(math.Abs(float64(b))); size <= math.MaxFloat32 { // not NaN
				p.lift = max(p.lift, size)
			}
		}
	} else {
		values = values[:p.shape.N]
	}
	var err error
	p.bias, err = p.d.upload(ctx, w.Name+" bias", bytesOf(appendBits(values, w.Dual)))
	return err
}

func appendBits(to []uint32, values []float32) []uint32 {
	for _, v := range values {
		to = append(to, math.Float32bits(v))
	}
	return to
}

// fillRows puts a tensor of so many rows at a row of the matrix. The bytes are those of
// the file: rows are only set further apart, and Q8_0 blocks taken apart.
func (m *matrix) fillRows(ctx context.Context, t pass.Tensor, row, rows int) error {
	size := m.stride * elementBytes(m.typ)
	if m.typ == pass.Q8_0 {
		blocks := rows * m.stride / pass.Q8Block
		values := func(dst []byte, from int) error { return m.blocks(t, dst, from, pass.Q8Block, 2) }
		if err := m.d.fill(ctx, m.values, row*size, values, rows*size); err != nil {
			return err
		}
		scales := func(dst []byte, from int) error { return m.blocks(t, dst, from, 2, 0) }
		return m.d.fill(ctx, m.scales, row*m.stride/pass.Q8Block*2, scales, 2*blocks)
	}
	used := m.cols * elementBytes(m.typ)
	next := func(dst []byte, from int) error {
		if used == size {
			return readAll(t, dst, int64(from))
		}
		return spread(dst, from, size, used, func(b []byte, row, at int) error {
			return readAll(t, b, int64(row)*int64(used)+int64(at))
		})
	}
	return m.d.fill(ctx, m.values, row*size, next, rows*size)
}

// spread fills bytes of rows, of which only the first used come from read; zeros follow.
func spread(dst []byte, from, size, used int, read func(b []byte, row, at int) error) error {
	for len(dst) > 0 {
		row, at := from/size, from%size
		n := min(len(dst), size-at)
		k := min(n, max(used-at, 0))
		if k > 0 {
			if err := read(dst[:k], row, at); err != nil {
				return err
			}
		}
		clear(dst[k:n])
		dst, from = dst[n:], from+n
	}
	return nil
}

// blocks fills bytes with those of Q8_0 blocks: size of each, from the given one on.
func (m *matrix) blocks(t pass.Tensor, dst []byte, from, size, first int) error {
	const step = 4096
	raw := make([]byte, step*pass.Q8BlockBytes)
	for len(dst) > 0 {
		block, at := from/size, from%size
		count := min(ceilDiv(at+len(dst), size), step)
		b := raw[:count*pass.Q8BlockBytes]
		if err := readAll(t, b, int64(block)*pass.Q8BlockBytes); err != nil {
			return err
		}
		for ; count > 0 && len(dst) > 0; count-- {
			n := copy(dst, b[first+at:first+size])
			dst, from, at = dst[n:], from+n, 0
			b = b[pass.Q8BlockBytes:]
		}
	}
	return nil
}

// readAll fills bytes of a tensor from an offset on.
func readAll(t pass.Tensor, b []byte, at int64) error {
	n, err := t.Data.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("tensor %q: read %d bytes at %d: %w", t.Name, len(b), at, err)
}
