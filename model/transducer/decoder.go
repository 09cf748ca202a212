package transducer

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A DecoderConfig says how many items a decoder takes at once.
type DecoderConfig struct {
	Items  int // at least 1
	Frames int // frames of an item at most
	Math   pass.Math
	// Trace, if not nil, is called after each step with what it computed for all items, in
	// slices that the next step uses again, by name: "hidden" [Items][Hidden], the
	// predictor's output, "predictor" [Items][Joint], its projection, and "logits"
	// [Items][classes and durations].
	Trace func(name string, values []float32)
}

// A Decoder decodes the frames of some items in a session. Like the session, one
// goroutine at a time uses it; what it holds goes with the session.
type Decoder struct {
	head   *Head
	cfg    DecoderConfig
	ses    pass.Session
	frames pass.Buffer // [Items][Frames][joint]
	h, c   pass.Buffer // [Items][layers][hidden]

	rec     pass.Recording
	in      pass.Input   // token, whether it moves the state, frame: [3][Items]
	choices pass.Output  // class, place of the duration: [2][Items]
	traced  []traced     // what Trace is told of
	words   []uint32     // of in
	read    []uint32     // of choices
	zero    []float32    // of h and c
	next    []Choice     // result of Step
	binds   [1]pass.Bind // kept, so that a step allocates nothing
}

type traced struct {
	name   string
	out    pass.Output
	values []float32
}

// NewDecoder makes a decoder in a session of the device that the head was loaded on.
func (h *Head) NewDecoder(ctx context.Context, ses pass.Session, cfg DecoderConfig) (*Decoder, error) {
	if cfg.Items < 1 || cfg.Frames < 1 || cfg.Items > 1<<16 || cfg.Frames > 1<<24 {
		return nil, fmt.Errorf("transducer: decoder: want at least one item of at least one frame, given %d of %d: %w", cfg.Items, cfg.Frames, pass.ErrInvalid)
	}
	d := &Decoder{head: h, cfg: cfg, ses: ses}
	state := cfg.Items * h.shape.States() * h.shape.Hidden
	for _, b := range []struct {
		to *pass.Buffer
		n  int
	}{{&d.frames, cfg.Items * cfg.Frames * h.joint}, {&d.h, state}, {&d.c, state}} {
		var err error
		if *b.to, err = ses.Alloc(pass.F32, b.n); err != nil {
			return nil, fmt.Errorf("transducer: decoder: %w", err)
		}
	}
	d.words, d.read = make([]uint32, 3*cfg.Items), make([]uint32, 2*cfg.Items)
	d.zero, d.next = make([]float32, state), make([]Choice, cfg.Items)
	rec, err := ses.Record(ctx, pass.RecordOptions{Label: "transducer step", Math: cfg.Math}, d.record)
	if err != nil {
		return nil, fmt.Errorf("transducer: decoder: %w", err)
	}
	d.rec = rec
	for i := range d.traced {
		d.traced[i].values = make([]float32, d.traced[i].out.Len())
	}
	return d, nil
}

// record records a step.
func (d *Decoder) record(p pass.Pass) {
	h, n := d.head, d.cfg.Items
	hidden, scores := h.shape.Hidden, h.cfg.Classes+len(h.cfg.Durations)
	d.in = p.Input(pass.U32, 3*n)
	tokens, moves, frames := d.in.View(), d.in.At(n), d.in.At(2*n)
	embedded, y := p.Temp(pass.F32, n*hidden).View(), p.Temp(pass.F32, n*hidden).View()
	joint, active := p.Temp(pass.F32, n*h.joint).View(), p.Temp(pass.F32, n*h.joint).View()
	logits := p.Temp(pass.F32, n*scores).View()
	choices := p.Temp(pass.U32, 2*n)
	// The output of a step that doesn't move the state is that of the step that did.
	output := d.h.At((h.shape.States() - 1) * hidden).Rows(h.shape.States() * hidden)
	p.Do(
		pass.Embed{IDs: tokens, Table: h.embed, Out: embedded, Rows: n},
		pass.LSTM{
			X: embedded, W: h.lstm, Y: y, Batch: n, Time: 1, Lengths: pass.ItemsIn(moves),
			H0: d.h.View(), C0: d.c.View(), H: d.h.View(), C: d.c.View(),
		},
		pass.Copy{
			From: d.frames.View(), FromRow: pass.IndexEach(frames), FromRows: d.cfg.Frames,
			To: joint, Batch: n, Rows: 1, Cols: h.joint,
		},
		pass.Gemm{A: output, W: h.pred, C: joint, Rows: n, Epilogue: pass.Residual(1)},
		pass.Map{X: joint, Y: active, Rows: n, Cols: h.joint, Epilogue: pass.ReLU},
		pass.Gemm{A: active, W: h.out, C: logits, Rows: n},
		pass.Argmax{X: logits.Rows(scores), IDs: choices.View(), Rows: n, Cols: h.cfg.Classes},
	)
	if h.cfg.Durations == nil {
		d.choices = p.Output(choices.View(), n)
	} else {
		p.Do(pass.Argmax{X: logits.At(h.cfg.Classes).Rows(scores), IDs: choices.At(n), Rows: n, Cols: len(h.cfg.Durations)})
		d.choices = p.Output(choices.View(), 2*n)
	}
	if d.cfg.Trace != nil {
		trace := func(name string, v pass.View, n int) {
			d.traced = append(d.traced, traced{name: name, out: p.Output(v, n)})
		}
		top, predictor := p.Temp(pass.F32, n*hidden).View(), p.Temp(pass.F32, n*h.joint).View()
		p.Do(
			pass.Copy{From: output, To: top, Rows: n, Cols: hidden},
			pass.Gemm{A: output, W: h.pred, C: predictor, Rows: n},
		)
		trace("hidden", top, n*hidden)
		trace("predictor", predictor, n*h.joint)
		trace("logits", logits, n*scores)
	}
}

// Frames returns where the projected frames of the items lie, [Items][Frames][Joint], for
// [Head.Project]: an item has room for Frames, whatever its length.
func (d *Decoder) Frames() pass.View {
	return d.frames.View().Batch(d.cfg.Frames * d.head.joint)
}

// Reset begins anew: the state of all items is zero.
func (d *Decoder) Reset(ctx context.Context) error {
	for _, b := range []pass.Buffer{d.h, d.c} {
		if err := d.ses.Write(ctx, b.View(), d.zero); err != nil {
			return fmt.Errorf("transducer: %w", err)
		}
	}
	return nil
}

// An Input is what an item takes into a step.
type Input struct {
	Token int  // that the predictor is fed, or Start
	Feed  bool // whether it is; else the state stays as it is
	Frame int  // of the item, from 0 on
}

// Start is the token before the first.
const Start = -1

// A Choice is the best of what an item may do next.
type Choice struct {
	Token    int // class; the blank too
	Duration int // in frames; 0 without durations
}

// Step feeds tokens to the predictor and returns the best class for each item at its
// frame, and the best duration, which is chosen among the durations alone. The slice is
// used again by the next step. The lowest of equals is the best.
func (d *Decoder) Step(ctx context.Context, in []Input) ([]Choice, error) {
	h, n := d.head, d.cfg.Items
	if len(in) != n {
		return nil, fmt.Errorf("transducer: step: want an input for each of %d items, given %d: %w", n, len(in), pass.ErrInvalid)
	}
	for i, v := range in {
		if v.Token == Start {
			v.Token = h.start
		} else if v.Token < 0 || v.Token >= h.cfg.Classes {
			return nil, fmt.Errorf("transducer: step: item %d: want one of %d classes, given %d: %w", i, h.cfg.Classes, v.Token, pass.ErrInvalid)
		}
		if v.Frame < 0 || v.Frame >= d.cfg.Frames {
			return nil, fmt.Errorf("transducer: step: item %d: want one of %d frames, given %d: %w", i, d.cfg.Frames, v.Frame, pass.ErrInvalid)
		}
		d.words[i], d.words[n+i], d.words[2*n+i] = uint32(v.Token), 0, uint32(v.Frame)
		if v.Feed {
			d.words[n+i] = 1
		}
	}
	if err := d.step(ctx); err != nil {
		return nil, fmt.Errorf("transducer: step: %w", err)
	}
	for i := range d.next {
		d.next[i] = Choice{Token: int(d.read[i])}
		if h.cfg.Durations != nil {
			d.next[i].Duration = h.cfg.Durations[d.read[n+i]]
		}
	}
	return d.next, nil
}

func (d *Decoder) step(ctx context.Context) error {
	d.binds[0] = d.in.U32(d.words)
	run, err := d.rec.Run(ctx, d.binds[:]...)
	if err != nil {
		return err
	}
	defer run.Close()
	if err := run.ReadU32(d.choices, d.read[:d.choices.Len()]); err != nil {
		return err
	}
	for _, t := range d.traced {
		if err := run.ReadF32(t.out, t.values); err != nil {
			return err
		}
		d.cfg.Trace(t.name, t.values)
	}
	return nil
}
