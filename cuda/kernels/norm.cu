// LayerNorm, L2Norm, GroupNorm and PoolNorm.
#include "norm.cuh"

namespace norms {

// turn_row stores a row of y a second time with its heads turned, in quads where the host
// found that pairs lie in quads.
template <class T, int Lanes>
__device__ void turn_row(const LayerNorm& a, const float* y, uint32_t item, uint32_t row) {
	T::sync(); // the row was stored by all threads of the team
	uint32_t place;
	if (!rows::place_of(a.Pos, item, place)) return;
	const float* cosines = a.Table + ((int64_t)place + a.Pos.Added + row) * (2 * a.Half);
	const float* sines = cosines + a.Half;
	float* to = rows::at(a.Rotated, item, row, 0);
	if (a.Vectors & rows::VectorB) {
		for (uint32_t c = 4 * T::lane(); c < a.Cols; c += 4 * Lanes) {
			const uint32_t at = c % a.Head;
			float4 v = load4(y + c);
			if (at < a.Half) {
				const float4 w = load4(y + c + a.Half), co = load4(cosines + at), si = load4(sines + at);
				v = {turn_low(v.x, w.x, co.x, si.x), turn_low(v.y, w.y, co.y, si.y), turn_low(v.z, w.z, co.z, si.z), turn_low(v.w, w.w, co.w, si.w)};
			} else if (at < 2 * a.Half) {
				const float4 w = load4(y + c - a.Half), co = load4(cosines + at - a.Half), si = load4(sines + at - a.Half);
				v = {turn_high(w.x, v.x, co.x, si.x), turn_high(w.y, v.y, co.y, si.y), turn_high(w.z, v.z, co.z, si.z), turn_high(w.w, v.w, co.w, si.w)};
			}
			store4(to + c, v);
		}
		return;
	}
	for (uint32_t c = T::lane(); c < a.Cols; c += Lanes) {
		const uint32_t at = c % a.Head;
		float v = y[c];
		if (at < a.Half) v = turn_low(v, y[c + a.Half], cosines[at], sines[at]);
		else if (at < 2 * a.Half) v = turn_high(y[c - a.Half], v, cosines[at - a.Half], sines[at - a.Half]);
		to[c] = v;
	}
}

// A row a warp or a block, held in registers. The mean is taken, then what remains of the
// mean and the variance about it in one go, so that an offset costs no digits. With AsHalves
// the row is left as those, too, and as F32 only if Y is there.
template <int Threads, int Lanes, int Held, bool AsHalves>
__device__ void layer(const LayerNorm& a) {
	using T = rows::Team<Threads, Lanes>;
	release_dependents();
	if (T::row() >= a.Count) return;
	uint32_t item, row;
	rows::split(a, T::row(), item, row);
	const float count = (float)a.Cols;
	float4 v[Held];
	rows::take<Lanes>(v, rows::at(a.X, item, row, 0), T::lane(), a.Cols, a.Vectors & rows::VectorX);
	float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int i = 0; i < Held; i++) sum = plus(sum, v[i]);
	const float rough = T::template total<0>(rows::across(sum)) / count;
	Deviation d;
#pragma unroll
	for (int i = 0; i < Held; i++) v[i] = d.of(v[i], rough, (int64_t)a.Cols - 4 * (int64_t)(T::lane() + i * Lanes));
	const float2 second = T::template total<1>(d.sums());
	const float fine = second.x / count, scale = scale_of(second.y / count - fine * fine, a.Eps);
	float* y = rows::at(a.Y, item, row, 0);
	// Gains of some quads are loaded before the first of them is stored: no load passes a
	// store.
	constexpr int Batch = Held % 5 == 0 ? 5 : Held % 3 == 0 ? 3 : 2;
	static_assert(Held % Batch == 0, "whole batches");
#pragma unroll
	for (int from = 0; from < Held; from += Batch) {
#pragma unroll
		for (int i = from; i < from + Batch; i++) {
			const uint32_t column = 4 * (T::lane() + i * Lanes);
			if (column < a.Cols) v[i] = weighed(a, column, v[i], fine, scale);
		}
#pragma unroll
		for (int i = from; i < from + Batch; i++) {
			const uint32_t column = 4 * (T::lane() + i * Lanes);
			if (column < a.Cols && (!AsHalves || a.Y.P != nullptr)) rows::store(y + column, a.Cols - column, a.Vectors & rows::VectorY, v[i]);
		}
	}
	if (AsHalves) store_halves<T, Lanes>(a.Halves, v, T::row(), a.Cols);
	if (a.Rotated.P != nullptr) turn_row<T, Lanes>(a, y, item, row);
}

// quads calls f with each of a block's quads of a row, four at a time and thread, and the
// column where it begins.
template <int Threads, class F>
__device__ void quads(const float* x, uint32_t cols, bool wide, F f) {
	for (uint32_t first = threadIdx.x; 4 * (int64_t)first < cols; first += 4 * Threads) {
		float4 v[4];
		rows::take<Threads>(v, x, first, cols, wide);
#pragma unroll
		for (int i = 0; i < 4; i++) f(v[i], 4 * (int64_t)(first + i * Threads));
	}
}

// The same for rows of any length, which are read three times.
template <int Threads>
__device__ void layer_long(const LayerNorm& a) {
	using T = rows::Team<Threads, Threads>;
	release_dependents();
	uint32_t item, row;
	rows::split(a, T::row(), item, row);
	const float count = (float)a.Cols;
	const float* x = rows::at(a.X, item, row, 0);
	const bool wide = a.Vectors & rows::VectorX;
	float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
	quads<Threads>(x, a.Cols, wide, [&](float4 v, int64_t) { sum = plus(sum, v); });
	const float rough = T::template total<0>(rows::across(sum)) / count;
	Deviation d;
	quads<Threads>(x, a.Cols, wide, [&](float4 v, int64_t column) { d.of(v, rough, a.Cols - column); });
	const float2 second = T::template total<1>(d.sums());
	const float fine = second.x / count, scale = scale_of(second.y / count - fine * fine, a.Eps);
	float* y = rows::at(a.Y, item, row, 0);
	quads<Threads>(x, a.Cols, wide, [&](float4 v, int64_t column) {
		if (column < a.Cols) rows::store(y + column, a.Cols - column, a.Vectors & rows::VectorY, weighed(a, column, minus(v, rough), fine, scale));
	});
	if (a.Rotated.P != nullptr) turn_row<T, Threads>(a, y, item, row);
}

// A Length is what an L2Norm multiplies by: down, a power of two which makes the largest
// element about one, so that squares neither overflow nor vanish, and then scale.
struct Length {
	float down, scale;
};

__device__ inline float down_of(uint32_t size) {
	return float_of(0x7f000000u - min(max(size & 0x7f800000u, 0x00800000u), 0x7e000000u));
}

__device__ inline Length length_of(float down, float sum, float eps) {
	const float length = fmaxf(sqrtf(sum), eps * down);
	return {down, is_nan(sum) ? sum : 1.0f / length};
}

__device__ inline uint32_t size_of(float4 v) {
	const uint32_t a = max(bits_of(v.x) & 0x7fffffffu, bits_of(v.y) & 0x7fffffffu);
	return max(a, max(bits_of(v.z) & 0x7fffffffu, bits_of(v.w) & 0x7fffffffu));
}

// A row a warp or a block, held in registers.
template <int Threads, int Lanes, int Held>
__device__ void length(const L2Norm& a) {
	using T = rows::Team<Threads, Lanes>;
	release_dependents();
	if (T::row() >= a.Count) return;
	uint32_t item, row;
	rows::split(a, T::row(), item, row);
	float4 v[Held];
	rows::take<Lanes>(v, rows::at(a.X, item, row, 0), T::lane(), a.Cols, a.Vectors & rows::VectorX);
	uint32_t size = 0;
#pragma unroll
	for (int i = 0; i < Held; i++) size = max(size, size_of(v[i]));
	const float down = down_of(T::template largest<0>(size));
	float4 squares = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int i = 0; i < Held; i++) {
		v[i] = times(v[i], down);
		squares = square(v[i], squares);
	}
	const Length l = length_of(down, T::template total<1>(rows::across(squares)), a.Eps);
	float* y = rows::at(a.Y, item, row, 0);
#pragma unroll
	for (int i = 0; i < Held; i++) {
		const uint32_t column = 4 * (T::lane() + i * Lanes);
		if (column < a.Cols) rows::store(y + column, a.Cols - column, a.Vectors & rows::VectorY, times(v[i], l.scale));
	}
}

// The same for rows of any length, which are read three times.
template <int Threads>
__device__ void length_long(const L2Norm& a) {
	using T = rows::Team<Threads, Threads>;
	release_dependents();
	uint32_t item, row;
	rows::split(a, T::row(), item, row);
	const float* x = rows::at(a.X, item, row, 0);
	const bool wide = a.Vectors & rows::VectorX;
	uint32_t size = 0;
	quads<Threads>(x, a.Cols, wide, [&](float4 v, int64_t) { size = max(size, size_of(v)); });
	const float down = down_of(T::template largest<0>(size));
	float4 squares = {0.0f, 0.0f, 0.0f, 0.0f};
	quads<Threads>(x, a.Cols, wide, [&](float4 v, int64_t) { squares = square(times(v, down), squares); });
	const Length l = length_of(down, T::template total<1>(rows::across(squares)), a.Eps);
	float* y = rows::at(a.Y, item, row, 0);
	quads<Threads>(x, a.Cols, wide, [&](float4 v, int64_t column) {
		if (column < a.Cols) rows::store(y + column, a.Cols - column, a.Vectors & rows::VectorY, times(times(v, l.down), l.scale));
	});
}

}  // namespace norms

#include "norm_group.cuh"
#include "norm_pool.cuh"
