/* SPDX-License-Identifier: MIT */
/*
 * Speed and memory. Each number is a ratio within this run, or is taken while the machine does
 * nothing else; repeated, and the median counts.
 */
#include "tests/bench/bench.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failed;

static void tell(const char *what, const char *asked, const char *verdict, const char *format,
		 va_list list) __attribute__((format(printf, 4, 0)));

static void tell(const char *what, const char *asked, const char *verdict, const char *format,
		 va_list list)
{
	printf("RESULT\t%s\t%s\t", what, asked);
	vprintf(format, list);
	printf("\t%s\n", verdict);
	fflush(stdout);
}

void bench_result(const char *what, const char *asked, bool ok, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	tell(what, asked, ok ? "ok" : "FAILED", format, list);
	va_end(list);
	failed += !ok;
}

void bench_skip(const char *what, const char *asked, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	tell(what, asked, "skipped", format, list);
	va_end(list);
}

uint64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t bench_quantile(uint64_t *values, size_t count, double q)
{
	size_t index = (size_t)(q * (double)count);

	qsort(values, count, sizeof(*values), compare);
	return values[index < count ? index : count - 1];
}

pid_t bench_start_program(const char *path, int seconds)
{
	char text[16];
	pid_t pid;

	snprintf(text, sizeof(text), "%d", seconds);
	pid = fork();
	if (pid == 0) {
		execlp("luajit", "luajit", path, text, (char *)NULL);
		_exit(127);
	}
	usleep(300 * 1000); /* it runs its loop after a few milliseconds */
	if (pid < 0 || waitpid(pid, NULL, WNOHANG) != 0) {
		fprintf(stderr, "bench: cannot start luajit: install the package luajit\n");
		exit(77);
	}
	return pid;
}

pid_t bench_start_target(int seconds)
{
	return bench_start_program(BENCH_LUA, seconds);
}

void bench_end_target(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

bool bench_part(pid_t pid, struct bench_parted *ret_parted)
{
	int found = 0;

	*ret_parted = (struct bench_parted){ .pid = pid };
	if (sched_getaffinity(0, sizeof(cpu_set_t), &ret_parted->allowed) != 0)
		return false;
	for (int i = 0; i < CPU_SETSIZE && found < 2; i++) {
		cpu_set_t one;

		if (!CPU_ISSET(i, &ret_parted->allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		sched_setaffinity(found++ ? 0 : pid, sizeof(one), &one);
	}
	return found == 2;
}

void bench_join(const struct bench_parted *parted)
{
	sched_setaffinity(parted->pid, sizeof(parted->allowed), &parted->allowed);
	sched_setaffinity(0, sizeof(parted->allowed), &parted->allowed);
}

void bench_make_folder(char *folder)
{
	if (!mkdtemp(folder)) {
		perror("bench: mkdtemp");
		exit(1);
	}
}

static int ignore_function(void *context, const struct format_function *function, uint32_t *ret_id,
			   struct failure *why)
{
	(void)context;
	(void)function;
	(void)why;
	*ret_id = 0;
	return 0;
}

int bench_open_target(pid_t pid, struct daemon_target **ret_target, struct failure *why)
{
	const struct target_listener listener = { .function = ignore_function };
	struct daemon_target *target = NULL;
	struct attach_process *process;

	if (attach_process_open(pid, &process, why) != 0)
		return -1;
	if (target_create(process, &listener, &target, why) != 0) {
		attach_process_close(process);
		return -1;
	}
	if (target_refresh(target, why) != 0) {
		bench_close_target(target);
		return -1;
	}
	*ret_target = target;
	return 0;
}

void bench_close_target(struct daemon_target *target)
{
	struct attach_process *process = target ? target->process : NULL;

	target_destroy(target);
	attach_process_close(process);
}

/* bench [--full] [stop | traces | find | record | slowdown | use | top | growth]: all parts, or
 * one. */
int main(int argc, char **argv)
{
	bool full = argc > 1 && strcmp(argv[1], "--full") == 0;
	const char *part = argc > 1 + full ? argv[1 + full] : NULL;

	if (!part || strcmp(part, "stop") == 0)
		bench_stop(full ? 5000 : 1500);
	if (!part || strcmp(part, "traces") == 0)
		bench_traces(full);
	if (!part || strcmp(part, "find") == 0)
		bench_find();
	if (!part || strcmp(part, "record") == 0)
		bench_record(full);
	if (!part || strcmp(part, "slowdown") == 0)
		bench_slowdown(full);
	if (!part || strcmp(part, "use") == 0)
		bench_use(full);
	if (!part || strcmp(part, "top") == 0)
		bench_top(full);
	if (!part || strcmp(part, "growth") == 0)
		bench_growth(full);
	return failed ? 1 : 0;
}
