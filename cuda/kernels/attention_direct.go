package kernels

import "fmt"

// An AttentionDirect is an Attention over keys and values in F32: maps of [item][head][row]
// with a box of 1 × 1 × DirectCopied × the dimensions that the kernel is made for. Rows of
// queries and of the output begin at multiples of four elements.
type AttentionDirect struct {
	Keys, Values TensorMap
	Op           Attention
	_            [2]uint32
}

// Geometry of the kernel that takes keys and values in F32: blocks of a cluster take a tile
// of queries of a head each, and DirectCopied rows are copied at a time.
const (
	directCluster = 2
	DirectCopied  = 2 * AttentionBlock / directCluster / 4
)

// DirectFor returns the kernel of warpgroups that makes halves of F32 keys and values
// itself, for heads of at most dim dimensions: each block of a cluster makes its part of
// them for all. If there is none, it has no name. Tile[0] is the queries of a cluster.
func DirectFor(dim int) Entry {
	const (
		stages, ahead = 4, 4               // of halves; parts, keys or values of a stage, that are on their way
		pair          = 2 * AttentionBlock // keys of a stage
		barriers      = 2*4*8*stages + 4*8*8 + 4*WideWorks
		shared        = 2*stages*pair*64*2 + (barriers+127)/128*128 + 128*64*4 + ahead*pair/directCluster*64*4
	)
	if dim != 64 {
		return Entry{}
	}
	return Entry{
		Name: "attention_direct_64", Call: fmt.Sprintf("attention::flash_direct<64, %d, %d, %d>", stages, directCluster, ahead),
		Args:    AttentionDirect{},
		Threads: 384, Resident: 1, Cluster: directCluster, Shared: shared,
		Tile: [3]int{128 * directCluster, pair, 64},
		From: 90, Exact: true, Waits: true,
	}
}

var attentionDirect = Family{"attention_direct", []Entry{DirectFor(64)}}
