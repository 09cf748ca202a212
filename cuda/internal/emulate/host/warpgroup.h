// The half of wgmma.cuh that a host's compiler compiles.
#pragma once

#include "host.h"

namespace emulate {

// A Wgmma is what a thread gives to a product of its warpgroup. Products are done when
// they are waited for, so that what uses their operands or sums too early shows.
struct Wgmma {
	float* c;
	const uint32_t* a;  // registers, or nullptr
	uint64_t left, right;
	int columns;
	bool across, add;
};
void wgmma(const Wgmma& w);
void wgmma_commit();
void wgmma_wait(uint32_t newest);
uint64_t wgmma_descriptor(const void* p, uint32_t panels, uint32_t groups);

}  // namespace emulate

inline uint64_t further(uint64_t descriptor, uint32_t n) { return descriptor >> 32 << 32 | uint32_t(uint32_t(descriptor) + n); }
inline uint64_t panel(const half* p) { return emulate::wgmma_descriptor(p, 16, 1024); }
template <int Rows>
inline uint64_t panel_across(const half* p) {
	return emulate::wgmma_descriptor(p, Rows * 128, 1024);
}

inline void wgmma_fence() {}
inline void wgmma_commit() { emulate::wgmma_commit(); }
template <int N>
inline void wgmma_wait() {
	emulate::wgmma_wait(N);
}
template <int N>
inline void wgmma_keep(float (&)[N]) {}

template <int N, bool Across = false>
inline void wgmma_f16(float (&c)[N / 2], uint64_t a, uint64_t b, bool add = true) {
	emulate::wgmma({c, nullptr, a, b, N, Across, add});
}
template <int N, bool Across = false>
inline void wgmma_f16(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b, bool add = true) {
	emulate::wgmma({c, a, 0, b, N, Across, add});
}
