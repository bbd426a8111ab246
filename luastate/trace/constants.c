/* SPDX-License-Identifier: MIT */
/*
 * Which constants does a trace have, and which functions are among them?
 *
 * The functions are those that the trace has inlined, or is specialised to. Each is read once, even
 * if many snapshots refer to it.
 *
 * Constants are instructions. A 64-bit value is in the slot of the next instruction. With GC64,
 * this includes addresses of objects.
 *
 * Source: LuaJIT v2.1 src/lj_ir.h (IRIns, IR_K*), src/lj_record.c (rec_call_specialize).
 */
#include "luastate/trace/trace.h"

#include <stdlib.h>

#include "luastate/function/proto.h"
#include "luastate/state/invariants.h"

/* ---- Constants -------------------------------------------------------------------------- */

static const uint8_t *constant_at(const struct trace_source *source, uint32_t ref)
{
	return ref < TRACE_REF_BASE ? trace_instruction(&source->block, source->bytes, ref) : NULL;
}

uint64_t trace_object_at(const struct trace_source *source, uint32_t ref, int *ret_type)
{
	const uint8_t *ins = constant_at(source, ref);

	if (!ins || ins[5] != TRACE_IR_KGC)
		return 0;
	*ret_type = ins[4] & TRACE_CONSTANT_TYPE;
	if (!source->view.layout->gc64)
		return state_u32(ins, 0);
	return ref + 1 <= TRACE_REF_BASE ? state_u64(ins, TRACE_INS_BYTES) : 0;
}

bool trace_number_constant(const struct trace_source *source, uint32_t ref, uint64_t *ret_value)
{
	const uint8_t *ins = constant_at(source, ref);

	if (!ins || (ins[5] != TRACE_IR_KNUM && ins[5] != TRACE_IR_KINT64))
		return false;
	*ret_value = state_u64(ins, TRACE_INS_BYTES);
	return true;
}

/* ---- Functions -------------------------------------------------------------------------- */

static void note_bytecode(const struct trace_source *source, struct trace_function *function)
{
	const struct state_proto *proto;
	struct failure why;

	proto = state_get_proto(&source->view, function->address, &why);
	if (!proto)
		return;
	function->start = proto->bytecode;
	function->end = proto->bytecode + 4 * (uint64_t)proto->sizebc;
}

static bool read_function(const struct trace_source *source, uint64_t object,
			  struct trace_function *ret_function)
{
	const struct luastate_layout *layout = source->view.layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	uint64_t bcff = source->view.G + (uint64_t)layout->global_State_to_bcff, pc;
	struct failure why;

	if (state_read_object(layout, source->view.memory->any, object, state_gct(layout->tag_func),
			      bytes, (size_t)layout->GCfunc_header, &why) != 0)
		return false;
	pc = state_ref(layout, bytes, layout->GCfunc_pc);
	ret_function->ffid = bytes[layout->GCfunc_ffid];
	ret_function->kind = ret_function->ffid == 0   ? LUASTATE_LUA
			     : ret_function->ffid == 1 ? LUASTATE_C
						       : LUASTATE_BUILTIN;
	ret_function->address = ret_function->kind == LUASTATE_LUA
					? pc - (uint64_t)layout->GCproto_sizeof
					: state_u64(bytes, layout->GCfuncC_f);
	if (ret_function->kind == LUASTATE_BUILTIN && pc >= bcff &&
	    pc - bcff < 4 * (uint64_t)layout->GG_NUM_ASMFF)
		ret_function->address = pc;
	return state_is_pointer(ret_function->address);
}

/* Functions are specialised by their closure or, if they have many closures, by their prototype. */
static void add_function(const struct trace_source *source, struct trace *trace, uint64_t object,
			 int type)
{
	struct trace_function function = { .object = object,
					   .address = object,
					   .kind = LUASTATE_LUA };

	if (trace->function_count == TRACE_FUNCTIONS_MAX ||
	    (type != TRACE_CONSTANT_PROTO && type != TRACE_CONSTANT_FUNC) ||
	    (type == TRACE_CONSTANT_FUNC && !read_function(source, object, &function)))
		return;
	if (function.kind == LUASTATE_LUA)
		note_bytecode(source, &function);
	trace->functions[trace->function_count++] = function;
}

/* Whether a constant's value is in the next slot. */
static bool is_long(const struct trace_source *source, const uint8_t *ins)
{
	return ins[5] == TRACE_IR_KNUM || ins[5] == TRACE_IR_KINT64 ||
	       (source->view.layout->gc64 && ins[5] >= TRACE_IR_KGC && ins[5] <= TRACE_IR_KKPTR);
}

static void list_own(const struct trace_source *source, struct trace *trace)
{
	const struct luastate_layout *layout = source->view.layout;

	add_function(source, trace, state_ref(layout, source->header, layout->GCtrace_startpt),
		     TRACE_CONSTANT_PROTO);
	for (uint32_t ref = source->block.nk; ref < TRACE_REF_BASE; ref++) {
		int type = 0;
		uint64_t object = trace_object_at(source, ref, &type);

		if (object && trace_charge(source->view.state, 1))
			add_function(source, trace, object, type);
		ref += is_long(source, constant_at(source, ref));
	}
	trace->own_count = trace->function_count;
}

static void inherit(struct trace *trace, const struct trace *parent)
{
	size_t room = TRACE_FUNCTIONS_MAX - trace->function_count;
	size_t count = parent->function_count < room ? parent->function_count : room;

	memcpy(trace->functions + trace->function_count, parent->functions,
	       count * sizeof(*trace->functions));
	trace->function_count += count;
}

bool trace_list_functions(const struct trace_source *source, struct trace *trace)
{
	struct trace_function *fitting;

	trace->functions = calloc(TRACE_FUNCTIONS_MAX, sizeof(*trace->functions));
	if (!trace->functions)
		return false;
	list_own(source, trace);
	if (source->parent)
		inherit(trace, source->parent);
	if (trace->function_count == 0)
		return true;
	fitting = realloc(trace->functions, trace->function_count * sizeof(*trace->functions));
	trace->functions = fitting ? fitting : trace->functions;
	return true;
}

const struct trace_function *trace_function_of(const struct trace *trace, uint64_t object)
{
	for (size_t i = 0; i < trace->function_count; i++)
		if (trace->functions[i].object == object)
			return &trace->functions[i];
	return NULL;
}

bool trace_function_holds(const struct trace_function *function, uint64_t pc)
{
	return function->kind == LUASTATE_LUA && pc >= function->start && pc <= function->end &&
	       function->start && (pc - function->start) % 4 == 0;
}

uint64_t trace_find_holder(const struct trace_source *source, const struct trace *trace,
			   uint64_t pc)
{
	const struct state_proto *known;

	for (size_t i = 0; i < trace->function_count; i++)
		if (trace_function_holds(&trace->functions[i], pc))
			return trace->functions[i].address;
	known = state_find_call(source->view.state, pc);
	if (known)
		return known->address;
	return source->find_holder ? source->find_holder(source->context, pc) : 0;
}
