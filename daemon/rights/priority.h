/* SPDX-License-Identifier: MIT */
/* Private to daemon: which scheduling priority has a process that stops others? */
#ifndef DAEMON_RIGHTS_PRIORITY_H
#define DAEMON_RIGHTS_PRIORITY_H

/**
 * Raise the priority above usual programs until priority_give_back(). A stopped thread only
 * continues when we run, and a late tick mostly samples threads that just made a system call.
 * Processes forked from now on inherit the priority.
 * @return Argument for priority_give_back(). Without CAP_SYS_NICE, or a limit that permits it,
 * nothing changes (setpriority(2)).
 */
int priority_take(void);

/**
 * Restore the priority, which needs no right.
 * @param before Result of priority_take().
 */
void priority_give_back(int before);

#endif
