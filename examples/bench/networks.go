package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// networkCases are whole networks of published sizes with random weights: what they say
// has no meaning, what they cost is the same. Times are from audio or features on the
// host to results on the host. Whisper's and Moonshine's encoders end with the keys and
// values of cross-attention in the device's caches, where decoding wants them. The note
// says what is on the device: weights as they are in files, the workspace of the session's
// largest recording, and its buffers and caches.
var networkCases = []benchmarkCase{
	network("whisper-tiny.en/encoder", "30 s, W F16", whisperEncoder("tiny.en")),
	network("whisper-base.en/encoder", "30 s, W F16", whisperEncoder("base.en")),
	large(network("whisper-small/encoder", "30 s, W F16", whisperEncoder("small"))),
	network("whisper-tiny.en/decoder", "a token, greedy, batch 1, W F16", whisperDecoder("tiny.en")),
	network("whisper-base.en/decoder", "a token, greedy, batch 1, W F16", whisperDecoder("base.en")),
	large(network("whisper-small/decoder", "a token, greedy, batch 1, W F16", whisperDecoder("small"))),
	network("moonshine-tiny/encoder", "10 s, W F16", moonshineEncoder),
	network("moonshine-tiny/decoder", "a token, greedy, batch 1, W F16", moonshineDecoder),
	network("parakeet-110m/encoder", "10 s of features, W F16", parakeetEncoder("tdt_ctc-110m")),
	large(network("parakeet-0.6b/encoder", "10 s of features, W F16", parakeetEncoder("tdt-0.6b-v3"))),
	network("gigaam-v3/encoder", "10 s of features, W F16", gigaamEncoder),
	network("segmentation/b1", "10 s", segmentation(1)),
	network("segmentation/b32", "32 × 10 s", segmentation(32)),
	network("wespeaker/b1", "10 s", embedding(1)),
	network("wespeaker/b8", "8 × 10 s", embedding(8)),
	network("ge2e/clip", "10 s in windows of 1.6 s", ge2eClip),
}

// large keeps a case from being measured unless --run names it.
func large(c benchmarkCase) benchmarkCase {
	c.large = true
	return c
}

// A subject is a network that is ready to run.
type subject struct {
	once  func(context.Context) error // what is timed; keeps its results
	check func(context.Context) error // says whether the results of the last once are right
	ops   int                         // that once does; 0: 1
	audio time.Duration               // that once goes through; 0: it has no rate
	close func() error
}

// An architecture is how to open a network, which must have no more tensors than these.
type architecture struct {
	weights randomWeights
	open    func(ctx context.Context, dev pass.Device, src weights.Source, math pass.Math) (*subject, error)
}

// network is a case of the table.
func network(name, shape string, of func() (architecture, error)) benchmarkCase {
	return benchmarkCase{name: name, shape: shape, steady: true, make: func() (setup, error) {
		a, err := of()
		if err != nil {
			return nil, err
		}
		return a.setup, nil
	}}
}

func (a architecture) setup(ctx context.Context, t *target) (*ready, error) {
	dev := &metered{Device: t.dev}
	s, err := a.open(ctx, dev, a.weights, t.math)
	if err != nil {
		return nil, err
	}
	once := func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		err := s.once(ctx)
		return time.Since(start), err
	}
	// The first run compiles, so that it counts only if it is very long.
	var took time.Duration
	for range 2 {
		if took, err = once(ctx); err != nil {
			return nil, errors.Join(err, s.close())
		}
		if took > patience {
			break
		}
	}
	note := dev.note(a.weights.bytes())
	if err := s.check(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("wrong result, not timed: %w", err), s.close())
	}
	return &ready{once: once, ops: max(s.ops, 1), audio: s.audio, first: took, note: note, close: s.close}, nil
}

// finite returns an error unless there are n values that are neither NaN nor infinite, and
// not all the same.
func finite(values []float32, n int) error {
	if len(values) != n {
		return fmt.Errorf("want %d values, got %d: %w", n, len(values), pass.ErrInvalid)
	}
	differ := false
	for i, v := range values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("want finite values, got %v as element %d: %w", v, i, pass.ErrInvalid)
		}
		differ = differ || v != values[0]
	}
	if !differ {
		return fmt.Errorf("want values that differ, got %v throughout: %w", values[:1], pass.ErrInvalid)
	}
	return nil
}

const sampleRate = 16000

// noise returns seconds of audio for each seed.
func noise(seconds int, seed uint64) []float32 { return kernel.Random(seed, seconds*sampleRate, 0.3) }

// closing closes in order.
func closing(all ...interface{ Close() error }) func() error {
	return func() error {
		var errs []error
		for _, c := range all {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
}
