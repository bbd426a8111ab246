/* SPDX-License-Identifier: MIT */
/*
 * Which fields does a message have, one after the other, without their contents decoded?
 * Source: the encoding of protocol buffers, as protobuf.dev documents it.
 */
#ifndef FORMAT_PPROF_PPROF_FIELDS_H
#define FORMAT_PPROF_PPROF_FIELDS_H

#include <stdbool.h>

#include "format/file/gzip_read.h"

/** All bytes of a profile. All zero is an empty profile. */
struct pprof_content {
	uint8_t *bytes;
	size_t len, size;
};

/**
 * Read all bytes.
 * @param ret_content Release with pprof_content_deinit(), also on failure.
 * @param why FAILURE_INVALID with the offset if the profile is too large, or as for unpack_read().
 */
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
	uint64_t offset; /**< Offset of the field in the content. */
	uint32_t number, wire;
	uint64_t value;	      /**< PPROF_WIRE_NUMBER. */
	const uint8_t *bytes; /**< Borrowed from the content. */
	size_t len;	      /**< PPROF_WIRE_BYTES; 16 MiB at most. */
};

/**
 * Read the field at @p at and advance @p at.
 * @return 1, 0 at the end, or -1 with FAILURE_INVALID and the field's offset.
 */
int pprof_next_field(const struct pprof_content *content, size_t *at, struct pprof_field *ret_field,
		     struct failure *why);

/** Read the number at @p at and advance @p at. @return false if the number does not end. */
bool pprof_take_number(const uint8_t *bytes, size_t len, size_t *at, uint64_t *ret_value);

#endif
