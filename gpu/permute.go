package gpu

import (
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// A permutation is a Permute of a block: its axes in the order of Y.
type permutation struct {
	label    string
	x, y     pass.View
	dims     [4]int
	from, to [4]int // strides in X and Y
	last     int    // the axis that is last in X
}

// permute compiles a Permute.
func (c *compiler) permute(op pass.Permute, cost pass.Cost) error {
	d, e := op.Dims, op.Out()
	p := permutation{label: op.Name(), x: op.X, y: op.Y, dims: e}
	given := [4]int{op.X.BatchStride, d[2] * op.X.RowStride, op.X.RowStride, 1}
	p.to = [4]int{op.Y.BatchStride, e[2] * op.Y.RowStride, op.Y.RowStride, 1}
	for i, axis := range op.Order {
		p.from[i] = given[axis]
		if axis == 3 {
			p.last = i
		}
	}
	if f := (field{e[0], e[1] * e[2], e[3]}); f.empty() {
		return nil
	}
	return c.permuteBlock(p, cost)
}

// reach returns how many elements there are from the first of a block to its last.
func (p *permutation) reach(strides [4]int) int {
	n := 1
	for i, d := range p.dims {
		n += (d - 1) * strides[i]
	}
	return n
}

// axis returns where to cut a block that reaches too far: across its longest way.
func (p *permutation) axis(strides [4]int) int {
	longest := 0
	for i, d := range p.dims {
		if (d-1)*strides[i] > (p.dims[longest]-1)*strides[longest] {
			longest = i
		}
	}
	return longest
}

// permuteBlock compiles a block, by halves if X or Y reaches further than one binding.
func (c *compiler) permuteBlock(p permutation, cost pass.Cost) error {
	for _, side := range []struct {
		v       pass.View
		strides [4]int
	}{{p.x, p.from}, {p.y, p.to}} {
		if c.holds(side.v, 1, pass.Span{To: 1}, p.reach(side.strides)) {
			continue
		}
		i := p.axis(side.strides)
		half := p.dims[i] / 2
		first, second := p, p
		first.dims[i], second.dims[i] = half, p.dims[i]-half
		second.x, second.y = p.x.At(half*p.from[i]), p.y.At(half*p.to[i])
		if err := c.permuteBlock(first, share(cost, half, p.dims[i])); err != nil {
			return err
		}
		return c.permuteBlock(second, share(cost, p.dims[i]-half, p.dims[i]))
	}
	return c.permuted(p, cost)
}

// permuted emits the kernel for a block.
func (c *compiler) permuted(p permutation, cost pass.Cost) error {
	d, from, to := p.dims, p.from, p.to
	x, y := p.bind(c, p.x, from, false), p.bind(c, p.y, to, true)
	k := numbered{kernel{shader: "permute", entry: "gather", values: shaders.Values{"Down": columnsDown(c.limits)}}, []operand{y.operand, x.operand}}
	words := []uint32{
		uint32(y.shift), uint32(to[0]), uint32(to[1]), uint32(to[2]),
		uint32(x.shift), uint32(from[0]), uint32(from[1]), uint32(from[2]), uint32(from[3]), uint32(d[2]),
	}
	const narrow = 8 // a tile of 32 would be mostly empty
	if p.last == 3 || d[3] < narrow || d[p.last] < narrow {
		vectors := p.last == 3 && d[3]%4 == 0 && x.inFours() && y.inFours()
		return c.visit(p.label, k, field{d[0], d[1] * d[2], d[3]}, vectors, words, cost)
	}
	// outer and inner are the axes that are last on neither side.
	outer, inner := (p.last+1)%3, (p.last+2)%3
	if outer > inner {
		outer, inner = inner, outer
	}
	k.entry, k.values["Entry"], k.values["Vectors"] = "transpose", "transpose", false
	alongTiles, acrossTiles := (d[3]+31)/32, (d[p.last]+31)/32
	words = append([]uint32{0, 0, 0}, words...)
	words[8], words[10], words[12] = uint32(from[outer]), uint32(from[inner]), uint32(d[inner])
	back := []uint32{uint32(d[3]), uint32(d[p.last]), uint32(alongTiles), uint32(acrossTiles), uint32(to[outer]), uint32(to[inner]), uint32(to[p.last])}
	return c.tiles(p.label, k, words, d[outer]*d[inner]*alongTiles*acrossTiles, back, cost)
}

// bind binds what a block reaches of a view. The stride of the result is such that it is
// in fours if all lines of the block are.
func (p *permutation) bind(c *compiler, v pass.View, strides [4]int, write bool) lines {
	l := c.lines(v, 1, 1, p.reach(strides), write)
	l.single, l.row = false, 0
	for i, d := range p.dims[:3] {
		if d > 1 {
			l.row |= strides[i]
		}
	}
	return l
}
