package whisper

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// A Mode says by which rules tokens are chosen. All are greedy.
type Mode uint8

const (
	// Plain chooses none of the suppressed tokens, and gives text without times.
	Plain Mode = iota
	// Timestamps has the times of segments too, by the rules of the authors' decoder.
	Timestamps
	// Raw takes the largest logit, whatever it stands for.
	Raw

	noMode
)

// String returns "plain", "timestamps" or "raw".
func (m Mode) String() string {
	switch m {
	case Plain:
		return "plain"
	case Timestamps:
		return "timestamps"
	case Raw:
		return "raw"
	}
	return fmt.Sprintf("Mode(%d)", m)
}

// Options say how to decode. The zero value is good.
type Options struct {
	Mode Mode
	// Language is a code, such as "en"; empty: the most likely one of each window. English
	// models take none but "en".
	Language  string
	Translate bool // to English; not with English models
	MaxTokens int  // of a window; 0: half as many as there are text positions
	// Progress, if not nil, is called by Transcribe after each window, with the share of the
	// audio that is done, up to 1.
	Progress func(done float64)
	// Prompt, if not nil, stands before the text in place of what the fields above say. It
	// may hold text of before, between the tokens for that.
	Prompt []int
}

// Decoded is the text of a window.
type Decoded struct {
	Prompt   []int
	IDs      []int     // after the prompt, with the token that ends the text, if it came
	LogProbs []float32 // of IDs, after suppression
	// NoSpeech is the probability that there is no speech, at the token Start of the prompt;
	// 0 if the model or the prompt has no such token.
	NoSpeech float64
	Language string // that the prompt has; "" in English models
	Text     string
	Segments []Segment // with Timestamps
}

// SumLogProb returns the sum of LogProbs.
func (d Decoded) SumLogProb() float64 {
	sum := 0.0
	for _, v := range d.LogProbs {
		sum += float64(v)
	}
	return sum
}

// A Segment is text with its times, from the beginning of the window, or of the audio.
type Segment struct {
	Start, End time.Duration
	IDs        []int
	Text       string
}

// Decode decodes the windows that were encoded last, from their beginning.
func (s *Session) Decode(ctx context.Context, opt Options) ([]Decoded, error) {
	out, err := s.decode(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("whisper: decode: %w", err)
	}
	return out, nil
}

func (s *Session) decode(ctx context.Context, opt Options) ([]Decoded, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	c := s.model.cfg
	if s.encoded == 0 {
		return nil, fmt.Errorf("want windows encoded before, given none: %w", pass.ErrInvalid)
	}
	if opt.Mode > Raw || opt.MaxTokens < 0 {
		return nil, fmt.Errorf("want a known mode and no negative number of tokens, given %v and %d: %w", opt.Mode, opt.MaxTokens, pass.ErrInvalid)
	}
	if opt.Mode == Timestamps && (c.Tokens.FirstTimestamp < 0 || c.Tokens.End < 0) {
		return nil, fmt.Errorf("want a model with timestamps: %w", pass.ErrUnsupported)
	}
	out := make([]Decoded, s.encoded)
	logits, err := s.begin(ctx, opt, out)
	if err != nil {
		return nil, err
	}
	n := len(out[0].Prompt)
	steps := opt.MaxTokens
	if steps == 0 {
		steps = max(c.TextPositions/2, 1)
	}
	steps = min(steps, c.TextPositions-n+1)
	if opt.Mode == Timestamps {
		err = s.choose(ctx, logits, out, steps)
	} else {
		err = s.generate(ctx, opt.Mode, out, steps)
	}
	if err != nil {
		return nil, err
	}
	for i := range out {
		d := &out[i]
		d.Text = s.model.text(d.IDs)
		if opt.Mode == Timestamps {
			d.Segments = s.model.segments(d.IDs)
		}
	}
	return out, nil
}

// begin starts the loop with the prompts, so that the layers have seen all but their last
// id. It looks at the logits after the token Start: for the probability of no speech, and
// the language. If Start is the last id of the prompt, they are returned.
func (s *Session) begin(ctx context.Context, opt Options, out []Decoded) ([][]float32, error) {
	t := s.model.cfg.Tokens
	detect, err := s.prompts(opt, out)
	if err != nil {
		return nil, err
	}
	start := slices.Index(out[0].Prompt, t.Start)
	if err := s.loop.Start(ctx, prompts(out)); err != nil {
		return nil, err
	}
	at := 0
	var logits [][]float32
	if start >= 0 && (t.NoSpeech >= 0 || detect) {
		if err := s.loop.Feed(ctx, start); err != nil {
			return nil, err
		}
		if logits, err = s.loop.Step(ctx, slices.Repeat([]uint32{uint32(t.Start)}, len(out))); err != nil {
			return nil, err
		}
		at = start + 1
		for i := range out {
			if t.NoSpeech >= 0 {
				out[i].NoSpeech = math.Exp(logProb(logits[i], t.NoSpeech))
			}
			if detect {
				out[i].setLanguage(likeliest(logits[i], t.Languages), t)
			}
		}
		if detect {
			if err := s.loop.Start(ctx, prompts(out)); err != nil {
				return nil, err
			}
		}
	}
	last := len(out[0].Prompt) - 1
	if at > last {
		return logits, s.loop.Seek(ctx, last)
	}
	if err := s.loop.Seek(ctx, at); err != nil {
		return nil, err
	}
	return nil, s.loop.Feed(ctx, last-at)
}

// prompts sets the prompts of all windows, and reports whether their languages are still
// to be found.
func (s *Session) prompts(opt Options, out []Decoded) (detect bool, err error) {
	c := s.model.cfg
	t := c.Tokens
	prompt := opt.Prompt
	language := ""
	if prompt == nil {
		prompt = []int{t.Start}
		switch {
		case len(t.Languages) == 0 && (opt.Language != "" && opt.Language != "en" || opt.Translate):
			return false, fmt.Errorf("want an English model's language, given %q, translated: %v: %w", opt.Language, opt.Translate, pass.ErrUnsupported)
		case len(t.Languages) > 0:
			task := t.Transcribe
			if opt.Translate {
				task = t.Translate
			}
			id, ok := t.Languages[opt.Language]
			if !ok && opt.Language != "" {
				return false, fmt.Errorf("language: want one of %v, given %q: %w", slices.Sorted(maps.Keys(t.Languages)), opt.Language, pass.ErrInvalid)
			}
			detect, language = !ok, opt.Language
			prompt = append(prompt, id, task)
		}
		if opt.Mode != Timestamps && t.NoTimestamps >= 0 {
			prompt = append(prompt, t.NoTimestamps)
		}
	}
	if len(prompt) < 1 || len(prompt) > c.TextPositions {
		return false, fmt.Errorf("prompt: want 1 to %d tokens, given %d: %w", c.TextPositions, len(prompt), pass.ErrInvalid)
	}
	for i, id := range prompt {
		if id < 0 || id >= c.Classes {
			return false, fmt.Errorf("prompt: token %d: want 0 to %d, given %d: %w", i, c.Classes-1, id, pass.ErrInvalid)
		}
	}
	for i := range out {
		out[i].Prompt, out[i].Language = slices.Clone(prompt), language
	}
	return detect, nil
}

func (d *Decoded) setLanguage(code string, t Tokens) {
	d.Language = code
	d.Prompt[1] = t.Languages[code]
}

func prompts(all []Decoded) [][]uint32 {
	out := make([][]uint32, len(all))
	for i, d := range all {
		out[i] = words(d.Prompt)
	}
	return out
}

func words(ids []int) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}

// likeliest returns the language of the largest logit.
func likeliest(logits []float32, languages map[string]int) string {
	best := ""
	for _, code := range slices.Sorted(maps.Keys(languages)) {
		if best == "" || logits[languages[code]] > logits[languages[best]] {
			best = code
		}
	}
	return best
}

// generate decodes on the device.
func (s *Session) generate(ctx context.Context, mode Mode, out []Decoded, steps int) error {
	if s.masked != mode {
		first, rest := s.model.masks(mode)
		s.masked = noMode
		if err := s.loop.Mask(ctx, first, rest); err != nil {
			return err
		}
		s.masked = mode
	}
	ids, logprobs, err := s.loop.Generate(ctx, steps)
	if err != nil {
		return err
	}
	for i := range out {
		out[i].LogProbs = logprobs[i]
		for _, id := range ids[i] {
			out[i].IDs = append(out[i].IDs, int(id))
		}
	}
	return nil
}

// masks returns what is added to the logits in the first step, and in the others.
func (m *Model) masks(mode Mode) (first, rest []float32) {
	first, rest = make([]float32, m.cfg.Classes), make([]float32, m.cfg.Classes)
	if mode == Raw {
		return first, rest
	}
	rule(rest, m.cfg.Suppress)
	rule(first, m.cfg.Suppress)
	rule(first, m.cfg.SuppressAtBegin)
	return first, rest
}

var never = float32(math.Inf(-1))

// rule rules ids out.
func rule(logits []float32, ids []int) {
	for _, id := range ids {
		logits[id] = never
	}
}

// text returns the text of tokens, without special ones.
func (m *Model) text(ids []int) string {
	if end := m.cfg.Tokens.End; end >= 0 {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id int) bool { return id >= end })
	}
	return m.cfg.Vocabulary.Text(ids)
}

// Logits runs the decoder on given ids, from the beginning of the text: as many, of the
// same number, as there are encoded windows. It returns for each the rows after the last
// norm, [ids][width], and the logits, [ids][classes]: row i is what follows id i.
func (s *Session) Logits(ctx context.Context, ids [][]int) (hidden, logits [][]float32, err error) {
	if err := s.usable(); err != nil {
		return nil, nil, err
	}
	if s.encoded == 0 || len(ids) != s.encoded {
		return nil, nil, fmt.Errorf("whisper: logits: want ids for each of %d encoded windows, given %d: %w", s.encoded, len(ids), pass.ErrInvalid)
	}
	all := make([][]uint32, len(ids))
	for i := range ids {
		for _, id := range ids[i] {
			if id < 0 || id >= s.model.cfg.Classes {
				return nil, nil, fmt.Errorf("whisper: logits: want ids from 0 to %d, given %d: %w", s.model.cfg.Classes-1, id, pass.ErrInvalid)
			}
		}
		all[i] = words(ids[i])
	}
	err = s.loop.Start(ctx, all)
	if err == nil {
		hidden, logits, err = s.loop.Forced(ctx, len(ids[0]))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("whisper: logits: %w", err)
	}
	return hidden, logits, nil
}
