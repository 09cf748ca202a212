package kernels

var norm = Family{Name: "norm"}
