package cuda

import (
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/kernels"
)

// A tileChoice is how the blocks of a product divide it: in tiles of rows × columns and
// the sum in parts, or in wide tiles.
type tileChoice struct {
	rows, columns int
	splits        int
	wide          kernels.WideShape // Columns 0: not wide
}

// String returns the name of the choice for the tune file.
func (t tileChoice) String() string {
	switch {
	case t.wide.Blocks == 1:
		return fmt.Sprintf("wide 128x%d", t.wide.Columns)
	case t.wide.Blocks > 1:
		return fmt.Sprintf("wide 128x%d, clusters of %d", t.wide.Columns, t.wide.Blocks)
	case t.splits > 1:
		return fmt.Sprintf("%dx%d, sums in %d parts", t.rows, t.columns, t.splits)
	}
	return fmt.Sprintf("%dx%d", t.rows, t.columns)
}

// tileWays returns the ways to divide a product, the best by rule first. The rule looks at
// the shape, and at the device's multiprocessors only where the order of sums does not
// depend on it: wide tiles of all widths add alike.
func tileWays(p *product, sms int, has func(kernel string) bool) (ways []tileChoice, rule string) {
	rows, columns := p.rows(), p.columns.Len()
	small, rule := chooseTile(rows, columns, p.segments*ceilDiv(p.depth, kernels.TileDepth))
	if p.whole > 0 {
		rows, small.splits = p.whole, 1
	}
	others := []tileChoice{{rows: 64, columns: 64, splits: 1}, {rows: 128, columns: 32, splits: 1}, {rows: 128, columns: 128, splits: 1}}
	others = slices.DeleteFunc(others, func(t tileChoice) bool { return t == small })
	// A wide tile of few rows goes through long sums alone. Small ones share them, which a launch
	// more adds up: from so many parts on that is quicker; of split operands from fewer.
	const few, enough = 64, 4
	wide := wideWays(p, sms, has)
	if len(wide) == 0 || rows <= few && small.splits >= enough-min(p.parts()-1, 1) {
		return slices.Concat([]tileChoice{small}, wide, others), rule
	}
	count := ceilDiv(rows, kernels.WideRows) * ceilDiv(columns, 64)
	return slices.Concat(wide, []tileChoice{small}, others), fmt.Sprintf("%d tiles on %d multiprocessors", count, sms)
}

// chooseTile decides by the shape alone, so that a sum has the same order on every
// device: the largest tile of which there are enough for a large GPU, and if even the
// smallest are too few and the sum is long, blocks for parts of it.
func chooseTile(rows, columns, steps int) (t tileChoice, rule string) {
	const enough = 120 // blocks that keep a large GPU busy
	count := func(r, c int) int { return ceilDiv(rows, r) * ceilDiv(columns, c) }
	switch {
	case columns <= 32 && count(128, 32) >= enough:
		return tileChoice{rows: 128, columns: 32, splits: 1}, fmt.Sprintf("%d columns", columns)
	case count(128, 128) >= enough && rows > 64 && columns > 64:
		return tileChoice{rows: 128, columns: 128, splits: 1}, fmt.Sprintf("%d tiles", count(128, 128))
	}
	const least, most = 16, 16 // steps that pay the addition of a part; parts
	tiles := count(64, 64)
	return tileChoice{rows: 64, columns: 64, splits: max(min(enough/tiles, steps/least, most), 1)}, fmt.Sprintf("%d small tiles", tiles)
}

// wideWays returns the wide tiles that a product can have, the quickest by estimate first.
func wideWays(p *product, sms int, has func(kernel string) bool) []tileChoice {
	if !p.straight() {
		return nil
	}
	var ways []tileChoice
	seconds := map[tileChoice]float64{}
	for _, s := range kernels.WideShapes {
		if s.Products != p.parts() || !has(s.Name()) {
			continue
		}
		t := tileChoice{wide: s}
		seconds[t] = wideTime(p, s, sms)
		ways = append(ways, t)
	}
	slices.SortStableFunc(ways, func(a, b tileChoice) int {
		if seconds[a] < seconds[b] {
			return -1
		}
		if seconds[a] > seconds[b] {
			return 1
		}
		return 0
	})
	return ways
}

// wideClusters returns how many tiles of clusters a product has.
func wideClusters(p *product, s kernels.WideShape) int {
	down := p.items * ceilDiv(p.width, kernels.WideRows)
	return ceilDiv(down, s.Blocks) * ceilDiv(p.columns.Len(), s.Columns)
}

// wideAtOnce returns how many clusters run at a time. A large one stays within one group of
// multiprocessors: a twelfth may be left over.
func wideAtOnce(s kernels.WideShape, sms int) int {
	if s.Blocks > 2 {
		sms = sms * 11 / 12
	}
	return max(sms/s.Blocks, 1)
}

// wideTime estimates the time of a product in seconds, as an H200 was measured to need: a stage
// takes as long as its operands need into shared memory, or as its operations; results are
// written while no products run. Blocks of a cluster wait for each other, which costs those most
// that end each chain of products. The constants are fitted to 1,218 times of products of 58
// sizes, with a mean error of 9 %; what they choose takes 0.3 % longer than the quickest, on average.
func wideTime(p *product, s kernels.WideShape, sms int) float64 {
	const (
		start  = 1e-6   // until the first products, and from the last result on
		arrive = 1.1e11 // bytes a second into the shared memory of one multiprocessor
		read   = 2.9e13 // bytes a second from the second cache, as far as they add to that
		write  = 3.3e10 // bytes a second of results of one
	)
	by := []struct {
		left, right int     // parts of operands
		rate        float64 // F16 operations a second of one multiprocessor
		together    float64 // how much longer a stage takes blocks of a cluster
	}{1: {1, 1, 7e12, 1}, 2: {2, 1, 6.5e12, 1.28}, 3: {2, 2, 6.5e12, 1.04}}[s.Products]
	clusters, atOnce, stages := wideClusters(p, s), wideAtOnce(s, sms), ceilDiv(p.depth, kernels.WideDepth)
	bytes := 2 * kernels.WideDepth * (by.left*kernels.WideRows + by.right*s.Columns)
	reads := 2 * kernels.WideDepth * (by.left*kernels.WideRows*s.Blocks + by.right*s.Columns) // of a cluster
	operations := 2 * kernels.WideRows * s.Columns * kernels.WideDepth * s.Products
	stage := max(float64(bytes)/arrive, float64(operations)/by.rate)
	if s.Blocks > 1 {
		stage *= by.together
	}
	seconds := start + float64(ceilDiv(clusters, atOnce))*(float64(stages)*stage+float64(4*kernels.WideRows*s.Columns)/write)
	return seconds + float64(clusters*stages*reads)/read
}

// kernel returns the name of the kernel for a number of parts.
func (t tileChoice) kernel(parts int) string {
	return fmt.Sprintf("tile_%dx%d_%d", t.rows, t.columns, parts)
}

func (t tileChoice) grid(rows, columns int) grid {
	return grid{ceilDiv(rows, t.rows) * ceilDiv(columns, t.columns), t.splits, 1}
}

func (t tileChoice) shared(parts, capability int) int {
	return kernels.TileShared(t.rows, t.columns, parts, capability)
}

// ceilDiv returns a/b, rounded up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }

// roundUp returns the next multiple of b.
func roundUp(a, b int) int { return ceilDiv(a, b) * b }
