// What the norms have in common.
#pragma once
#include "rows.cuh"
#include "tile_prepare.cuh"

namespace norms {

__device__ inline float4 plus(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ inline float4 minus(float4 a, float b) { return {a.x - b, a.y - b, a.z - b, a.w - b}; }
__device__ inline float4 times(float4 a, float b) { return {a.x * b, a.y * b, a.z * b, a.w * b}; }

__device__ inline float4 square(float4 v, float4 sum) {
	return {fmaf(v.x, v.x, sum.x), fmaf(v.y, v.y, sum.y), fmaf(v.z, v.z, sum.z), fmaf(v.w, v.w, sum.w)};
}

// A Deviation adds up distances from a rough mean, and their squares.
struct Deviation {
	float4 rest = {0.0f, 0.0f, 0.0f, 0.0f}, squares = {0.0f, 0.0f, 0.0f, 0.0f};

	// of counts the elements of a quad that are within the row, and returns their distances.
	__device__ float4 of(float4 v, float rough, int64_t left) {
		v = rows::within(minus(v, rough), left, 0.0f);
		rest = plus(rest, v);
		squares = square(v, squares);
		return v;
	}

	__device__ float2 sums() const { return {rows::across(rest), rows::across(squares)}; }
};

// scale_of returns 1/sqrt(variance + eps). A variance below 0 is a rounding error; NaN
// stays.
__device__ inline float scale_of(float variance, float eps) { return 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + eps); }

__device__ inline float turn_low(float a, float b, float cosine, float sine) { return fmaf(a, cosine, -(b * sine)); }
__device__ inline float turn_high(float a, float b, float cosine, float sine) { return fmaf(b, cosine, a * sine); }

// weighed applies gain and bias to a quad of columns. Both are filled up to whole vectors.
template <class A>
__device__ float4 weighed(const A& a, int64_t column, float4 v, float mean, float scale) {
	const float4 g = load4(a.Gain + column);
	v = times(minus(v, mean), scale);
	if (a.Bias == nullptr) return {v.x * g.x, v.y * g.y, v.z * g.z, v.w * g.w};
	const float4 b = load4(a.Bias + column);
	return {fmaf(v.x, g.x, b.x), fmaf(v.y, g.y, b.y), fmaf(v.z, g.z, b.z), fmaf(v.w, g.w, b.w)};
}

// store_halves stores a row that a team has in registers as the left operand of products,
// with the bits that preparing it from memory would give.
template <class T, int Lanes, int Held>
__device__ void store_halves(const Halves& to, float4 (&v)[Held], uint32_t number, uint32_t cols) {
	float peak = 0.0f;
#pragma unroll
	for (int i = 0; i < Held; i++) {
		v[i] = rows::within(v[i], (int64_t)cols - 4 * (int64_t)(T::lane() + i * Lanes), 0.0f);
		peak = fmaxf(peak, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
	}
	peak = T::template largest<2>(peak);
	if (!(peak < infinity())) { // what is not finite does not count
		peak = 0.0f;
#pragma unroll
		for (int i = 0; i < Held; i++) peak = tile::peak_of(peak, v[i]);
		peak = T::template largest<3>(peak);
	}
	const tile::Scale s = tile::scale_of(peak);
	float4 squares = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
	for (int i = 0; i < Held; i++) {
		const uint32_t column = 4 * (T::lane() + i * Lanes);
		if (column < to.Stride) tile::put(to.High, to.Low, number * to.Stride + column, v[i], s.factor);
		squares = square(times(v[i], s.factor), squares);
	}
	if (T::lane() == 0) to.Scales[number] = s.inverse;
	if (to.Norms == nullptr) return;
	const float sum = T::template total<2>(rows::across(squares));
	if (T::lane() == 0) to.Norms[number] = tile::norm_of(sum, s);
}

}  // namespace norms
