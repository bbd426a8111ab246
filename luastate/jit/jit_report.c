/* SPDX-License-Identifier: MIT */
/* What has a VM's compiler made? The live process is read without a stop: the compiler's settings,
 * its areas of machine code, traces (report_trace.c), functions that it does not compile
 * (report_heap.c), and the locations where recording aborted.
 *
 * Source: LuaJIT v2.1 src/lj_jit.h (jit_State, HotPenalty, MCLink), src/lj_mcode.c.
 */
#include "luastate/jit/jit_report_internal.h"

#include <stdlib.h>

#include "attach/array.h"
#include "attach/clock.h"
#include "luastate/definition/definition_names.h"
#include "luastate/function/proto.h"
#include "luastate/vm/choose_layout.h"

enum {
	/* Limit for a report: 65,535 traces take some microseconds each. */
	JIT_REPORT_NS_PER_S = 1000 * 1000 * 1000,
	JIT_REPORT_S = 10,
	PENALTY_SLOTS = 64,
	/* maxmcode has KiB in an int32_t, and an area has at least 4 KiB; real VMs have some
	 * hundreds. */
	AREAS_MAX = 65536,
	MCLINK_BYTES = 16,
};

/** A function's index in the report. */
struct jit_report_index {
	uint64_t address;
	uint32_t function;
	UT_hash_handle hh;
};

bool jit_report_is_late(const struct jit_report_build *build)
{
	return build->out_of_memory || clock_now_ns() >= build->end_ns;
}

bool jit_report_has_room(struct jit_report_build *build, bool has_room)
{
	build->out_of_memory |= !has_room;
	return has_room;
}

/* ---- Functions -------------------------------------------------------------------------- */

struct state_proto *jit_report_proto(struct jit_report_build *build, uint64_t address)
{
	struct failure why;

	return state_get_proto(&build->view, address, &why);
}

struct state_proto *jit_report_proto_at(struct jit_report_build *build, uint64_t pc)
{
	size_t end = ARRAY_SEARCH(build->span_count, i, build->spans[i].start <= pc);
	const struct jit_report_span *span = end ? &build->spans[end - 1] : NULL;
	struct state_proto *proto;

	if (!span || (pc - span->start) / 4 >= span->sizebc)
		return NULL;
	proto = jit_report_proto(build, span->start - (uint64_t)build->view.layout->GCproto_sizeof);
	return proto && state_proto_holds(proto, pc) ? proto : NULL;
}

static uint32_t add_function(struct jit_report_build *build, const struct state_proto *proto)
{
	struct luastate_jit_report *out = build->out;
	char *chunkname = NULL;

	if (ARRAY_RESERVE(out->functions, build->function_room, out->function_count + 1))
		chunkname = strdup(proto->function.chunkname);
	if (!jit_report_has_room(build, chunkname))
		return LUASTATE_NO_FUNCTION;
	out->functions[out->function_count] = (struct luastate_known_function){
		.address = proto->address, .chunkname = chunkname, .firstline = proto->firstline
	};
	return (uint32_t)out->function_count++;
}

uint32_t jit_report_function(struct jit_report_build *build, const struct state_proto *proto)
{
	struct jit_report_index *item;
	uint32_t function;

	HASH_FIND(hh, build->index, &proto->address, sizeof(proto->address), item);
	if (item)
		return item->function;
	function = add_function(build, proto);
	if (function == LUASTATE_NO_FUNCTION)
		return function;
	item = calloc(1, sizeof(*item));
	if (item) {
		item->address = proto->address;
		item->function = function;
		HASH_KEEP(build->index, address, item);
	}
	jit_report_has_room(build, item);
	return function;
}

struct luastate_location jit_report_location(struct jit_report_build *build,
					     const struct state_proto *proto, uint64_t pc)
{
	struct luastate_location location = { .function = LUASTATE_NO_FUNCTION };

	if (!proto || !state_proto_holds(proto, pc))
		return location;
	location.function = jit_report_function(build, proto);
	location.line = state_proto_line(proto, build->reader, pc);
	return location;
}

/* Read the names that functions get where the program makes them. */
static void read_definitions(struct jit_report_build *build)
{
	for (size_t i = 0; i < build->span_count && !jit_report_is_late(build); i++)
		if (build->spans[i].flags & STATE_PROTO_CHILD)
			state_read_parent(&build->view,
					  build->spans[i].start -
						  (uint64_t)build->view.layout->GCproto_sizeof);
}

bool jit_report_define(struct jit_report_build *build, struct state_proto *proto)
{
	return state_define_proto(&build->view, proto, !jit_report_is_late(build));
}

/* This is the last step, because each trace may have shown names of other functions. */
static void name_functions(struct jit_report_build *build)
{
	for (size_t i = 0; i < build->out->function_count; i++) {
		struct luastate_known_function *function = &build->out->functions[i];
		struct state_proto *proto = jit_report_proto(build, function->address);

		if (!proto)
			continue;
		jit_report_define(build, proto);
		if (proto->function.name)
			function->name = strdup(proto->function.name);
	}
}

/* ---- The compiler's state --------------------------------------------------------------- */

static int read_at(const struct jit_report_build *build, int32_t offset, void *ret_bytes,
		   size_t len, struct failure *why)
{
	if (offset == LAYOUT_ABSENT)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, build->view.G,
				   "find a member of the compiler's state");
	return state_read(build->reader, build->J + (uint64_t)offset, ret_bytes, len, why);
}

static int read_settings(struct jit_report_build *build, struct failure *why)
{
	const struct luastate_layout *layout = build->view.layout;
	struct luastate_jit_report *out = build->out;

	return read_at(build, layout->jit_State_flags, &out->flags, sizeof(out->flags), why) != 0 ||
			       read_at(build, layout->jit_State_param, out->params,
				       sizeof(out->params), why) != 0
		       ? -1
		       : 0;
}

/* Traces fill an area from the top, exit stubs fill it from the bottom. An area begins with a link
 * to the previous one. */
static int read_areas(struct jit_report_build *build, struct failure *why)
{
	const struct luastate_layout *layout = build->view.layout;
	struct luastate_jit_report *out = build->out;
	uint64_t area, top, bottom, link[MCLINK_BYTES / 8];

	if (read_at(build, layout->jit_State_mcarea, &area, 8, why) != 0 ||
	    read_at(build, layout->jit_State_mctop, &top, 8, why) != 0 ||
	    read_at(build, layout->jit_State_mcbot, &bottom, 8, why) != 0 ||
	    read_at(build, layout->jit_State_szallmcarea, &out->area_bytes, 8, why) != 0)
		return -1;
	if (area && top >= bottom && bottom >= area)
		out->area_free_bytes = top - bottom;
	while (state_is_pointer(area) && out->areas < AREAS_MAX &&
	       state_read(build->reader, area, link, sizeof(link), why) == 0) {
		out->areas++;
		area = link[0];
	}
	return 0;
}

/* ---- Aborts ----------------------------------------------------------------------------- */

/* Find the prototype of an instruction, even if the walk along the list of objects missed it. */
static struct state_proto *find_proto_of(struct jit_report_build *build, uint64_t pc)
{
	struct state_proto *proto = jit_report_proto_at(build, pc), *item, *next;

	if (proto)
		return proto;
	HASH_ITER(hh, build->view.state->protos, item, next)
	{
		if (item->serial == build->view.state->serial && !item->stale &&
		    state_proto_holds(item, pc) && pc - item->bytecode < 4 * (uint64_t)item->sizebc)
			return item;
	}
	return NULL;
}

static bool is_patched(const struct jit_report_build *build, uint32_t ins)
{
	int32_t op = (int32_t)(ins & 0xff);

	return op == BC_IFORL || op == BC_IITERL || op == BC_ILOOP ||
	       op == build->view.layout->BC_FUNCF + JIT_REPORT_IFUNCF ||
	       op == build->view.layout->BC_FUNCF + JIT_REPORT_IFUNCV;
}

static struct luastate_penalty penalty_of(struct jit_report_build *build, const uint8_t *bytes)
{
	const struct luastate_layout *layout = build->view.layout;
	struct luastate_penalty penalty = { .pc = state_ref(layout, bytes, 0) };
	const struct state_proto *proto = find_proto_of(build, penalty.pc);
	struct failure why;
	uint32_t ins;
	uint16_t number;

	memcpy(&number, bytes + layout->HotPenalty_val, sizeof(number));
	penalty.value = number;
	memcpy(&number, bytes + layout->HotPenalty_reason, sizeof(number));
	penalty.reason = number;
	penalty.location = jit_report_location(build, proto, penalty.pc);
	penalty.blacklisted =
		proto &&
		state_proto_instruction(proto, build->reader, penalty.pc, &ins, &why) == 0 &&
		is_patched(build, ins);
	return penalty;
}

static int read_penalties(struct jit_report_build *build, struct failure *why)
{
	struct luastate_jit_report *out = build->out;
	size_t size = (size_t)build->view.layout->HotPenalty_sizeof;
	uint8_t bytes[PENALTY_SLOTS * STATE_OBJECT_MAX];

	if (size == 0 || size > STATE_OBJECT_MAX ||
	    read_at(build, build->view.layout->jit_State_penalty, bytes, PENALTY_SLOTS * size,
		    why) != 0)
		return -1;
	out->penalties = calloc(PENALTY_SLOTS, sizeof(*out->penalties));
	build->out_of_memory |= !out->penalties;
	for (size_t i = 0; i < PENALTY_SLOTS && out->penalties; i++)
		if (state_ref(build->view.layout, bytes + i * size, 0))
			out->penalties[out->penalty_count++] = penalty_of(build, bytes + i * size);
	return 0;
}

/* ---- The report ------------------------------------------------------------------------- */

static void free_build(struct jit_report_build *build)
{
	struct jit_report_index *item, *next;

	HASH_ITER(hh, build->index, item, next)
	{
		HASH_DEL(build->index, item);
		free(item);
	}
	free(build->spans);
}

static int fill(struct jit_report_build *build, struct failure *why)
{
	if (read_settings(build, why) != 0 || read_areas(build, why) != 0)
		return -1;
	jit_report_walk_heap(build);
	read_definitions(build);
	jit_report_read_traces(build);
	jit_report_list_uncompiled(build);
	if (read_penalties(build, why) != 0)
		return -1;
	name_functions(build);
	return build->out_of_memory
		       ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, build->view.G, "keep the traces")
		       : 0;
}

int luastate_jit_report_read(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			     struct luastate_jit_report **ret_report, struct failure *why)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	const struct luastate_memory memory = { .stopped = reader, .any = reader };
	struct jit_report_build build = { .reader = reader };
	int ret;

	if (!vm)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find the VM");
	luastate_begin_sample(state, reader);
	/* Some builds differ only in the compiler's part; the traces decide between them. */
	state_reconsider_layout(state, reader, G);
	build.view = state_view_of(state, &memory, vm);
	if (!state_has_compiler(vm->layout))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find the compiler's state");
	build.J = G + (uint64_t)vm->layout->global_State_to_J;
	build.end_ns = clock_now_ns() + JIT_REPORT_S * (uint64_t)JIT_REPORT_NS_PER_S;
	build.out = calloc(1, sizeof(*build.out));
	if (!build.out)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, G, "keep the traces");
	build.out->G = G;
	ret = fill(&build, why);
	free_build(&build);
	if (ret == 0)
		*ret_report = build.out;
	else
		luastate_jit_report_destroy(build.out);
	return ret;
}

void luastate_jit_report_destroy(struct luastate_jit_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->function_count; i++) {
		free(report->functions[i].name);
		free(report->functions[i].chunkname);
	}
	free(report->functions);
	free(report->traces);
	free(report->exits);
	free(report->trace_functions);
	free(report->uncompiled);
	free(report->loops);
	free(report->penalties);
	free(report);
}
