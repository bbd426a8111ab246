/* SPDX-License-Identifier: MIT */
/* Which of the kernel's conditions for kernel samples are not met, in words for people? */
#include "daemon/rights/refusal.h"

#include <cap-ng.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum {
	/* bpf_loop(). Source: Linux v5.17, kernel/bpf/bpf_iter.c. */
	KERNEL_MAJOR = 5,
	KERNEL_MINOR = 17,
	PARANOID_UNKNOWN = -2,
	/* Highest value that mainline knows; above it, distributions require more. */
	PARANOID_MAX = 2,
	/* More than a kernel's types, which are some 5 MB. */
	TYPES_BYTES = 64 << 20,
};

static const char types_path[] = "/sys/kernel/btf/vmlinux";

static int read_paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int value;

	if (!file)
		return PARANOID_UNKNOWN;
	if (fscanf(file, "%d", &value) != 1)
		value = PARANOID_UNKNOWN;
	fclose(file);
	return value;
}

static bool read_lockdown(void)
{
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char text[128] = "";
	bool is_locked;

	if (!file)
		return false;
	is_locked = fgets(text, sizeof(text), file) && strstr(text, "[confidentiality]");
	fclose(file);
	return is_locked;
}

enum refusal_loop refusal_find_loop(const char *path)
{
	/* With the terminators of both neighbouring strings. */
	static const char name[] = "\0BPF_FUNC_loop";
	enum refusal_loop found = REFUSAL_LOOP_UNKNOWN;
	FILE *file = fopen(path, "re");
	char *bytes = file ? malloc(TYPES_BYTES) : NULL;
	size_t len = bytes ? fread(bytes, 1, TYPES_BYTES, file) : 0;

	if (len > 0 && len < TYPES_BYTES)
		found = memmem(bytes, len, name, sizeof(name)) ? REFUSAL_LOOP_THERE
							       : REFUSAL_LOOP_LACKING;
	free(bytes);
	if (file)
		fclose(file);
	return found;
}

void refusal_find_facts(struct refusal_facts *ret_facts)
{
	struct refusal_facts facts = { .loop = refusal_find_loop(types_path),
				       .paranoid = read_paranoid(),
				       .is_locked_down = read_lockdown() };
	struct utsname names;

	if (uname(&names) != 0 ||
	    sscanf(names.release, "%u.%u", &facts.kernel_major, &facts.kernel_minor) != 2)
		facts.kernel_major = facts.kernel_minor = 0;
	if (capng_get_caps_process() == 0) {
		facts.has_bpf = capng_have_capability(CAPNG_EFFECTIVE, CAP_BPF);
		facts.has_perfmon = capng_have_capability(CAPNG_EFFECTIVE, CAP_PERFMON);
		facts.has_admin = capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN);
	}
	*ret_facts = facts;
}

/* If the types do not say, use the version, which is right for mainline. */
static bool is_old(const struct refusal_facts *facts)
{
	if (facts->loop != REFUSAL_LOOP_UNKNOWN)
		return facts->loop == REFUSAL_LOOP_LACKING;
	return facts->kernel_major &&
	       (facts->kernel_major < KERNEL_MAJOR ||
		(facts->kernel_major == KERNEL_MAJOR && facts->kernel_minor < KERNEL_MINOR));
}

static enum daemon_end describe_denied(const struct refusal_facts *facts, char *ret_text,
				       size_t len)
{
	bool lacks_bpf = !facts->has_bpf && !facts->has_admin;
	bool lacks_perfmon = !facts->has_perfmon && !facts->has_admin;

	if (lacks_bpf || lacks_perfmon)
		snprintf(
			ret_text, len,
			"not permitted: use root, or grant the capabilities CAP_BPF, CAP_PERFMON%s "
			"and CAP_SYS_PTRACE (missing: %s%s%s)",
			facts->paranoid > PARANOID_MAX ? ", CAP_SYS_ADMIN" : "",
			lacks_bpf ? "CAP_BPF" : "", lacks_bpf && lacks_perfmon ? ", " : "",
			lacks_perfmon ? "CAP_PERFMON" : "");
	else if (facts->paranoid > PARANOID_MAX && !facts->has_admin)
		snprintf(ret_text, len,
			 "kernel.perf_event_paranoid is %d, so this kernel requires CAP_SYS_ADMIN: "
			 "grant it, or set the value to %d",
			 facts->paranoid, PARANOID_MAX);
	else if (facts->is_locked_down)
		snprintf(ret_text, len,
			 "the kernel is locked down (confidentiality), so programs may not read "
			 "memory from it");
	else
		snprintf(ret_text, len,
			 "not permitted, although the capabilities are present: a security module, "
			 "or the container's filter of system calls, forbids perf_event_open or "
			 "bpf");
	return DAEMON_END_DENIED;
}

enum daemon_end refusal_describe(const struct failure *why, const struct refusal_facts *facts,
				 unsigned rate_hz, char *ret_text, size_t len)
{
	if (why->kind == FAILURE_NO_MEMORY) {
		snprintf(ret_text, len, "out of memory");
	} else if (failure_is_shortage(why)) {
		snprintf(ret_text, len, "%s: the limit of open files (ulimit -n) is too low",
			 strerror(why->errnum));
	} else if (why->kind == FAILURE_LIMIT) {
		snprintf(ret_text, len,
			 "the kernel allows too few samples: %u Hz need a "
			 "kernel.perf_event_max_sample_rate of %" PRIu64,
			 rate_hz, why->address);
	} else if (why->errnum == ENOSYS) {
		snprintf(ret_text, len,
			 "ljprof was built without clang and libbpf, or this kernel has no BPF");
	} else if (is_old(facts)) {
		snprintf(ret_text, len,
			 "kernel samples need Linux %u.%u or later, and this kernel is %u.%u",
			 KERNEL_MAJOR, KERNEL_MINOR, facts->kernel_major, facts->kernel_minor);
	} else if (why->kind == FAILURE_DENIED) {
		return describe_denied(facts, ret_text, len);
	} else {
		snprintf(ret_text, len,
			 "the kernel refuses (%s): kernel samples need Linux %u.%u or later",
			 strerror(why->errnum), KERNEL_MAJOR, KERNEL_MINOR);
	}
	return DAEMON_END_SYSTEM;
}
