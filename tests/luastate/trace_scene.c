/* SPDX-License-Identifier: MIT */
#include "trace_scene.h"
#include "luastate/vm/choose_layout.h"

#include <stdio.h>

static void make_functions(struct trace_scene *scene)
{
	struct fake_vm *vm = scene->vm;

	scene->main_proto = fake_caller(vm, "@main.lua", 0, "work");
	scene->work_proto = fake_caller(vm, "@main.lua", 10, "inner");
	scene->inner_proto = fake_caller(vm, "@inner.lua", 20, "leaf");
	scene->leaf_proto = fake_caller(vm, "@inner.lua", 30, "nobody");
	scene->main = fake_lua_function(vm, scene->main_proto);
	scene->work = fake_lua_function(vm, scene->work_proto);
	scene->inner = fake_lua_function(vm, scene->inner_proto);
	scene->leaf = fake_lua_function(vm, scene->leaf_proto);
	scene->pcall = fake_asm_function(vm, 20, SCENE_FF);
	scene->pcall_code = fake_member(vm->G, vm->layout->global_State_to_bcff) + 4 * SCENE_FF;
}

void trace_scene_init(struct trace_scene *scene, struct sample *sample)
{
	struct fake_vm *vm = sample->vm;

	memset(scene, 0, sizeof(*scene));
	scene->sample = sample;
	scene->vm = vm;
	make_functions(scene);
	scene->code = fake_code_area(vm, 16384);
	scene->stubs = fake_stubs(vm);
	fake_trace_table(vm, SCENE_TRACES);
	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, scene->main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, scene->work, trace_scene_ret(scene, scene->main_proto));
	scene->base = fake_L_get(vm, vm->main, vm->layout->lua_State_base);
	trace_scene_again(scene);
}

void trace_scene_again(struct trace_scene *scene)
{
	fake_tracing_init(&scene->tracing, SCENE_TRACE, scene->work_proto, 1, scene->code + 1024);
}

void trace_scene_put_other(struct trace_scene *scene, struct fake_tracing *tracing)
{
	fake_tracing_put(scene->vm, tracing);
	state_reconsider_layout(scene->sample->state, &scene->vm->reader, scene->vm->G);
}

void trace_scene_put(struct trace_scene *scene)
{
	trace_scene_put_other(scene, &scene->tracing);
}

uint64_t trace_scene_pc(const struct trace_scene *scene, uint64_t proto, unsigned index)
{
	return fake_pc(scene->vm, proto, index);
}

uint64_t trace_scene_ret(const struct trace_scene *scene, uint64_t proto)
{
	return fake_pc(scene->vm, proto, 3);
}

void trace_scene_base(struct trace_scene *scene, uint32_t offset, unsigned index)
{
	fake_snap_begin(scene->vm, &scene->tracing, offset);
	fake_snap_end(scene->vm, &scene->tracing, trace_scene_pc(scene, scene->work_proto, index));
}

void trace_scene_inner(struct trace_scene *scene, uint32_t offset, unsigned index)
{
	fake_snap_begin(scene->vm, &scene->tracing, offset);
	fake_snap_call(scene->vm, &scene->tracing, scene->inner,
		       trace_scene_ret(scene, scene->work_proto));
	fake_snap_end(scene->vm, &scene->tracing, trace_scene_pc(scene, scene->inner_proto, index));
}

void trace_scene_describe(struct trace_scene *scene)
{
	for (unsigned i = 0; i < 3; i++)
		trace_scene_inner(scene, 50 * i, 1 + i);
}

void trace_scene_begin(struct trace_scene *scene, struct sample *sample)
{
	trace_scene_init(scene, sample);
	trace_scene_describe(scene);
	trace_scene_put(scene);
}

void trace_scene_vmstate(struct trace_scene *scene, int32_t vmstate)
{
	fake_put_u32(scene->vm, fake_member(scene->vm->G, scene->vm->layout->global_State_vmstate),
		     (uint32_t)vmstate);
}

void trace_scene_stand(struct trace_scene *scene, uint64_t pc, bool leaf)
{
	struct sample *sample = scene->sample;
	struct luastate_vm_frame *vm_frame = &sample->vm_frames[0];

	fake_put_ref(scene->vm, fake_member(scene->vm->G, scene->vm->layout->global_State_jit_base),
		     scene->base);
	vm_frame->compiled = true;
	vm_frame->leaf = leaf;
	vm_frame->frame.r[ATTACH_REG_PC] = pc;
	vm_frame->frame.r[ATTACH_REG_SP] = scene->vm->sp;
	sample->regs = vm_frame->frame;
}

void trace_scene_at(struct trace_scene *scene, uint32_t offset)
{
	trace_scene_vmstate(scene, SCENE_TRACE);
	trace_scene_stand(scene, scene->tracing.mcode + offset, true);
}

static void check_frame(const struct trace_scene_frame *want, const struct luastate_frame *got,
			size_t index, const char *file, int line)
{
	if (want->function == got->function->address && want->line == got->line &&
	    want->trace == got->trace && want->approximate == got->approximate)
		return;
	fail_msg("%s:%d: frame %zu: line %u, trace %u%s; expected line %u, trace %u%s%s", file,
		 line, index, got->line, got->trace, got->approximate ? ", approximate" : "",
		 want->line, want->trace, want->approximate ? ", approximate" : "",
		 want->function == got->function->address ? "" : "; another function");
}

void trace_scene_expect(struct trace_scene *scene, enum luastate_compiled compiled, size_t count,
			const struct trace_scene_frame *frames, const char *file, int line)
{
	const struct luastate_chain *chain = &scene->sample->chain;

	sample_walk(scene->sample);
	if (chain->outcome != LUASTATE_FULL || chain->compiled != compiled || chain->count != count)
		fail_msg("%s:%d: outcome %d, compiled %d, %zu frames; expected %d, %d, %zu", file,
			 line, chain->outcome, chain->compiled, chain->count, LUASTATE_FULL,
			 compiled, count);
	for (size_t i = 0; i < count; i++)
		check_frame(&frames[i], &chain->frames[i], i, file, line);
}
