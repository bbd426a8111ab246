/* SPDX-License-Identifier: MIT */
/* Threads that sleep, looked at as they lie: an interrupt would end the calls that they wait in. */
#include "attach/image.h"
#include "attach/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What /proc tells ------------------------------------------------------------------- */

/* Both kinds count: a thread that sleeps again has been switched away again. One of which that is
 * not to be seen, as it is behind a long list of groups, is taken as running: the stop then tells.
 */
static enum attach_activity read_status(const struct attach_process *process, pid_t tid,
					struct attach_sleep *sleep)
{
	static const char *const kinds[] = { "voluntary_ctxt_switches",
					     "nonvoluntary_ctxt_switches" };
	char name[32], status[4096], value[64];

	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	if (process_read_file(process->pid, name, status, sizeof(status)) != 0)
		return ATTACH_EXITED;
	sleep->is_stopped =
		process_status_field(status, "State", value, sizeof(value)) && value[0] == 'T';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!process_status_field(status, kinds[i], value, sizeof(value)))
			return ATTACH_RUNNING;
		sleep->switches += strtoull(value, NULL, 10);
	}
	return ATTACH_BLOCKED;
}

enum attach_activity attach_thread_look(const struct attach_process *process,
					struct attach_thread *thread,
					struct attach_sleep *ret_sleep)
{
	struct attach_sleep sleep;
	enum attach_activity activity = process_thread_sleep(thread, &sleep);

	if (activity != ATTACH_BLOCKED)
		return activity;
	/* Counted only now: between two looks that find it asleep, one that ran has been switched
	 * away once more at least. */
	activity = read_status(process, thread->tid, &sleep);
	if (activity == ATTACH_BLOCKED)
		*ret_sleep = sleep;
	return activity;
}

void attach_thread_name(const struct attach_process *process, pid_t tid, char *ret_name,
			size_t size)
{
	char name[32];

	snprintf(name, sizeof(name), "task/%d/comm", (int)tid);
	if (process_read_file(process->pid, name, ret_name, size) != 0)
		ret_name[0] = '\0';
	else if (*ret_name)
		ret_name[strlen(ret_name) - 1] = '\0'; /* the line's end, which the kernel adds */
}

/* ---- The image -------------------------------------------------------------------------- */

static bool is_same_sleep(const struct attach_sleep *one, const struct attach_sleep *other)
{
	return one->syscall == other->syscall && one->sp == other->sp && one->pc == other->pc &&
	       one->switches == other->switches;
}

static int look(const struct attach_process *process, struct attach_thread *thread,
		struct attach_sleep *ret_sleep, struct failure *why)
{
	switch (attach_thread_look(process, thread, ret_sleep)) {
	case ATTACH_BLOCKED:
		return 0;
	case ATTACH_EXITED:
		return failure_set(why, FAILURE_GONE, 0, thread->tid, 0, "look at the thread");
	case ATTACH_RUNNING:
		break;
	}
	return failure_set(why, FAILURE_TIMEOUT, 0, thread->tid, 0, "find the thread asleep");
}

int attach_capture_asleep(const struct attach_process *process, struct attach_thread *thread,
			  const struct attach_planner *planner, struct attach_image *image,
			  struct attach_sleep *ret_sleep, struct failure *why)
{
	struct attach_sleep before, after;

	if (look(process, thread, &before, why) != 0)
		return -1;
	attach_image_clear(image);
	image->registers = (struct attach_registers){ .syscall = before.syscall };
	image->registers.r[ATTACH_REG_PC] = before.pc;
	image->registers.r[ATTACH_REG_SP] = before.sp;
	if (process_read_rounds(process, planner, PROCESS_ROUNDS, image, why) != 0 ||
	    look(process, thread, &after, why) != 0)
		return -1;
	if (!is_same_sleep(&before, &after))
		return failure_set(why, FAILURE_TIMEOUT, 0, thread->tid, 0,
				   "find the thread asleep");
	*ret_sleep = after;
	return 0;
}
