// The emulator: blocks and threads of a kernel as fibers on one thread of the host.
//
// A fiber runs until it waits: at a barrier of its block, or in an operation of its warp.
// Who runs next is drawn at random from a seed, so that a missing barrier shows as wrong
// values sooner or later, and the same seed gives the same run. An operation of a warp
// computes for all lanes when the last of those that have not exited arrives.
//
// Blocks run one after another; those of a cluster, or of a cooperative grid, together.
// Then their static __shared__ variables would be one, so such kernels use dynamic shared
// memory alone. Faults (an address outside memory, misuse of an operation, a deadlock) end
// the launch with a text that says where.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace emulate {

struct Index3 {
	uint32_t x, y, z;
};

// A Launch is what the host asks for; the Go side has the same struct.
struct Launch {
	uint32_t grid[3], block[3];
	uint32_t shared;  // dynamic, bytes
	uint32_t cooperative;
	uint32_t size, filler;  // of the arguments, bytes
	uint64_t seed;
	const void* args;
};

// An Entry is a kernel in the library, exported as tandem_entry_NAME.
struct Entry {
	const char* name;
	void (*run)(const void* args);
	uint32_t size, threads, cluster;
};

struct Block;
struct Warp;

// A Fiber is one thread of the device.
struct Fiber {
	Index3 thread;
	Index3 block_index;
	Index3 block_dim, grid_dim;
	uint32_t lane;
	Block* block;
	Warp* warp;

	void* stack_pointer;
	const char* waits;  // for what, nullptr if it does not
	int result;
	bool done;

	// Copies of copy_async that are not done, oldest first, and how many groups precede.
	struct Copy {
		void* to;
		const void* from;
		uint32_t valid, bytes, group;
	};
	Copy* copies;
	uint32_t copy_count, copy_room, group;

	uint32_t store_group;    // of bulk stores
	uint32_t cluster_phase;  // in which it arrived
	bool cluster_waits;
};

// Each fiber has memory that is aligned to its size: first the Fiber, then a page that
// nobody may touch, then the stack. So the stack pointer says whose it is, which is faster
// than a variable of the thread. Fibers lie at different places of their first page, lest
// they meet in the cache.
constexpr uintptr_t FiberBytes = 64 << 10, GuardAt = 4 << 10, StackAt = 8 << 10;

inline Fiber* fiber_at(uintptr_t address) {
	const uintptr_t base = address & ~(FiberBytes - 1);
	return reinterpret_cast<Fiber*>(base + (address / FiberBytes % 28) * 128);
}

// self returns the fiber that runs.
inline Fiber* self() {
	uintptr_t stack;
#if defined(__x86_64__)
	asm("movq %%rsp, %0" : "=r"(stack));
#else
	asm("mov %0, sp" : "=r"(stack));
#endif
	return fiber_at(stack);
}

// meet waits until all lanes of the warp that are left have called it with the same
// combine, which then runs once; it finds each present lane's data and leaves the results
// there.
using Combine = void (*)(void* const* lanes, uint32_t present);
void meet(Combine combine, void* data, const char* what);

// sync_block is a barrier of all threads that are left; it returns how many gave true.
int sync_block(bool value, const char* what);
uint32_t live_threads();

// A barrier of count threads of the block.
void barrier(uint32_t id, uint32_t count, bool wait);

// pause lets the others run. It is a deadlock if that happens too often in a row.
void pause();

// progress says that something happened which a fiber in a loop of pauses may wait for.
void progress();

void* dynamic_memory();
uint32_t dynamic_bytes();

void copy_async(void* to, const void* from, uint32_t valid, uint32_t bytes);
void copy_commit();
void copy_wait(uint32_t newest);

// fail ends the launch.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace emulate
