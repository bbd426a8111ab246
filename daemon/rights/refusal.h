/* SPDX-License-Identifier: MIT */
/* Private to daemon: why does the kernel refuse kernel samples here, and what helps? */
#ifndef DAEMON_RIGHTS_REFUSAL_H
#define DAEMON_RIGHTS_REFUSAL_H

#include "attach/failure.h"
#include "daemon/record.h"

enum refusal_loop {
	REFUSAL_LOOP_UNKNOWN,
	REFUSAL_LOOP_THERE,
	REFUSAL_LOOP_LACKING,
};

/** Properties of this process and this kernel that decide it. */
struct refusal_facts {
	/** Whether the kernel's own types contain bpf_loop(). The version says little, because
	 * distributions backport it. */
	enum refusal_loop loop;
	unsigned kernel_major, kernel_minor;  /**< 0.0: not known. */
	int paranoid;			      /**< kernel.perf_event_paranoid; -2: not known. */
	bool has_bpf, has_perfmon, has_admin; /**< Capabilities that are in effect. */
	bool is_locked_down;		      /**< Confidentiality mode, see kernel_lockdown(7). */
};

/** Read the facts from uname(2), /proc and the kernel's types in /sys/kernel/btf. Needs some
 * milliseconds. */
void refusal_find_facts(struct refusal_facts *ret_facts);

/**
 * Whether the types of a kernel contain bpf_loop(). Any user may read them.
 * @param path File of types; if it cannot be read, the result is unknown.
 * Source: Linux, Documentation/bpf/btf.rst, and include/uapi/linux/bpf.h (enum bpf_func_id).
 */
enum refusal_loop refusal_find_loop(const char *path);

/**
 * Write one line without a full stop: the reason, and what to do.
 * @param why Failure of attach_sampler_create().
 * @return End of a recording that requires kernel samples.
 * Source: perf_event_open(2), capabilities(7); Debian's patch
 * security-perf-allow-further-restriction-of-perf_event_open: above 2, CAP_SYS_ADMIN is necessary.
 */
enum daemon_end refusal_describe(const struct failure *why, const struct refusal_facts *facts,
				 unsigned rate_hz, char *ret_text, size_t len);

#endif
