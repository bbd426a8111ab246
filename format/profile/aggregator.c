/* SPDX-License-Identifier: MIT */
/* How are finished samples added to a profile? */
#include "format/profile/aggregator.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/hash.h"
#include "format/data/label.h"

int aggregator_init(struct aggregator *aggregator, const struct format_functions *functions,
		    const struct format_options *options, struct failure *why)
{
	*aggregator = (struct aggregator){ .functions = functions };
	aggregator->profile = format_profile_create(why);
	if (!aggregator->profile)
		return -1;
	aggregator->profile->kind = FORMAT_STREAM_SYSPROF;
	if (options) {
		aggregator->first_lines = options->first_lines;
		aggregator->start_ns = options->start_ns;
		aggregator->profile->period_ns = options->period_ns;
		aggregator->profile->time_ns = options->time_ns;
		aggregator->profile->is_wall = options->is_wall;
	}
	return 0;
}

void aggregator_deinit(struct aggregator *aggregator)
{
	format_profile_destroy(aggregator->profile);
	format_addrmap_deinit(&aggregator->ids);
	format_text_deinit(&aggregator->text);
	format_text_deinit(&aggregator->location);
	free(aggregator->frames);
	free(aggregator->lua);
	*aggregator = (struct aggregator){ 0 };
}

/** Find or add a frame's function together with how it runs. */
static int function_of(struct aggregator *aggregator, const struct format_frame *frame,
		       uint32_t *ret_id, struct failure *why)
{
	/* Function ids are below 2^24. */
	uint64_t key =
		(uint64_t)frame->function << 33 | (uint64_t)frame->approximate << 32 | frame->trace;
	const struct format_function *function =
		format_functions_get(aggregator->functions, frame->function);
	/* Only Lua functions, because streams do not tell for built-ins either. */
	bool compiled = frame->trace && function->kind == FORMAT_KIND_LUA;
	struct label_mark mark = { .compiled = compiled,
				   .approximate = compiled && frame->approximate,
				   .trace = compiled ? frame->trace : 0 };
	uint64_t known;

	if (format_addrmap_get(&aggregator->ids, key, &known)) {
		*ret_id = (uint32_t)known;
		return 0;
	}
	if (profile_add_function(aggregator->profile, function, &mark, ret_id, why))
		return -1;
	/* Not one of those that are "[other]". */
	if (format_functions_get(aggregator->profile->functions, *ret_id)->kind ==
	    FORMAT_KIND_LUA) {
		if (!ARRAY_RESERVE(aggregator->lua, aggregator->lua_capacity,
				   aggregator->lua_count + 1))
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a function");
		aggregator->lua[aggregator->lua_count][0] = frame->function;
		aggregator->lua[aggregator->lua_count++][1] = *ret_id;
	}
	return format_addrmap_set(&aggregator->ids, key, *ret_id, why);
}

static int take_frames(struct aggregator *aggregator, const struct format_sample *sample,
		       struct failure *why)
{
	if (!ARRAY_RESERVE(aggregator->frames, aggregator->capacity, sample->frame_count))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a chain");
	for (uint32_t i = 0; i < sample->frame_count; i++) {
		const struct format_frame *from = &sample->frames[sample->frame_count - 1 - i];
		struct profile_frame *frame = &aggregator->frames[i];
		const struct format_function *function;

		if (function_of(aggregator, from, &frame->function, why))
			return -1;
		function = format_functions_get(aggregator->functions, from->function);
		frame->line = from->line;
		if (aggregator->first_lines && function->kind == FORMAT_KIND_LUA)
			frame->line = function->first_line > 0 ? (uint32_t)function->first_line : 0;
		frame->line = profile_line(aggregator->profile, frame->function, frame->line);
	}
	return 0;
}

/** Label the sample with the function of its newest coroutine. Functions bound the labels; the
 * number of coroutines is unlimited. */
static int take_coroutine(struct aggregator *aggregator, const struct format_sample *sample,
			  struct profile_labels *labels, struct failure *why)
{
	const struct format_function *function;
	const char *text;

	if (sample->coroutine_count == 0 || sample->coroutines[0].is_main ||
	    sample->coroutines[0].function == FORMAT_NO_FUNCTION)
		return 0;
	function = format_functions_get(aggregator->functions, sample->coroutines[0].function);
	if (!function)
		return 0;
	format_text_clear(&aggregator->text);
	format_text_clear(&aggregator->location);
	label_describe(&aggregator->text, &aggregator->location, function, function->first_line);
	return format_text_take(&aggregator->text, &text, why) ||
			       profile_add_string(aggregator->profile, text, &labels->coroutine,
						  why)
		       ? -1
		       : 0;
}

int aggregator_sample(struct aggregator *aggregator, const struct format_sample *sample,
		      struct failure *why)
{
	struct profile_labels labels = { .pid = sample->pid,
					 .tid = sample->tid,
					 .trace = sample->trace,
					 .state = (uint8_t)(sample->state + 1),
					 .is_asleep = sample->is_asleep };

	if (take_frames(aggregator, sample, why) ||
	    take_coroutine(aggregator, sample, &labels, why))
		return -1;
	if (sample->thread && *sample->thread &&
	    profile_add_string(aggregator->profile, sample->thread, &labels.thread, why))
		return -1;
	aggregator->profile->states[sample->state] += sample->weight;
	if (aggregator->start_ns && sample->time_ns > aggregator->start_ns)
		aggregator->profile->duration_ns = sample->time_ns - aggregator->start_ns;
	timeline_set_next(&aggregator->profile->timeline,
			  aggregator->start_ns ? aggregator->profile->duration_ns / 1000 + 1 : 0,
			  sample->heap_bytes);
	return profile_add_sample(aggregator->profile, aggregator->frames, sample->frame_count,
				  &labels, sample->weight, why);
}

/* ---- Names ------------------------------------------------------------------------------ */

static uint64_t text_hash(const char *text, uint64_t seed)
{
	return text ? hash_words(text, strlen(text), seed) : seed;
}

/* A function that is announced again keeps address, source and first line. */
static uint64_t identity_of(const struct format_function *function)
{
	return text_hash(function->source, hash_word(function->address,
						     hash_word((uint64_t)function->first_line, 0)));
}

/* The last name of each Lua function, by its identity: its id. */
static int collect_names(const struct format_functions *functions, struct format_addrmap *names,
			 struct failure *why)
{
	for (uint32_t id = 0; id < format_functions_count(functions); id++) {
		const struct format_function *function = format_functions_get(functions, id);

		if (function->kind == FORMAT_KIND_LUA && function->name &&
		    format_addrmap_set(names, identity_of(function), id, why))
			return -1;
	}
	return 0;
}

static const char *last_name(const struct format_functions *functions,
			     const struct format_addrmap *names,
			     const struct format_function *function)
{
	uint64_t id;

	return format_addrmap_get(names, identity_of(function), &id)
		       ? format_functions_get(functions, (uint32_t)id)->name
		       : function->name;
}

/* Several functions on one line may be one entry of the profile while they have no names. It keeps
 * its text unless all of them have the same name now. */
int aggregator_take_names(struct aggregator *aggregator, struct failure *why)
{
	static const char different[] = "";
	uint32_t count = format_functions_count(aggregator->profile->functions);
	const char **found = calloc((size_t)count + 1, sizeof(*found));
	struct format_addrmap names = { 0 };
	int ret = found ? collect_names(aggregator->functions, &names, why)
			: failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold names");

	for (size_t i = 0; ret == 0 && i < aggregator->lua_count; i++) {
		const uint32_t *ids = aggregator->lua[i];
		const char *name = last_name(aggregator->functions, &names,
					     format_functions_get(aggregator->functions, ids[0]));
		const char *other = found[ids[1]];

		found[ids[1]] = !name || (other && strcmp(name, other) != 0) ? different : name;
	}
	for (uint32_t id = 0; ret == 0 && id < count; id++)
		if (found[id] && found[id] != different)
			ret = format_functions_rename(aggregator->profile->functions, id, found[id],
						      why);
	format_addrmap_deinit(&names);
	free(found);
	return ret;
}

int aggregator_add_notes(struct aggregator *aggregator, const char *text, struct failure *why)
{
	const char *comments;

	format_text_add_string(&aggregator->profile->comments, text);
	return format_text_take(&aggregator->profile->comments, &comments, why);
}
