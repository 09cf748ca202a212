package kernels

import "fmt"

// WideWorks is how many tiles a block of [WideFor]'s kernel does at most.
const WideWorks = 256

// A flashWide is a variant of the kernel of warpgroups for many queries.
type flashWide struct {
	dim, stages int
	turns       bool // the warpgroups begin products in turn
}

var flashWides = []flashWide{{64, 3, false}, {64, 3, true}, {128, 3, false}, {128, 3, true}}

// WideFor returns the kernel of warpgroups for heads of at most dim dimensions, 64 or 128;
// for other dimensions it has no name.
func WideFor(dim int, turns bool) Entry {
	for _, w := range flashWides {
		if w.dim == dim && w.turns == turns {
			return w.entry()
		}
	}
	return Entry{}
}

// WideRelativeFor is WideFor with relative positions.
func WideRelativeFor(dim int) Entry {
	const groups, stages, slots = 2, 2, 4
	if dim > 128 {
		return Entry{}
	}
	return Entry{
		Name: fmt.Sprintf("attention_wide_%d_relative", dim), Call: fmt.Sprintf("attention::flash_wide_relative<%d>", dim),
		Args: Attention{}, Threads: 128*groups + 128, Resident: 1,
		Shared: (2*stages+slots)*AttentionBlock*dim*2 + 4*groups*16*bandStride(AttentionBlock)*4 + 2*8*(2*stages+slots) + 8,
		Tile:   [3]int{64 * groups, AttentionBlock, dim},
		From:   90, Exact: true, Waits: true,
	}
}

func (w flashWide) entry() Entry {
	const pair = 2 * AttentionBlock // keys of a stage
	return Entry{
		Name:    fmt.Sprintf("attention_wide_%d%s", w.dim, word(w.turns, "_turns")),
		Call:    fmt.Sprintf("attention::flash_wide<%d, %d, 2, %v>", w.dim, w.stages, w.turns),
		Args:    Attention{},
		Threads: 384, Resident: 1,
		Shared: 2*w.stages*pair*w.dim*2 + 4*8*w.stages + WideWorks,
		Tile:   [3]int{128, pair, w.dim},
		From:   90, Exact: true, Waits: true,
	}
}

var attentionWide = Family{"attention_sm90", flashWideEntries()}

func flashWideEntries() []Entry {
	var all []Entry
	for _, w := range flashWides {
		all = append(all, w.entry())
	}
	return append(all, WideRelativeFor(64), WideRelativeFor(128))
}
