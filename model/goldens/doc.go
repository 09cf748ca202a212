// Package goldens reads golden cases: networks, parts of networks and audio front ends,
// with the outputs of independent implementations in float64. It is for tests.
//
// A case is a folder with two files, case.json and outputs.safetensors. Weights and inputs
// are not stored: a recipe makes them from their names, the seed of the case, and the
// shape, scale and offset in case.json; see [Values]. Front ends read clips from the folder
// audio beside the cases. Axis names tell how arrays lie: most are channels last.
//
//	cases, err := goldens.Folders("../testdata/goldens")
//	...
//	c, err := goldens.Open(cases[0])
//	w, err := c.Tensor("same.conv1.weight") // for pass.Weights
//	x, err := c.Input("x")
//	...
//	err = c.Check(os.Stdout, goldens.Results{"same": y}, pass.Exact)
//
// The tests of this package run the cases of single ops and of front ends. Cases of other
// seeds and sizes run too, from the folders that the environment variable TANDEM_GOLDENS
// names.
package goldens
