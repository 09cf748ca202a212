// Package cuda computes on NVIDIA GPUs through the driver alone: no toolkit, no cuDNN, no
// cgo. It needs compute capability 7.5 (Turing) and a driver of CUDA 12.0.
//
//	dev, err := cuda.Open(ctx, cuda.Config{})
//	defer dev.Close()
//
// A recording that runs more than twice becomes a CUDA graph, whose edges are the real
// dependencies of its kernels, so that ops that do not depend on each other run side by
// side: the graph is made while the device works on the second run. Until then kernels are
// launched one by one, since a graph costs more than it saves to who runs a recording once.
// All recordings of a session share one workspace at addresses that never change, so that a
// graph is made once. Data of one run go to the device in one copy, behind a number that is the
// run's own; it comes back last, and only then is the run done.
//
// In Exact math tensor cores multiply each operand in two halves, scaled by powers of two,
// with sums of F32: errors are those of F32. What is less than a millionth of the largest
// element of its row of activations, or of its output's weights, has fewer than 22 bits. In
// Fast math operands of products are rounded to F16, scaled likewise.
//
// Weights that make up for activations that differ so much are found before their first
// product of more than eight rows: those of one of its inputs are more than 2^16 times as
// large as those of another, in Fast 2^26 times, in one of the tensors that they were loaded
// from. They are multiplied as they are, on tensor cores in three products of TF32 parts; in
// F32 before 8.0, and in convolutions. That takes several times as long, and Dump tells.
// Queries, keys and values are always scaled. An infinity among operands may come out as NaN,
// in either math.
//
// Blocks of a grid never wait for each other, but those of a cluster do, which the hardware
// starts together: sessions can share a GPU, or a slice of one, without a limit on grids.
//
// Kernels are in package kernels, compiled for each architecture. The device takes those
// of its own architecture, or lower ones of the same generation, or else has the driver
// compile PTX; Info says which.
//
// Environment: TANDEM_CUDA_DEVICE, TANDEM_CUDA_LIBRARY, TANDEM_CUDA_TIER and TANDEM_CUDA_TUNE
// stand in for the fields of [Config] that are not set.
package cuda
