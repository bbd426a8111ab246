/* SPDX-License-Identifier: MIT */
/*
 * How is a profile shown as a page for a web browser, in one file? The page is flame.html with its
 * style, its script and the profile as JSON:
 *
 *	title, unit		texts
 *	samples			of all chains
 *	base			samples of the base; only in a comparison
 *	period_ns		per sample; 0: unknown
 *	comments		lines about the recording
 *	kinds			names of kinds
 *	functions		[text, kind, 1 compiled or 2 approximately compiled, location] by
 *				number
 *	chains			one after the other, as numbers: frames shared with the previous
 *				chain, further frames, the function of each further frame, samples,
 *				and in a comparison samples of the base
 *
 *	timeline		if the order of the samples is known, for choosing a range of time:
 *				for each sample, "chains" has its chain's number, "weights" its
 *				ticks, and "times_ns" its time, which never decreases; "times_ns"
 *				is missing if times are unknown
 *
 * Names may contain anything: they cannot end the element that contains them, and the page runs no
 * script but its own.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/diff/diff_view.h"
#include "format/formats/reports.h"
#include "format/json.h"
#include "format/report/chart.h"
#include "format/text/xml.h"

#include "FLAME_CSS_HASH.h"
#include "FLAME_JS_HASH.h"
#include "flame_css.h"
#include "flame_html.h"
#include "flame_js.h"

/** Titles are for people. */
#define TITLE_CHARS_MAX 200

/** A page with more samples takes long to open. */
#define TIMELINE_SAMPLES_MAX 1000000

struct page {
	const struct format_profile *profile;
	const struct diff_view *diff_view;
	const char *title;
	bool is_annotated; /* Names keep the mark of compiled frames. */
	bool has_roots;	   /* Chains begin with frames for processes or threads. */
	FILE *file;
	struct json_out json; /* Writes to `file`. */
};

/* ---- The profile ------------------------------------------------------------------------ */

static void put_function(struct page *page, const struct call_tree_label *label)
{
	struct json_out *json = &page->json;
	size_t len = strlen(label->text);
	unsigned compiled = 0;

	if (label->note) {
		compiled = strchr(label->note, '~') ? 2 : 1;
		len -= page->is_annotated ? 0 : strlen(label->note);
	}
	json_out_break(json);
	json_out_open(json, '[');
	json_out_part(json, label->text, len);
	json_out_number(json, label->kind);
	json_out_number(json, compiled);
	if (label->location)
		json_out_text(json, label->location);
	json_out_close(json, ']');
}

/** Begin an array that is a member of an object. */
static void open_array(struct page *page, const char *key)
{
	json_out_key(&page->json, key);
	json_out_open(&page->json, '[');
}

static void put_kinds(struct page *page)
{
	json_out_break(&page->json);
	open_array(page, "kinds");
	for (int i = 0; i < FORMAT_KIND_COUNT; i++)
		json_out_text(&page->json, format_kind_name((enum format_kind)i));
	json_out_close(&page->json, ']');
}

static void put_chains(struct page *page)
{
	struct diff_view_walk walk = { 0 };
	const struct diff_view_chain *chain = &walk.chain;
	struct json_out *json = &page->json;

	json_out_break(json);
	open_array(page, "chains");
	while (diff_view_next(page->diff_view, &walk)) {
		json_out_break(json);
		json_out_number(json, chain->shared);
		json_out_number(json, chain->len - chain->shared);
		for (uint32_t i = chain->shared; i < chain->len; i++)
			json_out_number(json, chain->labels[i]);
		json_out_number(json, chain->counts[1]);
		if (page->diff_view->has_base)
			json_out_number(json, chain->counts[0]);
	}
	json_out_close(json, ']');
}

/** Write the samples in the order of time, so that the page can show a part of them. The events
 * are those of a chart. */
static void put_column(struct page *page, const char *key, const struct chart *chart,
		       uint64_t (*value)(const struct page *page, const struct chart_event *event))
{
	open_array(page, key);
	for (size_t i = 0; i < chart->event_count; i++)
		json_out_number(&page->json, value(page, &chart->events[i]));
	json_out_close(&page->json, ']');
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

	/* With a base or with roots, the page's chains differ from the profile's. */
	if (page->diff_view->has_base || page->has_roots ||
	    !format_profile_has_order(page->profile) ||
	    page->profile->timeline.count > TIMELINE_SAMPLES_MAX ||
	    page->profile->timeline.left_out > 0)
		return;
	if (chart_init(&chart, page->profile, &why)) {
		page->json.failed = true;
		return;
	}
	chart_sort_by_time(&chart);
	json_out_break(&page->json);
	json_out_key(&page->json, "timeline");
	json_out_open(&page->json, '{');
	put_column(page, "chains", &chart, chain_of);
	json_out_break(&page->json);
	put_column(page, "weights", &chart, weight_of);
	if (page->profile->timeline.last_us > 0) {
		json_out_break(&page->json);
		put_column(page, "times_ns", &chart, time_of);
	}
	json_out_close(&page->json, '}');
	chart_deinit(&chart);
}

static void put_comments(struct page *page)
{
	struct profile_comment comment;

	json_out_break(&page->json);
	open_array(page, "comments");
	for (size_t at = 0; profile_next_comment(page->profile, &at, &comment);)
		json_out_part(&page->json, comment.line, comment.len);
	json_out_close(&page->json, ']');
}

static void put_count(struct page *page, const char *key, uint64_t value)
{
	json_out_break(&page->json);
	json_out_key_number(&page->json, key, value);
}

static void put_data(struct page *page)
{
	const struct diff_view *diff_view = page->diff_view;
	struct json_out *json = &page->json;

	json_out_open(json, '{');
	json_out_key_text(json, "title", page->title);
	json_out_break(json);
	json_out_key_text(json, "unit", format_profile_unit(page->profile));
	put_count(page, "samples", diff_view->trees[1].samples);
	if (diff_view->has_base)
		put_count(page, "base", diff_view->trees[0].samples);
	put_count(page, "period_ns", page->profile->period_ns);
	put_comments(page);
	put_kinds(page);
	json_out_break(json);
	open_array(page, "functions");
	for (uint32_t i = 0; i < diff_view->label_count; i++)
		put_function(page, diff_view->labels[i]);
	json_out_close(json, ']');
	put_chains(page);
	put_timeline(page);
	json_out_close(json, '}');
	json_out_line(json);
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

/** Placeholders in flame.html. */
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

/**
 * Copy a part of flame.html or replace a placeholder.
 * @return Bytes of flame.html that are done.
 */
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
	return page->json.failed ? failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write the page")
				 : 0;
}

/** @param base NULL: no comparison. */
static int write_page(const struct format_profile *base, const struct format_profile *profile,
		      const struct format_report_options *options, FILE *file, struct failure *why)
{
	/* In a comparison, functions are the default: lines move when a program changes. */
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
		.json = { .file = file, .is_script = true },
	};
	struct format_report_options shown = *options;
	int result;

	/* If names are not annotated, compiled frames differ by colour. */
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
	.is_view = true,
	.description = "page with flame graphs and tables for a web browser, in one file",
	.order = FORMAT_ORDER_OPTIONAL,
	.print = html_print,
	.diff = html_diff,
};
