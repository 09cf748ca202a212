package gguf

import (
	"fmt"
	"io"

	"github.com/tandem-gpu/tandem/pass"
)

// A Type is an element type of ggml, by its number in files. Files may hold types that
// are not among the constants; those can be listed but not loaded.
type Type uint32

// The element types that can be loaded.
const (
	F32  Type = 0
	F16  Type = 1
	Q8_0 Type = 8
	BF16 Type = 30
)

// typeNames are the names of all types that have one, for errors.
var typeNames = map[Type]string{
	F32: "F32", F16: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", Q8_0: "Q8_0", 9: "Q8_1",
	10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
	24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", BF16: "BF16",
	34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}

// String returns the name that ggml gives the type.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("Type(%d)", uint32(t))
}

// pass returns the type's counterpart, if there is one.
func (t Type) pass() (pass.DType, bool) {
	switch t {
	case F32:
		return pass.F32, true
	case F16:
		return pass.F16, true
	case Q8_0:
		return pass.Q8_0, true
	case BF16:
		return pass.BF16, true
	}
	return 0, false
}

// A Tensor is a tensor of a file, or one to be written. It owns nothing.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int       // outermost axis first, at most four; none for a scalar
	Data  io.ReaderAt // the elements in row-major order, little-endian, from offset 0
}

// Of returns t in the terms of this package. A type that has no form here, such as
// pass.U32, is refused by [Write].
func Of(t pass.Tensor) Tensor {
	g := Tensor{Name: t.Name, Type: ^Type(0), Shape: t.Shape, Data: t.Data}
	for _, typ := range []Type{F32, F16, Q8_0, BF16} {
		if p, _ := typ.pass(); p == t.Type {
			g.Type = typ
		}
	}
	return g
}

// bytes returns the size of the data, and whether the type is one whose size is known.
// The size is -1 if the shape is not usable or does not fit the type.
func (t Tensor) bytes() (int64, bool) {
	p := pass.Tensor{Shape: t.Shape}
	if p.Len() < 0 {
		return -1, true
	}
	d, ok := t.Type.pass()
	if !ok {
		return 0, false
	}
	p.Type = d
	return p.Bytes(), true
}
