package cpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// spread cuts batch × rows × cols elements into tasks: tiles of rows or of parts of
// rows.
type spread struct {
	batch, rows, cols int
	perRow            int // tasks that a row takes
	perTask           int // rows that a task takes
	tasks             int
}

// taskSize is how many elements a task has, about.
const taskSize = 8 << 10

func newSpread(batch, rows, cols int) spread {
	return newTiles(batch, rows, cols, max(taskSize/max(cols, 1), 1), taskSize)
}

// newRows is newSpread for rows that are not cut.
func newRows(batch, rows, cols int) spread {
	return newTiles(batch, rows, cols, max(taskSize/max(cols, 1), 1), max(cols, 1))
}

// newTiles makes tasks of the given number of rows, and of at most that many columns.
func newTiles(batch, rows, cols, perTask, perPart int) spread {
	s := spread{batch: batch, rows: rows, cols: cols, perTask: perTask, perRow: (cols + perPart - 1) / perPart}
	s.tasks = (batch*rows + s.perTask - 1) / s.perTask * s.perRow
	return s
}

// task returns the rows, counted over all items, and the columns of task i.
func (s spread) task(i int) (row, rowEnd, from, to int) {
	row = i / s.perRow * s.perTask
	part := i % s.perRow
	return row, min(row+s.perTask, s.batch*s.rows), part * s.cols / s.perRow, (part + 1) * s.cols / s.perRow
}

// mapping computes a [pass.Map].
type mapping struct {
	spread
	x, y     view
	epilogue epilogue
	share    bool
}

func (p *program) mapping(m pass.Map, cost pass.Cost) kernel {
	return &mapping{
		spread: newSpread(m.Batch, m.Rows, m.Cols),
		x:      p.view(m.X), y: p.view(m.Y),
		epilogue: newEpilogue(m.Epilogue),
		share:    cost.FLOP+cost.Bytes/2 > worthSharing,
	}
}

func (m *mapping) variant() string   { return "rows" }
func (m *mapping) scratch(int) int   { return 0 }
func (m *mapping) run(t *team) error { return t.do(m.tasks, m.share, m) }

func (m *mapping) task(i, _ int) {
	row, end, from, to := m.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/m.rows, r%m.rows
		m.epilogue.apply(m.y.row(b, r, to)[from:], m.x.row(b, r, to)[from:])
	}
}

// magnitude computes a [pass.Magnitude], in float64 since squares of float32 always
// fit there.
type magnitude struct {
	spread
	x, y  view
	share bool
}

func (p *program) magnitude(m pass.Magnitude, cost pass.Cost) kernel {
	return &magnitude{
		spread: newSpread(m.Batch, m.Rows, m.Cols),
		x:      p.view(m.X), y: p.view(m.Y),
		share: cost.FLOP > worthSharing,
	}
}

func (m *magnitude) variant() string   { return "rows" }
func (m *magnitude) scratch(int) int   { return 0 }
func (m *magnitude) run(t *team) error { return t.do(m.tasks, m.share, m) }

func (m *magnitude) task(i, _ int) {
	row, end, from, to := m.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/m.rows, r%m.rows
		x := m.x.row(b, r, 2*m.cols)
		re, im, y := x[from:to], x[m.cols+from:m.cols+to], m.y.row(b, r, to)[from:]
		re, im = re[:len(y)], im[:len(y)]
		for i := range y {
			u, v := float64(re[i]), float64(im[i])
			y[i] = float32(math.Sqrt(u*u + v*v))
		}
	}
}

// adding computes a [pass.Add].
type adding struct {
	spread
	a, b, y             view
	overBatch, overRows bool
	share               bool
}

func (p *program) adding(a pass.Add, cost pass.Cost) kernel {
	return &adding{
		spread: newSpread(a.Batch, a.Rows, a.Cols),
		a:      p.view(a.A), b: p.view(a.B), y: p.view(a.Y),
		overBatch: a.OverBatch, overRows: a.OverRows,
		share: cost.FLOP+cost.Bytes/2 > worthSharing,
	}
}

func (a *adding) variant() string   { return "rows" }
func (a *adding) scratch(int) int   { return 0 }
func (a *adding) run(t *team) error { return t.do(a.tasks, a.share, a) }

func (a *adding) task(i, _ int) {
	row, end, from, to := a.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/a.rows, r%a.rows
		y, u := a.y.row(b, r, to)[from:], a.a.row(b, r, to)[from:]
		if a.overBatch {
			b = 0
		}
		if a.overRows {
			r = 0
		}
		v := a.b.row(b, r, to)[from:]
		u, v = u[:len(y)], v[:len(y)]
		for i := range y {
			y[i] = u[i] + v[i]
		}
	}
}

// scaling computes a [pass.Scale].
type scaling struct {
	spread
	x, y   view
	factor float32
	share  bool
}

func (p *program) scaling(s pass.Scale, cost pass.Cost) kernel {
	return &scaling{newSpread(s.Batch, s.Rows, s.Cols), p.view(s.X), p.view(s.Y), s.Factor, cost.FLOP+cost.Bytes/2 > worthSharing}
}

func (s *scaling) variant() string   { return "rows" }
func (s *scaling) scratch(int) int   { return 0 }
func (s *scaling) run(t *team) error { return t.do(s.tasks, s.share, s) }

func (s *scaling) task(i, _ int) {
	row, end, from, to := s.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/s.rows, r%s.rows
		y := s.y.row(b, r, to)[from:]
		for i, v := range s.x.row(b, r, to)[from:] {
			y[i] = s.factor * v
		}
	}
}

// gating computes a [pass.GLU] or a [pass.SwiGLU], in float64 up to the product, since
// a small sigmoid may meet a large factor.
type gating struct {
	spread
	x, y      view
	swish     bool // SwiGLU
	gateFirst bool
	share     bool
}

func (p *program) gating(s pass.SwiGLU, swish bool, cost pass.Cost) kernel {
	return &gating{newSpread(s.Batch, s.Rows, s.Cols), p.view(s.X), p.view(s.Y), swish, s.GateFirst, cost.FLOP > worthSharing}
}

func (g *gating) variant() string   { return "rows" }
func (g *gating) scratch(int) int   { return 0 }
func (g *gating) run(t *team) error { return t.do(g.tasks, g.share, g) }

func (g *gating) task(i, _ int) {
	row, end, from, to := g.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/g.rows, r%g.rows
		row := g.x.row(b, r, 2*g.cols)
		x, gate, y := row[from:to], row[g.cols+from:g.cols+to], g.y.row(b, r, to)[from:]
		if g.gateFirst {
			x, gate = gate, x
		}
		x, gate = x[:len(y)], gate[:len(y)]
		if g.swish {
			for i, v := range gate {
				y[i] = float32(swish(float64(v)) * float64(x[i]))
			}
		} else {
			for i, v := range gate {
				y[i] = float32(float64(x[i]) / (1 + exp(-float64(v))))
			}
		}
	}
}
