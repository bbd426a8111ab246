/* SPDX-License-Identifier: MIT */
/* Private to daemon: what does a recording copy in a stop? */
#ifndef DAEMON_TICK_STOP_COPY_H
#define DAEMON_TICK_STOP_COPY_H

#include "daemon/outcome/outcomes.h"

/** What all stops of a recording share. */
struct stop_copier;

int stop_copier_create(struct stop_copier **ret_copier, struct failure *why);
void stop_copier_destroy(struct stop_copier *copier);

/**
 * Plan the copy of a thread.
 * @param is_pending The thread may stand already: keep the plan that was made for this stop.
 * @param ret_planner Valid until the next stop is planned. @return 0, or -1 if memory is out.
 */
int stop_copy_plan(struct stop_copier *copier, const struct recorder_target *of,
		   const struct attach_thread *thread, struct sampled_thread *data, bool is_pending,
		   struct attach_planner *ret_planner, struct failure *why);

/**
 * After the stop: fill the image, note for the next stops what this one lacked, and read into
 * @p after what lives longer than the stop.
 */
void stop_copy_take(struct stop_copier *copier, const struct recorder_target *of,
		    struct sampled_thread *data, struct attach_image *image,
		    struct attach_image *after);

/** After decoding: later stops copy the functions of this chain no more than to recognise them. */
void stop_copy_learn(struct stop_copier *copier, const struct recorder_target *of,
		     const struct sampled_thread *data);

/** The thread runs another program, or has ended. */
void stop_copy_forget(struct sampled_thread *data);

#endif
