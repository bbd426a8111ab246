/* SPDX-License-Identifier: MIT */
/* How are JIT reports printed for people? */
#include "cli/dump/dump.h"
#include "format/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	CELL_MAX = 512,
	NAME_MAX_BYTES = 150,
	CHUNK_MAX_BYTES = 300,
	LINE_WIDTH = 110,
	ITEM_INDENT = 18,
	/* Longer locations push the rest of their line to the right. */
	LOCATION_WIDTH_MAX = 40,
	PARAMETERS_PER_LINE = 5,
};

/** One VM being printed. */
struct print {
	FILE *file;
	const struct luastate_jit_report *report;
	const struct dump_profile *profile;
	pid_t pid;
	uint64_t samples; /* in the whole profile */
	int location_width;
};

/* ---- Cells ------------------------------------------------------------------------------ */

static int shown(const char *text, size_t max)
{
	return text ? (int)format_text_cut(text, strlen(text), max) : 0;
}

/* All text of the target is cleaned here. */
static void write_location(const struct print *print, struct luastate_location location, bool named,
			   char *ret_text)
{
	const struct luastate_known_function *function;
	char *chunkname, *name = NULL;

	snprintf(ret_text, CELL_MAX, "?");
	if (location.function == LUASTATE_NO_FUNCTION)
		return;
	function = &print->report->functions[location.function];
	chunkname = format_clean_copy(function->chunkname);
	if (named && function->name)
		name = format_clean_copy(function->name);
	if (chunkname)
		snprintf(ret_text, CELL_MAX, "%.*s%s%.*s:%" PRIu32, shown(name, NAME_MAX_BYTES),
			 name ? name : "", name ? " " : "", shown(chunkname, CHUNK_MAX_BYTES),
			 chunkname, location.line);
	free(chunkname);
	free(name);
}

/* Write a function's name and the location of its definition. */
static void write_function(const struct print *print, uint32_t index, char *ret_text)
{
	const struct luastate_known_function *function = &print->report->functions[index];

	write_location(print,
		       (struct luastate_location){ .function = index,
						   .line = function->firstline > 0
								   ? (uint32_t)function->firstline
								   : 0 },
		       true, ret_text);
}

static void write_number(uint32_t number, char *ret_text)
{
	snprintf(ret_text, CELL_MAX, number ? "%" PRIu32 : "-", number);
}

static void write_link(const struct luastate_trace *trace, char *ret_text)
{
	const char *name = luastate_trace_link_name(trace->linktype);

	if (trace->link && trace->link != trace->number)
		snprintf(ret_text, CELL_MAX, "%s %" PRIu32, name, trace->link);
	else
		snprintf(ret_text, CELL_MAX, "%s", name);
}

static void write_parent(const struct luastate_trace *trace, char *ret_text)
{
	if (trace->kind == LUASTATE_TRACE_SIDE)
		snprintf(ret_text, CELL_MAX, "%" PRIu32 "/%" PRIu32, trace->parent, trace->exit);
	else
		write_number(trace->parent, ret_text);
}

static void measure(struct print *print, struct luastate_location location)
{
	char text[CELL_MAX];
	int width;

	write_location(print, location, false, text);
	width = (int)strlen(text);
	if (width > LOCATION_WIDTH_MAX)
		width = LOCATION_WIDTH_MAX;
	if (width > print->location_width)
		print->location_width = width;
}

/** Items of one kind below a trace, on their own lines. */
struct items {
	FILE *file;
	const char *title;
	int column; /* 0: none yet */
};

static void print_item(struct items *items, const char *text)
{
	int len = (int)strlen(text);

	if (items->column == 0) {
		items->column = fprintf(items->file, "         %-9s", items->title);
	} else if (items->column + 2 + len > LINE_WIDTH) {
		fprintf(items->file, ",\n%*s", ITEM_INDENT, "");
		items->column = ITEM_INDENT;
	} else {
		items->column += fprintf(items->file, ", ");
	}
	fputs(text, items->file);
	items->column += len;
}

static void end_items(const struct items *items)
{
	if (items->column)
		fputc('\n', items->file);
}

/* ---- Head ------------------------------------------------------------------------------- */

static double kib(uint64_t bytes)
{
	return (double)bytes / 1024;
}

static void print_parameters(const struct print *print)
{
	const char *name;

	for (unsigned i = 0; (name = luastate_param_name(i)) != NULL; i++)
		fprintf(print->file, "%s%s %" PRId32,
			i == 0			       ? "  parameters    "
			: i % PARAMETERS_PER_LINE == 0 ? "\n                "
						       : ", ",
			name, print->report->params[i]);
	fputc('\n', print->file);
}

static void print_head(const struct print *print, const struct daemon_dump_vm *vm)
{
	const struct luastate_jit_report *report = print->report;
	char *version = format_clean_copy(vm->version);
	const char *name;

	fprintf(print->file, "\nVM at 0x%" PRIx64 ", %s\n", report->G,
		version && *version ? version : "jit.version unknown");
	free(version);
	fprintf(print->file, "  JIT           %s:", report->flags & 1 ? "on" : "off");
	for (unsigned i = 0; (name = luastate_optimisation_name(i)) != NULL; i++)
		if (report->flags >> (16 + i) & 1)
			fprintf(print->file, " %s", name);
	fputc('\n', print->file);
	print_parameters(print);
	fprintf(print->file, "  traces        %zu of %" PRId32, report->trace_count,
		report->params[LUASTATE_PARAM_MAXTRACE]);
	if (report->recording)
		fprintf(print->file, ", and %" PRIu32 " being recorded", report->recording);
	if (report->changed)
		fprintf(print->file,
			"; %" PRIu32 " left out because they changed while they were read",
			report->changed);
	if (report->traces_cut)
		fputs("; partial: not all could be read in time", print->file);
	fprintf(print->file,
		"\n  machine code  %.1f KiB in traces; %" PRIu64 " area%s with %.1f KiB of %" PRId32
		" KiB, %.1f KiB left in the newest\n",
		kib(report->mcode_bytes), report->areas, report->areas == 1 ? "" : "s",
		kib(report->area_bytes), report->params[LUASTATE_PARAM_MAXMCODE],
		kib(report->area_free_bytes));
}

/* ---- Traces ----------------------------------------------------------------------------- */

static void print_functions(const struct print *print, const struct luastate_trace *trace,
			    bool inlined)
{
	const struct luastate_trace_function *functions =
		print->report->trace_functions + trace->first_function;
	struct items items = { .file = print->file, .title = inlined ? "inlines" : "uses" };
	char text[CELL_MAX];

	for (size_t i = 0; i < trace->function_count; i++) {
		if (functions[i].inlined != inlined)
			continue;
		write_function(print, functions[i].function, text);
		print_item(&items, text);
	}
	end_items(&items);
}

/* Write an exit that was taken. @return false if there is nothing to show: the last snapshot of a
 * trace without a loop is its end, and is marked so that nothing is compiled there. */
static bool write_exit(const struct print *print, const struct luastate_trace *trace, size_t index,
		       char *ret_text)
{
	const struct luastate_trace_exit *exit = &print->report->exits[trace->first_exit + index];
	char location[CELL_MAX];

	if (exit->count == 0)
		return false;
	if (exit->count == LUASTATE_EXIT_LINKED && !exit->trace && index + 1 == trace->exit_count)
		return false;
	write_location(print, exit->location, false, location);
	if (exit->trace)
		snprintf(ret_text, CELL_MAX, "%zu %.400s to trace %" PRIu32, index, location,
			 exit->trace);
	else if (exit->count == LUASTATE_EXIT_LINKED)
		snprintf(ret_text, CELL_MAX, "%zu %.400s linked", index, location);
	else
		snprintf(ret_text, CELL_MAX, "%zu %.400s taken %u", index, location, exit->count);
	return true;
}

static void print_exits(const struct print *print, const struct luastate_trace *trace)
{
	struct items items = { .file = print->file, .title = "exits" };
	char text[CELL_MAX];

	for (size_t i = 0; i < trace->exit_count; i++)
		if (write_exit(print, trace, i, text))
			print_item(&items, text);
	end_items(&items);
}

static void print_samples(const struct print *print, const struct luastate_trace *trace)
{
	struct dump_samples samples =
		dump_profile_find(print->profile, print->pid, print->report, trace);
	char most[32];

	/* All of them may be its own, or none. */
	if (samples.shared) {
		snprintf(most, sizeof(most), "<=%" PRIu64, samples.all + samples.shared);
		fprintf(print->file, "  %8s %6s", most, "-");
		return;
	}
	fprintf(print->file, "  %8" PRIu64 " %6.2f", samples.all,
		print->samples ? 100.0 * (double)samples.all / (double)print->samples : 0.0);
}

static void print_trace(const struct print *print, const struct luastate_trace *trace)
{
	char link[CELL_MAX], start[CELL_MAX], root[CELL_MAX], parent[CELL_MAX];

	write_link(trace, link);
	write_location(print, trace->start, false, start);
	write_number(trace->root, root);
	write_parent(trace, parent);
	fprintf(print->file, "  %5" PRIu32, trace->number);
	if (print->profile)
		print_samples(print, trace);
	fprintf(print->file,
		"  %-8s  %-18s  %-*s  %5s  %8s  %5zu  %5" PRIu32 "  %5" PRIu32 "  %6" PRIu32
		"  0x%" PRIx64 "\n",
		luastate_trace_kind_name(trace->kind), link, print->location_width, start, root,
		parent, trace->exit_count, trace->side_traces, trace->instructions,
		trace->mcode_bytes, trace->mcode);
	print_functions(print, trace, true);
	print_functions(print, trace, false);
	print_exits(print, trace);
}

static void print_traces(struct print *print)
{
	const struct luastate_jit_report *report = print->report;

	if (report->trace_count == 0)
		return;
	print->location_width = (int)strlen("START");
	for (size_t i = 0; i < report->trace_count; i++)
		measure(print, report->traces[i].start);
	fputs("\n  TRACE", print->file);
	if (print->profile)
		fputs("   SAMPLES      %", print->file);
	fprintf(print->file, "  %-8s  %-18s  %-*s  %5s  %8s  %5s  %5s  %5s  %6s  %s\n", "KIND",
		"LINK", print->location_width, "START", "ROOT", "PARENT", "EXITS", "SIDES", "IR",
		"BYTES", "CODE");
	for (size_t i = 0; i < report->trace_count; i++)
		print_trace(print, &report->traces[i]);
}

/* ---- Uncompiled code -------------------------------------------------------------------- */

static void print_uncompiled_item(const struct print *print, const struct luastate_uncompiled *item)
{
	const uint32_t *lines = print->report->loops + item->first_loop;
	char text[CELL_MAX] = "?";

	if (item->location.function != LUASTATE_NO_FUNCTION)
		write_function(print, item->location.function, text);
	fprintf(print->file, "  %-12s  %-8s  %s",
		item->why == LUASTATE_JIT_OFF ? "jit.off" : "blacklisted",
		item->is_whole ? "entry" : "-", text);
	for (size_t i = 0; i < item->loop_count; i++)
		fprintf(print->file, "%s%" PRIu32,
			i			? ", "
			: item->loop_count == 1 ? ", loop in line "
						: ", loops in lines ",
			lines[i]);
	fputc('\n', print->file);
}

static void print_uncompiled(const struct print *print)
{
	const struct luastate_jit_report *report = print->report;

	if (report->uncompiled_count)
		fprintf(print->file, "\n  %-12s  %-8s  %s\n", "NOT COMPILED", "CALLS", "FUNCTION");
	for (size_t i = 0; i < report->uncompiled_count; i++)
		print_uncompiled_item(print, &report->uncompiled[i]);
	if (report->heap_cut)
		fputs("\n  partial: not all functions were seen; some uncompiled ones may be "
		      "missing\n",
		      print->file);
}

static int by_value(const void *a, const void *b)
{
	const struct luastate_penalty *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static void print_penalties(struct print *print)
{
	const struct luastate_jit_report *report = print->report;
	size_t count = report->penalty_count;
	struct luastate_penalty *sorted = calloc(count + 1, sizeof(*sorted));
	char text[CELL_MAX];

	if (!sorted || count == 0) {
		free(sorted);
		return;
	}
	memcpy(sorted, report->penalties, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_value);
	print->location_width = (int)strlen("ABORTED FROM");
	for (size_t i = 0; i < count; i++)
		measure(print, sorted[i].location);
	fprintf(print->file, "\n  PENALTY  %-*s  %-8s  %s\n", print->location_width, "ABORTED FROM",
		"REASON", "LAST TIME BECAUSE");
	for (size_t i = 0; i < count; i++) {
		write_location(print, sorted[i].location, false, text);
		fprintf(print->file, "  %7" PRIu32 "  %-*s  %-8s  %s%s\n", sorted[i].value,
			print->location_width, text, luastate_abort_name(sorted[i].reason),
			luastate_abort_text(sorted[i].reason),
			sorted[i].blacklisted ? "; blacklisted since" : "");
	}
	free(sorted);
}

/* ---- Processes -------------------------------------------------------------------------- */

void dump_print_text(FILE *file, const struct daemon_dump *dump, const struct dump_profile *profile)
{
	uint64_t samples = profile ? dump_profile_count(profile).all : 0;

	if (dump->core)
		fprintf(file, "core %s of ", dump->core);
	fprintf(file, "process %d (%s), %zu VM%s\n", (int)dump->pid, dump->name, dump->count,
		dump->count == 1 ? "" : "s");
	if (dump->is_truncated)
		fputs("  partial: the core file is incomplete\n", file);
	if (!dump->has_all_vms)
		fputs("  partial: not all memory was searched; there may be more VMs\n", file);
	if (dump->ended)
		fputs("  partial: the program ended while it was read\n", file);
	if (dump->unread)
		fprintf(file, "  %zu VMs were gone before they could be read\n", dump->unread);
	for (size_t i = 0; i < dump->count; i++) {
		struct print print = { .file = file,
				       .report = dump->vms[i].report,
				       .profile = profile,
				       .pid = dump->pid,
				       .samples = samples };

		print_head(&print, &dump->vms[i]);
		print_traces(&print);
		print_uncompiled(&print);
		print_penalties(&print);
	}
}
