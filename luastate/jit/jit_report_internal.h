/* SPDX-License-Identifier: MIT */
/* What do the parts of the JIT report share? Private to luastate. */
#ifndef LUASTATE_JIT_JIT_REPORT_INTERNAL_H
#define LUASTATE_JIT_JIT_REPORT_INTERNAL_H

#include "luastate/jit_report.h"
#include "luastate/plan.h"
#include "luastate/trace/trace.h"

enum {
	/* Opcodes of functions' first instructions, counted from BC_FUNCF. Source: src/lj_bc.h. */
	JIT_REPORT_IFUNCF = 1,
	JIT_REPORT_IFUNCV = 4,
};

/** Bytecode of a prototype from the list of all objects. */
struct jit_report_span {
	uint64_t start;
	uint32_t sizebc;
	uint8_t flags;
};

struct jit_report_index;

enum {
	/* Functions of one trace; a trace of 4,000 instructions has no room for more. */
	JIT_REPORT_CANDIDATES = 256,
};

/** The state of a report that is being built. */
struct jit_report_build {
	struct state_view view;
	const struct attach_reader *reader; /* reads all memory of the view */
	uint64_t J, end_ns;
	struct luastate_jit_report *out;
	struct jit_report_index *index; /* functions by address */
	struct jit_report_span *spans;	/* sorted by address after the walks */
	size_t span_count, span_room;
	size_t function_room, trace_room, exit_room, trace_function_room, uncompiled_room,
		loop_room;
	bool out_of_memory;
};

/** A copied trace. */
struct jit_report_copy {
	uint64_t address;
	uint8_t header[STATE_OBJECT_MAX];
	struct trace_block block;
	uint8_t *bytes; /* bytes of the block */
};

/** A function that a trace refers to. */
struct jit_report_candidate {
	struct state_proto *proto;
	bool inlined;
};

/** A trace that is being examined. */
struct jit_report_probe {
	struct jit_report_build *build;
	const struct jit_report_copy *copy;
	struct trace_source source;
	struct trace trace; /* only its functions, and its snapshots' frames */
	struct jit_report_candidate candidates[JIT_REPORT_CANDIDATES];
	size_t count;
};

static inline uint32_t jit_report_u16(const uint8_t *bytes, int32_t offset)
{
	uint16_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/** Whether the report's time is over, or memory is short. */
bool jit_report_is_late(const struct jit_report_build *build);

/** Note a lack of memory. @return @p has_room. */
bool jit_report_has_room(struct jit_report_build *build, bool has_room);

/** The prototype whose bytecode contains @p pc, or NULL. */
struct state_proto *jit_report_proto_at(struct jit_report_build *build, uint64_t pc);

/** The prototype at an address, or NULL. */
struct state_proto *jit_report_proto(struct jit_report_build *build, uint64_t address);

/** Name a function by where the program makes it. @return whether the name is known. */
bool jit_report_define(struct jit_report_build *build, struct state_proto *proto);

/** The report's function for a prototype; LUASTATE_NO_FUNCTION if memory is short. */
uint32_t jit_report_function(struct jit_report_build *build, const struct state_proto *proto);

/** The location of an instruction. @param proto May be NULL. */
struct luastate_location jit_report_location(struct jit_report_build *build,
					     const struct state_proto *proto, uint64_t pc);

/** Note a function that a trace refers to. */
void jit_report_add_candidate(struct jit_report_probe *probe, struct state_proto *proto,
			      bool inlined);

/** Note the functions among a trace's constants (report_frames.c). */
void jit_report_add_constants(struct jit_report_probe *probe);

/** Note the functions of a snapshot's frames, and its exit. @return false if memory is short. */
bool jit_report_add_snapshot(struct jit_report_probe *probe, uint32_t index);

/** Read all traces (report_trace.c). */
void jit_report_read_traces(struct jit_report_build *build);

/** Find all prototypes, then list the functions that are not compiled (report_heap.c). */
void jit_report_walk_heap(struct jit_report_build *build);
void jit_report_list_uncompiled(struct jit_report_build *build);

#endif
