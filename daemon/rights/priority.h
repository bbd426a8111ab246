/* SPDX-License-Identifier: MIT */
/* Private to daemon: the scheduling priority of a process that stops others. */
#ifndef DAEMON_RIGHTS_PRIORITY_H
#define DAEMON_RIGHTS_PRIORITY_H

/**
 * Come before programs of the usual priority, from now on until the process gives it up again.
 * Who stops a thread must run for the thread to go on, and who comes late samples mostly threads
 * that just made a system call. A process that is forked from now on inherits the priority.
 * @return what to give back with priority_give_back(). Without CAP_SYS_NICE, or a limit that
 *permits it, nothing changes (setpriority(2)).
 */
int priority_take(void);

/** @param before What priority_take() returned. Needs no right. */
void priority_give_back(int before);

#endif
