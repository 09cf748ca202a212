package passtest

import (
	"math"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// misusedRules breaks the rules of single ops that no field alone can break.
func misusedRules(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	buffer := func(n int) pass.View {
		b, err := ses.Alloc(pass.F32, n)
		ok(t, err, "alloc")
		return b.View()
	}
	words, err := ses.Alloc(pass.U32, 64)
	ok(t, err, "alloc")
	load := func(w pass.Weights) pass.Param {
		p, err := dev.Load(background, w)
		ok(t, err, "load")
		return p
	}
	zeros := func(shape ...int) pass.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return pass.Float32s("zeros", make([]float32, n), shape...)
	}
	gemm := pass.Gemm{A: buffer(64), W: load(pass.LinearWeights{Parts: []pass.Tensor{zeros(8, 4)}}), C: buffer(64), Rows: 4}
	conv := pass.Conv1D{X: buffer(64), W: load(pass.ConvWeights{Weight: zeros(3, 2, 3)}), Y: buffer(64), Batch: 2, In: 6, PadLeft: 1, PadRight: 1}
	cell := pass.LSTMCell{Input: zeros(8, 3), Hidden: zeros(8, 2)}
	lstm := pass.LSTM{X: buffer(64), W: load(pass.LSTMWeights{Layers: [][]pass.LSTMCell{{cell}}}), Y: buffer(64), Batch: 2, Time: 3}
	point := pass.Map{X: buffer(64), Y: buffer(64), Rows: 4, Cols: 4}
	move := pass.Copy{From: buffer(64), To: buffer(64), Batch: 2, Rows: 2, Cols: 4}
	fill := pass.Fill{To: buffer(64), Rows: 2, Cols: 4}

	rows := []brokenRule{
		{"columns reversed", with(gemm, func(g *pass.Gemm) { g.Columns = pass.Span{From: 5, To: 3} }), "Columns"},
		{"columns beyond n", with(gemm, func(g *pass.Gemm) { g.Columns = pass.Span{From: 0, To: 9} }), "Columns"},
		{"columns before 0", with(gemm, func(g *pass.Gemm) { g.Columns = pass.Span{From: -1, To: 3} }), "Columns"},
		{"padding that is none", with(conv, func(c *pass.Conv1D) { c.Padding = 7 }), "Padding"},
		{"reflects more than there is", with(conv, func(c *pass.Conv1D) { c.Padding, c.PadRight = pass.PadReflect, 6 }), "PadRight"},
		{"reflects more than a length", with(conv, func(c *pass.Conv1D) { c.Padding, c.Lengths = pass.PadReflect, pass.Fixed(6, 1) }), "Lengths"},
		{"steps beyond the end", with(conv, func(c *pass.Conv1D) { c.Out = pass.Span{From: 2, To: 7} }), "Out"},
		{"padding that overflows", with(conv, func(c *pass.Conv1D) { c.PadLeft, c.PadRight = math.MaxInt/2, math.MaxInt/2 }), "Pad"},
		{"one length for two", with(conv, func(c *pass.Conv1D) { c.Lengths = pass.Fixed(6) }), "Lengths"},
		{"no lengths for two", with(conv, func(c *pass.Conv1D) { c.Lengths = pass.Fixed([]int{}...) }), "Lengths"},
		{"length over In", with(conv, func(c *pass.Conv1D) { c.Lengths = pass.Fixed(6, 7) }), "Lengths"},
		{"negative length", with(conv, func(c *pass.Conv1D) { c.Lengths = pass.Fixed(-1, 6) }), "Lengths"},
		{"lengths that are F32", with(conv, func(c *pass.Conv1D) { c.Lengths = pass.ItemsIn(buffer(2)) }), "Lengths"},
		{"lengths beyond the end", with(conv, func(c *pass.Conv1D) { c.Lengths = pass.ItemsIn(words.At(63)) }), "Lengths"},
		{"h without c", with(lstm, func(l *pass.LSTM) { l.H0 = buffer(8) }), "C0"},
		{"final c without h", with(lstm, func(l *pass.LSTM) { l.C = buffer(8) }), "H"},
		{"one buffer for h and c", with(lstm, func(l *pass.LSTM) { l.H = buffer(8); l.C = l.H.At(4) }), "H"},
		{"state of another offset in place", with(lstm, func(l *pass.LSTM) {
			l.H0, l.C0 = buffer(9), buffer(9)
			l.H, l.C = l.H0.At(1), l.C0.At(1)
		}), "H0"},
		{"h0 as c", with(lstm, func(l *pass.LSTM) { l.H0, l.C0 = buffer(8), buffer(8); l.H, l.C = l.C0, l.H0 }), "H"},
		{"too few states", with(lstm, func(l *pass.LSTM) { l.States = 1 }), "States"},
		{"row beyond the states", with(lstm, func(l *pass.LSTM) { l.States, l.StateRows = 3, pass.Fixed(0, 3) }), "StateRows"},
		{"row given twice", with(lstm, func(l *pass.LSTM) { l.States, l.StateRows = 3, pass.Fixed(2, 2) }), "StateRows"},
		{"length over Time", with(lstm, func(l *pass.LSTM) { l.Lengths = pass.Fixed(1, 4) }), "Lengths"},
		{"epilogue in place", with(point, func(m *pass.Map) { m.Epilogue = pass.Residual(1) }), "Epilogue"},
		{"row beyond the rows", with(move, func(m *pass.Copy) { m.FromRow, m.FromRows = pass.Const(2), 3 }), "FromRow"},
		{"negative row", with(move, func(m *pass.Copy) { m.ToRow = pass.Const(-1) }), "ToRow"},
		{"row that overflows", with(move, func(m *pass.Copy) { m.ToRow = pass.Const(math.MaxInt) }), "To"},
		{"index without rows", with(move, func(m *pass.Copy) { m.ToRow = pass.IndexIn(words.View()) }), "ToRows"},
		{"index with too few rows", with(move, func(m *pass.Copy) { m.ToRow, m.ToRows = pass.IndexIn(words.View()), 1 }), "ToRows"},
		{"index that is F32", with(move, func(m *pass.Copy) { m.FromRow, m.FromRows = pass.IndexIn(buffer(1)), 4 }), "FromRow"},
		{"indices beyond the end", with(move, func(m *pass.Copy) { m.FromRow, m.FromRows = pass.IndexEach(words.At(63)), 4 }), "FromRow"},
		{"words to floats", with(move, func(m *pass.Copy) { m.From = words.View() }), "To"},
		{"a word for floats", with(fill, func(f *pass.Fill) { f.Word = 1 }), "Word"},
		{"a value for words", with(fill, func(f *pass.Fill) { f.To, f.Value = words.View(), 1 }), "Value"},
	}
	v := &vocabulary{buffer: buffer, words: words, load: load, zeros: zeros}
	v.cache, err = ses.NewCache(pass.CacheConfig{Heads: 2, HeadDim: 4, Capacity: 5, Batch: 2})
	ok(t, err, "new cache")
	more, right := v.rules()
	for _, row := range append(rows, more...) {
		_, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) { p.Do(row.op) })
		fails(t, row.op.Name()+": "+row.name, err, pass.ErrInvalid, row.op.Name(), row.arg)
	}
	for _, op := range append(right, gemm, conv, lstm, point, move, fill) { // the ops that the rows change are right
		_, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
		ok(t, err, op.Name()+": right op")
	}
}

// A brokenRule is an op that is wrong, and what the error must name.
type brokenRule struct {
	name string
	op   pass.Op
	arg  string
}

// with returns a changed copy of an op.
func with[T pass.Op](op T, change func(*T)) pass.Op {
	change(&op)
	return op
}
