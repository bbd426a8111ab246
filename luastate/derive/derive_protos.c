/* SPDX-License-Identifier: MIT */
/* At which offsets are the members of GCproto?
 *
 * A prototype is one block, whose parts follow each other:
 *
 *   GCproto | instructions | constants: objects | k: numbers | uv | lineinfo | uvinfo | varinfo
 *           sizebc * 4       sizekgc references   8 * sizekn   2 * sizeuv
 *
 * Source: LuaJIT v2.1 src/lj_parse.c (fs_finish), src/lj_bcread.c (lj_bcread_proto), src/lj_obj.h.
 */
#include "luastate/derive/derive.h"

#include "luastate/function/proto.h"
#include "luastate/layout/fields.h"

enum {
	PROTO_MIN = 56, /* without GC64 a prototype has 64 bytes */
	LINES_MAX = 1 << 24,
	PROTO_BYTES_MAX = 1 << 26,
	LINES_LOOKED = 256,
	FUNCTIONS_ENOUGH = 4, /* this many functions show what most have */
	/* Opcodes of functions with variable arguments, counted from FUNCF: FUNCV to JFUNCV. */
	FUNCV = 3,
	JFUNCV = 5,
};

/* Whether a member of some bytes is inside the structure. */
static bool is_inside(const struct derive *derive, int32_t at, int32_t bytes)
{
	return at > derive->layout.GCobj_gct && at % bytes == 0 &&
	       at + bytes <= derive->layout.GCproto_sizeof;
}

/* ---- The prototypes --------------------------------------------------------------------- */

/* Find the size of GCproto. The bytecode follows the structure, so at the right distance below the
 * bytecode there are prototypes. Some functions may be dead, and their prototypes released, so most
 * must fit. */
static bool find_size(struct derive *derive, const uint64_t *code, size_t count)
{
	const struct luastate_layout *layout = &derive->layout;
	int32_t row = derive->row->GCproto_sizeof;

	/* From the row's size outwards: with a size too large, small objects before the prototype
	 * might match. */
	for (int32_t i = 0; i <= 2 * DERIVE_SHIFT_MAX / 4; i++) {
		int32_t size = row + (i % 2 ? -4 : 4) * ((i + 1) / 2);
		size_t good = 0;

		for (size_t k = 0; k < count && size >= PROTO_MIN; k++) {
			uint8_t head[16];
			struct failure why;

			good += state_read_object(layout, derive->reader, code[k] - (uint64_t)size,
						  state_gct(layout->tag_proto), head, sizeof(head),
						  &why) == 0;
		}
		if (count && 2 * good > count && size <= STATE_OBJECT_MAX - 16) {
			derive_note(derive, DERIVE_FIELD(GCproto_sizeof), size);
			return true;
		}
	}
	return false;
}

static void read_protos(struct derive *derive, const uint64_t *code, size_t count)
{
	size_t size = (size_t)derive->layout.GCproto_sizeof;
	struct failure why;

	derive->proto_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct derive_object *proto = &derive->protos[derive->proto_count];

		memset(proto, 0, sizeof(*proto));
		proto->address = code[i] - size;
		if (state_read_object(&derive->layout, derive->reader, proto->address,
				      state_gct(derive->layout.tag_proto), proto->bytes, size,
				      &why) == 0)
			derive->proto_count++;
	}
}

/* ---- Tests ------------------------------------------------------------------------------ */

/* The first object constant is this number of references before the numbers; it must be a string,
 * prototype, table or cdata. If a reference is as long as an instruction, only this test gives the
 * number of references. */
static bool has_constants(const struct derive *derive, const struct derive_object *proto,
			  uint32_t refs)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t at = derive_ref(derive, proto, layout->GCproto_k) -
		      (uint64_t)layout->ref_size * refs,
		 object;
	uint8_t head[16];
	struct failure why;

	return state_read_ref(layout, derive->reader, at, &object, &why) == 0 &&
	       state_is_pointer(object) && object % 4 == 0 &&
	       state_read(derive->reader, object, head, sizeof(head), &why) == 0 &&
	       (head[layout->GCobj_gct] == state_gct(layout->tag_str) ||
		head[layout->GCobj_gct] == state_gct(layout->tag_proto) ||
		head[layout->GCobj_gct] == state_gct(layout->tag_tab) ||
		head[layout->GCobj_gct] == state_gct(layout->tag_cdata));
}

/* k - GCproto = the structure, instructions and references, rounded up to 8. */
static bool has_sizes(const struct derive *derive, const struct derive_object *proto,
		      int32_t sizebc, int32_t sizekgc)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t instructions = derive_u32(proto, sizebc), refs = derive_u32(proto, sizekgc);
	uint64_t bytes = (uint64_t)layout->GCproto_sizeof + 4 * instructions +
			 (uint64_t)layout->ref_size * refs;

	return instructions > 0 && instructions <= STATE_BYTECODE_MAX &&
	       derive_ref(derive, proto, layout->GCproto_k) ==
		       proto->address + ((bytes + 7) & ~(uint64_t)7) &&
	       (refs == 0 || has_constants(derive, proto, (uint32_t)refs));
}

/* Unused stack slots may hold dead functions, so a majority is enough. */
static size_t are_sizes(const struct derive *derive, int32_t sizebc, int32_t sizekgc)
{
	size_t good = 0;

	if (!is_inside(derive, sizebc, 4) || !is_inside(derive, sizekgc, 4))
		return 0;
	for (size_t i = 0; i < derive->proto_count; i++)
		good += has_sizes(derive, &derive->protos[i], sizebc, sizekgc);
	return 2 * good > derive->proto_count ? good : 0;
}

/* Forget the prototypes of dead functions. */
static void keep_protos(struct derive *derive)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t kept = 0;

	for (size_t i = 0; i < derive->proto_count; i++)
		if (has_sizes(derive, &derive->protos[i], layout->GCproto_sizebc,
			      layout->GCproto_sizekgc))
			derive->protos[kept++] = derive->protos[i];
	derive->proto_count = kept;
}

static size_t are_numbers(const struct derive *derive, int32_t uv, int32_t sizekn)
{
	if (!is_inside(derive, uv, derive->layout.ref_size) || !is_inside(derive, sizekn, 4))
		return 0;
	for (size_t i = 0; i < derive->proto_count; i++) {
		const struct derive_object *proto = &derive->protos[i];

		if (derive_ref(derive, proto, uv) !=
		    derive_ref(derive, proto, derive->layout.GCproto_k) +
			    8 * (uint64_t)derive_u32(proto, sizekn))
			return 0;
	}
	return 1;
}

/* Upvalues are padded to pairs. Without debug information, nothing follows them. */
static size_t are_upvalues(const struct derive *derive, int32_t lineinfo, int32_t sizeuv)
{
	if (!is_inside(derive, lineinfo, derive->layout.ref_size) || !is_inside(derive, sizeuv, 1))
		return 0;
	for (size_t i = 0; i < derive->proto_count; i++) {
		const struct derive_object *proto = &derive->protos[i];
		uint64_t lines = derive_ref(derive, proto, lineinfo), pairs;

		pairs = ((uint64_t)proto->bytes[sizeuv] + 1) / 2;
		if (lines &&
		    lines != derive_ref(derive, proto, derive->layout.GCproto_uv) + 4 * pairs)
			return 0;
	}
	return 1;
}

/* Whether the block contains all its parts. */
static bool is_block(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;

	if (!is_inside(derive, at, 4))
		return false;
	for (size_t i = 0; i < derive->proto_count; i++) {
		const struct derive_object *proto = &derive->protos[i];
		uint64_t size = derive_u32(proto, at),
			 last = derive_ref(derive, proto, layout->GCproto_uv);
		uint64_t lines = derive_ref(derive, proto, layout->GCproto_lineinfo);

		last = lines > last ? lines + derive_u32(proto, layout->GCproto_sizebc) - 1 : last;
		if (size > PROTO_BYTES_MAX || proto->address + size < last)
			return false;
	}
	return true;
}

static bool is_chunk_name(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;

	if (!is_inside(derive, at, layout->ref_size))
		return false;
	for (size_t i = 0; i < derive->proto_count; i++) {
		uint8_t string[STATE_OBJECT_MAX];
		struct failure why;

		if (state_read_object(layout, derive->reader,
				      derive_ref(derive, &derive->protos[i], at),
				      state_gct(layout->tag_str), string,
				      (size_t)layout->GCstr_sizeof, &why) != 0)
			return false;
	}
	return true;
}

/* The largest line number of a prototype, relative to its first line. */
static uint32_t last_line(const struct derive *derive, const struct derive_object *proto,
			  uint32_t numline)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t lines = derive_ref(derive, proto, layout->GCproto_lineinfo);
	uint32_t count = derive_u32(proto, layout->GCproto_sizebc) - 1, last = 0;
	size_t size = numline < 256 ? 1 : numline < 65536 ? 2 : 4;
	uint8_t bytes[4 * LINES_LOOKED];
	struct failure why;

	count = count < LINES_LOOKED ? count : LINES_LOOKED;
	if (!lines || !count || state_read(derive->reader, lines, bytes, size * count, &why) != 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t line = 0;

		memcpy(&line, bytes + size * i, size);
		last = line > last ? line : last;
	}
	return last;
}

/* No instruction is behind the last line. Most functions have code in their last line. The
 * exceptions are functions that end with a return and an "end" on a line of its own, and main
 * functions; only main functions begin in line 0. LuaJIT's own Lua functions have no lines: their
 * first line is ~0. */
static size_t are_lines(const struct derive *derive, int32_t firstline, int32_t numline)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t same = 0, all = 0, begun = 0;

	if (!is_inside(derive, firstline, 4) || !is_inside(derive, numline, 4))
		return 0;
	for (size_t i = 0; i < derive->proto_count; i++) {
		const struct derive_object *proto = &derive->protos[i];
		uint32_t first = derive_u32(proto, firstline), count = derive_u32(proto, numline),
			 last;

		if ((first > LINES_MAX && first != UINT32_MAX) || count > LINES_MAX ||
		    (first == UINT32_MAX && count > 0))
			return 0;
		if (!derive_ref(derive, proto, layout->GCproto_lineinfo))
			continue;
		last = last_line(derive, proto, count);
		if (last > count)
			return 0;
		same += last == count;
		begun += first != 0;
		all++;
	}
	/* Few functions decide nothing: one of them may be a main function. */
	if (all < FUNCTIONS_ENOUGH)
		return 1;
	return 4 * same > all ? 1 + begun + same : 0;
}

/* Names of upvalues follow the lines, then names of variables. */
static size_t are_infos(const struct derive *derive, int32_t uvinfo, int32_t varinfo)
{
	const struct luastate_layout *layout = &derive->layout;

	if (!is_inside(derive, uvinfo, layout->ref_size) ||
	    !is_inside(derive, varinfo, layout->ref_size))
		return 0;
	for (size_t i = 0; i < derive->proto_count; i++) {
		const struct derive_object *proto = &derive->protos[i];
		uint64_t lines = derive_ref(derive, proto, layout->GCproto_lineinfo);
		uint64_t upvalues = derive_ref(derive, proto, uvinfo);
		uint64_t variables = derive_ref(derive, proto, varinfo);
		uint64_t end = proto->address + derive_u32(proto, layout->GCproto_sizept);

		if (lines ? upvalues < lines + derive_u32(proto, layout->GCproto_sizebc) - 1 ||
				    variables < upvalues || variables > end
			  : upvalues || variables)
			return 0;
	}
	return 1;
}

/* The flag for variable arguments must agree with the first instruction. */
static bool is_flags(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;

	if (!is_inside(derive, at, 1))
		return false;
	for (size_t i = 0; i < derive->proto_count; i++) {
		const struct derive_object *proto = &derive->protos[i];
		int32_t op;
		uint32_t ins;
		struct failure why;

		if (state_read(derive->reader, proto->address + (uint64_t)layout->GCproto_sizeof,
			       &ins, 4, &why) != 0)
			continue;
		op = (int32_t)(ins & 0xff) - layout->BC_FUNCF;
		if (((proto->bytes[at] & STATE_PROTO_VARARG) != 0) != (op >= FUNCV && op <= JFUNCV))
			return false;
	}
	return true;
}

static bool is_trace(const struct derive *derive, int32_t at)
{
	return is_inside(derive, at, 2);
}

/* ---- The whole -------------------------------------------------------------------------- */

static void note_code(struct derive *derive, size_t field, const struct derive_votes *votes)
{
	int32_t value, size = derive->layout.GCproto_sizeof;

	/* The code is untrusted: only offsets inside the structure are believed. */
	if (!derive_winner(votes, &value) || value < -size || value >= 0)
		return;
	*state_field_at(&derive->layout, field) = size + value;
	derive->source[field] = DERIVE_BY_CODE;
}

bool derive_protos(struct derive *derive)
{
	static const size_t sizes[] = { DERIVE_FIELD(GCproto_sizebc),
					DERIVE_FIELD(GCproto_sizekgc) };
	static const size_t numbers[] = { DERIVE_FIELD(GCproto_uv), DERIVE_FIELD(GCproto_sizekn) };
	static const size_t upvalues[] = { DERIVE_FIELD(GCproto_lineinfo),
					   DERIVE_FIELD(GCproto_sizeuv) };
	static const size_t lines[] = { DERIVE_FIELD(GCproto_firstline),
					DERIVE_FIELD(GCproto_numline) };
	static const size_t infos[] = { DERIVE_FIELD(GCproto_uvinfo),
					DERIVE_FIELD(GCproto_varinfo) };

	if (!find_size(derive, derive->objects.code, derive->objects.code_count))
		return false;
	read_protos(derive, derive->objects.code, derive->objects.code_count);
	note_code(derive, DERIVE_FIELD(GCproto_k), &derive->reading->k_before_end);
	note_code(derive, DERIVE_FIELD(GCproto_numparams), &derive->reading->numparams_before_end);
	if (!derive_is_known(derive, DERIVE_FIELD(GCproto_k)))
		return false;
	derive_pick_two(derive, "GCproto.", sizes, 4, are_sizes);
	if (!derive_is_seen(derive, sizes[0]))
		return false;
	keep_protos(derive);
	derive_pick_two(derive, "GCproto.", numbers, 4, are_numbers);
	derive_pick_two(derive, "GCproto.", upvalues, 1, are_upvalues);
	derive_pick(derive, "GCproto.", DERIVE_FIELD(GCproto_chunkname), 4, is_chunk_name);
	derive_pick_two(derive, "GCproto.", lines, 4, are_lines);
	derive_pick(derive, "GCproto.", DERIVE_FIELD(GCproto_sizept), 4, is_block);
	derive_pick(derive, "GCproto.", DERIVE_FIELD(GCproto_flags), 1, is_flags);
	derive_pick_two(derive, "GCproto.", infos, 4, are_infos);
	derive_fill(derive, "GCproto.");
	/* This member is only skipped when prototypes are compared, so a guess is enough. */
	derive_guess_beside(derive, DERIVE_FIELD(GCproto_trace), DERIVE_FIELD(GCproto_flags), 2,
			    is_trace);
	return true;
}
