/* SPDX-License-Identifier: MIT */
/* Private to daemon: the opener of events, which keeps the right to have the kernel copy threads.
 */
#ifndef DAEMON_RIGHTS_EVENT_OPENER_H
#define DAEMON_RIGHTS_EVENT_OPENER_H

#include "attach/bpf.h"

/**
 * A thread that begins during a recording needs an event of its own, and to open one takes
 * CAP_PERFMON, CAP_BPF and on some kernels CAP_SYS_ADMIN (Debian's, where
 * kernel.perf_event_paranoid is above 2, and Ubuntu's above 3). The recorder reads what a target
 * has written, so it keeps none of them. A process of its own does, as far as this kernel asks for
 * them: it reads nothing but requests of one size, opens one kind of event, for threads of the
 * recording's processes only, and the kernel lets it do nothing else (seccomp). It ends when the
 * recorder does. A thread that has its event needs it no more.
 */
struct opener;

/**
 * Start it. To be called before privileges are given up.
 * @param program_fd Of the kernel's side: attach_sampler_program().
 * @param pids The processes of the recording so far.
 * @param grows Whether more can come: by a name, or as children. Then the recorder is believed
 *              which these are; else threads of others are refused.
 * @param why FAILURE_SYSTEM, FAILURE_NO_MEMORY, FAILURE_DENIED: also where it could open no event
 *            of its own, for whatever reason; then it keeps no right, and ends. @return 0 or -1.
 */
int opener_start(int program_fd, const pid_t *pids, size_t count, bool grows,
		 struct opener **ret_opener, struct failure *why);

/** End it, whatever it is held up by, and wait for that. @param opener May be NULL. Events that
 * were opened stay. */
void opener_stop(struct opener *opener);

/**
 * Ask for an event; attach_sampler_opener.ask. Takes some microseconds, and never waits: threads
 * may stand meanwhile.
 * @param self The opener.
 * @param why FAILURE_TIMEOUT: too many are asked for already. FAILURE_SYSTEM. @return 0 or -1.
 */
int opener_ask(void *self, const struct attach_sampler_request *request, struct failure *why);

/**
 * Take an answer; attach_sampler_opener.take. No thread may stand where @p until_ns is later than
 * now: the kernel may hold the opener up for as long as a target's exec takes. Else an answer takes
 * the time of two changes of process, and one among many much less.
 * @param ret_answer Its failure: FAILURE_GONE: no such thread of that process; FAILURE_DENIED;
 *                   FAILURE_SYSTEM.
 * @param why FAILURE_SYSTEM: the opener has ended. @return 1; 0 where there is none yet; -1.
 */
int opener_take(void *self, uint64_t until_ns, struct attach_sampler_answer *ret_answer,
		struct failure *why);

#endif
