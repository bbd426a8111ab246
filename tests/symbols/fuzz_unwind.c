/* SPDX-License-Identifier: MIT */
/*
 * Unwinding of stacks of any content through code that is as compilers make it: a program with
 * unwind entries, and one with frame pointers instead. The first byte chooses the program; what
 * follows are registers, then the words of the stack, each by a byte for its kind and its number.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define CODE  UINT64_C(0x7f0000000000)
#define STACK UINT64_C(0x7ffe00000000)

enum {
	FILE_BYTES = 1 << 16,
	STACK_WORDS = 512,
	RETURNS_MAX = 256,
	STEPS_MAX = 100 * 1000,
};

/** A program, flat in memory as its segments are. */
struct program {
	uint8_t bytes[FILE_BYTES];
	size_t len;
	uint64_t returns[RETURNS_MAX]; /* behind what looks like a call */
	size_t return_count;
};

/** Memory of a thread. */
struct thread {
	const struct program *program;
	uint64_t stack[STACK_WORDS];
};

/** What is left of an input. */
struct input {
	const uint8_t *bytes;
	size_t len;
};

static const char *const paths[] = { UNWIND_TARGET, FP_STRIPPED };

#define PROGRAMS (sizeof(paths) / sizeof(paths[0]))

static struct program programs[PROGRAMS];

static void must(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	for (size_t i = 0; i < PROGRAMS; i++) {
		struct program *program = &programs[i];
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		ssize_t len = fd < 0 ? -1 : read(fd, program->bytes, sizeof(program->bytes));

		must(len > 0);
		close(fd);
		program->len = (size_t)len;
		for (size_t at = 0; at + 5 <= program->len; at++)
			if (program->bytes[at] == 0xe8 && program->return_count < RETURNS_MAX)
				program->returns[program->return_count++] = CODE + at + 5;
		must(program->return_count);
	}
	return 0;
}

/* ---- Memory ----------------------------------------------------------------------------- */

static int read_thread(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	const struct thread *thread = self;
	uint64_t code_at = address.value - CODE, stack_at = address.value - STACK;

	if (code_at < FILE_BYTES && len <= FILE_BYTES - code_at)
		memcpy(ret_bytes, thread->program->bytes + code_at, len);
	else if (stack_at < sizeof(thread->stack) && len <= sizeof(thread->stack) - stack_at)
		memcpy(ret_bytes, (const uint8_t *)thread->stack + stack_at, len);
	else
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read");
	return 0;
}

/* Zeros behind the end. */
static uint64_t take(struct input *input, size_t len)
{
	uint64_t value = 0;

	len = len < input->len ? len : input->len;
	memcpy(&value, input->bytes, len);
	input->bytes += len;
	input->len -= len;
	return value;
}

/* A word that may lead somewhere. */
static uint64_t take_word(struct input *input, const struct program *program)
{
	switch (take(input, 1) & 7) {
	case 0:
		return take(input, 8);
	case 1:
		return take(input, 1);
	case 2:
		return CODE + take(input, 2) % program->len;
	case 3:
	case 4:
		return program->returns[take(input, 1) % program->return_count];
	case 5:
		return STACK + take(input, 2) % (8 * STACK_WORDS);
	default:
		return STACK + 8 * (take(input, 2) % STACK_WORDS);
	}
}

/* The program plays the vDSO, so that all of it is read from memory. */
static struct symbols_space *make_space(const struct thread *thread,
					const struct attach_reader *memory)
{
	struct symbols_space *space;
	struct failure why;
	char maps[256];

	snprintf(maps, sizeof(maps),
		 "%lx-%lx r-xp 00000000 00:00 0 [vdso]\n%lx-%lx rw-p 00000000 00:00 0 [stack]\n",
		 CODE, CODE + ((thread->program->len + 4095) & ~(size_t)4095), STACK,
		 STACK + sizeof(thread->stack));
	must(symbols_space_create_recorded(maps, strlen(maps), &space, &why) == 0);
	symbols_space_set_memory(space, memory);
	return space;
}

/* ---- Unwinding -------------------------------------------------------------------------- */

/* As far as any way leads. */
static void unwind(struct symbols_unwinder *unwinder)
{
	struct symbols_native_frame frame;
	struct attach_registers regs;
	struct failure why;

	for (unsigned steps = 0;; steps++) {
		must(steps < STEPS_MAX);
		symbols_unwind_frame(unwinder, &frame);
		symbols_unwind_registers(unwinder, &regs);
		if (symbols_unwind_step(unwinder, &why) > 0 ||
		    symbols_unwind_step_frame_pointer(unwinder, &why) > 0)
			continue;
		if (symbols_unwind_find_frame_pointer(
			    unwinder, STACK + sizeof(uint64_t) * STACK_WORDS, &why) != 0 ||
		    symbols_unwind_step(unwinder, &why) <= 0)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct thread thread;
	const struct attach_reader memory = { .read = read_thread, .self = &thread };
	struct input input = { .bytes = data, .len = size };
	struct attach_registers regs = { .syscall = -1 };
	struct symbols_unwinder *unwinder;
	struct symbols_space *space;
	struct failure why;

	thread.program = &programs[take(&input, 1) % PROGRAMS];
	for (size_t i = 0; i < ATTACH_REG_COUNT; i++)
		regs.r[i] = take_word(&input, thread.program);
	for (size_t i = 0; i < STACK_WORDS; i++)
		thread.stack[i] = input.len ? take_word(&input, thread.program) : 0;
	space = make_space(&thread, &memory);
	must(symbols_unwinder_create(space, &unwinder, &why) == 0);
	symbols_unwind_begin(unwinder, &regs, &memory);
	unwind(unwinder);
	symbols_unwind_begin_caller(unwinder, &regs, &memory);
	unwind(unwinder);
	symbols_unwinder_destroy(unwinder);
	symbols_space_destroy(space);
	return 0;
}
