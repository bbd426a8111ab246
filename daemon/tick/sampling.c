/* SPDX-License-Identifier: MIT */
/* What the rest of a recording needs of how its samples are taken. */
#include "daemon/outcome/outcomes.h"
#include "daemon/tick/tick.h"

#include <stdlib.h>

static void forget(void *context, struct attach_thread *thread)
{
	struct sampled_thread *data = thread->data;

	if (!data)
		return;
	tapped_end_thread(context, data);
	sampled_end(context, data, DAEMON_EXITED);
	wait_free(data);
	free(data);
	thread->data = NULL;
}

const struct recorder_sampling tick_sampling = {
	.take = tapped_take,
	.end_process = tapped_end_process,
	.forget = forget,
};
