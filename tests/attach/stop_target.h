/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACH_CAPTURE_TARGET_H
#define TESTS_ATTACH_CAPTURE_TARGET_H

/* A child to capture. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/thread.h"

/** A stop without a result has to end within this: the module's own bound is 100 ms. */
#define STOP_BOUND_NS ((uint64_t)5000 * 1000000)

/** A processor that somebody else uses for 100 ms is no fault of ours, if it is rare. */
#define TIMEOUTS_MAX 2

/** A target, opened. */
struct stop_target {
	pid_t pid;
	struct attach_process *process;
	struct attach_thread thread;
	struct attach_image *image;
	struct attach_timing timing;
	struct failure why;
	bool rehearses; /* The planner of the next captures. */
};

void capture_open(struct stop_target *target, pid_t pid);
void capture_close(struct stop_target *target);

/** One capture. @return As attach_capture(). */
int capture_run(struct stop_target *target, bool (*plan)(void *, struct attach_image *, unsigned),
		void *context);

/** Wait until a thread that was left under an interrupt is free. */
void capture_settle(struct attach_thread *thread);

/** Captures until one does not time out, as others may have the processor. @return As the last. */
int capture_retry(struct stop_target *target, bool (*plan)(void *, struct attach_image *, unsigned),
		  void *context);

/** A capture that has to succeed. */
void capture_expect(struct stop_target *target,
		    bool (*plan)(void *, struct attach_image *, unsigned), void *context);

/** Asks for nothing. */
bool capture_plan_nothing(void *context, struct attach_image *image, unsigned round);

/** A signal that is sent while the thread stands: context of capture_plan_signal(). */
struct capture_signal {
	pid_t pid;
	int number;
};

bool capture_plan_signal(void *context, struct attach_image *image, unsigned round);

/** A child that counts. */
pid_t capture_start_spinning(volatile uint64_t **ret_counter);

/** The child is free, runs, and counts on. */
void capture_expect_untouched(pid_t pid, const volatile uint64_t *counter);

#endif
