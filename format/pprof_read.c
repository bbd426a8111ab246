/* SPDX-License-Identifier: MIT */
/*
 * A profile in pprof's form, ours or anyone's.
 *
 * Messages name what follows them, so all of the file is in memory. It is gone over field by field,
 * and each field is decoded on its own: of a hostile one no more is decoded at once than one field.
 * How much is kept is bounded by the tables here and in the profile.
 */
#include <stdlib.h>
#include <string.h>

#include "format/label.h"
#include "format/load.h"
#include "format/pprof.h"
#include "format/pprof_fields.h"
#include "format/stream.h"

#include "pprof.pb-c.h"

/** Bytes of a message that is decoded; how many strings, locations and frames of these there are,
 * and how many functions. */
#define ITEM_MAX_BYTES (1u << 20)
#define TABLE_MAX      (4u << 20)
#define FUNCTIONS_MAX  (1u << 20)
/** Bytes of a text that are looked at: no more is shown of any. */
#define TEXT_MAX 1024
/** Functions inlined into each other at one address. */
#define INLINED_MAX 1024

/** Numbers of Profile's fields. */
enum field_number {
	FIELD_SAMPLE_TYPE = 1,
	FIELD_SAMPLE,
	FIELD_MAPPING,
	FIELD_LOCATION,
	FIELD_FUNCTION,
	FIELD_STRING,
	FIELD_TIME = 9,
	FIELD_DURATION = 10,
	FIELD_PERIOD_TYPE = 11,
	FIELD_PERIOD = 12,
	FIELD_COMMENT = 13,
	FIELD_DEFAULT_TYPE = 14,
};

struct string {
	const uint8_t *bytes;
	uint32_t len;
	uint32_t label; /* id of the profile's string; 0: it has none yet */
};

/** A location's frames, in `frames`, root first. */
struct location {
	uint32_t first, count;
};

struct pprof_reader {
	struct format_profile *profile;
	struct pprof_content content;
	struct string *strings;
	size_t string_count, string_size;
	size_t function_count;
	struct format_addrmap functions; /* Id to the profile's id. */
	struct format_addrmap modules;	 /* Mapping's id to its file name's string. */
	struct format_addrmap locations; /* Id to index. */
	struct location *places;
	size_t place_count, place_size;
	struct profile_frame *frames;
	size_t frame_count, frame_size;
	struct profile_frame *chain;
	size_t chain_count, chain_size;
	size_t value_index;
	uint64_t period; /* What a sample's value is divided by. */
	struct label label;
	struct format_text text, name;
};

/* ---- Fields ----------------------------------------------------------------------------- */

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the profile");
}

static int invalid(const struct pprof_field *field, const char *what, struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, field->offset, what);
}

/** Room for one more of @p *count items of @p item_size bytes. */
static int grow(void **items, size_t count, size_t *size, size_t item_size, struct failure *why)
{
	size_t wider = 2 * *size + 64;
	void *grown;

	if (count < *size)
		return 0;
	grown = reallocarray(*items, wider, item_size);
	if (!grown)
		return no_memory(why);
	*items = grown;
	*size = wider;
	return 0;
}

/** Go over all fields. @param take Called for each. */
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

/** Whether a field is a message that can be decoded. @return 1, 0 for another field, or -1. */
static int is_message(const struct pprof_field *field, uint32_t number, struct failure *why)
{
	if (field->number != number)
		return 0;
	if (field->wire != PPROF_WIRE_BYTES)
		return invalid(field, "not a message", why);
	if (field->len > ITEM_MAX_BYTES)
		return invalid(field, "too large a message", why);
	return 1;
}

/* ---- Strings ---------------------------------------------------------------------------- */

static int take_string(struct pprof_reader *reader, const struct pprof_field *field,
		       struct failure *why)
{
	if (field->number != FIELD_STRING)
		return 0;
	if (field->wire != PPROF_WIRE_BYTES)
		return invalid(field, "not a text", why);
	if (reader->string_count >= TABLE_MAX)
		return invalid(field, "too many texts", why);
	if (grow((void **)&reader->strings, reader->string_count, &reader->string_size,
		 sizeof(*reader->strings), why))
		return -1;
	/* FIELD_MAX_BYTES fit. */
	reader->strings[reader->string_count++] =
		(struct string){ .bytes = field->bytes, .len = (uint32_t)field->len };
	return 0;
}

/** A text, fit for a terminal and terminated, in @p ret_buffer. "" where there is none. */
static int copy_text(const struct pprof_reader *reader, int64_t id, struct format_text *ret_buffer,
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

/** The same, valid until the next. */
static int text_of(struct pprof_reader *reader, int64_t id, const char **ret_text,
		   struct failure *why)
{
	return copy_text(reader, id, &reader->text, ret_text, why);
}

static bool is_text(const struct pprof_reader *reader, int64_t id, const char *text)
{
	return id >= 0 && (uint64_t)id < reader->string_count &&
	       reader->strings[id].len == strlen(text) &&
	       memcmp(reader->strings[id].bytes, text, strlen(text)) == 0;
}

/* ---- Functions and locations ------------------------------------------------------------ */

static int take_mapping(struct pprof_reader *reader, const struct pprof_field *field,
			struct failure *why)
{
	int got = is_message(field, FIELD_MAPPING, why);
	Pprof__Mapping *mapping;
	int result = 0;

	if (got <= 0)
		return got;
	mapping = pprof__mapping__unpack(NULL, field->len, field->bytes);
	if (!mapping)
		return invalid(field, "damaged mapping", why);
	if (mapping->filename > 0)
		result = format_addrmap_set(&reader->modules, mapping->id,
					    (uint64_t)mapping->filename, why);
	pprof__mapping__free_unpacked(mapping, NULL);
	return result;
}

/** What our own writer says of the kind, where it is ours. @return false for native code. */
static bool find_kind(const char *words, const char *name, enum format_kind *ret_kind,
		      struct names_mark *ret_mark)
{
	static const char *const kinds[FORMAT_KIND_COUNT] = PPROF_KIND_WORDS;
	size_t len = strlen(words), word_len;

	if (strcmp(words, name) == 0)
		return false;
	if (!names_parse_mark(words, len, &word_len, ret_mark))
		word_len = len;
	for (int kind = 0; kind < FORMAT_KIND_COUNT; kind++) {
		if (*kinds[kind] && strlen(kinds[kind]) == word_len &&
		    memcmp(words, kinds[kind], word_len) == 0) {
			*ret_kind = (enum format_kind)kind;
			return true;
		}
	}
	return false;
}

/** Only what says so is Lua or a trace: "f (a.c:12)" may be anything. */
static int describe(struct pprof_reader *reader, const Pprof__Function *message,
		    struct format_function *ret_function, struct names_mark *ret_mark,
		    struct failure *why)
{
	enum format_kind kind = FORMAT_KIND_NATIVE;
	const char *name, *words;

	*ret_mark = (struct names_mark){ 0 };
	if (copy_text(reader, message->name, &reader->name, &name, why) ||
	    text_of(reader, message->system_name, &words, why))
		return -1;
	if (find_kind(words, name, &kind, ret_mark) &&
	    (kind == FORMAT_KIND_LUA || kind == FORMAT_KIND_TRACE)) {
		if (label_parse(&reader->label, name, strlen(name), why))
			return -1;
		*ret_function = reader->label.function;
		if (ret_function->kind == kind)
			return 0;
		kind = FORMAT_KIND_NATIVE; /* it says so, but has no place */
		*ret_mark = (struct names_mark){ 0 };
	}
	*ret_function = (struct format_function){ .kind = kind, .name = *name ? name : "?" };
	return 0;
}

static int take_function(struct pprof_reader *reader, const struct pprof_field *field,
			 struct failure *why)
{
	int got = is_message(field, FIELD_FUNCTION, why);
	struct format_function function;
	Pprof__Function *message;
	struct names_mark mark;
	uint32_t id;
	int result;

	if (got <= 0)
		return got;
	if (reader->function_count++ >= FUNCTIONS_MAX)
		return invalid(field, "too many functions", why);
	message = pprof__function__unpack(NULL, field->len, field->bytes);
	if (!message)
		return invalid(field, "damaged function", why);
	result = describe(reader, message, &function, &mark, why) ||
		 profile_add_function(reader->profile, &function, &mark, &id, why) ||
		 format_addrmap_set(&reader->functions, message->id, id, why);
	pprof__function__free_unpacked(message, NULL);
	return result ? -1 : 0;
}

static int add_frame(struct pprof_reader *reader, uint32_t function, int64_t line,
		     struct failure *why)
{
	if (reader->frame_count >= TABLE_MAX)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "too many locations");
	if (grow((void **)&reader->frames, reader->frame_count, &reader->frame_size,
		 sizeof(*reader->frames), why))
		return -1;
	reader->frames[reader->frame_count++] = (struct profile_frame){
		.function = function,
		.line = line < 0 || line > INT32_MAX ? 0 : (uint32_t)line,
	};
	return 0;
}

/** Code of which no function is known. */
static int add_unknown(struct pprof_reader *reader, const Pprof__Location *location,
		       struct failure *why)
{
	struct format_function function = { .kind = FORMAT_KIND_NATIVE };
	uint64_t file = 0;
	const char *module;
	char name[PPROF_FILE_MAX + 32];
	uint32_t id;

	format_addrmap_get(&reader->modules, location->mapping_id, &file);
	if (text_of(reader, (int64_t)file, &module, why))
		return -1;
	snprintf(name, sizeof(name), "%.*s%s0x%llx",
		 (int)format_text_cut(module, strlen(module), PPROF_FILE_MAX), module,
		 *module ? "+" : "", (unsigned long long)location->address);
	function.name = name;
	if (profile_add_function(reader->profile, &function, NULL, &id, why))
		return -1;
	return add_frame(reader, id, 0, why);
}

/** Its lines, the caller's first. */
static int add_lines(struct pprof_reader *reader, const Pprof__Location *location,
		     struct failure *why)
{
	uint64_t function;

	if (location->n_line > INLINED_MAX)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "too many inlined functions");
	for (size_t i = location->n_line; i-- > 0;) {
		if (!format_addrmap_get(&reader->functions, location->line[i]->function_id,
					&function)) {
			if (add_unknown(reader, location, why))
				return -1;
		} else if (add_frame(reader, (uint32_t)function, location->line[i]->line, why)) {
			return -1;
		}
	}
	return location->n_line ? 0 : add_unknown(reader, location, why);
}

static int take_location(struct pprof_reader *reader, const struct pprof_field *field,
			 struct failure *why)
{
	int got = is_message(field, FIELD_LOCATION, why);
	struct location place = { .first = (uint32_t)reader->frame_count };
	Pprof__Location *message;
	int result;

	if (got <= 0)
		return got;
	message = pprof__location__unpack(NULL, field->len, field->bytes);
	if (!message)
		return invalid(field, "damaged location", why);
	result = add_lines(reader, message, why) ||
		 grow((void **)&reader->places, reader->place_count, &reader->place_size,
		      sizeof(*reader->places), why) ||
		 format_addrmap_set(&reader->locations, message->id, reader->place_count, why);
	if (result == 0) {
		place.count = (uint32_t)reader->frame_count - place.first;
		reader->places[reader->place_count++] = place;
	} else if (why->kind == FAILURE_INVALID) {
		why->address = field->offset;
	}
	pprof__location__free_unpacked(message, NULL);
	return result ? -1 : 0;
}

/* ---- Samples ---------------------------------------------------------------------------- */

/** The profile's number of a text; many samples have the same. */
static int add_string(struct pprof_reader *reader, int64_t id, uint32_t *ret_id,
		      struct failure *why)
{
	struct string *string;
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
	const struct location *place;
	uint64_t index;

	if (!format_addrmap_get(&reader->locations, id, &index))
		return invalid(field, "a sample of a location that is not told", why);
	place = &reader->places[index];
	for (uint32_t i = 0; i < place->count; i++) {
		if (reader->chain_count >= 2 * STREAM_FRAMES_MAX)
			return invalid(field, "too many frames", why);
		if (grow((void **)&reader->chain, reader->chain_count, &reader->chain_size,
			 sizeof(*reader->chain), why))
			return -1;
		reader->chain[reader->chain_count++] = reader->frames[place->first + i];
	}
	return 0;
}

static int add_sample(struct pprof_reader *reader, const struct pprof_field *field,
		      const Pprof__Sample *sample, struct failure *why)
{
	struct format_profile *profile = reader->profile;
	struct profile_labels labels = { 0 };
	int64_t value;
	uint64_t count;

	if (reader->value_index >= sample->n_value)
		return invalid(field, "a sample without its value", why);
	value = sample->value[reader->value_index];
	if (value < 0)
		return invalid(field, "a sample of less than nothing", why);
	count = ((uint64_t)value + reader->period / 2) / reader->period;
	reader->chain_count = 0;
	for (size_t i = sample->n_location_id; i-- > 0;)
		if (add_location(reader, field, sample->location_id[i], why))
			return -1;
	for (size_t i = 0; i < sample->n_label; i++)
		if (add_label(reader, sample->label[i], &labels, why))
			return -1;
	if (profile_add_sample(profile, reader->chain, reader->chain_count, &labels, count, why))
		return -1;
	if (labels.state)
		profile->states[labels.state - 1] += count;
	return 0;
}

static int take_sample(struct pprof_reader *reader, const struct pprof_field *field,
		       struct failure *why)
{
	int got = is_message(field, FIELD_SAMPLE, why);
	Pprof__Sample *sample;
	int result;

	if (got <= 0)
		return got;
	sample = pprof__sample__unpack(NULL, field->len, field->bytes);
	if (!sample)
		return invalid(field, "damaged sample", why);
	result = add_sample(reader, field, sample, why);
	pprof__sample__free_unpacked(sample, NULL);
	return result;
}

/* ---- Whole profiles --------------------------------------------------------------------- */

/** The first type that counts samples, or else the one that is shown, or else the last. */
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
		return invalid(field, "damaged type of samples", why);
	*ret_type = message->type;
	*ret_unit = message->unit;
	pprof__value_type__free_unpacked(message, NULL);
	return 0;
}

static int take_type(const struct pprof_field *field, struct types *types, struct failure *why)
{
	int got = is_message(field, FIELD_SAMPLE_TYPE, why);

	if (got > 0 && types->count == sizeof(types->type) / sizeof(types->type[0]))
		return invalid(field, "too many types of samples", why);
	if (got > 0) {
		size_t i = types->count++;

		return decode_type(field, &types->type[i], &types->unit[i], why);
	}
	if (got == 0)
		got = is_message(field, FIELD_PERIOD_TYPE, why);
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
		if (field.number == FIELD_PERIOD)
			ret_types->period = (int64_t)field.value;
		else if (field.number == FIELD_DEFAULT_TYPE)
			ret_types->shown = (int64_t)field.value;
		else if (field.number == FIELD_TIME && field.value <= INT64_MAX)
			profile->time_ns = field.value;
		else if (field.number == FIELD_DURATION && field.value <= INT64_MAX)
			profile->duration_ns = field.value;
	}
	return got;
}

/** What the values are, where they are no numbers of samples. */
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
	if (reader->profile->comments.len > ITEM_MAX_BYTES)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "too many comments");
	return format_text_take(&reader->profile->comments, &text, why);
}

/** One, or some in one field. */
static int take_comment(struct pprof_reader *reader, const struct pprof_field *field,
			struct failure *why)
{
	size_t at = 0;
	uint64_t id;

	if (field->number != FIELD_COMMENT)
		return 0;
	if (field->wire == PPROF_WIRE_NUMBER)
		return add_comment(reader, field->value, why);
	while (field->wire == PPROF_WIRE_BYTES && at < field->len)
		if (!pprof_take_number(field->bytes, field->len, &at, &id))
			return invalid(field, "damaged comments", why);
		else if (add_comment(reader, id, why))
			return -1;
	return 0;
}

static int load(struct pprof_reader *reader, struct failure *why)
{
	struct types types = { 0 };

	/* In the order in which one needs the other, whatever the file's is. */
	if (visit(reader, take_string, why) || read_types(reader, &types, why) ||
	    visit(reader, take_mapping, why) || visit(reader, take_function, why) ||
	    visit(reader, take_location, why))
		return -1;
	return choose_value(reader, &types, why) || visit(reader, take_sample, why) ||
			       visit(reader, take_comment, why)
		       ? -1
		       : 0;
}

int profile_load_pprof(struct format_profile *profile, struct unpack *unpack, struct failure *why)
{
	struct pprof_reader reader = { .profile = profile };
	int result = pprof_read_content(unpack, &reader.content, why);

	if (result == 0)
		result = load(&reader, why);
	format_addrmap_deinit(&reader.functions);
	format_addrmap_deinit(&reader.modules);
	format_addrmap_deinit(&reader.locations);
	label_deinit(&reader.label);
	format_text_deinit(&reader.text);
	format_text_deinit(&reader.name);
	pprof_content_deinit(&reader.content);
	free(reader.strings);
	free(reader.places);
	free(reader.frames);
	free(reader.chain);
	return result;
}
