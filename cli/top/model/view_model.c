/* SPDX-License-Identifier: MIT */
/* What are the rows of each view, and the source of a function? */
#include "cli/top/model/view_model.h"
#include "attach/clock.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* Longest search for a file in one process after the other: keys wait meanwhile. */
	OPEN_NS = 300 * 1000 * 1000,
};

static int no_memory(struct failure *why)
{
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "hold a view");
}

const struct top_row *view_model_row(const struct top_screen *screen)
{
	size_t selected = screen->lists[screen->choice.view].selected;

	if (screen->choice.view == TOP_VIEW_SOURCE || selected >= screen->table.count)
		return NULL;
	return &screen->table.rows[selected];
}

/* ---- Source ----------------------------------------------------------------------------- */

void view_model_forget_source(struct view_source *source)
{
	free(source->chunk);
	top_source_deinit(&source->file);
	free(source->self);
	free(source->all);
	memset(source, 0, sizeof(*source));
}

static int query_lines(const struct top_screen *screen, struct format_live_rows *ret_rows,
		       struct failure *why)
{
	struct format_live_query query = top_table_query(&screen->choice, FORMAT_LIVE_LINES);

	query.filter = NULL;
	/* C functions count for the line that calls them. */
	query.no_natives = true;
	query.native = screen->choice.native;
	query.order = screen->choice.window ? FORMAT_LIVE_WINDOW_SELF : FORMAT_LIVE_SELF;
	return format_live_query(daemon_live_profile(screen->session), &query, ret_rows, why);
}

static bool is_file_line(const struct format_live_row *row)
{
	return row->chunk && row->chunk[0] == '@' && row->line;
}

/* The hottest line of a function, or of all functions. */
static const struct format_live_row *hottest(const struct format_live_rows *rows,
					     const uint32_t *function)
{
	for (size_t i = 0; i < rows->count; i++)
		if (is_file_line(&rows->rows[i]) &&
		    (!function || rows->rows[i].function == *function))
			return &rows->rows[i];
	return NULL;
}

/* Open the file in the chosen process, else in the first process that has it. */
static void open_source(struct top_screen *screen)
{
	const struct daemon_live_header *header = daemon_live_header(screen->session);
	struct view_source *source = &screen->source;
	uint64_t end_ns = clock_now_ns() + OPEN_NS;
	int32_t pid = screen->choice.pid;
	int ret = -1;

	source->why = "there is no process to read it from";
	if (pid)
		ret = source_helper_read(screen->helper, pid, source->chunk, &source->file,
					 &source->why);
	for (size_t i = 0; !pid && ret != 0 && i < header->process_count && clock_now_ns() < end_ns;
	     i++)
		if (header->processes[i].kind == DAEMON_PROCESS_LUAJIT)
			ret = source_helper_read(screen->helper, header->processes[i].pid,
						 source->chunk, &source->file, &source->why);
	if (ret != 0)
		return;
	source->why = NULL;
	source->self = calloc(source->file.line_count + 1, sizeof(*source->self));
	source->all = calloc(source->file.line_count + 1, sizeof(*source->all));
	if (source->self && source->all)
		return;
	top_source_deinit(&source->file);
	source->why = "out of memory";
}

static int show_source(struct top_screen *screen, const char *chunk, uint32_t line,
		       struct failure *why)
{
	char *copy = strdup(chunk);

	if (!copy)
		return no_memory(why);
	view_model_forget_source(&screen->source);
	screen->source.chunk = copy;
	screen->source.wanted = line;
	open_source(screen);
	return 0;
}

int view_model_choose_source(struct top_screen *screen, struct failure *why)
{
	const struct top_row *row = view_model_row(screen);
	const struct format_live_row *line = NULL;
	struct format_live_rows rows;
	int ret = 0;

	if (row && row->chunk && row->chunk[0] == '@' && screen->choice.view == TOP_VIEW_LINES)
		return show_source(screen, row->chunk, row->line, why);
	if (query_lines(screen, &rows, why) != 0)
		return -1;
	if (row && row->chunk && row->chunk[0] == '@')
		line = hottest(&rows, &row->function);
	/* On a frozen screen the id may belong to another function now. */
	if (line && strcmp(line->chunk, row->chunk) != 0)
		line = NULL;
	if (line)
		ret = show_source(screen, line->chunk, line->line, why);
	else if (row && row->chunk && row->chunk[0] == '@')
		ret = show_source(screen, row->chunk, row->line, why);
	else if ((line = hottest(&rows, NULL)) != NULL)
		ret = show_source(screen, line->chunk, line->line, why);
	format_live_rows_deinit(&rows);
	return ret;
}

static void count_lines(struct top_screen *screen, const struct format_live_rows *rows)
{
	struct view_source *source = &screen->source;
	bool window = screen->choice.window;

	memset(source->self, 0, source->file.line_count * sizeof(*source->self));
	memset(source->all, 0, source->file.line_count * sizeof(*source->all));
	source->samples = window ? rows->window_samples : rows->samples;
	for (size_t i = 0; i < rows->count; i++) {
		const struct format_live_row *row = &rows->rows[i];
		uint64_t total = window ? row->count.window_total : row->count.total;
		size_t at = row->line - 1;

		if (!is_file_line(row) || row->line > source->file.line_count ||
		    strcmp(row->chunk, source->chunk) != 0)
			continue;
		source->self[at] += window ? row->count.window_guest : row->count.guest;
		/* Functions on one line may call each other, so limit the sum. */
		source->all[at] = source->all[at] + total < source->samples
					  ? source->all[at] + total
					  : source->samples;
	}
}

static size_t same_line(const void *context, uint64_t id)
{
	const struct view_source *source = context;

	return id < source->file.line_count ? (size_t)id : SIZE_MAX;
}

static int update_source(struct top_screen *screen, size_t height, struct failure *why)
{
	struct top_list *list = &screen->lists[TOP_VIEW_SOURCE];
	struct view_source *source = &screen->source;
	struct format_live_rows rows;

	if (!source->chunk && view_model_choose_source(screen, why) != 0)
		return -1;
	if (source->chunk && !source->why) {
		if (query_lines(screen, &rows, why) != 0)
			return -1;
		count_lines(screen, &rows);
		format_live_rows_deinit(&rows);
	}
	list->id = list->selected;
	list->is_chosen = true;
	if (source->wanted) {
		list->id = source->wanted - 1;
		list->first = list->id > height / 2 ? list->id - height / 2 : 0;
		source->wanted = 0;
	}
	top_list_update(list, source->file.line_count, height, same_line, source);
	return 0;
}

/* ---- Tables ----------------------------------------------------------------------------- */

static int query_tree(const struct top_screen *screen, struct format_live_tree *ret_tree,
		      struct failure *why)
{
	struct format_live_query query = top_table_query(&screen->choice, FORMAT_LIVE_FUNCTIONS);

	return format_live_tree(daemon_live_profile(screen->session), &query, ret_tree, why);
}

static int list_tree(struct top_screen *screen, struct top_table *table, struct failure *why)
{
	struct format_live_tree tree;
	int ret;

	if (query_tree(screen, &tree, why) != 0)
		return -1;
	ret = top_tree_list(table, &tree, &screen->folds, &screen->choice, why);
	format_live_tree_deinit(&tree);
	return ret;
}

static int fill(struct top_screen *screen, struct top_table *table, struct failure *why)
{
	const struct format_live *live = daemon_live_profile(screen->session);

	switch (screen->choice.view) {
	case TOP_VIEW_TREE:
		return list_tree(screen, table, why);
	case TOP_VIEW_CALLS:
		return top_table_calls(table, live, &screen->choice, why);
	case TOP_VIEW_THREADS:
		return top_table_threads(table, live, &screen->choice, why);
	default:
		return top_table_list(table, live, &screen->choice, why);
	}
}

/* ---- Processes -------------------------------------------------------------------------- */

static int compare_samples(const void *left, const void *right)
{
	const struct daemon_process *a = *(const struct daemon_process *const *)left;
	const struct daemon_process *b = *(const struct daemon_process *const *)right;

	return a->samples > b->samples ? -1 : a->samples < b->samples;
}

static int compare_pids(const void *left, const void *right)
{
	const int32_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* Those with most samples, by their numbers. @return How many. */
static size_t busiest(const struct daemon_live_header *header, size_t max, int32_t *ret_pids)
{
	const struct daemon_process **sorted = calloc(header->process_count + 1, sizeof(*sorted));
	size_t count = 0;

	for (size_t i = 0; sorted && i < header->process_count; i++)
		if (header->processes[i].samples)
			sorted[count++] = &header->processes[i];
	if (sorted)
		qsort(sorted, count, sizeof(const struct daemon_process *), compare_samples);
	count = count < max ? count : max;
	for (size_t i = 0; i < count; i++)
		ret_pids[i] = sorted[i]->pid;
	qsort(ret_pids, count, sizeof(*ret_pids), compare_pids);
	free(sorted);
	return count;
}

/* Where several processes are shown together, each has a column as far as the screen has room. */
static int split(struct top_screen *screen, struct top_table *table, size_t max,
		 struct failure *why)
{
	const struct top_choice *choice = &screen->choice;
	int32_t pids[TOP_SPLIT_MAX];
	size_t count;

	if (choice->pid || (choice->view != TOP_VIEW_FUNCTIONS && choice->view != TOP_VIEW_LINES &&
			    choice->view != TOP_VIEW_MODULES))
		return 0;
	count = busiest(daemon_live_header(screen->session),
			max < TOP_SPLIT_MAX ? max : TOP_SPLIT_MAX, pids);
	return count < 2 ? 0
			 : top_table_split(table, daemon_live_profile(screen->session), choice,
					   pids, count, why);
}

int view_model_update(struct top_screen *screen, size_t height, size_t processes,
		      struct failure *why)
{
	struct top_list *list = &screen->lists[screen->choice.view];
	struct top_table table = { 0 };

	screen->is_dirty = false;
	if (screen->choice.view == TOP_VIEW_SOURCE)
		return update_source(screen, height, why);
	if (fill(screen, &table, why) != 0 || split(screen, &table, processes, why) != 0) {
		top_table_deinit(&table);
		return -1;
	}
	top_table_deinit(&screen->table);
	screen->table = table;
	top_list_update(list, table.count, height, top_table_find, &screen->table);
	return 0;
}

int view_model_fold(struct top_screen *screen, bool is_open, bool below, struct failure *why)
{
	const struct top_row *row = view_model_row(screen);
	struct format_live_tree tree;

	if (!row || screen->choice.view != TOP_VIEW_TREE)
		return 0;
	screen->is_dirty = true;
	if (!below) {
		top_folds_set(&screen->folds, row->id, is_open);
		return 0;
	}
	if (query_tree(screen, &tree, why) != 0)
		return -1;
	top_folds_set_below(&screen->folds, &tree, top_tree_find(&tree, row->id), is_open);
	format_live_tree_deinit(&tree);
	return 0;
}
