/* SPDX-License-Identifier: MIT */
/*
 * Which frames does each snapshot of a trace have?
 *
 * A snapshot describes the interpreter's stack as it would be after an exit: for each changed slot
 * an instruction of the trace or a constant, then the position in the bytecode. Functions and frame
 * links are constants, so a snapshot shows the calls that the compiler has inlined. Slots are
 * counted from the function slot of the frame in which the trace began, or to which it has returned
 * since then. global_State.jit_base is that frame's base.
 *
 *   GC64   slots | 64 bits: position << 8 | slots from that base to the topmost one
 *   else   slots | position | link of the topmost frame | … | link of the lowest frame above
 *          a continuation has two words, its frame's link and its position
 *
 * A slot is "slot << 24 | flags | reference". A reference below TRACE_REF_BASE is a constant; its
 * value follows in the next instruction's slot if it has 64 bits.
 *
 * Source: LuaJIT v2.1 src/lj_snap.c (snapshot_slots, snapshot_framelinks, lj_snap_restore),
 * src/lj_jit.h (SnapShot, SNAP_*), src/lj_ir.h (IRIns), src/lj_asm.c (asm_snap_fixup_mcofs).
 */
#include "luastate/trace/trace.h"

#include <stdlib.h>

#include "attach/array.h"
#include "luastate/state/invariants.h"

enum {
	SLOTS = 256,
	SNAP_FRAME = 0x010000,
	SNAP_CONT = 0x020000,
	LINK_TYPE = 3,
	LINK_TYPEP = 7,
	LINK_CONT = 2,
	LINK_VARG = 3,
};

/** The slots of a snapshot that are constants. */
struct slots {
	uint64_t value[SLOTS];
	bool known[SLOTS];
};

/** A decoded snapshot. */
struct view {
	struct slots functions, links; /* links: positions of continuations as well */
	unsigned lowest;	       /* base slot of the lowest frame */
	unsigned top;		       /* base slot of the topmost frame */
	bool replaced;		       /* a tail call has replaced the lowest frame */
	uint64_t pc;
};

/* ---- Reading ---------------------------------------------------------------------------- */

/* Offset of the n-th snapshot's part in the map. */
static uint32_t map_offset(const struct trace_source *source, uint32_t index)
{
	const struct luastate_layout *layout = source->view.layout;
	const uint8_t *bytes = trace_snapshot_bytes(source, index);

	if (index == source->block.nsnap)
		return source->block.nsnapmap;
	return layout->SnapShot_ref == 2 ? state_u32(bytes, 0) & 0xffff : state_u32(bytes, 0);
}

/* Without GC64, frame links follow the slots. Links are ordered from the topmost frame to the
 * lowest, slots from the lowest to the topmost. */
static bool take_links(const uint8_t *words, const uint8_t *end, const unsigned *flagged,
		       unsigned count, struct slots *links)
{
	for (unsigned i = 0; i < count; i++) {
		if (flagged[i] == 0)
			continue; /* the real stack has this link */
		if (end - words < 4)
			return false;
		end -= 4;
		links->value[flagged[i]] = state_u32(end, 0);
		links->known[flagged[i]] = true;
	}
	return end == words;
}

static void read_entries(const struct trace_source *source, const uint8_t *entries, unsigned count,
			 struct view *view, unsigned *ret_flagged, unsigned *ret_flagged_count)
{
	bool gc64 = source->view.layout->gc64;

	*ret_flagged_count = 0;
	for (unsigned i = 0; i < count; i++) {
		uint32_t entry = state_u32(entries, (int32_t)(4 * i)), ref = entry & 0xffff;
		unsigned slot = entry >> 24;
		int type = 0;
		uint64_t object = trace_object_at(source, ref, &type);

		if (object && type == TRACE_CONSTANT_FUNC) {
			view->functions.value[slot] = object;
			view->functions.known[slot] = true;
		}
		if ((entry & (SNAP_FRAME | SNAP_CONT)) == 0)
			continue;
		view->replaced |= slot == (gc64 ? 1 : 0);
		if (gc64)
			view->links.known[slot] =
				trace_number_constant(source, ref, &view->links.value[slot]);
		if (!gc64)
			ret_flagged[(*ret_flagged_count)++] = slot;
	}
}

/** A snapshot's part of the map: its slots, then the position and what follows it. */
struct part {
	const uint8_t *entries, *behind, *limit;
	unsigned count;
};

static bool find_part(const struct trace_source *source, uint32_t index, struct part *ret_part)
{
	const struct luastate_layout *layout = source->view.layout;
	uint32_t start = map_offset(source, index), end = map_offset(source, index + 1);
	uint32_t count = trace_snapshot_bytes(source, index)[layout->SnapShot_nent];
	const uint8_t *map = source->bytes + source->block.map;

	if (start > end || end > source->block.nsnapmap ||
	    end - start < count + (layout->gc64 ? 2 : 1))
		return false;
	ret_part->entries = map + 4 * (size_t)start;
	ret_part->behind = ret_part->entries + 4 * (size_t)count;
	ret_part->limit = map + 4 * (size_t)end;
	ret_part->count = count;
	return true;
}

static uint64_t position_of(const struct luastate_layout *layout, const struct part *part)
{
	return layout->gc64 ? state_u64(part->behind, 0) >> 8 : state_u32(part->behind, 0);
}

uint64_t trace_position_of(const struct trace_source *source, uint32_t index)
{
	struct part part;

	return find_part(source, index, &part) ? position_of(source->view.layout, &part) : 0;
}

static bool read_view(const struct trace_source *source, uint32_t index, struct view *ret_view)
{
	const struct luastate_layout *layout = source->view.layout;
	unsigned flagged[SLOTS], flagged_count;
	struct part part;

	memset(ret_view, 0, sizeof(*ret_view));
	if (!find_part(source, index, &part))
		return false;
	read_entries(source, part.entries, part.count, ret_view, flagged, &flagged_count);
	ret_view->pc = position_of(layout, &part);
	if (layout->gc64) {
		ret_view->lowest = 2;
		ret_view->top = 2 + (unsigned)part.behind[0];
		return ret_view->top < SLOTS;
	}
	ret_view->lowest = 1;
	ret_view->top = flagged_count && flagged[flagged_count - 1] + 1 > 1
				? flagged[flagged_count - 1] + 1
				: 1;
	return ret_view->top < SLOTS &&
	       take_links(part.behind + 4, part.limit, flagged, flagged_count, &ret_view->links);
}

/* ---- Walking ---------------------------------------------------------------------------- */

static bool add_frame(struct trace_source *source, struct trace *trace,
		      const struct trace_frame *frame)
{
	if (!ARRAY_RESERVE(trace->frames, source->frame_room, trace->frame_count + 1))
		return false;
	trace->frames[trace->frame_count++] = *frame;
	return true;
}

/* Find the function of the frame with a base slot. A Lua function's prototype must contain its
 * position. */
static bool identify(const struct trace_source *source, const struct trace *trace,
		     const struct view *view, unsigned base, uint64_t pc,
		     struct trace_frame *ret_frame)
{
	unsigned slot = source->view.layout->gc64 ? base - 2 : base - 1;
	const struct trace_function *function;

	*ret_frame = (struct trace_frame){ .kind = LUASTATE_LUA, .pc = pc };
	if (view->functions.known[slot]) {
		function = trace_function_of(trace, view->functions.value[slot]);
		if (!function || (function->kind == LUASTATE_LUA &&
				  (!pc || !trace_function_holds(function, pc))))
			return false;
		ret_frame->function = function->address;
		ret_frame->kind = function->kind;
		ret_frame->ffid = function->ffid;
		if (function->kind != LUASTATE_LUA)
			ret_frame->pc = 0;
		return true;
	}
	ret_frame->function = pc ? trace_find_holder(source, trace, pc) : 0;
	return ret_frame->function || base == view->lowest; /* the lowest frame is on the stack */
}

/** A frame of a snapshot during the walk to the lowest. */
struct location {
	unsigned base;
	uint64_t pc;
};

/* Follow a link that holds a distance. */
static bool follow_distance(const struct trace_source *source, const struct view *view,
			    uint64_t link, struct location *location)
{
	unsigned frame_slots = source->view.layout->gc64 ? 2 : 1;
	uint64_t distance = (link & ~(uint64_t)LINK_TYPEP) / 8;
	/* A continuation's position is directly below the frame's own slots. */
	unsigned cont = location->base - frame_slots - 1;

	if (distance < frame_slots || distance > location->base - view->lowest)
		return false;
	if ((link & LINK_TYPEP) == LINK_CONT) {
		if (location->base < frame_slots + 1 || !view->links.known[cont])
			return false;
		location->pc = view->links.value[cont] - 4;
	} else if ((link & LINK_TYPEP) != LINK_VARG) {
		location->pc = 0;
	}
	location->base -= (unsigned)distance;
	return true;
}

/*
 * Step to the frame below.
 * @param ret_repeats Whether it belongs to the same call: a vararg function has two frames.
 */
static bool step_down(const struct trace_source *source, const struct view *view,
		      struct location *location, bool *ret_repeats)
{
	unsigned frame_slots = source->view.layout->gc64 ? 2 : 1, below;
	uint64_t link = view->links.value[location->base - 1];
	uint32_t call;
	struct failure why;

	*ret_repeats = false;
	if (!view->links.known[location->base - 1])
		return false;
	if ((link & LINK_TYPE) != 0) {
		*ret_repeats = (link & LINK_TYPEP) == LINK_VARG;
		return follow_distance(source, view, link, location);
	}
	if (!state_is_pointer(link) ||
	    state_read(source->view.memory->any, link - 4, &call, 4, &why) != 0)
		return false;
	below = frame_slots + (call >> 8 & 0xff);
	if (below > location->base || location->base - below < view->lowest)
		return false;
	location->base -= below;
	location->pc = link - 4;
	return true;
}

/* If the trace has returned to a frame below its first, a different lowest frame is another
 * frame, not the same one with another function. */
static uint32_t find_return(const struct trace_source *source)
{
	for (uint32_t ref = TRACE_REF_BASE; ref < source->block.nins; ref++)
		if (trace_instruction(&source->block, source->bytes, ref)[5] == TRACE_IR_RETF)
			return ref;
	return source->block.nins;
}

static bool has_returned(const struct trace_source *source, uint32_t index)
{
	return source->first_return <
	       (state_u32(trace_snapshot_bytes(source, index), source->view.layout->SnapShot_ref) &
		0xffff);
}

static bool is_stitch(const struct trace_source *source, uint32_t index)
{
	return index + 1 == source->block.nsnap &&
	       source->header[source->view.layout->GCtrace_linktype] == TRACE_LINK_STITCH;
}

/* @return false when out of memory. A snapshot that cannot be read has no frames. */
static bool decode_snapshot(struct trace_source *source, uint32_t index, struct trace *trace)
{
	struct trace_snapshot *snapshot = &trace->snapshots[index];
	struct trace_frame frame;
	struct view view;
	struct location location;
	bool repeats = false;
	unsigned count = 0;

	snapshot->first = (uint32_t)trace->frame_count;
	if (source->walked > TRACE_FRAMES_MAX - TRACE_DEPTH_MAX ||
	    !trace_charge(source->view.state, 1) || !read_view(source, index, &view))
		return true;
	location = (struct location){ .base = view.top, .pc = view.pc };
	/* A stitched trace has not made its last call yet; the snapshot's position is the
	 * caller's. The call's frame is no vararg function's, which would have another one below.
	 */
	if (is_stitch(source, index) && (!step_down(source, &view, &location, &repeats) || repeats))
		return true;
	for (;;) {
		if (!identify(source, trace, &view, location.base, location.pc, &frame) ||
		    count == TRACE_DEPTH_MAX)
			break;
		trace->has_metamethods |=
			view.links.known[location.base - 1] &&
			(view.links.value[location.base - 1] & LINK_TYPEP) == LINK_CONT;
		/* On the stack, the lower frame of a vararg function identifies the function. */
		if (repeats && location.base == view.lowest)
			trace->frames[trace->frame_count - 1].function = frame.function;
		if (!repeats && !add_frame(source, trace, &frame))
			return false;
		count += !repeats;
		source->walked++;
		trace_charge(source->view.state, 1);
		if (location.base == view.lowest) {
			snapshot->count = (uint16_t)count;
			snapshot->replaced = view.replaced && !has_returned(source, index);
			return true;
		}
		if (!step_down(source, &view, &location, &repeats))
			break;
	}
	trace->frame_count = snapshot->first;
	return true;
}

/* ---- A trace ---------------------------------------------------------------------------- */

/* Fails if the time did not suffice to read everything. Such a trace does not count. */
static int judge_work(const struct trace_source *source, const struct trace *trace,
		      struct failure *why)
{
	return trace_charge(source->view.state, 0)
		       ? 0
		       : failure_set(why, FAILURE_LIMIT, 0, 0, trace->address, "read more traces");
}

int trace_decode_frames(struct trace_source *source, struct trace *trace, struct failure *why)
{
	trace->snapshot_count = source->block.nsnap;
	source->first_return = find_return(source);
	trace->snapshots = calloc(trace->snapshot_count, sizeof(*trace->snapshots));
	if (!trace->snapshots || !trace_list_functions(source, trace))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, trace->address, "store a trace");
	for (uint32_t i = 0; i < source->block.nsnap; i++)
		if (!decode_snapshot(source, i, trace))
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, trace->address,
					   "store a trace");
	return judge_work(source, trace, why);
}

int trace_decode(struct trace_source *source, struct trace *trace, struct failure *why)
{
	if (trace_decode_frames(source, trace, why) != 0)
		return -1;
	trace_locate(source, trace);
	trace_compare(source, trace);
	trace->bytes = sizeof(*trace) + trace->snapshot_count * sizeof(*trace->snapshots) +
		       source->frame_room * sizeof(*trace->frames) +
		       trace->function_count * sizeof(*trace->functions);
	return judge_work(source, trace, why);
}

void trace_deinit(struct trace *trace)
{
	free(trace->snapshots);
	free(trace->frames);
	free(trace->functions);
}
