// What the kernels of attention share.
#pragma once

#include "fragment.cuh"

namespace attention {

constexpr int BlockRows = 64;  // AttentionBlock

// Scores of keys that a query does not see.
__device__ inline float unseen() { return -infinity(); }

__device__ inline bool finite(float v) { return (bits_of(v) & 0x7f800000u) != 0x7f800000u; }

// magnitude returns |v|, 0 for what is not finite: such numbers have no part in scales.
__device__ inline float magnitude(float v) { return finite(v) ? fabsf(v) : 0.0f; }

// A Power is a power of two that brings numbers up to a largest magnitude to 2^14 up to
// 2^15, where halves have all their digits, and the one that turns them back. Both are
// normal.
struct Power {
	float up, down;
};

__device__ inline Power power_for(float largest) {
	const uint32_t exponent = bits_of(largest) >> 23;
	const uint32_t up = min(268u - exponent, 253u);
	return {float_of(up << 23), float_of((254u - up) << 23)};
}

// rest returns what rounding to a half takes away, and nothing where that is no number.
__device__ inline float rest(float v) {
	const float r = v - to_float(to_half(v));
	return finite(r) ? r : 0.0f;
}

// weight_of returns 2^x for x of at most a few tens, to a relative 2^−22. Results below the
// smallest normal number become 0, which saves the instructions that denormals take.
__device__ inline float weight_of(float x) {
#ifdef TANDEM_EMULATED
	return x < -126.0f ? 0.0f : exp2_approx(x);
#else
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
#endif
}

// keys_of returns how many keys an item has.
template <typename Args>
__device__ inline uint32_t keys_of(const Args& a, uint32_t item) {
	return min(min(index_of(a.KeyNumbers, item), count_of(a.KeyLengths, item)), a.Most);
}

// load_quad returns four elements, of which all are there. vectors says that they are
// aligned to their size.
__device__ inline float4 load_quad(const float* p, bool vectors) {
	if (vectors) return load4(p);
	return {p[0], p[1], p[2], p[3]};
}
__device__ inline float4 load_quad(const half* p, bool vectors) {
	if (!vectors) return {to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])};
	const uint2 w = *reinterpret_cast<const uint2*>(p);
	const float2 a = unpack_half(w.x), b = unpack_half(w.y);
	return {a.x, a.y, b.x, b.y};
}

// quads_aligned reports whether all rows of quads are aligned to the size of a quad.
template <typename T>
__device__ inline bool quads_aligned(const T* p, int64_t row, int64_t head, int64_t item) {
	return is_aligned(p, 4 * sizeof(T)) && ((row | head | item) & 3) == 0;
}

}  // namespace attention
