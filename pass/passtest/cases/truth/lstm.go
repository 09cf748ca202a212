package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Recurrent is a decoded stack of LSTM layers: Cells[layer][direction].
type Recurrent struct {
	In, Hidden int
	Cells      [][]Cell
}

// Cell is one layer in one direction: Input[4·hidden][in], Hidden[4·hidden][hidden] and
// Bias, nil or 4·hidden values, with the gates in the order i, f, g, o.
type Cell struct{ Input, Hidden, Bias []float64 }

// State is (h, c) of every row: [row][layer·directions + direction][hidden].
type State struct{ H, C []float64 }

// LSTM returns Y [batch][time][directions·hidden] and the state after it. Row rows[b]
// of the state starts from initial, or from zero where that is empty, and is stored
// over before; other rows are those of before.
func LSTM(l pass.LSTM, w Recurrent, x []float64, lengths, rows []int, initial, before State) ([]float64, State) {
	directions := len(w.Cells[0])
	states := len(w.Cells) * directions
	width := directions * w.Hidden
	y := make([]float64, max(l.Batch, 1)*l.Time*width)
	after := State{append([]float64(nil), before.H...), append([]float64(nil), before.C...)}
	for b := range max(l.Batch, 1) {
		steps := lengths[b]
		in := x[b*l.Time*w.In:][:steps*w.In]
		inWidth := w.In
		for layer, cells := range w.Cells {
			out := make([]float64, steps*width)
			for d, cell := range cells {
				at := (rows[b]*states + layer*directions + d) * w.Hidden
				h, c := make([]float64, w.Hidden), make([]float64, w.Hidden)
				if initial.H != nil {
					copy(h, initial.H[at:])
					copy(c, initial.C[at:])
				}
				for s := range steps {
					t := s
					if d == 1 {
						t = steps - 1 - s
					}
					h, c = cell.step(in[t*inWidth:][:inWidth], h, c)
					copy(out[t*width+d*w.Hidden:], h)
				}
				if after.H != nil {
					copy(after.H[at:at+w.Hidden], h)
					copy(after.C[at:at+w.Hidden], c)
				}
			}
			in, inWidth = out, width
		}
		copy(y[b*l.Time*width:], in[:steps*width])
	}
	return y, after
}

// step returns the next h and c.
func (cell Cell) step(x, h, c []float64) (nextH, nextC []float64) {
	n := len(h)
	gate := func(row int) float64 {
		sum := 0.0
		for k, v := range x {
			sum += v * cell.Input[row*len(x)+k]
		}
		for k, v := range h {
			sum += v * cell.Hidden[row*n+k]
		}
		if cell.Bias != nil {
			sum += cell.Bias[row]
		}
		return sum
	}
	nextH, nextC = make([]float64, n), make([]float64, n)
	for k := range n {
		i, f, g, o := sigmoid(gate(k)), sigmoid(gate(n+k)), math.Tanh(gate(2*n+k)), sigmoid(gate(3*n+k))
		nextC[k] = f*c[k] + i*g
		nextH[k] = o * math.Tanh(nextC[k])
	}
	return nextH, nextC
}
