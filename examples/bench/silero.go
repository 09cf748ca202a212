package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tandem-gpu/tandem/model/silero"
	"github.com/tandem-gpu/tandem/model/testdata/audio"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// sileroCases are voice activity detection from samples on the host to probabilities on
// the host: recordings, many live streams, one live stream. It is always exact.
var sileroCases = []benchmarkCase{
	{name: "file-10min", shape: "10 minutes of speech", steady: true, make: func() (setup, error) { return sileroCase(sileroFile) }},
	{name: "streams-256", shape: "a step of 256 chunks of 32 ms", steady: true, make: func() (setup, error) { return sileroCase(sileroStreams) }},
	{name: "stream-1", shape: "a chunk of 32 ms", steady: true, make: func() (setup, error) { return sileroCase(sileroStream) }},
}

// speechChunks is how much is used of the recording: 4 seconds, again and again.
const speechChunks = 128

// checkedSteps are compared before a step is timed.
const checkedSteps = 8

// chunkTime is what a chunk lasts.
const chunkTime = silero.ChunkSamples * time.Second / silero.SampleRate

// A speech is a recording with its probabilities, chunk by chunk, as pass/cpu computes
// them, whose results are compared with the original network's elsewhere.
type speech struct {
	samples []float32 // whole chunks
	want    []float32
}

// sileroCase makes the case of f, which is given the network on the target and a speech.
func sileroCase(f func(context.Context, *silero.Model, *speech) (*ready, error)) (setup, error) {
	s, err := loadSpeech(context.Background())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, t *target) (*ready, error) {
		model, err := silero.Load(ctx, t.dev, silero.Embedded())
		if err != nil {
			return nil, err
		}
		r, err := f(ctx, model, s)
		if err != nil {
			return nil, errors.Join(err, model.Close())
		}
		more := r.close
		r.close = func() error { return errors.Join(more(), model.Close()) }
		return r, nil
	}, nil
}

func loadSpeech(ctx context.Context) (_ *speech, err error) {
	samples, _, err := wav.Decode(audio.JFK())
	if err != nil {
		return nil, err
	}
	s := &speech{samples: samples[:speechChunks*silero.ChunkSamples]}
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	model, err := silero.Load(ctx, dev, silero.Embedded())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	s.want, err = model.Probabilities(ctx, s.samples)
	return s, err
}

// chunk returns a chunk of the speech, which begins again after its end.
func (s *speech) chunk(i int) []float32 {
	i %= len(s.want)
	return s.samples[i*silero.ChunkSamples:][:silero.ChunkSamples]
}

// check compares the probabilities from a chunk on.
func (s *speech) check(from int, got []float32) error {
	for i, p := range got {
		if want := s.want[from+i]; !(math.Abs(float64(p-want)) < 1e-3) {
			return fmt.Errorf("wrong result, not timed: chunk %d: want probability %v, got %v", from+i, want, p)
		}
	}
	return nil
}

func sileroFile(ctx context.Context, model *silero.Model, s *speech) (*ready, error) {
	const length = 10 * time.Minute
	chunks := int(length / chunkTime)
	samples := make([]float32, 0, chunks*silero.ChunkSamples)
	for i := range chunks {
		samples = append(samples, s.chunk(i)...)
	}
	got, err := model.Probabilities(ctx, samples[:len(s.samples)])
	if err == nil {
		err = s.check(0, got)
	}
	if err != nil {
		return nil, err
	}
	return &ready{
		once: func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			got, err := model.Probabilities(ctx, samples)
			took := time.Since(start)
			if err == nil {
				err = s.check(0, got[:len(s.want)])
			}
			return took, err
		},
		ops: 1, audio: length, close: func() error { return nil },
	}, nil
}

// sileroStreams feeds the same speech to all streams but the odd ones, which are a chunk
// behind: their first one is silence.
func sileroStreams(ctx context.Context, model *silero.Model, s *speech) (*ready, error) {
	const streams = 256
	group, err := model.NewStreams(ctx, streams)
	if err != nil {
		return nil, err
	}
	chunks := make([]silero.Chunk, streams)
	for i := range chunks {
		if chunks[i].Stream, err = group.Add(); err != nil {
			return nil, errors.Join(err, group.Close())
		}
	}
	n := 0
	once := func(ctx context.Context) (time.Duration, error) {
		for i := range chunks {
			chunks[i].Samples = s.chunk(n + i%2)
		}
		n++
		start := time.Now()
		err := group.Step(ctx, chunks)
		return time.Since(start), err
	}
	// Even streams begin with the speech's first chunk.
	for i := range checkedSteps {
		_, err := once(ctx)
		for k := 0; k < streams && err == nil; k += 2 {
			err = s.check(i, []float32{chunks[k].Probability})
		}
		if err != nil {
			return nil, errors.Join(err, group.Close())
		}
	}
	return &ready{once: once, ops: 1, audio: streams * chunkTime, close: group.Close}, nil
}

func sileroStream(ctx context.Context, model *silero.Model, s *speech) (*ready, error) {
	stream, err := model.NewStream(ctx)
	if err != nil {
		return nil, err
	}
	n := 0
	var got []float32
	once := func(ctx context.Context) (took time.Duration, err error) {
		start := time.Now()
		got, err = stream.Feed(ctx, s.chunk(n))
		took = time.Since(start)
		n++
		return took, err
	}
	for i := range checkedSteps {
		_, err := once(ctx)
		if err == nil && len(got) != 1 {
			err = fmt.Errorf("want one probability a chunk, got %d: %w", len(got), pass.ErrInvalid)
		}
		if err == nil {
			err = s.check(i, got)
		}
		if err != nil {
			return nil, errors.Join(err, stream.Close())
		}
	}
	return &ready{once: once, ops: 1, audio: chunkTime, close: stream.Close}, nil
}
