/* SPDX-License-Identifier: MIT */
/* The scheduling priority of a process that stops others. */
#include <sys/resource.h>

#include "daemon/rights/priority.h"

enum {
	/* Ten times the weight of a usual program: it is run when its timer fires. */
	NICE = -10,
};

int priority_take(void)
{
	/* 0 stands for this thread; of the values, which are -20 to 19, none is an error here. */
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
