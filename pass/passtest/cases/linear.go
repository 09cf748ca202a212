package cases

import (
	"fmt"

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
	all = append(all,
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
	for _, rows := range []int{37, 70} {
		for _, n := range []int{164, 288} {
			for i, ep := range epilogues() {
				all = append(all, full(gemmSpec{rows: rows, n: []int{n - 64, 64}, k: 129, bias: i%2 == 0, dual: 33 * (i % 3), epilogue: ep}.entry("wide-"+ep.String())))
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
