/* SPDX-License-Identifier: MIT */
/* Private to luastate: which traces are there, and what do their snapshots show? */
#ifndef LUASTATE_TRACE_TRACE_H
#define LUASTATE_TRACE_TRACE_H

#include "luastate/function/bytecode.h"
#include "luastate/layout/object.h"
#include "luastate/state/state.h"

enum {
	/* Maximum number of traces to remember. LuaJIT's own default limit is 1000 (maxtrace). */
	TRACE_KEPT_MAX = 16384,
	/* Maximum bytes of all remembered traces. */
	TRACE_KEPT_BYTES = 64 << 20,
	/* Maximum size of a trace's block: 4000 instructions (maxrecord) and 500 snapshots
	 * (maxsnap) need some 100 KiB. */
	TRACE_BLOCK_MAX = 1 << 20,
	/* Maximum frames of one snapshot: the compiler follows LJ_MAX_JSLOTS, 250 slots. */
	TRACE_DEPTH_MAX = 128,
	/* Maximum functions that a trace and its parents refer to: maxirconst is 500 constants. */
	TRACE_FUNCTIONS_MAX = 1024,
	/* Maximum frames of all snapshots of a trace, including frames that lead nowhere. */
	TRACE_FRAMES_MAX = 32768,
	/* Maximum steps to decode traces for one sample; a step takes less than 1 us. A process
	 * with made-up traces must not delay the others. */
	TRACE_WORK_MAX = 131072,
	/* Maximum machine code to search for guards. */
	TRACE_CODE_BYTES = 65536,
	TRACE_INS_BYTES = 8, /* IRIns */
	/* Opcodes of instructions, IR_*. Source: LuaJIT v2.1 src/lj_ir.h. */
	TRACE_IR_RETF = 11,
	TRACE_IR_BASE = 13,
	TRACE_IR_KGC = 24,
	TRACE_IR_KKPTR = 26,
	TRACE_IR_KNUM = 28,
	TRACE_IR_KINT64 = 29,
	/* Types of constants, IRT_*, and the mask for them. */
	TRACE_CONSTANT_TYPE = 31,
	TRACE_CONSTANT_PROTO = 7,
	TRACE_CONSTANT_FUNC = 8,
};

/** Target of the jump @p ins at @p pc. Source: LuaJIT v2.1 src/lj_bc.h (bc_j). */
static inline uint64_t trace_jump_target(uint64_t pc, uint32_t ins)
{
	return pc + 4 + 4 * (uint64_t)(ins >> 16) - 4 * (uint64_t)BCBIAS_J;
}

/** A frame in a snapshot. */
struct trace_frame {
	uint64_t function; /* prototype, or code address of a built-in; 0 in the lowest frame: the
			      function on the stack */
	uint64_t pc;	   /* current bytecode, 0 in a built-in */
	uint8_t kind, ffid;
};

/** A function that a trace refers to. */
struct trace_function {
	uint64_t object;     /* GCfunc, or GCproto if the trace only knows that */
	uint64_t address;    /* prototype, or code address */
	uint64_t start, end; /* of a Lua function's bytecode; 0 if unreadable */
	uint8_t kind, ffid;
};

/** State that is valid from one offset in the machine code on. */
struct trace_snapshot {
	uint32_t offset; /* in the machine code, in bytes; ascending */
	uint32_t first;	 /* index of its first frame; leaf first */
	uint32_t moved;	 /* from this offset on, the base is not the snapshot's */
	uint16_t count;	 /* number of frames; 0 if unreadable */
	uint16_t sure;	 /* number of frames, from the lowest on, that are valid up to the next
			    snapshot */
	bool exact;	 /* all frames are valid, and no function runs above them */
	bool replaced;	 /* a tail call has replaced the lowest frame */
	/* A function that runs above the frames up to the next snapshot, and that neither
	 * snapshot shows: its prototype, its first instruction, and the topmost frame's call; 0
	 * if unknown. */
	uint64_t callee, callee_pc, call;
};

struct trace_key {
	uint64_t G, number;
};

/** A trace with decoded snapshots. */
struct trace {
	struct trace_key key;
	const struct luastate_layout *layout;
	uint64_t address;
	uint8_t header[STATE_OBJECT_MAX]; /* without its volatile members */
	uint64_t content;		  /* a hash of the rest of its block */
	unsigned serial;		  /* sample in which the trace was last compared */
	uint64_t mcode;
	uint32_t szmcode;
	uint64_t startpt, startpc;
	uint32_t parent, exit; /* of a side trace; 0 for a root trace */
	bool has_metamethods;  /* one of its snapshots has the frame of a metamethod */
	struct trace_snapshot *snapshots;
	size_t snapshot_count;
	struct trace_frame *frames;
	size_t frame_count;
	struct trace_function *functions; /* its own functions, then its parent's */
	size_t function_count, own_count;
	size_t bytes; /* size of all this */
	bool indexed;
	UT_hash_handle hh;
};

/** Count steps of a sample's decoding. @return false if the limit is exceeded. */
static inline bool trace_charge(struct luastate *state, size_t steps)
{
	state->trace_work += steps;
	return state->trace_work <= TRACE_WORK_MAX;
}

/** The trace @p number of a VM, NULL if it was not met yet. Reads nothing. */
const struct trace *trace_find(const struct luastate *state, uint64_t G, uint32_t number);

/**
 * Get the trace @p number of a VM as it was during the stop: known, or read now and decoded.
 * @return Borrowed until the next call; NULL with FAILURE_NOT_FOUND, FAILURE_INVALID or a read's
 * failure.
 */
const struct trace *trace_get(const struct state_view *view, uint32_t number, struct failure *why);

static inline bool trace_holds(const struct trace *trace, uint64_t pc)
{
	return pc - trace->mcode < trace->szmcode;
}

/** Bytes of the native stack that a trace uses for spill slots. */
static inline uint32_t trace_spadjust(const struct trace *trace)
{
	return state_u32(trace->header, trace->layout->GCtrace_spadjust) & 0xffff;
}

/** The snapshot that is valid at @p pc of the machine code, NULL if unknown. */
const struct trace_snapshot *trace_snapshot_at(const struct trace *trace, uint64_t pc);

/** The first trace number that the machine code after @p pc notes. If @p pc is before its trace's
 * head, this is that trace's number. 0 if there is none. The caller must verify the number. */
uint32_t trace_number_behind(const struct state_view *view, uint64_t pc);

/**
 * Find the exit of trace @p parent from which the side trace @p number with machine code at @p
 * mcode begins. Reads only what this needs, and remembers nothing.
 * @return false if it is no such trace.
 */
bool trace_read_side(const struct state_view *view, uint32_t number, uint64_t mcode,
		     uint32_t parent, uint32_t *ret_exit);

/** Forget all traces. */
void trace_free_all(struct luastate *state);

/* ---- Reading ---------------------------------------------------------------------------- */

/** The data after a trace's header: constants, instructions, snapshots and their map. Offsets and
 * lengths in bytes, from the start. */
struct trace_block {
	uint64_t start;
	size_t snapshots, map, len;
	uint32_t nk, nins, nsnap, nsnapmap;
};

/** @return false if the block is too large, or its parts contradict each other. */
bool trace_block_of(const struct luastate_layout *layout, const uint8_t *header, uint64_t address,
		    struct trace_block *ret_block);

/**
 * Read a block, and append 8 zero bytes.
 * @return Release with free(). NULL with FAILURE_NO_MEMORY or a read's failure.
 */
uint8_t *trace_read_block(const struct attach_reader *reader, const struct trace_block *block,
			  struct failure *why);

/** Clear the members of a trace's header that change while the trace lives. The rest identifies
 * it. */
void trace_clear_volatile(const struct luastate_layout *layout, uint8_t *header);

/** Instruction or constant @p ref of a block, NULL if there is none. */
static inline const uint8_t *trace_instruction(const struct trace_block *block,
					       const uint8_t *bytes, uint32_t ref)
{
	return ref >= block->nk && ref < block->nins
		       ? bytes + (size_t)TRACE_INS_BYTES * (ref - block->nk)
		       : NULL;
}

/* ---- Decoding (snapshot.c) -------------------------------------------------------------- */

/** A trace during decoding. */
struct trace_source {
	struct state_view view;
	const uint8_t *header; /* GCtrace */
	const uint8_t *bytes;  /* of the block, and 8 zero bytes */
	struct trace_block block;
	const struct trace *parent; /* the trace whose functions are inherited, or NULL */
	/* Another way to find the prototype that contains a position; may be NULL. Returns 0 if
	 * unknown. */
	uint64_t (*find_holder)(void *context, uint64_t pc);
	void *context;
	uint32_t first_return; /* the first instruction that returns to a lower frame */
	size_t frame_room;     /* capacity of trace->frames */
	uint32_t walked;       /* frames walked, including those of unreadable snapshots */
};

/** The n-th SnapShot. */
static inline const uint8_t *trace_snapshot_bytes(const struct trace_source *source, uint32_t index)
{
	return source->bytes + source->block.snapshots +
	       (size_t)source->view.layout->SnapShot_sizeof * index;
}

/** The bytecode at which the interpreter continues after a snapshot's exit, 0 if unreadable. */
uint64_t trace_position_of(const struct trace_source *source, uint32_t index);

/**
 * Fill in trace->functions, trace->snapshots and trace->frames, without the snapshots' offsets.
 * @return 0, or -1 with FAILURE_NO_MEMORY or, after too many steps, FAILURE_LIMIT.
 */
int trace_decode_frames(struct trace_source *source, struct trace *trace, struct failure *why);

/** Like trace_decode_frames(), with the snapshots' offsets. */
int trace_decode(struct trace_source *source, struct trace *trace, struct failure *why);

/** Release the results of decoding. */
void trace_deinit(struct trace *trace);

/* ---- Constants (constants.c) ------------------------------------------------------------ */

/** The collectable object of a constant, 0 if the constant is none. @param ret_type IRT_*. */
uint64_t trace_object_at(const struct trace_source *source, uint32_t ref, int *ret_type);

/** Get the value of a constant that is a number or a 64-bit integer. @return false for other
 * constants. */
bool trace_number_constant(const struct trace_source *source, uint32_t ref, uint64_t *ret_value);

/** Fill in trace->functions. @return false when out of memory. */
bool trace_list_functions(const struct trace_source *source, struct trace *trace);

/** The function of this object, NULL if the trace does not refer to it. */
const struct trace_function *trace_function_of(const struct trace *trace, uint64_t object);

/** As state_proto_holds(). */
bool trace_function_holds(const struct trace_function *function, uint64_t pc);

/** The prototype that contains a position, 0 if unknown: for functions that are not constants. */
uint64_t trace_find_holder(const struct trace_source *source, const struct trace *trace,
			   uint64_t pc);

/** Fill in how certain the snapshots' frames are (ambiguity.c). */
void trace_compare(const struct trace_source *source, struct trace *trace);

/**
 * Find the function that the topmost frame of a snapshot calls on the way to the next snapshot, and
 * fill in snapshot->callee, callee_pc and call (inlined_callee.c). Both snapshots have the same
 * frames. Some code before and after the call is the caller's. A callee therefore counts only if it
 * has more instructions than the caller has there. Fills in nothing if the caller makes another
 * call on the way, or the callee is uncertain.
 */
void trace_find_inlined_callee(const struct trace_source *source, const struct trace *trace,
			       struct trace_snapshot *snapshot, const struct trace_snapshot *next);

/** Fill in the snapshots' offsets (guards.c). Snapshots with unknown offsets lose their frames. */
void trace_locate(const struct trace_source *source, struct trace *trace);

#endif
