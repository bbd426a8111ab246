/* SPDX-License-Identifier: MIT */
/* How is a refresh printed as a plain screen, for pipes and scripts? */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top/draw/top_numbers.h"
#include "cli/top/top.h"
#include "format/text.h"

enum {
	LINE_MAX_BYTES = 2048,
	NAME_MAX_BYTES = 512,
	/* Columns of the numbers before the names. */
	NUMBERS_WIDTH = 48,
	/* Processes and VMs that the header names. */
	SHOWN_MAX = 3,
};

/* Print a line, cut off at the edge of the screen. */
static void print_line(FILE *file, const struct arguments *arguments, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Bytes of the first columns of a text, with one column per character. */
static size_t cut_columns(const char *text, size_t columns)
{
	size_t len = 0;

	while (text[len] && columns > 0) {
		len++;
		/* Continuation bytes of UTF-8. */
		while (((unsigned char)text[len] & 0xc0) == 0x80)
			len++;
		columns--;
	}
	return len;
}

static size_t count_columns(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

static void print_line(FILE *file, const struct arguments *arguments, const char *format, ...)
{
	char *line;
	va_list list;
	int len;

	va_start(list, format);
	len = vasprintf(&line, format, list);
	va_end(list);
	if (len < 0) {
		fputs("(out of memory)\n", file);
		return;
	}
	format_clean_utf8(line, (size_t)len);
	fprintf(file, "%.*s\n", (int)cut_columns(line, (size_t)arguments->width), line);
	free(line);
}

static void add(char *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *line, const char *format, ...)
{
	size_t used = strlen(line);
	va_list list;

	va_start(list, format);
	vsnprintf(line + used, LINE_MAX_BYTES - used, format, list);
	va_end(list);
}

static void add_bytes(char *line, double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	for (; bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		bytes /= 1024;
	add(line, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static void add_time(char *line, double time_s)
{
	unsigned long long all = (unsigned long long)time_s;

	if (all >= 86400)
		add(line, "%llu d ", all / 86400);
	add(line, "%02llu:%02llu:%02llu", all / 3600 % 24, all / 60 % 60, all % 60);
}

/* ---- Header ----------------------------------------------------------------------------- */

static void print_processes(FILE *file, const struct arguments *arguments,
			    const struct daemon_live_header *header)
{
	char line[LINE_MAX_BYTES] = "ljtop:";
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < header->process_count; i++) {
		const struct daemon_process *process = &header->processes[i];
		double uptime_s = top_uptime_s(header, i);

		if (process->kind != DAEMON_PROCESS_LUAJIT || process->ended ||
		    shown == SHOWN_MAX) {
			left++;
			continue;
		}
		add(line, "%s %s [%d]", shown++ ? "," : "", process->name, (int)process->pid);
		if (uptime_s >= 0) {
			add(line, " up ");
			add_time(line, uptime_s);
		}
	}
	if (left)
		add(line, "%s %zu more", shown ? ", and" : "", left);
	print_line(file, arguments, "%s", line);
}

static void print_sampling(FILE *file, const struct arguments *arguments,
			   const struct daemon_live_header *header,
			   const struct daemon_history_point *now)
{
	char line[LINE_MAX_BYTES] = "", how[256];

	add(line, "%.1f s at %u Hz: %" PRIu64 " samples, %.1f %% full chains, %" PRIu64 " ticks",
	    (double)header->elapsed_ns / 1e9, header->rate_hz, header->samples,
	    top_full_percent(header->outcomes), header->ticks);
	add(line, ", %" PRIu64 " late, %" PRIu64 " missed", header->late_ticks,
	    header->missed_ticks);
	if (header->dropped)
		add(line, ", %" PRIu64 " dropped", header->dropped);
	top_describe_capture(header, how, sizeof(how));
	add(line, "; %s; own CPU %.1f %%", how,
	    top_rate(now->sampler_cpu_ns + now->own_cpu_ns, now) / 1e7);
	print_line(file, arguments, "%s", line);
}

static void print_activities(FILE *file, const struct arguments *arguments,
			     const struct daemon_history_point *now)
{
	uint64_t counts[TOP_ACTIVITY_COUNT], all = 0;
	char line[LINE_MAX_BYTES] = "VM:";

	top_count_activities(now->states, now->outcomes, counts);
	for (int i = 0; i < TOP_ACTIVITY_COUNT; i++)
		all += counts[i];
	for (int i = 0; i < TOP_ACTIVITY_COUNT; i++)
		add(line, "%s %s %.1f %%", i ? "," : "", top_activity_name((enum top_activity)i),
		    format_percent(counts[i], all));
	print_line(file, arguments, "%s", line);
}

static void print_vm(FILE *file, const struct arguments *arguments, const struct daemon_vm *vm)
{
	char line[LINE_MAX_BYTES] = "";

	add(line, "[%d] %s", (int)vm->pid, vm->version[0] ? vm->version : "LuaJIT");
	if (vm->has_heap) {
		add(line, ": heap ");
		add_bytes(line, (double)vm->heap_bytes);
		add(line, " of ");
		add_bytes(line, (double)vm->threshold_bytes);
		add(line, ", GC %s", daemon_gc_phase_name(vm->gc_phase));
	}
	if (vm->has_pace)
		add(line, ", pause %" PRIu32 " %%, step %" PRIu32 " %%", vm->pause,
		    vm->step_multiplier);
	if (vm->has_traces) {
		add(line, "; JIT %s, %" PRIu64 " traces, machine code ", vm->jit_on ? "on" : "off",
		    vm->traces);
		add_bytes(line, (double)vm->mcode_bytes);
	}
	if (vm->layout[0])
		add(line, "; %s", vm->layout);
	print_line(file, arguments, "%s", line);
}

static void print_rates(FILE *file, const struct arguments *arguments,
			const struct daemon_history_point *now)
{
	char line[LINE_MAX_BYTES] = "";

	add(line, "traces: %" PRIu64 " live, %.1f created/s, %.1f aborted/s; machine code ",
	    now->traces, top_rate(now->created, now), top_rate(now->aborted, now));
	add_bytes(line, (double)now->mcode_bytes);
	add(line, "; heap ");
	add_bytes(line, (double)now->heap_bytes);
	if (now->has_allocated) {
		add(line, ", allocating ");
		add_bytes(line, top_rate(now->allocated_bytes, now));
		add(line, "/s");
	}
	print_line(file, arguments, "%s", line);
}

static void print_header(FILE *file, const struct arguments *arguments, struct daemon_live *session)
{
	static const struct daemon_history_point nothing = { 0 };
	const struct daemon_live_header *header = daemon_live_header(session);
	const struct daemon_history_point *now = daemon_live_history(session, 0);
	struct format_live_folded folded = format_live_folded(daemon_live_profile(session));

	now = now ? now : &nothing;
	print_processes(file, arguments, header);
	print_sampling(file, arguments, header, now);
	print_activities(file, arguments, now);
	for (size_t i = 0; i < header->vm_count && i < SHOWN_MAX; i++)
		print_vm(file, arguments, &header->vms[i]);
	if (header->vm_count > SHOWN_MAX)
		print_line(file, arguments, "and %zu more VMs", header->vm_count - SHOWN_MAX);
	print_rates(file, arguments, now);
	if (folded.functions || folded.lines || folded.nodes)
		print_line(file, arguments,
			   "folded into [other]: %" PRIu64 " functions, %" PRIu64 " lines, %" PRIu64
			   " frames of chains",
			   folded.functions, folded.lines, folded.nodes);
	if (header->notice[0])
		print_line(file, arguments, "note: %s", header->notice);
	if (header->ended && header->text[0])
		print_line(file, arguments, "ended: %s", header->text);
}

/* ---- Table ------------------------------------------------------------------------------ */

/* A coroutine is named by its first function and its address, because many begin with the same
 * function. */
static const char *name_of(const struct format_live_row *row, char *room)
{
	if (!row->coroutine)
		return row->name;
	snprintf(room, NAME_MAX_BYTES, "%.*s 0x%" PRIx64,
		 (int)format_text_cut(row->name, strlen(row->name), NAME_MAX_BYTES - 24), row->name,
		 row->coroutine);
	return room;
}

static void print_row(FILE *file, const struct arguments *arguments,
		      const struct format_live_row *row, const struct format_live_rows *rows,
		      int name_width)
{
	const struct format_live_count *n = &row->count;
	char room[NAME_MAX_BYTES];
	const char *name = name_of(row, room);
	bool guest = arguments->query.native == FORMAT_NATIVE_NONE;
	const char *location = *row->location			  ? row->location
			       : format_kind_is_native(row->kind) ? row->module
								  : "";
	size_t columns = count_columns(name);
	int rest = columns < (size_t)name_width ? name_width - (int)columns : 0;

	print_line(file, arguments, "%7.2f %7.2f %8.2f %8.2f %9" PRIu64 " %-8s %s%*s%s%s",
		   format_percent(guest ? n->guest : n->self, rows->samples),
		   format_percent(n->total, rows->samples),
		   format_percent(guest ? n->window_guest : n->window_self, rows->window_samples),
		   format_percent(n->window_total, rows->window_samples),
		   guest ? n->guest : n->self, format_kind_name(row->kind), name,
		   *location ? rest : 0, "", *location ? "  " : "", location);
}

static void print_table(FILE *file, const struct arguments *arguments,
			const struct format_live_rows *rows)
{
	size_t count = rows->count;
	char name[NAME_MAX_BYTES];
	size_t width = strlen("NAME"), room = (size_t)(arguments->width - NUMBERS_WIDTH) / 2;

	if (arguments->rows && count > (size_t)arguments->rows)
		count = (size_t)arguments->rows;
	for (size_t i = 0; i < count; i++) {
		size_t columns = count_columns(name_of(&rows->rows[i], name));

		width = columns > width ? columns : width;
	}
	if (arguments->width <= NUMBERS_WIDTH)
		room = 0;
	width = width > room ? room : width;
	print_line(file, arguments, "%7s %7s %8s %8s %9s %-8s %-*s  %s", "SELF%", "TOTAL%",
		   "W-SELF%", "W-TOTAL%", "SAMPLES", "KIND", (int)width, "NAME", "LOCATION");
	for (size_t i = 0; i < count; i++)
		print_row(file, arguments, &rows->rows[i], rows, (int)width);
}

int top_print_text(FILE *file, const struct arguments *arguments, struct daemon_live *session,
		   struct failure *why)
{
	struct format_live_rows rows;

	if (format_live_query(daemon_live_profile(session), &arguments->query, &rows, why) != 0)
		return -1;
	print_header(file, arguments, session);
	fputc('\n', file);
	print_table(file, arguments, &rows);
	fputc('\n', file);
	format_live_rows_deinit(&rows);
	return 0;
}
