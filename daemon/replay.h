/* SPDX-License-Identifier: MIT */
/* How are saved images decoded? */
#ifndef DAEMON_REPLAY_H
#define DAEMON_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/image.h"
#include "daemon/stats.h"
#include "format/sample.h"

/** Function names and decoding state of one target. */
struct daemon_target;
struct attach_image;

/** Decoder of saved images, with the same code as a recording. The sample's frames are valid until
 * the next call. daemon_replay_functions() returns the table of the functions that frames refer
 * to. */
struct daemon_replay;
int daemon_replay_create(struct daemon_replay **ret_replay, struct failure *why);
void daemon_replay_destroy(struct daemon_replay *replay);
int daemon_replay_image(struct daemon_replay *replay, struct attach_image *image,
			struct format_sample *ret_sample, enum daemon_outcome *ret_outcome,
			struct failure *why);
const struct format_functions *daemon_replay_functions(const struct daemon_replay *replay);

#endif
