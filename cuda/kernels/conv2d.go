package kernels

var conv2d = Family{Name: "conv2d"}
