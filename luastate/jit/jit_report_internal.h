/* SPDX-License-Identifier: MIT */
/* Private to luastate: the parts of the catalogue of traces. */
#ifndef LUASTATE_JIT_JIT_REPORT_INTERNAL_H
#define LUASTATE_JIT_JIT_REPORT_INTERNAL_H

#include "luastate/jit_report.h"
#include "luastate/plan.h"
#include "luastate/trace/trace.h"

enum {
	/* Opcodes; those up to JMP are the same since 2.1.0-beta3, those of functions' first
	 * instructions are counted from BC_FUNCF. Source: src/lj_bc.h. */
	CATALOGUE_CALLM = 65,
	CATALOGUE_CALL = 66,
	CATALOGUE_ITERC = 69,
	CATALOGUE_ITERN = 70,
	CATALOGUE_RET = 74,
	CATALOGUE_RET1 = 76,
	CATALOGUE_FORL = 79,
	CATALOGUE_IFORL = 80,
	CATALOGUE_ITERL = 82,
	CATALOGUE_IITERL = 83,
	CATALOGUE_LOOP = 85,
	CATALOGUE_ILOOP = 86,
	CATALOGUE_FUNCF = 0,
	CATALOGUE_IFUNCF = 1,
	CATALOGUE_IFUNCV = 4,
	/* GCproto.flags. Source: src/lj_obj.h. */
	CATALOGUE_CHILD = 0x01,
	CATALOGUE_NOJIT = 0x08,
	CATALOGUE_PATCHED = 0x10, /* PROTO_ILOOP */
};

/** Bytecode of a prototype that was met on the list of all objects. */
struct catalogue_span {
	uint64_t start;
	uint32_t sizebc;
	uint8_t flags;
};

struct catalogue_index;

enum {
	/* Functions that one trace knows; a trace of 4,000 instructions has no room for more. */
	CATALOGUE_CANDIDATES = 256,
};

/** A catalogue in the making. */
struct catalogue_build {
	struct luastate *state;
	const struct luastate_vm *vm;
	const struct luastate_layout *layout; /* the VM's */
	const struct attach_reader *reader;
	struct luastate_memory memory;
	uint64_t G, J, end_ns;
	struct luastate_catalogue *out;
	struct catalogue_index *index; /* functions by address */
	struct catalogue_span *spans;  /* ascending once all are there */
	size_t span_count, span_room;
	size_t function_room, trace_room, exit_room, trace_function_room, uncompiled_room,
		loop_room;
	bool out_of_memory;
};

/** A copied trace. */
struct catalogue_copy {
	uint64_t address;
	uint8_t header[STATE_OBJECT_MAX];
	struct trace_block block;
	uint8_t *bytes; /* of the block */
};

/** A function that a trace knows. */
struct catalogue_candidate {
	struct state_proto *proto;
	bool inlined;
};

/** A trace being looked into. */
struct catalogue_look {
	struct catalogue_build *build;
	const struct catalogue_copy *copy;
	struct trace_source source;
	struct trace trace; /* no more of it than its functions and its snapshots' frames */
	struct catalogue_candidate candidates[CATALOGUE_CANDIDATES];
	size_t count;
};

static inline uint32_t catalogue_u16(const uint8_t *bytes, int32_t offset)
{
	uint16_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/** Whether the time is over. */
bool catalogue_is_late(const struct catalogue_build *build);

/** Room for one more behind @p count items. @return NULL where there is none: build->out_of_memory
 *  is set then, and the items stay. */
void *catalogue_room(struct catalogue_build *build, void *items, size_t count, size_t *room,
		     size_t size);

/** The prototype in whose bytecode @p pc lies, or NULL. */
struct state_proto *catalogue_proto_at(struct catalogue_build *build, uint64_t pc);

/** The prototype at an address, or NULL. */
struct state_proto *catalogue_proto(struct catalogue_build *build, uint64_t address);

/** Name a function by where it is made. @return whether that is known. */
bool catalogue_define(struct catalogue_build *build, struct state_proto *proto);

/** The function of a prototype in the catalogue; LUASTATE_NO_FUNCTION without memory. */
uint32_t catalogue_function(struct catalogue_build *build, const struct state_proto *proto);

/** A place by its prototype, which may be NULL. */
struct luastate_place catalogue_place(struct catalogue_build *build,
				      const struct state_proto *proto, uint64_t pc);

/** Note a function that a trace knows. */
void catalogue_add_candidate(struct catalogue_look *look, struct state_proto *proto, bool inlined);

/** Note the functions among a trace's constants (report_frames.c). */
void catalogue_add_constants(struct catalogue_look *look);

/** Note the functions of a snapshot's frames, and its exit. @return false without memory. */
bool catalogue_add_snapshot(struct catalogue_look *look, uint32_t index);

/** All traces (report_trace.c). */
void catalogue_read_traces(struct catalogue_build *build);

/** All prototypes and those that are not compiled (report_heap.c). */
void catalogue_walk_heap(struct catalogue_build *build);
void catalogue_list_uncompiled(struct catalogue_build *build);

#endif
