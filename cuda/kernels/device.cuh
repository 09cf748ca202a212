// What every kernel includes. Kernels name the machine only through this file,
// fragment.cuh and sm90.cuh, so that the same sources run on the host, where tests are.
//
// hardware.cuh (nvcc) and device.h (the emulator) define, with the same meaning:
//
//   TANDEM_ARCH                  compute capability times ten that is compiled for
//   dynamic_shared<T>()          the block's dynamic shared memory, aligned to 1,024 bytes
//   shfl(v, lane)                v of another lane of the warp; also shfl_xor(v, mask),
//                                shfl_down(v, n), shfl_up(v, n); all 32 lanes take part
//   warp_ballot(p)                    bit i is p of lane i
//   barrier_sync(id, n)          a barrier of n threads of the block, ids 1 to 15
//   barrier_arrive(id, n)        the same, without waiting
//   relax()                      stands in a loop that waits for another thread
//   atomic_or, atomic_add        on a word of global or shared memory; return what was there
//   load_acquire, store_release  a word that orders other memory on the whole device
//   bits_of(f), float_of(u)      bit patterns of floats
//   half, bf16                   16-bit floats; to_float, to_half, to_bf16 (to nearest even)
//   pack_half(a, b)              two halves in a word, a in the low bits; unpack_half
//   larger_halves(a, b)          of two words of halves the larger of a's and the magnitude of
//                                b's; NaN, if either is; from 8.0
//   pack_bf16(a, b)              the same for bf16; unpack_bf16
//   require_aligned(p, bytes)    nothing, or an error of the emulator
//   load_once(p)                 a float4 that no one reads again, past the L1 cache
//   store_global4(p, v)          store4 for global memory; the compiler makes four stores of
//                                some others; or, with a third argument, if that is so,
//                                without a branch
//   exp2_approx(x)               2^x with a relative error of 2^−22
//   reciprocal_approx(x)         1/x, off by one unit in the last place at most
//   exp2_flush, reciprocal_flush the same in a third of the instructions: what is or would
//                                be denormal is 0
//   wait_dependency()            waits for the kernels this one depends on, which the
//                                exported functions have done already, but for entries
//                                that Wait
//   release_dependents()         lets the kernels that depend on this one begin; what they
//                                read is still safe, since they wait for the end
//
// and of CUDA's own names those that kernels use: __syncthreads, __syncwarp, __popc, fmaf,
// expf and so on. __shared__ variables have no initial value.
#pragma once

#include <stdint.h>

#ifdef TANDEM_EMULATED
#include "device.h"
#else
#include "hardware.cuh"
#endif

#include "args.cuh"

using namespace kernels;

constexpr uint32_t WarpSize = 32;

__device__ inline uint32_t lane_id() { return threadIdx.x % WarpSize; }
__device__ inline uint32_t warp_id() { return threadIdx.x / WarpSize; }

template <typename T>
__device__ inline T ceil_div(T a, T b) {
	return (a + b - 1) / b;
}

// Vectors. p is aligned to the size of what is loaded or stored.
__device__ inline bool is_aligned(const void* p, uint32_t bytes) {
	return (reinterpret_cast<uintptr_t>(p) & (bytes - 1)) == 0;
}
__device__ inline float4 load4(const float* p) {
	require_aligned(p, 16);
	return *reinterpret_cast<const float4*>(p);
}
__device__ inline float2 load2(const float* p) {
	require_aligned(p, 8);
	return *reinterpret_cast<const float2*>(p);
}
__device__ inline void store4(float* p, float4 v) {
	require_aligned(p, 16);
	*reinterpret_cast<float4*>(p) = v;
}
__device__ inline void store2(float* p, float2 v) {
	require_aligned(p, 8);
	*reinterpret_cast<float2*>(p) = v;
}

// is_nan looks at the bits, so that no compiler's option can take it away.
__device__ inline bool is_nan(float v) { return (bits_of(v) & 0x7fffffffu) > 0x7f800000u; }

// The larger or smaller of two. fmaxf and fminf ignore NaN, these let it through.
__device__ inline float max_or_nan(float a, float b) { return a > b || is_nan(a) ? a : b; }
__device__ inline float min_or_nan(float a, float b) { return a < b || is_nan(a) ? a : b; }

__device__ inline float infinity() { return float_of(0x7f800000u); }
__device__ inline float quiet_nan() { return float_of(0x7fc00000u); }

// Operators of reductions.
struct Add {
	template <typename T>
	__device__ T operator()(T a, T b) const {
		return a + b;
	}
};
struct Largest {  // ignores NaN
	__device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct LargestOrNaN {
	__device__ float operator()(float a, float b) const { return max_or_nan(a, b); }
};

// warp_reduce combines the values of Width neighbouring lanes (32, 16, 8, 4 or 2); all of
// them get the result. The pairs are the same whatever the lanes hold and op is
// commutative, so all lanes get the same bits.
template <int Width = 32, typename T, typename Op>
__device__ inline T warp_reduce(T v, Op op) {
#pragma unroll
	for (int mask = Width / 2; mask > 0; mask /= 2) v = op(v, shfl_xor(v, mask));
	return v;
}
template <int Width = 32, typename T>
__device__ inline T warp_sum(T v) {
	return warp_reduce<Width>(v, Add());
}
template <int Width = 32>
__device__ inline float warp_max(float v) {
	return warp_reduce<Width>(v, Largest());
}

// block_reduce combines one value of each thread of a block of Threads, a multiple of 32
// in x; all of them get the result. The order is fixed: lanes of each warp as a tree, then
// the warps as a tree. It contains two barriers of the block.
template <int Threads, typename T, typename Op>
__device__ inline T block_reduce(T v, Op op) {
	static_assert(Threads % 32 == 0 && Threads <= 1024, "whole warps");
	v = warp_reduce(v, op);
	if (Threads == 32) return v;
	constexpr int Warps = Threads / 32;
	__shared__ T partial[Warps];
	__syncthreads();  // an earlier reduction may still be read
	if (lane_id() == 0) partial[warp_id()] = v;
	__syncthreads();
	T sum[Warps];
#pragma unroll
	for (int i = 0; i < Warps; i++) sum[i] = partial[i];
#pragma unroll
	for (int n = Warps; n > 1; n = (n + 1) / 2) {
#pragma unroll
		for (int i = 0; i < n / 2; i++) sum[i] = op(sum[i], sum[(n + 1) / 2 + i]);
	}
	return sum[0];
}
template <int Threads, typename T>
__device__ inline T block_sum(T v) {
	return block_reduce<Threads>(v, Add());
}
template <int Threads>
__device__ inline float block_max(float v) {
	return block_reduce<Threads>(v, Largest());
}

// index_of returns the index of an item; see Index in args.go.
__device__ inline uint32_t index_of(const Index& x, uint32_t item) {
	if (x.P == nullptr) return x.Added;
	uint32_t n = x.P[x.Each * item];
	if (n >= x.Valid) {
		atomic_or(x.Status, StatusIndex);
		n = 0;
	}
	return n + x.Added;
}

// count_of returns the number of an item; see Items in args.go.
__device__ inline uint32_t count_of(const Items& x, uint32_t item) {
	if (x.P == nullptr) return x.Usual;
	const uint32_t n = x.P[item];
	if (n <= x.Usual) return n;
	if (x.Status != nullptr) atomic_or(x.Status, StatusIndex);
	return x.Usual;
}

// Activations. expf and tanhf of CUDA's library, without its fast variants, are within 2
// units in the last place over their whole range and reach their limits without NaN; the
// fast ones are off by 1e-6 and more, which the tolerance of Exact would notice. The
// reciprocal is of a number from 1 on, where the short one is off by a unit; what would be
// denormal becomes 0. NaN goes through.
__device__ inline float sigmoid(float v) { return reciprocal_flush(1.0f + expf(-v)); }

// v·sigmoid(v); far out 0, since −inf·0 would be NaN.
__device__ inline float silu(float v) { return v < -104.0f ? 0.0f : v * sigmoid(v); }

// v·Phi(v) = max(v, 0) − t·Phi(−t) with t = |v|, in which nothing cancels. Phi(−t) is
// e^(−t²/2)·s·P(s) with s = 1/(1 + 0.35·t) and a polynomial P, fitted so that the error of
// t·Phi(−t) is at most 1.5e−7 of it, plus 1.5e−11, where erfcf would take three times as
// many instructions.
__device__ inline float gelu(float v) {
	const float t = fminf(fabsf(v), 20.0f), s = reciprocal_flush(fmaf(0.35f, t, 1.0f));
	float p = 0.044716958f;
	p = fmaf(p, s, -0.18395157f);
	p = fmaf(p, s, 0.2084589f);
	p = fmaf(p, s, 0.013148884f);
	p = fmaf(p, s, 0.14002098f);
	p = fmaf(p, s, 0.13797888f);
	p = fmaf(p, s, 0.13962705f);
	const float below = t * s * (p * exp2_flush(-0.72134752f * (t * t)));
	return (v < 0.0f ? 0.0f : v) - below;
}
