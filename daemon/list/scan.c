/* SPDX-License-Identifier: MIT */
/* How is a list of processes made, and passed on while it grows? */
#include "daemon/list/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/array.h"
#include "attach/clock.h"
#include "attach/process.h"
#include "daemon/list/listed_vms.h"
#include "daemon/list/luajit_files.h"
#include "daemon/targets/name_patterns.h"

enum {
	NS_PER_MS = 1000 * 1000,
	/* Examining all processes takes much less, unless the machine is overloaded. */
	EXAMINE_MAX_MS = 5000,
	/* A shorter measurement of processor time shows a process as busy that just woke. */
	CPU_SPAN_MS = 100,
	/* When reading VMs ends: this long after the start, or after the processes are known. */
	VMS_END_MS = 800,
	VMS_MIN_MS = 200,
	/* For the VMs of one process. */
	VMS_EACH_MS = 60,
};

/** A process of the list. */
struct entry {
	struct daemon_listed listed;
	uint64_t cpu_ns, time_ns; /* of the first measurement */
};

struct scan {
	const struct daemon_list_options *options;
	struct name_patterns *patterns;
	struct luajit_files *files;
	struct entry *entries;
	size_t count, size;
	uint64_t begin_ns, denied, matched, unexamined, unread;
	pid_t denied_pid; /* the first one, and why */
	struct failure denied_why;
	int fd;
};

/* If the reader is gone, nobody needs the list. */
static void put(const struct scan *scan, struct scan_message *message)
{
	ssize_t len;

	message->denied = scan->denied;
	message->matched = scan->matched;
	len = write(scan->fd, message, sizeof(*message));
	if (len != (ssize_t)sizeof(*message))
		_exit(1);
}

static void put_entry(const struct scan *scan, size_t index)
{
	struct scan_message message = { .kind = SCAN_LISTED,
					.index = (uint32_t)index,
					.listed = scan->entries[index].listed };

	put(scan, &message);
}

/* ---- Processes -------------------------------------------------------------------------- */

/* Processor time of all threads of a process. Needs no permission. */
static bool read_cpu(pid_t pid, uint64_t *ret_ns)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return false;
	*ret_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	return true;
}

static void add_entry(struct scan *scan, pid_t pid, const struct attach_names *names,
		      bool is_denied)
{
	struct entry entry = { .listed = {
				       .pid = pid, .is_denied = is_denied, .cpu_percent = -1 } };
	struct attach_identity identity;

	/* It may have ended meanwhile. */
	if (scan->count == SCAN_LISTED_MAX || !attach_identity_of(pid, &identity) ||
	    !ARRAY_RESERVE(scan->entries, scan->size, scan->count + 1))
		return;
	entry.listed.uid = identity.uid;
	memcpy(entry.listed.name, names->command, sizeof(entry.listed.name));
	snprintf(entry.listed.program, sizeof(entry.listed.program), "%.63s", names->program);
	if (read_cpu(pid, &entry.cpu_ns))
		entry.time_ns = clock_now_ns();
	scan->entries[scan->count++] = entry;
	put_entry(scan, scan->count - 1);
}

/* The reason is most useful for a process that probably has LuaJIT. */
static void note_denied(struct scan *scan, pid_t pid, const struct failure *why, bool has_luajit)
{
	if (!scan->denied++ || has_luajit) {
		scan->denied_pid = pid;
		scan->denied_why = *why;
	}
}

static void examine(struct scan *scan, pid_t pid)
{
	struct attach_names names;
	struct failure why = { 0 };
	enum luajit_answer answer;

	if (scan->options->name_count &&
	    (!attach_names_of(pid, &names) || !name_patterns_match(scan->patterns, &names)))
		return;
	scan->matched++;
	answer = luajit_files_ask(scan->files, pid, &why);
	if (answer == LUAJIT_DENIED || answer == LUAJIT_MISSING)
		note_denied(scan, pid, &why, answer == LUAJIT_MISSING);
	if (answer == LUAJIT_NONE || (answer == LUAJIT_DENIED && !scan->options->name_count))
		return;
	if (scan->options->name_count || attach_names_of(pid, &names))
		add_entry(scan, pid, &names, answer != LUAJIT_FOUND);
}

/* Examine each process, apart from ourselves and the one that asks. */
static void examine_all(struct scan *scan)
{
	uint64_t end_ns = scan->begin_ns + (uint64_t)EXAMINE_MAX_MS * NS_PER_MS;
	pid_t *pids = NULL, own = getpid(), parent = getppid();
	size_t count = 0;
	struct failure why;

	if (attach_list_processes(&pids, &count, &why) != 0) {
		note_denied(scan, 0, &why, false);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (clock_now_ns() >= end_ns) {
			scan->unexamined = count - i;
			break;
		}
		if (pids[i] != own && pids[i] != parent)
			examine(scan, pids[i]);
	}
	free(pids);
}

/* ---- More about them -------------------------------------------------------------------- */

static void measure_cpu(struct scan *scan)
{
	uint64_t now_ns = clock_now_ns(), end_ns = now_ns + (uint64_t)CPU_SPAN_MS * NS_PER_MS;
	const struct timespec wake = { .tv_sec = (time_t)(end_ns / 1000000000u),
				       .tv_nsec = (long)(end_ns % 1000000000u) };

	if (scan->count)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
	for (size_t i = 0; i < scan->count; i++) {
		struct entry *entry = &scan->entries[i];
		uint64_t cpu_ns;

		if (!entry->time_ns || !read_cpu(entry->listed.pid, &cpu_ns))
			continue;
		now_ns = clock_now_ns();
		if (now_ns > entry->time_ns && cpu_ns >= entry->cpu_ns)
			entry->listed.cpu_percent = 100.0 * (double)(cpu_ns - entry->cpu_ns) /
						    (double)(now_ns - entry->time_ns);
	}
}

/* Processes that use most processor time first, then by pid. */
static int compare(const void *left, const void *right)
{
	const struct daemon_listed *a = &((const struct entry *)left)->listed;
	const struct daemon_listed *b = &((const struct entry *)right)->listed;

	if (a->cpu_percent != b->cpu_percent)
		return a->cpu_percent > b->cpu_percent ? -1 : 1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static void read_vms(struct scan *scan)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t end_ns = scan->begin_ns + (uint64_t)VMS_END_MS * NS_PER_MS;

	if (end_ns < now_ns + (uint64_t)VMS_MIN_MS * NS_PER_MS)
		end_ns = now_ns + (uint64_t)VMS_MIN_MS * NS_PER_MS;
	for (size_t i = 0; i < scan->count; i++) {
		struct entry *entry = &scan->entries[i];
		uint64_t each_ns;

		if (entry->listed.is_denied)
			continue;
		now_ns = clock_now_ns();
		each_ns = now_ns + (uint64_t)VMS_EACH_MS * NS_PER_MS;
		if (now_ns >= end_ns ||
		    !listed_read_vms(&entry->listed, each_ns < end_ns ? each_ns : end_ns))
			scan->unread++;
		else
			put_entry(scan, i);
	}
}

/* Say what is missing, and why. */
static void describe(const struct scan *scan, char *ret_text, size_t len)
{
	char reason[320];
	size_t used = 0;

	if (scan->denied) {
		attach_explain(scan->denied_pid, &scan->denied_why, reason, sizeof(reason));
		used = (size_t)snprintf(ret_text, len, "%llu process%s could not be read: %s%s",
					(unsigned long long)scan->denied,
					scan->denied == 1 ? "" : "es",
					scan->denied == 1 ? "" : "one of them: ", reason);
	}
	if (scan->unexamined && used < len)
		used += (size_t)snprintf(ret_text + used, len - used,
					 "%s%llu processes were not examined: it took too long",
					 used ? "; " : "", (unsigned long long)scan->unexamined);
	if (scan->unread && used < len)
		snprintf(ret_text + used, len - used,
			 "%sthe VMs of %llu process%s were not read in time", used ? "; " : "",
			 (unsigned long long)scan->unread, scan->unread == 1 ? "" : "es");
}

void scan_run(const struct daemon_list_options *options, int fd)
{
	struct scan scan = { .options = options, .begin_ns = clock_now_ns(), .fd = fd };
	struct scan_message message = { .kind = SCAN_EXAMINED };
	struct failure why;

	scan.files = luajit_files_create();
	if (!scan.files ||
	    name_patterns_create(options->names, options->name_count, &scan.patterns, &why) != 0)
		_exit(1);
	examine_all(&scan);
	if (options->with_vms) {
		measure_cpu(&scan);
		qsort(scan.entries, scan.count, sizeof(*scan.entries), compare);
		for (size_t i = 0; i < scan.count; i++)
			put_entry(&scan, i);
	}
	describe(&scan, message.note, sizeof(message.note));
	put(&scan, &message);
	if (options->with_vms)
		read_vms(&scan);
	message.kind = SCAN_END;
	describe(&scan, message.note, sizeof(message.note));
	put(&scan, &message);
	name_patterns_destroy(scan.patterns);
	luajit_files_destroy(scan.files);
	free(scan.entries);
}
