/* SPDX-License-Identifier: MIT */
/*
 * Where GCtrace, SnapShot and jit_State have their members. A trace is one block:
 *
 *   GCtrace | constants and instructions | snapshots | their map
 *             8 * (nins - nk)              nsnap       4 * nsnapmap
 *
 * and ir refers to where instruction 0 would be. A program without traces shows nothing of it: then
 * the row's members hold, moved as what the code shows has, until there are some.
 *
 * Source: LuaJIT v2.1 src/lj_trace.c (lj_trace_alloc), src/lj_jit.h.
 */
#include "luastate/derive.h"
#include "luastate/trace.h"

enum {
	TRACES_MAX = 65536,
	TRACES_LOOKED = 4096,
	TRACE_MIN = 80,
	CODE_MAX = 1 << 22,
	CODE_MIN = 8,
	TAIL_MAX = 64,	  /* the jump at a trace's end may get shorter when it is linked */
	LINKS_MAX = 128,  /* of the frames of one snapshot */
	FRAME_MAX = 4096, /* a trace's stack frame has spill slots, 8 bytes each */
	/* Snapshots looked at of one trace. */
	SNAPSHOTS_LOOKED = 64,
	SNAPSHOT_MIN = 8,
	SNAPSHOT_MAX = 32,
};

static uint32_t u16_at(const struct derive_object *object, int32_t at)
{
	return at < 0 || at + 4 > STATE_OBJECT_MAX ? UINT32_MAX
						   : state_u32(object->bytes, at) & 0xffff;
}

static uint32_t u32_at(const struct derive_object *object, int32_t at)
{
	return at < 0 || at + 4 > STATE_OBJECT_MAX ? UINT32_MAX : state_u32(object->bytes, at);
}

static uint64_t u64_at(const struct derive_object *object, int32_t at)
{
	return at < 0 || at + 8 > STATE_OBJECT_MAX ? 0 : state_u64(object->bytes, at);
}

static uint64_t ref_at(const struct derive *derive, const struct derive_object *object, int32_t at)
{
	return at < 0 || at + 8 > STATE_OBJECT_MAX ? 0
						   : state_ref(&derive->layout, object->bytes, at);
}

/* Behind the header that all objects have. */
static bool is_inside(const struct derive *derive, int32_t at, int32_t bytes)
{
	return at > derive->layout.GCobj_gct && at % bytes == 0 &&
	       at + bytes <= STATE_OBJECT_MAX - 8;
}

/* ---- The traces -------------------------------------------------------------------------- */

/* Forget traces that were dropped while they were read: other objects may be there now. */
static void drop_gone(struct derive *derive, uint64_t table)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t kept = 0;

	for (size_t i = 0; i < derive->trace_count; i++) {
		uint64_t address;
		struct failure why;

		if (state_read_ref(layout, derive->reader,
				   table + (uint64_t)layout->ref_size * derive->traces[i].number,
				   &address, &why) == 0 &&
		    address == derive->traces[i].address)
			derive->traces[kept++] = derive->traces[i];
	}
	derive->trace_count = kept;
}

/* As many as are kept, of those that are there. */
static void read_traces(struct derive *derive, uint64_t table, uint32_t size)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t len = (size_t)layout->ref_size;

	for (uint32_t i = 1; i < size && i < TRACES_LOOKED; i++) {
		struct derive_object *trace = &derive->traces[derive->trace_count];
		uint8_t slot[8];
		struct failure why;

		if (derive->trace_count == DERIVE_OBJECTS ||
		    state_read(derive->reader, table + len * i, slot, len, &why) != 0)
			return;
		trace->address = state_ref(layout, slot, 0);
		trace->number = i;
		memset(trace->bytes, 0, sizeof(trace->bytes));
		/* One that is being recorded lies in the compiler's state. */
		if (!derive_is_own(derive, trace->address) &&
		    state_read_object(layout, derive->reader, trace->address,
				      state_gct(layout->tag_trace), trace->bytes, TRACE_MIN,
				      &why) == 0 &&
		    state_read(derive->reader, trace->address, trace->bytes,
			       sizeof(trace->bytes) - 8, &why) == 0)
			derive->trace_count++;
	}
}

/* ---- Tests of GCtrace -------------------------------------------------------------------- */

/* ir + 8 * nk = the end of the structure, rounded to 8. @return its size, 0 where it is none. */
static int32_t own_size(const struct derive_object *trace, int32_t ir, int32_t nk)
{
	uint32_t lowest = u32_at(trace, nk);
	uint64_t size = u64_at(trace, ir) + 8 * (uint64_t)lowest - trace->address;

	if (lowest == 0 || lowest > TRACE_REF_BASE || size < TRACE_MIN ||
	    size > STATE_OBJECT_MAX - 16)
		return 0;
	return (int32_t)size;
}

/* The same for all; some may be dropped while they are read. */
static int32_t size_by(const struct derive *derive, int32_t ir, int32_t nk)
{
	struct derive_votes sizes = { 0 };
	int32_t size;

	if (!is_inside(derive, ir, 8) || !is_inside(derive, nk, 4))
		return 0;
	for (size_t i = 0; i < derive->trace_count; i++)
		derive_vote(&sizes, own_size(&derive->traces[i], ir, nk));
	return derive_winner(&sizes, &size) ? size : 0;
}

static bool are_constants(const struct derive *derive, int32_t ir, int32_t nk)
{
	return size_by(derive, ir, nk) > 0;
}

/* Forget those that were dropped. */
static void keep_traces(struct derive *derive, int32_t size)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t kept = 0;

	for (size_t i = 0; i < derive->trace_count; i++)
		if (own_size(&derive->traces[i], layout->GCtrace_ir, layout->GCtrace_nk) == size)
			derive->traces[kept++] = derive->traces[i];
	derive->trace_count = kept;
}

static bool are_instructions(const struct derive *derive, int32_t snap, int32_t nins)
{
	if (!is_inside(derive, snap, 8) || !is_inside(derive, nins, 4))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint32_t next = u32_at(trace, nins);

		if (next <= TRACE_REF_BASE || next > 2 * TRACE_REF_BASE ||
		    u64_at(trace, snap) !=
			    u64_at(trace, derive->layout.GCtrace_ir) + 8 * (uint64_t)next)
			return false;
	}
	return true;
}

/* snapmap = snap + the size of a snapshot * nsnap. @return that size, 0 where it is not the same.
 */
static int32_t snapshot_by(const struct derive *derive, int32_t snapmap, int32_t nsnap)
{
	uint64_t size = 0;

	if (!is_inside(derive, snapmap, 8) || !is_inside(derive, nsnap, 2))
		return 0;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint64_t bytes =
			u64_at(trace, snapmap) - u64_at(trace, derive->layout.GCtrace_snap);
		uint32_t count = u16_at(trace, nsnap);

		if (count == 0 || bytes % count != 0 || bytes / count < SNAPSHOT_MIN ||
		    bytes / count > SNAPSHOT_MAX || (size && bytes / count != size))
			return 0;
		size = bytes / count;
	}
	return (int32_t)size;
}

static bool are_snapshots(const struct derive *derive, int32_t snapmap, int32_t nsnap)
{
	return snapshot_by(derive, snapmap, nsnap) > 0;
}

/* The instruction with which a trace began, in its prototype. */
static bool is_start(const struct derive *derive, int32_t startpt, int32_t startpc)
{
	const struct luastate_layout *layout = &derive->layout;

	if (!is_inside(derive, startpt, layout->ref_size) ||
	    !is_inside(derive, startpc, layout->ref_size))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		uint64_t proto = ref_at(derive, &derive->traces[i], startpt);
		uint64_t pc = ref_at(derive, &derive->traces[i], startpc);
		uint8_t bytes[STATE_OBJECT_MAX];
		struct failure why;

		if (state_read_object(layout, derive->reader, proto, state_gct(layout->tag_proto),
				      bytes, (size_t)layout->GCproto_sizeof, &why) != 0)
			return false;
		pc -= proto + (uint64_t)layout->GCproto_sizeof;
		if (pc % 4 != 0 || pc / 4 >= state_u32(bytes, layout->GCproto_sizebc))
			return false;
	}
	return true;
}

static bool is_number(const struct derive *derive, int32_t at)
{
	if (!is_inside(derive, at, 2))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++)
		if (u16_at(&derive->traces[i], at) != derive->traces[i].number)
			return false;
	return true;
}

/* No trace's code lies in another's. */
static bool is_code_size(const struct derive *derive, int32_t at)
{
	int32_t mcode = derive->layout.GCtrace_mcode;

	if (!is_inside(derive, at, 4))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		uint64_t start = u64_at(&derive->traces[i], mcode);
		uint32_t size = u32_at(&derive->traces[i], at);

		if (size < CODE_MIN || size > CODE_MAX)
			return false;
		for (size_t k = 0; k < derive->trace_count; k++)
			if (k != i && u64_at(&derive->traces[k], mcode) - start < size)
				return false;
	}
	return true;
}

static bool is_loop_start(const struct derive *derive, int32_t at)
{
	if (!is_inside(derive, at, 4))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++)
		if (u32_at(&derive->traces[i], at) >=
		    u32_at(&derive->traces[i], derive->layout.GCtrace_szmcode))
			return false;
	return true;
}

static const struct derive_object *trace_of(const struct derive *derive, uint32_t number)
{
	for (size_t i = 0; i < derive->trace_count; i++)
		if (derive->traces[i].number == number)
			return &derive->traces[i];
	return NULL;
}

/* Side traces name a root, which names none. */
static bool is_root(const struct derive *derive, int32_t at)
{
	if (!is_inside(derive, at, 2))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		uint32_t number = u16_at(&derive->traces[i], at);
		const struct derive_object *root = trace_of(derive, number);

		if (number == derive->traces[i].number || (root && u16_at(root, at) != 0))
			return false;
	}
	return true;
}

/* A root counts its side traces: all that it has had. Most have them still. */
static bool are_roots(const struct derive *derive, int32_t root, int32_t nchild)
{
	size_t same = 0, others = 0;

	if (!is_root(derive, root) || !is_inside(derive, nchild, 2))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint32_t count = 0;

		for (size_t k = 0; k < derive->trace_count; k++)
			count += u16_at(&derive->traces[k], root) == trace->number;
		if (u16_at(trace, nchild) < count)
			return false;
		same += count > 0 && u16_at(trace, nchild) == count;
		others += u16_at(trace, nchild) != count;
	}
	return same > others;
}

static bool is_count(const struct derive *derive, int32_t at)
{
	return is_inside(derive, at, 2);
}

/* Spill slots are aligned to 16 bytes. */
static bool is_adjustment(const struct derive *derive, int32_t at)
{
	if (!is_inside(derive, at, 2))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++)
		if (u16_at(&derive->traces[i], at) % 16 != 0 ||
		    u16_at(&derive->traces[i], at) > FRAME_MAX)
			return false;
	return true;
}

static bool is_used_adjustment(const struct derive *derive, int32_t at)
{
	bool used = false;

	for (size_t i = 0; i < derive->trace_count && !used; i++)
		used = u16_at(&derive->traces[i], at) > 0;
	return used && is_adjustment(derive, at);
}

/* How a trace ends says where it goes. Source: LuaJIT v2.1 src/lj_jit.h (TraceLink). */
static bool is_link_type(const struct derive *derive, int32_t at)
{
	enum { ROOT = 1, LOOP = 2, DOWN_RECURSION = 5, INTERPRETER = 6, RETURN = 7 };

	if (!is_inside(derive, at, 1))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint32_t link = u16_at(trace, derive->layout.GCtrace_link), type = trace->bytes[at];

		if (type == 0 || type > TRACE_LINK_STITCH || (type == ROOT && link == 0) ||
		    (type == LOOP && link != trace->number) ||
		    ((type == INTERPRETER || type == RETURN) && link != 0))
			return false;
	}
	return true;
}

/* Where a snapshot's part of the map begins. */
static uint32_t snapshot_start(const struct luastate_layout *layout, const uint8_t *bytes)
{
	return layout->SnapShot_ref == 2 ? state_u32(bytes, 0) & 0xffff : state_u32(bytes, 0);
}

/* The last snapshot's part of the map is its end. */
static bool is_map_size(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t good = 0;

	if (!is_inside(derive, at, 4))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint32_t last = u16_at(trace, layout->GCtrace_nsnap) - 1, size = u32_at(trace, at);
		uint8_t bytes[SNAPSHOT_MAX + 8] = { 0 };
		uint32_t used;
		struct failure why;

		if (state_read(derive->reader,
			       u64_at(trace, layout->GCtrace_snap) +
				       (uint64_t)last * (uint64_t)layout->SnapShot_sizeof,
			       bytes, (size_t)layout->SnapShot_sizeof, &why) != 0)
			continue;
		used = snapshot_start(layout, bytes) + bytes[layout->SnapShot_nent];
		good += layout->gc64 ? size == used + 2 : size > used && size - used < LINKS_MAX;
	}
	return 8 * good >= 7 * derive->trace_count;
}

/* Root traces begin with a loop or a function, whose instruction is replaced by one that enters the
 * trace and has the same operand A. Those that begin at a return, few, have another one. */
static bool is_first_instruction(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t same = 0, others = 0;

	if (!is_inside(derive, at, 4))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint64_t pc = ref_at(derive, trace, layout->GCtrace_startpc);
		uint32_t now, then = u32_at(trace, at);
		struct failure why;

		if (u16_at(trace, layout->GCtrace_root) != 0 ||
		    state_read(derive->reader, pc, &now, 4, &why) != 0)
			continue;
		if ((then & 0xff) >= (uint32_t)layout->BC__MAX)
			return false;
		same += ((now ^ then) & 0xff00) == 0;
		others += ((now ^ then) & 0xff00) != 0;
	}
	return same > 0 && others <= same / 4;
}

static void find_trace(struct derive *derive)
{
	static const size_t constants[] = { DERIVE_FIELD(GCtrace_ir), DERIVE_FIELD(GCtrace_nk) };
	static const size_t instructions[] = { DERIVE_FIELD(GCtrace_snap),
					       DERIVE_FIELD(GCtrace_nins) };
	static const size_t snapshots[] = { DERIVE_FIELD(GCtrace_snapmap),
					    DERIVE_FIELD(GCtrace_nsnap) };
	static const size_t start[] = { DERIVE_FIELD(GCtrace_startpt),
					DERIVE_FIELD(GCtrace_startpc) };
	static const size_t roots[] = { DERIVE_FIELD(GCtrace_root), DERIVE_FIELD(GCtrace_nchild) };
	struct luastate_layout *layout = &derive->layout;
	int32_t size;

	derive_pick_two(derive, "GCtrace.", constants, 4, are_constants);
	size = size_by(derive, layout->GCtrace_ir, layout->GCtrace_nk);
	if (!derive_is_seen(derive, constants[0]) || !size)
		return;
	keep_traces(derive, size);
	/* The structure's own size may be 4 less. */
	derive_note(derive, DERIVE_FIELD(GCtrace_sizeof), size);
	derive_pick_two(derive, "GCtrace.", instructions, 4, are_instructions);
	derive_pick_two(derive, "GCtrace.", snapshots, 2, are_snapshots);
	if (derive_is_seen(derive, snapshots[0]))
		derive_note(derive, DERIVE_FIELD(SnapShot_sizeof),
			    snapshot_by(derive, layout->GCtrace_snapmap, layout->GCtrace_nsnap));
	derive_pick_two(derive, "GCtrace.", start, 4, is_start);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_traceno), 2, is_number);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_szmcode), 4, is_code_size);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_mcloop), 4, is_loop_start);
	derive_pick_two(derive, "GCtrace.", roots, 2, are_roots);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_linktype), 1, is_link_type);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_spadjust), 2, is_used_adjustment);
	/* Without side traces nothing shows where these are, nor without spills. */
	derive_beside(derive, DERIVE_FIELD(GCtrace_root), DERIVE_FIELD(GCtrace_link), 2, is_root);
	derive_beside(derive, DERIVE_FIELD(GCtrace_spadjust), DERIVE_FIELD(GCtrace_nchild), 2,
		      is_adjustment);
	derive_beside(derive, DERIVE_FIELD(GCtrace_spadjust), DERIVE_FIELD(GCtrace_traceno), 2,
		      is_adjustment);
	derive_beside(derive, DERIVE_FIELD(GCtrace_nchild), DERIVE_FIELD(GCtrace_traceno), 2,
		      is_count);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_startins), 4, is_first_instruction);
}

/* ---- Snapshots --------------------------------------------------------------------------- */

/* With GC64 each snapshot's part of the map has its entries and two more, else one and the links of
 * its frames. */
static bool is_snapshot(const struct luastate_layout *layout, const uint8_t *bytes,
			const uint8_t *next, uint32_t nins, uint32_t szmcode)
{
	uint32_t mapofs =
		layout->SnapShot_ref == 2 ? state_u32(bytes, 0) & 0xffff : state_u32(bytes, 0);
	uint32_t next_mapofs =
		layout->SnapShot_ref == 2 ? state_u32(next, 0) & 0xffff : state_u32(next, 0);
	uint32_t ref = state_u32(bytes, layout->SnapShot_ref) & 0xffff;
	uint32_t next_ref = state_u32(next, layout->SnapShot_ref) & 0xffff;
	uint32_t nent = bytes[layout->SnapShot_nent], len = next_mapofs - mapofs;

	if (ref < TRACE_REF_BASE || ref > next_ref || next_ref > nins || len > UINT16_MAX ||
	    (layout->gc64 ? len != nent + 2 : len < nent + 1))
		return false;
	if (layout->SnapShot_mcofs != LAYOUT_ABSENT) {
		uint32_t mcofs = state_u32(bytes, layout->SnapShot_mcofs) & 0xffff;
		uint32_t next_mcofs = state_u32(next, layout->SnapShot_mcofs) & 0xffff;

		return mcofs <= next_mcofs && next_mcofs <= szmcode + TAIL_MAX;
	}
	return true;
}

/* Whether all snapshots of a trace are like those of a layout. */
static bool snapshots_fit(const struct derive *derive, const struct luastate_layout *layout,
			  const struct derive_object *trace)
{
	const struct luastate_layout *own = &derive->layout;
	uint32_t count = u16_at(trace, own->GCtrace_nsnap);
	size_t size = (size_t)own->SnapShot_sizeof;
	uint8_t bytes[SNAPSHOTS_LOOKED * SNAPSHOT_MAX + 8] = { 0 };
	struct failure why;

	if (count > SNAPSHOTS_LOOKED)
		count = SNAPSHOTS_LOOKED;
	if (state_read(derive->reader, u64_at(trace, own->GCtrace_snap), bytes, size * count,
		       &why) != 0)
		return false;
	for (size_t i = 0; i + 1 < count; i++)
		if (!is_snapshot(layout, bytes + size * i, bytes + size * (i + 1),
				 u32_at(trace, own->GCtrace_nins),
				 u32_at(trace, own->GCtrace_szmcode))) {
			return false;
		}
	return true;
}

static bool all_snapshots_fit(const struct derive *derive, const struct luastate_layout *layout)
{
	size_t good = 0;

	if (layout->SnapShot_sizeof != derive->layout.SnapShot_sizeof)
		return false;
	for (size_t i = 0; i < derive->trace_count; i++)
		good += snapshots_fit(derive, layout, &derive->traces[i]);
	/* Some may be dropped while they are read. */
	return 8 * good >= 7 * derive->trace_count;
}

/* Snapshots are like those of the row, or of another one. */
static void find_snapshots(struct derive *derive)
{
	const struct luastate_layout *found =
		all_snapshots_fit(derive, derive->row) ? derive->row : NULL;

	for (size_t i = luastate_layout_count; i-- > 0 && !found;)
		if (strcmp(luastate_layouts[i].arch, state_arch_name) == 0 &&
		    luastate_layouts[i].gc64 == derive->layout.gc64 &&
		    all_snapshots_fit(derive, &luastate_layouts[i]))
			found = &luastate_layouts[i];
	for (size_t i = 0; i < state_field_count; i++) {
		if (!derive_is_member(i, "SnapShot.") || i == DERIVE_FIELD(SnapShot_sizeof))
			continue;
		if (!found)
			derive->source[i] = DERIVE_DOUBTFUL;
		else if (derive_value(found, i) == LAYOUT_ABSENT)
			derive_note_absent(derive, i);
		else
			derive_note(derive, i, derive_value(found, i));
	}
}

/* ---- Members of jit_State ---------------------------------------------------------------- */

static bool read_J(const struct derive *derive, int32_t at, void *ret_bytes, size_t len)
{
	struct failure why;

	return at >= 0 && at < STATE_DISTANCE_MAX &&
	       state_read(derive->reader,
			  derive->G + (uint64_t)derive->layout.global_State_to_J + (uint64_t)at,
			  ret_bytes, len, &why) == 0;
}

/* A table of so many traces, each with its number: 0 where there are none, then all are 0. */
static bool is_table_size(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t table = 0;
	uint32_t size = 0;
	uint8_t slot[8];
	struct failure why;

	if (!read_J(derive, at, &size, 4) || !read_J(derive, layout->jit_State_trace, &table, 8))
		return false;
	if (!table)
		return size == 0;
	/* It grows by doubling. */
	return size > 1 && size <= TRACES_MAX && (size & (size - 1)) == 0 &&
	       state_read(derive->reader, table + (uint64_t)layout->ref_size * (size - 1), slot,
			  (size_t)layout->ref_size, &why) == 0;
}

/* The number from which a free one is looked for. */
static bool is_free_number(const struct derive *derive, int32_t at)
{
	uint32_t number = 0, size = 0;

	return read_J(derive, at, &number, 4) &&
	       read_J(derive, derive->layout.jit_State_sizetrace, &size, 4) && number <= size &&
	       at != derive->layout.jit_State_sizetrace;
}

/* The compiler's parameters are known by a few that nobody changes, in a row: tryside, instunroll,
 * loopunroll, callunroll, recunroll. Before them are maxtrace, maxrecord, maxirconst, maxside,
 * maxsnap, in some builds minstitch, which is small, hotloop and hotexit. */
static void find_params(struct derive *derive)
{
	static const int32_t known[] = { 4, 4, 15, 3, 2 };
	enum { BEFORE = 7, PIECE = 2048, SNAPSHOTS_MIN = 50 };
	const struct luastate_layout *layout = &derive->layout;
	int32_t end = layout->global_State_to_dispatch - layout->global_State_to_J;
	int32_t words[PIECE / 4], step = PIECE - 64;

	for (int32_t at = layout->jit_State_trace; at < end; at += step) {
		size_t len = end - at < PIECE ? (size_t)(end - at) : PIECE;

		if (!read_J(derive, at, words, len))
			return;
		for (size_t i = 3; i + 5 <= len / 4; i++) {
			int32_t place = at + 4 * ((int32_t)i - BEFORE);

			if (memcmp(&words[i], known, sizeof(known)) != 0)
				continue;
			if (words[i - 3] < SNAPSHOTS_MIN)
				place -= 4;
			derive_note(derive, DERIVE_FIELD(jit_State_param), place);
			return;
		}
	}
}

/* The area for machine code: its start, top and bottom of what is free, sizes of it and of all. */
static void find_area(struct derive *derive)
{
	int32_t start = derive->layout.jit_State_exitno;
	uint64_t words[24];

	if (!read_J(derive, (start + 8) & ~7, words, sizeof(words)))
		return;
	for (size_t i = 0; i + 5 <= sizeof(words) / sizeof(words[0]); i++) {
		uint64_t area = words[i], size = words[i + 3];
		int32_t at = ((start + 8) & ~7) + 8 * (int32_t)i;

		if (!state_is_pointer(area) || area % 4096 != 0 || size == 0 || size % 4096 != 0 ||
		    size > CODE_MAX || words[i + 1] - area > size || words[i + 2] - area > size ||
		    words[i + 2] > words[i + 1] || words[i + 4] < size || words[i + 4] % size != 0)
			continue;
		derive_note(derive, DERIVE_FIELD(jit_State_mcarea), at);
		derive_note(derive, DERIVE_FIELD(jit_State_mctop), at + 8);
		derive_note(derive, DERIVE_FIELD(jit_State_mcbot), at + 16);
		derive_note(derive, DERIVE_FIELD(jit_State_szmcarea), at + 24);
		derive_note(derive, DERIVE_FIELD(jit_State_szallmcarea), at + 32);
		return;
	}
}

/* Groups of exit stubs on x86-64: addresses in machine code, the first ones only. */
static bool are_stubs(const struct derive *derive, int32_t at)
{
	uint64_t groups[STATE_STUB_GROUPS], nearest = UINT64_MAX;
	bool ended = false;

	if (at % 8 != 0 || !read_J(derive, at, groups, sizeof(groups)) || !groups[0])
		return false;
	for (size_t i = 0; i < STATE_STUB_GROUPS; i++) {
		if (groups[i] && (ended || !state_is_pointer(groups[i])))
			return false;
		ended = !groups[i];
	}
	for (size_t i = 0; i < derive->trace_count; i++) {
		uint64_t mcode = u64_at(&derive->traces[i], derive->layout.GCtrace_mcode);
		uint64_t distance = mcode > groups[0] ? mcode - groups[0] : groups[0] - mcode;

		nearest = distance < nearest ? distance : nearest;
	}
	return nearest < CODE_MAX;
}

static void find_compiler(struct derive *derive)
{
	derive_pick(derive, "jit_State.", DERIVE_FIELD(jit_State_freetrace), 4, is_free_number);
	find_params(derive);
	find_area(derive);
	if (derive->trace_count &&
	    derive_value(derive->row, DERIVE_FIELD(jit_State_exitstubgroup)) != LAYOUT_ABSENT)
		derive_pick(derive, "jit_State.", DERIVE_FIELD(jit_State_exitstubgroup), 8,
			    are_stubs);
	derive_fill(derive, "jit_State.");
}

/* ---- The whole --------------------------------------------------------------------------- */

void derive_traces(struct derive *derive)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t table = 0;
	uint32_t size = 0;

	derive->trace_count = 0;
	if (!derive_is_seen(derive, DERIVE_FIELD(global_State_to_J)) ||
	    !derive_is_seen(derive, DERIVE_FIELD(jit_State_trace)))
		return;
	derive_pick(derive, "jit_State.", DERIVE_FIELD(jit_State_sizetrace), 4, is_table_size);
	if (read_J(derive, layout->jit_State_trace, &table, 8) &&
	    read_J(derive, layout->jit_State_sizetrace, &size, 4) && table && size <= TRACES_MAX)
		read_traces(derive, table, size);
	drop_gone(derive, table);
	if (derive->trace_count)
		find_trace(derive);
	if (derive->trace_count) {
		find_snapshots(derive);
		derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_nsnapmap), 4, is_map_size);
	}
	derive_fill(derive, "GCtrace.");
	find_compiler(derive);
}
