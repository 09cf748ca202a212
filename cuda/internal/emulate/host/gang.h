// Blocks that run together, and their barriers.
#pragma once

#include <vector>

#include "host.h"

namespace emulate {

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

struct Block {
	static constexpr uint32_t Barriers = 16;

	Gang* gang;
	Fiber** fibers;
	uint32_t threads, live;
	uint32_t rank;  // in its cluster
	char* shared;
	uint32_t shared_bytes;
	Barrier all, named[Barriers - 1];
	std::vector<Warp> warps;
};

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
	char error[1024];

	~Gang();
	bool run(const Entry* e, const Launch& l);
	void next();
	void wait(const char* what);
	void wake(Fiber* f);
	void exit();
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

}  // namespace emulate
