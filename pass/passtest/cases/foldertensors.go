package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

// file returns the tensor as it is written.
func (t Tensor) file(name string) safetensors.Tensor {
	b := make([]byte, 0, 4*len(t.Words))
	for _, w := range t.Words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return safetensors.Tensor{Name: name, DType: safetensors.DType(t.Type.String()), Shape: t.Shape, Data: bytes.NewReader(b)}
}

// weightTensors returns weights as they are written.
func weightTensors(p Param) []safetensors.Tensor {
	var all []safetensors.Tensor
	matrix := func(name string, t pass.Tensor) {
		s := safetensors.Of(t)
		s.Name = p.Field + name
		if t.Type == pass.Q8_0 { // as bytes: [..., k/32, 34]
			last := len(t.Shape) - 1
			s.DType = safetensors.U8
			s.Shape = append(slices.Clone(t.Shape[:last]), t.Shape[last]/pass.Q8Block, pass.Q8BlockBytes)
		}
		all = append(all, s)
	}
	vector := func(name string, values []float32) {
		if values != nil {
			all = append(all, safetensors.Of(pass.Float32s(p.Field+name, values, len(values))))
		}
	}
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
	}
	return all
}

// A tensorReader holds the tensors of a folder by name.
type tensorReader struct {
	names   []string
	tensors map[string]safetensors.Tensor
}

// openTensors reads a whole file and checks shapes that case.json states.
func openTensors(path string, shapes map[string][]int) (*tensorReader, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &tensorReader{names: f.Names(), tensors: map[string]safetensors.Tensor{}}
	for _, name := range r.names {
		t, err := f.Raw(name)
		if err != nil {
			return nil, err
		}
		n := t.Bytes()
		if n < 0 {
			return nil, invalid("tensor %.80q: type %.20q can't be read", name, string(t.DType))
		}
		b := make([]byte, n) // the reader has checked that the file is as long
		if k, err := t.Data.ReadAt(b, 0); k < len(b) {
			return nil, fmt.Errorf("tensor %.80q: %w", name, orUnexpected(err))
		}
		t.Data = bytes.NewReader(b)
		r.tensors[name] = t
	}
	for _, name := range sortedKeys(shapes) {
		t, ok := r.tensors[name]
		if !ok {
			return nil, invalid("tensor %.80q of shapes: want one of the file's %.400q", name, r.names)
		}
		if !slices.Equal(t.Shape, shapes[name]) {
			return nil, invalid("tensor %.80q: shapes says %v, the file has %v", name, shapes[name], t.Shape)
		}
	}
	return r, nil
}

// sort puts every tensor of the file where it belongs in the case, in the order of the
// op's fields.
func (r *tensorReader) sort(c *Case, k kind) error {
	kind := reflect.TypeOf(c.Op)
	used := 0
	for i := range kind.NumField() {
		field := kind.Field(i)
		switch field.Type {
		case viewType, itemsType, indexType:
			for _, name := range []string{field.Name, wantPrefix + field.Name} {
				t, ok := r.tensors[name]
				if !ok {
					continue
				}
				used++
				words, err := wordsOf(t, field.Type != viewType)
				if err != nil {
					return fmt.Errorf("tensor %.80q: %w", name, err)
				}
				words.Name = field.Name
				if name == field.Name {
					c.Inputs = append(c.Inputs, words)
				} else {
					c.Wanted = append(c.Wanted, words)
				}
			}
		case paramType:
			w := &weightReader{r: r, field: field.Name}
			weights, err := k.weights(w)
			if err != nil {
				return err
			}
			used += w.used
			if _, err := weights.Shape(); err != nil {
				return err
			}
			c.Params = append(c.Params, Param{field.Name, weights})
		}
	}
	if used < len(r.names) {
		return r.unknown(c)
	}
	return nil
}

// unknown names a tensor that has no place in the op.
func (r *tensorReader) unknown(c *Case) error {
	kind := reflect.TypeOf(c.Op)
	for _, name := range r.names {
		field, _, _ := strings.Cut(strings.TrimPrefix(name, wantPrefix), ".")
		if f, ok := kind.FieldByName(field); !ok || f.Type.Kind() != reflect.Struct {
			return invalid("tensor %.80q: %s has no argument of this name", name, c.Op.Name())
		}
	}
	return invalid("tensors %.400q: some have no place in %s; see FORMAT.md for the names of weights", r.names, c.Op.Name())
}

// wordsOf reads a tensor as words of F32 or U32. F64 is rounded; signed integers must
// fit. A count must be an integer.
func wordsOf(t safetensors.Tensor, count bool) (Tensor, error) {
	w := Tensor{Type: pass.F32, Shape: t.Shape}
	switch t.DType {
	case safetensors.F32, safetensors.U32:
		if t.DType == safetensors.U32 {
			w.Type = pass.U32
		}
		b := make([]byte, t.Bytes())
		if _, err := t.Data.ReadAt(b, 0); err != nil && len(b) > 0 {
			return w, err
		}
		for ; len(b) > 0; b = b[4:] {
			w.Words = append(w.Words, binary.LittleEndian.Uint32(b))
		}
	case safetensors.F64, safetensors.F16, safetensors.BF16:
		values, err := t.Float64s()
		if err != nil {
			return w, err
		}
		w.Words = rounded(values)
	default:
		values, err := t.Int64s()
		if err != nil {
			return w, err
		}
		w.Type = pass.U32
		for i, v := range values {
			if v < 0 || v > math.MaxUint32 {
				return w, invalid("element %d: want 0 to %d, given %d", i, uint32(math.MaxUint32), v)
			}
			w.Words = append(w.Words, uint32(v))
		}
	}
	if count && w.Type != pass.U32 {
		return w, invalid("want whole numbers (U32, I32 or I64), given %s", t.DType)
	}
	return w, nil
}

// A weightReader reads the tensors of one param.
type weightReader struct {
	r     *tensorReader
	field string
	used  int
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
