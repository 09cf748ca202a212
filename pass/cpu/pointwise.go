package cpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// spread cuts batch × rows × cols elements into tasks of whole rows, or parts of rows
// that are long.
type spread struct {
	batch, rows, cols int
	perRow            int // tasks that a row takes
	perTask           int // rows that a task takes
	tasks             int
}

func newSpread(batch, rows, cols int) spread {
	const size = 8 << 10 // elements of a task
	s := spread{batch: batch, rows: rows, cols: cols, perRow: 1, perTask: 1}
	if cols == 0 || rows == 0 {
		return s
	}
	if cols > size {
		s.perRow = (cols + size - 1) / size
	} else {
		s.perTask = size / cols
	}
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
		share: 4*cost.FLOP > worthSharing,
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
