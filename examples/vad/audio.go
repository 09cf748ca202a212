package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tandem-gpu/tandem/model/resample"
	"github.com/tandem-gpu/tandem/model/silero"
	"github.com/tandem-gpu/tandem/model/testdata/audio"
	"github.com/tandem-gpu/tandem/model/wav"
)

// embeddedName is how the recording of the program is called.
const embeddedName = "jfk.wav"

// A sampler gives mono samples at its own rate, as [wav.Reader] does.
type sampler interface {
	Read(dst []float32) (int, error)
}

// A source gives mono samples at 16 kHz, whatever the rate of the sampler.
type source struct {
	from    sampler
	convert *resample.Resampler // nil: not needed
	piece   []float32
	out     []float32
	read    int64 // samples of the sampler
	ended   bool
}

func newSource(from sampler, rate int) (*source, error) {
	s := &source{from: from, piece: make([]float32, 16<<10)}
	if rate == silero.SampleRate {
		return s, nil
	}
	var err error
	s.convert, err = resample.New(rate, silero.SampleRate)
	return s, err
}

// next returns the next samples, as soon as there are some, or io.EOF. They may be used
// until the next call.
func (s *source) next() ([]float32, error) {
	for !s.ended {
		n, err := s.from.Read(s.piece)
		s.read += int64(n)
		if err != nil && err != io.EOF {
			return nil, err
		}
		s.ended = err == io.EOF
		if s.convert == nil {
			if n > 0 {
				return s.piece[:n], nil
			}
			continue
		}
		s.out = s.convert.Process(s.out[:0], s.piece[:n])
		if s.ended {
			s.out = s.convert.Flush(s.out)
		}
		if len(s.out) > 0 {
			return s.out, nil
		}
	}
	return nil, io.EOF
}

// open opens a recording by its name on the command line: "-" is standard input, "" the
// recording of the program. The name that is returned is for results.
func (p *program) open(ctx context.Context, path string) (r *wav.Reader, name string, close func() error, err error) {
	close = func() error { return nil }
	var in io.Reader
	switch path {
	case "":
		name, in = embeddedName, audio.JFK()
	case "-":
		name, in = "stdin", interruptible(ctx, p.stdin)
	default:
		name = path
		if in, close, err = openFile(ctx, path); err != nil {
			return nil, path, close, err
		}
	}
	if r, err = wav.NewReader(in); err != nil {
		close()
	}
	return r, name, close, err
}

// openFile opens a file. If it is none on a disk, both opening and reading may wait for
// somebody who writes, and end with ctx.
func openFile(ctx context.Context, path string) (io.Reader, func() error, error) {
	nothing := func() error { return nil }
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = errors.New("is a directory")
	}
	if err != nil {
		return nil, nothing, err
	}
	if info.Mode().IsRegular() {
		file, err := os.Open(path)
		return file, file.Close, err
	}
	type opened struct {
		file *os.File
		err  error
	}
	result := make(chan opened, 1)
	go func() {
		file, err := os.Open(path)
		result <- opened{file, err}
	}()
	select {
	case o := <-result:
		if o.err != nil {
			return nil, nothing, o.err
		}
		return interruptible(ctx, o.file), o.file.Close, nil
	case <-ctx.Done():
		return nil, nothing, ctx.Err()
	}
}

// inFile adds the name of a file to an error, which must not hold it already.
func inFile(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// interruptible returns a reader of in that stops waiting for input when ctx ends. What
// waits for in until then is left behind.
func interruptible(ctx context.Context, in io.Reader) io.Reader {
	r := &interruptibleReader{ctx: ctx, pieces: make(chan inputPiece)}
	go func() {
		for {
			b := make([]byte, 32<<10)
			n, err := in.Read(b)
			select {
			case r.pieces <- inputPiece{b[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return r
}

type inputPiece struct {
	bytes []byte
	err   error
}

type interruptibleReader struct {
	ctx    context.Context
	pieces chan inputPiece
	last   inputPiece
}

// Read implements io.Reader.
func (r *interruptibleReader) Read(b []byte) (int, error) {
	for len(r.last.bytes) == 0 {
		if r.last.err != nil {
			return 0, r.last.err
		}
		select {
		case r.last = <-r.pieces:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(b, r.last.bytes)
	r.last.bytes = r.last.bytes[n:]
	return n, nil
}
