// Numbers of CUDA on the host: vectors, 16-bit floats, intrinsics.
#pragma once

#include <stdint.h>
#include <string.h>

#include <cmath>

struct alignas(8) float2 {
	float x, y;
};
struct alignas(16) float4 {
	float x, y, z, w;
};
struct alignas(8) int2 {
	int x, y;
};
struct alignas(16) int4 {
	int x, y, z, w;
};
struct alignas(8) uint2 {
	unsigned x, y;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};
struct uint3 {
	unsigned x, y, z;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

template <typename To, typename From>
inline To same_bits(From v) {
	static_assert(sizeof(To) == sizeof(From), "the same size");
	To to;
	memcpy(&to, &v, sizeof to);
	return to;
}

inline uint32_t bits_of(float v) { return same_bits<uint32_t>(v); }
inline float float_of(uint32_t v) { return same_bits<float>(v); }
inline uint32_t __float_as_uint(float v) { return same_bits<uint32_t>(v); }
inline float __uint_as_float(uint32_t v) { return same_bits<float>(v); }
inline int __float_as_int(float v) { return same_bits<int>(v); }
inline float __int_as_float(int v) { return same_bits<float>(v); }

#if defined(__aarch64__)
using float16 = __fp16;
#else
using float16 = _Float16;
#endif

struct half {
	uint16_t bits;
};
struct bf16 {
	uint16_t bits;
};
inline float to_float(half v) { return static_cast<float>(same_bits<float16>(v.bits)); }
inline float to_float(bf16 v) { return float_of(uint32_t(v.bits) << 16); }
inline half to_half(float v) { return {same_bits<uint16_t>(static_cast<float16>(v))}; }
inline bf16 to_bf16(float v) {
	const uint32_t u = bits_of(v);
	if ((u & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
	return {uint16_t((u + 0x7fffu + (u >> 16 & 1)) >> 16)};
}
inline uint32_t pack_half(float a, float b) { return to_half(a).bits | uint32_t(to_half(b).bits) << 16; }
inline uint32_t larger_halves(uint32_t a, uint32_t b) {
	const uint32_t high = 0xffff0000u, m = b & 0x7fff7fffu;  // bits of halves without a sign are in their order
	return ((a & high) > (m & high) ? a & high : m & high) | ((a & 0xffffu) > (m & 0xffffu) ? a & 0xffffu : m & 0xffffu);
}
inline float2 unpack_half(uint32_t v) { return {to_float(half{uint16_t(v)}), to_float(half{uint16_t(v >> 16)})}; }
inline uint32_t pack_bf16(float a, float b) { return to_bf16(a).bits | uint32_t(to_bf16(b).bits) << 16; }
inline float2 unpack_bf16(uint32_t v) { return {float_of(v << 16), float_of(v & 0xffff0000u)}; }

// exp2_approx is wrong in its 22nd bit here too, so that no one counts on more.
inline float exp2_approx(float x) {
	const float y = exp2f(x);
	return std::isnormal(y) ? float_of(bits_of(y) ^ 1u) : y;
}

// So is reciprocal_approx in its last.
inline float reciprocal_approx(float x) {
	const float y = 1.0f / x;
	return std::isnormal(y) ? float_of(bits_of(y) ^ 1u) : y;
}

// flushed is v, or 0 of its sign if v is denormal.
inline float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? copysignf(0.0f, v) : v; }
inline float exp2_flush(float x) { return flushed(exp2_approx(flushed(x))); }
inline float reciprocal_flush(float x) { return flushed(reciprocal_approx(flushed(x))); }

// The compiler may make one operation of two; what these return is rounded for good.
inline float rounded(float v) {
#if defined(__x86_64__)
	asm("" : "+x"(v));
#else
	asm("" : "+w"(v));
#endif
	return v;
}
inline float __fadd_rn(float a, float b) { return rounded(a + b); }
inline float __fsub_rn(float a, float b) { return rounded(a - b); }
inline float __fmul_rn(float a, float b) { return rounded(a * b); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fdiv_rn(float a, float b) { return rounded(a / b); }
inline float __frcp_rn(float a) { return rounded(1.0f / a); }
inline float __fsqrt_rn(float a) { return rounded(sqrtf(a)); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }
inline float rsqrtf(float a) { return 1.0f / sqrtf(a); }
inline double rsqrt(double a) { return 1.0 / sqrt(a); }
inline float normcdff(float a) { return 0.5f * erfcf(a * -0.70710678118654752f); }
inline float sinpif(float a) { return static_cast<float>(sin(M_PI * fmod(static_cast<double>(a), 2.0))); }
inline float cospif(float a) { return static_cast<float>(cos(M_PI * fmod(static_cast<double>(a), 2.0))); }

// Conversions of floats stop at the ends of the range; NaN becomes 0.
inline int __float2int_rn(float v) {
	if (v != v) return 0;
	if (v >= 2147483648.0f) return INT32_MAX;
	if (v < -2147483648.0f) return INT32_MIN;
	return static_cast<int>(nearbyintf(v));
}
inline unsigned __float2uint_rn(float v) {
	if (!(v > 0.0f)) return 0;
	if (v >= 4294967296.0f) return UINT32_MAX;
	return static_cast<unsigned>(nearbyintf(v));
}
inline float __int2float_rn(int v) { return static_cast<float>(v); }
inline float __uint2float_rn(unsigned v) { return static_cast<float>(v); }

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t(a) * b >> 32); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
	const uint64_t all = uint64_t(b) << 32 | a;
	unsigned r = 0;
	for (int i = 0; i < 4; i++) r |= unsigned(all >> (8 * (s >> (4 * i) & 7)) & 0xff) << (8 * i);
	return r;
}
inline int __dp4a(int a, int b, int c) {
	for (int i = 0; i < 4; i++) c += int(int8_t(a >> (8 * i))) * int(int8_t(b >> (8 * i)));
	return c;
}

template <typename T, typename U>
inline auto min(T a, U b) -> decltype(a + b) {
	using R = decltype(a + b);
	if constexpr (std::is_floating_point<R>::value) return std::fmin(R(a), R(b));
	else return R(a) < R(b) ? R(a) : R(b);
}
template <typename T, typename U>
inline auto max(T a, U b) -> decltype(a + b) {
	using R = decltype(a + b);
	if constexpr (std::is_floating_point<R>::value) return std::fmax(R(a), R(b));
	else return R(a) > R(b) ? R(a) : R(b);
}

using std::isfinite;
using std::isinf;
using std::isnan;
