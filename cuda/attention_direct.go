package cuda

import (
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// directSteps bounds the steps that a block goes through in rounds of works one after the
// other for which the rule makes halves within the kernel: packing takes about 8 µs, and
// each step a bit longer if halves are made in it. On an H200, 24 steps (1,500 keys and
// queries in 20 heads) took 43 µs instead of 48, 12 in 6 heads 22.6 instead of 26.9, 512
// (4 × 4,096 in 16 heads) 770 instead of 679; where between is a guess.
const directSteps = 64

// directFor returns the kernel that makes halves of keys and values itself, if there is one
// for the views, and whether it is the better one.
func (a *attention) directFor() (entry kernels.Entry, better bool) {
	e := kernels.DirectFor(a.tier())
	if !a.mapped || a.relative || !a.c.has(e.Name) {
		return kernels.Entry{}, false
	}
	at := max(a.c.d.attributes.sms/e.Cluster, 1)
	rounds := ceilDiv(a.batch*a.heads*ceilDiv(a.queries, e.Tile[0]), at)
	return e, rounds*ceilDiv(a.most, e.Tile[1]) <= directSteps
}

// direct emits such a kernel, which needs no other. It writes the factors of blocks where
// not all numbers are of a usual size, to have them in its second walk.
func (a *attention) direct(why string) error {
	c := a.c
	entry, _ := a.directFor()
	slabs, cluster := a.batch*a.heads, entry.Cluster
	keyFactors, valueFactors := c.temporary(4*slabs*a.blocks()), c.temporary(4*slabs*a.blocks())
	k := c.call(entry.Name).because("%s", why)
	args := kernels.AttentionDirect{Op: a.flash(k, ceilDiv(a.queries, entry.Tile[0]))}
	a.maps(k, &args.Op)
	args.Op.KeyFactors, args.Op.ValueFactors = kernels.F32(k.to(keyFactors)), kernels.F32(k.to(valueFactors))
	clusters := int(args.Op.Works)
	if a.mask.Kind() == pass.MaskNone { // all have as many keys
		clusters = max(min(clusters, c.d.attributes.sms/cluster), ceilDiv(clusters, kernels.WideWorks))
	}
	return run(k, args, grid{clusters * cluster, 1, 1}, entry.Shared, a.cost)
}

// maps notes the tensor maps of keys and values.
func (a *attention) maps(k *call, op *kernels.Attention) {
	var args kernels.AttentionDirect
	for _, m := range []struct {
		to              uintptr
		at              driver.Pointer
		row, head, item int64
	}{
		{unsafe.Offsetof(args.Keys), driver.Pointer(op.K), op.KRow, op.KHead, op.KItem},
		{unsafe.Offsetof(args.Values), driver.Pointer(op.V), op.VRow, op.VHead, op.VItem},
	} {
		item := m.item
		if a.batch == 1 {
			item = m.row // which may be anything
		}
		k.noteMap(m.to, driver.TensorMap{
			Type: driver.TensorF32, Address: m.at, Promote: 256,
			Size:   []uint64{uint64(a.dim), uint64(a.most), uint64(a.heads), uint64(a.batch)},
			Stride: []uint64{uint64(4 * m.row), uint64(4 * m.head), uint64(4 * item)},
			Box:    []uint32{uint32(a.tier()), kernels.DirectCopied, 1, 1},
		})
	}
}

// mappable reports whether a view can have a tensor map, and be read and written by vectors:
// rows begin at multiples of four elements.
func (c *compiler) mappable(v pass.View, batch, rows, cols int) bool {
	first, _ := pass.Arg{View: v, Batch: batch, Rows: rows, Cols: cols}.Range()
	return c.at(v.Buffer, first)%16 == 0 && v.RowStride%4 == 0 && (batch == 1 || v.BatchStride%4 == 0 && v.BatchStride > 0)
}
