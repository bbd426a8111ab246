/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/fold.h"
#include "format/reports.h"
#include "format/xml.h"

#include "flamegraph_css.h"
#include "flamegraph_js.h"

/* The picture in pixels. The script fits it to the window; this is what other viewers show. */
#define WIDTH	     1200
#define PAD	     10
#define FRAMES_WIDTH (WIDTH - 2 * PAD)
#define HEAD_HEIGHT  104
#define ROW_HEIGHT   18
#define RECT_HEIGHT  17
#define CHAR_WIDTH   7.23
#define TEXT_INSET   3

/** Narrower frames are left out, and named in the subtitle by their number. */
#define LEAST_WIDTH 0.1

/** Shorter labels tell nothing. */
#define LEAST_CHARS 3

/** Titles are for people. */
#define TITLE_CHARS_MAX 100

static const char *const classes[FORMAT_KIND_COUNT] = {
	"native", "lua", "fast", "cfunc", "trace", "pseudo", "process",
};

static const char *const legends[FORMAT_KIND_COUNT] = {
	"native", "Lua", "fast function", "C function", "trace", "activity", "process",
};

/** A box: all samples that share the chain up to here. Depth 0 is the root box. */
struct node {
	const struct fold_label *label; /* NULL for the root box. */
	uint32_t depth;
	uint64_t start, count;
};

/** Boxes in depth-first order. */
struct tree {
	struct node *nodes;
	size_t count;
	uint32_t *open; /* Indexes of the boxes around the current chain, by depth. */
	uint32_t depth; /* Deepest box that is drawn. */
	size_t narrow;
	uint64_t samples;
};

/* ---- Boxes ------------------------------------------------------------------------------ */

static size_t longest_chain(const struct fold *fold, size_t *ret_total)
{
	size_t longest = 0, total = 0;

	for (uint32_t i = 0; i < fold->chain_count; i++) {
		total += fold->chains[i].len;
		if (fold->chains[i].len > longest)
			longest = fold->chains[i].len;
	}
	*ret_total = total;
	return longest;
}

/** Chains are sorted, so those that share boxes are neighbours. */
static void add_chain(struct tree *tree, const struct fold *fold, uint32_t index, uint64_t start)
{
	const struct fold_chain *chain = &fold->chains[index];
	const struct fold_chain *last = index ? &fold->chains[index - 1] : NULL;
	uint32_t common = 0;

	while (last && common < last->len && common < chain->len &&
	       last->labels[common] == chain->labels[common])
		common++;
	for (uint32_t i = common; i < chain->len; i++) {
		tree->open[i + 1] = (uint32_t)tree->count;
		tree->nodes[tree->count++] = (struct node){
			.label = &fold->labels[chain->labels[i]],
			.depth = i + 1,
			.start = start,
		};
	}
	for (uint32_t i = 0; i <= chain->len; i++)
		tree->nodes[tree->open[i]].count += chain->count;
}

static double pixels(const struct tree *tree, uint64_t count)
{
	return tree->samples ? (double)count * FRAMES_WIDTH / (double)tree->samples : FRAMES_WIDTH;
}

static int build_tree(struct tree *tree, const struct fold *fold, struct failure *why)
{
	size_t total, longest = longest_chain(fold, &total);
	uint64_t start = 0;

	tree->samples = fold->samples;
	tree->nodes = calloc(total + 1, sizeof(*tree->nodes));
	tree->open = calloc(longest + 1, sizeof(*tree->open));
	if (!tree->nodes || !tree->open)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "draw the flame graph");
	tree->count = 1;
	for (uint32_t i = 0; i < fold->chain_count; i++) {
		add_chain(tree, fold, i, start);
		start += fold->chains[i].count;
	}
	for (size_t i = 0; i < tree->count; i++) {
		if (pixels(tree, tree->nodes[i].count) < LEAST_WIDTH)
			tree->narrow++;
		else if (tree->nodes[i].depth > tree->depth)
			tree->depth = tree->nodes[i].depth;
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

static void print_head(const struct tree *tree, const struct fold *fold, const char *title,
		       FILE *file)
{
	fprintf(file, "<text id=\"title\" x=\"%d\" y=\"28\">", PAD);
	xml_print(file, title, TITLE_CHARS_MAX);
	fprintf(file,
		"</text>\n<text id=\"subtitle\" x=\"%d\" y=\"48\">%" PRIu64 " samples, %" PRIu32
		" call chains, %" PRIu32 " functions",
		PAD, fold->samples, fold->chain_count, fold->label_count);
	if (tree->narrow)
		fprintf(file, "; %zu frames are too narrow to be drawn", tree->narrow);
	fputs("</text>\n", file);
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

/** Name in the first line, the rest in the second; the script reads both. */
static void print_title(const struct tree *tree, const struct node *node, FILE *file)
{
	double percent = tree->samples ? 100.0 * (double)node->count / (double)tree->samples : 100;

	fputs("<title>", file);
	xml_print(file, node->label ? node->label->text : "all", SIZE_MAX);
	fputs("\n", file);
	if (node->label)
		fprintf(file, "%s, ", legends[node->label->kind]);
	fprintf(file, "%" PRIu64 " samples, %.2f%%</title>", node->count, percent);
}

static void print_node(const struct tree *tree, const struct node *node, FILE *file)
{
	double width = pixels(tree, node->count), left = pixels(tree, node->start);
	unsigned y = (tree->depth - node->depth) * ROW_HEIGHT;
	double chars = (width - 2 * TEXT_INSET) / CHAR_WIDTH;

	if (node->depth == 0)
		left = 0;
	fprintf(file,
		"<g class=\"f\" data-s=\"%" PRIu64 "\" data-c=\"%" PRIu64 "\" data-d=\"%" PRIu32
		"\">",
		node->start, node->count, node->depth);
	print_title(tree, node, file);
	fprintf(file,
		"<rect class=\"%s\" x=\"%.4f%%\" y=\"%u\" width=\"%.4f%%\" height=\"%d\" rx=\"2\"/>"
		"<text x=\"%.4f%%\" dx=\"%d\" y=\"%u\">",
		node->label ? classes[node->label->kind] : "all", 100 * left / FRAMES_WIDTH, y,
		100 * width / FRAMES_WIDTH, RECT_HEIGHT, 100 * left / FRAMES_WIDTH, TEXT_INSET,
		y + 13);
	if (chars >= LEAST_CHARS)
		xml_print(file, node->label ? node->label->text : "all", (size_t)chars);
	fputs("</text></g>\n", file);
}

static void print_page(const struct tree *tree, const struct fold *fold, const char *title,
		       FILE *file)
{
	unsigned height = height_of(tree);

	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
		"height=\"%u\" data-samples=\"%" PRIu64 "\">\n",
		WIDTH, height, fold->samples);
	fputs("<title>", file);
	xml_print(file, title, TITLE_CHARS_MAX);
	fputs("</title>\n", file);
	print_embedded(file, "style", flamegraph_css, sizeof(flamegraph_css));
	print_head(tree, fold, title, file);
	fprintf(file, "<svg id=\"frames\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%u\">\n", PAD,
		HEAD_HEIGHT, FRAMES_WIDTH, height - HEAD_HEIGHT);
	for (size_t i = 0; i < tree->count; i++)
		if (pixels(tree, tree->nodes[i].count) >= LEAST_WIDTH)
			print_node(tree, &tree->nodes[i], file);
	fputs("</svg>\n", file);
	print_embedded(file, "script", flamegraph_js, sizeof(flamegraph_js));
	fputs("</svg>\n", file);
}

static int svg_print(const struct format_profile *profile,
		     const struct format_report_options *options, FILE *file, struct failure *why)
{
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_LINE;
	struct tree tree = { 0 };
	struct fold fold;
	int result;

	if (report_need_chains(profile, why) || fold_init_as(&fold, profile, lines, options, why))
		return -1;
	result = build_tree(&tree, &fold, why);
	if (result == 0)
		print_page(&tree, &fold, options->title ? options->title : "Flame graph", file);
	free(tree.nodes);
	free(tree.open);
	fold_deinit(&fold);
	return result;
}

const struct format_report_ops format_report_svg = {
	.name = "svg",
	.description = "flame graph for a web browser, in one file",
	.print = svg_print,
};
