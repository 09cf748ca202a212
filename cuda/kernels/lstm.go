package kernels

var lstm = Family{Name: "lstm"}
