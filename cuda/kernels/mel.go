package kernels

var mel = Family{Name: "mel"}
