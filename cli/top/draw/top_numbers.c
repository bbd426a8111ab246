/* SPDX-License-Identifier: MIT */
/* How are the numbers of a live session shown to people? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/top/draw/top_numbers.h"
#include "attach/clock.h"

const char *top_activity_name(enum top_activity activity)
{
	static const char *const names[TOP_ACTIVITY_COUNT] = {
		[TOP_INTERPRETER] = "interpreter",
		[TOP_COMPILED] = "compiled",
		[TOP_C] = "C",
		[TOP_GC] = "GC",
		[TOP_RECORDING] = "recording",
		[TOP_EXITS] = "exits",
		[TOP_UNSCHEDULED] = "waiting for a processor",
		[TOP_IDLE] = "idle",
	};

	return names[activity];
}

void top_count_activities(const uint32_t *states, const uint32_t *outcomes, uint64_t *ret_counts)
{
	/* Builds that do not distinguish built-ins from C functions report C for both. */
	static const enum top_activity activities[FORMAT_STATE_COUNT] = {
		[FORMAT_STATE_INTERP] = TOP_INTERPRETER,
		[FORMAT_STATE_LFUNC] = TOP_INTERPRETER,
		[FORMAT_STATE_FFUNC] = TOP_C,
		[FORMAT_STATE_CFUNC] = TOP_C,
		[FORMAT_STATE_GC] = TOP_GC,
		[FORMAT_STATE_EXIT] = TOP_EXITS,
		[FORMAT_STATE_RECORD] = TOP_RECORDING,
		[FORMAT_STATE_OPT] = TOP_RECORDING,
		[FORMAT_STATE_ASM] = TOP_RECORDING,
		[FORMAT_STATE_TRACE] = TOP_COMPILED,
	};

	for (int i = 0; i < TOP_ACTIVITY_COUNT; i++)
		ret_counts[i] = 0;
	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		ret_counts[activities[i]] += states[i];
	ret_counts[TOP_UNSCHEDULED] = outcomes[DAEMON_UNSCHEDULED];
	ret_counts[TOP_IDLE] = outcomes[DAEMON_IDLE] + outcomes[DAEMON_ASLEEP];
}

void top_describe_capture(const struct daemon_live_header *header, char *ret_text, size_t len)
{
	bool copied = header->capture == DAEMON_CAPTURE_KERNEL;
	size_t used;

	snprintf(ret_text, len, copied ? "copied p99 %.0f us" : "stopped p99 %.0f us",
		 (double)(copied ? header->copied_p99_ns : header->stopped_p99_ns) / 1e3);
	for (int i = 0; copied && i < DAEMON_REASON_COUNT; i++) {
		used = strlen(ret_text);
		if (header->reasons[i].samples)
			snprintf(ret_text + used, len - used, ", %" PRIu64 " by stops (%s)",
				 header->reasons[i].samples,
				 daemon_reason_text((enum daemon_reason)i));
	}
}

double top_full_percent(const uint64_t *outcomes)
{
	return format_percent(outcomes[DAEMON_FULL],
			      outcomes[DAEMON_FULL] + outcomes[DAEMON_INCONSISTENT] +
				      outcomes[DAEMON_TRUNCATED] + outcomes[DAEMON_UNWOUND]);
}

double top_rate(uint64_t count, const struct daemon_history_point *point)
{
	return point->span_ns ? (double)count * 1e9 / (double)point->span_ns : 0;
}

double top_uptime_s(const struct daemon_live_header *header, size_t process)
{
	uint64_t start_ns = header->start_ns[process], now_ns = clock_read_ns(CLOCK_BOOTTIME);

	return start_ns && now_ns >= start_ns ? (double)(now_ns - start_ns) / 1e9 : -1;
}
