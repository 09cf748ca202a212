package cuda

import (
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// inputs emits the products that make the gates' share of the input for a stretch. The
// two directions are at the same times if the stretch is all there is.
func (r *recurrence) inputs(s stretch, in rowsIn) error {
	if r.directions == 1 || s.steps == r.op.Time {
		return r.product(s, in, s.first, 0, r.directions)
	}
	if err := r.product(s, in, s.first, 0, 1); err != nil {
		return err
	}
	return r.product(s, in, r.op.Time-s.first-s.steps, 1, 1)
}

// product emits that of some directions, whose first input is at the given time.
func (r *recurrence) product(s stretch, in rowsIn, time, direction, directions int) error {
	c, w, rows := r.c, &r.p.layers[s.layer], r.op.Batch*s.steps
	each := lstmGates * r.hidden
	columns := pass.Span{From: direction * each, To: (direction + directions) * each}
	at := func(k *call) kernels.View {
		v := in.at(k)
		v.P += kernels.F32(4 * int64(time) * v.Row)
		return v
	}
	out := func(k *call) kernels.View {
		n := int64(r.gateColumns())
		return kernels.View{P: kernels.F32(k.to(s.gates)) + kernels.F32(4*columns.From), Row: n, Batch: int64(s.steps) * n}
	}
	cost := pass.Cost{
		FLOP:  2 * float64(rows) * float64(columns.Len()) * float64(in.cols),
		Bytes: 4 * (float64(columns.Len())*float64(in.cols+rows) + float64(rows)*float64(in.cols)),
	}
	if rows > fewRows {
		if err := w.input.measure(c.ctx); err != nil {
			return err
		}
	}
	if rows <= fewRows || w.input.ranging(c.fast) {
		return r.asLoaded(w, rows, s.steps, columns, at, out, cost)
	}
	left, err := c.prepare(rowsOf(at, r.op.Batch, s.steps, in.cols))
	if err != nil {
		return err
	}
	left.rows = rows // those of all items follow each other
	right, err := w.input.halves(c.ctx, !c.fast)
	if err != nil {
		return err
	}
	return c.tile(product{
		a: left, items: 1, lines: 1, width: rows, step: left.stride,
		w: right, columns: columns, segments: 1, depth: left.stride,
		bias: w.biasAt(columns.From), out: out, epilogue: pass.None,
	}, cost)
}

// asLoaded emits a product of up to eight rows, or by weights of a wide range.
func (r *recurrence) asLoaded(w *lstmLayer, rows, steps int, columns pass.Span, at, out func(k *call) kernels.View, cost pass.Cost) error {
	most := 1
	for _, n := range []int{4, 8} {
		if rows > most {
			most = n
		}
	}
	m, name := w.input, fmt.Sprintf("linear_few_%s_%dx1", typeName(w.input.typ), most)
	if rows > fewRows {
		name = "linear_range_" + typeName(m.typ)
	}
	k := r.c.call(name)
	args := kernels.Few{
		W: kernels.U32(m.at(columns.From)), BlockScales: kernels.F16(m.scalesAt(columns.From)), Bias: kernels.F32(w.biasAt(columns.From)),
		A: at(k), C: out(k),
		Stride: int64(m.stride), Rows: uint32(rows), ItemRows: uint32(steps), Columns: uint32(columns.Len()), Depth: uint32(m.cols),
	}
	if rows > fewRows {
		return r.c.runRange(k, args, rows, columns.Len(), cost)
	}
	return run(k, args, grid{ceilDiv(columns.Len(), 4), 1, 1}, 4*most*min(m.stride, kernels.FewChunk/most), cost)
}
