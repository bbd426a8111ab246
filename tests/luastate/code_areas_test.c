/* SPDX-License-Identifier: MIT */
/* Which code is a trace's: areas of machine code that come and go, and other compilers' code. */
#include "luastate/arch/arch.h"
#include "trace_scene.h"

#include "luastate/trace/code_areas.h"
#include "luastate/trace/trace.h"
#include "luastate/trace/trace_index.h"

enum { AREA = 16384, PC = 100, CHAIN = 40 };

static uint64_t noted_at(const struct fake_vm *vm, int32_t member)
{
	return fake_member(vm->G, vm->layout->global_State_to_J + member);
}

static void note(struct fake_vm *vm, uint64_t head, uint64_t size, uint64_t total)
{
	fake_put_u64(vm, noted_at(vm, vm->layout->jit_State_mcarea), head);
	fake_put_u64(vm, noted_at(vm, vm->layout->jit_State_szmcarea), size);
	fake_put_u64(vm, noted_at(vm, vm->layout->jit_State_szallmcarea), total);
}

/* What an area begins with. */
static void put_link(struct fake_vm *vm, uint64_t area, uint64_t next, uint64_t size)
{
	fake_put_u64(vm, area, next);
	fake_put_u64(vm, area + 8, size);
}

static uint64_t add_area(struct fake_vm *vm, uint64_t next)
{
	uint64_t area = fake_code_area(vm, AREA);

	put_link(vm, area, next, AREA);
	return area;
}

/* In the next sample. */
static enum areas_answer ask(struct sample *sample, uint64_t pc)
{
	struct luastate_memory memory = sample_memory(sample);

	luastate_begin_sample(sample->state, memory.any);
	return areas_have(sample->state, state_vm_by_G(sample->state, sample->vm->G), memory.any,
			  pc);
}

/* ---- Areas ------------------------------------------------------------------------------ */

static void test_chain(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t old = add_area(vm, 0), newer = add_area(vm, old), newest;

	assert_int_equal(AREAS_UNKNOWN, ask(sample, old + PC));
	note(vm, newer, AREA, 2 * AREA);
	assert_int_equal(AREAS_HAVE, ask(sample, newer));
	assert_int_equal(AREAS_HAVE, ask(sample, newer + AREA - 1));
	assert_int_equal(AREAS_LACK, ask(sample, newer + AREA));
	assert_int_equal(AREAS_HAVE, ask(sample, old + PC));
	assert_int_equal(AREAS_LACK, ask(sample, old - 1));
	assert_int_equal(AREAS_LACK, ask(sample, 0));
	/* One more costs one read more. */
	newest = add_area(vm, newer);
	note(vm, newest, AREA, 3 * AREA);
	vm->reads = 0;
	assert_int_equal(AREAS_HAVE, ask(sample, old + PC));
	assert_int_equal(4, vm->reads);
	assert_int_equal(AREAS_HAVE, ask(sample, newest + PC));
	assert_int_equal(AREAS_HAVE, ask(sample, newer + PC));
}

/* All areas are given back at once. */
static void test_flush(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t old = add_area(vm, 0), newer = add_area(vm, old), again;

	note(vm, newer, AREA, 2 * AREA);
	assert_int_equal(AREAS_HAVE, ask(sample, old + PC));
	again = add_area(vm, 0);
	note(vm, again, AREA, AREA);
	assert_int_equal(AREAS_HAVE, ask(sample, again + PC));
	assert_int_equal(AREAS_LACK, ask(sample, old + PC));
	assert_int_equal(AREAS_LACK, ask(sample, newer + PC));
	/* The first one is where it was, and not the second. */
	put_link(vm, newer, 0, AREA);
	note(vm, newer, AREA, AREA);
	assert_int_equal(AREAS_HAVE, ask(sample, newer + PC));
	assert_int_equal(AREAS_LACK, ask(sample, old + PC));
	assert_int_equal(AREAS_LACK, ask(sample, again + PC));
	note(vm, 0, 0, 0);
	assert_int_equal(AREAS_UNKNOWN, ask(sample, newer + PC));
}

/* The links are read behind the copy, when all may be gone. */
static void test_gone_before_it_is_read(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t old = add_area(vm, 0), newer = add_area(vm, old), newest = add_area(vm, newer);

	note(vm, old, AREA, AREA);
	assert_int_equal(AREAS_HAVE, ask(sample, old + PC));
	put_link(vm, old, 5, 7);
	put_link(vm, newer, 5, 7);
	put_link(vm, newest, 5, 7);
	/* One that is new. */
	note(vm, newer, AREA, 2 * AREA);
	assert_int_equal(AREAS_HAVE, ask(sample, old + PC));
	assert_int_equal(AREAS_HAVE, ask(sample, newer + PC));
	assert_int_equal(AREAS_LACK, ask(sample, newest + PC));
	/* Two: one is nowhere noted. */
	note(vm, newest, AREA, 4 * AREA);
	assert_int_equal(AREAS_HAVE, ask(sample, newest + PC));
	assert_int_equal(AREAS_UNKNOWN, ask(sample, old + PC));
	/* The only one. */
	note(vm, newest, AREA, AREA);
	assert_int_equal(AREAS_HAVE, ask(sample, newest + PC));
	assert_int_equal(AREAS_LACK, ask(sample, old + PC));
}

static void test_hostile_links(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t area = add_area(vm, 0);

	put_link(vm, area, area, AREA);
	note(vm, area, AREA, UINT64_MAX);
	vm->reads = 0;
	assert_int_equal(AREAS_UNKNOWN, ask(sample, area - 1));
	assert_true(vm->reads < 5000);
	put_link(vm, area, area, 0);
	assert_int_equal(AREAS_UNKNOWN, ask(sample, area - 1));
	put_link(vm, area, FAKE_END - 8, AREA);
	note(vm, area, AREA, 2 * AREA);
	assert_int_equal(AREAS_UNKNOWN, ask(sample, area - 1));
	note(vm, area, 2 * AREA, AREA);
	assert_int_equal(AREAS_UNKNOWN, ask(sample, area));
	note(vm, UINT64_MAX, AREA, AREA);
	assert_int_equal(AREAS_UNKNOWN, ask(sample, area));
}

/* In a sample it is tried once. */
static void test_tried_once(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_vm *known = state_vm_by_G(sample->state, vm->G);
	uint64_t area = 0;

	for (int i = 0; i < CHAIN; i++)
		area = add_area(vm, area);
	note(vm, area, AREA, (CHAIN + 1) * (uint64_t)AREA);
	assert_int_equal(AREAS_UNKNOWN, ask(sample, area - 1));
	vm->reads = 0;
	assert_int_equal(AREAS_UNKNOWN, areas_have(sample->state, known, &vm->reader, area - 1));
	assert_int_equal(3, vm->reads);
	note(vm, area, AREA, CHAIN * (uint64_t)AREA);
	assert_int_equal(AREAS_LACK, ask(sample, area + AREA));
}

/* Layouts by debug information may have them anywhere, or nowhere. */
static void test_what_is_copied(void **state)
{
	struct sample *sample = *state;
	struct luastate_layout layout = *sample->vm->layout;
	uint32_t end = areas_noted_end(&layout);

	assert_int_equal(layout.jit_State_szallmcarea + 8, end);
	layout.jit_State_exitno = (int32_t)end + 40;
	assert_int_equal(end + 44, areas_noted_end(&layout));
	layout.jit_State_exitno = layout.jit_State_parent - 4;
	assert_int_equal(end, areas_noted_end(&layout));
	layout.jit_State_szallmcarea += 1000;
	assert_int_equal(layout.jit_State_szmcarea + 8, areas_noted_end(&layout));
	layout.jit_State_szmcarea = LAYOUT_ABSENT;
	assert_int_equal(layout.jit_State_mcarea + 8, areas_noted_end(&layout));
	layout.jit_State_mcarea = 8;
	assert_int_equal(layout.jit_State_parent + 4, areas_noted_end(&layout));
}

/* ---- A trace, and what it calls --------------------------------------------------------- */

/* The thread stands at @p pc with the VM in its register, while a trace is noted as running. */
static bool is_in_trace(struct trace_scene *scene, uint64_t pc)
{
	struct luastate_memory memory = sample_memory(scene->sample);
	struct attach_registers *regs = &scene->sample->regs;

	trace_scene_vmstate(scene, SCENE_TRACE);
	trace_scene_stand(scene, pc, true);
	regs->r[STATE_REG_VM] = scene->vm->G + state_arch_register_offset(scene->vm->layout);
	luastate_begin_sample(scene->sample->state, memory.any);
	return luastate_is_in_trace(scene->sample->state, &memory, regs);
}

static void test_code_of_others(void **state)
{
	struct trace_scene scene;
	struct fake_vm *vm;
	uint64_t other, older;

	trace_scene_begin(&scene, *state);
	vm = scene.vm;
	fake_L_set(vm, vm->main, vm->layout->lua_State_cframe, vm->sp | 1);
	other = fake_code_area(vm, AREA);
	older = add_area(vm, 0);
	/* Of traces that are gone nothing is known but the area. */
	put_link(vm, scene.code, older, AREA);
	note(vm, scene.code, AREA, 2 * AREA);
	fake_trace_enter(vm, 1, 0);
	assert_true(is_in_trace(&scene, scene.tracing.mcode + 70));
	assert_true(is_in_trace(&scene, older + PC));
	assert_false(is_in_trace(&scene, other + PC));
	/* The memory is another compiler's by now. */
	put_link(vm, scene.code, 0, AREA);
	note(vm, scene.code, AREA, AREA);
	assert_false(is_in_trace(&scene, older + PC));
	/* The VM notes no area. */
	note(vm, 0, 0, 0);
	assert_false(is_in_trace(&scene, other + PC));
}

static void test_code_of_a_known_trace(void **state)
{
	struct trace_scene scene;
	struct luastate_memory memory;
	struct luastate *luastate;
	uint64_t pc, elsewhere;

	trace_scene_begin(&scene, *state);
	EXPECT_INNER(scene);
	memory = sample_memory(scene.sample);
	luastate = scene.sample->state;
	pc = scene.tracing.mcode + 70;
	elsewhere = add_area(scene.vm, 0);
	assert_int_equal(scene.vm->G, trace_vm_at(luastate, pc));
	assert_non_null(luastate_compiled_by(luastate, &memory, pc));
	note(scene.vm, scene.code, AREA, AREA);
	put_link(scene.vm, scene.code, 0, AREA);
	luastate_begin_sample(luastate, memory.any);
	assert_non_null(luastate_compiled_by(luastate, &memory, pc));
	/* All areas were given back since. */
	note(scene.vm, elsewhere, AREA, AREA);
	luastate_begin_sample(luastate, memory.any);
	assert_int_equal(scene.vm->G, trace_vm_at(luastate, pc));
	assert_null(luastate_compiled_by(luastate, &memory, pc));
	assert_non_null(luastate_compiled_by(luastate, &memory, elsewhere + PC));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_chain),
		SAMPLE_TEST(test_flush),
		SAMPLE_TEST(test_gone_before_it_is_read),
		SAMPLE_TEST(test_hostile_links),
		SAMPLE_TEST(test_tried_once),
		SAMPLE_TEST(test_what_is_copied),
		SAMPLE_TEST(test_code_of_others),
		SAMPLE_TEST(test_code_of_a_known_trace),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
