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
		match: func(c Case) Tolerance { // what picks values changes none
			switch c.Op.(pass.Map).Epilogue.Kind() {
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
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

func addKind() kind {
	return kind{
		zero:    pass.Add{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"A": {"Batch", "Rows", "Cols"}},
		list:    addEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.Add(op.Op.(pass.Add), d.values("A"), d.values("B"))))}, nil
		},
		match: func(Case) Tolerance { return Tolerance{Match: Values} }, // one rounding
	}
}

func scaleKind() kind {
	return kind{
		zero:    pass.Scale{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}},
		list:    scaleEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.Scale(op.Op.(pass.Scale), d.values("X"))))}, nil
		},
		match: func(Case) Tolerance { return Tolerance{Match: Values} },
	}
}

func swiGLUKind() kind {
	return kind{
		zero:    pass.SwiGLU{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "2·Cols"}},
		list:    swiGLUEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.SwiGLU(op.Op.(pass.SwiGLU), d.values("X"))))}, nil
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

func gluKind() kind {
	return kind{
		zero:    pass.GLU{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "2·Cols"}},
		list:    gluEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.GLU(d.values("X"), op.Op.(pass.GLU).Cols)))}, nil
		},
		match: func(Case) Tolerance { return ExactTolerance },
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

// addEntry makes a case of A [batch][rows][cols] and a B of the size that the op says.
func addEntry(label string, a pass.Add, values func(string, int) []float32, inPlace bool) Entry {
	name := fmt.Sprintf("add/%s-%dx%dx%d", label, max(a.Batch, 1), a.Rows, a.Cols)
	return Entry{Name: name, Op: "add", make: func(name string) Case {
		batch, rows := max(a.Batch, 1), a.Rows
		c := Case{Op: a, Outputs: []string{"Y"}}
		c.Inputs = append(c.Inputs, F32("A", values(name+"/A", batch*rows*a.Cols), batch, rows, a.Cols))
		if a.OverBatch {
			batch = 1
		}
		if a.OverRows {
			rows = min(rows, 1)
		}
		c.Inputs = append(c.Inputs, F32("B", values(name+"/B", batch*rows*a.Cols), batch, rows, a.Cols))
		if inPlace {
			c.Same = map[string]string{"Y": "A"}
		}
		return c
	}}
}

func addEntries() []Entry {
	var all []Entry
	e := edges()
	for i, rows := range e {
		all = append(all, addEntry("edge", pass.Add{Batch: i % 3, Rows: rows, Cols: e[(5*i+3)%len(e)], OverRows: i%4 == 1, OverBatch: i%5 == 2}, usual, i%2 == 0))
	}
	for _, inPlace := range []bool{false, true} {
		label := map[bool]string{true: "in-place"}[inPlace]
		all = append(all,
			addEntry("over-rows-"+label, pass.Add{Batch: 3, Rows: 5, Cols: 18, OverRows: true}, usual, inPlace),
			addEntry("over-batch-"+label, pass.Add{Batch: 3, Rows: 5, Cols: 18, OverBatch: true}, usual, inPlace),
			addEntry("over-both-"+label, pass.Add{Batch: 3, Rows: 5, Cols: 18, OverBatch: true, OverRows: true}, usual, inPlace))
	}
	inf, none := float32(math.Inf(1)), float32(math.NaN())
	return append(all,
		addEntry("special", pass.Add{Rows: 3, Cols: 10}, special(none, 1, -inf, inf, 3e38, 1e-30, -1), false),
		addEntry("no-rows", pass.Add{Rows: 0, Cols: 4, OverRows: true}, usual, false),
		addEntry("no-cols", pass.Add{Rows: 3, Cols: 0}, usual, false))
}

func scaleEntries() []Entry {
	var all []Entry
	add := func(label string, s rowSpec, factor float32) {
		s.op = pass.Scale{Batch: s.batch, Rows: s.rows, Cols: s.cols, Factor: factor}
		all = append(all, s.entry(label))
	}
	e := edges()
	for i, rows := range e {
		add("edge", rowSpec{batch: i % 3, rows: rows, cols: e[(3*i+7)%len(e)], inPlace: i%2 == 1}, []float32{32, -0.3, 1e-3}[i%3])
	}
	inf, none := float32(math.Inf(1)), float32(math.NaN())
	add("special", rowSpec{rows: 3, cols: 7, values: special(none, 1, -inf, inf, 3e38, -2)}, 4)
	add("zero", rowSpec{rows: 3, cols: 7, values: special(none, 1, -1, inf)}, 0)
	add("no-rows", rowSpec{cols: 7}, 2)
	add("no-cols", rowSpec{rows: 3}, 2)
	return all
}

func swiGLUEntries() []Entry {
	var all []Entry
	add := func(label string, s rowSpec, gateFirst bool) {
		s.op = pass.SwiGLU{Batch: s.batch, Rows: s.rows, Cols: s.cols, GateFirst: gateFirst}
		s.cols *= 2
		all = append(all, s.entry(label))
	}
	e := edges()
	for i, rows := range e {
		add("edge", rowSpec{batch: i % 3, rows: rows, cols: e[(5*i+2)%len(e)], inPlace: i%2 == 1}, i%4 < 2)
	}
	extreme := special(100, -100, 1e15, -1e15, 0, 88.8, -88.8, 1e-30, 12.5)
	for _, gateFirst := range []bool{false, true} {
		label := map[bool]string{true: "-gate-first"}[gateFirst]
		add("extreme"+label, rowSpec{rows: 4, cols: 7, values: extreme}, gateFirst)
		add("nan"+label, rowSpec{rows: 3, cols: 5, special: putNaN(3, 18)}, gateFirst)
		add("in-place"+label, rowSpec{batch: 2, rows: 3, cols: 9, inPlace: true}, gateFirst)
	}
	add("moonshine", rowSpec{batch: 2, rows: 1, cols: 1152}, false)
	add("no-rows", rowSpec{cols: 7}, false)
	add("no-cols", rowSpec{rows: 3}, false)
	return all
}

func gluEntries() []Entry {
	var all []Entry
	add := func(label string, s rowSpec) {
		s.op = pass.GLU{Batch: s.batch, Rows: s.rows, Cols: s.cols}
		s.cols *= 2
		all = append(all, s.entry(label))
	}
	e := edges()
	for i, rows := range e[:10] {
		add("edge", rowSpec{batch: i % 3, rows: rows, cols: e[(5*i+6)%len(e)], inPlace: i%2 == 1})
	}
	add("extreme", rowSpec{rows: 4, cols: 7, values: special(100, -100, 1e30, -1e30, 0, 88.8, -88.8, 1e-30, 12.5)})
	add("nan", rowSpec{rows: 3, cols: 5, special: putNaN(3, 18)})
	add("in-place", rowSpec{batch: 2, rows: 3, cols: 9, inPlace: true})
	add("no-rows", rowSpec{cols: 7})
	add("no-cols", rowSpec{rows: 3})
	return all
}
