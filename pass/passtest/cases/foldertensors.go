package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
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
func (r *tensorReader) sort(c *Case, k kind, j caseJSON) error {
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
			w := &weightReader{r: r, field: field.Name, fields: j.Params[field.Name]}
			if slices.Contains(k.spare, field.Name) && !w.any() {
				continue
			}
			weights, err := k.weights(w)
			if err != nil {
				return err
			}
			used += w.used
			if _, err := weights.Shape(); err != nil {
				return err
			}
			c.Params = append(c.Params, Param{field.Name, weights})
		case cacheType:
			h, err := r.cache(field.Name, j.Caches[field.Name])
			if err != nil {
				return err
			}
			used += 2
			c.Caches = append(c.Caches, h)
			for _, part := range cacheParts(field.Name) {
				if t, ok := r.tensors[wantPrefix+part]; ok {
					used++
					words, err := wordsOf(t, false)
					if err != nil {
						return fmt.Errorf("tensor %.80q: %w", wantPrefix+part, err)
					}
					words.Name = part
					c.Wanted = append(c.Wanted, words)
				}
			}
		}
	}
	for _, name := range sortedKeys(j.Params) {
		if f, ok := kind.FieldByName(name); !ok || f.Type != paramType {
			return invalid("params: %s has no param %.80q", c.Op.Name(), name)
		}
	}
	for _, name := range sortedKeys(j.Caches) {
		if f, ok := kind.FieldByName(name); !ok || f.Type != cacheType {
			return invalid("caches: %s has no cache %.80q", c.Op.Name(), name)
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
