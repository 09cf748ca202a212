// Where fibers wait for one another.
#include <stdlib.h>
#include <string.h>

#include "gang.h"

namespace emulate {

constexpr uint64_t MostPauses = 1 << 22;

// A thread that exits no longer counts in what others wait for.
void Gang::exit() {
	Fiber* f = self();
	finish_stores(f);
	f->done = true;
	live--;
	check_cluster();
	pauses = 0;
	Warp* w = f->warp;
	w->live--;
	if (w->arrived != 0 && w->arrived == w->live) w->release(this, nullptr);
	Block* b = f->block;
	b->live--;
	if (b->live == 0) finish_block(b);
	if (b->all.arrived != 0 && b->all.arrived == b->live) b->all.release(this, nullptr);
}

void Warp::release(Gang* g, Fiber* last) {
	combine(data, present);
	for (uint32_t i = 0; i < 32; i++) {
		if ((present >> i & 1) && waiting[i] != last) g->wake(waiting[i]);
	}
	arrived = present = 0;
}

void Barrier::release(Gang* g, Fiber* last) {
	for (Fiber* f : waiting) {
		f->result = sum;
		if (f != last) g->wake(f);
	}
	waiting.clear();
	arrived = 0;
	sum = 0;
}

void meet(Combine combine, void* data, const char* what) {
	Fiber* f = self();
	Warp* w = f->warp;
	if (w->arrived == 0) {
		w->combine = combine;
		w->what = what;
	} else if (w->combine != combine) {
		fail("%s, while other lanes of the warp are in %s", what, w->what);
	}
	w->data[f->lane] = data;
	w->waiting[f->lane] = f;
	w->present |= 1u << f->lane;
	if (++w->arrived == w->live) {
		w->release(gang(), f);
		return;
	}
	gang()->wait(what);
}

int sync_block(bool value, const char* what) {
	Fiber* f = self();
	Barrier& b = f->block->all;
	if (b.arrived == 0) {
		b.what = what;
	} else if (b.what != what) {
		fail("%s, while other threads are in %s", what, b.what);
	}
	b.sum += value;
	b.waiting.push_back(f);
	if (++b.arrived == f->block->live) {
		b.release(gang(), f);
	} else {
		gang()->wait(what);
	}
	return f->result;
}

uint32_t live_threads() { return self()->block->live; }

void barrier(uint32_t id, uint32_t count, bool wait) {
	if (id == 0 || id >= Block::Barriers) fail("a barrier %u, want 1 to 15", id);
	if (count == 0 || count % 32 != 0) fail("a barrier of %u threads, want whole warps", count);
	Fiber* f = self();
	Barrier& b = f->block->named[id - 1];
	if (b.arrived != 0 && b.expected != count) {
		fail("barrier %u of %u threads, while others wait for %u", id, count, b.expected);
	}
	b.expected = count;
	if (wait) b.waiting.push_back(f);
	if (++b.arrived == count) {
		b.release(gang(), f);
	} else if (wait) {
		static const char* const names[] = {"",          "barrier 1",  "barrier 2",  "barrier 3",  "barrier 4",  "barrier 5",
		                                    "barrier 6", "barrier 7",  "barrier 8",  "barrier 9",  "barrier 10", "barrier 11",
		                                    "barrier 12", "barrier 13", "barrier 14", "barrier 15"};
		gang()->wait(names[id]);
	}
}

void pause() {
	Gang* g = gang();
	if (++g->pauses > MostPauses) fail("deadlock: threads wait in loops for what does not come");
	g->ready.push_back(self());
	g->next();
}

void progress() { gang()->pauses = 0; }

void* dynamic_memory() { return self()->block->shared; }
uint32_t dynamic_bytes() { return self()->block->shared_bytes; }

// Copies happen as late as they may, so that a missing wait shows.
void copy_async(void* to, const void* from, uint32_t valid, uint32_t bytes) {
	Fiber* f = self();
	if (valid > bytes) fail("copy_async of %u bytes, given %u valid ones", bytes, valid);
	if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) & (bytes - 1)) {
		fail("copy_async of %u bytes from %p to %p, which is not aligned", bytes, from, to);
	}
	if (f->copy_count == f->copy_room) {
		f->copy_room = f->copy_room ? 2 * f->copy_room : 16;
		f->copies = static_cast<Fiber::Copy*>(realloc(f->copies, f->copy_room * sizeof(Fiber::Copy)));
	}
	f->copies[f->copy_count++] = {to, from, valid, bytes, f->group};
}

void copy_commit() { self()->group++; }

void copy_wait(uint32_t newest) {
	Fiber* f = self();
	uint32_t n = 0;
	for (; n < f->copy_count && f->copies[n].group + newest < f->group; n++) {
		const Fiber::Copy& c = f->copies[n];
		memcpy(c.to, c.from, c.valid);
		memset(static_cast<char*>(c.to) + c.valid, 0, c.bytes - c.valid);
	}
	if (n == 0) return;
	f->copy_count -= n;
	memmove(f->copies, f->copies + n, f->copy_count * sizeof(Fiber::Copy));
}

}  // namespace emulate
