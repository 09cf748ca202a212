// Convolutions as products in FP32: sums of windows of the input with the columns of a
// matrix of weights, without a stored matrix of windows.
//
// A source says what is convolved. It has
//
//   rows, columns, depth   how many outputs and channels there are, and products of a sum
//   parts                  how many sums an output is the largest of
//   weights, stride        [depth][stride], filled up with zeros to multiples of DepthGrain
//                          and ColumnGrain
//   Place place(row, part) what load has to know of a window
//   Tap tap(k)             and of a number in it
//   load(place, tap)       the number; zero beyond the ends, and for k ≥ depth
//   finish(row, column, v) what becomes of a sum
//   put(row, column, n, v) stores up to four columns that follow each other
#pragma once
#include "rows.cuh"

namespace conv {

constexpr uint32_t DepthGrain = 16, ColumnGrain = 64;

// Sums are made in chains of so many products, which are added up in their order: a longer
// chain would lose digits. An output has the same bits whichever kernel makes it.
constexpr uint32_t Chain = 32;

// Types of stored weights, as pass.DType counts them; what is none of these is Q8_0.
constexpr uint32_t TypeF32 = 1, TypeF16 = 2, TypeBF16 = 3;

// larger keeps the larger of several. NaN does not count.
__device__ inline float larger(float best, float v) { return v > best ? v : best; }

// tile computes 64 outputs × 64 channels in a block of 256 threads; the channels of the
// same outputs follow each other in x. A thread has 4 × 4 sums.
template <class Source>
__device__ void tile(const Source& s) {
	constexpr uint32_t Rows = 64, Columns = ColumnGrain, Depth = DepthGrain, Links = Chain / Depth;
	__shared__ __align__(16) float x[2][Depth][Rows + 4];
	__shared__ __align__(16) float w[2][Depth][Columns];
	const uint32_t across = ceil_div(s.columns, Columns);
	const uint32_t row0 = blockIdx.x / across * Rows, column0 = blockIdx.x % across * Columns;
	const uint32_t mine = threadIdx.x % 16, other = threadIdx.x / 16;
	const uint32_t stages = ceil_div(s.depth, Depth);

	float best[4][4];
	for (uint32_t part = 0; part < s.parts; part++) {
		typename Source::Place places[4];
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) places[i] = s.place(row0 + other + 16 * i, part);
		const float* weights = s.weights + (int64_t)other * s.stride + column0 + 4 * mine;
		float next[4];
		float4 nextW;
		const auto fetch = [&](uint32_t stage) {
			const auto tap = s.tap(stage * Depth + mine);
#pragma unroll
			for (uint32_t i = 0; i < 4; i++) next[i] = s.load(places[i], tap);
			nextW = load4(weights + (int64_t)stage * Depth * s.stride);
		};
		const auto keep = [&](uint32_t at) {
#pragma unroll
			for (uint32_t i = 0; i < 4; i++) x[at][mine][other + 16 * i] = next[i];
			store4(&w[at][other][4 * mine], nextW);
		};

		float sum[4][4], chain[4][4];
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
			for (uint32_t j = 0; j < 4; j++) sum[i][j] = chain[i][j] = 0.0f;
		}
		__syncthreads();  // the part before may still be read
		fetch(0);
		keep(0);
		__syncthreads();
		for (uint32_t stage = 0; stage < stages; stage++) {
			const uint32_t at = stage % 2;
			if (stage + 1 < stages) fetch(stage + 1);
#pragma unroll
			for (uint32_t k = 0; k < Depth; k++) {
				const float4 a = load4(&x[at][k][4 * other]), b = load4(&w[at][k][4 * mine]);
				const float as[4] = {a.x, a.y, a.z, a.w}, bs[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
				for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
					for (uint32_t j = 0; j < 4; j++) chain[i][j] = fmaf(as[i], bs[j], chain[i][j]);
				}
			}
			if (stage % Links == Links - 1 || stage + 1 == stages) {
#pragma unroll
				for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
					for (uint32_t j = 0; j < 4; j++) {
						sum[i][j] += chain[i][j];
						chain[i][j] = 0.0f;
					}
				}
			}
			if (stage + 1 < stages) keep(1 - at);
			__syncthreads();
		}
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
			for (uint32_t j = 0; j < 4; j++) {
				const uint32_t row = row0 + 4 * other + i, column = column0 + 4 * mine + j;
				if (row >= s.rows || column >= s.columns) continue;
				const float v = s.finish(row, column, sum[i][j]);
				best[i][j] = s.parts == 1 ? v : larger(part == 0 ? -infinity() : best[i][j], v);
			}
		}
	}
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t row = row0 + 4 * other + i, column = column0 + 4 * mine;
		if (row < s.rows && column < s.columns) s.put(row, column, min(s.columns - column, 4u), best[i]);
	}
}

// few is for a small number of outputs: a block of 8 warps computes 8 of them × 32
// channels, one channel a lane, and each warp takes every eighth chain, so that many loads
// of weights are under way. A thread adds up the chains of one output.
template <class Source>
__device__ void few(const Source& s) {
	constexpr uint32_t Rows = 8, Columns = 32, Warps = 8, Chunk = Warps * Chain;
	__shared__ typename Source::Place places[Rows];
	__shared__ __align__(16) float x[Chunk][Rows];
	__shared__ float chains[Warps][Rows][Columns];
	const uint32_t across = ceil_div(s.columns, Columns);
	const uint32_t row0 = blockIdx.x / across * Rows, column = blockIdx.x % across * Columns + lane_id();
	const uint32_t row = row0 + warp_id();  // that this thread finishes
	const bool wanted = row < s.rows && column < s.columns;

	float best = 0.0f;
	for (uint32_t part = 0; part < s.parts; part++) {
		__syncthreads();  // the part before may still be read
		if (threadIdx.x < Rows) places[threadIdx.x] = s.place(row0 + threadIdx.x, part);
		float sum = 0.0f;
		for (uint32_t first = 0; first < s.depth; first += Chunk) {
			__syncthreads();
			const auto tap = s.tap(first + threadIdx.x);
#pragma unroll
			for (uint32_t r = 0; r < Rows; r++) x[threadIdx.x][r] = s.load(places[r], tap);
			__syncthreads();
			const uint32_t from = first + warp_id() * Chain;
			const uint32_t count = from < s.depth ? min(ceil_div(s.depth - from, DepthGrain) * DepthGrain, Chain) : 0;
			const float* weights = s.weights + (int64_t)from * s.stride + column;
			float chain[Rows];
#pragma unroll
			for (uint32_t r = 0; r < Rows; r++) chain[r] = 0.0f;
			for (uint32_t k = 0; k < count; k += DepthGrain) {
				float w[DepthGrain];
#pragma unroll
				for (uint32_t i = 0; i < DepthGrain; i++) w[i] = weights[(int64_t)(k + i) * s.stride];
#pragma unroll
				for (uint32_t i = 0; i < DepthGrain; i++) {
					const float* at = x[warp_id() * Chain + k + i];
					const float4 lower = load4(at), upper = load4(at + 4);
					const float xs[Rows] = {lower.x, lower.y, lower.z, lower.w, upper.x, upper.y, upper.z, upper.w};
#pragma unroll
					for (uint32_t r = 0; r < Rows; r++) chain[r] = fmaf(xs[r], w[i], chain[r]);
				}
			}
#pragma unroll
			for (uint32_t r = 0; r < Rows; r++) chains[warp_id()][r][lane_id()] = chain[r];
			__syncthreads();
#pragma unroll
			for (uint32_t i = 0; i < Warps; i++) sum += chains[i][warp_id()][lane_id()];
		}
		if (!wanted) continue;
		const float v = s.finish(row, column, sum);
		best = s.parts == 1 ? v : larger(part == 0 ? -infinity() : best, v);
	}
	if (wanted) s.put(row, column, 1, &best);
}

// pack turns weights [Out][In][Taps] as they are stored into the matrix
// [Taps·In][Out] that tile and few read, filled up with zeros. A block makes a row of it.
__device__ inline void pack(const ConvPack& a) {
	const uint32_t k = blockIdx.x, tap = k / a.In, in = k % a.In;
	float* row = a.Matrix + (int64_t)k * a.Stride;
	const uint8_t* bytes = reinterpret_cast<const uint8_t*>(a.Stored);
	for (uint32_t out = threadIdx.x; out < a.Stride; out += blockDim.x) {
		float v = 0.0f;
		if (out < a.Out && tap < a.Taps) {
			const int64_t at = ((int64_t)out * a.In + in) * a.Taps + tap;
			if (a.Type == TypeF32) {
				v = reinterpret_cast<const float*>(bytes)[at];
			} else if (a.Type == TypeF16) {
				v = to_float(reinterpret_cast<const half*>(bytes)[at]);
			} else if (a.Type == TypeBF16) {
				v = float_of((uint32_t)reinterpret_cast<const uint16_t*>(bytes)[at] << 16);
			} else {  // a scale and 32 bytes for 32 numbers
				const uint8_t* block = bytes + at / 32 * 34;
				v = to_float(*reinterpret_cast<const half*>(block)) * (float)(int8_t)block[2 + at % 32];
			}
		}
		row[out] = v;
	}
}

}  // namespace conv
