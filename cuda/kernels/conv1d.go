package kernels

var conv1d = Family{Name: "conv1d"}
