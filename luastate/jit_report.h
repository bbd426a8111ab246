/* SPDX-License-Identifier: MIT */
/* Which traces has the compiler of a VM made, and from which code? */
#ifndef LUASTATE_JIT_REPORT_H
#define LUASTATE_JIT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luastate/luastate.h"

/** What a trace begins with. Source: LuaJIT v2.1 src/lj_trace.c, trace_stop(). */
enum luastate_trace_kind {
	LUASTATE_TRACE_LOOP,	 /**< Root: a loop. */
	LUASTATE_TRACE_FUNCTION, /**< Root: a function. */
	LUASTATE_TRACE_RETURN,	 /**< Root: a return, down a recursion. */
	LUASTATE_TRACE_STITCHED, /**< Root: continues after a call that ended another trace. */
	LUASTATE_TRACE_SIDE,	 /**< An exit of another trace. */
	LUASTATE_TRACE_OTHER,	 /**< An instruction that begins no trace in known builds. */
};

/** "loop", "function", ...; "?" for an unknown value. */
const char *luastate_trace_kind_name(enum luastate_trace_kind kind);

/** Where a trace goes at its end, LJ_TRLINK_*, as jit.util.traceinfo() names it; "?" for an
 * unknown value. Source: LuaJIT v2.1 src/lj_jit.h, TraceLink. */
const char *luastate_trace_link_name(unsigned linktype);

/** Name of an abort's reason without its LJ_TRERR_, such as "NYIBC", and its meaning; "?" for an
 * unknown value. The numbers are the same in all builds since 2017. Source: LuaJIT v2.1
 * src/lj_traceerr.h. */
const char *luastate_abort_name(unsigned reason);
const char *luastate_abort_text(unsigned reason);

/** JIT parameters, in the order of jit_State.param. Source: LuaJIT v2.1 src/lj_jit.h, JIT_PARAMDEF.
 */
enum {
	LUASTATE_PARAM_MAXTRACE = 0,
	LUASTATE_PARAM_HOTEXIT = 7,
	LUASTATE_PARAM_SIZEMCODE = 13, /**< KiB. */
	LUASTATE_PARAM_MAXMCODE = 14,  /**< KiB. */
	LUASTATE_PARAMS = 15,
};

/** @return Name, or NULL if @p index is not below LUASTATE_PARAMS. */
const char *luastate_param_name(unsigned index);

/**
 * Name of optimisation number @p index: bit 16 + @p index of luastate_jit_report.flags.
 * @return NULL after the last one. Source: LuaJIT v2.1 src/lj_jit.h, JIT_F_OPT_*.
 */
const char *luastate_optimisation_name(unsigned index);

/** A Lua function of a report. It owns its strings. */
struct luastate_known_function {
	uint64_t address; /**< Address of its prototype. */
	char *name;	  /**< NULL if none is known. */
	char *chunkname;  /**< As the prototype stores it. */
	int64_t firstline;
};

/** Index of no function. */
#define LUASTATE_NO_FUNCTION UINT32_MAX

/** A location in Lua code. */
struct luastate_location {
	uint32_t function; /**< Index, or LUASTATE_NO_FUNCTION. */
	uint32_t line;	   /**< 0 unknown. */
};

/** A function other than the one in which a trace begins. */
struct luastate_trace_function {
	uint32_t function;
	/** The trace runs calls of it: a snapshot has its frame, or the trace is specialised to
	 * its prototype. If false, the trace has it as a constant: it calls the function without
	 * a guard inside, or only passes it on. */
	bool inlined;
};

/** SnapShot.count of an exit that has a side trace (SNAPCOUNT_DONE). */
#define LUASTATE_EXIT_LINKED 255

/** An exit of a trace. */
struct luastate_trace_exit {
	struct luastate_location location; /**< Where the interpreter continues. */
	/** Times taken, up to the limit at which the compiler stops counting; or
	 * LUASTATE_EXIT_LINKED. */
	uint8_t count;
	uint32_t trace; /**< The side trace that begins here, 0 if none. */
};

/** A live trace. */
struct luastate_trace {
	uint32_t number;
	enum luastate_trace_kind kind;
	uint8_t linktype;
	uint32_t link;	 /**< The trace that it jumps to at its end, 0 if none. */
	uint32_t root;	 /**< Side traces: the root. Others: 0. */
	uint32_t parent; /**< Side traces: the trace whose exit it begins at. Stitched: the trace
			    that it continues. */
	uint32_t exit;	 /**< Side traces: number of that exit. */
	uint32_t side_traces; /**< Root traces: total number of side traces. */
	struct luastate_location start;
	uint64_t address, mcode;
	uint32_t mcode_bytes, loop_offset; /**< Offset 0: no loop. */
	uint32_t instructions, constants;  /**< IR instructions; constants in slots of 8 bytes. */
	size_t first_exit, exit_count;	   /**< In luastate_jit_report.exits. */
	size_t first_function, function_count; /**< In luastate_jit_report.trace_functions. */
};

/** Why loops and calls of a function are not compiled. */
enum luastate_uncompiled_why {
	LUASTATE_BLACKLISTED, /**< By the compiler, after failed attempts. */
	LUASTATE_JIT_OFF,     /**< By jit.off(). */
};

/** A function that is not compiled, or parts of it. */
struct luastate_uncompiled {
	enum luastate_uncompiled_why why;
	bool is_whole;			   /**< The function's entry is not compiled either. */
	struct luastate_location location; /**< Where it begins. */
	size_t first_loop, loop_count;	   /**< In luastate_jit_report.loops: lines of loops. */
};

/** Bytecode at which recording was aborted. Source: LuaJIT v2.1 src/lj_trace.c, penalty_pc(). */
struct luastate_penalty {
	uint64_t pc;
	struct luastate_location location; /**< Unknown if the function was freed. */
	uint32_t value;	 /**< Doubles with each abort; blacklisted beyond 60000. */
	uint32_t reason; /**< Reason of the last abort. */
	bool blacklisted;
};

/** Everything that the compiler of one VM has made. */
struct luastate_jit_report {
	uint64_t G;
	uint32_t flags; /**< jit_State.flags; bit 0: the compiler is on. */
	int32_t params[LUASTATE_PARAMS];
	uint32_t slots;	    /**< Capacity of the table of traces. */
	uint32_t recording; /**< Number of the trace that is being recorded, 0 if none. */
	/** Of live traces; of all areas; unused in the newest area. */
	uint64_t mcode_bytes, area_bytes, area_free_bytes;
	uint64_t areas;
	struct luastate_known_function *functions;
	size_t function_count;
	struct luastate_trace *traces; /**< By number. */
	size_t trace_count;
	struct luastate_trace_exit *exits;
	size_t exit_count;
	struct luastate_trace_function *trace_functions;
	size_t trace_function_count;
	struct luastate_uncompiled *uncompiled;
	size_t uncompiled_count;
	uint32_t *loops;
	size_t loop_count;
	struct luastate_penalty *penalties;
	size_t penalty_count;
	uint64_t objects; /**< Objects visited to find all prototypes. */
	uint32_t changed; /**< Traces left out, because they were freed or replaced during the read.
			   */
	bool traces_cut;  /**< The time did not suffice to read all traces. */
	bool heap_cut;	  /**< The search did not reach all prototypes; some uncompiled ones may be
			     missing. */
};

/**
 * Read what the compiler of a VM has made, from the live process.
 *
 * This stops nothing. Each trace is read in one piece and compared with its slot afterwards, so
 * none is a mixture of two traces. But the report is not a consistent snapshot: a link may name a
 * trace that was flushed meanwhile, and LuaJIT reuses numbers. Prototypes are found along the list
 * of all objects, which changes during the read. If the list leads nowhere, the walk is repeated.
 *
 * Costs about a microsecond for each trace and for each 4 KiB of heap that hold objects. Ends after
 * some seconds at the latest. Stopped window: no. Checks cached prototypes again, as
 * luastate_begin_sample() does.
 * @param G The global_State of a known VM.
 * @param ret_report Release with luastate_jit_report_destroy().
 * @param why FAILURE_NOT_FOUND (no such VM), FAILURE_NO_MEMORY, or a read's failure.
 * @return 0 or -1.
 * Source: LuaJIT v2.1 src/lj_jit.h (GCtrace, SnapShot, jit_State), src/lj_ir.h, src/lj_snap.c,
 * src/lj_gc.c (gc.root), src/lj_mcode.c.
 */
int luastate_jit_report_read(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			     struct luastate_jit_report **ret_report, struct failure *why);
void luastate_jit_report_destroy(struct luastate_jit_report *report);

#endif
