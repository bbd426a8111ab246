/* SPDX-License-Identifier: MIT */
/*
 * How is a pprof profile of any program read?
 *
 * Messages refer to later ones, so the whole file is in memory. The reader walks it field by field
 * and decodes one field at a time, so a hostile file makes it decode at most one field at once. The
 * tables here and in the profile bound the memory.
 */
#include <stdlib.h>
#include <string.h>

#include "format/pprof/pprof.h"
#include "format/pprof/pprof_reader.h"
#include "format/read/profile_reader.h"
#include "format/sysprof/stream_format.h"
#include "format/text.h"

#include "attach/array.h"
#include "pprof.pb-c.h"

/** Bytes of a text that are read; reports show no more. */
#define TEXT_MAX 1024

/* ---- Fields ----------------------------------------------------------------------------- */

int pprof_no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the profile");
}

int pprof_invalid(const struct pprof_field *field, const char *what, struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, field->offset, what);
}

/** Walk all fields. @param take Called for each field. */
static int visit(struct pprof_reader *reader,
		 int (*take)(struct pprof_reader *, const struct pprof_field *, struct failure *),
		 struct failure *why)
{
	struct pprof_field field;
	size_t at = 0;
	int got;

	while ((got = pprof_next_field(&reader->content, &at, &field, why)) > 0) {
		if (take(reader, &field, why) == 0)
			continue;
		if (why->kind == FAILURE_LIMIT)
			why->address = field.offset;
		return -1;
	}
	return got;
}

int pprof_is_message(const struct pprof_field *field, uint32_t number, struct failure *why)
{
	if (field->number != number)
		return 0;
	if (field->wire != PPROF_WIRE_BYTES)
		return pprof_invalid(field, "not a message", why);
	if (field->len > PPROF_ITEM_MAX_BYTES)
		return pprof_invalid(field, "message too large", why);
	return 1;
}

/* ---- Strings ---------------------------------------------------------------------------- */

static int take_string(struct pprof_reader *reader, const struct pprof_field *field,
		       struct failure *why)
{
	if (field->number != PPROF_FIELD_STRING)
		return 0;
	if (field->wire != PPROF_WIRE_BYTES)
		return pprof_invalid(field, "not a text", why);
	if (reader->string_count >= PPROF_TABLE_MAX)
		return pprof_invalid(field, "too many texts", why);
	if (!ARRAY_RESERVE(reader->strings, reader->string_size, reader->string_count + 1))
		return pprof_no_memory(why);
	/* The length fits because of FIELD_MAX_BYTES. */
	reader->strings[reader->string_count++] =
		(struct pprof_string){ .bytes = field->bytes, .len = (uint32_t)field->len };
	return 0;
}

int pprof_copy_text(const struct pprof_reader *reader, int64_t id, struct format_text *ret_buffer,
		    const char **ret_text, struct failure *why)
{
	format_text_clear(ret_buffer);
	if (id > 0 && (uint64_t)id < reader->string_count) {
		const char *text = (const char *)reader->strings[id].bytes;

		format_text_add_shown(ret_buffer, text,
				      format_text_cut(text, reader->strings[id].len, TEXT_MAX));
	}
	return format_text_take(ret_buffer, ret_text, why);
}

/** As pprof_copy_text(), but in a buffer of the reader; valid until the next call. */
static int text_of(struct pprof_reader *reader, int64_t id, const char **ret_text,
		   struct failure *why)
{
	return pprof_copy_text(reader, id, &reader->text, ret_text, why);
}

static bool is_text(const struct pprof_reader *reader, int64_t id, const char *text)
{
	return id >= 0 && (uint64_t)id < reader->string_count &&
	       reader->strings[id].len == strlen(text) &&
	       memcmp(reader->strings[id].bytes, text, strlen(text)) == 0;
}

/* ---- Samples ---------------------------------------------------------------------------- */

/** Add a text to the profile, once, because many samples share it. */
static int add_string(struct pprof_reader *reader, int64_t id, uint32_t *ret_id,
		      struct failure *why)
{
	struct pprof_string *string;
	const char *text;

	if (id <= 0 || (uint64_t)id >= reader->string_count)
		return 0;
	string = &reader->strings[id];
	if (!string->label && (text_of(reader, id, &text, why) ||
			       profile_add_string(reader->profile, text, &string->label, why)))
		return -1;
	*ret_id = string->label;
	return 0;
}

static int add_label(struct pprof_reader *reader, const Pprof__Label *label,
		     struct profile_labels *labels, struct failure *why)
{
	if (is_text(reader, label->key, PPROF_PID))
		labels->pid = (int32_t)label->num;
	else if (is_text(reader, label->key, PPROF_TID))
		labels->tid = (int32_t)label->num;
	else if (is_text(reader, label->key, PPROF_TRACE))
		labels->trace = (uint32_t)label->num;
	else if (is_text(reader, label->key, PPROF_WAITS))
		labels->is_asleep = 1;
	else if (is_text(reader, label->key, PPROF_THREAD))
		return add_string(reader, label->str, &labels->thread, why);
	else if (is_text(reader, label->key, PPROF_COROUTINE))
		return add_string(reader, label->str, &labels->coroutine, why);
	else if (is_text(reader, label->key, PPROF_STATE))
		for (int state = 0; state < FORMAT_STATE_COUNT; state++)
			if (is_text(reader, label->str,
				    format_state_name((enum format_state)state)))
				labels->state = (uint8_t)(state + 1);
	return 0;
}

static int add_location(struct pprof_reader *reader, const struct pprof_field *field, uint64_t id,
			struct failure *why)
{
	const struct pprof_location *location;
	uint64_t index;

	if (!format_addrmap_get(&reader->location_ids, id, &index))
		return pprof_invalid(field, "a sample with an unknown location", why);
	location = &reader->locations[index];
	for (uint32_t i = 0; i < location->count; i++) {
		if (reader->chain_count >= 2 * STREAM_FRAMES_MAX)
			return pprof_invalid(field, "too many frames", why);
		if (!ARRAY_RESERVE(reader->chain, reader->chain_size, reader->chain_count + 1))
			return pprof_no_memory(why);
		reader->chain[reader->chain_count++] = reader->frames[location->first + i];
	}
	return 0;
}

static int note_sample(struct pprof_reader *reader, uint32_t key, uint64_t count,
		       struct failure *why)
{
	if (!ARRAY_RESERVE(reader->samples, reader->sample_size, reader->sample_count + 1))
		return pprof_no_memory(why);
	reader->samples[reader->sample_count++] = (struct pprof_sample){ key, count };
	return 0;
}

static int add_sample(struct pprof_reader *reader, const struct pprof_field *field,
		      const Pprof__Sample *sample, struct failure *why)
{
	struct format_profile *profile = reader->profile;
	struct profile_labels labels = { 0 };
	uint32_t chain, key;
	int64_t value;
	uint64_t count;

	if (reader->value_index >= sample->n_value)
		return pprof_invalid(field, "a sample without a value", why);
	value = sample->value[reader->value_index];
	if (value < 0)
		return pprof_invalid(field, "a sample with a negative value", why);
	count = ((uint64_t)value + reader->period / 2) / reader->period;
	reader->chain_count = 0;
	for (size_t i = sample->n_location_id; i-- > 0;)
		if (add_location(reader, field, sample->location_id[i], why))
			return -1;
	for (size_t i = 0; i < sample->n_label; i++)
		if (add_label(reader, sample->label[i], &labels, why))
			return -1;
	if (profile_find_sample(profile, reader->chain, reader->chain_count, &labels, &chain, &key,
				why) ||
	    profile_count_sample(profile, chain, key, count, why))
		return -1;
	if (reader->keeps_order && note_sample(reader, key, count, why))
		return -1;
	if (labels.state)
		profile->states[labels.state - 1] += count;
	return 0;
}

static int take_sample(struct pprof_reader *reader, const struct pprof_field *field,
		       struct failure *why)
{
	int got = pprof_is_message(field, PPROF_FIELD_SAMPLE, why);
	Pprof__Sample *sample;
	int result;

	if (got <= 0)
		return got;
	sample = pprof__sample__unpack(NULL, field->len, field->bytes);
	if (!sample)
		return pprof_invalid(field, "damaged sample", why);
	result = add_sample(reader, field, sample, why);
	pprof__sample__free_unpacked(sample, NULL);
	return result;
}

/* ---- Whole profiles --------------------------------------------------------------------- */

/** The value types. The reader chooses the first that counts samples, otherwise the default type,
 * otherwise the last one. */
struct types {
	int64_t shown, period_type, period_unit, period;
	int64_t type[32], unit[32];
	size_t count;
};

static int decode_type(const struct pprof_field *field, int64_t *ret_type, int64_t *ret_unit,
		       struct failure *why)
{
	Pprof__ValueType *message = pprof__value_type__unpack(NULL, field->len, field->bytes);

	if (!message)
		return pprof_invalid(field, "damaged type of samples", why);
	*ret_type = message->type;
	*ret_unit = message->unit;
	pprof__value_type__free_unpacked(message, NULL);
	return 0;
}

static int take_type(const struct pprof_field *field, struct types *types, struct failure *why)
{
	int got = pprof_is_message(field, PPROF_FIELD_SAMPLE_TYPE, why);

	if (got > 0 && types->count == sizeof(types->type) / sizeof(types->type[0]))
		return pprof_invalid(field, "too many types of samples", why);
	if (got > 0) {
		size_t i = types->count++;

		return decode_type(field, &types->type[i], &types->unit[i], why);
	}
	if (got == 0)
		got = pprof_is_message(field, PPROF_FIELD_PERIOD_TYPE, why);
	if (got > 0)
		return decode_type(field, &types->period_type, &types->period_unit, why);
	return got;
}

static int read_types(struct pprof_reader *reader, struct types *ret_types, struct failure *why)
{
	struct format_profile *profile = reader->profile;
	struct pprof_field field;
	size_t at = 0;
	int got;

	while ((got = pprof_next_field(&reader->content, &at, &field, why)) > 0) {
		if (take_type(&field, ret_types, why))
			return -1;
		if (field.wire != PPROF_WIRE_NUMBER)
			continue;
		if (field.number == PPROF_FIELD_PERIOD)
			ret_types->period = (int64_t)field.value;
		else if (field.number == PPROF_FIELD_DEFAULT_TYPE)
			ret_types->shown = (int64_t)field.value;
		else if (field.number == PPROF_FIELD_TIME && field.value <= INT64_MAX)
			profile->time_ns = field.value;
		else if (field.number == PPROF_FIELD_DURATION && field.value <= INT64_MAX)
			profile->duration_ns = field.value;
	}
	return got;
}

/** Store the unit of values that are not counts of samples. */
static int note_unit(struct pprof_reader *reader, const struct types *types, struct failure *why)
{
	char *unit = reader->profile->unit;
	size_t size = sizeof(reader->profile->unit);
	const char *text;

	if (text_of(reader, types->count ? types->unit[reader->value_index] : 0, &text, why))
		return -1;
	snprintf(unit, size, "%.*s", (int)format_text_cut(text, strlen(text), size - 1),
		 *text ? text : "units");
	return 0;
}

static int choose_value(struct pprof_reader *reader, const struct types *types, struct failure *why)
{
	size_t chosen = types->count;
	bool is_time;

	for (size_t i = types->count; i-- > 0;)
		if (is_text(reader, types->type[i], PPROF_SAMPLES) &&
		    is_text(reader, types->unit[i], PPROF_COUNT))
			chosen = i;
	is_time = types->period > 0 && is_text(reader, types->period_unit, PPROF_NANOSECONDS);
	if (is_time)
		reader->profile->period_ns = (uint64_t)types->period;
	if (is_time && is_text(reader, types->period_type, PPROF_WALL))
		reader->profile->is_wall = true;
	reader->period = 1;
	if (chosen < types->count) {
		reader->value_index = chosen;
		return 0;
	}
	reader->value_index = types->count ? types->count - 1 : 0;
	for (size_t i = 0; i < types->count; i++)
		if (types->shown > 0 && types->type[i] == types->shown)
			reader->value_index = i;
	if (is_time && types->count && types->type[reader->value_index] == types->period_type &&
	    types->unit[reader->value_index] == types->period_unit) {
		reader->period = (uint64_t)types->period;
		return 0;
	}
	return note_unit(reader, types, why);
}

static int add_comment(struct pprof_reader *reader, uint64_t id, struct failure *why)
{
	const char *text;

	if (text_of(reader, (int64_t)id, &text, why))
		return -1;
	format_text_add_string(&reader->profile->comments, text);
	format_text_add_string(&reader->profile->comments, "\n");
	if (reader->profile->comments.len > PPROF_ITEM_MAX_BYTES)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "too many comments");
	return format_text_take(&reader->profile->comments, &text, why);
}

/** A field holds one comment or several. */
static int take_comment(struct pprof_reader *reader, const struct pprof_field *field,
			struct failure *why)
{
	size_t at = 0;
	uint64_t id;

	if (field->number != PPROF_FIELD_COMMENT)
		return 0;
	if (field->wire == PPROF_WIRE_NUMBER)
		return add_comment(reader, field->value, why);
	while (field->wire == PPROF_WIRE_BYTES && at < field->len)
		if (!pprof_take_number(field->bytes, field->len, &at, &id))
			return pprof_invalid(field, "damaged comments", why);
		else if (add_comment(reader, id, why))
			return -1;
	return 0;
}

static int load(struct pprof_reader *reader, struct failure *why)
{
	struct timeline *timeline = &reader->profile->timeline;
	struct types types = { 0 };
	int result;

	/* The order of dependencies, whatever the order in the file. */
	if (visit(reader, take_string, why) || read_types(reader, &types, why) ||
	    visit(reader, pprof_take_mapping, why) || visit(reader, pprof_take_function, why) ||
	    visit(reader, pprof_take_location, why))
		return -1;
	/* Here samples are sums; the timeline is added after them. */
	reader->keeps_order = timeline->is_kept;
	timeline->is_kept = false;
	result = choose_value(reader, &types, why) || visit(reader, take_sample, why) ||
				 visit(reader, take_comment, why)
			 ? -1
			 : 0;
	timeline->is_kept = reader->keeps_order;
	return result == 0 && reader->keeps_order ? pprof_add_order(reader, why) : result;
}

int profile_read_pprof(struct format_profile *profile, struct unpack *unpack, struct failure *why)
{
	struct pprof_reader reader = { .profile = profile };
	int result = pprof_read_content(unpack, &reader.content, why);

	if (result == 0)
		result = load(&reader, why);
	pprof_free_locations(&reader);
	label_deinit(&reader.label);
	format_text_deinit(&reader.text);
	format_text_deinit(&reader.name);
	pprof_content_deinit(&reader.content);
	free(reader.strings);
	free(reader.chain);
	free(reader.samples);
	return result;
}
