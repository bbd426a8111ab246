/* SPDX-License-Identifier: MIT */
/* How is the header drawn: the state of the processes and of the sampling? */
#include "cli/top/draw/top_header.h"

#include <inttypes.h>
#include <string.h>

#include "cli/top/draw/top_draw.h"
#include "cli/top/draw/top_numbers.h"

enum {
	/* Refreshes that the bar and the rates cover. */
	RECENT = 10,
	LABEL_COLUMNS = 6,
	SPARK_MIN = 8,
	HISTORY_COLUMNS_MAX = 200,
	/* Time that the sparkline of the states covers, if the history is that long; other
	 * sparklines are shorter. */
	HISTORY_S = 120,
	NS_PER_MS = 1000 * 1000,
};

static const struct {
	const char *name;
	char letter;
} parts[TOP_ACTIVITY_COUNT] = {
	[TOP_INTERPRETER] = { "interp", 'I' },
	[TOP_COMPILED] = { "jit", 'J' },
	[TOP_C] = { "C", 'C' },
	[TOP_GC] = { "GC", 'G' },
	[TOP_RECORDING] = { "rec", 'R' },
	[TOP_EXITS] = { "exit", 'X' },
	[TOP_UNSCHEDULED] = { "no CPU", '-' },
	[TOP_IDLE] = { "idle", '.' },
};

/** Sums of the last refreshes. */
struct recent {
	uint64_t parts[TOP_ACTIVITY_COUNT], sum;
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
	for (size_t i = 0; i < TOP_ACTIVITY_COUNT; i++)
		recent.sum += recent.parts[i];
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
	uint64_t heap_bytes, mcode_bytes; /* of the newest refresh */
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
			newest_first[count++] =
				(struct column){ .heap_bytes = point->heap_bytes,
						 .mcode_bytes = point->mcode_bytes };
		}
		last = span;
		add_to_column(point, &newest_first[count - 1]);
	}
	ret_history->count = count;
	for (size_t i = 0; i < count; i++)
		ret_history->columns[i] = newest_first[count - 1 - i];
}

/** A measure that a sparkline shows. */
typedef uint64_t (*measure)(const struct column *column);

/* Running threads in thousandths of all sampled threads. */
static uint64_t busy_of(const struct column *column)
{
	uint64_t all = 0;

	for (size_t i = 0; i < TOP_ACTIVITY_COUNT; i++)
		all += column->parts[i];
	return all ? 1000 * (all - column->parts[TOP_UNSCHEDULED] - column->parts[TOP_IDLE]) / all
		   : 0;
}

static uint64_t heap_of(const struct column *column)
{
	return column->heap_bytes;
}

static uint64_t machine_code_of(const struct column *column)
{
	return column->mcode_bytes;
}

static void add_history(struct top_screen *screen, const struct history *history,
			measure measure_of, size_t columns)
{
	uint64_t values[HISTORY_COLUMNS_MAX];

	for (size_t i = 0; i < history->count; i++)
		values[i] = measure_of(&history->columns[i]);
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
		top_draw_at(screen, 2, x++,
			    TOP_LOOK_STATE_0 + (enum top_look)main_activity(column));
	}
}

/* ---- Lines ------------------------------------------------------------------------------ */

static void add_process(struct top_screen *screen, const struct daemon_live_header *header)
{
	const struct daemon_process *process = header->processes;
	double uptime_s;
	char time[16];

	if (header->process_count == 0) {
		format_text_add_string(&screen->line, "no process yet");
		return;
	}
	for (size_t i = 0; screen->choice.pid && i < header->process_count; i++)
		if (header->processes[i].pid == screen->choice.pid)
			process = &header->processes[i];
	top_draw_text(screen, process->name, 24, TOP_CUT_END);
	format_text_addf(&screen->line, " [%d]", (int)process->pid);
	if (screen->choice.tid)
		format_text_addf(&screen->line, " thread %d", (int)screen->choice.tid);
	else if (header->process_count > 1 && !screen->choice.pid)
		format_text_addf(&screen->line, " +%zu more", header->process_count - 1);
	uptime_s = top_uptime_s(header, (size_t)(process - header->processes));
	if (uptime_s >= 0 && !process->ended) {
		top_columns_time(time, sizeof(time), (uint64_t)(uptime_s * 1e9));
		format_text_addf(&screen->line, " up %s", time);
	}
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

static void draw_title(struct top_screen *screen, const struct daemon_live_header *header)
{
	const struct daemon_vm *vm = first_vm(screen, header);

	format_text_add_string(&screen->line, "ljtop  ");
	add_process(screen, header);
	if (vm && vm->version[0]) {
		format_text_add_string(&screen->line, "  ");
		top_draw_text(screen, vm->version, 30, TOP_CUT_END);
	}
	if (vm && vm->layout[0]) {
		format_text_add_string(&screen->line, "  ");
		top_draw_text(screen, vm->layout, (size_t)COLS, TOP_CUT_END);
	}
	top_draw_line(screen, 0, TOP_LOOK_TITLE);
}

static void draw_numbers(struct top_screen *screen, const struct daemon_live_header *header,
			 const struct recent *recent)
{
	char how[256];

	top_describe_capture(header, how, sizeof(how));
	format_text_addf(&screen->line,
			 "ticks %" PRIu64 "  full %.1f%%  late %" PRIu64 "  missed %" PRIu64
			 "  %s  CPU %.1f%%",
			 header->ticks, top_full_percent(header->outcomes), header->late_ticks,
			 header->missed_ticks, how,
			 format_percent(recent->cpu_ns, recent->span_ns));
	if (header->dropped)
		format_text_addf(&screen->line, "  dropped %" PRIu64, header->dropped);
	/* Last, because the user knows it and a narrow screen cuts it off. */
	format_text_addf(&screen->line, "  %u Hz", header->rate_hz);
	top_draw_line(screen, 1, TOP_LOOK_PLAIN);
}

static size_t spark_columns(void)
{
	size_t columns = ((size_t)COLS - LABEL_COLUMNS - 3) / 3;

	return columns < SPARK_MIN	       ? SPARK_MIN
	       : columns > HISTORY_COLUMNS_MAX ? HISTORY_COLUMNS_MAX
					       : columns;
}

static void draw_bar(struct top_screen *screen, const struct recent *recent,
		     const struct history *history)
{
	size_t spark = spark_columns(), columns[TOP_ACTIVITY_COUNT];
	size_t bar = (size_t)COLS - LABEL_COLUMNS - 3 - spark - 1;
	int x = LABEL_COLUMNS + 1;

	format_text_addf(&screen->line, "%-*s[%*s] ", LABEL_COLUMNS, "VM", (int)bar, "");
	top_draw_line(screen, 2, TOP_LOOK_PLAIN);
	draw_states(screen, history, x + (int)bar + 2, spark);
	top_columns_share(recent->parts, TOP_ACTIVITY_COUNT, bar, columns);
	for (size_t i = 0; i < TOP_ACTIVITY_COUNT; i++) {
		for (size_t column = 0; column < columns[i]; column++)
			format_text_add(&screen->line, &parts[i].letter, 1);
		if (columns[i])
			top_draw_at(screen, 2, x, TOP_LOOK_PART_0 + (enum top_look)i);
		x += (int)columns[i];
	}
}

static void draw_legend(struct top_screen *screen, const struct recent *recent)
{
	for (size_t i = 0; i < TOP_ACTIVITY_COUNT; i++)
		/* This part is usually 0 and the line is full, so show it only if necessary. */
		if (i != TOP_UNSCHEDULED || recent->parts[i])
			format_text_addf(&screen->line, " %c %s %.0f%%", parts[i].letter,
					 parts[i].name,
					 format_percent(recent->parts[i], recent->sum));
	top_draw_line(screen, 3, TOP_LOOK_PLAIN);
}

static void draw_heap(struct top_screen *screen, const struct daemon_live_header *header,
		      const struct recent *recent, const struct history *history)
{
	const struct daemon_history_point *point = daemon_live_history(screen->session, 0);
	const struct daemon_vm *vm = first_vm(screen, header);
	size_t spark = (size_t)COLS / 5;
	char bytes[16];

	top_columns_bytes(bytes, sizeof(bytes), point ? point->heap_bytes : 0);
	format_text_addf(&screen->line, "%-*s%-7s ", LABEL_COLUMNS, "heap", bytes);
	add_history(screen, history, heap_of, spark);
	if (vm && vm->has_heap) {
		top_columns_bytes(bytes, sizeof(bytes), vm->threshold_bytes);
		format_text_addf(&screen->line, "  GC %s, next %s",
				 daemon_gc_phase_name(vm->gc_phase), bytes);
	}
	if (vm && vm->has_pace)
		format_text_addf(&screen->line, "  pause %" PRIu32 " step %" PRIu32, vm->pause,
				 vm->step_multiplier);
	if (point && point->has_allocated) {
		top_columns_bytes(bytes, sizeof(bytes),
				  (uint64_t)per_second(recent->allocated, recent));
		format_text_addf(&screen->line, "  alloc %s/s", bytes);
	}
	top_draw_line(screen, 4, TOP_LOOK_PLAIN);
}

static void draw_traces(struct top_screen *screen, const struct daemon_live_header *header,
			const struct recent *recent, const struct history *history)
{
	const struct daemon_history_point *point = daemon_live_history(screen->session, 0);
	const struct daemon_vm *vm = first_vm(screen, header);
	size_t spark = (size_t)COLS / 8;
	/* A build that does not count them may have more. */
	const char *least = vm && vm->is_counted ? "" : ">=";
	char bytes[16];

	top_columns_bytes(bytes, sizeof(bytes), point ? point->mcode_bytes : 0);
	format_text_addf(&screen->line, "%-*s%-7s ", LABEL_COLUMNS, "mcode", bytes);
	add_history(screen, history, machine_code_of, spark);
	format_text_addf(&screen->line, "  traces %" PRIu64 "  %s%.1f new/s  %s%.1f aborted/s",
			 point ? point->traces : 0, least, per_second(recent->created, recent),
			 least, per_second(recent->aborted, recent));
	if (vm && vm->has_traces && !vm->jit_on)
		format_text_add_string(&screen->line, "  JIT off");
	top_draw_line(screen, 5, TOP_LOOK_PLAIN);
}

void top_draw_header(struct top_screen *screen)
{
	const struct daemon_live_header *header = daemon_live_header(screen->session);
	struct recent recent = sum_up(screen->session);
	struct history history;

	collect_history(screen, spark_columns(), &history);
	draw_title(screen, header);
	draw_numbers(screen, header, &recent);
	draw_bar(screen, &recent, &history);
	draw_legend(screen, &recent);
	draw_heap(screen, header, &recent, &history);
	draw_traces(screen, header, &recent, &history);
}
