package gpu

import (
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// embed compiles an Embed: a dispatch for each piece of the table. Positions of one piece
// are added by the same dispatches; those of several, or of a type that needs one more
// binding, by dispatches of their own.
func (c *compiler) embed(op pass.Embed, cost pass.Cost) error {
	table, err := c.matrix(op.Table)
	if err != nil {
		return err
	}
	if op.Rows == 0 {
		return nil
	}
	e := lookup{c: c, op: op, y: c.lines(op.Out, op.Batch, op.Rows, table.k, true), cost: cost}
	var positions matrix
	if !op.Positions.IsZero() {
		if positions, err = c.matrix(op.Positions); err != nil {
			return err
		}
	}
	apart := positions.n > 0 && (positions.pieces() > 1 || positions.typ == pass.Q8_0)
	with := positions
	if apart {
		with = matrix{}
	}
	for i := range table.pieces() {
		if err := e.ids(table, i, with); err != nil {
			return err
		}
	}
	if apart {
		pos := c.index(op.Pos, op.Batch, op.Rows, positions.n)
		for i := range positions.pieces() {
			rows := positions.piece(i)
			if pos.kind == "none" && (pos.added >= rows.To || pos.added+op.Rows <= rows.From) {
				continue
			}
			if err := e.positions(positions, i, pos); err != nil {
				return err
			}
		}
	}
	return nil
}

// matrix returns the weights of a linear param.
func (c *compiler) matrix(h pass.Param) (matrix, error) {
	p := c.plan.Param(h).(*param)
	layout, err := layMatrix(p.shape.(pass.LinearShape), c.limits)
	return matrix{layout, p.buffers}, err
}

// A lookup is an Embed with its output.
type lookup struct {
	c    *compiler
	op   pass.Embed
	y    lines
	cost pass.Cost
}

// ids emits the rows of a piece of the table, and adds positions if there are any.
func (e lookup) ids(table matrix, piece int, positions matrix) error {
	c, op := e.c, e.op
	k := e.kernel("embed", table, piece)
	first := c.index(op.IDRow, op.Batch, op.Rows, op.IDRows)
	ids := c.lines(op.IDs, op.Batch, op.IDRows, 1, false)
	k.bind("IDsBinding", true, ids.operand)
	k.values["IDIndex"] = first.kind == "device"
	k.bind("IDBinding", first.kind == "device", first.o)
	pos := indexed{numbers: numbers{kind: "none"}}
	k.values["Positions"] = "none"
	if positions.n > 0 {
		k.values["Positions"] = positions.typ.String()
		k.bind("PositionsBinding", true, positions.values(0))
		pos = c.index(op.Pos, op.Batch, op.Rows, positions.n)
	} else {
		k.bind("PositionsBinding", false, operand{})
	}
	ids.shift += first.added * ids.row
	k.values["PosIndex"] = pos.kind == "device"
	k.bind("PosBinding", pos.kind == "device", pos.o)
	k.status(c, numbers{kind: "device"}) // the ids
	words := append(e.words(table, piece), uint32(table.n))
	words = append(append(words, ids.words()...), first.words()...)
	words = append(append(words, uint32(positions.stride), uint32(pos.added)), pos.words()...)
	return e.visit(k, table, piece, words)
}

// positions emits the sums with the rows of a piece of the positions.
func (e lookup) positions(table matrix, piece int, pos indexed) error {
	k := e.kernel("add", table, piece)
	k.values["Positions"], k.values["IDIndex"], k.values["PosIndex"] = "none", false, pos.kind == "device"
	for _, name := range []string{"IDsBinding", "IDBinding", "PositionsBinding"} {
		k.bind(name, false, operand{})
	}
	k.bind("PosBinding", pos.kind == "device", pos.o)
	k.status(e.c, pos.numbers)
	words := append(e.words(table, piece), make([]uint32, 8)...)
	return e.visit(k, table, piece, append(append(words, uint32(pos.added)), pos.words()...))
}

func (e lookup) kernel(entry string, table matrix, piece int) numbered {
	k := numbered{kernel{shader: "embed", entry: entry, values: shaders.Values{"Type": table.typ.String()}}, []operand{e.y.operand, table.values(piece)}}
	if table.typ == pass.Q8_0 {
		k.bind("ScaleBinding", true, table.scales(piece))
	} else {
		k.bind("ScaleBinding", false, operand{})
	}
	return k
}

func (e lookup) words(table matrix, piece int) []uint32 {
	rows := table.piece(piece)
	return append(e.y.words(), uint32(table.k), uint32(table.stride), uint32(rows.From), uint32(rows.Len()))
}

func (e lookup) visit(k numbered, table matrix, piece int, words []uint32) error {
	f := field{e.op.Batch, e.op.Rows, roundUp(table.k, 4)}
	return e.c.visitUnits(e.op.Name(), k, f, f.cols/4, table.k%4 == 0 && e.y.inFours(), words, share(e.cost, table.piece(piece).Len(), table.n))
}
