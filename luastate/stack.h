/* SPDX-License-Identifier: MIT */
/* Which Lua frames are on a native stack? */
#ifndef LUASTATE_STACK_H
#define LUASTATE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/plan.h"
#include "luastate/vm.h"

/* ---- VM frames -------------------------------------------------------------------------- */

/** One of the interpreter's own frames on the native stack. */
struct luastate_vm_frame {
	uint64_t address; /**< rsp in the interpreter. */
	uint64_t L;	  /**< The coroutine that it runs; 0 while it is entered or left. */
	/** Registers in the caller's frame; pc is a return address. */
	struct attach_registers caller;
	struct attach_registers frame; /**< Registers in this frame. */
	bool leaf; /**< Its pc was interrupted: all registers are valid, not only preserved ones. */
	bool compiled; /**< A trace runs on this frame. */
};

/**
 * Find the VM frame of a native frame in the interpreter. Also works in helpers that were entered
 * by a call, and in the entry and exit sequences.
 * @param frame Registers in that frame.
 * @param leaf  Its pc was interrupted (the thread's leaf, or the frame below a signal handler): all
 * registers are valid.
 * @return 0, or -1 with FAILURE_NOT_FOUND (also if nothing of its coroutine was copied; the VM is
 * then known for the next sample), FAILURE_INVALID (its VM cannot be determined), FAILURE_FAULT, or
 * FAILURE_LIMIT (the sample has more links than any program's).
 */
int luastate_find_vm_frame(struct luastate *state, const struct luastate_memory *memory,
			   const struct attach_registers *frame, bool leaf,
			   struct luastate_vm_frame *ret_vm_frame, struct failure *why);

/**
 * Find the nearest VM frame above a frame that cannot be unwound: the first on the stack that is in
 * its coroutine's chain of VM frames. Only pc and sp of its registers are known.
 * @param frame Registers in the frame that cannot be unwound.
 * @param limit Upper limit of the thread's stack.
 * @return 0, or -1 as luastate_find_vm_frame().
 */
int luastate_find_vm_frame_above(struct luastate *state, const struct luastate_memory *memory,
				 const struct attach_registers *frame, uint64_t limit,
				 struct luastate_vm_frame *ret_vm_frame, struct failure *why);

/**
 * Find the VM whose traces, or exits of traces, have machine code at @p pc, according to the VMs'
 * own data. Stopped window: no.
 * @return Borrowed until the next VM is found. NULL if there is no such code, or this sample has
 * used up its searches.
 * Source: LuaJIT v2.1 src/lj_jit.h (mcarea, exitstubgroup), src/lj_asm.c (asm_head_root).
 */
const struct luastate_vm *luastate_compiled_by(struct luastate *state,
					       const struct luastate_memory *memory, uint64_t pc);

/**
 * Whether a thread was in a trace at the stop or copy, even if the trace is gone by now. The VM in
 * the thread's registers shows this: it notes that compiled code runs on a VM frame near the stack
 * pointer, and it had an area of machine code there. Code of other compilers, which a trace may
 * call, does not count. Stopped window: no.
 * Source: LuaJIT v2.1 src/lj_target_x86.h (RID_DISPATCH), src/lj_target_arm64.h (RID_GL),
 * src/lj_obj.h (jit_base), src/lj_mcode.c (MCLink).
 */
bool luastate_is_in_trace(struct luastate *state, const struct luastate_memory *memory,
			  const struct attach_registers *leaf);

/**
 * Find the VM frame on which a trace's machine code runs: the nearest linked one above its stack
 * pointer.
 * @param frame Registers in the trace's frame. @param leaf As luastate_find_vm_frame().
 * @return as luastate_find_vm_frame().
 */
int luastate_find_trace_vm_frame(struct luastate *state, const struct luastate_memory *memory,
				 const struct attach_registers *frame, bool leaf,
				 struct luastate_vm_frame *ret_vm_frame, struct failure *why);

/* ---- Lua frames ------------------------------------------------------------------------- */

enum luastate_kind { LUASTATE_LUA, LUASTATE_BUILTIN, LUASTATE_C, LUASTATE_TRACE };

/** Whether a chain is complete, and if not, why. */
enum luastate_outcome {
	LUASTATE_FULL = 0,
	LUASTATE_INCONSISTENT, /**< Inconsistent: the VM was in a state that we cannot walk. */
	LUASTATE_TRUNCATED, /**< Truncated: a stack is longer than the copy, or a function's lines
			       were gone when they were read. */
};

/** A function. Borrowed until luastate_begin_sample(), luastate_reset() or luastate_destroy(). */
struct luastate_function {
	enum luastate_kind kind;
	uint64_t address; /**< Prototype, unique code address, lua_CFunction, or trace number. */
	const char *name; /**< NULL if none is known. */
	const char *chunkname;		   /**< Lua, traces: as stored, with control characters. */
	int64_t firstline;		   /**< Lua: line of the definition; trace: start line. */
	uint32_t name_serial;		   /**< Advances when the name becomes known. */
	uint32_t caller_id, caller_serial; /**< For the caller's use; initially 0. */
	/** Trace: the prototype in which it starts (0 if unknown), and the line of that
	 * prototype's definition. */
	uint64_t proto;
	int64_t proto_firstline;
};

struct luastate_frame {
	struct luastate_function *function;
	uint64_t pc;	    /**< Lua: address of the current bytecode; else 0. */
	uint32_t line;	    /**< 0 if unknown. */
	unsigned owner;	    /**< Index of the VM frame whose run contains it. */
	uint32_t trace;	    /**< Compiled: the trace in which it runs. Others: 0. */
	bool approximate;   /**< Compiled: the trace may already be at the next snapshot's frame, or
			       the frame is next to a call that no snapshot shows. */
	uint64_t coroutine; /**< The lua_State whose stack contains it. */
	/** The function object. 0 if unknown, as for functions inlined into compiled code. */
	uint64_t object;
	/** Lua: address of its first slot; 0 if it has none in memory. While the frame runs as
	 * compiled code, its slots are stale, see luastate_read_variables(). */
	uint64_t base;
};

/** How precisely the location of compiled code is known. */
enum luastate_compiled {
	LUASTATE_COMPILED_NONE = 0, /**< No compiled code runs. */
	LUASTATE_COMPILED_EXACT, /**< Down to the inlined leaf: the snapshots before and after the
				    position have the same frames. */
	LUASTATE_COMPILED_APPROXIMATE, /**< Down to the inlined leaf of the snapshot before, or to a
					  function that it calls before the next one. */
	LUASTATE_COMPILED_TRACE,       /**< Only the trace, which is then the leaf frame. */
	LUASTATE_COMPILED_COUNT,
};

/** What the VM does on behalf of the Lua code that runs. */
enum luastate_vm_work_kind {
	LUASTATE_VM_WORK_NONE = 0, /**< Only runs code. */
	LUASTATE_VM_WORK_GC,	   /**< Collects garbage. */
	LUASTATE_VM_WORK_RECORD,   /**< Records a trace. */
	LUASTATE_VM_WORK_OPT,	   /**< Optimises a trace. */
	LUASTATE_VM_WORK_ASM,	   /**< Turns a trace into machine code. */
	LUASTATE_VM_WORK_EXIT,	   /**< Leaves a trace by an exit. */
	LUASTATE_VM_WORKS,
};

/** The collector's phases. Source: LuaJIT v2.1 src/lj_gc.h, GCS*; the same in all forks. */
enum luastate_gc_phase {
	LUASTATE_GC_PAUSE = 0, /**< A collection begins. */
	LUASTATE_GC_PROPAGATE,
	LUASTATE_GC_ATOMIC,
	LUASTATE_GC_SWEEP_STRING,
	LUASTATE_GC_SWEEP,
	LUASTATE_GC_FINALIZE,
	LUASTATE_GC_PHASES,
};

/** VM work in the VM of a sample's newest VM frame. */
struct luastate_vm_work {
	enum luastate_vm_work_kind kind;
	enum luastate_gc_phase phase; /**< GC only. */
	uint32_t trace, exit;	      /**< EXIT only: the exit that is taken; trace 0: unknown. */
	unsigned owner; /**< Index of the VM frame. The VM work is shown above this frame's run. */
};

/** VM frames of one native stack. Between two of them there are always C frames. */
enum { LUASTATE_VM_FRAMES_MAX = 512 };

/** Lua frames of one sample. A coroutine's stack has at most 65500 slots (LUAI_MAXSTACK). */
enum { LUASTATE_FRAMES_MAX = 66000 };

/** Lua frames of one sample, leaf first. */
struct luastate_chain {
	enum luastate_outcome outcome;
	int state;	/**< The VM's state as sysprof counts it, see luastate_sysprof_state(). */
	uint32_t trace; /**< Running trace, 0 if none. */
	/** The running trace as a function, NULL if unknown. */
	struct luastate_function *trace_function;
	enum luastate_compiled compiled;
	struct luastate_vm_work work;
	uint64_t heap_bytes; /**< Bytes that the VM's collector counts; 0 if unknown. */
	/** By VM frame: the frames of its run are missing, because its coroutine could not be
	 * walked. */
	bool lost[LUASTATE_VM_FRAMES_MAX];
	size_t count;
	struct luastate_frame frames[LUASTATE_FRAMES_MAX];
};

/**
 * Walk the Lua stacks that belong to the VM frames of one native stack.
 *
 * Each VM frame owns the run of Lua frames up to the next C-type link. Runs are matched to VM
 * frames from the root, coroutine by coroutine. A VM frame that is being entered or left therefore
 * has no run.
 * @param vm_frames Newest first.
 */
void luastate_walk(struct luastate *state, const struct luastate_memory *memory,
		   const struct luastate_vm_frame *vm_frames, size_t vm_frame_count,
		   struct luastate_chain *ret_chain);

/** How far a walk of a native stack reached. */
enum luastate_reach {
	LUASTATE_REACH_ALL,  /**< To the thread's first function. */
	LUASTATE_REACH_CUT,  /**< To the end of the copy. */
	LUASTATE_REACH_SOME, /**< Not to the first function, for another reason. */
};

/** A finished walk of a native stack. */
struct luastate_native_walk {
	const struct luastate_vm_frame *vm_frames;
	size_t vm_frame_count;
	/** Stack pointer of the highest native frame that was reached. A value below sp says
	 * nothing about the native stack. */
	uint64_t top;
	/** After REACH_CUT, the next stop copies twice as much of the native stack, up to the
	 * maximum. */
	enum luastate_reach reach;
	uint64_t sp; /**< Stack pointer of the leaf. */
};

/**
 * Update the prediction from a finished walk's image.
 *
 * Stopped window: no. It cannot fail: memory that it cannot read is not predicted.
 * @param reader, native Borrowed for the call.
 */
void luastate_learn(struct luastate *state, const struct attach_reader *reader,
		    const struct luastate_native_walk *native,
		    struct luastate_prediction *prediction);

/** Load names of built-ins and C functions from the tables of loaded modules. The walk also calls
 * this for an unknown function, at most once a second, and for at most a fiftieth of the time. */
int luastate_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			struct failure *why);

#endif
