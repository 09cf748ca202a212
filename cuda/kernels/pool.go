package kernels

var pool = Family{Name: "pool"}
