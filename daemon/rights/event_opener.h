/* SPDX-License-Identifier: MIT */
/* Private to daemon: which process keeps the right to open events for kernel samples? */
#ifndef DAEMON_RIGHTS_EVENT_OPENER_H
#define DAEMON_RIGHTS_EVENT_OPENER_H

#include "attach/bpf.h"

/**
 * Process that opens events.
 *
 * A thread that begins during a recording needs its own event. Opening one requires CAP_PERFMON,
 * CAP_BPF and on some kernels CAP_SYS_ADMIN (Debian's if kernel.perf_event_paranoid is above 2,
 * Ubuntu's if it is above 3). The recorder reads data that a target wrote, so it keeps none of
 * them. The opener keeps those that this kernel requires. It reads only requests of one size, and
 * opens one kind of event, only for threads of the recording's processes. seccomp forbids it
 * everything else. It ends when the recorder ends. Open events continue without it.
 */
struct opener;

/**
 * Start the opener. Call this before privileges are given up.
 * @param program_fd The BPF program: attach_sampler_program().
 * @param pids Processes of the recording so far.
 * @param grows Whether more processes can follow, by a name or as children. If so, the opener
 * trusts the recorder about them; else it refuses other processes' threads.
 * @param why FAILURE_SYSTEM, FAILURE_NO_MEMORY or FAILURE_DENIED. If it cannot open an event of its
 * own, it keeps no right, and ends with FAILURE_DENIED.
 * @return 0 or -1.
 */
int opener_start(int program_fd, const pid_t *pids, size_t count, bool grows,
		 struct opener **ret_opener, struct failure *why);

/**
 * End the opener even if it is blocked, and wait for its end. Open events remain.
 * @param opener May be NULL.
 */
void opener_stop(struct opener *opener);

/**
 * Request an event; attach_sampler_opener.ask. Needs some microseconds and never waits, so threads
 * may be stopped meanwhile.
 * @param self The opener.
 * @param why FAILURE_TIMEOUT: too many requests are pending. FAILURE_SYSTEM.
 * @return 0 or -1.
 */
int opener_ask(void *self, const struct attach_sampler_request *request, struct failure *why);

/**
 * Receive an answer; attach_sampler_opener.take. If @p until_ns is in the future, no thread may be
 * stopped, because a target's exec may block the opener in the kernel. Usually an answer needs the
 * time of two context switches, and much less if there are many.
 * @param ret_answer Its failure: FAILURE_GONE (the process has no such thread), FAILURE_DENIED or
 * FAILURE_SYSTEM.
 * @param why FAILURE_SYSTEM: the opener has ended.
 * @return 1; 0 if there is no answer yet; -1.
 */
int opener_take(void *self, uint64_t until_ns, struct attach_sampler_answer *ret_answer,
		struct failure *why);

#endif
