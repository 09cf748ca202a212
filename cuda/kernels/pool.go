package kernels

// A StatsPool takes weighed means and deviations of images of Height × Width, for Masks
// masks of each item. A block takes 32 channels, of which there are Blocks.
type StatsPool struct {
	X, Mask, Y              View
	Height, Width, Channels uint32
	Masks, Frames, Blocks   uint32
}

var pool = Family{"pool", []Entry{
	{Name: "pool_stats", Call: "pool::stats", Args: StatsPool{}, Threads: 256},
}}
