/* SPDX-License-Identifier: MIT */
/* How does a profile store functions, chains, samples and comments? */
#include "format/profile/profile_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/data/mappings.h"

struct format_profile *format_profile_create(struct failure *why)
{
	struct format_profile *profile = calloc(1, sizeof(*profile));

	if (profile) {
		profile->functions = format_functions_create();
		profile->function_keys = intern_create();
		profile->mappings = mappings_create();
		profile->chains = intern_create();
		profile->strings = intern_create();
		profile->labels = intern_create();
		profile->keys = intern_create();
	}
	if (profile && profile->functions && profile->function_keys && profile->mappings &&
	    profile->chains && profile->strings && profile->labels && profile->keys &&
	    heap_init(&profile->heap, why) == 0)
		return profile;
	failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the profile");
	format_profile_destroy(profile);
	return NULL;
}

void format_profile_destroy(struct format_profile *profile)
{
	if (!profile)
		return;
	format_functions_destroy(profile->functions);
	intern_destroy(profile->function_keys);
	mappings_destroy(profile->mappings);
	intern_destroy(profile->chains);
	intern_destroy(profile->strings);
	intern_destroy(profile->labels);
	intern_destroy(profile->keys);
	format_text_deinit(&profile->comments);
	free(profile->marks);
	free(profile->counts);
	free(profile->key_counts);
	free(profile->plain_keys);
	timeline_deinit(&profile->timeline);
	heap_deinit(&profile->heap);
	free(profile->memory_values);
	free(profile);
}

void format_profile_keep_order(struct format_profile *profile, enum format_order order)
{
	profile->timeline.is_kept = order != FORMAT_ORDER_UNUSED;
	profile->timeline.is_optional = order == FORMAT_ORDER_OPTIONAL;
}

bool format_profile_has_order(const struct format_profile *profile)
{
	return profile->timeline.is_kept && !profile->timeline.is_summed;
}

void format_profile_set_progress(struct format_profile *profile,
				 void (*progress)(void *context, size_t bytes), void *context)
{
	profile->progress = progress;
	profile->progress_context = context;
}

enum format_stream_kind format_profile_kind(const struct format_profile *profile)
{
	return profile->kind;
}

const struct profile_frame *profile_chain(const struct format_profile *profile, uint32_t chain,
					  size_t *ret_count)
{
	size_t len;
	const struct profile_frame *frames = intern_get(profile->chains, chain, &len);

	*ret_count = len / sizeof(*frames);
	return frames;
}

/** Build one text from everything that identifies a function, and how it runs. */
static void add_function_key(struct format_text *key, const struct format_function *function,
			     const struct label_mark *mark)
{
	format_text_addf(key, "%d %d %d %" PRIu32 " %" PRIu64 " %" PRId64, (int)function->kind,
			 mark->compiled, mark->approximate, mark->trace,
			 function->kind == FORMAT_KIND_TRACE ? function->address : 0,
			 function->first_line);
	if (function->name) {
		format_text_add(key, "\0n", 2);
		format_text_add_string(key, function->name);
	}
	if (function->source) {
		format_text_add(key, "\0s", 2);
		format_text_add_string(key, function->source);
	}
	if (function->file) {
		format_text_add(key, "\0f", 2);
		format_text_add_string(key, function->file);
	}
	if (function->mapping)
		format_text_addf(key, " %p %" PRIx64, (const void *)function->mapping,
				 function->address);
}

/** Move the function to the one mapping that represents all mappings of its file. */
static int settle(struct format_profile *profile, const struct format_function *function,
		  struct format_function *ret_settled, struct failure *why)
{
	uint32_t mapping;

	*ret_settled = *function;
	if (!function->mapping)
		return 0;
	if (mappings_put_file(profile->mappings, function->mapping, &mapping, why))
		return -1;
	ret_settled->mapping = mappings_get(profile->mappings, mapping);
	if (ret_settled->mapping)
		ret_settled->address += ret_settled->mapping->start - function->mapping->start;
	return 0;
}

/** Ensure room for the marks of one more function. */
static int grow_marks(struct format_profile *profile, struct failure *why)
{
	return ARRAY_RESERVE(profile->marks, profile->mark_capacity,
			     format_functions_count(profile->functions) + 1)
		       ? 0
		       : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the functions");
}

/*
 * Find a settled function, or add it if there are fewer than @p most.
 * @return 0, 1 if the table is full, or -1.
 */
static int find_or_add(struct format_profile *profile, const struct format_function *function,
		       const struct label_mark *mark, uint32_t most, uint32_t *ret_id,
		       struct failure *why)
{
	struct format_text key = { 0 };
	const char *string;
	uint32_t id, added;
	int result;

	add_function_key(&key, function, mark);
	result = format_text_take(&key, &string, why);
	if (result == 0 && intern_count(profile->function_keys) >= most)
		result = !intern_find(profile->function_keys, string, key.len, &id);
	else if (result == 0)
		result = intern_put(profile->function_keys, string, key.len, &id, why);
	format_text_deinit(&key);
	if (result)
		return result;
	if (id == format_functions_count(profile->functions)) {
		profile->text_bytes += (function->name ? strlen(function->name) : 0) +
				       (function->source ? strlen(function->source) : 0) +
				       (function->file ? strlen(function->file) : 0);
		if (profile->text_bytes > PROFILE_TEXT_MAX)
			return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
					   "more names than can be kept");
		if (grow_marks(profile, why) ||
		    format_functions_add(profile->functions, function, &added, why))
			return -1;
		profile->marks[id] = *mark;
	}
	*ret_id = id;
	return 0;
}

int profile_add_function(struct format_profile *profile, const struct format_function *function,
			 const struct label_mark *mark, uint32_t *ret_id, struct failure *why)
{
	static const struct format_function other = { .kind = FORMAT_KIND_PSEUDO,
						      .name = "[other]",
						      .source = "[other]" };
	static const struct label_mark none = { 0 };
	/* The states of samples are derived from it. */
	const struct label_mark how = { .compiled = (mark && mark->compiled) ||
						    function->kind == FORMAT_KIND_TRACE };
	struct format_function settled;
	int result;

	if (settle(profile, function, &settled, why))
		return -1;
	result = find_or_add(profile, &settled, mark ? mark : &none, PROFILE_FUNCTIONS_MAX - 2,
			     ret_id, why);
	return result <= 0 ? result
			   : find_or_add(profile, &other, &how, PROFILE_FUNCTIONS_MAX, ret_id, why);
}

uint32_t profile_line(const struct format_profile *profile, uint32_t function, uint32_t line)
{
	bool has_lines =
		format_functions_get(profile->functions, function)->kind != FORMAT_KIND_PSEUDO;

	return has_lines ? line : 0;
}

/** Ensure room for count number @p index. New counts are 0. */
static int grow_counts(uint64_t **counts, uint32_t *capacity, uint32_t index, struct failure *why)
{
	return ARRAY_RESERVE_ZEROED(*counts, *capacity, (size_t)index + 1)
		       ? 0
		       : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the chains");
}

static int find_key(struct format_profile *profile, uint32_t chain,
		    const struct profile_labels *labels, uint32_t *ret_id, struct failure *why)
{
	struct profile_sample sample = { .chain = chain };

	if (intern_put(profile->labels, labels, sizeof(*labels), &sample.labels, why) ||
	    intern_put(profile->keys, &sample, sizeof(sample), ret_id, why))
		return -1;
	if (*ret_id >= PROFILE_KEYS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more labels than can be kept");
	return grow_counts(&profile->key_counts, &profile->key_capacity, *ret_id, why);
}

/** Whether only the state of a sample is known, as for millions of samples in a stream. */
static bool is_plain(const struct profile_labels *labels)
{
	const struct profile_labels plain = { .state = labels->state };

	return memcmp(labels, &plain, sizeof(plain)) == 0;
}

/** Find the key of a plain sample. A chain mostly has one state, so the last one is cached with
 * the chain. */
static int find_plain_key(struct format_profile *profile, uint32_t chain,
			  const struct profile_labels *labels, uint32_t *ret_id,
			  struct failure *why)
{
	uint64_t known;

	if (grow_counts(&profile->plain_keys, &profile->plain_capacity, chain, why))
		return -1;
	known = profile->plain_keys[chain];
	if (known && known >> 32 == labels->state) {
		*ret_id = (uint32_t)known - 1;
		return 0;
	}
	if (find_key(profile, chain, labels, ret_id, why))
		return -1;
	profile->plain_keys[chain] = (uint64_t)labels->state << 32 | (*ret_id + 1);
	return 0;
}

int profile_find_sample(struct format_profile *profile, const struct profile_frame *frames,
			size_t frame_count, const struct profile_labels *labels,
			uint32_t *ret_chain, uint32_t *ret_key, struct failure *why)
{
	uint32_t chains = intern_count(profile->chains);

	if (intern_put(profile->chains, frames, frame_count * sizeof(*frames), ret_chain, why) ||
	    grow_counts(&profile->counts, &profile->capacity, *ret_chain, why) ||
	    (is_plain(labels) ? find_plain_key(profile, *ret_chain, labels, ret_key, why)
			      : find_key(profile, *ret_chain, labels, ret_key, why)))
		return -1;
	if (*ret_chain == chains)
		profile->frames += frame_count;
	if (*ret_chain >= PROFILE_CHAINS_MAX || profile->frames > PROFILE_FRAMES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
				   "more call chains than can be kept");
	return 0;
}

int profile_count_sample(struct format_profile *profile, uint32_t chain, uint32_t key,
			 uint64_t count, struct failure *why)
{
	if (count > INT64_MAX - profile->samples)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more samples than can be counted");
	profile->counts[chain] += count;
	profile->key_counts[key] += count;
	profile->samples += count;
	return profile->timeline.is_kept && count > 0
		       ? timeline_add(&profile->timeline, key, count, why)
		       : 0;
}

int profile_add_sample(struct format_profile *profile, const struct profile_frame *frames,
		       size_t frame_count, const struct profile_labels *labels, uint64_t count,
		       struct failure *why)
{
	static const struct profile_labels nothing = { 0 };
	uint32_t chain, key;

	return profile_find_sample(profile, frames, frame_count, labels ? labels : &nothing, &chain,
				   &key, why) ||
			       profile_count_sample(profile, chain, key, count, why)
		       ? -1
		       : 0;
}

struct profile_sample profile_sample(const struct format_profile *profile, uint32_t id)
{
	size_t len;
	struct profile_sample sample;

	memcpy(&sample, intern_get(profile->keys, id, &len), sizeof(sample));
	return sample;
}

const struct profile_labels *profile_labels(const struct format_profile *profile, uint32_t id)
{
	size_t len;

	return intern_get(profile->labels, id, &len);
}

int profile_add_string(struct format_profile *profile, const char *text, uint32_t *ret_id,
		       struct failure *why)
{
	uint32_t count = intern_count(profile->strings), id;

	if (intern_put(profile->strings, text, strlen(text), &id, why))
		return -1;
	profile->text_bytes += id == count ? strlen(text) : 0;
	if (id >= PROFILE_KEYS_MAX || profile->text_bytes > PROFILE_TEXT_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more names than can be kept");
	*ret_id = id + 1;
	return 0;
}

const char *profile_string(const struct format_profile *profile, uint32_t id)
{
	size_t len;

	return id ? intern_get(profile->strings, id - 1, &len) : NULL;
}

bool profile_next_comment(const struct format_profile *profile, size_t *at,
			  struct profile_comment *ret_comment)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const struct format_text *comments = &profile->comments;

	while (*at < comments->len) {
		const char *line = comments->bytes + *at,
			   *end = memchr(line, '\n', comments->len - *at);
		size_t len = end ? (size_t)(end - line) : comments->len - *at,
		       name_len = strspn(line, letters);

		*at += len + 1;
		if (len == 0)
			continue;
		if (name_len >= len || line[name_len] != ':')
			name_len = 0;
		*ret_comment = (struct profile_comment){ line, len, name_len };
		return true;
	}
	return false;
}

const char *format_profile_unit(const struct format_profile *profile)
{
	return *profile->unit ? profile->unit : "samples";
}

bool format_profile_has_samples(const struct format_profile *profile)
{
	return !*profile->unit && profile->kind == FORMAT_STREAM_SYSPROF;
}

bool format_profile_has_processes(const struct format_profile *profile)
{
	for (uint32_t i = 0; i < intern_count(profile->labels); i++)
		if (profile_labels(profile, i)->pid)
			return true;
	for (uint32_t i = 0; i < format_functions_count(profile->functions); i++)
		if (format_functions_get(profile->functions, i)->kind == FORMAT_KIND_PROCESS)
			return true;
	return false;
}

bool format_profile_has_threads(const struct format_profile *profile)
{
	for (uint32_t i = 0; i < intern_count(profile->labels); i++)
		if (profile_labels(profile, i)->tid || profile_labels(profile, i)->thread)
			return true;
	return false;
}
