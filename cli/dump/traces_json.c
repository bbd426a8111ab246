/* SPDX-License-Identifier: MIT */
/* How are JIT reports printed as JSON? The keys are an interface: ljdump(1). */
#include "cli/dump/dump.h"

#include <json.h>

#include "cli/common/json_keys.h"

static void add_location(struct json_object *object, const struct luastate_jit_report *report,
			 struct luastate_location location)
{
	bool known = location.function != LUASTATE_NO_FUNCTION;

	json_keys_add_text(object, "chunk",
			   known ? report->functions[location.function].chunkname : NULL);
	json_keys_add_number(object, "line", location.line);
}

/* Add a function with its name and the line of its definition. */
static void add_function(struct json_object *object, const struct luastate_jit_report *report,
			 uint32_t index)
{
	const struct luastate_known_function *function;

	if (index == LUASTATE_NO_FUNCTION)
		return;
	function = &report->functions[index];
	json_keys_add_text(object, "name", function->name);
	json_keys_add_text(object, "chunk", function->chunkname);
	json_object_object_add(object, "line", json_object_new_int64(function->firstline));
}

/* ---- Traces ----------------------------------------------------------------------------- */

static struct json_object *make_exits(const struct luastate_jit_report *report,
				      const struct luastate_trace *trace)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < trace->exit_count; i++) {
		const struct luastate_trace_exit *exit = &report->exits[trace->first_exit + i];
		struct json_object *object = json_object_new_object();
		bool linked = exit->count == LUASTATE_EXIT_LINKED;

		json_keys_add_number(object, "exit", i);
		add_location(object, report, exit->location);
		json_keys_add_number(object, "count", exit->count);
		json_keys_add_flag(object, "linked", linked);
		if (exit->trace)
			json_keys_add_number(object, "trace", exit->trace);
		json_object_array_add(list, object);
	}
	return list;
}

static struct json_object *make_functions(const struct luastate_jit_report *report,
					  const struct luastate_trace *trace, bool inlined)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < trace->function_count; i++) {
		const struct luastate_trace_function *function =
			&report->trace_functions[trace->first_function + i];
		struct json_object *object;

		if (function->inlined != inlined)
			continue;
		object = json_object_new_object();
		add_function(object, report, function->function);
		json_object_array_add(list, object);
	}
	return list;
}

static void add_samples(struct json_object *object, struct dump_samples samples)
{
	json_keys_add_number(object, "samples", samples.all);
	json_keys_add_number(object, "exact", samples.exact);
	json_keys_add_number(object, "approximate", samples.approximate);
	json_keys_add_number(object, "trace_only", samples.trace_only);
	json_keys_add_number(object, "shared_samples", samples.shared);
}

static struct json_object *make_trace(const struct luastate_jit_report *report,
				      const struct luastate_trace *trace, pid_t pid,
				      const struct dump_profile *profile)
{
	struct json_object *object = json_object_new_object(), *start = json_object_new_object();

	json_keys_add_number(object, "trace", trace->number);
	json_keys_add_word(object, "kind", luastate_trace_kind_name(trace->kind));
	json_keys_add_word(object, "link", luastate_trace_link_name(trace->linktype));
	json_keys_add_number(object, "link_trace", trace->link);
	add_location(start, report, trace->start);
	json_keys_add_text(start, "name",
			   trace->start.function == LUASTATE_NO_FUNCTION
				   ? NULL
				   : report->functions[trace->start.function].name);
	json_object_object_add(object, "start", start);
	json_keys_add_number(object, "root", trace->root);
	json_keys_add_number(object, "parent", trace->parent);
	if (trace->kind == LUASTATE_TRACE_SIDE)
		json_keys_add_number(object, "parent_exit", trace->exit);
	json_keys_add_number(object, "side_traces", trace->side_traces);
	json_keys_add_number(object, "ir_instructions", trace->instructions);
	json_keys_add_number(object, "ir_constants", trace->constants);
	json_keys_add_address(object, "mcode", trace->mcode);
	json_keys_add_number(object, "mcode_bytes", trace->mcode_bytes);
	json_keys_add_number(object, "loop_offset", trace->loop_offset);
	json_object_object_add(object, "inlined", make_functions(report, trace, true));
	json_object_object_add(object, "used", make_functions(report, trace, false));
	json_object_object_add(object, "exits", make_exits(report, trace));
	if (profile)
		add_samples(object, dump_profile_find(profile, pid, report, trace));
	return object;
}

static struct json_object *make_traces(const struct luastate_jit_report *report, pid_t pid,
				       const struct dump_profile *profile)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < report->trace_count; i++)
		json_object_array_add(list, make_trace(report, &report->traces[i], pid, profile));
	return list;
}

/* ---- Uncompiled code -------------------------------------------------------------------- */

static struct json_object *make_uncompiled(const struct luastate_jit_report *report)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < report->uncompiled_count; i++) {
		const struct luastate_uncompiled *item = &report->uncompiled[i];
		struct json_object *object = json_object_new_object();
		struct json_object *loops = json_object_new_array();

		json_keys_add_word(object, "why",
				   item->why == LUASTATE_JIT_OFF ? "jit.off" : "blacklisted");
		add_function(object, report, item->location.function);
		json_keys_add_flag(object, "calls", item->is_whole);
		for (size_t k = 0; k < item->loop_count; k++)
			json_object_array_add(
				loops, json_object_new_int64(report->loops[item->first_loop + k]));
		json_object_object_add(object, "loops", loops);
		json_object_array_add(list, object);
	}
	return list;
}

static struct json_object *make_penalties(const struct luastate_jit_report *report)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < report->penalty_count; i++) {
		const struct luastate_penalty *penalty = &report->penalties[i];
		struct json_object *object = json_object_new_object();

		add_location(object, report, penalty->location);
		json_keys_add_number(object, "value", penalty->value);
		json_keys_add_number(object, "reason", penalty->reason);
		json_keys_add_word(object, "reason_name", luastate_abort_name(penalty->reason));
		json_keys_add_word(object, "reason_text", luastate_abort_text(penalty->reason));
		json_keys_add_flag(object, "blacklisted", penalty->blacklisted);
		json_object_array_add(list, object);
	}
	return list;
}

/* ---- VMs -------------------------------------------------------------------------------- */

static struct json_object *make_compiler(const struct luastate_jit_report *report)
{
	struct json_object *object = json_object_new_object();
	struct json_object *optimisations = json_object_new_array();
	struct json_object *parameters = json_object_new_object();
	const char *name;

	json_keys_add_flag(object, "on", report->flags & 1);
	for (unsigned i = 0; (name = luastate_optimisation_name(i)) != NULL; i++)
		if (report->flags >> (16 + i) & 1)
			json_object_array_add(optimisations, json_object_new_string(name));
	json_object_object_add(object, "optimisations", optimisations);
	for (unsigned i = 0; (name = luastate_param_name(i)) != NULL; i++)
		json_object_object_add(parameters, name, json_object_new_int64(report->params[i]));
	json_object_object_add(object, "parameters", parameters);
	return object;
}

static struct json_object *make_mcode(const struct luastate_jit_report *report)
{
	struct json_object *object = json_object_new_object();

	json_keys_add_number(object, "trace_bytes", report->mcode_bytes);
	json_keys_add_number(object, "areas", report->areas);
	json_keys_add_number(object, "area_bytes", report->area_bytes);
	json_keys_add_number(object, "free_bytes", report->area_free_bytes);
	json_object_object_add(
		object, "limit_bytes",
		json_object_new_int64((int64_t)report->params[LUASTATE_PARAM_MAXMCODE] * 1024));
	return object;
}

static struct json_object *make_vm(const struct daemon_dump_vm *vm, pid_t pid,
				   const struct dump_profile *profile)
{
	const struct luastate_jit_report *report = vm->report;
	struct json_object *object = json_object_new_object();

	json_keys_add_address(object, "global_state", report->G);
	json_keys_add_text(object, "version", vm->version[0] ? vm->version : NULL);
	json_keys_add_word(object, "layout", vm->layout);
	json_object_object_add(object, "jit", make_compiler(report));
	json_object_object_add(object, "machine_code", make_mcode(report));
	json_keys_add_number(object, "recording", report->recording);
	json_keys_add_number(object, "changed_traces", report->changed);
	json_keys_add_flag(object, "all_traces", !report->traces_cut);
	json_keys_add_flag(object, "all_functions", !report->heap_cut);
	json_object_object_add(object, "traces", make_traces(report, pid, profile));
	json_object_object_add(object, "not_compiled", make_uncompiled(report));
	json_object_object_add(object, "penalties", make_penalties(report));
	return object;
}

static struct json_object *make_process(const struct daemon_dump *dump,
					const struct dump_profile *profile)
{
	struct json_object *object = json_object_new_object(), *vms = json_object_new_array();

	if (dump->core)
		json_keys_add_text(object, "core", dump->core);
	json_keys_add_number(object, "pid", (uint64_t)dump->pid);
	json_keys_add_text(object, "name", dump->name);
	json_keys_add_flag(object, "all_vms",
			   dump->has_all_vms && dump->unread == 0 && !dump->is_truncated);
	json_keys_add_flag(object, "ended", dump->ended);
	for (size_t i = 0; i < dump->count; i++)
		json_object_array_add(vms, make_vm(&dump->vms[i], dump->pid, profile));
	json_object_object_add(object, "vms", vms);
	return object;
}

int dump_print_json(FILE *file, const struct daemon_dump *dumps, size_t count,
		    const struct dump_profile *profile)
{
	struct json_object *root = json_object_new_object(), *list = json_object_new_array();
	int ret;

	json_keys_add_word(root, "version", LJPROF_VERSION);
	for (size_t i = 0; i < count; i++)
		json_object_array_add(list, make_process(&dumps[i], profile));
	json_object_object_add(root, "processes", list);
	if (profile) {
		const struct dump_totals totals = dump_profile_count(profile);

		json_keys_add_number(root, "profile_samples", totals.all);
		json_keys_add_number(root, "profile_samples_of_unknown_traces", totals.unknown);
		json_keys_add_number(root, "profile_shared_samples", totals.shared);
	}
	ret = json_keys_print(file, root);
	json_object_put(root);
	return ret;
}
