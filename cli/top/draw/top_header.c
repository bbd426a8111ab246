/* SPDX-License-Identifier: MIT */
/* How is the header drawn: the state of the processes and of the sampling? */
#include "cli/top/draw/top_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/processes/user_names.h"
#include "cli/top/draw/top_draw.h"
#include "cli/top/draw/top_numbers.h"
#include "cli/top/draw/top_pieces.h"

enum {
	/* Refreshes that shares and rates cover. */
	RECENT = 10,
	SPARK_MIN = 5,
	HISTORY_COLUMNS_MAX = 200,
	NAME_COLUMNS = 24,
	/* Time that the sparkline of the states covers, if the history is that long; other
	 * sparklines are shorter. */
	HISTORY_S = 120,
	NS_PER_MS = 1000 * 1000,
};

/** What threads do on a processor, in the order of the screen. */
static const struct {
	enum top_activity activity;
	const char *name;
	bool is_rare; /* Shown only if there is some. */
} parts[] = {
	{ TOP_INTERPRETER, "Lua", false },
	{ TOP_COMPILED, "compiled", false },
	{ TOP_C, "C", false },
	{ TOP_GC, "GC", false },
	{ TOP_RECORDING, "compiler", false },
	{ TOP_EXITS, "trace exits", true },
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/** Sums of the last refreshes. */
struct recent {
	uint64_t parts[TOP_ACTIVITY_COUNT], running;
	uint64_t span_ns, cpu_ns, created, aborted, allocated;
};

static void add_history_point(struct recent *recent, const struct daemon_history_point *point)
{
	uint64_t counts[TOP_ACTIVITY_COUNT];

	top_count_activities(point->states, point->outcomes, counts);
	for (size_t i = 0; i < TOP_ACTIVITY_COUNT; i++)
		recent->parts[i] += counts[i];
	recent->span_ns += point->span_ns;
	recent->cpu_ns += point->sampler_cpu_ns + point->own_cpu_ns;
	recent->created += point->created;
	recent->aborted += point->aborted;
	recent->allocated += point->allocated_bytes;
}

static struct recent sum_up(const struct daemon_live *session)
{
	struct recent recent = { 0 };

	for (size_t age = 0; age < RECENT; age++) {
		const struct daemon_history_point *point = daemon_live_history(session, age);

		if (point)
			add_history_point(&recent, point);
	}
	for (size_t i = 0; i < PARTS; i++)
		recent.running += recent.parts[parts[i].activity];
	return recent;
}

static double per_second(uint64_t count, const struct recent *recent)
{
	return recent->span_ns ? (double)count * 1e9 / (double)recent->span_ns : 0;
}

/* ---- Sparklines ------------------------------------------------------------------------- */

/** One column of the sparklines: some refreshes. */
struct column {
	uint64_t parts[TOP_ACTIVITY_COUNT];
	uint64_t heap_bytes; /* of the newest refresh */
};

/** The last minutes, newest column last. */
struct history {
	struct column columns[HISTORY_COLUMNS_MAX];
	size_t count;
};

/* Each column covers a fixed span of the clock, so its contents do not change while time passes. */
static uint64_t span_of(const struct top_screen *screen, size_t columns)
{
	uint64_t delay_ns = (uint64_t)screen->options.delay_ms * NS_PER_MS;
	uint64_t whole_ns = HISTORY_S * (uint64_t)1000 * NS_PER_MS;
	uint64_t span_ns = columns ? whole_ns / columns : whole_ns;

	return span_ns > delay_ns ? (span_ns + delay_ns - 1) / delay_ns * delay_ns : delay_ns;
}

static void add_to_column(const struct daemon_history_point *point, struct column *column)
{
	uint64_t counts[TOP_ACTIVITY_COUNT];

	top_count_activities(point->states, point->outcomes, counts);
	for (size_t i = 0; i < TOP_ACTIVITY_COUNT; i++)
		column->parts[i] += counts[i];
}

/* @param columns Maximum, up to HISTORY_COLUMNS_MAX. */
static void collect_history(const struct top_screen *screen, size_t columns,
			    struct history *ret_history)
{
	uint64_t span_ns = span_of(screen, columns), last = 0;
	struct column newest_first[HISTORY_COLUMNS_MAX] = { 0 };
	const struct daemon_history_point *point;
	size_t count = 0;

	for (size_t age = 0; (point = daemon_live_history(screen->session, age)); age++) {
		uint64_t span = point->time_ns / span_ns;

		if (count == 0 || span != last) {
			if (count == columns)
				break;
			newest_first[count++] = (struct column){ .heap_bytes = point->heap_bytes };
		}
		last = span;
		add_to_column(point, &newest_first[count - 1]);
	}
	ret_history->count = count;
	for (size_t i = 0; i < count; i++)
		ret_history->columns[i] = newest_first[count - 1 - i];
}

/* Running threads in thousandths of all sampled threads. */
static uint64_t busy_of(const struct column *column)
{
	uint64_t all = 0;

	for (size_t i = 0; i < TOP_ACTIVITY_COUNT; i++)
		all += column->parts[i];
	return all ? 1000 * (all - column->parts[TOP_UNSCHEDULED] - column->parts[TOP_IDLE]) / all
		   : 0;
}

static void add_heap_history(struct top_screen *screen, const struct history *history,
			     size_t columns, struct format_text *text)
{
	uint64_t values[HISTORY_COLUMNS_MAX];

	for (size_t i = 0; i < history->count; i++)
		values[i] = history->columns[i].heap_bytes;
	top_columns_add_spark(text, values, history->count, 0, columns, screen->terminal.utf8);
}

/* The most frequent activity of a running VM. */
static enum top_activity main_activity(const struct column *column)
{
	enum top_activity most = TOP_INTERPRETER;

	for (int i = 0; i < TOP_UNSCHEDULED; i++)
		if (column->parts[i] > column->parts[most])
			most = (enum top_activity)i;
	return most;
}

/* The height is the share of running threads, the colour their most frequent activity. */
static void draw_states(struct top_screen *screen, const struct history *history, int x,
			size_t columns)
{
	size_t shown = history->count < columns ? history->count : columns;

	x += (int)(columns - shown);
	for (size_t i = history->count - shown; i < history->count; i++) {
		const struct column *column = &history->columns[i];
		uint64_t busy = busy_of(column);

		top_columns_add_spark(&screen->line, &busy, 1, 1000, 1, screen->terminal.utf8);
		top_draw_at(screen, 1, x++,
			    TOP_LOOK_STATE_0 + (enum top_look)main_activity(column));
	}
}

/* ---- The processes ---------------------------------------------------------------------- */

static const struct daemon_process *chosen_process(const struct top_screen *screen,
						   const struct daemon_live_header *header)
{
	for (size_t i = 0; screen->choice.pid && i < header->process_count; i++)
		if (header->processes[i].pid == screen->choice.pid)
			return &header->processes[i];
	return &header->processes[0];
}

/* Whose processes they are. */
static void add_users(struct top_pieces *pieces, const struct daemon_live_header *header,
		      const struct daemon_process *only)
{
	const struct daemon_process *one = only ? only : &header->processes[0];
	const struct daemon_process *other = NULL;

	for (size_t i = 0; !only && !other && i < header->process_count; i++)
		if (header->processes[i].uid != one->uid)
			other = &header->processes[i];
	if (other)
		top_pieces_set_brief(top_pieces_add(pieces, TOP_LOOK_TITLE, " (several users)"), 1,
				     "%s", "");
	else
		top_pieces_set_brief(
			top_pieces_add(pieces, TOP_LOOK_TITLE, " (%s)", user_names_of(one->uid)), 1,
			"%s", "");
}

static void add_processes(struct top_screen *screen, struct top_pieces *pieces,
			  const struct daemon_live_header *header)
{
	bool is_one = header->process_count == 1 || screen->choice.pid;
	const struct daemon_process *process;
	struct format_text name = { 0 };
	struct failure why;
	const char *text;

	if (header->process_count == 0) {
		top_pieces_add(pieces, TOP_LOOK_TITLE, "ljtop  no process yet");
		return;
	}
	process = chosen_process(screen, header);
	top_columns_add(&name, process->name, NAME_COLUMNS, TOP_CUT_END, screen->terminal.utf8);
	if (format_text_take(&name, &text, &why) != 0)
		text = "?";
	if (!is_one)
		top_pieces_add(pieces, TOP_LOOK_TITLE, "ljtop  %s, %zu processes", text,
			       header->process_count);
	else if (screen->choice.tid)
		top_pieces_add(pieces, TOP_LOOK_TITLE, "ljtop  %s [%d] thread %d", text,
			       (int)process->pid, (int)screen->choice.tid);
	else
		top_pieces_add(pieces, TOP_LOOK_TITLE, "ljtop  %s [%d]", text, (int)process->pid);
	format_text_deinit(&name);
	if (is_one && process->ended)
		top_pieces_add(pieces, TOP_LOOK_TITLE, " ended");
	else
		add_users(pieces, header, is_one ? process : NULL);
}

static const struct daemon_vm *first_vm(const struct top_screen *screen,
					const struct daemon_live_header *header)
{
	for (size_t i = 0; screen->choice.pid && i < header->vm_count; i++)
		if (header->vms[i].pid == screen->choice.pid)
			return &header->vms[i];
	return header->vm_count ? &header->vms[0] : NULL;
}

/* "LuaJIT 2.1, OpenResty": of the version "LuaJIT 2.1.1700008891" the first two numbers. */
static void add_version(struct top_pieces *pieces, const struct daemon_vm *vm)
{
	size_t len = strcspn(vm->version, ".");
	bool is_main_line = !vm->fork[0] || strcmp(vm->fork, "LuaJIT") == 0;
	struct top_piece *piece;

	len += vm->version[len] ? 1 + strcspn(vm->version + len + 1, ".-") : 0;
	piece = top_pieces_add(pieces, TOP_LOOK_PLAIN, "  %.*s%s%s", (int)len, vm->version,
			       is_main_line ? "" : ", ", is_main_line ? "" : vm->fork);
	top_pieces_set_brief(piece, 2, "%s", "");
}

static void draw_title(struct top_screen *screen, const struct daemon_live_header *header,
		       const struct recent *recent)
{
	const struct daemon_vm *vm = first_vm(screen, header);
	struct top_pieces pieces = { .count = 0 };

	add_processes(screen, &pieces, header);
	if (vm && vm->version[0])
		add_version(&pieces, vm);
	top_pieces_add(&pieces, TOP_LOOK_PLAIN, "  %u Hz %s, %.1f %% CPU", header->rate_hz,
		       header->capture == DAEMON_CAPTURE_KERNEL ? "(kernel)" : "(stops)",
		       format_percent(recent->cpu_ns, recent->span_ns));
	top_pieces_draw(screen, 0, &pieces);
}

/* ---- What they do ----------------------------------------------------------------------- */

static size_t spark_columns(void)
{
	size_t columns = (size_t)COLS / 12;

	return columns < SPARK_MIN	       ? SPARK_MIN
	       : columns > HISTORY_COLUMNS_MAX ? HISTORY_COLUMNS_MAX
					       : columns;
}

/* Processor time of the threads in percent of one processor. */
static double used_percent(const struct daemon_live_header *header, const struct recent *recent)
{
	double ticks = (double)recent->span_ns * header->rate_hz / 1e9;

	return ticks > 0 ? 100 * (double)recent->running / ticks : 0;
}

static void draw_use(struct top_screen *screen, const struct daemon_live_header *header,
		     const struct recent *recent, const struct history *history)
{
	uint64_t waiting = recent->parts[TOP_UNSCHEDULED], ready = recent->running + waiting;
	struct top_pieces pieces = { .count = 0 };
	size_t spark = spark_columns(), used;

	top_pieces_add(&pieces, TOP_LOOK_PLAIN, "CPU %.0f %% ", used_percent(header, recent));
	used = top_pieces_width(screen, &pieces);
	top_pieces_add(&pieces, TOP_LOOK_PLAIN, "%*s ", (int)spark, "");
	for (size_t i = 0; i < PARTS; i++) {
		enum top_look look = TOP_LOOK_STATE_0 + (enum top_look)parts[i].activity;
		uint64_t part = recent->parts[parts[i].activity];
		double percent = format_percent(part, recent->running);

		if (!parts[i].is_rare)
			top_pieces_add(&pieces, look, " %s %.0f", parts[i].name, percent);
		else if (part)
			top_pieces_set_brief(
				top_pieces_add(&pieces, look, " %s %.0f", parts[i].name, percent),
				2, "%s", "");
	}
	top_pieces_add(&pieces, TOP_LOOK_PLAIN, " %%");
	if (waiting)
		top_pieces_set_brief(top_pieces_add(&pieces, TOP_LOOK_PLAIN,
						    "  waiting for CPU %.0f %%",
						    format_percent(waiting, ready)),
				     1, "  waiting %.0f %%", format_percent(waiting, ready));
	top_pieces_draw(screen, 1, &pieces);
	draw_states(screen, history, (int)used, spark);
}

/* What the collector does, in a word. */
static const char *phase_word(unsigned phase)
{
	static const struct {
		const char *name, *word;
	} words[] = {
		{ "pause", "GC idle" },	 { "propagate", "marking" },
		{ "atomic", "marking" }, { "sweep string", "sweeping" },
		{ "sweep", "sweeping" }, { "finalize", "finalizing" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, daemon_gc_phase_name(phase)) == 0)
			return words[i].word;
	return "";
}

/* Trouble that a reader of the numbers must know. */
static void add_trouble(struct top_pieces *pieces, const struct daemon_live_header *header)
{
	uint64_t stopped = 0;

	for (int i = 0; i < DAEMON_REASON_COUNT; i++)
		stopped += header->reasons[i].samples;
	if (header->capture == DAEMON_CAPTURE_KERNEL && stopped)
		top_pieces_add(pieces, TOP_LOOK_PLAIN, "  %" PRIu64 " by stops", stopped);
	if (header->missed_ticks)
		top_pieces_add(pieces, TOP_LOOK_PLAIN, "  missed %" PRIu64, header->missed_ticks);
	if (header->dropped)
		top_pieces_add(pieces, TOP_LOOK_PLAIN, "  dropped %" PRIu64, header->dropped);
}

static void add_heap(struct top_screen *screen, struct top_pieces *pieces,
		     const struct recent *recent, const struct history *history)
{
	const struct daemon_history_point *point = daemon_live_history(screen->session, 0);
	struct format_text spark = { 0 };
	struct failure why;
	const char *text;
	char bytes[16];

	top_columns_bytes(bytes, sizeof(bytes), point ? point->heap_bytes : 0);
	add_heap_history(screen, history, spark_columns(), &spark);
	if (format_text_take(&spark, &text, &why) != 0)
		text = "";
	top_pieces_set_brief(top_pieces_add(pieces, TOP_LOOK_PLAIN, "heap %s %s", bytes, text), 5,
			     "heap %s", bytes);
	format_text_deinit(&spark);
	if (!point || !point->has_allocated)
		return;
	top_columns_bytes(bytes, sizeof(bytes), (uint64_t)per_second(recent->allocated, recent));
	top_pieces_set_brief(top_pieces_add(pieces, TOP_LOOK_PLAIN, " +%s/s", bytes), 4, "%s", "");
}

static void add_traces(struct top_screen *screen, struct top_pieces *pieces,
		       const struct daemon_vm *vm, const struct recent *recent)
{
	const struct daemon_history_point *point = daemon_live_history(screen->session, 0);
	struct top_piece *piece;

	if (vm && vm->has_traces && !vm->jit_on) {
		top_pieces_add(pieces, TOP_LOOK_PLAIN, "  compiler off");
		return;
	}
	piece = top_pieces_add(pieces, TOP_LOOK_PLAIN, "  traces %" PRIu64,
			       point ? point->traces : 0);
	piece = top_pieces_add(pieces, TOP_LOOK_PLAIN, ", +%.0f/s",
			       per_second(recent->created, recent));
	top_pieces_set_brief(piece, 2, "%s", "");
	piece = top_pieces_add(pieces, TOP_LOOK_PLAIN, ", %.1f aborts/s",
			       per_second(recent->aborted, recent));
	top_pieces_set_brief(piece, 3, "%s", "");
}

static void draw_heap(struct top_screen *screen, const struct daemon_live_header *header,
		      const struct recent *recent, const struct history *history)
{
	const struct daemon_vm *vm = first_vm(screen, header);
	struct top_pieces pieces = { .count = 0 };

	add_heap(screen, &pieces, recent, history);
	if (vm && vm->has_heap)
		top_pieces_set_brief(
			top_pieces_add(&pieces, TOP_LOOK_PLAIN, "  %s", phase_word(vm->gc_phase)),
			1, "%s", "");
	add_traces(screen, &pieces, vm, recent);
	top_pieces_add(&pieces, TOP_LOOK_PLAIN, "  full chains %.0f %%",
		       top_full_percent(header->outcomes));
	add_trouble(&pieces, header);
	top_pieces_draw(screen, 2, &pieces);
}

void top_draw_header(struct top_screen *screen)
{
	const struct daemon_live_header *header = daemon_live_header(screen->session);
	struct recent recent = sum_up(screen->session);
	struct history history;

	collect_history(screen, spark_columns(), &history);
	draw_title(screen, header, &recent);
	draw_use(screen, header, &recent, &history);
	draw_heap(screen, header, &recent, &history);
}
