#include "host.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "gang.h"
#include "switch.h"

namespace emulate {

namespace {

constexpr uint32_t MostThreads = 1024;  // of one piece of memory
constexpr uint64_t MostPauses = 1 << 22;

struct sigaction old_segv, old_bus;

// Gangs are kept for the next launch: their stacks are warm.
std::mutex idle_lock;
std::vector<std::unique_ptr<Gang>> idle;

// Where fibers lie, for the handler of signals.
constexpr size_t MostPieces = 1024;
std::atomic<size_t> piece_count;
char* pieces[MostPieces];

constexpr size_t PieceBytes = FiberBytes * MostThreads;

bool is_fiber(uintptr_t address) {
	const size_t n = piece_count;
	for (size_t i = 0; i < n; i++) {
		const uintptr_t from = reinterpret_cast<uintptr_t>(pieces[i]);
		if (address >= from && address < from + PieceBytes) return true;
	}
	return false;
}

// new_piece makes the memory of MostThreads fibers. It is never given back.
char* new_piece() {
	void* p = mmap(nullptr, PieceBytes + FiberBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) return nullptr;
	char* at = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + FiberBytes - 1) & ~(FiberBytes - 1));
	for (uint32_t i = 0; i < MostThreads; i++) mprotect(at + i * FiberBytes + GuardAt, StackAt - GuardAt, PROT_NONE);
	static std::mutex adding;
	std::lock_guard<std::mutex> hold(adding);
	if (piece_count == MostPieces) return nullptr;
	pieces[piece_count] = at;
	piece_count++;
	return at;
}

// Tops that lie at different places of their pages keep the stacks apart in the cache.
char* stack_top(const Fiber* f) {
	const uintptr_t at = reinterpret_cast<uintptr_t>(f);
	return reinterpret_cast<char*>((at | (FiberBytes - 1)) + 1 - (at / FiberBytes * 576) % 4032);
}

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

namespace {

Gang* gang() { return self()->block->gang; }

// Fibers leave here; nothing of them is used again.
[[noreturn]] void leave() {
	Gang* g = gang();
	void* unused;
	emulate_switch(&unused, g->main_stack);
	__builtin_unreachable();
}

void land() { leave(); }

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

void on_fault(int signal, siginfo_t* info, void* context) {
	const uintptr_t stack = stack_of(context), at = reinterpret_cast<uintptr_t>(info->si_addr);
	if (!is_fiber(stack)) {
		struct sigaction* old = signal == SIGSEGV ? &old_segv : &old_bus;
		if (old->sa_flags & SA_SIGINFO) {
			old->sa_sigaction(signal, info, context);
		} else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
			old->sa_handler(signal);
		} else {
			::signal(signal, SIG_DFL);
		}
		return;
	}
	Fiber* f = fiber_at(stack);
	Gang* g = f->block->gang;
	if (at / FiberBytes == stack / FiberBytes && at % FiberBytes < StackAt) {
		g->describe(f, "the stack is full");
	} else if (info->si_code == SI_KERNEL) {
		g->describe(f, "a vector that is not aligned, or an address that is none");
	} else {
		char text[96];
		snprintf(text, sizeof text, "%s at %p, which is outside of memory", access_kind(context), info->si_addr);
		g->describe(f, text);
	}
	jump(context, stack_top(f) - 64, land);
}

void catch_faults() {
	static std::once_flag once;
	std::call_once(once, [] {
		struct sigaction a = {};
		a.sa_sigaction = on_fault;
		a.sa_flags = SA_SIGINFO | SA_ONSTACK;
		sigfillset(&a.sa_mask);
		sigaction(SIGSEGV, &a, &old_segv);
		sigaction(SIGBUS, &a, &old_bus);
	});
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
