/* SPDX-License-Identifier: MIT */
/*
 * Which trace has a number, and is it still the known one?
 *
 * A trace is read once. Each sample that meets it compares it with the target's memory, because
 * LuaJIT reuses numbers and addresses after a flush.
 *
 * A trace is one block of memory. After compilation only counters and links in its header change,
 * and the counts of its exits:
 *
 *   GCtrace | constants | instructions | snapshots | map of the snapshots
 *             number nk   number TRACE_REF_BASE
 *
 * The stop copies the header (plan.c). The rest is read after the target runs again. It counts if
 * the header is still the same then. Objects that a trace refers to live as long as the trace.
 *
 * Source: LuaJIT v2.1 src/lj_trace.c (lj_trace_alloc, lj_trace_free, lj_trace_flushall),
 * src/lj_jit.h (GCtrace), src/lj_gc.c (gc_traverse_trace).
 */
#include "luastate/trace/trace.h"

#include <stdlib.h>

#include "luastate/arch/arch.h"
#include "luastate/state/invariants.h"
#include "luastate/trace/code_areas.h"
#include "luastate/trace/trace_index.h"

enum {
	/* A side trace's parent may have a parent, and so on. */
	PARENTS_MAX = 32,
	/* Instructions between a trace's code and its exit stubs on AArch64. */
	STUBS_BEFORE = 8,
	/* Bytes of a side trace's code before it notes its number: it restores values there. */
	HEAD_BYTES = 1024,
	/* Bytes of a block that one step reads and compares, see trace_charge(). */
	CHARGED_BYTES = 256,
	/* Limit for one sample: addresses times VMs whose code is searched, each up to 64 KiB. It
	 * allows 64 frames of another compiler, as many as a deep stack has, in a process with 64
	 * VMs, or 16 frames with 256 VMs. */
	CODE_WORK_MAX = 4096,
};

/* ---- The cache -------------------------------------------------------------------------- */

static void free_trace(struct trace *trace)
{
	trace_deinit(trace);
	free(trace);
}

static void drop(struct luastate *state, struct trace *trace)
{
	trace_index_remove(state, trace);
	state->trace_bytes -= trace->bytes;
	HASH_DEL(state->traces, trace);
	free_trace(trace);
}

void trace_free_all(struct luastate *state)
{
	struct trace *trace, *next;

	areas_free_all(state);
	state->trace_index_count = 0;
	state->trace_bytes = 0;
	HASH_ITER(hh, state->traces, trace, next)
	{
		HASH_DEL(state->traces, trace);
		free_trace(trace);
	}
}

static struct trace *find(const struct luastate *state, uint64_t G, uint32_t number)
{
	const struct trace_key key = { G, number };
	struct trace *trace;

	HASH_FIND(hh, state->traces, &key, sizeof(key), trace);
	return trace;
}

const struct trace *trace_find(const struct luastate *state, uint64_t G, uint32_t number)
{
	return find(state, G, number);
}

static bool make_room(struct luastate *state)
{
	if (HASH_COUNT(state->traces) >= TRACE_KEPT_MAX || state->trace_bytes > TRACE_KEPT_BYTES)
		trace_free_all(state);
	return trace_index_init(state);
}

/* ---- Reading ---------------------------------------------------------------------------- */

bool trace_block_of(const struct luastate_layout *layout, const uint8_t *header, uint64_t address,
		    struct trace_block *ret_block)
{
	uint32_t nins = state_u32(header, layout->GCtrace_nins);
	uint32_t nsnapmap = state_u32(header, layout->GCtrace_nsnapmap);

	/* In builds with short snapshots, both counts have 16 bits. */
	ret_block->nsnap = state_u32(header, layout->GCtrace_nsnap) & 0xffff;
	ret_block->nsnapmap = layout->SnapShot_ref == 2 ? nsnapmap & 0xffff : nsnapmap;
	ret_block->nk = state_u32(header, layout->GCtrace_nk);
	if (ret_block->nk > TRACE_REF_BASE || nins <= TRACE_REF_BASE || nins > 2 * TRACE_REF_BASE ||
	    ret_block->nsnapmap > TRACE_BLOCK_MAX / 4)
		return false;
	ret_block->nins = nins;
	ret_block->start = address + (((uint64_t)layout->GCtrace_sizeof + 7) & ~(uint64_t)7);
	ret_block->snapshots = 8 * (size_t)(nins - ret_block->nk);
	ret_block->map =
		ret_block->snapshots + (size_t)ret_block->nsnap * (size_t)layout->SnapShot_sizeof;
	ret_block->len = ret_block->map + 4 * (size_t)ret_block->nsnapmap;
	return ret_block->nsnap > 0 && ret_block->len <= TRACE_BLOCK_MAX &&
	       state_u64(header, layout->GCtrace_snap) == ret_block->start + ret_block->snapshots &&
	       state_u64(header, layout->GCtrace_snapmap) == ret_block->start + ret_block->map &&
	       state_u64(header, layout->GCtrace_ir) ==
		       ret_block->start - 8 * (uint64_t)ret_block->nk;
}

uint8_t *trace_read_block(const struct attach_reader *reader, const struct trace_block *block,
			  struct failure *why)
{
	uint8_t *bytes = malloc(block->len + 8); /* the end may be read as a 64-bit word */

	if (!bytes) {
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, block->start, "read a trace");
		return NULL;
	}
	memset(bytes + block->len, 0, 8);
	if (state_read(reader, block->start, bytes, block->len, why) == 0)
		return bytes;
	free(bytes);
	return NULL;
}

/* Exclude the counts of the exits, which change while the trace runs. */
static uint64_t hash_block(const struct luastate_layout *layout, uint8_t *bytes,
			   const struct trace_block *block)
{
	uint64_t hash = block->len;

	for (uint32_t i = 0; i < block->nsnap; i++)
		bytes[block->snapshots + (size_t)layout->SnapShot_sizeof * i +
		      (size_t)layout->SnapShot_count] = 0;
	/* The bytes after the block are zero. */
	for (size_t at = 0; at < block->len; at += 8) {
		uint64_t word;

		memcpy(&word, bytes + at, 8);
		hash = hash_word(word, hash);
	}
	return hash;
}

/* Keep only members that never change. Links and marks of the collector, the chains of traces
 * (some builds lack such fields) and the number of side traces change. */
void trace_clear_volatile(const struct luastate_layout *layout, uint8_t *header)
{
	const struct {
		int32_t at, len;
	} kept[] = {
		{ layout->GCtrace_nsnap, 2 },
		{ layout->GCtrace_nins, 4 },
		{ layout->GCtrace_ir, 8 },
		{ layout->GCtrace_nk, 4 },
		{ layout->GCtrace_nsnapmap, 4 },
		{ layout->GCtrace_snap, 8 },
		{ layout->GCtrace_snapmap, 8 },
		{ layout->GCtrace_startpt, layout->ref_size },
		{ layout->GCtrace_startpc, layout->ref_size },
		{ layout->GCtrace_startins, 4 },
		{ layout->GCtrace_szmcode, 4 },
		{ layout->GCtrace_mcode, 8 },
		{ layout->GCtrace_mcloop, 4 },
		{ layout->GCtrace_spadjust, 2 },
		{ layout->GCtrace_traceno, 2 },
		{ layout->GCtrace_root, 2 },
		{ layout->GCtrace_linktype, 1 },
		{ layout->GCobj_gct, 1 },
	};
	uint8_t whole[STATE_OBJECT_MAX];

	memcpy(whole, header, (size_t)layout->GCtrace_sizeof);
	memset(header, 0, (size_t)layout->GCtrace_sizeof);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i].at != LAYOUT_ABSENT)
			memcpy(header + kept[i].at, whole + kept[i].at, (size_t)kept[i].len);
}

static int read_header(const struct state_view *view, const struct attach_reader *reader,
		       uint32_t number, uint64_t *ret_address, uint8_t *ret_header,
		       struct failure *why)
{
	const struct luastate_layout *layout = view->layout;
	uint64_t J = view->G + (uint64_t)layout->global_State_to_J, table;
	uint32_t size;

	if (!state_has_compiler(layout))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, view->G, "find a trace");
	if (state_read(reader, J + (uint64_t)layout->jit_State_sizetrace, &size, 4, why) ||
	    state_read(reader, J + (uint64_t)layout->jit_State_trace, &table, 8, why))
		return -1;
	if (number == 0 || number >= size)
		return failure_set(why, FAILURE_INVALID, 0, 0, J, "find a trace");
	if (state_read_ref(layout, reader, table + (uint64_t)layout->ref_size * number, ret_address,
			   why) ||
	    state_read_object(layout, reader, *ret_address, state_gct(layout->tag_trace),
			      ret_header, (size_t)layout->GCtrace_sizeof, why))
		return -1;
	return 0;
}

/* Read the copy of the stop, or else the live process. */
static int read_header_of_stop(const struct state_view *view, uint32_t number,
			       uint64_t *ret_address, uint8_t *ret_header, struct failure *why)
{
	if (read_header(view, view->memory->stopped, number, ret_address, ret_header, why) == 0)
		return 0;
	return read_header(view, view->memory->any, number, ret_address, ret_header, why);
}

uint32_t trace_number_behind(const struct state_view *view, uint64_t pc)
{
	uint8_t code[HEAD_BYTES];
	uint32_t number;
	struct failure why;

	if (!STATE_TRACES_NOTED)
		return state_arch_trace_at(view->layout, view->G, view->memory->any, pc);
	/* The area may end earlier. */
	for (size_t len = sizeof(code); len >= 16; len /= 2)
		if (state_read(view->memory->any, pc, code, len, &why) == 0)
			return state_arch_head_end(view->layout, view->G, code, len, &number)
				       ? number
				       : 0;
	return 0;
}

bool trace_read_side(const struct state_view *view, uint32_t number, uint64_t mcode,
		     uint32_t parent, uint32_t *ret_exit)
{
	const struct luastate_layout *layout = view->layout;
	const struct attach_reader *reader = view->memory->any;
	uint8_t header[STATE_OBJECT_MAX];
	struct trace_block block;
	uint64_t address;
	uint16_t root, base[2]; /* IR_BASE: parent, exit */
	struct failure why;

	if (read_header(view, reader, number, &address, header, &why) != 0 ||
	    state_u64(header, layout->GCtrace_mcode) != mcode ||
	    !trace_block_of(layout, header, address, &block) ||
	    state_read(reader, block.start + 8 * (uint64_t)(TRACE_REF_BASE - block.nk), base,
		       sizeof(base), &why) != 0)
		return false;
	memcpy(&root, header + layout->GCtrace_root, 2);
	*ret_exit = base[1];
	return root && base[0] == parent;
}

/* ---- Into the cache --------------------------------------------------------------------- */

/** A trace during reading. */
struct reading {
	struct state_view view;
	uint32_t number;
	unsigned parents_left;
	uint64_t address;
	uint8_t header[STATE_OBJECT_MAX];   /* as it was during the stop */
	uint8_t identity[STATE_OBJECT_MAX]; /* the header without its volatile members */
	struct trace_block block;
	uint8_t *bytes; /* of the block */
	uint64_t content;
};

static const struct trace *get(struct reading *reading, struct failure *why);

/* A side trace's first instruction holds its parent and exit (IR_BASE). */
static void read_parent(const struct reading *reading, struct trace *trace)
{
	const uint8_t *base = trace_instruction(&reading->block, reading->bytes, TRACE_REF_BASE);
	uint16_t root, parent, exit;

	memcpy(&root, trace->header + trace->layout->GCtrace_root, 2);
	memcpy(&parent, base, 2);
	memcpy(&exit, base + 2, 2);
	trace->parent = root ? parent : 0;
	trace->exit = root ? exit : 0;
}

static int decode(const struct reading *reading, struct trace *trace, struct failure *why)
{
	struct trace_source source = { .view = reading->view,
				       .header = reading->header,
				       .bytes = reading->bytes,
				       .block = reading->block };

	read_parent(reading, trace);
	if (trace->parent && reading->parents_left) {
		struct reading parent = { .view = reading->view,
					  .number = trace->parent,
					  .parents_left = reading->parents_left - 1 };

		source.parent = get(&parent, why);
	}
	return trace_decode(&source, trace, why);
}

static struct trace *make(const struct reading *reading)
{
	const struct luastate_layout *layout = reading->view.layout;
	struct trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->key = (struct trace_key){ reading->view.G, reading->number };
	trace->layout = layout;
	trace->address = reading->address;
	memcpy(trace->header, reading->identity, (size_t)layout->GCtrace_sizeof);
	trace->content = reading->content;
	trace->mcode = state_u64(reading->header, layout->GCtrace_mcode);
	trace->szmcode = state_u32(reading->header, layout->GCtrace_szmcode);
	trace->startpt = state_ref(layout, reading->header, layout->GCtrace_startpt);
	trace->startpc = state_ref(layout, reading->header, layout->GCtrace_startpc);
	return trace;
}

/* Whether the trace did not change between the stop and the end of the read. */
static bool is_still(const struct reading *reading)
{
	const struct luastate_memory *memory = reading->view.memory;
	const struct attach_reader *reader = memory->later ? memory->later : memory->any;
	uint8_t header[STATE_OBJECT_MAX];
	uint64_t now;
	struct failure why;

	if (read_header(&reading->view, reader, reading->number, &now, header, &why) != 0 ||
	    now != reading->address)
		return false;
	trace_clear_volatile(reading->view.layout, header);
	return memcmp(header, reading->identity, (size_t)reading->view.layout->GCtrace_sizeof) == 0;
}

/* @return the trace; NULL when out of memory, and the trace is then freed. */
static const struct trace *keep(struct luastate *state, struct trace *trace)
{
	struct trace *old = find(state, trace->key.G, (uint32_t)trace->key.number);

	if (old)
		drop(state, old);
	trace->serial = state->serial;
	HASH_ADD(hh, state->traces, key, sizeof(trace->key), trace);
	if (!trace->hh.tbl) {
		free_trace(trace);
		return NULL;
	}
	state->trace_bytes += trace->bytes;
	trace_index_add(state, trace);
	return trace;
}

static const struct trace *decode_anew(const struct reading *reading, struct failure *why)
{
	struct trace *trace;

	failure_set(why, FAILURE_INVALID, 0, 0, reading->address, "read a trace");
	if (!make_room(reading->view.state) ||
	    !state_trace_fits(reading->view.layout, reading->view.memory->any, reading->header,
			      reading->address, reading->number))
		return NULL;
	trace = make(reading);
	if (!trace)
		return NULL;
	if (decode(reading, trace, why) != 0 || !is_still(reading)) {
		free_trace(trace);
		return NULL;
	}
	return keep(reading->view.state, trace);
}

static int read_identity(struct reading *reading, struct failure *why)
{
	const struct luastate_layout *layout = reading->view.layout;

	if (read_header_of_stop(&reading->view, reading->number, &reading->address, reading->header,
				why) != 0)
		return -1;
	memcpy(reading->identity, reading->header, (size_t)layout->GCtrace_sizeof);
	trace_clear_volatile(layout, reading->identity);
	return 0;
}

static bool is_same(const struct reading *reading, const struct trace *known)
{
	const struct luastate_layout *layout = reading->view.layout;

	return known && known->layout == layout && known->address == reading->address &&
	       memcmp(known->header, reading->identity, (size_t)layout->GCtrace_sizeof) == 0;
}

static const struct trace *get(struct reading *reading, struct failure *why)
{
	struct luastate *state = reading->view.state;
	const struct luastate_layout *layout = reading->view.layout;
	struct trace *known = find(state, reading->view.G, reading->number);
	const struct trace *trace = known;
	bool same;

	if (known && known->serial == state->serial)
		return known;
	if (read_identity(reading, why) != 0)
		return NULL;
	same = is_same(reading, known);
	/* Gone since the stop. During the stop it was the known one. */
	if (same && !is_still(reading))
		return known;
	if (!trace_block_of(layout, reading->header, reading->address, &reading->block)) {
		failure_set(why, FAILURE_INVALID, 0, 0, reading->address, "read a trace");
		return NULL;
	}
	if (!trace_charge(state, reading->block.len / CHARGED_BYTES)) {
		failure_set(why, FAILURE_LIMIT, 0, 0, reading->address, "read more traces");
		return NULL;
	}
	reading->bytes = trace_read_block(reading->view.memory->any, &reading->block, why);
	if (!reading->bytes)
		return NULL;
	reading->content = hash_block(layout, reading->bytes, &reading->block);
	if (same && known->content == reading->content && !state->thorough)
		known->serial = state->serial;
	else
		trace = decode_anew(reading, why);
	free(reading->bytes);
	return trace;
}

const struct trace *trace_get(const struct state_view *view, uint32_t number, struct failure *why)
{
	struct reading reading = { .view = *view, .number = number, .parents_left = PARENTS_MAX };

	return get(&reading, why);
}

/* ---- Code ------------------------------------------------------------------------------- */

/* On AArch64, exit stubs follow a trace's code. */
static bool has_code_at(const struct state_view *view, uint32_t number, uint64_t pc)
{
	struct failure why;
	const struct trace *trace = number ? trace_get(view, number, &why) : NULL;
	uint64_t stubs = trace && !STATE_TRACES_NOTED
				 ? STATE_MCODE_UNIT * (trace->snapshot_count + STUBS_BEFORE)
				 : 0;

	return trace && pc - trace->mcode < trace->szmcode + stubs;
}

/* Checks the areas of machine code. If they are unknown, checks the exits or the code itself. */
static bool is_compiled_by(struct luastate *state, const struct luastate_vm *vm,
			   const struct luastate_memory *memory, uint64_t pc)
{
	const struct state_view view = state_view_of(state, memory, vm);
	enum areas_answer answer = areas_have(state, vm, memory->any, pc);
	struct state_stubs stubs;

	if (answer != AREAS_UNKNOWN)
		return answer == AREAS_HAVE;
	return (state_arch_read_stubs(vm->layout, memory->any, vm->G, 0, 0, &stubs) &&
		state_arch_in_stubs(&stubs, pc)) ||
	       has_code_at(&view, state_arch_trace_at(vm->layout, vm->G, memory->any, pc), pc) ||
	       has_code_at(&view, trace_number_behind(&view, pc), pc);
}

/* Checks the known traces. The memory of a freed trace may be another compiler's now. */
static const struct luastate_vm *known_by(struct luastate *state,
					  const struct luastate_memory *memory, uint64_t pc)
{
	uint64_t G = trace_vm_at(state, pc);
	const struct luastate_vm *vm = G ? state_vm_by_G(state, G) : NULL;

	return vm && areas_have(state, vm, memory->any, pc) != AREAS_LACK ? vm : NULL;
}

const struct luastate_vm *luastate_compiled_by(struct luastate *state,
					       const struct luastate_memory *memory, uint64_t pc)
{
	const struct luastate_vm *vm = known_by(state, memory, pc);

	if (vm)
		return vm;
	for (size_t i = 0; i < state->vm_count && state->code_work < CODE_WORK_MAX; i++)
		if (++state->code_work && is_compiled_by(state, &state->vms[i], memory, pc))
			return &state->vms[i];
	return NULL;
}
