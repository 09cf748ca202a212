#include "host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <mutex>
#include <vector>

#include "gang.h"
#include "switch.h"

namespace emulate {

namespace {

// Gangs are kept for the next launch: their stacks are warm.
std::mutex idle_lock;
std::vector<std::unique_ptr<Gang>> idle;

}  // namespace

// The next fiber is drawn from those that are ready.
void Gang::next() {
	Fiber* from = self();
	if (ready.empty()) {
		if (live != 0) describe_deadlock();
		emulate_switch(&from->stack_pointer, main_stack);
		return;
	}
	const size_t i = draw(ready.size());
	Fiber* to = ready[i];
	ready[i] = ready.back();
	ready.pop_back();
	if (to != from) emulate_switch(&from->stack_pointer, to->stack_pointer);
}

void Gang::wait(const char* what) {
	self()->waits = what;
	next();
}

void Gang::park(const void* key, const char* what) {
	parked.push_back({key, self()});
	wait(what);
}

void Gang::wake_parked(const void* key) {
	for (size_t i = 0; i < parked.size();) {
		if (parked[i].first != key) {
			i++;
			continue;
		}
		wake(parked[i].second);
		parked[i] = parked.back();
		parked.pop_back();
	}
}

// Those that wait for the barrier already do the copy.
void Gang::add(const Bulk& b) {
	bulk.push_back(b);
	wake_parked(b.barrier);
}

void Gang::wake(Fiber* f) {
	f->waits = nullptr;
	ready.push_back(f);
	pauses = 0;
}

// Nothing of the fiber is used again.
void leave() {
	void* unused;
	emulate_switch(&unused, gang()->main_stack);
	__builtin_unreachable();
}

namespace {

bool intact(const char* p, size_t n) {
	for (size_t i = 0; i < n; i++) {
		if (p[i] != char(0xff)) return false;
	}
	return true;
}

void begin() {
	Gang* g = gang();
	g->entry->run(g->args);
	g->exit();
	g->next();
	__builtin_unreachable();
}

}  // namespace

void fail(const char* format, ...) {
	char text[400];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	gang()->describe(self(), text);
	leave();
}

void Gang::describe(const Fiber* f, const char* text) {
	snprintf(error, sizeof error, "block (%u, %u, %u), thread (%u, %u, %u): %s", f->block_index.x, f->block_index.y,
	         f->block_index.z, f->thread.x, f->thread.y, f->thread.z, text);
}

// The first few fibers of each kind of waiting are named.
void Gang::describe_deadlock() {
	int n = snprintf(error, sizeof error, "deadlock:");
	std::vector<const char*> seen;
	for (const Block& b : blocks) {
		for (uint32_t i = 0; i < b.threads; i++) {
			const Fiber& f = *b.fibers[i];
			if (f.done || f.waits == nullptr) continue;
			bool known = false;
			for (const char* s : seen) known = known || s == f.waits;
			if (known) continue;
			seen.push_back(f.waits);
			uint32_t same = 0;
			for (const Block& c : blocks) {
				for (uint32_t j = 0; j < c.threads; j++) same += !c.fibers[j]->done && c.fibers[j]->waits == f.waits;
			}
			if (n < int(sizeof error)) {
				n += snprintf(error + n, sizeof error - n,
				              " %u threads wait in %s, the first is (%u, %u, %u) of block (%u, %u, %u);", same, f.waits,
				              f.thread.x, f.thread.y, f.thread.z, f.block_index.x, f.block_index.y, f.block_index.z);
			}
		}
	}
}

Gang::~Gang() {
	for (Fiber* f : fibers) free(f->copies);
	free(shared);
	free(args);
}

// grow makes room for n fibers.
bool Gang::grow(uint32_t n) {
	while (fibers.size() < n) {
		char* p = new_piece();
		if (p == nullptr) return false;
		for (uint32_t i = 0; i < MostThreads; i++) {
			fibers.push_back(fiber_at(reinterpret_cast<uintptr_t>(p) + i * FiberBytes));
		}
	}
	return true;
}

void Gang::start(Block& b, const Launch& l, uint32_t at, Index3 index) {
	b.gang = this;
	b.fibers = fibers.data() + at;
	b.threads = b.live = l.block[0] * l.block[1] * l.block[2];
	b.shared_bytes = l.shared;
	b.spare = 0;
	b.all.reset();
	for (Barrier& n : b.named) n.reset();
	b.warps.assign((b.threads + 31) / 32, Warp{});
	b.groups.resize((b.threads + 127) / 128);
	for (WarpGroup& g : b.groups) {
		g.arrived = g.group = 0;
		g.products.clear();
	}
	for (uint32_t i = 0; i < b.threads; i++) {
		Fiber& f = *b.fibers[i];
		f.thread = {i % l.block[0], i / l.block[0] % l.block[1], i / l.block[0] / l.block[1]};
		f.block_index = index;
		f.block_dim = {l.block[0], l.block[1], l.block[2]};
		f.grid_dim = {l.grid[0], l.grid[1], l.grid[2]};
		f.lane = i % 32;
		f.block = &b;
		f.warp = &b.warps[i / 32];
		f.warp->live++;
		f.waits = nullptr;
		f.done = false;
		f.copy_count = f.group = f.store_group = 0;
		f.cluster_waits = false;
		f.stack_pointer = new_stack(stack_top(&f), begin);
		ready.push_back(&f);
	}
	live += b.threads;
}

bool Gang::run(const Entry* e, const Launch& l) {
	entry = e;
	random = l.seed * 0x9e3779b97f4a7c15u + 1;
	error[0] = 0;
	const uint64_t grid = uint64_t(l.grid[0]) * l.grid[1] * l.grid[2];
	const uint32_t threads = l.block[0] * l.block[1] * l.block[2];
	const uint64_t together = l.cooperative ? grid : e->cluster ? e->cluster : 1;
	if (together * threads > 64 * MostThreads || !grow(together * threads)) {
		snprintf(error, sizeof error, "%llu blocks of %u threads at once are more than the emulator runs",
		         static_cast<unsigned long long>(together), threads);
		return false;
	}
	const size_t stride = (l.shared + 2047) & ~size_t(1023);
	if (shared_room < together * stride) {
		free(shared);
		shared = static_cast<char*>(aligned_alloc(1024, together * stride));
		shared_room = together * stride;
	}
	free(args);
	args = static_cast<char*>(aligned_alloc(128, (l.size + 127) / 128 * 128));
	memcpy(args, l.args, l.size);
	if (blocks.size() != together) blocks = std::vector<Block>(together);

	for (uint64_t first = 0; first < grid; first += together) {
		ready.clear();
		parked.clear();
		bulk.clear();
		arrivals.clear();
		stores.clear();
		cluster_arrived = cluster_phase = 0;
		live = 0;
		pauses = 0;
		memset(shared, 0xff, together * stride);
		for (uint64_t i = 0; i < together; i++) {
			const uint64_t n = first + i;
			blocks[i].shared = shared + i * stride;
			blocks[i].rank = i;
			start(blocks[i], l, i * threads,
			      {uint32_t(n % l.grid[0]), uint32_t(n / l.grid[0] % l.grid[1]), uint32_t(n / l.grid[0] / l.grid[1])});
		}
		const size_t i = draw(ready.size());
		Fiber* f = ready[i];
		ready[i] = ready.back();
		ready.pop_back();
		emulate_switch(&main_stack, f->stack_pointer);
		if (error[0] != 0) return false;
		for (const Block& b : blocks) {
			if (intact(b.shared + l.shared, stride - l.shared)) continue;
			describe(b.fibers[0], "a write beyond the dynamic shared memory of the block");
			return false;
		}
	}
	return true;
}

}  // namespace emulate

// tandem_emulate runs a kernel. On failure it returns 1 and a text that ends with 0.
extern "C" __attribute__((visibility("default"))) int32_t tandem_emulate(const emulate::Entry* e, const emulate::Launch* l,
                                                                       char* text, uint64_t room) {
	using namespace emulate;
	const uint64_t threads = uint64_t(l->block[0]) * l->block[1] * l->block[2];
	if (l->size != e->size) {
		snprintf(text, room, "kernel %s takes %u bytes of arguments, given %u", e->name, e->size, l->size);
		return 1;
	}
	if (threads != e->threads) {
		snprintf(text, room, "kernel %s has blocks of %u threads, given %llu", e->name, e->threads,
		         static_cast<unsigned long long>(threads));
		return 1;
	}
	if (e->cluster > 1 && l->grid[0] % e->cluster != 0) {
		snprintf(text, room, "kernel %s has clusters of %u blocks, given %u", e->name, e->cluster, l->grid[0]);
		return 1;
	}
	catch_faults();
	std::unique_ptr<Gang> g;
	{
		std::lock_guard<std::mutex> hold(idle_lock);
		if (!idle.empty()) {
			g = std::move(idle.back());
			idle.pop_back();
		}
	}
	if (!g) g.reset(new Gang);
	const bool ok = g->run(e, *l);
	if (!ok) snprintf(text, room, "kernel %s: %s", e->name, g->error);
	std::lock_guard<std::mutex> hold(idle_lock);
	idle.push_back(std::move(g));
	return ok ? 0 : 1;
}
