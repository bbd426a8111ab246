/* SPDX-License-Identifier: MIT */
/* How do we let go of threads with a pending stop before a long operation? */
#include "daemon/outcome/settle.h"

#include "attach/clock.h"
#include "daemon/outcome/outcomes.h"

#include <time.h>

enum {
	SETTLE_NS = 1000 * 1000 * 1000,
	SETTLE_NAP_NS = 1000 * 1000,
};

static bool settle_threads(struct attach_threads *threads)
{
	bool settled = true;

	for (size_t i = 0; i < attach_threads_count(threads); i++)
		settled &= attach_thread_settle(attach_threads_get(threads, i)) == 0;
	return settled;
}

bool recorder_settle(struct recorder_target *of)
{
	const struct timespec nap = { .tv_nsec = SETTLE_NAP_NS };
	uint64_t end_ns = clock_now_ns() + SETTLE_NS;

	if (!of->target)
		return true;
	while (!settle_threads(of->target->threads)) {
		if (clock_now_ns() >= end_ns)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

void recorder_settle_all(struct recorder *recorder)
{
	for (size_t i = 0; recorder->pending && i < recorder->target_count; i++)
		recorder_settle(recorder->targets[i]);
	recorder->pending = 0;
}
