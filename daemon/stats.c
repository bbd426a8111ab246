/* SPDX-License-Identifier: MIT */
/* How are outcomes and kinds of processes named, and how are quantiles of times kept? */
#include "daemon/stats.h"

#include <stdlib.h>

static const char *const outcome_names[DAEMON_OUTCOME_COUNT] = {
	[DAEMON_FULL] = "full",		  [DAEMON_INCONSISTENT] = "inconsistent",
	[DAEMON_TRUNCATED] = "truncated", [DAEMON_UNWOUND] = "unwound",
	[DAEMON_NO_VM] = "no_vm",	  [DAEMON_IDLE] = "idle",
	[DAEMON_ASLEEP] = "asleep",	  [DAEMON_RESTED] = "rested",
	[DAEMON_EXITED] = "exited",	  [DAEMON_BUSY] = "busy",
	[DAEMON_FAILED] = "failed",	  [DAEMON_UNSCHEDULED] = "unscheduled",
};

const char *daemon_outcome_name(enum daemon_outcome outcome)
{
	return outcome_names[outcome];
}

const char *daemon_process_kind_name(enum daemon_process_kind kind)
{
	static const char *const names[DAEMON_PROCESS_KIND_COUNT] = {
		[DAEMON_PROCESS_LUAJIT] = "luajit",
		[DAEMON_PROCESS_NO_LUAJIT] = "no_luajit",
		[DAEMON_PROCESS_DENIED] = "denied",
	};

	return names[kind];
}

bool daemon_outcome_reaches_root(enum daemon_outcome outcome)
{
	return outcome == DAEMON_FULL || outcome == DAEMON_NO_VM;
}

/* Index of a time: its highest bit, and the next four bits. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned high;

	if (ns < 16)
		return (unsigned)ns;
	high = 63 - (unsigned)__builtin_clzll(ns);
	return (high - 3) * 16 + (unsigned)(ns >> (high - 4) & 15);
}

static uint64_t middle_of(unsigned bucket)
{
	unsigned shift;

	if (bucket < 16)
		return bucket;
	shift = bucket / 16 - 1;
	return ((uint64_t)(16 + bucket % 16) << shift) + ((uint64_t)1 << shift) / 2;
}

void daemon_histogram_add(struct daemon_histogram *histogram, uint64_t ns)
{
	histogram->count++;
	histogram->sum_ns += ns;
	histogram->buckets[bucket_of(ns)]++;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

uint64_t daemon_histogram_quantile(const struct daemon_histogram *histogram, double q)
{
	uint64_t rank = (uint64_t)(q * (double)histogram->count), seen = 0;

	for (unsigned i = 0; i < sizeof(histogram->buckets) / sizeof(histogram->buckets[0]); i++) {
		seen += histogram->buckets[i];
		if (seen > rank || (seen == histogram->count && seen > 0))
			return middle_of(i) < histogram->max_ns ? middle_of(i) : histogram->max_ns;
	}
	return 0;
}

void daemon_stats_deinit(struct daemon_stats *stats)
{
	free(stats->processes);
	stats->processes = NULL;
	stats->process_count = 0;
	for (size_t i = 0; i < stats->trace_count; i++)
		free(stats->traces[i].chunk);
	free(stats->traces);
	stats->traces = NULL;
	stats->trace_count = stats->trace_size = 0;
}
