// Switching stacks: emulate_switch(save, to) stores the callee-saved registers on the
// stack, the stack pointer at *save, and goes on where the stack `to` was left.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

extern "C" void emulate_switch(void** save, void* to);

#if defined(__x86_64__)

asm(R"(
	.text
	.globl emulate_switch
	.hidden emulate_switch
	.type emulate_switch, @function
emulate_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size emulate_switch, .-emulate_switch
)");

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

asm(R"(
	.text
	.globl emulate_switch
	.hidden emulate_switch
	.type emulate_switch, @function
emulate_switch:
	sub sp, sp, #160
	stp x19, x20, [sp, #0]
	stp x21, x22, [sp, #16]
	stp x23, x24, [sp, #32]
	stp x25, x26, [sp, #48]
	stp x27, x28, [sp, #64]
	stp x29, x30, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	mov x9, sp
	str x9, [x0]
	mov sp, x1
	ldp x19, x20, [sp, #0]
	ldp x21, x22, [sp, #16]
	ldp x23, x24, [sp, #32]
	ldp x25, x26, [sp, #48]
	ldp x27, x28, [sp, #64]
	ldp x29, x30, [sp, #80]
	ldp d8, d9, [sp, #96]
	ldp d10, d11, [sp, #112]
	ldp d12, d13, [sp, #128]
	ldp d14, d15, [sp, #144]
	add sp, sp, #160
	ret
	.size emulate_switch, .-emulate_switch
)");

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
