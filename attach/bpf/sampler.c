/* SPDX-License-Identifier: MIT */
/* How is the BPF sampler loaded and released? The kernel copies threads in the interrupt of a timer
 * that counts their processor time, and hands the copies over through shared memory.
 *
 * Source: bpf(2); libbpf 1.1, libbpf.h.
 */
#include "attach/bpf/sampler_internal.h"

#include "attach/failure.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE_BYTES = 4096,
	/* 4 MiB hold half a second of common copies of two threads. They serve this rate and this
	 * number of processors; each doubling of either doubles the ring. */
	RING_RATE_HZ = 1000,
	RING_PROCESSORS = 8,
	RING_BYTES = 4 << 20,
	RING_DOUBLINGS = 3, /* per quantity, at most */
};

struct attach_sampler_plan *sampler_plan_at(struct attach_sampler *sampler, size_t index)
{
	return (struct attach_sampler_plan *)(void *)(sampler->plans + index * sampler->plan_bytes);
}

struct sampler_slot *sampler_slot_of(struct attach_sampler *sampler, uint64_t cookie)
{
	struct sampler_slot *slot = &sampler->slots[cookie % ATTACH_SAMPLER_THREADS];

	return slot->used && slot->generation == cookie / ATTACH_SAMPLER_THREADS ? slot : NULL;
}

static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	return 0;
}

static size_t ring_bytes(unsigned rate_hz, unsigned processors)
{
	size_t bytes = RING_BYTES;

	for (unsigned i = 0; i < RING_DOUBLINGS; i++) {
		bytes <<= rate_hz > (unsigned)RING_RATE_HZ << i;
		bytes <<= processors > (unsigned)RING_PROCESSORS << i;
	}
	return bytes;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

static struct bpf_map *find_map(const struct attach_sampler *sampler, const char *name)
{
	return bpf_object__find_map_by_name(sampler->object, name);
}

/* The kernel aligns the values of an array to 8 bytes. */
static size_t map_value_bytes(const struct bpf_map *map)
{
	return (bpf_map__value_size(map) + 7) & ~(size_t)7;
}

/* Map a BPF map's memory. @return NULL with errno. */
static void *map_shared(const struct attach_sampler *sampler, const char *name, size_t bytes)
{
	void *memory = mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(find_map(sampler, name)), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Check the maps that bpf_program.h lists, and set their sizes. @return 0 or a negative errno. */
static int fit_maps(struct attach_sampler *sampler, uint32_t processors)
{
	struct bpf_map *plans = find_map(sampler, "plans");
	struct bpf_map *known = find_map(sampler, "known_table");
	struct bpf_map *works = find_map(sampler, "works");
	struct bpf_map *records = find_map(sampler, "records");

	if (!plans || !known || !works || !records ||
	    bpf_map__max_entries(plans) != ATTACH_SAMPLER_THREADS ||
	    bpf_map__value_size(plans) < sizeof(struct attach_sampler_plan))
		return -EINVAL;
	sampler->plan_bytes = map_value_bytes(plans);
	sampler->known_bytes = map_value_bytes(known) * bpf_map__max_entries(known);
	bpf_map__set_max_entries(works, processors);
	bpf_map__set_max_entries(records, (uint32_t)sampler->ring_bytes);
	return 0;
}

/* @return 0 or a negative errno from libbpf. */
static int load(struct attach_sampler *sampler, const struct attach_sampler_object *object,
		unsigned rate_hz)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "ljprof");
	int processors = libbpf_num_possible_cpus();
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	int ret;

	if (processors < 0)
		return processors;
	sampler->parts = calloc((size_t)processors, sizeof(*sampler->parts));
	if (!sampler->parts)
		return -ENOMEM;
	sampler->processors = (size_t)processors;
	sampler->ring_bytes = ring_bytes(rate_hz, online > 0 ? (unsigned)online : 1);
	sampler->object = bpf_object__open_mem(object->bytes, object->len, &options);
	if (!sampler->object)
		return -errno;
	sampler->program = bpf_object__find_program_by_name(sampler->object, "sampler_tick");
	if (!sampler->program)
		return -EINVAL;
	ret = fit_maps(sampler, (uint32_t)processors);
	return ret == 0 ? bpf_object__load(sampler->object) : ret;
}

int attach_sampler_create(const struct attach_sampler_object *object, unsigned rate_hz,
			  struct attach_sampler **ret_sampler, struct failure *why)
{
	unsigned limit_hz = sampler_read_limit();
	struct attach_sampler *sampler;
	int ret;

	if (limit_hz < sampler_needed_limit(rate_hz))
		return failure_set(why, FAILURE_LIMIT, 0, 0, sampler_needed_limit(rate_hz),
				   "sample so often from inside the kernel");
	sampler = calloc(1, sizeof(*sampler));
	if (!sampler)
		return failure_set_errno(why, ENOMEM, 0, "sample from inside the kernel");
	libbpf_set_print(say_nothing);
	sampler_begin_pace(sampler, rate_hz, limit_hz);
	ret = load(sampler, object, rate_hz);
	if (ret != 0) {
		attach_sampler_destroy(sampler);
		return failure_set_errno(why, -ret, 0, "sample from inside the kernel");
	}
	if (sampler_try_event(sampler, why) != 0) {
		attach_sampler_destroy(sampler);
		return -1;
	}
	*ret_sampler = sampler;
	return 0;
}

int attach_sampler_begin(struct attach_sampler *sampler, const struct attach_sampler_opener *opener,
			 struct failure *why)
{
	if (opener)
		sampler->opener = *opener;
	sampler->plans = map_shared(sampler, "plans", sampler->plan_bytes * ATTACH_SAMPLER_THREADS);
	sampler->known = map_shared(sampler, "known_table", sampler->known_bytes);
	if (sampler->plans && sampler->known)
		sampler->ring = ring_buffer__new(bpf_map__fd(find_map(sampler, "records")),
						 sampler_take_record, sampler, NULL);
	return sampler->ring ? 0 : failure_set_errno(why, errno, 0, "map the kernel's copies");
}

void attach_sampler_destroy(struct attach_sampler *sampler)
{
	if (!sampler)
		return;
	sampler_end_events(sampler);
	ring_buffer__free(sampler->ring);
	if (sampler->plans)
		munmap(sampler->plans, whole_pages(sampler->plan_bytes * ATTACH_SAMPLER_THREADS));
	if (sampler->known)
		munmap(sampler->known, whole_pages(sampler->known_bytes));
	bpf_object__close(sampler->object);
	for (size_t i = 0; i < sampler->processors; i++)
		free(sampler->parts[i].bytes);
	free(sampler->parts);
	free(sampler);
}

int attach_sampler_program(const struct attach_sampler *sampler)
{
	return bpf_program__fd(sampler->program);
}

void *attach_sampler_known(struct attach_sampler *sampler)
{
	return sampler->known;
}
