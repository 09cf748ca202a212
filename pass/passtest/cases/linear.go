package cases

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func gemmKind() kind {
	return kind{
		zero:    pass.Gemm{},
		outputs: []string{"C"},
		sizes:   map[string][3]string{"A": {"Batch", "Rows", ""}},
		weights: (*weightReader).linear,
		list:    gemmEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			g := op.Op.(pass.Gemm)
			w := d.linear("W")
			return []Tensor{result(op, "C", rounded(truth.Gemm(g, w, d.values("A"), d.values("C"))))}, d.err
		},
	}
}

func embedKind() kind {
	return kind{
		zero:    pass.Embed{},
		outputs: []string{"Out"},
		sizes:   map[string][3]string{"IDs": {"Batch", "IDRows", ""}},
		needs:   []string{"Rows"},
		weights: (*weightReader).linear,
		spare:   []string{"Positions"},
		list:    embedEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			e := op.Op.(pass.Embed)
			var positions truth.Linear
			most := math.MaxInt
			if d.weights("Positions") != nil {
				positions = d.linear("Positions")
				most = positions.N - e.Rows
			}
			idRow, pos := d.index("IDRow", e.IDRow, e.Batch, e.IDRows-e.Rows), d.index("Pos", e.Pos, e.Batch, most)
			table, ids := d.linear("Table"), slices.Clone(d.words("IDs", e.Batch*e.IDRows))
			for b, row := range idRow { // others may be anything
				for i := b*e.IDRows + row; i < b*e.IDRows+row+e.Rows; i++ {
					ids[i] = uint32(d.within("IDs", b, int(ids[i]), table.N-1))
				}
			}
			out := truth.Embed(e, table, positions, ids, idRow, pos)
			return []Tensor{result(op, "Out", rounded(out))}, nil
		},
		match: func(Case) Tolerance { return Tolerance{L2: 1e-7, Max: 1e-7} }, // one rounding
	}
}

// linear decodes the weights of a field.
func (d *data) linear(field string) truth.Linear {
	w := d.weights(field).(pass.LinearWeights)
	l := truth.Linear{Bias: widen(w.Bias), Dual: widen(w.Dual)}
	for _, t := range w.Parts {
		l.N += t.Shape[0]
		l.K = t.Shape[1]
		l.W = append(l.W, d.decode(t)...)
	}
	return l
}

// A gemmSpec is a Gemm case in few words.
type gemmSpec struct {
	rows, batch int
	n           []int // of each stacked part
	k           int
	typ         pass.DType // 0: F32
	bias        bool
	dual        int
	columns     pass.Span
	epilogue    pass.Epilogue
	exact       bool
	special     func(c *Case) // changes the inputs
}

func (s gemmSpec) entry(label string) Entry {
	if s.typ == 0 {
		s.typ = pass.F32
	}
	n := 0
	for _, part := range s.n {
		n += part
	}
	name := fmt.Sprintf("gemm/%s-%dx%dx%d", label, max(s.batch, 1)*s.rows, n, s.k)
	return Entry{Name: name, Op: "gemm", make: s.make}
}

func (s gemmSpec) make(name string) Case {
	g := pass.Gemm{Batch: s.batch, Rows: s.rows, Columns: s.columns, Epilogue: s.epilogue, Exact: s.exact}
	w := linearWeights(name, s.typ, s.n, s.k, s.bias, s.dual)
	batch := max(s.batch, 1)
	c := Case{
		Op:      g,
		Inputs:  []Tensor{F32("A", Recipe(name+"/A", 1, batch*s.rows*s.k, 1, 0), batch, s.rows, s.k)},
		Params:  []Param{{"W", w}},
		Outputs: []string{"C"},
	}
	if g.Epilogue.InPlace() {
		shape, _ := w.Shape()
		cols := g.Columns.Resolve(shape.(pass.LinearShape).Columns()).Len()
		c.Inputs = append(c.Inputs, F32("C", Recipe(name+"/C", 1, batch*s.rows*cols, 2, 0), batch, s.rows, cols))
	}
	if s.special != nil {
		s.special(&c)
	}
	return c
}

// linearWeights makes weights whose products sum to about one.
func linearWeights(name string, t pass.DType, parts []int, k int, bias bool, dual int) pass.LinearWeights {
	w := pass.LinearWeights{Name: name}
	total := 0
	for i, n := range parts {
		part := fmt.Sprintf("%s/W.%d", name, i)
		w.Parts = append(w.Parts, Encode(part, t, Recipe(part, 1, n*k, spread(k), 0), n, k))
		total += n
	}
	if bias {
		w.Bias = Recipe(name+"/W.bias", 1, total, 1, 0)
	}
	if dual > 0 {
		w.Dual = Recipe(name+"/W.dual", 1, dual, 1, 0)
	}
	return w
}

// spread returns the scale of weights for sums of k products: variance 1/k.
func spread(k int) float32 {
	s := float32(1)
	for s*s*float32(k) > 3 {
		s *= 0.75
	}
	return s
}

// edges are the sizes at which tiles, vectors and blocks begin and end.
func edges() []int { return []int{1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129} }

// epilogues lists one of every formula; the factor of Leaky and Residual is not 1.
func epilogues() []pass.Epilogue {
	return []pass.Epilogue{pass.None, pass.SiLU, pass.ReLU, pass.Leaky(0.125), pass.Residual(0.5), pass.GELU, pass.GELUResidual, pass.Tanh, pass.Sigmoid}
}

func full(e Entry) Entry {
	e.Full = true
	return e
}

// nan is a quiet NaN.
const nan = 0x7FC00000

// scaleInput multiplies the first input.
func scaleInput(by float32) func(c *Case) {
	return func(c *Case) {
		values := c.Inputs[0].Float32s()
		for i := range values {
			values[i] *= by
		}
		c.Inputs[0].Words = floatWords(values)
	}
}

func gemmEntries() []Entry {
	var all []Entry
	e := edges()
	for i, rows := range e { // every pair of neighbours along each pair of axes, k running apart
		for step, label := range []string{"edge", "edge-apart"} {
			n, k := e[(i+1+step*6)%len(e)], e[(5*i+3+step)%len(e)]
			all = append(all, gemmSpec{rows: rows, n: []int{n}, k: k, bias: (i+step)%2 == 0}.entry(label))
		}
	}
	for _, ep := range epilogues() {
		label := ep.String()
		for _, bias := range []bool{false, true} {
			with := map[bool]string{true: "-bias"}[bias]
			all = append(all,
				gemmSpec{rows: 5, n: []int{37}, k: 19, bias: bias, epilogue: ep}.entry(label+with),
				gemmSpec{rows: 1, n: []int{20, 13}, k: 31, bias: bias, epilogue: ep}.entry(label+with+"-stacked"),
				gemmSpec{rows: 3, n: []int{17, 6}, k: 9, bias: bias, dual: 11, epilogue: ep}.entry(label+with+"-stacked-dual"))
		}
	}
	for _, t := range []pass.DType{pass.F16, pass.BF16, pass.Q8_0} {
		for _, rows := range []int{1, 8, 33} {
			for _, k := range []int{32, 96, 160} {
				all = append(all, gemmSpec{rows: rows, n: []int{21}, k: k, typ: t, bias: true}.entry(fmt.Sprint(t)))
			}
		}
		all = append(all, gemmSpec{rows: 4, n: []int{33, 31}, k: 64, typ: t, dual: 5, epilogue: pass.SiLU}.entry(fmt.Sprint(t, "-stacked-dual")))
	}
	for _, t := range []pass.DType{pass.F16, pass.BF16} { // k that fills no block
		all = append(all, gemmSpec{rows: 2, n: []int{9}, k: 17, typ: t}.entry(fmt.Sprint(t, "-odd")))
	}
	for _, rows := range []int{1, 37, 70} {
		for i, n := range []int{164, 288} {
			all = append(all,
				gemmSpec{rows: rows, n: []int{n - 64, 64}, k: 64, bias: i == 0, dual: 33 * i, epilogue: pass.SiLU}.entry("wide"),
				gemmSpec{rows: rows, n: []int{n}, k: 40, bias: i == 1, epilogue: pass.Residual(0.5)}.entry("wide-residual"))
		}
	}
	ones := func(c *Case) { // 4096 products of 64: beyond what binary16 holds
		for i := range c.Inputs[0].Words {
			c.Inputs[0].Words[i] = 0x41000000 // 8
		}
		w := pass.LinearWeights{Name: c.Name, Parts: []pass.Tensor{Encode("eights", pass.F32, special(8)("", 3*4096), 3, 4096)}}
		c.Params[0].Weights = w
	}
	all = append(all,
		gemmSpec{rows: 2, n: []int{3}, k: 4096, special: ones}.entry("sum-of-262144"),
		gemmSpec{rows: 7, batch: 3, n: []int{18}, k: 33, bias: true, epilogue: pass.ReLU}.entry("batch"),
		gemmSpec{rows: 1, batch: 5, n: []int{9}, k: 65, epilogue: pass.Residual(1)}.entry("batch-residual"),
		gemmSpec{rows: 9, n: []int{40}, k: 24, dual: 8, bias: true, columns: pass.Span{From: 3, To: 44}}.entry("columns-into-dual"),
		gemmSpec{rows: 9, n: []int{40}, k: 24, dual: 8, columns: pass.Span{From: 41, To: 47}}.entry("columns-dual-only"),
		gemmSpec{rows: 4, n: []int{70}, k: 15, columns: pass.Span{From: 65, To: 66}, epilogue: pass.GELUResidual}.entry("columns-one"),
		gemmSpec{rows: 4, n: []int{70}, k: 15, columns: pass.Span{From: 7, To: 7}}.entry("columns-none"),
		gemmSpec{rows: 31, n: []int{1}, k: 128, bias: true, epilogue: pass.Sigmoid}.entry("silero-head"),
		gemmSpec{rows: 17, n: []int{64}, k: 128, exact: true}.entry("exact"),
		gemmSpec{rows: 2, n: []int{5}, k: 2100}.entry("long-sum"),
		gemmSpec{rows: 0, n: []int{5}, k: 8}.entry("no-rows"),
		gemmSpec{rows: 6, n: []int{33}, k: 40, special: func(c *Case) { // NaN reaches its own row only
			c.Inputs[0].Words[2*40+7] = nan
			c.Inputs[0].Words[5*40+39] = nan
		}}.entry("nan-in-rows"),
		gemmSpec{rows: 3, n: []int{7}, k: 12, epilogue: pass.ReLU, special: func(c *Case) { c.Inputs[0].Words[12] = nan }}.entry("nan-relu"),
		gemmSpec{rows: 3, n: []int{7}, k: 12, epilogue: pass.Residual(0.5), special: func(c *Case) { c.Inputs[1].Words[8] = nan }}.entry("nan-residual"),
		gemmSpec{rows: 4, n: []int{16}, k: 16, special: scaleInput(1e15)}.entry("large"),
		gemmSpec{rows: 4, n: []int{16}, k: 16, epilogue: pass.Tanh, special: scaleInput(1e30)}.entry("large-tanh"),
		gemmSpec{rows: 4, n: []int{16}, k: 16, epilogue: pass.Sigmoid, special: scaleInput(1e30)}.entry("large-sigmoid"),
	)
	for _, ep := range epilogues() {
		for _, rows := range []int{1, 37, 70, 2100} {
			for _, n := range []int{164, 288} {
				for _, parts := range [][]int{{n}, {n - 64, 64}} {
					for _, s := range []gemmSpec{{bias: true}, {}, {dual: 33}} {
						s.rows, s.n, s.k, s.epilogue = rows, parts, 65, ep
						all = append(all, full(s.entry(fmt.Sprintf("wide%d-%v-bias-%v-dual-%d", len(parts), ep, s.bias, s.dual))))
					}
				}
			}
		}
	}
	for _, rows := range e {
		for _, n := range e {
			all = append(all, full(gemmSpec{rows: rows, n: []int{n}, k: 65}.entry("pairs")))
		}
	}
	return all
}

// An embedSpec is an Embed case in few words. Indices are nil for the constants of the
// op, one number for the batch, or one for each item.
type embedSpec struct {
	op         pass.Embed
	n, k, ids  int // rows and columns of the table; rows of ids
	typ        pass.DType
	positions  int // rows of positions; 0: none
	idRow, pos []uint32
}

func (s embedSpec) entry(label string) Entry {
	name := fmt.Sprintf("embed/%s-%dx%d-%dx%d", label, max(s.op.Batch, 1), s.op.Rows, s.n, s.k)
	return Entry{Name: name, Op: "embed", make: func(name string) Case {
		batch := max(s.op.Batch, 1)
		s.op.IDRows = s.ids
		words := RecipeWords(name+"/IDs", 1, batch*s.ids)
		for i := range words {
			words[i] %= uint32(s.n)
		}
		c := Case{Op: s.op, Inputs: []Tensor{U32("IDs", words, batch, s.ids, 1)}, Outputs: []string{"Out"}}
		typ := s.typ
		if typ == 0 {
			typ = pass.F32
		}
		c.Params = []Param{{"Table", linearWeights(name, typ, []int{s.n}, s.k, false, 0)}}
		if s.positions > 0 {
			c.Params = append(c.Params, Param{"Positions", linearWeights(name+"/pos", pass.F32, []int{s.positions}, s.k, false, 0)})
		}
		c.setIndex("IDRow", s.idRow)
		c.setIndex("Pos", s.pos)
		return c
	}}
}

// setIndex puts an index on the device, if there are numbers: one for the batch, or one
// for each item.
func (c *Case) setIndex(field string, numbers []uint32) {
	switch len(numbers) {
	case 0:
	case 1:
		c.Inputs = append(c.Inputs, U32(field, numbers))
	default:
		c.Inputs = append(c.Inputs, U32(field, numbers, len(numbers)))
	}
}

func embedEntries() []Entry {
	var all []Entry
	add := func(label string, s embedSpec) { all = append(all, s.entry(label)) }
	e := edges()
	for i, rows := range e[:10] {
		add("edge", embedSpec{op: pass.Embed{Batch: i % 3, Rows: rows}, n: 5 + i, k: e[(5*i+2)%len(e)], ids: rows, positions: rows * (i % 2)})
	}
	for _, t := range []pass.DType{pass.F32, pass.F16, pass.BF16, pass.Q8_0} {
		add(t.String(), embedSpec{op: pass.Embed{Rows: 5}, n: 11, k: 64, ids: 5, typ: t, positions: 5})
	}
	add("positions", embedSpec{op: pass.Embed{Batch: 2, Rows: 3, Pos: pass.Const(4)}, n: 9, k: 20, ids: 3, positions: 7})
	add("id-row", embedSpec{op: pass.Embed{Batch: 2, Rows: 3, IDRow: pass.Const(2)}, n: 9, k: 20, ids: 6})
	add("index", embedSpec{op: pass.Embed{Batch: 3, Rows: 1}, n: 9, k: 20, ids: 6, positions: 8, idRow: []uint32{5}, pos: []uint32{7}})
	add("index-each", embedSpec{op: pass.Embed{Batch: 3, Rows: 2}, n: 9, k: 20, ids: 6, positions: 8, idRow: []uint32{4, 0, 1}, pos: []uint32{0, 6, 2}})
	add("index-plus", embedSpec{op: pass.Embed{Batch: 3, Rows: 2, IDRow: pass.Const(1), Pos: pass.Const(3)}, n: 9, k: 20, ids: 6, positions: 9, idRow: []uint32{3, 0, 1}, pos: []uint32{4}})
	add("whisper", embedSpec{op: pass.Embed{Batch: 2, Rows: 1}, n: 100, k: 384, ids: 12, typ: pass.Q8_0, positions: 20, idRow: []uint32{3, 11}, pos: []uint32{3, 11}})
	add("no-rows", embedSpec{op: pass.Embed{Rows: 0}, n: 3, k: 8, ids: 1})
	return all
}
