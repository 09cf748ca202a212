package main

import (
	"context"
	"slices"
	"time"
)

const (
	// warmUp is for how long a device works before anything counts: clocks rise, caches
	// fill.
	warmUp = 300 * time.Millisecond
	// leastRuns are taken however long they are, for a median.
	leastRuns = 3
	// mostRuns bounds the memory of samples.
	mostRuns = 50_000
	// patience is the length of a run that is not repeated: that it is warm changes
	// nothing then.
	patience = 4 * time.Second
)

// samples are the times of runs.
type samples struct {
	runs []time.Duration
	done bool // it was so long that once is enough
}

// A pace says how a case is measured: for how long, and after which rest, if any.
type pace struct{ time, rest time.Duration }

// take takes samples for the time of the pace, after a time to warm up, which is shorter than
// warmUp only if the measurement is short itself; or after a rest.
func (s *samples) take(ctx context.Context, r *ready, p pace) error {
	if s.done {
		return nil
	}
	if r.first > patience {
		s.done = true
		s.runs = append(s.runs, r.first)
		return nil
	}
	select {
	case <-time.After(p.rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	// once adds a sample if it counts, or if it is the only one there will be.
	once := func(counts bool) error {
		d, err := r.once(ctx)
		if err != nil {
			return err
		}
		s.done = s.done || r.single || d > patience && len(s.runs) == 0
		if counts || s.done {
			s.runs = append(s.runs, d)
		}
		return nil
	}
	for start := time.Now(); p.rest == 0 && !s.done; {
		if err := once(false); err != nil {
			return err
		}
		if time.Since(start) >= min(warmUp, p.time) {
			break
		}
	}
	start := time.Now()
	for n := 0; !s.done && n < mostRuns && (n < leastRuns || time.Since(start) < p.time); n++ {
		if err := once(true); err != nil {
			return err
		}
	}
	return nil
}

// result condenses the samples. Times are in seconds, for one op.
func (s *samples) result(r *ready) result {
	slices.Sort(s.runs)
	each := func(d time.Duration) float64 { return d.Seconds() / float64(r.ops) }
	at := func(share float64) time.Duration { return s.runs[int(share*float64(len(s.runs)-1)+0.5)] }
	median := s.runs[len(s.runs)/2]
	if len(s.runs)%2 == 0 {
		median = (s.runs[len(s.runs)/2-1] + median) / 2
	}
	out := result{Runs: len(s.runs), Ops: r.ops, Median: each(median), Min: each(s.runs[0]), Note: r.note}
	if out.Median > 0 {
		out.Spread = each(at(0.9)-at(0.1)) / out.Median
		out.FLOPs = r.cost.FLOP / out.Median
		out.Bytes = r.cost.Bytes / out.Median
		out.RealTime = r.audio.Seconds() / out.Median
	}
	return out
}
