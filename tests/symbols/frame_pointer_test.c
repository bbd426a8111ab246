/* SPDX-License-Identifier: MIT */

/*
 * Each instruction of a program without unwind entries is stepped through and unwound from: chains
 * may end early, but no function may be left out or made up.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "stopped.h"
#include "symbols/names/symtab.h"
#include "tests/rounds.h"

#define STEPS	   10000
#define FULL_STEPS 30000
#define FRAMES_MAX 64

/** Who calls whom; "" is code outside the program. */
static const char *const calls[][2] = {
	{ "main", "fp_top" },
	{ "fp_top", "fp_mid" },
	{ "fp_top", "fp_sort" },
	{ "fp_mid", "fp_leaf" },
	{ "fp_mid", "fp_early" },
	{ "fp_early", "fp_leaf" },
	{ "fp_mid", "fp_pointer" },
	{ "fp_pointer", "fp_leaf" },
	{ "fp_mid", "fp_frameless" },
	{ "fp_mid", "fp_frameless_moves" },
	{ "fp_mid", "fp_recurse" },
	{ "fp_recurse", "fp_recurse" },
	{ "fp_recurse", "fp_leaf" },
	{ "fp_sort", "fp_leaf" },
	{ "fp_compare", "fp_leaf" },
	{ "fp_frameless_moves", "fp_leaf" },
	{ "fp_sort", "" },
	{ "", "fp_compare" },
	{ "", "main" },
	{ "", "" },
};

struct walked {
	pid_t pid;
	struct attach_process *process;
	struct symbols_space *space;
	struct symbols_unwinder *unwinder;
	struct attach_image *image;
	struct attach_registers regs;
	struct symbols_elf elf; /* with symbols, also where the program has none */
	struct symbols_names names;
	uint64_t bias, start, end;
	bool has_symbols;
	unsigned inside, complete, at_main, by_frame_pointer;
};

static void open_names(struct walked *walked)
{
	static const struct symbols_root root = { .fd = -1 };
	struct symbols_source source;
	struct failure why;

	assert_int_equal(symbols_source_init_file(&source, open(FP_TARGET, O_RDONLY), &why), 0);
	assert_int_equal(symbols_elf_init(&walked->elf, &source, &why), 0);
	assert_int_equal(symbols_names_init(&walked->names, &walked->elf, "", &root, &why), 0);
}

static void walk_begin(struct walked *walked, const char *path)
{
	const char *const argv[] = { path, NULL };
	struct failure why;

	*walked = (struct walked){ .pid = stopped_spawn(argv) };
	assert_int_equal(attach_process_open(walked->pid, &walked->process, &why), 0);
	assert_int_equal(symbols_space_create(walked->process, &walked->space, &why), 0);
	assert_int_equal(symbols_unwinder_create(walked->space, &walked->unwinder, &why), 0);
	walked->image = attach_image_create();
	assert_non_null(walked->image);
	open_names(walked);
	for (size_t i = 0; i < symbols_space_count(walked->space); i++) {
		const struct symbols_mapping *mapping = symbols_space_get(walked->space, i);

		if (mapping->executable && strcmp(mapping->path, path) == 0) {
			/* Link-time addresses are file offsets there. */
			walked->bias = mapping->start - mapping->offset;
			walked->start = mapping->start;
			walked->end = mapping->end;
		}
	}
	assert_true(walked->end != 0);
	assert_true(stopped_seize(walked->pid));
	stopped_stop(walked->pid, &walked->regs);
}

static void walk_end(struct walked *walked)
{
	stopped_kill(walked->pid);
	symbols_names_deinit(&walked->names);
	symbols_elf_deinit(&walked->elf);
	symbols_unwinder_destroy(walked->unwinder);
	symbols_space_destroy(walked->space);
	attach_image_destroy(walked->image);
	attach_process_close(walked->process);
}

/** Name of a function of the program, "" for what is outside. */
static const char *name_at(const struct walked *walked, uint64_t pc, char *text)
{
	struct symbols_name name;

	text[0] = '\0';
	if (pc >= walked->start && pc < walked->end &&
	    !symbols_names_find(&walked->names, NULL, pc - walked->bias, &name, text))
		text[0] = '\0';
	/* What the linker and the C library put in. */
	if (strncmp(text, "fp_", 3) != 0 && strcmp(text, "main") != 0)
		text[0] = '\0';
	return text;
}

static bool is_call(const char *caller, const char *callee)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i][0], caller) == 0 && strcmp(calls[i][1], callee) == 0)
			return true;
	}
	return false;
}

static int step(struct walked *walked, struct failure *why)
{
	int result = symbols_unwind_step(walked->unwinder, why);

	if (result >= 0 || why->kind != FAILURE_NOT_FOUND)
		return result;
	result = symbols_unwind_step_frame_pointer(walked->unwinder, why);
	walked->by_frame_pointer += result > 0;
	return result;
}

static void walk_once(struct walked *walked)
{
	char text[2][SYMBOLS_NAME_MAX_BYTES], chain[1024] = "";
	const char *callee = NULL;
	struct failure why = { 0 };
	bool saw_main = false;
	int result = 1;

	stopped_copy_stack(walked->space, attach_process_reader(walked->process), &walked->regs,
			   walked->image);
	symbols_unwind_begin(walked->unwinder, &walked->regs, attach_image_reader(walked->image));
	for (unsigned i = 0; i < FRAMES_MAX && result > 0; i++) {
		struct symbols_native_frame frame;
		const char *name;
		size_t len = strlen(chain);

		symbols_unwind_frame(walked->unwinder, &frame);
		name = name_at(walked, frame.pc - (i > 0), text[i % 2]);
		snprintf(chain + len, sizeof(chain) - len, " <- %s", *name ? name : "?");
		if (callee && !is_call(name, callee)) {
			print_message("%s: at %lx\n", chain,
				      attach_pc(&walked->regs) - walked->bias);
			fail();
		}
		saw_main |= strcmp(name, "main") == 0;
		callee = name;
		result = step(walked, &why);
	}
	walked->at_main += saw_main;
	/* All functions but those in one file have a frame pointer. */
	if (walked->has_symbols && !saw_main && !strstr(chain, "fp_frameless")) {
		print_message("%s: at %lx\n", chain, attach_pc(&walked->regs) - walked->bias);
		fail();
	}
	walked->complete += result == 0;
}

static void step_instructions(struct walked *walked)
{
	for (unsigned i = 0; i < test_steps(STEPS, FULL_STEPS); i++) {
		int status;

		if (attach_pc(&walked->regs) >= walked->start &&
		    attach_pc(&walked->regs) < walked->end) {
			walked->inside++;
			walk_once(walked);
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, walked->pid, NULL, NULL), 0);
		assert_int_equal(waitpid(walked->pid, &status, __WALL), walked->pid);
		assert_true(WIFSTOPPED(status));
		stopped_registers(walked->pid, &walked->regs);
	}
	print_message("%u instructions in the program, %u with main, %u to the end, %u steps by "
		      "frame pointer\n",
		      walked->inside, walked->at_main, walked->complete, walked->by_frame_pointer);
}

static void test_with_symbols(void **state)
{
	struct walked walked;

	(void)state;
	walk_begin(&walked, FP_TARGET);
	walked.has_symbols = true;
	step_instructions(&walked);
	assert_true(walked.inside > test_steps(STEPS, FULL_STEPS) / 4);
	assert_true(walked.at_main > walked.inside / 2);
	assert_int_equal(walked.complete, walked.at_main);
	walk_end(&walked);
}

static void test_without_symbols(void **state)
{
	struct walked walked;

	(void)state;
	walk_begin(&walked, FP_STRIPPED);
	step_instructions(&walked);
	assert_true(walked.inside > test_steps(STEPS, FULL_STEPS) / 4);
	/* Without a function's start only frames of known size are certain, and of those that were
	 * interrupted only those at a return where calls push nothing. */
#if defined(__x86_64__)
	assert_true(walked.at_main > walked.inside / 10);
#else
	assert_true(walked.at_main > walked.inside / 40);
#endif
	walk_end(&walked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_symbols),
		cmocka_unit_test(test_without_symbols),
	};
	const char *const argv[] = { FP_TARGET, NULL };

	if (!stopped_may_trace(argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
