/* SPDX-License-Identifier: MIT */
/*
 * Copies of threads that run on: the kernel makes them, in the interrupt of a timer that counts the
 * thread's processor time, and hands them over through memory. Nobody is stopped or traced.
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

/* The kernel's side, as it was compiled. */
__asm__(".pushsection .rodata\n"
	".balign 8\n"
	".hidden tap_object\n"
	".hidden tap_object_end\n"
	".globl tap_object\n"
	".globl tap_object_end\n"
	"tap_object:\n"
	".incbin \"" LJPROF_TAP_OBJECT "\"\n"
	"tap_object_end:\n"
	".byte 0\n"
	".popsection\n");
extern const char tap_object[] __attribute__((visibility("hidden")));
extern const char tap_object_end[] __attribute__((visibility("hidden")));

enum {
	PAGE_BYTES = 4096,
	KNOWN_BYTES = ATTACH_TAP_KNOWN * 8,
	/* For that many ticks a second of that many processors 4 MiB, which hold half a second of
	 * common copies of two threads. */
	RING_RATE_HZ = 1000,
	RING_PROCESSORS = 8,
	RING_BYTES = 4 << 20,
	RING_DOUBLINGS = 3, /* at most, for either */
};

struct attach_tap_plan *tap_plan_at(struct attach_tap *tap, size_t index)
{
	return (struct attach_tap_plan *)(void *)(tap->plans + index * tap->plan_bytes);
}

struct tap_slot *tap_slot_of(struct attach_tap *tap, uint64_t cookie)
{
	struct tap_slot *slot = &tap->slots[cookie % ATTACH_TAP_THREADS];

	return slot->used && slot->generation == cookie / ATTACH_TAP_THREADS ? slot : NULL;
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

static struct bpf_map *find_map(const struct attach_tap *tap, const char *name)
{
	return bpf_object__find_map_by_name(tap->object, name);
}

/* The memory of a map. @return NULL with errno. */
static void *map_shared(const struct attach_tap *tap, const char *name, size_t bytes)
{
	void *memory = mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(find_map(tap, name)), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* @return 0 or what libbpf says of it, as an errno below 0. */
static int load(struct attach_tap *tap, unsigned rate_hz)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "ljprof");
	int processors = libbpf_num_possible_cpus();
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (processors < 0)
		return processors;
	tap->parts = calloc((size_t)processors, sizeof(*tap->parts));
	if (!tap->parts)
		return -ENOMEM;
	tap->processors = (size_t)processors;
	tap->ring_bytes = ring_bytes(rate_hz, online > 0 ? (unsigned)online : 1);
	tap->object =
		bpf_object__open_mem(tap_object, (size_t)(tap_object_end - tap_object), &options);
	if (!tap->object)
		return -errno;
	tap->program = bpf_object__find_program_by_name(tap->object, "tap_tick");
	bpf_map__set_max_entries(find_map(tap, "works"), (uint32_t)processors);
	bpf_map__set_max_entries(find_map(tap, "records"), (uint32_t)tap->ring_bytes);
	return bpf_object__load(tap->object);
}

int attach_tap_create(unsigned rate_hz, struct attach_tap **ret_tap, struct failure *why)
{
	unsigned limit_hz = tap_read_limit();
	struct attach_tap *tap;
	int ret;

	if (limit_hz < tap_needed_limit(rate_hz))
		return failure_set(why, FAILURE_LIMIT, 0, 0, tap_needed_limit(rate_hz),
				   "sample so often from inside the kernel");
	tap = calloc(1, sizeof(*tap));
	if (!tap)
		return failure_set_errno(why, ENOMEM, 0, "sample from inside the kernel");
	libbpf_set_print(say_nothing);
	tap_begin_pace(tap, rate_hz, limit_hz);
	ret = load(tap, rate_hz);
	if (ret != 0) {
		attach_tap_destroy(tap);
		return failure_set_errno(why, -ret, 0, "sample from inside the kernel");
	}
	if (tap_try_event(tap, why) != 0) {
		attach_tap_destroy(tap);
		return -1;
	}
	*ret_tap = tap;
	return 0;
}

int attach_tap_begin(struct attach_tap *tap, const struct attach_tap_opener *opener,
		     struct failure *why)
{
	if (opener)
		tap->opener = *opener;
	tap->plan_bytes = (sizeof(struct attach_tap_plan) + 7) & ~(size_t)7;
	tap->plans = map_shared(tap, "plans", tap->plan_bytes * ATTACH_TAP_THREADS);
	tap->known = map_shared(tap, "known_protos", KNOWN_BYTES);
	if (tap->plans && tap->known)
		tap->ring = ring_buffer__new(bpf_map__fd(find_map(tap, "records")), tap_take_record,
					     tap, NULL);
	return tap->ring ? 0 : failure_set_errno(why, errno, 0, "map the kernel's copies");
}

void attach_tap_destroy(struct attach_tap *tap)
{
	if (!tap)
		return;
	tap_end_events(tap);
	ring_buffer__free(tap->ring);
	if (tap->plans)
		munmap(tap->plans, whole_pages(tap->plan_bytes * ATTACH_TAP_THREADS));
	if (tap->known)
		munmap(tap->known, whole_pages(KNOWN_BYTES));
	bpf_object__close(tap->object);
	for (size_t i = 0; i < tap->processors; i++)
		free(tap->parts[i].bytes);
	free(tap->parts);
	free(tap);
}

int attach_tap_program(const struct attach_tap *tap)
{
	return bpf_program__fd(tap->program);
}

uint64_t *attach_tap_known(struct attach_tap *tap)
{
	return tap->known;
}
