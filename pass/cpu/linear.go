package cpu

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// linear is a loaded [pass.LinearWeights].
type linear struct {
	*matrix
	dual   []float32
	ledger *ledger
}

// Free implements backend.Memory.
func (w *linear) Free() {
	w.release(w.ledger)
	w.matrix = nil
}

func loadLinear(ctx context.Context, l *ledger, w pass.LinearWeights, s pass.LinearShape) (backend.Memory, error) {
	m, err := newMatrix(l, s.N, s.K, w.Bias)
	if err != nil {
		return nil, err
	}
	row := 0
	for _, t := range w.Parts {
		if err := m.fill(ctx, t, row); err != nil {
			m.release(l)
			return nil, err
		}
		row += t.Shape[0]
	}
	return &linear{m, append([]float32(nil), w.Dual...), l}, nil
}

// gemm computes a [pass.Gemm]. A task is some panels for some rows.
type gemm struct {
	a, c     view
	w        *linear
	rows     int // of an item
	total    int // of all items
	columns  pass.Span
	epilogue epilogue
	panels   []int // with a column that is wanted
	grid     grid
	share    bool
}

// A grid cuts rows × panels into tasks.
type grid struct {
	rows, panels int // of a task
	across       int // tasks side by side
	tasks        int
}

// maxRows is how many rows a task has at most.
const maxRows = 64

// newGrid makes tasks of about the work that is worth a worker's while: rows that
// together fit a near cache, so that panels pass by them, and as many panels as that
// takes.
func newGrid(rows, panels, k int) grid {
	const (
		cache = 32 << 10  // floats
		work  = 128 << 10 // products
	)
	g := grid{rows: max(1, min(rows, max(cache/k, 4), maxRows))}
	g.panels = max(1, min(panels, work/(g.rows*k*lanes)))
	g.across = (panels + g.panels - 1) / g.panels
	g.tasks = (rows + g.rows - 1) / g.rows * g.across
	return g
}

// task returns the rows and panels of task i.
func (g grid) task(i, rows, panels int) (row, rowEnd, panel, panelEnd int) {
	row, panel = i/g.across*g.rows, i%g.across*g.panels
	return row, min(row+g.rows, rows), panel, min(panel+g.panels, panels)
}

func (p *program) gemm(g pass.Gemm, cost pass.Cost) kernel {
	k := &gemm{
		a: p.view(g.A), c: p.view(g.C),
		w:    p.plan.Param(g.W).(*linear),
		rows: g.Rows, total: g.Batch * g.Rows,
		columns:  g.Columns,
		epilogue: newEpilogue(g.Epilogue),
		share:    cost.FLOP > worthSharing,
	}
	for panel := range panelsOf(k.w.n) {
		if k.main(panel).Len() > 0 || k.dual(panel).Len() > 0 {
			k.panels = append(k.panels, panel)
		}
	}
	k.grid = newGrid(k.total, len(k.panels), k.w.k)
	return k
}

// main returns the outputs of a panel that are wanted with the epilogue, dual those
// wanted with the second bias.
func (g *gemm) main(panel int) pass.Span {
	return within(panel, g.columns.From, min(g.columns.To, g.w.n))
}

func (g *gemm) dual(panel int) pass.Span {
	return within(panel, max(g.columns.From-g.w.n, 0), g.columns.To-g.w.n)
}

// within returns which outputs of a panel lie in [from, to).
func within(panel, from, to int) pass.Span {
	s := pass.Span{From: max(panel*lanes, from), To: min(panel*lanes+lanes, to)}
	s.To = max(s.To, s.From)
	return s
}

func (g *gemm) variant() string {
	if g.total < 4 {
		return "panels of 8, few rows"
	}
	return "panels of 8"
}

func (g *gemm) scratch(int) int { return 0 }

func (g *gemm) run(t *team) error { return t.do(g.grid.tasks, g.share, g) }

func (g *gemm) task(i, _ int) {
	row, rowEnd, panel, panelEnd := g.grid.task(i, g.total, len(g.panels))
	w, columns := g.w, g.columns.Len()
	var acc [maxRows][lanes]float64
	for _, p := range g.panels[panel:panelEnd] {
		weights := w.panel(p)
		acc := acc[:rowEnd-row]
		clear(acc)
		// Block by block, so that a block of the panel is read from the nearest cache
		// by all rows but the first. The sums are those of dot8.
		for from := 0; from < w.k; from += block {
			to := min(from+block, w.k)
			b, r := row/g.rows, row%g.rows
			for i := range acc {
				dotBlock(&acc[i], g.a.row(b, r, to)[from:], weights[from:to])
				if r++; r == g.rows {
					b, r = b+1, 0
				}
			}
		}
		main, dual := g.main(p), g.dual(p)
		b, r := row/g.rows, row%g.rows
		for i := range acc {
			c := g.c.row(b, r, columns)
			if s := main; s.Len() > 0 {
				g.epilogue.store(c[s.From-g.columns.From:s.To-g.columns.From], acc[i][s.From-p*lanes:], w.bias[s.From:s.To])
			}
			if s := dual; s.Len() > 0 {
				from := w.n - g.columns.From
				epilogue{}.store(c[from+s.From:from+s.To], acc[i][s.From-p*lanes:], w.dual[s.From:s.To])
			}
			if r++; r == g.rows {
				b, r = b+1, 0
			}
		}
	}
}

// embed computes a [pass.Embed]: it takes rows out of the panels of a matrix.
type embed struct {
	spread
	ids, out         view
	table, positions *linear // positions may be nil
	idRow, pos       items
	idRows           int
	share            bool
}

func (p *program) embed(e pass.Embed, cost pass.Cost) kernel {
	k := &embed{
		ids: p.view(e.IDs), out: p.view(e.Out),
		table:  p.plan.Param(e.Table).(*linear),
		idRow:  p.index("embed", "IDRow", e.IDRow, e.Batch),
		idRows: e.IDRows,
	}
	k.spread = newSpread(e.Batch, e.Rows, k.table.k)
	if !e.Positions.IsZero() {
		k.positions = p.plan.Param(e.Positions).(*linear)
		k.pos = p.index("embed", "Pos", e.Pos, e.Batch)
	}
	k.share = cost.FLOP+cost.Bytes/2 > worthSharing
	return k
}

func (e *embed) variant() string { return "rows of panels" }
func (e *embed) scratch(int) int { return 0 }

func (e *embed) run(t *team) error {
	if e.tasks == 0 {
		return nil
	}
	if err := e.idRow.read(e.idRows - e.rows); err != nil {
		return err
	}
	if e.positions != nil {
		if err := e.pos.read(e.positions.n - e.rows); err != nil {
			return err
		}
	}
	if err := t.do(e.tasks, e.share, e); err != nil {
		return err
	}
	for b := range e.batch {
		for r := range e.rows {
			if id := e.id(b, r); uint64(id) >= uint64(e.table.n) {
				return fmt.Errorf("embed: IDs: item %d, row %d: want less than %d, given %d: %w", b, r, e.table.n, id, pass.ErrInvalid)
			}
		}
	}
	return nil
}

func (e *embed) id(b, r int) uint32 { return e.ids.words(b, e.idRow.of(b)+r, 1)[0] }

func (e *embed) task(i, _ int) {
	row, end, from, to := e.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/e.rows, r%e.rows
		out := e.out.row(b, r, to)[from:]
		id := 0 // for a bad one, too: the run fails
		if given := e.id(b, r); uint64(given) < uint64(e.table.n) {
			id = int(given)
		}
		w, lane := e.table.panel(id / lanes)[from:to], id%lanes
		for i := range w {
			out[i] = w[i][lane]
		}
		if e.positions == nil {
			continue
		}
		p := e.pos.of(b) + r
		w, lane = e.positions.panel(p / lanes)[from:to], p%lanes
		for i := range w {
			out[i] += w[i][lane]
		}
	}
}
