package kernels

import "fmt"

// An Attention is a [pass.Attention] or [pass.Attend] over packed keys.
type Attention struct {
	Q, O, Q2                                  View
	V                                         U32 // for values that are not finite
	VRow, VHead, VItem                        int64
	Keys, Values, Positions                   F16
	KeyFactors, ValueFactors, PositionFactors F32
	Lengths, KeyLengths                       Items
	KeyNumbers                                Index
	Most, Queries, Heads, Dim                 uint32
	Blocks                                    uint32 // of keys, of a slab
	Tiles                                     uint32 // of queries, of a slab
	Left, Right                               int32  // a query at p sees keys p − Left to p + Right
	Moving                                    uint32 // the last query stands at the item's last key, not at Most − 1
	HalfValues                                uint32 // V is F16
	Scale                                     float32
	Works                                     uint32 // tiles of all slabs
	K                                         U32    // F32, for DirectFor's kernels alone
	KRow, KHead, KItem                        int64
}

// A flash is a variant of the kernel for many queries.
type flash struct {
	dim, keys, warps int
	exact, relative  bool
	held             bool // queries stay in registers
	resident         int
}

// flashes are the variants, by head dimension. Where one is missing, or takes more shared
// memory than a device has, attention_split stands in.
var flashes = []flash{
	{dim: 64, keys: 64, warps: 8, held: true, resident: 2},
	{dim: 64, keys: 32, warps: 4, exact: true, resident: 2},
	{dim: 64, keys: 64, warps: 4, relative: true, held: true, resident: 2},
	{dim: 64, keys: 32, warps: 4, exact: true, relative: true, resident: 2},
	{dim: 128, keys: 64, warps: 4, resident: 2},
	{dim: 128, keys: 32, warps: 4, exact: true, resident: 2},
	{dim: 128, keys: 64, warps: 4, relative: true, held: true, resident: 2},
	{dim: 128, keys: 32, warps: 4, exact: true, relative: true},
	{dim: 256, keys: 32, warps: 4, resident: 2},
	{dim: 256, keys: 32, warps: 4, relative: true},
}

// FlashFor returns the kernel for many queries of heads of at most dim dimensions: 64, 128
// or 256. If there is none, it has no name.
func FlashFor(dim int, fast, relative bool) Entry {
	for _, f := range flashes {
		if f.dim == dim && f.exact != fast && f.relative == relative {
			return f.entry()
		}
	}
	return Entry{}
}

// parts is how many halves make up a number.
func (f flash) parts() int {
	if f.exact {
		return 2
	}
	return 1
}

// shared returns the shared memory of the kernel, as flash in attention.cuh divides it.
func (f flash) shared() int {
	rows := 2 * f.parts() * f.keys * f.dim // bytes of keys, or of values, of a step
	bytes := 2 * rows
	if f.relative {
		bytes += (64/f.keys + 1) * rows
		bytes += f.warps * 16 * bandStride(f.keys) * 4
	}
	if !f.held {
		queries := 2 * f.parts() * 16 * f.warps * f.dim
		bytes += queries
		if f.relative {
			bytes += queries
		}
	}
	return bytes
}

// bandStride is the length of a row of the scores of relative positions; see attention.cuh.
func bandStride(keys int) int { return (keys+16)/32*32 + 25 }

func (f flash) entry() Entry {
	return Entry{
		Name:    fmt.Sprintf("attention_flash_%d%s%s", f.dim, word(f.exact, "_exact"), word(f.relative, "_relative")),
		Call:    fmt.Sprintf("attention::flash<%d, %d, %d, %v, %v, %v>", f.dim, f.keys, f.warps, f.exact, f.relative, f.held),
		Args:    Attention{},
		Threads: 32 * f.warps, Resident: f.resident,
		Shared: f.shared(),
		Tile:   [3]int{16 * f.warps, f.keys, f.dim},
	}
}

var attention = Family{"attention", flashEntries()}

func flashEntries() []Entry {
	var all []Entry
	for _, f := range flashes {
		all = append(all, f.entry())
	}
	return all
}
