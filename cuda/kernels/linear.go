package kernels

var linear = Family{Name: "linear"}
