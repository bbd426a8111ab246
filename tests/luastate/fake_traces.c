/* SPDX-License-Identifier: MIT */
#include "fake_traces.h"
#include "luastate/jit_report.h"

#include <stdlib.h>

enum {
	OP_FNEW = 51,
	OP_GSET = 55,
	OP_LOOP = 85,
	OP_JMP = 88,
};

/** What tells one trace from another. */
struct spec {
	uint32_t number, startins, linktype, link, root, children, parent, exit;
	unsigned index; /* of the first instruction in top */
};

static uint64_t compiler(const struct fake_vm *vm, int32_t member)
{
	return fake_member(fake_member(vm->G, vm->layout->global_State_to_J), member);
}

/* ---- Functions -------------------------------------------------------------------------- */

/* A function that makes a closure of another and puts it into a global variable. */
static uint64_t make_parent(struct fake_vm *vm, uint64_t child, const char *name)
{
	const uint32_t bc[] = { fake_funcf(vm, 5), fake_ad(OP_FNEW, 2, 0), fake_ad(OP_GSET, 2, 1),
				fake_ad(FAKE_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1, 2, 3 };
	const uint64_t kgc[] = { child, fake_string(vm, name) };
	uint64_t parent = fake_proto(vm, &(struct fake_proto){ .chunkname = "@parent.lua",
							       .firstline = 38,
							       .numline = 10,
							       .bc = bc,
							       .sizebc = 4,
							       .lines = lines,
							       .kgc = kgc,
							       .sizekgc = 2 });

	fake_put_u8(vm, fake_member(parent, vm->layout->GCproto_flags), 1);
	/* Its child is of the same chunk. */
	fake_put_ref(vm, fake_member(child, vm->layout->GCproto_chunkname),
		     fake_get_ref(vm, fake_member(parent, vm->layout->GCproto_chunkname)));
	return parent;
}

/* The list of all objects: these, and the main coroutine at its end. */
static void link_objects(struct fake_vm *vm, const struct fake_traces *traces)
{
	const uint64_t objects[] = { traces->parent, traces->top,  traces->mid,
				     traces->leaf,   traces->used, vm->main };

	fake_put_ref(vm, fake_member(vm->G, vm->layout->global_State_gc_root), objects[0]);
	for (size_t i = 0; i + 1 < sizeof(objects) / sizeof(objects[0]); i++)
		fake_put_ref(vm, objects[i], objects[i + 1]);
}

/* ---- Traces ----------------------------------------------------------------------------- */

uint64_t fake_trace_ir(const struct fake_vm *vm, uint64_t trace, uint32_t ref)
{
	uint64_t header = ((uint64_t)vm->layout->GCtrace_sizeof + 7) & ~(uint64_t)7;
	uint32_t nk = fake_get_u32(vm, fake_member(trace, vm->layout->GCtrace_nk));

	return trace + header + 8 * (uint64_t)(ref - nk);
}

uint64_t fake_trace_snap(const struct fake_vm *vm, uint64_t trace, uint32_t index)
{
	return fake_get_u64(vm, fake_member(trace, vm->layout->GCtrace_snap)) +
	       index * (uint64_t)vm->layout->SnapShot_sizeof;
}

uint64_t fake_trace_map(const struct fake_vm *vm, uint64_t trace, uint32_t index)
{
	return fake_get_u64(vm, fake_member(trace, vm->layout->GCtrace_snapmap)) +
	       4 * (uint64_t)index;
}

/* Constants, and snapshots of which the one in the middle is inside a call of mid. */
static void put_contents(struct fake_vm *vm, const struct fake_traces *traces,
			 struct fake_tracing *tracing)
{
	fake_snap_begin(vm, tracing, 20);
	fake_snap_end(vm, tracing, fake_pc(vm, traces->top, 1));
	fake_snap_begin(vm, tracing, 30);
	fake_snap_call(vm, tracing, fake_lua_function(vm, traces->mid),
		       fake_pc(vm, traces->top, 3));
	fake_snap_end(vm, tracing, fake_pc(vm, traces->mid, 1));
	fake_snap_begin(vm, tracing, 40);
	fake_snap_end(vm, tracing, fake_pc(vm, traces->top, 3));
	fake_tracing_object(vm, tracing, traces->leaf, FAKE_IRT_PROTO);
	fake_tracing_object(vm, tracing, fake_lua_function(vm, traces->used), FAKE_IRT_FUNC);
}

static uint64_t make_trace(struct fake_vm *vm, const struct fake_traces *traces,
			   const struct spec *spec)
{
	static const uint8_t counts[FAKE_EXITS] = { 3, 7, 255 };
	struct fake_tracing *tracing = malloc(sizeof(*tracing));
	uint64_t trace;

	MUST(tracing);
	fake_tracing_init(tracing, spec->number, traces->top, spec->index, 0x10000 * spec->number);
	tracing->szmcode = 100 * spec->number;
	tracing->mcloop = 40;
	tracing->root = spec->root;
	tracing->parent = spec->parent;
	tracing->exit = spec->exit;
	tracing->startins = spec->startins;
	tracing->linktype = spec->linktype;
	tracing->link = spec->link;
	tracing->children = spec->children;
	put_contents(vm, traces, tracing);
	trace = fake_tracing_put(vm, tracing);
	free(tracing);
	for (uint32_t i = 0; i < FAKE_EXITS; i++)
		fake_put_u8(vm,
			    fake_member(fake_trace_snap(vm, trace, i), vm->layout->SnapShot_count),
			    counts[i]);
	return trace;
}

static void put_settings(struct fake_vm *vm, struct fake_traces *traces)
{
	const struct luastate_layout *layout = vm->layout;

	traces->area = fake_alloc(vm, 64);
	fake_put_u32(vm, compiler(vm, layout->jit_State_flags), 0x3ff0001);
	for (unsigned i = 0; i < LUASTATE_PARAMS; i++)
		fake_put_u32(vm, compiler(vm, layout->jit_State_param) + 4 * i,
			     FAKE_TRACE_PARAM + i);
	fake_put_u64(vm, compiler(vm, layout->jit_State_mcarea), traces->area);
	fake_put_u64(vm, compiler(vm, layout->jit_State_mctop), traces->area + 60);
	fake_put_u64(vm, compiler(vm, layout->jit_State_mcbot), traces->area + 20);
	fake_put_u64(vm, compiler(vm, layout->jit_State_szallmcarea), 64);
}

void fake_penalty(struct fake_vm *vm, unsigned slot, uint64_t pc, unsigned value, unsigned reason)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t at = compiler(vm, layout->jit_State_penalty) +
		      slot * (uint64_t)layout->HotPenalty_sizeof;

	fake_put_ref(vm, at, pc);
	fake_put_u16(vm, fake_member(at, layout->HotPenalty_val), value);
	fake_put_u16(vm, fake_member(at, layout->HotPenalty_reason), reason);
}

void fake_traces_make(struct fake_vm *vm, struct fake_traces *ret_traces)
{
	const struct spec specs[FAKE_TRACES] = {
		{ .number = 1,
		  .startins = OP_LOOP,
		  .linktype = 2,
		  .link = 1,
		  .children = 1,
		  .index = 2 },
		{ .number = 2,
		  .startins = OP_JMP,
		  .linktype = 1,
		  .link = 1,
		  .root = 1,
		  .parent = 1,
		  .exit = 2,
		  .index = 1 },
		{ .number = 3, .startins = FAKE_CALL, .linktype = 7, .exit = 1, .index = 3 },
	};
	const struct luastate_layout *layout = vm->layout;

	ret_traces->top = fake_caller(vm, "@top.lua", 10, "mid");
	ret_traces->mid = fake_caller(vm, "@mid.lua", 20, "leaf");
	ret_traces->leaf = fake_caller(vm, "@leaf.lua", 30, "nothing");
	ret_traces->used = fake_caller(vm, "@used.lua", 40, "nothing");
	ret_traces->parent = make_parent(vm, ret_traces->used, "maker");
	fake_trace_table(vm, FAKE_TRACE_SLOTS);
	ret_traces->table = fake_get_u64(vm, compiler(vm, layout->jit_State_trace));
	link_objects(vm, ret_traces);
	for (size_t i = 0; i < FAKE_TRACES; i++)
		ret_traces->traces[i + 1] = make_trace(vm, ret_traces, &specs[i]);
	fake_put_u32(vm, compiler(vm, layout->jit_State_freetrace), FAKE_TRACES + 1);
	put_settings(vm, ret_traces);
}
