/* SPDX-License-Identifier: MIT */
/*
 * Which prototype is at an address, and is it still the known one?
 *
 * A prototype is read once. Each sample that meets it compares it with the target's memory: after a
 * collection, another prototype may be at the same address, even with the same header. A prototype
 * is one block of memory:
 *
 *   GCproto | bytecode | GC constants | numbers | upvalues | line table | upvalue names | variables
 *                                     ^k        ^uv        ^lineinfo    ^uvinfo         ^varinfo
 *                                                          '------ debug part, may be absent
 * ------'
 *
 * Its pointers follow from its sizes. A block whose pointers contradict its sizes is not a
 * prototype.
 *
 * Source: LuaJIT v2.1 src/lj_obj.h (GCproto), src/lj_parse.c (fs_finish), src/lj_bcread.c
 * (lj_bcread_proto), src/lj_debug.c (lj_debug_line).
 */
#include "luastate/function/proto.h"

#include <stdlib.h>

#include "luastate/layout/object.h"

static void free_copies(struct luastate *state, struct state_proto *proto)
{
	state->proto_bytes -=
		(proto->bc ? (size_t)proto->sizebc * 4 : 0) + (proto->debug ? proto->debug_len : 0);
	free(proto->bc);
	free(proto->debug);
	proto->bc = NULL;
	proto->debug = NULL;
	proto->debug_len = 0;
}

static void free_proto(struct luastate *state, struct state_proto *proto)
{
	free_copies(state, proto);
	free((char *)(uintptr_t)proto->function.chunkname);
	free(proto);
}

void state_free_protos(struct luastate *state)
{
	struct state_proto *proto, *next;

	HASH_ITER(hh, state->protos, proto, next)
	{
		HASH_DEL(state->protos, proto);
		free_proto(state, proto);
	}
}

/* Clear the members that the collector and the compiler change: links, mark, flags, trace
 * number. */
static void clear_volatile(const struct luastate_layout *layout, uint8_t *header)
{
	memset(header, 0, (size_t)layout->GCobj_gct); /* nextgc, marked */
	memset(header + layout->GCproto_gclist, 0, (size_t)layout->ref_size);
	header[layout->GCproto_flags] = 0;
	memset(header + layout->GCproto_trace, 0, 2);
}

static unsigned line_width(uint32_t numline)
{
	return numline < 256 ? 1 : numline < 65536 ? 2 : 4;
}

/* @return NULL if there is no room for the copy, or the bytes cannot be read. */
static void *copy_part(struct luastate *state, const struct attach_reader *reader, uint64_t address,
		       size_t len)
{
	void *copy = len <= STATE_PROTO_BYTES_MAX - state->proto_bytes ? malloc(len) : NULL;
	struct failure why;

	if (copy && state_read(reader, address, copy, len, &why) != 0) {
		free(copy);
		copy = NULL;
	}
	state->proto_bytes += copy ? len : 0;
	return copy;
}

/* Copy bytecode and debug part if they are short. A failure here is no error, because both can
 * be read in pieces later. */
static void copy_parts(struct luastate *state, struct state_proto *proto,
		       const struct attach_reader *reader)
{
	if (proto->sizebc <= STATE_BYTECODE_KEEP)
		proto->bc = copy_part(state, reader, proto->bytecode, (size_t)proto->sizebc * 4);
	if (proto->debug_len)
		proto->debug = copy_part(state, reader, proto->lineinfo, proto->debug_len);
}

bool state_proto_is_consistent(const struct luastate_layout *layout, uint64_t address,
			       const uint8_t *header)
{
	uint64_t sizebc = state_u32(header, layout->GCproto_sizebc);
	uint64_t numline = state_u32(header, layout->GCproto_numline);
	uint64_t end = address + state_u32(header, layout->GCproto_sizept);
	uint64_t k = address + (uint64_t)layout->GCproto_sizeof + 4 * sizebc +
		     (uint64_t)layout->ref_size * state_u32(header, layout->GCproto_sizekgc);
	uint64_t uv =
		((k + 7) & ~(uint64_t)7) + 8 * (uint64_t)state_u32(header, layout->GCproto_sizekn);
	uint64_t lines = uv + 2 * ((header[layout->GCproto_sizeuv] + (uint64_t)1) & ~(uint64_t)1);
	uint64_t names = lines + (sizebc - 1) * line_width((uint32_t)numline);
	uint64_t lineinfo = state_ref(layout, header, layout->GCproto_lineinfo);
	uint64_t uvinfo = state_ref(layout, header, layout->GCproto_uvinfo);
	uint64_t varinfo = state_ref(layout, header, layout->GCproto_varinfo);

	if (sizebc == 0 || sizebc > STATE_BYTECODE_MAX || lines > end ||
	    state_ref(layout, header, layout->GCproto_k) != ((k + 7) & ~(uint64_t)7) ||
	    state_ref(layout, header, layout->GCproto_uv) != uv)
		return false;
	if (!lineinfo)
		return !uvinfo && !varinfo;
	return lineinfo == lines && uvinfo == names && varinfo >= uvinfo && varinfo <= end;
}

/* Functions begin with a header instruction. The compiler may replace it by another header
 * instruction. */
static bool has_function_header(const struct luastate_layout *layout,
				const struct attach_reader *reader, uint64_t bytecode)
{
	uint32_t ins;
	struct failure why;

	return state_read(reader, bytecode, &ins, 4, &why) == 0 &&
	       (int32_t)(ins & 0xff) >= layout->BC_FUNCF && (int32_t)(ins & 0xff) < layout->BC__MAX;
}

static uint32_t line_delta(const uint8_t *lines, uint64_t index, unsigned width)
{
	uint8_t bytes[4] = { 0 };
	uint32_t delta;

	memcpy(bytes, lines + index * width, width);
	memcpy(&delta, bytes, 4);
	return delta;
}

/* No line may be after the function's last line. */
static bool has_lines_in_range(const struct state_proto *proto)
{
	unsigned width = line_width(proto->numline);

	for (uint64_t i = 0;
	     proto->debug && i + 1 < proto->sizebc && (i + 1) * width <= proto->debug_len; i++)
		if (line_delta(proto->debug, i, width) > proto->numline)
			return false;
	/* LuaJIT's own functions in Lua, such as table.foreach, have no lines and begin at line
	 * -1 (lib_read_lfunc). */
	return proto->firstline >= (proto->lineinfo ? 0 : -1) &&
	       proto->firstline + proto->numline <= INT32_MAX;
}

static char *copy_chunkname(const struct luastate_layout *layout,
			    const struct attach_reader *reader, uint64_t address)
{
	char text[STATE_CHUNKNAME_MAX];
	struct failure why;

	if (state_read_string(layout, reader, address, text, sizeof(text), &why) != 0)
		return NULL;
	return strdup(text);
}

/* Fill in the members of a prototype other than its identity. */
static int fill_proto(struct luastate *state, struct state_proto *proto,
		      const struct luastate_layout *layout, const struct attach_reader *reader,
		      const struct state_identity *identity, struct failure *why)
{
	const uint8_t *header = identity->header;
	uint64_t end = proto->address + state_u32(header, layout->GCproto_sizept);
	char *chunkname;

	if (!state_proto_is_consistent(layout, proto->address, header) ||
	    !has_function_header(layout, reader, proto->address + (uint64_t)layout->GCproto_sizeof))
		return failure_set(why, FAILURE_INVALID, 0, 0, proto->address, "read a prototype");
	chunkname = copy_chunkname(layout, reader,
				   state_ref(layout, header, layout->GCproto_chunkname));
	if (!chunkname)
		return failure_set(why, FAILURE_INVALID, 0, 0, proto->address,
				   "read a prototype's chunk name");
	free((char *)(uintptr_t)proto->function.chunkname);
	free_copies(state, proto);
	proto->layout = layout;
	proto->identity = *identity;
	proto->sizebc = state_u32(header, layout->GCproto_sizebc);
	proto->numline = state_u32(header, layout->GCproto_numline);
	proto->firstline = (int32_t)state_u32(header, layout->GCproto_firstline);
	proto->bytecode = proto->address + (uint64_t)layout->GCproto_sizeof;
	proto->lineinfo = state_ref(layout, header, layout->GCproto_lineinfo);
	proto->chunkname = state_ref(layout, header, layout->GCproto_chunkname);
	if (proto->lineinfo)
		proto->debug_len = end - proto->lineinfo < STATE_DEBUG_KEEP
					   ? (size_t)(end - proto->lineinfo)
					   : STATE_DEBUG_KEEP;
	copy_parts(state, proto, reader);
	proto->function.chunkname = NULL;
	if (!has_lines_in_range(proto)) {
		free(chunkname);
		return failure_set(why, FAILURE_INVALID, 0, 0, proto->address,
				   "read a prototype's lines");
	}
	/* The caller's id was for the function that was at this address before. */
	proto->function = (struct luastate_function){ .kind = LUASTATE_LUA,
						      .address = proto->address,
						      .chunkname = chunkname,
						      .firstline = proto->firstline,
						      .name_serial = 1 };
	proto->name_rank = 0;
	proto->name[0] = '\0';
	proto->definition = STATE_DEFINITION_UNKNOWN;
	proto->is_read = proto->is_orphan = proto->is_asked = false;
	proto->parents_tries = 0;
	proto->parents_serial = 0;
	/* A stripped function has no lines at all: LuaJIT v2.1 src/lj_debug.c,
	 * lj_debug_getinfo(). */
	if (proto->firstline == 0 && proto->numline > 0) {
		strcpy(proto->name, "main chunk");
		proto->name_rank = UINT8_MAX;
		proto->definition = STATE_DEFINITION_FOUND;
	}
	proto->function.name = proto->name[0] ? proto->name : NULL;
	return 0;
}

/* Reads for a reader that keeps what it reads: an image must hold everything that decoding
 * needs. */
static void read_again(struct luastate *state, struct state_proto *proto,
		       const struct luastate_layout *layout, const struct attach_reader *reader)
{
	size_t debug_len = proto->debug_len;

	has_function_header(layout, reader, proto->bytecode);
	free(copy_chunkname(layout, reader, proto->chunkname));
	free_copies(state, proto);
	proto->debug_len = debug_len;
	copy_parts(state, proto, reader);
	if (proto->name_rank == UINT8_MAX)
		return;
	proto->name_rank = 0;
	proto->definition = STATE_DEFINITION_UNKNOWN;
	proto->is_read = false;
}

static int read_identity(const struct luastate_layout *layout, const struct attach_reader *reader,
			 uint64_t address, struct state_identity *ret_identity, struct failure *why)
{
	uint8_t name[STATE_OBJECT_MAX];

	memset(ret_identity, 0, sizeof(*ret_identity));
	if (state_read_object(layout, reader, address, state_gct(layout->tag_proto),
			      ret_identity->header, (size_t)layout->GCproto_sizeof, why) != 0 ||
	    state_read_object(layout, reader,
			      state_ref(layout, ret_identity->header, layout->GCproto_chunkname),
			      state_gct(layout->tag_str), name, (size_t)layout->GCstr_sizeof,
			      why) != 0)
		return -1;
	clear_volatile(layout, ret_identity->header);
	ret_identity->name_hash = state_u32(name, layout->GCstr_hash);
	ret_identity->name_len = state_u32(name, layout->GCstr_len);
	return 0;
}

size_t state_compared_debug(const struct state_proto *proto)
{
	return proto->debug_len < STATE_DEBUG_COMPARED ? proto->debug_len : STATE_DEBUG_COMPARED;
}

/* Lines and names of variables never change during a prototype's life. */
static bool has_same_debug(const struct state_proto *proto, const struct attach_reader *reader)
{
	uint8_t debug[STATE_DEBUG_COMPARED];
	size_t len = state_compared_debug(proto);
	struct failure why;

	return !proto->debug || (state_read(reader, proto->lineinfo, debug, len, &why) == 0 &&
				 memcmp(debug, proto->debug, len) == 0);
}

static struct state_proto *find_proto(const struct luastate *state, uint64_t address)
{
	struct state_proto *proto;

	HASH_FIND(hh, state->protos, &address, sizeof(address), proto);
	return proto;
}

const struct state_proto *state_find_proto(const struct luastate *state, uint64_t address)
{
	const struct state_proto *proto = find_proto(state, address);

	return proto && !proto->stale ? proto : NULL;
}

bool state_is_strict(const struct luastate *state)
{
	return state->thorough || (int)(state->strict_until - state->serial) > 0;
}

static bool is_same(const struct state_proto *proto, const struct state_identity *identity,
		    const struct attach_reader *reader)
{
	return !proto->stale && memcmp(identity, &proto->identity, sizeof(*identity)) == 0 &&
	       has_same_debug(proto, reader);
}

bool state_is_same_proto(const struct luastate *state, const struct luastate_layout *layout,
			 const struct attach_reader *reader, uint64_t address)
{
	const struct state_proto *proto = find_proto(state, address);
	struct state_identity identity;
	struct failure why;

	return proto && read_identity(layout, reader, address, &identity, &why) == 0 &&
	       is_same(proto, &identity, reader);
}

static struct state_proto *add_proto(struct luastate *state, const struct luastate_layout *layout,
				     uint64_t address, struct failure *why)
{
	struct state_proto *proto = calloc(1, sizeof(*proto));

	if (proto) {
		proto->address = address;
		proto->layout = layout;
		HASH_KEEP(state->protos, address, proto);
	}
	if (!proto)
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, address, "store a prototype");
	return proto;
}

static bool is_in_stop(const struct luastate_layout *layout, const struct luastate_memory *memory,
		       uint64_t address)
{
	uint8_t header[STATE_OBJECT_MAX];
	struct failure why;

	return state_read(memory->stopped, address, header, (size_t)layout->GCproto_sizeof, &why) ==
	       0;
}

/*
 * Whether a known prototype was replaced, and nobody knows whether before or after the stop. This
 * does not apply if the stop copies prototypes: the planner then did not see a frame of this one.
 */
static bool is_lost(const struct luastate *state, const struct state_proto *proto,
		    const struct luastate_memory *memory)
{
	return !proto->stale && !state->was_strict && !state->thorough &&
	       !is_in_stop(proto->layout, memory, proto->address);
}

static void give_up(struct luastate *state, struct state_proto *proto)
{
	proto->stale = true;
	proto->serial = state->serial;
	state->losses++;
	state->strict_until = state->serial + STATE_STRICT_SAMPLES;
}

/* Whether the copy holds all bytes that are read of a new prototype. */
static bool is_whole(const struct luastate_layout *layout, const struct attach_reader *stopped,
		     uint64_t address, const struct state_identity *identity)
{
	uint64_t size = state_u32(identity->header, layout->GCproto_sizept);
	uint64_t name = state_ref(layout, identity->header, layout->GCproto_chunkname);
	const uint64_t bytes[] = { address + (uint64_t)layout->GCproto_sizeof, address + size - 1,
				   name + (uint64_t)layout->GCstr_sizeof };
	struct failure why;
	uint8_t byte;

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		if (state_read(stopped, bytes[i], &byte, 1, &why) != 0)
			return false;
	return true;
}

/* Whether the bytes may be those of another prototype, because they were read from the live
 * process after the copy. */
static bool has_changed(const struct state_view *view, const struct state_identity *identity,
			uint64_t address, struct failure *why)
{
	const struct luastate_layout *layout = view->layout;
	const struct luastate_memory *memory = view->memory;
	struct state_identity live;

	if (!memory->live || is_whole(layout, memory->stopped, address, identity))
		return false;
	if (read_identity(layout, memory->live, address, &live, why) == 0 &&
	    memcmp(&live, identity, sizeof(live)) == 0)
		return false;
	failure_set(why, FAILURE_INVALID, 0, 0, address, "find a prototype again");
	return true;
}

struct state_proto *state_get_proto(const struct state_view *view, uint64_t address,
				    struct failure *why)
{
	struct luastate *state = view->state;
	const struct luastate_layout *layout = view->layout;
	const struct luastate_memory *memory = view->memory;
	struct state_proto *proto = find_proto(state, address);
	struct state_identity identity;
	bool readable;

	if (proto && proto->serial == state->serial) {
		if (!proto->stale)
			return proto;
		failure_set(why, FAILURE_INVALID, 0, 0, address, "find a prototype again");
		return NULL;
	}
	readable = read_identity(layout, memory->any, address, &identity, why) == 0;
	if (readable && proto && is_same(proto, &identity, memory->any)) {
		proto->serial = state->serial;
		if (state->thorough)
			read_again(state, proto, layout, memory->any);
		return proto;
	}
	if (proto && is_lost(state, proto, memory)) {
		give_up(state, proto);
		if (readable)
			failure_set(why, FAILURE_INVALID, 0, 0, address, "find a prototype again");
		return NULL;
	}
	if (!readable)
		return NULL;
	if (!proto)
		proto = add_proto(state, layout, address, why);
	if (!proto)
		return NULL;
	if (fill_proto(state, proto, layout, memory->any, &identity, why) != 0 ||
	    has_changed(view, &identity, address, why)) {
		HASH_DEL(state->protos, proto);
		free_proto(state, proto);
		return NULL;
	}
	proto->stale = false;
	proto->serial = state->serial;
	return proto;
}

/* ---- Calls ------------------------------------------------------------------------------ */

static size_t call_slot(uint64_t pc)
{
	return (size_t)(hash_spread(pc) >> 40) & (STATE_CALLS - 1);
}

const struct state_proto *state_find_call(const struct luastate *state, uint64_t pc)
{
	const struct state_call *call = &state->calls[call_slot(pc)];
	const struct state_proto *proto =
		call->pc == pc ? state_find_proto(state, call->proto) : NULL;

	return proto && proto->bc && state_proto_holds(proto, pc) ? proto : NULL;
}

int state_read_call(const struct state_view *view, uint64_t pc, uint32_t *ret_ins,
		    struct failure *why)
{
	const struct luastate_memory *memory = view->memory;
	const struct state_proto *known;

	if (state_read(memory->stopped, pc, ret_ins, 4, why) == 0)
		return 0;
	known = state_find_call(view->state, pc);
	if (!known)
		return state_read(memory->any, pc, ret_ins, 4, why);
	if (!state_get_proto(view, known->address, why))
		return -1;
	return state_proto_instruction(known, memory->any, pc, ret_ins, why);
}

void state_note_call(struct luastate *state, const struct state_proto *proto, uint64_t pc)
{
	state->calls[call_slot(pc)] = (struct state_call){ pc, proto->address };
}

/* ---- Positions -------------------------------------------------------------------------- */

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
	if (proto->bc)
		*ret_ins = proto->bc[index];
	else if (state_read(reader, pc, ret_ins, 4, why) != 0)
		return -1;
	*ret_ins = state_instruction(proto->layout, *ret_ins);
	return 0;
}

/* Line of instruction n. The header instruction has the first line; the table has the others. */
uint32_t state_proto_line(const struct state_proto *proto, const struct attach_reader *reader,
			  uint64_t pc)
{
	uint64_t index = (pc - proto->bytecode) / 4;
	unsigned width = line_width(proto->numline);
	uint8_t bytes[4];
	struct failure why;

	if (!proto->lineinfo || index > proto->sizebc)
		return 0;
	if (index == proto->sizebc)
		return (uint32_t)proto->firstline + proto->numline;
	if (index == 0)
		return (uint32_t)proto->firstline;
	if (proto->debug && index * width <= proto->debug_len)
		return (uint32_t)proto->firstline + line_delta(proto->debug, index - 1, width);
	if (state_read(reader, proto->lineinfo + (index - 1) * width, bytes, width, &why) != 0)
		return 0;
	return (uint32_t)proto->firstline + line_delta(bytes, 0, width);
}
