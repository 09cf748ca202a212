// What becomes of the sums of a product: scales, residual, bias, epilogue, and the columns
// that are given again.
#pragma once

#include "epilogue.cuh"

namespace tile {

// unscale multiplies a sum by two powers of two, the smaller first: so that nothing
// overflows on the way that does not in the end.
__device__ inline float unscale(float sum, float a, float b) { return sum * fminf(a, b) * fmaxf(a, b); }

// counts reports whether a row of an item is within the item's length.
__device__ inline bool counts(const Tile& a, uint32_t item, uint32_t row) {
	if (a.LengthStride == 0) return true;
	const int64_t length = count_of(a.Lengths, item), reach = length + a.LengthAdd;
	if (length == 0 || reach < 0) return false;
	return (int64_t)row + a.LengthFrom <= reach / a.LengthStride;
}

// A Row is where the results of a row go.
struct Row {
	float* c;  // nullptr: not a row of the product
	const float* residual;
	float scale;
	bool counts;
};

// row_of returns where the results of a row of an item go.
__device__ inline Row row_of(const Tile& a, uint32_t item, uint32_t within) {
	Row r{a.C.P + item * a.C.Batch + within * a.C.Row, nullptr, 1.0f, true};
	if (a.Residual.P != nullptr) r.residual = a.Residual.P + item * a.Residual.Batch + within * a.Residual.Row;
	r.scale = a.AScale[a.ScaleRows == 1 ? item * a.ItemRows + within : item];
	r.counts = counts(a, item, within);
	return r;
}

// row_of does so for a row of the product, if it has that many.
__device__ inline Row row_of(const Tile& a, uint32_t row) {
	if (row >= a.Rows) return {nullptr, nullptr, 1.0f, true};
	const uint32_t item = row / a.ItemRows;
	return row_of(a, item, row - item * a.ItemRows);
}

// A Quad is four columns that follow each other, and what their results need.
struct Quad {
	uint32_t column, dual;  // dual: bits of those that are given again
	float scale[4], bias[4];
};

__device__ inline Quad quad_of(const Tile& a, uint32_t column) {
	Quad q{column, 0, {1.0f, 1.0f, 1.0f, 1.0f}, {}};
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		if (column + i >= a.Columns) continue;
		if (a.BScale != nullptr) q.scale[i] = a.BScale[column + i];
		if (a.Bias != nullptr) q.bias[i] = a.Bias[column + i];
		if (a.Dual != nullptr && column + i >= a.DualFrom && column + i < a.DualTo) q.dual |= 1u << i;
	}
	return q;
}

// quads reports whether columns from a multiple of four on are aligned as a vector in all
// rows of C.
__device__ inline bool quads(const Tile& a) {
	return is_aligned(a.C.P, 16) && a.C.Row % 4 == 0 && a.C.Batch % 4 == 0;
}

// store writes the results for the sums of four columns of a row.
__device__ inline void store(const Tile& a, const Row& r, const Quad& q, bool vectors, float4 sums) {
	if (r.c == nullptr || q.column >= a.Columns) return;
	const uint32_t left = min(a.Columns - q.column, 4u);
	float* c = r.c + q.column;
	float v[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		if (i >= left) continue;
		v[i] = unscale(v[i], r.scale, q.scale[i]);
		if (q.dual >> i & 1) {
			c[(int64_t)i + a.DualShift] = r.counts ? v[i] + a.Dual[q.column + i - a.DualFrom] : 0.0f;
		}
		if (r.residual != nullptr) v[i] += r.residual[q.column + i];
		v[i] = apply(a.Epilogue, v[i] + q.bias[i], in_place(a.Epilogue) ? c[i] : 0.0f);
		if (!r.counts) v[i] = 0.0f;
	}
	if (vectors && left == 4) {
		store4(c, {v[0], v[1], v[2], v[3]});
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		if (i < left) c[i] = v[i];
	}
}

// sum adds the parts of a product in their order. A thread has four columns of a row;
// blocks are numbered over all of those.
__device__ inline void sum(const Tile& a) {
	const uint32_t each = ceil_div(a.Columns, 4u);
	const uint64_t number = (uint64_t)blockIdx.x * 256 + threadIdx.x;
	const uint32_t row = (uint32_t)(number / each), column = 4 * (uint32_t)(number - (uint64_t)row * each);
	if (row >= a.Rows) return;
	float total[4] = {};
	const float* p = a.Sums + (uint64_t)row * a.Columns + column;
	for (uint32_t part = 0; part < a.Splits; part++, p += (uint64_t)a.Rows * a.Columns) {
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
			if (column + i < a.Columns) total[i] += p[i];
		}
	}
	store(a, row_of(a, row), quad_of(a, column), quads(a), {total[0], total[1], total[2], total[3]});
}

}  // namespace tile
