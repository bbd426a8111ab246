/* SPDX-License-Identifier: MIT */
#include "scenes.h"

#include <stdlib.h>

uint64_t scene_start(const struct fake_vm *vm)
{
	return vm->host - SCENE_BYTES;
}

static void add_cframe(struct scene *scene, uint64_t L, int32_t nres, uint64_t pc)
{
	if (scene->cframe_count == SCENE_CFRAMES_MAX)
		abort();
	memmove(scene->cframes + 1, scene->cframes,
		scene->cframe_count * sizeof(scene->cframes[0]));
	scene->cframe_count++;
	scene->cframes[0] = (struct luastate_cframe){ .address = fake_cframe(scene->vm, L, nres, 0),
						      .L = L,
						      .pc = pc };
	/* The oldest one was called by the thread's first function, the others by C functions. */
	if (scene->cframe_count > 1)
		fake_put_u64(scene->vm,
			     scene->cframes[0].address + (uint64_t)scene->vm->layout->cframe_ret,
			     scene->vm->host + FAKE_HOST_LEAF + 8);
}

/* C code that VM code has called, and that calls VM code again. */
static void add_native(struct scene *scene)
{
	fake_push(scene->vm, scene->vm->code + FAKE_AT_RETURN);
}

static void set_registers(struct scene *scene, uint64_t rip, uint64_t rdx, uint64_t rbx)
{
	scene->regs.syscall = -1;
	scene->regs.r[ATTACH_REG_RIP] = rip;
	scene->regs.r[ATTACH_REG_RSP] = scene->vm->sp;
	scene->regs.r[ATTACH_REG_RDX] = rdx;
	scene->regs.r[ATTACH_REG_RBX] = rbx;
	if (rip - scene->vm->code < FAKE_CODE_BYTES)
		scene->cframes[0].leaf = true;
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

	add_cframe(scene, vm->main, 1, 0);
	fake_call(vm, vm->main, cast->main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, cast->work, fake_pc(vm, cast->main_proto, 3));
	set_registers(scene, vm->code + FAKE_AT_PLAIN, base_of(vm, vm->main),
		      fake_pc(vm, cast->work_proto, 2));
}

/* A C function that Lua called. */
static void make_c(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;

	add_cframe(scene, vm->main, -1, 0);
	add_native(scene);
	add_cframe(scene, vm->main, 1, fake_pc(vm, cast->main_proto, 3));
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
	add_cframe(scene, co, 0, 0);
	fake_call(vm, co, cast->work, 0, FAKE_LINK_CP);
	fake_call_lua(vm, co, cast->main, fake_pc(vm, cast->work_proto, 3));
	set_registers(scene, vm->code + FAKE_AT_NEXT + 2, base_of(vm, co),
		      fake_pc(vm, cast->main_proto, 2));
}

/* Frames of the rarer kinds. */
static void make_kinds(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;

	add_cframe(scene, vm->main, 1, 0);
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
	uint64_t table = fake_alloc(vm, 16);
	uint64_t trace = fake_alloc(vm, (size_t)layout->GCtrace_sizeof);
	uint64_t J = vm->G + (uint64_t)layout->global_State_to_J;

	make_lua(scene, cast);
	fake_put_u8(vm, trace + (uint64_t)layout->GCobj_gct, (uint8_t)layout->gct_trace);
	fake_put_u64(vm, trace + (uint64_t)layout->GCtrace_startpt, cast->work_proto);
	fake_put_u64(vm, trace + (uint64_t)layout->GCtrace_startpc,
		     fake_pc(vm, cast->work_proto, 1));
	fake_put_u64(vm, table + 8, trace);
	fake_put_u64(vm, J + (uint64_t)layout->jit_State_trace, table);
	fake_put_u32(vm, J + (uint64_t)layout->jit_State_sizetrace, 2);
	fake_put_u32(vm, vm->G + (uint64_t)layout->global_State_vmstate, 1);
	fake_put_u64(vm, vm->G + (uint64_t)layout->global_State_jit_base, base_of(vm, vm->main));
	/* Where no file is mapped. */
	set_registers(scene, scene_start(vm) & ~(uint64_t)4095, 0, 0);
	scene->cframes[0].leaf = false;
	scene->cframes[0].compiled = true;
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
	memmove(scene->cframes + 1, scene->cframes, 2 * sizeof(scene->cframes[0]));
	scene->cframe_count++;
	scene->cframes[0] = (struct luastate_cframe){ .address = vm->sp };
	set_registers(scene, vm->code + FAKE_AT_PROLOGUE + 2, 0, 0);
}

/* A return: results lie over the frame. */
static void make_return(struct scene *scene, const struct cast *cast)
{
	struct fake_vm *vm = scene->vm;
	uint64_t base;

	make_lua(scene, cast);
	base = base_of(vm, vm->main);
	fake_put_u64(vm, base - 16, UINT64_C(0x3ff0000000000000));
	fake_put_u64(vm, base - 8, UINT64_C(0x3ff0000000000000));
	set_registers(scene, vm->code + FAKE_AT_PLAIN, base, fake_pc(vm, cast->main_proto, 3));
}

void scene_init(struct scene *scene, unsigned number)
{
	static void (*const makers[SCENE_COUNT])(struct scene *, const struct cast *) = {
		make_lua,   make_c,	 make_coroutine, make_kinds,
		make_trace, make_helper, make_entry,	 make_return
	};
	struct cast cast;

	memset(scene, 0, sizeof(*scene));
	scene->vm = fake_vm_create_sized(1024, 48, 2);
	cast = make_cast(scene->vm);
	makers[number](scene, &cast);
	if (scene->vm->next < scene_start(scene->vm))
		abort();
}

void scene_deinit(struct scene *scene)
{
	fake_vm_destroy(scene->vm);
}
