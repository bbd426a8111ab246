/* SPDX-License-Identifier: MIT */
/* Private to luastate: traces and what their snapshots tell. */
#ifndef LUASTATE_TRACE_TRACE_H
#define LUASTATE_TRACE_TRACE_H

#include "luastate/function/bytecode.h"
#include "luastate/layout/object.h"
#include "luastate/state/state.h"

enum {
	/* Traces that are remembered; LuaJIT's own default limit is 1000 (maxtrace). */
	TRACE_KEPT_MAX = 16384,
	/* Bytes of all that is remembered of them. */
	TRACE_KEPT_BYTES = 64 << 20,
	/* Of a trace's block: 4000 instructions (maxrecord) and 500 snapshots (maxsnap) have some
	 * 100 KiB. */
	TRACE_BLOCK_MAX = 1 << 20,
	/* Frames of one snapshot: the compiler follows LJ_MAX_JSLOTS, 250 slots. */
	TRACE_DEPTH_MAX = 128,
	/* Functions that a trace and its parents refer to: maxirconst is 500 constants. */
	TRACE_FUNCTIONS_MAX = 1024,
	/* Frames of all snapshots of a trace, those included that end nowhere. */
	TRACE_FRAMES_MAX = 32768,
	/* Steps that the decoding of traces may take for one sample, of less than 1 us each: traces
	 * that a process has made up shall not hold the others up. */
	TRACE_WORK_MAX = 131072,
	/* Machine code that is searched for guards. */
	TRACE_CODE_BYTES = 65536,
	TRACE_INS_BYTES = 8, /* IRIns */
	/* Opcodes of instructions, IR_*. Source: LuaJIT v2.1 src/lj_ir.h. */
	TRACE_IR_RETF = 11,
	TRACE_IR_BASE = 13,
	TRACE_IR_KGC = 24,
	TRACE_IR_KKPTR = 26,
	TRACE_IR_KNUM = 28,
	TRACE_IR_KINT64 = 29,
	/* Types of constants, IRT_*, and the bits that have them. */
	TRACE_CONSTANT_TYPE = 31,
	TRACE_CONSTANT_PROTO = 7,
	TRACE_CONSTANT_FUNC = 8,
};

/** Where the jump @p ins at @p pc leads to. Source: LuaJIT v2.1 src/lj_bc.h (bc_j). */
static inline uint64_t trace_jump_target(uint64_t pc, uint32_t ins)
{
	return pc + 4 + 4 * (uint64_t)(ins >> 16) - 4 * (uint64_t)BCBIAS_J;
}

/** A frame in a snapshot. */
struct trace_frame {
	uint64_t function; /* prototype, or code address of a fast function; 0 in the lowest frame:
			      the one that the stack tells */
	uint64_t pc;	   /* current bytecode, 0 in a fast function */
	uint8_t kind, ffid;
};

/** A function that a trace refers to. */
struct trace_function {
	uint64_t object;     /* GCfunc, or GCproto where that is what the trace knows */
	uint64_t address;    /* prototype, or code address */
	uint64_t start, end; /* of a Lua function's bytecode; 0 where it cannot be read */
	uint8_t kind, ffid;
};

/** What holds from one place in the machine code on. */
struct trace_snapshot {
	uint32_t offset; /* in the machine code, bytes; ascending */
	uint32_t first;	 /* of its frames, leaf first */
	uint32_t moved;	 /* from this offset on the base is another one than the snapshot's */
	uint16_t count;	 /* 0: they could not be read */
	uint16_t sure;	 /* of them, from the lowest on, this many hold up to the next snapshot */
	bool exact;	 /* all of them, and nothing runs above them */
	bool replaced;	 /* a tail call has taken the lowest frame's place */
	/* A function that runs above them up to the next snapshot, which none of both shows: its
	 * prototype, its first instruction, and the topmost frame's call; 0 where none is known. */
	uint64_t callee, callee_pc, call;
};

struct trace_key {
	uint64_t G, number;
};

/** A trace, as it was read; its snapshots are decoded. */
struct trace {
	struct trace_key key;
	const struct luastate_layout *layout;
	uint64_t address;
	uint8_t header[STATE_OBJECT_MAX]; /* its volatile members cleared */
	uint64_t content;		  /* a hash of the rest of its block */
	unsigned serial;		  /* sample in which that was compared */
	uint64_t mcode;
	uint32_t szmcode;
	uint64_t startpt, startpc;
	uint32_t parent, exit; /* of a side trace; 0 for a root trace */
	bool has_metamethods;  /* one of its snapshots has the frame of one */
	struct trace_snapshot *snapshots;
	size_t snapshot_count;
	struct trace_frame *frames;
	size_t frame_count;
	struct trace_function *functions; /* its own ones, then its parent's */
	size_t function_count, own_count;
	size_t bytes; /* of all this */
	bool indexed;
	UT_hash_handle hh;
};

/** Count steps of a sample's decoding. @return false where there were too many. */
static inline bool trace_charge(struct luastate *state, size_t steps)
{
	state->trace_work += steps;
	return state->trace_work <= TRACE_WORK_MAX;
}

/** The trace @p number of a VM, NULL if it was not met yet. Reads nothing. */
const struct trace *trace_find(const struct luastate *state, uint64_t G, uint32_t number);

/**
 * The trace @p number of a VM, as it was during the stop: known, or read now and decoded.
 * @return Borrowed until the next call; NULL with FAILURE_NOT_FOUND, FAILURE_INVALID or a read's
 *         failure.
 */
const struct trace *trace_get(const struct state_view *view, uint32_t number, struct failure *why);

static inline bool trace_holds(const struct trace *trace, uint64_t pc)
{
	return pc - trace->mcode < trace->szmcode;
}

/** Bytes for spill slots that a trace takes of the native stack. */
static inline uint32_t trace_spadjust(const struct trace *trace)
{
	return state_u32(trace->header, trace->layout->GCtrace_spadjust) & 0xffff;
}

/** The snapshot that holds at @p pc of the machine code, NULL where none is known. */
const struct trace_snapshot *trace_snapshot_at(const struct trace *trace, uint64_t pc);

/** The number that the first trace to note one behind @p pc of the machine code notes: that of the
 *  trace at @p pc, if that is before its head. 0 for none; to be verified. */
uint32_t trace_number_behind(const struct state_view *view, uint64_t pc);

/**
 * The exit of trace @p parent from which the side trace @p number with machine code at @p mcode
 * begins. Reads no more than tells that, and remembers nothing.
 * @return false if it is no such trace.
 */
bool trace_read_side(const struct state_view *view, uint32_t number, uint64_t mcode,
		     uint32_t parent, uint32_t *ret_exit);

/** Forget all. */
void trace_free_all(struct luastate *state);

/* ---- Reading ---------------------------------------------------------------------------- */

/** What follows a trace's header: instructions, of which the constants are the first, snapshots and
 *  their map. Offsets and lengths in bytes, from the start. */
struct trace_block {
	uint64_t start;
	size_t snapshots, map, len;
	uint32_t nk, nins, nsnap, nsnapmap;
};

/** @return false where the block is too large, or its parts contradict each other. */
bool trace_block_of(const struct luastate_layout *layout, const uint8_t *header, uint64_t address,
		    struct trace_block *ret_block);

/** The bytes of a block, and 8 more that are zero. @return free() it; NULL with FAILURE_NO_MEMORY
 *  or a read's failure. */
uint8_t *trace_read_block(const struct attach_reader *reader, const struct trace_block *block,
			  struct failure *why);

/** Clear in a trace's header what changes while the trace lives; the rest tells it from others. */
void trace_clear_volatile(const struct luastate_layout *layout, uint8_t *header);

/** Instruction or constant @p ref of a block, NULL where it has none. */
static inline const uint8_t *trace_instruction(const struct trace_block *block,
					       const uint8_t *bytes, uint32_t ref)
{
	return ref >= block->nk && ref < block->nins
		       ? bytes + (size_t)TRACE_INS_BYTES * (ref - block->nk)
		       : NULL;
}

/* ---- Decoding (snapshot.c) -------------------------------------------------------------- */

/** A trace in the making. */
struct trace_source {
	struct state_view view;
	const uint8_t *header; /* GCtrace */
	const uint8_t *bytes;  /* of the block, and 8 more */
	struct trace_block block;
	const struct trace *parent; /* NULL, or the one whose functions are inherited */
	/* Where else the prototype that a position is in is looked for, NULL: nowhere. 0: none. */
	uint64_t (*find_holder)(void *context, uint64_t pc);
	void *context;
	uint32_t first_return; /* the first instruction that returns to a lower frame */
	size_t frame_room;     /* of trace->frames */
	uint32_t walked;       /* frames, also of snapshots that turned out to be none */
};

/** The n-th SnapShot. */
static inline const uint8_t *trace_snapshot_bytes(const struct trace_source *source, uint32_t index)
{
	return source->bytes + source->block.snapshots +
	       (size_t)source->view.layout->SnapShot_sizeof * index;
}

/** The bytecode at which the interpreter goes on where a snapshot's exit is taken, 0 where it
 * cannot be read. */
uint64_t trace_position_of(const struct trace_source *source, uint32_t index);

/** Fill in trace->functions, trace->snapshots and trace->frames, but for where snapshots hold.
 *  @return 0, or -1 with FAILURE_NO_MEMORY or, after too many steps, FAILURE_LIMIT. */
int trace_decode_frames(struct trace_source *source, struct trace *trace, struct failure *why);

/** Likewise, and where they hold. */
int trace_decode(struct trace_source *source, struct trace *trace, struct failure *why);

/** Release what decoding has filled in. */
void trace_deinit(struct trace *trace);

/* ---- Constants (constants.c) ------------------------------------------------------------ */

/** The collectable object that a constant is, 0 if it is none. @param ret_type IRT_*. */
uint64_t trace_object_at(const struct trace_source *source, uint32_t ref, int *ret_type);

/** The value of a number or a 64-bit integer. @return false if the constant is none. */
bool trace_number_constant(const struct trace_source *source, uint32_t ref, uint64_t *ret_value);

/** Fill in trace->functions. @return false where memory is out. */
bool trace_list_functions(const struct trace_source *source, struct trace *trace);

/** The function that is this object, NULL if the trace has no such one. */
const struct trace_function *trace_function_of(const struct trace *trace, uint64_t object);

/** As state_proto_holds(). */
bool trace_function_holds(const struct trace_function *function, uint64_t pc);

/** The prototype that a position is in, 0 if none is known: for functions that are no constants. */
uint64_t trace_find_holder(const struct trace_source *source, const struct trace *trace,
			   uint64_t pc);

/** Fill in how sure the snapshots' frames are (ambiguity.c). */
void trace_compare(const struct trace_source *source, struct trace *trace);

/**
 * Find the function that the topmost frame of a snapshot calls on the way to the next one, and fill
 * in snapshot->callee, callee_pc and call. Both snapshots have the same frames. Of the code between
 * them a part in front of the call and a part behind it are the caller's nevertheless; so a callee
 * counts only if it has more instructions than the caller has there. Where the caller makes another
 * call on the way, or it is not sure whom it calls, nothing is filled in (inlined_callee.c).
 */
void trace_find_inlined_callee(const struct trace_source *source, const struct trace *trace,
			       struct trace_snapshot *snapshot, const struct trace_snapshot *next);

/** Fill in the snapshots' offsets (guards.c). Where nothing tells them snapshots lose their frames.
 */
void trace_locate(const struct trace_source *source, struct trace *trace);

#endif
