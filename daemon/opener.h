/* SPDX-License-Identifier: MIT */
/* Private to daemon: the opener of events, which keeps the right to have the kernel copy threads.
 */
#ifndef DAEMON_OPENER_H
#define DAEMON_OPENER_H

#include "attach/attach.h"

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
 * @param program_fd Of the kernel's side: attach_tap_program().
 * @param pids The processes of the recording so far.
 * @param grows Whether more can come: by a name, or as children. Then the recorder is believed
 *              which these are; else threads of others are refused.
 * @param why FAILURE_SYSTEM, FAILURE_NO_MEMORY, FAILURE_DENIED. @return 0 or -1.
 */
int opener_start(int program_fd, const pid_t *pids, size_t count, bool grows,
		 struct opener **ret_opener, struct failure *why);

/** End it and wait for that. @param opener May be NULL. Events that were opened stay. */
void opener_stop(struct opener *opener);

/**
 * Open an event; attach_tap_opener.open. No thread needs to be stopped. Takes the time of two
 * changes of process, and a fifth of a second at most where the kernel holds the opener up.
 * @param self The opener.
 * @param why FAILURE_GONE: no such thread of that process; FAILURE_DENIED; FAILURE_TIMEOUT;
 *            FAILURE_SYSTEM.
 */
int opener_open(void *self, const struct attach_tap_request *request,
		struct attach_tap_event *ret_event, struct failure *why);

#endif
