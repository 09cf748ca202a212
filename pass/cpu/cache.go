package cpu

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A cache is a [pass.Cache], kept in the panels that attention reads: for each item
// and head, keys in panels of eight positions [panel][head dimension], and values in
// panels of eight dimensions [panel][capacity].
type cache struct {
	cfg      pass.CacheConfig
	keys     []panelRow // of an F32 cache
	values   []panelRow
	keys16   []halfRow // of an F16 cache
	values16 []halfRow
	ledger   *ledger
}

// A halfRow is a panelRow of F16.
type halfRow = [lanes]uint16

// NewCache implements backend.Stream.
func (s *stream) NewCache(cfg pass.CacheConfig) (backend.Memory, error) {
	c, err := newCache(&s.h.ledger, cfg)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func newCache(l *ledger, cfg pass.CacheConfig) (*cache, error) {
	// The products fit an int64, because those of the configuration are bounded.
	each := int64(cfg.Batch) * int64(cfg.Heads)
	keys := each * ((int64(cfg.Capacity) + lanes - 1) / lanes) * int64(cfg.HeadDim)
	values := each * int64(panelsOf(cfg.HeadDim)) * int64(cfg.Capacity)
	if keys+values > math.MaxInt/(4*lanes) {
		return nil, fmt.Errorf("%d positions of keys and values: %w", cfg.Capacity, pass.ErrOutOfMemory)
	}
	if err := l.reserve(int(keys+values), int(cfg.Type.Bytes(lanes))); err != nil {
		return nil, err
	}
	c := &cache{cfg: cfg, ledger: l}
	if cfg.Type == pass.F16 {
		c.keys16, c.values16 = make([]halfRow, keys), make([]halfRow, values)
	} else {
		c.keys, c.values = make([]panelRow, keys), make([]panelRow, values)
	}
	return c, nil
}

// Free implements backend.Memory.
func (c *cache) Free() {
	rows := int64(len(c.keys) + len(c.values) + len(c.keys16) + len(c.values16))
	c.ledger.release(rows * c.cfg.Type.Bytes(lanes))
	c.keys, c.values, c.keys16, c.values16 = nil, nil, nil, nil
}

// head returns where the keys and the values of a head of an item begin.
func (c *cache) head(b, head int) (keys, values int) {
	i := b*c.cfg.Heads + head
	return i * panelsOf(c.cfg.Capacity) * c.cfg.HeadDim, i * panelsOf(c.cfg.HeadDim) * c.cfg.Capacity
}

// panels implements panelSource. F32 panels are used where they lie.
func (c *cache) panels(b, head, from, to int, room []panelRow) (keys, values []panelRow, stride int) {
	dim := c.cfg.HeadDim
	k, v := c.head(b, head)
	k += from / lanes * dim
	v += from
	n := panelsOf(to-from) * dim
	if c.cfg.Type == pass.F32 {
		return c.keys[k : k+n], c.values[v : v+(panelsOf(dim)-1)*c.cfg.Capacity+to-from], c.cfg.Capacity
	}
	keys, values = room[:n], room[n:n+panelsOf(dim)*(to-from)]
	expand(keys, c.keys16[k:k+n])
	for p := range panelsOf(dim) {
		expand(values[p*(to-from):(p+1)*(to-from)], c.values16[v+p*c.cfg.Capacity:])
	}
	return keys, values, to - from
}

// expand converts rows of F16, of which there are at least as many as rows of dst.
func expand(dst []panelRow, src []halfRow) {
	src = src[:len(dst)]
	for i := range dst {
		for j, h := range &src[i] {
			dst[i][j] = fromHalf(h)
		}
	}
}

// fromHalf returns the value of F16 bits. Shifted into their places in an F32, exponent
// and fraction give a number that is 2¹¹² times too small, subnormal ones too; that of
// infinities and NaN is set instead.
func fromHalf(h uint16) float32 {
	v := math.Float32bits(math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112)
	if h&0x7c00 == 0x7c00 {
		v |= 0xff << 23
	}
	return math.Float32frombits(v | uint32(h&0x8000)<<16)
}

// appending computes a [pass.Append].
type appending struct {
	k, v        view
	cache       *cache
	batch, rows int
	at          items
}

func (p *program) appending(a pass.Append) kernel {
	return &appending{
		k: p.view(a.K), v: p.view(a.V),
		cache: p.plan.Cache(a.Cache).(*cache),
		batch: a.Batch, rows: a.Rows,
		at: p.index("append", "At", a.At, a.Batch),
	}
}

func (a *appending) variant() string { return fmt.Sprintf("panels of 8, %v", a.cache.cfg.Type) }
func (a *appending) scratch(int) int { return 0 }

func (a *appending) run(*team) error {
	if a.rows == 0 {
		return nil
	}
	g := a.cache.cfg
	if err := a.at.read(g.Capacity - a.rows); err != nil {
		return fmt.Errorf("%d rows within a capacity of %d: %w", a.rows, g.Capacity, err)
	}
	for b := range a.batch {
		for r := range a.rows {
			k, v := a.k.row(b, r, g.Heads*g.HeadDim), a.v.row(b, r, g.Heads*g.HeadDim)
			if g.Type == pass.F16 {
				if err := a.fits(b, r, "K", k); err != nil {
					return err
				}
				if err := a.fits(b, r, "V", v); err != nil {
					return err
				}
			}
			for head := range g.Heads {
				a.cache.store(b, head, a.at.of(b)+r, k[head*g.HeadDim:(head+1)*g.HeadDim], v[head*g.HeadDim:(head+1)*g.HeadDim])
			}
		}
	}
	return nil
}

// fits refuses finite values that would become infinities without a word.
func (a *appending) fits(b, r int, name string, row []float32) error {
	const most = 65520 // rounds to 2¹⁶, which F16 does not have
	for _, v := range row {
		if v = max(v, -v); v >= most && v <= math.MaxFloat32 {
			return fmt.Errorf("append: %s: item %d, row %d: want values within the range of F16, given %v: %w", name, b, r, v, pass.ErrInvalid)
		}
	}
	return nil
}

// store puts the key and the value of a head at a position, rounded to the nearest
// value of the cache's type, to even on a tie.
func (c *cache) store(b, head, position int, key, value []float32) {
	k, v := c.head(b, head)
	k += position / lanes * c.cfg.HeadDim
	v += position
	lane := position % lanes
	if c.cfg.Type == pass.F16 {
		for d := range key {
			c.keys16[k+d][lane] = float16.Fromfloat32(key[d]).Bits()
			c.values16[v+d/lanes*c.cfg.Capacity][d%lanes] = float16.Fromfloat32(value[d]).Bits()
		}
		return
	}
	for d := range key {
		c.keys[k+d][lane] = key[d]
		c.values[v+d/lanes*c.cfg.Capacity][d%lanes] = value[d]
	}
}

// attend computes a [pass.Attend]: attention over panels that lie in a cache.
func (p *program) attend(a pass.Attend, cost pass.Cost) []kernel {
	c := p.plan.Cache(a.Cache).(*cache)
	k := &attention{
		name: "attend",
		q:    p.view(a.Q), o: p.view(a.O),
		source: c, described: fmt.Sprintf(", %v cache", c.cfg.Type),
		batch: a.Batch, heads: c.cfg.Heads, dim: c.cfg.HeadDim,
		queries: a.Queries, keys: c.cfg.Capacity,
		scale:   float64(a.Scale),
		lengths: p.items("attend", "Queries", pass.Items{}, a.Batch, func(int) int { return a.Queries }),
		seen:    p.index("attend", "Keys", a.Keys, a.Batch),
		moving:  true,
		share:   cost.FLOP > worthSharing,
	}
	if a.Causal {
		k.mask = pass.Causal
	}
	return k.pieces(p, cost)
}
