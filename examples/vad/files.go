package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/tandem-gpu/tandem/model/silero"
	"github.com/tandem-gpu/tandem/model/wav"
	"golang.org/x/term"
)

// batchSamples is how much of a file is processed at a time: half a minute.
const batchSamples = 1024 * silero.ChunkSamples

// files processes the recordings that were named and writes what was found, all at once.
func (p *program) files(ctx context.Context, model *silero.Model) error {
	stream, err := model.NewBatchStream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	paths := p.opt.files
	if len(paths) == 0 {
		paths = []string{""}
	}
	var results []*result
	for _, path := range paths {
		r, err := p.file(ctx, stream, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.fail(ctx, err)
			continue
		}
		results = append(results, r)
	}
	if len(results) == 0 {
		return nil
	}
	if p.opt.plot != "" {
		if err := plotTo(p.opt.plot, results[0], p.opt.params); err != nil {
			return inFile(p.opt.plot, err)
		}
	}
	var b bytes.Buffer
	if err := p.write(&b, results); err != nil {
		return err
	}
	if _, err := p.stdout.Write(b.Bytes()); err != nil {
		return inFile("standard output", err)
	}
	return nil
}

// file processes one recording.
func (p *program) file(ctx context.Context, stream *silero.Stream, path string) (*result, error) {
	reader, name, close, err := p.open(ctx, path)
	if err != nil {
		return nil, inFile(name, err)
	}
	defer close()
	bar := p.newBar(name, reader.Format().Frames)
	began := time.Now()
	r := &result{name: name}
	if err := p.analyse(ctx, stream, reader, r, bar); err != nil {
		bar.clear()
		return nil, inFile(name, err)
	}
	bar.finish(r, time.Since(began))
	if reader.Format().Truncated {
		p.truncated(name, r.samples)
	}
	return r, nil
}

// truncated says that a recording is shorter than it claims, and sets the exit code.
func (p *program) truncated(name string, samples int) {
	fmt.Fprintf(p.stderr, "vad: %s: ends before the length that its header claims; results are for the %v s that are there\n",
		strings.Join(strings.Fields(name), " "), seconds(samples))
	if p.code == exitGood {
		p.code = exitTruncated
	}
}

// analyse fills r with the probabilities and segments of a recording.
func (p *program) analyse(ctx context.Context, stream *silero.Stream, reader *wav.Reader, r *result, bar *bar) error {
	src, err := newSource(reader, reader.Format().Rate)
	if err != nil {
		return err
	}
	if err := stream.Reset(ctx); err != nil {
		return err
	}
	batch := make([]float32, 0, min(batchSamples, 2*len(src.piece)))
	for ended := false; !ended; {
		batch = batch[:0]
		for len(batch) < batchSamples && !ended {
			samples, err := src.next()
			if ended = err == io.EOF; err != nil && !ended {
				return err
			}
			batch = append(batch, samples...)
		}
		probabilities, err := stream.Feed(ctx, batch)
		if err != nil {
			return err
		}
		r.probabilities = append(r.probabilities, probabilities...)
		if p.opt.plot != "" {
			r.envelope = appendEnvelope(r.envelope, r.samples, batch)
		}
		r.samples += len(batch)
		bar.set(src.read)
	}
	if r.samples == 0 {
		return errors.New("no samples")
	}
	last, err := stream.Flush(ctx)
	if err != nil {
		return err
	}
	r.probabilities = append(r.probabilities, last...)
	r.segments, err = silero.Segments(r.probabilities, r.samples, p.opt.params)
	return err
}

// A bar shows progress, on a terminal. A nil bar does nothing.
type bar struct {
	*progressbar.ProgressBar
	to io.Writer
}

// newBar makes a bar for a recording of a number of frames, -1 if it is not known.
func (p *program) newBar(name string, frames int64) *bar {
	if p.opt.quiet || !isTerminal(p.stderr) {
		return nil
	}
	return &bar{progressbar.NewOptions64(frames,
		progressbar.OptionSetWriter(p.stderr),
		progressbar.OptionSetDescription(name),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	), p.stderr}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (b *bar) set(frames int64) {
	if b != nil {
		b.Set64(frames)
	}
}

func (b *bar) clear() {
	if b != nil {
		b.Clear()
	}
}

// finish replaces the bar by the speed.
func (b *bar) finish(r *result, took time.Duration) {
	if b == nil {
		return
	}
	b.Clear()
	length := seconds(r.samples).float()
	fmt.Fprintf(b.to, "vad: %s: %.1f s in %.2f s, %.0f times real time\n", r.name, length, took.Seconds(), length/max(took.Seconds(), 1e-9))
}
