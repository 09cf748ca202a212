package cpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// statspool computes a [pass.StatsPool] in float64. A task is some channels of a line
// of an item, for one mask.
type statspool struct {
	x, masks, y view
	op          pass.StatsPool
	blocks      int // of channels
	share       bool
}

// statsBlock is how many channels a task of a statspool has.
const statsBlock = 64

func (p *program) statspool(s pass.StatsPool, cost pass.Cost) kernel {
	return &statspool{
		x: p.view(s.X), masks: p.view(s.Masks), y: p.view(s.Y),
		op:     s,
		blocks: (s.Channels + statsBlock - 1) / statsBlock,
		share:  cost.FLOP > worthSharing,
	}
}

func (s *statspool) variant() string { return "blocks of 64 channels" }
func (s *statspool) scratch(int) int { return 0 }

func (s *statspool) run(t *team) error {
	return t.do(s.op.Batch*s.op.Count*s.op.Height*s.blocks, s.share, s)
}

func (s *statspool) task(i, _ int) {
	i, block := i/s.blocks, i%s.blocks
	i, line := i/s.op.Height, i%s.op.Height
	b, m := i/s.op.Count, i%s.op.Count
	from, to := block*statsBlock, min((block+1)*statsBlock, s.op.Channels)

	mask := s.masks.row(b, m, s.op.Frames)
	weight, weights2 := 0.0, 0.0
	for t := range s.op.Width {
		w := float64(s.weight(mask, t))
		weight += w
		weights2 += w * w
	}
	var means, variances [statsBlock]float64
	mean, variance := means[:to-from], variances[:to-from]
	if weight != 0 {
		for t := range s.op.Width {
			w := float64(s.weight(mask, t))
			for j, x := range s.x.row(b, line*s.op.Width+t, to)[from:] {
				mean[j] += w * float64(x)
			}
		}
		for j := range mean {
			mean[j] /= weight
		}
		for t := range s.op.Width {
			w := float64(s.weight(mask, t))
			for j, x := range s.x.row(b, line*s.op.Width+t, to)[from:] {
				d := float64(x) - mean[j]
				variance[j] += w * (d * d)
			}
		}
	}
	divisor := weight - weights2/weight
	if divisor <= 1e-12*math.Abs(weight) { // 0 up to rounding; not so for NaN
		divisor = 0
	}
	y := s.y.row(b, m, 2*s.op.Channels*s.op.Height)
	for j := range mean {
		v := variance[j] / divisor
		if divisor == 0 || weight == 0 {
			v = 0
		}
		at := (from+j)*s.op.Height + line
		y[at] = float32(mean[j])
		y[s.op.Channels*s.op.Height+at] = float32(math.Sqrt(max(v, 1e-10)))
	}
}

// weight returns what a column of the image weighs.
func (s *statspool) weight(mask []float32, column int) float32 {
	return mask[int(int64(column)*int64(len(mask))/int64(s.op.Width))]
}
