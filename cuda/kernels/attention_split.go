package kernels

import "fmt"

// An AttentionSplit computes attention in FP32 from keys and values as they are, a piece
// of SplitKeys keys a block. With more than one piece, AttentionJoin makes the output of
// what it found.
type AttentionSplit struct {
	Q, O, Q2, Positions       View
	K, V                      U32 // F32 or F16, as the kernel says
	KRow, KHead, KItem        int64
	VRow, VHead, VItem        int64
	Found                     F32 // [item][head][row][piece][4 + Dim]: the largest exponent, the sum of weights, nothing, the sum of values
	Lengths, KeyLengths       Items
	KeyNumbers                Index // keys are the least of KeyLengths, KeyNumbers and Most
	Most, Queries, Heads, Dim uint32
	First, Rows               uint32 // of the queries, those that this launch takes
	Groups, Pieces            uint32 // of queries, of keys
	Left, Right               int32  // a query at p sees keys p − Left to p + Right
	Moving                    uint32 // the last query stands at the item's last key, not at Most − 1
	Scale                     float32
}

// An AttentionJoin makes the output of AttentionSplit's pieces.
type AttentionJoin struct {
	O                   View
	Found               F32
	Lengths, KeyLengths Items
	KeyNumbers          Index
	Most, Heads, Dim    uint32
	First, Rows         uint32 // of the queries, those that this launch takes
	Pieces              uint32
}

// SplitKeys is how many keys a piece has. Sums follow it, whatever runs at the same time.
const SplitKeys = 128

// SplitQueries are the numbers of queries for which there is a kernel.
var SplitQueries = []int{1, 2, 4, 8}

// SplitName returns the name of the kernel that takes that many queries at a time, one of
// SplitQueries; of them, the last alone can do relative positions.
func SplitName(queries int, halves, relative bool) string {
	return fmt.Sprintf("attention_split_%d%s%s", queries, word(halves, "_half"), word(relative, "_relative"))
}

var attentionSplit = Family{"attention_split", splitEntries()}

func splitEntries() []Entry {
	all := []Entry{{Name: "attention_join", Call: "attention::join", Args: AttentionJoin{}, Threads: 64}}
	add := func(queries int, t string, relative bool) {
		all = append(all, Entry{
			Name: SplitName(queries, t == "half", relative), Call: fmt.Sprintf("attention::split<%s, %d, %v>", t, queries, relative),
			Args: AttentionSplit{}, Threads: 256, Tile: [3]int{queries, SplitKeys, 0},
		})
	}
	for _, n := range SplitQueries {
		add(n, "float", false)
		add(n, "half", false)
	}
	add(SplitQueries[len(SplitQueries)-1], "float", true)
	return all
}
