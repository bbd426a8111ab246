/* SPDX-License-Identifier: MIT */
/* Which VMs does a process have, of which build? */
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
 * Whether an unwind entry is that of LuaJIT's interpreter: one range of several KiB with the
 * constant rule of the VM's C frame.
 * Source: LuaJIT v2.1 src/vm_x64.dasc, emit_asm_debug() and saveregs.
 */
bool luastate_is_interpreter(const struct luastate_unwind_rule *rule);

/** A process holds one copy of LuaJIT, rarely two; more are a hostile map. */
enum { LUASTATE_INTERPRETERS_MAX = 8 };

/** Smallest length of an interpreter's unwind entry; real ones have 14 to 17 KiB. */
#define LUASTATE_INTERPRETER_MIN_BYTES 8192u

/**
 * Tell where an interpreter's code is. Several may be added (a process may hold several copies of
 * LuaJIT).
 * @param rule Its unwind entry, for which luastate_is_interpreter() holds.
 * @param code The bytes of [rule->start, rule->end); copied.
 * @return 0, or -1 with FAILURE_LIMIT or FAILURE_NO_MEMORY.
 */
int luastate_add_interpreter(struct luastate *state, const struct luastate_unwind_rule *rule,
			     const uint8_t *code, struct failure *why);

/** Tell where an interpreter's file is mapped, all of it: its read-only data tells opcodes. @param
 *  index As of luastate_interpreter_get(). */
void luastate_set_file(struct luastate *state, size_t index, uint64_t start, uint64_t end);

/**
 * Forget an interpreter whose code is no longer mapped, and its VMs; those behind it move up. What
 * was learnt of functions stays, and is checked when it is met again.
 * @param index As of luastate_interpreter_get().
 */
void luastate_drop_interpreter(struct luastate *state, size_t index);

/** What debug information says of a build; each function returns false where it does not. */
struct luastate_debug {
	bool (*member)(void *context, const char *structure, const char *path, int64_t *ret_offset);
	bool (*size)(void *context, const char *structure, int64_t *ret_size);
	bool (*enumerator)(void *context, const char *name, int64_t *ret_value);
	/** Whether some answer was cut short; asked last. NULL where none ever is. */
	bool (*is_late)(void *context);
	void *context;
};

/**
 * Take the layout of an interpreter's build from debug information, instead of a row of
 * layouts.table; the nearest row fills in what that does not tell. Before a VM is looked for. Where
 * no VM has that layout, the rows are tried as if there were no debug information.
 * @param code Address in the interpreter.
 * @return 0, or -1 with FAILURE_NOT_FOUND (it does not describe LuaJIT), FAILURE_INVALID (no build
 * is like that), FAILURE_LIMIT (an answer was cut short) or FAILURE_NO_MEMORY.
 */
int luastate_use_debug(struct luastate *state, uint64_t code, const struct luastate_debug *debug,
		       struct failure *why);

bool luastate_in_interpreter(const struct luastate *state, uint64_t pc);
bool luastate_has_interpreter(const struct luastate *state);

/** One VM. Addresses are the target's. */
struct luastate_vm {
	uint64_t G;	      /**< global_State. */
	uint64_t main_thread; /**< lua_State of the main coroutine. */
	const struct luastate_layout *layout;
};

/** Take @p L for a lua_State, check the invariants against every layout, and remember its VM.
 *  @return The VM, borrowed, or NULL with FAILURE_NOT_FOUND or a read's failure. */
const struct luastate_vm *luastate_vm_of(struct luastate *state, const struct attach_reader *reader,
					 uint64_t L, struct failure *why);

/** Find the VM of a frame whose pc is in an interpreter. @param frame Registers in that frame. */
const struct luastate_vm *luastate_find_in_frame(struct luastate *state,
						 const struct attach_reader *reader,
						 const struct attach_registers *frame,
						 struct failure *why);

/** Find a VM by the C frames on a native stack, first way.
 *  @param sp Stack pointer of a thread, running or not. */
const struct luastate_vm *luastate_find_on_stack(struct luastate *state,
						 const struct attach_reader *reader, uint64_t sp,
						 uint64_t limit, struct failure *why);

/** Find a VM in writable memory [start, end), second way: a main coroutine points to a global state
 *  right behind itself that points back. */
const struct luastate_vm *luastate_find_in_range(struct luastate *state,
						 const struct attach_reader *reader, uint64_t start,
						 uint64_t end, struct failure *why);

/** OpenResty runs one VM per worker, game servers dozens in one process. Where one more is found,
 *  the others are forgotten; those that are used are found again. */
enum { LUASTATE_VMS_MAX = 256 };

size_t luastate_vm_count(const struct luastate *state);
const struct luastate_vm *luastate_vm_get(const struct luastate *state, size_t index);

/** State number as sysprof counts it for a raw vmstate: 0 INTERP, 3 C, 4 GC … 9 TRACE; -1 if the
 *  value is none. */
int luastate_sysprof_state(const struct luastate_vm *vm, int vmstate);

/** Raw vmstate and running trace of the VM @p G. */
int luastate_read_vmstate(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  int *ret_vmstate, struct failure *why);

#endif
