// Weights of all types, as they were loaded, by vectors of 16 bytes.
#pragma once

#include "device.cuh"

// A type is the values from a first element on. It has vectors of Each elements, at
// multiples of Each, and fours at multiples of four. Four floats of a vector come without
// its scale, which only bytes have.

struct FromF32 {
	static constexpr uint32_t Each = 4;
	static constexpr bool Scaled = false;
	const float* p;

	__device__ FromF32(const uint32_t* values, const half*, int64_t first) : p(reinterpret_cast<const float*>(values) + first) {}
	__device__ uint4 vector(uint32_t at) const { return *reinterpret_cast<const uint4*>(p + at); }
	__device__ float scale(uint32_t) const { return 1.0f; }
	__device__ float4 four(uint32_t at) const { return load4(p + at); }
	__device__ static float4 four(uint4 v, int) { return {float_of(v.x), float_of(v.y), float_of(v.z), float_of(v.w)}; }
};

struct FromF16 {
	static constexpr uint32_t Each = 8;
	static constexpr bool Scaled = false;
	const half* p;

	__device__ FromF16(const uint32_t* values, const half*, int64_t first) : p(reinterpret_cast<const half*>(values) + first) {}
	__device__ uint4 vector(uint32_t at) const { return *reinterpret_cast<const uint4*>(p + at); }
	__device__ float scale(uint32_t) const { return 1.0f; }
	__device__ float4 four(uint32_t at) const {
		const uint2 v = *reinterpret_cast<const uint2*>(p + at);
		return four({v.x, v.y, 0, 0}, 0);
	}
	__device__ static float4 four(uint4 v, int i) {
		const float2 a = unpack_half(i ? v.z : v.x), b = unpack_half(i ? v.w : v.y);
		return {a.x, a.y, b.x, b.y};
	}
};

struct FromBF16 {
	static constexpr uint32_t Each = 8;
	static constexpr bool Scaled = false;
	const uint16_t* p;

	__device__ FromBF16(const uint32_t* values, const half*, int64_t first)
	    : p(reinterpret_cast<const uint16_t*>(values) + first) {}
	__device__ uint4 vector(uint32_t at) const { return *reinterpret_cast<const uint4*>(p + at); }
	__device__ float scale(uint32_t) const { return 1.0f; }
	__device__ float4 four(uint32_t at) const {
		const uint2 v = *reinterpret_cast<const uint2*>(p + at);
		return four({v.x, v.y, 0, 0}, 0);
	}
	__device__ static float4 four(uint4 v, int i) {
		const float2 a = unpack_bf16(i ? v.z : v.x), b = unpack_bf16(i ? v.w : v.y);
		return {a.x, a.y, b.x, b.y};
	}
};

// Bytes of blocks of 32, which share a scale.
struct FromQ8 {
	static constexpr uint32_t Each = 16;
	static constexpr bool Scaled = true;
	const uint8_t* p;
	const half* scales;

	__device__ FromQ8(const uint32_t* values, const half* scales, int64_t first)
	    : p(reinterpret_cast<const uint8_t*>(values) + first), scales(scales + first / 32) {}
	__device__ uint4 vector(uint32_t at) const { return *reinterpret_cast<const uint4*>(p + at); }
	__device__ float scale(uint32_t at) const { return to_float(scales[at / 32]); }
	__device__ float4 four(uint32_t at) const {
		const float4 v = bytes(*reinterpret_cast<const uint32_t*>(p + at));
		const float s = scale(at);
		return {s * v.x, s * v.y, s * v.z, s * v.w};
	}
	__device__ static float4 four(uint4 v, int i) { return bytes(i < 2 ? (i ? v.y : v.x) : (i == 2 ? v.z : v.w)); }

	// bytes makes floats of four signed bytes. With the top bit turned they are 0 to 255, and
	// 2^23 + such a number has it in its lowest bits: conversions of integers are slower.
	__device__ static float4 bytes(uint32_t w) {
		w ^= 0x80808080u;
		constexpr uint32_t base = 0x4b000000u;
		constexpr float offset = 8388608.0f + 128.0f;
		return {float_of(base | (w & 0xff)) - offset, float_of(base | (w >> 8 & 0xff)) - offset,
		        float_of(base | (w >> 16 & 0xff)) - offset, float_of(base | w >> 24) - offset};
	}
};
