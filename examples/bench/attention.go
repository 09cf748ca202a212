package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// attentionCases are self-attention of 1500 frames: of large Whisper's encoder for 30
// seconds, and of Parakeet's, with relative positions, for 2 minutes.
var attentionCases = []benchmarkCase{
	attention("1500x20x64", 1500, 20, 64, "Q", "K", "V", "O"),
	attention("relative-1500x8x128", 1500, 8, 128, "Q", "K", "V", "O", "Q2", "Positions"),
}

func attention(name string, frames, heads, dim int, args ...string) benchmarkCase {
	return kernelCase(name, fmt.Sprintf("%d frames, %d heads of %d", frames, heads, dim), kernel{
		op: pass.Attention{Queries: frames, Keys: frames, Heads: heads, HeadDim: dim}, args: args,
	})
}
