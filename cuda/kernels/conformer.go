package kernels

var conformer = Family{Name: "conformer"}
