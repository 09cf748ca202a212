// F32 and weights of all types as operands of products: F16, scaled by powers of two; see
// Prepare and Narrow in tile.go.
//
// A value x becomes high = half(s·x) and low = half(s·x − high), which together have 22
// bits of it. s brings the largest value of a row into [2^14, 2^15): nothing overflows, and
// what is lost below is 2^-38 of the largest value.
#pragma once

#include "device.cuh"

namespace tile {

// A Scale is a power of two and its inverse. Both are normal numbers.
struct Scale {
	float factor, inverse;
};

__device__ inline Scale scale_of(float peak) {
	const int exponent = min(14 - ((int)(bits_of(peak) >> 23) - 127), 126);
	return {float_of((uint32_t)(exponent + 127) << 23), float_of((uint32_t)(127 - exponent) << 23)};
}

// peak_of returns the larger of a peak and the magnitude of a value, if that is finite.
__device__ inline float peak_of(float peak, float v) {
	const uint32_t bits = bits_of(v) & 0x7fffffffu;
	return bits < 0x7f800000u ? fmaxf(peak, float_of(bits)) : peak;
}
__device__ inline float peak_of(float peak, float4 v) {
	return peak_of(peak_of(peak_of(peak_of(peak, v.x), v.y), v.z), v.w);
}

// parts returns the high and low parts of two values. What is not finite has no low part.
__device__ inline uint2 parts(float a, float b) {
	const uint32_t high = pack_half(a, b);
	const float2 h = unpack_half(high);
	const float x = a - h.x, y = b - h.y;
	const bool fx = (bits_of(h.x) & 0x7f800000u) != 0x7f800000u, fy = (bits_of(h.y) & 0x7f800000u) != 0x7f800000u;
	return {high, pack_half(fx ? x : 0.0f, fy ? y : 0.0f)};
}

// put stores the parts of four values at an element that is a multiple of four.
__device__ inline void put(half* high, half* low, int64_t at, float4 v, float factor) {
	const uint2 a = parts(v.x * factor, v.y * factor), b = parts(v.z * factor, v.w * factor);
	if (high != nullptr) *reinterpret_cast<uint2*>(high + at) = {a.x, b.x};
	if (low != nullptr) *reinterpret_cast<uint2*>(low + at) = {a.y, b.y};
}

// take returns the elements [column, column + 4) of a row of that many columns, zeros
// beyond its end.
__device__ inline float4 take(const float* row, uint32_t column, uint32_t columns, bool vectors) {
	if (vectors && column + 4 <= columns) return load4(row + column);
	float4 v{};
	if (column < columns) v.x = row[column];
	if (column + 1 < columns) v.y = row[column + 1];
	if (column + 2 < columns) v.z = row[column + 2];
	if (column + 3 < columns) v.w = row[column + 3];
	return v;
}

__device__ inline bool vectors(const View& x) { return is_aligned(x.P, 16) && x.Row % 4 == 0 && x.Batch % 4 == 0; }

// squares adds the squares of four values to a sum.
__device__ inline float squares(float sum, float4 v) { return fmaf(v.x, v.x, fmaf(v.y, v.y, fmaf(v.z, v.z, fmaf(v.w, v.w, sum)))); }

__device__ inline float4 times(float4 v, float f) { return {v.x * f, v.y * f, v.z * f, v.w * f}; }

// norm_of returns the length of a row as a vector, from the sum of the squares of its scaled
// values. It is finite, whatever those are.
__device__ inline float norm_of(float sum, Scale s) { return fminf(sqrtf(sum) * s.inverse, float_of(0x7f7fffffu)); }

// source returns the row of an item's image in X that a row of the prepared image comes
// from, or −1 if it is zero.
__device__ inline int64_t source(const Prepare& a, uint32_t item, uint32_t row) {
	const uint32_t line = a.Width == 1 ? row : row / a.Width;  // divisions take longer than most of what follows
	const int64_t x = (int64_t)(row - line * a.Width) + a.Left, lines = count_of(a.Lengths, item);
	int64_t y = line + a.Top;
	if (a.Reflect) {
		if (y < 0) y = -y;
		if (y >= lines) y = 2 * (lines - 1) - y;
	}
	return x >= 0 && x < a.InWidth && y >= 0 && y < lines ? y * a.InWidth + x : -1;
}

// team_max returns the largest value of a team: a warp or the block.
template <int Lanes>
__device__ inline float team_max(float v) {
	if constexpr (Lanes == 32) {
		return warp_max(v);
	} else {
		return block_max<Lanes>(v);
	}
}

// team_norm returns the length of a row as a vector, from a thread's sum of the squares of its
// scaled values. It is finite, whatever those are.
template <int Lanes>
__device__ inline float team_norm(float sum, Scale s) {
	if constexpr (Lanes == 32) {
		sum = warp_sum(sum);
	} else {
		sum = block_sum<Lanes>(sum);
	}
	return norm_of(sum, s);
}

// A Spread is a row in the registers of a team of Lanes threads: quads of it, of which most
// rows have far fewer than there is room for. All quads are whole, and aligned.
template <int Lanes, int Held>
struct Spread {
	float4 quads[Held];

	__device__ void load(const float* x, uint32_t columns) {
		const uint32_t first = 4 * (threadIdx.x % Lanes);
		x += first;
#pragma unroll
		for (int i = 0; i < Held; i++) {
			if (4 * i * Lanes >= columns) break;
			quads[i] = first + 4 * i * Lanes < columns ? load_once(x + 4 * i * Lanes) : float4{};
		}
	}

	// peak returns the largest magnitude. Values that are not finite are looked for only
	// where there are some.
	__device__ float peak(uint32_t columns) const {
		float all = 0.0f;
#pragma unroll
		for (int i = 0; i < Held; i++) {
			if (4 * i * Lanes >= columns) break;
			const float4 v = quads[i];
			all = fmaxf(fmaxf(fmaxf(all, fabsf(v.x)), fmaxf(fabsf(v.y), fabsf(v.z))), fabsf(v.w));
		}
		all = team_max<Lanes>(all);
		if (all < infinity()) return all;
		all = 0.0f;
#pragma unroll
		for (int i = 0; i < Held; i++) {
			if (4 * i * Lanes >= columns) break;
			all = peak_of(all, quads[i]);
		}
		return team_max<Lanes>(all);
	}

	// squared returns the sum of the squares of this thread's values, scaled.
	__device__ float squared(uint32_t columns, float factor) const {
		float sum = 0.0f;
#pragma unroll
		for (int i = 0; i < Held; i++) {
			if (4 * i * Lanes >= columns) break;
			sum = squares(sum, times(quads[i], factor));
		}
		return sum;
	}

	template <bool Split>
	__device__ void store(half* high, half* low, uint32_t columns, uint32_t stride, float factor) const {
		const uint32_t first = 4 * (threadIdx.x % Lanes);
#pragma unroll
		for (int i = 0; i < Held; i++) {
			if (4 * i * Lanes >= columns) break;
			if (first + 4 * i * Lanes < stride) put(high + first, Split ? low + first : nullptr, 4 * i * Lanes, quads[i], factor);
		}
	}
};

// prepare_rows prepares rows with a scale each. Teams of Lanes threads, a warp or the
// block, have a row each; what does not fit their registers is read twice.
template <int Lanes>
__device__ void prepare_rows(const Prepare& a) {
	constexpr int Held = Lanes == 32 ? 12 : 8;
	release_dependents();
	const uint32_t lane = threadIdx.x % Lanes;
	const uint32_t each = a.Lines * a.Width;
	const uint32_t number = blockIdx.x * (blockDim.x / Lanes) + threadIdx.x / Lanes;
	const bool some = number < a.Items * each;
	if (Lanes == 32 && !some) return;
	const uint32_t item = a.Items == 1 ? 0 : number / each;
	const int64_t from = source(a, item, number - item * each);
	const uint32_t columns = from < 0 ? 0 : a.Columns;
	const float* x = a.X.P + (int64_t)item * a.X.Batch + from * a.X.Row;
	const bool wide = vectors(a.X);
	const int64_t to = (int64_t)number * a.Stride;

	if (wide && columns > 0 && columns % 4 == 0 && columns <= 4 * Held * Lanes) {
		Spread<Lanes, Held> row;
		row.load(x, columns);
		const Scale s = scale_of(row.peak(columns));
		if (lane == 0) a.Scales[number] = s.inverse;
		if (a.Low != nullptr) {
			row.template store<true>(a.High + to, a.Low + to, columns, a.Stride, s.factor);
		} else {
			row.template store<false>(a.High + to, nullptr, columns, a.Stride, s.factor);
		}
		if (a.Norms == nullptr) return;
		const float norm = team_norm<Lanes>(row.squared(columns, s.factor), s);
		if (lane == 0) a.Norms[number] = norm;
		return;
	}

	float4 held[Held];
	float peak = 0.0f;
#pragma unroll
	for (int i = 0; i < Held; i++) held[i] = take(x, 4 * (lane + i * Lanes), columns, wide);
#pragma unroll
	for (int i = 0; i < Held; i++) peak = peak_of(peak, held[i]);
	for (uint32_t c = 4 * (lane + Held * Lanes); c < columns; c += 4 * Lanes) peak = peak_of(peak, take(x, c, columns, wide));
	peak = team_max<Lanes>(peak);
	const Scale s = scale_of(peak);
	if (lane == 0) a.Scales[number] = s.inverse;

#pragma unroll
	for (int i = 0; i < Held; i++) {
		const uint32_t c = 4 * (lane + i * Lanes);
		if (c < a.Stride) put(a.High, a.Low, to + c, held[i], s.factor);
	}
	for (uint32_t c = 4 * (lane + Held * Lanes); c < a.Stride; c += 4 * Lanes) {
		put(a.High, a.Low, to + c, take(x, c, columns, wide), s.factor);
	}
	if (a.Norms == nullptr) return;
	float sum = 0.0f;
#pragma unroll
	for (int i = 0; i < Held; i++) sum = squares(sum, times(held[i], s.factor));
	for (uint32_t c = 4 * (lane + Held * Lanes); c < columns; c += 4 * Lanes) sum = squares(sum, times(take(x, c, columns, wide), s.factor));
	const float norm = team_norm<Lanes>(sum, s);
	if (lane == 0) a.Norms[number] = norm;
}

// peaks finds the largest magnitude of a part of an item: blocks are numbered by item and
// part.
__device__ inline void peaks(const Prepare& a) {
	release_dependents();
	const uint32_t item = blockIdx.x / a.Parts, part = blockIdx.x - item * a.Parts;
	const uint32_t each = ceil_div(a.Columns, 4u);
	const uint64_t all = (uint64_t)count_of(a.Lengths, item) * a.InWidth * each;
	const uint64_t end = all * (part + 1) / a.Parts;
	const float* x = a.X.P + (int64_t)item * a.X.Batch;
	const bool wide = vectors(a.X);
	float peak = 0.0f;
	for (uint64_t i = all * part / a.Parts + threadIdx.x; i < end; i += 256) {
		const uint64_t row = i / each;
		peak = peak_of(peak, take(x + row * a.X.Row, 4 * (uint32_t)(i - row * each), a.Columns, wide));
	}
	peak = block_max<256>(peak);
	if (threadIdx.x == 0) a.Peaks[blockIdx.x] = peak;
}

// prepare_items prepares items with a scale each. Blocks are numbered by item and by 1024
// groups of eight elements within it.
__device__ inline void prepare_items(const Prepare& a) {
	release_dependents();
	const uint32_t groups = (uint32_t)(a.Stride / 8);
	const uint64_t all = (uint64_t)a.Lines * a.Width * groups;
	const uint32_t blocks = (uint32_t)ceil_div(all, (uint64_t)1024);
	const uint32_t item = blockIdx.x / blocks, block = blockIdx.x - item * blocks;
	float peak = 0.0f;
	for (uint32_t i = threadIdx.x; i < a.Parts; i += 256) peak = fmaxf(peak, a.Peaks[item * a.Parts + i]);
	const Scale s = scale_of(block_max<256>(peak));
	if (block == 0 && threadIdx.x == 0) a.Scales[item] = s.inverse;
	const bool wide = vectors(a.X);
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		const uint64_t group = (uint64_t)block * 1024 + i * 256 + threadIdx.x;
		if (group >= all) return;
		const uint32_t row = (uint32_t)(group / groups), column = 8 * (uint32_t)(group - (uint64_t)row * groups);
		const int64_t from = source(a, item, row);
		const uint32_t columns = from < 0 ? 0 : a.Columns;
		const float* x = a.X.P + (int64_t)item * a.X.Batch + from * a.X.Row;
		const int64_t to = ((int64_t)item * a.Lines * a.Width + row) * a.Stride + column;
		put(a.High, a.Low, to, take(x, column, columns, wide), s.factor);
		put(a.High, a.Low, to + 4, take(x, column + 4, columns, wide), s.factor);
	}
}

// narrow makes one row of a matrix a block.
template <class Type>
__device__ void narrow(const Narrow& a) {
	const uint32_t row = blockIdx.x;
	const Type from(a.Values, a.BlockScales, row * a.From);
	float peak = 0.0f;
	for (uint32_t c = 4 * threadIdx.x; c < a.Columns; c += 1024) peak = peak_of(peak, from.four(c));
	const Scale s = scale_of(block_max<256>(peak));
	if (threadIdx.x == 0 && a.High != nullptr) a.Scales[row] = s.inverse;
	float sum = 0.0f;
	for (uint32_t c = 4 * threadIdx.x; c < a.Stride; c += 1024) {
		const float4 v = c < a.From ? from.four(c) : float4{};
		put(a.High, a.Low, row * a.Stride + c, v, s.factor);
		sum = squares(sum, times(v, s.factor));
	}
	if (a.Norms == nullptr) return;
	const float norm = team_norm<256>(sum, s);
	if (threadIdx.x == 0) a.Norms[row] = norm;
}

}  // namespace tile
