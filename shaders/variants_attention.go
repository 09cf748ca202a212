package shaders

// attentionTiles are geometries of the kernel for many queries.
func attentionTiles() []Values {
	return []Values{
		{"Across": 8, "Down": 8, "RowQuads": 2, "KeyQuads": 2, "Slabs": 2, "Depth": 16, "Step": 32, "Pool": 1280, "KeyPlace": 256, "ValuePlace": 512,
			"Q2Place": 512, "RelativePlace": 768, "Banks": 8, "RowShuffle": 2, "KeyShuffle": 2, "RelativeShuffle": 2},
		{"Across": 32, "Down": 1, "RowQuads": 2, "KeyQuads": 2, "Slabs": 2, "Depth": 4, "Step": 4, "Pool": 544, "KeyPlace": 8, "ValuePlace": 256,
			"Q2Place": 264, "RelativePlace": 272, "Banks": 2, "RowShuffle": 0, "KeyShuffle": 2, "RelativeShuffle": 0},
	}
}

// attentionVariants adds the kernels of attention and of caches.
func attentionVariants(add func(name string, v Values)) {
	flags := []bool{false, true}
	numbers := Values{"Lengths": "none", "LengthsBinding": 5, "KeyNumbers": "none", "KeyNumbersBinding": 6, "StatusBinding": 7, "Fault": 1, "OutBinding": 4}
	tile := func(i int, v Values) Values {
		return with(with(attentionTiles()[i], numbers), with(Values{"Source": "rows", "Quads": false, "Banded": false, "Relative": false, "Partial": false,
			"Q2Binding": 8, "PositionsBinding": 9}, v))
	}
	split := func(v Values) Values {
		return with(numbers, with(Values{"Source": "rows", "Quads": false, "Banded": false, "Direct": false, "Few": 2, "Threads": 64, "HeadQuads": 9, "Groups": 7}, v))
	}
	for _, source := range []string{"rows", "F32", "F16"} {
		for _, banded := range flags {
			for _, quads := range flags {
				add("attention_split", split(Values{"Source": source, "Quads": quads, "Banded": banded, "Direct": quads}))
			}
			add("attention", tile(0, Values{"Source": source, "Quads": banded, "Banded": banded}))
		}
		add("attention", tile(1, Values{"Source": source}))
		add("attention", tile(1, Values{"Source": source, "Partial": true, "Banded": true}))
	}
	for _, kind := range []string{"none", "fixed", "device"} {
		add("attention_split", split(Values{"Lengths": kind, "KeyNumbers": "device", "Few": 8, "Threads": 256, "HeadQuads": 64, "Groups": 4}))
		add("attention_split", split(Values{"KeyNumbers": kind, "Few": 1}))
		add("attention", tile(1, Values{"Lengths": kind, "KeyNumbers": "device"}))
		add("attention", tile(1, Values{"KeyNumbers": kind}))
		for _, quads := range flags {
			add("attention_join", Values{"Quads": quads, "Lengths": kind, "LengthsBinding": 3, "StatusBinding": 4, "Fault": 1, "OutBinding": 2})
		}
		if kind != "none" {
			add("items", Values{"Lengths": kind, "LengthsBinding": 2, "StatusBinding": 3, "Fault": 1})
		}
	}
	for _, quads := range flags {
		add("attention", tile(0, Values{"Relative": true, "Quads": quads, "Banded": quads}))
		add("attention", tile(1, Values{"Relative": true, "Quads": quads}))
		add("attention", tile(0, Values{"Relative": true, "Partial": true, "Quads": quads}))
		for _, typ := range []string{"F32", "F16"} {
			add("cache", Values{"Entry": "append", "Type": typ, "Vectors": quads, "Indexed": true, "AtBinding": 5, "StatusBinding": 6, "Fault": 1, "Beyond": 2})
			add("cache", Values{"Entry": "append", "Type": typ, "Vectors": quads, "Indexed": false, "AtBinding": 0, "StatusBinding": 5, "Fault": 1, "Beyond": 2})
		}
	}
}
