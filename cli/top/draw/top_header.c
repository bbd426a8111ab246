/* SPDX-License-Identifier: MIT */
/* How is the header drawn: the state of the processes and of the sampling? */
#include "cli/top/draw/top_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/top/draw/top_draw.h"
#include "cli/top/draw/top_numbers.h"

enum {
	/* Refreshes that shares and rates cover. */
	RECENT = 10,
	SPARK_MIN = 5,
	HISTORY_COLUMNS_MAX = 200,
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
			     size_t columns)
{
	uint64_t values[HISTORY_COLUMNS_MAX];

	for (size_t i = 0; i < history->count; i++)
		values[i] = history->columns[i].heap_bytes;
	top_columns_add_spark(&screen->line, values, history->count, 0, columns,
			      screen->terminal.utf8);
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

/* ---- Lines ------------------------------------------------------------------------------ */

/* Each line has pieces of its own looks: append one, draw it, and go on behind it. */
static void draw_piece(struct top_screen *screen, int y, int *x, enum top_look look)
{
	int columns = (int)top_columns_width(screen->line.len ? screen->line.bytes : "",
					     screen->terminal.utf8);
	size_t room = COLS > *x ? (size_t)(COLS - *x) : 0;
	struct format_text whole = screen->line;
	const char *text;
	struct failure why;

	screen->line = (struct format_text){ 0 };
	if (room && format_text_take(&whole, &text, &why) == 0)
		top_columns_add(&screen->line, text, room, TOP_CUT_END, screen->terminal.utf8);
	format_text_deinit(&whole);
	top_draw_at(screen, y, *x, look);
	*x += columns;
}

static void add_process(struct top_screen *screen, const struct daemon_live_header *header)
{
	const struct daemon_process *process = header->processes;
	if (header->process_count == 0) {
		format_text_add_string(&screen->line, "no process yet");
		return;
	}
	for (size_t i = 0; screen->choice.pid && i < header->process_count; i++)
		if (header->processes[i].pid == screen->choice.pid)
			process = &header->processes[i];
	top_draw_text(screen, process->name, 24, TOP_CUT_END);
	if (header->process_count > 1 && !screen->choice.pid) {
		format_text_addf(&screen->line, ", %zu processes", header->process_count);
		return;
	}
	format_text_addf(&screen->line, " [%d]", (int)process->pid);
	if (screen->choice.tid)
		format_text_addf(&screen->line, " thread %d", (int)screen->choice.tid);
	if (process->ended)
		format_text_add_string(&screen->line, " ended");
}

static const struct daemon_vm *first_vm(const struct top_screen *screen,
					const struct daemon_live_header *header)
{
	for (size_t i = 0; screen->choice.pid && i < header->vm_count; i++)
		if (header->vms[i].pid == screen->choice.pid)
			return &header->vms[i];
	return header->vm_count ? &header->vms[0] : NULL;
}

/* The fork is the first word of the layout's text. */
static void add_fork(struct top_screen *screen, const char *layout)
{
	size_t len = strcspn(layout, ",");
	char fork[32];

	snprintf(fork, sizeof(fork), "%.*s", (int)len, layout);
	format_text_add_string(&screen->line, ", ");
	top_draw_text(screen, fork, sizeof(fork), TOP_CUT_END);
}

static void draw_title(struct top_screen *screen, const struct daemon_live_header *header,
		       const struct recent *recent)
{
	const struct daemon_vm *vm = first_vm(screen, header);
	int x = 0;

	top_draw_line(screen, 0, TOP_LOOK_PLAIN);
	format_text_add_string(&screen->line, "ljtop  ");
	add_process(screen, header);
	draw_piece(screen, 0, &x, TOP_LOOK_TITLE);
	if (vm && vm->version[0]) {
		format_text_add_string(&screen->line, "  ");
		top_draw_text(screen, vm->version, 30, TOP_CUT_END);
		if (vm->layout[0])
			add_fork(screen, vm->layout);
	}
	format_text_addf(&screen->line, "  %u Hz %s, %.1f %% CPU", header->rate_hz,
			 header->capture == DAEMON_CAPTURE_KERNEL ? "(kernel)" : "(stops)",
			 format_percent(recent->cpu_ns, recent->span_ns));
	draw_piece(screen, 0, &x, TOP_LOOK_PLAIN);
}

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
	uint64_t ready = recent->running + recent->parts[TOP_UNSCHEDULED];
	size_t spark = spark_columns();
	int x = 0;

	top_draw_line(screen, 1, TOP_LOOK_PLAIN);
	format_text_addf(&screen->line, "CPU %.0f %% ", used_percent(header, recent));
	draw_piece(screen, 1, &x, TOP_LOOK_PLAIN);
	draw_states(screen, history, x, spark);
	x += (int)spark + 1;
	for (size_t i = 0; i < PARTS; i++) {
		uint64_t part = recent->parts[parts[i].activity];

		if (parts[i].is_rare && !part)
			continue;
		format_text_addf(&screen->line, " %s %.0f", parts[i].name,
				 format_percent(part, recent->running));
		draw_piece(screen, 1, &x, TOP_LOOK_STATE_0 + (enum top_look)parts[i].activity);
	}
	format_text_add_string(&screen->line, " %");
	if (recent->parts[TOP_UNSCHEDULED])
		format_text_addf(&screen->line, "  waiting for CPU %.0f %%",
				 format_percent(recent->parts[TOP_UNSCHEDULED], ready));
	draw_piece(screen, 1, &x, TOP_LOOK_PLAIN);
}

/* What the collector does, in a word. */
static const char *phase_word(unsigned phase)
{
	static const struct {
		const char *name, *word;
	} words[] = {
		{ "pause", "collector pauses" }, { "propagate", "marking" },
		{ "atomic", "marking" },	 { "sweep string", "sweeping" },
		{ "sweep", "sweeping" },	 { "finalize", "finalizing" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, daemon_gc_phase_name(phase)) == 0)
			return words[i].word;
	return "";
}

/* Trouble that a reader of the numbers must know. */
static void add_trouble(struct top_screen *screen, const struct daemon_live_header *header)
{
	uint64_t stopped = 0;

	for (int i = 0; i < DAEMON_REASON_COUNT; i++)
		stopped += header->reasons[i].samples;
	if (header->capture == DAEMON_CAPTURE_KERNEL && stopped)
		format_text_addf(&screen->line, "  %" PRIu64 " by stops", stopped);
	if (header->missed_ticks)
		format_text_addf(&screen->line, "  missed %" PRIu64, header->missed_ticks);
	if (header->dropped)
		format_text_addf(&screen->line, "  dropped %" PRIu64, header->dropped);
}

static void draw_heap(struct top_screen *screen, const struct daemon_live_header *header,
		      const struct recent *recent, const struct history *history)
{
	const struct daemon_history_point *point = daemon_live_history(screen->session, 0);
	const struct daemon_vm *vm = first_vm(screen, header);
	char bytes[16];

	top_columns_bytes(bytes, sizeof(bytes), point ? point->heap_bytes : 0);
	format_text_addf(&screen->line, "heap %s ", bytes);
	add_heap_history(screen, history, spark_columns());
	if (vm && vm->has_heap)
		format_text_addf(&screen->line, "  %s", phase_word(vm->gc_phase));
	if (point && point->has_allocated) {
		top_columns_bytes(bytes, sizeof(bytes),
				  (uint64_t)per_second(recent->allocated, recent));
		format_text_addf(&screen->line, ", +%s/s", bytes);
	}
	if (vm && vm->has_traces && !vm->jit_on)
		format_text_add_string(&screen->line, "  compiler off");
	else
		format_text_addf(&screen->line, "  traces %" PRIu64 ", +%.0f/s, %.1f aborts/s",
				 point ? point->traces : 0, per_second(recent->created, recent),
				 per_second(recent->aborted, recent));
	format_text_addf(&screen->line, "  full chains %.0f %%",
			 top_full_percent(header->outcomes));
	add_trouble(screen, header);
	top_draw_line(screen, 2, TOP_LOOK_PLAIN);
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
