package truth

import "github.com/tandem-gpu/tandem/pass"

// Linear is a decoded matrix: W[N][K], Bias nil or N values, Dual any number of second
// biases.
type Linear struct {
	N, K          int
	W, Bias, Dual []float64
}

// Gemm returns C [batch][rows][columns]. Before is what C held, for epilogues in place.
func Gemm(g pass.Gemm, w Linear, a, before []float64) []float64 {
	columns := g.Columns.Resolve(w.N + len(w.Dual))
	rows := max(g.Batch, 1) * g.Rows
	c := make([]float64, 0, rows*columns.Len())
	for r := range rows {
		for j := columns.From; j < columns.To; j++ {
			row := j // of W
			if j >= w.N {
				row = j - w.N
			}
			sum := 0.0
			for k := range w.K {
				sum += a[r*w.K+k] * w.W[row*w.K+k]
			}
			if j >= w.N {
				c = append(c, sum+w.Dual[row])
				continue
			}
			if w.Bias != nil {
				sum += w.Bias[j]
			}
			was := 0.0
			if g.Epilogue.InPlace() {
				was = before[len(c)]
			}
			c = append(c, Epilogue(g.Epilogue, sum, was))
		}
	}
	return c
}

// Embed returns Out [batch][rows][k]: rows of the table by id, plus rows of positions if
// there are any.
func Embed(e pass.Embed, table, positions Linear, ids []uint32, idRow, pos []int) []float64 {
	var out []float64
	for b := range e.Batch {
		for r := range e.Rows {
			id := int(ids[b*e.IDRows+idRow[b]+r])
			for k := range table.K {
				v := table.W[id*table.K+k]
				if positions.W != nil {
					v += positions.W[(pos[b]+r)*table.K+k]
				}
				out = append(out, v)
			}
		}
	}
	return out
}
