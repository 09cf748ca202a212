// What becomes of the sums of a product: scales, residual, bias, epilogue, and the columns
// that are given again.
#pragma once

#include "epilogue.cuh"
#include "tile_prepare.cuh"

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
	uint32_t item, within;
	float scale;
	bool counts;
};

// row_of returns where the results of a row of an item go.
__device__ inline Row row_of(const Tile& a, uint32_t item, uint32_t within) {
	Row r{a.C.P + item * a.C.Batch + within * a.C.Row, item, within, 1.0f, true};
	r.scale = a.AScale[a.ScaleRows == 1 ? item * a.ItemRows + within : item];
	r.counts = counts(a, item, within);
	return r;
}

// row_of does so for a row of the product, if it has that many.
__device__ inline Row row_of(const Tile& a, uint32_t row) {
	if (row >= a.Rows) return {nullptr, 0, 0, 1.0f, true};
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

// light reports whether an epilogue is next to nothing, so that what costs time is to wait
// for memory.
__device__ inline bool light(Epilogue e) {
	return e.Kind == KindNone || e.Kind == KindReLU || e.Kind == KindLeaky || e.Kind == KindResidual;
}
__device__ inline float apply_light(Epilogue e, float v, float before) {
	if (e.Kind == KindResidual) return fmaf(e.Alpha, v, before);
	const float below = e.Kind == KindLeaky ? e.Alpha * v : 0.0f;
	return v < 0.0f && e.Kind != KindNone ? below : v;
}

// apply_heavy is apply for the others, on four values: they are decided on once.
__device__ inline void apply_heavy(Epilogue e, float (&v)[4], const float (&before)[4]) {
	switch (e.Kind) {
	case KindSiLU:
#pragma unroll
		for (int i = 0; i < 4; i++) v[i] = silu(v[i]);
		return;
	case KindTanh:
#pragma unroll
		for (int i = 0; i < 4; i++) v[i] = tanhf(v[i]);
		return;
	case KindSigmoid:
#pragma unroll
		for (int i = 0; i < 4; i++) v[i] = sigmoid(v[i]);
		return;
	default:
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float g = gelu(v[i]);
			v[i] = e.Kind == KindGELUResidual ? before[i] + g : g;
		}
	}
}

// before returns what the output holds, if the epilogue needs it.
__device__ inline float4 before(const Tile& a, const Row& r, const Quad& q, bool vectors) {
	float4 v{};
	if (!in_place(a.Epilogue) || r.c == nullptr || q.column >= a.Columns) return v;
	const float* c = r.c + q.column;
	const uint32_t left = a.Columns - q.column;
	if (vectors && left >= 4) return load4(c);
	v.x = c[0];
	if (left > 1) v.y = c[1];
	if (left > 2) v.z = c[2];
	if (left > 3) v.w = c[3];
	return v;
}

// store writes the results for the sums of four columns of a row.
template <bool Light>
__device__ inline void store(const Tile& a, const Row& r, const Quad& q, bool vectors, float4 sums, float4 was) {
	if (r.c == nullptr || q.column >= a.Columns) return;
	const uint32_t left = min(a.Columns - q.column, 4u);
	float* c = r.c + q.column;
	float v[4] = {sums.x, sums.y, sums.z, sums.w};
	const float w[4] = {was.x, was.y, was.z, was.w};
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		v[i] = unscale(v[i], r.scale, q.scale[i]);
		if (q.dual >> i & 1) {
			c[(int64_t)i + a.DualShift] = r.counts ? v[i] + a.Dual[q.column + i - a.DualFrom] : 0.0f;
		}
		if (a.Residual.P != nullptr && i < left) {
			v[i] += a.Residual.P[r.item * a.Residual.Batch + r.within * a.Residual.Row + q.column + i];
		}
		v[i] += q.bias[i];
		if (Light) v[i] = apply_light(a.Epilogue, v[i], w[i]);
	}
	if (!Light) apply_heavy(a.Epilogue, v, w);
	if (!r.counts) v[0] = v[1] = v[2] = v[3] = 0.0f;
	if (vectors && left == 4) {
		store4(c, {v[0], v[1], v[2], v[3]});
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		if (i < left) c[i] = v[i];
	}
}

// leave_row returns the scale of a row of halves that the results of products are, and stores
// its inverse if the tile begins with the first column.
__device__ inline float leave_row(const Tile& a, const Row& r, bool begins) {
	const uint32_t number = r.item * a.ItemRows + r.within;
	const Scale s = scale_of(fminf(fmaf(a.Norms[number], a.Reach, a.Lift), a.Most));
	if (begins) a.Scales[number] = s.inverse;
	return s.factor;
}

// usual reports whether results need no more than scales, biases and an epilogue that is not
// in place.
__device__ inline bool usual(const Tile& a) {
	return a.Dual == nullptr && a.Residual.P == nullptr && a.LengthStride == 0 && !in_place(a.Epilogue);
}

// store_usual is store for those, on whose epilogue it was decided before.
template <bool Half, class Epilogue>
__device__ inline void store_usual(const Tile& a, const Row& r, const Quad& q, float scale, float factor, float4 sums, bool vectors, Epilogue epilogue) {
	if (r.c == nullptr || q.column >= a.Columns) return;
	float v[4] = {
	    unscale(sums.x, scale, q.scale[0]) + q.bias[0], unscale(sums.y, scale, q.scale[1]) + q.bias[1],
	    unscale(sums.z, scale, q.scale[2]) + q.bias[2], unscale(sums.w, scale, q.scale[3]) + q.bias[3]};
	epilogue(v);
	if (Half) {  // columns come in eights
		half* c = reinterpret_cast<half*>(r.c) + q.column;
		*reinterpret_cast<uint2*>(c) = {pack_half(v[0] * factor, v[1] * factor), pack_half(v[2] * factor, v[3] * factor)};
		return;
	}
	const uint32_t left = a.Columns - q.column;
	if (vectors && left >= 4) {
		store4(r.c + q.column, {v[0], v[1], v[2], v[3]});
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		if (i < left) r.c[q.column + i] = v[i];
	}
}

// silu_near is silu, off by 3e-7 of it at most where F16 still holds it: without branches, which
// keep one value waiting for the other.
__device__ inline float silu_near(float v) { return (v < -87.0f ? -87.0f : v) * reciprocal_flush(1.0f + exp2_flush(v * -1.44269504088896340736f)); }

// store_usual_rows is store_rows for those. What rows need is fetched by a lane for each, so
// that nothing waits for memory row by row.
template <bool Half, uint32_t Step, class RowOf, class SumsOf, class Epilogue>
__device__ inline void store_usual_rows(const Tile& a, const Quad& q, uint32_t first, uint32_t end, RowOf row, SumsOf sums, Epilogue epilogue) {
	static_assert(32 % Step == 0, "lanes of a step have rows that lanes fetched");
	const bool vectors = quads(a), begins = Half && shfl(q.column, 0) == 0;
#pragma unroll 1
	for (uint32_t base = 0; base < end; base += 32) {
		float scales = 1.0f, factors = 1.0f;
		if (base + lane_id() < end) {
			const Row r = row(base + lane_id());
			scales = r.scale;
			if (Half && r.c != nullptr) factors = leave_row(a, r, begins);
		}
#pragma unroll 1
		for (uint32_t i = 0; i < 32 && base + i < end; i += Step) {
			const float scale = shfl(scales, i + first), factor = Half ? shfl(factors, i + first) : 1.0f;
			if (base + i + first >= end) continue;
			store_usual<Half>(a, row(base + i + first), q, scale, factor, sums(base + i + first), vectors, epilogue);
		}
	}
}
template <bool Half, uint32_t Step, class RowOf, class SumsOf>
__device__ inline void store_usual_rows(const Tile& a, const Quad& q, uint32_t first, uint32_t end, RowOf row, SumsOf sums) {
	if (a.Epilogue.Kind == KindGELU) {
		store_usual_rows<Half, Step>(a, q, first, end, row, sums, [](float (&v)[4]) {
#pragma unroll
			for (int i = 0; i < 4; i++) v[i] = gelu(v[i]);
		});
	} else if (Half && a.Epilogue.Kind == KindSiLU) {
		store_usual_rows<Half, Step>(a, q, first, end, row, sums, [](float (&v)[4]) {
#pragma unroll
			for (int i = 0; i < 4; i++) v[i] = silu_near(v[i]);
		});
	} else if (Half && light(a.Epilogue)) {
		store_usual_rows<Half, Step>(a, q, first, end, row, sums, [&](float (&v)[4]) {
#pragma unroll
			for (int i = 0; i < 4; i++) v[i] = apply_light(a.Epilogue, v[i], 0.0f);
		});
	} else {
		store_usual_rows<Half, Step>(a, q, first, end, row, sums, [&](float (&v)[4]) { apply_heavy(a.Epilogue, v, {}); });
	}
}

// store_rows writes the results of the rows first, first + Step and so on below `end`, for
// four columns; all lanes of a warp take part. Rows and their sums are given by functions of
// their number. Several rows wait for memory together.
template <uint32_t Step, int Several, class RowOf, class SumsOf>
__device__ inline void store_rows(const Tile& a, const Quad& q, uint32_t first, uint32_t end, RowOf row, SumsOf sums) {
	if (a.Scales != nullptr) {
		store_usual_rows<true, Step>(a, q, first, end, row, sums);
		return;
	}
	if (!light(a.Epilogue) && usual(a)) {
		store_usual_rows<false, Step>(a, q, first, end, row, sums);
		return;
	}
	const bool vectors = quads(a);
	if (!light(a.Epilogue)) {
#pragma unroll 1
		for (uint32_t i = first; i < end; i += Step) {
			const Row r = row(i);
			store<false>(a, r, q, vectors, sums(i), before(a, r, q, vectors));
		}
		return;
	}
#pragma unroll 1
	for (uint32_t i = first; i < end; i += Several * Step) {
		Row r[Several];
		float4 was[Several];
#pragma unroll
		for (int j = 0; j < Several; j++) {
			r[j] = {nullptr, 0, 0, 1.0f, true};
			if (i + j * Step < end) r[j] = row(i + j * Step);
			was[j] = before(a, r[j], q, vectors);
		}
#pragma unroll
		for (int j = 0; j < Several; j++) {
			if (i + j * Step < end) store<true>(a, r[j], q, vectors, sums(i + j * Step), was[j]);
		}
	}
}

// plain reports whether the results of a tile of so many columns need no more than scales,
// biases and a residual in place, and pairs of columns are aligned. Then they are stored
// from the registers in which products leave them: each four lanes write 32 bytes that
// follow each other, which is what memory takes at once. There is little code on this way,
// since what a block does once it must also fetch.
__device__ inline bool plain(const Tile& a, uint32_t column, uint32_t columns) {
	return (a.Epilogue.Kind == KindNone || a.Epilogue.Kind == KindResidual) && a.Dual == nullptr && a.Residual.P == nullptr &&
	       a.LengthStride == 0 && a.Scales == nullptr && column + columns <= a.Columns && is_aligned(a.C.P, 8) && a.C.Row % 2 == 0 && a.C.Batch % 2 == 0;
}

// A Line is where a plain row of results goes.
struct Line {
	float* c;  // nullptr: not a row of the product
	float scale;
};

__device__ inline Line line_of(const Tile& a, uint32_t item, uint32_t within) {
	if (within >= a.ItemRows) return {nullptr, 1.0f};
	return {a.C.P + item * a.C.Batch + within * a.C.Row, a.AScale[a.ScaleRows == 1 ? item * a.ItemRows + within : item]};
}
__device__ inline Line line_of(const Tile& a, uint32_t row) {
	if (row >= a.Rows) return {nullptr, 1.0f};
	const uint32_t item = row / a.ItemRows;
	return line_of(a, item, row - item * a.ItemRows);
}

// store_plain writes Groups groups of eight columns of two rows, as products leave them:
// sums[4·n] and the next are columns 8·n and 8·n + 1 from the lane's own on of the first
// row, the two after them those of the second.
template <int Groups, bool InPlace>
__device__ inline void store_plain(const Tile& a, const Line (&lines)[2], uint32_t column, const float* sums) {
	constexpr int Several = Groups < 4 ? Groups : 4;  // that wait for memory together
#pragma unroll
	for (int n = 0; n < Groups; n += Several) {
		float2 scale[Several], bias[Several], was[Several][2];
#pragma unroll
		for (int j = 0; j < Several; j++) {
			const uint32_t at = column + 8 * (n + j);
			scale[j] = a.BScale != nullptr ? load2(a.BScale + at) : float2{1.0f, 1.0f};
			bias[j] = a.Bias != nullptr ? float2{a.Bias[at], a.Bias[at + 1]} : float2{};
#pragma unroll
			for (int r = 0; r < 2; r++) {
				if (InPlace && lines[r].c != nullptr) was[j][r] = load2(lines[r].c + at);
			}
		}
#pragma unroll
		for (int j = 0; j < Several; j++) {
			const uint32_t at = column + 8 * (n + j);
#pragma unroll
			for (int r = 0; r < 2; r++) {
				if (lines[r].c == nullptr) continue;
				const float* s = sums + 4 * (n + j) + 2 * r;
				float2 v{unscale(s[0], lines[r].scale, scale[j].x) + bias[j].x, unscale(s[1], lines[r].scale, scale[j].y) + bias[j].y};
				if (InPlace) v = {fmaf(a.Epilogue.Alpha, v.x, was[j][r].x), fmaf(a.Epilogue.Alpha, v.y, was[j][r].y)};
				store2(lines[r].c + at, v);
			}
		}
	}
}
template <int Groups>
__device__ inline void store_plain(const Tile& a, const Line& first, const Line& second, uint32_t column, const float* sums) {
	const Line lines[2] = {first, second};
	if (in_place(a.Epilogue)) {
		store_plain<Groups, true>(a, lines, column, sums);
	} else {
		store_plain<Groups, false>(a, lines, column, sums);
	}
}

// sum adds the parts of a product in their order. A thread has four columns of a row;
// blocks are numbered over all of those.
__device__ inline void sum(const Tile& a) {
	release_dependents();
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
	const Row r = row_of(a, row);
	const Quad q = quad_of(a, column);
	const float4 sums = {total[0], total[1], total[2], total[3]}, was = before(a, r, q, quads(a));
	if (a.Scales != nullptr) {
		const float factor = leave_row(a, r, column == 0);
		store_usual<true>(a, r, q, r.scale, factor, sums, true, [&](float (&v)[4]) {
			if (!light(a.Epilogue)) return apply_heavy(a.Epilogue, v, {});
#pragma unroll
			for (int i = 0; i < 4; i++) v[i] = apply_light(a.Epilogue, v[i], 0.0f);
		});
	} else if (light(a.Epilogue)) {
		store<true>(a, r, q, quads(a), sums, was);
	} else {
		store<false>(a, r, q, quads(a), sums, was);
	}
}

}  // namespace tile
