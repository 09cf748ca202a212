package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// gemm compiles a Gemm: a product for its columns below n, another for the dual ones.
func (c *compiler) gemm(op pass.Gemm, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*param)
	s := p.shape.(pass.LinearShape)
	layout, err := layMatrix(s, c.limits)
	if err != nil {
		return err
	}
	if op.Rows == 0 || op.Columns.Len() == 0 {
		return nil
	}
	m := product{
		label: op.Name(), a: c.lines(op.A, op.Batch, op.Rows, s.K, false), out: c.lines(op.C, op.Batch, op.Rows, op.Columns.Len(), true),
		rows: op.Batch * op.Rows, itemRows: op.Rows, weights: matrix{layout, p.buffers},
	}
	parts := []struct {
		columns pass.Span
		shift   int // from a column to the weights of it
		biased  bool
		pass.Epilogue
	}{
		{pass.Span{From: op.Columns.From, To: min(op.Columns.To, s.N)}, 0, s.Bias, op.Epilogue},
		{pass.Span{From: max(op.Columns.From, s.N), To: op.Columns.To}, s.N, true, pass.None},
	}
	for _, part := range parts {
		if part.columns.Len() <= 0 {
			continue
		}
		m := m
		m.out = m.out.from(part.columns.From - op.Columns.From)
		m.columns = pass.Span{From: part.columns.From - part.shift, To: part.columns.To - part.shift}
		m.biased, m.biasShift, m.epilogue = part.biased, part.shift, part.Epilogue
		m.cost = share(cost, part.columns.Len(), op.Columns.Len())
		if err := c.multiply(m); err != nil {
			return err
		}
	}
	return nil
}

// Lines are rows of elements in a binding, equally far apart within an item and from
// item to item.
type lines struct {
	operand
	shift     int  // of the first element in the binding
	row, item int  // strides
	single    bool // an item has one row only, so that row means nothing
	items     int  // if it is one, item means nothing
}

// lines returns the rows of a view with explicit strides.
func (c *compiler) lines(v pass.View, batch, rows, cols int, write bool) lines {
	o, shift := c.view(v, batch, rows, cols, write)
	return lines{operand: o, shift: int(shift), row: v.RowStride, item: v.BatchStride, single: rows == 1, items: batch}
}

// from returns the lines without their first elements.
func (l lines) from(column int) lines {
	l.shift += column
	return l
}

// inFours reports whether every line begins at a multiple of four elements of the
// binding, and the binding has whole groups of four.
func (l lines) inFours() bool {
	return l.shift%4 == 0 && (l.single || l.row%4 == 0) && (l.items == 1 || l.item%4 == 0) && (l.end-l.first)%4 == 0
}

// A matrix is the right-hand side of a product, on the device.
type matrix struct {
	matrixLayout
	buffers []*memory
}

// A product is out[r][j] = epilogue(Σₖ a[r][k]·weights[j][k] + bias[j]) for the columns
// j; the first of them is the first element of a line of out.
type product struct {
	label          string
	a, out         lines
	rows, itemRows int // rows of all items, and of one
	weights        matrix
	columns        pass.Span
	biased         bool
	biasShift      int // from a column to its bias
	epilogue       pass.Epilogue
	fine           bool // sums lose next to nothing, and take twice as long
	cost           pass.Cost
}

// multiply emits the dispatches of a product: at least one for each piece of the
// weights.
func (c *compiler) multiply(m product) error {
	w := m.weights
	for i := range w.pieces() {
		rows := w.piece(i)
		columns := pass.Span{From: max(m.columns.From, rows.From), To: min(m.columns.To, rows.To)}
		if columns.Len() <= 0 {
			continue
		}
		if err := c.multiplyPiece(m, i, columns); err != nil {
			return err
		}
	}
	return nil
}

// multiplyPiece emits the dispatches of a product for columns that lie in one piece of
// the weights.
func (c *compiler) multiplyPiece(m product, piece int, columns pass.Span) error {
	w, n := m.weights, columns.Len()
	out := m.out.from(columns.From - m.columns.From)
	t, few := chooseTile(m.rows, n, w.k, c.limits), chooseFew(m.rows, n, c.limits)
	if m.fine {
		t = fineTile
	}
	k := numbered{kernel: kernel{shader: "linear", entry: "tile", values: shaders.Values{
		"Type": w.typ.String(), "Quads": m.a.inFours() && w.k%4 == 0, "Vectors": out.inFours() && n%4 == 0,
		"Bias": m.biased, "Epilogue": epilogueName(m.epilogue), "InPlace": m.epilogue.InPlace(), "Ragged": false, "Pooled": false,
		"Tile": t.size, "Rows": t.rows, "Columns": t.columns, "Long": t.long, "Fine": m.fine,
		"Width": few.width, "FewRows": few.rows, "RowsEach": few.rowsEach(),
	}}, operands: []operand{w.values(piece), m.a.operand}}
	if w.typ == pass.Q8_0 {
		k.bind("ScaleBinding", true, w.scales(piece))
	} else {
		k.bind("ScaleBinding", false, operand{})
	}
	k.bind("OutBinding", true, m.out.operand)
	bias, biasAt := c.biases(m, columns)
	k.bind("BiasBinding", m.biased, bias)
	tileRows, tileColumns := (m.rows+t.size-1)/t.size, (n+t.size-1)/t.size
	tiles := tileRows * tileColumns
	if m.rows <= fewRows && few.workgroupBytes() <= int(c.limits.MaxWorkgroupStorage) {
		k.entry = "few"
		tiles = (n + few.width - 1) / few.width
	}
	k.values["Entry"] = k.entry
	words := []uint32{
		uint32(m.rows), uint32(m.itemRows), uint32(w.k), uint32(w.stride), uint32(columns.From - w.piece(piece).From),
		uint32(n), uint32(w.stride+tileDepth-1) / tileDepth,
		uint32(m.a.shift), uint32(m.a.row), uint32(m.a.item), uint32(out.shift), uint32(out.row), uint32(out.item),
		biasAt, math.Float32bits(m.epilogue.Alpha()),
	}
	return c.tiles(m.label, k, words, tiles, []uint32{uint32(tileRows), uint32(tileColumns), 0}, share(m.cost, n, m.columns.Len()))
}

// biases returns the operand for the biases of some columns, if there are any, and where
// in it the first one is.
func (c *compiler) biases(m product, columns pass.Span) (operand, uint32) {
	if !m.biased {
		return operand{}, 0
	}
	return c.part(m.weights.bias(), m.biasShift+columns.From, m.biasShift+columns.To, false)
}

// tiles emits dispatches for workgroups numbered from 0: as many as the device's limits
// on workgroups and on the work of one dispatch make it. The words between front and
// back are the number after the last workgroup of the dispatch, and its first one.
func (c *compiler) tiles(label string, k numbered, front []uint32, tiles int, back []uint32, cost pass.Cost) error {
	return c.someTiles(label, k, front, pass.Span{To: tiles}, back, cost)
}

// someTiles is tiles for a part of the workgroups, whose cost is given.
func (c *compiler) someTiles(label string, k numbered, front []uint32, tiles pass.Span, back []uint32, cost pass.Cost) error {
	most := min(tiles.Len(), int(c.limits.MaxWorkgroups)*int(c.limits.MaxWorkgroups))
	if c.budget > 0 && cost.FLOP > c.budget {
		most = min(most, max(int(float64(tiles.Len())*c.budget/cost.FLOP), 1))
	}
	for first := tiles.From; first < tiles.To; first += most {
		end := min(first+most, tiles.To)
		words := append(append(append([]uint32{}, front...), uint32(end), uint32(first)), back...)
		if err := c.emit(label, k.kernel, k.operands, words, [3]int{end - first, 1, 1}, share(cost, end-first, tiles.Len())); err != nil {
			return err
		}
	}
	return nil
}

// values, scales and bias return the buffers of a matrix as operands.
func (m matrix) values(piece int) operand {
	if m.typ == pass.Q8_0 {
		piece *= 2
	}
	return operand{memory: m.buffers[piece], end: m.buffers[piece].words}
}

func (m matrix) scales(piece int) operand {
	return operand{memory: m.buffers[2*piece+1], end: m.buffers[2*piece+1].words}
}

func (m matrix) bias() operand {
	return operand{memory: m.buffers[m.matrixLayout.buffers()-1], end: m.biases}
}

// share returns the part n of all of a cost.
func share(c pass.Cost, n, all int) pass.Cost {
	f := float64(n) / float64(max(all, 1))
	return pass.Cost{FLOP: c.FLOP * f, Bytes: c.Bytes * f}
}

// epilogueName returns the name of an epilogue without its factor.
func epilogueName(e pass.Epilogue) string {
	switch e.Kind() {
	case pass.KindLeaky:
		return "leaky"
	case pass.KindResidual:
		return "residual"
	}
	return e.String()
}
