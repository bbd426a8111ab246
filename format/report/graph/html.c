/* SPDX-License-Identifier: MIT */
/*
 * A page for a web browser, in one file: flame.html with its style, its script and the profile as
 * JSON, which is
 *
 *	title, unit		texts
 *	samples			of all chains
 *	base			the same of the base; only with one
 *	period_ns		of a sample; 0: not known
 *	comments		lines that were said of the recording
 *	kinds			names of kinds
 *	functions		[text, kind, 1 compiled or 2 approximately so, place] by number
 *	chains			one behind the other, numbers of: frames that are those of the chain
 *				before, further frames, the function of each of these, samples, and
 *				with a base its samples
 *
 *	timeline		where the order of the samples is known, so that a range of time can
 *				be chosen: of each sample "chains", the number of its chain,
 *				"weights", and "times_ns", never less than the one before, left
 *				out where not known
 *
 * Names are anything: none ends the element that they stand in, and no other script than the
 * page's own is run.
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "format/diff/diff_view.h"
#include "format/formats/reports.h"
#include "format/report/chart.h"
#include "format/text.h"
#include "format/text/xml.h"

#include "FLAME_CSS_HASH.h"
#include "FLAME_JS_HASH.h"
#include "flame_css.h"
#include "flame_html.h"
#include "flame_js.h"

/** Titles are for people. */
#define TITLE_CHARS_MAX 200

/** A page with more of them takes long to open. */
#define TIMELINE_SAMPLES_MAX 1000000

struct page {
	const struct format_profile *profile;
	const struct diff_view *diff_view;
	const char *title;
	bool is_annotated; /* Names keep what marks compiled frames. */
	bool has_roots;	   /* Chains begin with frames of their own. */
	FILE *file;
	bool no_memory;
};

/* ---- JSON ------------------------------------------------------------------------------- */

/**
 * Print JSON so that it may stand in a script element: "<" begins no tag there, and U+2028 and
 * U+2029 end no line. All three are in strings only.
 * Source: HTML Living Standard, 4.12.1.3, restrictions for contents of script elements.
 */
static void print_harmless(const char *json, FILE *file)
{
	static const char separator[] = "\xe2\x80";

	while (*json) {
		size_t len = strcspn(json, "<>&\xe2");

		fwrite(json, 1, len, file);
		json += len;
		if (!*json)
			break;
		if (strncmp(json, separator, 2) == 0 && (json[2] == '\xa8' || json[2] == '\xa9')) {
			fputs(json[2] == '\xa8' ? "\\u2028" : "\\u2029", file);
			json += 3;
			continue;
		}
		if (*json == '\xe2')
			putc(*json, file);
		else
			fprintf(file, "\\u%04x", (unsigned)*json);
		json++;
	}
}

/** Print a value and give it back. @param value NULL: memory was missing. */
static void put(struct page *page, struct json_object *value)
{
	const char *text =
		value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : NULL;

	if (text)
		print_harmless(text, page->file);
	else
		page->no_memory = true;
	json_object_put(value);
}

/** @param len Of @p text that is shown; it may be no UTF-8. */
static struct json_object *text_value(const char *text, size_t len)
{
	char *copy = strndup(text, len);
	struct json_object *value = NULL;

	if (copy) {
		format_clean_utf8(copy, strlen(copy));
		value = json_object_new_string(copy);
	}
	free(copy);
	return value;
}

static void put_member(struct page *page, const char *name, struct json_object *value)
{
	fprintf(page->file, ",\n\"%s\":", name);
	put(page, value);
}

static bool add(struct json_object *array, struct json_object *value)
{
	if (array && value && json_object_array_add(array, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

/* ---- The profile ------------------------------------------------------------------------ */

static void put_function(struct page *page, const struct call_tree_label *label)
{
	struct json_object *row = json_object_new_array();
	size_t len = strlen(label->text);
	int compiled = 0;
	bool done;

	if (label->note) {
		compiled = strchr(label->note, '~') ? 2 : 1;
		len -= page->is_annotated ? 0 : strlen(label->note);
	}
	done = row && add(row, text_value(label->text, len)) &&
	       add(row, json_object_new_int((int)label->kind)) &&
	       add(row, json_object_new_int(compiled)) &&
	       (!label->location || add(row, text_value(label->location, strlen(label->location))));
	if (!done) {
		json_object_put(row);
		row = NULL;
	}
	put(page, row);
}

static void put_kinds(struct page *page)
{
	fputs(",\n\"kinds\":[", page->file);
	for (int i = 0; i < FORMAT_KIND_COUNT; i++)
		fprintf(page->file, "%s\"%s\"", i ? "," : "", label_kind_name((enum format_kind)i));
	fputs("]", page->file);
}

static void put_chains(struct page *page)
{
	struct diff_view_walk walk = { 0 };
	const struct diff_view_chain *chain = &walk.chain;
	const char *lead = "";

	fputs(",\n\"chains\":[", page->file);
	while (diff_view_next(page->diff_view, &walk)) {
		fprintf(page->file, "%s\n%" PRIu32 ",%" PRIu32, lead, chain->shared,
			chain->len - chain->shared);
		for (uint32_t i = chain->shared; i < chain->len; i++)
			fprintf(page->file, ",%" PRIu32, chain->labels[i]);
		fprintf(page->file, ",%" PRIu64, chain->counts[1]);
		if (page->diff_view->has_base)
			fprintf(page->file, ",%" PRIu64, chain->counts[0]);
		lead = ",";
	}
	fputs("]", page->file);
}

/** Samples in the order of time, for the choice of a part of it. Events are those of a chart. */
static void put_column(struct page *page, const char *key, const struct chart *chart,
		       uint64_t (*value)(const struct page *page, const struct chart_event *event))
{
	fprintf(page->file, "\"%s\":[", key);
	for (size_t i = 0; i < chart->event_count; i++)
		fprintf(page->file, "%s%" PRIu64, i ? "," : "", value(page, &chart->events[i]));
	fputs("]", page->file);
}

static uint64_t chain_of(const struct page *page, const struct chart_event *event)
{
	return page->diff_view->trees[1].chain_of[profile_sample(page->profile, event->key).chain];
}

static uint64_t weight_of(const struct page *page, const struct chart_event *event)
{
	(void)page;
	return event->count;
}

static uint64_t time_of(const struct page *page, const struct chart_event *event)
{
	(void)page;
	return event->begin_ns;
}

static void put_timeline(struct page *page)
{
	struct failure why;
	struct chart chart;

	/* With a base or with roots the page's chains are others. */
	if (page->diff_view->has_base || page->has_roots || !page->profile->timeline.is_kept ||
	    page->profile->timeline.count > TIMELINE_SAMPLES_MAX ||
	    page->profile->timeline.left_out > 0)
		return;
	if (chart_init(&chart, page->profile, &why)) {
		page->no_memory = true;
		return;
	}
	chart_sort_by_time(&chart);
	fputs(",\n\"timeline\":{", page->file);
	put_column(page, "chains", &chart, chain_of);
	fputs(",\n", page->file);
	put_column(page, "weights", &chart, weight_of);
	if (page->profile->timeline.last_us > 0) {
		fputs(",\n", page->file);
		put_column(page, "times_ns", &chart, time_of);
	}
	fputs("}", page->file);
	chart_deinit(&chart);
}

static void put_comments(struct page *page)
{
	struct json_object *lines = json_object_new_array();
	struct profile_comment comment;

	for (size_t at = 0; lines && profile_next_comment(page->profile, &at, &comment);)
		if (!add(lines, text_value(comment.line, comment.len))) {
			json_object_put(lines);
			lines = NULL;
		}
	put_member(page, "comments", lines);
}

static void put_data(struct page *page)
{
	const struct diff_view *diff_view = page->diff_view;
	const char *unit = format_profile_unit(page->profile);

	fputs("{\"title\":", page->file);
	put(page, text_value(page->title, strlen(page->title)));
	put_member(page, "unit", text_value(unit, strlen(unit)));
	put_member(page, "samples", json_object_new_uint64(diff_view->trees[1].samples));
	if (diff_view->has_base)
		put_member(page, "base", json_object_new_uint64(diff_view->trees[0].samples));
	put_member(page, "period_ns", json_object_new_uint64(page->profile->period_ns));
	put_comments(page);
	put_kinds(page);
	fputs(",\n\"functions\":[", page->file);
	for (uint32_t i = 0; i < diff_view->label_count; i++) {
		fputs(i ? ",\n" : "\n", page->file);
		put_function(page, diff_view->labels[i]);
	}
	fputs("]", page->file);
	put_chains(page);
	put_timeline(page);
	fputs("}\n", page->file);
}

/* ---- The page --------------------------------------------------------------------------- */

static void put_title(struct page *page)
{
	xml_print(page->file, page->title, TITLE_CHARS_MAX);
}

static void put_style(struct page *page)
{
	fwrite(flame_css, 1, sizeof(flame_css), page->file);
}

static void put_script(struct page *page)
{
	fwrite(flame_js, 1, sizeof(flame_js), page->file);
}

static void put_style_hash(struct page *page)
{
	fputs(FLAME_CSS_HASH, page->file);
}

static void put_script_hash(struct page *page)
{
	fputs(FLAME_JS_HASH, page->file);
}

/** What stands for something in flame.html. */
static const struct {
	const char *mark;
	void (*put)(struct page *page);
} marks[] = {
	{ "{{title}}", put_title },
	{ "{{style hash}}", put_style_hash },
	{ "{{script hash}}", put_script_hash },
	{ "{{style}}", put_style },
	{ "{{script}}", put_script },
	{ "{{data}}", put_data },
};

/** @return Bytes of flame.html from there on that were done. */
static size_t put_part(struct page *page, const char *at, size_t left)
{
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		size_t len = strlen(marks[i].mark);

		if (len <= left && memcmp(at, marks[i].mark, len) == 0) {
			marks[i].put(page);
			return len;
		}
	}
	putc(*at, page->file);
	return 1;
}

static int put_page(struct page *page, struct failure *why)
{
	const char *html = (const char *)flame_html;

	for (size_t at = 0; at < sizeof(flame_html);)
		at += put_part(page, html + at, sizeof(flame_html) - at);
	return page->no_memory ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the page") : 0;
}

/** @param base NULL: none. */
static int write_page(const struct format_profile *base, const struct format_profile *profile,
		      const struct format_report_options *options, FILE *file, struct failure *why)
{
	/* Lines move where a program is changed. */
	enum format_lines lines = options->lines ? options->lines
				  : base	 ? FORMAT_LINES_FUNCTION
						 : FORMAT_LINES_LINE;
	struct diff_view diff_view;
	struct page page = {
		.profile = profile,
		.diff_view = &diff_view,
		.title = options->title ? options->title
			 : base		? "Differential flame graph"
					: "Flame graph",
		.is_annotated = options->annotate != FORMAT_ANNOTATE_NONE,
		.has_roots = options->roots != 0,
		.file = file,
	};
	struct format_report_options shown = *options;
	int result;

	/* Compiled frames differ in their colour where not in their names. */
	if (!page.is_annotated)
		shown.annotate = FORMAT_ANNOTATE_JIT;
	if (diff_view_init(&diff_view, base, profile, lines, &shown, why))
		return -1;
	result = put_page(&page, why);
	diff_view_deinit(&diff_view);
	return result;
}

static int html_print(const struct format_profile *profile,
		      const struct format_report_options *options, FILE *file, struct failure *why)
{
	return call_tree_need_chains(profile, why) ? -1
						   : write_page(NULL, profile, options, file, why);
}

static int html_diff(const struct format_profile *base, const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why)
{
	return call_tree_need_chains(base, why) || call_tree_need_chains(profile, why)
		       ? -1
		       : write_page(base, profile, options, file, why);
}

const struct format_report_ops format_report_html = {
	.name = "html",
	.description = "page with flame graphs and tables for a web browser, in one file",
	.needs_order = true,
	.print = html_print,
	.diff = html_diff,
};
