package cases

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func statsPoolKind() kind {
	return kind{
		zero:    pass.StatsPool{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "", "Channels"}, "Masks": {"Batch", "Count", "Frames"}},
		needs:   []string{"Height", "Width"},
		list:    statsPoolEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.StatsPool(op.Op.(pass.StatsPool), d.values("X"), d.values("Masks"))))}, nil
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

// A maskRule gives the weight of frame i of n, of mask m.
type maskRule func(m, i, n int) float32

// statsPoolEntry makes a case of StatsPool.
func statsPoolEntry(label string, s pass.StatsPool, rule maskRule, values func(string, int) []float32) Entry {
	batch := max(s.Batch, 1)
	name := fmt.Sprintf("statspool/%s-%dx%dx%dx%d-%dx%d", label, batch, s.Height, s.Width, s.Channels, s.Count, s.Frames)
	return Entry{Name: name, Op: "statspool", make: func(name string) Case {
		var masks []float32
		for b := range batch {
			for m := range s.Count {
				for i := range s.Frames {
					masks = append(masks, rule(b*s.Count+m, i, s.Frames))
				}
			}
		}
		return Case{Op: s, Outputs: []string{"Y"}, Inputs: []Tensor{
			F32("X", values(name+"/X", batch*s.Height*s.Width*s.Channels), batch, s.Height*s.Width, s.Channels),
			F32("Masks", masks, batch, s.Count, s.Frames),
		}}
	}}
}

func statsPoolEntries() []Entry {
	var all []Entry
	add := func(label string, s pass.StatsPool, rule maskRule) {
		all = append(all, statsPoolEntry(label, s, rule, usual))
	}
	ones := func(int, int, int) float32 { return 1 }
	zeros := func(int, int, int) float32 { return 0 }
	fractions := func(m, i, _ int) float32 { return float32((7*i+3*m)%11) / 11 }
	binary := func(m, i, _ int) float32 { return float32((i/3 + m) % 2) }
	single := func(weight float32) maskRule {
		return func(m, i, n int) float32 {
			if i == (2*m+1)%n {
				return weight
			}
			return 0
		}
	}
	e := edges()
	for i, width := range e {
		s := pass.StatsPool{Batch: i % 3, Height: 1 + i%4, Width: width, Channels: e[(3*i+2)%8], Count: 1 + i%3, Frames: e[(5*i+3)%len(e)]}
		add("edge", s, []maskRule{ones, fractions, binary}[i%3])
	}
	wespeaker := pass.StatsPool{Batch: 2, Height: 10, Width: 25, Channels: 64, Count: 3, Frames: 118}
	add("wespeaker", wespeaker, fractions)
	small := pass.StatsPool{Height: 3, Width: 9, Channels: 5, Count: 4, Frames: 9}
	few := func(label string, s pass.StatsPool, rule maskRule) { // deviations of 1e-5 must be told from zero
		e := statsPoolEntry(label, s, rule, usual)
		made := e.make
		e.make = func(name string) Case {
			c := made(name)
			c.Tolerance = Tolerance{L2: 5e-6, Max: 1e-6}
			return c
		}
		all = append(all, e)
	}
	few("zero", small, zeros)
	for _, weight := range []float32{1, 0.3, 0.1, 1e-6} {
		few(fmt.Sprintf("one-frame-%v", weight), small, single(weight))
	}
	add("mixed", small, func(m, i, n int) float32 { return []maskRule{zeros, single(1), ones, fractions}[m](m, i, n) })
	small.Frames = 23 // some frames are not sampled
	few("not-sampled", small, single(1))
	small.Frames = 4 // frames are sampled more than once
	add("repeated", small, single(0.75))
	small.Width, small.Frames = 1, 5
	few("one-column", small, ones)
	few("one-column-fraction", small, func(int, int, int) float32 { return 0.3 })
	return append(all,
		statsPoolEntry("offset", pass.StatsPool{Height: 2, Width: 65, Channels: 7, Count: 2, Frames: 65}, fractions, scaled(1, 100)),
		statsPoolEntry("constant", pass.StatsPool{Height: 2, Width: 8, Channels: 7, Count: 2, Frames: 8}, binary, special(2)),
		statsPoolEntry("no-masks", pass.StatsPool{Height: 2, Width: 8, Channels: 7, Frames: 8}, ones, usual),
		statsPoolEntry("no-lines", pass.StatsPool{Width: 8, Channels: 7, Count: 2, Frames: 8}, ones, usual),
		statsPoolEntry("no-channels", pass.StatsPool{Height: 2, Width: 8, Count: 2, Frames: 8}, ones, usual))
}
