/* SPDX-License-Identifier: MIT */
#include "scenes.h"

#include <stdlib.h>

#include "fake_trace.h"

size_t scene_start(const struct fake_vm *vm)
{
	return fake_offset(vm, vm->host) - SCENE_BYTES;
}

static void add_vm_frame(struct scene *scene, uint64_t L, int32_t nres, uint64_t pc)
{
	if (scene->vm_frame_count == SCENE_CFRAMES_MAX)
		abort();
	memmove(scene->vm_frames + 1, scene->vm_frames,
		scene->vm_frame_count * sizeof(scene->vm_frames[0]));
	scene->vm_frame_count++;
	scene->vm_frames[0] =
		(struct luastate_vm_frame){ .address = fake_cframe(scene->vm, L, nres, 0), .L = L };
	scene->vm_frames[0].frame.r[STATE_REG_PC] = pc;
	/* The oldest one was called by the thread's first function, the others by C functions. */
	if (scene->vm_frame_count > 1)
		fake_put_u64(scene->vm, fake_cframe_ret(scene->vm, scene->vm_frames[0].address),
			     scene->vm->host + FAKE_HOST_LEAF + 8);
}

/* C code that VM code has called, and that calls VM code again. */
static void add_native(struct scene *scene)
{
	fake_push(scene->vm, scene->vm->code + FAKE_AT_RETURN);
}

static void set_registers(struct scene *scene, uint64_t pc, uint64_t base, uint64_t position)
{
	scene->regs.syscall = -1;
	scene->regs.r[ATTACH_REG_PC] = pc;
	scene->regs.r[ATTACH_REG_SP] = scene->vm->sp;
	scene->regs.r[STATE_REG_BASE] = base;
	scene->regs.r[STATE_REG_PC] = position;
	if (pc - scene->vm->code >= FAKE_CODE_BYTES)
		return;
	scene->vm_frames[0].leaf = true;
	scene->vm_frames[0].frame = scene->regs;
}

static uint64_t base_of(const struct fake_vm *vm, uint64_t L)
{
	return fake_L_get(vm, L, vm->layout->lua_State_base);
}

/* Functions of all kinds. */
struct cast {
	uint64_t main_proto, work_proto;
	uint64_t main, work, c, fast;
};

static struct cast make_cast(struct fake_vm *vm)
{
	struct cast cast = { .main_proto = fake_caller(vm, "@main.lua", 0, "work"),
			     .work_proto = fake_caller(vm, "@main.lua", 10, "inner"),
			     .c = fake_c_function(vm, vm->host + FAKE_HOST_LEAF),
			     .fast = fake_asm_function(vm, 20, 7) };
	uint64_t module;

	cast.main = fake_lua_function(vm, cast.main_proto);
	cast.work = fake_lua_function(vm, cast.work_proto);
	module = fake_module(vm, "_G", 2);
	fake_module_set(vm, module, "pcall", cast.fast);
	module = fake_module(vm, "cjson", 2);
	fake_module_set(vm, module, "encode", cast.c);
	return cast;
}

/* main called work; the thread is in VM code. */
static void make_lua(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;

	add_vm_frame(scene, vm->main, 1, 0);
	fake_call(vm, vm->main, cast->main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, cast->work, fake_pc(vm, cast->main_proto, 3));
	set_registers(scene, vm->code + FAKE_AT_PLAIN, base_of(vm, vm->main),
		      fake_pc(vm, cast->work_proto, 2));
}

/* A C function that Lua called. */
static void make_c(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;

	add_vm_frame(scene, vm->main, -1, 0);
	add_native(scene);
	add_vm_frame(scene, vm->main, 1, fake_pc(vm, cast->main_proto, 3));
	fake_call(vm, vm->main, cast->main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, cast->c, fake_pc(vm, cast->main_proto, 3));
	add_native(scene);
	set_registers(scene, vm->host + FAKE_HOST_LEAF, 0, fake_pc(vm, cast->main_proto, 3));
}

static void make_coroutine(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;
	uint64_t co = fake_coroutine(vm, 24);

	make_c(scene, cast);
	add_vm_frame(scene, co, 0, 0);
	fake_call(vm, co, cast->work, 0, FAKE_LINK_CP);
	fake_call_lua(vm, co, cast->main, fake_pc(vm, cast->work_proto, 3));
	set_registers(scene, vm->code + FAKE_AT_NEXT + 2, base_of(vm, co),
		      fake_pc(vm, cast->main_proto, 2));
}

/* Frames of the rarer kinds. */
static void make_kinds(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;

	add_vm_frame(scene, vm->main, 1, 0);
	fake_call(vm, vm->main, cast->main, 0, FAKE_LINK_C);
	fake_call(vm, vm->main, cast->main, 2, FAKE_LINK_VARG);
	fake_call_lua(vm, vm->main, cast->fast, fake_pc(vm, cast->main_proto, 3));
	fake_call(vm, vm->main, cast->work, 0, FAKE_LINK_PCALL);
	fake_call_cont(vm, vm->main, cast->work, 3, fake_pc(vm, cast->work_proto, 2));
	set_registers(scene, vm->code + FAKE_AT_PLAIN, base_of(vm, vm->main),
		      fake_pc(vm, cast->work_proto, 1));
}

static void make_trace(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;
	const struct luastate_layout *layout = vm->layout;

	make_lua(scene, cast);
	fake_trace(vm, 1, 2, cast->work_proto, 1);
	fake_put_u32(vm, vm->G + (uint64_t)layout->global_State_vmstate, 1);
	fake_put_ref(vm, vm->G + (uint64_t)layout->global_State_jit_base, base_of(vm, vm->main));
	/* Where no file is mapped. */
	set_registers(scene, fake_address(vm, scene_start(vm)) & ~(uint64_t)4095, 0, 0);
	scene->vm_frames[0].leaf = false;
	scene->vm_frames[0].compiled = true;
}

/* Snapshots of a trace that has inlined calls of several kinds. */
static void describe_calls(const struct fake_vm *vm, struct fake_tracing *tracing,
			   const struct cast *cast)
{
	uint64_t call = fake_pc(vm, cast->work_proto, 3);

	fake_snap_begin(vm, tracing, 0);
	fake_snap_end(vm, tracing, fake_pc(vm, cast->work_proto, 1));
	fake_snap_begin(vm, tracing, 40);
	fake_snap_call(vm, tracing, cast->fast, call);
	fake_snap_delta(vm, tracing, cast->main, 0, FAKE_LINK_PCALL);
	fake_snap_end(vm, tracing, fake_pc(vm, cast->main_proto, 1));
	fake_snap_begin(vm, tracing, 80);
	fake_snap_cont(vm, tracing, cast->main, 3, call);
	fake_snap_call(vm, tracing, 0, fake_pc(vm, cast->main_proto, 3));
	fake_snap_end(vm, tracing, fake_pc(vm, cast->work_proto, 2));
}

/* A trace, and a side trace of it, in which the thread is. */
static void make_inlined(struct scene *scene, const struct cast *cast)
{
	static struct fake_tracing tracing;
	struct fake_vm *vm = scene->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t code;

	make_lua(scene, cast);
	fake_trace_table(vm, 3);
	fake_stubs(vm);
	code = fake_alloc(vm, 240);
	fake_tracing_init(&tracing, 1, cast->work_proto, 1, code);
	tracing.szmcode = 120;
	describe_calls(vm, &tracing, cast);
	fake_tracing_put(vm, &tracing);
	fake_put_guard(vm, code + 80 - FAKE_GUARD_BYTES, code + 120);
	fake_tracing_init(&tracing, 2, cast->work_proto, 1, code + 120);
	tracing.szmcode = 120;
	tracing.parent = tracing.root = tracing.exit = 1;
	fake_snap_begin(vm, &tracing, 0);
	fake_snap_replace(vm, &tracing, cast->main);
	fake_snap_end(vm, &tracing, fake_pc(vm, cast->main_proto, 1));
	fake_snap_begin(vm, &tracing, 60);
	fake_snap_call(vm, &tracing, cast->main, fake_pc(vm, cast->work_proto, 3));
	fake_snap_delta(vm, &tracing, cast->main, 1, FAKE_LINK_VARG);
	fake_snap_end(vm, &tracing, fake_pc(vm, cast->main_proto, 2));
	fake_tracing_put(vm, &tracing);
	fake_put_u32(vm, fake_member(vm->G, layout->global_State_vmstate), 2);
	fake_put_ref(vm, fake_member(vm->G, layout->global_State_jit_base), base_of(vm, vm->main));
	fake_put_u32(vm, fake_member(vm->G, layout->global_State_to_J + layout->jit_State_parent),
		     1);
	fake_put_u32(vm, fake_member(vm->G, layout->global_State_to_J + layout->jit_State_exitno),
		     2);
	set_registers(scene, code + 200, 0, 0);
	scene->vm_frames[0].leaf = scene->vm_frames[0].compiled = true;
	scene->vm_frames[0].frame = scene->regs;
}

/* A helper that VM code called, with two words on the stack. */
static void make_helper(struct scene *scene, const struct cast *cast)
{
	make_lua(scene, cast);
	fake_push(scene->vm, scene->vm->code + FAKE_AT_RETURN);
	fake_push(scene->vm, 0);
	set_registers(scene, scene->vm->code + FAKE_AT_HELPER, 0,
		      fake_pc(scene->vm, cast->work_proto, 2));
}

/* VM code is being entered. */
static void make_entry(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;

	make_c(scene, cast);
	fake_push(vm, vm->host + FAKE_HOST_LEAF + 8);
	fake_push(vm, 0);
	fake_push(vm, 0);
	memmove(scene->vm_frames + 1, scene->vm_frames, 2 * sizeof(scene->vm_frames[0]));
	scene->vm_frame_count++;
	scene->vm_frames[0] = (struct luastate_vm_frame){ .address = vm->sp };
	set_registers(scene, vm->code + FAKE_AT_PROLOGUE + 2, 0, 0);
}

/* A return: results lie over the frame. */
static void make_return(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;
	uint64_t base;

	make_lua(scene, cast);
	base = base_of(vm, vm->main);
	fake_put_results(vm, base);
	set_registers(scene, vm->code + FAKE_AT_PLAIN, base, fake_pc(vm, cast->main_proto, 3));
}

/* Row 0 is what the tests of the walk take. */
static const struct luastate_layout *layout_of(unsigned row)
{
	static const struct {
		const char *family, *first;
		bool gc64;
	} rows[SCENE_ROWS] = { { "mainline", "a32aeadc", true },
			       { "mainline", "394fb626", false },
			       { "openresty", "15e77d84", true },
			       { "tarantool", "4b0f1724", true },
			       { "tarantool", "71ec8eb2", false } };

	return fake_layout(rows[row].family, rows[row].gc64, rows[row].first);
}

void scene_init_layout(struct scene *scene, const struct luastate_layout *layout, unsigned number)
{
	static void (*const makers[SCENE_COUNT])(struct scene *, const struct cast *) = {
		make_lua,    make_c,	 make_coroutine, make_kinds,  make_trace,
		make_helper, make_entry, make_return,	 make_inlined
	};
	const struct fake_options options = {
		.layout = layout, .native_bytes = 1024, .main_slots = 48, .modules = 2
	};
	struct cast cast;

	memset(scene, 0, sizeof(*scene));
	scene->vm = fake_vm_create(&options);
	cast = make_cast(scene->vm);
	makers[number](scene, &cast);
}

void scene_init(struct scene *scene, unsigned row, unsigned number)
{
	scene_init_layout(scene, layout_of(row), number);
	MUST(scene->vm->next >= scene_start(scene->vm));
}

void scene_deinit(struct scene *scene)
{
	fake_vm_destroy(scene->vm);
}
