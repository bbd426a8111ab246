/* SPDX-License-Identifier: MIT */
/*
 * How much slower a busy program becomes under a profiler, and what the profiler uses itself: ours, perf
 * and LuaJIT's own, in one run. The program counts its units of work; windows with the profiler and
 * without it follow each other in pairs, in changing order, so that a machine that becomes slower or
 * faster meanwhile counts for both.
 */
#include "tests/bench/bench.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/tmp/ljprof-bench-XXXXXX"

enum {
	PAIRS_MAX = 64,
	PATH_MAX_BYTES = 256,
	/* From when a profiler is started until it certainly samples, and after it has ended. */
	SETTLE_US = 400 * 1000,
	LIFETIME_S = 3600,
};

/** A program that counts its units of work. */
struct worker {
	pid_t pid;
	const volatile uint64_t *count;
	char path[PATH_MAX_BYTES];
};

/** A profiler of a running process. */
struct profiler {
	const char *name;
	unsigned rate_hz;
	/** @return pid */
	pid_t (*start)(const struct profiler *profiler, pid_t target);
	char output[PATH_MAX_BYTES];
};

/** What one profiler used in all its windows. */
struct use {
	double cpu_s, wall_s, bytes;
};

/** Slowdown in percent, with the half width of its 95 % interval. */
struct slowdown {
	double mean, half;
	unsigned pairs;
};

static char folder[] = FOLDER;

/* ---- The program ------------------------------------------------------------------------ */

static const volatile uint64_t *map_count(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *bytes = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, 4096) == 0)
		bytes = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return bytes == MAP_FAILED ? NULL : bytes;
}

/* @param profile LuaJIT's own profiler: an option of its, or NULL. */
static bool start_worker(const char *work, const char *profile, struct worker *ret_worker)
{
	char seconds[16];

	snprintf(ret_worker->path, sizeof(ret_worker->path), "%s/count%d", folder, profile != NULL);
	ret_worker->count = map_count(ret_worker->path);
	if (!ret_worker->count)
		return false;
	snprintf(seconds, sizeof(seconds), "%d", LIFETIME_S);
	ret_worker->pid = fork();
	if (ret_worker->pid == 0) {
		execlp("luajit", "luajit", profile ? profile : "-", BENCH_UNITS_LUA, work,
		       ret_worker->path, seconds, (char *)NULL);
		_exit(127);
	}
	usleep(SETTLE_US);
	return ret_worker->pid > 0 && waitpid(ret_worker->pid, NULL, WNOHANG) == 0;
}
