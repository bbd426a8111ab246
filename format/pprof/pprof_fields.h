/* SPDX-License-Identifier: MIT */
/*
 * The fields of a message, one after the other, without decoding what is in them.
 * Source: the encoding of protocol buffers, as protobuf.dev documents it.
 */
#ifndef FORMAT_PPROF_PPROF_FIELDS_H
#define FORMAT_PPROF_PPROF_FIELDS_H

#include <stdbool.h>

#include "format/file/gzip_read.h"

/** All bytes of a profile. All zero is an empty one. */
struct pprof_content {
	uint8_t *bytes;
	size_t len, size;
};

/** Read all. @param why FAILURE_INVALID with the offset where there is more than any profile has,
 * or as unpack_read(). @param ret_content Release with pprof_content_deinit() in any case. */
int pprof_read_content(struct unpack *unpack, struct pprof_content *ret_content,
		       struct failure *why);
void pprof_content_deinit(struct pprof_content *content);

enum pprof_wire {
	PPROF_WIRE_NUMBER = 0,
	PPROF_WIRE_8_BYTES = 1,
	PPROF_WIRE_BYTES = 2,
	PPROF_WIRE_4_BYTES = 5,
};

struct pprof_field {
	uint64_t offset; /**< Where it begins. */
	uint32_t number, wire;
	uint64_t value;	      /**< PPROF_WIRE_NUMBER. */
	const uint8_t *bytes; /**< Borrowed from the content. */
	size_t len;	      /**< PPROF_WIRE_BYTES; 16 MiB at most. */
};

/** The field at @p at, which is behind it then. @return 1, 0 at the end, or -1 with FAILURE_INVALID
 * and the field's offset. */
int pprof_next_field(const struct pprof_content *content, size_t *at, struct pprof_field *ret_field,
		     struct failure *why);

/** The number at @p at, which is behind it then. @return false where it does not end. */
bool pprof_take_number(const uint8_t *bytes, size_t len, size_t *at, uint64_t *ret_value);

#endif
