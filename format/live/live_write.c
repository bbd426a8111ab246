/* SPDX-License-Identifier: MIT */
/* How is a live view written in the formats of recordings and reports? */
#include "format/live/live_internal.h"
#include "format/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/array.h"
#include "format/profile/profile_internal.h"

/** Frames of one chain, leaf first, without LIVE_THREAD. */
struct chain {
	struct format_frame *frames;
	uint32_t count, size;
};

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the profile");
}

static int add_frame(struct chain *chain, const struct format_frame *frame, struct failure *why)
{
	if (!ARRAY_RESERVE(chain->frames, chain->size, chain->count + 1))
		return no_memory(why);
	chain->frames[chain->count++] = *frame;
	return 0;
}

/* Read the frames of a chain. @param ret_thread Its thread's node, 0 if that was folded. */
static int read_chain(const struct format_live *live, const struct live_end_key *end,
		      struct chain *chain, uint32_t *ret_thread, struct failure *why)
{
	const struct format_frame other = { .function = FORMAT_LIVE_OTHER };

	chain->count = 0;
	*ret_thread = 0;
	if (end->cut && add_frame(chain, &other, why) != 0)
		return -1;
	for (uint32_t i = end->node; i; i = live_node(live, i)->parent) {
		const struct live_node_key *key = live_node(live, i);
		struct format_frame frame = { .address = live->node_addresses[i],
					      .function = key->function,
					      .line = key->line,
					      .trace = key->trace & ~LIVE_APPROXIMATE,
					      .approximate = key->trace & LIVE_APPROXIMATE };

		if (key->function == LIVE_THREAD) {
			*ret_thread = i;
			continue;
		}
		if (add_frame(chain, &frame, why) != 0)
			return -1;
	}
	return 0;
}

/* Copy the functions with the same ids. */
static struct format_functions *copy_functions(const struct format_live *live, struct failure *why)
{
	struct format_functions *functions = format_functions_create();
	uint32_t id;

	for (uint32_t i = 0; functions && i < live->functions.count; i++) {
		struct format_function value = live->function_info[i].value;

		if (i == FORMAT_LIVE_OTHER)
			value.source = NULL;
		if (format_functions_add(functions, &value, &id, why) != 0) {
			format_functions_destroy(functions);
			return NULL;
		}
	}
	return functions;
}

/* ---- Streams ---------------------------------------------------------------------------- */

static int put_samples(const struct format_live *live, const struct format_writer_ops *writer,
		       void *self, struct failure *why)
{
	struct chain chain = { 0 };
	int ret = 0;

	for (uint32_t i = 0; i < live->ends.count && ret == 0; i++) {
		const struct live_end_key *end = live_table_key(&live->ends, i);
		struct format_sample sample = { .state = (enum format_state)end->state,
						.trace = end->trace,
						.trace_function = end->trace_function,
						.compiled = (enum format_compiled)end->compiled,
						.weight = (uint32_t)live->ends.counts[i].self,
						.full = end->full && !end->cut };
		uint32_t thread;

		if (!sample.weight)
			continue;
		ret = read_chain(live, end, &chain, &thread, why);
		if (thread) {
			sample.pid = (int32_t)live_node(live, thread)->line;
			sample.tid = (int32_t)live_node(live, thread)->trace;
		}
		sample.frames = chain.frames;
		sample.frame_count = chain.count;
		if (ret == 0)
			ret = writer->sample(self, &sample, why);
	}
	free(chain.frames);
	return ret;
}

static int write_stream(const struct format_live *live, const struct format_writer_ops *writer,
			int fd, struct failure *why)
{
	const struct format_options options = { 0 };
	struct format_functions *functions = copy_functions(live, why);
	struct format_sink *sink = NULL;
	void *self = NULL;
	int ret = -1;

	if (!functions)
		close(fd);
	else if (format_sink_create(fd, &sink, why) != 0)
		close(fd);
	else if (writer->open(sink, functions, &options, &self, why) == 0 &&
		 put_samples(live, writer, self, why) == 0)
		ret = writer->commit(self, true, why);
	if (self)
		writer->close(self);
	format_sink_destroy(sink);
	format_functions_destroy(functions);
	return ret;
}

/* ---- Reports ---------------------------------------------------------------------------- */

/* Add one chain to the profile for a report. */
static int add_chain(const struct format_live *live, struct format_profile *profile,
		     const struct chain *chain, uint64_t count, struct failure *why)
{
	struct profile_frame *frames = calloc((size_t)chain->count + 1, sizeof(*frames));
	int ret = frames ? 0 : no_memory(why);

	for (uint32_t i = 0; i < chain->count && ret == 0; i++) {
		const struct format_frame *frame = &chain->frames[chain->count - 1 - i];
		struct format_function function = live->function_info[frame->function].value;
		const struct label_mark mark = { .compiled = frame->trace != 0,
						 .approximate = frame->approximate,
						 .trace = frame->trace };

		ret = profile_add_function(profile, &function,
					   function.kind == FORMAT_KIND_LUA && frame->trace ? &mark
											    : NULL,
					   &frames[i].function, why);
		if (ret == 0)
			frames[i].line = profile_line(profile, frames[i].function, frame->line);
	}
	if (ret == 0)
		ret = profile_add_sample(profile, frames, chain->count, NULL, count, why);
	free(frames);
	return ret;
}

static struct format_profile *make_profile(const struct format_live *live, struct failure *why)
{
	struct format_profile *profile = format_profile_create(why);
	struct chain chain = { 0 };
	int ret = profile ? 0 : -1;

	for (uint32_t i = 0; ret == 0 && i < live->ends.count; i++) {
		const struct live_end_key *end = live_table_key(&live->ends, i);
		uint64_t count = live->ends.counts[i].self;
		uint32_t thread;

		if (!count)
			continue;
		profile->states[end->state] += count;
		ret = read_chain(live, end, &chain, &thread, why);
		if (ret == 0)
			ret = add_chain(live, profile, &chain, count, why);
	}
	free(chain.frames);
	if (ret == 0)
		return profile;
	format_profile_destroy(profile);
	return NULL;
}

static int write_report(const struct format_live *live, const struct format_report_ops *report,
			const char *title, int fd, struct failure *why)
{
	const struct format_report_options options = { .title = title };
	struct format_profile *profile;
	FILE *file = fdopen(fd, "w");
	int ret = -1;

	if (!file) {
		failure_set_errno(why, errno, 0, "write the profile");
		close(fd);
		return -1;
	}
	profile = make_profile(live, why);
	if (profile)
		ret = format_report_print(report, NULL, profile, &options, file, why);
	format_profile_destroy(profile);
	if (ret == 0 && (fflush(file) != 0 || ferror(file)))
		ret = failure_set_errno(why, errno ? errno : EIO, 0, "write the profile");
	if (fclose(file) != 0 && ret == 0)
		ret = failure_set_errno(why, errno, 0, "write the profile");
	return ret;
}

bool format_live_can_write(const char *format)
{
	return format_writer_find(format) || format_report_find(format);
}

int format_live_write(const struct format_live *live, const char *format, const char *title, int fd,
		      struct failure *why)
{
	const struct format_writer_ops *writer = format_writer_find(format);
	const struct format_report_ops *report = format_report_find(format);

	if (writer && !writer->is_buffered)
		return write_stream(live, writer, fd, why);
	if (report)
		return write_report(live, report, title, fd, why);
	close(fd);
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "write a profile in that format");
}
