package cpu

import (
	"fmt"
	"math"
	"slices"

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
	if m.tasks == 0 {
		return nil
	}
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

// permutation computes a [pass.Permute]. A task is a tile of the output: where the
// columns of the input are rows there, a tile uses all of the cache lines that it reads.
type permutation struct {
	spread
	x, y    view
	inner   int    // dimension 2 of the output
	strides [4]int // of the input, in the order of the output
}

func (p *program) permutation(v pass.Permute) kernel {
	out := v.Out()
	k := &permutation{
		spread: newTiles(out[0], out[1]*out[2], out[3], 32, taskSize/32),
		x:      p.view(v.X), y: p.view(v.Y),
		inner: out[2],
	}
	strides := [4]int{v.X.BatchStride, v.Dims[2] * v.X.RowStride, v.X.RowStride, 1}
	for i, axis := range v.Order {
		k.strides[i] = strides[axis]
	}
	return k
}

func (p *permutation) variant() string   { return "tiles" }
func (p *permutation) scratch(int) int   { return 0 }
func (p *permutation) run(t *team) error { return t.do(p.tasks, p.tasks > worthSpreading, p) }

func (p *permutation) task(i, _ int) {
	row, end, from, to := p.spread.task(i)
	step := p.strides[3]
	for r := row; r < end; r++ {
		b, r := r/p.rows, r%p.rows
		at := p.x.at + b*p.strides[0] + r/p.inner*p.strides[1] + r%p.inner*p.strides[2] + from*step
		y := p.y.words(b, r, to)[from:]
		x := p.x.m.words[at : at+(len(y)-1)*step+1]
		if step == 1 {
			copy(y, x)
			continue
		}
		for i := range y {
			y[i] = x[i*step]
		}
	}
}

// advance computes a [pass.Advance].
type advance struct {
	op               pass.Advance
	index, ids, done view
}

func (p *program) advance(a pass.Advance) kernel {
	return &advance{a, p.view(a.Index), p.view(a.IDs), p.view(a.Done)}
}

func (a *advance) variant() string { return "items" }
func (a *advance) scratch(int) int { return 0 }

func (a *advance) run(*team) error {
	for b := range a.op.Batch {
		index := &a.index.words(0, b, 1)[0]
		if a.done.given() && a.done.words(0, b, 1)[0] != 0 {
			continue
		}
		if a.ids.given() {
			row := int64(*index) + int64(a.op.Plus)
			if row >= int64(a.op.IDRows) {
				return fmt.Errorf("advance: Index: item %d: want less than %d with Plus, given %d: %w", b, a.op.IDRows, row, pass.ErrInvalid)
			}
			if slices.Contains(a.op.Stop, a.ids.words(b, int(row), 1)[0]) {
				a.done.words(0, b, 1)[0] = 1
				continue
			}
		}
		next := int64(*index) + int64(a.op.By)
		if next > math.MaxUint32 {
			return fmt.Errorf("advance: Index: item %d: want at most %d, given %d: %w", b, uint32(math.MaxUint32), next, pass.ErrInvalid)
		}
		*index = uint32(next)
	}
	return nil
}
