package cases

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

// check returns the configuration with defaults, and an error if the cache holds another
// number of elements.
func (h Cache) check() (pass.CacheConfig, error) {
	g, err := h.Config.Check()
	if err != nil {
		return g, err
	}
	if n := cacheLen(g); len(h.K) != n || len(h.V) != n {
		return g, invalid("cache: want %d keys and values, given %d and %d", n, len(h.K), len(h.V))
	}
	return g, nil
}

// cacheLen returns how many elements the keys of a checked cache are.
func cacheLen(g pass.CacheConfig) int { return g.Batch * g.Capacity * g.Heads * g.HeadDim }

// cacheParts names the tensors of a cache: its keys and its values.
func cacheParts(field string) []string { return []string{field + ".K", field + ".V"} }

// kept returns a value as a cache of a type keeps it.
func kept(v float32, t pass.DType) float32 {
	if t == pass.F16 {
		return float32(fromHalf(toHalf(v)))
	}
	return v
}

func keptAll(values []float32, t pass.DType) []float32 {
	all := make([]float32, len(values))
	for i, v := range values {
		all[i] = kept(v, t)
	}
	return all
}

// cache returns the cache of a field with its configuration checked, and the keys and
// values as it keeps them.
func (d *data) cache(field string) (g pass.CacheConfig, k, v []float64) {
	for _, h := range d.c.Caches {
		if h.Field == field {
			g, _ = h.check()
			return g, widen(keptAll(h.K, g.Type)), widen(keptAll(h.V, g.Type))
		}
	}
	return g, nil, nil
}

// Probes is how many queries of each item read back what a cache holds; see Probe.
const Probes = 3

// Probe returns the op that reads back a whole cache, but for its handle and views, with
// the queries of all items [batch][Probes][heads·head dimension]. A cache can be read
// through attention alone: a key or value that is wrong changes what any query finds.
func (h Cache) Probe() (pass.Attend, []float32) {
	g, _ := h.Config.Check()
	op := pass.Attend{Batch: g.Batch, Queries: Probes, Keys: pass.Const(g.Capacity), Exact: true}
	return op, Recipe("probe", 1, g.Batch*Probes*g.Heads*g.HeadDim, 1, 0)
}

// CheckCache compares what the probe of a cache found with what the cache must hold.
func (c Case) CheckCache(field string, found []float32, wanted []Tensor) error {
	for _, h := range c.Caches {
		if h.Field != field {
			continue
		}
		g, err := h.check()
		if err != nil {
			return err
		}
		k, v := widen(keptAll(h.K, g.Type)), widen(keptAll(h.V, g.Type))
		parts := cacheParts(field)
		if t, ok := find(wanted, parts[0]); ok {
			k = t.float64s()
		}
		if t, ok := find(wanted, parts[1]); ok {
			v = t.float64s()
		}
		op, q := h.Probe()
		op.Scale = float32(1 / math.Sqrt(float64(g.HeadDim)))
		keys := make([]int, g.Batch)
		for b := range keys {
			keys[b] = g.Capacity
		}
		want := Tensor{field, pass.F32, []int{g.Batch, Probes, g.Heads * g.HeadDim}, rounded(truth.Attend(op, g, widen(q), k, v, keys))}
		tol := c.Tolerance
		if tol == (Tolerance{}) {
			tol = ExactTolerance
		}
		return Compare(F32(field, found), want, tol).Err(tol)
	}
	return invalid("%s: no cache %q", c.Name, field)
}

// tensors returns the keys and values as they are written.
func (h Cache) tensors() []safetensors.Tensor {
	g, _ := h.Config.Check()
	var all []safetensors.Tensor
	for i, values := range [][]float32{h.K, h.V} {
		t := F32("", values, g.Batch, g.Capacity, g.Heads*g.HeadDim)
		all = append(all, t.file(cacheParts(h.Field)[i]))
	}
	return all
}

func cacheTypeName(t pass.DType) string {
	if t == 0 {
		return ""
	}
	return t.String()
}

// cache reads the cache of a field.
func (r *tensorReader) cache(field string, j cacheJSON) (Cache, error) {
	h := Cache{Field: field, Config: pass.CacheConfig{Heads: j.Heads, HeadDim: j.HeadDim}}
	if j.Type != "" {
		t, err := pass.ParseDType(j.Type)
		if err != nil {
			return h, err
		}
		h.Config.Type = t
	}
	for i, name := range cacheParts(field) {
		t, ok := r.tensors[name]
		if !ok {
			return h, invalid("cache: want a tensor %q, given %.400q", name, r.names)
		}
		words, err := wordsOf(t, false)
		if err != nil || words.Type != pass.F32 || len(t.Shape) != 3 {
			return h, invalid("tensor %.80q: want [batch][capacity][heads·head dimension] of floats, given %v of %s", name, t.Shape, t.DType)
		}
		if i == 0 {
			h.Config.Batch, h.Config.Capacity, h.K = t.Shape[0], t.Shape[1], words.Float32s()
		} else {
			h.V = words.Float32s()
		}
	}
	_, err := h.check()
	return h, err
}

func appendKind() kind {
	return kind{
		zero:  pass.Append{},
		sizes: map[string][3]string{"K": {"Batch", "Rows", ""}},
		list:  appendEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			a := op.Op.(pass.Append)
			g, k, v := d.cache("Cache")
			at := d.index("At", a.At, a.Batch, g.Capacity-a.Rows)
			var after []Tensor
			for i, held := range [][]float64{k, v} {
				rows := Tensor{Words: d.words([]string{"K", "V"}[i], 0)}.Float32s()
				words := rounded(truth.Append(a, g, held, widen(keptAll(rows, g.Type)), at))
				after = append(after, Tensor{cacheParts("Cache")[i], pass.F32, []int{g.Batch, g.Capacity, g.Heads * g.HeadDim}, words})
			}
			return after, nil
		},
	}
}

func attendKind() kind {
	return kind{
		zero:    pass.Attend{},
		outputs: []string{"O"},
		sizes:   map[string][3]string{"Q": {"Batch", "Queries", ""}},
		list:    attendEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			a := op.Op.(pass.Attend)
			g, k, v := d.cache("Cache")
			o := truth.Attend(a, g, d.values("Q"), k, v, d.index("Keys", a.Keys, a.Batch, g.Capacity))
			return []Tensor{result(op, "O", rounded(o))}, nil
		},
	}
}

// halves returns values that binary16 holds, so that it does not matter how a cache
// rounds.
func halves(name string, n int) []float32 {
	values := Recipe(name, 1, n, 1.5, 0)
	for i, v := range values {
		values[i] = float32(int(v*512)) / 512
	}
	return values
}

// An appendSpec is an Append case in few words.
type appendSpec struct {
	cfg     pass.CacheConfig
	op      pass.Append
	at      []uint32 // nil for the constant of the op
	rounded bool     // values that binary16 does not hold
}

func (s appendSpec) entry(label string) Entry {
	g, _ := s.cfg.Check()
	name := fmt.Sprintf("append/%s-%v-%dx%d-%dx%d-%dx%d", label, g.Type, g.Batch, g.Capacity, g.Heads, g.HeadDim, max(s.op.Batch, 1), s.op.Rows)
	return Entry{Name: name, Op: "append", make: func(name string) Case {
		values := halves
		c := Case{Op: s.op}
		if s.rounded { // to either neighbour
			values, c.Tolerance = usual, FastTolerance
		}
		batch, width := max(s.op.Batch, 1), g.Heads*g.HeadDim
		for _, field := range []string{"K", "V"} {
			c.Inputs = append(c.Inputs, F32(field, values(name+"/"+field, batch*s.op.Rows*width), batch, s.op.Rows, width))
		}
		c.Caches = []Cache{{"Cache", g, halves(name+"/Cache.K", cacheLen(g)), halves(name+"/Cache.V", cacheLen(g))}}
		c.setIndex("At", s.at)
		return c
	}}
}

func appendEntries() []Entry {
	var all []Entry
	add := func(label string, s appendSpec) {
		for _, t := range []pass.DType{pass.F32, pass.F16} {
			s.cfg.Type = t
			all = append(all, s.entry(label))
		}
	}
	for i, dim := range []int{4, 36, 64, 256} {
		add("dim", appendSpec{cfg: pass.CacheConfig{Heads: 1 + i%3, HeadDim: dim, Capacity: 9 + 8*i}, op: pass.Append{Rows: 1 + 2*i, At: pass.Const(i)}})
	}
	g := pass.CacheConfig{Heads: 2, HeadDim: 12, Capacity: 21, Batch: 3}
	add("all", appendSpec{cfg: g, op: pass.Append{Batch: 3, Rows: 21}})
	add("last", appendSpec{cfg: g, op: pass.Append{Batch: 3, Rows: 1, At: pass.Const(20)}})
	add("some-items", appendSpec{cfg: g, op: pass.Append{Batch: 2, Rows: 4, At: pass.Const(7)}})
	add("index", appendSpec{cfg: g, op: pass.Append{Batch: 3, Rows: 2}, at: []uint32{19}})
	add("index-each", appendSpec{cfg: g, op: pass.Append{Batch: 3, Rows: 2}, at: []uint32{19, 0, 4}})
	add("index-plus", appendSpec{cfg: g, op: pass.Append{Batch: 3, Rows: 3, At: pass.Const(2)}, at: []uint32{16, 0, 4}})
	add("no-rows", appendSpec{cfg: g, op: pass.Append{Batch: 3}})
	add("long", appendSpec{cfg: pass.CacheConfig{Heads: 1, HeadDim: 8, Capacity: 300}, op: pass.Append{Rows: 270, At: pass.Const(30)}})
	g.Type = pass.F16
	all = append(all, appendSpec{cfg: g, op: pass.Append{Batch: 3, Rows: 5, At: pass.Const(8)}, rounded: true}.entry("rounded"))
	return all
}

// An attendSpec is an Attend case in few words.
type attendSpec struct {
	cfg  pass.CacheConfig
	op   pass.Attend
	keys []uint32 // nil for the constant of the op
}

func (s attendSpec) entry(label string) Entry {
	g, _ := s.cfg.Check()
	keys, batch, width := s.op.Keys.Addend(), max(s.op.Batch, 1), g.Heads*g.HeadDim
	name := fmt.Sprintf("attend/%s-%v-%dx%d-%dx%d-%dx%dx%d", label, g.Type, g.Batch, g.Capacity, g.Heads, g.HeadDim, batch, s.op.Queries, keys)
	return Entry{Name: name, Op: "attend", make: func(name string) Case {
		c := Case{Op: s.op, Inputs: []Tensor{F32("Q", Recipe(name+"/Q", 1, batch*s.op.Queries*width, 1.5, 0), batch, s.op.Queries, width)}, Outputs: []string{"O"}}
		h := Cache{"Cache", g, halves(name+"/Cache.K", cacheLen(g)), halves(name+"/Cache.V", cacheLen(g))}
		for b := range g.Batch { // what lies beyond must not be read
			used := 0
			if b < batch {
				used = keys
				if s.keys != nil {
					used += int(s.keys[b%len(s.keys)])
				}
			}
			for i := used * width; i < g.Capacity*width; i++ {
				h.K[b*g.Capacity*width+i], h.V[b*g.Capacity*width+i] = float32(math.NaN()), float32(math.NaN())
			}
		}
		c.Caches = []Cache{h}
		c.setIndex("Keys", s.keys)
		return c
	}}
}

func attendEntries() []Entry {
	var all []Entry
	add := func(label string, s attendSpec) {
		for _, t := range []pass.DType{pass.F32, pass.F16} {
			s.cfg.Type = t
			all = append(all, s.entry(label))
		}
	}
	for i, dim := range headDims() { // of either type every day, of the other in the large set
		for j, t := range []pass.DType{pass.F32, pass.F16} {
			cfg := pass.CacheConfig{Heads: 1 + i%3, HeadDim: dim, Capacity: 40, Type: t}
			one := attendSpec{cfg: cfg, op: pass.Attend{Queries: 1 + 2*(i%3), Keys: pass.Const(11 + 3*i), Causal: i%2 == 1}}.entry("dim")
			one.Full = (i+i/2)%2 != j
			all = append(all, one)
		}
	}
	for _, keys := range []int{1, 37, 256, 257, 1500, 2049, 4100} {
		add("keys", attendSpec{cfg: pass.CacheConfig{Heads: 2, HeadDim: 4, Capacity: keys + 3}, op: pass.Attend{Queries: 1, Keys: pass.Const(keys), Causal: true}})
		all = append(all, full(attendSpec{cfg: pass.CacheConfig{Heads: 6, HeadDim: 64, Capacity: keys, Batch: 2, Type: pass.F16}, op: pass.Attend{Batch: 2, Queries: 1, Keys: pass.Const(keys)}}.entry("whisper")),
			full(attendSpec{cfg: pass.CacheConfig{Heads: 2, HeadDim: 52, Capacity: keys}, op: pass.Attend{Queries: min(keys, 300), Keys: pass.Const(keys), Causal: true}}.entry("prefill")))
	}
	g := pass.CacheConfig{Heads: 3, HeadDim: 12, Capacity: 50, Batch: 3}
	for _, causal := range []bool{false, true} {
		label := map[bool]string{true: "-causal"}[causal]
		add("prefill"+label, attendSpec{cfg: g, op: pass.Attend{Batch: 3, Queries: 9, Keys: pass.Const(9), Causal: causal}})
		add("after-prefix"+label, attendSpec{cfg: g, op: pass.Attend{Batch: 2, Queries: 5, Keys: pass.Const(33), Causal: causal}})
		add("more-queries"+label, attendSpec{cfg: g, op: pass.Attend{Batch: 3, Queries: 9, Keys: pass.Const(4), Causal: causal}})
		add("index"+label, attendSpec{cfg: g, op: pass.Attend{Batch: 3, Queries: 2, Causal: causal}, keys: []uint32{50}})
		add("index-each"+label, attendSpec{cfg: g, op: pass.Attend{Batch: 3, Queries: 2, Causal: causal}, keys: []uint32{7, 0, 50}})
		add("index-plus"+label, attendSpec{cfg: g, op: pass.Attend{Batch: 3, Queries: 1, Keys: pass.Const(1), Causal: causal}, keys: []uint32{0, 49, 13}})
	}
	add("no-keys", attendSpec{cfg: g, op: pass.Attend{Batch: 3, Queries: 4}})
	add("no-queries", attendSpec{cfg: g, op: pass.Attend{Batch: 3, Keys: pass.Const(5)}})
	add("scale", attendSpec{cfg: g, op: pass.Attend{Queries: 4, Keys: pass.Const(20), Scale: 0.0625}})
	add("exact", attendSpec{cfg: g, op: pass.Attend{Queries: 4, Keys: pass.Const(20), Exact: true}})
	return all
}
