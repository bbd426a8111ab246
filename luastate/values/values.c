/* SPDX-License-Identifier: MIT */
/*
 * Which Lua value does a TValue hold?
 *
 * A TValue has 64 bits (lj_obj.h, "64 bit and 32 bit TValues"):
 *
 *   GC64     a double; or a tag in the top 17 bits, and below it an object, an integer (32 bits) or
 *            a light userdata (47 bits)
 *   else     a double; or a tag in the upper half, and in the lower half an object or an integer;
 * or a light userdata with 0xffff in the top 16 bits
 *
 * Newer builds store the upper half of a light userdata's pointer in a table: 8 bits are the index,
 * 39 are the pointer's.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (lightudV, tvislightud), src/lib_base.c (coroutine.status).
 */
#include "luastate/values/values.h"

#include <stdio.h>
#include <stdlib.h>

#include "luastate/function/library_names.h"
#include "luastate/function/proto.h"
#include "luastate/layout/object.h"

enum {
	LIGHTUD_BITS = 47,
	LIGHTUD_BITS_LO = 39, /* LJ_LIGHTUD_BITS_LO */
	LIGHTUD_NULL = 255,
	LUA_YIELDED = 1, /* LUA_YIELD */
};

/* ---- Memory ----------------------------------------------------------------------------- */

void *values_alloc(struct values *values, size_t len)
{
	struct values_block *block;
	size_t size = sizeof(*block) + len;

	if (len > values->options->memory_bytes || size > values->options->memory_bytes) {
		values->options->is_exhausted = true;
		return NULL;
	}
	block = calloc(1, size);
	if (!block)
		return NULL;
	values->options->memory_bytes -= size;
	block->next = values->store->blocks;
	values->store->blocks = block;
	return block + 1;
}

char *values_copy_text(struct values *values, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = values_alloc(values, size);

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

bool values_read(struct values *values, uint64_t address, void *ret_bytes, size_t len)
{
	struct failure why;

	values->options->is_exhausted |= len > values->options->read_bytes;
	if (len > values->options->read_bytes || !state_is_pointer(address))
		return false;
	values->options->read_bytes -= len;
	return state_read(values->memory->any, address, ret_bytes, len, &why) == 0;
}

bool values_read_object(struct values *values, uint64_t address, int32_t tag, void *ret_bytes,
			int32_t len)
{
	const uint8_t *bytes = ret_bytes;

	return values_read(values, address, ret_bytes, (size_t)len) &&
	       bytes[values->layout->GCobj_gct] == (uint8_t)state_gct(tag);
}

bool values_read_text(struct values *values, uint64_t address, char *ret_text, size_t size)
{
	const struct luastate_layout *layout = values->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	size_t len;

	if (!values_read_object(values, address, layout->tag_str, bytes, layout->GCstr_sizeof))
		return false;
	len = state_u32(bytes, layout->GCstr_len);
	if (len >= size)
		len = size - 1;
	if (!values_read(values, address + (uint64_t)layout->GCstr_sizeof, ret_text, len))
		return false;
	ret_text[len] = '\0';
	return true;
}

/* ---- Names of types --------------------------------------------------------------------- */

const char *luastate_value_type_name(enum luastate_value_type type)
{
	static const char *const names[LUASTATE_VALUE_TYPES] = {
		[LUASTATE_VALUE_UNAVAILABLE] = "unavailable",
		[LUASTATE_VALUE_UNREADABLE] = "unreadable",
		[LUASTATE_VALUE_OMITTED] = "omitted",
		[LUASTATE_VALUE_NIL] = "nil",
		[LUASTATE_VALUE_BOOLEAN] = "boolean",
		[LUASTATE_VALUE_INTEGER] = "number",
		[LUASTATE_VALUE_NUMBER] = "number",
		[LUASTATE_VALUE_STRING] = "string",
		[LUASTATE_VALUE_TABLE] = "table",
		[LUASTATE_VALUE_FUNCTION] = "function",
		[LUASTATE_VALUE_C_FUNCTION] = "function",
		[LUASTATE_VALUE_BUILTIN] = "function",
		[LUASTATE_VALUE_COROUTINE] = "thread",
		[LUASTATE_VALUE_USERDATA] = "userdata",
		[LUASTATE_VALUE_LIGHTUSERDATA] = "userdata",
		[LUASTATE_VALUE_CDATA] = "cdata",
		[LUASTATE_VALUE_PROTO] = "proto",
		[LUASTATE_VALUE_TRACE] = "trace",
	};

	return (unsigned)type < LUASTATE_VALUE_TYPES ? names[type] : "?";
}

/* ---- Objects ---------------------------------------------------------------------------- */

static void decode_string(struct values *values, uint64_t address, struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	size_t len, kept;
	char *text;

	if (!values_read_object(values, address, layout->tag_str, bytes, layout->GCstr_sizeof)) {
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
		return;
	}
	len = state_u32(bytes, layout->GCstr_len);
	kept = len < values->options->string_bytes ? len : values->options->string_bytes;
	text = values_alloc(values, kept + 1);
	if (!text)
		ret_value->type = LUASTATE_VALUE_OMITTED;
	else if (kept && !values_read(values, address + (uint64_t)layout->GCstr_sizeof, text, kept))
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
	else
		*ret_value = (struct luastate_value){ .type = LUASTATE_VALUE_STRING,
						      .address = address,
						      .text = text,
						      .text_bytes = kept,
						      .size = len };
}

static void decode_lua_function(struct values *values, uint64_t pc,
				struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;
	const struct state_proto *known;
	uint8_t bytes[STATE_OBJECT_MAX];
	char chunkname[VALUES_TEXT_MAX];

	ret_value->type = LUASTATE_VALUE_FUNCTION;
	ret_value->code = pc - (uint64_t)layout->GCproto_sizeof;
	if (!values_read_object(values, ret_value->code, layout->tag_proto, bytes,
				layout->GCproto_sizeof) ||
	    !values_read_text(values, state_ref(layout, bytes, layout->GCproto_chunkname),
			      chunkname, sizeof(chunkname))) {
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
		return;
	}
	ret_value->firstline = (int32_t)state_u32(bytes, layout->GCproto_firstline);
	ret_value->chunkname = values_copy_text(values, chunkname);
	known = state_find_proto(values->state, ret_value->code);
	if (known && known->function.name && known->firstline == ret_value->firstline)
		ret_value->text = values_copy_text(values, known->function.name);
}

static const char *cname(struct values *values, uint64_t address)
{
	struct state_cname *item;

	HASH_FIND(hh, values->state->cnames, &address, sizeof(address), item);
	return item ? item->name : NULL;
}

static void decode_function(struct values *values, uint64_t address,
			    struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	const char *name;
	unsigned ffid;

	if (!values_read_object(values, address, layout->tag_func, bytes, layout->GCfunc_header)) {
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
		return;
	}
	ffid = bytes[layout->GCfunc_ffid];
	if (ffid == 0) {
		decode_lua_function(values, state_ref(layout, bytes, layout->GCfunc_pc), ret_value);
		return;
	}
	ret_value->code = state_u64(bytes, layout->GCfuncC_f);
	ret_value->type = ffid == 1 ? LUASTATE_VALUE_C_FUNCTION : LUASTATE_VALUE_BUILTIN;
	for (int tries = 0; tries < 2; tries++) {
		name = ffid == 1			  ? cname(values, ret_value->code)
		       : values->state->ff_names[ffid][0] ? values->state->ff_names[ffid]
							  : NULL;
		if (name || values->names_loaded)
			break;
		state_load_names(values->state, values->memory->any, values->vm->G);
		values->names_loaded = true;
	}
	if (name) {
		ret_value->text = values_copy_text(values, name);
	} else if (ffid > 1) {
		char builtin[32];

		snprintf(builtin, sizeof(builtin), "builtin#%u", ffid);
		ret_value->text = values_copy_text(values, builtin);
	}
}

static void decode_coroutine(struct values *values, uint64_t address,
			     struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;
	uint8_t bytes[STATE_OBJECT_MAX], status;
	uint64_t current = 0, base, first;
	struct failure why;

	if (!values_read_object(values, address, layout->tag_thread, bytes,
				layout->lua_State_sizeof)) {
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
		return;
	}
	ret_value->type = LUASTATE_VALUE_COROUTINE;
	state_read_ref(layout, values->memory->stopped,
		       values->vm->G + (uint64_t)layout->global_State_cur_L, &current, &why);
	status = bytes[layout->lua_State_status];
	base = state_u64(bytes, layout->lua_State_base);
	first = state_ref(layout, bytes, layout->lua_State_stack) + (layout->gc64 ? 16 : 8);
	ret_value->status = address == current	    ? LUASTATE_COROUTINE_RUNNING
			    : status == LUA_YIELDED ? LUASTATE_COROUTINE_SUSPENDED
			    : status != 0	    ? LUASTATE_COROUTINE_DEAD
			    : base > first	    ? LUASTATE_COROUTINE_NORMAL
			    : state_u64(bytes, layout->lua_State_top) == base
				    ? LUASTATE_COROUTINE_DEAD
				    : LUASTATE_COROUTINE_SUSPENDED;
}

static void decode_userdata(struct values *values, uint64_t address,
			    struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;
	uint8_t bytes[STATE_OBJECT_MAX];
	uint64_t metatable;

	if (!values_read_object(values, address, layout->tag_udata, bytes,
				layout->GCudata_sizeof)) {
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
		return;
	}
	ret_value->type = LUASTATE_VALUE_USERDATA;
	ret_value->address = address + (uint64_t)layout->GCudata_sizeof;
	ret_value->size = state_u32(bytes, layout->GCudata_len);
	metatable = state_ref(layout, bytes, layout->GCudata_metatable);
	ret_value->has_metatable = metatable != 0;
	if (metatable)
		ret_value->text = values_table_text(values, metatable, "__name");
}

/* ---- Values ----------------------------------------------------------------------------- */

static void decode_light(struct values *values, uint64_t tvalue, struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;
	uint64_t low = tvalue & (((uint64_t)1 << LIGHTUD_BITS) - 1), segments = 0, high = 0;
	uint64_t index = low >> LIGHTUD_BITS_LO;
	uint32_t upper;

	ret_value->type = LUASTATE_VALUE_LIGHTUSERDATA;
	ret_value->address = low;
	if (layout->global_State_lightudseg == LAYOUT_ABSENT)
		return;
	ret_value->address = 0;
	if (index == LIGHTUD_NULL)
		return;
	if (!values_read(values, values->vm->G + (uint64_t)layout->global_State_lightudseg,
			 &segments, (size_t)layout->ref_size) ||
	    !values_read(values, segments + 4 * index, &upper, sizeof(upper))) {
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
		return;
	}
	high = (uint64_t)upper << 32;
	ret_value->address = high | (low & (((uint64_t)1 << LIGHTUD_BITS_LO) - 1));
}

static bool is_light(const struct luastate_layout *layout, int32_t tag)
{
	return layout->gc64 ? tag == layout->tag_lightud : tag >> 15 == -2;
}

static void decode_object(struct values *values, int32_t tag, uint64_t address,
			  struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;

	ret_value->address = address;
	if (tag == layout->tag_str)
		decode_string(values, address, ret_value);
	else if (tag == layout->tag_tab)
		values_decode_table(values, address, ret_value);
	else if (tag == layout->tag_func)
		decode_function(values, address, ret_value);
	else if (tag == layout->tag_thread)
		decode_coroutine(values, address, ret_value);
	else if (tag == layout->tag_udata)
		decode_userdata(values, address, ret_value);
	else if (tag == layout->tag_cdata)
		values_decode_cdata(values, address, ret_value);
	else if (tag == layout->tag_proto)
		ret_value->type = LUASTATE_VALUE_PROTO;
	else if (tag == layout->tag_trace)
		ret_value->type = LUASTATE_VALUE_TRACE;
	else
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
}

void values_decode(struct values *values, uint64_t tvalue, struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;
	int32_t tag = state_tag(layout, tvalue);

	*ret_value = (struct luastate_value){ .type = LUASTATE_VALUE_OMITTED };
	values->options->is_exhausted |= values->options->values_left == 0;
	if (values->options->values_left == 0)
		return;
	values->options->values_left--;
	/* nil, false and true are the first three tags in all builds (lj_obj.h). */
	if (tag == -1) {
		ret_value->type = LUASTATE_VALUE_NIL;
	} else if (tag == -2 || tag == -3) {
		ret_value->type = LUASTATE_VALUE_BOOLEAN;
		ret_value->boolean = tag == -3;
	} else if ((uint32_t)tag < (uint32_t)layout->tag_isnum) {
		ret_value->type = LUASTATE_VALUE_NUMBER;
		memcpy(&ret_value->number, &tvalue, sizeof(tvalue));
	} else if (tag == layout->tag_isnum) {
		ret_value->type = LUASTATE_VALUE_INTEGER;
		ret_value->integer = (int32_t)(uint32_t)tvalue;
	} else if (is_light(layout, tag)) {
		decode_light(values, tvalue, ret_value);
	} else {
		decode_object(values, tag, state_object(layout, tvalue), ret_value);
	}
}
