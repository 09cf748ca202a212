package moonshine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/pass"
)

// Options say how to decode. The zero value is good.
type Options struct {
	// MaxTokens of an utterance; 0: 6.5 for each second of it, as the authors have it for
	// English, and at least one. There are never more than positions.
	MaxTokens int
	// Progress, if not nil, is called by Generate and Transcribe after each batch, with the
	// share of the utterances that are done, up to 1.
	Progress func(done float64)
}

const tokensPerSecond = 6.5

// Decoded is the text of an utterance.
type Decoded struct {
	IDs      []int     // after the first, with the token that ends the text, if it came
	LogProbs []float32 // of IDs
	Text     string
}

// Generate returns the text of utterances, in a session of its own, one after the other;
// see [Session.Generate].
func (m *Model) Generate(ctx context.Context, utterances [][]float32, opt Options) ([]Decoded, error) {
	return idle.Use(ctx, &m.idle, m.open, func(s *Session) ([]Decoded, error) { return s.Generate(ctx, utterances, opt) })
}

// Generate returns the text of any number of utterances, as many at a time as the
// session's batch.
func (s *Session) Generate(ctx context.Context, utterances [][]float32, opt Options) ([]Decoded, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	var out []Decoded
	for some := range slices.Chunk(utterances, s.cfg.Batch) {
		if err := s.Encode(ctx, some...); err != nil {
			return nil, err
		}
		d, err := s.Decode(ctx, opt)
		if err != nil {
			return nil, err
		}
		out = append(out, d...)
		if opt.Progress != nil {
			opt.Progress(float64(len(out)) / float64(len(utterances)))
		}
	}
	return out, nil
}

// Decode decodes the utterances that were encoded last, from their beginning.
func (s *Session) Decode(ctx context.Context, opt Options) ([]Decoded, error) {
	out, err := s.decode(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("moonshine: decode: %w", err)
	}
	return out, nil
}

func (s *Session) decode(ctx context.Context, opt Options) ([]Decoded, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	c := s.model.cfg
	if len(s.encoded) == 0 {
		return nil, fmt.Errorf("want utterances encoded before, given none: %w", pass.ErrInvalid)
	}
	if opt.MaxTokens < 0 {
		return nil, fmt.Errorf("want no negative number of tokens, given %d: %w", opt.MaxTokens, pass.ErrInvalid)
	}
	limits, most := make([]int, len(s.encoded)), 0
	prompts := make([][]uint32, len(s.encoded))
	for i, samples := range s.encoded {
		limits[i] = opt.MaxTokens
		if limits[i] == 0 {
			limits[i] = max(1, int(math.Ceil(tokensPerSecond*float64(samples)/SampleRate)))
		}
		limits[i] = min(limits[i], c.Positions)
		most = max(most, limits[i])
		prompts[i] = []uint32{uint32(c.Start)}
	}
	if err := s.loop.Start(ctx, prompts); err != nil {
		return nil, err
	}
	ids, logprobs, err := s.loop.Generate(ctx, most)
	if err != nil {
		return nil, err
	}
	out := make([]Decoded, len(ids))
	for i := range out {
		n := min(len(ids[i]), limits[i])
		for _, id := range ids[i][:n] {
			out[i].IDs = append(out[i].IDs, int(id))
		}
		out[i].LogProbs = logprobs[i][:n]
		text := slices.DeleteFunc(slices.Clone(out[i].IDs), func(id int) bool { return id == c.End })
		out[i].Text = strings.TrimSpace(c.Vocabulary.Text(text))
	}
	return out, nil
}

// Logits runs the decoder on given ids, from the beginning of the text: as many, of the
// same number, as there are encoded utterances. It returns for each the rows after the
// last norm, [ids][width], and the logits, [ids][classes]: row i is what follows id i.
func (s *Session) Logits(ctx context.Context, ids [][]int) (hidden, logits [][]float32, err error) {
	if err := s.usable(); err != nil {
		return nil, nil, err
	}
	if len(s.encoded) == 0 || len(ids) != len(s.encoded) {
		return nil, nil, fmt.Errorf("moonshine: logits: want ids for each of %d encoded utterances, given %d: %w", len(s.encoded), len(ids), pass.ErrInvalid)
	}
	all := make([][]uint32, len(ids))
	for i := range ids {
		for _, id := range ids[i] {
			if id < 0 || id >= s.model.cfg.Classes {
				return nil, nil, fmt.Errorf("moonshine: logits: want ids from 0 to %d, given %d: %w", s.model.cfg.Classes-1, id, pass.ErrInvalid)
			}
			all[i] = append(all[i], uint32(id))
		}
	}
	err = s.loop.Start(ctx, all)
	if err == nil {
		hidden, logits, err = s.loop.Forced(ctx, len(ids[0]))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("moonshine: logits: %w", err)
	}
	return hidden, logits, nil
}
