package silero

import "slices"

// The geometry of the network's input.
const (
	// SampleRate is the number of samples in a second.
	SampleRate = 16000
	// ChunkSamples is the number of samples that give one probability: 32 ms.
	ChunkSamples = 512

	contextSamples = 64 // of the chunk before, which the network sees again
	itemSamples    = contextSamples + ChunkSamples
)

// Chunks returns how many chunks there are in audio of the given number of samples; the
// last may be partial.
func Chunks(samples int) int {
	samples = max(samples, 0)
	chunks := samples / ChunkSamples
	if samples%ChunkSamples > 0 {
		chunks++
	}
	return chunks
}

// notFinite returns the index of the first value that is NaN or infinite, or -1.
func notFinite(values []float32) int {
	return slices.IndexFunc(values, func(v float32) bool { return v-v != 0 })
}
