// Package kernel readies single ops to be timed on devices: with data that all devices
// share, results that are compared with float64, and recordings that do the op so often
// that what starting one costs does not show.
package kernel

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A Kernel is one op to time. Arguments lie in buffers of a session, so nothing moves
// between host and device while it is timed.
type Kernel struct {
	Op    pass.Op                      // its sizes and options; no views, no params
	Args  []string                     // fields that are views
	IDs   string                       // that of them which is U32, one row an item; "": none
	Load  func() (pass.Weights, error) // weights of its field W; nil: none
	Bound float64                      // operations that a check may take in float64; 0: any number
}

// A Job is a kernel with the data that all devices share. It is for one goroutine at a time.
type Job struct {
	Kernel
	op   pass.Checked // on no device
	c    cases.Case
	host map[string][]float32   // what buffers hold at first
	size map[string]int         // elements of each buffer
	want map[int][]cases.Tensor // of each sample, once it was computed
}

// Job makes weights and inputs: random, the same every time.
func (k Kernel) Job() (*Job, error) {
	j := &Job{Kernel: k, host: map[string][]float32{}, size: map[string]int{}, want: map[int][]cases.Tensor{}}
	j.c = cases.Case{Op: k.Op}
	params := map[string]pass.Param{}
	if k.Load != nil {
		w, err := k.Load()
		if err != nil {
			return nil, err
		}
		shape, err := w.Shape()
		if err != nil {
			return nil, err
		}
		j.c.Params = []cases.Param{{Field: "W", Weights: w}}
		params["W"] = pass.MakeParam(pass.Ref{Device: 1, ID: 1, Generation: 1}, shape)
	}
	views := map[string]pass.View{}
	const huge = min(1<<40, math.MaxInt>>4) // elements; nothing is allocated
	for i, name := range k.Args {
		views[name] = pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, ID: uint32(i + 1), Generation: 1}, k.typeOf(name), huge).View()
	}
	op, err := j.c.Bind(views, params, nil)
	if err != nil {
		return nil, err
	}
	checked, err := pass.Check(op)
	if err != nil {
		return nil, err
	}
	j.op = checked
	for i, a := range checked.Args {
		n := a.Batch * a.Rows * a.Cols
		j.size[a.Name] = n
		if a.Access&pass.Read != 0 {
			j.host[a.Name] = Random(uint64(i+1), n, 1)
		}
		if a.Access&pass.Write != 0 {
			j.c.Outputs = append(j.c.Outputs, a.Name)
		}
	}
	return j, nil
}

func (k Kernel) typeOf(arg string) pass.DType {
	if arg == k.IDs {
		return pass.U32
	}
	return pass.F32
}

// Random returns n values from −scale to scale, the same for the same seed.
func Random(seed uint64, n int, scale float32) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = (2*rng.Float32() - 1) * scale
	}
	return v
}

// Scale is the largest weight that lets sums over n values stay about 1.
func Scale(n int) float32 { return float32(math.Sqrt(3 / float64(n))) }
