package shaders

// imageValues are the constants of the plainest convolution of images.
func imageValues(v Values) Values {
	return with(Values{
		"Type": "F32", "Tile": 32, "Rows": 4, "Columns": 4, "Long": false, "Fine": false, "Quads": false, "Vectors": false, "Channels": 0, "Size": 3,
		"Residual": false, "Bias": true, "Epilogue": "relu", "InPlace": false, "Ragged": false, "Pooled": false,
		"ScaleBinding": 0, "OutBinding": 3, "BiasBinding": 4, "ResidualBinding": 5,
	}, v)
}

// convVariants adds the convolutions of images and of Conformers.
func convVariants(add func(name string, v Values)) {
	for _, quads := range []bool{false, true} {
		for _, channels := range []int{0, 16} {
			add("conv2d", imageValues(Values{"Quads": quads, "Channels": channels, "Size": 3 - 2*(channels/16), "Bias": quads}))
			add("conv2d", imageValues(Values{"Residual": true, "Vectors": quads, "Channels": channels, "Epilogue": "none", "Long": quads}))
		}
	}
	add("conv2d", imageValues(Values{"Tile": 128, "Rows": 8, "Columns": 8, "Residual": true}))
	glu := Values{"Vectors": false, "Normalised": true, "Lengths": "none", "LengthsBinding": 4, "StatusBinding": 5, "Fault": 1, "Epilogue": "silu",
		"Threads": 64, "Held": 1, "RowsEach": 4, "Taps": 3}
	for _, vectors := range []bool{false, true} {
		for _, g := range []Values{{}, {"Threads": 256, "Held": 2}, {"Held": 0, "RowsEach": 1, "Taps": 0}, {"Taps": 0}, {"Normalised": false}, {"Taps": 1}, {"Taps": 1, "RowsEach": 1, "Normalised": false}} {
			add("convglu", with(glu, with(g, Values{"Vectors": vectors})))
		}
		for _, first := range []bool{false, true} {
			for _, lengths := range []string{"none", "fixed", "device"} {
				add("depthwise", Values{"Entry": "depthwise", "First": first, "Vectors": vectors, "Epilogue": "relu", "Lengths": lengths, "LengthsBinding": 4, "StatusBinding": 5, "Fault": 1})
			}
		}
	}
	for _, lengths := range []string{"fixed", "device"} {
		add("convglu", with(glu, Values{"Lengths": lengths}))
	}
}
