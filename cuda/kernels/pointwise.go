package kernels

var pointwise = Family{Name: "pointwise"}
