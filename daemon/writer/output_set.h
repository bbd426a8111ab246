/* SPDX-License-Identifier: MIT */
/* Private to daemon: all outputs of a recording while they are written, in the writer process. */
#ifndef DAEMON_WRITER_OUTPUT_SET_H
#define DAEMON_WRITER_OUTPUT_SET_H

#include "daemon/writer/output.h"
#include "daemon/writer/writer.h"

/** An output that fails is noted in the progress and in its result; the others go on. */
struct output_set {
	struct output_shared shared;
	struct output outputs[DAEMON_OUTPUTS_MAX];
	size_t count;
	struct writer_progress *progress;
	uint64_t rotate_ns, rotate_at_ns; /* 0: no series */
};

void output_set_begin(struct output_set *set);
void output_set_sample(struct output_set *set, const struct format_sample *sample);

/** Say how the recording went, where there is a place for it. */
void output_set_notes(struct output_set *set, const char *text);

/** Make streams readable. */
void output_set_commit(struct output_set *set);

/** What is there so far is to be read now: of a series, new files begin, at @p time_ns. */
void output_set_snapshot(struct output_set *set, uint64_t time_ns);

/** Of a series, begin the files that a moment belongs to, unless it is before those of now: samples
 * of one tick may come in any order. */
void output_set_rotate_at(struct output_set *set, uint64_t time_ns);

/** Complete all files. @param is_empty_too As of output_finish(). */
void output_set_finish(struct output_set *set, bool is_empty_too);

#endif
