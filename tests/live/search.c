/* SPDX-License-Identifier: MIT */
/*
 * Find the VM of a process by searches that give way every so often: search PID MILLISECONDS [all].
 * Prints how many searches it took, the processor time of the longest in microseconds, and how many
 * VMs are known; with "all" after more searches, for all others.
 */
#include "attach/clock.h"
#include "tests/live/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/decode/target.h"
#include "daemon/tick_clock.h"

enum { SEARCHES_MAX = 10000 };

static int ignore_function(void *context, const struct format_function *function, uint32_t *ret_id,
			   struct failure *why)
{
	(void)context, (void)function, (void)why;
	*ret_id = 0;
	return 0;
}

/* What others do on the processors meanwhile is no part of it. */
static uint64_t used_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* A search that has to stop looks at nothing. */
static void search_stopped(struct daemon_target *target)
{
	static const volatile sig_atomic_t stop = 1;
	struct failure why = { 0 };

	target_limit_search(target, &stop, 0);
	if (target_find_vm(target, &why) == 0 || why.kind != FAILURE_TIMEOUT)
		stream_die("give way", &why);
}

/* Until one has seen all memory. @return How many VMs there are. */
static size_t find_others(struct daemon_target *target, uint64_t slice_ns)
{
	unsigned searches = 0;

	do {
		target_limit_search(target, NULL, clock_now_ns() + slice_ns);
		target_find_more_vms(target);
	} while (target->search.cut && ++searches < SEARCHES_MAX);
	return luastate_vm_count(target->lua);
}

int main(int argc, char **argv)
{
	const struct target_listener listener = { .function = ignore_function };
	struct attach_process *process;
	struct daemon_target *target;
	struct failure why = { 0 };
	uint64_t slice_ns, longest_ns = 0;
	unsigned searches = 0;
	size_t known;
	int ret;

	if (argc != 3 && !(argc == 4 && strcmp(argv[3], "all") == 0))
		stream_die("usage: search PID MILLISECONDS [all]", &why);
	if (attach_process_open((pid_t)strtol(argv[1], NULL, 10), &process, &why) != 0 ||
	    target_create(process, &listener, &target, &why) != 0 ||
	    target_refresh(target, &why) != 0)
		stream_die("open", &why);
	slice_ns = strtoul(argv[2], NULL, 10) * 1000000;
	search_stopped(target);
	do {
		uint64_t begin_ns = used_ns(), took_ns;

		target_limit_search(target, NULL, clock_now_ns() + slice_ns);
		ret = target_find_vm(target, &why);
		took_ns = used_ns() - begin_ns;
		longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
	} while (++searches < SEARCHES_MAX && ret != 0 && why.kind == FAILURE_TIMEOUT);
	if (ret != 0)
		stream_die("find the VM", &why);
	known = argc == 4 ? find_others(target, slice_ns) : luastate_vm_count(target->lua);
	printf("%u %llu %zu\n", searches, (unsigned long long)longest_ns / 1000, known);
	target_destroy(target);
	attach_process_close(process);
	return 0;
}
