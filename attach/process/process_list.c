/* SPDX-License-Identifier: MIT */
/* Which processes are there, and whose are they, without permission to trace them? */
#include "attach/process/process_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/array.h"

enum {
	/* PID_MAX_LIMIT of Linux on 64-bit machines. */
	PROCESSES_MAX = 1 << 22,
};

static int compare_pids(const void *left, const void *right)
{
	pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;

	return (a > b) - (a < b);
}

int attach_list_processes(pid_t **ret_pids, size_t *ret_count, struct failure *why)
{
	size_t count = 0, room = 0;
	struct dirent *entry;
	pid_t *pids = NULL;
	DIR *dir = opendir("/proc");
	bool has_room = true;

	if (!dir)
		return failure_set_errno(why, errno, 0, "list the processes");
	while (has_room && count < PROCESSES_MAX && (entry = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		has_room = ARRAY_RESERVE(pids, room, count + 1);
		if (has_room)
			pids[count++] = pid;
	}
	closedir(dir);
	if (!has_room) {
		free(pids);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list the processes");
	}
	if (count)
		qsort(pids, count, sizeof(*pids), compare_pids);
	*ret_pids = pids;
	*ret_count = count;
	return 0;
}

pid_t attach_parent_of(pid_t pid)
{
	struct process_stat stat;

	return process_read_stat(pid, &stat) == 0 ? stat.parent : 0;
}

pid_t attach_session_of(pid_t pid)
{
	pid_t leader = getsid(pid);

	return leader > 0 ? leader : 0;
}

/* The kernel marks the link of a program that was replaced or removed. */
static void read_program(pid_t pid, char *ret_name, size_t size)
{
	static const char mark[] = " (deleted)";
	char path[64], link[4096];
	const char *base;
	ssize_t len;

	*ret_name = '\0';
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	len = readlink(path, link, sizeof(link) - 1);
	if (len <= 0)
		return;
	link[len] = '\0';
	if ((size_t)len >= sizeof(mark) && strcmp(link + len - (sizeof(mark) - 1), mark) == 0)
		link[(size_t)len - (sizeof(mark) - 1)] = '\0';
	base = strrchr(link, '/');
	snprintf(ret_name, size, "%.255s", base ? base + 1 : link);
	process_clean_text(ret_name);
}

bool attach_names_of(pid_t pid, struct attach_names *ret_names)
{
	struct attach_names names = { 0 };

	if (process_read_file(pid, "comm", names.command, sizeof(names.command)) != 0)
		return false;
	names.command[strcspn(names.command, "\n")] = '\0';
	process_clean_text(names.command);
	read_program(pid, names.program, sizeof(names.program));
	*ret_names = names;
	return true;
}

uint64_t attach_start_of(pid_t pid)
{
	struct process_stat stat;

	return process_read_stat(pid, &stat) == 0
		       ? stat.start_ticks * (1000000000u / (unsigned long)sysconf(_SC_CLK_TCK))
		       : 0;
}

static void take_groups(const char *text, struct attach_identity *identity)
{
	char *end;

	while (identity->group_count < ATTACH_GROUPS_MAX) {
		unsigned long group = strtoul(text, &end, 10);

		if (end == text)
			return;
		identity->groups[identity->group_count++] = (gid_t)group;
		text = end;
	}
}

bool attach_identity_of(pid_t pid, struct attach_identity *ret_identity)
{
	char status[4096], value[1024];

	*ret_identity = (struct attach_identity){ 0 };
	if (process_read_file(pid, "status", status, sizeof(status)) != 0 ||
	    !process_status_field(status, "Uid", value, sizeof(value)))
		return false;
	ret_identity->uid = (uid_t)strtoul(value, NULL, 10);
	if (!process_status_field(status, "Gid", value, sizeof(value)))
		return false;
	ret_identity->gid = (gid_t)strtoul(value, NULL, 10);
	if (process_status_field(status, "Groups", value, sizeof(value)))
		take_groups(value, ret_identity);
	return true;
}

/* ---- Namespaces ------------------------------------------------------------------------- */

/* The last number of NSpid, if there is more than one: the pid in the innermost namespace. The
 * field follows the list of groups, and a process may have thousands of groups. */
static pid_t inner_pid_of(pid_t pid)
{
	char status[65536], value[256];
	const char *last;

	if (process_read_file(pid, "status", status, sizeof(status)) != 0 ||
	    !process_status_field(status, "NSpid", value, sizeof(value)))
		return 0;
	last = strrchr(value, '\t');
	return last ? (pid_t)strtol(last + 1, NULL, 10) : 0;
}

size_t attach_find_inner(pid_t inner, pid_t *ret_pids, size_t size)
{
	size_t count = 0, found = 0;
	struct failure why;
	pid_t *pids;

	if (attach_list_processes(&pids, &count, &why) != 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (inner_pid_of(pids[i]) != inner)
			continue;
		if (found < size)
			ret_pids[found] = pids[i];
		found++;
	}
	free(pids);
	return found;
}

bool attach_proc_is_ours(void)
{
	char link[32];
	ssize_t len = readlink("/proc/self", link, sizeof(link) - 1);

	if (len <= 0)
		return false;
	link[len] = '\0';
	return strtol(link, NULL, 10) == getpid();
}
