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
#include "luastate/traces.h"
#include "luastate/variables.h"

/** Offsets and constants of a range of builds; private. */
struct luastate_layout;

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
/** Forget interpreters, VMs and caches: another program runs now. */
void luastate_reset(struct luastate *state);

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

/* ---- Explaining ------------------------------------------------------------------------- */

/** One copy of LuaJIT's interpreter in the target. */
struct luastate_interpreter {
	uint64_t start, end;
	unsigned cframe_bytes;		      /**< Size of its C frames. */
	const struct luastate_layout *layout; /**< NULL until a VM was recognised. */
	/** No row fits: the layout was derived from the interpreter's code and its VM. */
	bool is_derived;
	/** Then: compiled code cannot be followed, as the build has no compiler, or as the program
	 *  has not shown enough of it yet. */
	bool lacks_compiler, has_no_compiler;
};

size_t luastate_interpreter_count(const struct luastate *state);
void luastate_interpreter_get(const struct luastate *state, size_t index,
			      struct luastate_interpreter *ret_interpreter);

/** A layout in one line: fork, value model, range of commits. Rows of layouts.table. */
void luastate_describe_layout(const struct luastate_layout *layout, char *ret_text, size_t size);

/** Receives one field in which an interpreter's own layout differs from the nearest row. @param
 * value -1: it is not known, or there is none. @param how What shows it, or why it is not known,
 * where the layout was derived; static. NULL: debug information says so. */
typedef void luastate_difference_visitor(void *context, const char *field, int32_t row,
					 int32_t value, const char *how);

/** Compare an interpreter's own layout, by debug information or derived, with the row of
 * layouts.table that is nearest. Without the compiler's part, where that is not known.
 *  @return 0, or -1 if it has none. */
int luastate_compare_debug(const struct luastate *state, size_t index,
			   luastate_difference_visitor *visit, void *context,
			   const struct luastate_layout **ret_row);

/** Receives one invariant: what was read where, and whether it holds. @param what Static. */
typedef void luastate_invariant_visitor(void *context, const char *what, uint64_t address,
					uint64_t value, bool holds);

/**
 * Check the invariants of the VM of the coroutine @p L, also behind the first that fails, under its
 * layout, or else under the one that comes nearest. Stopped window: no.
 * @param ret_fits All hold.
 * @return 0, or -1 if @p L is a coroutine under no layout.
 */
int luastate_examine(struct luastate *state, const struct attach_reader *reader, uint64_t L,
		     luastate_invariant_visitor *visit, void *context,
		     const struct luastate_layout **ret_layout, uint64_t *ret_G, bool *ret_fits);

/** The layouts that a VM fits: more than one where they differ in what the VM does not show yet,
 *  such as traces. @return their number, at most @p max. */
size_t luastate_fitting_layouts(struct luastate *state, const struct attach_reader *reader,
				uint64_t G, const struct luastate_layout **ret_layouts, size_t max);

/** Coroutines met so far whose VMs fit no layout; a few of them. Borrowed.
 *  @return their number. */
size_t luastate_refused(const struct luastate *state, const uint64_t **ret_coroutines);

/** jit.version of a VM. @return 0, or -1 with FAILURE_NOT_FOUND or a read's failure. */
int luastate_read_version(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  char *ret_text, size_t size, struct failure *why);

/* ---- The stop --------------------------------------------------------------------------- */

/** Coroutines whose stacks one stop copies: those nested in each other on one native stack. */
#define LUASTATE_PREDICTED_THREADS 256

/** Frames that the planner expects again in the next stop. */
#define LUASTATE_PREDICTED_FRAMES 48

/** What can be a frame on a Lua stack. */
struct luastate_plan_frame {
	const struct luastate_layout *layout;
	uint64_t function, link, proto; /**< proto: 0 if there is none. */
};

/** The trace that ran, where its table refers to it, and where it is. */
struct luastate_plan_trace {
	uint64_t G, slot, address;
	uint32_t number; /**< 0: none. */
};

/** What the planner remembers of a thread from stop to stop; zero-initialise. */
struct luastate_prediction {
	unsigned epoch;	     /**< What came before luastate_reset() says nothing of what is now. */
	uint64_t native_end; /**< Behind the highest native frame of the last walks; 0 unknown. */
	struct {
		uint64_t G, L, stack, used_end, limit;
	} threads[LUASTATE_PREDICTED_THREADS];
	unsigned thread_count;
	bool roams; /**< The thread has been in more VMs than the samples before showed. */
	struct luastate_plan_frame frames[LUASTATE_PREDICTED_FRAMES];
	unsigned frame_count;
	struct luastate_plan_trace trace;
};

/** Different functions on the stacks that one stop reads. */
#define LUASTATE_PLAN_FRAMES 256

/** A coroutine that the planner met on the native stack. */
struct luastate_plan_thread {
	uint64_t L;
	const struct luastate_layout *layout;
	bool current; /**< Of its VM. */
};

struct state_proto;

/** How far the planner is in one stop. */
struct luastate_plan_progress {
	unsigned stage, thread_count, frame_count;
	unsigned expected; /**< The next of the predicted frames, those before it were met. */
	struct luastate_plan_thread threads[LUASTATE_PREDICTED_THREADS];
	struct luastate_plan_frame frames[LUASTATE_PLAN_FRAMES];
	const struct state_proto *known[LUASTATE_PLAN_FRAMES]; /**< By frame; NULL: not known. */
	struct luastate_plan_trace trace;
	/** The newest C frame, where it is not in what is copied above the leaf's stack pointer:
	 * mostly as the leaf is a signal handler's on a stack of its own; else 0. */
	uint64_t other_stack;
	uint16_t slots[2 * LUASTATE_PLAN_FRAMES]; /**< Frame + 1 by the hash of its function. */
};

/** Context of luastate_plan(). */
struct luastate_plan_context {
	const struct luastate *state;
	struct luastate_prediction *prediction;
	uint64_t stack_limit; /**< First address behind the native stack, 0 unknown. */
	struct luastate_plan_progress progress; /**< The planner's own. */
};

/** An attach_planner's plan function: asks for the native stack, the global state, the coroutines
 *  on the stack and their Lua stacks. Stopped window: yes; computes addresses only. */
bool luastate_plan(void *context, struct attach_image *image, unsigned round);

/**
 * Remember what the planner met, for the next stop, and ask for what shows after this one that
 * known functions are what they were. Stopped window: no.
 * @param image What the stop copied.
 * @param after Receives the wishes; read before decoding, and in front of the live process.
 */
void luastate_plan_after(const struct luastate_plan_context *context, struct attach_image *image,
			 struct attach_image *after);

/** Of what a copy lacked, larger ranges than this are not asked for again. */
#define LUASTATE_TAP_EXTRA_MAX 4096

/**
 * Tell the kernel what to copy of a thread from now on, in place of what a planner asks for in a
 * stop. Stopped window: no, nothing is stopped.
 * @param plan What attach_tap_add() gave.
 */
void luastate_plan_tap(const struct luastate_plan_context *context, struct attach_tap_plan *plan);

/**
 * In place of luastate_plan() where the image was copied by the kernel: note what it shows, as
 * luastate_plan_after() and decoding need it, and have the copies to come hold what it lacks.
 * @return whether it lacked something for the first time in a while.
 */
bool luastate_plan_copied(struct luastate_plan_context *context, struct attach_image *image,
			  struct attach_tap_plan *plan);

struct luastate_chain;

/** After decoding: tell the kernel which prototypes of the copy are known by now. @param chain What
 * was decoded. @param table What attach_tap_known() gave. */
void luastate_note_known(const struct luastate_plan_context *context,
			 const struct luastate_chain *chain, uint64_t salt, uint64_t *table);

/* ---- Decoding --------------------------------------------------------------------------- */

/**
 * Where decoding reads. Stacks, coroutines and the VM's state change at once when the thread runs
 * on, so they are read in what the stop copied, and nowhere else. Functions, prototypes and names
 * live longer; what the stop did not copy of them may come from the live process.
 */
struct luastate_memory {
	const struct attach_reader *stopped;
	const struct attach_reader *any;
	/** What was read behind the stop, and nothing of what the stop copied: shows what has
	 * changed since. NULL where there is no such memory. */
	const struct attach_reader *later;
	/** Where the copy could not be asked for what it lacked: the process as it is now. What is
	 * read there is believed if what it is a part of is the same still after that. Else NULL.
	 */
	const struct attach_reader *live;
	/** What is read through `any` becomes a part of the image, which is decoded again: so
	 * nothing else is read, and names are those alone that what is on the stack tells. */
	bool is_kept;
};

/* ---- C frames --------------------------------------------------------------------------- */

/** One C frame of the interpreter on the native stack. */
struct luastate_cframe {
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
int luastate_find_cframe(struct luastate *state, const struct luastate_memory *memory,
			 const struct attach_registers *frame, bool leaf,
			 struct luastate_cframe *ret_cframe, struct failure *why);

/**
 * The nearest C frame above a frame that cannot be unwound: the first on the stack whose
 * coroutine's chain of C frames holds it. Registers in it are unknown, but for pc and sp.
 * @param frame Registers in the frame that cannot be unwound.
 * @param limit Where the thread's stack ends at most.
 * @return 0, or -1 as luastate_find_cframe().
 */
int luastate_find_cframe_above(struct luastate *state, const struct luastate_memory *memory,
			       const struct attach_registers *frame, uint64_t limit,
			       struct luastate_cframe *ret_cframe, struct failure *why);

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
 *  pointer. @param frame Registers in the trace's frame. @param leaf As luastate_find_cframe(), and
 *  so is what is returned. */
int luastate_find_trace_cframe(struct luastate *state, const struct luastate_memory *memory,
			       const struct attach_registers *frame, bool leaf,
			       struct luastate_cframe *ret_cframe, struct failure *why);

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
enum luastate_activity_kind {
	LUASTATE_ACTIVITY_NONE = 0, /**< Nothing but run code. */
	LUASTATE_ACTIVITY_GC,	    /**< Collects garbage. */
	LUASTATE_ACTIVITY_RECORD,   /**< Records a trace. */
	LUASTATE_ACTIVITY_OPT,	    /**< Optimises one. */
	LUASTATE_ACTIVITY_ASM,	    /**< Turns one into machine code. */
	LUASTATE_ACTIVITY_EXIT,	    /**< Leaves one by an exit. */
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
struct luastate_activity {
	enum luastate_activity_kind kind;
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
	struct luastate_activity activity;
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
 * @param cframes Newest first.
 */
void luastate_walk(struct luastate *state, const struct luastate_memory *memory,
		   const struct luastate_cframe *cframes, size_t cframe_count,
		   struct luastate_chain *ret_chain);

/** How far a walk of a native stack came. */
enum luastate_reach {
	LUASTATE_REACH_ALL,  /**< To the thread's first function. */
	LUASTATE_REACH_CUT,  /**< To the end of what was copied. */
	LUASTATE_REACH_SOME, /**< Not to the first function, for another reason. */
};

/**
 * Update the prediction from a finished walk's image.
 *
 * Stopped window: no. It cannot fail: what cannot be read is not predicted.
 * @param reader, cframes Borrowed for the call.
 * @param native_top Stack pointer of the highest native frame that was reached; below @p sp it
 * tells nothing of the native stack.
 * @param reach Where that was cut, the next stop copies twice as much of the native stack, up to
 * the most that one copies.
 * @param sp Of the leaf.
 */
void luastate_learn(struct luastate *state, const struct attach_reader *reader,
		    const struct luastate_cframe *cframes, size_t count, uint64_t native_top,
		    enum luastate_reach reach, uint64_t sp, struct luastate_prediction *prediction);

/** Say that a new sample is decoded: functions are checked anew against the target's memory. */
void luastate_begin_sample(struct luastate *state, const struct attach_reader *reader);

/** Read functions and names anew in every sample instead of trusting caches, so that an image that
 *  keeps all reads is whole. */
void luastate_set_thorough(struct luastate *state, bool thorough);

/**
 * Tells which pages of [start, end) are in memory. Both are multiples of ATTACH_PAGE_BYTES.
 * @param ret_there One byte for each page, 0 on entry: set those that are.
 * @return false where that cannot be told.
 */
typedef bool luastate_pages_function(void *context, uint64_t start, uint64_t end,
				     uint8_t *ret_there);

/** Whom to ask for that of a live process. What is not in memory is then left alone where names are
 *  looked for, for which a heap is gone through: else that would bring in what was swapped out.
 *  @param pages NULL: nobody. @param context Borrowed. */
void luastate_set_pages(struct luastate *state, luastate_pages_function *pages, void *context);

/** State number as sysprof counts it for a raw vmstate: 0 INTERP, 3 C, 4 GC … 9 TRACE; -1 if the
 *  value is none. */
int luastate_sysprof_state(const struct luastate_vm *vm, int vmstate);

/** Raw vmstate and running trace of the VM @p G. */
int luastate_read_vmstate(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  int *ret_vmstate, struct failure *why);

/** Names of fast functions and C functions from the tables of loaded modules; also called by the
 *  walk when it meets an unknown one, at most once a second, and for a fiftieth of the time. */
int luastate_load_names(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			struct failure *why);

/* ---- Coroutines ------------------------------------------------------------------------- */

/** Where a thread is: what runs is on a thread's native stack. */
struct luastate_position {
	uint64_t sp;
	uint64_t stack_start, stack_end; /**< Mapping of its native stack. */
	bool is_in_call;		 /**< In a system call: Lua code on it has called C. */
};

/** One coroutine. */
struct luastate_coroutine {
	uint64_t L;
	uint64_t cframe; /**< Its newest C frame, 0 for none. */
	enum luastate_coroutine_status status;
	bool is_main;
	bool is_started; /**< Else its only frame is the function that it will begin with, with the
			      line where that is defined. */
	/** Of a VM's stack: TORN also where a running one's frames are in registers. */
	enum luastate_outcome outcome;
	const struct luastate_frame *frames; /**< Leaf first; borrowed until the visitor returns. */
	size_t frame_count;
};

/** How to enumerate coroutines. */
struct luastate_coroutines {
	const struct luastate_position *positions; /**< Of the process's threads. */
	size_t position_count;
	/** There are no other threads. Else who has C frames is taken to be on a thread's stack. */
	bool has_all_positions;
	uint64_t end_ns; /**< By CLOCK_MONOTONIC. */
	/** @return Whether to go on. */
	bool (*visit)(void *context, const struct luastate_coroutine *coroutine);
	void *context;
};

/**
 * Visit all coroutines of a VM, newest first, the main one last, along the list of all objects.
 * What the collector has found to be unreachable, and has not freed yet, is left out.
 *
 * For a copy or a core file; over a live process links lead anywhere, which does no harm. Functions
 * of frames are valid until luastate_begin_sample(), to be called before. Stopped window: no.
 * @param memory      As for a walk; `stopped` is where coroutines and stacks are read.
 * @param ret_objects Objects that were looked at; set in any case.
 * @return 1 where the list could not be followed to its end, or time was over; 0; -1.
 * @param why FAILURE_NOT_FOUND (no such VM), FAILURE_NO_MEMORY.
 * Source: LuaJIT v2.1 src/lib_base.c (coroutine.status), src/lj_state.c, src/lj_gc.c (gc.root,
 * isdead), src/vm_x64.dasc (resume, yield).
 */
int luastate_each_coroutine(struct luastate *state, const struct luastate_memory *memory,
			    uint64_t G, const struct luastate_coroutines *how,
			    uint64_t *ret_objects, struct failure *why);

/* ---- Vitals ----------------------------------------------------------------------------- */

/** What a VM's collector and compiler do at this moment. */
struct luastate_vitals {
	uint64_t heap_bytes, threshold_bytes; /**< In use; at which the collector works on. */
	unsigned gc_phase;		      /**< enum luastate_gc_phase, or none of it. */
	uint32_t pause, step_multiplier;      /**< In percent, as collectgarbage() takes them. */
	bool has_allocated;		      /**< The build counts what is allocated. */
	uint64_t allocated_bytes;	      /**< Since the VM began. */
	bool has_traces;		      /**< What follows was read. */
	bool jit_on;
	uint64_t traces, mcode_bytes; /**< Live traces; machine code areas without what is free. */
	uint64_t created;	      /**< Traces seen to be made since the first look: at least. */
	bool is_counted;	      /**< The build counts aborts. */
	uint64_t aborted; /**< Counted since the VM began, or else seen since the first look. */
};

/** What the last look at a VM saw, to tell what has changed since. */
struct luastate_pulse;

/** @return NULL when out of memory. */
struct luastate_pulse *luastate_pulse_create(void);
void luastate_pulse_destroy(struct luastate_pulse *pulse);

/**
 * Read the vitals of a VM from the live process: some ten short reads, and one of the table of
 * traces. Stopped window: no; what is read may change meanwhile, so the numbers are of about the
 * same moment.
 * @param G Of a known VM.
 * @param why FAILURE_NOT_FOUND (no such VM), FAILURE_INVALID, or a read's failure.
 * @return 0 or -1.
 * Source: LuaJIT v2.1 src/lj_obj.h (GCState), src/lj_jit.h (jit_State).
 */
int luastate_read_vitals(const struct luastate *state, const struct attach_reader *reader,
			 uint64_t G, struct luastate_pulse *pulse,
			 struct luastate_vitals *ret_vitals, struct failure *why);

#endif
