package cpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// softmax computes a [pass.Softmax] or a [pass.LogSoftmax].
type softmax struct {
	spread
	x, y  view
	log   bool
	share bool
}

func (p *program) softmax(s pass.Softmax, log bool, cost pass.Cost) kernel {
	return &softmax{newRows(s.Batch, s.Rows, s.Cols), p.view(s.X), p.view(s.Y), log, cost.FLOP > worthSharing}
}

func (s *softmax) variant() string   { return "rows" }
func (s *softmax) scratch(int) int   { return 0 }
func (s *softmax) run(t *team) error { return t.do(s.tasks, s.share, s) }

func (s *softmax) task(i, _ int) {
	row, end, _, _ := s.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/s.rows, r%s.rows
		x, y := s.x.row(b, r, s.cols), s.y.row(b, r, s.cols)
		if s.log {
			logSoftmax(y, x)
		} else {
			softmaxRow(y, x)
		}
	}
}

// largest returns the largest value of a row that is not NaN, −Inf if there is none.
func largest(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// softmaxRow computes y = exp(x)/Σexp(x).
func softmaxRow(y, x []float32) {
	y = y[:len(x)]
	m := float64(largest(x))
	if math.IsInf(m, -1) {
		// Nothing but −Inf and NaN, which their sum tells apart.
		v := float32(0)
		if s := sum(x); s != s {
			v = float32(s)
		}
		for i := range y {
			y[i] = v
		}
		return
	}
	total := 0.0
	for i, v := range x {
		e := exp(float64(v) - m)
		total += e
		y[i] = float32(e)
	}
	scale := 1 / total
	for i, v := range y {
		y[i] = float32(float64(v) * scale)
	}
}

// logSoftmax computes y = x − log Σexp(x).
func logSoftmax(y, x []float32) {
	y = y[:len(x)]
	m := float64(largest(x))
	if math.IsInf(m, -1) {
		s := float32(sum(x)) // −Inf or NaN
		for i := range y {
			y[i] = s
		}
		return
	}
	total := 0.0
	for _, v := range x {
		total += exp(float64(v) - m)
	}
	log := math.Log(total)
	for i, v := range x {
		y[i] = float32(float64(v) - m - log) // m + log would lose log for a large m
	}
}

// argmax computes a [pass.Argmax].
type argmax struct {
	spread
	x, ids view
	toRow  items
	idRows int
	share  bool
}

func (p *program) argmax(a pass.Argmax, cost pass.Cost) kernel {
	return &argmax{
		spread: newRows(a.Batch, a.Rows, a.Cols),
		x:      p.view(a.X), ids: p.view(a.IDs),
		toRow: p.index("argmax", "ToRow", a.ToRow, a.Batch), idRows: a.IDRows,
		share: cost.FLOP > worthSharing,
	}
}

func (a *argmax) variant() string { return "rows" }
func (a *argmax) scratch(int) int { return 0 }

func (a *argmax) run(t *team) error {
	if a.tasks == 0 {
		return nil
	}
	if err := a.toRow.read(a.idRows - a.rows); err != nil {
		return err
	}
	return t.do(a.tasks, a.share, a)
}

func (a *argmax) task(i, _ int) {
	row, end, _, _ := a.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/a.rows, r%a.rows
		best, at := float32(math.Inf(-1)), 0
		for i, v := range a.x.row(b, r, a.cols) {
			if v > best {
				best, at = v, i
			}
		}
		a.ids.words(b, a.toRow.of(b)+r, 1)[0] = uint32(at)
	}
}
