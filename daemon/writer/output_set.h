/* SPDX-License-Identifier: MIT */
/* Private to daemon: how are all outputs of a recording written, in the writer process? */
#ifndef DAEMON_WRITER_OUTPUT_SET_H
#define DAEMON_WRITER_OUTPUT_SET_H

#include "daemon/writer/output.h"
#include "daemon/writer/writer.h"

/** All outputs. A failed output is noted in the progress and in its result; the others continue. */
struct output_set {
	struct output_shared shared;
	struct output outputs[DAEMON_OUTPUTS_MAX];
	size_t count;
	struct writer_progress *progress;
	uint64_t rotate_ns, rotate_at_ns; /* 0: no series */
};

void output_set_begin(struct output_set *set);
void output_set_sample(struct output_set *set, const struct format_sample *sample);

/** Add recording notes to the formats that support them. */
void output_set_notes(struct output_set *set, const char *text);

/** Make streams readable. */
void output_set_commit(struct output_set *set);

/** Make everything so far readable; series begin new files at @p time_ns. */
void output_set_snapshot(struct output_set *set, uint64_t time_ns);

/** Begin the files of a series for @p time_ns, unless it is before the current files: samples of
 * one tick may arrive in any order. */
void output_set_rotate_at(struct output_set *set, uint64_t time_ns);

/**
 * Complete all files.
 * @param is_empty_too As for output_finish().
 */
void output_set_finish(struct output_set *set, bool is_empty_too);

#endif
