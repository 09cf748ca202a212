package cases

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A kind is what the cases of one op have in common. Each family file declares its
// kinds.
type kind struct {
	zero    pass.Op
	outputs []string // that are written unless a case says otherwise
	keeps   []string // outputs of which some may be left as they were
	// sizes names, for a tensor, the fields that its axes [batch][rows][cols] give where
	// a folder leaves them out.
	sizes   map[string][3]string
	needs   []string                                  // fields that a folder may not leave out
	weights func(*weightReader) (pass.Weights, error) // of its params; nil: none
	spare   []string                                  // params that may be missing
	element func(Case) pass.DType                     // type of outputs; nil: F32
	list    func() []Entry
	// check looks at numbers that only package truth would stumble over; nil: there are
	// none.
	check func(pass.Checked, *data) error
	truth func(pass.Checked, *data) ([]Tensor, error)
	match func(Case) Tolerance // zero: as the math says; nil: always
}

// kinds lists the ops that have cases, family by family.
func kinds() []kind {
	return []kind{
		gemmKind(), embedKind(),
		conv1DKind(), lstmKind(),
		mapKind(), magnitudeKind(), addKind(), scaleKind(), swiGLUKind(), gluKind(),
		layerNormKind(), groupNormKind(), poolNormKind(), l2NormKind(),
		softmaxKind(), logSoftmaxKind(), argmaxKind(),
		ropeKind(),
		attentionKind(), appendKind(), attendKind(),
		convGLUKind(), depthwiseKind(), conv2DKind(),
		logMelKind(), statsPoolKind(),
		permuteKind(), copyKind(), fillKind(), advanceKind(),
	}
}

func kindOf(op string) (kind, error) {
	var names []string
	for _, k := range kinds() {
		if k.zero.Name() == op {
			return k, nil
		}
		names = append(names, k.zero.Name())
	}
	return kind{}, invalid("op: want one of %v, given %q", names, op)
}

// data hands the tensors of a case to package truth.
type data struct {
	c   Case
	err error
}

// values returns an input as float64, or nil if there is none.
func (d *data) values(name string) []float64 {
	t, ok := find(d.c.Inputs, d.same(name))
	if !ok {
		return nil
	}
	return t.float64s()
}

// words returns an input's words, or zeros if there is none.
func (d *data) words(name string, n int) []uint32 {
	if t, ok := find(d.c.Inputs, d.same(name)); ok {
		return t.Words
	}
	return make([]uint32, n)
}

// same returns the name that holds the data of an argument.
func (d *data) same(name string) string {
	if in, ok := d.c.Same[name]; ok {
		return in
	}
	return name
}

// items returns one number for each item, from 0 to most: from the device, fixed, or
// the default.
func (d *data) items(name string, fixed pass.Items, batch, most int, otherwise func(b int) int) []int {
	numbers := make([]int, batch)
	t, onDevice := find(d.c.Inputs, name)
	for b := range numbers {
		switch {
		case onDevice:
			numbers[b] = int(t.Words[b])
		case !fixed.IsZero():
			numbers[b] = fixed.Fixed()[b]
		default:
			numbers[b] = otherwise(b)
		}
		numbers[b] = d.within(name, b, numbers[b], most)
	}
	return numbers
}

// index returns an index for each item, from 0 to most.
func (d *data) index(name string, x pass.Index, batch, most int) []int {
	numbers := make([]int, batch)
	t, ok := find(d.c.Inputs, name)
	for b := range numbers {
		switch {
		case !ok:
			numbers[b], _ = x.Const()
		case len(t.Shape) == 0:
			numbers[b] = int(t.Words[0]) + x.Addend()
		default:
			numbers[b] = int(t.Words[b]) + x.Addend()
		}
		numbers[b] = d.within(name, b, numbers[b], most)
	}
	return numbers
}

// lengths returns one number for each item: those of Lengths, or n.
func (d *data) lengths(fixed pass.Items, batch, n int) []int {
	return d.items("Lengths", fixed, batch, n, func(int) int { return n })
}

// within returns a number, which package truth will trust, or the most that it may be. The
// first that is more is the error of the data.
func (d *data) within(name string, item, n, most int) int {
	if n <= most {
		return n
	}
	if d.err == nil {
		d.err = invalid("%s: %s: item %d: want 0 to %d, given %d", d.c.Name, name, item, most, n)
	}
	return most
}

func (d *data) weights(field string) pass.Weights {
	for _, p := range d.c.Params {
		if p.Field == field {
			return p.Weights
		}
	}
	return nil
}

func (d *data) decode(t pass.Tensor) []float64 {
	values, err := decode(t)
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("cases: %s: %w", d.c.Name, err)
	}
	return values
}

// result makes the wanted tensor of an argument.
func result(op pass.Checked, name string, words []uint32) Tensor {
	a, _ := argument(op, name)
	return Tensor{name, a.View.Buffer.Type(), []int{a.Batch, a.Rows, a.Cols}, words}
}

func widen(values []float32) []float64 {
	if values == nil {
		return nil
	}
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	return wide
}
