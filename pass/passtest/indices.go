package passtest

import (
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// indicesBeyond: a run whose index on the device, or what it adds, leads beyond what
// there is fails and names the op; so does one whose ids do. The next run is fine.
func indicesBeyond(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	load := func(w pass.Weights) pass.Param {
		p, err := dev.Load(background, w)
		ok(t, err, "load")
		return p
	}
	table := load(pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("table", make([]float32, 20), 5, 4)}})
	rope := load(pass.RopeWeights{Positions: 5, Rot: 4, Base: 10})
	norm := load(pass.NormWeights{Gain: make([]float32, 4)})
	h, err := ses.NewCache(pass.CacheConfig{Heads: 1, HeadDim: 4, Capacity: 5})
	ok(t, err, "new cache")
	index, err := ses.Alloc(pass.U32, 1)
	ok(t, err, "alloc")
	ids, err := ses.Alloc(pass.U32, 6)
	ok(t, err, "alloc")
	floats := func() pass.View {
		b, err := ses.Alloc(pass.F32, 16)
		ok(t, err, "alloc")
		return b.View()
	}
	x, y, z := floats(), floats(), floats()
	at := pass.IndexIn(index.View())
	for _, row := range []struct {
		op   pass.Op
		arg  string
		last uint32 // what the index may be at most
	}{
		{pass.Rope{X: x, Table: rope, Rows: 2, Heads: 1, HeadDim: 4, Pos: at}, "Pos", 3},
		{pass.Rope{X: x, Table: rope, Rows: 2, Heads: 1, HeadDim: 4, Pos: at.Plus(2)}, "Pos", 1},
		{pass.LayerNorm{X: x, W: norm, Y: y, Rows: 2, Cols: 4, Rotated: z, Table: rope, Heads: 1, Pos: at.Plus(1)}, "Pos", 2},
		{pass.Embed{IDs: ids.View(), Table: table, Out: y, Rows: 2, IDRow: at, IDRows: 6}, "IDRow", 4},
		{pass.Embed{IDs: ids.View(), Table: table, Positions: table, Out: y, Rows: 2, Pos: at}, "Pos", 3},
		{pass.Argmax{X: x, IDs: ids.View(), Rows: 2, Cols: 4, ToRow: at.Plus(1), IDRows: 6}, "ToRow", 3},
		{pass.Append{K: x, V: x, Cache: h, Rows: 2, At: at.Plus(1)}, "At", 2},
		{pass.Attend{Q: x, O: y, Cache: h, Queries: 1, Keys: at.Plus(1)}, "Keys", 4},
		{pass.Copy{From: x, To: y, Rows: 1, Cols: 4, FromRow: at.Plus(2), FromRows: 4}, "FromRow", 1},
	} {
		rec, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) { p.Do(row.op) })
		ok(t, err, "record "+row.op.Name())
		set := func(n uint32) error {
			ok(t, ses.Write(background, index.View(), []uint32{n}), "write")
			_, err := rec.Run(background)
			return err
		}
		for _, bad := range []uint32{row.last + 1, 0x7FFFFFFF, 0xFFFFFFFF} {
			fails(t, row.op.Name()+": index beyond the end", set(bad), pass.ErrInvalid, row.op.Name(), row.arg)
		}
		ok(t, set(row.last), row.op.Name()+": the last index")
		ok(t, rec.Close(), "close")
	}

	bad := []uint32{0, 5, 0xFFFFFFFF, 4, 0, 0}
	ok(t, ses.Write(background, ids.View(), bad), "write")
	rec, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) {
		p.Do(pass.Embed{IDs: ids.View(), Table: table, Out: y, Rows: 3, IDRow: at, IDRows: 6})
	})
	ok(t, err, "record")
	for from, wrong := range []bool{true, true, true, false} {
		ok(t, ses.Write(background, index.View(), []uint32{uint32(from)}), "write")
		_, err := rec.Run(background)
		if !wrong {
			ok(t, err, "ids within the table")
			continue
		}
		fails(t, "id beyond the table", err, pass.ErrInvalid, "embed", "IDs")
	}

	// A counter may be led beyond the ids only by an op that then says so.
	rec, err = ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) {
		p.Do(pass.Advance{Index: index.View(), By: 1, IDs: ids.View(), IDRows: 6, Plus: 2})
	})
	ok(t, err, "record")
	ok(t, ses.Write(background, index.View(), []uint32{4}), "write")
	_, err = rec.Run(background)
	fails(t, "counter beyond the ids", err, pass.ErrInvalid, "advance", "Index")
	ok(t, ses.Write(background, index.View(), []uint32{3}), "write")
	_, err = rec.Run(background)
	ok(t, err, "counter at the last id")
}
