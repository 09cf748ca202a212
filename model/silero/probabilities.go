package silero

import (
	"context"
	"errors"
)

// Probabilities returns the probability of speech of each chunk of 512 samples, for
// audio that is there as a whole, mono at 16 kHz; the last chunk is filled with zeros.
// progress, if given, is called now and then with the share that is done, up to 1, on
// the goroutine of the caller.
//
// Audio that does not fit memory, or should not take it, is fed to a [Stream] in pieces.
func (m *Model) Probabilities(ctx context.Context, samples []float32, progress ...func(done float64)) (probabilities []float32, err error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	s, err := m.idle.Take(ctx, m.NewBatchStream)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.give(s)) }()
	chunks, ready := Chunks(len(samples)), 0
	report := func(more int) {
		ready += more
		for _, f := range progress {
			if f == nil {
				continue
			}
			f(float64(ready) / float64(chunks))
		}
	}
	s.out = make([]float32, 0, chunks) // the caller keeps it
	probabilities, err = s.feed(ctx, samples, report)
	s.out = nil
	if err != nil {
		return nil, err
	}
	last, err := s.Flush(ctx)
	if err != nil {
		return nil, err
	}
	if len(last) > 0 {
		report(1)
	}
	return append(probabilities, last...), nil
}

// give leaves a stream for a later call, if it is as new.
func (m *Model) give(s *Stream) error {
	if s.lost == nil && !s.used && len(s.samples) == contextSamples {
		return m.idle.Give(s)
	}
	return s.Close()
}
