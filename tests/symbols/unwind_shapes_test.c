/* SPDX-License-Identifier: MIT */

/*
 * Stacks in unusual places, stepped through instruction by instruction: each chain must lead from
 * shapes_work() to shapes_bottom() and end as the shape says.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/rounds.h"
#include "stopped.h"
#include "symbols/names.h"

/* The work takes some 800 instructions. */
#define STEPS	   2000
#define FULL_STEPS 6000
#define FLOORS	   10000
#define TENTHS	   10
/* A call of the vDSO takes some 100. */
#define READING_MAX 300
#define TRIES	    10000
/* A busy machine may not run the program for a while. */
#define PATIENCE_NS 60000000000
#define NAMES_MAX   64
#define OUTER_MAX   8

struct shape {
	const char *name;
	/** Functions from shapes_bottom() outward; "*" for any number of those in other files. */
	const char *outer[OUTER_MAX];
	int end; /**< Of the walk. */
};

struct seen {
	unsigned stops, in_stub, in_vdso, in_work;
};

struct watched {
	pid_t pid;
	struct attach_process *process;
	struct symbols_space *space;
	struct symbols_unwinder *unwinder;
	struct attach_image *image;
	struct attach_registers regs;
};

static void unwatch(struct watched *watched)
{
	stopped_kill(watched->pid);
	symbols_unwinder_destroy(watched->unwinder);
	symbols_space_destroy(watched->space);
	attach_image_destroy(watched->image);
	attach_process_close(watched->process);
}

static const char *name_of(struct watched *watched, uint64_t address)
{
	struct symbols_function function;
	struct failure why;

	assert_int_equal(symbols_find_function(watched->space, address, &function, &why), 0);
	return function.name;
}

/** Walk, and keep the names. @return How it ended. */
static int walk(struct watched *watched, const char *names[NAMES_MAX], size_t *ret_count)
{
	bool interrupted = true;
	struct failure why;
	int result = 1;

	/* The thread stands, so its memory can be read in place: the interrupted stack may be
	 * below the handler's. */
	symbols_unwind_begin(watched->unwinder, &watched->regs,
			     attach_process_reader(watched->process));
	for (*ret_count = 0; result > 0 && *ret_count < NAMES_MAX; ++*ret_count) {
		struct symbols_native_frame frame;

		symbols_unwind_frame(watched->unwinder, &frame);
		names[*ret_count] = name_of(watched, frame.pc - !interrupted);
		interrupted = frame.is_signal;
		result = stopped_step(watched->unwinder, &why);
	}
	return result < 0 ? -(int)why.kind : result;
}

/** Whether it is where it works. */
static bool has_begun(struct watched *watched)
{
	const char *names[NAMES_MAX];
	size_t count;

	walk(watched, names, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], "shapes_bottom") == 0 || strcmp(names[i], "shapes_tower") == 0)
			return true;
	return false;
}

static void watch(struct watched *watched, const char *shape)
{
	const char *const argv[] = { SHAPES_TARGET, shape, NULL };
	struct failure why;

	*watched = (struct watched){ .pid = stopped_spawn(argv) };
	assert_int_equal(attach_process_open(watched->pid, &watched->process, &why), 0);
	assert_int_equal(symbols_space_create(watched->process, &watched->space, &why), 0);
	assert_int_equal(symbols_unwinder_create(watched->space, &watched->unwinder, &why), 0);
	watched->image = attach_image_create();
	assert_non_null(watched->image);
	assert_true(stopped_seize(watched->pid));
	stopped_stop(watched->pid, &watched->regs);
	for (unsigned tries = 0; tries < TRIES && !has_begun(watched); tries++) {
		stopped_go(watched->pid);
		usleep(1000);
		stopped_stop(watched->pid, &watched->regs);
		assert_true(symbols_space_refresh(watched->space, &why) >= 0);
	}
}

static bool check_chain(const struct shape *shape, const char *const *names, size_t count, int end)
{
	size_t at = 0;

	while (at < count && strcmp(names[at], "shapes_bottom") != 0)
		at++;
	if (at == count || end != shape->end)
		return false;
	for (size_t i = 0; i < OUTER_MAX && shape->outer[i]; i++) {
		if (strcmp(shape->outer[i], "*") != 0) {
			if (at == count || strcmp(names[at++], shape->outer[i]) != 0)
				return false;
			continue;
		}
		while (at < count && strcmp(names[at], shape->outer[i + 1]) != 0)
			at++;
	}
	return at == count;
}

static void look_once(struct watched *watched, const struct shape *shape, struct seen *seen)
{
	const char *names[NAMES_MAX];
	size_t count;
	int end = walk(watched, names, &count);
	const struct symbols_mapping *mapping =
		symbols_space_find(watched->space, attach_pc(&watched->regs));

	seen->stops++;
	seen->in_stub += strstr(names[0], "@plt") != NULL;
	seen->in_vdso += mapping && strcmp(mapping->path, "[vdso]") == 0;
	for (size_t i = 0; i < count; i++)
		seen->in_work += strcmp(names[i], "shapes_work") == 0;
	if (check_chain(shape, names, count, end))
		return;
	for (size_t i = 0; i < count; i++)
		print_message("%s%s", i ? " <- " : "", names[i]);
	print_message(": %d\n", end);
	fail();
}

static void run_shape(const struct shape *shape)
{
	struct watched watched;
	struct seen seen = { 0 };
	unsigned reading = 0;

	watch(&watched, shape->name);
	for (unsigned i = 0; i < test_steps(STEPS, FULL_STEPS); i++) {
		unsigned in_vdso = seen.in_vdso;
		int status;

		look_once(&watched, shape, &seen);
		/* The kernel's clock ticks between two steps, and then it is read again. */
		reading = seen.in_vdso > in_vdso ? reading + 1 : 0;
		if (reading == READING_MAX) {
			stopped_go(watched.pid);
			usleep(100);
			stopped_stop(watched.pid, &watched.regs);
			reading = 0;
			continue;
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, watched.pid, NULL, NULL), 0);
		assert_int_equal(waitpid(watched.pid, &status, __WALL), watched.pid);
		assert_true(WIFSTOPPED(status));
		stopped_registers(watched.pid, &watched.regs);
	}
	print_message("%s: %u stops, %u in stubs, %u in the vDSO\n", shape->name, seen.stops,
		      seen.in_stub, seen.in_vdso);
	/* Fewer steps may meet none. */
	assert_true(seen.in_stub > 0 || test_is_emulated());
	assert_true(seen.in_work > seen.stops * 9 / 10);
	unwatch(&watched);
}

static void test_shapes(void **state)
{
	static const struct shape shapes[] = {
		{ "plain", { "shapes_bottom", "main", "*", "_start" }, 0 },
		{ "context", { "shapes_bottom" }, 0 },
		{ "coroutine", { "shapes_bottom" }, 0 },
		{ "finish", { "shapes_bottom" }, 0 },
		{ "startup", { "shapes_bottom", "shapes_startup" }, 0 },
		{ "bare", { "shapes_bottom", "shapes_bare" }, -FAILURE_NOT_FOUND },
		{ "below", { "shapes_bottom", "handler", "*", "shapes_raise" }, 0 },
		{ "above", { "shapes_bottom", "handler", "*", "shapes_raise" }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		run_shape(&shapes[i]);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned count_frames(struct watched *watched)
{
	struct failure why;
	unsigned count = 1;

	stopped_copy_stack(watched->space, attach_process_reader(watched->process), &watched->regs,
			   watched->image);
	symbols_unwind_begin(watched->unwinder, &watched->regs,
			     attach_image_reader(watched->image));
	while (symbols_unwind_step(watched->unwinder, &why) > 0)
		count++;
	return count;
}

/** Best times of a tower's frames, a tenth of them each. The processor's caches are as cold for the
 * first tenth as for the last: each was last walked a whole tower ago. By the wall clock: from a
 * thread's clock a virtual machine takes the time that its host gave to others, now and then more
 * than that. */
struct tower_times {
	uint64_t ns[TENTHS];
};

static void walk_tower(struct watched *watched, struct tower_times *best)
{
	uint64_t begin = now_ns();
	unsigned count = 1;
	struct failure why;
	int result;

	symbols_unwind_begin(watched->unwinder, &watched->regs,
			     attach_image_reader(watched->image));
	while ((result = symbols_unwind_step(watched->unwinder, &why)) > 0) {
		uint64_t end, *tenth;

		if (++count % (FLOORS / TENTHS) != 0 || count > FLOORS)
			continue;
		tenth = &best->ns[count / (FLOORS / TENTHS) - 1];
		end = now_ns();
		if (end - begin < *tenth)
			*tenth = end - begin;
		begin = end;
	}
	if (result != 0 || count <= FLOORS)
		print_message("%u frames, then %d\n", count, result);
	assert_int_equal(result, 0);
	assert_true(count > FLOORS);
}

/** Ten thousand frames: all are walked, and the last ones as fast as the first. Another program on
 * the machine slows down some of them, but not always the same: the test goes on until the best
 * times show it. */
static void test_tower(void **state)
{
	struct watched watched;
	struct tower_times best;
	struct symbols_native_frame frame;
	uint64_t start_ns = now_ns();
	unsigned tries = 0;

	(void)state;
	watch(&watched, "tower");
	while (count_frames(&watched) <= FLOORS && now_ns() - start_ns < PATIENCE_NS) {
		/* While the tower is built or taken down. */
		stopped_go(watched.pid);
		usleep(100);
		stopped_stop(watched.pid, &watched.regs);
	}
	memset(&best, 0xff, sizeof(best));
	start_ns = now_ns();
	do {
		walk_tower(&watched, &best);
		tries++;
	} while (best.ns[TENTHS - 1] >= best.ns[0] * 3 && now_ns() - start_ns < PATIENCE_NS);
	symbols_unwind_frame(watched.unwinder, &frame);
	assert_string_equal(name_of(&watched, frame.pc - 1), "_start");
	print_message("after %u walks %.0f ns per frame of the first tenth, %.0f of the last\n",
		      tries, (double)best.ns[0] / (FLOORS / TENTHS),
		      (double)best.ns[TENTHS - 1] / (FLOORS / TENTHS));
	assert_true(best.ns[TENTHS - 1] < best.ns[0] * 3);
	unwatch(&watched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_tower),
	};
	const char *const argv[] = { SHAPES_TARGET, "plain", NULL };

	/* The first call of a function by the linkage table goes through the table's head, which on
	 * AArch64 has neither a name nor an unwind rule: none is left for a step to meet. */
	setenv("LD_BIND_NOW", "1", 1);

	if (!stopped_may_trace(argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
