/* SPDX-License-Identifier: MIT */
/* What did one stop read? */
#ifndef ATTACH_IMAGE_H
#define ATTACH_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/reader.h"

/**
 * What one stop read: registers and ranges of memory. Every walk works on images alone.
 * An image is reused from stop to stop, so that the steady state allocates nothing.
 */
struct attach_image;

struct attach_image *attach_image_create(void);
void attach_image_destroy(struct attach_image *image);
/** Forget the ranges; keep the memory. */
void attach_image_clear(struct attach_image *image);

struct attach_registers *attach_image_registers(struct attach_image *image);

/** Ask for [address, address+len) in the next round; at most ATTACH_IMAGE_MAX_BYTES in all.
 *  Ranges may overlap. @return 0, or -1 with FAILURE_LIMIT or FAILURE_NO_MEMORY. */
int attach_image_want(struct attach_image *image, struct remote_addr address, size_t len,
		      struct failure *why);

/** Add bytes that are known already. */
int attach_image_add(struct attach_image *image, struct remote_addr address, const void *bytes,
		     size_t len, struct failure *why);

/** The part of [address, address+len) that one range of the image holds from @p address on.
 *  @return Borrowed bytes, or NULL; *ret_len is what is there, at most @p len. */
const void *attach_image_peek(const struct attach_image *image, struct remote_addr address,
			      size_t len, size_t *ret_len);

/** Put the ranges that are there in order, so that one of many is found as fast as one of few; what
 *  is added later is found, too. It changes nothing else. Allocates where there are more than
 * before, and takes some 100 us for 1000 ranges: no thread should stand meanwhile. */
void attach_image_order(struct attach_image *image);

/** Reader over the image's ranges; reads may span adjoining ranges. */
const struct attach_reader *attach_image_reader(struct attach_image *image);

/** Reader that looks into the image first and then into @p behind (may be NULL), keeping what it
 *  fetched there in the image if @p keep, as far as there is room. Borrowed; one per image. */
const struct attach_reader *attach_image_reader_behind(struct attach_image *image,
						       const struct attach_reader *behind,
						       bool keep);

/** The next range that was asked for and is not there, or not all of it. @param at 0 at first.
 *  @return false behind the last. */
bool attach_image_next_missing(const struct attach_image *image, size_t *at, uint64_t *ret_start,
			       uint64_t *ret_size);

/** A named text or number block kept with an image, such as the target's maps. */
int attach_image_set_note(struct attach_image *image, const char *name, const void *bytes,
			  size_t len, struct failure *why);
const void *attach_image_note(const struct attach_image *image, const char *name, size_t *ret_len);

/** Write an image to a new file at @p path, which only its owner may read. Errors: FAILURE_SYSTEM.
 */
int attach_image_save(const struct attach_image *image, const char *path, struct failure *why);

/** Read an image from hostile bytes. FAILURE_INVALID has the byte offset in `address`; an image
 *  that another architecture wrote is refused. */
int attach_image_load(const void *bytes, size_t len, struct attach_image **ret_image,
		      struct failure *why);
int attach_image_load_file(const char *path, struct attach_image **ret_image, struct failure *why);

/** Sizes that bound every image, so that hostile or huge targets cost a bounded copy. */
#define ATTACH_IMAGE_MAX_BYTES ((size_t)16 << 20)

#endif
