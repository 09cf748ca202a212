package cuda

import (
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A cache is the memory of a [pass.Cache]: keys and values [item][head][position][head
// dimension], so that what a head attends to lies in one piece.
type cache struct {
	cfg          pass.CacheConfig
	keys, values *memory
}

// newCache makes an empty cache.
func newCache(d *device, cfg pass.CacheConfig) (backend.Memory, error) {
	if cfg.Capacity > mostPositions {
		return nil, fmt.Errorf("cache: %d positions: want at most %d: %w", cfg.Capacity, mostPositions, pass.ErrUnsupported)
	}
	h := &cache{cfg: cfg}
	bytes := int(cfg.Type.Bytes(cfg.Batch * cfg.Heads * cfg.Capacity * cfg.HeadDim))
	var err error
	if h.keys, err = d.zero("keys of a cache", bytes); err != nil {
		return nil, err
	}
	if h.values, err = d.zero("values of a cache", bytes); err != nil {
		h.Free()
		return nil, err
	}
	return h, nil
}

// Free implements backend.Memory.
func (h *cache) Free() {
	h.keys.Free()
	h.values.Free()
}

// both returns the memory of keys and values.
func (h *cache) both() (keys, values region) {
	return region{at: h.keys.at, bytes: h.keys.bytes}, region{at: h.values.at, bytes: h.values.bytes}
}

// appendRows compiles an Append.
func (c *compiler) appendRows(op pass.Append, cost pass.Cost) error {
	h := c.plan.Cache(op.Cache).(*cache)
	g := h.cfg
	name := "cache_append"
	if g.Type == pass.F16 {
		name = "cache_append_half"
	}
	k := c.call(name)
	keys, values := h.both()
	args := kernels.Append{
		K: k.read(op.K, op.Batch, op.Rows, g.Heads*g.HeadDim), V: k.read(op.V, op.Batch, op.Rows, g.Heads*g.HeadDim),
		Keys: kernels.U32(k.to(keys)), Values: kernels.U32(k.to(values)),
		At:   k.index(op.At, op.Batch, op.Rows, g.Capacity),
		Rows: uint32(op.Rows), Heads: uint32(g.Heads), Dim: uint32(g.HeadDim), Capacity: uint32(g.Capacity),
	}
	if g.Type == pass.F16 {
		args.Status = k.status()
	}
	return run(k, args, grid{2 * op.Batch * op.Rows, 1, 1}, 0, cost)
}

// attend compiles an Attend.
func (c *compiler) attend(op pass.Attend, cost pass.Cost) error {
	h := c.plan.Cache(op.Cache).(*cache)
	g := h.cfg
	width, most := g.Heads*g.HeadDim, g.Capacity
	if n, ok := op.Keys.Const(); ok {
		if n == 0 {
			return c.zeros(op.O, op.Batch, op.Queries, width, cost)
		}
		most = n
	}
	a := attention{
		c: c, batch: op.Batch, queries: op.Queries, heads: g.Heads, dim: g.HeadDim, most: most,
		scale: op.Scale, moving: true, halves: g.Type == pass.F16, cost: cost,
		q: op.Q, o: op.O, keyNumbers: op.Keys,
		source: func(k *call) keyRows {
			keys, values := h.both()
			place := func(r region) keyPlace {
				head := int64(g.Capacity) * int64(g.HeadDim)
				return keyPlace{kernels.U32(k.from(r)), int64(g.HeadDim), head, int64(g.Heads) * head}
			}
			return keyRows{place(keys), place(values)}
		},
	}
	if op.Causal {
		a.mask = pass.Causal
	}
	return a.compile()
}
