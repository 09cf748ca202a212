// Switching stacks: emulate_switch(save, to) stores the callee-saved registers on the
// stack, the stack pointer at *save, and goes on where the stack `to` was left.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

extern "C" void emulate_switch(void** save, void* to);

#if defined(__x86_64__)

// new_stack returns a stack pointer with which emulate_switch begins at f.
inline void* new_stack(char* top, void (*f)()) {
	uint64_t* p = reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15));
	*--p = 0;  // f finds the stack as after a call
	*--p = reinterpret_cast<uint64_t>(f);
	for (int i = 0; i < 6; i++) *--p = 0;
	return p;
}

// jump makes a signal's handler return to f on the given stack.
inline void jump(void* context, char* top, void (*f)()) {
	auto* u = static_cast<ucontext_t*>(context);
	u->uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>((reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15)) - 8);
	u->uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(f);
}

inline uintptr_t stack_of(void* context) {
	return static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
}

inline const char* access_kind(void* context) {
	auto* u = static_cast<ucontext_t*>(context);
	return u->uc_mcontext.gregs[REG_ERR] & 2 ? "write" : "read";
}

#elif defined(__aarch64__)

inline void* new_stack(char* top, void (*f)()) {
	char* p = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15)) - 160;
	memset(p, 0, 160);
	const uint64_t at = reinterpret_cast<uint64_t>(f);
	memcpy(p + 88, &at, sizeof at);
	return p;
}

inline void jump(void* context, char* top, void (*f)()) {
	auto* u = static_cast<ucontext_t*>(context);
	u->uc_mcontext.sp = reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15);
	u->uc_mcontext.pc = reinterpret_cast<uintptr_t>(f);
}

inline uintptr_t stack_of(void* context) { return static_cast<ucontext_t*>(context)->uc_mcontext.sp; }

inline const char* access_kind(void*) { return "access"; }

#else
#error "the emulator runs on x86-64 and arm64"
#endif
