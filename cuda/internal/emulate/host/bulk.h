// The half of sm90.cuh that a host's compiler compiles.
#pragma once

#include "host.h"

// Addresses of shared memory are offsets in that of the block, with the block's rank in
// the cluster above.
constexpr uint32_t RankShift = 20;

// An Mbarrier holds what the phase still waits for.
struct alignas(8) Mbarrier {
	uint16_t arrivals, pending : 15, phase : 1;
	int32_t bytes;
};

namespace emulate {

void mbarrier_init(Mbarrier* b, uint32_t arrivals);
void mbarrier_arrive(Mbarrier* b, uint32_t bytes);
void mbarrier_arrive_remote(uint32_t address);
bool mbarrier_done(Mbarrier* b, uint32_t parity);
void mbarrier_wait(Mbarrier* b, uint32_t parity);

void bulk_load(void* to, const kernels::TensorMap* map, Mbarrier* b, uint32_t mask, int rank, const int (&at)[5]);
void bulk_copy(void* to, const void* from, uint32_t bytes, Mbarrier* b);
void bulk_store(const kernels::TensorMap* map, const void* from, int rank, const int (&at)[5]);
void bulk_commit();
void bulk_wait(uint32_t newest);

uint32_t cluster_rank();
uint32_t cluster_size();
void cluster_arrive();
void cluster_wait();
uint32_t shared_offset(const void* p);
void* shared_pointer(uint32_t address);
void store_async(uint32_t at, uint32_t v, uint32_t b);
void bulk_copy_remote(uint32_t at, const void* from, uint32_t bytes, uint32_t b);
void registers(int count, const char* what);
bool elected();

}  // namespace emulate

inline uint32_t shared_address(const void* p) { return emulate::shared_offset(p) | emulate::cluster_rank() << RankShift; }

inline void mbarrier_init(Mbarrier* b, uint32_t arrivals) { emulate::mbarrier_init(b, arrivals); }
inline void mbarrier_ready() {}
inline void mbarrier_arrive(Mbarrier* b) { emulate::mbarrier_arrive(b, 0); }
inline void mbarrier_expect(Mbarrier* b, uint32_t bytes) { emulate::mbarrier_arrive(b, bytes); }
inline bool mbarrier_done(Mbarrier* b, uint32_t parity) { return emulate::mbarrier_done(b, parity); }
inline void mbarrier_wait(Mbarrier* b, uint32_t parity) { emulate::mbarrier_wait(b, parity); }
inline void mbarrier_wait_cluster(Mbarrier* b, uint32_t parity) { emulate::mbarrier_wait(b, parity); }

template <typename... At>
inline void bulk_load(void* dst, const TensorMap* map, Mbarrier* b, int x, At... rest) {
	emulate::bulk_load(dst, map, b, 1u << emulate::cluster_rank(), 1 + sizeof...(rest), {x, int(rest)...});
}
struct CachePolicy {};
inline CachePolicy policy_evict_first() { return {}; }
template <typename... At>
inline void bulk_load(void* dst, const TensorMap* map, Mbarrier* b, CachePolicy, int x, At... rest) {
	bulk_load(dst, map, b, x, rest...);
}
inline void bulk_load_cluster(void* dst, const TensorMap* map, Mbarrier* b, uint16_t mask, CachePolicy, int x, int y) {
	emulate::bulk_load(dst, map, b, mask, 2, {x, y});
}
inline void bulk_copy(void* dst, const void* src, uint32_t bytes, Mbarrier* b) { emulate::bulk_copy(dst, src, bytes, b); }
template <typename... At>
inline void bulk_store(const TensorMap* map, const void* src, int x, At... rest) {
	emulate::bulk_store(map, src, 1 + sizeof...(rest), {x, int(rest)...});
}
inline void bulk_commit() { emulate::bulk_commit(); }
template <int N>
inline void bulk_wait() {
	emulate::bulk_wait(N);
}
inline void fence_async() {}
inline void fetch_map(const TensorMap*) {}

inline uint32_t cluster_rank() { return emulate::cluster_rank(); }
inline uint32_t cluster_size() { return emulate::cluster_size(); }
inline void cluster_arrive() { emulate::cluster_arrive(); }
inline void cluster_reach() { emulate::cluster_arrive(); }
inline void cluster_wait() { emulate::cluster_wait(); }
inline void cluster_sync() {
	emulate::cluster_arrive();
	emulate::cluster_wait();
}
inline uint32_t cluster_address(const void* p, uint32_t rank) { return emulate::shared_offset(p) | rank << RankShift; }
inline void store_remote(uint32_t at, uint32_t v) { memcpy(emulate::shared_pointer(at), &v, 4); }
inline void store_remote(uint32_t at, float v) { store_remote(at, bits_of(v)); }
inline void store_async(uint32_t at, uint32_t v, uint32_t b) { emulate::store_async(at, v, b); }
inline void store_async(uint32_t at, float v, uint32_t b) { store_async(at, bits_of(v), b); }
inline void bulk_copy_remote(uint32_t at, const void* src, uint32_t bytes, uint32_t b) { emulate::bulk_copy_remote(at, src, bytes, b); }
inline void mbarrier_arrive_remote(uint32_t b) { emulate::mbarrier_arrive_remote(b); }
inline float load_remote(uint32_t at) {
	float v;
	memcpy(&v, emulate::shared_pointer(at), 4);
	return v;
}

template <int N>
inline void registers_less() {
	static_assert(N % 8 == 0 && N >= 24 && N <= 256, "a multiple of 8 from 24 to 256");
	emulate::registers(N, "registers_less");
}
template <int N>
inline void registers_more() {
	static_assert(N % 8 == 0 && N >= 24 && N <= 256, "a multiple of 8 from 24 to 256");
	emulate::registers(N, "registers_more");
}
inline bool elected() { return emulate::elected(); }
