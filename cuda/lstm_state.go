package cuda

import (
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// copyState emits what an op without steps does: the state stays as it was.
func (r *recurrence) copyState() error {
	op := r.op
	if op.H.IsZero() {
		return nil
	}
	from := func(v pass.View) func(k *call) kernels.View {
		return func(k *call) kernels.View { return k.read(v, op.States, r.p.shape.States(), r.hidden) }
	}
	if err := r.copyTo(op.H, from(op.H0), false); err != nil {
		return err
	}
	return r.copyTo(op.C, from(op.C0), false)
}

// end stores a final h that had to wait.
func (r *recurrence) end() error {
	if !r.late() {
		return nil
	}
	from := func(k *call) kernels.View {
		depth := int64(lstmDepth(r.hidden))
		return kernels.View{P: kernels.F32(k.from(r.final)), Row: depth, Batch: int64(r.p.shape.States()) * depth}
	}
	return r.copyTo(r.op.H, from, true)
}

// copyTo emits a copy to the rows of a state, from those of another or from one row for
// each item.
func (r *recurrence) copyTo(to pass.View, from func(k *call) kernels.View, byItem bool) error {
	op, vectors := r.op, r.p.shape.States()
	k := r.c.call("lstm_state")
	a := kernels.StateCopy{
		X: from(k), Y: k.write(to, op.States, vectors, r.hidden), Rows: k.items(op.StateRows, op.Batch, op.States-1),
		Batch: uint32(op.Batch), Vectors: uint32(vectors), Hidden: uint32(r.hidden),
	}
	if byItem {
		a.XByItem = 1
	}
	return run(k, a, grid{op.Batch * vectors, 1, 1}, 0, pass.Cost{Bytes: 8 * float64(op.Batch) * float64(vectors) * float64(r.hidden)})
}
