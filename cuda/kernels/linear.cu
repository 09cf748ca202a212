// Gemm: products on tensor cores, what prepares their operands, and products with few rows.
#include "linear_types.cuh"
#include "tile.cuh"
#include "tile_prepare.cuh"

namespace linear {

// scatter adds N values, a power of two, over the lanes of a warp. Lane i gets the sum of
// value i·N/32: each exchange halves how many values a lane has, then how many lanes one.
template <int N, int Mask = 16>
__device__ inline float scatter(const float (&v)[N]) {
	if constexpr (N == 1) {
		if constexpr (Mask == 0) return v[0];
		else return warp_sum<2 * Mask>(v[0]);
	} else {
		const bool upper = lane_id() & Mask;
		float half[N / 2];
#pragma unroll
		for (int i = 0; i < N / 2; i++) {
			const float low = v[i], high = v[i + N / 2];
			half[i] = (upper ? high : low) + shfl_xor(upper ? low : high, Mask);
		}
		return scatter<N / 2, Mask / 2>(half);
	}
}

// few multiplies up to Rows rows by the matrix. A warp makes Columns columns: its lanes
// take vectors of 16 bytes in turn, so that weights stream from memory once, several under
// way in each lane, and products are added in F32 lane by lane. The rows lie in shared
// memory, chunk by chunk, four elements of each lane's vector side by side with those of
// the other lanes. blockIdx.x numbers groups of four warps' columns.
template <class Type, int Rows, int Columns>
__device__ void few(const Few& a) {
	constexpr uint32_t Each = Type::Each, Quads = Each / 4, Ahead = 8 / Columns, Chunk = 8192 / Rows, Warps = 4;
	float4* const left = dynamic_shared<float4>();  // [Rows][Quads][vectors of the chunk]

	const uint32_t first = (blockIdx.x * Warps + warp_id()) * Columns;
	const uint32_t vectors = (uint32_t)(a.Stride / Each);  // of a row of weights
	const uint4 none = {0, 0, 0, 0};
	auto weights = [&](uint32_t c) { return Type(a.W, a.BlockScales, (first + c) * a.Stride); };

	uint4 next[Ahead][Columns];
	auto fetch = [&](uint32_t from, uint32_t to) {
#pragma unroll
		for (uint32_t i = 0; i < Ahead; i++) {
			const uint32_t v = from + i * 32 + lane_id();
#pragma unroll
			for (uint32_t c = 0; c < Columns; c++) {
				next[i][c] = none;
				if (v < to && first + c < a.Columns) next[i][c] = weights(c).vector(v * Each);
			}
		}
	};

	float sum[Rows * Columns] = {};
	for (uint32_t begin = 0; begin < vectors; begin += Chunk / Each) {
		const uint32_t end = min(begin + Chunk / Each, vectors), count = end - begin;
		fetch(begin, end);
		__syncthreads();  // the chunk before may still be read
#pragma unroll 1
		for (uint32_t i = threadIdx.x; i < Rows * count * Quads; i += Warps * 32) {
			const uint32_t row = i / (count * Quads), quad = i - row * count * Quads;  // quads of the row in order
			float4 v{};
			if (row < a.Rows) {
				const uint32_t item = row / a.ItemRows, column = begin * Each + 4 * quad;
				const float* x = a.A.P + (int64_t)item * a.A.Batch + (int64_t)(row - item * a.ItemRows) * a.A.Row;
				v = tile::take(x, column, a.Depth, tile::vectors(a.A));
			}
			left[(row * Quads + quad % Quads) * count + quad / Quads] = v;
		}
		__syncthreads();
#pragma unroll 1
		for (uint32_t from = begin; from < end; from += Ahead * 32) {
			uint4 now[Ahead][Columns];
#pragma unroll
			for (uint32_t i = 0; i < Ahead; i++) {
#pragma unroll
				for (uint32_t c = 0; c < Columns; c++) now[i][c] = next[i][c];
			}
			if (from + Ahead * 32 < end) fetch(from + Ahead * 32, end);
#pragma unroll
			for (uint32_t i = 0; i < Ahead; i++) {
				const uint32_t v = from + i * 32 + lane_id();
				if (v >= end) break;
				float part[Rows * Columns] = {};
				float* const to = Each == 16 ? part : sum;
#pragma unroll
				for (uint32_t q = 0; q < Quads; q++) {
					float4 b[Columns];
#pragma unroll
					for (uint32_t c = 0; c < Columns; c++) b[c] = Type::four(now[i][c], q);
#pragma unroll
					for (uint32_t r = 0; r < Rows; r++) {
						const float4 x = left[(r * Quads + q) * count + v - begin];
#pragma unroll
						for (uint32_t c = 0; c < Columns; c++) {
							float& s = to[r * Columns + c];
							s = fmaf(x.x, b[c].x, s);
							s = fmaf(x.y, b[c].y, s);
							s = fmaf(x.z, b[c].z, s);
							s = fmaf(x.w, b[c].w, s);
						}
					}
				}
				if constexpr (Each == 16) {
#pragma unroll
					for (uint32_t c = 0; c < Columns; c++) {
						if (first + c >= a.Columns) continue;
						const float scale = weights(c).scale(v * Each);
#pragma unroll
						for (uint32_t r = 0; r < Rows; r++) {
							sum[r * Columns + c] = fmaf(scale, part[r * Columns + c], sum[r * Columns + c]);
						}
					}
				}
			}
		}
	}
	release_dependents();

	const float total = scatter(sum);
	constexpr uint32_t Share = 32 / (Rows * Columns);
	const uint32_t mine = lane_id() / Share, row = mine / Columns, column = first + mine % Columns;
	if (lane_id() % Share != 0 || row >= a.Rows || column >= a.Columns) return;
	const uint32_t item = row / a.ItemRows;
	float* c = a.C.P + (int64_t)item * a.C.Batch + (int64_t)(row - item * a.ItemRows) * a.C.Row + column;
	if (a.Dual != nullptr && column >= a.DualFrom && column < a.DualTo) c[a.DualShift] = total + a.Dual[column - a.DualFrom];
	const float v = a.Bias != nullptr ? total + a.Bias[column] : total;
	*c = apply(a.Epilogue, v, in_place(a.Epilogue) ? *c : 0.0f);
}

}  // namespace linear
