/* SPDX-License-Identifier: MIT */
/* Which reader is right for a file, by its first bytes? */
#include "format/read/profile_reader.h"

#include <string.h>

#include "format/sysprof/stream_format.h"

/** Read the first bytes and put them back. @return 0, or -1. */
static int look(struct unpack *unpack, uint8_t *ret_bytes, size_t *ret_len, struct failure *why)
{
	size_t len = 0, part;

	do {
		if (unpack_read(unpack, ret_bytes + len, UNPACK_BACK_MAX - len, &part, why))
			return -1;
		len += part;
	} while (part > 0 && len < UNPACK_BACK_MAX);
	unpack_put_back(unpack, ret_bytes, len);
	*ret_len = len;
	return 0;
}

static bool is_text(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] < ' ' && !memchr("\t\r\n", bytes[i], 3))
			return false;
	return true;
}

/** A protocol buffer begins with a field. In a pprof profile its number is 1 to 14; every known
 * writer begins with field 1, a message, whose first byte equals a line feed in text. In a text,
 * the second byte is a letter or another end of a line; as a length, both are too large for that
 * message. */
static bool is_pprof(const uint8_t *bytes, size_t len)
{
	return len > 1 && bytes[0] >> 3 >= 1 && bytes[0] >> 3 <= 14 &&
	       (!is_text(bytes, len) ||
		(bytes[0] == '\n' && bytes[1] < ' ' && bytes[1] != '\n' && bytes[1] != '\r'));
}

static int load(struct format_profile *profile, struct unpack *unpack, struct failure *why)
{
	uint8_t first[UNPACK_BACK_MAX];
	size_t len, magic = strlen(STREAM_SYMTAB_MAGIC);

	if (look(unpack, first, &len, why))
		return -1;
	if (len >= magic && memcmp(first, STREAM_SYMTAB_MAGIC, magic) == 0)
		return profile_read_stream(profile, unpack, why);
	if (is_pprof(first, len))
		return profile_read_pprof(profile, unpack, why);
	profile->timeline.is_summed = true;
	if (len > 0 && is_text(first, len))
		return profile_read_folded(profile, unpack, why);
	return failure_set(why, FAILURE_INVALID, 0, 0, 0,
			   len ? "not a profile in a known format" : "empty file");
}

/** Combine the facts about two profiles that are added. */
static int reconcile(struct format_profile *profile, const struct format_profile *before,
		     struct failure *why)
{
	if (before->kind != profile->kind)
		return failure_set(why, FAILURE_DENIED, 0, 0, 0,
				   "add up a memory profile and another kind of profile");
	if (strcmp(before->unit, profile->unit) != 0)
		return failure_set(why, FAILURE_DENIED, 0, 0, 0, "add up samples and other values");
	/* Samples of different periods have no common time. */
	if (before->period_ns != profile->period_ns)
		profile->period_ns = 0;
	if (before->time_ns && before->time_ns < profile->time_ns)
		profile->time_ns = before->time_ns;
	profile->is_wall |= before->is_wall;
	profile->duration_ns += before->duration_ns;
	return 0;
}

int format_profile_add(struct format_profile *profile, FILE *file, struct failure *why)
{
	struct format_profile before = *profile;
	struct unpack *unpack;
	int result;

	if (unpack_create(file, &unpack, why))
		return -1;
	unpack_set_progress(unpack, profile->progress, profile->progress_context);
	profile->kind = FORMAT_STREAM_SYSPROF;
	profile->period_ns = profile->time_ns = profile->duration_ns = 0;
	profile->is_wall = false;
	profile->unit[0] = '\0';
	result = load(profile, unpack, why);
	unpack_destroy(unpack);
	if (result == 0 && before.has_kind)
		result = reconcile(profile, &before, why);
	profile->has_kind = true;
	return result;
}

int format_profile_read(FILE *file, struct format_profile **ret_profile, struct failure *why)
{
	struct format_profile *profile = format_profile_create(why);

	if (!profile)
		return -1;
	if (format_profile_add(profile, file, why)) {
		format_profile_destroy(profile);
		return -1;
	}
	*ret_profile = profile;
	return 0;
}
