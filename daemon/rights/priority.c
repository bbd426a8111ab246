/* SPDX-License-Identifier: MIT */
/* Which scheduling priority has a process that stops others? */
#include <sys/resource.h>

#include "daemon/rights/priority.h"

enum {
	/* Ten times the weight of a usual program: it runs when its timer fires. */
	NICE = -10,
};

int priority_take(void)
{
	/* 0 means this thread. The result is -20 to 19, and an error cannot happen here. */
	int before = getpriority(PRIO_PROCESS, 0);

	if (before > NICE)
		setpriority(PRIO_PROCESS, 0, NICE);
	return before;
}

void priority_give_back(int before)
{
	if (before > getpriority(PRIO_PROCESS, 0))
		setpriority(PRIO_PROCESS, 0, before);
}
