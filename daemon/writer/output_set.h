/* SPDX-License-Identifier: MIT */
/* Private to daemon: all outputs of a recording while they are written, in the writer process. */
#ifndef DAEMON_WRITER_OUTPUT_SET_H
#define DAEMON_WRITER_OUTPUT_SET_H

#include "daemon/writer/output.h"
#include "daemon/writer/writer.h"

/** An output that fails is noted in the pulse and in its result; the others go on. */
struct written_set {
	struct written_shared shared;
	struct written outputs[DAEMON_OUTPUTS_MAX];
	size_t count;
	struct writer_pulse *pulse;
	uint64_t rotate_ns, rotate_at_ns; /* 0: no series */
};

void written_set_begin(struct written_set *set);
void written_set_sample(struct written_set *set, const struct format_sample *sample);

/** Say how the recording went, where there is a place for it. */
void written_set_account(struct written_set *set, const char *text);

/** Make streams readable. */
void written_set_commit(struct written_set *set);

/** What is there so far is to be read now: of a series, new files begin, at @p time_ns. */
void written_set_snapshot(struct written_set *set, uint64_t time_ns);

/** Of a series, begin the files that a moment belongs to, unless it is before those of now: samples
 * of one tick may come in any order. */
void written_set_rotate_at(struct written_set *set, uint64_t time_ns);

/** Complete all files. @param is_empty_too As of written_finish(). */
void written_set_finish(struct written_set *set, bool is_empty_too);

#endif
