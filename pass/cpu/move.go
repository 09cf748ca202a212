package cpu

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// copying computes a [pass.Copy].
type copying struct {
	spread
	from, to         view
	fromRow, toRow   items
	fromRows, toRows int
}

func (p *program) copying(m pass.Copy) kernel {
	return &copying{
		spread: newSpread(m.Batch, m.Rows, m.Cols),
		from:   p.view(m.From), to: p.view(m.To),
		fromRow: p.index("copy", "FromRow", m.FromRow, m.Batch), toRow: p.index("copy", "ToRow", m.ToRow, m.Batch),
		fromRows: m.FromRows, toRows: m.ToRows,
	}
}

func (m *copying) variant() string { return "rows" }
func (m *copying) scratch(int) int { return 0 }

func (m *copying) run(t *team) error {
	if err := m.fromRow.read(m.fromRows - m.rows); err != nil {
		return fmt.Errorf("%d rows of %d: %w", m.rows, m.fromRows, err)
	}
	if err := m.toRow.read(m.toRows - m.rows); err != nil {
		return fmt.Errorf("%d rows of %d: %w", m.rows, m.toRows, err)
	}
	return t.do(m.tasks, m.tasks > worthSpreading, m)
}

// worthSpreading is how many tasks of a spread take long enough, when they only move
// elements.
const worthSpreading = 32

func (m *copying) task(i, _ int) {
	row, end, from, to := m.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/m.rows, r%m.rows
		copy(m.to.words(b, m.toRow.of(b)+r, to)[from:], m.from.words(b, m.fromRow.of(b)+r, to)[from:])
	}
}

// fill computes a [pass.Fill].
type fill struct {
	spread
	to   view
	word uint32
}

func (p *program) fill(f pass.Fill) kernel {
	word := f.Word
	if f.To.Buffer.Type() == pass.F32 {
		word = math.Float32bits(f.Value)
	}
	return &fill{newSpread(f.Batch, f.Rows, f.Cols), p.view(f.To), word}
}

func (f *fill) variant() string   { return "rows" }
func (f *fill) scratch(int) int   { return 0 }
func (f *fill) run(t *team) error { return t.do(f.tasks, f.tasks > worthSpreading, f) }

func (f *fill) task(i, _ int) {
	row, end, from, to := f.spread.task(i)
	for r := row; r < end; r++ {
		v := f.to.words(r/f.rows, r%f.rows, to)[from:]
		for i := range v {
			v[i] = f.word
		}
	}
}
