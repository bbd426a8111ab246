/* SPDX-License-Identifier: MIT */
/* Copies that the kernel makes of a thread that runs on. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/attach.h"
#include "tests/rounds.h"
#include "children.h"

enum {
	RATE_HZ = 997,
	LOW_RATE_HZ = 23,
	SHORT_LIVES = 64,
	PATIENCE_S = 20,
	FUZZ_ROUNDS = 400,
	DESCRIPTORS = 4096,
	STACK_WORDS = 64,
	LUA_SLOTS = 64,
	FUNCTIONS = 3,
	FUNCTION_BYTES = 24,
	GLOBAL_BYTES = 256,
	THREAD_BYTES = 96,
	TRACE_BYTES = 64,
	TABLE_BYTES = 64,
};

/* What is copied anyway. */
static const struct attach_tap_plan nothing;

static const uint64_t stack_mark = 0x5a5a1234c0ffee00;

/* ---- The child -------------------------------------------------------------------------- */

/** Something like a VM, in one mapping that the child shares: as a plan describes it. */
struct fake {
	uint8_t global[GLOBAL_BYTES];
	uint8_t threads[2][THREAD_BYTES];
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
};

/* Spins with a mark on its stack, without a call. @param argument A fake VM or NULL. Only memory
 * that the child has touched is there. The sanitizer would have the marks elsewhere. */
__attribute__((no_sanitize("address"))) static void spin(void *argument)
{
	const volatile uint8_t *bytes = argument;
	volatile uint64_t marks[STACK_WORDS];

	for (size_t i = 0; bytes && i < sizeof(struct fake); i++)
		(void)bytes[i];
	for (int i = 0; i < STACK_WORDS; i++)
		marks[i] = stack_mark + (uint64_t)i;
	while (marks[0] == stack_mark)
		marks[1] = stack_mark + 1;
}

static void sleep_for_ever(void *argument)
{
	(void)argument;
	for (;;)
		pause();
}

/** One child and its tap. */
struct scene {
	pid_t pid;
	struct attach_tap *tap;
	struct attach_tap_plan *plan;
	struct attach_image *image;
	/* Of the copies: */
	uint64_t count, cut_count, last_ns;
	bool (*check)(struct scene *scene);
	void *context;
};

static void begin(struct scene *scene, unsigned rate_hz, void (*run)(void *), void *argument)
{
	struct failure why;
	char text[256];

	memset(scene, 0, sizeof(*scene));
	if (attach_tap_create(rate_hz, &scene->tap, &why) != 0) {
		failure_describe(&why, text, sizeof(text));
		print_message("skipped: %s\n", text);
		skip();
	}
	scene->pid = child_start(run, argument);
	scene->image = attach_image_create();
	assert_non_null(scene->image);
	assert_int_equal(0, attach_tap_begin(scene->tap, &why));
	assert_int_equal(
		0, attach_tap_add(scene->tap, scene->pid, scene, &nothing, &scene->plan, &why));
}

static void end(struct scene *scene)
{
	child_end(scene->pid);
	attach_image_destroy(scene->image);
	attach_tap_destroy(scene->tap);
}

static bool take(void *context, void *thread, const struct attach_tap_timing *timing)
{
	struct scene *scene = thread;

	assert_ptr_equal(context, scene);
	assert_true(timing->time_ns >= scene->last_ns);
	assert_true(timing->took_ns < 1000000000u);
	scene->last_ns = timing->time_ns;
	scene->count++;
	scene->cut_count += timing->is_cut;
	return !scene->check || scene->check(scene);
}

static void nap(unsigned ms)
{
	child_nap_us(ms * 1000);
}

/* Drain until so many copies were taken. */
static void await_copies(struct scene *scene, uint64_t count)
{
	for (int i = 0; i < PATIENCE_S * 100 && scene->count < count; i++) {
		nap(10);
		attach_tap_drain(scene->tap, scene->image, take, scene);
	}
	assert_true(scene->count >= count);
}

static uint64_t word_at(const struct scene *scene, uint64_t address)
{
	uint64_t word;
	struct failure why;

	assert_int_equal(0, attach_read(attach_image_reader(scene->image),
					remote_addr_make(address), &word, sizeof(word), &why));
	return word;
}

static bool holds(const struct scene *scene, const void *address, size_t len)
{
	uint8_t bytes[4096];
	struct failure why;

	assert_true(len <= sizeof(bytes));
	return attach_read(attach_image_reader(scene->image), remote_addr_make((uintptr_t)address),
			   bytes, len, &why) == 0 &&
	       memcmp(bytes, address, len) == 0;
}

/* ---- Registers and native stack --------------------------------------------------------- */

static bool check_stack(struct scene *scene)
{
	const struct attach_registers *registers = attach_image_registers(scene->image);
	uint64_t sp = attach_sp(registers), found = 0;

	/* One that has just begun is elsewhere. */
	if (attach_pc(registers) - (uintptr_t)spin > 4096)
		return true;
	for (uint64_t at = sp; at < sp + 2 * sizeof(uint64_t) * STACK_WORDS && !found; at += 8)
		found = word_at(scene, at) == stack_mark ? at : 0;
	assert_true(found != 0);
	for (uint64_t i = 0; i < STACK_WORDS; i++)
		assert_int_equal(stack_mark + i, word_at(scene, found + 8 * i));
	++*(int *)scene->context;
	return true;
}

static bool check_registers(struct scene *scene)
{
	const struct attach_registers *registers = attach_image_registers(scene->image);
	uint64_t pc = attach_pc(registers);

	/* One that has just begun is elsewhere. */
	if (pc < (uintptr_t)child_loop_begin || pc >= (uintptr_t)child_loop_end)
		return true;
	for (unsigned n = 0; n < ATTACH_REG_COUNT; n++)
		if (child_register_is_known(n))
			assert_int_equal(CHILD_REGISTER(n), registers->r[n]);
	++*(int *)scene->context;
	return true;
}

static void copies_registers(void **state)
{
	uint64_t *counter = child_share(sizeof(*counter));
	struct scene scene;
	int checked = 0;

	(void)state;
	begin(&scene, RATE_HZ, child_spin, counter);
	scene.check = check_registers;
	scene.context = &checked;
	await_copies(&scene, 100);
	assert_true(checked >= 90);
	end(&scene);
}

static void copies_the_native_stack(void **state)
{
	struct scene scene;
	int checked = 0;

	(void)state;
	begin(&scene, RATE_HZ, spin, NULL);
	scene.check = check_stack;
	scene.context = &checked;
	await_copies(&scene, 100);
	assert_true(checked >= 90);
	end(&scene);
}

static bool check_end(struct scene *scene)
{
	const struct attach_registers *registers = attach_image_registers(scene->image);
	uint64_t end = *(uint64_t *)scene->context, word;
	struct failure why;

	assert_true(attach_sp(registers) < end);
	assert_int_equal(0, attach_read(attach_image_reader(scene->image),
					remote_addr_make(end - 8), &word, 8, &why));
	assert_int_equal(-1, attach_read(attach_image_reader(scene->image), remote_addr_make(end),
					 &word, 8, &why));
	return true;
}

static bool note_sp(struct scene *scene)
{
	*(uint64_t *)scene->context = attach_sp(attach_image_registers(scene->image));
	return true;
}

static void copies_stack_to_its_known_end(void **state)
{
	struct scene scene;
	uint64_t end_address = 0;

	(void)state;
	begin(&scene, RATE_HZ, spin, NULL);
	scene.check = note_sp;
	scene.context = &end_address;
	await_copies(&scene, 20);
	end_address += 800;
	scene.plan->native_end = end_address;
	scene.check = NULL;
	await_copies(&scene, scene.count + 50); /* those of before */
	scene.check = check_end;
	await_copies(&scene, scene.count + 50);
	assert_int_equal(0, scene.cut_count);
	end(&scene);
}

static void tells_of_stacks_that_are_too_deep(void **state)
{
	struct scene scene;
	uint64_t sp = 0;

	(void)state;
	begin(&scene, RATE_HZ, spin, NULL);
	scene.check = note_sp;
	scene.context = &sp;
	await_copies(&scene, 20);
	scene.plan->native_end = sp + 100000;
	await_copies(&scene, scene.count + 200);
	assert_true(scene.cut_count > 0);
	end(&scene);
}

/* ---- A VM ------------------------------------------------------------------------------- */

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
	for (int i = 0; i < 2; i++) {
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

static struct attach_tap_vm describe(const struct fake *fake)
{
	return (struct attach_tap_vm){
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
		.cframe = AT_CFRAME,
		.function_size = FUNCTION_BYTES,
		.function_tag = FUNCTION_TAG,
	};
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
	begin(&scene, RATE_HZ, spin, fake);
	scene.plan->vms[0] = describe(fake);
	scene.plan->stacks[0] = (uintptr_t)fake->threads[1];
	scene.plan->stack_count = 1;
	/* One that cannot be read does not keep others from being copied. */
	scene.plan->extras[0] = (struct attach_tap_extra){ .start = nowhere, .size = 64 };
	scene.plan->extras[1] = (struct attach_tap_extra){ .start = (uintptr_t)fake->extra,
							   .size = sizeof(fake->extra) };
	scene.plan->extra_count = 2;
	__atomic_store_n(&scene.plan->vm_count, 1, __ATOMIC_RELEASE);
	await_copies(&scene, 50); /* those of before */
	scene.check = check_fake;
	scene.context = fake;
	await_copies(&scene, scene.count + 200);
	assert_int_equal(0, scene.cut_count);
	end(&scene);
	munmap(fake, sizeof(*fake));
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
	begin(&scene, RATE_HZ, spin, fake);
	scene.plan->vms[0] = describe(fake);
	scene.plan->stacks[0] = (uintptr_t)fake->other_main;
	scene.plan->stack_count = 1;
	__atomic_store_n(&scene.plan->vm_count, 1, __ATOMIC_RELEASE);
	await_copies(&scene, 50); /* those of before */
	scene.check = check_other_vm;
	scene.context = fake;
	await_copies(&scene, scene.count + 200);
	assert_int_equal(0, scene.cut_count);
	end(&scene);
	munmap(fake, sizeof(*fake));
}

/* A coroutine's stack that is deeper than a copy. */
static void tells_of_coroutines_that_are_too_deep(void **state)
{
	struct fake *fake = make_fake();
	struct scene scene;

	(void)state;
	put(fake->threads[0], AT_STACK_BASE, (uintptr_t)fake->stack + 500000);
	put(fake->threads[0], AT_LIMIT, (uintptr_t)fake->stack + 520000);
	begin(&scene, RATE_HZ, spin, fake);
	scene.plan->vms[0] = describe(fake);
	scene.plan->vm_count = 1;
	await_copies(&scene, 200);
	assert_true(scene.cut_count > 0);
	end(&scene);
	munmap(fake, sizeof(*fake));
}

/* What the plan says comes from the target's memory, and may be anything. */
static void survives_any_plan(void **state)
{
	struct fake *fake = make_fake();
	uint64_t random = 88172645463325252u, cookie;
	struct scene scene;

	(void)state;
	begin(&scene, RATE_HZ, spin, fake);
	cookie = scene.plan->cookie;
	for (int round = 0; round < (int)test_rounds(FUZZ_ROUNDS); round++) {
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
		scene.plan->rest_ns = 0;
		scene.plan->vm_count = round % 2 ? 1 : scene.plan->vm_count;
		nap(3);
		attach_tap_drain(scene.tap, scene.image, take, &scene);
	}
	await_copies(&scene, scene.count + 10);
	assert_int_equal(0, kill(scene.pid, 0));
	end(&scene);
	munmap(fake, sizeof(*fake));
}

/* ---- Beginning, rest and end ------------------------------------------------------------ */

static void rests(void **state)
{
	struct scene scene;
	uint64_t count;

	(void)state;
	begin(&scene, RATE_HZ, spin, NULL);
	await_copies(&scene, 20);
	scene.plan->rest_ns = UINT64_MAX;
	nap(20);
	attach_tap_drain(scene.tap, scene.image, take, &scene);
	count = scene.count;
	for (int i = 0; i < PATIENCE_S * 100 && scene.plan->rested < 50; i++)
		nap(10);
	attach_tap_drain(scene.tap, scene.image, take, &scene);
	assert_true(scene.plan->rested >= 50);
	assert_int_equal(count, scene.count);
	scene.plan->rest_ns = 0;
	await_copies(&scene, count + 20);
	end(&scene);
}

static void leaves_sleepers_alone(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene, RATE_HZ, sleep_for_ever, NULL);
	assert_true(child_await_state(scene.pid, "S"));
	attach_tap_drain(scene.tap, scene.image, take, &scene);
	scene.count = 0;
	nap(200);
	attach_tap_drain(scene.tap, scene.image, take, &scene);
	assert_int_equal(0, scene.count);
	end(&scene);
}

static void counts_what_has_no_room(void **state)
{
	struct scene scene;

	(void)state;
	/* Of the lowest rate that has the smallest ring: it holds a few seconds of it. */
	begin(&scene, 1000, spin, NULL);
	for (int i = 0; i < PATIENCE_S * 100 && scene.plan->lost == 0; i++)
		nap(10);
	assert_true(scene.plan->lost > 0);
	attach_tap_drain(scene.tap, scene.image, take, &scene);
	assert_true(scene.count > 100);
	await_copies(&scene, scene.count + 100);
	end(&scene);
}

static bool take_three(struct scene *scene)
{
	return scene->count < 3;
}

static void leaves_the_rest_for_later(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene, RATE_HZ, spin, NULL);
	scene.check = take_three;
	for (int i = 0; i < PATIENCE_S * 100 && scene.count < 3; i++) {
		nap(50);
		if (!attach_tap_drain(scene.tap, scene.image, take, &scene))
			break;
	}
	assert_int_equal(3, scene.count);
	scene.check = NULL;
	await_copies(&scene, 20);
	end(&scene);
}

static void forgets_a_thread(void **state)
{
	struct scene scene;
	struct failure why;

	(void)state;
	begin(&scene, RATE_HZ, spin, NULL);
	await_copies(&scene, 5);
	nap(50); /* copies that are under way */
	attach_tap_remove(scene.tap, scene.plan);
	scene.count = 0;
	attach_tap_drain(scene.tap, scene.image, take, &scene);
	nap(50);
	attach_tap_drain(scene.tap, scene.image, take, &scene);
	assert_int_equal(0, scene.count);
	assert_int_equal(0,
			 attach_tap_add(scene.tap, scene.pid, &scene, &nothing, &scene.plan, &why));
	await_copies(&scene, 5);
	end(&scene);
}

static void tells_of_threads_that_are_gone(void **state)
{
	struct attach_tap_plan *plan;
	struct scene scene;
	struct failure why;
	pid_t pid;

	(void)state;
	begin(&scene, RATE_HZ, spin, NULL);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(pid, waitpid(pid, NULL, 0));
	assert_int_equal(-1, attach_tap_add(scene.tap, pid, &scene, &nothing, &plan, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
	end(&scene);
}

static uint64_t used_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/** Pipes: of the first a byte lets a child go, to the second it writes one when it is done. */
struct starting_line {
	int go[2], done[2];
};

/* Half a period of processor time at LOW_RATE_HZ, then nothing any more. */
static void live_shortly(void *argument)
{
	const struct starting_line *line = argument;
	uint64_t begun;
	char byte;

	if (read(line->go[0], &byte, 1) != 1)
		_exit(1);
	begun = used_ns();
	while (used_ns() - begun < 500000000u / LOW_RATE_HZ)
		continue;
	if (write(line->done[1], "", 1) != 1)
		_exit(1);
	sleep_for_ever(NULL);
}

/* Threads that live for less than a period have copies, as many as their time makes up together. */
static void meets_short_lives(void **state)
{
	pid_t pids[SHORT_LIVES];
	struct starting_line line;
	struct attach_tap_plan *plan;
	struct scene scene;
	struct failure why;
	char byte;

	(void)state;
	assert_int_equal(0, pipe(line.go));
	assert_int_equal(0, pipe(line.done));
	begin(&scene, LOW_RATE_HZ, sleep_for_ever, NULL);
	for (int i = 0; i < SHORT_LIVES; i++) {
		pids[i] = child_start(live_shortly, &line);
		/* What it begins with is no part of its time. */
		assert_true(child_await_state(pids[i], "S"));
		assert_int_equal(0,
				 attach_tap_add(scene.tap, pids[i], &scene, &nothing, &plan, &why));
	}
	for (int i = 0; i < SHORT_LIVES; i++) {
		assert_int_equal(1, write(line.go[1], "", 1));
		assert_int_equal(1, read(line.done[0], &byte, 1));
		attach_tap_drain(scene.tap, scene.image, take, &scene);
	}
	/* Of a mean of half of them, more than four standard deviations. */
	assert_in_range(scene.count, SHORT_LIVES / 2 - 17, SHORT_LIVES / 2 + 17);
	for (int i = 0; i < SHORT_LIVES; i++)
		child_end(pids[i]);
	for (int i = 0; i < 2; i++) {
		close(line.go[i]);
		close(line.done[i]);
	}
	end(&scene);
}

static void has_a_bound_of_threads(void **state)
{
	const struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };
	struct attach_tap_plan *plans[ATTACH_TAP_THREADS];
	struct attach_tap_plan *last;
	struct scene scene;
	struct failure why;

	(void)state;
	setrlimit(RLIMIT_NOFILE, &limit);
	begin(&scene, 1, sleep_for_ever, NULL);
	plans[0] = scene.plan;
	for (int i = 1; i < ATTACH_TAP_THREADS; i++)
		assert_int_equal(
			0, attach_tap_add(scene.tap, scene.pid, &scene, &nothing, &plans[i], &why));
	assert_int_equal(1024, ATTACH_TAP_THREADS); /* as the manual page says */
	assert_int_equal(-1, attach_tap_add(scene.tap, scene.pid, &scene, &nothing, &last, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	attach_tap_remove(scene.tap, plans[500]);
	assert_int_equal(0, attach_tap_add(scene.tap, scene.pid, &scene, &nothing, &last, &why));
	assert_ptr_equal(plans[500], last);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_registers),
		cmocka_unit_test(copies_the_native_stack),
		cmocka_unit_test(copies_stack_to_its_known_end),
		cmocka_unit_test(tells_of_stacks_that_are_too_deep),
		cmocka_unit_test(follows_a_plan),
		cmocka_unit_test(copies_other_vms),
		cmocka_unit_test(tells_of_coroutines_that_are_too_deep),
		cmocka_unit_test(survives_any_plan),
		cmocka_unit_test(rests),
		cmocka_unit_test(leaves_sleepers_alone),
		cmocka_unit_test(counts_what_has_no_room),
		cmocka_unit_test(leaves_the_rest_for_later),
		cmocka_unit_test(forgets_a_thread),
		cmocka_unit_test(tells_of_threads_that_are_gone),
		cmocka_unit_test(meets_short_lives),
		cmocka_unit_test(has_a_bound_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
