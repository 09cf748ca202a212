package gpu

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// A binding holds less than a buffer may. An op of which no cut helps against that runs
// in windows: each dispatch binds the rows that its workgroups touch.

// window returns some rows of a view as lines that kernels address as if all rows were
// bound: row 0 lies so far before the binding that its shift is below zero. Kernels
// count in 32 bits, where that wraps.
func (c *compiler) window(v pass.View, batch int, rows pass.Span, cols int, write bool) lines {
	before := rows.From * v.RowStride
	l := c.lines(v.At(before), batch, rows.Len(), cols, write)
	l.shift -= before
	l.single = false
	return l
}

// holds reports whether one binding holds some rows of a view.
func (c *compiler) holds(v pass.View, batch int, rows pass.Span, cols int) bool {
	return c.fits(pass.Arg{View: v.At(rows.From * v.RowStride), Batch: batch, Rows: rows.Len(), Cols: cols})
}

// runs cuts units of work by halves into runs that fit; ok is false if there is a unit
// that does not.
func runs(units pass.Span, fit func(pass.Span) bool) (list []pass.Span, ok bool) {
	if fit(units) {
		return []pass.Span{units}, true
	}
	if units.Len() < 2 {
		return nil, false
	}
	half := units.From + units.Len()/2
	left, ok := runs(pass.Span{From: units.From, To: half}, fit)
	if !ok {
		return nil, false
	}
	right, ok := runs(pass.Span{From: half, To: units.To}, fit)
	return append(left, right...), ok
}

// mirrored returns the steps that may be read in place of some steps, which may lie before
// and behind an item of n steps, or of fewer, with its padding. Where items end may be
// known on the device only: what is read in place of a step beyond the end lies up to
// 2·right before it.
func mirrored(s pass.Span, right, batch, n int, lengths pass.Items) pass.Span {
	first := s.From - 2*right
	if batch == 1 && lengths.View().IsZero() {
		for _, length := range lengths.Fixed() {
			n = length
		}
		first = min(s.From, 2*(n-1)-(s.To-1))
	}
	return pass.Span{From: max(first, 1-s.To), To: max(s.To, 1-s.From)}
}

// within returns the steps of some that an item of n steps has, or if there are none some
// step that it has.
func within(s pass.Span, n int) pass.Span {
	from := min(max(s.From, 0), n-1)
	return pass.Span{From: from, To: max(min(s.To, n), from+1)}
}

// inWindows compiles an op of which an argument exceeds a binding, if its family can
// bind a part of it.
func (c *compiler) inWindows(step pass.Checked) (done bool, err error) {
	var units map[string]int // rows of an argument that one dispatch must see
	switch op := step.Op.(type) {
	case pass.Permute:
		return true, c.whole(step)
	case pass.StatsPool:
		units = map[string]int{"X": poolChunk, "Y": 1, "Masks": 1}
	case pass.Attention:
		t := chooseAttentionTile(op.HeadDim, op.Queries, op.Heads, !op.Q2.IsZero(), c.limits)
		units = map[string]int{"Q": t.queries(), "O": t.queries(), "Q2": t.queries(), "K": t.keys(), "V": t.keys(), "Positions": t.queries() + t.keys()}
		if op.Queries <= fewQueries && op.Q2.IsZero() {
			units = map[string]int{"Q": fewQueries, "O": fewQueries, "K": splitKeys, "V": splitKeys}
		}
		if op.Batch == 1 && op.Heads > 1 && !c.holdsUnits(step, units) {
			return true, c.inTwo(step, pass.Cut{Axis: pass.AxisHeads, Extent: op.Heads, Grain: 1})
		}
	case pass.Attend:
		return true, c.whole(step)
	case pass.PoolNorm:
		if op.Batch > 1 {
			return false, nil
		}
		return true, c.whole(step)
	case pass.Conv1D:
		v := c.convolution(op)
		units = map[string]int{"X": v.reach(), "Y": 1}
	case pass.LogMel:
		mels := c.plan.Param(op.W).(*param).shape.(pass.MelShape).Mels
		units = map[string]int{"X": 1, "Y": max(melChunk, melValues/mels+2)}
	case pass.GroupNorm:
		chunk, _ := groupChunks(op)
		units = map[string]int{"X": chunk, "Y": chunk}
	default:
		return false, nil
	}
	var far []pass.Arg
	for _, a := range step.Args {
		unit, ok := units[a.Name]
		switch {
		case a.Batch > 1:
			return false, nil
		case ok && min(unit, a.Rows) > 1 && a.View.RowStride > a.Cols && !c.holdsRows(a, unit):
			far = append(far, a)
		case !ok && !c.fits(a):
			return false, nil
		}
	}
	if len(far) > 0 {
		return true, c.gathered(step, far)
	}
	return true, c.whole(step)
}

// holdsRows reports whether one binding holds so many rows of an argument.
func (c *compiler) holdsRows(a pass.Arg, rows int) bool {
	return c.holds(a.View, 1, pass.Span{To: min(rows, a.Rows)}, a.Cols)
}

// holdsUnits reports whether bindings hold what one dispatch must see of arguments.
func (c *compiler) holdsUnits(step pass.Checked, units map[string]int) bool {
	for _, a := range step.Args {
		if unit, ok := units[a.Name]; ok && !c.holdsRows(a, unit) {
			return false
		}
	}
	return true
}

// gathered compiles an op with copies of arguments whose rows are so far apart that one
// binding holds too few of them.
func (c *compiler) gathered(step pass.Checked, far []pass.Arg) error {
	op := reflect.New(reflect.TypeOf(step.Op)).Elem()
	op.Set(reflect.ValueOf(step.Op))
	var copies []gathering
	for _, a := range far {
		i := slices.IndexFunc(copies, func(g gathering) bool { return g.arg.View == a.View })
		if i < 0 {
			g, err := c.gather(a)
			if err != nil {
				return err
			}
			i, copies = len(copies), append(copies, g)
		}
		copies[i].arg.Access |= a.Access
		op.FieldByName(a.Name).Set(reflect.ValueOf(copies[i].to))
	}
	for _, g := range copies {
		if err := g.in(c); err != nil {
			return err
		}
	}
	part, err := pass.Check(op.Interface().(pass.Op))
	if err == nil {
		err = c.op(part)
	}
	for _, g := range copies {
		if err == nil {
			err = g.out(c)
		}
	}
	return err
}

// A gathering is an argument of one item with a copy of its rows that lie one after the
// other.
type gathering struct {
	arg pass.Arg
	to  pass.View
}

// gather makes room for a copy, which in fills and out brings back.
func (c *compiler) gather(a pass.Arg) (gathering, error) {
	n := a.Rows * a.Cols
	if 4*uint64(n) > c.limits.MaxBufferSize {
		return gathering{}, c.tooLarge(a)
	}
	return gathering{a, c.keep(n, a.View.Buffer.Type()).View().Rows(a.Cols)}, nil
}

func (g gathering) in(c *compiler) error {
	if g.arg.Access&pass.Read == 0 {
		return nil
	}
	return c.copied(g.arg.View, g.to, g.arg)
}

func (g gathering) out(c *compiler) error {
	defer c.drop(g.to.Buffer)
	if g.arg.Access&pass.Write == 0 {
		return nil
	}
	return c.copied(g.to, g.arg.View, g.arg)
}

func (c *compiler) copied(from, to pass.View, a pass.Arg) error {
	step, err := pass.Check(pass.Copy{From: from, To: to, Rows: a.Rows, Cols: a.Cols})
	if err != nil {
		return err
	}
	return c.op(step)
}

// keep returns scratch memory of n elements as a buffer, until it is dropped.
func (c *compiler) keep(n int, t pass.DType) pass.Buffer {
	o := c.scratch(n)
	c.extra.kept[o.scratch-1] = true
	// No device is number 0, so that no other buffer has this name.
	return pass.MakeBuffer(pass.Ref{ID: uint32(o.scratch)}, t, n)
}

func (c *compiler) drop(b pass.Buffer) {
	i := b.Ref().ID - 1
	c.extra.kept[i], c.extra.lent[i] = false, false
}

// tooLarge is the error of an argument that cannot be bound.
func (c *compiler) tooLarge(a pass.Arg) error {
	return fmt.Errorf("%s: %d bytes exceed the device's %d for one binding and the op cannot be cut further: %w",
		a.Name, 4*span(a), c.limits.MaxStorageBindingSize, pass.ErrUnsupported)
}

// tooMuch is the error of an op of which not even the smallest part can be bound.
func (c *compiler) tooMuch(what string) error {
	return fmt.Errorf("%s exceeds the device's %d bytes for one binding: %w", what, c.limits.MaxStorageBindingSize, pass.ErrUnsupported)
}
