// Products by weights whose features differ by more than F16 holds: an element of a row of
// activations that its largest dwarfs may count all the same, and has lost its digits once
// the row is scaled to halves. Operands stay F32 here: products of TF32 parts, three for each,
// whose exponents are those of F32 (below 2^-115 they have fewer bits, and what is subnormal is
// zero), or products in F32 before 8.0.
#pragma once

#include "fragment.cuh"
#include "linear_result.cuh"
#include "linear_types.cuh"
#include "tile_prepare.cuh"

namespace linear {

// features finds the largest magnitude of each column of a part of the rows: blocks are
// numbered by 32 columns, and in y by part.
template <class Type>
__device__ void features(const Features& a) {
	constexpr uint32_t Quads = 8, Lines = 256 / Quads;
	__shared__ float4 peaks[Lines][Quads];
	const uint32_t quad = threadIdx.x % Quads, line = threadIdx.x / Quads, column = 4 * (blockIdx.x * Quads + quad);
	const uint32_t end = (uint32_t)((uint64_t)a.Rows * (blockIdx.y + 1) / a.Parts);
	float4 peak{};
	if (column < a.From) {
#pragma unroll 4
		for (uint32_t row = (uint32_t)((uint64_t)a.Rows * blockIdx.y / a.Parts) + line; row < end; row += Lines) {
			const float4 v = Type(a.Values, a.BlockScales, row * a.From).four(column);
			peak = {tile::peak_of(peak.x, v.x), tile::peak_of(peak.y, v.y), tile::peak_of(peak.z, v.z), tile::peak_of(peak.w, v.w)};
		}
	}
	peaks[line][quad] = peak;
	__syncthreads();
	if (threadIdx.x >= 4 * Quads) return;
	float best = 0.0f;
#pragma unroll 8
	for (uint32_t i = 0; i < Lines; i++) best = fmaxf(best, reinterpret_cast<const float*>(peaks[i])[threadIdx.x]);
	const uint32_t mine = blockIdx.x * 4 * Quads + threadIdx.x;
	if (mine < a.From) a.Peaks[blockIdx.y * a.From + mine] = best;
}

// A RangeWarp makes 32 × 32 sums of a stage, in the layout of mma_tf32. Rows of a stage are
// Pitch floats, so that the eight of a matrix lie in different banks.
template <int Depth>
struct RangeWarp {
	static constexpr int M = 2, N = 4, Pitch = Depth + 4, Size = 64 * Pitch;
#if TANDEM_ARCH >= 80
	static constexpr int Parts = 2;  // of an operand, one behind the other

	// keep stores a value's parts: what TF32 has of it, cut off, and of the rest. Products ignore
	// the lowest bits, so a NaN gets others; an infinity has no rest, which would be NaN.
	__device__ static float high(float v) { return v == v ? float_of(bits_of(v) & 0xffffe000u) : float_of(0x7fc00000u); }
	__device__ static float low(float v, float high) {
		return (bits_of(high) & 0x7f800000u) != 0x7f800000u ? float_of(to_tf32(v - high)) : 0.0f;
	}
	__device__ static void keep(float* to, float4 v) {
		const float4 h = {high(v.x), high(v.y), high(v.z), high(v.w)};
		store4(to, h);
		store4(to + Size, {low(v.x, h.x), low(v.y, h.y), low(v.z, h.z), low(v.w, h.w)});
	}

	// add adds the products of a stage. Tensor cores truncate their sums: a chain is one stage
	// deep, and corrections have one of their own.
	__device__ static void add(float (&total)[M][N][4], const float* x, const float* w) {
		float chain[M][N][4] = {}, rest[M][N][4] = {};
		const float* const left = x + lane_id() % 16 * Pitch + lane_id() / 16 * 4;
		const float* const right = w + (lane_id() / 16 * 8 + lane_id() % 8) * Pitch + lane_id() / 8 % 2 * 4;
#pragma unroll
		for (int k = 0; k < Depth; k += 8) {
			uint32_t a[M][Parts][4], b[N / 2][Parts][4];
#pragma unroll
			for (int p = 0; p < Parts; p++) {
#pragma unroll
				for (int m = 0; m < M; m++) ldmatrix_x4(a[m][p], left + p * Size + m * 16 * Pitch + k);
#pragma unroll
				for (int n = 0; n < N / 2; n++) ldmatrix_x4(b[n][p], right + p * Size + n * 16 * Pitch + k);
			}
#pragma unroll
			for (int m = 0; m < M; m++) {
#pragma unroll
				for (int n = 0; n < N; n++) {
					const uint32_t h[2] = {b[n / 2][0][n % 2 * 2], b[n / 2][0][n % 2 * 2 + 1]};
					const uint32_t l[2] = {b[n / 2][1][n % 2 * 2], b[n / 2][1][n % 2 * 2 + 1]};
					mma_tf32(rest[m][n], a[m][1], h);
					mma_tf32(rest[m][n], a[m][0], l);
					mma_tf32(chain[m][n], a[m][0], h);
				}
			}
		}
#pragma unroll
		for (int m = 0; m < M; m++) {
#pragma unroll
			for (int n = 0; n < N; n++) {
#pragma unroll
				for (int i = 0; i < 4; i++) total[m][n][i] += chain[m][n][i] + rest[m][n][i];
			}
		}
	}
#else
	static constexpr int Parts = 1;

	__device__ static void keep(float* to, float4 v) { store4(to, v); }

	__device__ static void add(float (&total)[M][N][4], const float* x, const float* w) {
		float chain[M][N][4] = {};
		const float* const left = x + lane_id() / 4 * Pitch;
		const float* const right = w + 2 * (lane_id() % 4) * Pitch;
#pragma unroll 4
		for (int k = 0; k < Depth; k++) {
			float a[2 * M], b[2 * N];
#pragma unroll
			for (int i = 0; i < 2 * M; i++) a[i] = left[8 * i * Pitch + k];
#pragma unroll
			for (int i = 0; i < 2 * N; i++) b[i] = right[(i / 2 * 8 + i % 2) * Pitch + k];
#pragma unroll
			for (int m = 0; m < M; m++) {
#pragma unroll
				for (int n = 0; n < N; n++) {
#pragma unroll
					for (int i = 0; i < 4; i++) chain[m][n][i] = fmaf(a[2 * m + i / 2], b[2 * n + i % 2], chain[m][n][i]);
				}
			}
		}
#pragma unroll
		for (int m = 0; m < M; m++) {
#pragma unroll
			for (int n = 0; n < N; n++) {
#pragma unroll
				for (int i = 0; i < 4; i++) total[m][n][i] += chain[m][n][i];
			}
		}
	}
#endif
};

// range makes 64 × 64 elements of a product in a block of four warps; the columns of the
// same rows follow each other in x.
template <class Type>
__device__ void range(const Few& a) {
	constexpr int Rows = 64, Depth = 32, Quads = Depth / 4, Each = Rows * Quads / 128;
	using Warp = RangeWarp<Depth>;
	constexpr int Operand = Warp::Parts * Warp::Size;
	float* const stages = dynamic_shared<float>();  // [2][x, w][Parts][Rows][Pitch]
	release_dependents();
	const uint32_t across = ceil_div(a.Columns, (uint32_t)Rows);
	const uint32_t row0 = blockIdx.x / across * Rows, column0 = blockIdx.x % across * Rows;
	const uint32_t line = threadIdx.x / Quads, quad = threadIdx.x % Quads, steps = ceil_div(a.Depth, (uint32_t)Depth);
	const bool wide = tile::vectors(a.A);

	const float* from[Each];
#pragma unroll
	for (int i = 0; i < Each; i++) {
		const uint32_t row = row0 + line + i * (Rows / Each), item = row / a.ItemRows;
		from[i] = row < a.Rows ? a.A.P + item * a.A.Batch + (row - item * a.ItemRows) * a.A.Row : nullptr;
	}
	float4 left[Each], right[Each];
	auto fetch = [&](uint32_t step) {
		const uint32_t k = step * Depth + 4 * quad;
#pragma unroll
		for (int i = 0; i < Each; i++) {
			const uint32_t column = column0 + line + i * (Rows / Each);
			left[i] = tile::take(from[i], k, from[i] != nullptr ? a.Depth : 0, wide);
			right[i] = column < a.Columns && k < a.Stride ? Type(a.W, a.BlockScales, column * a.Stride).four(k) : float4{};
		}
	};
	auto keep = [&](uint32_t step) {
		float* const to = stages + step % 2 * 2 * Operand + line * Warp::Pitch + 4 * quad;
#pragma unroll
		for (int i = 0; i < Each; i++) {
			Warp::keep(to + i * (Rows / Each) * Warp::Pitch, left[i]);
			Warp::keep(to + Operand + i * (Rows / Each) * Warp::Pitch, right[i]);
		}
	};

	const uint32_t down = warp_id() / 2 * 32, along = warp_id() % 2 * 32;
	float total[Warp::M][Warp::N][4] = {};
	fetch(0);
	keep(0);
	for (uint32_t step = 0; step < steps; step++) {
		__syncthreads();
		if (step + 1 < steps) fetch(step + 1);
		const float* const x = stages + step % 2 * 2 * Operand;
		Warp::add(total, x + down * Warp::Pitch, x + Operand + along * Warp::Pitch);
		if (step + 1 < steps) keep(step + 1);
	}

	__syncthreads();  // the stages become room for the sums
	static_assert(4 * Operand >= Rows * Rows, "they have it");
#pragma unroll
	for (int m = 0; m < Warp::M; m++) {
#pragma unroll
		for (int n = 0; n < Warp::N; n++) {
#pragma unroll
			for (int i = 0; i < 4; i++) {
				const uint32_t row = down + m * 16 + lane_id() / 4 + i / 2 * 8, column = along + n * 8 + 2 * (lane_id() % 4) + i % 2;
				stages[row * Rows + column] = total[m][n][i];
			}
		}
	}
	__syncthreads();
#pragma unroll 1
	for (uint32_t i = threadIdx.x; i < Rows * Rows; i += 128) put(a, row0 + i / Rows, column0 + i % Rows, stages[i]);
}

}  // namespace linear
