/* SPDX-License-Identifier: MIT */
/* What is visible of LuaJIT in a process, and what is the evidence? */
#include "luastate/explain.h"

#include "attach/clock.h"
#include "daemon/decode/target.h"
#include "daemon/dump.h"
#include "daemon/dump/dump_internal.h"
#include "daemon/native/native_names.h"
#include "format/text.h"
#include "symbols/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tick_clock.h"

enum {
	EXPLAIN_STACK_BYTES = 64 * 1024,
	EXPLAIN_THREADS_MAX = 4096,
	/* A search of memory: some 15 GiB of heap. */
	EXPLAIN_SEARCH_S = 10,
	TEXT_MAX = 256,
	LAYOUTS_SHOWN = 8,
	/* Addresses that look like a VM but are not; luastate keeps fewer. */
	EXPLAIN_REFUSED_MAX = 256,
	FAILING_MAX = 1000, /* more than there are invariants */
};

/** State of one explanation. */
struct explain {
	struct daemon_target *target;
	struct attach_image *image;
	const struct attach_reader *reader; /* of the live process */
	FILE *out;
	const char *how; /* how the first VM was found */
};

/* Exported functions that only some builds have. Source: lj_*.h and lua.h of the forks;
 * layouts.table has the branches. */
static const struct {
	const char *symbol, *meaning;
} telling_symbols[] = {
	{ "luaopen_string_buffer", "mainline since 2021-03, OpenResty's fork since 2021-06" },
	{ "lua_setexdata", "OpenResty's fork since 2018-10" },
	{ "lua_resetthread", "OpenResty's fork since 2020-10" },
	{ "lua_setexdata2", "OpenResty's fork since 2020-10" },
	{ "luaM_metrics", "Tarantool's fork since 2020-10" },
	{ "luaM_sysprof_set_writer", "Tarantool's fork since 2022-05" },
};

/* Print text of the target, which may contain control sequences of a terminal. */
static void print_foreign(struct explain *explain, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return;
	format_clean_text(copy, strlen(copy));
	fputs(copy, explain->out);
	free(copy);
}

/* ---- Interpreters ----------------------------------------------------------------------- */

static void print_file(struct explain *explain, uint64_t address)
{
	const struct symbols_mapping *mapping = symbols_space_find(explain->target->space, address);

	print_foreign(explain, mapping && mapping->path[0] ? mapping->path : "unnamed memory");
}

static void print_symbols(struct explain *explain)
{
	for (size_t i = 0; i < sizeof(telling_symbols) / sizeof(telling_symbols[0]); i++) {
		uint64_t address;
		struct failure why;

		if (symbols_find_address(explain->target->space, telling_symbols[i].symbol,
					 &address, &why) == 0)
			fprintf(explain->out, "    exports %s: %s\n", telling_symbols[i].symbol,
				telling_symbols[i].meaning);
	}
}

static void print_difference(void *context, const char *field, int32_t row, int32_t value,
			     const char *how)
{
	struct explain *explain = context;

	if (!how)
		fprintf(explain->out, "      but %s is %d, not %d\n", field, value, row);
	else if (value == -1)
		fprintf(explain->out, "      but %s is not known: %s\n", field, how);
	else
		fprintf(explain->out, "      but %s is %d, not %d, %s\n", field, value, row, how);
}

/* Print an interpreter whose layout is not a row's. */
static void print_own_layout(struct explain *explain, size_t index)
{
	const struct luastate *lua = explain->target->lua;
	const struct luastate_layout *row;
	struct luastate_interpreter interpreter;
	char text[TEXT_MAX];

	if (luastate_compare_debug(lua, index, NULL, NULL, &row) != 0)
		return;
	luastate_interpreter_get(lua, index, &interpreter);
	luastate_describe_layout(row, text, sizeof(text));
	fprintf(explain->out,
		interpreter.is_derived
			? "    no known build matches: its layout is derived; it is closest to: "
			  "%s\n"
			: "    its debug information is used; it is closest to: %s\n",
		text);
	luastate_compare_debug(lua, index, print_difference, explain, &row);
	if (interpreter.has_no_compiler)
		fputs("      but it has no compiler\n", explain->out);
	else if (interpreter.lacks_compiler)
		fputs("      but compiled code is not followed: the VM has too few traces to "
		      "show where they are\n",
		      explain->out);
}

static bool is_derived(const struct luastate *lua, size_t index)
{
	struct luastate_interpreter interpreter;

	luastate_interpreter_get(lua, index, &interpreter);
	return interpreter.is_derived;
}

static void print_interpreters(struct explain *explain)
{
	const struct luastate *lua = explain->target->lua;
	size_t count = luastate_interpreter_count(lua);

	if (count == 0)
		fputs("  interpreter  none: no unwind entry has the rule of LuaJIT's VM frame\n",
		      explain->out);
	for (size_t i = 0; i < count; i++) {
		struct luastate_interpreter interpreter;

		luastate_interpreter_get(lua, i, &interpreter);
		fprintf(explain->out, "  interpreter  0x%" PRIx64 " to 0x%" PRIx64 " in ",
			interpreter.start, interpreter.end);
		print_file(explain, interpreter.start);
		fprintf(explain->out, "\n    its unwind rule is that of VM frames of %u bytes\n",
			interpreter.cframe_bytes);
	}
	for (size_t i = 0; i < count; i++)
		if (!is_derived(lua, i))
			print_own_layout(explain, i);
	if (count)
		print_symbols(explain);
}

/* ---- Search ----------------------------------------------------------------------------- */

/* Copy the registers and the leaf end of the native stack. */
static bool plan(void *context, struct attach_image *image, unsigned round)
{
	const struct attach_thread *thread = context;
	uint64_t sp = attach_sp(attach_image_registers(image)), end = sp + EXPLAIN_STACK_BYTES;
	struct failure why;

	(void)round;
	if (thread->stack_limit > sp && end > thread->stack_limit)
		end = thread->stack_limit;
	attach_image_want(image, remote_addr_make(sp), (size_t)(end - sp), &why);
	return false; /* one round */
}

/* Find the VM on a thread's stack. A blocked thread is read in place, a running one is stopped. */
static const struct luastate_vm *find_on_thread(struct explain *explain,
						struct attach_thread *thread)
{
	const struct attach_planner planner = { .plan = plan, .context = thread };
	struct luastate *lua = explain->target->lua;
	struct attach_timing timing;
	struct failure why;
	uint64_t sp = 0;

	switch (attach_thread_state(thread, &sp, NULL)) {
	case ATTACH_EXITED:
		return NULL;
	case ATTACH_BLOCKED:
		return sp ? luastate_find_on_stack(lua, explain->reader, sp, thread->stack_limit,
						   &why)
			  : NULL;
	case ATTACH_RUNNING:
		break;
	}
	if (attach_capture(explain->target->process, thread, &planner, explain->image, &timing,
			   &why) != 0)
		return NULL;
	return luastate_find_on_stack(
		lua, attach_image_reader_behind(explain->image, explain->reader, false),
		attach_sp(attach_image_registers(explain->image)), thread->stack_limit, &why);
}

static void find_on_threads(struct explain *explain, const struct luastate_vm **ret_vms,
			    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ret_vms[i] =
			find_on_thread(explain, attach_threads_get(explain->target->threads, i));
		if (ret_vms[i] && !explain->how)
			explain->how = "by a VM frame on a native stack";
	}
}

/* ---- VMs -------------------------------------------------------------------------------- */

static void print_invariant(void *context, const char *what, uint64_t address, uint64_t value,
			    bool holds)
{
	struct explain *explain = context;

	fprintf(explain->out, "    %-7s %s: 0x%" PRIx64 " at 0x%" PRIx64 "\n",
		holds ? "holds" : "FAILS", what, value, address);
}

/* Print other layouts that the VM matches in all visible facts. */
static void print_other_layouts(struct explain *explain, const struct luastate_layout *taken,
				uint64_t G)
{
	const struct luastate_layout *layouts[LAYOUTS_SHOWN];
	size_t count = luastate_fitting_layouts(explain->target->lua, explain->reader, G, layouts,
						LAYOUTS_SHOWN);
	bool is_row = false;
	char text[TEXT_MAX];

	for (size_t i = 0; i < count; i++)
		is_row |= layouts[i] == taken;
	/* With debug information there is no other choice. */
	for (size_t i = 0; i < count && is_row; i++) {
		if (layouts[i] == taken)
			continue;
		luastate_describe_layout(layouts[i], text, sizeof(text));
		fprintf(explain->out, "    or, as a compiled trace will show: %s\n", text);
	}
}

/* A derived layout is known when its first VM is known. */
static void print_derivation(struct explain *explain, const struct luastate_layout *layout)
{
	const struct luastate *lua = explain->target->lua;

	for (size_t i = 0; i < luastate_interpreter_count(lua); i++) {
		struct luastate_interpreter interpreter;

		luastate_interpreter_get(lua, i, &interpreter);
		if (interpreter.layout == layout && interpreter.is_derived)
			print_own_layout(explain, i);
	}
}

static bool print_vm(struct explain *explain, uint64_t coroutine)
{
	struct luastate_examination vm;
	char text[TEXT_MAX];
	struct luastate *lua = explain->target->lua;
	struct failure why;

	/* First without output, to learn the layout. */
	if (luastate_examine(lua, explain->reader, coroutine, NULL, NULL, &vm) != 0)
		return false;
	luastate_describe_layout(vm.layout, text, sizeof(text));
	fprintf(explain->out, "  VM           global state 0x%" PRIx64 "%s\n", vm.G,
		vm.fits ? "" : ", of an unknown build");
	fprintf(explain->out, "    %s %s\n", vm.fits ? "layout:" : "nearest layout:", text);
	if (vm.fits) {
		print_other_layouts(explain, vm.layout, vm.G);
		print_derivation(explain, vm.layout);
	}
	if (vm.fits &&
	    luastate_read_version(lua, explain->reader, vm.G, text, sizeof(text), &why) == 0) {
		fputs("    jit.version: ", explain->out);
		print_foreign(explain, text);
		fputc('\n', explain->out);
	}
	luastate_examine(lua, explain->reader, coroutine, print_invariant, explain, &vm);
	return vm.fits;
}

static void count_failing(void *context, const char *what, uint64_t address, uint64_t value,
			  bool holds)
{
	unsigned *failing = context;

	(void)what, (void)address, (void)value;
	*failing += !holds;
}

static unsigned failing_of(struct explain *explain, uint64_t coroutine)
{
	struct luastate_examination vm;
	unsigned failing = 0;

	return luastate_examine(explain->target->lua, explain->reader, coroutine, count_failing,
				&failing, &vm) == 0
		       ? failing
		       : FAILING_MAX;
}

/* Freed memory of a VM may also look like a main coroutine, but few other invariants hold there. */
static void print_refused(struct explain *explain, const uint64_t *coroutines, size_t count)
{
	unsigned failing[EXPLAIN_REFUSED_MAX], least = FAILING_MAX;
	size_t worse = 0;

	count = count < EXPLAIN_REFUSED_MAX ? count : EXPLAIN_REFUSED_MAX;
	/* Count only once, because the process runs. */
	for (size_t i = 0; i < count; i++) {
		failing[i] = failing_of(explain, coroutines[i]);
		least = failing[i] < least ? failing[i] : least;
	}
	for (size_t i = 0; i < count; i++) {
		if (failing[i] > 2 * least + 1)
			worse++;
		else
			print_vm(explain, coroutines[i]);
	}
	if (worse)
		fprintf(explain->out, "  and %zu more that match less\n", worse);
}

static void print_threads(struct explain *explain, const struct luastate_vm *const *vms,
			  size_t count)
{
	unsigned lua_threads = 0;

	for (size_t i = 0; i < count; i++) {
		if (!vms[i])
			continue;
		fprintf(explain->out, "  thread %d runs Lua now, of the VM at 0x%" PRIx64 "\n",
			(int)attach_threads_get(explain->target->threads, i)->tid, vms[i]->G);
		lua_threads++;
	}
	fprintf(explain->out, "  threads      %zu, of which %u have Lua on their stacks now\n",
		count, lua_threads);
}

/* Print how LuaJIT's own native functions are named. */
static void print_native_names(struct explain *explain, uint64_t interpreter)
{
	struct daemon_native_counts counts;
	size_t unnamed;

	if (!daemon_native_count(explain->target->space, interpreter, &counts))
		return;
	unnamed = counts.by_how[LUASTATE_NATIVE_UNNAMED];
	fprintf(explain->out,
		"    of native functions of LuaJIT: %zu of %zu: %zu by symbols, %zu by tables, "
		"%zu by calls, %zu by signature\n",
		counts.all - unnamed, counts.all, counts.by_symbol,
		counts.by_how[LUASTATE_NATIVE_BY_TABLE], counts.by_how[LUASTATE_NATIVE_BY_CALLS],
		counts.by_how[LUASTATE_NATIVE_BY_SIGNATURE]);
}

static void print_names(struct explain *explain)
{
	struct luastate *lua = explain->target->lua;
	struct symbols_function function;
	struct luastate_interpreter interpreter;
	struct failure why;

	luastate_interpreter_get(lua, 0, &interpreter);
	fputs("  names        of Lua functions: from their definitions; of library functions: from "
	      "the tables of loaded modules\n",
	      explain->out);
	if (symbols_find_function(explain->target->space, interpreter.start, &function, &why) == 0)
		fprintf(explain->out, "    of native functions: %s\n",
			function.is_symbol ? "symbols, also of LuaJIT's inner functions"
					   : "exported symbols, elsewhere module and offset");
	print_native_names(explain, interpreter.start);
}

static enum daemon_end explain_vms(struct explain *explain)
{
	size_t count = attach_threads_count(explain->target->threads), known, refused;
	const struct luastate_vm **vms = NULL;
	const uint64_t *coroutines;
	struct failure why;

	count = count < EXPLAIN_THREADS_MAX ? count : EXPLAIN_THREADS_MAX;
	vms = calloc(count + 1, sizeof(*vms));
	if (!vms)
		return DAEMON_END_SYSTEM;
	find_on_threads(explain, vms, count);
	target_limit_search(explain->target, NULL,
			    clock_now_ns() + EXPLAIN_SEARCH_S * (uint64_t)1000000000);
	if (target_find_vm(explain->target, &why) == 0 && !explain->how)
		explain->how = "in memory: a main coroutine and a global state that refer to each "
			       "other";
	known = luastate_vm_count(explain->target->lua);
	if (known)
		fprintf(explain->out, "  found        %s\n", explain->how);
	for (size_t i = 0; i < known; i++)
		print_vm(explain, luastate_vm_get(explain->target->lua, i)->main_thread);
	refused = luastate_refused(explain->target->lua, &coroutines);
	if (!known)
		print_refused(explain, coroutines, refused);
	if (!known && explain->target->search.cut)
		fprintf(explain->out,
			"  VM           none so far: the search of memory stopped after %d "
			"s\n",
			EXPLAIN_SEARCH_S);
	else if (!known && !refused && luastate_has_interpreter(explain->target->lua))
		fputs("  VM           none: no thread has Lua on its stack, no main coroutine is "
		      "in "
		      "memory\n",
		      explain->out);
	print_threads(explain, vms, count);
	if (known)
		print_names(explain);
	free(vms);
	return known ? DAEMON_END_STOPPED : DAEMON_END_NO_VM;
}

static enum daemon_end explain_target(struct daemon_target *target, pid_t pid, FILE *out)
{
	struct explain explain = { .target = target,
				   .image = attach_image_create(),
				   .reader = attach_process_reader(target->process),
				   .out = out };
	enum daemon_end end = DAEMON_END_SYSTEM;

	fprintf(out, "process %d\n", (int)pid);
	print_interpreters(&explain);
	if (explain.image)
		end = explain_vms(&explain);
	attach_image_destroy(explain.image);
	return end;
}

enum daemon_end daemon_explain(pid_t pid, FILE *out, char *ret_text, size_t len)
{
	const struct target_listener listener = { .function = target_ignore_function };
	struct attach_process *process = NULL;
	struct daemon_target *target = NULL;
	enum daemon_end end;
	struct failure why;

	if (attach_process_open(pid, &process, &why) != 0 ||
	    target_create(process, &listener, &target, &why) != 0 ||
	    target_refresh(target, &why) != 0) {
		attach_explain(pid, &why, ret_text, len);
		end = target_end_of_failure(&why);
	} else {
		end = explain_target(target, pid, out);
		if (end == DAEMON_END_SYSTEM)
			snprintf(ret_text, len, "out of memory");
		else
			snprintf(ret_text, len, "no known LuaJIT in process %d", (int)pid);
	}
	target_destroy(target);
	attach_process_close(process);
	return end;
}
