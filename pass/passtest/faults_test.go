package passtest

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// adderStep recognises the op of an adder: it must not allocate.
func adderStep(op pass.Checked) (pass.Gemm, bool) {
	m, ok := op.Op.(pass.Gemm)
	if !ok {
		return m, false
	}
	shape := m.W.Shape().(pass.LinearShape)
	return m, shape == pass.LinearShape{N: 1, K: 1, Type: pass.F32} && m.Epilogue == pass.Residual(1) && m.Batch == 1
}

func (g *toyProgram) add(op pass.Checked, m pass.Gemm) error {
	a, c := g.words(g.p.Place(m.A.Buffer)), g.words(g.p.Place(m.C.Buffer))
	for r := range m.Rows {
		i, j := m.A.Offset+r*m.A.RowStride, m.C.Offset+r*m.C.RowStride
		c[j] = math.Float32bits(math.Float32frombits(c[j]) + math.Float32frombits(a[i]))
	}
	if g.s.h.fault == "params forgotten" && g.runs > 0 && g.p.Param(op.Params[0].Param).(*toyMemory).weights == nil {
		c[m.C.Offset] = 0
	}
	return nil
}

// withoutLengths is an op that takes every item as long as the longest.
func withoutLengths(op pass.Op, fault string) pass.Op {
	if fault != "lengths ignored" {
		return op
	}
	switch v := op.(type) {
	case pass.Conv1D:
		v.Lengths = pass.Items{}
		return v
	case pass.LSTM:
		v.Lengths = pass.Items{}
		return v
	}
	return op
}

// spoil changes what an op computes.
func (g *toyProgram) spoil(op pass.Checked, t *cases.Tensor) {
	if len(t.Words) == 0 || t.Type != pass.F32 {
		return
	}
	last := len(t.Words) - 1
	values := t.Float32s()
	switch g.s.h.fault {
	case "off by 1e-3":
		values[last] += 1e-3
	case "scaled by 1e-5":
		for i := range values {
			values[i] *= 1 + 1e-5
		}
	case "nan swallowed":
		for i, v := range values {
			if v != v {
				values[i] = 0
			}
		}
	case "nan spread":
		for _, v := range values {
			if v != v {
				values[0] = v
			}
		}
	case "tanh overflows":
		for i, v := range values {
			if v == 1 || v == -1 {
				values[i] = float32(math.NaN())
			}
		}
	case "negative zero lost":
		for i, v := range values {
			if v == 0 {
				values[i] = 0
			}
		}
	case "last bit differs by run":
		t.Words[last] ^= uint32(g.runs & 1)
		return
	case "last bit differs by part":
		if a := op.Args[0]; a.Batch*a.Rows == 1 {
			t.Words[last] ^= 1
		}
		return
	case "states forgotten":
		if t.Name == "H" || t.Name == "C" {
			for i := range values {
				values[i] = 0
			}
		}
	default:
		return
	}
	t.Words = cases.F32("", values).Words
}
