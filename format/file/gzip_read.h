/* SPDX-License-Identifier: MIT */
/* A file's content, which gzip may have compressed; its first bytes tell. A hostile one can have a
 * thousand times its own size, no more: that is deflate's bound. */
#ifndef FORMAT_FILE_GZIP_READ_H
#define FORMAT_FILE_GZIP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "attach/failure.h"

struct unpack;

/** @param file Borrowed. */
int unpack_create(FILE *file, struct unpack **ret_unpack, struct failure *why);
void unpack_destroy(struct unpack *unpack);

/** Have each read of the file told, format_profile_set_progress(). @param progress May be NULL. */
void unpack_set_progress(struct unpack *unpack, void (*progress)(void *context, size_t bytes),
			 void *context);

/** Up to @p size next bytes. @return 0 and how many, 0 at the end, be it too early; or -1. */
int unpack_read(struct unpack *unpack, uint8_t *ret_bytes, size_t size, size_t *ret_len,
		struct failure *why);

/** Put bytes back, which are read next; nothing that was put back may be left. @param len At most
 *  UNPACK_BACK_MAX. */
void unpack_put_back(struct unpack *unpack, const uint8_t *bytes, size_t len);

enum { UNPACK_BACK_MAX = 64 };

/** The profile has ended: what is compressed goes on to where its checksum is. @return 0, or -1
 * where that is another, or the file ends before it. */
int unpack_finish(struct unpack *unpack, struct failure *why);

#endif
