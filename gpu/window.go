package gpu

import (
	"fmt"
	"reflect"

	"github.com/tandem-gpu/tandem/pass"
)

// A buffer may be larger than one binding. An op that has no cut which helps against that
// runs in windows: each dispatch binds the rows that its workgroups touch.

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

// windowOfItems is window for some items.
func (c *compiler) windowOfItems(v pass.View, items, rows pass.Span, cols int, write bool) lines {
	before := items.From * v.BatchStride
	l := c.window(v.At(before), items.Len(), rows, cols, write)
	l.shift -= before
	if before > 0 {
		l.items = 0 // so that the distance from item to item counts
	}
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
	switch op := step.Op.(type) {
	case pass.Map, pass.Add, pass.Scale, pass.Copy, pass.Fill:
		return c.inColumns(step)
	case pass.Permute, pass.Attend:
		return true, c.whole(step)
	case pass.Append:
		for _, a := range step.Args {
			if a.Batch = 1; !c.fits(a) {
				return false, nil
			}
		}
		return true, c.whole(step)
	case pass.PoolNorm:
		if op.Batch > 1 {
			return false, nil
		}
		return true, c.whole(step)
	}
	units := c.units(step.Op)
	if units == nil {
		return false, nil
	}
	held := true
	var far []pass.Arg
	for _, a := range step.Args {
		unit, ok := units[a.Name]
		switch {
		case a.Batch > 1 || !ok && !c.fits(a):
			return false, nil
		case ok && !c.holds(a.View, 1, pass.Span{To: min(unit, a.Rows)}, a.Cols):
			held = false
			if min(unit, a.Rows) > 1 && a.View.RowStride > a.Cols {
				far = append(far, a)
			}
		}
	}
	if op, ok := step.Op.(pass.Attention); ok && !held && op.Heads > 1 {
		return true, c.inTwo(step, pass.Cut{Axis: pass.AxisHeads, Extent: op.Heads, Grain: 1})
	}
	if len(far) > 0 {
		return true, c.gathered(step, far)
	}
	return true, c.whole(step)
}

// units returns for each argument how many rows one dispatch must see, at most; nil for
// an op that does not run in windows.
func (c *compiler) units(op pass.Op) map[string]int {
	switch op := op.(type) {
	case pass.Attention:
		if op.Queries <= fewQueries && op.Q2.IsZero() {
			return map[string]int{"Q": fewQueries, "O": fewQueries, "K": splitKeys, "V": splitKeys}
		}
		t := chooseAttentionTile(op.HeadDim, op.Queries, op.Heads, !op.Q2.IsZero(), c.limits)
		q, k := t.queries(), t.keys()
		return map[string]int{"Q": q, "O": q, "Q2": q, "K": k, "V": k, "Positions": q + k}
	case pass.Conv1D:
		v := c.convolution(op)
		return map[string]int{"X": v.reach(), "Y": 1}
	case pass.Conv2D:
		_, width := op.Size()
		return map[string]int{"X": 3 * op.Width, "Y": width, "Residual": width}
	case pass.ConvGLU:
		kernel := c.plan.Param(op.W).(*param).shape.(pass.ConvGLUShape).Kernel
		return map[string]int{"X": kernel + mostGLURows, "Y": 1}
	case pass.GroupNorm:
		chunk, _ := groupChunks(op)
		return map[string]int{"X": chunk, "Y": chunk}
	case pass.LogMel:
		mels := c.plan.Param(op.W).(*param).shape.(pass.MelShape).Mels
		return map[string]int{"X": 1, "Y": max(melChunk, melValues/mels+2)}
	case pass.LSTM:
		return map[string]int{"X": 1, "Y": 1}
	case pass.StatsPool:
		return map[string]int{"X": poolChunk, "Y": 1, "Masks": 1}
	}
	return nil
}

// inColumns compiles an op whose elements have nothing to do with each other by halves of
// a row that exceeds a binding.
func (c *compiler) inColumns(step pass.Checked) (done bool, err error) {
	if a, _ := c.large(step); a.Batch > 1 || a.Rows > 1 || a.Cols < 2 {
		return false, nil
	}
	cols := reflect.ValueOf(step.Op).FieldByName("Cols").Int()
	for _, s := range [2][2]int64{{0, cols / 2}, {cols / 2, cols}} {
		op := reflect.New(reflect.TypeOf(step.Op)).Elem()
		op.Set(reflect.ValueOf(step.Op))
		op.FieldByName("Cols").SetInt(s[1] - s[0])
		for _, a := range step.Args {
			if f := op.FieldByName(a.Name); f.Type() == reflect.TypeFor[pass.View]() {
				f.Set(reflect.ValueOf(a.View.At(int(s[0]))))
			}
		}
		part, err := pass.Check(op.Interface().(pass.Op))
		if err == nil {
			err = c.op(part)
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
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
