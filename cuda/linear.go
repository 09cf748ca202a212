package cuda

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// linearParam is the weights of a Gemm or a table of Embed on the device.
type linearParam struct {
	*matrix
	shape pass.LinearShape
	bias  *memory // F32 [n], and the dual biases behind; nil: none
	lift  float32 // magnitude of the largest bias that is finite
}

// Free implements backend.Memory.
func (p *linearParam) Free() {
	p.matrix.Free()
	p.bias.Free()
}

// biasAt and dualAt return where the bias of a column is; 0 if there is none.
func (p *linearParam) biasAt(column int) driver.Pointer {
	if !p.shape.Bias {
		return 0
	}
	return p.bias.at + driver.Pointer(4*column)
}

func (p *linearParam) dualAt(column int) driver.Pointer {
	return p.bias.at + driver.Pointer(4*(p.shape.N+column))
}

// fewRows is up to how many rows a product reads the weights as they were loaded.
const fewRows = 8

// gemm compiles a Gemm. Columns that are given again come from the launch that makes them
// the first time, if that is asked for too.
func (c *compiler) gemm(op pass.Gemm, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*linearParam)
	n := p.shape.N
	m := linearProduct{
		p: p, a: op.A, c: op.C, batch: op.Batch, rows: op.Rows, width: op.Columns.Len(),
		from: op.Columns.From, epilogue: op.Epilogue, biased: true,
	}
	first := pass.Span{From: op.Columns.From, To: min(op.Columns.To, n)}
	again := pass.Span{From: max(op.Columns.From-n, 0), To: op.Columns.To - n}
	if op.Rows == 0 || op.Columns.Len() == 0 {
		return nil
	}
	if op.Batch*op.Rows > fewRows && !p.ranging(c.fast) {
		readers := c.boundable(op)
		var err error
		if m.left, err = c.left(pass.Arg{View: op.A, Batch: op.Batch, Rows: op.Rows, Cols: p.shape.K}, len(readers) > 0); err != nil {
			return err
		}
		if err := c.leaveProduct(&m, op, readers); err != nil {
			return err
		}
	}
	m.columns = first
	if again.Len() > 0 && first.From <= again.From && again.To <= first.To {
		m.again = again
		return c.linear(m, cost)
	}
	if first.Len() > 0 {
		if err := c.linear(m, part(cost, first.Len(), op.Columns.Len())); err != nil {
			return err
		}
	}
	if again.Len() <= 0 {
		return nil
	}
	// The columns that are given again alone: their bias is the dual one.
	m.columns, m.from, m.biased, m.epilogue = again, op.Columns.From-n, false, pass.None
	return c.linear(m, part(cost, again.Len(), op.Columns.Len()))
}

// A linearProduct is the columns of a Gemm that one launch makes.
type linearProduct struct {
	p                  *linearParam
	a, c               pass.View
	batch, rows, width int          // width: columns of c
	left               prepared     // a for tensor cores, if there are many rows
	halves             *boundedRows // what takes the place of c; nil: nothing
	columns            pass.Span    // of the weights
	again              pass.Span    // of those, which are given again
	from               int          // column of the weights at the first element of a row of c
	biased             bool         // by the bias, else by the dual one
	epilogue           pass.Epilogue
}

// out notes that a launch writes the output, and returns where its first column goes.
func (m *linearProduct) out(k *call) kernels.View {
	if m.halves != nil {
		return m.halves.view(k)
	}
	v := k.write(m.c, m.batch, m.rows, m.width)
	v.P += kernels.F32(4 * (m.columns.From - m.from))
	return v
}

// bias returns where the bias of the first column is.
func (m *linearProduct) bias() driver.Pointer {
	if m.biased {
		return m.p.biasAt(m.columns.From)
	}
	return m.p.dualAt(m.columns.From)
}

// dual returns where the dual bias of the first column that is given again is, and the
// columns, counted from the first.
func (m *linearProduct) dual() (driver.Pointer, pass.Span) {
	if m.again.Len() <= 0 {
		return 0, pass.Span{}
	}
	return m.p.dualAt(m.again.From), pass.Span{From: m.again.From - m.columns.From, To: m.again.To - m.columns.From}
}

// linear emits the launch of a product.
func (c *compiler) linear(m linearProduct, cost pass.Cost) error {
	switch {
	case m.batch*m.rows <= fewRows:
		return c.few(m, cost)
	case m.p.ranging(c.fast):
		return c.wideRange(m, cost)
	}
	w, err := m.p.halves(c.ctx, !c.fast)
	if err != nil {
		return err
	}
	dual, duals := m.dual()
	last := !c.readAgain(pass.Arg{View: m.a, Batch: m.batch, Rows: m.rows, Cols: m.p.shape.K})
	// Items whose rows follow each other are one item: tiles have no rows of two.
	items, rows := m.batch, m.rows
	if m.halves != nil || m.c.BatchStride == m.rows*m.c.RowStride {
		items, rows = 1, items*rows
		m.left.rows = rows
	}
	return c.tile(product{
		a: m.left, items: items, lines: 1, width: rows, step: m.left.stride,
		w: w, columns: m.columns, segments: 1, depth: m.left.stride,
		bias: m.bias(), dual: dual, duals: duals, shift: m.p.shape.N,
		out: m.out, epilogue: m.epilogue, halves: m.halves, note: m.note(), last: last,
	}, cost)
}

// few emits a product of up to eight rows, whose warps read the weights once. A warp makes
// four columns at a time where there are enough of them to fill a large GPU, and else one;
// sums have the same order.
func (c *compiler) few(m linearProduct, cost pass.Cost) error {
	const one, four = "a column a warp", "four columns a warp"
	rows, at := 1, m.p
	for _, r := range []int{4, 8} {
		if m.batch*m.rows > rows {
			rows = r
		}
	}
	ways, rule := []string{one, four}, fmt.Sprintf("%d columns", m.columns.Len())
	if m.columns.Len() >= 8192 {
		ways = []string{four, one}
	}
	way, why := c.choose(fmt.Sprintf("few rows %d×%d×%d %v", m.batch*m.rows, m.columns.Len(), at.shape.K, at.typ), rule, ways...)
	columns := map[string]int{one: 1, four: 4}[way]
	k := c.call(fmt.Sprintf("linear_few_%s_%dx%d", typeName(at.typ), rows, columns))
	args := m.few(k)
	shared := 4 * rows * min(at.stride, kernels.FewChunk/rows)
	groups := ceilDiv(m.columns.Len(), 4*columns)
	each := fewEach(groups, c.d.attributes.sms*max(k.l.entry.Resident, 1))
	return run(k.because("%s: %s", way, why), args, grid{ceilDiv(groups, each), 1, 1}, shared, cost)
}

// few returns the parameters of a product by the weights as they were loaded.
func (m *linearProduct) few(k *call) kernels.Few {
	dual, duals := m.dual()
	return kernels.Few{
		W: kernels.U32(m.p.at(m.columns.From)), BlockScales: kernels.F16(m.p.scalesAt(m.columns.From)),
		Bias: kernels.F32(m.bias()), Dual: kernels.F32(dual),
		A: k.read(m.a, m.batch, m.rows, m.p.shape.K), C: m.out(k),
		Stride: int64(m.p.stride), Rows: uint32(m.batch * m.rows), ItemRows: uint32(m.rows),
		Columns: uint32(m.columns.Len()), Depth: uint32(m.p.shape.K),
		DualFrom: uint32(duals.From), DualTo: uint32(duals.To), DualShift: int32(m.p.shape.N),
		Epilogue: epilogue(m.epilogue),
	}
}

// fewEach returns how many groups of columns a block takes: such that all blocks that run at
// a time end together, of so many as are resident. Each block has to fetch the rows first,
// which takes about half as long as a group.
func fewEach(groups, resident int) int {
	best, least := 1, math.Inf(1)
	for each := 1; each <= 16; each++ {
		if t := float64(ceilDiv(ceilDiv(groups, each), resident)) * (float64(each) + 0.5); t < least {
			best, least = each, t
		}
	}
	return best
}

// part returns the share n of all of a cost.
func part(c pass.Cost, n, all int) pass.Cost {
	f := float64(n) / float64(max(all, 1))
	return pass.Cost{FLOP: c.FLOP * f, Bytes: c.Bytes * f}
}
