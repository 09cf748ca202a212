// Gemm: products on tensor cores, what prepares their operands, and products with few rows,
// or by weights of a wide range.
#include "linear_range.cuh"
#include "linear_result.cuh"
#include "linear_types.cuh"
#include "tile.cuh"
#include "tile_prepare.cuh"

namespace linear {

constexpr uint32_t FewChunk = 12288;  // elements of all rows in shared memory

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

// multiply adds the products of a vector of each of the columns with the rows. Quads of the
// rows lie `count` apart.
template <class Type, int Rows, int Columns, class Scale>
__device__ inline void multiply(float (&sum)[Rows * Columns], const uint4 (&w)[Columns], const float4* left, uint32_t count,
                                Scale scale) {
	constexpr uint32_t Quads = Type::Each / 4;
	float part[Rows * Columns] = {};
	float* const to = Type::Scaled ? part : sum;
#pragma unroll
	for (uint32_t q = 0; q < Quads; q++) {
		float4 b[Columns];
#pragma unroll
		for (uint32_t c = 0; c < Columns; c++) b[c] = Type::four(w[c], q);
#pragma unroll
		for (uint32_t r = 0; r < Rows; r++) {
			const float4 x = left[(r * Quads + q) * count];
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
	if constexpr (Type::Scaled) {
#pragma unroll
		for (uint32_t c = 0; c < Columns; c++) {
			const float by = scale(c);
#pragma unroll
			for (uint32_t r = 0; r < Rows; r++) sum[r * Columns + c] = fmaf(by, part[r * Columns + c], sum[r * Columns + c]);
		}
	}
}

// finish adds up the lanes of a warp and stores the results of its columns.
template <int Rows, int Columns>
__device__ inline void finish(const Few& a, const float (&sum)[Rows * Columns], uint32_t first) {
	const float total = scatter(sum);
	constexpr uint32_t Share = 32 / (Rows * Columns);
	const uint32_t mine = lane_id() / Share;
	if (lane_id() % Share == 0) put(a, mine / Columns, first + mine % Columns, total);
}

// few multiplies up to Rows rows by the matrix. A warp makes Columns columns at a time: its
// lanes take vectors of 16 bytes in turn, so that weights stream from memory once, several
// under way in each lane, and products are added in F32 lane by lane. The rows lie in shared
// memory, a chunk of them if they are long, four elements of each lane's vector side by side
// with those of the other lanes. Blocks take groups of four warps' columns in turn. The first
// weights are on their way while the kernel before ends.
template <class Type, int Rows, int Columns>
__device__ void few(const Few& a) {
	constexpr uint32_t Each = Type::Each, Quads = Each / 4, Ahead = Columns > 1 ? 2 : Rows < 8 ? 8 : 4, Chunk = FewChunk / Rows / Each, Threads = 128;
	constexpr uint32_t Group = Threads / 32 * Columns;
	float4* const left = dynamic_shared<float4>();         // [Rows][Quads][vectors of the chunk]
	const uint32_t vectors = (uint32_t)(a.Stride / Each);  // of a row of weights
	const bool whole = vectors <= Chunk;
	auto weights = [&](uint32_t column) { return Type(a.W, a.BlockScales, column * a.Stride); };

	// What a lane takes next: vectors from `from` on of the columns of its warp.
	uint4 next[Ahead][Columns];
	auto fetch = [&](uint32_t first, uint32_t from, uint32_t end) {
#pragma unroll
		for (uint32_t i = 0; i < Ahead; i++) {
			const uint32_t v = from + i * 32 + lane_id();
#pragma unroll
			for (uint32_t c = 0; c < Columns; c++) {
				next[i][c] = {0, 0, 0, 0};
				if (v < end && first + c < a.Columns) next[i][c] = weights(first + c).vector(v * Each);
			}
		}
	};
	// stage puts the vectors [begin, end) of all rows into shared memory, zeros for rows that
	// there are not.
	auto stage = [&](uint32_t begin, uint32_t end) {
		const uint32_t count = end - begin;
		const bool wide = tile::vectors(a.A);
#pragma unroll(Rows == 1 ? 4 : 1)
		for (uint32_t quad = threadIdx.x; quad < count * Quads; quad += Threads) {
			float4 v[Rows];
#pragma unroll
			for (uint32_t r = 0; r < Rows; r++) {
				const uint32_t item = r / a.ItemRows, row = r - item * a.ItemRows;
				const float* x = a.A.P + item * a.A.Batch + row * a.A.Row;
				v[r] = tile::take(x, begin * Each + 4 * quad, r < a.Rows ? a.Depth : 0, wide);
			}
#pragma unroll
			for (uint32_t r = 0; r < Rows; r++) left[(r * Quads + quad % Quads) * count + quad / Quads] = v[r];
		}
	};

	uint32_t first = blockIdx.x * Group + warp_id() * Columns;
	fetch(first, 0, min(Chunk, vectors));
	wait_dependency();  // nobody writes weights
	if (whole) {
		stage(0, vectors);
		__syncthreads();
	}
	for (uint32_t group = blockIdx.x * Group; group < a.Columns; group += gridDim.x * Group, first += gridDim.x * Group) {
		float sum[Rows * Columns] = {};
		for (uint32_t begin = 0; begin < vectors; begin += Chunk) {
			const uint32_t end = min(begin + Chunk, vectors), count = end - begin;
			if (!whole) {
				__syncthreads();  // the chunk before may still be read
				stage(begin, end);
				__syncthreads();
			}
#pragma unroll 1
			for (uint32_t from = begin; from < end; from += Ahead * 32) {
				uint4 now[Ahead][Columns];
#pragma unroll
				for (uint32_t i = 0; i < Ahead; i++) {
#pragma unroll
					for (uint32_t c = 0; c < Columns; c++) now[i][c] = next[i][c];
				}
				if (from + Ahead * 32 < end) {
					fetch(first, from + Ahead * 32, end);
				} else if (end < vectors) {
					fetch(first, end, min(end + Chunk, vectors));
				} else {
					fetch(first + gridDim.x * Group, 0, min(Chunk, vectors));
				}
#pragma unroll
				for (uint32_t i = 0; i < Ahead; i++) {
					const uint32_t v = from + i * 32 + lane_id();
					if (v < end) multiply<Type, Rows, Columns>(sum, now[i], left + (v - begin), count, [&](uint32_t c) {
						return first + c < a.Columns ? weights(first + c).scale(v * Each) : 0.0f;
					});
				}
			}
		}
		finish<Rows, Columns>(a, sum, first);
	}
}

}  // namespace linear
