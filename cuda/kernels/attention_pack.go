package kernels

import "fmt"

// Attention of many queries takes keys, values and relative positions as halves, in blocks
// of [AttentionBlock] rows that attention_pack has made. Keys and positions of a block lie
// as panels of 64 dimensions [panel][row][64], values turned [dimension][row]. The eight
// chunks of 16 bytes in 128 are exchanged, chunk c of row r lying at c ^ r%8, so that
// matrices are read from shared memory without conflicts and blocks can be copied as they
// are. A block has a factor of its own, a power of two that turns the halves back. With
// Exact a second part follows, what the halves of the first leave. The kernels of
// warpgroups take values in rows as well.

// AttentionBlock is how many rows a block has.
const AttentionBlock = 64

// An AttentionPack makes blocks of the keys and the values of all heads of all items.
type AttentionPack struct {
	K, V                     U32 // F32 or F16, as the kernel says
	KRow, KHead, KItem       int64
	VRow, VHead, VItem       int64
	Keys, Values             F16  // [item][head][block]
	KeyFactors, ValueFactors F32  // of each block; of values negative if some are not finite, which are left out
	P                        View // relative positions, if there are any, see AttentionPositions: PackRowsName alone has them
	Packed                   F16
	PositionFactors          F32
	KeyLengths               Items
	KeyNumbers               Index // keys are the least of KeyLengths, KeyNumbers and Most
	Most                     uint32
	Heads, Dim, Blocks       uint32
	Works                    uint32 // blocks of keys and values
	_                        uint32
}

// An AttentionPositions makes blocks of relative positions, for each head: block u has
// the distances from 64·u − 32·Blocks on; distance d is row d + Keys − 1 of P.
type AttentionPositions struct {
	P            View
	Packed       F16
	Factors      F32
	Heads, Dim   uint32
	Keys, Blocks uint32
}

// PackName returns the name of the kernel that packs keys and values of F32 or, halves,
// of F16 for heads of at most dim dimensions: 64, 128 or 256.
func PackName(dim int, halves, exact bool) string {
	return fmt.Sprintf("attention_pack_%d%s%s", dim, word(halves, "_half"), word(exact, "_exact"))
}

// PackRowsName returns the name of the kernel that packs for [WideFor]: values in rows like
// keys, and with a factor of 1, or 0 for zeros, where numbers are of a usual size.
func PackRowsName(dim int, halves bool) string {
	return fmt.Sprintf("attention_pack_rows_%d%s", dim, word(halves, "_half"))
}

// PositionsName returns the name of the kernel that packs relative positions.
func PositionsName(dim int, exact bool) string {
	return fmt.Sprintf("attention_positions_%d%s", dim, word(exact, "_exact"))
}

func word(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

var attentionPack = Family{"attention_pack", packEntries()}

func packEntries() []Entry {
	var all []Entry
	for _, dim := range []int{64, 128, 256} {
		for _, exact := range []bool{false, true} {
			if exact && dim == 256 {
				continue // nothing computes with them
			}
			for _, halves := range []bool{false, true} {
				t := "float"
				if halves {
					t = "half"
				}
				all = append(all, Entry{
					Name: PackName(dim, halves, exact), Call: fmt.Sprintf("attention::pack<%s, %d, %v, false>", t, dim, exact),
					Args: AttentionPack{}, Threads: 256,
				})
				if !exact && dim <= 128 {
					all = append(all, Entry{
						Name: PackRowsName(dim, halves), Call: fmt.Sprintf("attention::pack<%s, %d, false, true>", t, dim),
						Args: AttentionPack{}, Threads: 2 * dim, Resident: 512 / dim, From: 90, Exact: true,
					})
				}
			}
			all = append(all, Entry{
				Name: PositionsName(dim, exact), Call: fmt.Sprintf("attention::positions<%d, %v>", dim, exact),
				Args: AttentionPositions{}, Threads: 256,
			})
		}
	}
	return all
}
