package kernels

import (
	"fmt"
	"sync"
)

// A WideTile is a [Tile] whose operands are described by maps: A of [items][rows][depth]
// with a box of 1 × 128 × 64, and B of [columns][depth] with a box of WideTile's columns,
// divided by the blocks of a cluster, × 64. Rows have one line, and the sum one segment
// and one part.
type WideTile struct {
	A, ALow, B, BLow TensorMap
	Tile             Tile
	_                [8]uint32
}

// Geometry of wide tiles.
const (
	WideRows  = 128
	WideDepth = 64
)

// A WideShape is what a block of a wide product computes.
type WideShape struct {
	Columns  int
	Products int // as in the names of tiles
	Blocks   int // of a cluster
}

// Name returns the name of the kernel.
func (s WideShape) Name() string {
	if name, ok := wideNames()[s]; ok {
		return name
	}
	return s.name()
}

// wideNames are the names of all shapes, which recordings ask for often.
var wideNames = sync.OnceValue(func() map[WideShape]string {
	names := map[WideShape]string{}
	for _, s := range WideShapes {
		names[s] = s.name()
	}
	return names
})

func (s WideShape) name() string {
	return fmt.Sprintf("tile_wide_%dx%d_%d_of_%d", WideRows, s.Columns, s.Products, s.Blocks)
}

// Shared returns the shared memory of a block: stages, places in which warps exchange scales or
// turn results around, barriers, and counts of tiles.
func (s WideShape) Shared() int {
	parts := WideRows + s.Columns
	if s.Products >= 2 {
		parts += WideRows
	}
	if s.Products == 3 {
		parts += s.Columns
	}
	stage := 2 * WideDepth * parts
	const room = 8 * 16 * 32 * 4
	stages := (227<<10 - 256 - room) / stage
	return stages*stage + room + 2*8*stages + 16
}

// WideShapes are those that there are.
var WideShapes = []WideShape{
	{256, 1, 1}, {256, 1, 2}, {256, 1, 4}, {240, 1, 1}, {240, 1, 2}, {192, 1, 1}, {192, 1, 2}, {192, 1, 4}, {160, 1, 1}, {160, 1, 2}, {160, 1, 4},
	{128, 1, 1}, {128, 1, 2}, {128, 1, 4}, {64, 1, 1},
	{128, 2, 1}, {128, 2, 2}, {64, 2, 1},
	{128, 3, 1}, {128, 3, 2}, {64, 3, 1},
}

func wideTileEntries() []Entry {
	var all []Entry
	for _, s := range WideShapes {
		all = append(all, Entry{
			Name: s.Name(), Call: fmt.Sprintf("tile::wide<%d, %d, %d>", s.Columns, s.Products, s.Blocks), Args: WideTile{},
			Threads: 384, Resident: 1, Shared: s.Shared(), Cluster: s.Blocks,
			Tile: [3]int{WideRows, s.Columns, WideDepth}, From: 90, Exact: true, Waits: true,
		})
	}
	return all
}

var linearSM90 = Family{Name: "linear_sm90", Entries: wideTileEntries()}
