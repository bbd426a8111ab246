/* SPDX-License-Identifier: MIT */
/*
 * Which variables does a frame have?
 *
 * A prototype's variable info lists locals in the order in which their lives begin: a name, or one
 * byte for a variable that the compiler made; then two ULEB128 numbers. The first is the distance
 * from the start of the previous variable's life, in instructions; the second is the length of this
 * life. Variables alive at a position are in the slots 0, 1, 2 … in this order. Parameters live
 * from the function's header on.
 *
 *   frame of a vararg function      below-base … parameters' remains | varargs | func link | base …
 *                                   '------------- distance in the link -------------------'
 *
 * While a trace runs, the slots from its base up are as they were when it began, or are being
 * changed. The same is true from an exit until the exit has written its last snapshot. All slots
 * below are in memory: the interpreter wrote them, or a trace that jumped to another one.
 *
 * Source: LuaJIT v2.1 src/lj_debug.c, src/lj_debug.h (VARNAMEDEF), src/lj_parse.c (fs_fixup_var,
 * var_add), src/lj_snap.c (lj_snap_restore), src/vm_x64.dasc and src/vm_arm64.dasc
 * (vm_exit_handler), src/lj_asm.c (asm_stack_restore, asm_tail_link).
 */
#include "luastate/values/values.h"

#include <stdlib.h>

#include "attach/array.h"
#include "luastate/function/proto.h"
#include "luastate/layout/object.h"

enum {
	/* Maximum bytes of names and lives of one prototype. Longer parts are cut. */
	DEBUG_MAX = 1 << 20,
	SLOTS_MAX = 255, /* GCproto.framesize has eight bits */
	VARARGS_MAX = 1024,
	LINK_TYPE = 7,
	LINK_VARARG = 3,
	/* A loop over pairs() has a position instead of the key (LJ_KEYINDEX). */
	VARNAME_FOR_CTL = 6,
	VARNAME_MAX = 7,
	ULEB_BITS_MAX = 28,
};

#define KEYINDEX 0xfffe7fffu

/** A variable that is alive. */
struct alive {
	const char *name;
	bool is_control, from_header;
};

/** A frame whose variables are read. */
struct reading {
	struct values values;
	const struct luastate_frame *frame;
	const struct state_proto *proto;
	uint8_t *debug; /* from uvinfo on; NULL if the prototype is stripped */
	size_t uv_len, debug_len;
	struct luastate_variables *variables;
	struct luastate_variable *items;
	size_t capacity;
};

const char *luastate_variable_kind_name(enum luastate_variable_kind kind)
{
	static const char *const names[LUASTATE_VARIABLE_KINDS] = { "parameter", "local", "vararg",
								    "upvalue" };

	return (unsigned)kind < LUASTATE_VARIABLE_KINDS ? names[kind] : "?";
}

/* ---- Debug part ------------------------------------------------------------------------- */

static uint64_t header_ref(const struct reading *reading, int32_t offset)
{
	return state_ref(reading->values.layout, reading->proto->identity.header, offset);
}

static uint8_t header_byte(const struct reading *reading, int32_t offset)
{
	return reading->proto->identity.header[offset];
}

/* Read the names of upvalues and variables, from the prototype's copy or from the target. */
static bool read_debug(struct reading *reading)
{
	const struct luastate_layout *layout = reading->values.layout;
	const struct state_proto *proto = reading->proto;
	uint64_t uvinfo = header_ref(reading, layout->GCproto_uvinfo);
	uint64_t varinfo = header_ref(reading, layout->GCproto_varinfo);
	uint64_t end = proto->address + state_u32(proto->identity.header, layout->GCproto_sizept);
	size_t at = (size_t)(uvinfo - proto->lineinfo);

	/* proto.c has checked the order of the parts. */
	reading->variables->is_stripped = !proto->lineinfo;
	if (!proto->lineinfo)
		return true;
	reading->uv_len = (size_t)(varinfo - uvinfo);
	reading->debug_len = (size_t)(end - uvinfo);
	if (reading->debug_len > DEBUG_MAX || reading->debug_len == 0) {
		reading->variables->is_truncated = reading->debug_len > 0;
		reading->debug_len = reading->uv_len = 0;
		return true;
	}
	reading->debug = values_alloc(&reading->values, reading->debug_len);
	if (!reading->debug)
		return false;
	if (proto->debug && at <= proto->debug_len && reading->debug_len <= proto->debug_len - at) {
		memcpy(reading->debug, proto->debug + at, reading->debug_len);
	} else if (!values_read(&reading->values, uvinfo, reading->debug, reading->debug_len)) {
		reading->variables->is_truncated = true;
		reading->debug_len = reading->uv_len = 0;
	}
	return true;
}

/* @return false if the number is cut or too large. */
static bool read_number(const struct reading *reading, size_t *at, uint32_t *ret_number)
{
	uint32_t number = 0;

	for (unsigned shift = 0; *at < reading->debug_len && shift <= ULEB_BITS_MAX; shift += 7) {
		uint8_t byte = reading->debug[(*at)++];

		number |= (uint32_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret_number = number;
			return true;
		}
	}
	return false;
}

/* @return false if the text does not end. */
static bool skip_text(const struct reading *reading, size_t end, size_t *at)
{
	const uint8_t *zero = *at < end ? memchr(reading->debug + *at, 0, end - *at) : NULL;

	if (!zero)
		return false;
	*at = (size_t)(zero - reading->debug) + 1;
	return true;
}

/* Collect the variables alive at an instruction. @return their number. */
static unsigned find_alive(struct reading *reading, uint64_t index, struct alive *ret_alive)
{
	static const char *const names[VARNAME_MAX] = {
		NULL,	       "(for index)",  "(for limit)", "(for step)", "(for generator)",
		"(for state)", "(for control)"
	};
	size_t at = reading->uv_len;
	uint64_t start = 0;
	unsigned count = 0;

	while (at < reading->debug_len && reading->debug[at]) {
		unsigned own = reading->debug[at];
		const char *name =
			own < VARNAME_MAX ? names[own] : (const char *)reading->debug + at;
		uint32_t distance, length;

		if (own < VARNAME_MAX)
			at++;
		else if (!skip_text(reading, reading->debug_len, &at))
			break;
		if (!read_number(reading, &at, &distance) || !read_number(reading, &at, &length))
			break;
		start += distance;
		if (start > index)
			return count;
		if (index - start >= length)
			continue;
		if (count == SLOTS_MAX)
			break;
		ret_alive[count++] = (struct alive){ .name = name,
						     .is_control = own == VARNAME_FOR_CTL,
						     .from_header = start == 0 };
	}
	/* A valid list ends with a zero, or with variables that live later. */
	if (at >= reading->debug_len || reading->debug[at])
		reading->variables->is_truncated = true;
	return count;
}

/* ---- Slots ------------------------------------------------------------------------------ */

/* Find the slots that a trace, or an exit, keeps in registers. */
static void find_stale(struct values *values)
{
	const struct luastate_layout *layout = values->layout;
	const struct attach_reader *stopped = values->memory->stopped;
	uint64_t G = values->vm->G, current = 0, jit_base = 0;
	uint8_t bytes[STATE_OBJECT_MAX];
	int vmstate = 0;
	struct failure why;

	values->stale = (struct values_stale){ 0, UINT64_MAX };
	if (state_read_ref(layout, stopped, G + (uint64_t)layout->global_State_cur_L, &current,
			   &why) != 0 ||
	    state_read_ref(layout, stopped, G + (uint64_t)layout->global_State_jit_base, &jit_base,
			   &why) != 0 ||
	    luastate_read_vmstate(values->state, stopped, G, &vmstate, &why) != 0)
		return;
	values->stale.end = 0;
	if (!jit_base && vmstate != ~layout->vmst_exit)
		return;
	values->stale.end = UINT64_MAX;
	if (state_read(stopped, current, bytes, (size_t)layout->lua_State_sizeof, &why) != 0)
		return;
	values->stale.start = jit_base ? jit_base : state_u64(bytes, layout->lua_State_base);
	values->stale.end = state_ref(layout, bytes, layout->lua_State_stack) +
			    8 * (uint64_t)state_u32(bytes, layout->lua_State_stacksize);
}

static bool is_stale(const struct values *values, uint64_t address)
{
	return address >= values->stale.start && address < values->stale.end;
}

static struct luastate_variable *add_variable(struct reading *reading,
					      enum luastate_variable_kind kind, const char *name,
					      unsigned index)
{
	struct luastate_variable *items;

	if (reading->values.options->values_left == 0) {
		reading->values.options->is_exhausted = true;
		reading->variables->is_truncated = true;
		return NULL;
	}
	if (!ARRAY_RESERVE(reading->items, reading->capacity, reading->variables->count + 1)) {
		reading->variables->is_truncated = true;
		return NULL;
	}
	items = &reading->items[reading->variables->count++];
	*items = (struct luastate_variable){ .kind = kind, .name = name, .index = index };
	return items;
}

/* Read a slot of a stack, as the stop copied it. */
static void read_slot(struct reading *reading, const struct attach_reader *reader, uint64_t address,
		      bool is_control, struct luastate_value *ret_value)
{
	uint64_t tvalue;
	struct failure why;

	if (is_stale(&reading->values, address))
		return;
	if (!state_is_aligned(address) ||
	    state_read(reader, address, &tvalue, sizeof(tvalue), &why) != 0)
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
	else if (!is_control || (uint32_t)(tvalue >> 32) != KEYINDEX)
		values_decode(&reading->values, tvalue, ret_value);
}

static void read_local(struct reading *reading, const struct alive *alive, unsigned slot)
{
	uint64_t base = reading->frame->base;
	bool is_parameter = alive->from_header &&
			    slot < header_byte(reading, reading->values.layout->GCproto_numparams);
	struct luastate_variable *variable = add_variable(
		reading, is_parameter ? LUASTATE_PARAMETER : LUASTATE_LOCAL, alive->name, slot + 1);

	if (variable && base && !reading->variables->is_between)
		read_slot(reading, reading->values.memory->stopped, base + 8 * (uint64_t)slot,
			  alive->is_control, &variable->value);
}

static void read_locals(struct reading *reading)
{
	unsigned parameters = header_byte(reading, reading->values.layout->GCproto_numparams);
	uint64_t index =
		reading->frame->pc ? (reading->frame->pc - reading->proto->bytecode) / 4 : 0;
	struct alive alive[SLOTS_MAX];
	unsigned count = parameters;

	/* At the header, missing parameters are not there yet. In a function that is being left,
	 * results have replaced the locals. */
	reading->variables->is_between = index == 0;
	if (reading->variables->is_stripped)
		for (unsigned i = 0; i < parameters; i++)
			alive[i] = (struct alive){ .name = "(*temporary)", .from_header = true };
	else
		count = find_alive(reading, index, alive);
	for (unsigned i = 0; i < count; i++)
		read_local(reading, &alive[i], i);
}

/* ---- Varargs ---------------------------------------------------------------------------- */

static void read_varargs(struct reading *reading)
{
	const struct luastate_layout *layout = reading->values.layout;
	uint64_t base = reading->frame->base, frame_bytes = layout->gc64 ? 16 : 8;
	uint64_t link, first, count;
	struct failure why;

	if (!base ||
	    state_read_ref(layout, reading->values.memory->stopped,
			   base - (uint64_t)layout->ref_size, &link, &why) != 0 ||
	    (link & LINK_TYPE) != LINK_VARARG)
		return;
	link &= ~(uint64_t)LINK_TYPE;
	first = base - link + 8 * (uint64_t)header_byte(reading, layout->GCproto_numparams);
	if (link > base || first > base - frame_bytes)
		return;
	count = (base - frame_bytes - first) / 8;
	for (unsigned i = 0; i < count; i++) {
		struct luastate_variable *variable =
			i < VARARGS_MAX ? add_variable(reading, LUASTATE_VARARG, "(*vararg)", i + 1)
					: NULL;

		reading->variables->is_truncated |= !variable;
		if (!variable)
			return;
		read_slot(reading, reading->values.memory->stopped, first + 8 * (uint64_t)i, false,
			  &variable->value);
	}
}

/* ---- Upvalues --------------------------------------------------------------------------- */

/* Whether the object is still the frame's function, with as many upvalues as its prototype says. */
static bool is_function(struct reading *reading)
{
	const struct luastate_layout *layout = reading->values.layout;
	uint8_t bytes[STATE_OBJECT_MAX];

	return reading->frame->object &&
	       values_read_object(&reading->values, reading->frame->object, layout->tag_func, bytes,
				  layout->GCfunc_header) &&
	       bytes[layout->GCfunc_ffid] == 0 &&
	       state_ref(layout, bytes, layout->GCfunc_pc) == reading->proto->bytecode &&
	       bytes[layout->GCfunc_nupvalues] == header_byte(reading, layout->GCproto_sizeuv);
}

static void read_upvalue(struct reading *reading, unsigned index,
			 struct luastate_variable *ret_variable)
{
	const struct luastate_layout *layout = reading->values.layout;
	uint8_t bytes[STATE_OBJECT_MAX], ref[8];
	uint64_t at = reading->frame->object + (uint64_t)layout->GCfuncL_uvptr +
		      (uint64_t)layout->ref_size * index;

	if (!values_read(&reading->values, at, ref, (size_t)layout->ref_size) ||
	    !values_read_object(&reading->values, state_ref(layout, ref, 0), layout->tag_upval,
				bytes, layout->GCupval_sizeof))
		return;
	ret_variable->is_open = bytes[layout->GCupval_closed] == 0;
	ret_variable->is_immutable = bytes[layout->GCupval_immutable] != 0;
	ret_variable->value.type = LUASTATE_VALUE_UNAVAILABLE;
	read_slot(reading, reading->values.memory->any, state_ref(layout, bytes, layout->GCupval_v),
		  false, &ret_variable->value);
}

static void read_upvalues(struct reading *reading)
{
	unsigned count = header_byte(reading, reading->values.layout->GCproto_sizeuv);
	bool is_known = is_function(reading);
	/* The closure of a function that is inlined into a trace is unknown. */
	enum luastate_value_type otherwise =
		reading->frame->object ? LUASTATE_VALUE_UNREADABLE : LUASTATE_VALUE_UNAVAILABLE;
	size_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		struct luastate_variable *variable;
		const char *name = "";
		size_t begin = at;

		if (skip_text(reading, reading->uv_len, &at))
			name = (const char *)reading->debug + begin;
		variable = add_variable(reading, LUASTATE_UPVALUE, name, i + 1);
		if (!variable)
			return;
		variable->value.type = otherwise;
		if (is_known)
			read_upvalue(reading, i, variable);
	}
}

/* ---- A frame ---------------------------------------------------------------------------- */

static void read_all(struct reading *reading)
{
	struct luastate_variables *variables = reading->variables;

	reading->proto = state_proto_of(reading->frame->function);
	find_stale(&reading->values);
	variables->is_compiled = reading->frame->trace != 0 || reading->frame->base == 0 ||
				 is_stale(&reading->values, reading->frame->base);
	if (read_debug(reading)) {
		read_locals(reading);
		read_varargs(reading);
		read_upvalues(reading);
	} else {
		variables->is_truncated = true;
	}
	variables->items = reading->items;
}

static struct luastate_variables *create(void)
{
	struct luastate_variables *variables = calloc(1, sizeof(*variables));

	if (variables)
		variables->store = calloc(1, sizeof(*variables->store));
	if (variables && !variables->store) {
		free(variables);
		return NULL;
	}
	return variables;
}

int luastate_read_variables(struct luastate *state, const struct luastate_memory *memory,
			    const struct luastate_frame *frame,
			    struct luastate_values_options *options,
			    struct luastate_variables **ret_variables, struct failure *why)
{
	struct reading reading = {
		.frame = frame, .values = { .state = state, .memory = memory, .options = options }
	};

	reading.variables = create();
	if (!reading.variables)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "store variables");
	reading.values.store = reading.variables->store;
	if (frame->function->kind == LUASTATE_LUA) {
		reading.values.vm = luastate_vm_of(state, memory->any, frame->coroutine, why);
		if (!reading.values.vm) {
			luastate_variables_destroy(reading.variables);
			return -1;
		}
		reading.values.layout = reading.values.vm->layout;
		read_all(&reading);
	}
	*ret_variables = reading.variables;
	return 0;
}

void luastate_variables_destroy(struct luastate_variables *variables)
{
	struct values_block *next;

	if (!variables)
		return;
	for (struct values_block *block = variables->store->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(variables->store);
	free((struct luastate_variable *)(uintptr_t)variables->items);
	free(variables);
}
