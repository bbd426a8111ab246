/* SPDX-License-Identifier: MIT */
/* What differs between architectures? Private to luastate; each architecture has one source file,
 * arch_*.c. */
#ifndef LUASTATE_ARCH_ARCH_H
#define LUASTATE_ARCH_ARCH_H

#include "luastate/state/state.h"

/** The architecture's name in layouts.table. */
extern const char state_arch_name[];

/** Distance from a VM's global state to the value of STATE_REG_VM in its code. */
uint32_t state_arch_register_offset(const struct luastate_layout *layout);

/** The shape of the C frames of code with this unwind rule. */
struct state_frame_shape state_arch_shape(const struct luastate_unwind_rule *rule);

/**
 * Restore the registers of a complete C frame's caller.
 * @param bytes The frame, layout->cframe_size bytes.
 * @param registers In: registers in the frame. Out: registers in its caller.
 */
void state_arch_restore(const struct luastate_layout *layout, const uint8_t *bytes,
			uint64_t frame_address, struct attach_registers *registers);

/**
 * Restore the caller's registers in an entry or exit sequence of the interpreter, where the C frame
 * is not complete.
 * @return 1 and the registers in the caller; 0 if the thread is in no such sequence; -1 if a read
 * failed.
 */
int state_arch_restore_partial(const struct state_interpreter *interpreter,
			       const struct attach_reader *stopped,
			       const struct attach_registers *registers,
			       struct attach_registers *ret_caller, struct failure *why);

/**
 * Whether @p pc is between an entry sequence of the interpreter and the store of L->cframe: the C
 * frame is complete, but nothing links to it yet. Reads only the copy of the interpreter's code. On
 * x86-64 it ignores the entry of an FFI callback, which C code links later (lj_ccallback.c,
 * lj_ccallback_enter).
 * Source: LuaJIT v2.1 src/vm_x64.dasc, vm_x86.dasc, vm_arm64.dasc (vm_resume, vm_call, vm_cpcall).
 */
bool state_arch_is_entering(const struct state_interpreter *interpreter,
			    const struct luastate_layout *layout, uint64_t pc);

/**
 * Whether the instruction before a return address looks like a call, direct or indirect. On x86-64
 * the end of another instruction may look like one too. False if the code cannot be read. @p reader
 * may read a running process. Source: Intel SDM vol. 2 (CALL); Arm ARM (BL, BLR).
 */
bool state_arch_follows_call(const struct attach_reader *reader, uint64_t ret);

/** The target of the direct call before a return address, if it is in VM code; else 0. */
uint64_t state_arch_vm_call_target(const struct luastate *state, const struct attach_reader *reader,
				   uint64_t ret);

/**
 * Restore the caller's registers in a helper of VM code that C code called, such as lj_vm_floor or
 * lj_vm_cpuid. A helper has no C frame.
 * @return true and the registers in the caller.
 */
bool state_arch_restore_helper(const struct luastate *state, const struct luastate_memory *memory,
			       const struct attach_registers *registers,
			       struct attach_registers *ret_caller);

/** Instructions in the middle of a call or return, where BASE and PC have unusual values. */
enum state_moment {
	STATE_MOMENT_PLAIN,
	STATE_MOMENT_NEXT,	 /* PC points at the next instruction, not past it */
	STATE_MOMENT_STORE_LINK, /* BASE is the callee's, its link is not stored yet */
	STATE_MOMENT_LOAD_PC,	 /* the link is stored, PC is still the caller's */
};

enum state_moment state_arch_moment(const struct state_interpreter *interpreter, uint64_t pc);

/**
 * The number of the trace whose machine code is at @p pc, as the code shows it; 0: unknown. The
 * caller must verify it, because other memory may look the same.
 */
uint32_t state_arch_trace_at(const struct luastate_layout *layout, uint64_t G,
			     const struct attach_reader *reader, uint64_t pc);

/**
 * The end of the instruction by which a trace notes its number. The code before it still belongs to
 * the parent trace, including a stack check that leaves through the parent's exit.
 * @return The offset behind the instruction; 0 if traces do not note their number (AArch64).
 */
size_t state_arch_head_end(const struct luastate_layout *layout, uint64_t G, const uint8_t *code,
			   size_t len, uint32_t *ret_number);

/** Groups of exit stubs on x86-64 (LJ_MAX_EXITSTUBGR). */
enum { STATE_STUB_GROUPS = 16 };

/**
 * Addresses of exit stubs. On x86-64 all traces of a VM share groups of stubs; on AArch64 a trace's
 * stubs follow its machine code.
 */
struct state_stubs {
	uint64_t group[STATE_STUB_GROUPS]; /* 0: none */
};

/** Read where the exit stubs of a trace are. @param mcode, szmcode The trace's machine code. */
bool state_arch_read_stubs(const struct luastate_layout *layout, const struct attach_reader *reader,
			   uint64_t G, uint64_t mcode, uint32_t szmcode,
			   struct state_stubs *ret_stubs);

/** The number of the exit whose stub is at @p pc. @return false if no stub is there. */
bool state_arch_exit_of(const struct state_stubs *stubs, uint64_t pc, uint32_t *ret_exit);

/**
 * Whether a word of the native stack can be the return address of a trace's callee.
 * @param vm_frame The C frame on which the trace runs.
 */
bool state_arch_is_return_slot(uint64_t address, uint64_t vm_frame, uint32_t spadjust);

/** Whether @p pc is in the exit code that all traces share; always false on AArch64. */
bool state_arch_in_stubs(const struct state_stubs *stubs, uint64_t pc);

/**
 * The store to global_State.jit_base at the beginning of a trace's code.
 * @return its length in bytes, 0 if the code begins otherwise.
 */
size_t state_arch_base_store_at(const struct luastate_layout *layout, uint64_t G,
				const uint8_t *code, size_t len);

/**
 * The branch at the beginning of some code. @param address Address of the code in the target.
 * @return its length in bytes, 0 if the code begins otherwise.
 */
size_t state_arch_branch_at(const uint8_t *code, size_t len, uint64_t address,
			    uint64_t *ret_target);

/**
 * Whether registers hold a trace's number and the number of one of its exits, as they do while the
 * interpreter notes both: from the change of the VM state until it clears jit_base.
 */
bool state_arch_holds_exit(const struct attach_registers *registers, uint32_t trace, uint32_t exit);

/**
 * BASE of the innermost complete frame. This is the register, except while VM code changes BASE for
 * a call or return; then another register has the old value. @param registers
 * Registers in the interpreter.
 */
uint64_t state_arch_base(const struct state_interpreter *interpreter,
			 const struct attach_registers *registers);

/**
 * The C frame that a word of a native stack shows. On x86-64 the word is the return address of the
 * interpreter's callee, right below the frame; on AArch64 it is the interpreter's frame pointer,
 * which an inner function saved. The word proves nothing.
 * @param address Address of the word.
 * @return The frame's address, or 0.
 */
uint64_t state_arch_frame_shown(const struct state_interpreter *interpreter, uint64_t address,
				uint64_t word);

/** The offset from a shown word to its frame, for luastate_bpf_vm.frame_distance. */
uint32_t state_arch_frame_distance(const struct state_interpreter *interpreter);

/**
 * Find the next C frame that words of a native stack show, as fast as words can be compared: it
 * runs while the thread is stopped.
 * @param address Address of the first word.
 * @param words 8 bytes each, of any alignment.
 * @param at In: the word to begin with. Out: the word after the match.
 * @return The frame's address, or 0.
 */
uint64_t state_arch_next_shown(const struct state_interpreter *interpreter, uint64_t address,
			       const void *words, size_t count, size_t *at);

/** A register that may show a C frame, treated as a stack word right below sp. */
uint64_t state_arch_word_below(const struct attach_registers *registers);

/**
 * Bytes that VM code may push below its C frame before it calls a helper of its own; the unwind
 * rule does not cover them.
 */
extern const unsigned state_arch_helper_bytes;

/**
 * Skip words that cannot match, as fast as memory can be copied. Word i may match if it is at least
 * @p least + 8 i, and at most @p range above that.
 * @param words 8 bytes each, of any alignment.
 * @return How many words are skipped from the first on; one of the next words may match.
 */
size_t state_arch_pass(const uint8_t *words, size_t count, uint64_t least, uint64_t range);

#endif
