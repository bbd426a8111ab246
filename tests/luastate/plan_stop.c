/* SPDX-License-Identifier: MIT */
#include "plan_stop.h"

#include <stdlib.h>

enum {
	/* Nothing that one stop asks for is larger than a native stack and eight Lua stacks. */
	BYTES_MAX = (1 << 20) + 8 * 66000 * 8 + 65536,
};

struct stop_scene stop_make_scene(struct sample *sample)
{
	struct fake_vm *vm = sample->vm;
	struct stop_scene scene = { .main_proto = fake_caller(vm, "@main.lua", 0, "work"),
				    .work_proto = fake_caller(vm, "@main.lua", 10, "inner") };

	scene.main = fake_lua_function(vm, scene.main_proto);
	scene.work = fake_lua_function(vm, scene.work_proto);
	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, scene.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, scene.work, fake_pc(vm, scene.main_proto, 3));
	sample_leaf(sample, FAKE_AT_PLAIN, fake_L_get(vm, vm->main, vm->layout->lua_State_base),
		    fake_pc(vm, scene.work_proto, 2));
	return scene;
}

uint64_t stop_resume(struct sample *sample, const struct stop_scene *scene)
{
	struct fake_vm *vm = sample->vm;
	uint64_t co = fake_coroutine(vm, 64);

	/* C code that VM code called. */
	fake_put_u64(vm, vm->sp, vm->code + FAKE_AT_RETURN);
	sample_cframe(sample, co, 0, 0);
	fake_call(vm, co, scene->work, 0, FAKE_LINK_CP);
	sample_leaf(sample, FAKE_AT_PLAIN, fake_L_get(vm, co, vm->layout->lua_State_base),
		    fake_pc(vm, scene->work_proto, 2));
	return co;
}

void stop_begin(struct stop *stop, struct sample *sample)
{
	memset(stop, 0, sizeof(*stop));
	stop->sample = sample;
	stop->image = attach_image_create();
	stop->after = attach_image_create();
	assert_true(stop->image && stop->after);
	stop->context.state = sample->state;
	stop->context.prediction = &stop->prediction;
	stop->context.stack_limit = sample->vm->native_end;
}

void stop_end(struct stop *stop)
{
	attach_image_destroy(stop->image);
	attach_image_destroy(stop->after);
}

static void stop_fill(struct stop *stop, struct attach_image *image)
{
	fake_fill_image(image, &stop->sample->vm->reader);
}

size_t stop_capture(struct stop *stop)
{
	bool more = true;

	attach_image_clear(stop->image);
	*attach_image_registers(stop->image) = stop->sample->regs;
	for (stop->rounds = 0; more; stop->rounds++) {
		assert_true(stop->rounds < STOP_ROUNDS_MAX);
		more = luastate_plan(&stop->context, stop->image, stop->rounds);
		stop_fill(stop, stop->image);
		stop->ranges[stop->rounds] = stop->image->range_count;
	}
	assert_true(stop->image->arena_len <= BYTES_MAX);
	return stop->image->arena_len;
}

bool stop_has(const struct stop *stop, uint64_t address, size_t len)
{
	uint8_t *bytes = malloc(len);
	struct failure why;
	bool there;

	assert_non_null(bytes);
	there = attach_read(attach_image_reader(stop->image), remote_addr_make(address), bytes, len,
			    &why) == 0;
	free(bytes);
	return there;
}

bool stop_asked(const struct stop *stop, uint64_t address)
{
	for (size_t i = 0; i < stop->image->range_count; i++)
		if (address - stop->image->ranges[i].start < stop->image->ranges[i].wanted)
			return true;
	return false;
}

void stop_ask_again(struct stop *stop)
{
	attach_image_clear(stop->after);
	luastate_plan_after(&stop->context, stop->image, stop->after);
	stop_fill(stop, stop->after);
}

void stop_decode(struct stop *stop)
{
	struct sample *sample = stop->sample;
	struct luastate_memory memory = sample_memory(sample);

	stop_ask_again(stop);
	memory.later = attach_image_reader_behind(stop->after, memory.any, false);
	memory.any = attach_image_reader_behind(stop->image, memory.later, false);
	memory.stopped = attach_image_reader(stop->image);
	luastate_begin_sample(sample->state, memory.any);
	luastate_walk(sample->state, &memory, sample->vm_frames, sample->vm_frame_count,
		      &sample->chain);
}

unsigned stop_round_of(const struct stop *stop, uint64_t address)
{
	for (unsigned round = 0; round < stop->rounds; round++)
		for (size_t i = round ? stop->ranges[round - 1] : 0; i < stop->ranges[round]; i++)
			if (address - stop->image->ranges[i].start < stop->image->ranges[i].wanted)
				return round;
	return STOP_ROUNDS_MAX;
}

void stop_learn(struct stop *stop)
{
	struct sample *sample = stop->sample;

	luastate_learn(sample->state, &sample->vm->reader,
		       &(struct luastate_native_walk){ sample->vm_frames, sample->vm_frame_count,
						       sample->vm->native_end - 256,
						       LUASTATE_REACH_ALL,
						       attach_sp(&sample->regs) },
		       &stop->prediction);
}

uint64_t stop_stack_of(const struct fake_vm *vm, uint64_t L)
{
	return fake_L_get(vm, L, vm->layout->lua_State_stack);
}

void stop_expect_stack(const struct stop *stop, uint64_t L)
{
	const struct fake_vm *vm = stop->sample->vm;
	uint64_t start = stop_stack_of(vm, L), base = fake_L_get(vm, L, vm->layout->lua_State_base);

	assert_true(stop_has(stop, L, (size_t)vm->layout->lua_State_sizeof));
	assert_true(stop_has(stop, start, (size_t)(base - start)));
}
