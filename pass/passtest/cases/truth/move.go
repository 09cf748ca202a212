package truth

import "github.com/tandem-gpu/tandem/pass"

// Copy returns To [batch][toRows][cols], which held before, after rows of From
// [batch][fromRows][cols] were copied. Elements are words: bits are moved, not values.
func Copy(m pass.Copy, from, before []uint32, fromRow, toRow []int, fromRows, toRows int) []uint32 {
	to := append([]uint32(nil), before...)
	for b := range max(m.Batch, 1) {
		for r := range m.Rows {
			for j := range m.Cols {
				to[(b*toRows+toRow[b]+r)*m.Cols+j] = from[(b*fromRows+fromRow[b]+r)*m.Cols+j]
			}
		}
	}
	return to
}
