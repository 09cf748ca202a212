package gpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// A matrixLayout says how a matrix [n][k] lies in device buffers: row after row, each
// filled up with zeros to stride values. If it is larger than one binding it is cut into
// pieces between rows. Q8_0 has its bytes and its scales in buffers of their own. The
// buffers are, for each piece, the values and then the scales if there are any; then one
// with the biases, dual ones behind, if there are any.
type matrixLayout struct {
	typ    pass.DType
	n, k   int
	stride int // values of a row; a multiple of 16, of 32 for Q8_0
	rows   int // of each piece but the last
	biases int // n + dual, or 0
}

// layMatrix lays out a matrix for a device.
func layMatrix(s pass.LinearShape, limits driver.Limits) (matrixLayout, error) {
	m := matrixLayout{typ: s.Type, n: s.N, k: s.K, stride: roundUp(s.K, 16)}
	if s.Type == pass.Q8_0 {
		m.stride = roundUp(s.K, pass.Q8Block)
	}
	if s.Bias || s.Dual > 0 {
		m.biases = s.N + s.Dual
	}
	most := min(limits.MaxStorageBindingSize, limits.MaxBufferSize) / 4
	const mostValues = 1<<31 - 1 // kernels count values in 32 bits
	m.rows = min(s.N, int(most)/m.rowWords(), mostValues/m.stride)
	if m.rows == 0 {
		return m, fmt.Errorf("%v: a row of %d bytes exceeds the device's %d for one binding: %w", s, 4*m.rowWords(), 4*most, pass.ErrUnsupported)
	}
	return m, nil
}

// rowWords returns the words of the values of a row.
func (m matrixLayout) rowWords() int {
	switch m.typ {
	case pass.F16, pass.BF16:
		return m.stride / 2
	case pass.Q8_0:
		return m.stride / 4
	}
	return m.stride
}

func (m matrixLayout) pieces() int { return (m.n + m.rows - 1) / m.rows }

// piece returns the rows of a piece.
func (m matrixLayout) piece(i int) pass.Span {
	return pass.Span{From: i * m.rows, To: min((i+1)*m.rows, m.n)}
}

// scaleWords returns the words of the scales of a number of rows: two in each.
func (m matrixLayout) scaleWords(rows int) int { return (rows*m.stride/pass.Q8Block + 1) / 2 }

// buffers returns how many buffers the matrix takes.
func (m matrixLayout) buffers() int {
	n := m.pieces()
	if m.typ == pass.Q8_0 {
		n *= 2
	}
	if m.biases > 0 {
		n++
	}
	return n
}

// A rowEncoder writes row r of a matrix as words, with zeros at its end.
type rowEncoder func(dst []uint32, r int) error

// pack returns the buffers of a matrix whose rows come from encode, Q8_0 scales from
// scale, and biases from bias.
func (m matrixLayout) pack(encode rowEncoder, scale func(i int) (uint16, error), bias func(i int) float32) []packedBuffer {
	var buffers []packedBuffer
	for i := range m.pieces() {
		rows := m.piece(i)
		buffers = append(buffers, packedBuffer{words: rows.Len() * m.rowWords(), fill: m.fillRows(encode, rows.From)})
		if m.typ == pass.Q8_0 {
			first, end := rows.From*m.stride/pass.Q8Block, rows.To*m.stride/pass.Q8Block
			buffers = append(buffers, packedBuffer{words: m.scaleWords(rows.Len()), fill: fillScales(scale, first, end)})
		}
	}
	if m.biases > 0 {
		buffers = append(buffers, packedBuffer{words: m.biases, fill: func(dst []uint32, from int) error {
			for i := range dst {
				dst[i] = math.Float32bits(bias(from + i))
			}
			return nil
		}})
	}
	return buffers
}

// fillRows fills words of the piece that begins at a row. Rows that are only partly
// asked for are encoded aside.
func (m matrixLayout) fillRows(encode rowEncoder, first int) func([]uint32, int) error {
	words := m.rowWords()
	aside := make([]uint32, words)
	return func(dst []uint32, from int) error {
		for len(dst) > 0 {
			row, at := first+from/words, from%words
			n := min(len(dst), words-at)
			if n == words {
				if err := encode(dst[:n], row); err != nil {
					return err
				}
			} else {
				if err := encode(aside, row); err != nil {
					return err
				}
				copy(dst, aside[at:at+n])
			}
			dst, from = dst[n:], from+n
		}
		return nil
	}
}

// fillScales fills words with the scales [first, end), two in each.
func fillScales(scale func(i int) (uint16, error), first, end int) func([]uint32, int) error {
	return func(dst []uint32, from int) error {
		for w := range dst {
			dst[w] = 0
			for half := range 2 {
				i := first + 2*(from+w) + half
				if i >= end {
					break
				}
				s, err := scale(i)
				if err != nil {
					return err
				}
				dst[w] |= uint32(s) << (16 * half)
			}
		}
		return nil
	}
}

func packLinear(w pass.LinearWeights, s pass.LinearShape, limits driver.Limits) ([]packedBuffer, error) {
	m, err := layMatrix(s, limits)
	if err != nil {
		return nil, err
	}
	src := newRowSource(w.Parts)
	encode := func(dst []uint32, r int) error {
		raw, err := src.row(r)
		if err == nil {
			encodeRow(dst, raw, s.Type)
		}
		return err
	}
	blocks := m.stride / pass.Q8Block
	scale := func(i int) (uint16, error) {
		raw, err := src.row(i / blocks)
		if err != nil {
			return 0, err
		}
		return binary.LittleEndian.Uint16(raw[i%blocks*pass.Q8BlockBytes:]), nil
	}
	bias := func(i int) float32 {
		switch {
		case i >= s.N:
			return w.Dual[i-s.N]
		case w.Bias != nil:
			return w.Bias[i]
		}
		return 0
	}
	return m.pack(encode, scale, bias), nil
}

// encodeRow turns the bytes of a row into words, of Q8_0 without the scales, and the
// rest of dst into zeros.
func encodeRow(dst []uint32, raw []byte, t pass.DType) {
	clear(dst)
	switch t {
	case pass.F32:
		for i := range len(raw) / 4 {
			dst[i] = binary.LittleEndian.Uint32(raw[4*i:])
		}
	case pass.F16, pass.BF16:
		for i := range len(raw) / 2 {
			dst[i/2] |= uint32(binary.LittleEndian.Uint16(raw[2*i:])) << (16 * (i % 2))
		}
	case pass.Q8_0:
		for ; len(raw) > 0; dst, raw = dst[pass.Q8Block/4:], raw[pass.Q8BlockBytes:] {
			for i := range pass.Q8Block / 4 {
				dst[i] = binary.LittleEndian.Uint32(raw[2+4*i:])
			}
		}
	}
}

// roundUp returns the smallest multiple of m that is at least n.
func roundUp(n, m int) int { return (n + m - 1) / m * m }
