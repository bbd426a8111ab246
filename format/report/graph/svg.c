/* SPDX-License-Identifier: MIT */
/* How is a profile drawn as a flame graph in SVG, with a small script? */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/diff/diff_view.h"
#include "format/formats/reports.h"
#include "format/text/xml.h"

#include "flamegraph_css.h"
#include "flamegraph_js.h"

/* Pixels. The script fits the picture to the window; other viewers show this size. */
#define WIDTH	     1200
#define PAD	     10
#define FRAMES_WIDTH (WIDTH - 2 * PAD)
#define HEAD_HEIGHT  104
#define ROW_HEIGHT   18
#define RECT_HEIGHT  17
#define CHAR_WIDTH   7.23
#define TEXT_INSET   3

/** Narrower frames are omitted; the subtitle tells their number. */
#define LEAST_WIDTH 0.1

/** With more frames, wider ones are omitted too; viewers cannot show more. */
#define FRAMES_SHOWN_MAX 500000

/** Shorter labels are not readable. */
#define LEAST_CHARS 3

/** Titles are for people. */
#define TITLE_CHARS_MAX 100

static const char *const classes[FORMAT_KIND_COUNT] = {
	"native", "lua", "builtin", "cfunc", "trace", "pseudo", "process", "vm",
};

static const char *const legends[FORMAT_KIND_COUNT] = {
	"native", "Lua",      "built-in function", "C function",
	"trace",  "activity", "process",	   "LuaJIT",
};

/** A box: all samples that share the chain up to this frame. Depth 0 is the root box. */
struct node {
	const struct call_tree_label *label; /* NULL for the root box. */
	uint32_t depth;
	uint64_t start;
	uint64_t counts[2]; /* In the base, and in the profile, which is drawn. */
};

/** Boxes in depth-first order. */
struct tree {
	struct node *nodes;
	size_t count;
	uint32_t *open; /* Indexes of the boxes around the current chain, by depth. */
	uint32_t depth; /* Deepest drawn box. */
	double least;	/* Width of the narrowest drawn box, in pixels. */
	size_t narrow;
	uint64_t samples;
	double largest; /* Largest change of a share, up or down. */
};

/* ---- Boxes ------------------------------------------------------------------------------ */

static size_t longest_chain(const struct diff_view *diff_view, size_t *ret_total)
{
	size_t longest = 0, total = 0;

	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < diff_view->trees[side].chain_count; i++) {
			uint32_t len = diff_view->trees[side].chains[i].len;

			total += len;
			if (len > longest)
				longest = len;
		}
	*ret_total = total;
	return longest;
}

/** Chains are sorted, so chains that share boxes are neighbours. */
static void add_chain(struct tree *tree, const struct diff_view *diff_view,
		      const struct diff_view_chain *chain, uint64_t start)
{
	for (uint32_t i = chain->shared; i < chain->len; i++) {
		tree->open[i + 1] = (uint32_t)tree->count;
		tree->nodes[tree->count++] = (struct node){
			.label = diff_view->labels[chain->labels[i]],
			.depth = i + 1,
			.start = start,
		};
	}
	for (uint32_t i = 0; i <= chain->len; i++)
		for (int side = 0; side < 2; side++)
			tree->nodes[tree->open[i]].counts[side] += chain->counts[side];
}

static double pixels(const struct tree *tree, uint64_t count)
{
	return tree->samples ? (double)count * FRAMES_WIDTH / (double)tree->samples : FRAMES_WIDTH;
}

static bool is_shown(const struct tree *tree, const struct node *node)
{
	return pixels(tree, node->counts[1]) >= tree->least;
}

static void choose_least(struct tree *tree)
{
	size_t shown;

	for (tree->least = LEAST_WIDTH; tree->least < FRAMES_WIDTH; tree->least *= 2) {
		shown = 0;
		for (size_t i = 0; i < tree->count; i++)
			shown += is_shown(tree, &tree->nodes[i]);
		if (shown <= FRAMES_SHOWN_MAX)
			return;
	}
}

static int build_tree(struct tree *tree, const struct diff_view *diff_view, struct failure *why)
{
	size_t total, longest = longest_chain(diff_view, &total);
	struct diff_view_walk walk = { 0 };
	uint64_t start = 0;

	tree->samples = diff_view->trees[1].samples;
	tree->nodes = calloc(total + 1, sizeof(*tree->nodes));
	tree->open = calloc(longest + 1, sizeof(*tree->open));
	if (!tree->nodes || !tree->open)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "draw the flame graph");
	tree->count = 1;
	while (diff_view_next(diff_view, &walk)) {
		add_chain(tree, diff_view, &walk.chain, start);
		start += walk.chain.counts[1];
	}
	choose_least(tree);
	for (size_t i = 0; i < tree->count; i++) {
		if (is_shown(tree, &tree->nodes[i])) {
			if (tree->nodes[i].depth > tree->depth)
				tree->depth = tree->nodes[i].depth;
			tree->largest =
				fmax(tree->largest,
				     fabs(diff_view_change(diff_view, tree->nodes[i].counts)));
		} else if (tree->nodes[i].counts[1]) {
			tree->narrow++;
		}
	}
	return 0;
}

/* ---- Page ------------------------------------------------------------------------------- */

static unsigned height_of(const struct tree *tree)
{
	return HEAD_HEIGHT + (tree->depth + 1) * ROW_HEIGHT + PAD;
}

static void print_embedded(FILE *file, const char *element, const unsigned char *bytes, size_t len)
{
	fprintf(file, "<%s><![CDATA[\n", element);
	fwrite(bytes, 1, len, file);
	fprintf(file, "]]></%s>\n", element);
}

/**
 * Frames that gained are red, frames that lost are blue; a larger change has a stronger colour.
 * @param change From -1 for the largest loss to 1 for as large a gain.
 */
static void print_colour(double change, FILE *file)
{
	static const int plain[3] = { 0xe8, 0xe8, 0xec }, gain[3] = { 0xf2, 0x60, 0x4c },
			 loss[3] = { 0x5a, 0x92, 0xf5 };
	/* The square root makes small changes visible. */
	double strength = sqrt(fmin(fabs(change), 1));

	fputs("#", file);
	for (int i = 0; i < 3; i++)
		fprintf(file, "%02x",
			plain[i] + (int)(strength * ((change > 0 ? gain : loss)[i] - plain[i])));
}

static void print_scale(const struct tree *tree, FILE *file)
{
	enum { STEPS = 9, STEP = 22 };

	fprintf(file, "<g class=\"legend\">\n<text x=\"%d\" y=\"71\">%.2f points</text>\n", PAD,
		-100 * tree->largest);
	for (int i = 0; i < STEPS; i++) {
		fprintf(file, "<rect x=\"%d\" y=\"61\" width=\"%d\" height=\"12\" fill=\"",
			PAD + 110 + i * STEP, STEP);
		print_colour((i - STEPS / 2) / (double)(STEPS / 2), file);
		fputs("\"/>\n", file);
	}
	fprintf(file, "<text x=\"%d\" y=\"71\">%+.2f points</text>\n</g>\n",
		PAD + 120 + STEPS * STEP, 100 * tree->largest);
}

static void print_legend(FILE *file)
{
	unsigned x = PAD;

	fputs("<g class=\"legend\">\n", file);
	for (int i = 0; i < FORMAT_KIND_COUNT; i++) {
		fprintf(file,
			"<rect class=\"%s\" x=\"%u\" y=\"61\" width=\"12\" height=\"12\" rx=\"2\"/>"
			"<text x=\"%u\" y=\"71\">%s</text>\n",
			classes[i], x, x + 18, legends[i]);
		x += 18 + (unsigned)(CHAR_WIDTH * (double)strlen(legends[i])) + 20;
	}
	fputs("</g>\n", file);
}

static void print_head(const struct tree *tree, const struct diff_view *diff_view,
		       const char *title, FILE *file)
{
	uint32_t chains = 0;
	uint64_t gone = 0;

	for (struct diff_view_walk walk = { 0 }; diff_view_next(diff_view, &walk);) {
		chains += walk.chain.counts[1] > 0;
		gone += walk.chain.counts[1] ? 0 : walk.chain.counts[0];
	}
	fprintf(file, "<text id=\"title\" x=\"%d\" y=\"28\">", PAD);
	xml_print(file, title, TITLE_CHARS_MAX);
	fprintf(file,
		"</text>\n<text id=\"subtitle\" x=\"%d\" y=\"48\">%" PRIu64 " samples, %" PRIu32
		" call chains, %" PRIu32 " functions",
		PAD, tree->samples, chains, diff_view->trees[1].label_count);
	if (diff_view->has_base)
		fprintf(file, "; %" PRIu64 " samples before, %.2f%% in call chains that are gone",
			diff_view->trees[0].samples,
			diff_view->trees[0].samples
				? 100.0 * (double)gone / (double)diff_view->trees[0].samples
				: 0);
	if (tree->narrow)
		fprintf(file, "; %zu frames are too narrow to be drawn", tree->narrow);
	fputs("</text>\n", file);
	if (diff_view->has_base)
		print_scale(tree, file);
	else
		print_legend(file);
	fprintf(file,
		"<text id=\"details\" x=\"%d\" y=\"93\">Click a frame to zoom, / to search, Esc to "
		"reset; arrow keys walk.</text>\n"
		"<foreignObject id=\"tools\" x=\"%d\" y=\"10\" width=\"460\" height=\"30\">"
		"<div xmlns=\"http://www.w3.org/1999/xhtml\" style=\"text-align:right\">"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"130\" height=\"16\">"
		"<text id=\"matched\" x=\"128\" y=\"12\" text-anchor=\"end\"></text></svg>"
		"<input id=\"search\" type=\"search\" placeholder=\"search (regexp)\" "
		"aria-label=\"search\"/><button "
		"id=\"reset\">reset</button></div></foreignObject>\n",
		PAD, WIDTH - PAD - 460);
}

/** The first line is the name, the second the rest; the script reads both. */
static void print_title(const struct tree *tree, const struct diff_view *diff_view,
			const struct node *node, FILE *file)
{
	double percent =
		tree->samples ? 100.0 * (double)node->counts[1] / (double)tree->samples : 100;
	double change = 100 * diff_view_change(diff_view, node->counts);

	fputs("<title>", file);
	xml_print(file, node->label ? node->label->text : "all", SIZE_MAX);
	fputs("\n", file);
	if (node->label)
		fprintf(file, "%s, ", legends[node->label->kind]);
	fprintf(file, "%" PRIu64 " samples, %.2f%%", node->counts[1], percent);
	if (diff_view->has_base)
		fprintf(file, ", before %" PRIu64 " samples, %.2f%%, change %+.2f points",
			node->counts[0], percent - change, change);
	fputs("</title>", file);
}

/** Choose a box's colour, by its kind or by its change. */
static void print_fill(const struct tree *tree, const struct diff_view *diff_view,
		       const struct node *node, FILE *file)
{
	if (diff_view->has_base) {
		fputs("fill=\"", file);
		print_colour(tree->largest > 0
				     ? diff_view_change(diff_view, node->counts) / tree->largest
				     : 0,
			     file);
		fputs("\"", file);
	} else {
		fprintf(file, "class=\"%s\"", node->label ? classes[node->label->kind] : "all");
	}
}

static void print_node(const struct tree *tree, const struct diff_view *diff_view,
		       const struct node *node, FILE *file)
{
	double width = pixels(tree, node->counts[1]), left = pixels(tree, node->start);
	unsigned y = (tree->depth - node->depth) * ROW_HEIGHT;
	double chars = (width - 2 * TEXT_INSET) / CHAR_WIDTH;

	if (node->depth == 0)
		left = 0;
	fprintf(file,
		"<g class=\"f\" data-s=\"%" PRIu64 "\" data-c=\"%" PRIu64 "\" data-d=\"%" PRIu32
		"\">",
		node->start, node->counts[1], node->depth);
	print_title(tree, diff_view, node, file);
	fputs("<rect ", file);
	print_fill(tree, diff_view, node, file);
	fprintf(file,
		" x=\"%.4f%%\" y=\"%u\" width=\"%.4f%%\" height=\"%d\" rx=\"2\"/>"
		"<text x=\"%.4f%%\" dx=\"%d\" y=\"%u\">",
		100 * left / FRAMES_WIDTH, y, 100 * width / FRAMES_WIDTH, RECT_HEIGHT,
		100 * left / FRAMES_WIDTH, TEXT_INSET, y + 13);
	if (chars >= LEAST_CHARS)
		xml_print(file, node->label ? node->label->text : "all", (size_t)chars);
	fputs("</text></g>\n", file);
}

/** Write the notes about the recording as a comment for readers of the file. */
static int print_comments(const struct format_profile *profile, FILE *file, struct failure *why)
{
	struct profile_comment comment;

	fputs("<desc>", file);
	for (size_t at = 0; profile_next_comment(profile, &at, &comment);) {
		char *line = strndup(comment.line, comment.len);

		if (!line)
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write comments");
		xml_print(file, line, comment.len);
		putc('\n', file);
		free(line);
	}
	fputs("</desc>\n", file);
	return 0;
}

/** @param profile Source of the comments. */
static int print_page(const struct tree *tree, const struct diff_view *diff_view,
		      const struct format_profile *profile, const char *title, FILE *file,
		      struct failure *why)
{
	unsigned height = height_of(tree);

	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
		"height=\"%u\" data-samples=\"%" PRIu64 "\">\n",
		WIDTH, height, tree->samples);
	fputs("<title>", file);
	xml_print(file, title, TITLE_CHARS_MAX);
	fputs("</title>\n", file);
	if (profile->comments.len && print_comments(profile, file, why))
		return -1;
	print_embedded(file, "style", flamegraph_css, sizeof(flamegraph_css));
	print_head(tree, diff_view, title, file);
	fprintf(file, "<svg id=\"frames\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%u\">\n", PAD,
		HEAD_HEIGHT, FRAMES_WIDTH, height - HEAD_HEIGHT);
	for (size_t i = 0; i < tree->count; i++)
		if (is_shown(tree, &tree->nodes[i]))
			print_node(tree, diff_view, &tree->nodes[i], file);
	fputs("</svg>\n", file);
	print_embedded(file, "script", flamegraph_js, sizeof(flamegraph_js));
	fputs("</svg>\n", file);
	return 0;
}

static int draw(const struct diff_view *diff_view, const struct format_profile *profile,
		const char *title, FILE *file, struct failure *why)
{
	struct tree tree = { 0 };
	int result = build_tree(&tree, diff_view, why);

	if (result == 0)
		result = print_page(&tree, diff_view, profile, title, file, why);
	free(tree.nodes);
	free(tree.open);
	return result;
}

static int svg_print(const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why)
{
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_LINE;
	struct diff_view diff_view;
	int result;

	if (call_tree_need_chains(profile, why) ||
	    diff_view_init(&diff_view, NULL, profile, lines, options, why))
		return -1;
	result = draw(&diff_view, profile, options->title ? options->title : "Flame graph", file,
		      why);
	diff_view_deinit(&diff_view);
	return result;
}

static int svg_diff(const struct format_profile *base, const struct format_profile *profile,
		    const struct format_report_options *options, FILE *file, struct failure *why)
{
	/* Functions, because lines move when a program changes. */
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_FUNCTION;
	struct diff_view diff_view;
	int result;

	if (call_tree_need_chains(base, why) || call_tree_need_chains(profile, why) ||
	    diff_view_init(&diff_view, base, profile, lines, options, why))
		return -1;
	result = draw(&diff_view, profile,
		      options->title ? options->title : "Differential flame graph", file, why);
	diff_view_deinit(&diff_view);
	return result;
}

const struct format_report_ops format_report_svg = {
	.name = "svg",
	.is_view = true,
	.description = "flame graph for a web browser, in one file",
	.print = svg_print,
	.diff = svg_diff,
};
