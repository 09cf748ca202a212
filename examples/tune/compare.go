package main

import (
	"context"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/examples/internal/kernel"
)

const (
	// worthwhile is how much less time than before a way must take to be pinned: less is
	// within what measurements differ by.
	worthwhile = 0.03
	// hopeless is how many times the least first estimate lets a way out of the race.
	hopeless = 1.3
	// rounds are how often ways take turns, so that what changes with time strikes all.
	rounds = 4
	// longRun is how long a run of many ops should take, at most. In a race several follow
	// each other.
	longRun = time.Millisecond
)

// A candidate is a way at a boundary, and what was measured of it.
type candidate struct {
	way   string
	timed *kernel.Timed // nil: it failed
	err   error         // why it does not count
	runs  []float64     // seconds of one op, of each sample
	out   bool          // of the race: far slower than another
}

func (c *candidate) close() error {
	if c.timed == nil {
		return nil
	}
	return c.timed.Close()
}

// median returns the seconds of one op.
func (c *candidate) median() float64 {
	sorted := slices.Sorted(slices.Values(c.runs))
	n := len(sorted)
	if n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}

// take does runs for about a time, one behind the other, for a sample; at least one.
func (c *candidate) take(ctx context.Context, long time.Duration) error {
	n := 1
	if len(c.runs) > 0 {
		n = max(int(long.Seconds()/(slices.Min(c.runs)*float64(c.timed.Ops))), 1)
	}
	took, err := c.timed.Several(ctx, n)
	if err != nil {
		return err
	}
	c.runs = append(c.runs, took.Seconds()/float64(c.timed.Ops))
	return nil
}

// compare times the candidates whose results were right, for a time each. Those that are
// far slower than another are left out after some runs, but for the one that would be taken
// as it is, and the rule's: others are compared with them.
func compare(ctx context.Context, all []candidate, choice string, limit time.Duration) error {
	var race []*candidate
	least := 0.0
	for i := range all {
		c := &all[i]
		if c.err != nil {
			continue
		}
		for range 3 {
			if err := c.take(ctx, 0); err != nil {
				return err
			}
		}
		if first := slices.Min(c.runs); least == 0 || first < least {
			least = first
		}
		race = append(race, c)
	}
	race = slices.DeleteFunc(race, func(c *candidate) bool {
		c.out = slices.Min(c.runs) > hopeless*least && c != &all[0] && c.way != choice
		return c.out
	})
	if len(race) == 0 {
		return nil
	}
	// Clocks rise, caches fill.
	if err := race[0].take(ctx, limit/rounds); err != nil {
		return err
	}
	for round := range rounds {
		for _, c := range race {
			if err := c.take(ctx, limit/rounds); err != nil {
				return err
			}
			if round == 0 { // the estimates have served
				c.runs = c.runs[len(c.runs)-1:]
			}
		}
		slices.Reverse(race)
	}
	return nil
}

// decide returns the way to pin at a boundary, if there is one that is worth it. The first
// candidate is the rule's.
func decide(b cuda.Boundary, all []candidate) (pin cuda.TunePin, ok bool) {
	var best, now *candidate
	for i := range all {
		c := &all[i]
		if c.err != nil || c.out { // its few runs are not to be compared with others
			continue
		}
		if c.way == b.Choice {
			now = c
		}
		if best == nil || c.median() < best.median() {
			best = c
		}
	}
	if now == nil || all[0].err != nil || best.median() > (1-worthwhile)*now.median() {
		return cuda.TunePin{}, false
	}
	return cuda.TunePin{
		Boundary: b.Name, Choice: best.way, Seconds: best.median(), Rule: all[0].median(),
		Error: best.timed.L2, Bound: best.timed.Limit.L2,
	}, true
}
