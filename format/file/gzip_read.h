/* SPDX-License-Identifier: MIT */
/* What is the content of a file that gzip may have compressed? */
#ifndef FORMAT_FILE_GZIP_READ_H
#define FORMAT_FILE_GZIP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "attach/failure.h"

struct unpack;

/**
 * Create a reader. The file's first bytes tell whether gzip compressed it.
 * @param file Borrowed.
 */
int unpack_create(FILE *file, struct unpack **ret_unpack, struct failure *why);
void unpack_destroy(struct unpack *unpack);

/**
 * Set a callback for each read of the file; see format_profile_set_progress().
 * @param progress May be NULL.
 */
void unpack_set_progress(struct unpack *unpack, void (*progress)(void *context, size_t bytes),
			 void *context);

/**
 * Read up to @p size bytes. The content of a hostile file is at most a thousand times as large as
 * the file, which is deflate's bound.
 * @param ret_len Number of bytes; 0 at the end, also if the file ends too early.
 * @return 0, or -1 with *why set.
 */
int unpack_read(struct unpack *unpack, uint8_t *ret_bytes, size_t size, size_t *ret_len,
		struct failure *why);

/**
 * Put bytes back; the next call of unpack_read() returns them. All bytes put back before must have
 * been read.
 * @param len At most UNPACK_BACK_MAX.
 */
void unpack_put_back(struct unpack *unpack, const uint8_t *bytes, size_t len);

enum { UNPACK_BACK_MAX = 64 };

/**
 * End reading after the profile: read a compressed member to its end and check its checksum.
 * @return 0, or -1 if the checksum is wrong or the file ends before it.
 */
int unpack_finish(struct unpack *unpack, struct failure *why);

#endif
