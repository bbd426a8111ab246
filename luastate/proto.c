/* SPDX-License-Identifier: MIT */
/*
 * Prototypes. Read once, and compared with the target's memory in every sample that meets them:
 * after a collection another prototype may lie at the same address.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (GCproto), src/lj_debug.c (lj_debug_line).
 */
#include "luastate/state.h"

#include <stdlib.h>

static void free_copies(struct state_proto *proto)
{
	free(proto->bc);
	free(proto->lines);
	proto->bc = NULL;
	proto->lines = NULL;
}

static void free_proto(struct state_proto *proto)
{
	free_copies(proto);
	free((char *)(uintptr_t)proto->function.chunkname);
	free(proto);
}

void state_free_protos(struct luastate *state)
{
	struct state_proto *proto, *next;

	HASH_ITER(hh, state->protos, proto, next)
	{
		HASH_DEL(state->protos, proto);
		free_proto(proto);
	}
}

/* Clear what the collector and the compiler change: links, mark, flags, trace number. */
static void clear_volatile(uint8_t *header)
{
	memset(header, 0, 9);	    /* nextgc, marked */
	memset(header + 16, 0, 16); /* unused, gclist */
	memset(header + 61, 0, 3);  /* flags, trace */
}

static unsigned line_width(uint32_t numline)
{
	return numline < 256 ? 1 : numline < 65536 ? 2 : 4;
}

/* Copies of bytecode and line table, where they are short; failing is no failure: parts are then
 * read one by one. */
static void copy_parts(struct state_proto *proto, const struct attach_reader *reader)
{
	size_t bc_len = (size_t)proto->sizebc * 4;
	size_t line_len = (size_t)(proto->sizebc - 1) * line_width(proto->numline);
	struct failure why;

	if (proto->sizebc > STATE_BYTECODE_KEEP)
		return;
	proto->bc = malloc(bc_len);
	if (proto->bc && state_read(reader, proto->bytecode, proto->bc, bc_len, &why) != 0) {
		free(proto->bc);
		proto->bc = NULL;
	}
	if (!proto->lineinfo || !line_len)
		return;
	proto->lines = malloc(line_len);
	if (proto->lines &&
	    state_read(reader, proto->lineinfo, proto->lines, line_len, &why) != 0) {
		free(proto->lines);
		proto->lines = NULL;
	}
}

static char *copy_chunkname(const struct luastate_layout *layout,
			    const struct attach_reader *reader, const uint8_t *header)
{
	char text[STATE_CHUNKNAME_MAX];
	struct failure why;
	uint64_t address = state_object(state_u64(header, layout->GCproto_chunkname));

	if (state_read_string(layout, reader, address, text, sizeof(text), &why) != 0)
		return NULL;
	return strdup(text);
}

static int fill_proto(struct state_proto *proto, const struct luastate_layout *layout,
		      const struct attach_reader *reader, const uint8_t *header,
		      struct failure *why)
{
	char *chunkname;

	proto->sizebc = state_u32(header, layout->GCproto_sizebc);
	proto->numline = state_u32(header, layout->GCproto_numline);
	proto->firstline = (int32_t)state_u32(header, layout->GCproto_firstline);
	proto->bytecode = proto->address + (uint64_t)layout->GCproto_sizeof;
	proto->lineinfo = state_u64(header, layout->GCproto_lineinfo);
	if (proto->sizebc == 0 || proto->sizebc > STATE_BYTECODE_MAX ||
	    (proto->lineinfo && !state_is_pointer(proto->lineinfo)))
		return failure_set(why, FAILURE_INVALID, 0, 0, proto->address, "read a prototype");
	chunkname = copy_chunkname(layout, reader, header);
	if (!chunkname)
		return failure_set(why, FAILURE_INVALID, 0, 0, proto->address,
				   "read a prototype's chunk name");
	free((char *)(uintptr_t)proto->function.chunkname);
	free_copies(proto);
	memcpy(proto->header, header, (size_t)layout->GCproto_sizeof);
	copy_parts(proto, reader);
	/* The caller's handle belongs to what the address was before. */
	proto->function = (struct luastate_function){ .kind = LUASTATE_LUA,
						      .address = proto->address,
						      .chunkname = chunkname,
						      .firstline = proto->firstline,
						      .name_serial = 1 };
	proto->name_rank = 0;
	proto->nameless_pc = 0;
	proto->name[0] = '\0';
	if (proto->firstline == 0) {
		strcpy(proto->name, "main chunk");
		proto->name_rank = UINT8_MAX;
	}
	proto->function.name = proto->name[0] ? proto->name : NULL;
	return 0;
}

/* For a reader that keeps what is read: an image must hold all that decoding it needs. */
static void read_again(struct state_proto *proto, const struct luastate_layout *layout,
		       const struct attach_reader *reader)
{
	free(copy_chunkname(layout, reader, proto->header));
	free_copies(proto);
	copy_parts(proto, reader);
	proto->nameless_pc = 0;
	if (proto->name_rank != UINT8_MAX)
		proto->name_rank = 0;
}

struct state_proto *state_get_proto(struct luastate *state, const struct luastate_layout *layout,
				    const struct attach_reader *reader, uint64_t address,
				    struct failure *why)
{
	uint8_t header[STATE_OBJECT_MAX];
	struct state_proto *proto;

	HASH_FIND(hh, state->protos, &address, sizeof(address), proto);
	if (proto && proto->serial == state->serial)
		return proto;
	if (state_read_object(layout, reader, address, layout->gct_proto, header,
			      (size_t)layout->GCproto_sizeof, why) != 0)
		return NULL;
	clear_volatile(header);
	if (proto && memcmp(header, proto->header, (size_t)layout->GCproto_sizeof) == 0) {
		proto->serial = state->serial;
		if (state->thorough)
			read_again(proto, layout, reader);
		return proto;
	}
	if (!proto) {
		proto = calloc(1, sizeof(*proto));
		if (!proto) {
			failure_set(why, FAILURE_NO_MEMORY, 0, 0, address, "keep a prototype");
			return NULL;
		}
		proto->address = address;
		HASH_ADD(hh, state->protos, address, sizeof(proto->address), proto);
	}
	if (fill_proto(proto, layout, reader, header, why) != 0) {
		HASH_DEL(state->protos, proto);
		free_proto(proto);
		return NULL;
	}
	proto->serial = state->serial;
	return proto;
}

bool state_proto_holds(const struct state_proto *proto, uint64_t pc)
{
	return pc >= proto->bytecode && pc % 4 == 0 &&
	       pc - proto->bytecode <= (uint64_t)proto->sizebc * 4;
}

int state_proto_instruction(const struct state_proto *proto, const struct attach_reader *reader,
			    uint64_t pc, uint32_t *ret_ins, struct failure *why)
{
	uint64_t index = (pc - proto->bytecode) / 4;

	if (!state_proto_holds(proto, pc) || index >= proto->sizebc)
		return failure_set(why, FAILURE_INVALID, 0, 0, pc, "read an instruction");
	if (proto->bc) {
		*ret_ins = proto->bc[index];
		return 0;
	}
	return state_read(reader, pc, ret_ins, 4, why);
}

/* Line of instruction n: the header's is the first line, the others stand in the table. */
uint32_t state_proto_line(const struct state_proto *proto, const struct attach_reader *reader,
			  uint64_t pc)
{
	uint64_t index = (pc - proto->bytecode) / 4;
	unsigned width = line_width(proto->numline);
	uint8_t bytes[4] = { 0 };
	struct failure why;
	uint32_t delta;

	if (!proto->lineinfo || proto->firstline < 0 || index > proto->sizebc)
		return 0;
	if (index == proto->sizebc)
		return (uint32_t)proto->firstline + proto->numline;
	if (index == 0)
		return (uint32_t)proto->firstline;
	if (proto->lines)
		memcpy(bytes, proto->lines + (index - 1) * width, width);
	else if (state_read(reader, proto->lineinfo + (index - 1) * width, bytes, width, &why) != 0)
		return 0;
	memcpy(&delta, bytes, 4);
	return (uint32_t)proto->firstline + delta;
}
