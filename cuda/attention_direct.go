package cuda

import (
	"fmt"
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// directs returns the kernels that make halves of keys and values themselves, by way.
func (a *attention) directs() map[string]kernels.Entry {
	if !a.mapped || a.relative {
		return nil
	}
	all := map[string]kernels.Entry{}
	for _, n := range kernels.DirectClusters {
		if e := kernels.DirectFor(a.tier(), n); e.Name != "" && a.c.has(e.Name) {
			all[fmt.Sprintf("wgmma-direct-%d", n)] = e
		}
	}
	return all
}

// direct emits such a kernel, which needs no other. It writes the factors of blocks where
// not all numbers are of a usual size, to have them in its second walk.
func (a *attention) direct(entry kernels.Entry, why string) error {
	c, cluster := a.c, max(entry.Cluster, 1)
	slabs := a.batch * a.heads
	keyFactors, valueFactors := c.temporary(4*slabs*a.blocks()), c.temporary(4*slabs*a.blocks())
	k := c.call(entry.Name).because("%s", why)
	args := kernels.AttentionDirect{Op: a.flash(k, ceilDiv(a.queries, entry.Tile[0]))}
	a.maps(k, &args.Op, cluster)
	args.Op.KeyFactors, args.Op.ValueFactors = kernels.F32(k.to(keyFactors)), kernels.F32(k.to(valueFactors))
	clusters := int(args.Op.Works)
	if a.mask.Kind() == pass.MaskNone { // all have as many keys
		clusters = max(min(clusters, c.d.attributes.sms/cluster), ceilDiv(clusters, kernels.WideWorks))
	}
	return run(k, args, grid{clusters * cluster, 1, 1}, entry.Shared, a.cost)
}

// maps notes the tensor maps of keys and values.
func (a *attention) maps(k *call, op *kernels.Attention, cluster int) {
	var args kernels.AttentionDirect
	for _, m := range []struct {
		to              uintptr
		at              kernels.U32
		row, head, item int64
	}{
		{unsafe.Offsetof(args.Keys), op.K, op.KRow, op.KHead, op.KItem},
		{unsafe.Offsetof(args.Values), op.V, op.VRow, op.VHead, op.VItem},
	} {
		item := m.item
		if a.batch == 1 {
			item = m.row // which may be anything
		}
		t := driver.TensorMap{
			Type: driver.TensorF32, Address: driver.Pointer(m.at), Promote: 256,
			Size:   []uint64{uint64(a.dim), uint64(a.most), uint64(a.heads), uint64(a.batch)},
			Stride: []uint64{uint64(4 * m.row), uint64(4 * m.head), uint64(4 * item)},
			Box:    []uint32{uint32(a.tier()), uint32(kernels.DirectRows(cluster)), 1, 1},
		}
		k.l.maps = append(k.l.maps, mapUse{m.to, keyOf(t)})
	}
}

// inGroups reports whether rows of a view begin at multiples of n elements.
func (c *compiler) inGroups(n int, v pass.View, batch, rows, cols int) bool {
	first, _ := pass.Arg{View: v, Batch: batch, Rows: rows, Cols: cols}.Range()
	return c.at(v.Buffer, first)%driver.Pointer(4*n) == 0 && v.RowStride%n == 0 && (batch == 1 || v.BatchStride%n == 0 && v.BatchStride > 0)
}
