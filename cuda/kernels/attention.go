package kernels

var attention = Family{Name: "attention"}
