/* SPDX-License-Identifier: MIT */
/* How do we read sleeping threads without an interrupt, which would end their system calls? */
#include "attach/image/image_internal.h"
#include "attach/process/process_internal.h"
#include "attach/thread/thread_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading /proc ---------------------------------------------------------------------- */

uint64_t process_count_runs(pid_t tid)
{
	char text[4096], value[32];
	unsigned long long run, wait, count;

	/* Kernels without this counter show zeros. A thread that exists has run at least once. */
	if (process_read_file(tid, "schedstat", text, sizeof(text)) == 0 &&
	    sscanf(text, "%llu %llu %llu", &run, &wait, &count) == 3 && count)
		return count;
	if (process_read_file(tid, "status", text, sizeof(text)) == 0 &&
	    process_status_field(text, "voluntary_ctxt_switches", value, sizeof(value)))
		return strtoull(value, NULL, 10);
	return 0;
}

enum attach_thread_state attach_thread_probe(const struct attach_process *process,
					     struct attach_thread *thread,
					     struct attach_sleep *ret_sleep)
{
	char name[32], status[256], value[64]; /* the state is among the first lines */
	uint64_t runs = process_count_runs(thread->tid);
	enum attach_thread_state activity = process_thread_sleep(thread, ret_sleep);

	if (activity != ATTACH_BLOCKED)
		return activity;
	snprintf(name, sizeof(name), "task/%d/status", (int)thread->tid);
	if (process_read_file(process->pid, name, status, sizeof(status)) != 0)
		return ATTACH_EXITED;
	ret_sleep->is_stopped =
		process_status_field(status, "State", value, sizeof(value)) && value[0] == 'T';
	ret_sleep->runs = runs;
	return runs ? ATTACH_BLOCKED : ATTACH_RUNNING;
}

bool attach_thread_sleeps_on(const struct attach_thread *thread, const struct attach_sleep *sleep)
{
	struct attach_sleep now;

	return process_thread_sleep(thread, &now) == ATTACH_BLOCKED &&
	       now.syscall == sleep->syscall && now.sp == sleep->sp && now.pc == sleep->pc &&
	       process_count_runs(thread->tid) == sleep->runs;
}

void attach_thread_name(const struct attach_process *process, pid_t tid, char *ret_name,
			size_t size)
{
	char name[32];

	snprintf(name, sizeof(name), "task/%d/comm", (int)tid);
	if (process_read_file(process->pid, name, ret_name, size) != 0)
		ret_name[0] = '\0';
	else if (*ret_name)
		ret_name[strlen(ret_name) - 1] = '\0'; /* the kernel ends the name with a newline */
}

/* ---- The image -------------------------------------------------------------------------- */

int attach_capture_asleep(const struct attach_process *process, struct attach_thread *thread,
			  const struct attach_planner *planner, struct attach_image *image,
			  struct attach_sleep *ret_sleep, struct failure *why)
{
	struct attach_sleep sleep;

	switch (attach_thread_probe(process, thread, &sleep)) {
	case ATTACH_EXITED:
		return failure_set(why, FAILURE_GONE, 0, thread->tid, 0, "probe the thread");
	case ATTACH_RUNNING:
		return failure_set(why, FAILURE_TIMEOUT, 0, thread->tid, 0,
				   "read the sleeping thread");
	case ATTACH_BLOCKED:
		break;
	}
	attach_image_clear(image);
	image->registers = (struct attach_registers){ .syscall = sleep.syscall };
	image->registers.r[ATTACH_REG_PC] = sleep.pc;
	image->registers.r[ATTACH_REG_SP] = sleep.sp;
	if (process_read_planned(process, planner, PROCESS_ROUNDS, image, why) != 0)
		return -1;
	process_end_reads(planner);
	if (!attach_thread_sleeps_on(thread, &sleep))
		return failure_set(why,
				   process_thread_ended(process->pid, thread->tid)
					   ? FAILURE_GONE
					   : FAILURE_TIMEOUT,
				   0, thread->tid, 0, "read the sleeping thread");
	*ret_sleep = sleep;
	return 0;
}
