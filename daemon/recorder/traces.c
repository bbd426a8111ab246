/* SPDX-License-Identifier: MIT */
/* How many samples has each trace? */
#include "daemon/recorder/traces.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/hash.h"
#include "daemon/writer/message.h"

/** A trace by its function's id. The id differs in each process, and changes after a flush. */
struct traces {
	uint32_t id;
	size_t index; /* in the list */
	UT_hash_handle hh;
};

/* @return Whether the list has room for one more. */
static bool grow(struct daemon_stats *stats)
{
	return stats->trace_count < DAEMON_TRACES_LISTED &&
	       ARRAY_RESERVE(stats->traces, stats->trace_size, stats->trace_count + 1);
}

/* @return NULL if the list is full. */
static struct traces *add(struct traces **traces, struct daemon_stats *stats,
			  const struct format_sample *sample,
			  const struct luastate_function *function)
{
	struct traces *item = grow(stats) ? calloc(1, sizeof(*item)) : NULL;

	if (!item)
		return NULL;
	item->id = sample->trace_function;
	item->index = stats->trace_count;
	if (!HASH_KEEP(*traces, id, item))
		return NULL;
	stats->traces[stats->trace_count++] = (struct daemon_trace){
		.pid = sample->pid,
		.number = sample->trace,
		.chunk = function->chunkname ? strndup(function->chunkname, MESSAGE_STRING_MAX - 1)
					     : NULL,
		.line = function->firstline,
	};
	return item;
}

void traces_count(struct traces **traces, struct daemon_stats *stats,
		  const struct format_sample *sample, const struct luastate_function *function)
{
	struct traces *item = NULL;

	stats->compiled[sample->compiled] += sample->weight;
	if (sample->compiled == FORMAT_COMPILED_NONE)
		return;
	if (sample->trace && sample->trace_function != FORMAT_NO_FUNCTION) {
		HASH_FIND(hh, *traces, &sample->trace_function, sizeof(item->id), item);
		if (!item && function)
			item = add(traces, stats, sample, function);
	}
	if (item)
		stats->traces[item->index].samples[sample->compiled] += sample->weight;
	else
		stats->unlisted_trace_samples += sample->weight;
}

void traces_destroy(struct traces *traces)
{
	struct traces *item, *next;

	HASH_ITER(hh, traces, item, next)
	{
		HASH_DEL(traces, item);
		free(item);
	}
}
