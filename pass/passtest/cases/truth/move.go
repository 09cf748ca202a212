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

// Permute returns Y, whose axis a is axis order[a] of X. Elements are words.
func Permute(p pass.Permute, x []uint32) []uint32 {
	var y []uint32
	out := p.Out()
	var at [4]int // index along each axis of X
	for at[p.Order[0]] = range out[0] {
		for at[p.Order[1]] = range out[1] {
			for at[p.Order[2]] = range out[2] {
				for at[p.Order[3]] = range out[3] {
					d := p.Dims
					y = append(y, x[((at[0]*d[1]+at[1])*d[2]+at[2])*d[3]+at[3]])
				}
			}
		}
	}
	return y
}

// Advance returns the counters and the done flags after a step; ids and done may be nil.
func Advance(a pass.Advance, index, ids, done []uint32) (counters, flags []uint32) {
	counters, flags = append([]uint32(nil), index...), append([]uint32(nil), done...)
	for b := range a.Batch {
		if done != nil && done[b] != 0 {
			continue
		}
		stop := false
		for _, s := range a.Stop {
			stop = stop || ids[b*a.IDRows+int(index[b])+a.Plus] == s
		}
		if stop {
			flags[b] = 1
		} else {
			counters[b] += uint32(a.By)
		}
	}
	return counters, flags
}
