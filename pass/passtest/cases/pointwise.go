package cases

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func mapKind() kind {
	return kind{
		zero:    pass.Map{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}},
		list:    mapEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.Map(op.Op.(pass.Map), d.values("X"))))}, d.err
		},
		match: func(op pass.Op) Tolerance { // what picks values changes none
			switch op.(pass.Map).Epilogue.Kind() {
			case pass.KindNone, pass.KindReLU:
				return Tolerance{Match: Values}
			}
			return ExactTolerance
		},
	}
}

func magnitudeKind() kind {
	return kind{
		zero:    pass.Magnitude{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "2·Cols"}},
		list:    magnitudeEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.Magnitude(op.Op.(pass.Magnitude), d.values("X"))))}, d.err
		},
		match: func(pass.Op) Tolerance { return ExactTolerance },
	}
}

func mapEntry(label string, m pass.Map, values func(name string, n int) []float32) Entry {
	batch := max(m.Batch, 1)
	return Entry{
		Name: fmt.Sprintf("map/%s-%dx%dx%d", label, batch, m.Rows, m.Cols),
		Op:   "map",
		make: func(name string) Case {
			return Case{Op: m, Inputs: []Tensor{F32("X", values(name+"/X", batch*m.Rows*m.Cols), batch, m.Rows, m.Cols)}, Outputs: []string{"Y"}}
		},
	}
}

// usual are values on both sides of where the epilogues bend.
func usual(name string, n int) []float32 { return Recipe(name, 1, n, 6, 0) }

// special cycles through values at which naive formulas fail.
func special(values ...float32) func(string, int) []float32 {
	return func(_ string, n int) []float32 {
		all := make([]float32, n)
		for i := range all {
			all[i] = values[i%len(values)]
		}
		return all
	}
}

func mapEntries() []Entry {
	var all []Entry
	none := float32(math.NaN())
	zero := float32(math.Copysign(0, -1))
	inf := float32(math.Inf(1))
	for _, ep := range epilogues() {
		if ep.InPlace() {
			continue
		}
		label := ep.String()
		all = append(all,
			mapEntry(label, pass.Map{Rows: 9, Cols: 33, Epilogue: ep}, usual),
			mapEntry(label+"-extreme", pass.Map{Rows: 2, Cols: 15, Epilogue: ep}, special(100, -100, 1e30, -1e30, 0, zero, 88.8, -88.8, 1e-30, -1e-30, 12.5, -12.5, 5e-39)),
			mapEntry(label+"-nan", pass.Map{Rows: 3, Cols: 7, Epilogue: ep}, special(none, 1, -2, zero, 0.5)))
	}
	for _, ep := range []pass.Epilogue{pass.None, pass.ReLU, pass.Tanh, pass.Sigmoid} {
		all = append(all, mapEntry(ep.String()+"-inf", pass.Map{Rows: 2, Cols: 4, Epilogue: ep}, special(inf, -1, -inf, 2)))
	}
	e := edges()
	for i, rows := range e {
		all = append(all, mapEntry("edge", pass.Map{Batch: i % 4, Rows: rows, Cols: e[(5*i+1)%len(e)], Epilogue: pass.SiLU}, usual))
	}
	all = append(all,
		mapEntry("no-rows", pass.Map{Rows: 0, Cols: 4}, usual),
		mapEntry("no-cols", pass.Map{Rows: 4, Cols: 0}, usual),
		mapEntry("negative-slope", pass.Map{Rows: 4, Cols: 9, Epilogue: pass.Leaky(-0.5)}, usual))
	for _, rows := range e {
		for _, cols := range e {
			all = append(all, full(mapEntry("pairs", pass.Map{Rows: rows, Cols: cols, Epilogue: pass.GELU}, usual)))
		}
	}
	return all
}

func magnitudeEntry(label string, m pass.Magnitude, values func(string, int) []float32) Entry {
	batch := max(m.Batch, 1)
	return Entry{
		Name: fmt.Sprintf("magnitude/%s-%dx%dx%d", label, batch, m.Rows, m.Cols),
		Op:   "magnitude",
		make: func(name string) Case {
			x := F32("X", values(name+"/X", batch*m.Rows*2*m.Cols), batch, m.Rows, 2*m.Cols)
			return Case{Op: m, Inputs: []Tensor{x}, Outputs: []string{"Y"}}
		},
	}
}

func magnitudeEntries() []Entry {
	var all []Entry
	e := edges()
	for i, rows := range e {
		all = append(all, magnitudeEntry("edge", pass.Magnitude{Batch: i % 3, Rows: rows, Cols: e[(3*i+2)%len(e)]}, usual))
	}
	scaled := func(scale float32) func(string, int) []float32 {
		return func(name string, n int) []float32 { return Recipe(name, 1, n, scale, 0) }
	}
	tiny := magnitudeEntry("tiny", pass.Magnitude{Rows: 3, Cols: 17}, scaled(1e-30))
	made := tiny.make
	tiny.make = func(name string) Case { // near would take any value this small
		c := made(name)
		c.Tolerance = Tolerance{L2: 5e-6, Max: 1e-35}
		return c
	}
	return append(all, tiny,
		magnitudeEntry("silero", pass.Magnitude{Batch: 2, Rows: 4, Cols: 129}, usual),
		magnitudeEntry("huge", pass.Magnitude{Rows: 3, Cols: 17}, scaled(1e30)),
		magnitudeEntry("one-sided", pass.Magnitude{Rows: 2, Cols: 3}, special(3, 0, -1e30, 4, 0, 1)),
		magnitudeEntry("nan", pass.Magnitude{Rows: 3, Cols: 5}, special(1, 2, float32(math.NaN()), 4, 5, 6, 7)),
		magnitudeEntry("no-rows", pass.Magnitude{Rows: 0, Cols: 5}, usual),
		magnitudeEntry("no-cols", pass.Magnitude{Rows: 5, Cols: 0}, usual))
}
