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

void bench_result(const char *what, const char *asked, bool ok, const char *format, ...)
{
	va_list list;

	printf("RESULT\t%s\t%s\t", what, asked);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\t%s\n", ok ? "ok" : "FAILED");
	fflush(stdout);
	failed += !ok;
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

pid_t bench_start_target(int seconds)
{
	char text[16];
	pid_t pid;

	snprintf(text, sizeof(text), "%d", seconds);
	pid = fork();
	if (pid == 0) {
		execlp("luajit", "luajit", BENCH_LUA, text, (char *)NULL);
		_exit(127);
	}
	usleep(300 * 1000); /* it runs its loop after a few milliseconds */
	if (pid < 0 || waitpid(pid, NULL, WNOHANG) != 0) {
		fprintf(stderr, "bench: cannot start luajit: install the package luajit\n");
		exit(77);
	}
	return pid;
}

void bench_end_target(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	bool full = argc > 1 && strcmp(argv[1], "--full") == 0;

	bench_stop(full ? 5000 : 1500);
	bench_record(full);
	return failed ? 1 : 0;
}
