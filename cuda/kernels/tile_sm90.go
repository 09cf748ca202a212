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
	Products int  // as in the names of tiles
	Blocks   int  // of a cluster
	Later    bool // results of a tile are written while the next is computed
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
	name := fmt.Sprintf("tile_wide_%dx%d_%d_of_%d", WideRows, s.Columns, s.Products, s.Blocks)
	if s.Later {
		name += "_later"
	}
	return name
}

// Shared returns the shared memory of a block: stages, places in which warps turn results
// around or keep them while the next tile is computed, barriers, and counts
// of tiles.
func (s WideShape) Shared() int {
	parts := WideRows + s.Columns
	if s.Products >= 2 {
		parts += WideRows
	}
	if s.Products == 3 {
		parts += s.Columns
	}
	stage := 2 * WideDepth * parts
	places := 1
	switch {
	case !s.Later:
	case s.Products > 1:
		places = max(s.Columns/32-2, 1)
	case s.Columns == 256:
		places = 2
	case s.Columns > 160:
		places = s.Columns/32 - 3
	}
	room := 8 * places * 16 * 32 * 4
	stages := (227<<10 - 256 - room) / stage
	return stages*stage + room + 2*8*stages + 16
}

// WideShapes are those that there are.
var WideShapes = []WideShape{
	{256, 1, 1, false}, {256, 1, 2, false}, {256, 1, 4, false}, {256, 1, 2, true}, {256, 1, 4, true},
	{192, 1, 1, false}, {192, 1, 2, false},
	{160, 1, 2, false}, {160, 1, 4, false}, {160, 1, 4, true},
	{128, 1, 1, false}, {128, 1, 2, false}, {128, 1, 2, true}, {128, 1, 4, false}, {64, 1, 1, false},
	{128, 2, 1, false}, {128, 2, 2, false}, {128, 2, 2, true}, {64, 2, 1, false},
	{128, 3, 1, false}, {128, 3, 2, false}, {128, 3, 2, true}, {64, 3, 1, false},
}

func wideTileEntries() []Entry {
	var all []Entry
	for _, s := range WideShapes {
		all = append(all, Entry{
			Name: s.Name(), Call: fmt.Sprintf("tile::wide<%d, %d, %d, %v>", s.Columns, s.Products, s.Blocks, s.Later), Args: WideTile{},
			Threads: 384, Resident: 1, Shared: s.Shared(), Cluster: s.Blocks,
			Tile: [3]int{WideRows, s.Columns, WideDepth}, From: 90, Exact: true, Waits: true,
		})
	}
	return all
}

var linearSM90 = Family{Name: "linear_sm90", Entries: wideTileEntries()}
