/* SPDX-License-Identifier: MIT */
/* Which mappings, functions and locations does a pprof profile have? */
#include <stdlib.h>
#include <string.h>

#include "format/pprof/pprof.h"
#include "format/pprof/pprof_reader.h"
#include "format/text.h"

#include "attach/array.h"
#include "pprof.pb-c.h"

/** Bound of functions inlined into each other at one address. */
#define INLINED_MAX 1024

/* ---- Mappings --------------------------------------------------------------------------- */

/** @param ret_copy NULL for "". */
static int copy_text(struct pprof_reader *reader, int64_t id, char **ret_copy, struct failure *why)
{
	const char *text;

	if (pprof_copy_text(reader, id, &reader->text, &text, why))
		return -1;
	if (!*text)
		return 0;
	*ret_copy = strdup(text);
	return *ret_copy ? 0 : pprof_no_memory(why);
}

static void free_mapping(struct pprof_mapping *mapping)
{
	free((void *)(uintptr_t)mapping->value.path);
	free((void *)(uintptr_t)mapping->value.build_id);
	free(mapping->module);
}

/** @return The module's name for a path. */
static char *module_of(const char *path)
{
	const char *slash = *path == '[' ? NULL : strrchr(path, '/');

	return strdup(slash && slash[1] ? slash + 1 : path);
}

static int fill_mapping(struct pprof_reader *reader, const Pprof__Mapping *message,
			struct pprof_mapping *mapping, struct failure *why)
{
	char *path = NULL, *build_id = NULL;

	if (copy_text(reader, message->filename, &path, why))
		return -1;
	mapping->value.path = path;
	if (copy_text(reader, message->build_id, &build_id, why))
		return -1;
	mapping->value.build_id = build_id;
	if (path)
		mapping->module = module_of(path);
	else
		mapping->value.path = path = strdup("");
	if (!path || (*path && !mapping->module))
		return pprof_no_memory(why);
	mapping->value.start = message->memory_start;
	mapping->value.limit = message->memory_limit;
	mapping->value.offset = message->file_offset;
	mapping->is_known = message->memory_start || message->memory_limit ||
			    message->file_offset || build_id || strchr(path, '/');
	return 0;
}

int pprof_take_mapping(struct pprof_reader *reader, const struct pprof_field *field,
		       struct failure *why)
{
	int got = pprof_is_message(field, PPROF_FIELD_MAPPING, why);
	struct pprof_mapping mapping = { 0 };
	Pprof__Mapping *message;
	int result;

	if (got <= 0)
		return got;
	if (reader->mapping_count >= PPROF_MAPPINGS_MAX)
		return pprof_invalid(field, "too many mappings", why);
	message = pprof__mapping__unpack(NULL, field->len, field->bytes);
	if (!message)
		return pprof_invalid(field, "damaged mapping", why);
	result = fill_mapping(reader, message, &mapping, why) ||
		 (!ARRAY_RESERVE(reader->mappings, reader->mapping_size,
				 reader->mapping_count + 1) &&
		  pprof_no_memory(why)) ||
		 format_addrmap_set(&reader->mapping_ids, message->id, reader->mapping_count, why);
	if (result)
		free_mapping(&mapping);
	else
		reader->mappings[reader->mapping_count++] = mapping;
	pprof__mapping__free_unpacked(message, NULL);
	return result ? -1 : 0;
}

/* ---- Functions -------------------------------------------------------------------------- */

int pprof_take_function(struct pprof_reader *reader, const struct pprof_field *field,
			struct failure *why)
{
	int got = pprof_is_message(field, PPROF_FIELD_FUNCTION, why);
	Pprof__Function *message;
	int result;

	if (got <= 0)
		return got;
	if (reader->function_count >= PPROF_FUNCTIONS_MAX)
		return pprof_invalid(field, "too many functions", why);
	message = pprof__function__unpack(NULL, field->len, field->bytes);
	if (!message)
		return pprof_invalid(field, "damaged function", why);
	result =
		(!ARRAY_RESERVE(reader->functions, reader->function_size,
				reader->function_count + 1) &&
		 pprof_no_memory(why)) ||
		format_addrmap_set(&reader->function_ids, message->id, reader->function_count, why);
	if (result == 0)
		reader->functions[reader->function_count++] =
			(struct pprof_function){ .name = message->name,
						 .system_name = message->system_name,
						 .file = message->filename,
						 .first_line = message->start_line };
	pprof__function__free_unpacked(message, NULL);
	return result ? -1 : 0;
}

/** Parse the kind that our own writer stores. @return false for native code. */
static bool find_kind(const char *words, const char *name, enum format_kind *ret_kind,
		      struct label_mark *ret_mark)
{
	static const char *const kinds[FORMAT_KIND_COUNT] = PPROF_KIND_WORDS;
	size_t len = strlen(words), word_len;

	if (strcmp(words, name) == 0)
		return false;
	if (!symbol_parse_mark(words, len, &word_len, ret_mark))
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

/** Only functions with a stored kind are Lua functions or traces: "f (a.c:12)" may be anything. */
static int describe(struct pprof_reader *reader, const struct pprof_function *from,
		    struct format_function *ret_function, struct label_mark *ret_mark,
		    struct failure *why)
{
	enum format_kind kind = FORMAT_KIND_NATIVE;
	const char *name, *words, *file;

	*ret_mark = (struct label_mark){ 0 };
	if (pprof_copy_text(reader, from->name, &reader->name, &name, why) ||
	    pprof_copy_text(reader, from->system_name, &reader->text, &words, why) ||
	    pprof_copy_text(reader, from->file, &reader->file, &file, why))
		return -1;
	if (find_kind(words, name, &kind, ret_mark) &&
	    (kind == FORMAT_KIND_LUA || kind == FORMAT_KIND_TRACE)) {
		if (label_parse(&reader->label, name, strlen(name), why))
			return -1;
		*ret_function = reader->label.function;
		if (ret_function->kind == kind)
			return 0;
		kind = FORMAT_KIND_NATIVE; /* marked as Lua, but without a location */
		*ret_mark = (struct label_mark){ 0 };
	}
	*ret_function = (struct format_function){ .kind = kind, .name = *name ? name : "?" };
	if (*file && (format_kind_is_native(kind) || kind == FORMAT_KIND_CFUNC)) {
		ret_function->file = file;
		ret_function->first_line = from->first_line;
	}
	return 0;
}

/** Set module and address of native code. */
static void set_address(const struct pprof_reader *reader, const Pprof__Location *location,
			struct format_function *function)
{
	const struct pprof_mapping *mapping;
	uint64_t index;

	function->address = location->address;
	if (!location->mapping_id ||
	    !format_addrmap_get(&reader->mapping_ids, location->mapping_id, &index))
		return;
	mapping = &reader->mappings[index];
	if (mapping->is_known)
		function->mapping = &mapping->value;
	if (format_kind_is_native(function->kind))
		function->source = mapping->module;
}

/** Add the function with index @p index at a location. */
static int add_function(struct pprof_reader *reader, const Pprof__Location *location,
			uint64_t index, uint32_t *ret_id, struct failure *why)
{
	struct pprof_function *from = &reader->functions[index];
	struct format_function function;
	struct label_mark mark;
	bool is_placed;

	if (from->known) {
		*ret_id = from->known - 1;
		return 0;
	}
	if (describe(reader, from, &function, &mark, why))
		return -1;
	is_placed = format_kind_is_native(function.kind) || function.kind == FORMAT_KIND_CFUNC;
	if (is_placed)
		set_address(reader, location, &function);
	if (profile_add_function(reader->profile, &function, &mark, ret_id, why))
		return -1;
	if (!is_placed)
		from->known = *ret_id + 1;
	return 0;
}

/* ---- Locations -------------------------------------------------------------------------- */

static int add_frame(struct pprof_reader *reader, uint32_t function, int64_t line,
		     struct failure *why)
{
	if (reader->frame_count >= PPROF_TABLE_MAX)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "too many locations");
	if (!ARRAY_RESERVE(reader->frames, reader->frame_size, reader->frame_count + 1))
		return pprof_no_memory(why);
	reader->frames[reader->frame_count++] = (struct profile_frame){
		.function = function,
		.line = profile_line(reader->profile, function,
				     line < 0 || line > INT32_MAX ? 0 : (uint32_t)line),
	};
	return 0;
}

/** Add code without a known function. */
static int add_unknown(struct pprof_reader *reader, const Pprof__Location *location,
		       struct failure *why)
{
	struct format_function function = { .kind = FORMAT_KIND_NATIVE };
	char name[PPROF_FILE_MAX + 32];
	const char *module;
	uint32_t id;

	set_address(reader, location, &function);
	module = function.source ? function.source : "";
	snprintf(name, sizeof(name), "%.*s%s0x%llx",
		 (int)format_text_cut(module, strlen(module), PPROF_FILE_MAX), module,
		 *module ? "+" : "", (unsigned long long)location->address);
	function.name = name;
	if (profile_add_function(reader->profile, &function, NULL, &id, why))
		return -1;
	return add_frame(reader, id, 0, why);
}

/** Add the frames of a location, the caller first. */
static int add_lines(struct pprof_reader *reader, const Pprof__Location *location,
		     struct failure *why)
{
	uint64_t index;
	uint32_t id;

	if (location->n_line > INLINED_MAX)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "too many inlined functions");
	for (size_t i = location->n_line; i-- > 0;) {
		const Pprof__Line *line = location->line[i];

		if (!format_addrmap_get(&reader->function_ids, line->function_id, &index)) {
			if (add_unknown(reader, location, why))
				return -1;
		} else if (add_function(reader, location, index, &id, why) ||
			   add_frame(reader, id, line->line, why)) {
			return -1;
		}
	}
	return location->n_line ? 0 : add_unknown(reader, location, why);
}

int pprof_take_location(struct pprof_reader *reader, const struct pprof_field *field,
			struct failure *why)
{
	int got = pprof_is_message(field, PPROF_FIELD_LOCATION, why);
	struct pprof_location made = { .first = (uint32_t)reader->frame_count };
	Pprof__Location *message;
	int result;

	if (got <= 0)
		return got;
	message = pprof__location__unpack(NULL, field->len, field->bytes);
	if (!message)
		return pprof_invalid(field, "damaged location", why);
	result =
		add_lines(reader, message, why) ||
		(!ARRAY_RESERVE(reader->locations, reader->location_size,
				reader->location_count + 1) &&
		 pprof_no_memory(why)) ||
		format_addrmap_set(&reader->location_ids, message->id, reader->location_count, why);
	if (result == 0) {
		made.count = (uint32_t)reader->frame_count - made.first;
		reader->locations[reader->location_count++] = made;
	} else if (why->kind == FAILURE_INVALID) {
		why->address = field->offset;
	}
	pprof__location__free_unpacked(message, NULL);
	return result ? -1 : 0;
}

void pprof_free_locations(struct pprof_reader *reader)
{
	for (size_t i = 0; i < reader->mapping_count; i++)
		free_mapping(&reader->mappings[i]);
	free(reader->mappings);
	free(reader->functions);
	free(reader->locations);
	free(reader->frames);
	format_addrmap_deinit(&reader->mapping_ids);
	format_addrmap_deinit(&reader->function_ids);
	format_addrmap_deinit(&reader->location_ids);
	format_text_deinit(&reader->file);
}
