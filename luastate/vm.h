/* SPDX-License-Identifier: MIT */
/* Which VMs does a process have, and which build is each? */
#ifndef LUASTATE_VM_H
#define LUASTATE_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/luastate.h"

/**
 * Rule of a native unwind entry: CFA = cfa_register + cfa_offset, register n saved at
 * CFA + saved_offset[n] (INT64_MIN: not saved).
 */
struct luastate_unwind_rule {
	uint64_t start, end;
	int cfa_register;
	int64_t cfa_offset;
	const int64_t *saved_offset;
};

/**
 * Whether an unwind entry belongs to LuaJIT's interpreter: one range of several KiB with the
 * constant rule of the VM frame.
 * Source: LuaJIT v2.1 src/vm_x64.dasc, emit_asm_debug() and saveregs.
 */
bool luastate_is_interpreter(const struct luastate_unwind_rule *rule);

/** A process has one copy of LuaJIT, rarely two. More of them indicate a hostile map. */
enum { LUASTATE_INTERPRETERS_MAX = 8 };

/** Smallest length of an interpreter's unwind entry; real ones have 14 to 17 KiB. */
#define LUASTATE_INTERPRETER_MIN_BYTES 8192u

/**
 * Register an interpreter's code. A process may have several copies of LuaJIT, so several may be
 * added.
 * @param rule Its unwind entry, for which luastate_is_interpreter() holds.
 * @param code The bytes of [rule->start, rule->end); copied.
 * @return 0, or -1 with FAILURE_LIMIT or FAILURE_NO_MEMORY.
 */
int luastate_add_interpreter(struct luastate *state, const struct luastate_unwind_rule *rule,
			     const uint8_t *code, struct failure *why);

/**
 * Set the range in which an interpreter's whole file is mapped. Its read-only data shows the
 * opcodes.
 * @param index As for luastate_interpreter_get().
 */
void luastate_set_file(struct luastate *state, size_t index, uint64_t start, uint64_t end);

/**
 * Forget an interpreter whose code is no longer mapped, and its VMs. The interpreters after it move
 * up; if too many layouts of dropped interpreters are kept, it keeps its index instead, without
 * code. Known functions stay; they are checked when a sample meets them again.
 * @param index As for luastate_interpreter_get().
 */
void luastate_drop_interpreter(struct luastate *state, size_t index);

/** A build's debug information. Each function returns false if the debug information has no
 * answer. */
struct luastate_debug {
	bool (*member)(void *context, const char *structure, const char *path, int64_t *ret_offset);
	bool (*size)(void *context, const char *structure, int64_t *ret_size);
	bool (*enumerator)(void *context, const char *name, int64_t *ret_value);
	/** Whether an answer was cut short; called last. NULL if answers are always complete. */
	bool (*is_late)(void *context);
	void *context;
};

/**
 * Use debug information for the layout of an interpreter's build, instead of a row of
 * layouts.table. The nearest row fills in what the debug information lacks. Call this before
 * searching for a VM. If no VM has that layout, the rows are tried as if there were no debug
 * information.
 * @param code Address in the interpreter.
 * @return 0, or -1 with FAILURE_NOT_FOUND (it does not describe LuaJIT), FAILURE_INVALID (no
 * possible build), FAILURE_LIMIT (an answer was cut short) or FAILURE_NO_MEMORY.
 */
int luastate_use_debug(struct luastate *state, uint64_t code, const struct luastate_debug *debug,
		       struct failure *why);

bool luastate_in_interpreter(const struct luastate *state, uint64_t pc);
bool luastate_has_interpreter(const struct luastate *state);

/** One VM. Addresses are in the target. */
struct luastate_vm {
	uint64_t G;	      /**< global_State. */
	uint64_t main_thread; /**< lua_State of the main coroutine. */
	const struct luastate_layout *layout;
};

/**
 * Check the invariants of @p L as a lua_State under every layout, and remember its VM.
 * @return The VM, borrowed, or NULL with FAILURE_NOT_FOUND.
 */
const struct luastate_vm *luastate_vm_of(struct luastate *state, const struct attach_reader *reader,
					 uint64_t L, struct failure *why);

/** Find the VM of a frame whose pc is in an interpreter. @param frame Registers in that frame. */
const struct luastate_vm *luastate_find_in_frame(struct luastate *state,
						 const struct attach_reader *reader,
						 const struct attach_registers *frame,
						 struct failure *why);

/**
 * Find a VM by the VM frames on a native stack; the first method.
 * @param sp Stack pointer of a thread, running or not.
 */
const struct luastate_vm *luastate_find_on_stack(struct luastate *state,
						 const struct attach_reader *reader, uint64_t sp,
						 uint64_t limit, struct failure *why);

/**
 * Find a VM in writable memory [start, end); the second method: a main coroutine points to the
 * global state directly after it, which points back.
 * @return The VM, borrowed, or NULL with FAILURE_NOT_FOUND, FAILURE_GONE or FAILURE_NO_MEMORY.
 */
const struct luastate_vm *luastate_find_in_range(struct luastate *state,
						 const struct attach_reader *reader, uint64_t start,
						 uint64_t end, struct failure *why);

/** OpenResty runs one VM per worker, game servers dozens in one process. If one more is found,
 * the others are forgotten. Those in use are then found again. */
enum { LUASTATE_VMS_MAX = 256 };

size_t luastate_vm_count(const struct luastate *state);
const struct luastate_vm *luastate_vm_get(const struct luastate *state, size_t index);

/** State number that sysprof uses for a raw vmstate: 0 INTERP, 3 C, 4 GC … 9 TRACE; -1 if the
 * value is not a state. */
int luastate_sysprof_state(const struct luastate_vm *vm, int vmstate);

/** Read the raw vmstate of the VM @p G; a positive value is the running trace. */
int luastate_read_vmstate(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  int *ret_vmstate, struct failure *why);

#endif
