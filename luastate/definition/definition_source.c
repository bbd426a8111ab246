/* SPDX-License-Identifier: MIT */
/*
 * What is in a prototype, in particular which variables?
 *
 * Each variable has a name, the instruction where its life begins, and the length of its life. The
 * variables alive at an instruction have the slots from 0 on, in the order in which their lives
 * began.
 *
 * Source: LuaJIT v2.1 src/lj_debug.c (debug_varname, lj_debug_uvname), src/lj_obj.h (proto_kgc).
 */
#include "luastate/definition/definition_source.h"

#include <stdlib.h>

#include "attach/array.h"
#include "luastate/function/bytecode.h"
#include "luastate/function/proto.h"
#include "luastate/layout/object.h"

enum {
	/* A main chunk of 100,000 lines has some MiB. */
	PROTO_BYTES_MAX = 8 << 20,
	VARIABLES_MAX = 1 << 16,
	/* Maximum instructions to search for one prototype: some milliseconds. A large
	 * constructor is searched once for each function in it. */
	STEPS_MAX = 2 << 20,
};

void source_spend(struct definition_source *source, size_t steps)
{
	source->steps_left -= steps < source->steps_left ? steps : source->steps_left;
}

uint32_t source_instruction(const struct definition_source *source, uint32_t index)
{
	return state_instruction(source->layout, state_u32(source->bc, (int32_t)(4 * index)));
}

static uint64_t next_uleb(const uint8_t *bytes, size_t len, size_t *at)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 35 && *at < len; shift += 7) {
		uint8_t byte = bytes[(*at)++];

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	*at = len; /* the bytes end here */
	return 0;
}

static int decode_variables(struct definition_source *source, struct failure *why)
{
	uint64_t varinfo =
		state_ref(source->layout, source->bytes, source->layout->GCproto_varinfo);
	const uint8_t *bytes = source->bytes;
	size_t at = varinfo ? (size_t)(varinfo - source->address) : source->len, room = 0;
	uint64_t start = 0;

	while (at < source->len && bytes[at] && source->variable_count < VARIABLES_MAX) {
		struct definition_variable *variable;
		const char *name = (const char *)bytes + at;
		bool internal = bytes[at] < 7; /* "(for index)" and friends */
		size_t len = internal ? 1 : strnlen(name, source->len - at) + 1;

		if (len > source->len - at)
			break;
		if (!ARRAY_RESERVE(source->variables, room, source->variable_count + 1))
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "store variables");
		at += len;
		start += next_uleb(bytes, source->len, &at);
		variable = &source->variables[source->variable_count++];
		*variable = (struct definition_variable){ (uint32_t)start, (uint32_t)start,
							  internal ? "" : name };
		variable->end += (uint32_t)next_uleb(bytes, source->len, &at);
		if (start > source->sizebc)
			break;
	}
	return 0;
}

/* Copies the whole prototype at once, so that it does not change in between. */
int source_open(struct definition_source *source, struct failure *why)
{
	const struct luastate_layout *layout = source->layout;
	uint8_t header[STATE_OBJECT_MAX];

	if (!bc_is_known(layout))
		return failure_set(why, FAILURE_INVALID, 0, 0, source->address,
				   "decode its bytecode");
	if (state_read_object(layout, source->reader, source->address, state_gct(layout->tag_proto),
			      header, (size_t)layout->GCproto_sizeof, why) != 0)
		return -1;
	source->len = state_u32(header, layout->GCproto_sizept);
	if (source->len > PROTO_BYTES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, source->address, "copy a prototype");
	if (!state_proto_is_consistent(layout, source->address, header))
		return failure_set(why, FAILURE_INVALID, 0, 0, source->address, "read a prototype");
	/* One more byte, which terminates any text. */
	source->bytes = calloc(1, source->len + 1);
	if (!source->bytes)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "copy a prototype");
	if (state_read(source->reader, source->address, source->bytes, source->len, why) != 0)
		return -1;
	/* Another prototype may be at the address by now. */
	if (memcmp(header + layout->GCproto_sizept, source->bytes + layout->GCproto_sizept, 4) !=
		    0 ||
	    !state_proto_is_consistent(layout, source->address, source->bytes))
		return failure_set(why, FAILURE_INVALID, 0, 0, source->address, "read a prototype");
	source->bc = source->bytes + layout->GCproto_sizeof;
	source->sizebc = state_u32(source->bytes, layout->GCproto_sizebc);
	source->sizekgc = state_u32(source->bytes, layout->GCproto_sizekgc);
	source->k = state_ref(layout, source->bytes, layout->GCproto_k) - source->address;
	source->steps_left = STEPS_MAX;
	return decode_variables(source, why);
}

void source_close(struct definition_source *source)
{
	free(source->first_jumps);
	free(source->variables);
	free(source->bytes);
}

static uint32_t *find_jumps(const struct definition_source *source)
{
	uint32_t *first = malloc(source->sizebc * sizeof(*first));

	for (uint32_t i = 0; first && i < source->sizebc; i++)
		first[i] = UINT32_MAX;
	for (uint32_t i = 1; first && i < source->sizebc; i++) {
		uint32_t ins = source_instruction(source, i);
		int64_t target = bc_target(i, ins);

		if (bc_may_jump(bc_op(ins)) && target > 0 && target < source->sizebc &&
		    first[target] == UINT32_MAX)
			first[target] = i;
	}
	return first;
}

uint32_t source_first_jump(struct definition_source *source, uint32_t index)
{
	if (!source->first_jumps)
		source->first_jumps = find_jumps(source);
	return source->first_jumps ? source->first_jumps[index] : 0;
}

/* Collectable constant n is n+1 references below k. */
uint64_t source_constant(const struct definition_source *source, uint32_t index)
{
	uint64_t below = (uint64_t)source->layout->ref_size * ((uint64_t)index + 1);

	return index < source->sizekgc
		       ? state_ref(source->layout, source->bytes, (int32_t)(source->k - below))
		       : 0;
}

/* @return whether there is a text of printable characters. */
bool source_text(const struct definition_source *source, uint32_t index, char *ret_text,
		 size_t size)
{
	uint64_t address = source_constant(source, index);
	struct failure why;

	return state_is_pointer(address) &&
	       state_read_string(source->layout, source->reader, address, ret_text, size, &why) ==
		       0 &&
	       ret_text[0] && state_is_plain(ret_text);
}

const struct definition_variable *source_variable_at(struct definition_source *source,
						     uint32_t index, uint32_t slot)
{
	for (size_t i = 0; i < source->variable_count; i++) {
		const struct definition_variable *variable = &source->variables[i];

		if (variable->start > index)
			return NULL;
		source_spend(source, 1);
		if (index < variable->end && slot-- == 0)
			return variable;
	}
	return NULL;
}

bool source_begins_at(const struct definition_source *source, uint32_t index)
{
	size_t first = ARRAY_SEARCH(source->variable_count, i, source->variables[i].start < index);

	return first < source->variable_count && source->variables[first].start == index;
}

const char *source_upvalue_name(const struct definition_source *source, uint32_t index)
{
	const struct luastate_layout *layout = source->layout;
	uint64_t uvinfo = state_ref(layout, source->bytes, layout->GCproto_uvinfo);
	uint64_t varinfo = state_ref(layout, source->bytes, layout->GCproto_varinfo);
	size_t at, end;

	if (!uvinfo || index >= source->bytes[layout->GCproto_sizeuv])
		return NULL;
	at = (size_t)(uvinfo - source->address);
	end = (size_t)(varinfo - source->address);
	for (; index && at < end; index--)
		at += strlen((const char *)source->bytes + at) + 1;
	return at < end && source->bytes[at] ? (const char *)source->bytes + at : NULL;
}
