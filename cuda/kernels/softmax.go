package kernels

var softmax = Family{Name: "softmax"}
