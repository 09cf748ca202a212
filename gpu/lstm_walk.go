package gpu

import (
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// A recurrentTile is the geometry of the kernel that walks through time; see lstm.wgsl.
type recurrentTile struct {
	width       int  // cells at a time
	slices      int  // of the summed axis
	items       int  // of the batch in a workgroup
	inWorkgroup bool // h and c lie in workgroup memory
}

// workgroupBytes returns the workgroup memory that the kernel needs.
func (t recurrentTile) workgroupBytes(hidden int) int {
	n := 8 * t.items
	if t.inWorkgroup {
		n += 4 * t.items * (2*roundUp(hidden, recurrentGrain) + hidden)
	}
	if t.slices > 1 {
		n += 16 * t.slices * t.items * t.width
	}
	return n
}

// chooseRecurrence chooses the geometry. The order of the sums follows from width and
// slices, which depend on the weights and the device alone; with many items a workgroup
// takes several, so that it reads the weights less often.
func chooseRecurrence(hidden, batch, directions int, limits driver.Limits) recurrentTile {
	const mostThreads, mostSlices, mostItems, manyWorkgroups = 512, 8, 8, 128
	threads := min(int(min(limits.MaxInvocations, limits.MaxWorkgroupSizeX)), mostThreads)
	depth := roundUp(hidden, recurrentGrain)
	memory := int(limits.MaxWorkgroupStorage)
	t := recurrentTile{width: min(depth, threads), slices: 1, items: 1, inWorkgroup: true}
	t.inWorkgroup = t.workgroupBytes(hidden) <= memory
	for s := 2; s <= mostSlices && s*t.width <= threads && depth/s >= 16; s *= 2 {
		wider := t
		wider.slices = s
		if wider.workgroupBytes(hidden) > memory {
			break
		}
		t = wider
	}
	for t.items < mostItems && batch*directions >= 2*t.items*manyWorkgroups {
		more := t
		more.items *= 2
		if more.workgroupBytes(hidden) > memory {
			break
		}
		t = more
	}
	return t
}

// held returns how many weights of a cell an invocation keeps in registers through a
// number of steps: those that fit beside its sums, if it has one cell only. Where there
// are no registers for them they are read again, as they would have been.
func (t recurrentTile) held(hidden, steps int) int {
	const mostHeld, manySteps = 16, 16
	if t.width < hidden || t.items > 2 || steps < manySteps {
		return 0
	}
	return min(mostHeld, roundUp(hidden, recurrentGrain)/t.slices)
}

// begin prepares the state: the user's own where it is changed in place, else a scratch
// copy.
func (r *recurrence) begin() error {
	op, s := r.op, r.shape
	if op.Time == 0 && op.H.IsZero() {
		return nil
	}
	r.inPlace = !op.H.IsZero() && op.H0 == op.H && op.C0 == op.C && r.geometry.inWorkgroup
	if r.inPlace {
		r.h = r.c.lines(op.H, op.States, s.States(), s.Hidden, true)
		r.cell = r.c.lines(op.C, op.States, s.States(), s.Hidden, true)
		return nil
	}
	r.h, r.cell = r.scratch(s.States(), s.Hidden), r.scratch(s.States(), s.Hidden)
	r.fresh = op.H0.IsZero()
	if !r.fresh {
		return r.carry("load", op.H0, op.C0)
	}
	if op.Time > 0 {
		return nil
	}
	for _, l := range []lines{r.h, r.cell} {
		f := field{1, 1, op.Batch * s.States() * s.Hidden}
		l.single, l.items = true, 1
		if err := r.c.fillLines(op.Name(), l, f, 0, pass.Cost{Bytes: 4 * float64(f.cols)}); err != nil {
			return err
		}
	}
	return nil
}

// end stores the final state.
func (r *recurrence) end() error {
	if r.inPlace || r.op.H.IsZero() {
		return nil
	}
	return r.carry("save", r.op.H, r.op.C)
}

// carry emits a copy between the user's state and the scratch copy.
func (r *recurrence) carry(entry string, h, c pass.View) error {
	s, save := r.shape, entry == "save"
	user, cell := r.c.lines(h, r.op.States, s.States(), s.Hidden, save), r.c.lines(c, r.op.States, s.States(), s.Hidden, save)
	own, ownCell := r.h.operand, r.cell.operand
	own.write, ownCell.write = !save, !save
	k := numbered{kernel{shader: "lstm_state", entry: entry, values: shaders.Values{"Entry": entry, "StateRows": r.rows.kind, "Lengths": "none"}},
		[]operand{user.operand, cell.operand, own, ownCell}}
	k.bind("RowsBinding", r.rows.kind != "none", r.rows.o)
	k.status(r.c, r.rows)
	width := s.States() * s.Hidden
	units := r.op.Batch * width
	words := append([]uint32{uint32(units), uint32(width), uint32(r.op.States), uint32(s.Hidden)}, user.words()...)
	words = append(append(words, cell.words()...), r.rows.shift)
	const size = 64
	most := int(r.c.limits.MaxWorkgroups)
	groups := min(roundUp(units, size)/size, most*most)
	return r.c.emit(r.op.Name(), k.kernel, k.operands, words, [3]int{groups, 1, 1}, pass.Cost{Bytes: 16 * float64(units)})
}

// walk emits the steps of a stretch of a layer.
func (r *recurrence) walk(s stretch, input lines, out series) error {
	n := 1 // directions in one dispatch: both, if their weights and all steps fit one binding
	if r.shape.Directions == 2 && 8*uint64(r.layout.words()) <= r.c.limits.MaxStorageBindingSize && r.whole(out) {
		n = 2
	}
	flop := 2 * float64(r.layout.words()) * float64(r.op.Batch*n) // of a step
	steps := s.steps
	const serial = 2e8 // FLOP that one workgroup does in some 50 ms on a slow device
	steps = min(steps, int(serial/(2*float64(r.layout.words()*r.geometry.items))))
	if r.c.budget > 0 {
		steps = min(steps, int(r.c.budget/flop))
	}
	steps = max(steps, 1)
	for first := 0; first < s.steps; first += steps {
		last := min(first+steps, s.steps)
		for direction := 0; direction < r.shape.Directions; direction += n {
			at := s.forward
			if direction == 1 {
				at = s.backward
			}
			bound := r.bind(out, pass.Span{From: at, To: at + s.steps}, true)
			if err := r.dispatch(s, input, bound, direction, n, first, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// dispatch emits the steps [first, last) of a stretch in some directions.
func (r *recurrence) dispatch(s stretch, input, out lines, direction, directions, first, last int) error {
	g, op := r.geometry, r.op
	words := r.layout.words()
	weights := r.buffers[r.layout.layer(s.layer)+r.layout.inputs[s.layer].buffers()]
	matrix, _ := r.c.part(operand{memory: weights, end: weights.words}, direction*words, (direction+directions)*words, false)
	finishes := roundUp(g.items, g.slices) / g.slices
	k := numbered{kernel{shader: "lstm", entry: "steps", values: shaders.Values{
		"Lengths": r.lengths.kind, "StateRows": r.rows.kind, "Items": g.items, "InWorkgroup": g.inWorkgroup, "Slices": g.slices, "Width": g.width,
		"Hidden": r.shape.Hidden, "Depth": r.layout.depth, "Directions": r.shape.Directions, "Finishes": finishes,
		"Held": g.held(r.shape.Hidden, last-first), "Fine": r.fine(),
	}}, []operand{input.operand, matrix, out.operand, r.h.operand, r.cell.operand}}
	rows := r.rows
	if !r.inPlace {
		rows = numbers{kind: "none"}
	}
	k.values["StateRows"] = rows.kind
	k.bind("LengthsBinding", r.lengths.kind != "none", r.lengths.o)
	k.bind("RowsBinding", rows.kind != "none", rows.o)
	k.status(r.c, r.lengths, rows)
	tiles := roundUp(op.Batch, g.items) / g.items
	var hidden operand
	if !g.inWorkgroup {
		hidden = r.c.scratch(tiles * directions * 2 * g.items * r.layout.depth)
		hidden.write = true
		defer r.c.giveBack(hidden)
	}
	k.bind("HiddenBinding", !g.inWorkgroup, hidden)
	fresh := uint32(0)
	if r.fresh && s.first && first == 0 {
		fresh = 1
	}
	front := []uint32{uint32(op.Batch), uint32(tiles)}
	back := []uint32{
		uint32(direction), uint32(s.steps), uint32(first), uint32(last), uint32(s.forward), uint32(s.backward), uint32(op.Time), fresh,
	}
	for _, l := range []lines{out, r.h, r.cell} {
		back = append(back, l.words()...)
	}
	back = append(back, uint32(s.layer*r.shape.Directions), r.lengths.shift, rows.shift, uint32(op.States), 0)
	cost := pass.Cost{FLOP: 2 * float64(words) * float64(op.Batch*directions*(last-first))}
	cost.Bytes = 4 * float64(directions) * (float64(words) + 5*float64(op.Batch*(last-first)*r.shape.Hidden))
	return r.c.tiles(op.Name(), k, front, tiles*directions, back, cost)
}
