/* SPDX-License-Identifier: MIT */
#include "luastate/arch/arch.h"
#include "stage.h"

#include <stdlib.h>

#include "fake_traces.h"
#include "fake_values.h"

enum {
	NATIVE_BYTES = 2048,
	SLOTS = 64,
	MODULES = 8,
	/* lua_State.status is behind the type; see luastate/values/coroutines.c. */
	STATUS_FROM_TYPE = 2,
	YIELD = 1,
	FAILED = 2,
	/* GCobj.gct of what is on the list of all objects. Source: lj_obj.h, LJ_TUPVAL. */
	GCT_LISTED = 5,
};

/* ---- Situations ------------------------------------------------------------------------- */

static const struct luastate_layout *layout_at(unsigned number)
{
	for (size_t i = 0; i < luastate_layout_count; i++)
		if (strcmp(luastate_layouts[i].arch, state_arch_name) == 0 && number-- == 0)
			return &luastate_layouts[i];
	abort();
}

unsigned stage_layout_count(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < luastate_layout_count; i++)
		count += strcmp(luastate_layouts[i].arch, state_arch_name) == 0;
	return count;
}

static void make_scene(struct stage *stage, const struct fake_options *options, unsigned number)
{
	struct scene scene;

	scene_init_layout(&scene, options->layout, number);
	stage->vm = scene.vm;
	stage->regs = scene.regs;
	stage->vm_frame_count = scene.vm_frame_count;
	memcpy(stage->vm_frames, scene.vm_frames, sizeof(stage->vm_frames));
}

static void make_play(struct stage *stage, const struct fake_options *options, enum play_leaf leaf)
{
	struct luastate *state;
	struct play play;

	play_init(&play, options, leaf);
	state = fake_vm_open(play.vm, true);
	MUST(play.vm_frame_count <= SCENE_CFRAMES_MAX &&
	     play_find_cframes(&play, state,
			       &(struct luastate_memory){ .stopped = &play.vm->reader,
							  .any = &play.vm->reader },
			       stage->vm_frames));
	luastate_destroy(state);
	stage->vm = play.vm;
	stage->regs = play.regs;
	stage->vm_frame_count = play.vm_frame_count;
}

static void put_cframe(struct stage *stage, uint64_t L)
{
	MUST(stage->vm_frame_count < SCENE_CFRAMES_MAX);
	memmove(stage->vm_frames + 1, stage->vm_frames,
		stage->vm_frame_count * sizeof(stage->vm_frames[0]));
	stage->vm_frame_count++;
	stage->vm_frames[0] =
		(struct luastate_vm_frame){ .address = fake_cframe(stage->vm, L, 1, 0), .L = L };
	fake_push(stage->vm, 0);
}

/* The thread is in VM code, in the newest frame of a coroutine. */
static void stand(struct stage *stage, uint64_t L, uint64_t pc)
{
	struct fake_vm *vm = stage->vm;

	stage->regs.syscall = -1;
	stage->regs.r[ATTACH_REG_PC] = vm->code + FAKE_AT_PLAIN;
	stage->regs.r[ATTACH_REG_SP] = stage->vm_frames[0].address;
	stage->regs.r[STATE_REG_BASE] = fake_L_get(vm, L, vm->layout->lua_State_base);
	stage->regs.r[STATE_REG_PC] = pc;
	stage->vm_frames[0].leaf = true;
	stage->vm_frames[0].frame = stage->regs;
}

static void make_traces(struct stage *stage)
{
	struct fake_vm *vm = stage->vm;
	struct fake_traces traces;

	fake_traces_make(vm, &traces);
	fake_penalty(vm, 1, fake_pc(vm, traces.mid, 1), 72, 7);
	put_cframe(stage, vm->main);
	fake_call(vm, vm->main, fake_lua_function(vm, traces.top), 0, FAKE_LINK_C);
	stand(stage, vm->main, fake_pc(vm, traces.top, 2));
}

static uint64_t add_coroutine(struct fake_vm *vm, uint8_t status)
{
	uint64_t L = fake_coroutine(vm, 24);

	fake_put_u8(vm, L + (uint64_t)vm->layout->GCobj_gct + STATUS_FROM_TYPE, status);
	return L;
}

static void make_coroutines(struct stage *stage)
{
	struct fake_vm *vm = stage->vm;
	uint64_t main_proto = fake_caller(vm, "@main.lua", 0, "work");
	uint64_t work_proto = fake_caller(vm, "@main.lua", 10, "yield");
	uint64_t work = fake_lua_function(vm, work_proto), ret = fake_pc(vm, work_proto, 3);
	uint64_t yield = fake_asm_function(vm, 20, 7), fresh, L = 0;

	put_cframe(stage, vm->main);
	fake_call(vm, vm->main, fake_lua_function(vm, main_proto), 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, yield, fake_pc(vm, main_proto, 3));
	for (unsigned i = 0; i < 4; i++) {
		L = add_coroutine(vm, i == 3 ? FAILED : YIELD);
		fake_call(vm, L, work, 0, FAKE_LINK_C);
		fake_call_lua(vm, L, yield, ret);
	}
	add_coroutine(vm, 0);
	fresh = add_coroutine(vm, 0);
	fake_put_u64(vm, fake_L_get(vm, fresh, vm->layout->lua_State_base),
		     fake_tag(vm, vm->layout->tag_func, work));
	fake_L_set(vm, fresh, vm->layout->lua_State_top,
		   fake_L_get(vm, fresh, vm->layout->lua_State_base) + 8);
	L = add_coroutine(vm, 0);
	put_cframe(stage, L);
	fake_call(vm, L, work, 0, FAKE_LINK_CP);
	fake_put_ref(vm, fake_member(vm->G, vm->layout->global_State_cur_L), L);
	stand(stage, L, fake_pc(vm, work_proto, 2));
}

/* CTYPEINFO(): kinds are in the upper four bits, flags below, and type ids. Source: lj_ctype.h. */
static uint64_t make_cdata(struct fake_vm *vm)
{
	static const struct fake_ctype types[] = {
		{ 0, 0, NULL },
		{ UINT32_C(0x00000000), 4, "int" },
		{ UINT32_C(0x20030000) | 1, 8, NULL }, /* pointer to it */
		{ UINT32_C(0x10000000), 16, "pair" },
		{ UINT32_C(0x30000000) | 2, 32, NULL }, /* array of these */
	};
	const uint64_t contents = 0x1234;

	fake_ctypes(vm, types, sizeof(types) / sizeof(types[0]));
	return fake_cdata(vm, 4, &contents, sizeof(contents));
}

/* A table that refers to itself, and to objects of most types. */
static uint64_t make_table(struct fake_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t meta = fake_table(vm, 2), inner = fake_table(vm, 4), table;
	uint64_t values[6];

	fake_table_set(vm, meta, "__name", fake_tag(vm, layout->tag_str, fake_string(vm, "kind")));
	fake_table_set(vm, inner, "number", fake_number(1.5));
	fake_table_set(vm, inner, "meta", fake_tag(vm, layout->tag_tab, meta));
	values[0] = UINT64_MAX;
	values[1] = fake_tag(vm, layout->tag_tab, inner);
	values[2] = fake_tag(vm, layout->tag_udata, fake_userdata(vm, 24, meta));
	values[3] = fake_tag(vm, layout->tag_cdata, make_cdata(vm));
	values[4] = fake_tag(vm, layout->tag_thread, vm->main);
	values[5] = fake_tag(vm, layout->tag_func, fake_c_function(vm, vm->host + FAKE_HOST_LEAF));
	table = fake_array(vm, 6, values);
	fake_table_set(vm, inner, "outer", fake_tag(vm, layout->tag_tab, table));
	return table;
}

/* Locals: a lives everywhere, b from instruction 1 on, the loop's control in 2. */
#define VARINFO "first\0\0\4second\0\0\4a\0\1\2b\0\1\1\6\0\1"
#define UVINFO	"one\0two\0three"

static uint64_t make_proto(struct fake_vm *vm)
{
	const uint32_t bc[] = { fake_funcf(vm, 8), fake_ad(FAKE_GGET, 6, 0),
				fake_abc(FAKE_CALL, 6, 1, 1), fake_ad(FAKE_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1, 2, 3 };
	const uint64_t kgc[] = { fake_string(vm, "callee") };
	uint64_t proto = fake_proto(vm, &(struct fake_proto){ .chunkname = "@actor.lua",
							      .firstline = 10,
							      .numline = 4,
							      .bc = bc,
							      .sizebc = 4,
							      .lines = lines,
							      .varinfo = VARINFO,
							      .varinfo_len = sizeof(VARINFO),
							      .uvinfo = UVINFO,
							      .uvinfo_len = sizeof(UVINFO),
							      .sizeuv = 3,
							      .kgc = kgc,
							      .sizekgc = 1 });

	fake_put_u8(vm, fake_member(proto, vm->layout->GCproto_numparams), 2);
	return proto;
}

static void make_values(struct stage *stage)
{
	struct fake_vm *vm = stage->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t proto = make_proto(vm), table = fake_tag(vm, layout->tag_tab, make_table(vm));
	uint64_t text = fake_tag(vm, layout->tag_str, fake_string(vm, "some text")), function, base;
	const uint64_t upvalues[] = {
		fake_closed(vm, table), fake_closed(vm, text),
		fake_open(vm, fake_L_get(vm, vm->main, layout->lua_State_base) + 16)
	};

	function = fake_closure(vm, proto, 3, upvalues);
	put_cframe(stage, vm->main);
	fake_call(vm, vm->main, function, 0, FAKE_LINK_C);
	base = fake_call(vm, vm->main, function, 4, FAKE_LINK_VARG);
	for (unsigned i = 0; i < 8; i++)
		fake_put_u64(vm, base + 8 * (uint64_t)i,
			     i % 3 == 0	  ? table
			     : i % 3 == 1 ? text
					  : fake_number(i));
	stand(stage, vm->main, fake_pc(vm, proto, 3));
}

static void make(struct stage *stage, const struct fake_options *options, unsigned number)
{
	if (number < STAGE_PLAY) {
		make_scene(stage, options, number - STAGE_SCENE);
		return;
	}
	if (number < STAGE_TRACES) {
		make_play(stage, options, number - STAGE_PLAY);
		return;
	}
	stage->vm = fake_vm_create(options);
	(number == STAGE_TRACES	      ? make_traces
	 : number == STAGE_COROUTINES ? make_coroutines
				      : make_values)(stage);
}

/* ---- Objects ---------------------------------------------------------------------------- */

static unsigned gct_of(const struct fake_vm *vm, uint64_t object)
{
	return *fake_at(vm, fake_member(object, vm->layout->GCobj_gct), 1);
}

/* Newest first, and the main coroutine at the end. */
static void link_objects(struct fake_vm *vm)
{
	uint64_t newest = vm->main;

	for (size_t i = 0; i < vm->block_count; i++) {
		const struct fake_block *block = &vm->blocks[i];
		unsigned gct = block->is_struct ? gct_of(vm, block->address) : 0;

		if (block->address == vm->main || gct < GCT_LISTED ||
		    gct == (unsigned)state_gct(vm->layout->tag_udata))
			continue;
		fake_put_ref(vm, block->address, newest);
		newest = block->address;
	}
	fake_put_ref(vm, fake_member(vm->G, vm->layout->global_State_gc_root), newest);
}

static void add_location(struct stage_location *locations, size_t *count,
			 struct stage_location location)
{
	MUST(*count < STAGE_PLACES_MAX);
	locations[(*count)++] = location;
}

/* The members of a struct, by the names in layouts.table that begin so. */
static void add_members(struct stage *stage, uint64_t object, const char *structure)
{
	const struct luastate_layout *layout = stage->vm->layout;

	for (size_t i = 0; i < state_field_count; i++) {
		const struct state_field *field = &state_fields[i];
		const char *member = strchr(field->name, '.');
		int32_t offset;

		memcpy(&offset, (const char *)layout + field->offset, sizeof(offset));
		if (strncmp(field->name, structure, strlen(structure)) != 0 || !member ||
		    strcmp(member, ".sizeof") == 0 || strcmp(member, ".header") == 0 ||
		    strncmp(member, ".to_", 4) == 0 || offset == LAYOUT_ABSENT)
			continue;
		add_location(stage->members, &stage->member_count,
			     (struct stage_location){ .address = fake_member(object, offset) });
	}
}

static void add_elements(struct stage *stage, uint64_t first, size_t count, int32_t size,
			 const char *structure)
{
	for (size_t i = 0; i < count; i++)
		add_members(stage, first + i * (uint64_t)size, structure);
}

static void add_object(struct stage *stage, const struct fake_block *block)
{
	static const struct {
		const char *structure;
		size_t tag; /* where the layout has it */
	} kinds[] = {
		{ "GCstr.", offsetof(struct luastate_layout, tag_str) },
		{ "GCupval.", offsetof(struct luastate_layout, tag_upval) },
		{ "lua_State.", offsetof(struct luastate_layout, tag_thread) },
		{ "GCproto.", offsetof(struct luastate_layout, tag_proto) },
		{ "GCfunc", offsetof(struct luastate_layout, tag_func) },
		{ "GCtrace.", offsetof(struct luastate_layout, tag_trace) },
		{ "GCcdata.", offsetof(struct luastate_layout, tag_cdata) },
		{ "GCtab.", offsetof(struct luastate_layout, tag_tab) },
		{ "GCudata.", offsetof(struct luastate_layout, tag_udata) },
	};
	const struct luastate_layout *layout = stage->vm->layout;
	unsigned gct = gct_of(stage->vm, block->address);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int32_t tag;

		memcpy(&tag, (const char *)layout + kinds[i].tag, sizeof(tag));
		if (gct == (unsigned)state_gct(tag))
			add_members(stage, block->address, kinds[i].structure);
	}
	add_location(
		stage->members, &stage->member_count,
		(struct stage_location){ .address = fake_member(block->address, layout->GCobj_gct),
					 .width = 1 });
	if (gct == (unsigned)state_gct(layout->tag_trace))
		add_elements(
			stage,
			fake_get_u64(stage->vm, fake_member(block->address, layout->GCtrace_snap)),
			2, layout->SnapShot_sizeof, "SnapShot.");
	else if (gct == (unsigned)state_gct(layout->tag_tab))
		add_elements(
			stage,
			fake_get_ref(stage->vm, fake_member(block->address, layout->GCtab_node)), 1,
			layout->Node_sizeof, "Node.");
}

static void find_members(struct stage *stage)
{
	struct fake_vm *vm = stage->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = fake_member(vm->G, layout->global_State_to_J);

	for (size_t i = 0; i < vm->block_count; i++)
		if (vm->blocks[i].is_struct)
			add_object(stage, &vm->blocks[i]);
	add_members(stage, vm->G, "global_State.");
	add_members(stage, J, "jit_State.");
	add_elements(stage, fake_member(J, layout->jit_State_penalty), 2, layout->HotPenalty_sizeof,
		     "HotPenalty.");
	for (size_t i = 0; i < stage->vm_frame_count; i++)
		add_members(stage, stage->vm_frames[i].address, "cframe.");
}

/* ---- Links ------------------------------------------------------------------------------ */

static bool leads_to(const struct fake_vm *vm, uint64_t value)
{
	size_t at = fake_offset(vm, value);

	return at < FAKE_BYTES && vm->known[at];
}

/* All words that lead into the VM's memory, or that hold an object. */
static void find_links(struct stage *stage, const struct fake_block *block)
{
	const struct fake_vm *vm = stage->vm;
	const struct luastate_layout *layout = vm->layout;
	size_t step = (size_t)layout->ref_size;

	for (uint64_t at = block->address; at + 8 <= block->address + block->len; at += step) {
		uint64_t word = fake_get_u64(vm, at), ref = fake_get_ref(vm, at);
		int32_t tag = state_tag(layout, word);
		struct stage_location location = { .address = at };

		if (leads_to(vm, ref))
			location.width = (uint8_t)step;
		else if (leads_to(vm, word))
			location.width = 8;
		else if (at % 8 == 0 && tag < 0 && leads_to(vm, state_object(layout, word)))
			location = (struct stage_location){ at, 8, true };
		if (location.width)
			add_location(stage->links, &stage->link_count, location);
	}
}

static void find_stacks(struct stage *stage)
{
	const struct fake_vm *vm = stage->vm;
	const struct luastate_layout *layout = vm->layout;

	for (size_t i = 0; i < vm->block_count; i++) {
		const struct fake_block *block = &vm->blocks[i];
		uint64_t word = block->len < 8 ? 0 : fake_get_u64(vm, block->address);

		/* The lowest slot holds the coroutine. */
		if (!block->is_struct && state_tag(layout, word) == layout->tag_thread &&
		    stage->stack_count < STAGE_SLOTS_BLOCKS_MAX)
			stage->stacks[stage->stack_count++] = block;
	}
	MUST(stage->stack_count);
}

void stage_init(struct stage *stage, unsigned layout, unsigned number)
{
	const struct fake_options options = { .layout = layout_at(layout),
					      .native_bytes = NATIVE_BYTES,
					      .main_slots = SLOTS,
					      .modules = MODULES };

	memset(stage, 0, sizeof(*stage));
	make(stage, &options, number);
	link_objects(stage->vm);
	stage->links = calloc(STAGE_PLACES_MAX, sizeof(*stage->links));
	stage->members = calloc(STAGE_PLACES_MAX, sizeof(*stage->members));
	MUST(stage->links && stage->members);
	find_members(stage);
	for (size_t i = 0; i < stage->vm->block_count; i++)
		if (stage->vm->blocks[i].address != stage->vm->code)
			find_links(stage, &stage->vm->blocks[i]);
	find_stacks(stage);
}

void stage_deinit(struct stage *stage)
{
	free(stage->links);
	free(stage->members);
	fake_vm_destroy(stage->vm);
}
