// Package kernels holds the CUDA kernels: their sources (.cu, .cuh), the table of what
// is compiled from them, and the compiled images.
//
// The table is the only place where a kernel's name, parameters and launch shape are
// written down. `make kernels` generates from it the C++ structs of the parameters and
// the exported functions, compiles them for every architecture, and writes a manifest
// of what came out; the host launches by the same table.
//
// Sources use the machine only through wrappers: device.cuh has those that every kernel
// needs, fragment.cuh matrix units and asynchronous copies, sm90.cuh and wgmma.cuh what
// capability 9.0 adds, epilogue.cuh the epilogues. Each wrapper has a second form in
// package emulate, in which `make cuda-emulated` compiles the same sources for the host:
// a kernel is proven there before a GPU sees it.
//
// Images are compiled for [Tiers], and which of those a device uses is decided by [Best].
// They are committed with the sources: tests compare digests, parameters and registers, so
// that a kernel that was changed without `make kernels` is found where there is no compiler.
package kernels

// A Family is the kernels of one source file: linear.cu, norm.cu.
type Family struct {
	Name    string // of the file, without its ending
	Entries []Entry
}

// An Entry is one compiled kernel. It takes one struct by value, as a constant of the
// grid.
type Entry struct {
	Name string // of the function in the images: family, then what tells it apart
	Call string // the C++ function that it instantiates: "norm::layer<256>"
	Args any    // zero value of the struct that it takes

	// Threads of a block: the kernel is launched with exactly as many. A range of
	// registers follows from it and from Resident, the blocks that should fit on one
	// multiprocessor (0: no wish).
	Threads  int
	Resident int

	Shared  int    // dynamic shared memory in bytes; −1: the launch says how much
	Cluster int    // blocks of a cluster; 0: none
	Tile    [3]int // what a block computes: rows, columns, depth of a stage; 0: not a tile

	From  int  // lowest compute capability, times ten; 0: the lowest there is (75)
	Exact bool // compiled for the architecture From with its own features only (90: sm_90a)
	Waits bool // waits for the kernels that it depends on by itself, later than at its start
}

// Families returns all kernels.
func Families() []Family {
	return []Family{
		attention, attentionDirect, attentionPack, attentionSplit, attentionWide, cache, conformer, conv1d, conv2d, linear, linearEmbed, linearSM90, lstm, lstmCluster, mel, move, norm, pointwise, pool, rope, softmax,
	}
}
