// Matrix units and the copies that feed them.
//
//   copy_async<Bytes>(dst, src)         4, 8 or 16 bytes from global to shared memory, done
//   copy_async<Bytes>(dst, src, valid)  after the wait; only the first valid bytes are read,
//                                       zeros follow. Both pointers aligned to Bytes, also
//                                       if valid is 0. Before 8.0 a plain copy, done at once.
//   copy_commit()                       ends a group of copies of this thread
//   copy_wait<N>()                      waits until at most the N newest groups are not
//                                       done; other threads' copies are seen after a barrier
//
//   ldmatrix_x4(r, row)       four 8×8 matrices of 16-bit elements from shared memory: lane i
//   ldmatrix_x4_trans(r, row) names row i%8 of matrix i/8 (16 bytes, aligned); register m gets
//   ldmatrix_x2, …_trans      of matrix m elements 2·(lane%4), +1 of row lane/4; _trans: of
//                             the transposed matrix. x2: lanes 0 to 15 name the rows.
//
// Products c += a·b of one warp, row × column. With g = lane/4 and t = lane%4:
//
//   mma_f16(c, a, b)   16×8, depth 16, halves: a[0] = A[g][2t,2t+1], a[1] = A[g+8][2t,2t+1],
//                      a[2], a[3] the same at columns +8; b[0] = B[2t,2t+1][g], b[1] at rows
//                      +8; c = C[g][2t], C[g][2t+1], C[g+8][2t], C[g+8][2t+1]
//   mma_bf16(c, a, b)  the same of bf16, from 8.0
//   mma_tf32(c, a, b)  16×8, depth 8, floats whose lowest 13 bits are ignored, from 8.0:
//                      a = A[g][t], A[g+8][t], A[g][t+4], A[g+8][t+4]; b = B[t][g], B[t+4][g]
//   to_tf32(v)         rounds to nearest, for mma_tf32
#pragma once

#include "device.cuh"

#ifdef TANDEM_EMULATED
#include "matrix.h"
#else

__device__ inline uint32_t shared_address(const void* p) {
	return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

template <int Bytes>
__device__ inline void copy_async(void* dst, const void* src, uint32_t valid = Bytes) {
	static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "4, 8 or 16 bytes");
#if TANDEM_ARCH >= 80
	if constexpr (Bytes == 16) {
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(dst)), "l"(src), "r"(valid)
		             : "memory");
	} else {
		asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(dst)), "l"(src), "n"(Bytes),
		             "r"(valid)
		             : "memory");
	}
#else
	uint32_t* d = static_cast<uint32_t*>(dst);
	if (valid == Bytes) {
		if constexpr (Bytes == 16) *static_cast<uint4*>(dst) = *static_cast<const uint4*>(src);
		if constexpr (Bytes == 8) *static_cast<uint2*>(dst) = *static_cast<const uint2*>(src);
		if constexpr (Bytes == 4) *d = *static_cast<const uint32_t*>(src);
		return;
	}
	for (int i = 0; i < Bytes / 4; i++) {
		uint32_t w = 0;
		for (uint32_t j = 0; j < 4 && 4 * i + j < valid; j++) {
			w |= static_cast<uint32_t>(static_cast<const uint8_t*>(src)[4 * i + j]) << (8 * j);
		}
		d[i] = w;
	}
#endif
}
__device__ inline void copy_commit() {
#if TANDEM_ARCH >= 80
	asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N>
__device__ inline void copy_wait() {
#if TANDEM_ARCH >= 80
	asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

__device__ inline void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
	             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
	             : "r"(shared_address(row))
	             : "memory");
}
__device__ inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
	             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
	             : "r"(shared_address(row))
	             : "memory");
}
__device__ inline void ldmatrix_x2(uint32_t (&r)[2], const void* row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
	             : "=r"(r[0]), "=r"(r[1])
	             : "r"(shared_address(row))
	             : "memory");
}
__device__ inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
	             : "=r"(r[0]), "=r"(r[1])
	             : "r"(shared_address(row))
	             : "memory");
}

__device__ inline void mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if TANDEM_ARCH >= 80
	asm volatile(
	    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
	    "{%0, %1, %2, %3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
	for (int k = 0; k < 2; k++) {
		asm volatile(
		    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
		    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		    : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
	}
#endif
}

#if TANDEM_ARCH >= 80
__device__ inline void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
	asm volatile(
	    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
	    "{%0, %1, %2, %3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
	asm volatile(
	    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
	    "{%0, %1, %2, %3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline uint32_t to_tf32(float v) {
	uint32_t r;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
	return r;
}
#endif

#endif
