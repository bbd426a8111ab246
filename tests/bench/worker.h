/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_WORKER_H
#define TESTS_BENCH_WORKER_H

/* Programs that count their units of work, to be profiled. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/bench/peers.h"

/** A program that counts its units of work. */
struct worker {
	const char *work;
	pid_t starter, pid; /* the starter is the program itself, but for nginx */
	const volatile uint64_t *count;
	char path[PEER_PATH_BYTES];
	bool is_skipped; /* told already */
};

/** Start luajit with a work of bench_works.lua, on the last processor, so that others are free for
 *  who looks on. @param profile LuaJIT's own profiler: an option of its, or NULL.
 *  @param seconds After them it ends by itself.
 *  @return Whether it counts; worker_end() is due in any case. */
bool worker_start(const char *work, const char *folder, const char *profile, int seconds,
		  struct worker *ret_worker);

/** The same for nginx, whose worker does ten units of mixed for each request; idle, or under wrk.
 *  @param folder Others may enter it then. */
bool worker_start_nginx(const char *work, const char *folder, bool is_idle, int seconds,
			struct worker *ret_worker);

/** End it, and wait for that; its count is gone then. */
void worker_end(struct worker *worker);

#endif
