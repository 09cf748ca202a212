package gpu

import (
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
	"github.com/tandem-gpu/tandem/shaders"
)

// A compiler turns the ops of one plan into dispatches. The file of each op family
// has its method: gemm in linear.go, conv1d in conv1d.go, and so on. They see views
// and params, and call emit.
type compiler struct {
	kernels    *kernels
	limits     driver.Limits
	plan       *backend.Plan
	budget     float64 // most FLOP of one dispatch, for the sake of watchdogs; 0: any number
	extra      extra
	stop       func() error // says why to give up, if there is a reason; nil: there is none
	step       pass.Checked // the op being compiled, before it was cut
	state      *memory      // of the stream: where kernels report what is wrong; see status
	watched    []watch      // what they check
	dispatches []dispatch
}

// A dispatch is one run of a kernel as a family describes it.
type dispatch struct {
	label    string // the op, for Dump and error messages
	kernel   *pipeline
	operands []operand // @binding(1) and following
	words    []uint32  // the uniform block, @binding(0)
	groups   [3]int    // workgroups
	cost     pass.Cost
}

// An operand is a range of elements that a dispatch binds: of a state or temporary of
// the plan, of memory that the device owns (params), or of what the compiler added.
type operand struct {
	place   backend.Place
	memory  *memory // not nil: instead of place
	scratch int     // from 1: number of a buffer of extra.scratch, instead of place
	fixed   bool    // elements of extra.fixed, instead of place
	write   bool
	first   int // element that the binding starts at, aligned as the device wants it
	end     int // element after the last
}

// A kernel names a shader and its constants; together they are the key of the cache
// of pipelines.
type kernel struct {
	shader string // a file of package shaders, without its ending
	entry  string // a function in it
	values shaders.Values
}

// compile turns all steps into dispatches.
func (c *compiler) compile() error {
	c.dispatches = make([]dispatch, 0, len(c.plan.Steps))
	for i, step := range c.plan.Steps {
		if c.stop != nil {
			if err := c.stop(); err != nil {
				return err
			}
		}
		c.step = step
		if err := c.op(step); err != nil {
			return fmt.Errorf("op %d: %s: %w", i, step.Op.Name(), err)
		}
	}
	return nil
}

// op compiles one op. If an argument is larger than one binding, that is in parts, of
// which the argument is much smaller, or in windows, or in whatever parts there are.
func (c *compiler) op(step pass.Checked) error {
	large, ok := c.large(step)
	if !ok {
		return c.whole(step)
	}
	for _, most := range []int{span(large) * 3 / 4, span(large) - 1} {
		if cut, ok, err := c.cut(step, large, most); ok || err != nil {
			if err == nil {
				err = c.inTwo(step, cut)
			}
			return err
		}
		if done, err := c.inWindows(step); done || err != nil {
			return err
		}
	}
	return c.tooLarge(large)
}

// inTwo compiles the halves of an op one after the other.
func (c *compiler) inTwo(step pass.Checked, cut pass.Cut) error {
	half := cut.Extent / 2
	if half > cut.Grain {
		half -= half % cut.Grain
	}
	for _, r := range [2][2]int{{0, half}, {half, cut.Extent}} {
		part, err := pass.Part(step, cut.Axis, r[0], r[1])
		if err != nil {
			return err
		}
		if err := c.op(part); err != nil {
			return err
		}
	}
	return nil
}

// whole compiles an op whose arguments fit their bindings, or of which every dispatch
// binds what it needs.
func (c *compiler) whole(step pass.Checked) error {
	c.extra.release()
	switch op := step.Op.(type) {
	case pass.Gemm:
		return c.gemm(op, step.Cost)
	case pass.Conv1D:
		return c.conv1d(op, step.Cost)
	case pass.Conv2D:
		return c.conv2d(op, step.Cost)
	case pass.ConvGLU:
		return c.convGLU(op, step.Cost)
	case pass.DepthwiseConv2D:
		return c.depthwise(op, step.Cost)
	case pass.LSTM:
		return c.lstm(op)
	case pass.Attention:
		return c.attention(op, step.Cost)
	case pass.Append:
		return c.appendRows(op, step.Cost)
	case pass.Attend:
		return c.attend(op, step.Cost)
	case pass.Embed:
		return c.embed(op, step.Cost)
	case pass.LayerNorm:
		return c.layernorm(op, step.Cost)
	case pass.GroupNorm:
		return c.groupnorm(op, step.Cost)
	case pass.PoolNorm:
		return c.poolnorm(op, step.Cost)
	case pass.L2Norm:
		return c.l2norm(op, step.Cost)
	case pass.Softmax:
		return c.softmax(op.Name(), op, false, step.Cost)
	case pass.LogSoftmax:
		return c.softmax(op.Name(), pass.Softmax(op), true, step.Cost)
	case pass.Argmax:
		return c.argmax(op, step.Cost)
	case pass.Rope:
		return c.rope(op, step.Cost)
	case pass.LogMel:
		return c.logMel(op, step.Cost)
	case pass.StatsPool:
		return c.statspool(op, step.Cost)
	case pass.Map:
		return c.mapped(op, step.Cost)
	case pass.Magnitude:
		return c.magnitude(op, step.Cost)
	case pass.Add:
		return c.add(op, step.Cost)
	case pass.Scale:
		return c.scale(op, step.Cost)
	case pass.SwiGLU:
		return c.gated(op.Name(), op, true, step.Cost)
	case pass.GLU:
		return c.gated(op.Name(), pass.SwiGLU{X: op.X, Y: op.Y, Batch: op.Batch, Rows: op.Rows, Cols: op.Cols}, false, step.Cost)
	case pass.Copy:
		return c.copy(op, step.Cost)
	case pass.Permute:
		return c.permute(op, step.Cost)
	case pass.Advance:
		return c.advance(op, step.Cost)
	case pass.Fill:
		return c.fill(op, step.Cost)
	}
	return fmt.Errorf("no kernel: %w", pass.ErrUnsupported)
}

// large returns an argument that is larger than one binding, if there is one.
func (c *compiler) large(step pass.Checked) (pass.Arg, bool) {
	for _, a := range step.Args {
		if !c.fits(a) {
			return a, true
		}
	}
	return pass.Arg{}, false
}

// cut returns an axis along which half of an op spans at most so many elements of an
// argument, if there is one.
func (c *compiler) cut(step pass.Checked, large pass.Arg, most int) (pass.Cut, bool, error) {
	for _, cut := range step.Op.Cuts() {
		if cut.Extent < 2 {
			continue
		}
		half, err := pass.Part(step, cut.Axis, 0, cut.Extent/2)
		if err != nil {
			return cut, false, err
		}
		for _, a := range half.Args {
			if a.Name == large.Name && span(a) <= most {
				return cut, true, nil
			}
		}
	}
	return pass.Cut{}, false, nil
}

func span(a pass.Arg) int {
	first, end := a.Range()
	return end - first
}

// fits reports whether an argument fits one binding, with the elements before it that
// alignment adds.
func (c *compiler) fits(a pass.Arg) bool {
	first, end := a.Range()
	return 4*uint64(end-c.align(first)) <= c.limits.MaxStorageBindingSize
}

// align returns the last element at or before first at which a binding may start.
func (c *compiler) align(first int) int {
	return first - first%(int(c.limits.StorageOffsetAlignment)/4)
}

// bind returns the operand for the elements [first, end) of a buffer, and where in the
// binding the first one is. An empty range still binds one element.
func (c *compiler) bind(b pass.Buffer, first, end int, write bool) (o operand, shift uint32) {
	o = operand{write: write, first: c.align(first), end: max(end, first+1)}
	if r := b.Ref(); r.Device == 0 {
		o.scratch = int(r.ID) // see keep
	} else {
		o.place = c.plan.Place(b)
	}
	return o, uint32(first - o.first)
}

// view returns the operand for a view of batch × rows × cols elements with explicit
// strides.
func (c *compiler) view(v pass.View, batch, rows, cols int, write bool) (operand, uint32) {
	first, end := pass.Arg{View: v, Batch: batch, Rows: rows, Cols: cols}.Range()
	return c.bind(v.Buffer, first, end, write)
}

// emit records a dispatch of a kernel. Its groups may be more in x than the device
// takes in one dimension: the rest goes to y, and the kernel numbers its workgroups
// x + y·num_workgroups.x and skips those beyond the end.
func (c *compiler) emit(label string, k kernel, operands []operand, words []uint32, groups [3]int, cost pass.Cost) error {
	var room [16]bool
	reads := room[:0]
	for i := range operands {
		reads = append(reads, !operands[i].write)
	}
	p, err := c.kernels.get(k, reads...)
	if err != nil {
		return err
	}
	most := int(c.limits.MaxWorkgroups)
	if groups[0] > most && groups[1] == 1 {
		rows := (groups[0] + most - 1) / most
		groups[0], groups[1] = (groups[0]+rows-1)/rows, rows
	}
	for _, n := range groups {
		if n > most {
			return fmt.Errorf("%s: %v workgroups exceed the device's %d in one dimension: %w", label, groups, most, pass.ErrUnsupported)
		}
		if n == 0 {
			return nil
		}
	}
	c.dispatches = append(c.dispatches, dispatch{label, p, operands, words, groups, cost})
	return nil
}
