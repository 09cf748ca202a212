// Package cpu is the backend in plain Go: no assembly, no cgo, every platform that Go
// has. It is the fallback that always works, fast enough for voice activity on one
// core, and a second opinion in tests of the other backends.
//
// # How it computes
//
// A matrix of weights is decoded to float32 at Load and repacked into panels of eight
// output columns, so that one kernel (see dot8) serves products of any number of rows:
// it sums blocks of 256 products in float32, in eight independent chains that keep the
// adders of a core busy, and adds the blocks in float64. Convolutions feed it windows
// of their input, in place where the input is dense; attention feeds it blocks of keys,
// then of values; LSTM layers feed it many steps at once, then one step at a time. Norms,
// softmax, pooling and audio front ends sum in float64. Exact and Fast recordings compute
// the same.
//
// # Threads
//
// A device has a fixed number of threads for all its sessions. Outputs are cut into
// tasks, no sum is, and how it is cut depends on shapes alone: results have the same
// bits with any number of threads, and for any number of rows.
package cpu
