package cases

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// A Case is one op with everything that it works on, and what it must compute.
type Case struct {
	// Name is unique and starts with the name of the op: "gemm/silu-37x164x65".
	Name string
	// Op holds the sizes and options. Its views, params, caches, and lengths that lie on
	// the device are zero: they are set by Bind. An index that lies on the device holds
	// the constant that is added to it.
	Op   pass.Op
	Math pass.Math
	// Tolerance is how far results may be off; zero: as the op's kind and Math say.
	Tolerance Tolerance
	// Inputs are the arguments that are read, and what outputs hold before where the
	// op leaves some of it alone or reads it. An output that is not here holds random
	// bits before.
	Inputs []Tensor
	// Params are the weights by the name of their field.
	Params []Param
	// Caches are what caches hold before.
	Caches []Cache
	// Outputs names the arguments that are written.
	Outputs []string
	// Same names arguments that share one buffer, in place: output → input.
	Same map[string]string
	// Wanted are outputs as they must be; those that are not here must be as package
	// truth computes them.
	Wanted []Tensor
}

// A Param is the weights of one field of an op.
type Param struct {
	Field   string
	Weights pass.Weights
}

// A Cache is what a cache holds before the op, put there by Append.
type Cache struct {
	Field  string
	Config pass.CacheConfig
	K, V   []float32 // [batch][capacity][heads·head dimension]
}

// An Entry is a case that is made when it is asked for.
type Entry struct {
	Name string // as Case.Name
	Op   string // as pass.Op.Name
	Full bool   // too slow for every day
	make func(name string) Case
}

// Case makes the case, the same every time.
func (e Entry) Case() Case {
	c := e.make(e.Name)
	c.Name = e.Name
	return c
}

// All returns all cases, family by family.
func All() []Entry {
	var all []Entry
	for _, k := range kinds() {
		list := k.list()
		if k.weights == nil || k.spare != nil || k.match != nil {
			thin(list)
		}
		all = append(all, list...)
		all = append(all, batchEntries(k.zero.Name())...)
	}
	return all
}

// thin leaves half of the edge sizes of an op for the large set: where nothing is tiled
// along two axes at once, the other half shows as much.
func thin(list []Entry) {
	edge := 0
	for i, e := range list {
		if !strings.Contains(e.Name, "/edge") {
			continue
		}
		list[i].Full = list[i].Full || edge%4 >= 2
		edge++
	}
}

// Ops returns the names of the ops that have cases, in the order of All.
func Ops() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.zero.Name())
	}
	return names
}

// Resolve checks the case and returns the op with every field set: its views are of
// made-up buffers, its params of no device. The arguments of the result say what
// shape each tensor has.
func (c Case) Resolve() (pass.Checked, error) {
	const huge = min(1<<40, math.MaxInt>>4) // elements; nothing is allocated
	views := map[string]pass.View{}
	for i, name := range c.arguments() {
		t := pass.F32
		if in, ok := find(c.Inputs, name); ok {
			t = in.Type
		} else if want, ok := find(c.Wanted, name); ok {
			t = want.Type
		} else if k, err := kindOf(c.Op.Name()); err == nil && k.element != nil {
			t = k.element(c)
		}
		views[name] = pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, ID: uint32(i + 1), Generation: 1}, t, huge).View()
	}
	for out, in := range c.Same {
		if t, _ := find(c.Inputs, in); len(t.Shape) == 3 { // strides for an output of fewer columns
			views[in] = views[in].Rows(t.Shape[2]).Batch(t.Shape[1] * t.Shape[2])
		}
		views[out] = views[in]
	}
	params := map[string]pass.Param{}
	for i, p := range c.Params {
		shape, err := p.Weights.Shape()
		if err != nil {
			return pass.Checked{}, fmt.Errorf("cases: %s: %s: %w", c.Name, p.Field, err)
		}
		params[p.Field] = pass.MakeParam(pass.Ref{Device: 1, ID: uint32(i + 1), Generation: 1}, shape)
	}
	caches := map[string]pass.Cache{}
	for i, h := range c.Caches {
		g, err := h.check()
		if err != nil {
			return pass.Checked{}, fmt.Errorf("cases: %s: %s: %w", c.Name, h.Field, err)
		}
		caches[h.Field] = pass.MakeCache(pass.Ref{Device: 1, Session: 1, ID: uint32(i + 1), Generation: 1}, g)
	}
	op, err := c.Bind(views, params, caches)
	if err != nil {
		return pass.Checked{}, err
	}
	checked, err := pass.Check(op)
	if err != nil {
		return pass.Checked{}, fmt.Errorf("cases: %s: %w", c.Name, err)
	}
	for _, a := range checked.Args {
		if rows := bounded(a.Batch, a.Rows); bounded(rows, a.Cols) > most {
			return pass.Checked{}, invalid("%s: %s: want at most %d elements, given %d×%d×%d", c.Name, a.Name, most, a.Batch, a.Rows, a.Cols)
		}
		t, ok := find(c.Inputs, a.Name)
		if !ok && a.Access&pass.Read != 0 {
			return pass.Checked{}, invalid("%s: %s: want a tensor, given none", c.Name, a.Name)
		}
		if want := []int{a.Batch, a.Rows, a.Cols}; ok && !sameShape(t.Shape, want) {
			return pass.Checked{}, invalid("%s: %s: want shape %v, given %v", c.Name, a.Name, want, t.Shape)
		}
		if ok && len(t.Words) != volume(t.Shape) {
			return pass.Checked{}, invalid("%s: %s: want %d elements for shape %v, given %d", c.Name, a.Name, volume(t.Shape), t.Shape, len(t.Words))
		}
	}
	if k, err := kindOf(c.Op.Name()); err == nil && k.check != nil {
		if err := k.check(checked, &data{c: c}); err != nil {
			return pass.Checked{}, err
		}
	}
	for _, want := range c.Wanted {
		if slices.ContainsFunc(checked.Caches, func(u pass.CacheUse) bool {
			return u.Access&pass.Write != 0 && slices.Contains(cacheParts(u.Name), want.Name)
		}) {
			continue
		}
		a, ok := argument(checked, want.Name)
		shape := []int{a.Batch, a.Rows, a.Cols}
		switch {
		case !ok || a.Access&pass.Write == 0:
			return pass.Checked{}, invalid("%s: wanted %s: want an output of the op", c.Name, want.Name)
		case !sameShape(want.Shape, shape) || len(want.Words) != volume(shape):
			return pass.Checked{}, invalid("%s: wanted %s: want shape %v, given %v with %d elements", c.Name, want.Name, shape, want.Shape, len(want.Words))
		case want.Type != a.View.Buffer.Type():
			return pass.Checked{}, invalid("%s: wanted %s: want type %v, given %v", c.Name, want.Name, a.View.Buffer.Type(), want.Type)
		}
	}
	return checked, nil
}

func argument(op pass.Checked, name string) (pass.Arg, bool) {
	i := slices.IndexFunc(op.Args, func(a pass.Arg) bool { return a.Name == name })
	if i < 0 {
		return pass.Arg{}, false
	}
	return op.Args[i], true
}

// most is how many elements an argument of a case may have.
const most = 1 << 26

// bounded multiplies sizes, of which 0 counts as 1, up to something over most.
func bounded(a, b int) int {
	a, b = max(a, 1), max(b, 1)
	if a > most/b {
		return most + 1
	}
	return a * b
}

// arguments returns the names of all tensors that become views, inputs first.
func (c Case) arguments() []string {
	var names []string
	for _, t := range c.Inputs {
		names = append(names, t.Name)
	}
	for _, name := range c.Outputs {
		if _, ok := find(c.Inputs, name); !ok {
			names = append(names, name)
		}
	}
	return names
}

// Want returns the outputs as they must be, with their shapes as the op gives them.
func (c Case) Want() ([]Tensor, error) {
	checked, err := c.Resolve()
	if err != nil {
		return nil, err
	}
	wanted := c.Wanted
	var truth []Tensor
	var out []Tensor
	for _, a := range checked.Args {
		if a.Access&pass.Write == 0 {
			continue
		}
		t, ok := find(wanted, a.Name)
		if !ok && truth == nil {
			if truth, err = c.Truth(); err != nil {
				return nil, err
			}
		}
		if !ok {
			t, ok = find(truth, a.Name)
		}
		if !ok {
			return nil, invalid("%s: %s: no wanted values", c.Name, a.Name)
		}
		t.Shape = []int{a.Batch, a.Rows, a.Cols}
		out = append(out, t)
	}
	for _, h := range checked.Caches {
		if h.Access&pass.Write == 0 {
			continue
		}
		if truth == nil {
			if truth, err = c.Truth(); err != nil {
				return nil, err
			}
		}
		for _, part := range cacheParts(h.Name) {
			t, ok := find(wanted, part)
			if !ok {
				t, _ = find(truth, part)
			}
			if len(t.Words) != cacheLen(h.Config()) {
				return nil, invalid("%s: wanted %s: want %d elements, given %d", c.Name, part, cacheLen(h.Config()), len(t.Words))
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// Truth computes the outputs in float64, whatever Wanted holds.
func (c Case) Truth() ([]Tensor, error) {
	checked, err := c.Resolve()
	if err != nil {
		return nil, err
	}
	k, err := kindOf(c.Op.Name())
	if err != nil {
		return nil, err
	}
	d := &data{c: c}
	outputs, err := k.truth(checked, d)
	if err == nil {
		err = d.err
	}
	return outputs, err
}

// In returns the case in another kind of math. A tolerance of its own is widened to
// what Fast may be off, unless the op demands to be exact.
func (c Case) In(m pass.Math) Case {
	if m == pass.Fast && c.Math != m && c.Tolerance != (Tolerance{}) && c.Tolerance.Match == Near && !demandsExact(c.Op) {
		c.Tolerance.L2 = max(c.Tolerance.L2, FastTolerance.L2)
		c.Tolerance.Max = max(c.Tolerance.Max, FastTolerance.Max)
	}
	c.Math = m
	return c
}

// Limits returns how far results may be off.
func (c Case) Limits() Tolerance {
	if c.Tolerance != (Tolerance{}) {
		return c.Tolerance
	}
	if k, err := kindOf(c.Op.Name()); err == nil && k.match != nil {
		if t := k.match(c); t != (Tolerance{}) {
			return t
		}
	}
	if c.Math == pass.Fast && !demandsExact(c.Op) {
		return FastTolerance
	}
	return ExactTolerance
}

// KeptOutputs returns the outputs of an op of which some may be left as they were.
func KeptOutputs(op pass.Op) []string {
	k, err := kindOf(op.Name())
	if err != nil {
		return nil
	}
	return k.keeps
}

// DefaultOutputs returns the arguments that an op always writes.
func DefaultOutputs(op pass.Op) []string {
	k, err := kindOf(op.Name())
	if err != nil {
		return nil
	}
	return k.outputs
}
