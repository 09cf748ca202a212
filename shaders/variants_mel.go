package shaders

// melVariants adds the kernels of audio front ends.
func melVariants(add func(name string, v Values)) {
	numbers := Values{"Lengths": "none", "LengthsBinding": 5, "StatusBinding": 6, "Fault": 1, "Reflect": false}
	frames := func(v Values) Values {
		return with(numbers, with(Values{"Half": 200, "Threads": 64, "Each": 4, "Pool": 200, "PerFrame": false, "Log": "ln", "Largest": false, "LargestBinding": 4}, v))
	}
	normal := func(v Values) Values {
		return with(numbers, with(Values{"Entry": "scale", "Threads": 64, "PerBin": false}, v))
	}
	for _, log := range []string{"power", "ln", "log10"} {
		for _, on := range []bool{false, true} {
			add("mel", frames(Values{"Log": log, "PerFrame": on, "Largest": !on}))
			add("mel", frames(Values{"Log": log, "Reflect": true, "Largest": on}))
		}
	}
	add("mel_top", Values{})
	for _, lengths := range []string{"none", "fixed", "device"} {
		add("mel", frames(Values{"Lengths": lengths, "Half": 2048, "Threads": 256, "Each": 8, "Pool": 2048}))
		for _, reflect := range []bool{false, true} {
			add("mel_normal", normal(Values{"Lengths": lengths, "Reflect": reflect}))
			for _, entry := range []string{"bins", "moments", "apply"} {
				add("mel_normal", normal(Values{"Lengths": lengths, "Reflect": reflect, "Entry": entry, "PerBin": reflect, "Threads": 256}))
			}
		}
	}
}
