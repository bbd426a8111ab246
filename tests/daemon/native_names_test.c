/* SPDX-License-Identifier: MIT */
/* Names of native functions: behind a call that does not return, and where the maps change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../symbols/stopped.h"
#include "daemon/decode/function_ids.h"

#define STAY_ARGUMENT "stay"

enum { NAMES_MAX = 256, PAGE_BYTES = 4096 };

/** What a recorder would hold. */
struct names {
	char *of[NAMES_MAX];
	uint32_t count;
};

void target_stays(void);
void target_calls_last(void);

#if defined(__x86_64__)
#define CALL_LAST                     \
	"	sub $8, %rsp\n"             \
	"	.cfi_adjust_cfa_offset 8\n" \
	"	call target_stays\n"
#else
#define CALL_LAST                      \
	"	stp x29, x30, [sp, #-16]!\n" \
	"	.cfi_def_cfa_offset 16\n"    \
	"	.cfi_offset 29, -16\n"       \
	"	.cfi_offset 30, -8\n"        \
	"	bl target_stays\n"
#endif

/* The call is the last instruction: the address of its return is that of the next function. */
__asm__(".text\n"
	".globl target_calls_last\n"
	".type target_calls_last, @function\n"
	"target_calls_last:\n"
	"	.cfi_startproc\n" CALL_LAST "	.cfi_endproc\n"
	".size target_calls_last, . - target_calls_last\n"
	".globl target_follows\n"
	".type target_follows, @function\n"
	"target_follows:\n"
	"	ret\n"
	".size target_follows, . - target_follows\n");

static volatile unsigned turns;

void target_stays(void)
{
	puts("stays");
	fflush(stdout);
	for (;;)
		turns++;
}

static int announce(void *context, const struct format_function *function, uint32_t *ret_id,
		    struct failure *why)
{
	struct names *names = context;

	(void)why;
	assert_true(names->count < NAMES_MAX);
	names->of[names->count] = strdup(function->name);
	*ret_id = names->count++;
	return 0;
}

static void free_names(struct names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->of[i]);
}

static struct daemon_target *open_target(struct attach_process *process, struct names *names)
{
	const struct target_listener listener = { .function = announce, .context = names };
	struct daemon_target *target;
	struct failure why;

	assert_int_equal(0, target_create(process, &listener, &target, &why));
	assert_int_equal(0, target_refresh(target, &why));
	return target;
}

static void test_caller_that_ends_with_its_call(void **state)
{
	const char *const argv[] = { "/proc/self/exe", STAY_ARGUMENT, NULL };
	struct attach_image *image = attach_image_create();
	struct luastate_memory memory = { 0 };
	struct format_sample sample = { 0 };
	struct attach_process *process;
	enum daemon_outcome outcome;
	struct names names = { 0 };
	struct daemon_target *target;
	struct failure why;
	size_t at = 0;
	pid_t pid;

	(void)state;
	if (!stopped_may_trace(argv))
		skip();
	pid = stopped_spawn(argv);
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	target = open_target(process, &names);
	assert_true(stopped_seize(pid));
	stopped_stop(pid, attach_image_registers(image));
	memory.stopped = memory.any = attach_process_reader(process);
	assert_int_equal(0, target_decode(target, image, &memory, &sample, &outcome, &why));
	assert_int_equal(DAEMON_NO_VM, outcome);
	while (at < sample.frame_count &&
	       strcmp(names.of[sample.frames[at].function], "target_stays") != 0)
		at++;
	assert_true(at + 2 < sample.frame_count);
	assert_string_equal("target_calls_last", names.of[sample.frames[at + 1].function]);
	assert_string_equal("main", names.of[sample.frames[at + 2].function]);
	target_destroy(target);
	attach_process_close(process);
	attach_image_destroy(image);
	stopped_kill(pid);
	free_names(&names);
}

static const char *name_at(struct daemon_target *target, const struct names *names,
			   uint64_t address)
{
	struct failure why;
	uint64_t start;
	uint32_t id;

	assert_int_equal(0, target_native_id(target, address, &id, &start, &why));
	return names->of[id];
}

/* Offset of a function in this program's file. */
static uint64_t offset_of(struct daemon_target *target, uint64_t address)
{
	const struct symbols_mapping *mapping = symbols_space_find(target->space, address);

	assert_non_null(mapping);
	return address - mapping->start + mapping->offset;
}

/* A file is mapped where other memory was, as libraries are that come in each other's place. */
static void test_names_follow_the_maps(void **state)
{
	struct attach_process *process;
	struct names names = { 0 };
	struct daemon_target *target;
	uint64_t offset, page, address;
	struct failure why;
	void *area;
	int fd;

	(void)state;
	area = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(MAP_FAILED, area);
	assert_int_equal(0, attach_process_open(getpid(), &process, &why));
	target = open_target(process, &names);
	offset = offset_of(target, (uint64_t)(uintptr_t)target_calls_last);
	page = offset & ~(uint64_t)(PAGE_BYTES - 1);
	address = (uint64_t)(uintptr_t)area + (offset - page);
	assert_string_not_equal("target_calls_last", name_at(target, &names, address));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_ptr_equal(area, mmap(area, PAGE_BYTES, PROT_READ | PROT_EXEC,
				    MAP_PRIVATE | MAP_FIXED, fd, (off_t)page));
	assert_int_equal(0, target_refresh(target, &why));
	assert_string_equal("target_calls_last", name_at(target, &names, address));
	close(fd);
	munmap(area, PAGE_BYTES);
	target_destroy(target);
	attach_process_close(process);
	free_names(&names);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_caller_that_ends_with_its_call),
		cmocka_unit_test(test_names_follow_the_maps),
	};

	if (argc > 1 && strcmp(argv[1], STAY_ARGUMENT) == 0)
		target_calls_last();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
