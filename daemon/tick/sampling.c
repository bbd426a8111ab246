/* SPDX-License-Identifier: MIT */
/* How does the rest of a recording use the way samples are taken? */
#include "daemon/outcome/outcomes.h"
#include "daemon/tick/stop_copy.h"
#include "daemon/tick/tick.h"

#include <stdlib.h>

static void forget(void *context, struct attach_thread *thread)
{
	struct sampled_thread *data = thread->data;

	if (!data)
		return;
	bpf_tick_end_thread(context, data);
	sampled_end(context, data, DAEMON_EXITED);
	wait_free(data);
	stop_copy_forget(data);
	free(data);
	thread->data = NULL;
}

const struct recorder_sampling tick_sampling = {
	.take = bpf_tick_take,
	.end_process = bpf_tick_end_process,
	.forget = forget,
};
