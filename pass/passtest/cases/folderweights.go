package cases

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

// weightTensors returns weights as they are written.
func weightTensors(p Param) []safetensors.Tensor {
	f := &weightWriter{field: p.Field}
	matrix, vector := f.matrix, f.vector
	switch w := p.Weights.(type) {
	case pass.LinearWeights:
		for i, t := range w.Parts {
			matrix(fmt.Sprintf(".%d", i), t)
		}
		vector(".bias", w.Bias)
		vector(".dual", w.Dual)
	case pass.ConvWeights:
		matrix("", w.Weight)
		vector(".bias", w.Bias)
	case pass.LSTMWeights:
		for l, layer := range w.Layers {
			for d, cell := range layer {
				matrix(fmt.Sprintf(".%d.%d.input", l, d), cell.Input)
				matrix(fmt.Sprintf(".%d.%d.hidden", l, d), cell.Hidden)
				vector(fmt.Sprintf(".%d.%d.bias", l, d), cell.Bias)
			}
		}
	case pass.Conv2DWeights:
		matrix("", w.Weight)
		vector(".bias", w.Bias)
	case pass.NormWeights:
		vector(".gain", w.Gain)
		vector(".bias", w.Bias)
	case pass.ConvGLUWeights:
		matrix("", w.Weight)
		vector(".bias", w.Bias)
		vector(".gain", w.Gain)
		vector(".shift", w.Shift)
	case pass.DepthwiseWeights:
		matrix("", w.Weight)
		vector(".bias", w.Bias)
		if w.First.Data != nil {
			matrix(".first", w.First)
		}
		vector(".first.bias", w.FirstBias)
	case pass.MelWeights:
		vector(".window", w.Window)
		vector(".bank", w.Bank)
	}
	return f.all
}

// A weightWriter collects the tensors of one param.
type weightWriter struct {
	field string
	all   []safetensors.Tensor
}

func (f *weightWriter) matrix(name string, t pass.Tensor) {
	s := safetensors.Of(t)
	s.Name = f.field + name
	if t.Type == pass.Q8_0 { // as bytes: [..., k/32, 34]
		last := len(t.Shape) - 1
		s.DType = safetensors.U8
		s.Shape = append(slices.Clone(t.Shape[:last]), t.Shape[last]/pass.Q8Block, pass.Q8BlockBytes)
	}
	f.all = append(f.all, s)
}

func (f *weightWriter) vector(name string, values []float32) {
	if values != nil {
		f.all = append(f.all, safetensors.Of(pass.Float32s(f.field+name, values, len(values))))
	}
}

// A weightReader reads the tensors of one param.
type weightReader struct {
	r      *tensorReader
	field  string
	fields paramJSON // what is no tensor
	used   int
}

// any reports whether there is anything of the param.
func (w *weightReader) any() bool {
	return w.fields != nil || slices.ContainsFunc(w.r.names, func(name string) bool {
		return name == w.field || strings.HasPrefix(name, w.field+".")
	})
}

func (w *weightReader) conv2D() (pass.Weights, error) {
	c := pass.Conv2DWeights{Name: w.field}
	var err error
	if c.Weight, err = w.matrix(""); err != nil {
		return nil, err
	}
	c.Bias, err = w.vector(".bias")
	return c, err
}

func (w *weightReader) norm() (pass.Weights, error) {
	n := pass.NormWeights{Name: w.field}
	err := w.vectors(map[string]*[]float32{".gain": &n.Gain, ".bias": &n.Bias})
	return n, err
}

func (w *weightReader) rope() (pass.Weights, error) {
	return decodeFields(pass.RopeWeights{Name: w.field}, "params: "+w.field, w.fields)
}

func (w *weightReader) convGLU() (pass.Weights, error) {
	g, err := decodeFields(pass.ConvGLUWeights{Name: w.field}, "params: "+w.field, w.fields)
	if err != nil {
		return nil, err
	}
	if g.Weight, err = w.matrix(""); err != nil {
		return nil, err
	}
	err = w.vectors(map[string]*[]float32{".bias": &g.Bias, ".gain": &g.Gain, ".shift": &g.Shift})
	return g, err
}

func (w *weightReader) depthwise() (pass.Weights, error) {
	d := pass.DepthwiseWeights{Name: w.field}
	var err error
	if d.Weight, err = w.matrix(""); err != nil {
		return nil, err
	}
	if w.has(".first") {
		if d.First, err = w.matrix(".first"); err != nil {
			return nil, err
		}
	}
	err = w.vectors(map[string]*[]float32{".bias": &d.Bias, ".first.bias": &d.FirstBias})
	return d, err
}

func (w *weightReader) mel() (pass.Weights, error) {
	m, err := decodeFields(pass.MelWeights{Name: w.field}, "params: "+w.field, w.fields)
	if err != nil {
		return nil, err
	}
	err = w.vectors(map[string]*[]float32{".window": &m.Window, ".bank": &m.Bank})
	return m, err
}

// vectors reads what is there of several vectors.
func (w *weightReader) vectors(all map[string]*[]float32) error {
	for _, suffix := range sortedKeys(all) {
		values, err := w.vector(suffix)
		if err != nil {
			return err
		}
		*all[suffix] = values
	}
	return nil
}

func (w *weightReader) conv() (pass.Weights, error) {
	c := pass.ConvWeights{Name: w.field}
	var err error
	if c.Weight, err = w.matrix(""); err != nil {
		return nil, err
	}
	c.Bias, err = w.vector(".bias")
	return c, err
}

func (w *weightReader) linear() (pass.Weights, error) {
	l := pass.LinearWeights{Name: w.field}
	if !w.has("") && !w.has(".0") {
		return nil, invalid("weights: want a tensor %q or %q, given %.400q", w.field, w.field+".0", w.r.names)
	}
	parts := []string{""}
	if !w.has("") {
		parts = nil
		for i := 0; w.has("." + strconv.Itoa(i)); i++ {
			parts = append(parts, "."+strconv.Itoa(i))
		}
	}
	for _, suffix := range parts {
		t, err := w.matrix(suffix)
		if err != nil {
			return nil, err
		}
		l.Parts = append(l.Parts, t)
	}
	var err error
	if l.Bias, err = w.vector(".bias"); err != nil {
		return nil, err
	}
	l.Dual, err = w.vector(".dual")
	return l, err
}

func (w *weightReader) lstm() (pass.Weights, error) {
	s := pass.LSTMWeights{Name: w.field}
	for l := 0; l == 0 || w.has(fmt.Sprintf(".%d.0.input", l)); l++ {
		var layer []pass.LSTMCell
		for d := 0; d == 0 || w.has(fmt.Sprintf(".%d.%d.input", l, d)); d++ {
			cell, err := w.cell(fmt.Sprintf(".%d.%d", l, d))
			if err != nil {
				return nil, err
			}
			layer = append(layer, cell)
		}
		s.Layers = append(s.Layers, layer)
	}
	return s, nil
}

func (w *weightReader) cell(prefix string) (cell pass.LSTMCell, err error) {
	if cell.Input, err = w.matrix(prefix + ".input"); err != nil {
		return cell, err
	}
	if cell.Hidden, err = w.matrix(prefix + ".hidden"); err != nil {
		return cell, err
	}
	cell.Bias, err = w.vector(prefix + ".bias")
	return cell, err
}

func (w *weightReader) has(suffix string) bool {
	_, ok := w.r.tensors[w.field+suffix]
	return ok
}

// matrix reads a tensor of a type of weights; bytes are Q8_0 blocks.
func (w *weightReader) matrix(suffix string) (pass.Tensor, error) {
	name := w.field + suffix
	t, ok := w.r.tensors[name]
	if !ok {
		return pass.Tensor{}, invalid("weights: want a tensor %q, given %.400q", name, w.r.names)
	}
	w.used++
	switch t.DType {
	case safetensors.U8:
		last := len(t.Shape) - 1
		if last < 1 || t.Shape[last] != pass.Q8BlockBytes {
			return pass.Tensor{}, invalid("weights %q: want bytes [...][blocks][%d] for Q8_0, given %v", name, pass.Q8BlockBytes, t.Shape)
		}
		shape := slices.Clone(t.Shape[:last])
		shape[last-1] *= pass.Q8Block
		return pass.Tensor{Name: name, Type: pass.Q8_0, Shape: shape, Data: t.Data}, nil
	case safetensors.F64:
		values, err := wordsOf(t, false)
		return pass.Float32s(name, values.Float32s(), t.Shape...), err
	}
	p, err := t.Pass()
	if err != nil {
		return p, fmt.Errorf("weights: %w", err)
	}
	return p, nil
}

// vector reads biases, or nil if there are none.
func (w *weightReader) vector(suffix string) ([]float32, error) {
	t, ok := w.r.tensors[w.field+suffix]
	if !ok {
		return nil, nil
	}
	w.used++
	values, err := wordsOf(t, false)
	if err != nil || values.Type != pass.F32 || len(t.Shape) != 1 {
		return nil, invalid("weights %q: want one axis of F32, given %v of %s", w.field+suffix, t.Shape, t.DType)
	}
	return append([]float32{}, values.Float32s()...), nil
}
