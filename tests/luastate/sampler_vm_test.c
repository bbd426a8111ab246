/* SPDX-License-Identifier: MIT */
/* Copies that the kernel makes of a thread that runs on: what they have of its VMs, by a plan. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "../attach/children.h"
#include "../attach/sampler_scene.h"
#include "tests/rounds.h"

enum {
	FUZZ_ROUNDS = 100,
	FULL_FUZZ_ROUNDS = 400,
	LUA_SLOTS = 192,
	FUNCTIONS = 3,
	FUNCTION_BYTES = 24,
	GLOBAL_BYTES = 256,
	THREAD_BYTES = 96,
	TRACE_BYTES = 64,
	TABLE_BYTES = 64,
	MANY = 48,
	FEW = 12,
	THREADS = 16,
	PROTO_BYTES = 64,
	CONSTANTS = 24,
	DEEP_SLOTS = 65000,
};

enum {
	/* In the global state. */
	AT_STATE = 16,
	AT_CURRENT = 24,
	AT_BASE = 32,
	AT_TRACES = 40,
	AT_TRACE_COUNT = 48,
	AT_PARENT = 56,
	AT_REGISTRY = 72,
	/* In a coroutine. */
	AT_STACK = 8,
	AT_STACK_BASE = 16,
	AT_LIMIT = 24,
	AT_CFRAME = 32,
	AT_TYPE = 40,
	AT_GLOBAL = 48,
	TYPE = 6,
	FUNCTION_TAG = -9,
};

/** Nothing is there. */
#define NOWHERE ((uint64_t)1 << 20)

/** Something like a VM, in one mapping that the child shares: as a plan describes it. */
struct fake {
	uint8_t global[GLOBAL_BYTES];
	uint8_t threads[THREADS][THREAD_BYTES];
	uint64_t stack[LUA_SLOTS];
	uint8_t functions[FUNCTIONS][FUNCTION_BYTES], entered[FUNCTION_BYTES];
	uint64_t traces[4];
	uint8_t trace[TRACE_BYTES];
	uint8_t extra[100];
	/** Of another VM: its main coroutine, its global state right behind that, the table that
	 * this refers to, and one more coroutine. */
	_Alignas(8) uint8_t other_main[THREAD_BYTES];
	uint8_t other_global[GLOBAL_BYTES];
	uint8_t other_table[TABLE_BYTES];
	uint8_t other_thread[THREAD_BYTES];
	uint64_t other_stacks[2][8];
	/** Functions with one prototype, the leaf's first. */
	uint8_t many[MANY][FUNCTION_BYTES];
	uint8_t proto[PROTO_BYTES];
	uint64_t constants[CONSTANTS];
	uint64_t deep[DEEP_SLOTS];
};

static bool holds(const struct scene *scene, const void *address, size_t len)
{
	uint8_t bytes[4096];
	struct failure why;

	assert_true(len <= sizeof(bytes));
	return attach_read(attach_image_reader(scene->image), remote_addr_make((uintptr_t)address),
			   bytes, len, &why) == 0 &&
	       memcmp(bytes, address, len) == 0;
}

static void put(void *bytes, size_t at, uint64_t value)
{
	memcpy((uint8_t *)bytes + at, &value, sizeof(value));
}

static void put_function(struct fake *fake, int slot, const uint8_t *function)
{
	fake->stack[slot] = (uint64_t)(int64_t)FUNCTION_TAG << 47 | (uintptr_t)function;
}

static struct fake *make_fake(void)
{
	/* Where objects of LuaJIT can be on AArch64 too, whose addresses have a bit more. */
	void *low = (void *)((uintptr_t)1 << 45);
	struct fake *fake = mmap(low, sizeof(*fake), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	assert_ptr_not_equal(MAP_FAILED, fake);
	for (size_t i = 0; i < sizeof(*fake); i++)
		((uint8_t *)fake)[i] = (uint8_t)(i * 7 + 1);
	memset(fake->stack, 0, sizeof(fake->stack));
	put(fake->global, AT_STATE, 2); /* and 4 bytes behind it */
	put(fake->global, AT_CURRENT, (uintptr_t)fake->threads[0]);
	put(fake->global, AT_BASE, 0);
	put(fake->global, AT_TRACES, (uintptr_t)fake->traces);
	put(fake->global, AT_TRACE_COUNT, 4);
	fake->traces[2] = (uintptr_t)fake->trace;
	for (int i = 0; i < THREADS; i++) {
		put(fake->threads[i], AT_STACK, (uintptr_t)fake->stack);
		put(fake->threads[i], AT_STACK_BASE, (uintptr_t)(fake->stack + 40));
		fake->threads[i][AT_TYPE] = TYPE;
		put(fake->threads[i], AT_GLOBAL, (uintptr_t)fake->global);
		put(fake->threads[i], AT_LIMIT, (uintptr_t)(fake->stack + 60));
	}
	/* Frames: a function, and a link that is a distance. */
	for (int i = 0; i < FUNCTIONS; i++) {
		put_function(fake, 38 - 10 * i, fake->functions[i]);
		fake->stack[39 - 10 * i] = 80 | 1;
	}
	return fake;
}

static void begin(struct scene *scene, struct fake *fake)
{
	struct scene_memory memory = { .start = fake, .len = sizeof(*fake) };

	scene_begin(scene, SCENE_RATE_HZ, scene_spin, &memory);
}

static void end(struct scene *scene, struct fake *fake)
{
	scene_end(scene);
	munmap(fake, sizeof(*fake));
}

static struct luastate_bpf_vm describe(const struct fake *fake)
{
	return (struct luastate_bpf_vm){
		.G = (uintptr_t)fake->global,
		.global_size = 200,
		.ref_size = 8,
		.current = AT_CURRENT,
		.state = AT_STATE,
		.compiled_base = AT_BASE,
		.traces = AT_TRACES,
		.trace_count = AT_TRACE_COUNT,
		.parent = AT_PARENT,
		.parent_size = 8,
		.state_exit = ~9,
		.trace_size = TRACE_BYTES,
		.whole_size = GLOBAL_BYTES,
		.registry = AT_REGISTRY,
		.table_size = TABLE_BYTES,
		.thread_size = THREAD_BYTES,
		.global = AT_GLOBAL,
		.thread_type = AT_TYPE,
		.thread_type_value = TYPE,
		.stack = AT_STACK,
		.base = AT_STACK_BASE,
		.limit = AT_LIMIT,
		.vm_frame = AT_CFRAME,
		.function_size = FUNCTION_BYTES,
		.function_tag = FUNCTION_TAG,
	};
}

/* Of the VM, and of one coroutine more than its current one; nothing is copied by it yet. */
static void put_plan(struct luastate_bpf_plan *plan, const struct fake *fake, const uint8_t *thread)
{
	plan->vms[0] = describe(fake);
	plan->stacks[0] = (uintptr_t)thread;
	plan->stack_count = 1;
}

/* Have copies made by the plan, each of which passes the check. */
static void expect_copies(struct scene *scene, struct fake *fake,
			  bool (*check)(struct scene *scene))
{
	__atomic_store_n(&scene->plan->vm_count, 1, __ATOMIC_RELEASE);
	scene_watch(scene, NULL);
	scene_await(scene, 50); /* the child begins */
	scene->context = fake;
	scene_watch(scene, check);
	scene_await(scene, 200);
	assert_int_equal(0, scene->cut_count);
}

static bool check_fake(struct scene *scene)
{
	const struct fake *fake = scene->context;

	assert_true(holds(scene, fake->global, 200));
	assert_true(holds(scene, fake->threads[0], THREAD_BYTES));
	assert_true(holds(scene, fake->threads[1], THREAD_BYTES));
	assert_true(holds(scene, fake->stack, 60 * sizeof(uint64_t)));
	for (int i = 0; i < FUNCTIONS; i++)
		assert_true(holds(scene, fake->functions[i], FUNCTION_BYTES));
	assert_true(holds(scene, fake->entered, FUNCTION_BYTES));
	assert_true(holds(scene, &fake->traces[2], sizeof(uint64_t)));
	assert_true(holds(scene, fake->trace, TRACE_BYTES));
	assert_true(holds(scene, fake->extra, sizeof(fake->extra)));
	return true;
}

static void follows_a_plan(void **state)
{
	struct fake *fake = make_fake();
	struct scene scene;
	uint64_t nowhere = 1 << 20;

	(void)state;
	/* A frame that is entered has no link yet; neither has the one below it here. */
	put_function(fake, 48, fake->entered);
	fake->stack[49] = fake->stack[39] = UINT64_MAX;
	put(fake->global, AT_BASE, (uintptr_t)(fake->stack + 50));
	begin(&scene, fake);
	put_plan(scene.plan, fake, fake->threads[1]);
	/* One that cannot be read does not keep others from being copied. */
	scene.plan->extras[0] = (struct luastate_bpf_extra){ .start = nowhere, .size = 64 };
	scene.plan->extras[1] = (struct luastate_bpf_extra){ .start = (uintptr_t)fake->extra,
							     .size = sizeof(fake->extra) };
	scene.plan->extra_count = 2;
	expect_copies(&scene, fake, check_fake);
	end(&scene, fake);
}

static bool check_other_vm(struct scene *scene)
{
	const struct fake *fake = scene->context;

	assert_true(holds(scene, fake->other_main, THREAD_BYTES));
	assert_true(holds(scene, fake->other_global, GLOBAL_BYTES));
	assert_true(holds(scene, fake->other_table, TABLE_BYTES));
	assert_true(holds(scene, fake->other_thread, THREAD_BYTES));
	for (int i = 0; i < 2; i++)
		assert_true(holds(scene, fake->other_stacks[i], 8));
	return true;
}

static void put_thread(struct fake *fake, uint8_t *thread, uint64_t *slots)
{
	put(thread, AT_STACK, (uintptr_t)slots);
	put(thread, AT_STACK_BASE, (uintptr_t)(slots + 2));
	put(thread, AT_LIMIT, (uintptr_t)(slots + 8));
	put(thread, AT_GLOBAL, (uintptr_t)fake->other_global);
	thread[AT_TYPE] = TYPE;
}

/* A VM that began a moment ago is not in the plan, and may have ended a moment later. */
static void copies_other_vms(void **state)
{
	struct fake *fake = make_fake();
	struct scene scene;

	(void)state;
	put_thread(fake, fake->other_main, fake->other_stacks[0]);
	put_thread(fake, fake->other_thread, fake->other_stacks[1]);
	put(fake->other_global, AT_CURRENT, (uintptr_t)fake->other_thread);
	put(fake->other_global, AT_REGISTRY, (uint64_t)-12 << 47 | (uintptr_t)fake->other_table);
	begin(&scene, fake);
	put_plan(scene.plan, fake, fake->other_main);
	expect_copies(&scene, fake, check_other_vm);
	end(&scene, fake);
}

/* A coroutine's stack that is deeper than a copy. */
static void tells_of_coroutines_that_are_too_deep(void **state)
{
	struct fake *fake = make_fake();
	struct scene scene;

	(void)state;
	put(fake->threads[0], AT_STACK_BASE, (uintptr_t)fake->stack + 600000);
	put(fake->threads[0], AT_LIMIT, (uintptr_t)fake->stack + 620000);
	begin(&scene, fake);
	scene.plan->vms[0] = describe(fake);
	scene.plan->vm_count = 1;
	scene_await(&scene, 200);
	assert_true(scene.cut_count > 0);
	end(&scene, fake);
}

/* As deep as LuaJIT lets them be, which takes several records; its newest frames are at its end. */
static bool check_deep(struct scene *scene)
{
	const struct fake *fake = scene->context;
	const uint64_t *slots = fake->deep, *copied;
	size_t len;

	copied = attach_image_peek(scene->image, remote_addr_make((uintptr_t)slots),
				   sizeof(fake->deep), &len);
	assert_int_equal(DEEP_SLOTS * 8, len);
	assert_memory_equal(slots, copied, len);
	assert_true(holds(scene, fake->functions[0], FUNCTION_BYTES));
	assert_true(holds(scene, fake->global, 200));
	return true;
}

static void copies_deep_coroutines_in_parts(void **state)
{
	struct fake *fake = make_fake();
	struct scene scene;

	(void)state;
	for (int i = 0; i < DEEP_SLOTS; i++)
		fake->deep[i] = (uint64_t)i;
	fake->deep[DEEP_SLOTS - 12] =
		(uint64_t)(int64_t)FUNCTION_TAG << 47 | (uintptr_t)fake->functions[0];
	fake->deep[DEEP_SLOTS - 11] = 80 | 1;
	put(fake->threads[0], AT_STACK, (uintptr_t)fake->deep);
	put(fake->threads[0], AT_STACK_BASE, (uintptr_t)(fake->deep + DEEP_SLOTS - 10));
	put(fake->threads[0], AT_LIMIT, (uintptr_t)(fake->deep + DEEP_SLOTS));
	begin(&scene, fake);
	scene.plan->vms[0] = describe(fake);
	expect_copies(&scene, fake, check_deep);
	end(&scene, fake);
}

static bool note_sp(struct scene *scene)
{
	put(scene->context, AT_CFRAME, attach_sp(attach_image_registers(scene->image)) + 256);
	return true;
}

static bool check_compiled(struct scene *scene)
{
	const struct fake *fake = scene->context;

	assert_true(holds(scene, fake->other_global, 200));
	assert_true(holds(scene, fake->other_thread, THREAD_BYTES));
	assert_true(holds(scene, fake->other_stacks[1], 8));
	return true;
}

static bool check_not_compiled(struct scene *scene)
{
	const struct fake *fake = scene->context;

	assert_false(holds(scene, fake->other_global, 200));
	return true;
}

/* Below compiled code nothing on the native stack shows the VM. */
static void copies_vms_that_run_compiled_code(void **state)
{
	struct fake *fake = make_fake();
	struct scene scene;

	(void)state;
	put_thread(fake, fake->other_thread, fake->other_stacks[1]);
	put(fake->other_global, AT_CURRENT, (uintptr_t)fake->other_thread);
	put(fake->other_global, AT_BASE, (uintptr_t)fake->other_stacks[1]);
	put(fake->other_global, AT_STATE, 0);
	begin(&scene, fake);
	scene.check = note_sp;
	scene.context = fake->other_thread;
	scene_await(&scene, 20);
	scene.plan->vms[0] = describe(fake);
	scene.plan->others[0] = NOWHERE;
	scene.plan->others[1] = (uintptr_t)fake->other_global;
	scene.plan->other_count = 2;
	scene.plan->roams = 1;
	expect_copies(&scene, fake, check_compiled);
	/* On another thread's stack. */
	put(fake->other_thread, AT_CFRAME, (uintptr_t)fake);
	expect_copies(&scene, fake, check_not_compiled);
	end(&scene, fake);
}

enum {
	/* In a function. */
	AT_KIND = 0,
	AT_CODE = 8,
	/* In a prototype. */
	AT_SIZE = 0,
	AT_NAME = 8,
	AT_LINES = 16,
	AT_LINE = 24,
	AT_CONSTANTS = 32,
	AT_CONSTANT_COUNT = 40,
};

/* As describe(), with prototypes. */
static struct luastate_bpf_vm describe_protos(const struct fake *fake)
{
	struct luastate_bpf_vm vm = describe(fake);

	vm.function_kind = AT_KIND;
	vm.function_code = AT_CODE;
	vm.proto_size = PROTO_BYTES;
	vm.proto_bytes = AT_SIZE;
	vm.proto_name = AT_NAME;
	vm.proto_lines = AT_LINES;
	vm.proto_line = AT_LINE;
	vm.proto_constants = AT_CONSTANTS;
	vm.proto_constant_count = AT_CONSTANT_COUNT;
	vm.string_size = 24;
	vm.string_hash = 8;
	return vm;
}

static bool check_many(struct scene *scene)
{
	const struct fake *fake = scene->context;

	assert_true(holds(scene, fake->global, 200));
	assert_true(holds(scene, fake->stack, 60 * sizeof(uint64_t)));
	assert_true(holds(scene, fake->extra, sizeof(fake->extra)));
	assert_true(holds(scene, fake->many[0], FUNCTION_BYTES));
	assert_true(holds(scene, fake->proto, PROTO_BYTES));
	return true;
}

/* So many of them on the stack, with constants whose references lie before @end. */
static void put_many(struct fake *fake, int count, uint64_t end)
{
	memset(fake->proto, 0, sizeof(fake->proto));
	put(fake->proto, AT_SIZE, PROTO_BYTES);
	put(fake->proto, AT_NAME, NOWHERE);
	put(fake->proto, AT_CONSTANTS, end);
	put(fake->proto, AT_CONSTANT_COUNT, CONSTANTS);
	memset(fake->stack, 0, sizeof(fake->stack));
	for (int i = 0; i < count; i++) {
		uint64_t *slot = fake->stack + 2 * (count - 1 - i);

		fake->many[i][AT_KIND] = 0;
		put(fake->many[i], AT_CODE, (uintptr_t)(fake->proto + PROTO_BYTES));
		put_function(fake, (int)(slot - fake->stack), fake->many[i]);
		slot[1] = 16 | 1;
	}
	for (int i = 0; i < THREADS; i++) {
		put(fake->threads[i], AT_STACK_BASE, (uintptr_t)(fake->stack + 2 * count));
		put(fake->threads[i], AT_LIMIT, (uintptr_t)(fake->stack + LUA_SLOTS));
	}
}

static void expect_cut_copies(struct scene *scene)
{
	scene_watch(scene, NULL);
	scene_await(scene, 50); /* the child begins */
	scene_watch(scene, check_many);
	scene_await(scene, 200);
	assert_int_equal(scene->count, scene->cut_count);
}

/* What is not there takes no room: as much of that as a stack can show would keep the thread in the
 * interrupt for milliseconds. Each scene has less than twice the failing reads that are made. */
static void bounds_reads_of_what_is_not_there(void **state)
{
	struct fake *fake = make_fake();
	uint64_t there = (uintptr_t)(fake->constants + CONSTANTS);
	struct scene scene;

	(void)state;
	begin(&scene, fake);
	scene.context = fake;
	scene.plan->vms[0] = describe_protos(fake);
	scene.plan->extras[0] = (struct luastate_bpf_extra){ .start = (uintptr_t)fake->extra,
							     .size = sizeof(fake->extra) };
	scene.plan->extra_count = 1;
	/* The constants are not there. */
	for (int i = 0; i < CONSTANTS; i++)
		fake->constants[i] = NOWHERE + 4096 * (uint64_t)i;
	put_many(fake, 6, there);
	__atomic_store_n(&scene.plan->vm_count, 1, __ATOMIC_RELEASE);
	expect_cut_copies(&scene);
	/* Not even what refers to them. */
	put_many(fake, MANY, NOWHERE);
	expect_cut_copies(&scene);
	/* As many as at first, all there. */
	for (int i = 0; i < CONSTANTS; i++)
		fake->constants[i] = (uintptr_t)fake->global;
	put_many(fake, 6, there);
	put(fake->proto, AT_NAME, (uintptr_t)fake->global);
	expect_copies(&scene, fake, check_many);
	end(&scene, fake);
}

static bool check_all_functions(struct scene *scene)
{
	const struct fake *fake = scene->context;

	for (int i = 0; i < FEW; i++)
		assert_true(holds(scene, fake->many[i], FUNCTION_BYTES));
	assert_true(holds(scene, fake->proto, PROTO_BYTES));
	assert_true(holds(scene, fake->threads[THREADS - 1], THREAD_BYTES));
	return true;
}

/* Many coroutines with many functions, none of which is known: more than 5000 ranges are copied. */
static void begin_with_many(struct scene *scene, struct fake *fake)
{
	begin(scene, fake);
	scene->context = fake;
	scene->plan->vms[0] = describe_protos(fake);
	for (int i = 0; i < CONSTANTS; i++)
		fake->constants[i] = (uintptr_t)fake->global;
	put_many(fake, FEW, (uintptr_t)(fake->constants + CONSTANTS));
	put(fake->proto, AT_NAME, (uintptr_t)fake->global);
	for (int i = 1; i < THREADS; i++)
		scene->plan->stacks[scene->plan->stack_count++] = (uintptr_t)fake->threads[i];
	expect_copies(scene, fake, check_all_functions);
}

static void hands_over_all_of_a_copy(void **state)
{
	struct fake *fake = make_fake();
	struct scene scene;

	(void)state;
	begin_with_many(&scene, fake);
	end(&scene, fake);
}

/* Interrupts wait for a copy: one that takes too long ends, with what it has. */
static void bounds_its_time(void **state)
{
	struct fake *fake = make_fake();
	struct scene scene;

	(void)state;
	begin_with_many(&scene, fake);
	assert_int_equal(0, scene.late_count);
	scene.plan->head.budget_ns = 0;
	scene_watch(&scene, NULL);
	scene_await(&scene, 100);
	assert_int_equal(scene.count, scene.late_count);
	assert_int_equal(0, scene.cut_count);
	end(&scene, fake);
}

/* What the plan says comes from the target's memory, and may be anything. */
static void survives_any_plan(void **state)
{
	struct fake *fake = make_fake();
	uint64_t random = 88172645463325252u, cookie;
	struct scene scene;

	(void)state;
	begin(&scene, fake);
	cookie = scene.plan->head.cookie;
	for (int round = 0; round < (int)test_length(FUZZ_ROUNDS, FULL_FUZZ_ROUNDS); round++) {
		uint64_t words[sizeof(*scene.plan) / 8];

		for (size_t i = 0; i < sizeof(words) / 8; i++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			words[i] = random >> random % 64;
			/* Now and then something that is there. */
			if (random % 3 == 0)
				words[i] = (uintptr_t)fake + random % sizeof(*fake);
		}
		words[0] = cookie;
		memcpy(scene.plan, words, sizeof(words));
		if (round % 2) {
			scene.plan->vms[0] = describe(fake);
			scene.plan->vms[0].ref_size = round % 4 == 1 ? 8 : 4;
			fake->global[random % GLOBAL_BYTES] = (uint8_t)random;
			fake->stack[random % LUA_SLOTS] = random << random % 20;
			fake->threads[0][random % THREAD_BYTES] = (uint8_t)random;
		}
		scene.plan->head.rest_ns = scene.plan->head.tick_ns = 0;
		scene.plan->vm_count = round % 2 ? 1 : scene.plan->vm_count;
		child_nap_us(3 * 1000);
		attach_sampler_drain(scene.sampler, scene.image, scene_take, &scene);
	}
	scene_await(&scene, scene.count + 10);
	assert_int_equal(0, kill(scene.pid, 0));
	end(&scene, fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_a_plan),
		cmocka_unit_test(copies_other_vms),
		cmocka_unit_test(tells_of_coroutines_that_are_too_deep),
		cmocka_unit_test(copies_deep_coroutines_in_parts),
		cmocka_unit_test(copies_vms_that_run_compiled_code),
		cmocka_unit_test(bounds_reads_of_what_is_not_there),
		cmocka_unit_test(hands_over_all_of_a_copy),
		cmocka_unit_test(bounds_its_time),
		cmocka_unit_test(survives_any_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
