// What capability 9.0 adds: barriers in shared memory, bulk copies, products of
// warpgroups (see wgmma.cuh) and clusters of blocks. For entries with From 90; products
// of warpgroups for those that are Exact.
//
// Barriers. A phase of an Mbarrier ends when as many arrivals have come as it was made for
// and all bytes that were expected. Phases are counted by their parity, 0 first.
//
//   mbarrier_init(b, n)          by one thread; then mbarrier_ready(), and a barrier of
//                                the block or the cluster
//   mbarrier_arrive(b)           orders what this thread did before for who waits
//   mbarrier_expect(b, bytes)    arrives, and says how many bytes the phase gets
//   mbarrier_wait(b, parity)     waits until the phase with that parity is over
//   mbarrier_wait_cluster        the same, when other blocks of the cluster have written
//   mbarrier_done(b, parity)     whether it is, without waiting
//
// Bulk copies. One thread asks for them; what they write has arrived when the barrier's
// phase is over. Destinations are aligned to 128 bytes (1,024 where 128 bytes are
// swizzled), coordinates are in elements, innermost first; what lies outside of the tensor
// is zero.
//
//   bulk_load(dst, map, b, x, y, z, …)        a box of a tensor of 3 to 5 dimensions
//   bulk_load(dst, map, b, policy, x, y, …)   of 2 or 3, which the second cache keeps as the
//                                             policy says; policy_evict_first(): goes first,
//                                             where room is needed
//   bulk_load_cluster(dst, map, b, mask, policy, x, y)  the same into all blocks of the mask,
//                                             and to the barrier of each
//   bulk_copy(dst, src, bytes, b)             contiguous bytes, multiples of 16
//   bulk_store(map, src, x, y, …)             from shared memory to a tensor
//   bulk_commit(), bulk_wait<N>()             groups of stores: until all but N have read
//   fence_async()                             orders writes of this thread to shared
//                                             memory before bulk stores and products
//   fetch_map(map)                            brings a map near
//
// Clusters. cluster_rank() and cluster_size(); cluster_sync(), or cluster_arrive() and
// cluster_wait(), are barriers of all threads. cluster_reach() arrives without ordering
// memory, which would wait for what was written to the device; nor has what was sent to other
// blocks arrived then, which must have before these end. cluster_address(p, rank) says where p, in
// this block's shared memory, is in another's, for
//
//   store_remote(at, v)              a float or a word, before a cluster barrier
//   store_async(at, v, b)            the same, which counts as 4 bytes at the barrier b
//                                    (a cluster_address in the same block)
//   bulk_copy_remote(at, src, bytes, b)  contiguous bytes of this block's shared memory, which
//                                    must stay until the barrier's phase is over
//   mbarrier_arrive_remote(b)
//   load_remote(at)                  a float
//
// registers_less<N>() and registers_more<N>() move registers between warpgroups; N is a
// multiple of 8, and all warps of a warpgroup take part. elected() is true in one lane.
#pragma once

#include "fragment.cuh"

#ifdef TANDEM_EMULATED
#include "bulk.h"
#else

struct alignas(8) Mbarrier {
	uint64_t opaque;
};

#if TANDEM_ARCH >= 90

__device__ inline void mbarrier_init(Mbarrier* b, uint32_t arrivals) {
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals) : "memory");
}
__device__ inline void mbarrier_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void mbarrier_arrive(Mbarrier* b) {
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
__device__ inline void mbarrier_expect(Mbarrier* b, uint32_t bytes) {
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}
__device__ inline bool mbarrier_done(Mbarrier* b, uint32_t parity) {
	uint32_t done;
	asm volatile(
	    "{\n"
	    ".reg .pred p;\n"
	    "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
	    "selp.u32 %0, 1, 0, p;\n"
	    "}"
	    : "=r"(done)
	    : "r"(shared_address(b)), "r"(parity)
	    : "memory");
	return done != 0;
}
__device__ inline void mbarrier_wait(Mbarrier* b, uint32_t parity) {
	while (!mbarrier_done(b, parity)) {
	}
}
__device__ inline void mbarrier_wait_cluster(Mbarrier* b, uint32_t parity) {
	uint32_t done = 0;
	while (done == 0) {
		asm volatile(
		    "{\n"
		    ".reg .pred p;\n"
		    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
		    "selp.u32 %0, 1, 0, p;\n"
		    "}"
		    : "=r"(done)
		    : "r"(shared_address(b)), "r"(parity)
		    : "memory");
	}
}

__device__ inline void bulk_load(void* dst, const TensorMap* map, Mbarrier* b, int x, int y, int z) {
	asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
	                 shared_address(dst)),
	             "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z)
	             : "memory");
}
__device__ inline void bulk_load(void* dst, const TensorMap* map, Mbarrier* b, int x, int y, int z, int u) {
	asm volatile(
	    "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(
	        shared_address(dst)),
	    "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z), "r"(u)
	    : "memory");
}
__device__ inline void bulk_load(void* dst, const TensorMap* map, Mbarrier* b, int x, int y, int z, int u, int v) {
	asm volatile(
	    "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
	    "[%2];" ::"r"(shared_address(dst)),
	    "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v)
	    : "memory");
}
// A CachePolicy is opaque; it is made as the kernel runs.
struct CachePolicy {
	uint64_t bits;
};
__device__ inline CachePolicy policy_evict_first() {
	CachePolicy p;
	asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p.bits));
	return p;
}
__device__ inline void bulk_load(void* dst, const TensorMap* map, Mbarrier* b, CachePolicy p, int x, int y) {
	asm volatile(
	    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(
	        shared_address(dst)),
	    "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "l"(p.bits)
	    : "memory");
}
__device__ inline void bulk_load(void* dst, const TensorMap* map, Mbarrier* b, CachePolicy p, int x, int y, int z) {
	asm volatile(
	    "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], "
	    "%6;" ::"r"(shared_address(dst)),
	    "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z), "l"(p.bits)
	    : "memory");
}
__device__ inline void bulk_load_cluster(void* dst, const TensorMap* map, Mbarrier* b, uint16_t mask, CachePolicy p, int x, int y) {
	asm volatile(
	    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], "
	    "[%1, {%4, %5}], [%2], %3, %6;" ::"r"(shared_address(dst)),
	    "l"(map), "r"(shared_address(b)), "h"(mask), "r"(x), "r"(y), "l"(p.bits)
	    : "memory");
}
__device__ inline void bulk_copy(void* dst, const void* src, uint32_t bytes, Mbarrier* b) {
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
	                 shared_address(dst)),
	             "l"(src), "r"(bytes), "r"(shared_address(b))
	             : "memory");
}
__device__ inline void bulk_store(const TensorMap* map, const void* src, int x, int y) {
	asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
	             "r"(shared_address(src)), "r"(x), "r"(y)
	             : "memory");
}
__device__ inline void bulk_store(const TensorMap* map, const void* src, int x, int y, int z) {
	asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
	             "r"(shared_address(src)), "r"(x), "r"(y), "r"(z)
	             : "memory");
}
__device__ inline void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N>
__device__ inline void bulk_wait() {
	asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
__device__ inline void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void fetch_map(const TensorMap* map) {
	asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ inline uint32_t cluster_rank() {
	uint32_t r;
	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
	return r;
}
__device__ inline uint32_t cluster_size() {
	uint32_t n;
	asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
	return n;
}
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ inline void cluster_reach() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ inline void cluster_sync() {
	cluster_arrive();
	cluster_wait();
}
__device__ inline uint32_t cluster_address(const void* p, uint32_t rank) {
	uint32_t r;
	asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(shared_address(p)), "r"(rank));
	return r;
}
__device__ inline void store_remote(uint32_t at, uint32_t v) {
	asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
__device__ inline void store_remote(uint32_t at, float v) { store_remote(at, bits_of(v)); }
__device__ inline void store_async(uint32_t at, uint32_t v, uint32_t b) {
	asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(at), "r"(v), "r"(b)
	             : "memory");
}
__device__ inline void store_async(uint32_t at, float v, uint32_t b) { store_async(at, bits_of(v), b); }
__device__ inline void bulk_copy_remote(uint32_t at, const void* src, uint32_t bytes, uint32_t b) {
	asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at),
	             "r"(shared_address(src)), "r"(bytes), "r"(b)
	             : "memory");
}
// Without a scope of its own: a release to the cluster is a fence of the whole device, which
// takes as long as the products of a stage. What was read is read, and needs no fence.
__device__ inline void mbarrier_arrive_remote(uint32_t b) {
	asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(b) : "memory");
}
__device__ inline float load_remote(uint32_t at) {
	float v;
	asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
	return v;
}

template <int N>
__device__ inline void registers_less() {
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
__device__ inline void registers_more() {
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
__device__ inline bool elected() {
	uint32_t one;
	asm volatile(
	    "{\n"
	    ".reg .pred p;\n"
	    "elect.sync _|p, 0xffffffff;\n"
	    "selp.u32 %0, 1, 0, p;\n"
	    "}"
	    : "=r"(one));
	return one != 0;
}

#endif

#endif

#if TANDEM_ARCH >= 90
#include "wgmma.cuh"
#endif
