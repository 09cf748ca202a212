package gpu

import (
	"maps"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// stretchHeld is how many quads an invocation holds of a row that is cut into stretches.
const stretchHeld = 4

// stretched cuts rows that do not fit the registers of a workgroup, and returns in how
// many stretches.
func (l *lanes) stretched(columns int) int {
	if l.held > 0 {
		return 1
	}
	l.held = stretchHeld
	each := 4 * l.held * l.lanes
	return (columns + each - 1) / each
}

// softmax compiles a Softmax, or with log a LogSoftmax.
func (c *compiler) softmax(label string, op pass.Softmax, log bool, cost pass.Cost) error {
	if op.Rows == 0 {
		return nil
	}
	r := c.rowwise("softmax", "row", op.X, op.Y, op.Batch, op.Rows, op.Cols)
	stretches := r.lanes.stretched(op.Cols)
	var parts operand
	if stretches > 1 {
		parts = c.scratch(2 * r.rows * stretches)
		parts.write = true
		first := c.rowwise("softmax", "part", op.X, op.Y, op.Batch, op.Rows, op.Cols)
		first.operands[0] = parts // nothing goes to Y yet
		first.values["Vectors"] = first.x.inFours() && op.Cols%4 == 0
		if err := c.stretch(label, first, log, operand{}, stretches, share(cost, 1, 2)); err != nil {
			return err
		}
		parts.write = false
		r.entry, cost = "join", share(cost, 1, 2)
		r.values["Entry"] = "join"
	}
	return c.stretch(label, r, log, parts, stretches, cost)
}

// stretch emits a kernel of softmax.wgsl that takes stretches of rows.
func (c *compiler) stretch(label string, r rowwise, log bool, parts operand, stretches int, cost pass.Cost) error {
	r.lanes.stretched(r.columns)
	r.values["Held"], r.values["Key"], r.values["Log"], r.values["Part"] = r.lanes.held, "u32", log, r.entry == "part"
	r.bind("PartsBinding", r.entry == "join", parts)
	r.position(c, indexed{numbers: numbers{kind: "none"}})
	return c.tiles(label, r.numbered, append(r.words(), uint32(stretches)), r.workgroups()*stretches, []uint32{0, 0, 0}, cost)
}

// argmax compiles an Argmax.
func (c *compiler) argmax(op pass.Argmax, cost pass.Cost) error {
	if op.Rows == 0 {
		return nil
	}
	ids := c.index(op.ToRow, op.Batch, op.Rows, op.IDRows)
	to := c.lines(op.IDs, op.Batch, op.IDRows, 1, true)
	x := c.lines(op.X, op.Batch, op.Rows, op.Cols, false)
	r := rowwise{lanes: chooseLanes(op.Cols, c.limits), x: x, y: to, rows: op.Batch * op.Rows, of: op.Rows, columns: op.Cols}
	r.y.shift += ids.added * to.row
	stretches := r.lanes.stretched(op.Cols)
	values := shaders.Values{
		"Entry": "best", "InPlace": false, "Vectors": op.Cols%4 == 0 && x.inFours(), "Held": r.lanes.held, "Key": "vec2<u32>", "Log": false,
		"Part": stretches > 1, "PartsBinding": 0, "XBinding": 2,
	}
	r.lanes.set(values)
	r.numbered = numbered{kernel{shader: "softmax", entry: "best", values: values}, []operand{to.operand, x.operand}}
	words := append(r.words(), uint32(stretches))
	if stretches == 1 {
		r.position(c, ids)
		return c.tiles(op.Name(), r.numbered, words, r.workgroups(), ids.words(), cost)
	}
	parts := c.scratch(2 * r.rows * stretches)
	parts.write = true
	r.operands[0] = parts
	r.position(c, indexed{numbers: numbers{kind: "none"}})
	if err := c.tiles(op.Name(), r.numbered, words, r.workgroups()*stretches, ids.words(), cost); err != nil {
		return err
	}
	parts.write = false
	pick := numbered{kernel{shader: "softmax", entry: "pick", values: with(values, shaders.Values{"Entry": "pick", "Part": false})}, []operand{to.operand}}
	pick.bind("PartsBinding", true, parts)
	pick.position(c, ids)
	return c.tiles(op.Name(), pick, words, roundUp(r.rows, 64)/64, ids.words(), share(cost, 1, r.columns))
}

// with returns constants with some changed.
func with(v, changes shaders.Values) shaders.Values {
	v = maps.Clone(v)
	maps.Copy(v, changes)
	return v
}
