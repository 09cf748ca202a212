package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tandem-gpu/tandem/model/silero"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
)

// listen processes standard input as it comes and writes each event as soon as it is
// certain.
func (p *program) listen(ctx context.Context, model *silero.Model) error {
	stream, err := model.NewStream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	detector, err := silero.NewDetector(p.opt.params)
	if err != nil {
		return err
	}
	l := &listener{p: p, stream: stream, detector: detector}
	err = l.listen(ctx)
	if err == nil {
		err = l.feed(stream.Flush(ctx))
	}
	// Even after an error, a start that was told gets its end.
	if e := l.tell(detector.Flush(l.samples)); err == nil {
		err = e
	}
	if err == nil && l.samples == 0 {
		err = errors.New("no samples")
	}
	switch {
	case err == nil:
	case errors.As(err, new(outputError)):
		return err
	default:
		return inFile("stdin", err)
	}
	if r, ok := l.from.(*wav.Reader); ok && r.Format().Truncated {
		p.truncated("stdin", l.samples)
	}
	return nil
}

// An outputError is that of standard output, not of what was read.
type outputError struct{ error }

// A listener is the state of live audio.
type listener struct {
	p        *program
	stream   *silero.Stream
	detector *silero.Detector
	from     sampler
	samples  int // at 16 kHz
	start    int // of the segment that has no end yet
}

func (l *listener) listen(ctx context.Context) error {
	from, rate, err := liveSampler(interruptible(ctx, l.p.stdin))
	if err != nil {
		return err
	}
	l.from = from
	src, err := newSource(from, rate)
	if err != nil {
		return err
	}
	for {
		samples, err := src.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		l.samples += len(samples)
		if err := l.feed(l.stream.Feed(ctx, samples)); err != nil {
			return err
		}
	}
}

// feed takes probabilities, or the error instead of them.
func (l *listener) feed(probabilities []float32, err error) error {
	if err != nil {
		return err
	}
	for _, probability := range probabilities {
		if l.p.opt.probabilities {
			if err := l.line(func(w io.Writer) { writeProbability(w, probability) }); err != nil {
				return err
			}
		}
		if err := l.tell(l.detector.Feed(probability)); err != nil {
			return err
		}
	}
	return nil
}

// tell writes events, or segments that they end.
func (l *listener) tell(events []silero.Event) error {
	if l.p.opt.probabilities {
		return nil
	}
	for _, e := range events {
		var write func(io.Writer)
		at := seconds(e.Sample)
		switch {
		case l.p.opt.format == "table":
			write = func(w io.Writer) { fmt.Fprintf(w, "%-5v%10v\n", e.Kind, at) }
		case l.p.opt.format == "json":
			write = func(w io.Writer) { writeEvent(w, e.Kind, at) }
		case e.Kind == silero.SpeechStart:
			l.start = e.Sample
			continue
		default:
			write = func(w io.Writer) { l.p.writeSegment(w, "stdin", silero.Segment{Start: l.start, End: e.Sample}) }
		}
		if err := l.line(write); err != nil {
			return err
		}
	}
	return nil
}

func writeEvent(w io.Writer, kind silero.EventKind, at seconds) {
	b, _ := json.Marshal(struct { // cannot fail for these types
		Event string  `json:"event"`
		Time  seconds `json:"time"`
	}{kind.String(), at})
	fmt.Fprintf(w, "%s\n", b)
}

// line writes a line in one piece.
func (l *listener) line(write func(io.Writer)) error {
	var b bytes.Buffer
	write(&b)
	if _, err := l.p.stdout.Write(b.Bytes()); err != nil {
		return outputError{inFile("standard output", err)}
	}
	return nil
}

// liveSampler returns a sampler of a WAVE file, or of raw samples if in is none.
func liveSampler(in io.Reader) (sampler, int, error) {
	magic := make([]byte, 12)
	n, err := io.ReadFull(in, magic)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, 0, err
	}
	magic = magic[:n]
	whole := io.MultiReader(bytes.NewReader(magic), in)
	for _, riff := range []string{"RIFF", "RIFX", "RF64", "BW64"} {
		if bytes.HasPrefix(magic, []byte(riff)) {
			r, err := wav.NewReader(whole)
			if err != nil {
				return nil, 0, err
			}
			return r, r.Format().Rate, nil
		}
	}
	// Raw samples may begin with any bytes, but hardly with the name of another format.
	if n > 0 && magic[0] != 0xFF {
		if _, err := wav.NewReader(bytes.NewReader(magic)); errors.Is(err, pass.ErrUnsupported) {
			return nil, 0, err
		}
	}
	return &rawSampler{in: whole}, silero.SampleRate, nil
}

// A rawSampler decodes 16-bit little-endian mono samples. Half a sample at the end is
// dropped.
type rawSampler struct {
	in   io.Reader
	buf  [8 << 10]byte
	have int
}

// Read implements sampler.
func (r *rawSampler) Read(dst []float32) (int, error) {
	want := min(len(r.buf), 2*len(dst))
	for r.have < 2 {
		n, err := r.in.Read(r.buf[r.have:want])
		r.have += n
		if err != nil && r.have < 2 {
			return 0, err
		}
	}
	n := r.have / 2
	for i := range n {
		dst[i] = float32(int16(binary.LittleEndian.Uint16(r.buf[2*i:]))) / (1 << 15)
	}
	r.have = copy(r.buf[:], r.buf[2*n:r.have])
	return n, nil
}
