/* SPDX-License-Identifier: MIT */
/* How many samples has each state of the VM? */
#include <inttypes.h>

#include "format/formats/reports.h"
#include "format/profile/profile_internal.h"

static int counters_print(const struct format_profile *profile,
			  const struct format_report_options *options, FILE *file,
			  struct failure *why)
{
	static const char *const names[HEAP_KIND_COUNT] = { "allocs", "reallocs", "frees" };
	struct heap_location sum = heap_sum(&profile->heap);
	uint64_t allocated = 0, freed = 0;

	(void)options;
	(void)why;
	if (profile->kind == FORMAT_STREAM_SYSPROF) {
		fprintf(file, "samples %" PRIu64 "\n", profile->samples);
		for (int i = 0; i < FORMAT_STATE_COUNT; i++)
			fprintf(file, "%s %" PRIu64 "\n", format_state_name((enum format_state)i),
				profile->states[i]);
		return 0;
	}
	for (int i = 0; i < HEAP_KIND_COUNT; i++) {
		fprintf(file, "%s %" PRIu64 "\n", names[i], sum.counts[i].events);
		allocated += sum.counts[i].allocated_bytes;
		freed += sum.counts[i].freed_bytes;
	}
	fprintf(file,
		"allocated_bytes %" PRIu64 "\nfreed_bytes %" PRIu64 "\nheld_blocks %" PRIu64
		"\nheld_bytes %" PRIu64 "\n",
		allocated, freed, sum.held_blocks, sum.held_bytes);
	return 0;
}

const struct format_report_ops format_report_counters = {
	.name = "counters",
	.description = "number of samples in each VM state; totals of a memory profile",
	.takes_memory = true,
	.print = counters_print,
};
