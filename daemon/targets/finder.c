/* SPDX-License-Identifier: MIT */
/* Which new processes does a recording include, by name and by parent? */
#include "daemon/targets/finder.h"
#include "attach/clock.h"
#include "attach/process.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/array.h"
#include "daemon/targets/name_patterns.h"
#include "daemon/tick_clock.h"

enum {
	POLL_INTERVAL_NS = 200 * 1000 * 1000,
	/* After a poll, wait this many times its duration. */
	POLL_REST = 20,
	/* Every few polls check all processes again, because an exec changes a process's name. */
	FULL_INTERVAL_POLLS = 5,
};

/** Ascending. */
struct pid_list {
	pid_t *pids;
	size_t count;
};

struct finder {
	const struct daemon_options *options;
	struct name_patterns *patterns;
	/* A process is checked until two polls have seen it, because a new process usually calls
	 * exec soon. */
	struct pid_list last, older;
	uint64_t poll_ns;
	unsigned polls;
};

int finder_create(const struct daemon_options *options, struct finder **ret_finder,
		  struct failure *why)
{
	struct finder *finder = calloc(1, sizeof(*finder));

	if (!finder)
		return failure_set_errno(why, ENOMEM, 0, "find processes");
	if (name_patterns_create(options->names, options->name_count, &finder->patterns, why)) {
		finder_destroy(finder);
		return -1;
	}
	finder->options = options;
	*ret_finder = finder;
	return 0;
}

void finder_destroy(struct finder *finder)
{
	if (!finder)
		return;
	name_patterns_destroy(finder->patterns);
	free(finder->last.pids);
	free(finder->older.pids);
	free(finder);
}

static bool holds(const struct pid_list *list, pid_t pid)
{
	size_t at = ARRAY_SEARCH(list->count, i, list->pids[i] < pid);

	return at < list->count && list->pids[at] == pid;
}

static bool has_name(const struct finder *finder, pid_t pid)
{
	struct attach_names names;

	return finder->options->name_count > 0 && attach_names_of(pid, &names) &&
	       name_patterns_match(finder->patterns, &names);
}

/* Whether the process is a child or later descendant of a recorded one. Its parent may have ended
 * before we saw it, but only descendants of a session's leader are in that session. */
static bool is_child(const struct finder *finder, const struct finder_listener *listener, pid_t pid)
{
	pid_t parent, leader;

	if (!finder->options->children)
		return false;
	parent = attach_parent_of(pid);
	if (parent > 0 && listener->is_known(listener->context, parent))
		return true;
	leader = attach_session_of(pid);
	return leader > 0 && listener->is_known(listener->context, leader);
}

/* @return Whether the process was accepted. */
static bool check(const struct finder *finder, const struct finder_listener *listener, pid_t pid)
{
	pid_t self = getpid();

	if (pid == self || listener->is_known(listener->context, pid))
		return false;
	/* Exclude our own children, such as the writer. */
	if (!has_name(finder, pid) && !is_child(finder, listener, pid))
		return false;
	return attach_parent_of(pid) != self && listener->found(listener->context, pid);
}

static void check_processes(struct finder *finder, const struct finder_listener *listener,
			    const struct pid_list *now)
{
	bool all = finder->polls++ % FULL_INTERVAL_POLLS == 0, more = true;

	/* A child may precede its parent in the list. */
	while (more) {
		more = false;
		for (size_t i = 0; i < now->count; i++)
			if (all || !holds(&finder->older, now->pids[i]))
				more |= check(finder, listener, now->pids[i]);
		more &= finder->options->children;
	}
}

void finder_poll(struct finder *finder, const struct finder_listener *listener, uint64_t now_ns)
{
	uint64_t begin_ns = clock_now_ns();
	struct pid_list now = { 0 };
	struct failure why; /* out of memory or descriptors: perhaps not for long */
	uint64_t took_ns;

	if ((!finder->options->children && finder->options->name_count == 0) ||
	    now_ns < finder->poll_ns)
		return;
	if (attach_list_processes(&now.pids, &now.count, &why) == 0) {
		check_processes(finder, listener, &now);
		free(finder->older.pids);
		finder->older = finder->last;
		finder->last = now;
	}
	took_ns = clock_now_ns() - begin_ns;
	finder->poll_ns = now_ns + (took_ns * POLL_REST > POLL_INTERVAL_NS ? took_ns * POLL_REST
									   : POLL_INTERVAL_NS);
}
