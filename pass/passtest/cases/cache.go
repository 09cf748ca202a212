package cases

import (
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
