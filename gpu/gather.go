package gpu

import (
	"reflect"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// gathered compiles an op with copies of arguments whose rows are so far apart that one
// binding holds too few of them.
func (c *compiler) gathered(step pass.Checked, far []pass.Arg) error {
	op := reflect.New(reflect.TypeOf(step.Op)).Elem()
	op.Set(reflect.ValueOf(step.Op))
	var copies []gathering
	for _, a := range far {
		i := slices.IndexFunc(copies, func(g gathering) bool { return g.arg.View == a.View && g.arg.Rows == a.Rows && g.arg.Cols == a.Cols })
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
