/* SPDX-License-Identifier: MIT */
/* How are descriptors closed and capabilities given up? */
#include "daemon/rights/sandbox.h"

#include <cap-ng.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	FIRST_FD = STDERR_FILENO + 1,
	CAPABILITIES_MAX = 8,
};

static int compare(const void *left, const void *right)
{
	int a = *(const int *)left, b = *(const int *)right;

	return (a > b) - (a < b);
}

void sandbox_close_others(int *fds, size_t count)
{
	int next = FIRST_FD;

	qsort(fds, count, sizeof(*fds), compare);
	for (size_t i = 0; i < count; i++) {
		if (fds[i] > next)
			close_range((unsigned)next, (unsigned)fds[i] - 1, 0);
		if (fds[i] >= next)
			next = fds[i] + 1;
	}
	close_range((unsigned)next, ~0u, 0);
}

void sandbox_keep_capabilities(const int *capabilities, size_t count)
{
	bool keep[CAPABILITIES_MAX];

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (size_t i = 0; i < count && i < CAPABILITIES_MAX; i++)
		keep[i] = capng_have_capability(CAPNG_EFFECTIVE, (unsigned)capabilities[i]);
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < count && i < CAPABILITIES_MAX; i++)
		if (keep[i])
			capng_update(CAPNG_ADD, (capng_type_t)(CAPNG_EFFECTIVE | CAPNG_PERMITTED),
				     (unsigned)capabilities[i]);
	capng_apply(CAPNG_SELECT_BOTH);
}
