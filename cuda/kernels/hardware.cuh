// The half of device.cuh that nvcc compiles.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef __CUDA_ARCH__
#define TANDEM_ARCH (__CUDA_ARCH__ / 10)
#else
#define TANDEM_ARCH 75  // the pass for the host, which makes no code
#endif

template <typename T>
__device__ inline T* dynamic_shared() {
	extern __shared__ __align__(1024) unsigned char dynamic[];
	return reinterpret_cast<T*>(dynamic);
}

// Warps.
constexpr uint32_t AllLanes = 0xffffffffu;

template <typename T>
__device__ inline T shfl(T v, int lane) {
	return __shfl_sync(AllLanes, v, lane);
}
template <typename T>
__device__ inline T shfl_xor(T v, int mask) {
	return __shfl_xor_sync(AllLanes, v, mask);
}
template <typename T>
__device__ inline T shfl_down(T v, int n) {
	return __shfl_down_sync(AllLanes, v, n);
}
template <typename T>
__device__ inline T shfl_up(T v, int n) {
	return __shfl_up_sync(AllLanes, v, n);
}
__device__ inline uint32_t warp_ballot(bool p) { return __ballot_sync(AllLanes, p); }

// Blocks.
__device__ inline void barrier_sync(uint32_t id, uint32_t threads) {
	asm volatile("barrier.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void barrier_arrive(uint32_t id, uint32_t threads) {
	asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void relax() { __nanosleep(20); }

// Memory.
__device__ inline void require_aligned(const void*, uint32_t) {}
__device__ inline uint32_t atomic_or(uint32_t* p, uint32_t v) { return atomicOr(p, v); }
__device__ inline uint32_t atomic_add(uint32_t* p, uint32_t v) { return atomicAdd(p, v); }
__device__ inline uint32_t load_acquire(const uint32_t* p) {
	uint32_t v;
	asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}
__device__ inline void store_release(uint32_t* p, uint32_t v) {
	asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ inline float4 load_once(const float* p) {
	float4 v;
	asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
	             : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
	             : "l"(p)
	             : "memory");
	return v;
}
__device__ inline void store_global4(float* p, float4 v) {
	asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
__device__ inline void store_global4(float* p, float4 v, bool there) {
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.v4.f32 [%0], {%1, %2, %3, %4}; }" ::"l"(p), "f"(v.x), "f"(v.y),
	             "f"(v.z), "f"(v.w), "r"((int)there)
	             : "memory");
}

// Numbers.
using bf16 = __nv_bfloat16;

__device__ inline uint32_t bits_of(float v) { return __float_as_uint(v); }
__device__ inline float float_of(uint32_t v) { return __uint_as_float(v); }
__device__ inline float to_float(half v) { return __half2float(v); }
__device__ inline float to_float(bf16 v) { return __bfloat162float(v); }
__device__ inline half to_half(float v) { return __float2half_rn(v); }
__device__ inline bf16 to_bf16(float v) { return __float2bfloat16_rn(v); }
__device__ inline uint32_t pack_half(float a, float b) {
	const half2 h = __floats2half2_rn(a, b);
	return *reinterpret_cast<const uint32_t*>(&h);
}
#if TANDEM_ARCH >= 80
__device__ inline uint32_t larger_halves(uint32_t a, uint32_t b) {
	uint32_t r;
	asm("{\n.reg .b32 x;\nabs.f16x2 x, %2;\nmax.NaN.f16x2 %0, %1, x;\n}" : "=r"(r) : "r"(a), "r"(b));
	return r;
}
#endif
__device__ inline float2 unpack_half(uint32_t v) { return __half22float2(*reinterpret_cast<const half2*>(&v)); }
__device__ inline uint32_t pack_bf16(float a, float b) {
	const __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
	return *reinterpret_cast<const uint32_t*>(&h);
}
__device__ inline float2 unpack_bf16(uint32_t v) { return {float_of(v << 16), float_of(v & 0xffff0000u)}; }
__device__ inline float exp2_approx(float x) {
	float y;
	asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

__device__ inline float reciprocal_approx(float x) {
	float y;
	asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
__device__ inline float exp2_flush(float x) {
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
__device__ inline float reciprocal_flush(float x) {
	float y;
	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

// Kernels that follow one another.
__device__ inline void wait_dependency() {
#if TANDEM_ARCH >= 90
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void release_dependents() {
#if TANDEM_ARCH >= 90
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
