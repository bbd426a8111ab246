/* SPDX-License-Identifier: MIT */
/* How is a refresh printed as JSON, one object per line? The keys are an interface: ljtop(1). */
#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <time.h>

#include "cli/common/json_keys.h"
#include "cli/top/draw/top_numbers.h"
#include "cli/top/top.h"

/* Add a text of the target; "" becomes null. */
static void add_text(struct json_object *object, const char *key, const char *text)
{
	json_keys_add_foreign(object, key, text && *text ? text : NULL);
}

/* ---- Parts ------------------------------------------------------------------------------ */

static void add_outcomes(struct json_object *root, const struct daemon_live_header *header)
{
	struct json_object *outcomes = json_object_new_object(), *states = json_object_new_object();

	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		json_keys_add_number(outcomes, daemon_outcome_name((enum daemon_outcome)i),
				     header->outcomes[i]);
	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		json_keys_add_number(states, format_state_name((enum format_state)i),
				     header->states[i]);
	json_object_object_add(root, "outcomes", outcomes);
	json_object_object_add(root, "states", states);
	json_keys_add_real(root, "full_percent", top_full_percent(header->outcomes));
}

/* Add what happened since the previous refresh. */
static void add_history_point(struct json_object *root, const struct daemon_history_point *now)
{
	struct json_object *object = json_object_new_object(),
			   *activities = json_object_new_object();
	uint64_t counts[TOP_ACTIVITY_COUNT];

	top_count_activities(now->states, now->outcomes, counts);
	for (int i = 0; i < TOP_ACTIVITY_COUNT; i++)
		json_keys_add_number(activities, top_activity_name((enum top_activity)i),
				     counts[i]);
	json_keys_add_number(object, "span_ns", now->span_ns);
	json_keys_add_number(object, "samples", now->samples);
	json_object_object_add(object, "activities", activities);
	json_keys_add_number(object, "traces_created", now->created);
	json_keys_add_number(object, "traces_aborted", now->aborted);
	if (now->has_allocated)
		json_keys_add_number(object, "allocated_bytes", now->allocated_bytes);
	json_keys_add_real(object, "sampler_cpu_percent", top_rate(now->sampler_cpu_ns, now) / 1e7);
	json_keys_add_real(object, "own_cpu_percent", top_rate(now->own_cpu_ns, now) / 1e7);
	json_object_object_add(root, "refresh", object);
}

static void add_processes(struct json_object *root, const struct daemon_live_header *header)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < header->process_count; i++) {
		const struct daemon_process *process = &header->processes[i];
		struct json_object *object = json_object_new_object();
		double uptime_s = top_uptime_s(header, i);

		json_keys_add_number(object, "pid", (uint64_t)process->pid);
		add_text(object, "name", process->name);
		json_keys_add_word(object, "kind", daemon_process_kind_name(process->kind));
		json_keys_add_flag(object, "ended", process->ended);
		if (uptime_s >= 0 && !process->ended)
			json_keys_add_real(object, "uptime_s", uptime_s);
		json_keys_add_number(object, "samples", process->samples);
		json_object_array_add(list, object);
	}
	json_object_object_add(root, "processes", list);
	json_keys_add_number(root, "unlisted_processes", header->unlisted_processes);
}

static struct json_object *make_vm(const struct daemon_vm *vm)
{
	struct json_object *object = json_object_new_object();

	json_keys_add_number(object, "pid", (uint64_t)vm->pid);
	json_keys_add_address(object, "global_state", vm->G);
	add_text(object, "version", vm->version);
	add_text(object, "layout", vm->layout);
	if (vm->has_heap) {
		json_keys_add_number(object, "heap_bytes", vm->heap_bytes);
		json_keys_add_number(object, "gc_threshold_bytes", vm->threshold_bytes);
		add_text(object, "gc_phase", daemon_gc_phase_name(vm->gc_phase));
	}
	if (vm->has_pace) {
		json_keys_add_number(object, "gc_pause", vm->pause);
		json_keys_add_number(object, "gc_step_multiplier", vm->step_multiplier);
	}
	if (vm->has_allocated)
		json_keys_add_number(object, "allocated_bytes", vm->allocated_bytes);
	if (vm->has_traces) {
		json_keys_add_flag(object, "jit_on", vm->jit_on);
		json_keys_add_number(object, "traces", vm->traces);
		json_keys_add_number(object, "traces_created", vm->created);
		json_keys_add_number(object, "traces_aborted", vm->aborted);
		json_keys_add_flag(object, "aborts_are_counted", vm->is_counted);
		json_keys_add_number(object, "machine_code_bytes", vm->mcode_bytes);
	}
	return object;
}

static void add_vms(struct json_object *root, const struct daemon_live_header *header)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < header->vm_count; i++)
		json_object_array_add(list, make_vm(&header->vms[i]));
	json_object_object_add(root, "vms", list);
}

static struct json_object *make_row(const struct format_live_row *row,
				    const struct format_live_rows *rows)
{
	struct json_object *object = json_object_new_object();
	const struct format_live_count *n = &row->count;

	add_text(object, "name", row->name);
	json_keys_add_word(object, "kind", format_kind_name(row->kind));
	add_text(object, "location", row->location);
	add_text(object, "module", row->module);
	if (row->line)
		json_keys_add_number(object, "line", row->line);
	if (row->pid)
		json_keys_add_number(object, "pid", (uint64_t)row->pid);
	if (row->tid)
		json_keys_add_number(object, "tid", (uint64_t)row->tid);
	if (row->trace)
		json_keys_add_number(object, "trace", row->trace);
	if (row->coroutine)
		json_keys_add_address(object, "coroutine", row->coroutine);
	json_keys_add_number(object, "self", n->self);
	json_keys_add_number(object, "self_with_native", n->guest);
	json_keys_add_number(object, "total", n->total);
	json_keys_add_number(object, "window_self", n->window_self);
	json_keys_add_number(object, "window_self_with_native", n->window_guest);
	json_keys_add_number(object, "window_total", n->window_total);
	json_keys_add_real(object, "self_percent", format_percent(n->self, rows->samples));
	json_keys_add_real(object, "total_percent", format_percent(n->total, rows->samples));
	return object;
}

static void add_rows(struct json_object *root, const struct arguments *arguments,
		     const struct format_live_rows *rows)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < rows->count && (!arguments->rows || i < (size_t)arguments->rows);
	     i++)
		json_object_array_add(list, make_row(&rows->rows[i], rows));
	json_keys_add_number(root, "row_count", rows->count);
	json_object_object_add(root, "rows", list);
}

/* ---- The object ------------------------------------------------------------------------- */

static void add_sampling(struct json_object *root, struct daemon_live *session)
{
	const struct daemon_live_header *header = daemon_live_header(session);
	struct json_object *stopped = json_object_new_object(), *folded = json_object_new_object();
	struct json_object *reasons = json_object_new_object();
	struct format_live *live = daemon_live_profile(session);
	const struct format_live_folded sums = format_live_folded(live);

	json_keys_add_number(root, "frequency_hz", header->rate_hz);
	json_keys_add_number(root, "elapsed_ns", header->elapsed_ns);
	json_keys_add_number(root, "samples", format_live_samples(live));
	json_keys_add_number(root, "window_samples", format_live_window_samples(live));
	json_keys_add_number(root, "dropped_samples", header->dropped);
	json_keys_add_number(root, "ticks", header->ticks);
	json_keys_add_number(root, "late_ticks", header->late_ticks);
	json_keys_add_number(root, "missed_ticks", header->missed_ticks);
	json_keys_add_number(stopped, "p50_ns", header->stopped_p50_ns);
	json_keys_add_number(stopped, "p99_ns", header->stopped_p99_ns);
	json_keys_add_number(stopped, "max_ns", header->stopped_max_ns);
	json_object_object_add(root, "stopped", stopped);
	json_keys_add_word(root, "capture",
			   header->capture == DAEMON_CAPTURE_KERNEL ? "kernel" : "stop");
	json_keys_add_number(root, "copied_p99_ns", header->copied_p99_ns);
	for (int i = 0; i < DAEMON_REASON_COUNT; i++) {
		struct json_object *reason = json_object_new_object();

		json_keys_add_number(reason, "threads", header->reasons[i].threads);
		json_keys_add_number(reason, "stops", header->reasons[i].stops);
		json_keys_add_number(reason, "samples", header->reasons[i].samples);
		json_object_object_add(reasons, daemon_reason_name((enum daemon_reason)i), reason);
	}
	json_object_object_add(root, "stop_reasons", reasons);
	json_keys_add_number(root, "sampler_cpu_ns", header->cpu_ns);
	json_keys_add_number(root, "own_cpu_ns", header->own_cpu_ns);
	json_keys_add_number(folded, "functions", sums.functions);
	json_keys_add_number(folded, "lines", sums.lines);
	json_keys_add_number(folded, "frames", sums.nodes);
	json_object_object_add(root, "folded", folded);
	add_outcomes(root, header);
}

int top_print_json(FILE *file, const struct arguments *arguments, struct daemon_live *session,
		   struct failure *why)
{
	const struct daemon_live_header *header = daemon_live_header(session);
	const struct daemon_history_point *now = daemon_live_history(session, 0);
	struct format_live_rows rows;
	struct json_object *root;
	struct timespec time;
	const char *text;

	if (format_live_query(daemon_live_profile(session), &arguments->query, &rows, why) != 0)
		return -1;
	root = json_object_new_object();
	clock_gettime(CLOCK_REALTIME, &time);
	add_text(root, "version", LJPROF_VERSION);
	json_keys_add_real(root, "time_s", (double)time.tv_sec + (double)time.tv_nsec / 1e9);
	add_sampling(root, session);
	if (now)
		add_history_point(root, now);
	add_processes(root, header);
	add_vms(root, header);
	add_text(root, "notice", header->notice);
	json_keys_add_flag(root, "ended", header->ended);
	add_text(root, "end", header->text);
	add_rows(root, arguments, &rows);
	text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(file, "%s\n", text);
	json_object_put(root);
	format_live_rows_deinit(&rows);
	return text ? 0 : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "print a refresh");
}
