// The half of device.cuh that a host's compiler compiles: see there for what the names
// mean.
#pragma once

#include <math.h>
#include <string.h>

#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "host.h"

#ifndef TANDEM_ARCH
#define TANDEM_ARCH 90
#endif

#define __device__
#define __host__
#define __global__
#define __constant__ static const
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

#define threadIdx (::emulate::self()->thread)
#define blockIdx (::emulate::self()->block_index)
#define blockDim (::emulate::self()->block_dim)
#define gridDim (::emulate::self()->grid_dim)

#include "numbers.h"

template <typename T>
inline T* dynamic_shared() {
	return static_cast<T*>(emulate::dynamic_memory());
}

inline void __syncthreads() { emulate::sync_block(false, "__syncthreads"); }
inline int __syncthreads_count(int p) { return emulate::sync_block(p != 0, "__syncthreads_count"); }
inline int __syncthreads_or(int p) { return emulate::sync_block(p != 0, "__syncthreads_or") != 0; }
inline int __syncthreads_and(int p) { return emulate::sync_block(p == 0, "__syncthreads_and") == 0; }
inline void barrier_sync(uint32_t id, uint32_t threads) { emulate::barrier(id, threads, true); }
inline void barrier_arrive(uint32_t id, uint32_t threads) { emulate::barrier(id, threads, false); }
inline void relax() { emulate::pause(); }
inline void __nanosleep(unsigned) { emulate::pause(); }
[[noreturn]] inline void __trap() { emulate::fail("a trap"); }

// A vector load or store needs an aligned address.
inline void require_aligned(const void* p, uint32_t bytes) {
	if (reinterpret_cast<uintptr_t>(p) & (bytes - 1)) emulate::fail("a vector of %u bytes at %p, which is not aligned", bytes, p);
}

inline void __syncwarp(uint32_t = 0xffffffffu) {
	emulate::meet([](void* const*, uint32_t) {}, nullptr, "__syncwarp");
}

namespace emulate {

template <typename T>
struct Shuffle {
	T value, result;
	int source;
};

// Lanes that are absent leave the reader its own value.
template <typename T>
void shuffle(void* const* lanes, uint32_t present) {
	for (uint32_t i = 0; i < 32; i++) {
		if (!(present >> i & 1)) continue;
		auto* s = static_cast<Shuffle<T>*>(lanes[i]);
		const int from = s->source;
		const bool there = from >= 0 && from < 32 && (present >> from & 1);
		s->result = there ? static_cast<Shuffle<T>*>(lanes[from])->value : s->value;
	}
}

template <typename T>
T shuffle_from(T v, int source, const char* what) {
	Shuffle<T> s = {v, v, source};
	meet(shuffle<T>, &s, what);
	return s.result;
}

}  // namespace emulate

template <typename T>
inline T shfl(T v, int lane) {
	return emulate::shuffle_from(v, lane & 31, "shfl");
}
template <typename T>
inline T shfl_xor(T v, int mask) {
	return emulate::shuffle_from(v, int(emulate::self()->lane) ^ mask, "shfl_xor");
}
template <typename T>
inline T shfl_down(T v, int n) {
	return emulate::shuffle_from(v, int(emulate::self()->lane) + n, "shfl_down");
}
template <typename T>
inline T shfl_up(T v, int n) {
	return emulate::shuffle_from(v, int(emulate::self()->lane) - n, "shfl_up");
}
inline uint32_t warp_ballot(bool p) {
	struct Vote {
		bool p;
		uint32_t all;
	} v = {p, 0};
	emulate::meet(
	    [](void* const* lanes, uint32_t present) {
		    uint32_t all = 0;
		    for (uint32_t i = 0; i < 32; i++) {
			    if (present >> i & 1) all |= uint32_t(static_cast<Vote*>(lanes[i])->p) << i;
		    }
		    for (uint32_t i = 0; i < 32; i++) {
			    if (present >> i & 1) static_cast<Vote*>(lanes[i])->all = all;
		    }
	    },
	    &v, "warp_ballot");
	return v.all;
}

// Launches run one after another, but other threads of the host may look at the words.
inline uint32_t atomic_or(uint32_t* p, uint32_t v) {
	emulate::progress();
	return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);
}
inline uint32_t atomic_add(uint32_t* p, uint32_t v) {
	emulate::progress();
	return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}
inline uint32_t load_acquire(const uint32_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline void store_release(uint32_t* p, uint32_t v) {
	emulate::progress();
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

inline float4 load_once(const float* p) {
	require_aligned(p, 16);
	return *reinterpret_cast<const float4*>(p);
}
inline void store_global4(float* p, float4 v) {
	require_aligned(p, 16);
	*reinterpret_cast<float4*>(p) = v;
}
inline void store_global4(float* p, float4 v, bool there) {
	if (there) store_global4(p, v);
}
template <typename T>
inline T __ldg(const T* p) {
	return *p;
}
template <typename T>
inline T __ldcg(const T* p) {
	return *p;
}

inline void wait_dependency() {}
inline void release_dependents() {}
