// Barriers in shared memory, bulk copies and clusters.
#include <algorithm>

#include "device.h"

#include "args.cuh"

using namespace kernels;

#include "bulk.h"
#include "gang.h"

namespace emulate {

namespace {

// A Map is what the driver of tests makes of a tensor map.
struct Map {
	uint8_t type, rank, swizzle, zero;
	uint16_t box[5], step[5];
	uint64_t address, size[5], stride[4];
};
static_assert(sizeof(Map) == 104, "as the driver of tests writes it");

int element_bytes(uint8_t type) {
	switch (type) {
	case 0:
		return 1;
	case 1:
	case 6:
	case 9:
		return 2;
	case 2:
	case 7:
		return 4;
	}
	fail("a tensor map of type %d", type);
}

// visit calls f with where an element of the box lies in shared memory and in the tensor,
// nullptr outside of it.
template <typename F>
void visit(const Map& m, int rank, const int* at, char* shared, F f) {
	if (m.rank != rank) fail("a tensor map of %d dimensions, given %d coordinates", m.rank, rank);
	const int bytes = element_bytes(m.type);
	uint32_t count[5], total = 1;
	for (int i = 0; i < rank; i++) {
		count[i] = (m.box[i] + m.step[i] - 1) / m.step[i];
		total *= count[i];
	}
	for (uint32_t n = 0; n < total; n++) {
		uint32_t rest = n;
		bool inside = true;
		char* p = reinterpret_cast<char*>(m.address);
		for (int i = 0; i < rank; i++) {
			const int64_t c = int64_t(at[i]) + int64_t(rest % count[i]) * m.step[i];
			rest /= count[i];
			inside = inside && c >= 0 && c < int64_t(m.size[i]);
			p += c * int64_t(i == 0 ? bytes : m.stride[i - 1]);
		}
		f(swizzled(shared + n * bytes, m.swizzle), inside ? p : nullptr, bytes);
	}
}

uint32_t box_bytes(const Map& m) {
	uint32_t n = element_bytes(m.type);
	for (int i = 0; i < m.rank; i++) n *= (m.box[i] + m.step[i] - 1) / m.step[i];
	return n;
}

// present returns a block of the cluster, which must not have ended.
Block& present(Gang* g, uint32_t rank) {
	if (g->blocks[rank].live == 0) fail("block %u of the cluster has ended", rank);
	return g->blocks[rank];
}

Block& block_of(uint32_t address) {
	Block* b = self()->block;
	const uint32_t rank = address >> RankShift;
	if (rank >= b->gang->blocks.size()) fail("block %u of a cluster of %zu", rank, b->gang->blocks.size());
	return present(b->gang, rank);
}

void settle(Gang* g, Mbarrier* b) {
	if (b->pending != 0 || b->bytes != 0) return;
	b->phase ^= 1;
	b->pending = b->arrivals;
	g->wake_parked(b);
}

// do_bulk does the copies that count at a barrier.
void do_bulk(Gang* g, Mbarrier* b) {
	for (size_t i = 0; i < g->bulk.size();) {
		if (g->bulk[i].barrier != b) {
			i++;
			continue;
		}
		Bulk c = g->bulk[i];
		g->bulk.erase(g->bulk.begin() + i);
		if (c.map != nullptr) {
			visit(*static_cast<const Map*>(c.map), c.rank, c.at, static_cast<char*>(c.to), [](char* shared, const char* p, int bytes) {
				if (p != nullptr) memcpy(shared, p, bytes);
				else memset(shared, 0, bytes);
			});
		} else {
			memcpy(c.to, c.from != nullptr ? c.from : &c.value, c.bytes);
		}
		b->bytes -= c.bytes;
		settle(g, b);
	}
}

bool holds(const Block* b, const void* p) { return p >= b->shared && p < b->shared + b->shared_bytes; }

// saw notes that the block has waited for a phase of one of its barriers.
void saw(Gang* g, const Mbarrier* b, uint32_t phase) {
	shared_offset(b);  // of this block: nobody can wait for another's
	for (Arrival& a : g->arrivals) {
		if (a.barrier != b || a.phase != phase) continue;
		a = g->arrivals.back();
		g->arrivals.pop_back();
		return;
	}
}

void check_destination(void* to, uint32_t swizzle) {
	const uint32_t align = swizzle == 3 ? 1024 : swizzle == 2 ? 512 : swizzle == 1 ? 256 : 128;
	if (shared_offset(to) % align != 0) fail("a bulk copy to byte %u of shared memory, want a multiple of %u", shared_offset(to), align);
}

}  // namespace

char* swizzled(char* p, uint32_t kind) {
	const uintptr_t at = reinterpret_cast<uintptr_t>(p);
	const uintptr_t mask = kind == 3 ? 7 : kind == 2 ? 3 : kind == 1 ? 1 : 0;
	return reinterpret_cast<char*>(at ^ ((at >> 7 & mask) << 4));
}

void mbarrier_init(Mbarrier* b, uint32_t arrivals) {
	shared_offset(b);
	*b = {};
	b->arrivals = b->pending = arrivals;
}

void mbarrier_arrive(Mbarrier* b, uint32_t bytes) {
	if (b->pending == 0) fail("more arrivals at a barrier of shared memory than the %d it was made for", b->arrivals);
	b->bytes += bytes;
	b->pending--;
	settle(self()->block->gang, b);
}

void mbarrier_arrive_remote(uint32_t address) {
	Gang* g = self()->block->gang;
	Mbarrier* b = static_cast<Mbarrier*>(shared_pointer(address));
	const uint32_t phase = b->phase;
	const bool known = std::any_of(g->arrivals.begin(), g->arrivals.end(), [&](const Arrival& a) { return a.barrier == b && a.phase == phase; });
	if (!known) g->arrivals.push_back({b, phase});
	mbarrier_arrive(b, 0);
}

bool mbarrier_done(Mbarrier* b, uint32_t parity) {
	Gang* g = self()->block->gang;
	if (b->phase == parity) do_bulk(g, b);
	if (b->phase == parity) pause();
	if (b->phase == parity) return false;
	saw(g, b, parity);
	return true;
}

void mbarrier_wait(Mbarrier* b, uint32_t parity) {
	Gang* g = self()->block->gang;
	if (parity > 1) fail("a parity of %u", parity);
	while (b->phase == parity) {
		do_bulk(g, b);
		if (b->phase == parity) g->park(b, "mbarrier_wait");
	}
	saw(g, b, parity);
}

void bulk_load(void* to, const kernels::TensorMap* map, Mbarrier* b, uint32_t mask, int rank, const int (&at)[5]) {
	Gang* g = self()->block->gang;
	if (reinterpret_cast<uintptr_t>(map) % 64 != 0) fail("a tensor map at %p, want a multiple of 64", static_cast<const void*>(map));
	const Map* m = reinterpret_cast<const Map*>(map);
	check_destination(to, m->swizzle);
	for (uint32_t r = 0; r < g->blocks.size(); r++) {
		if (!(mask >> r & 1)) continue;
		Bulk c = {};
		char* const shared = present(g, r).shared;
		c.to = shared + shared_offset(to);
		c.barrier = reinterpret_cast<Mbarrier*>(shared + shared_offset(b));
		c.map = m;
		c.rank = rank;
		memcpy(c.at, at, sizeof c.at);
		c.bytes = box_bytes(*m);
		g->add(c);
	}
}

void bulk_copy(void* to, const void* from, uint32_t bytes, Mbarrier* b) {
	if ((bytes | reinterpret_cast<uintptr_t>(from) | shared_offset(to)) % 16 != 0) fail("a bulk copy of %u bytes from %p, want multiples of 16", bytes, from);
	Bulk c = {};
	c.to = to;
	c.barrier = b;
	c.from = from;
	c.bytes = bytes;
	self()->block->gang->add(c);
}

void bulk_copy_remote(uint32_t at, const void* from, uint32_t bytes, uint32_t b) {
	if ((bytes | shared_offset(from) | at) % 16 != 0) fail("a bulk copy of %u bytes from byte %u, want multiples of 16", bytes, shared_offset(from));
	Bulk c = {};
	c.to = shared_pointer(at);
	c.barrier = static_cast<Mbarrier*>(shared_pointer(b));
	c.from = from;
	c.bytes = bytes;
	self()->block->gang->add(c);
}

void store_async(uint32_t at, uint32_t v, uint32_t b) {
	Bulk c = {};
	c.to = shared_pointer(at);
	c.barrier = static_cast<Mbarrier*>(shared_pointer(b));
	c.value = v;
	c.bytes = 4;
	self()->block->gang->add(c);
}

// Stores to tensors wait for their group, as copies of copy_async do.
void bulk_store(const kernels::TensorMap* map, const void* from, int rank, const int (&at)[5]) {
	Fiber* f = self();
	const Map* m = reinterpret_cast<const Map*>(map);
	check_destination(const_cast<void*>(from), m->swizzle);
	BulkStore s = {m, static_cast<char*>(const_cast<void*>(from)), rank, {}, f, f->store_group};
	memcpy(s.at, at, sizeof s.at);
	f->block->gang->stores.push_back(s);
}

void bulk_commit() { self()->store_group++; }

void bulk_wait(uint32_t newest) {
	Fiber* f = self();
	auto& all = f->block->gang->stores;
	for (size_t i = 0; i < all.size();) {
		if (all[i].owner != f || all[i].group + newest >= f->store_group) {
			i++;
			continue;
		}
		const BulkStore s = all[i];
		all.erase(all.begin() + i);
		visit(*static_cast<const Map*>(s.map), s.rank, s.at, s.from, [](const char* shared, char* p, int bytes) {
			if (p != nullptr) memcpy(p, shared, bytes);
		});
	}
}

void Gang::finish_stores(const Fiber* f) {
	for (const BulkStore& s : stores) {
		if (s.owner == f) fail("the thread ends before its bulk stores are waited for");
	}
}

// What other blocks send to one that has ended faults, now and then: a barrier of the cluster
// does not say that it has arrived, if nobody waited for it.
void Gang::finish_block(const Block* b) {
	for (const Arrival& a : arrivals) {
		if (holds(b, a.barrier)) fail("the block ends while arrivals may be on their way to the barrier at byte %u", shared_offset(a.barrier));
	}
	for (const Bulk& c : bulk) {
		if (holds(b, c.to)) fail("the block ends while a copy is on its way to byte %u", shared_offset(c.to));
		if (holds(b, c.from) && !holds(b, c.to)) fail("the block ends while a copy of byte %u is on its way to another", shared_offset(c.from));
	}
}

uint32_t cluster_rank() { return self()->block->rank; }
uint32_t cluster_size() { return self()->block->gang->blocks.size(); }

void cluster_arrive() {
	Fiber* f = self();
	Gang* g = f->block->gang;
	if (f->cluster_waits) fail("cluster_arrive twice without cluster_wait");
	f->cluster_waits = true;
	f->cluster_phase = g->cluster_phase;
	g->cluster_arrived++;
	g->check_cluster();
}

void Gang::check_cluster() {
	if (cluster_arrived == 0 || cluster_arrived < live) return;
	cluster_arrived = 0;
	cluster_phase++;
	wake_parked(&cluster_phase);
}

void cluster_wait() {
	Fiber* f = self();
	Gang* g = f->block->gang;
	if (!f->cluster_waits) fail("cluster_wait without cluster_arrive");
	while (g->cluster_phase == f->cluster_phase) g->park(&g->cluster_phase, "cluster_wait");
	f->cluster_waits = false;
}

uint32_t shared_offset(const void* p) {
	const Block* b = self()->block;
	const char* at = static_cast<const char*>(p);
	if (at < b->shared || at > b->shared + b->shared_bytes) fail("%p is not in the dynamic shared memory of the block", p);
	return uint32_t(at - b->shared);
}

void* shared_pointer(uint32_t address) {
	const Block& b = block_of(address);
	const uint32_t at = address & ((1u << RankShift) - 1);
	if (at > b.shared_bytes) fail("byte %u of %u bytes of shared memory", at, b.shared_bytes);
	return b.shared + at;
}

bool elected() {
	struct Vote {
		bool mine;
	} v;
	meet(
	    [](void* const* lanes, uint32_t present) {
		    for (uint32_t i = 0; i < 32; i++) {
			    if (present >> i & 1) static_cast<Vote*>(lanes[i])->mine = (present & ((1u << i) - 1)) == 0;
		    }
	    },
	    &v, "elected");
	return v.mine;
}

// A thread begins with what a multiprocessor has for it, if the block is alone there.
void registers(int count, const char* what) {
	meet_warpgroup([](WarpGroup*) {}, nullptr, what);
	Block* b = self()->block;
	const int each = std::min(65536 / int(b->threads) / 8 * 8, 248);
	while (b->spare + each < count) b->gang->park(&b->spare, what);
	b->spare += each - count;
	b->gang->wake_parked(&b->spare);
}

}  // namespace emulate
