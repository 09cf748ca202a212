// Blocks that run together, and their barriers.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "host.h"

struct Mbarrier;

namespace emulate {

struct Block;
struct Gang;

// A Warp's threads meet in operations.
struct Warp {
	uint32_t live, arrived, present;
	Combine combine;
	const char* what;
	void* data[32];
	Fiber* waiting[32];

	void release(Gang* g, Fiber* last);
};

struct Barrier {
	uint32_t arrived, expected;
	int sum;
	const char* what;
	std::vector<Fiber*> waiting;

	void release(Gang* g, Fiber* last);
	void reset() {
		arrived = 0;
		sum = 0;
		waiting.clear();
	}
};

// A Product of a warpgroup that is under way.
struct Product {
	float* c[128];
	uint32_t a[128][4];
	uint64_t left, right;
	uint32_t group;
	int columns;
	bool registers, across, add;
};

// A WarpGroup is four warps.
struct WarpGroup {
	uint32_t arrived, group;
	const char* what;
	void* data[128];
	Fiber* waiting[128];
	std::deque<Product> products;
};
WarpGroup* warpgroup();
void meet_warpgroup(void (*combine)(WarpGroup*), void* data, const char* what);

// A Bulk copy is done when its barrier is waited for. A box of a tensor, bytes, or a word.
struct Bulk {
	void* to;
	Mbarrier* barrier;
	const void *map, *from;
	int rank, at[5];
	uint32_t value, bytes;
};

// An Arrival is one at a barrier by its address in the cluster, in a phase of it.
struct Arrival {
	const Mbarrier* barrier;
	uint32_t phase;
};

struct BulkStore {
	const void* map;
	char* from;
	int rank, at[5];
	const Fiber* owner;
	uint32_t group;
};

// swizzled returns where what belongs to p lies: kind is a driver.Swizzle.
char* swizzled(char* p, uint32_t kind);

struct Block {
	static constexpr uint32_t Barriers = 16;

	Gang* gang;
	Fiber** fibers;
	uint32_t threads, live;
	uint32_t rank;     // in its cluster
	int32_t spare;     // registers that its warpgroups have left to others
	char* shared;
	uint32_t shared_bytes;
	Barrier all, named[Barriers - 1];
	std::vector<Warp> warps;
	std::vector<WarpGroup> groups;
};

constexpr uint32_t MostThreads = 1024;  // of one piece of the memory of fibers

// new_piece makes the memory of MostThreads fibers; nullptr if there is none. It is never
// given back.
char* new_piece();
char* stack_top(const Fiber* f);

// catch_faults makes faults of fibers errors of their launch. Other faults go where they
// went before.
void catch_faults();

// A Gang is the blocks that run together, and everything that belongs to the launch.
struct Gang {
	const Entry* entry = nullptr;
	char* args = nullptr;
	std::vector<Block> blocks;
	std::vector<Fiber*> fibers;
	std::vector<Fiber*> ready;
	char* shared = nullptr;
	size_t shared_room = 0;
	void* main_stack = nullptr;
	uint32_t live = 0;
	uint64_t pauses = 0, random = 1;
	std::vector<std::pair<const void*, Fiber*>> parked;
	std::vector<Bulk> bulk;
	std::vector<Arrival> arrivals;  // that the block has not waited for
	std::vector<BulkStore> stores;
	uint32_t cluster_arrived = 0, cluster_phase = 0;
	char error[1024];

	~Gang();
	bool run(const Entry* e, const Launch& l);
	void next();
	void wait(const char* what);
	void wake(Fiber* f);
	void exit();
	// park waits until what lies at key changes, of which wake_parked tells.
	void park(const void* key, const char* what);
	void wake_parked(const void* key);
	void add(const Bulk& b);
	void finish_stores(const Fiber* f);
	void finish_block(const Block* b);
	void check_cluster();
	void describe(const Fiber* f, const char* text);
	void describe_deadlock();

	size_t draw(size_t n) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		return size_t((unsigned __int128)(random) * n >> 64);
	}

private:
	bool grow(uint32_t n);
	void start(Block& b, const Launch& l, uint32_t at, Index3 index);
};

inline Gang* gang() { return self()->block->gang; }

// leave ends the launch, with the error that has been described.
[[noreturn]] void leave();

}  // namespace emulate
