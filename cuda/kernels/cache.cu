// Rows of keys and values into a cache.
#include "device.cuh"

namespace cache {

// store_quad stores four elements as a cache of floats or of halves has them, rounded to
// nearest, and reports whether a finite one became infinite.
__device__ inline bool store_quad(float* to, float4 v) {
	store4(to, v);
	return false;
}
__device__ inline bool store_quad(half* to, float4 v) {
	const uint2 w = {pack_half(v.x, v.y), pack_half(v.z, v.w)};
	*reinterpret_cast<uint2*>(to) = w;
	const float most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));  // not NaN
	if (most < 65520.0f) return false;
	bool beyond = false;
	for (float x : {v.x, v.y, v.z, v.w}) beyond |= fabsf(x) >= 65520.0f && fabsf(x) < infinity();
	return beyond;
}

// A block stores a row of keys or, of odd numbers, of values; x counts the rows of an item,
// item after item. Where an index leads beyond the capacity, nothing is stored.
template <typename T>
__device__ void append(const Append& a) {
	release_dependents();
	const uint32_t at = blockIdx.x / 2, row = at % a.Rows, item = at / a.Rows;
	const bool values = blockIdx.x % 2;
	const uint64_t position = static_cast<uint64_t>(index_of(a.At, item)) + row;
	if (position >= a.Capacity) return;
	if (a.At.P != nullptr && a.At.P[a.At.Each * item] >= a.At.Valid) return;  // the status says so
	const View& view = values ? a.V : a.K;
	const float* from = view.P + item * view.Batch + row * view.Row;
	const bool vectors = is_aligned(from, 16);
	T* to = reinterpret_cast<T*>(values ? a.Values : a.Keys);
	const uint32_t quads = a.Dim / 4;
	bool beyond = false;
	for (uint32_t i = threadIdx.x; i < a.Heads * quads; i += blockDim.x) {
		const uint32_t head = i / quads, quad = i % quads;
		const float* p = from + 4 * static_cast<int64_t>(i);
		const float4 v = vectors ? load4(p) : float4{p[0], p[1], p[2], p[3]};
		const int64_t line = (static_cast<int64_t>(item) * a.Heads + head) * a.Capacity + static_cast<int64_t>(position);
		beyond |= store_quad(to + line * a.Dim + 4 * quad, v);
	}
	if (beyond) atomic_or(a.Status, StatusNarrow);
}

}  // namespace cache
