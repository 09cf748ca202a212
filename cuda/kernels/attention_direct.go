package kernels

import "fmt"

// An AttentionDirect is an Attention over keys and values in F32: maps of [item][head][row]
// with a box of 1 × 1 × DirectRows × the dimensions that the kernel is made for. Views and
// strides of keys and values are multiples of four elements, those of queries of two.
type AttentionDirect struct {
	Keys, Values TensorMap
	Op           Attention
	_            [2]uint32
}

// A flashDirect is a variant of the kernel of warpgroups that makes halves of F32 keys and
// values itself.
type flashDirect struct {
	dim, stages int
	cluster     int  // blocks that share what each makes
	ahead       int  // parts, keys or values of a stage, that are on their way
	early       bool // queries of the next work are asked for early
}

var flashDirects = []flashDirect{{64, 4, 2, 4, true}}

// DirectClusters are the sizes of clusters that kernels of [DirectFor] have.
var DirectClusters = []int{2}

// DirectRows returns how many rows are copied at a time.
func DirectRows(cluster int) int { return 2 * AttentionBlock / cluster / 4 }

// DirectFor returns the kernel that takes keys and values in F32 as they are, for heads of
// at most dim dimensions; a cluster of blocks takes that many tiles of a head, and each block
// makes its part of the halves for all. If there is none, it has no name. Tile[0] is the
// queries of a cluster.
func DirectFor(dim, cluster int) Entry {
	for _, f := range flashDirects {
		if f.dim == dim && f.cluster == cluster {
			return f.entry()
		}
	}
	return Entry{}
}

func (f flashDirect) entry() Entry {
	const pair = 2 * AttentionBlock // keys of a stage
	e := Entry{
		Name:    fmt.Sprintf("attention_direct_%d", f.dim),
		Call:    fmt.Sprintf("attention::flash_direct<%d, %d, %d, %d, %v>", f.dim, f.stages, f.cluster, f.ahead, f.early),
		Args:    AttentionDirect{},
		Threads: 384, Resident: 1,
		Shared: 2*f.stages*pair*f.dim*2 + (2*4*8*f.stages+4*8*8+4*WideWorks+127)/128*128 + f.ahead*pair/f.cluster*f.dim*4,
		Tile:   [3]int{128 * f.cluster, pair, f.dim},
		From:   90, Exact: true, Waits: true,
	}
	if f.early {
		e.Shared += 128 * f.dim * 4
	}
	if f.cluster > 1 {
		e.Name += fmt.Sprintf("_of_%d", f.cluster)
		e.Cluster = f.cluster
	}
	return e
}

var attentionDirect = Family{"attention_direct", flashDirectEntries()}

func flashDirectEntries() []Entry {
	var all []Entry
	for _, f := range flashDirects {
		all = append(all, f.entry())
	}
	return all
}
