/* SPDX-License-Identifier: MIT */
/*
 * The chains of all threads, of a core file or of a process that stands still.
 * Usage: core_stacks CORE [SYSROOT] | core_stacks --pid PID
 * Prints a line for each thread, by their numbers: number, outcome, state, and the frames from the
 * root, with lines. Equal memory and registers give equal lines.
 */
#include "tests/live/stream.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "daemon/snapshot/core_target.h"

enum { THREADS_MAX = 64 };

/** A thread to decode. */
struct subject {
	pid_t tid;
	size_t index;
	struct attach_registers registers;
};

static struct format_functions *functions;
static struct subject subjects[THREADS_MAX];
static size_t subject_count;

static int on_function(void *context, const struct format_function *function, uint32_t *ret_id,
		       struct failure *why)
{
	(void)context;
	return format_functions_add(functions, function, ret_id, why);
}

static const struct target_listener listener = { .function = on_function };

static int by_tid(const void *a, const void *b)
{
	const struct subject *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void print_frame(const struct format_frame *frame)
{
	const struct format_function *function = format_functions_get(functions, frame->function);

	printf(";%s", function->name ? function->name : "?");
	if (function->kind == FORMAT_KIND_LUA)
		printf("%s:%u%s", function->source, frame->line, frame->trace ? "+" : "");
	else
		printf("/%llx", (unsigned long long)frame->address);
}

static void print_chain(struct daemon_target *target, struct attach_image *image,
			const struct luastate_memory *memory, pid_t tid)
{
	struct format_sample sample = { .weight = 1 };
	enum daemon_outcome outcome;
	struct failure why = { 0 };

	if (target_decode(target, image, memory, &sample, &outcome, &why) != 0)
		stream_die("decode", &why);
	printf("%d %s %d ", (int)tid, daemon_outcome_name(outcome), (int)sample.state);
	for (uint32_t i = sample.frame_count; i-- > 0;)
		print_frame(&sample.frames[i]);
	putchar('\n');
}

static struct subject *add_subject(pid_t tid)
{
	if (subject_count == THREADS_MAX)
		exit(1);
	subjects[subject_count].tid = tid;
	return &subjects[subject_count++];
}

static void show_core(const char *path, const char *sysroot, struct attach_image *image)
{
	struct luastate_memory memory;
	struct daemon_core *core;
	char text[512];

	if (daemon_core_open(path, sysroot, &listener, &core, text, sizeof(text)) !=
	    DAEMON_END_STOPPED) {
		fprintf(stderr, "%s\n", text);
		exit(1);
	}
	for (size_t i = 0; i < daemon_core_thread_count(core); i++)
		add_subject(daemon_core_thread(core, i)->tid)->index = i;
	qsort(subjects, subject_count, sizeof(*subjects), by_tid);
	target_find_all_vms(daemon_core_target(core));
	for (size_t i = 0; i < subject_count; i++) {
		daemon_core_take_thread(core, subjects[i].index, image, &memory);
		print_chain(daemon_core_target(core), image, &memory, subjects[i].tid);
	}
	daemon_core_close(core);
}

/* Each thread stands until this process ends. */
static void stop_threads(struct daemon_target *target)
{
	size_t count = attach_threads_count(target->threads);
	struct failure why = { 0 };
	int status;

	for (size_t i = 0; i < count; i++) {
		pid_t tid = attach_threads_get(target->threads, i)->tid;

		if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 ||
		    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 ||
		    waitpid(tid, &status, __WALL) != tid ||
		    attach_read_registers(tid, &add_subject(tid)->registers, &why) != 0)
			stream_die("stop a thread", &why);
	}
	qsort(subjects, subject_count, sizeof(*subjects), by_tid);
}

static void show_process(pid_t pid, struct attach_image *image)
{
	struct attach_process *process;
	struct daemon_target *target;
	struct luastate_memory memory = { 0 };
	struct failure why = { 0 };

	if (attach_process_open(pid, &process, &why) != 0 ||
	    target_create(process, &listener, &target, &why) != 0 ||
	    target_refresh(target, &why) != 0)
		stream_die("open", &why);
	stop_threads(target);
	target_find_all_vms(target);
	memory.stopped = memory.any = attach_process_reader(process);
	for (size_t i = 0; i < subject_count; i++) {
		attach_image_clear(image);
		*attach_image_registers(image) = subjects[i].registers;
		print_chain(target, image, &memory, subjects[i].tid);
	}
	target_destroy(target);
	attach_process_close(process);
}

int main(int argc, char **argv)
{
	struct attach_image *image = attach_image_create();
	bool live = argc == 3 && strcmp(argv[1], "--pid") == 0;

	functions = format_functions_create();
	if (argc < 2 || argc > 3 || !image || !functions)
		return 1;
	if (live)
		show_process((pid_t)strtol(argv[2], NULL, 10), image);
	else
		show_core(argv[1], argc == 3 ? argv[2] : NULL, image);
	attach_image_destroy(image);
	format_functions_destroy(functions);
	return 0;
}
