package passtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// The decoder of loops: one layer of attention over a cache, for two items.
const (
	loopItems, loopWidth, loopHeads = 2, 24, 3
	loopClasses, loopSteps          = 40, 12
)

// A decoder holds a loop's weights, by name, and their handles.
type decoder struct {
	weights map[string]pass.Weights
	params  map[string]pass.Param
}

func newDecoder(t testing.TB, dev pass.Device) *decoder {
	t.Helper()
	d := &decoder{weights: map[string]pass.Weights{}, params: map[string]pass.Param{}}
	for name, shape := range map[string][2]int{"table": {loopClasses, loopWidth}, "positions": {loopSteps + 1, loopWidth}, "qkv": {3 * loopWidth, loopWidth}, "out": {loopClasses, loopWidth}} {
		values := cases.Recipe("loop."+name, 1, shape[0]*shape[1], 1, 0)
		d.weights[name] = pass.LinearWeights{Name: name, Parts: []pass.Tensor{pass.Float32s(name, values, shape[0], shape[1])}}
		var err error
		d.params[name], err = dev.Load(background, d.weights[name])
		ok(t, err, "load "+name)
	}
	return d
}

// simulate returns the ids that package truth chooses: [item][step], the first given.
func (d *decoder) simulate(t testing.TB, first []uint32) [][]uint32 {
	t.Helper()
	g := pass.CacheConfig{Heads: loopHeads, HeadDim: loopWidth / loopHeads, Capacity: loopSteps, Batch: 1}
	var all [][]uint32
	for _, id := range first {
		ids := []uint32{id}
		k := make([]float32, loopSteps*loopWidth)
		v := make([]float32, loopSteps*loopWidth)
		for i := range loopSteps {
			one := func(c cases.Case, params ...string) []float32 {
				c.Outputs = cases.DefaultOutputs(c.Op)
				for j := 0; j < len(params); j += 2 {
					c.Params = append(c.Params, cases.Param{Field: params[j], Weights: d.weights[params[j+1]]})
				}
				out, err := c.Truth()
				ok(t, err, "truth")
				return out[0].Float32s()
			}
			x := one(cases.Case{Op: pass.Embed{Rows: 1, Pos: pass.Const(i)}, Inputs: []cases.Tensor{cases.U32("IDs", ids[i:], 1, 1, 1)}}, "Table", "table", "Positions", "positions")
			qkv := one(cases.Case{Op: pass.Gemm{Rows: 1}, Inputs: []cases.Tensor{cases.F32("A", x, 1, 1, loopWidth)}}, "W", "qkv")
			copy(k[i*loopWidth:], qkv[loopWidth:2*loopWidth])
			copy(v[i*loopWidth:], qkv[2*loopWidth:])
			o := one(cases.Case{Op: pass.Attend{Queries: 1, Keys: pass.Const(i + 1)}, Caches: []cases.Cache{{Field: "Cache", Config: g, K: k, V: v}},
				Inputs: []cases.Tensor{cases.F32("Q", qkv[:loopWidth], 1, 1, loopWidth)}})
			logits := one(cases.Case{Op: pass.Gemm{Rows: 1}, Inputs: []cases.Tensor{cases.F32("A", o, 1, 1, loopWidth)}}, "W", "out")
			best := 0
			for j, v := range logits {
				if v > logits[best] {
					best = j
				}
			}
			ids = append(ids, uint32(best))
		}
		all = append(all, ids)
	}
	return all
}

// step records one step: everything that changes from one to the next is an index on the
// device.
func (d *decoder) step(p pass.Pass, h pass.Cache, index, ids, done pass.Buffer, stop uint32) {
	at := pass.IndexEach(index.View())
	x, qkv := p.Temp(pass.F32, loopItems*loopWidth), p.Temp(pass.F32, loopItems*3*loopWidth)
	o, logits := p.Temp(pass.F32, loopItems*loopWidth), p.Temp(pass.F32, loopItems*loopClasses)
	part := func(i int) pass.View { return qkv.At(i * loopWidth).Rows(3 * loopWidth) }
	p.Do(
		pass.Embed{IDs: ids.View(), Table: d.params["table"], Positions: d.params["positions"], Out: x.View(), Batch: loopItems, Rows: 1, IDRow: at, IDRows: loopSteps + 1, Pos: at},
		pass.Gemm{A: x.View(), W: d.params["qkv"], C: qkv.View(), Rows: loopItems},
		pass.Append{K: part(1), V: part(2), Cache: h, Batch: loopItems, Rows: 1, At: at},
		pass.Attend{Q: part(0), O: o.View(), Cache: h, Batch: loopItems, Queries: 1, Keys: at.Plus(1), Causal: true},
		pass.Gemm{A: o.View(), W: d.params["out"], C: logits.View(), Rows: loopItems},
		pass.Argmax{X: logits.View(), IDs: ids.View(), Batch: loopItems, Rows: 1, Cols: loopClasses, ToRow: at.Plus(1), IDRows: loopSteps + 1},
		pass.Advance{Index: index.View(), By: 1, IDs: ids.View(), IDRows: loopSteps + 1, Plus: 1, Stop: []uint32{stop}, Done: done.View(), Batch: loopItems},
	)
}

// greedyLoop runs a decoder whose steps are replays of one recording, alone and several a
// recording; an item that has met its stop stays where it is.
func greedyLoop(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	d := newDecoder(t, dev)
	first := []uint32{3, 17}
	wanted := d.simulate(t, first)
	stop := wanted[0][6] // item 0 ends where this id comes first; so may item 1
	for _, several := range []int{1, 3} {
		h, err := ses.NewCache(pass.CacheConfig{Heads: loopHeads, HeadDim: loopWidth / loopHeads, Capacity: loopSteps, Batch: loopItems})
		ok(t, err, "new cache")
		words := func(n int) pass.Buffer {
			b, err := ses.Alloc(pass.U32, n)
			ok(t, err, "alloc")
			return b
		}
		index, ids, done := words(loopItems), words(loopItems*(loopSteps+1)), words(loopItems)
		ok(t, ses.Write(background, ids.View(), slices.Concat([]uint32{first[0]}, make([]uint32, loopSteps), []uint32{first[1]}, make([]uint32, loopSteps))), "write")
		rec, err := ses.Record(background, pass.RecordOptions{Label: "loop"}, func(p pass.Pass) {
			for range several {
				d.step(p, h, index, ids, done, stop)
			}
		})
		ok(t, err, "record")
		ok(t, ses.FreeCache(h), "free the cache of a recording")
		for range loopSteps / several {
			_, err := rec.Run(background)
			ok(t, err, "run")
		}
		got := make([]uint32, loopItems*(loopSteps+1))
		ok(t, ses.Read(background, ids.View(), got), "read")
		at, flags := make([]uint32, loopItems), make([]uint32, loopItems)
		ok(t, ses.Read(background, index.View(), at), "read")
		ok(t, ses.Read(background, done.View(), flags), "read")
		for b, w := range wanted {
			end, stopped := loopSteps, uint32(0)
			if i := slices.Index(w[1:], stop); i >= 0 {
				end, stopped = i, 1
			}
			name := fmt.Sprintf("item %d, %d steps a recording", b, several)
			same(t, name+": ids", got[b*(loopSteps+1):][:end+int(stopped)+1], w[:end+int(stopped)+1])
			same(t, name+": counter", at[b:b+1], []uint32{uint32(end)})
			same(t, name+": done", flags[b:b+1], []uint32{stopped})
		}
		ok(t, rec.Close(), "close")
	}
}

// cacheHandles: a cache is used by its own session, as what it is, until it is given up.
func cacheHandles(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	_, foreign := s.session(t)
	sibling := newSession(t, dev)
	g := pass.CacheConfig{Heads: 1, HeadDim: 4, Capacity: 3}
	cache := func(ses pass.Session) pass.Cache {
		h, err := ses.NewCache(g)
		ok(t, err, "new cache")
		return h
	}
	good, freed := cache(ses), cache(ses)
	ok(t, ses.FreeCache(freed), "free a cache")
	fails(t, "free a cache twice", ses.FreeCache(freed), pass.ErrClosed)
	fails(t, "free no cache", ses.FreeCache(pass.Cache{}), pass.ErrInvalid)
	other := cache(sibling)
	fails(t, "free a cache of another session", ses.FreeCache(other), pass.ErrInvalid)
	b, err := ses.Alloc(pass.F32, 400)
	ok(t, err, "alloc")
	q := b.View()
	o, err := ses.Alloc(pass.F32, 400)
	ok(t, err, "alloc")
	forged := pass.MakeCache(good.Ref(), pass.CacheConfig{Heads: 1, HeadDim: 4, Capacity: 300, Batch: 1, Type: pass.F32})
	for _, row := range []struct {
		name     string
		cache    pass.Cache
		sentinel error
	}{
		{"none", pass.Cache{}, pass.ErrInvalid},
		{"freed", freed, pass.ErrClosed},
		{"of another device", cache(foreign), pass.ErrInvalid},
		{"of another session", other, pass.ErrInvalid},
		{"of another capacity", forged, pass.ErrInvalid},
	} {
		for _, op := range []pass.Op{
			pass.Append{K: q, V: q, Cache: row.cache, Rows: 1},
			pass.Attend{Q: q, O: o.View(), Cache: row.cache, Queries: 1, Keys: pass.Const(1)},
		} {
			_, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
			fails(t, op.Name()+": cache "+row.name, err, row.sentinel, op.Name(), "Cache")
		}
	}
	for _, bad := range []pass.CacheConfig{
		{}, {Heads: -1, HeadDim: 4, Capacity: 3}, {Heads: 1, HeadDim: 6, Capacity: 3}, {Heads: 1, HeadDim: 260, Capacity: 3},
		{Heads: 1, HeadDim: 4}, {Heads: 1, HeadDim: 4, Capacity: 3, Batch: -1}, {Heads: 1, HeadDim: 4, Capacity: 3, Type: pass.U32},
		{Heads: 1 << 40, HeadDim: 256, Capacity: 1 << 40},
	} {
		_, err := ses.NewCache(bad)
		fails(t, fmt.Sprintf("cache %+v", bad), err, pass.ErrInvalid, "cache")
	}
}

// stackedViews reads [q | k | v] of one buffer, and writes between other columns.
func stackedViews(t testing.TB, s *suite) {
	_, ses := s.session(t)
	const n, heads, dim = 21, 2, 12
	const width = heads * dim
	rows := cases.Recipe("stacked", 1, n*4*width, 1.5, 0) // [q + u | k | v | q + v]
	relative := cases.Recipe("positions", 1, (2*n-1)*width, 1.5, 0)
	part := func(field string, i int) cases.Tensor {
		var values []float32
		for r := range n {
			values = append(values, rows[(4*r+i)*width:][:width]...)
		}
		return cases.F32(field, values, 1, n, width)
	}
	for _, positions := range []bool{false, true} {
		c := cases.Case{Name: "stacked", Op: pass.Attention{Queries: n, Keys: n, Heads: heads, HeadDim: dim}, Outputs: []string{"O"},
			Inputs: []cases.Tensor{part("Q", 0), part("K", 1), part("V", 2)}}
		if positions {
			c.Inputs = append(c.Inputs, part("Q2", 3), cases.F32("Positions", relative, 1, 2*n-1, width))
		}
		want, err := c.Want()
		ok(t, err, "truth")
		var stacked, table pass.Input
		var out pass.Output
		rec, err := ses.Record(background, pass.RecordOptions{Label: "stacked"}, func(p pass.Pass) {
			stacked, table = p.Input(pass.F32, len(rows)), p.Input(pass.F32, len(relative))
			wide := p.Temp(pass.F32, n*2*width)
			p.Do(pass.Fill{To: wide.View(), Rows: 1, Cols: n * 2 * width, Value: 5})
			at := func(i int) pass.View { return stacked.At(i * width).Rows(4 * width) }
			a := pass.Attention{Q: at(0), K: at(1), V: at(2), O: wide.At(width / 2).Rows(2 * width), Queries: n, Keys: n, Heads: heads, HeadDim: dim}
			if positions {
				a.Q2, a.Positions = at(3), table.View()
			}
			p.Do(a)
			out = p.Output(wide.View(), n*2*width)
		})
		ok(t, err, "record")
		run, err := rec.Run(background, stacked.F32(rows), table.F32(relative))
		ok(t, err, "run")
		got := floats(readOutput(t, run, out))
		var dense []float32
		for i, v := range got {
			if j := i % (2 * width); j >= width/2 && j < width/2+width {
				dense = append(dense, v)
			} else if v != 5 {
				t.Errorf("stacked: element %d between the outputs was written", i)
				break
			}
		}
		near(t, "stacked views", cases.F32("O", dense, len(dense)).Words, want[0])
	}
}
