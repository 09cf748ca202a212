// Package cases holds what every backend must compute: for each op a list of cases
// with inputs, weights and the wanted outputs. It is data, free of testing, and serves
// tests and benchmarks alike; package passtest runs it.
//
// A [Case] is an op without handles, its tensors by the names of the op's fields, and
// its weights. [All] lists the cases by name; an [Entry] makes its case when asked.
// What is wanted is computed by package truth, or comes with the case. [Place] lays
// the tensors out in buffers, densely or in the most awkward way that the contract
// allows, surrounded by poison.
//
// A case can be written to a folder and read back ([Write], [ReadDir]); FORMAT.md
// describes the files, so that cases can be made elsewhere. That is how to report a
// wrong result.
package cases
