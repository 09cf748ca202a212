// Numbers as sums of two floats, of which the second holds what the first has no digits for
// (Dekker, A floating-point technique for extending the available precision, 1971). The
// second is not made smaller than a unit of the first: few operations follow each other.
#pragma once
#include "device.cuh"

namespace mel {

// product returns a·b, rounded: compilers make no part of a fused operation of it, from
// which the error that fmaf finds would be another one.
__device__ inline float product(float a, float b) {
#ifdef TANDEM_EMULATED
	volatile float p = a * b;
	return p;
#else
	return __fmul_rn(a, b);
#endif
}

struct alignas(8) Pair {
	float high, low;
};

// exact_sum returns a + b without an error (Knuth, The Art of Computer Programming, 4.2.2).
__device__ inline Pair exact_sum(float a, float b) {
	const float s = a + b, v = s - a;
	return {s, (a - (s - v)) + (b - v)};
}

__device__ inline Pair operator-(Pair a) { return {-a.high, -a.low}; }
__device__ inline Pair operator+(Pair a, Pair b) {
	const Pair s = exact_sum(a.high, b.high);
	return {s.high, s.low + (a.low + b.low)};
}
__device__ inline Pair operator*(Pair a, Pair b) {
	const float p = product(a.high, b.high);
	return {p, fmaf(a.low, b.high, fmaf(a.high, b.low, fmaf(a.high, b.high, -p)))};
}
__device__ inline float rounded(Pair a) { return a.high + a.low; }

// A Twofold is a complex number.
struct alignas(16) Twofold {
	Pair x, y;
};

__device__ inline Twofold plus(Twofold a, Twofold b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline Twofold minus(Twofold a, Twofold b) { return {a.x + -b.x, a.y + -b.y}; }
__device__ inline Twofold times(Twofold a, Twofold b) { return {a.x * b.x + -(a.y * b.y), a.x * b.y + a.y * b.x}; }
__device__ inline Twofold quarter(Twofold a) { return {a.y, -a.x}; }
__device__ inline Twofold eighth(Twofold a) {
	const Pair root = {0.70710678f, 1.21016175e-8f};
	return {root * (a.x + a.y), root * (a.y + -a.x)};
}

}  // namespace mel
