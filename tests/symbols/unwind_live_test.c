/* SPDX-License-Identifier: MIT */

/*
 * The unwinder over a copied stack against libunwind's own ptrace accessors at the same stop: the
 * chains must be equal frame by frame, with stack pointer, rbx and rbp.
 */

#include <libunwind-ptrace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/rounds.h"
#include "stopped.h"
#include "symbols/names.h"

#define FRAMES_MAX 256
/** Stops of one shape; all shapes together make more than 1,000. */
#define STOPS 250
/** Stops of luajit. */
#define LUAJIT_STOPS 1000
/** Of them at least so many must have been compared. The others stood in the vDSO, where the
 *  reference has no unwind information. */
#define COMPARED_MIN(stops) ((stops)*9 / 10)

/** A walk: frames from the leaf on, and how it ended. */
struct chain {
	struct symbols_native_frame frames[FRAMES_MAX];
	struct attach_registers registers[FRAMES_MAX];
	size_t count;
	int end;
	struct failure why;
};

struct watched {
	pid_t pid, tid;
	struct attach_process *process;
	struct symbols_space *space;
	struct symbols_unwinder *unwinder;
	struct attach_image *image;
	unw_addr_space_t reference;
	void *tarantool_context;
	struct attach_registers regs;
	struct chain ours, theirs;
	uint64_t odd_start, odd_end; /**< Code whose unwind rule is not true everywhere. */
	uint64_t ns, frames;
	unsigned compared, in_vdso, cut;
};

static void watch(struct watched *watched, const char *const *argv)
{
	struct failure why;

	*watched = (struct watched){ .pid = stopped_spawn(argv) };
	watched->tid = stopped_last_thread(watched->pid);
	assert_int_equal(attach_process_open(watched->pid, &watched->process, &why), 0);
	assert_int_equal(symbols_space_create(watched->process, &watched->space, &why), 0);
	assert_int_equal(symbols_unwinder_create(watched->space, &watched->unwinder, &why), 0);
	watched->image = attach_image_create();
	assert_non_null(watched->image);
	assert_true(stopped_seize(watched->tid));
	watched->reference = unw_create_addr_space(&_UPT_accessors, 0);
	unw_set_caching_policy(watched->reference, UNW_CACHE_GLOBAL);
	watched->tarantool_context = _UPT_create(watched->tid);
}

static void unwatch(struct watched *watched)
{
	stopped_kill(watched->pid);
	_UPT_destroy(watched->tarantool_context);
	unw_destroy_addr_space(watched->reference);
	symbols_unwinder_destroy(watched->unwinder);
	symbols_space_destroy(watched->space);
	attach_image_destroy(watched->image);
	attach_process_close(watched->process);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void walk_ours(struct watched *watched)
{
	struct chain *chain = &watched->ours;
	uint64_t start = now_ns();

	chain->count = 0;
	symbols_unwind_begin(watched->unwinder, &watched->regs,
			     attach_image_reader(watched->image));
	do {
		symbols_unwind_frame(watched->unwinder, &chain->frames[chain->count]);
		symbols_unwind_registers(watched->unwinder, &chain->registers[chain->count++]);
		chain->end = stopped_step(watched->unwinder, &chain->why);
	} while (chain->end > 0 && chain->count < FRAMES_MAX);
	/* The thread's own registers are those of the first frame. */
	assert_memory_equal(chain->registers[0].r, watched->regs.r, sizeof(watched->regs.r));
	watched->ns += now_ns() - start;
	watched->frames += chain->count;
}

static uint64_t tarantool_register(unw_cursor_t *cursor, int reg)
{
	unw_word_t value = 0;

	unw_get_reg(cursor, reg, &value);
	return value;
}

static void walk_theirs(struct watched *watched)
{
	struct chain *chain = &watched->theirs;
	unw_cursor_t cursor;

	chain->count = 0;
	assert_int_equal(unw_init_remote(&cursor, watched->reference, watched->tarantool_context),
			 0);
	do {
		chain->frames[chain->count] = (struct symbols_native_frame){
			.pc = tarantool_register(&cursor, UNW_REG_IP),
			.sp = tarantool_register(&cursor, UNW_REG_SP),
		};
		for (int i = 0; i < ATTACH_REG_COUNT; i++)
			chain->registers[chain->count].r[i] = tarantool_register(&cursor, i);
		chain->count++;
		chain->end = unw_step(&cursor);
	} while (chain->end > 0 && chain->count < FRAMES_MAX);
}

static bool is_in(const struct watched *watched, uint64_t pc, const char *path)
{
	const struct symbols_mapping *mapping = symbols_space_find(watched->space, pc);

	return mapping && strcmp(mapping->path, path) == 0;
}

static void print_chains(const struct watched *watched)
{
	char text[200] = "";

	for (size_t i = 0; i < watched->ours.count || i < watched->theirs.count; i++) {
		const struct symbols_native_frame *a = &watched->ours.frames[i];
		const struct symbols_native_frame *b = &watched->theirs.frames[i];
		struct symbols_function function = { .name = "?" };

		if (i >= watched->ours.count)
			a = b;
		symbols_find_function(watched->space, a->pc - (i > 0), &function, NULL);
		print_message("%2zu %12lx %12lx  %12lx %12lx  %s\n", i, a->pc, a->sp,
			      i < watched->theirs.count ? b->pc : 0,
			      i < watched->theirs.count ? b->sp : 0, function.name);
	}
	if (watched->ours.end < 0)
		failure_describe(&watched->ours.why, text, sizeof(text));
	print_message("ours ended with %d%s, theirs with %d\n", watched->ours.end, text,
		      watched->theirs.end);
}

/* Where the frame is, and the registers that a call preserves. */
static bool same_frame(const struct chain *a, const struct chain *b, size_t index)
{
#if defined(__x86_64__)
	static const int preserved[] = { 3, 6, 12, 13, 14, 15 };
#else
	static const int preserved[] = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 };
#endif

	for (size_t i = 0; i < sizeof(preserved) / sizeof(preserved[0]); i++)
		if (a->registers[index].r[preserved[i]] != b->registers[index].r[preserved[i]])
			return false;
	return a->frames[index].pc == b->frames[index].pc &&
	       a->frames[index].sp == b->frames[index].sp;
}

/**
 * Whether our walk may have ended early: it stood in code whose rule is not true there, so the next
 * "return address" was none. The reference then guesses.
 */
static bool may_be_cut(const struct watched *watched)
{
	uint64_t pc = watched->ours.frames[0].pc;

	return pc >= watched->odd_start && pc < watched->odd_end;
}

static void compare(struct watched *watched)
{
	const struct chain *ours = &watched->ours, *theirs = &watched->theirs;
	bool is_truncated = may_be_cut(watched) && (ours->end < 0 || ours->count < theirs->count);
	bool same = is_truncated ? ours->count <= theirs->count
				 : ours->count == theirs->count && ours->end == 0;

	for (size_t i = 0; i < ours->count && same; i++)
		same = same_frame(ours, theirs, i);
	if (!same)
		print_chains(watched);
	assert_true(same);
	if (is_truncated)
		watched->cut++;
	else
		watched->compared++;
}

/** One stop: copy, go on only after the reference has walked, compare. */
static void stop_once(struct watched *watched)
{
	stopped_stop(watched->tid, &watched->regs);
	stopped_copy_stack(watched->space, attach_process_reader(watched->process), &watched->regs,
			   watched->image);
	walk_ours(watched);
	if (is_in(watched, watched->ours.frames[0].pc, "[vdso]")) {
		watched->in_vdso++;
		/* The reference reads files only; ours must still arrive at the end. */
		assert_int_equal(watched->ours.end, 0);
		assert_true(watched->ours.count >= 5);
	} else {
		walk_theirs(watched);
		compare(watched);
	}
	stopped_go(watched->tid);
	usleep((useconds_t)(rand() % 300));
}

static void report(const struct watched *watched, const char *what)
{
	print_message("%s: %u stops compared, %u in the vDSO, %.1f frames each, %.0f ns per "
		      "frame\n",
		      what, watched->compared, watched->in_vdso,
		      (double)watched->frames /
			      (watched->compared + watched->in_vdso + watched->cut),
		      (double)watched->ns / (double)watched->frames);
}

static void run_shape(const char *shape, bool may_be_in_vdso)
{
	const char *const argv[] = { UNWIND_TARGET, shape, NULL };
	struct watched watched;

	watch(&watched, argv);
	for (unsigned i = 0; i < test_rounds(STOPS); i++)
		stop_once(&watched);
	report(&watched, shape);
	if (may_be_in_vdso)
		assert_true(watched.in_vdso > 0);
	else
		assert_true(watched.compared >= COMPARED_MIN(test_rounds(STOPS)));
	unwatch(&watched);
}

static void test_deep(void **state)
{
	(void)state;
	run_shape("deep", false);
}

static void test_callback_through_libc(void **state)
{
	(void)state;
	run_shape("sort", false);
}

static void test_vdso(void **state)
{
	(void)state;
	run_shape("clock", true);
}

static void test_signal_handler(void **state)
{
	(void)state;
	run_shape("signal", false);
}

static void test_signal_handler_on_its_own_stack(void **state)
{
	(void)state;
	run_shape("altstack", false);
}

static void test_thread(void **state)
{
	(void)state;
	run_shape("thread", false);
}

static const char lua_program[] =
	"jit.off() "
	"local function leaf(i) return ('x'):rep(i % 7) .. tostring(i) end "
	"local function mid(i) local t = {} for j = 1, 5 do t[j] = leaf(i + j) end "
	"table.sort(t, function(a, b) return a < b end) return #table.concat(t) end "
	"io.stdout:write('ready\\n') io.stdout:flush() "
	"local i = 0 while true do i = i + 1 pcall(mid, i) "
	"string.gsub('a b c', '%w', function(c) return c .. i end) end";

/** The rule of the interpreter, as the C frame is laid out in LuaJIT's vm_x64.dasc and
 *  vm_arm64.dasc. */
static bool is_interpreter(void *context, const struct symbols_unwind_entry *entry)
{
	uint64_t *range = context;
	const int64_t *saved = entry->saved_offset;

#if defined(__x86_64__)
	if (!entry->constant || entry->cfa_register != ATTACH_REG_RSP || entry->cfa_offset != 80)
		return true;
	assert_int_equal(saved[ATTACH_REG_RIP], -8);
	assert_int_equal(saved[ATTACH_REG_RBP], -16);
	assert_int_equal(saved[ATTACH_REG_RBX], -24);
	assert_int_equal(saved[ATTACH_REG_R15], -32);
	assert_int_equal(saved[ATTACH_REG_R14], -40);
	assert_int_equal(saved[ATTACH_REG_RAX], INT64_MIN);
#else
	if (!entry->constant || saved[ATTACH_REG_FP] != -16 || saved[ATTACH_REG_X19] != -24)
		return true;
	assert_int_equal(saved[ATTACH_REG_LR], -8);
	assert_int_equal(saved[ATTACH_REG_X0], INT64_MIN);
#endif
	range[0] = entry->start;
	range[1] = entry->end;
	return false;
}

static void test_luajit(void **state)
{
	const char *const argv[] = { "luajit", "-e", lua_program, NULL };
	struct watched watched;
	uint64_t interpreter[2] = { 0 };
	unsigned inside = 0;

	(void)state;
	if (access("/usr/bin/luajit", X_OK) != 0) {
		print_message("no /usr/bin/luajit here\n");
		skip();
	}
	watch(&watched, argv);
	assert_int_equal(
		symbols_each_unwind_entry(watched.space, 8192, is_interpreter, interpreter, NULL),
		0);
	assert_true(interpreter[0] != 0);
	/* Helpers inside the interpreter's entry are called, so sp is a word or more off there. */
	watched.odd_start = interpreter[0];
	watched.odd_end = interpreter[1];
	for (unsigned i = 0; i < test_rounds(LUAJIT_STOPS); i++) {
		stop_once(&watched);
		inside += attach_pc(&watched.regs) >= interpreter[0] &&
			  attach_pc(&watched.regs) < interpreter[1];
	}
	report(&watched, "luajit");
	print_message("luajit: %u stops in the interpreter (%lu bytes), %u of them cut\n", inside,
		      interpreter[1] - interpreter[0], watched.cut);
	assert_true(watched.compared >= COMPARED_MIN(test_rounds(LUAJIT_STOPS)));
	unwatch(&watched);
}

/** The walk can begin again at any frame, with that frame's registers. */
static void test_begin_again(void **state)
{
	const char *const argv[] = { UNWIND_TARGET, "sort", NULL };
	struct watched watched;
	struct chain whole, again;

	(void)state;
	watch(&watched, argv);
	stopped_stop(watched.tid, &watched.regs);
	stopped_copy_stack(watched.space, attach_process_reader(watched.process), &watched.regs,
			   watched.image);
	walk_ours(&watched);
	whole = watched.ours;
	assert_int_equal(whole.end, 0);
	for (size_t i = 1; i < whole.count; i++) {
		struct symbols_native_frame frame;
		struct failure why;

		symbols_unwind_begin_caller(watched.unwinder, &whole.registers[i],
					    attach_image_reader(watched.image));
		symbols_unwind_frame(watched.unwinder, &frame);
		assert_int_equal(frame.pc, whole.frames[i].pc);
		for (size_t j = i + 1; j < whole.count; j++) {
			assert_int_equal(symbols_unwind_step(watched.unwinder, &why), 1);
			symbols_unwind_frame(watched.unwinder, &again.frames[j]);
			symbols_unwind_registers(watched.unwinder, &again.registers[j]);
			assert_true(same_frame(&again, &whole, j));
		}
		assert_int_equal(symbols_unwind_step(watched.unwinder, &why), 0);
	}
	unwatch(&watched);
}

/** What cannot be derived is a failure with its reason, never a guess. */
/* Whether the thread stands in code with an unwind entry. Copies its stack. */
static bool has_entry(struct watched *watched)
{
	struct failure why;

	attach_image_clear(watched->image);
	stopped_copy_stack(watched->space, attach_process_reader(watched->process), &watched->regs,
			   watched->image);
	symbols_unwind_begin(watched->unwinder, &watched->regs,
			     attach_image_reader(watched->image));
	return symbols_unwind_step(watched->unwinder, &why) > 0;
}

static void test_failures(void **state)
{
	const char *const argv[] = { UNWIND_TARGET, "deep", NULL };
	struct watched watched;
	const struct attach_reader *memory;
	struct attach_registers regs;
	struct failure why;
	unsigned stops = 0;

	(void)state;
	watch(&watched, argv);
	stopped_stop(watched.tid, &watched.regs);
	/* Elsewhere: stubs of the linkage table have no entries on AArch64. */
	while (!has_entry(&watched)) {
		assert_true(++stops < STOPS);
		stopped_go(watched.tid);
		stopped_stop(watched.tid, &watched.regs);
	}
	memory = attach_image_reader(watched.image);

	regs = watched.regs;
	regs.r[ATTACH_REG_PC] = attach_sp(&regs); /* code on the stack: no entry, valid rbp */
	symbols_unwind_begin(watched.unwinder, &regs, memory);
	assert_int_equal(symbols_unwind_step(watched.unwinder, &why), -1);
	assert_int_equal(why.kind, FAILURE_NOT_FOUND);
	assert_int_equal(why.address, attach_sp(&regs));

	attach_image_clear(watched.image);
	symbols_unwind_begin(watched.unwinder, &watched.regs, memory);
	/* A function that has saved nothing yet returns without a look at the stack. */
	if (symbols_unwind_step(watched.unwinder, &why) > 0)
		assert_int_equal(symbols_unwind_step(watched.unwinder, &why), -1);
	assert_int_equal(why.kind, FAILURE_FAULT);
	assert_true(why.address - attach_sp(&watched.regs) < 4096);
	unwatch(&watched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_callback_through_libc),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_signal_handler),
		cmocka_unit_test(test_signal_handler_on_its_own_stack),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_luajit),
		cmocka_unit_test(test_begin_again),
		cmocka_unit_test(test_failures),
	};
	const char *const argv[] = { UNWIND_TARGET, "deep", NULL };

	if (!stopped_may_trace(argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
