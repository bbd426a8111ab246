/* SPDX-License-Identifier: MIT */
/* Private to luastate: what differs between architectures. One source file each, arch_*.c. */
#ifndef LUASTATE_ARCH_ARCH_H
#define LUASTATE_ARCH_ARCH_H

#include "luastate/state/state.h"

/** Rows of layouts.table for this architecture have it. */
extern const char state_arch_name[];

/** From a VM's global state to what its code has in STATE_REG_VM. */
uint32_t state_arch_register_offset(const struct luastate_layout *layout);

/** The shape of the C frames of the code with this rule. */
struct state_frame_shape state_arch_shape(const struct luastate_unwind_rule *rule);

/**
 * Registers in the caller of a complete C frame.
 * @param bytes The frame, layout->cframe_size bytes.
 * @param registers Those in the frame; those of its caller on return.
 */
void state_arch_restore(const struct luastate_layout *layout, const uint8_t *bytes,
			uint64_t frame_address, struct attach_registers *registers);

/**
 * A thread in an entry or exit sequence of the interpreter, with a C frame that is not complete.
 * @return 1 and the registers in the caller, 0 if it is in none, or -1 (a read failed).
 */
int state_arch_restore_partial(const struct state_interpreter *interpreter,
			       const struct attach_reader *stopped,
			       const struct attach_registers *registers,
			       struct attach_registers *ret_caller, struct failure *why);

/** Whether @p pc lies between an entry sequence of the interpreter and the store of L->cframe: the
 *  C frame is complete, and nothing links it yet. Looks at the copy of the interpreter's code only.
 *  On x86-64 not the entry of a callback that the FFI made, which C code links later
 *  (lj_ccallback.c, lj_ccallback_enter).
 *  Source: LuaJIT v2.1 src/vm_x64.dasc, vm_x86.dasc, vm_arm64.dasc (vm_resume, vm_call, vm_cpcall).
 */
bool state_arch_is_entering(const struct state_interpreter *interpreter,
			    const struct luastate_layout *layout, uint64_t pc);

/** Whether the instruction before a return address looks like a call, direct or not: on x86-64 the
 *  end of another one may look so too. False where its code cannot be read. @p reader may be one of
 *  the process that runs. Source: Intel SDM vol. 2 (CALL); Arm ARM (BL, BLR). */
bool state_arch_follows_call(const struct attach_reader *reader, uint64_t ret);

/** Where the instruction before a return address calls to, if it calls VM code directly; else 0. */
uint64_t state_arch_vm_call_target(const struct luastate *state, const struct attach_reader *reader,
				   uint64_t ret);

/**
 * A thread in a helper of VM code that C code has called, such as lj_vm_floor or lj_vm_cpuid: it
 * has no C frame.
 * @return true and the registers in the caller.
 */
bool state_arch_restore_helper(const struct luastate *state, const struct luastate_memory *memory,
			       const struct attach_registers *registers,
			       struct attach_registers *ret_caller);

/** Where in a call or return an instruction of the interpreter is, as far as BASE and PC are then
 *  not what they are elsewhere. */
enum state_moment {
	STATE_MOMENT_PLAIN,
	STATE_MOMENT_NEXT,	 /* PC is the instruction that comes, not one past it */
	STATE_MOMENT_STORE_LINK, /* BASE is the callee's, its link is not stored yet */
	STATE_MOMENT_LOAD_PC,	 /* the link is stored, PC is still the caller's */
};

enum state_moment state_arch_moment(const struct state_interpreter *interpreter, uint64_t pc);

/** Number of the trace that has machine code at @p pc, by that code; 0 where it does not tell. To
 *  be verified: other memory may look like that. */
uint32_t state_arch_trace_at(const struct luastate_layout *layout, uint64_t G,
			     const struct attach_reader *reader, uint64_t pc);

/** Where in a trace's code it has noted its number: what comes before still belongs to the trace
 *  from which it begins, a check of the stack with that one's exit among it.
 *  @return The offset behind that, 0 where the code does not note it (AArch64). */
size_t state_arch_head_end(const struct luastate_layout *layout, uint64_t G, const uint8_t *code,
			   size_t len, uint32_t *ret_number);

/** Groups of exit stubs on x86-64 (LJ_MAX_EXITSTUBGR). */
enum { STATE_STUB_GROUPS = 16 };

/** Where the exit stubs are: on x86-64 in groups that all traces of a VM share, on AArch64 behind
 *  the trace's machine code. */
struct state_stubs {
	uint64_t group[STATE_STUB_GROUPS]; /* 0: none */
};

/** @param mcode, szmcode The trace's machine code. */
bool state_arch_read_stubs(const struct luastate_layout *layout, const struct attach_reader *reader,
			   uint64_t G, uint64_t mcode, uint32_t szmcode,
			   struct state_stubs *ret_stubs);

/** The number of the exit whose stub is at @p pc. @return false if none is. */
bool state_arch_exit_of(const struct state_stubs *stubs, uint64_t pc, uint32_t *ret_exit);

/** Whether a word of the native stack can be the return address of what a trace has called.
 *  @param vm_frame The C frame on which the trace runs. */
bool state_arch_is_return_slot(uint64_t address, uint64_t vm_frame, uint32_t spadjust);

/** Whether @p pc is in the code that the exits of all traces share: none on AArch64. */
bool state_arch_in_stubs(const struct state_stubs *stubs, uint64_t pc);

/** The store to global_State.jit_base at the beginning of a trace's code.
 *  @return its length in bytes, 0 if there is none. */
size_t state_arch_base_store_at(const struct luastate_layout *layout, uint64_t G,
				const uint8_t *code, size_t len);

/** The branch at the beginning of some code. @param address Where the code is in the target.
 *  @return its length in bytes, 0 if there is none. */
size_t state_arch_branch_at(const uint8_t *code, size_t len, uint64_t address,
			    uint64_t *ret_target);

/**
 * Whether registers hold a trace's number and that of one of its exits where the interpreter's code
 * has them while it notes both: from the change of the VM's state on until jit_base is cleared.
 */
bool state_arch_holds_exit(const struct attach_registers *registers, uint32_t trace, uint32_t exit);

/** BASE of the innermost frame that is whole: the register, but where VM code changes that for a
 *  call or return the place where it keeps the old one. @param registers Those in the interpreter.
 */
uint64_t state_arch_base(const struct state_interpreter *interpreter,
			 const struct attach_registers *registers);

/**
 * The C frame that a word of a native stack shows: on x86-64 the return address that ends what the
 * interpreter has called, right below its frame; on AArch64 the interpreter's frame pointer, which
 * one of the functions below has saved. Not proven by that.
 * @param address Where the word is.
 * @return The frame's address, or 0.
 */
uint64_t state_arch_frame_shown(const struct state_interpreter *interpreter, uint64_t address,
				uint64_t word);

/** The same for the sampler's BPF program: luastate_bpf_vm.frame_distance. */
uint32_t state_arch_frame_distance(const struct state_interpreter *interpreter);

/**
 * The next C frame that words of a native stack show, as fast as words can be compared: runs while
 * the thread stands.
 * @param address Of the first word.
 * @param words 8 bytes each, of any alignment.
 * @param at The word to begin with; behind the one that shows the frame afterwards.
 * @return The frame's address, or 0.
 */
uint64_t state_arch_next_shown(const struct state_interpreter *interpreter, uint64_t address,
			       const void *words, size_t count, size_t *at);

/** The word that a thread's registers add to those of its native stack, as if it lay below sp. */
uint64_t state_arch_word_below(const struct attach_registers *registers);

/** Bytes that VM code may have pushed below its C frame when it calls a helper of its own, which
 *  the unwind rule does not tell. */
extern const unsigned state_arch_helper_bytes;

/**
 * Pass over words none of which is looked for, as fast as memory can be copied. Word i is looked
 * for where it is not below @p least + 8 i, and not more than @p range above.
 * @param words 8 bytes each, of any alignment.
 * @return How many are passed over, from the first on; one of the next may be looked for.
 */
size_t state_arch_pass(const uint8_t *words, size_t count, uint64_t least, uint64_t range);

#endif
