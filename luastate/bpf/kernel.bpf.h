/* SPDX-License-Identifier: MIT */
/* How do the rules of a copy reach their surroundings in the kernel? */
#ifndef LUASTATE_BPF_KERNEL_BPF_H
#define LUASTATE_BPF_KERNEL_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ATTACH_SAMPLER_THREADS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct luastate_bpf_plan);
} plans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LUASTATE_BPF_KNOWN);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, uint64_t);
} known_table SEC(".maps");

/* The loader sets the number of entries to the number of processors. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct work);
} works SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

/** A function that the verifier checks by itself, for all arguments. */
#define SUBPROGRAM __attribute__((noinline))

/** Call step() with 0 to count - 1, until it returns other than 0. */
#define repeat(count, step, context) bpf_loop(count, step, context, 0)

static uint64_t now_ns(void)
{
	return bpf_ktime_get_ns();
}

/* Read memory of the thread that is in memory already. @return whether all of it was read. */
static bool read_present(struct work *work, void *target, uint32_t len, uint64_t address)
{
	(void)work;
	return bpf_probe_read_user(target, len, (const void *)address) == 0;
}

/* Hand over a record with @len bytes of ranges. @return false if there is no room. */
static bool hand_over(struct work *work, uint64_t len)
{
	return bpf_ringbuf_output(&records, &work->record,
				  __builtin_offsetof(struct attach_sampler_record, bytes) + len,
				  BPF_RB_NO_WAKEUP) == 0;
}

/* The entry of the table of known prototypes; 0: none. */
static uint64_t known_at(const struct work *work, uint32_t slot)
{
	const uint64_t *known = bpf_map_lookup_elem(&known_table, &slot);

	(void)work;
	return known ? *known : 0;
}

#endif
