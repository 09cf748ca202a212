package cuda

import (
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// directs returns the kernels that make halves of keys and values themselves, by way.
func (a *attention) directs() map[string]kernels.Entry {
	if a.halves || a.relative {
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
	args := a.flash(k, ceilDiv(a.queries, entry.Tile[0]))
	args.KeyFactors, args.ValueFactors = kernels.F32(k.to(keyFactors)), kernels.F32(k.to(valueFactors))
	clusters := int(args.Works)
	if a.mask.Kind() == pass.MaskNone { // all have as many keys
		clusters = max(min(clusters, c.d.attributes.sms/cluster), ceilDiv(clusters, kernels.WideWorks))
	}
	return run(k, args, grid{clusters * cluster, 1, 1}, entry.Shared, a.cost)
}
