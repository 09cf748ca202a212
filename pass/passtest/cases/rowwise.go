package cases

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A rowSpec is a case in few words of an op that makes rows of the rows X.
type rowSpec struct {
	op                pass.Op
	batch, rows, cols int // of X
	values            func(name string, n int) []float32
	inPlace           bool
	lengths           []int
	onDevice          bool // lengths
	params            func(name string) []Param
	special           func(c *Case)
}

func (s rowSpec) entry(label string) Entry {
	name := fmt.Sprintf("%s/%s-%dx%dx%d", s.op.Name(), label, max(s.batch, 1), s.rows, s.cols)
	return Entry{Name: name, Op: s.op.Name(), make: s.make}
}

func (s rowSpec) make(name string) Case {
	if s.values == nil {
		s.values = usual
	}
	batch := max(s.batch, 1)
	c := Case{Op: s.op, Outputs: DefaultOutputs(s.op)}
	c.Inputs = []Tensor{F32("X", s.values(name+"/X", batch*s.rows*s.cols), batch, s.rows, s.cols)}
	if s.inPlace {
		c.Same = map[string]string{"Y": "X"}
	}
	if s.params != nil {
		c.Params = s.params(name)
	}
	if s.lengths != nil {
		poisonBeyond(&c, 0, s.lengths)
		c.setItems("Lengths", s.lengths, s.onDevice)
	}
	if s.special != nil {
		s.special(&c)
	}
	return c
}

// putNaN returns a change of the first input: NaN at each of some places.
func putNaN(at ...int) func(*Case) {
	return func(c *Case) {
		for _, i := range at {
			c.Inputs[0].Words[i] = nan
		}
	}
}

// scaled returns values of a scale around an offset.
func scaled(scale, offset float32) func(string, int) []float32 {
	return func(name string, n int) []float32 { return Recipe(name, 1, n, scale, offset) }
}

// whereLabel tells numbers on the device from fixed ones.
func whereLabel(onDevice bool) string {
	if onDevice {
		return "-device"
	}
	return ""
}
