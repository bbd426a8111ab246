/* SPDX-License-Identifier: MIT */
/* How are folded chains read: "main;work;[gc sweep] 12", frames from the root on, one chain per
 * line? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/data/label.h"
#include "format/read/profile_reader.h"
#include "format/sysprof/stream_format.h"

enum { READ_BYTES = 65536 };

/** Longest line; chains contain names of any length. */
#define LINE_MAX_BYTES (16u << 20)

struct folded {
	struct format_profile *profile;
	struct intern *texts;	     /* Texts of frames. */
	struct profile_frame *meant; /* Frame by id in `texts`. */
	size_t meant_size;
	struct label label;
	struct format_text line;
	struct profile_frame *frames;
	size_t count, capacity;
	uint64_t offset; /* of the line, in the file */
};

static int invalid(const struct folded *folded, const char *what, struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, folded->offset, what);
}

static int parse_frame(struct folded *folded, const char *text, size_t len, uint32_t id,
		       struct failure *why)
{
	if (!ARRAY_RESERVE(folded->meant, folded->meant_size, (size_t)id + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a chain");
	if (label_parse(&folded->label, text, len, why) ||
	    profile_add_function(folded->profile, &folded->label.function, &folded->label.mark,
				 &folded->meant[id].function, why))
		return -1;
	folded->meant[id].line =
		profile_line(folded->profile, folded->meant[id].function, folded->label.line);
	return 0;
}

static int add_frame(struct folded *folded, const char *text, size_t len, struct failure *why)
{
	uint32_t known = intern_count(folded->texts), id;

	if (!ARRAY_RESERVE(folded->frames, folded->capacity, folded->count + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a chain");
	if (folded->count >= 2 * STREAM_FRAMES_MAX)
		return invalid(folded, "too many frames", why);
	if (intern_put(folded->texts, text, len, &id, why) ||
	    (id == known && parse_frame(folded, text, len, id, why)))
		return -1;
	folded->frames[folded->count++] = folded->meant[id];
	return 0;
}

/** Read the count after the last blank. @param ret_end Offset of that blank. @return 0, or -1. */
static int take_count(const struct folded *folded, size_t *ret_end, uint64_t *ret_count,
		      struct failure *why)
{
	const char *bytes = folded->line.bytes, *blank = strrchr(bytes, ' ');
	char *end;

	if (!blank || blank[1] < '0' || blank[1] > '9')
		return invalid(folded, "no count after the chain", why);
	errno = 0;
	*ret_count = strtoull(blank + 1, &end, 10);
	if (*end != '\0' || errno != 0 || *ret_count > INT64_MAX)
		return invalid(folded, "no count after the chain", why);
	*ret_end = (size_t)(blank - bytes);
	return 0;
}

static int add_line(struct folded *folded, struct failure *why)
{
	const char *bytes, *next;
	uint64_t count = 0;
	size_t end = 0;

	if (format_text_take(&folded->line, &bytes, why))
		return -1;
	if (strlen(bytes) != folded->line.len)
		return invalid(folded, "a zero byte in text", why);
	if (folded->line.len > 0 && bytes[folded->line.len - 1] == '\r')
		folded->line.bytes[--folded->line.len] = '\0';
	if (folded->line.len == 0)
		return 0;
	if (take_count(folded, &end, &count, why))
		return -1;
	folded->count = 0;
	for (size_t at = 0; at < end; at = (size_t)(next - bytes) + 1) {
		next = memchr(bytes + at, ';', end - at);
		if (!next)
			next = bytes + end;
		/* Some writers end each chain with a separator. */
		if (next > bytes + at &&
		    add_frame(folded, bytes + at, (size_t)(next - bytes) - at, why))
			return -1;
	}
	return profile_add_sample(folded->profile, folded->frames, folded->count, NULL, count, why);
}

static int end_line(struct folded *folded, struct failure *why)
{
	size_t len = folded->line.len;

	if (add_line(folded, why)) {
		if (why->kind == FAILURE_LIMIT)
			why->address = folded->offset;
		return -1;
	}
	folded->offset += len + 1;
	format_text_clear(&folded->line);
	return 0;
}

static int add_bytes(struct folded *folded, const uint8_t *bytes, size_t len, struct failure *why)
{
	while (len > 0) {
		const uint8_t *end = memchr(bytes, '\n', len);
		size_t part = end ? (size_t)(end - bytes) : len;

		if (folded->line.len + part > LINE_MAX_BYTES)
			return invalid(folded, "line too long", why);
		format_text_add(&folded->line, bytes, part);
		if (!end)
			return 0;
		if (end_line(folded, why))
			return -1;
		bytes += part + 1;
		len -= part + 1;
	}
	return 0;
}

int profile_read_folded(struct format_profile *profile, struct unpack *unpack, struct failure *why)
{
	struct folded folded = { .profile = profile };
	uint8_t *bytes = malloc(READ_BYTES);
	size_t len = 0;
	int result;

	folded.texts = intern_create();
	result = bytes && folded.texts
			 ? 0
			 : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read the file");

	do {
		if (result == 0)
			result = unpack_read(unpack, bytes, READ_BYTES, &len, why);
		if (result == 0)
			result = add_bytes(&folded, bytes, len, why);
	} while (result == 0 && len > 0);
	if (result == 0 && folded.line.len > 0)
		result = end_line(&folded, why);
	if (result == 0)
		result = unpack_finish(unpack, why);
	label_deinit(&folded.label);
	format_text_deinit(&folded.line);
	intern_destroy(folded.texts);
	free(folded.meant);
	free(folded.frames);
	free(bytes);
	return result;
}
