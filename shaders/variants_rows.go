package shaders

func rowValues(v Values) Values {
	return with(Values{
		"InPlace": false, "Vectors": false, "Held": 2, "Key": "u32", "XBinding": 2,
		"Lanes": 8, "Threads": 64, "Each": 8, "Groups": 1, "PosIndex": false, "PosBinding": 6, "StatusBinding": 7, "Fault": 1,
	}, v)
}

// geometries are those of rows: one invocation, one step and two steps of a sum.
func geometries() []Values {
	return []Values{
		{"Lanes": 1, "Each": 1, "Groups": 1, "Held": 1},
		{"Lanes": 8, "Each": 8, "Groups": 1, "Held": 3},
		{"Lanes": 64, "Each": 8, "Groups": 8, "Held": 5},
		{"Lanes": 256, "Threads": 256, "Each": 16, "Groups": 16, "Held": 8},
	}
}

// rowVariants adds the kernels that work on rows or columns as a whole.
func rowVariants(add func(name string, v Values)) {
	flags := []bool{false, true}
	norm := func(v Values) Values {
		return with(rowValues(Values{"Rotated": false, "Bias": true, "WeightsBinding": 3, "TurnedBinding": 4, "TableBinding": 5}), v)
	}
	softmax := func(v Values) Values {
		return with(rowValues(Values{"Log": false, "Part": false, "PartsBinding": 3}), v)
	}
	for _, entry := range []string{"layer", "length"} {
		for _, g := range append(geometries(), Values{"Held": 0}) {
			for _, vectors := range flags {
				add("norm", norm(with(g, Values{"Entry": entry, "Vectors": vectors})))
			}
		}
	}
	for _, on := range flags {
		for _, vectors := range flags {
			add("norm", norm(Values{"Entry": "layer", "InPlace": true, "Vectors": vectors, "Bias": on, "WeightsBinding": 2}))
			add("norm", norm(Values{"Entry": "layer", "Rotated": true, "PosIndex": on, "Vectors": vectors}))
			add("rope", Values{"Entry": "rope", "Interleaved": on, "Vectors": vectors, "PosIndex": false, "PosBinding": 0, "StatusBinding": 0, "Fault": 1})
			add("rope", Values{"Entry": "rope", "Interleaved": on, "Vectors": vectors, "PosIndex": true, "PosBinding": 3, "StatusBinding": 4, "Fault": 1})
			for _, entry := range []string{"row", "part", "join"} {
				add("softmax", softmax(Values{"Entry": entry, "Part": entry == "part", "Log": on, "Vectors": vectors}))
			}
			group := Values{"Vectors": vectors, "InPlace": on, "Bias": on, "Lengths": "none", "LengthsBinding": 0, "StatusBinding": 0, "Fault": 1,
				"Threads": 256, "Lanes": 256, "Each": 16, "Groups": 16, "PartsBinding": 3, "XBinding": 2, "WeightsBinding": 4}
			add("norm_group", with(group, Values{"Entry": "apply"}))
			add("norm_group", with(group, Values{"Entry": "moments", "InPlace": false, "XBinding": 1, "PartsBinding": 2}))
		}
		add("softmax", softmax(Values{"Entry": "best", "Key": "vec2<u32>", "PosIndex": on}))
		add("softmax", softmax(Values{"Entry": "pick", "Key": "vec2<u32>", "PosIndex": on}))
	}
	add("norm_pool", Values{"Lengths": "none", "LengthsBinding": 0, "StatusBinding": 0, "Fault": 1, "Entry": "moments", "Pooled": true, "Pool": 0, "Abs": false,
		"Down": 2, "RowsEach": 16, "Bias": false, "Epilogue": "none", "PartsBinding": 0, "WeightsBinding": 0})
	for _, g := range geometries() {
		add("softmax", softmax(with(g, Values{"Entry": "row"})))
		add("softmax", softmax(with(g, Values{"Entry": "best", "Key": "vec2<u32>", "Part": true, "Vectors": true})))
	}
	for _, lengths := range []string{"none", "fixed", "device"} {
		numbers := Values{"Lengths": lengths, "LengthsBinding": 5, "StatusBinding": 6, "Fault": 1}
		for _, entry := range []string{"moments", "apply"} {
			for _, abs := range flags {
				add("norm_pool", with(numbers, Values{"Entry": entry, "Pooled": abs, "Pool": 3, "Abs": abs, "Down": 8, "RowsEach": 16, "Bias": abs,
					"Epilogue": "leaky", "PartsBinding": 3, "WeightsBinding": 4}))
			}
		}
		add("norm_group", with(numbers, Values{"Entry": "apply", "Vectors": true, "InPlace": false, "Bias": true,
			"Threads": 64, "Lanes": 64, "Each": 8, "Groups": 8, "PartsBinding": 3, "XBinding": 2, "WeightsBinding": 4}))
	}
	for _, entry := range []string{"stats", "moments", "join"} {
		add("pool", Values{"Entry": entry, "Down": 8})
		add("pool", Values{"Entry": entry, "Down": 1})
	}
}

// moveVariants adds the kernels that pick, move and count.
func moveVariants(add func(name string, v Values)) {
	flags := []bool{false, true}
	embed := Values{"Positions": "none", "IDIndex": false, "PosIndex": false, "ScaleBinding": 3, "IDsBinding": 4, "IDBinding": 5,
		"PositionsBinding": 6, "PosBinding": 7, "StatusBinding": 8, "Fault": 1, "Vectors": false}
	for _, typ := range []string{"F32", "F16", "BF16", "Q8_0"} {
		for _, on := range flags {
			add("embed", with(embed, Values{"Entry": "embed", "Type": typ, "IDIndex": on, "Vectors": on}))
			add("embed", with(embed, Values{"Entry": "add", "Type": typ, "PosIndex": on, "Vectors": on}))
			if typ != "Q8_0" {
				add("embed", with(embed, Values{"Entry": "embed", "Type": "Q8_0", "Positions": typ, "PosIndex": on, "Vectors": on}))
			}
		}
	}
	for _, vectors := range flags {
		add("permute", Values{"Entry": "gather", "Vectors": vectors, "Down": 8})
		for _, inPlace := range flags {
			for _, entry := range []string{"scale", "add", "gate"} {
				for _, swish := range flags {
					add("pointwise", Values{"Entry": entry, "Epilogue": "none", "Vectors": vectors, "InPlace": inPlace, "Swish": swish, "GateFirst": swish, "BBinding": 3})
				}
			}
		}
		for _, done := range flags {
			add("advance", Values{"IDs": vectors, "Done": done, "DoneBinding": 2, "IDsBinding": 3, "StatusBinding": 4, "Fault": 1})
		}
	}
	add("permute", Values{"Entry": "transpose", "Vectors": false, "Down": 8})
	add("permute", Values{"Entry": "transpose", "Vectors": false, "Down": 2})
}
