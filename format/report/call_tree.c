/* SPDX-License-Identifier: MIT */
/* How do chains of functions become sorted chains of labels? */
#include "attach/array.h"
#include "format/report/call_tree.h"
#include "format/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** The label of a sample without frames. */
#define NO_STACK "[no stack]"

/** A chain with its process and thread; 0: unknown, or not requested. No padding: compared as
 * bytes. */
struct rooted {
	uint32_t chain;
	int32_t pid, tid;
	uint32_t thread; /* As in struct profile_labels. */
};

/** Most roots of a chain. */
#define ROOTS_MAX 2

struct builder {
	struct call_tree *call_tree;
	const struct format_profile *profile;
	enum format_lines lines;
	enum format_annotate annotate;
	unsigned roots;		      /* FORMAT_ROOTS_... */
	struct intern *rooted;	      /* struct rooted; NULL: chains have no roots. */
	uint64_t *rooted_counts;      /* Samples by id in `rooted`. */
	bool by_text;		      /* Labels with equal texts are one, whatever their kinds. */
	struct format_addrmap frames; /* From function << 32 | line to label. */
	struct intern *keys;	      /* Kind and text of a label; the same ids as in `labels`. */
	uint32_t capacity;
	struct format_text text, location, note;
};

/* ---- Labels ----------------------------------------------------------------------------- */

/** Write the annotation of a frame into the builder's note. */
static void take_note(struct builder *builder, const struct format_function *function,
		      const struct label_mark *mark)
{
	bool is_compiled = mark->compiled || function->kind == FORMAT_KIND_TRACE;

	format_text_clear(&builder->note);
	if ((builder->annotate == FORMAT_ANNOTATE_JIT ||
	     builder->annotate == FORMAT_ANNOTATE_KIND) &&
	    is_compiled)
		format_text_add_string(&builder->note, mark->approximate ? "~_[j]" : "_[j]");
	else if (builder->annotate == FORMAT_ANNOTATE_KIND && *label_kind_suffix(function->kind))
		format_text_addf(&builder->note, "_[%s]", label_kind_suffix(function->kind));
	if (builder->annotate == FORMAT_ANNOTATE_TRACE && mark->compiled) {
		format_text_add(&builder->note, " ", 1);
		symbol_add_mark(&builder->note, mark);
	}
}

/** Write the frame's label and location into the builder's texts. */
static void describe(struct builder *builder, const struct format_function *function,
		     const struct label_mark *mark, uint32_t line)
{
	format_text_clear(&builder->text);
	format_text_clear(&builder->location);
	label_describe(&builder->text, &builder->location, function,
		       builder->lines == FORMAT_LINES_FUNCTION ? function->first_line
							       : (int64_t)line);
	take_note(builder, function, mark);
	format_text_add(&builder->text, builder->note.bytes, builder->note.len);
}

static char *copy_name(const char *name)
{
	char *copy = name ? strndup(name, LABEL_NAME_MAX) : NULL;

	if (copy)
		format_clean_text(copy, strlen(copy));
	return copy;
}

static void free_texts(struct call_tree_label *label)
{
	free(label->owned_text);
	free(label->owned_location);
	free(label->owned_name);
	free(label->owned_note);
}

static int append_label(struct builder *builder, const struct format_function *function,
			struct failure *why)
{
	struct call_tree *call_tree = builder->call_tree;
	struct call_tree_label label = { .kind = function->kind };

	if (!ARRAY_RESERVE(call_tree->labels, builder->capacity, call_tree->label_count + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the labels");
	label.owned_text = strdup(builder->text.bytes);
	label.owned_location = builder->location.len ? strdup(builder->location.bytes) : NULL;
	label.owned_name = copy_name(function->name);
	label.text = label.owned_text;
	label.location = label.owned_location;
	label.owned_note = builder->note.len ? strdup(builder->note.bytes) : NULL;
	label.name = label.owned_name;
	label.note = label.owned_note;
	if (!label.text || (builder->location.len && !label.location) ||
	    (function->name && !label.name) || (builder->note.len && !label.note)) {
		free_texts(&label);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold the labels");
	}
	call_tree->labels[call_tree->label_count++] = label;
	return 0;
}

static int put_label(struct builder *builder, const struct format_function *function,
		     const struct label_mark *mark, uint32_t line, uint32_t *ret_label,
		     struct failure *why)
{
	size_t text_len;
	const char *string;
	uint32_t id;

	describe(builder, function, mark, line);
	text_len = builder->text.len;
	/* The kind follows the text only while the key is looked up. */
	format_text_addf(&builder->text, "%d", builder->by_text ? 0 : (int)function->kind);
	if (format_text_take(&builder->text, &string, why) ||
	    format_text_take(&builder->location, &string, why) ||
	    format_text_take(&builder->note, &string, why) ||
	    intern_put(builder->keys, builder->text.bytes, builder->text.len, &id, why))
		return -1;
	builder->text.bytes[text_len] = '\0';
	if (id == builder->call_tree->label_count && append_label(builder, function, why))
		return -1;
	*ret_label = id;
	return 0;
}

static int label_of(struct builder *builder, struct profile_frame frame, uint32_t *ret_label,
		    struct failure *why)
{
	uint64_t key = (uint64_t)frame.function << 32 | frame.line, present;

	if (format_addrmap_get(&builder->frames, key, &present)) {
		*ret_label = (uint32_t)present;
		return 0;
	}
	if (put_label(builder, format_functions_get(builder->profile->functions, frame.function),
		      &builder->profile->marks[frame.function], frame.line, ret_label, why))
		return -1;
	return format_addrmap_set(&builder->frames, key, *ret_label, why);
}

/* ---- Chains ----------------------------------------------------------------------------- */

/** @return One of the chains to fold, with its count. */
static struct rooted chain_at(const struct builder *builder, uint32_t index, uint64_t *ret_count)
{
	struct rooted rooted = { .chain = index };

	if (builder->rooted) {
		memcpy(&rooted, intern_get(builder->rooted, index, NULL), sizeof(rooted));
		*ret_count = builder->rooted_counts[index];
	} else {
		*ret_count = builder->profile->counts[index];
	}
	return rooted;
}

/** Labels of all chains; a chain without frames has one. */
static size_t count_labels(const struct builder *builder)
{
	size_t total = 0, len;
	uint64_t count;

	for (uint32_t i = 0; i < builder->call_tree->chain_count; i++) {
		profile_chain(builder->profile, chain_at(builder, i, &count).chain, &len);
		total += len ? len : 1;
		total += builder->rooted ? ROOTS_MAX : 0;
	}
	return total;
}

/** Count samples by chain and by the requested roots. */
static int root_chains(struct builder *builder, struct failure *why)
{
	const struct format_profile *profile = builder->profile;
	uint32_t keys = intern_count(profile->keys), id;

	builder->rooted = intern_create();
	builder->rooted_counts = calloc((size_t)keys + 1, sizeof(*builder->rooted_counts));
	if (!builder->rooted || !builder->rooted_counts)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold the chains");
	for (uint32_t i = 0; i < keys; i++) {
		struct profile_sample sample = profile_sample(profile, i);
		const struct profile_labels *labels = profile_labels(profile, sample.labels);
		struct rooted rooted = { .chain = sample.chain };

		if (builder->roots & FORMAT_ROOTS_PROCESS)
			rooted.pid = labels->pid;
		if (builder->roots & FORMAT_ROOTS_THREAD) {
			rooted.tid = labels->tid;
			rooted.thread = labels->thread;
		}
		if (intern_put(builder->rooted, &rooted, sizeof(rooted), &id, why))
			return -1;
		builder->rooted_counts[id] += profile->key_counts[i];
	}
	return 0;
}

/** Add the label of a process or a thread. */
static int put_root(struct builder *builder, const char *name, int32_t number, uint32_t *ret_label,
		    struct failure *why)
{
	static const struct label_mark none = { 0 };
	struct format_function function = { .kind = FORMAT_KIND_PROCESS };
	struct format_text text = { 0 };
	int result;

	format_text_add_string(&text, name);
	if (number)
		format_text_addf(&text, " [%" PRId32 "]", number);
	result = format_text_take(&text, &function.name, why);
	if (result == 0)
		result = put_label(builder, &function, &none, 0, ret_label, why);
	format_text_deinit(&text);
	return result;
}

/** Whether a chain begins with its process, as ljrecord can write it. */
static bool has_process(const struct builder *builder, const struct profile_frame *frames,
			size_t count)
{
	return count > 0 &&
	       format_functions_get(builder->profile->functions, frames[0].function)->kind ==
		       FORMAT_KIND_PROCESS;
}

static int fill_frames(struct builder *builder, const struct profile_frame *frames, size_t count,
		       uint32_t *labels, struct failure *why)
{
	for (size_t i = 0; i < count; i++)
		if (label_of(builder, frames[i], &labels[i], why))
			return -1;
	return 0;
}

/** Write the labels of a chain: the process, the thread, then the frames. */
static int fill_chain(struct builder *builder, const struct rooted *rooted, uint32_t *labels,
		      size_t *ret_len, struct failure *why)
{
	static const struct format_function nothing = {
		.kind = FORMAT_KIND_PSEUDO,
		.name = NO_STACK,
	};
	static const struct label_mark none = { 0 };
	const char *thread = profile_string(builder->profile, rooted->thread);
	size_t count, len = 0;
	const struct profile_frame *frames = profile_chain(builder->profile, rooted->chain, &count);
	size_t first = has_process(builder, frames, count) && (rooted->tid || thread);

	if (fill_frames(builder, frames, first, labels, why))
		return -1;
	len = first;
	if (rooted->pid && !has_process(builder, frames, count) &&
	    put_root(builder, "process", rooted->pid, &labels[len++], why))
		return -1;
	if ((rooted->tid || thread) && put_root(builder, thread && *thread ? thread : "thread",
						rooted->tid, &labels[len++], why))
		return -1;
	if (fill_frames(builder, frames + first, count - first, labels + len, why))
		return -1;
	*ret_len = len + count - first;
	if (count > 0)
		return 0;
	(*ret_len)++;
	return put_label(builder, &nothing, &none, 0, &labels[len], why);
}

static int fill_chains(struct builder *builder, struct failure *why)
{
	struct call_tree *call_tree = builder->call_tree;
	size_t next = 0, len;

	for (uint32_t i = 0; i < call_tree->chain_count; i++) {
		uint64_t count;
		struct rooted rooted = chain_at(builder, i, &count);

		if (fill_chain(builder, &rooted, call_tree->pool + next, &len, why))
			return -1;
		call_tree->chains[i] = (struct call_tree_chain){
			.labels = call_tree->pool + next,
			.len = (uint32_t)len,
			.id = i,
			.count = count,
		};
		next += len;
	}
	return 0;
}

/* ---- Order ------------------------------------------------------------------------------ */

static int compare_labels(const void *left, const void *right, void *context)
{
	const struct call_tree_label *labels = context;
	const struct call_tree_label *a = &labels[*(const uint32_t *)left];
	const struct call_tree_label *b = &labels[*(const uint32_t *)right];
	int order = strcmp(a->text, b->text);

	return order ? order : (int)a->kind - (int)b->kind;
}

/** Number the labels in the order of their texts. */
static int sort_labels(struct call_tree *call_tree, size_t pool_len, struct failure *why)
{
	uint32_t *order = calloc((size_t)call_tree->label_count + 1, sizeof(*order));
	uint32_t *rank = calloc((size_t)call_tree->label_count + 1, sizeof(*rank));
	struct call_tree_label *sorted =
		calloc((size_t)call_tree->label_count + 1, sizeof(*sorted));

	if (!order || !rank || !sorted) {
		free(order);
		free(rank);
		free(sorted);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "sort the labels");
	}
	for (uint32_t i = 0; i < call_tree->label_count; i++)
		order[i] = i;
	qsort_r(order, call_tree->label_count, sizeof(*order), compare_labels, call_tree->labels);
	for (uint32_t i = 0; i < call_tree->label_count; i++) {
		rank[order[i]] = i;
		sorted[i] = call_tree->labels[order[i]];
	}
	for (size_t i = 0; i < pool_len; i++)
		call_tree->pool[i] = rank[call_tree->pool[i]];
	free(call_tree->labels);
	call_tree->labels = sorted;
	free(order);
	free(rank);
	return 0;
}

static int compare_chains(const void *left, const void *right)
{
	const struct call_tree_chain *a = left, *b = right;
	uint32_t shorter = a->len < b->len ? a->len : b->len;

	for (uint32_t i = 0; i < shorter; i++)
		if (a->labels[i] != b->labels[i])
			return a->labels[i] < b->labels[i] ? -1 : 1;
	return a->len == b->len ? 0 : a->len < b->len ? -1 : 1;
}

/** Sort the chains and merge equal neighbours. */
static void sort_chains(struct call_tree *call_tree)
{
	uint32_t kept = 0;

	if (call_tree->chain_count == 0)
		return;
	qsort(call_tree->chains, call_tree->chain_count, sizeof(*call_tree->chains),
	      compare_chains);
	call_tree->chain_of[call_tree->chains[0].id] = 0;
	for (uint32_t i = 1; i < call_tree->chain_count; i++) {
		if (compare_chains(&call_tree->chains[kept], &call_tree->chains[i]) == 0)
			call_tree->chains[kept].count += call_tree->chains[i].count;
		else
			call_tree->chains[++kept] = call_tree->chains[i];
		call_tree->chain_of[call_tree->chains[i].id] = kept;
	}
	call_tree->chain_count = kept + 1;
}

static int build(struct builder *builder, struct failure *why)
{
	struct call_tree *call_tree = builder->call_tree;
	size_t pool_len;

	if (builder->roots && root_chains(builder, why))
		return -1;
	call_tree->samples = builder->profile->samples;
	call_tree->chain_count =
		intern_count(builder->rooted ? builder->rooted : builder->profile->chains);
	pool_len = count_labels(builder);
	if (pool_len > CALL_TREE_LABELS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "more chains than can be kept");
	call_tree->chains = calloc((size_t)call_tree->chain_count + 1, sizeof(*call_tree->chains));
	call_tree->pool = calloc(pool_len + 1, sizeof(*call_tree->pool));
	call_tree->chain_of =
		calloc((size_t)call_tree->chain_count + 1, sizeof(*call_tree->chain_of));
	builder->keys = intern_create();
	if (!call_tree->chains || !call_tree->pool || !call_tree->chain_of || !builder->keys)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "fold the chains");
	/* The unused rest of the pool is 0, which is a valid label. */
	if (fill_chains(builder, why) || sort_labels(call_tree, pool_len, why))
		return -1;
	sort_chains(call_tree);
	return 0;
}

static int init(struct builder *builder, struct call_tree *call_tree, struct failure *why)
{
	int result;

	memset(call_tree, 0, sizeof(*call_tree));
	builder->call_tree = call_tree;
	result = build(builder, why);
	format_addrmap_deinit(&builder->frames);
	intern_destroy(builder->keys);
	intern_destroy(builder->rooted);
	free(builder->rooted_counts);
	format_text_deinit(&builder->text);
	format_text_deinit(&builder->location);
	format_text_deinit(&builder->note);
	if (result)
		call_tree_deinit(call_tree);
	return result;
}

int call_tree_init(struct call_tree *call_tree, const struct format_profile *profile,
		   enum format_lines lines, enum format_annotate annotate, struct failure *why)
{
	struct builder builder = { .profile = profile, .lines = lines, .annotate = annotate };

	return init(&builder, call_tree, why);
}

int call_tree_init_as(struct call_tree *call_tree, const struct format_profile *profile,
		      enum format_lines lines, const struct format_report_options *options,
		      struct failure *why)
{
	struct builder builder = { .profile = profile,
				   .lines = lines,
				   .annotate = options->annotate,
				   .roots = options->roots };

	return init(&builder, call_tree, why);
}

int call_tree_init_by_text(struct call_tree *call_tree, const struct format_profile *profile,
			   enum format_lines lines, struct failure *why)
{
	struct builder builder = { .profile = profile, .lines = lines, .by_text = true };

	return init(&builder, call_tree, why);
}

struct call_tree_count *call_tree_count(const struct call_tree *call_tree)
{
	struct call_tree_count *counts =
		calloc((size_t)call_tree->label_count + 1, sizeof(*counts));

	for (uint32_t i = 0; counts && i < call_tree->chain_count; i++) {
		const struct call_tree_chain *chain = &call_tree->chains[i];

		counts[chain->labels[chain->len - 1]].self += chain->count;
		for (uint32_t j = 0; j < chain->len; j++) {
			struct call_tree_count *count = &counts[chain->labels[j]];

			if (count->seen != i + 1)
				count->total += chain->count;
			count->seen = i + 1;
		}
	}
	return counts;
}

void call_tree_deinit(struct call_tree *call_tree)
{
	for (uint32_t i = 0; i < call_tree->label_count; i++)
		free_texts(&call_tree->labels[i]);
	free(call_tree->labels);
	free(call_tree->chains);
	free(call_tree->pool);
	free(call_tree->chain_of);
	memset(call_tree, 0, sizeof(*call_tree));
}

int call_tree_need_chains(const struct format_profile *profile, struct failure *why)
{
	if (format_profile_kind(profile) == FORMAT_STREAM_SYSPROF)
		return 0;
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0,
			   "report call chains of a memory profile");
}

int call_tree_order(const struct call_tree *a, uint32_t i, const struct call_tree *b, uint32_t j)
{
	if (i == a->label_count || j == b->label_count)
		return i == a->label_count ? 1 : -1;
	return strcmp(a->labels[i].text, b->labels[j].text);
}
