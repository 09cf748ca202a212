package gpu

import "github.com/tandem-gpu/tandem/gpu/internal/driver"

// tileDepth is how many values of the summed axis a tile kernel stages at a time.
const tileDepth = 16

// A tile is the geometry of the tile kernels: a workgroup of 2·size invocations computes
// size × size sums, an invocation rows × columns of them. Which tile is used changes no
// bit of the result; see tile.wgsl.
type tile struct {
	size, rows, columns int
	long                bool // sums are taken in stretches
	speed               int  // sums a unit of time on a large device that is full
}

// tileTable lists the tiles, largest first.
var tileTable = [...]tile{
	{size: 128, rows: 8, columns: 8, speed: 100},
	{size: 64, rows: 8, columns: 4, speed: 70},
	{size: 32, rows: 4, columns: 4, speed: 35},
}

// fineTile is the tile for fine sums, which take three times the registers.
var fineTile = tileTable[len(tileTable)-1]

// time returns about how long a number of workgroups take: not less than one of them,
// whose time is the sums of an invocation and the loads that go with them.
func (t tile) time(workgroups int) float64 {
	const one = 270 // units of time for a step of one sum
	const loads = 16
	return max(float64(workgroups*t.size*t.size)/float64(t.speed), float64(one*(t.rows*t.columns+loads)))
}

// longSum is the number of products from which on a sum is taken in stretches of 1024,
// because one running sum in F32 would lose digits.
const longSum = 8192

// workgroupBytes returns the workgroup memory that a tile needs.
func (t tile) workgroupBytes() int { return 2 * 4 * tileDepth * t.size }

// chooseTile returns the tile that takes the least time for a product padding
// included.
func chooseTile(rows, columns, k int, limits driver.Limits) tile {
	var best tile
	var least float64
	for _, t := range tileTable {
		t.long = k > longSum
		if t.workgroupBytes() > int(limits.MaxWorkgroupStorage) || 2*t.size > int(min(limits.MaxInvocations, limits.MaxWorkgroupSizeX)) {
			continue
		}
		if t.long && t.size > 64 {
			continue // twice the registers
		}
		tiles := roundUp(rows, t.size) / t.size * (roundUp(columns, t.size) / t.size)
		if time := t.time(tiles); best.size == 0 || time < least {
			best, least = t, time
		}
	}
	if best.size == 0 { // less than the least that WebGPU grants
		best = tileTable[len(tileTable)-1]
		best.long = k > longSum
	}
	return best
}

// halved returns a tile that leaves room in registers for as many values as it has sums.
func (t tile) halved() tile {
	most := 64
	if t.long {
		most = 32
	}
	for _, smaller := range tileTable {
		if smaller.size <= min(most, t.size) {
			smaller.long = t.long
			return smaller
		}
	}
	return t
}

// fewRows is how many rows the kernel for few rows takes: it reads the weights once.
const fewRows = 8

// A few is the geometry of that kernel: a workgroup takes width columns of up to rows
// rows. It changes no bit of the result either; see linear_few.wgsl.
type few struct{ width, rows int }

// chooseFew takes fewer columns to a workgroup where there would be few workgroups.
func chooseFew(rows, columns int, limits driver.Limits) few {
	const manyColumns = 4096
	f := few{width: 8, rows: 1}
	for f.rows < min(rows, fewRows) {
		f.rows *= 2
	}
	if columns >= manyColumns || f.workgroupBytes() > int(limits.MaxWorkgroupStorage) {
		f.width = 16
	}
	return f
}

// rowsEach returns how many rows an invocation sums.
func (f few) rowsEach() int { return max(f.rows*f.width/64, 1) }

// workgroupBytes returns the workgroup memory that the kernel needs.
func (f few) workgroupBytes() int {
	return 16*(512+f.width) + 16*f.rows*512/f.width + 4*f.rows*f.width
}
