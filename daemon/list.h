/* SPDX-License-Identifier: MIT */
/* Which LuaJIT processes are there? */
#ifndef DAEMON_LIST_H
#define DAEMON_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/failure.h"

/** One process of a list. Its texts are safe for a terminal. */
struct daemon_listed {
	pid_t pid;
	uid_t uid;	  /**< Its real user. */
	char name[64];	  /**< The kernel's name for it. */
	char program[64]; /**< Base name of its executable; "" if unknown. */
	/** It may not be read, so nobody knows whether LuaJIT is in it. Only in lists by name. */
	bool is_denied;
	double cpu_percent;  /**< Of one processor, while the list was made; negative: unknown. */
	bool has_vms;	     /**< The members below were read in time. */
	bool has_more_vms;   /**< Some memory was not searched, so there may be more VMs. */
	unsigned vms;	     /**< VMs in which Lua may run. */
	char fork[16];	     /**< "LuaJIT", "OpenResty" or "Tarantool"; "": unknown. */
	uint64_t heap_bytes; /**< Bytes in use by the collectors of all these VMs. */
};

/** What to list. */
struct daemon_list_options {
	/** POSIX extended regular expressions: list only processes whose command or program matches
	 * one. */
	const char *const *names;
	size_t name_count; /**< 0: list all. */
	bool with_vms;	   /**< Also read VMs, forks, heaps and processor times. */
};

struct daemon_list {
	struct daemon_listed *processes; /**< Those that use most processor time first. */
	size_t count;
	/** Processes that could not be read, so that nobody knows whether LuaJIT is in them. */
	size_t denied;
	size_t matched; /**< In lists by name: processes of these names, also without LuaJIT. */
	char note[512]; /**< One line: what is missing in the list, and why; "" if nothing is. */
};

/**
 * List the processes that contain LuaJIT's code. Another process makes the list. It keeps only the
 * capabilities for reading processes, and if it does not answer, the list is cut short. Stops no
 * thread. Several thousand processes take less than a second: VMs that cannot be read in that time
 * are left out.
 * @param ret_list Set on success; release with daemon_list_deinit().
 * @param why FAILURE_INVALID: names[why->address] is not a regular expression.
 */
int daemon_list_processes(const struct daemon_list_options *options, struct daemon_list *ret_list,
			  struct failure *why);
void daemon_list_deinit(struct daemon_list *list);

#endif
