/* SPDX-License-Identifier: MIT */
/*
 * Which name does a call give the function that it calls?
 *
 * LuaJIT's functions have no names. The caller's bytecode shows where it got the called function
 * from: a global, a field, a method, a local variable or an upvalue.
 *
 * Source: LuaJIT v2.1 src/lj_debug.c (how slots get names, the packed variable table), src/lj_bc.h
 * (operand modes; opcodes up to 88 are the same since 2.1.0-beta3).
 */
#include "luastate/function/call_names.h"

#include "luastate/function/bytecode.h"
#include "luastate/layout/object.h"

enum {
	/* Number of instructions to search before a call. An argument list is seldom longer. */
	NAME_LOOK_BACK = 400,
	NAME_MOVES = 8,

	RANK_LOCAL = 1,
	RANK_FIELD = 2,
	RANK_GLOBAL = 3,
};

/** A caller's bytecode. */
struct bytecode {
	const struct luastate_layout *layout;
	const struct state_proto *proto;
	const struct attach_reader *reader;
	size_t *bytes_left; /* of packed names that may be read */
};

/* A bounded sequence of packed bytes in a prototype's debug part. */
struct packed {
	const struct bytecode *bytecode;
	uint64_t at, end; /* address of the next byte; end of the prototype */
	uint64_t buffered_at;
	size_t buffered;
	uint8_t bytes[64];
};

/* Uses the kept copy of the prototype. Reading a long table during a stop would need too many
 * rounds. */
static bool fill_packed(struct packed *packed, size_t len)
{
	const struct state_proto *proto = packed->bytecode->proto;
	uint64_t offset = packed->at - proto->lineinfo;
	struct failure why;

	if (proto->debug && offset < proto->debug_len && len <= proto->debug_len - offset) {
		memcpy(packed->bytes, proto->debug + offset, len);
		return true;
	}
	return state_read(packed->bytecode->reader, packed->at, packed->bytes, len, &why) == 0;
}

static int next_byte(struct packed *packed)
{
	size_t *left = packed->bytecode->bytes_left;

	if (*left == 0)
		return -1;
	--*left;
	if (packed->at - packed->buffered_at >= packed->buffered) {
		size_t len = 64 - (packed->at & 63);

		if (packed->at >= packed->end)
			return -1;
		if (len > packed->end - packed->at)
			len = (size_t)(packed->end - packed->at);
		if (!fill_packed(packed, len))
			return -1;
		packed->buffered_at = packed->at;
		packed->buffered = len;
	}
	return packed->bytes[packed->at++ - packed->buffered_at];
}

static int64_t next_uleb(struct packed *packed)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 32; shift += 7) {
		int byte = next_byte(packed);

		if (byte < 0)
			return -1;
		value |= (uint32_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	return -1;
}

static struct packed packed_at(const struct bytecode *bytecode, int32_t offset)
{
	const struct luastate_layout *layout = bytecode->layout;
	const struct state_proto *proto = bytecode->proto;

	return (struct packed){ .bytecode = bytecode,
				.at = state_ref(layout, proto->identity.header, offset),
				.end = proto->address +
				       state_u32(proto->identity.header, layout->GCproto_sizept) };
}

/* Name of the variable that is in a slot at an instruction. The table has one entry for each
 * variable, in the order of their slots: name, distance to its start, length of its life. */
static bool variable_name(const struct bytecode *bytecode, uint32_t index, uint32_t slot,
			  char *ret_name, size_t size)
{
	struct packed packed = packed_at(bytecode, bytecode->layout->GCproto_varinfo);
	int64_t start = 0;

	if (!state_is_pointer(packed.at))
		return false;
	for (;;) {
		int64_t distance, life;
		int byte = next_byte(&packed);
		size_t len = 0;
		bool internal = byte > 0 && byte < 7; /* "(for index)" and friends */

		if (byte <= 0)
			return false;
		while (!internal && byte > 0) {
			if (len + 1 < size)
				ret_name[len++] = (char)byte;
			byte = next_byte(&packed);
		}
		ret_name[len] = '\0';
		distance = next_uleb(&packed);
		life = next_uleb(&packed);
		if (distance < 0 || life < 0 || (start += distance) > index)
			return false;
		if (index < start + life && slot-- == 0)
			return len > 0;
	}
}

static bool upvalue_name(const struct bytecode *bytecode, uint32_t index, char *ret_name,
			 size_t size)
{
	const struct luastate_layout *layout = bytecode->layout;
	struct packed packed = packed_at(bytecode, layout->GCproto_uvinfo);
	size_t len = 0;
	int byte = 0;

	if (!state_is_pointer(packed.at) ||
	    index >= bytecode->proto->identity.header[layout->GCproto_sizeuv])
		return false;
	for (uint32_t i = 0; i <= index; i++) {
		len = 0;
		while ((byte = next_byte(&packed)) > 0)
			if (len + 1 < size)
				ret_name[len++] = (char)byte;
		if (byte < 0)
			return false;
	}
	ret_name[len] = '\0';
	return len > 0;
}

/* Collectable constant n is n+1 references below k. */
static bool constant_name(const struct bytecode *bytecode, uint32_t index, char *ret_name,
			  size_t size)
{
	const struct luastate_layout *layout = bytecode->layout;
	const uint8_t *header = bytecode->proto->identity.header;
	uint64_t k = state_ref(layout, header, layout->GCproto_k), ref;
	uint64_t below = (uint64_t)layout->ref_size * ((uint64_t)index + 1);
	struct failure why;

	if (index >= state_u32(header, layout->GCproto_sizekgc) || !state_is_pointer(k))
		return false;
	if (state_read_ref(layout, bytecode->reader, k - below, &ref, &why) != 0)
		return false;
	return state_read_string(layout, bytecode->reader, ref, ret_name, size, &why) == 0 &&
	       ret_name[0] != '\0';
}

/* Name the source from which the instruction @ins loads the callee. */
static int name_source(const struct bytecode *bytecode, uint32_t ins, char *ret_name, size_t size)
{
	switch (bc_op(ins)) {
	case BC_GGET:
		return constant_name(bytecode, bc_d(ins), ret_name, size) ? RANK_GLOBAL : 0;
	case BC_TGETS:
		return constant_name(bytecode, bc_c(ins), ret_name, size) ? RANK_FIELD : 0;
	case BC_UGET:
		return upvalue_name(bytecode, bc_d(ins), ret_name, size) ? RANK_LOCAL : 0;
	default:
		return 0;
	}
}

static int name_slot(const struct bytecode *bytecode, uint32_t index, uint32_t slot, char *ret_name,
		     size_t size)
{
	const struct state_proto *proto = bytecode->proto;
	struct failure why;
	uint32_t ins;
	int moves = 0;

	if (variable_name(bytecode, index, slot, ret_name, size))
		return RANK_LOCAL;
	for (int look = 0; index > 1 && look < NAME_LOOK_BACK; look++) {
		index--;
		if (state_proto_instruction(proto, bytecode->reader,
					    proto->bytecode + 4 * (uint64_t)index, &ins, &why) != 0)
			return 0;
		if (!bc_writes(ins, slot))
			continue;
		/* A slot that is written as one of several, or by an unknown instruction, has no
		 * name. */
		if (bc_op(ins) != BC_MOV)
			return name_source(bytecode, ins, ret_name, size);
		if (++moves > NAME_MOVES)
			return 0;
		slot = bc_d(ins);
		if (variable_name(bytecode, index, slot, ret_name, size))
			return RANK_LOCAL;
	}
	return 0;
}

int state_name_call(const struct luastate_layout *layout, const struct state_proto *caller,
		    const struct attach_reader *reader, uint64_t pc, size_t *bytes_left,
		    char *ret_name, size_t size)
{
	const struct bytecode bytecode = { layout, caller, reader, bytes_left };
	struct failure why;
	uint32_t ins, op;
	int rank;

	if (!bc_is_known(layout) || state_proto_instruction(caller, reader, pc, &ins, &why) != 0)
		return 0;
	op = bc_op(ins);
	if (op < BC_CALLM || op > BC_CALLMT + 1)
		return 0; /* an iterator or a metamethod */
	rank = name_slot(&bytecode, (uint32_t)((pc - caller->bytecode) / 4), bc_a(ins), ret_name,
			 size);
	return rank && state_is_plain(ret_name) ? rank : 0;
}

/* Skips the tables that hold the function: gives "f" for "M.f", "Class:f" and "t[1].f". */
const char *state_last_name(const char *name)
{
	const char *last = name;

	for (; *name; name++)
		if ((*name == '.' || *name == ':') && name[1])
			last = name + 1;
	return last;
}
