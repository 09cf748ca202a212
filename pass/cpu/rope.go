package cpu

import (
	"context"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// rope is a loaded [pass.RopeWeights]: for each position rot/2 cosines, then as many
// sines.
type rope struct {
	positions, rot int
	table          []float32
	ledger         *ledger
}

// Free implements backend.Memory.
func (w *rope) Free() {
	w.ledger.release(4 * int64(len(w.table)))
	w.table = nil
}

func loadRope(ctx context.Context, l *ledger, w pass.RopeWeights) (backend.Memory, error) {
	if err := l.reserve(w.Positions*w.Rot, 4); err != nil {
		return nil, err
	}
	m := &rope{w.Positions, w.Rot, make([]float32, w.Positions*w.Rot), l}
	for p := range w.Positions {
		if err := ctx.Err(); err != nil {
			m.Free()
			return nil, err
		}
		w.Row(m.table[p*w.Rot:(p+1)*w.Rot], p)
	}
	return m, nil
}

// turn turns the heads of a row that stands at a position.
func (w *rope) turn(row []float32, head, position int, style pass.RopeStyle) {
	half := w.rot / 2
	cos := w.table[position*w.rot:][:half]
	sin := w.table[position*w.rot+half:][:half]
	second, step := half, 1 // of a pair, and from pair to pair
	if style == pass.RopeInterleaved {
		second, step = 1, 2
	}
	for ; len(row) >= head; row = row[head:] {
		for i, c := range cos {
			at := i * step
			a, b, c, s := float64(row[at]), float64(row[at+second]), float64(c), float64(sin[i])
			row[at], row[at+second] = float32(a*c-b*s), float32(b*c+a*s)
		}
	}
}

// rotation computes a [pass.Rope].
type rotation struct {
	spread
	x     view
	table *rope
	head  int
	pos   items
	style pass.RopeStyle
	share bool
}

func (p *program) rotation(r pass.Rope, cost pass.Cost) kernel {
	return &rotation{
		spread: newRows(r.Batch, r.Rows, r.Heads*r.HeadDim),
		x:      p.view(r.X),
		table:  p.plan.Param(r.Table).(*rope),
		head:   r.HeadDim,
		pos:    p.index("rope", "Pos", r.Pos, r.Batch),
		style:  r.Style,
		share:  cost.FLOP > worthSharing,
	}
}

func (r *rotation) variant() string { return "rows, " + r.style.String() }
func (r *rotation) scratch(int) int { return 0 }

func (r *rotation) run(t *team) error {
	if r.tasks == 0 {
		return nil
	}
	if err := r.pos.read(r.table.positions - r.rows); err != nil {
		return err
	}
	return t.do(r.tasks, r.share, r)
}

func (r *rotation) task(i, _ int) {
	row, end, _, _ := r.spread.task(i)
	for n := row; n < end; n++ {
		b, t := n/r.rows, n%r.rows
		r.table.turn(r.x.row(b, t, r.cols), r.head, r.pos.of(b)+t, r.style)
	}
}
