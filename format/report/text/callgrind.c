/* SPDX-License-Identifier: MIT */
/*
 * How are costs and calls written by line, for callgrind_annotate and kcachegrind?
 *
 * These readers compute a function's inclusive cost as the sum of its calls, or as its own cost
 * plus its calls. Both count a recursive function several times per chain. So each chain keeps only
 * the innermost frame of a recursive function, and calls connect the remaining frames. Each sample
 * then counts once per function.
 * Source of the format: valgrind 3.19, "Callgrind Format Specification".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/formats/reports.h"
#include "format/report/call_tree.h"
#include "format/text.h"

/** The caller of the first functions of all chains, if a caller is needed. */
#define ROOT_NAME "[all]"

/** The owner of a cost: a line of a function, or a call from there. No padding. */
struct location {
	uint32_t function; /**< Index in `names`. */
	uint32_t line;
	uint32_t callee; /**< Index + 1; 0: the function's own cost. */
};

/** A name, written in full once and then as its number. */
struct name {
	uint32_t function, file,
		object; /**< Ids in the tables; file and object are + 1, 0: none. */
	int64_t first_line;
};

struct callgrind {
	const struct format_profile *profile;
	struct intern *functions, *files, *objects; /* texts */
	struct intern *name_keys;		    /* struct name, without the line */
	struct name *names;
	uint32_t name_capacity;
	uint32_t *name_of;	  /* By function id of the profile. */
	struct intern *locations; /* struct location */
	uint64_t *counts;	  /* By id in `locations`. */
	uint32_t count_capacity;
	uint32_t *seen;	 /* By name: the last chain that counted it, + 1. */
	uint64_t *roots; /* By name: samples of the chains that begin with the name. */
	bool *is_called; /* By name: whether another function calls it. */
	bool has_time;	 /* The period of samples is known, so times can be written. */
	struct format_text text, location;
};

/* ---- Names ------------------------------------------------------------------------------ */

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the profile");
}

static int add_text(struct intern *texts, const char *text, size_t len, uint32_t *ret_id,
		    struct failure *why)
{
	return intern_put(texts, text, len, ret_id, why);
}

/** Add a text on one line. */
static int add_line(struct callgrind *callgrind, struct intern *texts, const char *text,
		    uint32_t *ret_id, struct failure *why)
{
	const char *line;

	format_text_clear(&callgrind->text);
	format_text_add_shown(&callgrind->text, text, format_text_cut(text, strlen(text), 4096));
	return format_text_take(&callgrind->text, &line, why) ||
			       add_text(texts, line, callgrind->text.len, ret_id, why)
		       ? -1
		       : 0;
}

static int describe(struct callgrind *callgrind, const struct format_function *function,
		    struct name *ret_name, struct failure *why)
{
	bool is_lua = function->kind == FORMAT_KIND_LUA || function->kind == FORMAT_KIND_TRACE;
	const char *text, *file = function->file;
	uint32_t id;

	*ret_name =
		(struct name){ .first_line = function->first_line > 0 ? function->first_line : 0 };
	format_text_clear(&callgrind->text);
	format_text_clear(&callgrind->location);
	label_describe(&callgrind->text, &callgrind->location, function, function->first_line);
	if (format_text_take(&callgrind->text, &text, why) ||
	    add_text(callgrind->functions, text, callgrind->text.len, &ret_name->function, why))
		return -1;
	if (function->source && !is_lua) {
		if (add_line(callgrind, callgrind->objects, function->source, &id, why))
			return -1;
		ret_name->object = id + 1;
	} else if (function->source) {
		file = function->source + (*function->source == '@');
	}
	if (file && add_line(callgrind, callgrind->files, file, &id, why))
		return -1;
	ret_name->file = file ? id + 1 : 0;
	return 0;
}

static int add_name(struct callgrind *callgrind, const struct name *name, uint32_t *ret_index,
		    struct failure *why)
{
	const uint32_t key[] = { name->function, name->file, name->object };

	if (intern_put(callgrind->name_keys, key, sizeof(key), ret_index, why))
		return -1;
	if (!ARRAY_RESERVE(callgrind->names, callgrind->name_capacity, *ret_index + 1))
		return no_memory(why);
	callgrind->names[*ret_index] = *name;
	return 0;
}

static int name_functions(struct callgrind *callgrind, struct failure *why)
{
	uint32_t count = format_functions_count(callgrind->profile->functions);

	callgrind->name_of = calloc((size_t)count + 1, sizeof(*callgrind->name_of));
	if (!callgrind->name_of)
		return no_memory(why);
	for (uint32_t id = 0; id < count; id++) {
		struct name name;

		if (describe(callgrind, format_functions_get(callgrind->profile->functions, id),
			     &name, why) ||
		    add_name(callgrind, &name, &callgrind->name_of[id], why))
			return -1;
	}
	count = intern_count(callgrind->name_keys) + 1;
	callgrind->seen = calloc(count, sizeof(*callgrind->seen));
	callgrind->roots = calloc(count, sizeof(*callgrind->roots));
	callgrind->is_called = calloc(count, sizeof(*callgrind->is_called));
	return callgrind->seen && callgrind->roots && callgrind->is_called ? 0 : no_memory(why);
}

/* ---- Costs ------------------------------------------------------------------------------ */

static int count_location(struct callgrind *callgrind, const struct location *location,
			  uint64_t count, struct failure *why)
{
	uint32_t id;

	if (intern_put(callgrind->locations, location, sizeof(*location), &id, why))
		return -1;
	if (!ARRAY_RESERVE_ZEROED(callgrind->counts, callgrind->count_capacity, id + 1))
		return no_memory(why);
	callgrind->counts[id] += count;
	return 0;
}

static int count_chain(struct callgrind *callgrind, uint32_t chain, struct failure *why)
{
	uint64_t count = callgrind->profile->counts[chain];
	const struct profile_frame *frames;
	uint32_t callee = 0;
	size_t len;

	frames = profile_chain(callgrind->profile, chain, &len);
	for (size_t i = len; i-- > 0;) {
		uint32_t name = callgrind->name_of[frames[i].function];
		const struct location location = { name, frames[i].line, callee };

		if (callgrind->seen[name] == chain + 1)
			continue;
		if (count_location(callgrind, &location, count, why))
			return -1;
		callgrind->seen[name] = chain + 1;
		if (callee)
			callgrind->is_called[callee - 1] = true;
		callee = name + 1;
	}
	if (callee)
		callgrind->roots[callee - 1] += count;
	return 0;
}

static int count_chains(struct callgrind *callgrind, struct failure *why)
{
	uint32_t count = intern_count(callgrind->profile->chains);

	callgrind->locations = intern_create();
	if (!callgrind->locations)
		return no_memory(why);
	for (uint32_t chain = 0; chain < count; chain++)
		if (count_chain(callgrind, chain, why))
			return -1;
	return 0;
}

/* ---- Text ------------------------------------------------------------------------------- */

/** Write "fn=(3) name" at first, "fn=(3)" later. */
static void print_name(const char *word, const struct intern *texts, uint32_t id, bool *told,
		       FILE *file)
{
	fprintf(file, "%s=(%" PRIu32 ")", word, id + 1);
	if (!told[id])
		fprintf(file, " %s", (const char *)intern_get(texts, id, NULL));
	told[id] = true;
	putc('\n', file);
}

/** Names that are already written, by table. */
struct told {
	bool *functions, *files, *objects;
};

/** Without a file or an object, "???" stands for all names that have none. */
static void print_of(const struct callgrind *callgrind, const struct name *name, bool callee,
		     struct told *told, FILE *file)
{
	if (name->object)
		print_name(callee ? "cob" : "ob", callgrind->objects, name->object - 1,
			   told->objects, file);
	else
		fprintf(file, "%s=???\n", callee ? "cob" : "ob");
	if (name->file)
		print_name(callee ? "cfl" : "fl", callgrind->files, name->file - 1, told->files,
			   file);
	else
		fprintf(file, "%s=???\n", callee ? "cfl" : "fl");
	print_name(callee ? "cfn" : "fn", callgrind->functions, name->function, told->functions,
		   file);
}

static void print_cost(const struct callgrind *callgrind, uint32_t line, uint64_t count, FILE *file)
{
	fprintf(file, "%" PRIu32 " %" PRIu64, line, count);
	if (callgrind->has_time)
		fprintf(file, " %" PRIu64, count * callgrind->profile->period_ns);
	putc('\n', file);
}

static int compare_locations(const void *left, const void *right, void *context)
{
	const struct callgrind *callgrind = context;
	struct location a, b;

	memcpy(&a, intern_get(callgrind->locations, *(const uint32_t *)left, NULL), sizeof(a));
	memcpy(&b, intern_get(callgrind->locations, *(const uint32_t *)right, NULL), sizeof(b));
	if (a.function != b.function)
		return a.function < b.function ? -1 : 1;
	if (!a.callee != !b.callee)
		return a.callee ? 1 : -1; /* own costs come first */
	if (a.line != b.line)
		return a.line < b.line ? -1 : 1;
	return a.callee < b.callee ? -1 : a.callee > b.callee;
}

static void print_locations(const struct callgrind *callgrind, const uint32_t *order,
			    uint32_t count, struct told *told, FILE *file)
{
	uint32_t last = UINT32_MAX;

	for (uint32_t i = 0; i < count; i++) {
		struct location location;

		memcpy(&location, intern_get(callgrind->locations, order[i], NULL),
		       sizeof(location));
		if (location.function != last) {
			putc('\n', file);
			print_of(callgrind, &callgrind->names[location.function], false, told,
				 file);
		}
		last = location.function;
		if (location.callee) {
			const struct name *callee = &callgrind->names[location.callee - 1];

			print_of(callgrind, callee, true, told, file);
			fprintf(file, "calls=%" PRIu64 " %" PRId64 "\n",
				callgrind->counts[order[i]], callee->first_line);
		}
		print_cost(callgrind, location.line, callgrind->counts[order[i]], file);
	}
}

/** Readers use a function's calls as its inclusive cost. A function that is called and also
 * begins a chain needs a caller for that chain. */
static bool needs_root(const struct callgrind *callgrind)
{
	for (uint32_t i = 0; i < intern_count(callgrind->name_keys); i++)
		if (callgrind->roots[i] && callgrind->is_called[i])
			return true;
	return false;
}

static void print_root(const struct callgrind *callgrind, struct told *told, FILE *file)
{
	fputs("\nob=???\nfl=???\nfn=" ROOT_NAME "\n", file);
	for (uint32_t i = 0; i < intern_count(callgrind->name_keys); i++) {
		if (!callgrind->roots[i])
			continue;
		print_of(callgrind, &callgrind->names[i], true, told, file);
		fprintf(file, "calls=%" PRIu64 " %" PRId64 "\n", callgrind->roots[i],
			callgrind->names[i].first_line);
		print_cost(callgrind, 0, callgrind->roots[i], file);
	}
}

/** Write the notes of the profile, as "desc: NAME: TEXT". */
static void print_comments(const struct format_profile *profile, FILE *file)
{
	struct profile_comment comment;
	size_t at = 0;

	while (profile_next_comment(profile, &at, &comment))
		fprintf(file, "desc: %s%.*s\n",
			comment.name_len ? "" : "Comment: ", (int)comment.len, comment.line);
}

static void print_head(const struct format_profile *profile, bool has_time, FILE *file)
{
	fprintf(file, "# callgrind format\nversion: 1\ncreator: ljprof " LJPROF_VERSION "\n");
	print_comments(profile, file);
	fprintf(file, "positions: line\nevents: Samples%s\nsummary: %" PRIu64,
		has_time ? " Nanoseconds" : "", profile->samples);
	if (has_time)
		fprintf(file, " %" PRIu64, profile->samples * profile->period_ns);
	putc('\n', file);
}

static int print_all(struct callgrind *callgrind, FILE *file, struct failure *why)
{
	uint32_t count = intern_count(callgrind->locations);
	uint32_t *order = calloc((size_t)count + 1, sizeof(*order));
	struct told told = {
		.functions = calloc((size_t)intern_count(callgrind->functions) + 1, 1),
		.files = calloc((size_t)intern_count(callgrind->files) + 1, 1),
		.objects = calloc((size_t)intern_count(callgrind->objects) + 1, 1),
	};
	int result = order && told.functions && told.files && told.objects ? 0 : no_memory(why);

	for (uint32_t i = 0; i < count && result == 0; i++)
		order[i] = i;
	if (result == 0) {
		qsort_r(order, count, sizeof(*order), compare_locations, callgrind);
		print_head(callgrind->profile, callgrind->has_time, file);
		if (needs_root(callgrind))
			print_root(callgrind, &told, file);
		print_locations(callgrind, order, count, &told, file);
	}
	free(order);
	free(told.functions);
	free(told.files);
	free(told.objects);
	return result;
}

static int callgrind_print(const struct format_profile *profile,
			   const struct format_report_options *options, FILE *file,
			   struct failure *why)
{
	struct callgrind callgrind = { .profile = profile };
	int result = -1;

	(void)options;
	callgrind.has_time =
		profile->period_ns && profile->samples <= INT64_MAX / profile->period_ns;
	if (call_tree_need_chains(profile, why))
		return -1;
	callgrind.functions = intern_create();
	callgrind.files = intern_create();
	callgrind.objects = intern_create();
	callgrind.name_keys = intern_create();
	if (!callgrind.functions || !callgrind.files || !callgrind.objects || !callgrind.name_keys)
		no_memory(why);
	else if (name_functions(&callgrind, why) == 0 && count_chains(&callgrind, why) == 0)
		result = print_all(&callgrind, file, why);
	intern_destroy(callgrind.functions);
	intern_destroy(callgrind.files);
	intern_destroy(callgrind.objects);
	intern_destroy(callgrind.name_keys);
	intern_destroy(callgrind.locations);
	format_text_deinit(&callgrind.text);
	format_text_deinit(&callgrind.location);
	free(callgrind.names);
	free(callgrind.name_of);
	free(callgrind.counts);
	free(callgrind.seen);
	free(callgrind.roots);
	free(callgrind.is_called);
	return result;
}

const struct format_report_ops format_report_callgrind = {
	.name = "callgrind",
	.description = "for callgrind_annotate and kcachegrind: costs and calls by line",
	.print = callgrind_print,
};
