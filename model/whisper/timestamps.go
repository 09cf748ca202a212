package whisper

import (
	"context"
	"math"
	"strings"
	"time"
)

const (
	tick        = 20 * time.Millisecond // from one timestamp to the next: an encoder frame
	latestFirst = 50                    // ticks: the first timestamp is at most 1 s
)

// choose decodes by the rules of timestamps, on the host. logits are those after the
// prompts, if they are known.
func (s *Session) choose(ctx context.Context, logits [][]float32, out []Decoded, steps int) error {
	next := make([]uint32, len(out))
	n := len(out[0].Prompt)
	for i := range next {
		next[i] = uint32(out[i].Prompt[n-1])
	}
	if logits != nil {
		if err := s.loop.Seek(ctx, n); err != nil {
			return err
		}
	}
	end := s.model.cfg.Tokens.End
	for range steps {
		if logits == nil {
			var err error
			if logits, err = s.loop.Step(ctx, next); err != nil {
				return err
			}
		}
		ended := true
		for i := range out {
			d := &out[i]
			next[i] = uint32(end)
			if k := len(d.IDs); k > 0 && d.IDs[k-1] == end {
				continue
			}
			s.model.cfg.timestampRules(logits[i], d.IDs)
			id := largest(logits[i])
			d.IDs = append(d.IDs, id)
			d.LogProbs = append(d.LogProbs, float32(logProb(logits[i], id)))
			next[i] = uint32(id)
			ended = ended && id == end
		}
		if ended {
			break
		}
		logits = nil
	}
	return nil
}

// timestampRules rules out what may not follow the ids (ApplyTimestampRules in
// whisper/decoding.py): timestamps come in pairs, except before the end, never go back,
// and the text begins with one; and when all of them together are likelier than each
// other token, one of them follows.
func (c Config) timestampRules(logits []float32, ids []int) {
	first := c.Tokens.FirstTimestamp
	rule(logits, c.Suppress)
	if len(ids) == 0 {
		rule(logits, c.SuppressAtBegin)
	}
	if c.Tokens.NoTimestamps >= 0 {
		logits[c.Tokens.NoTimestamps] = never
	}
	isTime := func(back int) bool { return len(ids) >= back && ids[len(ids)-back] >= first }
	if len(ids) == 0 {
		ruleRange(logits, 0, first)
		ruleRange(logits, first+latestFirst+1, len(logits))
	} else if isTime(1) {
		if len(ids) < 2 || isTime(2) {
			ruleRange(logits, first, len(logits))
		} else {
			ruleRange(logits, 0, c.Tokens.End)
		}
	}
	for i := len(ids) - 1; i >= 0; i-- {
		if ids[i] < first {
			continue
		}
		// A segment may not be empty, but it may begin where the one before ended.
		from := ids[i] + 1
		if isTime(1) && !(len(ids) < 2 || isTime(2)) {
			from = ids[i]
		}
		ruleRange(logits, first, from)
		break
	}
	if logSum(logits[first:]) > float64(logits[largest(logits[:first])]) {
		ruleRange(logits, 0, first)
	}
}

func ruleRange(logits []float32, from, to int) {
	for i := from; i < min(to, len(logits)); i++ {
		logits[i] = never
	}
}

// largest returns the place of the largest value, the lowest of equals.
func largest(values []float32) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}

// logSum returns log Σexp of values.
func logSum(values []float32) float64 {
	if len(values) == 0 {
		return math.Inf(-1)
	}
	top := float64(values[largest(values)])
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, v := range values {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

func logProb(logits []float32, id int) float64 { return float64(logits[id]) - logSum(logits) }

// segments splits tokens at timestamps. Text after the last one ends with the window.
func (m *Model) segments(ids []int) []Segment {
	t := m.cfg.Tokens
	var out []Segment
	var text []int
	at := time.Duration(0)
	add := func(end time.Duration) {
		if len(text) > 0 {
			out = append(out, Segment{Start: at, End: end, IDs: text, Text: strings.TrimSpace(m.text(text))})
		}
		text = nil
	}
	for _, id := range ids {
		switch {
		case id >= t.FirstTimestamp:
			end := time.Duration(id-t.FirstTimestamp) * tick
			add(end)
			at = end
		case id < t.End:
			text = append(text, id)
		}
	}
	add(time.Duration(m.cfg.AudioPositions) * tick)
	return out
}
