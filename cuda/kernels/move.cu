// Copy, Fill, Permute and Advance.
#include "device.cuh"

namespace move {

// One row a block, of Batch·Rows rows in x; the block strides over the columns.
__device__ void fill(const Fill& a) {
	const uint32_t item = blockIdx.x / a.Rows, row = blockIdx.x % a.Rows;
	uint32_t* y = a.Y.P + item * a.Y.Batch + row * a.Y.Row;
	for (uint32_t i = threadIdx.x; i < a.Cols; i += blockDim.x) y[i] = a.Value;
}

}  // namespace move
