/* SPDX-License-Identifier: MIT */
#include "hostile_derive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_vm.h"
#include "luastate/derive.h"

enum {
	VMS = 8,
	LAYOUT_STEP = 11,
	/* A search reads some thousand times for each of the rows that it tries. */
	READS_MAX = 2000000,
	CHANGES_MAX = 64,
	BUCKETS = 256,
	STRINGS = 64,
	FRAMES = 3, /* their lines end before their last one, as few functions do */
};

/** A VM with functions, coroutines and traces, and what its code would show. */
struct scene {
	struct fake_vm *vm;
	struct luastate *state;
	struct derive_reading reading;
};

/* A byte, and what was there before. */
struct change {
	uint64_t address;
	uint8_t before[8];
};

static void expect(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "hostile_derive: %s\n", what);
	abort();
}

/* Votes for what the layout has, where code shows it: nothing that live objects alone do. */
static void read_layout(const struct luastate_layout *layout, struct derive_reading *ret_reading)
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
		"vmst.exit",
	};

	for (size_t i = 0; i < state_field_count; i++)
		for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++)
			if (strcmp(state_fields[i].name, shown[k]) == 0)
				derive_vote(&ret_reading->votes[i], derive_value(layout, i));
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

/* Functions that call each other on the main coroutine's stack. */
static void make_frames(struct fake_vm *vm)
{
	uint64_t base = 0, proto = 0;

	for (int32_t i = 0; i < FRAMES; i++) {
		uint64_t ret = proto ? fake_pc(vm, proto, 3) : 0;

		proto = fake_caller(vm, i % 2 ? "@one.lua" : "@two.lua", 1 + 10 * i, "callee");
		base = ret ? fake_call_lua(vm, vm->main, fake_lua_function(vm, proto), ret)
			   : fake_call(vm, vm->main, fake_lua_function(vm, proto), 1, 1);
	}
	fake_L_set(vm, vm->main, vm->layout->lua_State_top, base + 64);
}

static struct scene *get_scene(uint8_t number)
{
	static struct scene scenes[VMS];
	struct scene *scene = &scenes[number % VMS];

	if (scene->vm)
		return scene;
	scene->vm = fake_vm_create(&(struct fake_options){
		.layout = fake_layout_at((unsigned)(number % VMS) * LAYOUT_STEP) });
	expect(scene->vm != NULL, "no memory");
	make_strings(scene->vm);
	make_frames(scene->vm);
	scene->state = fake_vm_open(scene->vm, false);
	expect(scene->state != NULL, "no memory");
	read_layout(scene->vm->layout, &scene->reading);
	return scene;
}

/* Each change has four bytes: where in the VM's block, and what is there. */
static size_t apply(struct scene *scene, const uint8_t *data, size_t size,
		    struct change ret_changes[CHANGES_MAX])
{
	struct fake_vm *vm = scene->vm;
	size_t count = 0;

	for (; size >= 4 && count < CHANGES_MAX; data += 4, size -= 4) {
		uint64_t at = (uint64_t)(data[0] | data[1] << 8) % (fake_vm_bytes(vm->layout) - 8) /
			      8 * 8;
		uint8_t *bytes = fake_at(vm, vm->main + at, 8);
		uint64_t value = (uint64_t)data[2] << 3;

		ret_changes[count].address = vm->main + at;
		memcpy(ret_changes[count++].before, bytes, 8);
		/* A small number, an address of the VM, or one beside what was there. */
		if (data[3] % 3 == 0)
			value += data[3];
		else if (data[3] % 3 == 1)
			value += vm->main;
		else
			value += state_u64(bytes, 0);
		memcpy(bytes, &value, 8);
	}
	return count;
}

int hostile_derive(const uint8_t *data, size_t size)
{
	struct change changes[CHANGES_MAX];
	struct derive_reading reading;
	struct derive *derive;
	struct scene *scene;
	size_t count;
	bool found;

	if (size < 6)
		return 0;
	scene = get_scene(data[0]);
	reading = scene->reading;
	/* Some votes are for other values. */
	for (size_t i = 1; i < 5; i += 2)
		if (data[i] < state_field_count)
			reading.votes[data[i]].value[0] += 4 * (int8_t)data[i + 1];
	count = apply(scene, data + 5, size - 5, changes);
	derive = calloc(1, sizeof(*derive));
	expect(derive != NULL, "no memory");
	derive->state = scene->state;
	derive->interpreter = &scene->state->interpreters[0];
	derive->reader = &scene->vm->reader;
	derive->reading = &reading;
	scene->vm->reads = 0;
	found = derive_layout(derive, scene->vm->main);
	expect(scene->vm->reads < READS_MAX, "too many reads");
	expect(!found || state_layout_is_bounded(&derive->layout), "a layout without bounds");
	free(derive);
	while (count-- > 0)
		memcpy(fake_at(scene->vm, changes[count].address, 8), changes[count].before, 8);
	return found;
}
