/* SPDX-License-Identifier: MIT */
/* At which offsets are the members of GCtrace?
 *
 * A trace is one block:
 *
 *   GCtrace | constants and instructions | snapshots | their map
 *             8 * (nins - nk)              nsnap       4 * nsnapmap
 *
 * ir points to where instruction 0 would be. A program without traces shows nothing.
 *
 * Source: LuaJIT v2.1 src/lj_trace.c (lj_trace_alloc), src/lj_jit.h.
 */
#include "luastate/derive/derive.h"

#include "luastate/state/invariants.h"

enum {
	TRACES_LOOKED = 4096,
	TRACE_MIN = 80,
	CODE_MAX = 1 << 22,
	CODE_MIN = 4,	  /* a jump to another trace */
	FRAME_MAX = 4096, /* a trace's stack frame has spill slots, 8 bytes each */
	SNAPSHOT_MIN = 8,
	SNAPSHOT_MAX = DERIVE_SNAPSHOT_MAX,
};

/* Whether a member is inside the structure, behind the header that all objects have. */
static bool is_inside(const struct derive *derive, int32_t at, int32_t bytes)
{
	return at > derive->layout.GCobj_gct && at % bytes == 0 &&
	       at + bytes <= STATE_OBJECT_MAX - 8;
}

/* ---- The traces ------------------------------------------------------------------------- */

/* Forget traces that were released while they were read; other objects may be there now. */
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

/* Read traces until the array is full. */
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
		/* The trace being recorded is part of the compiler's state. */
		if (!derive_is_own(derive, trace->address) &&
		    state_read_object(layout, derive->reader, trace->address,
				      state_gct(layout->tag_trace), trace->bytes, TRACE_MIN,
				      &why) == 0 &&
		    state_read(derive->reader, trace->address, trace->bytes,
			       sizeof(trace->bytes) - 8, &why) == 0)
			derive->trace_count++;
	}
}

/* ---- Tests of GCtrace ------------------------------------------------------------------- */

/* ir + 8 * nk = the end of the structure, rounded up to 8. @return the size; 0 if it is impossible.
 */
static int32_t own_size(const struct derive_object *trace, int32_t ir, int32_t nk)
{
	uint32_t lowest = derive_u32(trace, nk);
	uint64_t size = derive_u64(trace, ir) + 8 * (uint64_t)lowest - trace->address;

	if (lowest == 0 || lowest > TRACE_REF_BASE || size < TRACE_MIN ||
	    size > STATE_OBJECT_MAX - 16)
		return 0;
	return (int32_t)size;
}

/* The size on which traces agree, or 0. Some may be released while they are read. */
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

static size_t are_constants(const struct derive *derive, int32_t ir, int32_t nk)
{
	return size_by(derive, ir, nk) > 0;
}

/* Forget traces of another size: they were released. */
static void keep_traces(struct derive *derive, int32_t size)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t kept = 0;

	for (size_t i = 0; i < derive->trace_count; i++)
		if (own_size(&derive->traces[i], layout->GCtrace_ir, layout->GCtrace_nk) == size)
			derive->traces[kept++] = derive->traces[i];
	derive->trace_count = kept;
}

static size_t are_instructions(const struct derive *derive, int32_t snap, int32_t nins)
{
	if (!is_inside(derive, snap, 8) || !is_inside(derive, nins, 4))
		return 0;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint32_t next = derive_u32(trace, nins);

		if (next <= TRACE_REF_BASE || next > 2 * TRACE_REF_BASE ||
		    derive_u64(trace, snap) !=
			    derive_u64(trace, derive->layout.GCtrace_ir) + 8 * (uint64_t)next)
			return 0;
	}
	return 1;
}

/* snapmap = snap + the size of a snapshot * nsnap. @return this size; 0 if traces disagree. */
static int32_t snapshot_by(const struct derive *derive, int32_t snapmap, int32_t nsnap)
{
	uint64_t size = 0;

	if (!is_inside(derive, snapmap, 8) || !is_inside(derive, nsnap, 2))
		return 0;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint64_t bytes =
			derive_u64(trace, snapmap) - derive_u64(trace, derive->layout.GCtrace_snap);
		uint32_t count = derive_u16(trace, nsnap);

		if (count == 0 || bytes % count != 0 || bytes / count < SNAPSHOT_MIN ||
		    bytes / count > SNAPSHOT_MAX || (size && bytes / count != size))
			return 0;
		size = bytes / count;
	}
	return (int32_t)size;
}

static size_t are_snapshots(const struct derive *derive, int32_t snapmap, int32_t nsnap)
{
	return snapshot_by(derive, snapmap, nsnap) > 0;
}

/* startpc is an instruction of the prototype startpt. */
static size_t is_start(const struct derive *derive, int32_t startpt, int32_t startpc)
{
	const struct luastate_layout *layout = &derive->layout;

	if (!is_inside(derive, startpt, layout->ref_size) ||
	    !is_inside(derive, startpc, layout->ref_size))
		return 0;
	for (size_t i = 0; i < derive->trace_count; i++) {
		uint64_t proto = derive_ref(derive, &derive->traces[i], startpt);
		uint64_t pc = derive_ref(derive, &derive->traces[i], startpc);
		uint8_t bytes[STATE_OBJECT_MAX];
		struct failure why;

		if (state_read_object(layout, derive->reader, proto, state_gct(layout->tag_proto),
				      bytes, (size_t)layout->GCproto_sizeof, &why) != 0)
			return 0;
		pc -= proto + (uint64_t)layout->GCproto_sizeof;
		if (pc % 4 != 0 || pc / 4 >= state_u32(bytes, layout->GCproto_sizebc))
			return 0;
	}
	return 1;
}

static bool is_number(const struct derive *derive, int32_t at)
{
	if (!is_inside(derive, at, 2))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++)
		if (derive_u16(&derive->traces[i], at) != derive->traces[i].number)
			return false;
	return true;
}

/* No trace's code contains the start of another trace. */
static bool is_code_size(const struct derive *derive, int32_t at)
{
	int32_t mcode = derive->layout.GCtrace_mcode;

	if (!is_inside(derive, at, 4))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		uint64_t start = derive_u64(&derive->traces[i], mcode);
		uint32_t size = derive_u32(&derive->traces[i], at);

		if (size < CODE_MIN || size > CODE_MAX)
			return false;
		for (size_t k = 0; k < derive->trace_count; k++)
			if (k != i && derive_u64(&derive->traces[k], mcode) - start < size)
				return false;
	}
	return true;
}

static bool is_loop_start(const struct derive *derive, int32_t at)
{
	if (!is_inside(derive, at, 4))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++)
		if (derive_u32(&derive->traces[i], at) >=
		    derive_u32(&derive->traces[i], derive->layout.GCtrace_szmcode))
			return false;
	return true;
}

/* A loop's start is inside the code, and in some trace not at its beginning. */
static bool is_used_loop_start(const struct derive *derive, int32_t at)
{
	bool used = false;

	for (size_t i = 0; i < derive->trace_count && !used; i++)
		used = derive_u32(&derive->traces[i], at) > 0;
	return used && is_loop_start(derive, at);
}

static const struct derive_object *trace_of(const struct derive *derive, uint32_t number)
{
	for (size_t i = 0; i < derive->trace_count; i++)
		if (derive->traces[i].number == number)
			return &derive->traces[i];
	return NULL;
}

/* Side traces name a root trace, and root traces name none. */
static bool is_root(const struct derive *derive, int32_t at)
{
	if (!is_inside(derive, at, 2))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		uint32_t number = derive_u16(&derive->traces[i], at);
		const struct derive_object *root = trace_of(derive, number);

		if (number == derive->traces[i].number || (root && derive_u16(root, at) != 0))
			return false;
	}
	return true;
}

/* A root trace counts all side traces that it ever had. Most side traces still exist. */
static size_t are_roots(const struct derive *derive, int32_t root, int32_t nchild)
{
	size_t same = 0, others = 0;

	if (!is_root(derive, root) || !is_inside(derive, nchild, 2))
		return 0;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint32_t count = 0;

		for (size_t k = 0; k < derive->trace_count; k++)
			count += derive_u16(&derive->traces[k], root) == trace->number;
		if (derive_u16(trace, nchild) < count)
			return 0;
		same += count > 0 && derive_u16(trace, nchild) == count;
		others += derive_u16(trace, nchild) != count;
	}
	return same > others;
}

static bool is_count(const struct derive *derive, int32_t at)
{
	return is_inside(derive, at, 2);
}

/* The size of spill slots is a multiple of 16 bytes. */
static bool is_adjustment(const struct derive *derive, int32_t at)
{
	if (!is_inside(derive, at, 2))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++)
		if (derive_u16(&derive->traces[i], at) % 16 != 0 ||
		    derive_u16(&derive->traces[i], at) > FRAME_MAX)
			return false;
	return true;
}

static bool is_used_adjustment(const struct derive *derive, int32_t at)
{
	bool used = false;

	for (size_t i = 0; i < derive->trace_count && !used; i++)
		used = derive_u16(&derive->traces[i], at) > 0;
	return used && is_adjustment(derive, at);
}

/* The type of a trace's link must agree with the linked trace. Source: LuaJIT v2.1 src/lj_jit.h
 * (TraceLink). */
static bool is_link_type(const struct derive *derive, int32_t at)
{
	enum { ROOT = 1, LOOP = 2, DOWN_RECURSION = 5, INTERPRETER = 6, RETURN = 7 };

	if (!is_inside(derive, at, 1))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint32_t link = derive_u16(trace, derive->layout.GCtrace_link),
			 type = trace->bytes[at];

		if (type == 0 || type > TRACE_LINK_STITCH || (type == ROOT && link == 0) ||
		    (type == LOOP && link != trace->number) ||
		    ((type == INTERPRETER || type == RETURN) && link != 0))
			return false;
	}
	return true;
}

/* A root trace begins with a loop or a function. The compiler replaces this instruction by one that
 * enters the trace and has the same operand A. The few traces that begin at a return have another
 * instruction. */
static bool is_first_instruction(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;
	size_t same = 0, others = 0;

	if (!is_inside(derive, at, 4))
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i];
		uint64_t pc = derive_ref(derive, trace, layout->GCtrace_startpc);
		uint32_t now, then = derive_u32(trace, at);
		struct failure why;

		if (derive_u16(trace, layout->GCtrace_root) != 0 ||
		    state_read(derive->reader, pc, &now, 4, &why) != 0)
			continue;
		if ((then & 0xff) >= (uint32_t)layout->BC__MAX)
			return false;
		same += ((now ^ then) & 0xff00) == 0;
		others += ((now ^ then) & 0xff00) != 0;
	}
	return same > 0 && others <= same / 4;
}

/* A prototype names the first root trace that begins in it. */
static bool is_proto_trace(const struct derive *derive, int32_t at)
{
	const struct luastate_layout *layout = &derive->layout;

	if (at % 2 != 0 || at + 2 > layout->GCproto_sizeof)
		return false;
	for (size_t i = 0; i < derive->trace_count; i++) {
		const struct derive_object *trace = &derive->traces[i], *first;
		uint64_t proto = derive_ref(derive, trace, layout->GCtrace_startpt);
		uint16_t number;
		struct failure why;

		if (derive_u16(trace, layout->GCtrace_root) != 0 ||
		    state_read(derive->reader, proto + (uint64_t)at, &number, 2, &why) != 0)
			continue;
		first = trace_of(derive, number);
		if (!number ||
		    (first && derive_ref(derive, first, layout->GCtrace_startpt) != proto))
			return false;
	}
	return true;
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
	/* The structure itself may be 4 bytes shorter. */
	derive_note(derive, DERIVE_FIELD(GCtrace_sizeof), size);
	derive_pick_two(derive, "GCtrace.", instructions, 4, are_instructions);
	derive_pick_two(derive, "GCtrace.", snapshots, 2, are_snapshots);
	if (derive_is_seen(derive, snapshots[0]))
		derive_note(derive, DERIVE_FIELD(SnapShot_sizeof),
			    snapshot_by(derive, layout->GCtrace_snapmap, layout->GCtrace_nsnap));
	derive_pick_two(derive, "GCtrace.", start, 4, is_start);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_traceno), 2, is_number);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_szmcode), 4, is_code_size);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_mcloop), 4, is_used_loop_start);
	derive_guess_beside(derive, DERIVE_FIELD(GCtrace_mcloop), DERIVE_FIELD(GCtrace_mcode), 4,
			    is_loop_start);
	derive_pick_two(derive, "GCtrace.", roots, 2, are_roots);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_linktype), 1, is_link_type);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_spadjust), 2, is_used_adjustment);
	/* Side traces show root and nchild, and spills show spadjust. Without them, these fields
	 * are guessed. */
	derive_guess_beside(derive, DERIVE_FIELD(GCtrace_root), DERIVE_FIELD(GCtrace_link), 2,
			    is_root);
	derive_guess_beside(derive, DERIVE_FIELD(GCtrace_spadjust), DERIVE_FIELD(GCtrace_nchild), 2,
			    is_adjustment);
	derive_guess_beside(derive, DERIVE_FIELD(GCtrace_spadjust), DERIVE_FIELD(GCtrace_traceno),
			    2, is_adjustment);
	derive_guess_beside(derive, DERIVE_FIELD(GCtrace_nchild), DERIVE_FIELD(GCtrace_traceno), 2,
			    is_count);
	derive_pick(derive, "GCtrace.", DERIVE_FIELD(GCtrace_startins), 4, is_first_instruction);
	if (derive_is_seen(derive, start[0]) && derive_is_known(derive, roots[0]))
		derive_pick(derive, "GCproto.", DERIVE_FIELD(GCproto_trace), 2, is_proto_trace);
}

/* ---- The whole -------------------------------------------------------------------------- */

void derive_traces(struct derive *derive)
{
	const struct luastate_layout *layout = &derive->layout;
	uint64_t table = 0;
	uint32_t size = 0;

	derive->trace_count = 0;
	if (!derive_is_seen(derive, DERIVE_FIELD(global_State_to_J)) ||
	    !derive_is_seen(derive, DERIVE_FIELD(jit_State_trace)))
		return;
	derive_trace_table(derive);
	if (derive_read_J(derive, layout->jit_State_trace, &table, 8) &&
	    derive_read_J(derive, layout->jit_State_sizetrace, &size, 4) && table &&
	    size <= DERIVE_TRACES_MAX)
		read_traces(derive, table, size);
	drop_gone(derive, table);
	if (derive->trace_count)
		find_trace(derive);
	if (derive->trace_count)
		derive_snapshots(derive);
	derive_fill(derive, "GCtrace.");
	derive_compiler(derive);
}
