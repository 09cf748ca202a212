// The half of fragment.cuh that a host's compiler compiles.
#pragma once

#include "host.h"

template <int Bytes>
inline void copy_async(void* dst, const void* src, uint32_t valid = Bytes) {
	static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "4, 8 or 16 bytes");
	emulate::copy_async(dst, src, valid, Bytes);
#if TANDEM_ARCH < 80
	emulate::copy_commit();
	emulate::copy_wait(0);
#endif
}
inline void copy_commit() { emulate::copy_commit(); }
template <int N>
inline void copy_wait() {
	emulate::copy_wait(N);
}

namespace emulate {

// A Ldmatrix is what a lane names and gets.
struct Ldmatrix {
	const void* row;
	uint32_t r[4];
};
void ldmatrix(Ldmatrix& m, int count, bool transposed);

// An Mma is what a lane gives to a product, and the sum that it gets.
struct Mma {
	float* c;
	const uint32_t *a, *b;
};
enum class Operand { F16, BF16, TF32 };
void mma(Mma& m, Operand type, int depth);

// add_products adds Σ a[k]·b[k][j] to c[j], for eight columns at a time, as matrix units do
// it: all addends of a sum are cut, toward zero, at two bits below the last of the largest,
// and so is the sum. Depth is at most 16. Products of halves are exact in F32.
using Columns = float[8];
void add_products(Columns& c, const float* a, const Columns* b, int depth, bool halves);

}  // namespace emulate

inline void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
	emulate::Ldmatrix m = {row, {}};
	emulate::ldmatrix(m, 4, false);
	for (int i = 0; i < 4; i++) r[i] = m.r[i];
}
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
	emulate::Ldmatrix m = {row, {}};
	emulate::ldmatrix(m, 4, true);
	for (int i = 0; i < 4; i++) r[i] = m.r[i];
}
inline void ldmatrix_x2(uint32_t (&r)[2], const void* row) {
	emulate::Ldmatrix m = {row, {}};
	emulate::ldmatrix(m, 2, false);
	for (int i = 0; i < 2; i++) r[i] = m.r[i];
}
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) {
	emulate::Ldmatrix m = {row, {}};
	emulate::ldmatrix(m, 2, true);
	for (int i = 0; i < 2; i++) r[i] = m.r[i];
}

inline void mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if TANDEM_ARCH >= 80
	emulate::Mma m = {c, a, b};
	emulate::mma(m, emulate::Operand::F16, 16);
#else
	for (int k = 0; k < 2; k++) {
		emulate::Mma m = {c, a + 2 * k, b + k};
		emulate::mma(m, emulate::Operand::F16, 8);
	}
#endif
}

#if TANDEM_ARCH >= 80
inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
	emulate::Mma m = {c, a, b};
	emulate::mma(m, emulate::Operand::BF16, 16);
}
inline void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
	emulate::Mma m = {c, a, b};
	emulate::mma(m, emulate::Operand::TF32, 8);
}
inline uint32_t to_tf32(float v) {
	const uint32_t u = bits_of(v);
	if ((u & 0x7f800000u) == 0x7f800000u) return u;
	return (u + 0x1000u) & 0xffffe000u;
}
#endif
