package gpu

import (
	"fmt"
	"io"

	"github.com/tandem-gpu/tandem/pass"
)

// A rowSource reads the rows of tensors [nᵢ][k] of one type, stacked along n. It reads
// many rows at a time, since tensors may lie in files.
type rowSource struct {
	parts []pass.Tensor
	bytes int    // of a row
	held  []byte // rows [first, first + len(held)/bytes)
	first int
}

// sourceBytes is how much a rowSource reads at a time, unless a row is longer.
const sourceBytes = 256 << 10

func newRowSource(parts []pass.Tensor) *rowSource {
	return &rowSource{parts: parts, bytes: int(parts[0].Type.Bytes(parts[0].Shape[1]))}
}

// row returns the bytes of a row. They are valid until the next call.
func (s *rowSource) row(r int) ([]byte, error) {
	at := (r - s.first) * s.bytes
	if r < s.first || at >= len(s.held) {
		if err := s.read(r); err != nil {
			return nil, err
		}
		at = 0
	}
	return s.held[at : at+s.bytes], nil
}

// read takes in the rows from r on, of one part.
func (s *rowSource) read(r int) error {
	within := r
	for _, t := range s.parts {
		rows := t.Shape[0]
		if within >= rows {
			within -= rows
			continue
		}
		n := max(min(sourceBytes/s.bytes, rows-within), 1) * s.bytes
		if cap(s.held) < n {
			s.held = make([]byte, n)
		}
		s.held, s.first = s.held[:n], r
		got, err := t.Data.ReadAt(s.held, int64(within)*int64(s.bytes))
		if got == n {
			return nil
		}
		s.held = s.held[:0]
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("tensor %q: rows from %d: %w", t.Name, within, err)
	}
	return fmt.Errorf("row %d: %w", r, pass.ErrInvalid)
}
