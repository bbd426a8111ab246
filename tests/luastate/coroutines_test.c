/* SPDX-License-Identifier: MIT */
/* Coroutines along the list of all objects: their status and stacks, and lists that lead nowhere.
 */
#include "walk_cast.h"
#include "luastate/coroutines.h"
#include "luastate/variables.h"

enum {
	SLOTS = 40,
	SEEN_MAX = 16,
	FRAMES_MAX = 8,
	/* lua_State.status, behind the type. */
	STATUS_FROM_TYPE = 2,
	YIELD = 1,
	FAILED = 2,
};

/** A coroutine that was visited. */
struct seen {
	struct luastate_coroutine coroutine;
	struct luastate_frame frames[FRAMES_MAX];
};

/** All of an enumeration. */
struct list {
	struct seen items[SEEN_MAX];
	size_t count;
	int ret;
	uint64_t objects;
	/* How to enumerate. */
	struct luastate_position position;
	bool has_position;
};

static bool note(void *context, const struct luastate_coroutine *coroutine)
{
	struct list *list = context;
	struct seen *seen = &list->items[list->count++];

	assert_true(list->count <= SEEN_MAX);
	assert_true(coroutine->frame_count <= FRAMES_MAX);
	seen->coroutine = *coroutine;
	if (coroutine->frame_count)
		memcpy(seen->frames, coroutine->frames,
		       coroutine->frame_count * sizeof(*seen->frames));
	return true;
}

static void enumerate(struct sample *sample, struct list *list)
{
	const struct luastate_memory memory = sample_memory(sample);
	const struct luastate_coroutines how = { .positions = &list->position,
						 .position_count = list->has_position,
						 .has_all_positions = list->has_position,
						 .end_ns = UINT64_MAX,
						 .visit = note,
						 .context = list };

	list->count = 0;
	luastate_begin_sample(sample->state, &sample->vm->reader);
	list->ret = luastate_each_coroutine(sample->state, &memory, sample->vm->G, &how,
					    &list->objects, &sample->why);
}

/* Put an object in front of the list. */
static void link_object(struct sample *sample, uint64_t object)
{
	struct fake_vm *vm = sample->vm;
	uint64_t root = fake_member(vm->G, vm->layout->global_State_gc_root);
	uint64_t next = fake_get_ref(vm, root);

	fake_put_ref(vm, object, next ? next : vm->main);
	fake_put_ref(vm, root, object);
}

static uint64_t add_coroutine(struct sample *sample)
{
	uint64_t L = fake_coroutine(sample->vm, SLOTS);

	link_object(sample, L);
	return L;
}

static void set_status(struct sample *sample, uint64_t L, uint8_t status)
{
	fake_put_u8(sample->vm, L + (uint64_t)sample->vm->layout->GCobj_gct + STATUS_FROM_TYPE,
		    status);
}

static void set_cur_L(struct sample *sample, uint64_t L)
{
	fake_put_ref(sample->vm, fake_member(sample->vm->G, sample->vm->layout->global_State_cur_L),
		     L);
}

static const struct seen *find(const struct list *list, uint64_t L)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].coroutine.L == L)
			return &list->items[i];
	fail_msg("a coroutine was not visited");
	return NULL;
}

static void expect(const struct list *list, uint64_t L, enum luastate_coroutine_status status,
		   size_t frames)
{
	const struct luastate_coroutine *coroutine = &find(list, L)->coroutine;

	assert_int_equal(status, coroutine->status);
	assert_int_equal(LUASTATE_FULL, coroutine->outcome);
	assert_int_equal(frames, coroutine->frame_count);
}

/* ---- Status and stacks ------------------------------------------------------------------ */

static void test_suspended_in_a_yield(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	struct list list = { 0 };
	uint64_t L = add_coroutine(sample);
	const struct seen *seen;

	fake_name_function(vm, "inner", cast.inner);
	fake_call(vm, L, cast.work, 0, FAKE_LINK_C);
	fake_call_lua(vm, L, cast.inner, ret_in(sample, cast.work_proto));
	fake_call_lua(vm, L, cast.c, ret_in(sample, cast.inner_proto));
	set_status(sample, L, YIELD);
	enumerate(sample, &list);
	assert_int_equal(0, list.ret);
	assert_int_equal(2, list.count);
	assert_true(list.items[1].coroutine.is_main);
	expect(&list, L, LUASTATE_COROUTINE_SUSPENDED, 3);
	seen = find(&list, L);
	assert_true(seen->coroutine.is_started);
	assert_int_equal(LUASTATE_C, seen->frames[0].function->kind);
	assert_true(seen->frames[1].function->address == cast.inner_proto);
	assert_int_equal(22, seen->frames[1].line);
	assert_string_equal("inner", seen->frames[1].function->name);
	assert_true(seen->frames[2].function->address == cast.work_proto);
	assert_int_equal(12, seen->frames[2].line);
}

static void test_not_started(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	struct list list = { 0 };
	uint64_t L = add_coroutine(sample), base = base_of(sample, L);

	fake_put_u64(vm, base, fake_tag(vm, vm->layout->tag_func, cast.work));
	fake_L_set(vm, L, vm->layout->lua_State_top, base + 8);
	enumerate(sample, &list);
	expect(&list, L, LUASTATE_COROUTINE_SUSPENDED, 1);
	assert_false(find(&list, L)->coroutine.is_started);
	assert_true(find(&list, L)->frames[0].function->address == cast.work_proto);
	assert_int_equal(10, find(&list, L)->frames[0].line);
}

static void test_dead(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	struct list list = { 0 };
	uint64_t returned = add_coroutine(sample), failed = add_coroutine(sample);

	fake_call(vm, failed, cast.work, 0, FAKE_LINK_C);
	set_status(sample, failed, FAILED);
	enumerate(sample, &list);
	expect(&list, returned, LUASTATE_COROUTINE_DEAD, 0);
	/* Nothing tells any more where it stood. */
	expect(&list, failed, LUASTATE_COROUTINE_DEAD, 1);
	assert_int_equal(0, find(&list, failed)->frames[0].line);
}

static void test_running_and_normal(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	struct list list = { .has_position = true };
	uint64_t L = add_coroutine(sample);

	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, cast.main, 0, FAKE_LINK_C);
	fake_call_lua(vm, vm->main, cast.c, ret_in(sample, cast.main_proto));
	sample_cframe(sample, L, 1, 0);
	fake_call(vm, L, cast.work, 0, FAKE_LINK_C);
	fake_call_lua(vm, L, cast.c, ret_in(sample, cast.work_proto));
	set_cur_L(sample, L);
	list.position = (struct luastate_position){ .sp = vm->sp,
						    .stack_start = vm->native_start,
						    .stack_end = vm->native_end,
						    .is_in_call = true };
	enumerate(sample, &list);
	expect(&list, L, LUASTATE_COROUTINE_RUNNING, 2);
	assert_int_equal(12, find(&list, L)->frames[1].line);
	expect(&list, vm->main, LUASTATE_COROUTINE_NORMAL, 2);
	assert_int_equal(2, find(&list, vm->main)->frames[1].line);
	/* Its base is in a register. */
	list.position.is_in_call = false;
	enumerate(sample, &list);
	assert_int_equal(LUASTATE_COROUTINE_RUNNING, find(&list, L)->coroutine.status);
	assert_int_equal(LUASTATE_INCONSISTENT, find(&list, L)->coroutine.outcome);
	assert_int_equal(0, find(&list, L)->coroutine.frame_count);
	/* The only thread is on another stack: both were left, as fibers are. */
	list.position.stack_start = list.position.sp = vm->native_end;
	list.position.stack_end = vm->native_end + 4096;
	enumerate(sample, &list);
	expect(&list, L, LUASTATE_COROUTINE_SUSPENDED, 2);
	expect(&list, vm->main, LUASTATE_COROUTINE_SUSPENDED, 2);
	/* There may be others. */
	list.has_position = false;
	enumerate(sample, &list);
	assert_int_equal(LUASTATE_COROUTINE_RUNNING, find(&list, L)->coroutine.status);
	expect(&list, vm->main, LUASTATE_COROUTINE_NORMAL, 2);
}

static void test_idle(void **state)
{
	struct sample *sample = *state;
	struct list list = { 0 };

	link_object(sample, fake_string(sample->vm, "only for its place"));
	fake_put_ref(sample->vm,
		     fake_member(sample->vm->G, sample->vm->layout->global_State_gc_root),
		     sample->vm->main);
	enumerate(sample, &list);
	assert_int_equal(0, list.ret);
	assert_int_equal(0, list.objects);
	expect(&list, sample->vm->main, LUASTATE_COROUTINE_IDLE, 0);
}

/* What the collector is about to free. */
static void test_unreachable(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct list list = { 0 };
	uint64_t L = add_coroutine(sample), lives = add_coroutine(sample);
	uint64_t marked = (uint64_t)vm->layout->GCobj_gct - 1;

	fake_put_u8(vm, fake_member(vm->G, vm->layout->global_State_gc_state) - 1, 1);
	fake_put_u8(vm, L + marked, 2);
	fake_put_u8(vm, lives + marked, 1);
	enumerate(sample, &list);
	assert_int_equal(0, list.ret);
	assert_int_equal(2, list.count);
	expect(&list, lives, LUASTATE_COROUTINE_DEAD, 0);
}

/* ---- Hostile lists ---------------------------------------------------------------------- */

static void test_lists_that_lead_nowhere(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t root = fake_member(vm->G, vm->layout->global_State_gc_root);
	uint64_t string = fake_string(vm, "no object of this list");
	uint64_t L = add_coroutine(sample);
	/* Nothing; no address; nothing there; no object; another type; beyond all memory. */
	const uint64_t wild[] = { 0, 12, 0x10000, vm->G, string, UINT64_MAX & ~(uint64_t)7 };
	struct list list = { 0 };

	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		fake_put_ref(vm, root, wild[i]);
		enumerate(sample, &list);
		assert_int_equal(1, list.ret);
		assert_int_equal(1, list.count);
		assert_true(list.items[0].coroutine.is_main);
		/* The same behind one that is good. */
		fake_put_ref(vm, root, L);
		fake_put_ref(vm, L, wild[i]);
		enumerate(sample, &list);
		assert_int_equal(1, list.ret);
		assert_int_equal(2, list.count);
	}
}

static void test_circles_end(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t last = add_coroutine(sample), middle = add_coroutine(sample);
	uint64_t first = add_coroutine(sample);
	const uint64_t back[] = { first, middle, last };
	struct list list = { 0 };

	for (size_t i = 0; i < sizeof(back) / sizeof(back[0]); i++) {
		fake_put_ref(vm, last, back[i]);
		enumerate(sample, &list);
		assert_int_equal(1, list.ret);
		assert_in_range(list.objects, 3, 9);
	}
}

/* Each stops the list or is taken for none, whatever its members are. */
static void test_half_made_coroutines(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct cast cast = make_cast(vm);
	const int32_t fields[] = { layout->lua_State_glref, layout->lua_State_stack,
				   layout->lua_State_base, layout->lua_State_maxstack };
	const uint64_t values[] = { 0, 3, 0x10000, vm->G, UINT64_MAX };
	struct list list = { 0 };
	uint64_t L = add_coroutine(sample);

	fake_call(vm, L, cast.work, 0, FAKE_LINK_C);
	set_status(sample, L, YIELD);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t good = fake_L_get(vm, L, fields[i]);

		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			fake_L_set(vm, L, fields[i], values[k]);
			enumerate(sample, &list);
			assert_int_equal(0, list.ret);
			assert_int_equal(2, list.count);
			if (values[k] != good &&
			    (fields[i] != layout->lua_State_maxstack || values[k] == 0)) {
				assert_int_equal(LUASTATE_COROUTINE_UNKNOWN,
						 find(&list, L)->coroutine.status);
				assert_int_equal(0, find(&list, L)->coroutine.frame_count);
			}
		}
		fake_L_set(vm, L, fields[i], good);
	}
	enumerate(sample, &list);
	expect(&list, L, LUASTATE_COROUTINE_SUSPENDED, 1);
}

static void test_torn_stack(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct cast cast = make_cast(vm);
	struct list list = { 0 };
	uint64_t L = add_coroutine(sample), base;

	fake_call(vm, L, cast.work, 0, FAKE_LINK_C);
	base = fake_call_lua(vm, L, cast.c, ret_in(sample, cast.work_proto));
	set_status(sample, L, YIELD);
	fake_put_link(vm, base, 0x10000);
	enumerate(sample, &list);
	assert_int_equal(0, list.ret);
	assert_int_equal(LUASTATE_COROUTINE_SUSPENDED, find(&list, L)->coroutine.status);
	assert_int_not_equal(LUASTATE_FULL, find(&list, L)->coroutine.outcome);
	assert_int_equal(0, find(&list, L)->coroutine.frame_count);
}

static void test_unknown_vm(void **state)
{
	struct sample *sample = *state;
	const struct luastate_memory memory = sample_memory(sample);
	const struct luastate_coroutines how = { .visit = note };
	uint64_t objects;

	assert_int_equal(-1, luastate_each_coroutine(sample->state, &memory, 0x1000, &how, &objects,
						     &sample->why));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
}

static void test_time_ends(void **state)
{
	struct sample *sample = *state;
	const struct luastate_memory memory = sample_memory(sample);
	struct list list = { 0 };
	const struct luastate_coroutines how = { .visit = note, .context = &list };
	uint64_t objects;

	for (size_t i = 0; i < 1100; i++)
		link_object(sample,
			    fake_lua_function(sample->vm, make_cast(sample->vm).work_proto));
	assert_int_equal(1, luastate_each_coroutine(sample->state, &memory, sample->vm->G, &how,
						    &objects, &sample->why));
	assert_int_equal(1024, objects);
	assert_int_equal(1, list.count);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_suspended_in_a_yield),
		SAMPLE_TEST(test_not_started),
		SAMPLE_TEST(test_dead),
		SAMPLE_TEST(test_running_and_normal),
		SAMPLE_TEST(test_idle),
		SAMPLE_TEST(test_unreachable),
		SAMPLE_TEST(test_lists_that_lead_nowhere),
		SAMPLE_TEST(test_circles_end),
		SAMPLE_TEST(test_half_made_coroutines),
		SAMPLE_TEST(test_torn_stack),
		SAMPLE_TEST(test_unknown_vm),
		SAMPLE_TEST(test_time_ends),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
