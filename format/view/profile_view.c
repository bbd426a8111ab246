/* SPDX-License-Identifier: MIT */
/* How does a profile become the profile that a view shows? */
#include "format/view.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/data/label.h"
#include "format/profile/profile_internal.h"
#include "format/view/reduce.h"

/** What samples count as whose frames are all hidden. */
#define HIDDEN "[hidden]"

/** What a view says about a frame's text. */
enum match { MATCH_FOCUS = 1, MATCH_IGNORE = 2, MATCH_HIDE = 4, MATCH_SHOW = 8, MATCH_KNOWN = 16 };

/** What a view makes of a function. */
struct viewed {
	enum view_class class;
	/** By enum view_step_kind: id in the new profile, + 1; 0: not yet. */
	uint32_t ids[VIEW_CALLED + 1];
};

struct viewing {
	const struct format_profile *from;
	const struct format_view *view;
	enum format_native native;
	struct format_profile *to;
	struct viewed *functions;     /* By id in `from`. */
	uint32_t *keys;		      /* From a key of `from` to that in `to`, + 1; 0: left out. */
	struct format_addrmap frames; /* From profile, function and line to enum match. */
	struct profile_frame *chain;
	struct view_step *steps;
	enum view_class *classes;
	size_t chain_capacity, step_capacity, class_capacity;
	struct format_text text, location;
};

static const char *const natives[FORMAT_NATIVE_COUNT] = {
	[FORMAT_NATIVE_PROGRAM] = "program",
	[FORMAT_NATIVE_ALL] = "all",
	[FORMAT_NATIVE_NONE] = "none",
};

const char *format_native_name(enum format_native native)
{
	return (unsigned)native < FORMAT_NATIVE_COUNT ? natives[native] : NULL;
}

bool format_view_changes(const struct format_view *view)
{
	return view->native != FORMAT_NATIVE_ALL || view->focus || view->ignore || view->hide ||
	       view->show;
}

bool format_profile_has_lua(const struct format_profile *profile)
{
	uint32_t count = format_functions_count(profile->functions);

	for (uint32_t i = 0; i < count; i++)
		if (view_class_of(format_functions_get(profile->functions, i)) == VIEW_LUA)
			return true;
	return false;
}

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "choose frames");
}

/* ---- Functions -------------------------------------------------------------------------- */

static int put_function(struct viewing *viewing, enum view_step_kind kind, uint32_t from,
			uint32_t *ret_id, struct failure *why)
{
	static const struct label_mark none = { 0 };
	const struct format_function *function =
		format_functions_get(viewing->from->functions, from);
	const struct label_mark *mark = &viewing->from->marks[from];
	uint32_t *id = &viewing->functions[from].ids[kind];
	struct format_function made;

	if (!*id) {
		if (kind != VIEW_KEEP) {
			if (!view_step_function(kind, function, &viewing->text, &made))
				return no_memory(why);
			function = &made;
			mark = &none;
		}
		if (profile_add_function(viewing->to, function, mark, id, why))
			return -1;
		++*id;
	}
	*ret_id = *id - 1;
	return 0;
}

static bool has_match(const regex_t *expression, const char *text)
{
	return expression && regexec(expression, text, 0, NULL, 0) == 0;
}

/** @param profile The old or the new profile, in which @p frame is.
 *  @param ret_match enum match of the frame's text. */
static int match_frame(struct viewing *viewing, const struct format_profile *profile,
		       struct profile_frame frame, unsigned *ret_match, struct failure *why)
{
	/* Ids of functions are far below 2^31. */
	uint64_t key = (uint64_t)(profile == viewing->to) << 63 | (uint64_t)frame.function << 32 |
		       frame.line;
	uint64_t known = MATCH_KNOWN;
	const struct format_view *view = viewing->view;
	const struct format_function *function;
	const char *text;

	if (format_addrmap_get(&viewing->frames, key, &known)) {
		*ret_match = (unsigned)known;
		return 0;
	}
	function = format_functions_get(profile->functions, frame.function);
	format_text_clear(&viewing->text);
	format_text_clear(&viewing->location);
	label_describe(&viewing->text, &viewing->location, function, (int64_t)frame.line);
	if (format_text_take(&viewing->text, &text, why))
		return -1;
	known |= has_match(view->focus, text) ? MATCH_FOCUS : 0;
	known |= has_match(view->ignore, text) ? MATCH_IGNORE : 0;
	known |= has_match(view->hide, text) ? MATCH_HIDE : 0;
	known |= has_match(view->show, text) ? MATCH_SHOW : 0;
	*ret_match = (unsigned)known;
	return format_addrmap_set(&viewing->frames, key, known, why);
}

/* ---- Chains ----------------------------------------------------------------------------- */

/** @param ret_kept Whether focus and ignore keep samples of this chain. */
static int choose_chain(struct viewing *viewing, const struct profile_frame *frames, size_t count,
			bool *ret_kept, struct failure *why)
{
	unsigned all = 0, match;

	*ret_kept = true;
	if (!viewing->view->focus && !viewing->view->ignore)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (match_frame(viewing, viewing->from, frames[i], &match, why))
			return -1;
		all |= match;
	}
	*ret_kept = (!viewing->view->focus || all & MATCH_FOCUS) && !(all & MATCH_IGNORE);
	return 0;
}

static size_t reduce(struct viewing *viewing, const struct profile_frame *frames, size_t count)
{
	bool is_kept = viewing->native == FORMAT_NATIVE_ALL;

	for (size_t i = 0; i < count; i++)
		viewing->classes[i] = viewing->functions[frames[i].function].class;
	/* Other tools' profiles have no modules. */
	is_kept |= viewing->native == FORMAT_NATIVE_PROGRAM &&
		   view_tells_nothing(viewing->classes, count);
	for (size_t i = 0; is_kept && i < count; i++)
		viewing->steps[i] = (struct view_step){ VIEW_KEEP, (uint32_t)i };
	if (is_kept)
		return count;
	return view_reduce(viewing->classes, count, viewing->native, viewing->steps);
}

/** Whether hide and show keep a frame of the new profile. */
static int choose_frame(struct viewing *viewing, struct profile_frame frame, bool *ret_kept,
			struct failure *why)
{
	unsigned match;

	*ret_kept = true;
	if (!viewing->view->hide && !viewing->view->show)
		return 0;
	if (match_frame(viewing, viewing->to, frame, &match, why))
		return -1;
	*ret_kept = (!viewing->view->show || match & MATCH_SHOW) && !(match & MATCH_HIDE);
	return 0;
}

static int put_hidden(struct viewing *viewing, struct profile_frame *ret_frame, struct failure *why)
{
	static const struct format_function hidden = { .kind = FORMAT_KIND_PSEUDO, .name = HIDDEN };
	static const struct label_mark none = { 0 };

	ret_frame->line = 0;
	return profile_add_function(viewing->to, &hidden, &none, &ret_frame->function, why);
}

/** Write what is shown of a chain into `chain`. */
static int view_chain(struct viewing *viewing, const struct profile_frame *frames, size_t count,
		      size_t *ret_len, struct failure *why)
{
	size_t steps = reduce(viewing, frames, count), len = 0;
	bool is_kept;

	for (size_t i = 0; i < steps; i++) {
		struct profile_frame frame = frames[viewing->steps[i].frame];
		enum view_step_kind kind = viewing->steps[i].kind;

		if (put_function(viewing, kind, frame.function, &frame.function, why))
			return -1;
		if (kind != VIEW_KEEP)
			frame.line = 0;
		if (choose_frame(viewing, frame, &is_kept, why))
			return -1;
		if (is_kept)
			viewing->chain[len++] = frame;
	}
	if (count > 0 && len == 0 && put_hidden(viewing, &viewing->chain[len++], why))
		return -1;
	*ret_len = len;
	return 0;
}

/* ---- Samples ---------------------------------------------------------------------------- */

static int view_text(struct viewing *viewing, uint32_t from, uint32_t *ret_to, struct failure *why)
{
	const char *text = profile_string(viewing->from, from);

	*ret_to = 0;
	return text ? profile_add_string(viewing->to, text, ret_to, why) : 0;
}

/** Find the sample of a key in the new profile. The timeline counts it, if there is one. */
static int view_key(struct viewing *viewing, uint32_t key, struct failure *why)
{
	struct profile_sample sample = profile_sample(viewing->from, key);
	struct profile_labels labels = *profile_labels(viewing->from, sample.labels);
	uint32_t chain, to;
	size_t count, len;
	const struct profile_frame *frames = profile_chain(viewing->from, sample.chain, &count);
	bool is_kept;

	if (!ARRAY_RESERVE(viewing->chain, viewing->chain_capacity, count + 1) ||
	    !ARRAY_RESERVE(viewing->steps, viewing->step_capacity, count + 1) ||
	    !ARRAY_RESERVE(viewing->classes, viewing->class_capacity, count + 1))
		return no_memory(why);
	if (choose_chain(viewing, frames, count, &is_kept, why))
		return -1;
	if (!is_kept)
		return 0;
	if (view_chain(viewing, frames, count, &len, why) ||
	    view_text(viewing, labels.thread, &labels.thread, why) ||
	    view_text(viewing, labels.coroutine, &labels.coroutine, why) ||
	    profile_find_sample(viewing->to, viewing->chain, len, &labels, &chain, &to, why))
		return -1;
	viewing->keys[key] = to + 1;
	if (labels.state)
		viewing->to->states[labels.state - 1] += viewing->from->key_counts[key];
	viewing->to->counts[chain] += viewing->from->key_counts[key];
	viewing->to->key_counts[to] += viewing->from->key_counts[key];
	viewing->to->samples += viewing->from->key_counts[key];
	return 0;
}

static int view_timeline(struct viewing *viewing, struct failure *why)
{
	const struct timeline *from = &viewing->from->timeline;
	struct timeline *to = &viewing->to->timeline;
	struct timeline_cursor cursor = { 0 };

	to->is_kept = from->is_kept;
	to->is_summed = from->is_summed;
	to->left_out = from->left_out;
	while (timeline_next(from, &cursor)) {
		uint32_t key = viewing->keys[cursor.key];

		timeline_set_next(to, cursor.us, cursor.heap_bytes);
		if (key && timeline_add(to, key - 1, cursor.count, why))
			return -1;
	}
	return 0;
}

/** Copy what a view does not change. */
static int begin(struct viewing *viewing, struct failure *why)
{
	const struct format_profile *from = viewing->from;
	struct format_profile *to = viewing->to = format_profile_create(why);
	uint32_t functions = format_functions_count(from->functions);
	const char *comments;

	if (!to)
		return -1;
	to->kind = from->kind;
	to->has_kind = from->has_kind;
	to->period_ns = from->period_ns;
	to->time_ns = from->time_ns;
	to->duration_ns = from->duration_ns;
	to->is_wall = from->is_wall;
	to->memory_shown = from->memory_shown;
	memcpy(to->unit, from->unit, sizeof(to->unit));
	viewing->functions = calloc((size_t)functions + 1, sizeof(*viewing->functions));
	viewing->keys = calloc((size_t)intern_count(from->keys) + 1, sizeof(*viewing->keys));
	if (!viewing->functions || !viewing->keys)
		return no_memory(why);
	for (uint32_t i = 0; i < functions; i++)
		viewing->functions[i].class =
			view_class_of(format_functions_get(from->functions, i));
	if (!from->comments.len)
		return 0;
	format_text_add(&to->comments, from->comments.bytes, from->comments.len);
	return format_text_take(&to->comments, &comments, why);
}

int format_profile_view(const struct format_profile *profile, const struct format_view *view,
			struct format_profile **ret_profile, struct failure *why)
{
	struct viewing viewing = { .from = profile, .view = view, .native = view->native };
	int result;

	if (viewing.native == FORMAT_NATIVE_DEFAULT)
		viewing.native = FORMAT_NATIVE_PROGRAM;
	result = begin(&viewing, why);
	for (uint32_t i = 0; result == 0 && i < intern_count(profile->keys); i++)
		result = view_key(&viewing, i, why);
	if (result == 0)
		result = view_timeline(&viewing, why);
	free(viewing.functions);
	free(viewing.keys);
	free(viewing.chain);
	free(viewing.steps);
	free(viewing.classes);
	format_addrmap_deinit(&viewing.frames);
	format_text_deinit(&viewing.text);
	format_text_deinit(&viewing.location);
	if (result)
		format_profile_destroy(viewing.to);
	else
		*ret_profile = viewing.to;
	return result;
}
