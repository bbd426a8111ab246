/* SPDX-License-Identifier: MIT */
/* What runs in the processes of a recording, where are their VMs, and which processes are new or
 * gone? */
#include "daemon/targets/processes.h"
#include "attach/clock.h"
#include "daemon/outcome/outcomes.h"
#include "daemon/outcome/settle.h"
#include "daemon/recorder/live_channel.h"
#include "daemon/targets/finder.h"
#include "daemon/targets/target_list.h"

enum {
	REFRESH_INTERVAL_NS = 250 * 1000 * 1000,
	/* Reading the maps holds a lock of the target, so do not do it at every tick. */
	REFRESH_SOON_NS = 5 * 1000 * 1000,
	/* A new program maps its libraries, and may soon call exec again. */
	EXEC_RECENT_NS = 250 * 1000 * 1000,
	EXEC_POLL_NS = 1000 * 1000,
	/* A program that has no LuaJIT this long after its exec counts as one without LuaJIT. A
	 * program that ends earlier was too short to be examined. */
	EXEC_SETTLED_NS = 100 * 1000 * 1000,
	/* Longest interval between probes of a process without LuaJIT; the interval doubles up to
	 * this. */
	POLL_INTERVAL_NS = 2000 * 1000 * 1000,
	/* Between searches of memory: at least this time, and a multiple of the last search's
	 * duration. */
	SEARCH_INTERVAL_NS = 10 * 1000 * 1000,
	SEARCH_REST = 20,
	/* Between searches for more VMs: doubles after each complete search without a result, up to
	 * MORE_INTERVALS_MAX times this. */
	MORE_INTERVAL_NS = 1000 * 1000 * 1000,
	MORE_INTERVALS_MAX = 64,
	/* Longest search while other processes are recorded, and while none is: nothing is sampled
	 * during a search. */
	SEARCH_NS = 50 * 1000 * 1000,
	SEARCH_ALONE_NS = 2000 * 1000 * 1000,
	/* Time for a process to load LuaJIT after it has started another program. */
	LOST_PATIENCE_NS = 1000 * 1000 * 1000,
};

/* ---- LuaJIT in a process ---------------------------------------------------------------- */

/* Keep nothing of a process without LuaJIT, and never stop it. */
static void drop_target(struct recorder_target *of)
{
	if (!of->target || !recorder_settle(of))
		return;
	target_destroy(of->target);
	of->target = NULL;
}

int recorder_open_target(struct recorder *recorder, struct recorder_target *of, struct failure *why)
{
	const struct target_listener listener = { .function = recorder_announce,
						  .context = recorder };

	if (target_create(of->process, &listener, &of->target, why) != 0 ||
	    target_refresh(of->target, why) != 0) {
		target_destroy(of->target);
		of->target = NULL;
		return -1;
	}
	attach_threads_on_forget(of->target->threads, recorder->sampling->forget, of);
	return 0;
}

/* Probe for LuaJIT in a process. @return 0, or -1 if the process cannot be read. */
static int look_for_luajit(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns,
			   struct failure *why)
{
	recorder_settle_all(recorder);
	of->poll_ns = now_ns + of->poll_interval_ns;
	if (of->poll_interval_ns < POLL_INTERVAL_NS)
		of->poll_interval_ns *= 2;
	if (recorder_open_target(recorder, of, why) != 0)
		return -1;
	if (entry_has_luajit(of))
		recorder_note_kind(recorder, of, DAEMON_PROCESS_LUAJIT);
	else if (!of->awaits_vm)
		drop_target(of);
	return 0;
}

void entry_rest_from_search(struct recorder_target *of, uint64_t begin_ns)
{
	of->search_ns = begin_ns + (clock_now_ns() - begin_ns) * SEARCH_REST + SEARCH_INTERVAL_NS;
}

static void limit_search(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns)
{
	uint64_t end_ns = now_ns + (recorder_any(recorder, entry_has_vm) ? (uint64_t)SEARCH_NS
									 : SEARCH_ALONE_NS);

	target_limit_search(of->target, recorder->options->stop,
			    end_ns < recorder->end_ns ? end_ns : recorder->end_ns);
}

void recorder_search_vm(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns)
{
	struct failure why;

	if (entry_has_vm(of) || !entry_has_luajit(of) || now_ns < of->search_ns)
		return;
	recorder_settle_all(recorder);
	limit_search(recorder, of, now_ns);
	target_find_vm(of->target, &why);
	entry_rest_from_search(of, now_ns);
}

/* If another compiler made the code, searches find nothing. */
static void rest_from_more(struct recorder_target *of, uint64_t begin_ns, bool found)
{
	uint64_t took_ns = clock_now_ns() - begin_ns;

	if (found)
		of->more_interval_ns = MORE_INTERVAL_NS;
	else if (!of->target->search.cut &&
		 of->more_interval_ns < MORE_INTERVALS_MAX * (uint64_t)MORE_INTERVAL_NS)
		of->more_interval_ns *= 2;
	of->more_ns = begin_ns + took_ns * SEARCH_REST + of->more_interval_ns;
}

void recorder_search_more(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns)
{
	bool found;

	/* Stacks usually show the VMs before this first search. */
	if (!of->more_interval_ns) {
		of->more_interval_ns = MORE_INTERVAL_NS;
		of->more_ns = now_ns + of->more_interval_ns;
	}
	if (!entry_has_vm(of) || now_ns < of->more_ns)
		return;
	recorder_settle_all(recorder);
	limit_search(recorder, of, now_ns);
	found = target_find_more_vms(of->target);
	rest_from_more(of, now_ns, found);
}

/* Forget what is known of the old program; its threads remain. */
static void note_new_program(struct recorder *recorder, struct recorder_target *of)
{
	attach_process_note_exec(of->process);
	of->had_exec = true;
	of->exec_ns = clock_now_ns();
	of->has_root = false;
	of->poll_ns = of->search_ns = of->more_interval_ns = 0;
	of->poll_interval_ns = PROCESSES_POLL_FIRST_NS;
	recorder_note_name(recorder, of);
	if (recorder->live_channel)
		live_channel_note_exec(recorder, of);
	if (!of->target)
		return;
	luastate_reset(of->target->lua);
	attach_threads_note_exec(of->target->threads);
	of->target->generation = UINT64_MAX;
}

static void take_new_program(struct recorder *recorder, struct recorder_target *of)
{
	/* The remaining thread may be another one with the same tid. */
	of->lost_thread = false;
	if (of->target)
		of->recorder->sampling->end_process(of);
	note_new_program(recorder, of);
}

static bool is_mapped(const struct recorder_target *of, uint64_t address)
{
	return symbols_space_find(of->target->space, address) != NULL;
}

static void read_maps(struct recorder_target *of)
{
	uint64_t now_ns;
	struct failure why;

	/* If this fails, the next refresh reports why. */
	target_refresh_maps(of->target, &why);
	now_ns = clock_now_ns();
	of->maps_ns = now_ns + (now_ns < of->exec_ns + EXEC_RECENT_NS ? (uint64_t)EXEC_POLL_NS
								      : (uint64_t)REFRESH_SOON_NS);
}

bool recorder_learn_maps(struct recorder_target *of, uint64_t pc)
{
	if (clock_now_ns() < of->maps_ns || attach_process_fate(of->process) == ATTACH_FATE_EXEC)
		return false;
	read_maps(of);
	return is_mapped(of, pc);
}

bool recorder_follow_maps(struct recorder *recorder, struct recorder_target *of, pid_t tid,
			  uint64_t pc, uint64_t sp)
{
	bool is_new;

	if ((is_mapped(of, pc) && is_mapped(of, sp)) || clock_now_ns() < of->maps_ns)
		return false;
	is_new = attach_process_fate(of->process) == ATTACH_FATE_EXEC;
	if (is_new)
		note_new_program(recorder, of);
	read_maps(of);
	/* If the main thread called exec, the thread and its copies continue. If another thread
	 * did, it took over the main thread's tid. */
	if (is_new && (tid != of->pid || !is_mapped(of, pc) || !is_mapped(of, sp)))
		of->lost_thread = true;
	if (is_new)
		of->refresh_ns = 0;
	return is_new;
}

/* ---- Refreshing ------------------------------------------------------------------------- */

void recorder_refresh_soon(struct recorder_target *of, uint64_t now_ns)
{
	if (of->refresh_ns > now_ns + REFRESH_SOON_NS)
		of->refresh_ns = now_ns + REFRESH_SOON_NS;
}

static uint64_t interval_of(const struct recorder_target *of)
{
	/* A command's program may have just started, or may be mapping its libraries. */
	if (of->awaits_vm && !entry_has_vm(of))
		return REFRESH_SOON_NS;
	if (!of->target && of->poll_interval_ns < REFRESH_INTERVAL_NS)
		return of->poll_interval_ns;
	return REFRESH_INTERVAL_NS;
}

static int refresh_target(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns,
			  struct failure *why)
{
	if (target_refresh(of->target, why) != 0)
		return -1;
	if (target_has_new_code(of->target, now_ns)) {
		recorder_settle_all(recorder);
		target_take_new_code(of->target);
	}
	return 0;
}

/* @return false if the process has ended. */
bool recorder_refresh_entry(struct recorder *recorder, struct recorder_target *of, uint64_t now_ns)
{
	enum attach_fate fate = attach_process_fate(of->process);
	struct failure why = { 0 };
	int ret = 0;

	/* A refresh forgets ended threads and their copies, so receive these copies first. */
	if (recorder->sampler && !recorder->sampling->take(recorder))
		return true;
	if (fate == ATTACH_FATE_ENDED)
		return false;
	/* The copies may have shown the exec, so that it is noted now. */
	if (fate == ATTACH_FATE_EXEC)
		fate = attach_process_fate(of->process);
	if (fate == ATTACH_FATE_EXEC || of->lost_thread)
		take_new_program(recorder, of);
	if (of->target)
		ret = refresh_target(recorder, of, now_ns, &why);
	else if (now_ns >= of->poll_ns)
		ret = look_for_luajit(recorder, of, now_ns, &why);
	/* Out of memory or descriptors: continue with what is known. */
	if (ret != 0 && why.kind == FAILURE_GONE &&
	    attach_process_fate(of->process) == ATTACH_FATE_ENDED)
		return false;
	if (entry_has_luajit(of))
		recorder_note_kind(recorder, of, DAEMON_PROCESS_LUAJIT);
	else if (!of->awaits_vm)
		drop_target(of);
	else if (of->had_exec && now_ns >= of->exec_ns + EXEC_SETTLED_NS)
		recorder->was_vain = true;
	of->refresh_ns = now_ns + interval_of(of);
	return true;
}

/* Whether /proc still shows a process that was refused. */
static bool is_there(pid_t pid)
{
	struct attach_names names;

	return attach_names_of(pid, &names);
}

static bool may_have_luajit(const struct recorder_target *of)
{
	return of->process && (of->target || !of->had_exec);
}

/* Without names and children no new process can come. A command may start any program. */
static bool is_lost(struct recorder *recorder, uint64_t now_ns)
{
	const struct daemon_options *options = recorder->options;

	if (options->name_count || options->children || options->await_vm ||
	    recorder_any(recorder, may_have_luajit))
		recorder->lost_ns = 0;
	else if (!recorder->lost_ns)
		recorder->lost_ns = now_ns + LOST_PATIENCE_NS;
	return recorder->lost_ns && now_ns >= recorder->lost_ns;
}

static bool is_known(void *context, pid_t pid)
{
	return recorder_find_entry(context, pid) != NULL;
}

static bool take_found(void *context, pid_t pid)
{
	struct recorder *recorder = context;
	struct attach_process *process = NULL;
	struct recorder_target *of;
	struct failure why, ignored = { 0 };

	if (attach_process_open(pid, &process, &why) != 0 && why.kind != FAILURE_DENIED &&
	    why.kind != FAILURE_BUSY)
		return false; /* ended, or a process that cannot have LuaJIT */
	if (!process && why.kind == FAILURE_BUSY)
		return false; /* tried again while it is new */
	of = recorder_add_entry(recorder, pid, process, &ignored);
	if (!of && ignored.kind == FAILURE_LIMIT && !recorder->reported_full) {
		recorder->reported_full = true;
		recorder_notice(recorder, "too many processes: some are not recorded");
	}
	if (of && !process)
		recorder_note_kind(recorder, of, DAEMON_PROCESS_DENIED);
	if (of && recorder->live_channel)
		live_channel_note_found(recorder, of);
	return of != NULL;
}

void recorder_find_new(struct recorder *recorder, uint64_t now_ns)
{
	const struct finder_listener listener = { .is_known = is_known,
						  .found = take_found,
						  .context = recorder };

	finder_poll(recorder->finder, &listener, now_ns);
}

bool recorder_refresh(struct recorder *recorder, uint64_t now_ns)
{
	bool lost;

	recorder_find_new(recorder, now_ns);
	for (size_t i = recorder->target_count; i-- > 0;) {
		struct recorder_target *of = recorder->targets[i];

		if (now_ns < of->refresh_ns)
			continue;
		of->refresh_ns = now_ns + REFRESH_INTERVAL_NS;
		if (of->process ? !recorder_refresh_entry(recorder, of, now_ns)
				: !is_there(of->pid))
			recorder_remove_entry(recorder, i);
		else
			recorder_search_vm(recorder, of, now_ns);
	}
	lost = is_lost(recorder, now_ns);
	if (recorder->end != DAEMON_END_STOPPED)
		return false;
	if (recorder_any(recorder, entry_is_open) && !lost)
		return true;
	/* A live session waits for the next process with that name. */
	if (recorder->live_channel && recorder->options->name_count)
		return true;
	recorder_end_all(recorder, lost);
	return false;
}

void recorder_deny(struct recorder *recorder, struct recorder_target *of, const struct failure *why)
{
	char text[512];

	attach_explain(of->pid, why, text, sizeof(text));
	drop_target(of);
	if (of->target)
		return;
	attach_process_close(of->process);
	of->process = NULL;
	recorder_note_kind(recorder, of, DAEMON_PROCESS_DENIED);
	if (recorder_any(recorder, entry_is_open))
		recorder_notice(recorder, text);
	else
		recorder_end_with(recorder, DAEMON_END_DENIED, "%s", text);
}
