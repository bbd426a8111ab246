/* SPDX-License-Identifier: MIT */
/* How does a line show how much of a large file was read? */
#include "cli/report/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
	FIRST_MS = 1000,
	INTERVAL_MS = 100,
	BAR_COLUMNS = 30,
	/* The bar with its text. */
	BAR_LINE_COLUMNS = BAR_COLUMNS + 20,
};

static struct {
	pthread_t thread;
	bool runs;
	uint64_t total_bytes;
	atomic_uint_least64_t read_bytes;
	atomic_bool writes;
	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t wake;
	bool ends, is_shown;
} progress = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_wide(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
	       size.ws_col > BAR_LINE_COLUMNS;
}

static void describe_reading(char *ret_line, size_t len)
{
	uint64_t total = progress.total_bytes, got = atomic_load(&progress.read_bytes);
	char bar[BAR_COLUMNS + 1];
	double part;

	if (!total) {
		snprintf(ret_line, len, "reading: %.1f MiB", (double)got / (1 << 20));
		return;
	}
	/* A file may have grown since its size was read. */
	part = got < total ? (double)got / (double)total : 1;
	memset(bar, '.', BAR_COLUMNS);
	memset(bar, '#', (size_t)(part * BAR_COLUMNS));
	bar[is_wide() ? BAR_COLUMNS : 0] = '\0';
	/* Round down: 100 means everything. */
	snprintf(ret_line, len, "reading: %3d %% %s", (int)(100 * part), bar);
}

static void draw(void)
{
	char line[80] = "writing ...";

	if (!atomic_load(&progress.writes))
		describe_reading(line, sizeof(line));
	fprintf(stderr, "\r%s\033[K", line);
	progress.is_shown = true;
}

static void add_ms(struct timespec *time, long ms)
{
	time->tv_sec += ms / 1000;
	time->tv_nsec += ms % 1000 * 1000000;
	if (time->tv_nsec >= 1000000000) {
		time->tv_sec++;
		time->tv_nsec -= 1000000000;
	}
}

static void *run(void *context)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	add_ms(&next, FIRST_MS);
	pthread_mutex_lock(&progress.lock);
	while (!progress.ends) {
		if (pthread_cond_timedwait(&progress.wake, &progress.lock, &next) != ETIMEDOUT)
			continue;
		draw();
		/* Count from now: after a suspension there is nothing to catch up. */
		clock_gettime(CLOCK_MONOTONIC, &next);
		add_ms(&next, INTERVAL_MS);
	}
	if (progress.is_shown)
		fputs("\r\033[K", stderr);
	pthread_mutex_unlock(&progress.lock);
	return context;
}

void progress_start(uint64_t total_bytes)
{
	pthread_condattr_t attributes;

	if (progress.runs || !isatty(STDERR_FILENO) || pthread_condattr_init(&attributes) != 0)
		return;
	progress.total_bytes = total_bytes;
	if (pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
	    pthread_cond_init(&progress.wake, &attributes) == 0)
		progress.runs = pthread_create(&progress.thread, NULL, run, NULL) == 0;
	pthread_condattr_destroy(&attributes);
}

void progress_add(void *context, size_t bytes)
{
	(void)context;
	atomic_fetch_add(&progress.read_bytes, bytes);
}

void progress_write(void)
{
	atomic_store(&progress.writes, true);
}

void progress_stop(void)
{
	if (!progress.runs)
		return;
	pthread_mutex_lock(&progress.lock);
	progress.ends = true;
	pthread_cond_signal(&progress.wake);
	pthread_mutex_unlock(&progress.lock);
	pthread_join(progress.thread, NULL);
	progress.runs = false;
}
