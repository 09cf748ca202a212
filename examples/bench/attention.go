package main

import (
	"fmt"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
)

// attentionCases are self-attention: of large Whisper's encoder for 30 seconds, of
// Parakeet's, with relative positions, for 2 minutes, and of two sizes that attention is
// compared by elsewhere.
var attentionCases = []benchmarkCase{
	attention("1500x20x64", 1, 1500, 20, 64),
	kernelCase("relative-1500x8x128", "1500 frames, 8 heads of 128", kernel.RelativeAttention(1500, 8, 128)),
	large(attention("4x4096x16x64", 4, 4096, 16, 64)),
	large(attention("16384x16x128", 1, 16384, 16, 128)),
}

func attention(name string, batch, frames, heads, dim int) benchmarkCase {
	shape := fmt.Sprintf("%d frames, %d heads of %d", frames, heads, dim)
	if batch > 1 {
		shape = fmt.Sprintf("%d × %s", batch, shape)
	}
	return kernelCase(name, shape, kernel.Attention(batch, frames, frames, heads, dim))
}
