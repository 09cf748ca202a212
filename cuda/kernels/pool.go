package kernels

// A StatsPool takes weighed means and deviations of images of Height × Width, for Masks
// masks of each item. A block takes 32 channels, of which there are Blocks.
type StatsPool struct {
	X, Mask, Y              View
	Height, Width, Channels uint32
	Masks, Frames, Blocks   uint32
}

// StatsHeld is how wide an image is that the threads of a block hold.
const StatsHeld = 128

var pool = Family{"pool", []Entry{
	{Name: "pool_stats", Call: "pool::stats", Args: StatsPool{}, Threads: 256, Resident: 3},
	{Name: "pool_stats_wide", Call: "pool::stats_wide", Args: StatsPool{}, Threads: 256, Resident: 3},
}}
