package kernels

var rope = Family{Name: "rope"}
