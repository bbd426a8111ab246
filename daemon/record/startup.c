/* SPDX-License-Identifier: MIT */
/* How does a recording start: opening the requested processes, and finding the first VM? */
#include "daemon/record/startup.h"
#include "attach/clock.h"
#include "daemon/decode/mapped.h"
#include "daemon/targets/finder.h"
#include "daemon/targets/processes.h"
#include "daemon/targets/target_list.h"
#include "daemon/tick/tick.h"
#include "luastate/explain.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	/* For a process that just started and has no VM yet. */
	START_PATIENCE_NS = 500 * 1000 * 1000,
	START_NAP_NS = 20 * 1000 * 1000,
	/* Between probes while waiting for a process, and of a process without LuaJIT. */
	WAIT_NAP_NS = 100 * 1000 * 1000,
	WAIT_POLL_NS = 200 * 1000 * 1000,
	/* Time to search one of several processes before the next one. */
	START_SHARE_NS = 500 * 1000 * 1000,
	/* All searches before the recording: some 15 GiB of heap. */
	START_SEARCH_S = 10,
	/* Processes with the same pid in other namespaces that a message lists. */
	INNER_SHOWN = 8,
};

/* ---- Opening ---------------------------------------------------------------------------- */

/* List the pids in our namespace of processes with this pid in another one. */
static void tell_inner(pid_t pid, const pid_t *outer, size_t count, char *ret_text, size_t len)
{
	struct attach_names names;
	size_t used;

	snprintf(ret_text, len,
		 "process %d exists in %zu pid namespaces: give its pid in this namespace:",
		 (int)pid, count);
	for (size_t i = 0; i < count && i < INNER_SHOWN; i++) {
		used = strlen(ret_text);
		if (attach_names_of(outer[i], &names))
			snprintf(ret_text + used, len - used, "%s %d (%s)", i ? "," : "",
				 (int)outer[i], names.command);
	}
	if (count > INNER_SHOWN) {
		used = strlen(ret_text);
		snprintf(ret_text + used, len - used, ", ...");
	}
}

/* Find the only process with this pid in another namespace. @return 0 if there is none, or
 * several. */
static pid_t find_inner(struct recorder *recorder, pid_t pid, char *ret_text, size_t len)
{
	pid_t outer[INNER_SHOWN];
	size_t count = attach_find_inner(pid, outer, INNER_SHOWN);
	struct attach_names names;

	if (count > 1)
		tell_inner(pid, outer, count, ret_text, len);
	if (count != 1 || !attach_names_of(outer[0], &names))
		return 0;
	snprintf(ret_text, len, "process %d of another pid namespace is %d (%s) here: recording it",
		 (int)pid, (int)outer[0], names.command);
	recorder_notice(recorder, ret_text);
	return outer[0];
}

static int open_by_pid(struct recorder *recorder, pid_t pid, struct recorder_target **ret_of,
		       char *ret_text, size_t len, struct failure *why)
{
	struct attach_process *process;
	struct recorder_target *of;

	if (target_open_process(pid, &process, why) != 0) {
		pid_t outer = 0;

		*ret_text = '\0';
		if (why->kind == FAILURE_GONE)
			outer = find_inner(recorder, pid, ret_text, len);
		if (outer && target_open_process(outer, &process, why) == 0) {
			pid = outer;
		} else {
			if (!*ret_text || outer)
				attach_explain(outer ? outer : pid, why, ret_text, len);
			return -1;
		}
	}
	if (recorder_find_entry(recorder, pid)) {
		attach_process_close(process);
		return 0; /* given twice */
	}
	of = recorder_add_entry(recorder, pid, process, why);
	if (of && recorder_open_target(recorder, of, why) == 0) {
		*ret_of = of;
		return 0;
	}
	attach_explain(pid, why, ret_text, len);
	if (of)
		recorder_remove_entry(recorder, recorder->target_count - 1);
	return -1;
}

/* Record those of several processes that can be recorded. */
static int open_given(struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;
	enum daemon_end end = DAEMON_END_STOPPED;
	char text[512];

	for (size_t i = 0; i < options->pid_count; i++) {
		struct recorder_target *of = NULL;
		struct failure why = { 0 };

		if (open_by_pid(recorder, options->pids[i], &of, text, sizeof(text), &why) == 0) {
			if (of)
				of->awaits_vm = options->await_vm && i == 0;
			continue;
		}
		end = end == DAEMON_END_STOPPED ? target_end_of_failure(&why) : end;
		if (recorder_is_single(recorder))
			return recorder_end_with(recorder, end, "%s", text);
		recorder_notice(recorder, text);
	}
	if (end != DAEMON_END_STOPPED && recorder->target_count == 0 && options->name_count == 0)
		return recorder_end_with(recorder, end, "none of the processes can be recorded");
	return 0;
}

static bool is_denied(const struct recorder_target *of)
{
	return !of->process;
}

/* ---- Waiting ---------------------------------------------------------------------------- */

static bool waits(const struct recorder *recorder)
{
	return recorder->options->wait_s > 0;
}

/* Whether a process that was given by pid exists, even if it cannot be recorded. */
static bool is_given_there(const struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;

	for (size_t i = 0; i < options->pid_count; i++) {
		struct attach_process *process = NULL;
		struct failure why = { 0 };
		pid_t outer;

		if (attach_process_open(options->pids[i], &process, &why) == 0 ||
		    why.kind != FAILURE_GONE ||
		    attach_find_inner(options->pids[i], &outer, 1) > 0) {
			attach_process_close(process);
			return true;
		}
	}
	return false;
}

static void wait_for_process(struct recorder *recorder)
{
	const struct timespec nap = { .tv_nsec = WAIT_NAP_NS };

	while (!is_given_there(recorder)) {
		recorder_find_new(recorder, clock_now_ns());
		if (recorder_any(recorder, entry_is_open) || *recorder->options->stop ||
		    clock_now_ns() >= recorder->wait_ns)
			return;
		nanosleep(&nap, NULL);
	}
}

/* Nothing was found: set the end, or that the wait was interrupted. */
static int end_wait(struct recorder *recorder)
{
	size_t used = strlen(recorder->text);

	if (!waits(recorder))
		return -1;
	if (*recorder->options->stop)
		return recorder_end_with(
			recorder, DAEMON_END_EARLY,
			"interrupted while waiting for a process with a Lua state");
	if (clock_now_ns() >= recorder->wait_ns)
		snprintf(recorder->text + used, recorder->text_len - used, " (waited %g s)",
			 recorder->options->wait_s);
	return -1;
}

int recorder_open_processes(struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;
	struct failure why;

	if (!attach_proc_is_ours())
		return recorder_end_with(
			recorder, DAEMON_END_SYSTEM,
			"/proc shows another pid namespace than ljrecord's: mount it again "
			"(unshare --mount-proc), or run ljrecord outside");
	if (finder_create(options, &recorder->finder, &why) != 0)
		return recorder_end_with(recorder, DAEMON_END_SYSTEM, "cannot %s", why.step);
	recorder->wait_ns = clock_now_ns() + (uint64_t)(options->wait_s * 1e9);
	if (waits(recorder))
		wait_for_process(recorder);
	if (open_given(recorder) != 0)
		return end_wait(recorder);
	recorder_find_new(recorder, clock_now_ns());
	if (recorder_any(recorder, entry_is_open))
		return 0;
	if (recorder_any(recorder, is_denied))
		recorder_end_with(recorder, DAEMON_END_DENIED,
				  "not permitted to trace any matching process: use sudo, or "
				  "grant CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
	else
		recorder_end_with(recorder, DAEMON_END_EARLY,
				  "no process matches this name: check it with pgrep");
	return end_wait(recorder);
}

/* ---- The first VM ----------------------------------------------------------------------- */

/* If Lua runs, a stack shows it at once; a search of memory may read a lot. */
static void find_first_vm(struct recorder *recorder, struct recorder_target *of, uint64_t end_ns)
{
	uint64_t begin_ns = clock_now_ns(), share_ns = begin_ns + START_SHARE_NS;
	struct failure why;

	if (entry_has_vm(of) || !entry_has_luajit(of))
		return;
	/* Everything was searched: do not repeat that during a long wait. */
	if (waits(recorder) && !of->target->search.cut && begin_ns < of->search_ns)
		return;
	if (!recorder_is_single(recorder) && share_ns < end_ns)
		end_ns = share_ns;
	target_limit_search(of->target, recorder->options->stop, end_ns);
	recorder_find_vm(recorder, of, &why);
	entry_rest_from_search(of, begin_ns);
}

/* Probe each process once. @param end_ns End of the searches. @return Whether one has a VM. */
static bool look_for_vms(struct recorder *recorder, uint64_t end_ns)
{
	bool found = false;

	for (size_t i = recorder->target_count; i-- > 0 && !*recorder->options->stop;) {
		struct recorder_target *of = recorder->targets[i];

		if (!of->process)
			continue;
		if (waits(recorder) && of->poll_interval_ns > WAIT_POLL_NS)
			of->poll_interval_ns = WAIT_POLL_NS;
		if (!recorder_refresh_entry(recorder, of, clock_now_ns())) {
			recorder_remove_entry(recorder, i);
			continue;
		}
		find_first_vm(recorder, of, end_ns);
		found |= entry_has_vm(of);
	}
	return found;
}

/* Hint at a library that an upgrade has replaced. */
static void add_missing(struct recorder *recorder, pid_t pid)
{
	const struct recorder_target *of = recorder_find_entry(recorder, pid);
	struct symbols_space *space;
	struct failure why;

	if (!of || !of->process || symbols_space_create(of->process, &space, &why) != 0)
		return;
	if (symbols_space_refresh(space, &why) == 0)
		mapped_add_hint(space, recorder->text, recorder->text_len);
	symbols_space_destroy(space);
}

/* Hint at a process in a container with the same pid as this one without LuaJIT. */
static void add_hint(struct recorder *recorder, pid_t pid)
{
	size_t used = strlen(recorder->text);
	pid_t outer[INNER_SHOWN];

	if (attach_find_inner(pid, outer, INNER_SHOWN) == 1)
		snprintf(recorder->text + used, recorder->text_len - used,
			 " (process %d of another pid namespace is %d here)", (int)pid,
			 (int)outer[0]);
	else
		add_missing(recorder, pid);
}

static bool has_unknown_build(const struct recorder_target *of)
{
	const uint64_t *coroutines;

	return of->target && luastate_refused(of->target->lua, &coroutines) > 0;
}

static bool is_searched_in_part(const struct recorder_target *of)
{
	return of->target && of->target->search.cut;
}

/* Say that searches ended before all memory was searched. */
static int end_unfinished(struct recorder *recorder)
{
	char whom[64] = "the processes";

	if (recorder_is_single(recorder))
		snprintf(whom, sizeof(whom), "process %d", (int)recorder->options->pids[0]);
	if (*recorder->options->stop)
		return recorder_end_with(recorder, DAEMON_END_NO_VM,
					 "interrupted before a Lua state was found in %s", whom);
	return recorder_end_with(recorder, DAEMON_END_NO_VM,
				 "no Lua state found in %s: the search of memory stopped after "
				 "%.0f s; try again while Lua code runs, which shows it at "
				 "once",
				 whom, START_SEARCH_S + recorder->options->wait_s);
}

static int end_without_vm(struct recorder *recorder)
{
	const char *what = recorder_any(recorder, entry_has_luajit)
				   ? "LuaJIT's code but no Lua state"
				   : "no LuaJIT";

	if (recorder_any(recorder, entry_is_open) && recorder_any(recorder, has_unknown_build)) {
		recorder_end_with(recorder, DAEMON_END_NO_VM,
				  "the LuaJIT in %s is an unknown build: ljrecord --explain "
				  "--pid PID shows what differs",
				  recorder_is_single(recorder) ? "this process"
							       : "these processes");
		return -1;
	}
	if (*recorder->options->stop || recorder_any(recorder, is_searched_in_part))
		return end_unfinished(recorder);
	if (!recorder_any(recorder, entry_is_open)) {
		recorder_end_all(recorder, false);
	} else if (recorder_is_single(recorder)) {
		pid_t pid = recorder->options->pids[0];

		recorder_end_with(recorder, DAEMON_END_NO_VM,
				  "%s in process %d: give the pid of a process that runs Lua code",
				  what, (int)pid);
		if (!recorder_any(recorder, entry_has_luajit))
			add_hint(recorder, pid);
	} else {
		recorder_end_with(recorder, DAEMON_END_NO_VM,
				  "%s in any of %zu processes: name processes that run Lua code",
				  what, recorder->target_count);
	}
	return -1;
}

static void tell_without_luajit(struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;
	char text[96];

	for (size_t i = 0; i < options->pid_count; i++) {
		const struct recorder_target *of = recorder_find_entry(recorder, options->pids[i]);

		if (!of || entry_has_luajit(of))
			continue;
		snprintf(text, sizeof(text),
			 "no LuaJIT in process %d yet: checking again from time to time",
			 (int)of->pid);
		recorder_notice(recorder, text);
	}
}

/* Whether to stop waiting for a VM. @param end_ns When patience ends. */
static bool is_vain(const struct recorder *recorder, uint64_t end_ns, uint64_t search_end_ns)
{
	const struct daemon_options *options = recorder->options;
	uint64_t now_ns = clock_now_ns();

	if (*options->stop || now_ns >= search_end_ns)
		return true;
	if (!recorder_any(recorder, entry_is_open))
		return !waits(recorder) || !options->name_count || now_ns >= end_ns;
	return now_ns >= end_ns && !recorder_any(recorder, is_searched_in_part);
}

int recorder_find_vms(struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;
	uint64_t begin_ns = clock_now_ns(), end_ns = begin_ns + START_PATIENCE_NS;
	uint64_t search_end_ns = begin_ns + START_SEARCH_S * (uint64_t)1000000000;
	struct timespec nap = { .tv_nsec = START_NAP_NS };

	if (options->await_vm)
		return 0;
	if (waits(recorder) && end_ns < recorder->wait_ns) {
		end_ns = recorder->wait_ns;
		search_end_ns = end_ns + START_SEARCH_S * (uint64_t)1000000000;
	}
	while (!look_for_vms(recorder, search_end_ns)) {
		if (recorder->end != DAEMON_END_STOPPED)
			return -1; /* already reported */
		if (options->children && !waits(recorder) && recorder_any(recorder, entry_is_open))
			return 0;
		if (is_vain(recorder, end_ns, search_end_ns)) {
			end_without_vm(recorder);
			return end_wait(recorder);
		}
		nanosleep(&nap, NULL);
		if (clock_now_ns() >= begin_ns + START_PATIENCE_NS)
			nap.tv_nsec = WAIT_NAP_NS;
		if (waits(recorder))
			recorder_find_new(recorder, clock_now_ns());
	}
	if (recorder->end != DAEMON_END_STOPPED)
		return -1;
	if (!options->children)
		tell_without_luajit(recorder);
	return 0;
}
