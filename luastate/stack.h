/* SPDX-License-Identifier: MIT */
/* Which Lua frames are on a native stack? */
#ifndef LUASTATE_STACK_H
#define LUASTATE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/plan.h"
#include "luastate/vm.h"

/* ---- C frames --------------------------------------------------------------------------- */

/** One C frame of the interpreter on the native stack. */
struct luastate_vm_frame {
	uint64_t address;		/**< rsp while in the interpreter. */
	uint64_t L;			/**< Coroutine that it runs; 0 when entering or leaving. */
	struct attach_registers caller; /**< Registers in the caller's frame; pc is a return
					   address. */
	struct attach_registers frame;	/**< Registers in this frame. */
	bool leaf; /**< Its pc was interrupted: all registers are valid, not only preserved ones. */
	bool compiled; /**< A trace runs on this frame. */
};

/**
 * The C frame of a native frame in the interpreter. Finds it also inside helpers that were entered
 * by a call, and inside the entry and exit sequences.
 * @param frame Registers in that frame.
 * @param leaf  Its pc was interrupted (the thread's leaf, or below a signal handler): all registers
 *              are valid.
 * @return 0, or -1 with FAILURE_NOT_FOUND, also where nothing of its coroutine was copied (its VM
 *         is known then, for the next sample), FAILURE_INVALID (of a VM that cannot be
 *         told), FAILURE_FAULT, or FAILURE_LIMIT where the sample has shown more links than any
 *         program's.
 */
int luastate_find_vm_frame(struct luastate *state, const struct luastate_memory *memory,
			   const struct attach_registers *frame, bool leaf,
			   struct luastate_vm_frame *ret_vm_frame, struct failure *why);

/**
 * The nearest C frame above a frame that cannot be unwound: the first on the stack whose
 * coroutine's chain of C frames holds it. Registers in it are unknown, but for pc and sp.
 * @param frame Registers in the frame that cannot be unwound.
 * @param limit Where the thread's stack ends at most.
 * @return 0, or -1 as luastate_find_vm_frame().
 */
int luastate_find_vm_frame_above(struct luastate *state, const struct luastate_memory *memory,
				 const struct attach_registers *frame, uint64_t limit,
				 struct luastate_vm_frame *ret_vm_frame, struct failure *why);

/** The VM of which a trace, or the exits of traces, have machine code at @p pc, by what the VMs
 * know of them; NULL if it is no such code, or was looked for too often for this sample. Borrowed
 * until the next VM is found. Stopped window: no. Source: LuaJIT v2.1 src/lj_jit.h (mcarea,
 * exitstubgroup), src/lj_asm.c (asm_head_root). */
const struct luastate_vm *luastate_compiled_by(struct luastate *state,
					       const struct luastate_memory *memory, uint64_t pc);

/** Whether a thread was in a trace as it was stopped or copied, also one that is gone by now: by
 * the VM in its registers, which notes that compiled code runs on a C frame near the stack pointer,
 * and had an area of machine code there. Other compilers' code, which a trace may call, is not.
 * Stopped window: no. Source: LuaJIT v2.1 src/lj_target_x86.h (RID_DISPATCH),
 * src/lj_target_arm64.h (RID_GL), src/lj_obj.h (jit_base), src/lj_mcode.c (MCLink). */
bool luastate_is_in_trace(struct luastate *state, const struct luastate_memory *memory,
			  const struct attach_registers *leaf);

/** The C frame on which machine code of a trace runs: the nearest linked one above its stack
 *  pointer. @param frame Registers in the trace's frame. @param leaf As luastate_find_vm_frame(),
 * and so is what is returned. */
int luastate_find_trace_vm_frame(struct luastate *state, const struct luastate_memory *memory,
				 const struct attach_registers *frame, bool leaf,
				 struct luastate_vm_frame *ret_vm_frame, struct failure *why);

/* ---- Guest frames ----------------------------------------------------------------------- */

enum luastate_kind { LUASTATE_LUA, LUASTATE_FAST, LUASTATE_C, LUASTATE_TRACE };

/** Why a chain is not complete. */
enum luastate_outcome {
	LUASTATE_FULL = 0,
	LUASTATE_TORN,	    /**< Contradictions: the VM was in a state that we cannot walk. */
	LUASTATE_TRUNCATED, /**< A stack is longer than what was copied, or a function's lines were
			       gone when they were read. */
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
	/** Trace: the prototype in which it starts, 0 if unknown, and that one's definition. */
	uint64_t proto;
	int64_t proto_firstline;
};

struct luastate_frame {
	struct luastate_function *function;
	uint64_t pc;	    /**< Lua: address of the current bytecode; else 0. */
	uint32_t line;	    /**< 0 unknown. */
	unsigned owner;	    /**< Index of the C frame in whose run it is. */
	uint32_t trace;	    /**< Compiled: the trace in which it runs; else 0. */
	bool approximate;   /**< Compiled: the trace may be at the next snapshot's frame already; or
			       below or above a call that no snapshot shows. */
	uint64_t coroutine; /**< lua_State on whose stack it is. */
	/** The function object, 0 unknown: inlined into compiled code. */
	uint64_t object;
	/** Lua: address of its first slot; 0 if it has none in memory. Slots of a frame that runs
	 * as compiled code are stale, see luastate_read_variables(). */
	uint64_t base;
};

/** How well the place of compiled code is known. */
enum luastate_compiled {
	LUASTATE_COMPILED_NONE = 0,    /**< No compiled code runs. */
	LUASTATE_COMPILED_EXACT,       /**< Down to the inlined leaf: the snapshots on both sides of
					  the position have the same frames. */
	LUASTATE_COMPILED_APPROXIMATE, /**< Down to the inlined leaf of the snapshot before, or to
					  what that calls up to the next one. */
	LUASTATE_COMPILED_TRACE,       /**< The trace alone, which is then the leaf frame. */
	LUASTATE_COMPILED_COUNT,
};

/** What the VM does on behalf of the Lua code that runs. */
enum luastate_vm_work_kind {
	LUASTATE_VM_WORK_NONE = 0, /**< Nothing but run code. */
	LUASTATE_VM_WORK_GC,	   /**< Collects garbage. */
	LUASTATE_VM_WORK_RECORD,   /**< Records a trace. */
	LUASTATE_VM_WORK_OPT,	   /**< Optimises one. */
	LUASTATE_VM_WORK_ASM,	   /**< Turns one into machine code. */
	LUASTATE_VM_WORK_EXIT,	   /**< Leaves one by an exit. */
	LUASTATE_ACTIVITIES,
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

/** The activity of the VM of a sample's newest C frame. */
struct luastate_vm_work {
	enum luastate_vm_work_kind kind;
	enum luastate_gc_phase phase; /**< GC. */
	uint32_t trace, exit;	      /**< EXIT: which one of which trace; trace 0: unknown. */
	unsigned owner; /**< Index of the C frame above whose run of frames it belongs. */
};

/** C frames of one native stack, of which each has frames of C between it and the next. */
enum { LUASTATE_CFRAMES_MAX = 512 };

/** Guest frames of one sample: a coroutine's stack has at most 65500 slots (LUAI_MAXSTACK). */
enum { LUASTATE_FRAMES_MAX = 66000 };

/** Guest frames of one sample, leaf first. */
struct luastate_chain {
	enum luastate_outcome outcome;
	int state;	/**< The VM's state as sysprof counts it, see luastate_sysprof_state(). */
	uint32_t trace; /**< Running trace, 0 if none. */
	/** The running trace as a function, NULL if unknown. */
	struct luastate_function *trace_function;
	enum luastate_compiled compiled;
	struct luastate_vm_work work;
	uint64_t heap_bytes; /**< What the VM's collector held; 0 unknown. */
	/** By C frame: the frames of its run are missing, as its coroutine could not be walked. */
	bool lost[LUASTATE_CFRAMES_MAX];
	size_t count;
	struct luastate_frame frames[LUASTATE_FRAMES_MAX];
};

/**
 * Walk the Lua stacks that belong to the C frames of one native stack.
 *
 * Each C frame owns the run of Lua frames up to the next C-type link. Runs are matched to C frames
 * from the root, coroutine by coroutine, so that a C frame that is being entered or left has none.
 * @param vm_frames Newest first.
 */
void luastate_walk(struct luastate *state, const struct luastate_memory *memory,
		   const struct luastate_vm_frame *vm_frames, size_t vm_frame_count,
		   struct luastate_chain *ret_chain);

/** How far a walk of a native stack came. */
enum luastate_reach {
	LUASTATE_REACH_ALL,  /**< To the thread's first function. */
	LUASTATE_REACH_CUT,  /**< To the end of what was copied. */
	LUASTATE_REACH_SOME, /**< Not to the first function, for another reason. */
};

/** A finished walk of a native stack. */
struct luastate_native_walk {
	const struct luastate_vm_frame *vm_frames;
	size_t vm_frame_count;
	/** Stack pointer of the highest native frame that was reached; below sp it tells nothing of
	 * the native stack. */
	uint64_t top;
	/** Where the walk was cut, the next stop copies twice as much of the native stack, up to
	 * the most that one copies. */
	enum luastate_reach reach;
	uint64_t sp; /**< Of the leaf. */
};

/**
 * Update the prediction from a finished walk's image.
 *
 * Stopped window: no. It cannot fail: what cannot be read is not predicted.
 * @param reader, native Borrowed for the call.
 */
void luastate_learn(struct luastate *state, const struct attach_reader *reader,
		    const struct luastate_native_walk *native,
		    struct luastate_prediction *prediction);

/** Names of fast functions and C functions from the tables of loaded modules; also called by the
 *  walk when it meets an unknown one, at most once a second, and for a fiftieth of the time. */
int luastate_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			struct failure *why);

#endif
