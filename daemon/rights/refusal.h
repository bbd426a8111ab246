/* SPDX-License-Identifier: MIT */
/* Private to daemon: why the kernel copies no threads here, and what helps. */
#ifndef DAEMON_RIGHTS_REFUSAL_H
#define DAEMON_RIGHTS_REFUSAL_H

#include "attach/failure.h"
#include "daemon/record.h"

enum refusal_loop {
	REFUSAL_LOOP_UNKNOWN,
	REFUSAL_LOOP_THERE,
	REFUSAL_LOOP_LACKING,
};

/** What decides it, of this process and this kernel. */
struct refusal_facts {
	/** bpf_loop(), as the kernel's own types tell: its number says little, where a distribution
	 * has taken it over. */
	enum refusal_loop loop;
	unsigned kernel_major, kernel_minor;  /**< 0.0: not known. */
	int paranoid;			      /**< kernel.perf_event_paranoid; -2: not known. */
	bool has_bpf, has_perfmon, has_admin; /**< Capabilities that are in effect. */
	bool is_locked_down;		      /**< Confidentiality: see kernel_lockdown(7). */
};

/** Read them from uname(2), /proc and the kernel's types in /sys/kernel/btf, which takes some
 *  milliseconds. */
void refusal_find_facts(struct refusal_facts *ret_facts);

/** Whether types of a kernel, which anybody may read, have bpf_loop(). @param path Of a file of
 * them; one that cannot be read is unknown. Source: Linux, Documentation/bpf/btf.rst, and
 *  include/uapi/linux/bpf.h (enum bpf_func_id). */
enum refusal_loop refusal_find_loop(const char *path);

/**
 * One line, without a full stop: why, and what to do.
 * @param why Of attach_sampler_create(). @return How a recording ends that wants it all the same.
 * Source: perf_event_open(2), capabilities(7); Debian's patch
 * security-perf-allow-further-restriction-of-perf_event_open: above 2 it takes CAP_SYS_ADMIN.
 */
enum daemon_end refusal_describe(const struct failure *why, const struct refusal_facts *facts,
				 unsigned rate_hz, char *ret_text, size_t len);

#endif
