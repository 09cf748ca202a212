package wav

import (
	"bufio"
	"bytes"
	"io"
)

// A source is the input, buffered, with its position, and with what seeking tells and
// allows where the input can seek.
type source struct {
	r      *bufio.Reader
	seeker io.Seeker // nil if the input cannot seek
	in     io.Reader
	base   int64 // where the seeker stood at first
	pos    int64 // bytes consumed since
	size   int64 // bytes there are from base on, or -1 if that is not known
}

func newSource(in io.Reader) (*source, error) {
	s := &source{r: bufio.NewReaderSize(in, 32<<10), in: in, size: -1}
	seeker, ok := in.(io.Seeker)
	if !ok {
		return s, nil
	}
	// A pipe is an *os.File too: only trying shows whether it can seek.
	base, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return s, nil
	}
	end, err := seeker.Seek(0, io.SeekEnd)
	if err != nil {
		return s, nil
	}
	if _, err := seeker.Seek(base, io.SeekStart); err != nil {
		return nil, err
	}
	if end > base { // devices claim to be empty
		s.seeker, s.base, s.size = seeker, base, end-base
	}
	return s, nil
}

// Read reads what is there, as an io.Reader does.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.pos += int64(n)
	return n, err
}

// next reads up to len(b) bytes and returns those that there are; the error is nil at
// the end of the input.
func (s *source) next(b []byte) ([]byte, error) {
	n, err := io.ReadFull(s, b)
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// peek returns up to n bytes without consuming them.
func (s *source) peek(n int) []byte {
	b, _ := s.r.Peek(n)
	return b
}

// skip passes over n bytes, or what there is of them.
func (s *source) skip(n int64) error {
	if s.seeker != nil && n > int64(s.r.Buffered()) {
		return s.seek(min(n, s.size-min(s.pos, s.size)) + s.pos)
	}
	k, err := io.CopyN(io.Discard, s.r, n)
	s.pos += k
	if err == io.EOF {
		err = nil
	}
	return err
}

// seek goes to a position counted from the start of the input. Only a source with a
// seeker can.
func (s *source) seek(pos int64) error {
	if _, err := s.seeker.Seek(s.base+pos, io.SeekStart); err != nil {
		return err
	}
	s.r.Reset(s.in)
	s.pos = pos
	return nil
}

// hold reads up to n bytes into memory, which grows as they arrive.
func (s *source) hold(n int64) ([]byte, error) {
	var held bytes.Buffer
	k, err := io.CopyN(&held, s.r, n)
	s.pos += k
	if err == io.EOF {
		err = nil
	}
	return held.Bytes(), err
}
