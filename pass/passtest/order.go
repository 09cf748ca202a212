package passtest

import (
	"math"
	"slices"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// orderedAccess: Write and Read take their place among the runs.
func orderedAccess(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	a := newAdder(t, ses, one(t, dev), 40)
	long := newLabour(t, dev, ses, 100, nil)
	start := func(v float32) {
		_, err := long.rec.Start(background, long.bind())
		ok(t, err, "start")
		_, err = a.rec.Start(background, a.bind(v))
		ok(t, err, "start")
	}
	read := func(v pass.View, n int) []float32 {
		data := make([]float32, n)
		ok(t, ses.Read(background, v, data), "read")
		return data
	}
	same(t, "state from Alloc", read(a.state.View(), a.n), make([]float32, a.n))
	start(1)
	same(t, "read after a start", read(a.state.View(), a.n), a.sum(1))
	start(2)
	ok(t, ses.Write(background, a.state.View(), a.sum(50)), "write")
	start(3)
	same(t, "read after start, write, start", read(a.state.View(), a.n), a.sum(50, 3))

	// A part of the buffer: the rest stays.
	want := a.sum(50, 3)
	copy(want[5:], []float32{-1, -2, -3})
	data := []float32{-1, -2, -3}
	ok(t, ses.Write(background, a.state.At(5), data), "write of three")
	copy(data, []float32{9, 9, 9}) // the data were taken
	same(t, "after a write of three", read(a.state.View(), a.n), want)
	same(t, "read of four", read(a.state.At(4), 4), want[4:8])

	words, err := ses.Alloc(pass.U32, 3)
	ok(t, err, "alloc")
	ok(t, ses.Write(background, words.View(), []uint32{1, 0xFFFFFFFF, 0x7FC01234}), "write of words")
	got := make([]uint32, 3)
	ok(t, ses.Read(background, words.View(), got), "read of words")
	same(t, "words", got, []uint32{1, 0xFFFFFFFF, 0x7FC01234})
}

// badAccess: Alloc, Write and Read say what is wrong.
func badAccess(t testing.TB, s *suite) {
	_, ses := s.session(t)
	f, err := ses.Alloc(pass.F32, 4)
	ok(t, err, "alloc")
	for _, typ := range []pass.DType{0, pass.F16, pass.BF16, pass.Q8_0, 99} {
		_, err := ses.Alloc(typ, 4)
		fails(t, "alloc of "+typ.String(), err, pass.ErrInvalid, typ.String())
	}
	for _, n := range []int{-1, math.MinInt, math.MaxInt, math.MaxInt / 4} {
		_, err := ses.Alloc(pass.F32, n)
		fails(t, "alloc of a bad length", err, pass.ErrInvalid)
	}
	for _, row := range []struct {
		name string
		view pass.View
		data any
	}{
		{"wrong type", f.View(), make([]uint32, 4)},
		{"a type that is none", f.View(), make([]float64, 4)},
		{"nil", f.View(), nil},
		{"too much", f.View(), make([]float32, 5)},
		{"beyond the end", f.At(2), make([]float32, 3)},
		{"negative offset", f.At(-1), make([]float32, 1)},
		{"offset that overflows", f.At(math.MaxInt), make([]float32, 2)},
		{"no buffer", pass.View{}, make([]float32, 1)},
	} {
		fails(t, "write: "+row.name, ses.Write(background, row.view, row.data), pass.ErrInvalid, "write")
		fails(t, "read: "+row.name, ses.Read(background, row.view, row.data), pass.ErrInvalid, "read")
	}
	got := []float32{1, 1, 1, 1}
	ok(t, ses.Read(background, f.View(), got), "read")
	if !slices.Equal(got, make([]float32, 4)) {
		t.Errorf("after wrong writes: got %v, want zeros", got)
	}
}

// indexBeyondRows: a run whose index on the device leads beyond the rows fails, writes
// nothing outside, and leaves the session usable.
func indexBeyondRows(t testing.TB, s *suite) {
	_, ses := s.session(t)
	state, err := ses.Alloc(pass.F32, 12)
	ok(t, err, "alloc")
	var from, row pass.Input
	rec, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) {
		from, row = p.Input(pass.F32, 4), p.Input(pass.U32, 1)
		p.Do(pass.Copy{From: from.View(), To: state.At(2), Rows: 2, Cols: 2, ToRow: pass.IndexIn(row.View()), ToRows: 4})
	})
	ok(t, err, "record")
	data := from.F32([]float32{1, 2, 3, 4})
	for _, bad := range []uint32{3, 4, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE} {
		_, err := rec.Run(background, data, row.U32([]uint32{bad}))
		fails(t, "row beyond the rows", err, pass.ErrInvalid, "copy", "ToRow")
	}
	got := make([]float32, 12)
	ok(t, ses.Read(background, state.View(), got), "read")
	for i, v := range got {
		if v != 0 && (i < 2 || i >= 10) {
			t.Errorf("a row beyond the rows was written: %v", got)
			break
		}
	}
	ok(t, ses.Write(background, state.View(), make([]float32, 12)), "write")
	_, err = rec.Run(background, data, row.U32([]uint32{2}))
	ok(t, err, "run with the last row")
	ok(t, ses.Read(background, state.View(), got), "read")
	same(t, "last row", got, []float32{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0})
}
