/* SPDX-License-Identifier: MIT */
/* The upper part of the screen: how the processes and the sampling are. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/top_draw.h"

enum {
	/* Refreshes that the bar and the rates are of. */
	RECENT = 10,
	LABEL_COLUMNS = 6,
	SPARK_MIN = 8,
};

/** What a VM can be at, as people want it told apart. */
enum part {
	PART_INTERPRETER,
	PART_COMPILED,
	PART_C,
	PART_GC,
	PART_RECORDING,
	PART_EXITS,
	PART_IDLE,
	PART_COUNT,
};

static const struct {
	const char *name;
	char letter;
} parts[PART_COUNT] = {
	[PART_INTERPRETER] = { "interp", 'I' },
	[PART_COMPILED] = { "compiled", 'J' },
	[PART_C] = { "C", 'C' },
	[PART_GC] = { "GC", 'G' },
	[PART_RECORDING] = { "rec", 'R' },
	[PART_EXITS] = { "exits", 'X' },
	[PART_IDLE] = { "idle", '.' },
};

static const enum part part_of[FORMAT_STATE_COUNT] = {
	[FORMAT_STATE_INTERP] = PART_INTERPRETER,
	[FORMAT_STATE_LFUNC] = PART_INTERPRETER,
	[FORMAT_STATE_FFUNC] = PART_C,
	[FORMAT_STATE_CFUNC] = PART_C,
	[FORMAT_STATE_GC] = PART_GC,
	[FORMAT_STATE_EXIT] = PART_EXITS,
	[FORMAT_STATE_RECORD] = PART_RECORDING,
	[FORMAT_STATE_OPT] = PART_RECORDING,
	[FORMAT_STATE_ASM] = PART_RECORDING,
	[FORMAT_STATE_TRACE] = PART_COMPILED,
};

/** The last refreshes together. */
struct recent {
	uint64_t parts[PART_COUNT], sum;
	uint64_t span_ns, cpu_ns, created, aborted, allocated;
};

static void add_moment(struct recent *recent, const struct daemon_moment *moment)
{
	for (size_t i = 0; i < FORMAT_STATE_COUNT; i++)
		recent->parts[part_of[i]] += moment->states[i];
	recent->parts[PART_IDLE] += moment->outcomes[DAEMON_IDLE];
	recent->span_ns += moment->span_ns;
	recent->cpu_ns += moment->sampler_cpu_ns + moment->own_cpu_ns;
	recent->created += moment->created;
	recent->aborted += moment->aborted;
	recent->allocated += moment->allocated_bytes;
}

static struct recent sum_up(const struct daemon_watch *watch)
{
	struct recent recent = { 0 };

	for (size_t age = 0; age < RECENT; age++) {
		const struct daemon_moment *moment = daemon_watch_history(watch, age);

		if (moment)
			add_moment(&recent, moment);
	}
	for (size_t i = 0; i < PART_COUNT; i++)
		recent.sum += recent.parts[i];
	return recent;
}

static double per_second(uint64_t count, const struct recent *recent)
{
	return recent->span_ns ? (double)count * 1e9 / (double)recent->span_ns : 0;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* ---- Sparklines ------------------------------------------------------------------------- */

/** What a sparkline is of. */
typedef uint64_t (*measure)(const struct daemon_moment *moment);

/* Threads that ran, of those that were looked at, in thousandths. */
static uint64_t busy_of(const struct daemon_moment *moment)
{
	uint64_t all = (uint64_t)moment->samples + moment->outcomes[DAEMON_IDLE];

	return all ? 1000 * (uint64_t)moment->samples / all : 0;
}

static uint64_t heap_of(const struct daemon_moment *moment)
{
	return moment->heap_bytes;
}

static uint64_t machine_code_of(const struct daemon_moment *moment)
{
	return moment->mcode_bytes;
}

static void add_history(struct top_screen *screen, measure measure_of, uint64_t most,
			size_t columns)
{
	uint64_t values[DAEMON_HISTORY];
	size_t count = 0;

	for (; count < DAEMON_HISTORY && count < columns; count++) {
		const struct daemon_moment *moment = daemon_watch_history(screen->watch, count);

		if (!moment)
			break;
		values[DAEMON_HISTORY - 1 - count] = measure_of(moment);
	}
	top_columns_add_spark(&screen->line, values + DAEMON_HISTORY - count, count, most, columns,
			      screen->terminal.utf8);
}

/* ---- Lines ------------------------------------------------------------------------------ */

static uint64_t boot_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void add_process(struct top_screen *screen, const struct daemon_vitals *vitals)
{
	const struct daemon_process *process = vitals->processes;
	char time[16];

	if (vitals->process_count == 0) {
		format_text_add_string(&screen->line, "no process yet");
		return;
	}
	for (size_t i = 0; screen->choice.pid && i < vitals->process_count; i++)
		if (vitals->processes[i].pid == screen->choice.pid)
			process = &vitals->processes[i];
	top_draw_text(screen, process->name, 24, TOP_CUT_END);
	format_text_addf(&screen->line, " [%d]", (int)process->pid);
	if (screen->choice.tid)
		format_text_addf(&screen->line, " thread %d", (int)screen->choice.tid);
	else if (vitals->process_count > 1 && !screen->choice.pid)
		format_text_addf(&screen->line, " +%zu more", vitals->process_count - 1);
	if (vitals->start_ns && vitals->start_ns[process - vitals->processes] && !process->ended) {
		top_columns_time(time, sizeof(time),
				 boot_time_ns() - vitals->start_ns[process - vitals->processes]);
		format_text_addf(&screen->line, " up %s", time);
	}
	if (process->ended)
		format_text_add_string(&screen->line, " ended");
}

static const struct daemon_vm *first_vm(const struct top_screen *screen,
					const struct daemon_vitals *vitals)
{
	for (size_t i = 0; screen->choice.pid && i < vitals->vm_count; i++)
		if (vitals->vms[i].pid == screen->choice.pid)
			return &vitals->vms[i];
	return vitals->vm_count ? &vitals->vms[0] : NULL;
}

static void draw_title(struct top_screen *screen, const struct daemon_vitals *vitals)
{
	const struct daemon_vm *vm = first_vm(screen, vitals);

	format_text_add_string(&screen->line, "ljtop  ");
	add_process(screen, vitals);
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

static void draw_numbers(struct top_screen *screen, const struct daemon_vitals *vitals,
			 const struct recent *recent)
{
	const uint64_t *of = vitals->outcomes;
	uint64_t partial = of[DAEMON_TORN] + of[DAEMON_TRUNCATED] + of[DAEMON_UNWOUND];

	format_text_addf(&screen->line,
			 "ticks %" PRIu64 "  full %.1f%%  late %" PRIu64 "  missed %" PRIu64
			 "  stopped p99 %.0f us  CPU %.1f%%",
			 vitals->ticks, percent(of[DAEMON_FULL], of[DAEMON_FULL] + partial),
			 vitals->late_ticks, vitals->missed_ticks,
			 (double)vitals->stopped_p99_ns / 1000,
			 percent(recent->cpu_ns, recent->span_ns));
	if (vitals->dropped)
		format_text_addf(&screen->line, "  dropped %" PRIu64, vitals->dropped);
	/* Known to who has asked for it: the first to be cut off. */
	format_text_addf(&screen->line, "  %u Hz", vitals->rate_hz);
	top_draw_line(screen, 1, TOP_LOOK_PLAIN);
}

static void draw_bar(struct top_screen *screen, const struct recent *recent)
{
	size_t room = (size_t)COLS - LABEL_COLUMNS - 3, columns[PART_COUNT];
	size_t spark = room / 3 > SPARK_MIN ? room / 3 : SPARK_MIN, bar = room - spark - 1;
	int x = LABEL_COLUMNS + 1;

	format_text_addf(&screen->line, "%-*s[%*s] ", LABEL_COLUMNS, "VM", (int)bar, "");
	add_history(screen, busy_of, 1000, spark);
	top_draw_line(screen, 2, TOP_LOOK_PLAIN);
	top_columns_share(recent->parts, PART_COUNT, bar, columns);
	for (size_t i = 0; i < PART_COUNT; i++) {
		for (size_t column = 0; column < columns[i]; column++)
			format_text_add(&screen->line, &parts[i].letter, 1);
		if (columns[i])
			top_draw_at(screen, 2, x, TOP_LOOK_PART_0 + (enum top_look)i);
		x += (int)columns[i];
	}
}

static void draw_legend(struct top_screen *screen, const struct recent *recent)
{
	for (size_t i = 0; i < PART_COUNT; i++)
		format_text_addf(&screen->line, " %c %s %.0f%%", parts[i].letter, parts[i].name,
				 percent(recent->parts[i], recent->sum));
	top_draw_line(screen, 3, TOP_LOOK_PLAIN);
}

static void draw_heap(struct top_screen *screen, const struct daemon_vitals *vitals,
		      const struct recent *recent)
{
	const struct daemon_moment *moment = daemon_watch_history(screen->watch, 0);
	const struct daemon_vm *vm = first_vm(screen, vitals);
	size_t spark = (size_t)COLS / 5;
	char bytes[16];

	top_columns_bytes(bytes, sizeof(bytes), moment ? moment->heap_bytes : 0);
	format_text_addf(&screen->line, "%-*s%-7s ", LABEL_COLUMNS, "heap", bytes);
	add_history(screen, heap_of, 0, spark);
	if (vm && vm->has_heap) {
		top_columns_bytes(bytes, sizeof(bytes), vm->threshold_bytes);
		format_text_addf(&screen->line, "  GC %s, next %s",
				 daemon_gc_phase_name(vm->gc_phase), bytes);
	}
	if (vm && vm->has_pace)
		format_text_addf(&screen->line, "  pause %" PRIu32 " step %" PRIu32, vm->pause,
				 vm->step_multiplier);
	if (moment && moment->has_allocated) {
		top_columns_bytes(bytes, sizeof(bytes),
				  (uint64_t)per_second(recent->allocated, recent));
		format_text_addf(&screen->line, "  alloc %s/s", bytes);
	}
	top_draw_line(screen, 4, TOP_LOOK_PLAIN);
}

static void draw_traces(struct top_screen *screen, const struct daemon_vitals *vitals,
			const struct recent *recent)
{
	const struct daemon_moment *moment = daemon_watch_history(screen->watch, 0);
	const struct daemon_vm *vm = first_vm(screen, vitals);
	size_t spark = (size_t)COLS / 8;
	/* Where the build does not count them, there may be more. */
	const char *least = vm && vm->is_counted ? "" : ">=";
	char bytes[16];

	top_columns_bytes(bytes, sizeof(bytes), moment ? moment->mcode_bytes : 0);
	format_text_addf(&screen->line, "%-*s%-7s ", LABEL_COLUMNS, "mcode", bytes);
	add_history(screen, machine_code_of, 0, spark);
	format_text_addf(&screen->line, "  traces %" PRIu64 "  %s%.1f new/s  %s%.1f aborted/s",
			 moment ? moment->traces : 0, least, per_second(recent->created, recent),
			 least, per_second(recent->aborted, recent));
	if (vm && vm->has_traces && !vm->jit_on)
		format_text_add_string(&screen->line, "  JIT off");
	top_draw_line(screen, 5, TOP_LOOK_PLAIN);
}

void top_draw_header(struct top_screen *screen)
{
	const struct daemon_vitals *vitals = daemon_watch_vitals(screen->watch);
	struct recent recent = sum_up(screen->watch);

	draw_title(screen, vitals);
	draw_numbers(screen, vitals, &recent);
	draw_bar(screen, &recent);
	draw_legend(screen, &recent);
	draw_heap(screen, vitals, &recent);
	draw_traces(screen, vitals, &recent);
}
