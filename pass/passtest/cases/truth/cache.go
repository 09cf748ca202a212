package truth

import "github.com/tandem-gpu/tandem/pass"

// Append returns what a cache [batch][capacity][width] holds, keys or values, after rows
// [batch of the op][rows][width] were stored from position at[b] on.
func Append(a pass.Append, g pass.CacheConfig, held, rows []float64, at []int) []float64 {
	width := g.Heads * g.HeadDim
	after := append([]float64(nil), held...)
	for b := range a.Batch {
		for i := range a.Rows * width {
			after[(b*g.Capacity+at[b])*width+i] = rows[b*a.Rows*width+i]
		}
	}
	return after
}

// Attend returns O [batch of the op][queries][width]: attention over the first keys[b]
// positions of a cache.
func Attend(a pass.Attend, g pass.CacheConfig, q, k, v []float64, keys []int) []float64 {
	width := g.Heads * g.HeadDim
	var o []float64
	for b := range a.Batch {
		one := pass.Attention{Queries: a.Queries, Keys: keys[b], Heads: g.Heads, HeadDim: g.HeadDim, Scale: a.Scale}
		if a.Causal {
			one.Mask = pass.Causal
		}
		from := b * g.Capacity * width
		item := Keyed{Q: q[b*a.Queries*width:], K: k[from:], V: v[from:]}
		o = append(o, Attention(one, item, []int{a.Queries}, []int{keys[b]})...)
	}
	return o
}
