package cases

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func attentionKind() kind {
	return kind{
		zero:    pass.Attention{},
		outputs: []string{"O"},
		sizes:   map[string][3]string{"Q": {"Batch", "Queries", ""}, "K": {"Batch", "Keys", ""}},
		needs:   []string{"Heads", "HeadDim"},
		list:    attentionEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			a := op.Op.(pass.Attention)
			x := truth.Keyed{Q: d.values("Q"), K: d.values("K"), V: d.values("V"), Q2: d.values("Q2"), Positions: d.values("Positions")}
			keys := d.items("KeyLengths", a.KeyLengths, a.Batch, a.Keys, func(int) int { return a.Keys })
			o := truth.Attention(a, x, d.lengths(a.Lengths, a.Batch, a.Queries), keys)
			return []Tensor{result(op, "O", rounded(o))}, nil
		},
	}
}

// An attentionSpec is an Attention case in few words.
type attentionSpec struct {
	op                  pass.Attention
	relative            bool
	lengths, keyLengths []int
	onDevice            bool // lengths
	scale               float32
	special             func(c *Case)
}

func (s attentionSpec) entry(label string) Entry {
	if s.relative {
		label = "relative-" + label
	}
	name := fmt.Sprintf("attention/%s-%s-%dx%dx%d-%dx%d", label, maskName(s.op.Mask), max(s.op.Batch, 1), s.op.Queries, s.op.Keys, s.op.Heads, s.op.HeadDim)
	return Entry{Name: name, Op: "attention", make: s.make}
}

func (s attentionSpec) make(name string) Case {
	batch, width := max(s.op.Batch, 1), s.op.Heads*s.op.HeadDim
	if s.scale == 0 {
		s.scale = 1.5 // scores of a few units
	}
	c := Case{Op: s.op, Outputs: []string{"O"}}
	add := func(field string, batch, rows int) {
		c.Inputs = append(c.Inputs, F32(field, Recipe(name+"/"+field, 1, batch*rows*width, s.scale, 0), batch, rows, width))
	}
	add("Q", batch, s.op.Queries)
	add("K", batch, s.op.Keys)
	add("V", batch, s.op.Keys)
	poisonBeyond(&c, 0, s.lengths)
	poisonBeyond(&c, 1, s.keyLengths)
	poisonBeyond(&c, 2, s.keyLengths)
	if s.relative {
		add("Q2", batch, s.op.Queries)
		poisonBeyond(&c, 3, s.lengths)
		add("Positions", 1, max(2*s.op.Keys-1, 0))
	}
	if s.lengths != nil {
		c.setItems("Lengths", s.lengths, s.onDevice)
	}
	if s.keyLengths != nil {
		c.setItems("KeyLengths", s.keyLengths, s.onDevice)
	}
	if s.special != nil {
		s.special(&c)
	}
	return c
}

// headDims are the head dimensions of the networks, and the smallest and the largest.
func headDims() []int { return []int{4, 36, 40, 48, 52, 56, 64, 80, 128, 256} }

func attentionEntries() []Entry {
	var all []Entry
	add := func(label string, s attentionSpec) { all = append(all, s.entry(label)) }
	e := edges()
	masks := []pass.Mask{{}, pass.Causal, pass.Band(5, 3)}
	for i, queries := range e { // pairs of queries and keys; masks, heads and items run along
		op := pass.Attention{Batch: i % 3, Queries: queries, Keys: e[(5*i+3)%len(e)], Heads: 1 + i%2, HeadDim: 4 + 4*(i%4), Mask: masks[i%3]}
		add("edge", attentionSpec{op: op})
	}
	for i, dim := range headDims() {
		add("dim", attentionSpec{op: pass.Attention{Queries: 9, Keys: 21, Heads: 2, HeadDim: dim, Mask: masks[i%3]}})
		one := attentionSpec{op: pass.Attention{Batch: 2, Queries: 1, Keys: 5, Heads: 3, HeadDim: dim}}.entry("dim")
		one.Full = i%2 == 1
		all = append(all, one)
	}
	for _, keys := range []int{1, 37, 256, 257, 1500, 2049, 4100} {
		add("keys", attentionSpec{op: pass.Attention{Queries: 1, Keys: keys, Heads: 1, HeadDim: 8}})
		small := attentionSpec{op: pass.Attention{Queries: 5, Keys: keys, Heads: 2, HeadDim: 64, Mask: pass.Causal}}.entry("keys")
		large := attentionSpec{op: pass.Attention{Batch: 2, Queries: keys, Keys: keys, Heads: 1, HeadDim: 36}}.entry("keys-square")
		small.Full, large.Full = keys > 300, keys > 100
		all = append(all, small, large)
	}
	// Masks, with fewer queries than keys, as many, and more: some see nothing.
	for _, mask := range []pass.Mask{pass.Causal, pass.Band(0, 0), pass.Band(3, 0), pass.Band(0, 4), pass.Band(2, 1000), pass.Band(40, 1)} {
		for _, size := range [][2]int{{7, 30}, {20, 20}, {33, 12}} {
			add("mask", attentionSpec{op: pass.Attention{Queries: size[0], Keys: size[1], Heads: 2, HeadDim: 12, Mask: mask}})
		}
	}
	add("wide-band", attentionSpec{op: pass.Attention{Queries: 70, Keys: 300, Heads: 1, HeadDim: 16, Mask: pass.Band(16, 4)}})
	// Lengths.
	for _, onDevice := range []bool{false, true} {
		for _, mask := range masks {
			op := pass.Attention{Batch: 5, Queries: 9, Keys: 19, Heads: 2, HeadDim: 8, Mask: mask}
			add("lengths"+whereLabel(onDevice), attentionSpec{op: op, lengths: []int{9, 0, 4, 1, 9}, keyLengths: []int{19, 7, 0, 12, 1}, onDevice: onDevice})
		}
		op := pass.Attention{Batch: 3, Queries: 40, Keys: 40, Heads: 1, HeadDim: 20}
		add("key-lengths"+whereLabel(onDevice), attentionSpec{op: op, keyLengths: []int{33, 40, 2}, onDevice: onDevice})
		add("key-lengths"+whereLabel(onDevice), attentionSpec{op: op, relative: true, keyLengths: []int{33, 40, 2}, onDevice: onDevice})
		add("all-lengths"+whereLabel(onDevice), attentionSpec{op: op, relative: true, lengths: []int{33, 40, 0}, keyLengths: []int{33, 40, 0}, onDevice: onDevice})
	}
	// Relative positions.
	for i, t := range []int{1, 7, 16, 33, 65} {
		add("edge", attentionSpec{op: pass.Attention{Batch: i % 3, Queries: t, Keys: t, Heads: 1 + i%3, HeadDim: 4 * (i + 1)}, relative: true})
	}
	add("parakeet", attentionSpec{op: pass.Attention{Queries: 19, Keys: 19, Heads: 4, HeadDim: 128}, relative: true})
	add("parakeet-110m", attentionSpec{op: pass.Attention{Batch: 2, Queries: 25, Keys: 25, Heads: 2, HeadDim: 64}, relative: true})
	add("band", attentionSpec{op: pass.Attention{Queries: 50, Keys: 50, Heads: 2, HeadDim: 16, Mask: pass.Band(7, 9)}, relative: true})
	add("causal", attentionSpec{op: pass.Attention{Queries: 30, Keys: 30, Heads: 2, HeadDim: 40, Mask: pass.Causal}, relative: true})
	// The networks.
	add("whisper-cross", attentionSpec{op: pass.Attention{Batch: 2, Queries: 3, Keys: 150, Heads: 6, HeadDim: 64}})
	add("moonshine-tiny", attentionSpec{op: pass.Attention{Queries: 40, Keys: 40, Heads: 8, HeadDim: 36}})
	add("gigaam", attentionSpec{op: pass.Attention{Batch: 2, Queries: 25, Keys: 25, Heads: 4, HeadDim: 48}})
	all = append(all,
		full(attentionSpec{op: pass.Attention{Queries: 1500, Keys: 1500, Heads: 2, HeadDim: 64}}.entry("whisper")),
		full(attentionSpec{op: pass.Attention{Queries: 8, Keys: 1500, Heads: 6, HeadDim: 64}}.entry("whisper-cross")),
		full(attentionSpec{op: pass.Attention{Queries: 330, Keys: 330, Heads: 8, HeadDim: 128}, relative: true}.entry("parakeet")),
		full(attentionSpec{op: pass.Attention{Queries: 600, Keys: 600, Heads: 2, HeadDim: 128, Mask: pass.Band(128, 128)}, relative: true}.entry("parakeet-local")))
	// What naive formulas do not survive.
	add("scale", attentionSpec{op: pass.Attention{Queries: 6, Keys: 11, Heads: 2, HeadDim: 12, Scale: 0.0625}})
	add("negative-scale", attentionSpec{op: pass.Attention{Queries: 6, Keys: 11, Heads: 2, HeadDim: 12, Scale: -0.5}})
	add("exact", attentionSpec{op: pass.Attention{Queries: 17, Keys: 40, Heads: 2, HeadDim: 64, Exact: true}})
	add("one-hot", attentionSpec{op: pass.Attention{Queries: 6, Keys: 40, Heads: 1, HeadDim: 8, Exact: true}, special: func(c *Case) {
		values := Recipe("one-hot", 1, 40*8, 0.125, 0)
		for i := range values { // key 3·i is far ahead of all others for query i
			values[i] = float32(int(values[i] * 64))
		}
		for i := range 6 {
			values[3*i*8+i] = 512
		}
		c.Inputs[1] = F32("K", values, 1, 40, 8)
		q := make([]float32, 6*8)
		for i := range 6 {
			q[i*8+i] = 16
		}
		c.Inputs[0] = F32("Q", q, 1, 6, 8)
	}})
	add("sum-of-524288", attentionSpec{op: pass.Attention{Queries: 3, Keys: 20, Heads: 1, HeadDim: 128}, special: func(c *Case) {
		c.Inputs[0] = F32("Q", special(64)("", 3*128), 1, 3, 128)
		k := special(64)("", 20*128)
		for i := range 128 { // the others are equal
			k[4*128+i], k[11*128+i] = -64, 0
		}
		c.Inputs[1] = F32("K", k, 1, 20, 128)
	}})
	add("large-values", attentionSpec{op: pass.Attention{Queries: 5, Keys: 30, Heads: 1, HeadDim: 16}, special: func(c *Case) {
		c.Inputs[2] = F32("V", Recipe("large", 1, 30*16, 1e30, 0), 1, 30, 16)
	}})
	reach := pass.Attention{Batch: 2, Queries: 6, Keys: 10, Heads: 3, HeadDim: 8}
	add("nan-query", attentionSpec{op: reach, special: func(c *Case) { c.Inputs[0].Words[(6+2)*24+9] = nan }})
	add("nan-key", attentionSpec{op: reach, special: func(c *Case) { c.Inputs[1].Words[(10+4)*24+17] = nan }})
	add("nan-value", attentionSpec{op: reach, special: func(c *Case) { c.Inputs[2].Words[4*24+11] = nan }})
	reach.Mask = pass.Causal
	add("nan-key", attentionSpec{op: reach, special: func(c *Case) { c.Inputs[1].Words[7*24+17] = nan }})
	add("no-queries", attentionSpec{op: pass.Attention{Keys: 5, Heads: 2, HeadDim: 8}})
	add("no-keys", attentionSpec{op: pass.Attention{Batch: 2, Queries: 5, Heads: 2, HeadDim: 8}})
	for _, queries := range e {
		for _, keys := range e {
			all = append(all, full(attentionSpec{op: pass.Attention{Queries: queries, Keys: keys, Heads: 2, HeadDim: 40, Mask: masks[(queries+keys)%3]}}.entry("pairs")))
		}
	}
	return all
}
