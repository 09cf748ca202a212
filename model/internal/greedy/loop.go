package greedy

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A Network is what a loop decodes with.
type Network struct {
	// Hidden records the layers on some rows of ids, which adds them to the network's
	// caches, and returns the rows [batch][rows][width] that Head makes logits of.
	Hidden    func(p pass.Pass, x Rows) pass.View
	Head      pass.Param // LinearWeights [classes][width]
	Positions int        // how many ids an item may have
	Stop      []uint32   // ids that end an item, at most pass.MaxStop
	Masked    bool       // whether masks are added to the logits; see [Loop.Mask]
}

// Rows are ids that the layers run on: Rows of each item, from row Pos of its IDRows on.
type Rows struct {
	IDs    pass.View  // U32 [Batch][IDRows]
	Pos    pass.Index // each item's own
	IDRows int
	Batch  int
	Rows   int
}

const (
	burst = 8 // steps of a submission
	chunk = 8 // most rows whose logits are read back at once
)

// A Loop decodes a batch of items in a session. It lives as long as the session, and is
// used by its goroutine.
type Loop struct {
	session        pass.Session
	net            Network
	opt            pass.RecordOptions
	batch, rows    int
	classes, width int

	ids      pass.Buffer    // U32 [batch][rows]
	logprobs pass.Buffer    // [batch][rows], of the ids in the same places
	pos      pass.Buffer    // U32 [batch]: row of the last known id
	done     pass.Buffer    // U32 [batch]
	next     pass.Buffer    // U32 [batch]
	masks    [2]pass.Buffer // [classes]: of the first step, and of the others

	active     int // items that are decoded
	at         int // row of the last known id, before steps
	recordings map[work]*recording
}

// New makes a loop. Labels and mathematics of its recordings are those of opt.
func New(session pass.Session, net Network, batch int, opt pass.RecordOptions) (*Loop, error) {
	head, ok := net.Head.Shape().(pass.LinearShape)
	if !ok || batch < 1 || net.Positions < 1 {
		return nil, fmt.Errorf("greedy: want a head, a batch and positions of at least 1, given %v, %d and %d: %w", net.Head, batch, net.Positions, pass.ErrInvalid)
	}
	l := &Loop{
		session: session, net: net, opt: opt, batch: batch, rows: net.Positions + 1,
		classes: head.N, width: head.K, recordings: map[work]*recording{},
	}
	for _, b := range []struct {
		to *pass.Buffer
		t  pass.DType
		n  int
	}{
		{&l.ids, pass.U32, batch * l.rows}, {&l.logprobs, pass.F32, batch * l.rows},
		{&l.pos, pass.U32, batch}, {&l.done, pass.U32, batch}, {&l.next, pass.U32, batch},
	} {
		var err error
		if *b.to, err = session.Alloc(b.t, b.n); err != nil {
			return nil, fmt.Errorf("greedy: %w", err)
		}
	}
	if net.Masked {
		for i := range l.masks {
			var err error
			if l.masks[i], err = session.Alloc(pass.F32, l.classes); err != nil {
				return nil, fmt.Errorf("greedy: %w", err)
			}
		}
	}
	return l, nil
}

// Mask sets what is added to the logits of each class before a step of [Loop.Generate]
// chooses: first in the first step, rest in all others. Minus infinity rules a class out.
func (l *Loop) Mask(ctx context.Context, first, rest []float32) error {
	for i, m := range [2][]float32{first, rest} {
		if err := l.session.Write(ctx, l.masks[i].View(), m); err != nil {
			return fmt.Errorf("greedy: mask: %w", err)
		}
	}
	return nil
}

// Start begins with prompts of the same length, of at least one id, one for each item
// that is decoded; further items of the batch rest. What was before is forgotten.
func (l *Loop) Start(ctx context.Context, prompts [][]uint32) error {
	if len(prompts) < 1 || len(prompts) > l.batch {
		return fmt.Errorf("greedy: want 1 to %d prompts, given %d: %w", l.batch, len(prompts), pass.ErrInvalid)
	}
	n := len(prompts[0])
	ids, done := make([]uint32, l.batch*l.rows), make([]uint32, l.batch)
	for b := range l.batch {
		done[b] = 1
		if b >= len(prompts) {
			continue
		}
		done[b] = 0
		if len(prompts[b]) != n || n < 1 || n > l.net.Positions {
			return fmt.Errorf("greedy: prompt %d: want 1 to %d ids, as many as in the others, given %d: %w", b, l.net.Positions, len(prompts[b]), pass.ErrInvalid)
		}
		copy(ids[b*l.rows:], prompts[b])
	}
	l.active = len(prompts)
	for _, w := range []struct {
		to   pass.Buffer
		data []uint32
	}{{l.ids, ids}, {l.done, done}} {
		if err := l.session.Write(ctx, w.to.View(), w.data); err != nil {
			return fmt.Errorf("greedy: %w", err)
		}
	}
	return l.Seek(ctx, 0)
}

// Seek moves all items to a row whose id is known, and whose predecessors the layers have
// seen.
func (l *Loop) Seek(ctx context.Context, row int) error {
	if row < 0 || row >= l.rows {
		return fmt.Errorf("greedy: seek: want a row of %d, given %d: %w", l.rows, row, pass.ErrInvalid)
	}
	pos := make([]uint32, l.batch)
	for b := range pos {
		pos[b] = uint32(row)
	}
	if err := l.session.Write(ctx, l.pos.View(), pos); err != nil {
		return fmt.Errorf("greedy: seek: %w", err)
	}
	l.at = row
	return nil
}

// Feed runs the layers on the next n ids of the prompts, and moves on by n rows.
func (l *Loop) Feed(ctx context.Context, n int) error {
	for n > 0 {
		k := 1
		for 2*k <= n {
			k *= 2
		}
		if _, err := l.run(ctx, work{kind: feed, n: k}); err != nil {
			return err
		}
		l.at += k
		n -= k
	}
	return nil
}

// Forced is Feed, and returns for each active item the rows that the head gets,
// [n][width], and the logits of the classes, [n][classes], before any mask.
func (l *Loop) Forced(ctx context.Context, n int) (hidden, logits [][]float32, err error) {
	hidden, logits = make([][]float32, l.active), make([][]float32, l.active)
	for n > 0 {
		k := chunk
		for k > n {
			k /= 2
		}
		r, err := l.run(ctx, work{kind: forced, n: k})
		if err != nil {
			return nil, nil, err
		}
		for b := range l.active {
			hidden[b] = append(hidden[b], r.hidden[b*k*l.width:(b+1)*k*l.width]...)
			logits[b] = append(logits[b], r.logits[b*k*l.classes:(b+1)*k*l.classes]...)
		}
		l.at += k
		n -= k
	}
	return hidden, logits, nil
}

// Step takes the ids at the items' rows, one for each active item, runs the layers on
// them, and moves on. It returns the logits of each item before any mask; they are valid
// until the next call.
func (l *Loop) Step(ctx context.Context, ids []uint32) ([][]float32, error) {
	if len(ids) != l.active {
		return nil, fmt.Errorf("greedy: step: want an id for each of %d items, given %d: %w", l.active, len(ids), pass.ErrInvalid)
	}
	all := make([]uint32, l.batch)
	copy(all, ids)
	r, err := l.run(ctx, work{kind: step, n: 1}, all...)
	if err != nil {
		return nil, err
	}
	l.at++
	out := make([][]float32, l.active)
	for b := range out {
		out[b] = r.logits[b*l.classes : (b+1)*l.classes]
	}
	return out, nil
}

// Generate takes up to so many steps, on the device, fewer if all items end. It returns
// for each active item the ids after its row, the one that ended it included, and the
// logarithm of the probability of each, after the mask.
func (l *Loop) Generate(ctx context.Context, steps int) (ids [][]uint32, logprobs [][]float32, err error) {
	if steps < 0 || steps > l.net.Positions-l.at {
		return nil, nil, fmt.Errorf("greedy: generate: want 0 to %d steps, given %d: %w", l.net.Positions-l.at, steps, pass.ErrInvalid)
	}
	from := l.at
	for taken := 0; taken < steps; {
		w := work{kind: generate, n: 1}
		if taken > 0 {
			w.rest = true
			if steps-taken >= burst {
				w.n = burst
			}
		}
		r, err := l.run(ctx, w)
		if err != nil {
			return nil, nil, err
		}
		taken += w.n
		ended := true
		for _, d := range r.done {
			ended = ended && d != 0
		}
		if ended {
			break
		}
	}
	return l.results(ctx, from)
}

// results reads the ids after a row.
func (l *Loop) results(ctx context.Context, from int) (ids [][]uint32, logprobs [][]float32, err error) {
	words, values := make([]uint32, l.batch*l.rows), make([]float32, l.batch*l.rows)
	pos, done := make([]uint32, l.batch), make([]uint32, l.batch)
	for _, r := range []struct {
		from pass.Buffer
		to   any
	}{{l.ids, words}, {l.logprobs, values}, {l.pos, pos}, {l.done, done}} {
		if err := l.session.Read(ctx, r.from.View(), r.to); err != nil {
			return nil, nil, fmt.Errorf("greedy: %w", err)
		}
	}
	for b := range l.active {
		// An item that has ended stays before its last id.
		first, end := b*l.rows+from+1, b*l.rows+int(pos[b]+done[b])+1
		ids = append(ids, words[first:end])
		logprobs = append(logprobs, values[first:end])
	}
	return ids, logprobs, nil
}
