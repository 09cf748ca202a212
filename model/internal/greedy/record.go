package greedy

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A kind says what a recording does.
type kind string

const (
	feed     kind = "feed"     // layers on n known ids
	forced   kind = "forced"   // the same, with hidden rows and logits
	step     kind = "step"     // layers on an id from the host, with logits
	generate kind = "generate" // n greedy steps
)

// A work is what is recorded once: n is one of few numbers, so that recordings are
// bounded.
type work struct {
	kind kind
	n    int
	rest bool // generate: with the mask of the steps after the first
}

// A recording with the outputs of its last run.
type recording struct {
	pass.Recording
	input                            pass.Input // step
	hiddenOut, logitsOut, doneOutput pass.Output
	hidden, logits                   []float32
	done                             []uint32
}

// run runs a recording, which is made when it is first needed, and reads its outputs.
func (l *Loop) run(ctx context.Context, w work, input ...uint32) (*recording, error) {
	if w.kind != generate && w.n > l.net.Positions-l.at {
		return nil, fmt.Errorf("greedy: %s: want at most %d rows, given %d more than %d: %w", w.kind, l.net.Positions, w.n, l.at, pass.ErrInvalid)
	}
	r, err := l.recording(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("greedy: %s: %w", w.kind, err)
	}
	var binds []pass.Bind
	if w.kind == step {
		binds = append(binds, r.input.U32(input))
	}
	run, err := r.Run(ctx, binds...)
	if err != nil {
		return nil, fmt.Errorf("greedy: %s: %w", w.kind, err)
	}
	defer run.Close()
	if r.hidden != nil {
		err = run.ReadF32(r.hiddenOut, r.hidden)
	}
	if r.logits != nil && err == nil {
		err = run.ReadF32(r.logitsOut, r.logits)
	}
	if r.done != nil && err == nil {
		err = run.ReadU32(r.doneOutput, r.done)
	}
	if err != nil {
		return nil, fmt.Errorf("greedy: %s: %w", w.kind, err)
	}
	return r, nil
}

func (l *Loop) recording(ctx context.Context, w work) (*recording, error) {
	if r := l.recordings[w]; r != nil {
		return r, nil
	}
	r := &recording{}
	opt := l.opt
	opt.Label = fmt.Sprintf("%s %s %d", opt.Label, w.kind, w.n)
	rec, err := l.session.Record(ctx, opt, func(p pass.Pass) {
		switch w.kind {
		case generate:
			for range w.n {
				l.greedy(p, w.rest)
			}
			r.done = make([]uint32, l.batch)
			r.doneOutput = p.Output(l.done.View(), l.batch)
			return
		case step:
			r.input = p.Input(pass.U32, l.batch)
			p.Do(pass.Copy{From: r.input.View(), To: l.ids.View(), Batch: l.batch, Rows: 1, Cols: 1, ToRow: l.here(), ToRows: l.rows})
		}
		hidden := l.hidden(p, w.n)
		if w.kind != feed {
			logits := l.logits(p, hidden, w.n)
			r.logits = make([]float32, l.batch*w.n*l.classes)
			r.logitsOut = p.Output(logits, len(r.logits))
		}
		if w.kind == forced {
			r.hidden = make([]float32, l.batch*w.n*l.width)
			r.hiddenOut = p.Output(hidden, len(r.hidden))
		}
		p.Do(pass.Advance{Index: l.pos.View(), By: w.n, Batch: l.batch})
	})
	if err != nil {
		return nil, err
	}
	r.Recording = rec
	l.recordings[w] = r
	return r, nil
}

// here is the index of each item's row.
func (l *Loop) here() pass.Index { return pass.IndexEach(l.pos.View()) }

func (l *Loop) hidden(p pass.Pass, n int) pass.View {
	return l.net.Hidden(p, Rows{IDs: l.ids.View(), Pos: l.here(), IDRows: l.rows, Batch: l.batch, Rows: n})
}

func (l *Loop) logits(p pass.Pass, hidden pass.View, n int) pass.View {
	logits := p.Temp(pass.F32, l.batch*n*l.classes).View()
	p.Do(pass.Gemm{A: hidden, W: l.net.Head, C: logits, Rows: l.batch * n})
	return logits
}

// greedy records a step that chooses. Items that are done choose the same id again.
func (l *Loop) greedy(p pass.Pass, rest bool) {
	logits := l.logits(p, l.hidden(p, 1), 1)
	if l.net.Masked {
		mask := l.masks[0]
		if rest {
			mask = l.masks[1]
		}
		p.Do(pass.Add{A: logits, B: mask.View(), Y: logits, Rows: l.batch, Cols: l.classes, OverRows: true})
	}
	logprobs := p.Temp(pass.F32, l.batch*l.classes).View()
	next := l.here().Plus(1)
	p.Do(
		pass.Argmax{X: logits, IDs: l.next.View(), Batch: l.batch, Rows: 1, Cols: l.classes},
		pass.LogSoftmax{X: logits, Y: logprobs, Rows: l.batch, Cols: l.classes},
		// The logarithm of the chosen class: a row of one column.
		pass.Copy{
			From: logprobs, FromRow: pass.IndexEach(l.next.View()), FromRows: l.classes,
			To: l.logprobs.View(), ToRow: next, ToRows: l.rows, Batch: l.batch, Rows: 1, Cols: 1,
		},
		pass.Copy{From: l.next.View(), To: l.ids.View(), ToRow: next, ToRows: l.rows, Batch: l.batch, Rows: 1, Cols: 1},
		pass.Advance{
			Index: l.pos.View(), By: 1, IDs: l.ids.View(), IDRows: l.rows, Plus: 1,
			Stop: l.net.Stop, Done: l.done.View(), Batch: l.batch,
		},
	)
}
