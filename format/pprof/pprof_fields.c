/* SPDX-License-Identifier: MIT */
/* How is a message split into its fields? */
#include "format/pprof/pprof_fields.h"

#include <stdlib.h>

#include "attach/array.h"

/** Largest decoded profile; large services write some tens of MiB. */
#define CONTENT_MAX_BYTES (512u << 20)
/** Largest field. */
#define FIELD_MAX_BYTES (16u << 20)

enum { READ_BYTES = 65536 };

int pprof_read_content(struct unpack *unpack, struct pprof_content *ret_content,
		       struct failure *why)
{
	struct pprof_content *content = ret_content;
	size_t len;

	do {
		if (!ARRAY_RESERVE(content->bytes, content->size, content->len + READ_BYTES))
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the profile");
		if (unpack_read(unpack, content->bytes + content->len, READ_BYTES, &len, why))
			return -1;
		content->len += len;
		if (content->len > CONTENT_MAX_BYTES)
			return failure_set(why, FAILURE_INVALID, 0, 0, CONTENT_MAX_BYTES,
					   "too large for a profile");
	} while (len > 0);
	return unpack_finish(unpack, why);
}

void pprof_content_deinit(struct pprof_content *content)
{
	free(content->bytes);
	*content = (struct pprof_content){ 0 };
}

bool pprof_take_number(const uint8_t *bytes, size_t len, size_t *at, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70 && *at < len; shift += 7) {
		uint8_t byte = bytes[(*at)++];

		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (byte < 0x80) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static int invalid(const struct pprof_field *field, const char *what, struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, field->offset, what);
}

int pprof_next_field(const struct pprof_content *content, size_t *at, struct pprof_field *ret_field,
		     struct failure *why)
{
	struct pprof_field *field = ret_field;
	uint64_t key, len = 0;

	*field = (struct pprof_field){ .offset = *at };
	if (*at == content->len)
		return 0;
	if (!pprof_take_number(content->bytes, content->len, at, &key) || key >> 3 == 0 ||
	    key >> 3 > UINT32_MAX >> 3)
		return invalid(field, "not a field of a profile", why);
	field->number = (uint32_t)(key >> 3);
	field->wire = key & 7;
	if (field->wire == PPROF_WIRE_NUMBER || field->wire == PPROF_WIRE_BYTES) {
		if (!pprof_take_number(content->bytes, content->len, at,
				       field->wire == PPROF_WIRE_NUMBER ? &field->value : &len))
			return invalid(field, "truncated field", why);
	} else if (field->wire == PPROF_WIRE_8_BYTES || field->wire == PPROF_WIRE_4_BYTES) {
		len = field->wire == PPROF_WIRE_8_BYTES ? 8 : 4;
	} else {
		return invalid(field, "not a field of a profile", why);
	}
	if (len > content->len - *at)
		return invalid(field, "truncated field", why);
	if (field->wire == PPROF_WIRE_BYTES && len > FIELD_MAX_BYTES)
		return invalid(field, "field too large", why);
	field->bytes = content->bytes + *at;
	field->len = (size_t)len;
	*at += field->len;
	return 1;
}
