/* SPDX-License-Identifier: MIT */
/* How is a profile written in the pprof format, compressed? It consists of many concatenated
 * messages with some samples each, so that memory holds only one batch. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/data/mappings.h"
#include "format/file/gzip_write.h"
#include "format/formats/reports.h"
#include "format/pprof/pprof.h"
#include "format/report/call_tree.h"
#include "format/text.h"
#include "format/text/base64.h"

#include "attach/array.h"
#include "pprof.pb-c.h"

enum {
	/* Samples per message. */
	BATCH_SAMPLES = 512,
	/* Most labels of one sample. */
	LABELS_MAX = 7,
	/* Bytes of the order per string. */
	ORDER_BYTES = 12 << 10,
};

/** Facts about the functions in a mapping. */
struct mapped {
	bool has_names, has_files, has_lines;
};

struct pprof {
	const struct format_profile *profile;
	struct pack_stream *out;
	struct intern *strings;
	uint32_t strings_written;
	struct format_mappings *mappings; /* The mapping's id is the id here + 1. */
	struct mapped *mapped;		  /* By id in `mappings`. */
	uint32_t mapped_size;
	struct format_addrmap locations; /* From function << 32 | line to the location's id. */
	uint64_t location_count;
	bool has_time;	      /* The total time of all samples is known and can be written. */
	uint32_t *mapping_of; /* By function id; 0: none. */
	struct format_text text, location, string;
	uint8_t *packed;
	size_t packed_size;
};

/* ---- Messages --------------------------------------------------------------------------- */

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the profile");
}

static int put(struct pprof *pprof, const Pprof__Profile *message, struct failure *why)
{
	size_t len = pprof__profile__get_packed_size(message);

	if (!ARRAY_RESERVE(pprof->packed, pprof->packed_size, len))
		return no_memory(why);
	pprof__profile__pack(message, pprof->packed);
	return pack_stream_put(pprof->out, pprof->packed, len, why);
}

/** Texts in protocol buffers must be UTF-8. */
static int string_id(struct pprof *pprof, const char *text, int64_t *ret_id, struct failure *why)
{
	const char *clean;
	uint32_t id;

	format_text_clear(&pprof->string);
	format_text_add_string(&pprof->string, text);
	if (format_text_take(&pprof->string, &clean, why))
		return -1;
	if (pprof->string.len > 0)
		format_clean_utf8(pprof->string.bytes, pprof->string.len);
	if (intern_put(pprof->strings, clean, pprof->string.len, &id, why))
		return -1;
	*ret_id = id;
	return 0;
}

/** Write the strings that are not yet written. */
static int put_strings(struct pprof *pprof, struct failure *why)
{
	uint32_t count = intern_count(pprof->strings);
	char *texts[BATCH_SAMPLES];

	while (pprof->strings_written < count) {
		Pprof__Profile message = PPROF__PROFILE__INIT;

		while (pprof->strings_written < count && message.n_string_table < BATCH_SAMPLES) {
			const char *text =
				intern_get(pprof->strings, pprof->strings_written++, NULL);

			texts[message.n_string_table++] = (char *)(uintptr_t)text;
		}
		message.string_table = texts;
		if (put(pprof, &message, why))
			return -1;
	}
	return 0;
}

/* ---- Functions -------------------------------------------------------------------------- */

/** Whether a function has no symbol, so that its name is its module (or the module's path) and an
 * offset. */
static bool is_location_name(const struct format_function *function)
{
	const char *name = function->name ? function->name : "", *plus = strrchr(name, '+');
	size_t len = plus ? (size_t)(plus - name) : 0;
	const char *path = function->mapping ? function->mapping->path : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *names[] = { function->source, path, slash ? slash + 1 : NULL };

	if (!plus || strncmp(plus, "+0x", 3) != 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i] && strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return true;
	return false;
}

/** Find the mapping of native code; 0 for other kinds. If only the module's name is known, use a
 * mapping with that name. */
static int mapping_of(struct pprof *pprof, const struct format_function *function, uint32_t *ret_id,
		      struct failure *why)
{
	struct format_mapping named = { .path = function->source };
	const struct format_mapping *mapping = function->mapping;
	struct mapped *mapped;
	uint32_t id;

	*ret_id = 0;
	if (!mapping && format_kind_is_native(function->kind) && function->source)
		mapping = &named;
	if (!mapping)
		return 0;
	if (mappings_put(pprof->mappings, mapping, &id, why))
		return -1;
	if (id == MAPPINGS_NONE)
		return 0;
	if (!ARRAY_RESERVE_ZEROED(pprof->mapped, pprof->mapped_size, (size_t)id + 1))
		return no_memory(why);
	mapped = &pprof->mapped[id];
	mapped->has_names |= mapping == &named || !is_location_name(function);
	mapped->has_files |= function->file != NULL;
	*ret_id = id + 1;
	return 0;
}

static int put_mapping(struct pprof *pprof, uint32_t id, struct failure *why)
{
	const struct format_mapping *mapping = mappings_get(pprof->mappings, id);
	const struct mapped *mapped = &pprof->mapped[id];
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__Mapping item = PPROF__MAPPING__INIT, *items = &item;

	item.id = (uint64_t)id + 1;
	item.memory_start = mapping->start;
	item.memory_limit = mapping->limit;
	item.file_offset = mapping->offset;
	/* If all are false, pprof looks for symbols itself. */
	item.has_functions = mapped->has_names;
	item.has_filenames = mapped->has_files;
	item.has_line_numbers = mapped->has_lines;
	message.n_mapping = 1;
	message.mapping = &items;
	if (string_id(pprof, mapping->path, &item.filename, why) ||
	    (mapping->build_id && string_id(pprof, mapping->build_id, &item.build_id, why)))
		return -1;
	return put(pprof, &message, why);
}

/** Called when all functions of the mappings are known. */
static int put_mappings(struct pprof *pprof, struct failure *why)
{
	for (uint32_t id = 0; id < mappings_count(pprof->mappings); id++)
		if (put_mapping(pprof, id, why))
			return -1;
	return 0;
}

/** Words of the kinds; native code has its own name instead. */
static const char *const kind_words[FORMAT_KIND_COUNT] = PPROF_KIND_WORDS;

static int describe(struct pprof *pprof, const struct format_function *function,
		    const struct label_mark *mark, Pprof__Function *ret_message,
		    struct failure *why)
{
	const char *source =
		function->kind == FORMAT_KIND_LUA || function->kind == FORMAT_KIND_TRACE
			? function->source
			: NULL;
	const char *file = source ? source + (*source == '@') : function->file, *text;

	format_text_clear(&pprof->text);
	format_text_clear(&pprof->location);
	label_describe(&pprof->text, &pprof->location, function, function->first_line);
	if (format_text_take(&pprof->text, &text, why) ||
	    string_id(pprof, text, &ret_message->name, why))
		return -1;
	ret_message->system_name = ret_message->name;
	if (function->kind != FORMAT_KIND_NATIVE) {
		format_text_clear(&pprof->text);
		format_text_add_string(&pprof->text, kind_words[function->kind]);
		if (mark->compiled)
			symbol_add_mark(&pprof->text, mark);
		if (format_text_take(&pprof->text, &text, why) ||
		    string_id(pprof, text, &ret_message->system_name, why))
			return -1;
	}
	if (!file)
		return 0;
	ret_message->start_line = function->first_line;
	format_text_clear(&pprof->text);
	format_text_add_shown(&pprof->text, file,
			      format_text_cut(file, strlen(file), PPROF_FILE_MAX));
	return format_text_take(&pprof->text, &text, why) ||
			       string_id(pprof, text, &ret_message->filename, why)
		       ? -1
		       : 0;
}

static int put_functions(struct pprof *pprof, struct failure *why)
{
	uint32_t count = format_functions_count(pprof->profile->functions);

	for (uint32_t id = 0; id < count; id++) {
		const struct format_function *function =
			format_functions_get(pprof->profile->functions, id);
		Pprof__Profile message = PPROF__PROFILE__INIT;
		Pprof__Function item = PPROF__FUNCTION__INIT, *items = &item;

		item.id = (uint64_t)id + 1;
		message.n_function = 1;
		message.function = &items;
		if (describe(pprof, function, &pprof->profile->marks[id], &item, why) ||
		    mapping_of(pprof, function, &pprof->mapping_of[id], why) ||
		    put(pprof, &message, why))
			return -1;
	}
	return 0;
}

/* ---- Samples ---------------------------------------------------------------------------- */

static int location_of(struct pprof *pprof, struct profile_frame frame, uint64_t *ret_id,
		       struct failure *why)
{
	uint64_t key = (uint64_t)frame.function << 32 | frame.line;
	const struct format_function *function;
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;

	if (format_addrmap_get(&pprof->locations, key, ret_id))
		return 0;
	function = format_functions_get(pprof->profile->functions, frame.function);
	*ret_id = location.id = ++pprof->location_count;
	location.mapping_id = pprof->mapping_of[frame.function];
	if (location.mapping_id && frame.line)
		pprof->mapped[location.mapping_id - 1].has_lines = true;
	if (format_kind_is_native(function->kind) || function->kind == FORMAT_KIND_CFUNC)
		location.address = function->address;
	line.function_id = (uint64_t)frame.function + 1;
	line.line = frame.line;
	location.n_line = 1;
	location.line = &lines;
	message.n_location = 1;
	message.location = &locations;
	return format_addrmap_set(&pprof->locations, key, location.id, why) ||
			       put(pprof, &message, why)
		       ? -1
		       : 0;
}

/** Order of values in Go's heap profiles. */
static const enum format_memory memory_order[FORMAT_MEMORY_COUNT] = {
	FORMAT_MEMORY_ALLOC_OBJECTS,
	FORMAT_MEMORY_ALLOC_SPACE,
	FORMAT_MEMORY_INUSE_OBJECTS,
	FORMAT_MEMORY_INUSE_SPACE,
};

/** One sample of a batch and the memory that it points to. */
struct item {
	Pprof__Sample sample;
	Pprof__Label labels[LABELS_MAX], *label_list[LABELS_MAX];
	int64_t values[FORMAT_MEMORY_COUNT];
	uint64_t *locations; /* owned */
};

static int add_number(struct pprof *pprof, struct item *item, const char *key, int64_t number,
		      struct failure *why)
{
	Pprof__Label *label = &item->labels[item->sample.n_label];

	if (number == 0)
		return 0;
	pprof__label__init(label);
	label->num = number;
	item->label_list[item->sample.n_label++] = label;
	return string_id(pprof, key, &label->key, why);
}

static int add_string(struct pprof *pprof, struct item *item, const char *key, const char *text,
		      struct failure *why)
{
	Pprof__Label *label = &item->labels[item->sample.n_label];

	if (!text)
		return 0;
	pprof__label__init(label);
	item->label_list[item->sample.n_label++] = label;
	return string_id(pprof, key, &label->key, why) || string_id(pprof, text, &label->str, why)
		       ? -1
		       : 0;
}

static int add_labels(struct pprof *pprof, struct item *item, const struct profile_labels *labels,
		      struct failure *why)
{
	const struct format_profile *profile = pprof->profile;
	const char *state =
		labels->state ? format_state_name((enum format_state)(labels->state - 1)) : NULL;

	item->sample.label = item->label_list;
	if (add_number(pprof, item, PPROF_PID, labels->pid, why) ||
	    add_number(pprof, item, PPROF_TID, labels->tid, why) ||
	    add_string(pprof, item, PPROF_THREAD, profile_string(profile, labels->thread), why) ||
	    add_string(pprof, item, PPROF_COROUTINE, profile_string(profile, labels->coroutine),
		       why) ||
	    add_string(pprof, item, PPROF_STATE, state, why) ||
	    add_number(pprof, item, PPROF_TRACE, labels->trace, why))
		return -1;
	return add_string(pprof, item, PPROF_WAITS, labels->is_asleep ? "yes" : NULL, why);
}

static int fill(struct pprof *pprof, uint32_t id, struct item *item, struct failure *why)
{
	const struct format_profile *profile = pprof->profile;
	struct profile_sample key = profile_sample(profile, id);
	const struct profile_frame *frames;
	size_t count;

	frames = profile_chain(profile, key.chain, &count);
	pprof__sample__init(&item->sample);
	item->locations = malloc((count + 1) * sizeof(*item->locations));
	if (!item->locations)
		return no_memory(why);
	for (size_t i = 0; i < count; i++)
		if (location_of(pprof, frames[count - 1 - i], &item->locations[i], why))
			return -1;
	item->values[0] = (int64_t)profile->key_counts[id];
	item->values[1] =
		pprof->has_time ? (int64_t)(profile->key_counts[id] * profile->period_ns) : 0;
	item->sample.n_location_id = count;
	item->sample.location_id = item->locations;
	item->sample.n_value = pprof->has_time ? 2 : 1;
	item->sample.value = item->values;
	if (profile->memory_values) {
		item->sample.n_value = FORMAT_MEMORY_COUNT;
		for (int i = 0; i < FORMAT_MEMORY_COUNT; i++)
			item->values[i] = (int64_t)profile->memory_values[id][memory_order[i]];
	}
	return add_labels(pprof, item, profile_labels(profile, key.labels), why);
}

static int put_batch(struct pprof *pprof, uint32_t first, uint32_t count, struct item *items,
		     struct failure *why)
{
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__Sample *samples[BATCH_SAMPLES];
	int result = 0;

	memset(items, 0, count * sizeof(*items));
	for (uint32_t i = 0; i < count && result == 0; i++) {
		samples[i] = &items[i].sample;
		result = fill(pprof, first + i, &items[i], why);
	}
	message.n_sample = count;
	message.sample = samples;
	if (result == 0)
		result = put(pprof, &message, why);
	for (uint32_t i = 0; i < count; i++)
		free(items[i].locations);
	return result;
}

static int put_samples(struct pprof *pprof, struct failure *why)
{
	uint32_t count = intern_count(pprof->profile->keys);
	struct item *items = calloc(BATCH_SAMPLES, sizeof(*items));
	int result = items ? 0 : no_memory(why);

	for (uint32_t first = 0; first < count && result == 0; first += BATCH_SAMPLES)
		result = put_batch(pprof, first,
				   count - first < BATCH_SAMPLES ? count - first : BATCH_SAMPLES,
				   items, why);
	free(items);
	return result;
}

/* ---- Whole profiles --------------------------------------------------------------------- */

static int add_type(struct pprof *pprof, const char *type, const char *unit,
		    Pprof__ValueType *ret_type, struct failure *why)
{
	return string_id(pprof, type, &ret_type->type, why) ||
			       string_id(pprof, unit, &ret_type->unit, why)
		       ? -1
		       : 0;
}

/** Write the head of a heap profile: "alloc_objects", "count" and so on, Go's names. */
static int put_memory_head(struct pprof *pprof, struct failure *why)
{
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__ValueType types[FORMAT_MEMORY_COUNT], *list[FORMAT_MEMORY_COUNT];
	int64_t none;

	if (string_id(pprof, "", &none, why))
		return -1;
	for (int i = 0; i < FORMAT_MEMORY_COUNT; i++) {
		enum format_memory value = memory_order[i];
		bool is_space =
			value == FORMAT_MEMORY_INUSE_SPACE || value == FORMAT_MEMORY_ALLOC_SPACE;

		pprof__value_type__init(&types[i]);
		list[i] = &types[i];
		if (add_type(pprof, format_memory_name(value), is_space ? "bytes" : PPROF_COUNT,
			     &types[i], why))
			return -1;
		if (value == pprof->profile->memory_shown)
			message.default_sample_type = types[i].type;
	}
	message.n_sample_type = FORMAT_MEMORY_COUNT;
	message.sample_type = list;
	return put(pprof, &message, why);
}

/** Write the head at the start, where most other writers have it. */
static int put_head(struct pprof *pprof, struct failure *why)
{
	const struct format_profile *profile = pprof->profile;
	const char *time_type = profile->is_wall ? PPROF_WALL : PPROF_CPU;
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__ValueType count = PPROF__VALUE_TYPE__INIT, time = PPROF__VALUE_TYPE__INIT;
	Pprof__ValueType *types[] = { &count, &time };
	int64_t none;

	if (profile->memory_values)
		return put_memory_head(pprof, why);
	if (string_id(pprof, "", &none, why) ||
	    add_type(pprof, *profile->unit ? PPROF_VALUES : PPROF_SAMPLES,
		     *profile->unit ? profile->unit : PPROF_COUNT, &count, why) ||
	    add_type(pprof, time_type, PPROF_NANOSECONDS, &time, why))
		return -1;
	message.n_sample_type = pprof->has_time ? 2 : 1;
	message.sample_type = types;
	if (pprof->has_time) {
		message.period_type = &time;
		message.period = (int64_t)profile->period_ns;
		message.default_sample_type = time.type;
	}
	message.time_nanos = (int64_t)profile->time_ns;
	message.duration_nanos = (int64_t)profile->duration_ns;
	return put(pprof, &message, why);
}

static int put_comments(struct pprof *pprof, struct failure *why)
{
	struct profile_comment comment;
	size_t at = 0;

	while (profile_next_comment(pprof->profile, &at, &comment)) {
		Pprof__Profile message = PPROF__PROFILE__INIT;
		const char *text;
		int64_t id;

		format_text_clear(&pprof->text);
		format_text_add(&pprof->text, comment.line, comment.len);
		if (format_text_take(&pprof->text, &text, why) || string_id(pprof, text, &id, why))
			return -1;
		message.n_comment = 1;
		message.comment = &id;
		if (put(pprof, &message, why))
			return -1;
	}
	return 0;
}

/** Write the order of the samples. A sample's place in the file is its key. */
static int put_order(struct pprof *pprof, struct failure *why)
{
	const struct timeline *timeline = &pprof->profile->timeline;
	char text[sizeof(PPROF_ORDER) + BASE64_LETTERS(ORDER_BYTES)], *texts = text;

	if (!format_profile_has_order(pprof->profile) || timeline->left_out)
		return 0;
	memcpy(text, PPROF_ORDER, strlen(PPROF_ORDER));
	for (size_t at = 0; at < timeline->len; at += ORDER_BYTES) {
		size_t left = timeline->len - at, len = left < ORDER_BYTES ? left : ORDER_BYTES;
		Pprof__Profile message = PPROF__PROFILE__INIT;

		base64_encode(timeline->bytes + at, len, text + strlen(PPROF_ORDER));
		text[strlen(PPROF_ORDER) + BASE64_LETTERS(len)] = '\0';
		message.n_string_table = 1;
		message.string_table = &texts;
		if (put(pprof, &message, why))
			return -1;
	}
	return 0;
}

static int write_profile(struct pprof *pprof, FILE *file, struct failure *why)
{
	pprof->strings = intern_create();
	pprof->mappings = mappings_create();
	pprof->mapping_of = calloc((size_t)format_functions_count(pprof->profile->functions) + 1,
				   sizeof(*pprof->mapping_of));
	if (!pprof->strings || !pprof->mappings || !pprof->mapping_of)
		return no_memory(why);
	if (pack_stream_create(file, &pprof->out, why) || put_head(pprof, why) ||
	    put_functions(pprof, why) || put_samples(pprof, why) || put_mappings(pprof, why) ||
	    put_comments(pprof, why) || put_strings(pprof, why) || put_order(pprof, why))
		return -1;
	return pack_stream_finish(pprof->out, why);
}

static int print_chains(const struct format_profile *profile, FILE *file, struct failure *why)
{
	struct pprof pprof = { .profile = profile };
	int result;

	pprof.has_time = profile->period_ns && profile->samples <= INT64_MAX / profile->period_ns;

	result = write_profile(&pprof, file, why);
	pack_stream_destroy(pprof.out);
	intern_destroy(pprof.strings);
	mappings_destroy(pprof.mappings);
	format_addrmap_deinit(&pprof.locations);
	format_text_deinit(&pprof.text);
	format_text_deinit(&pprof.location);
	format_text_deinit(&pprof.string);
	free(pprof.mapping_of);
	free(pprof.mapped);
	free(pprof.packed);
	return result;
}

static int pprof_print(const struct format_profile *profile,
		       const struct format_report_options *options, FILE *file, struct failure *why)
{
	struct format_profile *chains;
	int result;

	if (profile->kind != FORMAT_STREAM_MEMPROF)
		return print_chains(profile, file, why);
	if (profile_of_memory(profile, options->memory, true, &chains, why))
		return -1;
	result = print_chains(chains, file, why);
	format_profile_destroy(chains);
	return result;
}

const struct format_report_ops format_report_pprof = {
	.name = "pprof",
	.description = "for 'go tool pprof' and other readers of its profiles; compressed",
	.is_binary = true,
	.is_packed = true,
	.order = FORMAT_ORDER_OPTIONAL,
	.takes_memory = true,
	.print = pprof_print,
};
