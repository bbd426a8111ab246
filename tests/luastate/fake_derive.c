/* SPDX-License-Identifier: MIT */
#include "fake_derive.h"
#include "luastate/layout/fields.h"

enum {
	BUCKETS = 256,
	STRINGS = 64,
	FRAMES = 3, /* their lines end before their last one, as few functions do */
};

void fake_derive_reading(const struct luastate_layout *layout, struct derive_reading *ret_reading)
{
	static const char *const shown[] = {
		"lua_State.glref",    "lua_State.base",
		"lua_State.top",      "lua_State.maxstack",
		"lua_State.stack",    "lua_State.cframe",
		"lua_State.status",   "global_State.vmstate",
		"global_State.cur_L", "global_State.jit_base",
		"global_State.to_J",  "global_State.to_dispatch",
		"jit_State.L",	      "GCtrace.mcode",
		"GCtrace.traceno",    "GCtrace.link",
		"vmst.interp",	      "vmst.cfunc",
		"vmst.exit",	      "global_State.ctype_state",
	};

	for (size_t i = 0; i < state_field_count; i++)
		for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++)
			if (strcmp(state_fields[i].name, shown[k]) == 0)
				derive_vote(&ret_reading->votes[i], state_field_value(layout, i));
	derive_vote(&ret_reading->votes[DERIVE_FIELD(jit_State_trace)],
		    layout->jit_State_trace + layout->global_State_to_J);
	derive_vote(&ret_reading->votes[DERIVE_FIELD(jit_State_parent)],
		    layout->jit_State_parent + layout->global_State_to_J);
	derive_vote(&ret_reading->votes[DERIVE_FIELD(jit_State_exitno)],
		    layout->jit_State_exitno + layout->global_State_to_J);
	derive_vote(&ret_reading->k_before_end, layout->GCproto_k - layout->GCproto_sizeof);
	derive_vote(&ret_reading->numparams_before_end,
		    layout->GCproto_numparams - layout->GCproto_sizeof);
	derive_vote(&ret_reading->gc_total, layout->global_State_gc_total);
	derive_vote(&ret_reading->gc_grayagain,
		    layout->global_State_gc_root + 3 * layout->ref_size);
	ret_reading->gc64 = layout->gc64;
	ret_reading->has_compiler = true;
}

/* A string table of which some buckets have a string. */
static void make_strings(struct fake_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t table = fake_alloc(vm, (size_t)layout->ref_size * BUCKETS);

	for (uint32_t i = 0; i < STRINGS; i++) {
		uint64_t string = fake_string(vm, "text");

		fake_put_u32(vm, fake_member(string, layout->GCstr_hash), 3 * i);
		fake_put_ref(vm, table + (uint64_t)layout->ref_size * 3 * i, string);
	}
	fake_put_ref(vm, fake_member(vm->G, layout->global_State_str_mask - layout->ref_size),
		     table);
}

/* A function with all that one can have: a number, an upvalue and a variable, with their names. */
static uint64_t make_proto(struct fake_vm *vm, const char *chunkname, int32_t firstline)
{
	const uint32_t bc[] = { fake_funcf(vm, 5), fake_ad(FAKE_GGET, 2, 0),
				fake_abc(FAKE_CALL, 2, 1, 1), fake_ad(FAKE_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1, 2, 3 };
	const uint64_t kgc[] = { fake_string(vm, "callee") };

	return fake_proto(vm, &(struct fake_proto){ .chunkname = chunkname,
						    .firstline = firstline,
						    .numline = 7,
						    .bc = bc,
						    .sizebc = 4,
						    .lines = lines,
						    .varinfo = "n\0\1\2",
						    .varinfo_len = 5,
						    .uvinfo = "outer",
						    .uvinfo_len = 6,
						    .sizeuv = 1,
						    .kgc = kgc,
						    .sizekgc = 1,
						    .sizekn = 2 });
}

/* Functions that call each other on the main coroutine's stack. */
static void make_frames(struct fake_vm *vm)
{
	uint64_t base = 0, proto = 0;

	for (int32_t i = 0; i < FRAMES; i++) {
		uint64_t ret = proto ? fake_pc(vm, proto, 3) : 0;

		proto = make_proto(vm, i % 2 ? "@one.lua" : "@two.lua", 1 + 10 * i);
		base = ret ? fake_call_lua(vm, vm->main, fake_lua_function(vm, proto), ret)
			   : fake_call(vm, vm->main, fake_lua_function(vm, proto), 1, 1);
	}
	fake_L_set(vm, vm->main, vm->layout->lua_State_top, base + 64);
}

void fake_derive_objects(struct fake_vm *vm)
{
	make_strings(vm);
	make_frames(vm);
}
