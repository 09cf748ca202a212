// Where fibers lie, and what happens when one touches what it must not.
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include <atomic>
#include <mutex>

#include "gang.h"
#include "switch.h"

namespace emulate {

namespace {

struct sigaction old_segv, old_bus;

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

}  // namespace

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

namespace {

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
	jump(context, stack_top(f) - 64, leave);
}

}  // namespace

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

}  // namespace emulate
