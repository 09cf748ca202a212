package shaders

import (
	"maps"
	"strings"
)

// with returns constants with some changed.
func with(v Values, changes Values) Values {
	v = maps.Clone(v)
	maps.Copy(v, changes)
	return v
}

// The constants of the plainest variants.
func linearValues() Values {
	return Values{
		"Entry": "tile", "Type": "F32", "Tile": 32, "Rows": 4, "Columns": 4, "Long": false, "Fine": false, "Quads": false, "Vectors": false,
		"Bias": true, "Epilogue": "none", "InPlace": false, "Ragged": false, "Pooled": false, "ScaleBinding": 4, "OutBinding": 3, "BiasBinding": 5,
		"Width": 8, "FewRows": 1, "RowsEach": 1,
	}
}

func convValues() Values {
	return Values{
		"Type": "F32", "Tile": 32, "Rows": 4, "Columns": 4, "Long": false, "Fine": false, "Quads": false, "Vectors": false, "Dense": true, "Reflect": false,
		"Bias": true, "Epilogue": "relu", "InPlace": false, "Ragged": false, "Pooled": false, "Several": false, "Abs": false, "Lengths": "none", "ScaleBinding": 0, "OutBinding": 3,
		"BiasBinding": 4, "LengthsBinding": 5, "StatusBinding": 6, "Fault": 1,
	}
}

func recurrenceValues() Values {
	return Values{
		"Lengths": "none", "StateRows": "none", "LengthsBinding": 6, "RowsBinding": 7, "StatusBinding": 8, "HiddenBinding": 9, "Fault": 1,
		"Items": 1, "Held": 0, "Slices": 1, "Width": 32, "Hidden": 20, "Depth": 32, "Directions": 1, "Finishes": 1, "InWorkgroup": true, "Fine": false,
	}
}

func moveValues() Values {
	return Values{
		"Entry": "copy", "Vectors": false, "SourceIndex": false, "ToIndex": false, "SourceBinding": 3, "ToBinding": 4, "StatusBinding": 5, "Fault": 1,
	}
}

// epilogues returns the epilogues by name.
func epilogues() []string {
	return []string{"none", "silu", "relu", "leaky", "residual", "gelu", "gelu-residual", "tanh", "sigmoid"}
}

// Variants returns constants by shader that reach every branch of every one: for tests
// that look at, or compile, all there is.
func Variants() map[string][]Values {
	all := map[string][]Values{"mark": {{"Written": 0}, {"Written": 3}}}
	add := func(name string, v Values) { all[name] = append(all[name], v) }
	for _, entry := range []string{"tile", "few"} {
		for _, typ := range []string{"F32", "F16", "BF16", "Q8_0"} {
			add("linear", with(linearValues(), Values{"Entry": entry, "Type": typ}))
			add("linear", with(linearValues(), Values{"Entry": entry, "Type": typ, "Fine": true, "FewRows": 8, "Width": 16, "RowsEach": 2}))
			add("linear", with(linearValues(), Values{"Entry": entry, "Type": typ, "Quads": true, "Vectors": true, "Bias": false, "Long": true, "Width": 16, "FewRows": 8, "RowsEach": 2}))
		}
		for _, e := range epilogues() {
			inPlace := strings.Contains(e, "residual")
			add("linear", with(linearValues(), Values{"Entry": entry, "Epilogue": e, "InPlace": inPlace}))
			add("linear", with(linearValues(), Values{"Entry": entry, "Epilogue": e, "InPlace": inPlace, "Vectors": true}))
		}
	}
	for _, t := range [][3]int{{32, 4, 4}, {64, 8, 4}, {128, 8, 8}} {
		tile := Values{"Tile": t[0], "Rows": t[1], "Columns": t[2]}
		add("linear", with(linearValues(), tile))
		add("conv1d", with(convValues(), tile))
	}
	for _, quads := range []bool{false, true} {
		for _, dense := range []bool{false, true} {
			for _, reflect := range []bool{false, true} {
				add("conv1d", with(convValues(), Values{"Quads": quads, "Dense": dense, "Reflect": reflect}))
			}
		}
	}
	for _, several := range []bool{false, true} {
		add("conv1d", with(convValues(), Values{"Pooled": true, "Several": several, "Abs": !several}))
		add("conv1d", with(convValues(), Values{"Pooled": true, "Several": true, "Abs": several, "Long": several, "Lengths": "device", "Ragged": true, "Vectors": several}))
	}
	for _, numbers := range []string{"none", "fixed", "device"} {
		add("conv1d", with(convValues(), Values{"Lengths": numbers, "Ragged": numbers != "none", "Epilogue": "residual", "InPlace": true}))
		add("lstm", with(recurrenceValues(), Values{"Lengths": numbers}))
		add("lstm", with(recurrenceValues(), Values{"StateRows": numbers}))
		add("lstm", with(recurrenceValues(), Values{"Lengths": "device", "StateRows": numbers}))
		for _, entry := range []string{"load", "save"} {
			add("lstm_state", Values{"Entry": entry, "StateRows": numbers, "Lengths": "none", "RowsBinding": 5, "StatusBinding": 6, "Fault": 1})
		}
	}
	add("lstm", with(recurrenceValues(), Values{"InWorkgroup": false}))
	add("lstm", with(recurrenceValues(), Values{"Fine": true, "Slices": 2, "Items": 2}))
	add("lstm", with(recurrenceValues(), Values{"InWorkgroup": false, "Slices": 2, "Items": 4, "Finishes": 2}))
	add("lstm", with(recurrenceValues(), Values{"Slices": 4, "Items": 8, "Finishes": 2, "Held": 8, "Width": 32, "Hidden": 32, "Depth": 32, "Directions": 2}))
	for _, vectors := range []bool{false, true} {
		for _, e := range epilogues() {
			add("pointwise", Values{"Entry": "map", "Epilogue": e, "Vectors": vectors, "InPlace": false, "Swish": false, "GateFirst": false, "BBinding": 0})
		}
		add("pointwise", Values{"Entry": "magnitude", "Epilogue": "none", "Vectors": vectors, "InPlace": false, "Swish": false, "GateFirst": false, "BBinding": 0})
		add("move", with(moveValues(), Values{"Entry": "fill", "Vectors": vectors}))
		for _, indexed := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			add("move", with(moveValues(), Values{"SourceIndex": indexed[0], "ToIndex": indexed[1], "Vectors": vectors}))
		}
	}
	attentionVariants(add)
	convVariants(add)
	melVariants(add)
	rowVariants(add)
	moveVariants(add)
	return all
}
