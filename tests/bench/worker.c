/* SPDX-License-Identifier: MIT */
#include "tests/bench/worker.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum {
	COUNT_BYTES = 4096,
	/* From when a program is started until it certainly counts. */
	SETTLE_US = 400 * 1000,
};

static bool map_count(struct worker *worker)
{
	int fd = open(worker->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	void *bytes = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, COUNT_BYTES) == 0)
		bytes = mmap(NULL, COUNT_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	worker->count = bytes == MAP_FAILED ? NULL : bytes;
	return worker->count != NULL;
}

static void take_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

bool worker_start(const char *work, const char *folder, const char *profile, int seconds,
		  struct worker *ret_worker)
{
	static unsigned serial;
	char text[16];

	*ret_worker = (struct worker){ .work = work };
	snprintf(ret_worker->path, sizeof(ret_worker->path), "%s/count%u", folder, serial++);
	snprintf(text, sizeof(text), "%d", seconds);
	if (!map_count(ret_worker))
		return false;
	ret_worker->pid = ret_worker->starter = fork();
	if (ret_worker->pid == 0) {
		take_processor();
		execlp("luajit", "luajit", profile ? profile : "-jon", BENCH_UNITS_LUA, work,
		       ret_worker->path, text, (char *)NULL);
		_exit(127);
	}
	usleep(SETTLE_US);
	/* One that has ended is no longer ours to end: its number may be another's. */
	if (ret_worker->pid > 0 && waitpid(ret_worker->pid, NULL, WNOHANG) != 0)
		ret_worker->pid = ret_worker->starter = 0;
	return ret_worker->pid > 0;
}

/* What the starter prints until it is ready. @return The worker's pid, or 0. */
static pid_t await_nginx(int output, bool *ret_skipped)
{
	FILE *file = fdopen(output, "r");
	char line[512];
	int pid = 0;

	while (file && fgets(line, sizeof(line), file) && strcmp(line, "READY\n") != 0) {
		sscanf(line, "PID %d", &pid);
		if (strncmp(line, "SKIP ", 5) != 0)
			continue;
		*ret_skipped = true;
		bench_skip("nginx", "runs", "%.*s", (int)strcspn(line + 5, "\n"), line + 5);
	}
	if (file)
		fclose(file);
	return pid;
}

bool worker_start_nginx(const char *work, const char *folder, bool is_idle, int seconds,
			struct worker *ret_worker)
{
	int pipes[2];
	char text[16];

	*ret_worker = (struct worker){ .work = work };
	snprintf(ret_worker->path, sizeof(ret_worker->path), "%s/requests", folder);
	snprintf(text, sizeof(text), "%d", seconds);
	if (!map_count(ret_worker) || pipe2(pipes, O_CLOEXEC) != 0)
		return false;
	chmod(folder, 0711); /* its worker is another user */
	ret_worker->starter = fork();
	if (ret_worker->starter == 0) {
		setenv("BENCH_COUNT", ret_worker->path, 1);
		if (is_idle)
			setenv("BENCH_IDLE", "1", 1);
		dup2(pipes[1], STDOUT_FILENO);
		execl(BENCH_NGINX, BENCH_NGINX, "--seconds", text, (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	if (ret_worker->starter > 0)
		ret_worker->pid = await_nginx(pipes[0], &ret_worker->is_skipped);
	return ret_worker->pid > 0;
}

void worker_end(struct worker *worker)
{
	if (worker->starter > 0) {
		kill(worker->starter, worker->starter == worker->pid ? SIGKILL : SIGTERM);
		waitpid(worker->starter, NULL, 0);
	}
	if (worker->count)
		munmap((void *)(uintptr_t)worker->count, COUNT_BYTES);
	unlink(worker->path);
}
