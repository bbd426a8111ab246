/* SPDX-License-Identifier: MIT */
#ifndef LUASTATE_LUASTATE_H
#define LUASTATE_LUASTATE_H

/*
 * What is the VM doing?
 *
 * LuaJIT's private structures are known in this module alone, as rows of layouts.table. All reads
 * go through attach's remote reader; everything read is checked before it is followed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/attach.h"

/** The VMs of one target process and what is known about their functions. */
struct luastate;

/** @return NULL when out of memory. */
struct luastate *luastate_create(void);
void luastate_destroy(struct luastate *state);

/* ---- Finding the VM --------------------------------------------------------------------- */

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

/** Smallest length of an interpreter's unwind entry; real ones have 14 to 17 KiB. */
#define LUASTATE_INTERPRETER_MIN_BYTES 8192u

/**
 * Tell where an interpreter's code is. Several may be added (a process may hold several copies of
 * LuaJIT).
 * @param code Copy of [start, end); kept.
 */
int luastate_add_interpreter(struct luastate *state, uint64_t start, uint64_t end,
			     const uint8_t *code, struct failure *why);
/** Forget interpreters, VMs and caches: another program runs now. */
void luastate_reset(struct luastate *state);
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

size_t luastate_vm_count(const struct luastate *state);
const struct luastate_vm *luastate_vm_get(const struct luastate *state, size_t index);

/* ---- The stop --------------------------------------------------------------------------- */

/** Coroutines whose stacks one stop copies: those nested in each other on one native stack. */
#define LUASTATE_PREDICTED_THREADS 32

/** What the planner remembers of a thread from stop to stop; zero-initialise. */
struct luastate_prediction {
	uint64_t G;
	uint64_t native_end; /**< Behind the highest native frame of the last walks; 0 unknown. */
	struct {
		uint64_t L, stack, used_end, limit;
	} threads[LUASTATE_PREDICTED_THREADS];
	unsigned thread_count;
};

/** Context of luastate_plan(). */
struct luastate_plan_context {
	const struct luastate *state;
	struct luastate_prediction *prediction;
	uint64_t stack_limit; /**< First address behind the native stack, 0 unknown. */
};

/** An attach_planner's plan function: asks for the native stack, the global state, the coroutines
 *  on the stack and their Lua stacks. Stopped window: yes; computes addresses only. */
bool luastate_plan(void *context, struct attach_image *image, unsigned round);

/** Ask for what decoding will read besides, for one read after the stop: prototypes of the
 * functions in the image, and the calls behind return addresses. Stopped window: no. */
void luastate_plan_after(const struct luastate_plan_context *context, struct attach_image *image);

/* ---- Decoding ------------------------------------------------------------------------------ */

/**
 * Where decoding reads. Stacks, coroutines and the VM's state change at once when the thread runs
 * on, so they are read in what the stop copied, and nowhere else. Functions, prototypes and names
 * live longer; they may come from the live process.
 */
struct luastate_memory {
	const struct attach_reader *stopped;
	const struct attach_reader *any;
};

/* ---- C frames --------------------------------------------------------------------------- */

/** One C frame of the interpreter on the native stack. */
struct luastate_cframe {
	uint64_t address; /**< rsp while in the interpreter. */
	uint64_t L;	  /**< Coroutine that it runs; 0 when entering or leaving. */
	uint64_t ret, sp; /**< Return address and stack pointer of the caller. */
	uint64_t saved[ATTACH_REG_COUNT]; /**< Callee-saved registers of the caller: RBX RBP R14
					     R15. */
	uint64_t pc;   /**< Bytecode position register in this frame, 0 unknown. */
	bool leaf;     /**< The thread's own pc is in the interpreter. */
	bool compiled; /**< A trace runs on this frame. */
	uint64_t rbp;  /**< Set by the caller: rbp in this frame, which keeps BASE during
			  calls that leave L->base alone; 0 unknown. */
};

/**
 * The C frame of a native frame at @p pc and @p sp in the interpreter. Finds it also inside helpers
 * that were entered by a call, and inside the entry and exit sequences.
 * @param rbx  Callee-saved register of that frame: the bytecode position.
 * @param regs All registers if the frame is the thread's leaf, else NULL.
 * @return 0, or -1 with FAILURE_NOT_FOUND or FAILURE_FAULT.
 */
int luastate_find_cframe(struct luastate *state, const struct luastate_memory *memory, uint64_t pc,
			 uint64_t sp, uint64_t rbx, const struct attach_registers *regs,
			 struct luastate_cframe *ret_cframe, struct failure *why);

/** The C frame on which machine code of a trace runs that has its stack pointer at @p sp: the
 *  nearest linked one above. */
int luastate_find_trace_cframe(struct luastate *state, const struct luastate_memory *memory,
			       uint64_t sp, struct luastate_cframe *ret_cframe,
			       struct failure *why);

/* ---- Guest frames ----------------------------------------------------------------------- */

enum luastate_kind { LUASTATE_LUA, LUASTATE_FAST, LUASTATE_C, LUASTATE_TRACE };

/** Why a chain is not complete. */
enum luastate_outcome {
	LUASTATE_FULL = 0,
	LUASTATE_TORN,	    /**< Contradictions: the VM was in a state that we cannot walk. */
	LUASTATE_TRUNCATED, /**< A stack is longer than what was copied. */
};

/** A function, known once and for all. Borrowed until luastate_reset() or destroy. */
struct luastate_function {
	enum luastate_kind kind;
	uint64_t address;      /**< Prototype; unique code address; lua_CFunction; trace number. */
	const char *name;      /**< NULL if none is known. */
	const char *chunkname; /**< Lua and traces: as stored, control characters included. */
	int64_t firstline;     /**< Lua: definition; trace: start line. */
	uint32_t name_serial;  /**< Advances when the name becomes known. */
	uint32_t caller_id, caller_serial; /**< Free for the caller; 0 at first. */
};

struct luastate_frame {
	struct luastate_function *function;
	uint64_t pc;	/**< Lua: address of the current bytecode; else 0. */
	uint32_t line;	/**< 0 unknown. */
	unsigned owner; /**< Index of the C frame in whose run it is. */
};

enum { LUASTATE_FRAMES_MAX = 4096 };

/** Guest frames of one sample, leaf first. */
struct luastate_chain {
	enum luastate_outcome outcome;
	int vmstate;	/**< Raw global_State.vmstate. */
	uint32_t trace; /**< Running trace, 0 if none. */
	size_t count;
	struct luastate_frame frames[LUASTATE_FRAMES_MAX];
};

/**
 * Walk the Lua stacks that belong to the C frames of one native stack.
 *
 * Each C frame owns the run of Lua frames up to the next C-type link. Runs are matched to C frames
 * from the root, coroutine by coroutine, so that a C frame that is being entered or left has none.
 * @param cframes Newest first.
 * @param regs Registers of the thread (used where cframes[0].leaf).
 */
void luastate_walk(struct luastate *state, const struct luastate_memory *memory,
		   const struct attach_registers *regs, const struct luastate_cframe *cframes,
		   size_t cframe_count, struct luastate_chain *ret_chain);

/** Update the prediction from a finished walk's image. */
void luastate_learn(struct luastate *state, const struct attach_reader *reader,
		    const struct luastate_cframe *cframes, size_t count, uint64_t native_top,
		    bool cut, uint64_t sp, struct luastate_prediction *prediction);

/** Say that a new sample is decoded: functions are checked anew against the target's memory. */
void luastate_begin_sample(struct luastate *state, const struct attach_reader *reader);

/** Read functions and names anew in every sample instead of trusting caches, so that an image that
 *  keeps all reads is whole. */
void luastate_set_thorough(struct luastate *state, bool thorough);

/** State number as sysprof counts it for a raw vmstate: 0 INTERP, 3 C, 4 GC … 9 TRACE; -1 if the
 *  value is none. */
int luastate_sysprof_state(const struct luastate *state, int vmstate);

/** Raw vmstate and running trace of the VM @p G. */
int luastate_read_vmstate(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  int *ret_vmstate, struct failure *why);

/** Names of fast functions and C functions from the tables of loaded modules; also called by the
 *  walk when it meets an unknown one, at most once a second. */
int luastate_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			struct failure *why);

#endif
