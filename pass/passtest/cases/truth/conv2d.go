package truth

import "github.com/tandem-gpu/tandem/pass"

// Conv2 is a decoded convolution of images: W[Out][In][Size][Size], Bias nil or Out
// values.
type Conv2 struct {
	Out, In, Size int
	W, Bias       []float64
}

// Conv2D returns Y [batch][lines of Out · output width][w.Out]; residual nil or as Y.
func Conv2D(v pass.Conv2D, w Conv2, x, residual []float64) []float64 {
	width := (v.Width + v.Stride - 1) / v.Stride
	pad := w.Size / 2
	var y []float64
	for b := range v.Batch {
		for line := v.Out.From; line < v.Out.To; line++ {
			for column := range width {
				for o := range w.Out {
					sum := 0.0
					for i := range w.Size {
						for j := range w.Size {
							h, c := line*v.Stride+i-pad, column*v.Stride+j-pad
							if h < 0 || h >= v.Height || c < 0 || c >= v.Width {
								continue
							}
							pixel := x[((b*v.Height+h)*v.Width+c)*w.In:]
							for k := range w.In {
								sum += pixel[k] * w.W[((o*w.In+k)*w.Size+i)*w.Size+j]
							}
						}
					}
					if residual != nil {
						sum += residual[len(y)]
					}
					if w.Bias != nil {
						sum += w.Bias[o]
					}
					if v.ReLU {
						sum = Epilogue(pass.ReLU, sum, 0)
					}
					y = append(y, sum)
				}
			}
		}
	}
	return y
}
