/* SPDX-License-Identifier: MIT */
/* What the VM does besides running code, and on whose behalf. */
#include "walk_cast.h"

#include "attach/image/image_internal.h"

/* main calls work, both on one C frame; the thread stands in C code. */
static struct cast make_scene(struct sample *sample)
{
	struct cast cast = make_cast(sample->vm);
	uint64_t L = sample->vm->main;

	sample_cframe(sample, L, 1, fake_pc(sample->vm, cast.work_proto, 2));
	fake_call(sample->vm, L, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(sample->vm, L, cast.work, ret_in(sample, cast.main_proto));
	return cast;
}

static void set_state(struct sample *sample, uint64_t main, int32_t vmstate)
{
	const struct luastate_layout *layout = sample->vm->layout;
	uint64_t G = fake_member(main, layout->lua_State_sizeof);

	fake_put_u32(sample->vm, fake_member(G, layout->global_State_vmstate), (uint32_t)vmstate);
}

static void set_phase(struct sample *sample, uint64_t main, uint8_t phase)
{
	const struct luastate_layout *layout = sample->vm->layout;
	uint64_t G = fake_member(main, layout->lua_State_sizeof);

	fake_put_u8(sample->vm, fake_member(G, layout->global_State_gc_state), phase);
}

static void expect_none(struct sample *sample)
{
	sample_walk(sample);
	assert_int_equal(LUASTATE_VM_WORK_NONE, sample->chain.work.kind);
}

static void expect_kind(struct sample *sample, enum luastate_vm_work_kind kind, unsigned owner)
{
	sample_walk(sample);
	assert_int_equal(LUASTATE_FULL, sample->chain.outcome);
	assert_int_equal(kind, sample->chain.work.kind);
	assert_int_equal(owner, sample->chain.work.owner);
}

static void test_phases(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;

	make_scene(sample);
	set_state(sample, vm->main, ~vm->layout->vmst_gc);
	for (uint8_t phase = 0; phase < LUASTATE_GC_PHASES; phase++) {
		set_phase(sample, vm->main, phase);
		expect_kind(sample, LUASTATE_VM_WORK_GC, 0);
		assert_int_equal(phase, sample->chain.work.phase);
	}
	for (unsigned phase = LUASTATE_GC_PHASES; phase < 256; phase++) {
		set_phase(sample, vm->main, (uint8_t)phase);
		expect_kind(sample, LUASTATE_VM_WORK_GC, 0);
		assert_int_equal(LUASTATE_GC_PAUSE, sample->chain.work.phase);
	}
	/* One sample's activity is not the next one's. */
	set_state(sample, vm->main, ~vm->layout->vmst_interp);
	expect_none(sample);
	assert_int_equal(0, sample->chain.work.phase);
}

static void test_states(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	const int32_t running[] = { layout->vmst_interp, layout->vmst_lfunc, layout->vmst_ffunc,
				    layout->vmst_cfunc };
	const struct {
		int32_t state;
		enum luastate_vm_work_kind kind;
	} works[] = {
		{ layout->vmst_gc, LUASTATE_VM_WORK_GC },
		{ layout->vmst_exit, LUASTATE_VM_WORK_EXIT },
		{ layout->vmst_record, LUASTATE_VM_WORK_RECORD },
		{ layout->vmst_opt, LUASTATE_VM_WORK_OPT },
		{ layout->vmst_asm, LUASTATE_VM_WORK_ASM },
	};

	make_scene(sample);
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		set_state(sample, vm->main, ~works[i].state);
		expect_kind(sample, works[i].kind, 0);
	}
	for (size_t i = 0; i < sizeof(running) / sizeof(running[0]); i++) {
		set_state(sample, vm->main, ~running[i]);
		expect_none(sample);
	}
	set_state(sample, vm->main, ~(layout->vmst_asm + 1));
	expect_none(sample);
	set_state(sample, vm->main, INT32_MIN);
	expect_none(sample);
	set_state(sample, vm->main, 7); /* a trace */
	expect_none(sample);
}

/* ---- Exits ------------------------------------------------------------------------------ */

struct noted {
	uint64_t parent, exitno, jit_base;
};

/* The VM leaves a trace that it has. */
static struct noted make_exit(struct sample *sample, const struct cast *cast)
{
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = fake_member(vm->G, layout->global_State_to_J);
	struct noted noted = { .parent = fake_member(J, layout->jit_State_parent),
			       .exitno = fake_member(J, layout->jit_State_exitno),
			       .jit_base = fake_member(vm->G, layout->global_State_jit_base) };

	fake_trace(vm, 3, 8, cast->inner_proto, 1);
	set_state(sample, vm->main, ~layout->vmst_exit);
	fake_put_u32(vm, noted.parent, 3);
	fake_put_u32(vm, noted.exitno, 12);
	fake_put_ref(vm, noted.jit_base, 0);
	/* A row that such a young VM fits as well is dropped for its own one at the first trace. */
	sample_walk(sample);
	return noted;
}

static void expect_exit(struct sample *sample, uint32_t trace, uint32_t exit)
{
	expect_kind(sample, LUASTATE_VM_WORK_EXIT, 0);
	assert_int_equal(trace, sample->chain.work.trace);
	assert_int_equal(exit, sample->chain.work.exit);
}

static void test_exit(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_scene(sample);
	struct noted noted = make_exit(sample, &cast);

	expect_exit(sample, 3, 12);
	fake_put_u32(vm, noted.exitno, 0);
	expect_exit(sample, 3, 0);
	fake_put_u32(vm, noted.parent, 65535);
	fake_put_u32(vm, noted.exitno, 65535);
	expect_exit(sample, 65535, 65535);
	/* No trace has such a number. */
	fake_put_u32(vm, noted.exitno, 65536);
	expect_exit(sample, 0, 0);
	fake_put_u32(vm, noted.exitno, 1);
	fake_put_u32(vm, noted.parent, 65536);
	expect_exit(sample, 0, 0);
	fake_put_u32(vm, noted.parent, 0);
	expect_exit(sample, 0, 0);
	fake_put_u32(vm, noted.parent, 3);
	fake_hide(vm, noted.parent, 4);
	expect_exit(sample, 0, 0);
	fake_show(vm, noted.parent, 4);
	fake_hide(vm, noted.exitno, 4);
	expect_exit(sample, 0, 0);
}

/* Right behind the change of state the numbers are of an earlier exit. */
static void test_exit_that_is_not_noted_yet(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_scene(sample);
	struct noted noted = make_exit(sample, &cast);
	struct attach_registers *regs = &sample->vm_frames[0].frame;

	fake_put_ref(vm, noted.jit_base, base_of(sample, vm->main));
	expect_exit(sample, 0, 0);
	regs->r[ATTACH_REG_RCX] = 3;
	regs->r[ATTACH_REG_RAX] = 12;
	expect_exit(sample, 0, 0); /* only preserved registers are known */
	sample->vm_frames[0].leaf = true;
	expect_exit(sample, 3, 12);
	regs->r[ATTACH_REG_RAX] = 13;
	expect_exit(sample, 0, 0);
	regs->r[ATTACH_REG_RAX] = 12;
	regs->r[ATTACH_REG_RCX] = 4;
	expect_exit(sample, 0, 0);
	fake_put_ref(vm, noted.jit_base, 0);
	expect_exit(sample, 3, 12);
}

/* Numbers are believed once a trace has shown that this is the VM's layout. */
static void test_exit_of_no_trace(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_scene(sample);
	struct noted noted = make_exit(sample, &cast);

	sample->state->proven = NULL;
	for (uint32_t number = 4; number < 10; number++) {
		fake_put_u32(vm, noted.parent, number);
		expect_exit(sample, 0, 0);
	}
	fake_put_u32(vm, noted.parent, 3);
	expect_exit(sample, 3, 12);
	/* It may be dropped a moment later. */
	fake_put_u32(vm, noted.parent, 4);
	expect_exit(sample, 4, 12);
	luastate_set_thorough(sample->state, true);
	expect_exit(sample, 0, 0);
}

/* ---- Whose activity --------------------------------------------------------------------- */

/* The compiler works on a C frame of its own, without Lua frames. */
static void test_cframes_without_a_run(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;

	make_scene(sample);
	sample_cframe(sample, vm->main, -4 * 66000 * 8, 0);
	set_state(sample, vm->main, ~vm->layout->vmst_record);
	expect_kind(sample, LUASTATE_VM_WORK_RECORD, 1);
	assert_int_equal(2, sample->chain.count);
	assert_int_equal(1, sample->chain.frames[0].owner);
	/* One that is being entered has no coroutine yet. */
	sample_cframe(sample, vm->main, 1, 0)->L = 0;
	sample->vm_frames[1].leaf = false;
	expect_kind(sample, LUASTATE_VM_WORK_RECORD, 2);
}

static void test_no_frames(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;

	set_state(sample, vm->main, ~vm->layout->vmst_gc);
	expect_none(sample);
	/* A protected call of C code, with nothing of Lua. */
	sample_cframe(sample, vm->main, -3, 0);
	expect_kind(sample, LUASTATE_VM_WORK_GC, 0);
	assert_int_equal(0, sample->chain.count);
	/* Of no VM at all. */
	sample->vm_frames[0].L = 0;
	expect_none(sample);
}

static void test_coroutines(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_scene(sample);
	uint64_t co = fake_coroutine(vm, 64);

	fake_call_lua(vm, vm->main, cast.c, ret_in(sample, cast.work_proto));
	sample_cframe(sample, co, 1, fake_pc(vm, cast.inner_proto, 2));
	fake_call(vm, co, cast.inner, 0, FAKE_LINK_C);
	set_state(sample, vm->main, ~vm->layout->vmst_gc);
	expect_kind(sample, LUASTATE_VM_WORK_GC, 0);
	assert_int_equal(4, sample->chain.count);
	/* A finalizer that the collector calls: the VM runs Lua. */
	set_state(sample, vm->main, ~vm->layout->vmst_interp);
	set_phase(sample, vm->main, LUASTATE_GC_FINALIZE);
	expect_none(sample);
}

static void test_two_vms(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_scene(sample);
	uint64_t second = fake_second_vm(vm, 0);

	fake_call_lua(vm, vm->main, cast.c, ret_in(sample, cast.work_proto));
	sample_cframe(sample, second, 1, fake_pc(vm, cast.inner_proto, 2));
	fake_call(vm, second, cast.inner, 0, FAKE_LINK_CP);
	/* The older one waits. */
	set_state(sample, vm->main, ~vm->layout->vmst_gc);
	expect_none(sample);
	set_state(sample, second, ~vm->layout->vmst_gc);
	set_phase(sample, second, LUASTATE_GC_SWEEP);
	expect_kind(sample, LUASTATE_VM_WORK_GC, 0);
	assert_int_equal(LUASTATE_GC_SWEEP, sample->chain.work.phase);
	/* C code that the second one called uses the first: the innermost line pays. */
	sample_cframe(sample, vm->main, -3, 0);
	expect_kind(sample, LUASTATE_VM_WORK_GC, 0);
	assert_int_equal(LUASTATE_GC_PAUSE, sample->chain.work.phase);
}

/* What the VM does a moment later is of no interest. */
static void test_the_stop_alone_tells(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct attach_image *image = attach_image_create();
	struct luastate_memory memory = { .stopped = attach_image_reader(image),
					  .any = &vm->reader };

	assert_non_null(image);
	make_scene(sample);
	set_state(sample, vm->main, ~vm->layout->vmst_gc);
	luastate_begin_sample(sample->state, &vm->reader);
	luastate_walk(sample->state, &memory, sample->vm_frames, sample->vm_frame_count,
		      &sample->chain);
	assert_int_equal(LUASTATE_VM_WORK_NONE, sample->chain.work.kind);
	attach_image_destroy(image);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_phases),
		SAMPLE_TEST(test_states),
		SAMPLE_TEST(test_exit),
		SAMPLE_TEST(test_exit_that_is_not_noted_yet),
		SAMPLE_TEST(test_exit_of_no_trace),
		SAMPLE_TEST(test_cframes_without_a_run),
		SAMPLE_TEST(test_no_frames),
		SAMPLE_TEST(test_coroutines),
		SAMPLE_TEST(test_two_vms),
		SAMPLE_TEST(test_the_stop_alone_tells),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
