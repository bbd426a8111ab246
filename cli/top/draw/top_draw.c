/* SPDX-License-Identifier: MIT */
/* How are the list, the names of the views and the help page drawn? */
#include "cli/top/draw/top_draw.h"

#include "cli/top/draw/top_header.h"
#include "cli/top/draw/top_numbers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Wider screens also show counts, or a column for each of some processes. */
	WIDE_COLUMNS = 100,
	BAR_COLUMNS = 10,
	SHARE_COLUMNS = 6,
	COUNT_COLUMNS = 8,
	LOCATION_MIN = 12,
	/* Deeper frames of a tree have this indent. */
	INDENT_MAX = 30,
	/* Shares of hot and warm rows, in thousandths. */
	HOT = 200,
	WARM = 50,
};

static const struct {
	const char *name, *head;
} views[TOP_VIEW_COUNT] = {
	[TOP_VIEW_FUNCTIONS] = { "Functions", "FUNCTION" },
	[TOP_VIEW_LINES] = { "Lines", "LINE OF" },
	[TOP_VIEW_TREE] = { "Tree", "CALL TREE" },
	[TOP_VIEW_CALLS] = { "Callers", "CALLERS AND CALLEES" },
	[TOP_VIEW_MODULES] = { "Modules", "MODULE" },
	[TOP_VIEW_TRACES] = { "Traces", "TRACE" },
	[TOP_VIEW_COROUTINES] = { "Coroutines", "COROUTINE" },
	[TOP_VIEW_THREADS] = { "Processes", "PROCESS, THREAD" },
	[TOP_VIEW_SOURCE] = { "Source", "SOURCE" },
};

size_t top_draw_height(void)
{
	return LINES > TOP_LIST_LINE + 1 ? (size_t)LINES - TOP_LIST_LINE - 1 : 0;
}

void top_draw_at(struct top_screen *screen, int y, int x, enum top_look look)
{
	const char *text;
	struct failure why;

	if (y >= 0 && y < LINES && x >= 0 && x < COLS &&
	    format_text_take(&screen->line, &text, &why) == 0) {
		attrset(screen->terminal.looks[look]);
		mvaddstr(y, x, text);
		attrset(A_NORMAL);
	}
	format_text_clear(&screen->line);
}

void top_draw_line(struct top_screen *screen, int y, enum top_look look)
{
	struct format_text whole = screen->line;
	struct failure why;
	const char *text;

	/* Cut to the width, so that nothing continues on the next line. */
	screen->line = (struct format_text){ 0 };
	if (format_text_take(&whole, &text, &why) == 0)
		top_columns_add_padded(&screen->line, text, (size_t)COLS, TOP_CUT_END,
				       screen->terminal.utf8);
	top_draw_at(screen, y, 0, look);
	format_text_deinit(&screen->line);
	screen->line = whole;
	format_text_clear(&screen->line);
}

void top_draw_text(struct top_screen *screen, const char *text, size_t columns, enum top_cut cut)
{
	top_columns_add(&screen->line, text, columns, cut, screen->terminal.utf8);
}

void top_draw_share(struct top_screen *screen, uint64_t part, uint64_t all)
{
	format_text_addf(&screen->line, "%6.2f ", all ? 100.0 * (double)part / (double)all : 0);
}

static enum top_look heat(uint64_t part, uint64_t all)
{
	uint64_t share = all ? (uint64_t)(1000.0 * (double)part / (double)all) : 0;

	return share >= HOT ? TOP_LOOK_HOT : share >= WARM ? TOP_LOOK_WARM : TOP_LOOK_PLAIN;
}

/* ---- Views and heads -------------------------------------------------------------------- */

/* Width with the digit before the name. */
static int view_width(size_t view)
{
	return 1 + (int)strlen(views[view].name);
}

static void draw_views(struct top_screen *screen)
{
	int x = 0;

	top_draw_line(screen, TOP_HEADER_LINES, TOP_LOOK_PLAIN);
	for (size_t i = 0; i < TOP_VIEW_COUNT; i++) {
		format_text_addf(&screen->line, "%zu%s", i + 1, views[i].name);
		top_draw_at(screen, TOP_HEADER_LINES, x,
			    i == (size_t)screen->choice.view ? TOP_LOOK_MARKED : TOP_LOOK_PLAIN);
		x += view_width(i) + 1;
	}
}

enum top_view top_draw_view_at(int x)
{
	size_t view = 0;

	for (; view < TOP_VIEW_COUNT && x > view_width(view); view++)
		x -= view_width(view) + 1;
	return view < TOP_VIEW_COUNT && x < view_width(view) ? (enum top_view)view : TOP_VIEW_COUNT;
}

static bool is_wide(void)
{
	return COLS >= WIDE_COLUMNS;
}

size_t top_draw_process_columns(void)
{
	/* The narrowest such screen has room for two, as for the two counts. */
	return is_wide() ? 2 + (size_t)(COLS - WIDE_COLUMNS) / (COUNT_COLUMNS + 1) : 0;
}

/* Columns between the shares and the bar. */
static size_t middle_count(const struct top_screen *screen)
{
	size_t processes = screen->choice.view == TOP_VIEW_SOURCE ? 0 : screen->table.split.count;

	return !is_wide() ? 0 : processes ? processes : 2;
}

/* The columns are those of draw_heads(). */
enum top_sort top_draw_column_at(const struct top_screen *screen, int x)
{
	size_t middle = middle_count(screen), count = 2 + middle;
	bool has_counts = middle && !screen->table.split.count;

	for (size_t i = 0; i < count; i++) {
		int width = i < 2 ? SHARE_COLUMNS : COUNT_COLUMNS;

		if (x <= width)
			return i % 2 && (i < 2 || has_counts) ? TOP_SORT_TOTAL : TOP_SORT_SELF;
		x -= width + 1;
	}
	return TOP_SORT_NAME;
}

static bool has_bar(const struct top_screen *screen)
{
	return is_wide() && screen->choice.view != TOP_VIEW_SOURCE;
}

/* The column at which names begin. */
static size_t name_column(const struct top_screen *screen)
{
	return 2 * (SHARE_COLUMNS + 1) + middle_count(screen) * (COUNT_COLUMNS + 1) +
	       (has_bar(screen) ? BAR_COLUMNS + 1 : 0);
}

/* Split the width between names and locations. */
static void share_out(const struct top_screen *screen, size_t *ret_name, size_t *ret_location)
{
	size_t used = name_column(screen), left;

	left = (size_t)COLS > used ? (size_t)COLS - used : 0;
	*ret_location = screen->choice.view == TOP_VIEW_MODULES ? 0 : left * 2 / 5;
	if (*ret_location < LOCATION_MIN)
		*ret_location = 0;
	*ret_name = left > *ret_location ? left - *ret_location - (*ret_location ? 1 : 0) : left;
}

/* Add a right-aligned column head, with a mark if the rows are sorted by it. */
static void add_head(struct top_screen *screen, enum top_sort sort, const char *head,
		     size_t columns)
{
	static const char *const marks[2][2] = { { "v", "^" }, { "\xe2\x96\xbc", "\xe2\x96\xb2" } };
	bool is_up = screen->choice.is_reversed != (sort == TOP_SORT_NAME);
	bool is_sorted = screen->choice.sort == sort && screen->choice.view != TOP_VIEW_SOURCE;

	format_text_addf(&screen->line, "%*s%s%s",
			 columns > strlen(head) ? (int)(columns - strlen(head) - is_sorted) : 0, "",
			 is_sorted ? marks[screen->terminal.utf8][is_up] : "", head);
}

static void add_middle_heads(struct top_screen *screen)
{
	const struct top_split *split = &screen->table.split;

	if (is_wide() && (!split->count || screen->choice.view == TOP_VIEW_SOURCE))
		format_text_addf(&screen->line, " %*s %*s", COUNT_COLUMNS, "SELF", COUNT_COLUMNS,
				 "TOTAL");
	else
		for (size_t i = 0; i < middle_count(screen); i++)
			format_text_addf(&screen->line, " %*d", COUNT_COLUMNS, (int)split->pids[i]);
}

static void draw_heads(struct top_screen *screen)
{
	const struct view_source *source = &screen->source;
	size_t name, location, before;

	share_out(screen, &name, &location);
	add_head(screen, TOP_SORT_SELF, "SELF%", SHARE_COLUMNS);
	format_text_add_string(&screen->line, " ");
	add_head(screen, TOP_SORT_TOTAL, "TOT%", SHARE_COLUMNS);
	add_middle_heads(screen);
	format_text_addf(&screen->line, "%*s", has_bar(screen) ? BAR_COLUMNS + 2 : 1, "");
	before = top_columns_width(screen->line.bytes, screen->terminal.utf8);
	add_head(screen, TOP_SORT_NAME, views[screen->choice.view].head, 0);
	if (screen->choice.view == TOP_VIEW_SOURCE && source->chunk) {
		format_text_add_string(&screen->line, " ");
		top_draw_text(screen, source->chunk + 1, name + location, TOP_CUT_BEGIN);
	} else if (location) {
		before = top_columns_width(screen->line.bytes, screen->terminal.utf8) - before;
		format_text_addf(&screen->line, "%*s LOCATION",
				 name > before ? (int)(name - before) : 0, "");
	}
	top_draw_line(screen, TOP_HEADER_LINES + 1, TOP_LOOK_HEAD);
}

/* ---- Rows ------------------------------------------------------------------------------- */

static void add_shares(struct top_screen *screen, uint64_t self, uint64_t total, uint64_t all)
{
	top_draw_share(screen, self, all);
	top_draw_share(screen, total, all);
}

static void add_counts(struct top_screen *screen, uint64_t self, uint64_t total)
{
	if (is_wide())
		format_text_addf(&screen->line, "%*" PRIu64 " %*" PRIu64 " ", COUNT_COLUMNS, self,
				 COUNT_COLUMNS, total);
}

/* The row's own share of each process's samples. */
static void add_split(struct top_screen *screen, const struct top_row *row)
{
	const struct top_split *split = &screen->table.split;
	const uint64_t *self = &split->self[(size_t)(row - screen->table.rows) * split->count];

	for (size_t i = 0; i < middle_count(screen); i++)
		format_text_addf(&screen->line, "%*.2f ", COUNT_COLUMNS,
				 format_percent(self[i], split->samples[i]));
}

/* In eighths of a column if the terminal has these characters. */
static void add_bar(struct top_screen *screen, uint64_t part, uint64_t all)
{
	static const char *const blocks[] = { "",
					      "\xe2\x96\x8f",
					      "\xe2\x96\x8e",
					      "\xe2\x96\x8d",
					      "\xe2\x96\x8c",
					      "\xe2\x96\x8b",
					      "\xe2\x96\x8a",
					      "\xe2\x96\x89" };
	size_t eighths = all ? (size_t)((double)part / (double)all * BAR_COLUMNS * 8 + 0.5) : 0;
	size_t columns = (eighths < BAR_COLUMNS * 8 ? eighths : BAR_COLUMNS * 8) / 8, rest = 0;

	for (size_t i = 0; i < columns; i++)
		format_text_add_string(&screen->line, screen->terminal.utf8 ? "\xe2\x96\x88" : "#");
	if (screen->terminal.utf8 && columns < BAR_COLUMNS)
		rest = eighths % 8;
	format_text_add_string(&screen->line, blocks[rest]);
	format_text_addf(&screen->line, "%*s ", (int)(BAR_COLUMNS - columns - (rest != 0)), "");
}

/* Add the indent for the depth, and a mark for hidden rows below. */
static void add_indent(const struct top_row *row, struct format_text *text)
{
	static const char *const marks[] = { [TOP_MARK_NONE] = "",
					     [TOP_MARK_OPEN] = "- ",
					     [TOP_MARK_FOLDED] = "+ ",
					     [TOP_MARK_TITLE] = "",
					     [TOP_MARK_CHOSEN] = "* " };
	unsigned depth = row->depth < INDENT_MAX ? row->depth : INDENT_MAX;

	format_text_addf(text, "%*s%s", (int)depth, "", marks[row->mark]);
}

/* The part of a name that is scrolled into view. */
static const char *scrolled(const struct top_screen *screen, const char *name)
{
	size_t len = strlen(name), at = 0;
	uint32_t code;

	for (size_t column = 0; column < screen->shift && at < len; column++) {
		size_t size = format_text_character(name + at, len - at, &code);

		at += size ? size : 1;
	}
	return name + at;
}

static void write_process(const struct top_screen *screen, const struct top_row *row,
			  struct format_text *text)
{
	const struct daemon_live_header *header = daemon_live_header(screen->session);
	const char *name = row->name;

	for (size_t i = 0; i < header->process_count; i++)
		if (header->processes[i].pid == row->pid)
			name = header->processes[i].name;
	format_text_addf(text, "%s [%d]", name, (int)row->pid);
}

static void write_name(const struct top_screen *screen, const struct top_row *row,
		       struct format_text *text)
{
	const struct top_choice *choice = &screen->choice;
	uint64_t all = 0;

	if (choice->view == TOP_VIEW_TREE)
		add_indent(row, text);
	else if (row->depth)
		format_text_add_string(text, "  ");
	if (choice->view != TOP_VIEW_TREE && row->mark == TOP_MARK_CHOSEN)
		format_text_add_string(text, "* ");
	if (choice->view == TOP_VIEW_THREADS && row->pid && !row->tid)
		write_process(screen, row, text);
	else
		format_text_add_string(text, row->name[0] ? scrolled(screen, row->name) : "?");
	if (row->coroutines > 1)
		format_text_addf(text, "  %" PRIu32 " coroutines", row->coroutines);
	/* Several processes may have rows with equal names. */
	if ((choice->view == TOP_VIEW_TRACES || choice->view == TOP_VIEW_COROUTINES) &&
	    daemon_live_header(screen->session)->process_count > 1 && row->pid)
		format_text_addf(text, " [%d]", (int)row->pid);
	for (size_t i = 0; i < FORMAT_COMPILED_COUNT; i++)
		all += row->compiled[i];
	if (choice->view == TOP_VIEW_TRACES && all)
		format_text_addf(text, "  %.0f%% exact",
				 100.0 * (double)row->compiled[FORMAT_COMPILED_EXACT] /
					 (double)all);
}

/* The colour of a function's kind; it is that of the state that a thread has in there. */
static enum top_look kind_look(enum format_kind kind, const char *name)
{
	static const enum top_activity activities[FORMAT_KIND_COUNT] = {
		[FORMAT_KIND_LUA] = TOP_INTERPRETER,
		[FORMAT_KIND_BUILTIN] = TOP_C,
		[FORMAT_KIND_CFUNC] = TOP_C,
		[FORMAT_KIND_TRACE] = TOP_COMPILED,
	};

	if (kind == FORMAT_KIND_PSEUDO && strncmp(name, "[gc", 3) == 0)
		return TOP_LOOK_STATE_0 + TOP_GC;
	if (kind == FORMAT_KIND_PSEUDO && strncmp(name, "[jit", 4) == 0)
		return TOP_LOOK_STATE_0 + TOP_RECORDING;
	if (format_kind_is_native(kind) || kind >= FORMAT_KIND_PSEUDO)
		return TOP_LOOK_PLAIN;
	return TOP_LOOK_STATE_0 + (enum top_look)activities[kind];
}

/* Whether the rows of a view are functions. */
static bool has_kinds(enum top_view view)
{
	return view == TOP_VIEW_FUNCTIONS || view == TOP_VIEW_LINES || view == TOP_VIEW_TREE ||
	       view == TOP_VIEW_CALLS;
}

static void draw_row(struct top_screen *screen, const struct top_row *row, int y, bool is_selected)
{
	uint64_t all = screen->table.samples;
	struct format_text name = { 0 };
	size_t name_columns, location_columns;

	share_out(screen, &name_columns, &location_columns);
	if (row->mark == TOP_MARK_TITLE) {
		format_text_addf(&screen->line, "%14s%s", "", row->name);
		top_draw_line(screen, y, is_selected ? TOP_LOOK_SELECTED : TOP_LOOK_TITLE);
		return;
	}
	add_shares(screen, row->self, row->total, all);
	if (screen->table.split.count)
		add_split(screen, row);
	else
		add_counts(screen, row->self, row->total);
	if (has_bar(screen))
		add_bar(screen, screen->choice.view == TOP_VIEW_TREE ? row->total : row->self, all);
	write_name(screen, row, &name);
	format_text_add(&name, "", 0);
	if (!name.broken)
		top_columns_add_padded(&screen->line, name.bytes, name_columns, TOP_CUT_END,
				       screen->terminal.utf8);
	if (location_columns) {
		format_text_add_string(&screen->line, " ");
		top_draw_text(screen, row->location, location_columns, TOP_CUT_BEGIN);
	}
	top_draw_line(screen, y, is_selected ? TOP_LOOK_SELECTED : heat(row->self, all));
	if (!is_selected && has_kinds(screen->choice.view) && !name.broken) {
		top_columns_add(&screen->line, name.bytes, name_columns, TOP_CUT_END,
				screen->terminal.utf8);
		top_draw_at(screen, y, (int)name_column(screen), kind_look(row->kind, row->name));
	}
	format_text_deinit(&name);
}

static void draw_source_row(struct top_screen *screen, size_t index, int y, bool is_selected)
{
	const struct view_source *source = &screen->source;
	char *text = top_source_line(&source->file, index + 1);
	uint64_t self = source->self[index], all = source->all[index];

	if (all) {
		add_shares(screen, self, all, source->samples);
		add_counts(screen, self, all);
	} else {
		format_text_addf(&screen->line, "%*s", (int)name_column(screen), "");
	}
	format_text_addf(&screen->line, "%6zu  ", index + 1);
	if (text)
		top_draw_text(screen, scrolled(screen, text), (size_t)COLS, TOP_CUT_END);
	free(text);
	top_draw_line(screen, y, is_selected ? TOP_LOOK_SELECTED : heat(self, source->samples));
}

/* Say why there are no rows. */
static void draw_empty(struct top_screen *screen)
{
	const struct view_source *source = &screen->source;

	if (screen->choice.view == TOP_VIEW_SOURCE && source->why && source->chunk) {
		format_text_add_string(&screen->line, "  ");
		top_draw_text(screen, source->chunk, (size_t)COLS / 2, TOP_CUT_BEGIN);
		format_text_addf(&screen->line, ": %s", source->why);
	} else if (screen->choice.view == TOP_VIEW_SOURCE) {
		format_text_add_string(&screen->line, "  no sample in a Lua file yet");
	} else if (screen->choice.filter[0]) {
		format_text_add_string(&screen->line, "  nothing matches the filter");
	} else if (screen->choice.view == TOP_VIEW_TRACES) {
		format_text_add_string(&screen->line, "  no sample in compiled code yet");
	} else if (screen->choice.view == TOP_VIEW_COROUTINES) {
		format_text_add_string(&screen->line, "  no sample in Lua yet");
	} else {
		format_text_add_string(&screen->line, "  no sample yet");
	}
	top_draw_line(screen, TOP_LIST_LINE, TOP_LOOK_DIM);
}

static void draw_list(struct top_screen *screen)
{
	struct top_list *list = &screen->lists[screen->choice.view];
	size_t height = top_draw_height();

	for (size_t i = 0; i < height; i++) {
		size_t at = list->first + i;
		int y = TOP_LIST_LINE + (int)i;

		if (at >= list->count)
			top_draw_line(screen, y, TOP_LOOK_PLAIN);
		else if (screen->choice.view == TOP_VIEW_SOURCE)
			draw_source_row(screen, at, y, at == list->selected);
		else
			draw_row(screen, &screen->table.rows[at], y, at == list->selected);
	}
	if (list->count == 0)
		draw_empty(screen);
}

/* ---- Last line and help ----------------------------------------------------------------- */

static void add_chosen(struct top_screen *screen)
{
	const struct top_choice *choice = &screen->choice;

	format_text_addf(&screen->line, "%" PRIu64 " samples %s", screen->table.samples,
			 choice->window ? "of the last refreshes" : "since start");
	if (choice->native == FORMAT_NATIVE_ALL)
		format_text_add_string(&screen->line, ", all native code");
	else if (choice->native == FORMAT_NATIVE_NONE)
		format_text_add_string(&screen->line, ", no native code");
	if (choice->filter[0]) {
		format_text_add_string(&screen->line, ", filter ");
		top_draw_text(screen, choice->filter, 20, TOP_CUT_END);
	}
	if (choice->pid)
		format_text_addf(&screen->line, ", only %s %d", choice->tid ? "thread" : "process",
				 (int)(choice->tid ? choice->tid : choice->pid));
	if (screen->is_frozen)
		format_text_add_string(&screen->line, ", FROZEN");
	format_text_add_string(&screen->line, "  ");
}

static void draw_bottom(struct top_screen *screen)
{
	static const char *const labels[] = {
		[TOP_PROMPT_FILTER] = "Filter: ",
		[TOP_PROMPT_FORMAT] = "Write as: p pprof  s sysprof  f folded stacks  v SVG flame "
				      "graph  Esc cancel",
		[TOP_PROMPT_FILE] = "Write to: ",
	};
	enum top_look look = TOP_LOOK_PLAIN;

	if (screen->prompt != TOP_PROMPT_NONE) {
		format_text_add_string(&screen->line, labels[screen->prompt]);
		if (screen->prompt != TOP_PROMPT_FORMAT) {
			top_draw_text(screen, screen->typed, (size_t)COLS - 12, TOP_CUT_BEGIN);
			format_text_add_string(&screen->line, "_");
		}
		look = TOP_LOOK_MARKED;
	} else if (screen->note[0]) {
		top_draw_text(screen, screen->note, (size_t)COLS, TOP_CUT_END);
		look = TOP_LOOK_NOTE;
	} else {
		add_chosen(screen);
		format_text_add_string(&screen->line, "|  h help  / filter  w write  q quit");
	}
	top_draw_line(screen, LINES - 1, look);
}

static void draw_help(struct top_screen *screen)
{
	for (int y = 0; y < LINES; y++) {
		size_t at = screen->help.first + (size_t)y - 1;
		const struct top_key *key = at < top_key_count ? &top_keys[at] : NULL;

		if (y == 0) {
			format_text_add_string(
				&screen->line,
				"ljtop " LJPROF_VERSION
				"   keys: Up and Down scroll, any other key leaves this page");
			top_draw_line(screen, y, TOP_LOOK_TITLE);
		} else if (key && !key->names) {
			format_text_add_string(&screen->line, key->help);
			top_draw_line(screen, y, TOP_LOOK_HEAD);
		} else {
			if (key)
				format_text_addf(&screen->line, "  %-12s %s", key->names,
						 key->help);
			top_draw_line(screen, y, TOP_LOOK_PLAIN);
		}
	}
}

void top_draw(struct top_screen *screen)
{
	if (COLS < TOP_COLUMNS_MIN || LINES < TOP_LINES_MIN) {
		erase();
		format_text_addf(&screen->line, "too small: %d x %d at least", TOP_COLUMNS_MIN,
				 TOP_LINES_MIN);
		top_draw_line(screen, 0, TOP_LOOK_PLAIN);
	} else if (screen->is_help) {
		draw_help(screen);
	} else {
		top_draw_header(screen);
		draw_views(screen);
		draw_heads(screen);
		draw_list(screen);
		draw_bottom(screen);
	}
	refresh();
}
