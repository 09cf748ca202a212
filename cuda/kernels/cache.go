package kernels

var cache = Family{Name: "cache"}
