/* SPDX-License-Identifier: MIT */
/*
 * Copies of threads that run on: the kernel makes them, in the interrupt of a timer that counts the
 * thread's processor time, and hands them over through memory. Nobody is stopped or traced.
 *
 * Source: perf_event_open(2), bpf(2); libbpf 1.1, libbpf.h; Linux v6.1, kernel/events/core.c
 * (__perf_event_account_interrupt), for how often the kernel lets it.
 */
#include "attach/attach.h"

#ifdef LJPROF_TAP

#include "attach/failure.h"
#include "attach/image.h"
#include "attach/tap_record.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/user.h>
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
	/* For so many ticks a second of so many processors 4 MiB, which hold half a second of
	 * common copies of two threads. */
	RING_RATE_HZ = 1000,
	RING_PROCESSORS = 8,
	RING_BYTES = 4 << 20,
	RING_DOUBLINGS = 3, /* at most, for either */
	/* A thread's period is changed after so many, by up to a part in JITTER: a program with a
	 * period near ours is seen at all its phases. */
	JITTER_PERIODS = 1000,
	/* So often the kernel's limit is looked at. */
	LIMIT_PERIODS = 1000,
	/* A thread's first period may be as short as a part in this, and no shorter than that. */
	FIRST_PART = 64,
	FIRST_MIN_NS = 20 * 1000,
	JITTER = 128,
	/* The kernel may hold an opener up for as long as a target's exec takes. */
	ASKED_NS = 1000 * 1000 * 1000,
	/* Interrupts wait meanwhile. A copy of 60 coroutines takes 50 us on an idle machine, and
	 * several times that on a busy one. */
	BUDGET_NS = 1000 * 1000,
	/* The kernel's own ticks, of which each has its share of the samples that it allows. */
	KERNEL_HZ_MAX = 1000,
};

static const char limit_path[] = "/proc/sys/kernel/perf_event_max_sample_rate";

/** Parts of a copy of which there are more to come, from one processor. */
struct parts {
	uint64_t cookie, time_ns;
	unsigned next; /* 0: none */
	bool is_short; /* some had no room */
	uint8_t *bytes;
	size_t len, size;
};

/** One thread. */
struct slot {
	uint64_t generation; /* 0: never used */
	bool used;
	bool is_first;	   /* the first period goes on */
	uint64_t asked_ns; /* since then for its event; 0: it has that */
	pid_t tid;
	unsigned periods;
	struct attach_tap_event event;
	void *context;
};

struct attach_tap {
	struct bpf_object *object;
	struct bpf_program *program;
	struct attach_tap_opener opener;
	struct ring_buffer *ring;
	uint8_t *plans;
	size_t plan_bytes;
	uint64_t *known;
	struct parts *parts; /* by processor */
	size_t processors;
	struct slot slots[ATTACH_TAP_THREADS];
	size_t asked; /* of them */
	size_t next, ring_bytes, drained_bytes;
	unsigned rate_hz;
	unsigned limit_hz; /* of the kernel; high enough for the rate */
	bool is_slowed;	   /* it is not any more */
	uint64_t period_ns, limit_ns, random;
	/* Of the drain that goes on. */
	struct attach_image *image;
	attach_tap_take *take;
	void *context;
	uint64_t begin_ns;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	return 0;
}

/* ---- Pace ------------------------------------------------------------------------------- */

/* An event with as many samples between two of the kernel's ticks as it allows rests until the next
 * one: there has to be room for one more than the most that there can be. */
static unsigned needed_limit(unsigned rate_hz)
{
	return rate_hz + rate_hz / JITTER + 2 * KERNEL_HZ_MAX;
}

/* The kernel lowers its limit by itself where interrupts take long. @return UINT_MAX if it is not
 * known. */
static unsigned read_limit(void)
{
	FILE *file = fopen(limit_path, "re");
	unsigned limit;

	if (!file)
		return UINT_MAX;
	if (fscanf(file, "%u", &limit) != 1)
		limit = UINT_MAX;
	fclose(file);
	return limit;
}

static uint64_t next_random(struct attach_tap *tap)
{
	tap->random ^= tap->random << 13;
	tap->random ^= tap->random >> 7;
	tap->random ^= tap->random << 17;
	return tap->random;
}

static uint64_t next_period(struct attach_tap *tap)
{
	return tap->period_ns - tap->period_ns / JITTER +
	       next_random(tap) % (2 * tap->period_ns / JITTER + 1);
}

/* The first tick comes after a random part of the period, or threads that live for less would never
 * have one. The timer goes on with that part until it is changed. */
static uint64_t first_period(struct attach_tap *tap)
{
	uint64_t ns = 1 + next_random(tap) % tap->period_ns, least = tap->period_ns / FIRST_PART;
	uint64_t allowed_ns = 1000000000u / (tap->limit_hz - 2 * KERNEL_HZ_MAX);

	least = least < FIRST_MIN_NS ? FIRST_MIN_NS : least;
	least = least < allowed_ns ? allowed_ns : least;
	least = least > tap->period_ns ? tap->period_ns : least;
	return ns < least ? least : ns;
}

/* What the timer has counted since its last tick is lost by a change: so it is changed by a
 * thread's own ticks, not by the clock, as one that seldom runs would never have one. @return The
 * ticks that are lost: the last one is a while ago, and each is as likely as so much of it has
 * passed. */
static uint32_t change_period(struct attach_tap *tap, struct slot *slot,
			      struct attach_tap_plan *plan)
{
	uint64_t period_ns, passed_ns;

	if (!slot->is_first && ++slot->periods < JITTER_PERIODS)
		return 0;
	slot->periods = 0;
	period_ns = next_period(tap);
	if (ioctl(slot->event.event_fd, PERF_EVENT_IOC_PERIOD, &period_ns) != 0)
		return 0;
	passed_ns = slot->is_first ? plan->passed_ns + plan->tick_ns / 2 : tap->period_ns / 2;
	plan->tick_ns = 0;
	slot->is_first = false;
	return (uint32_t)(passed_ns / tap->period_ns) +
	       (next_random(tap) % tap->period_ns < passed_ns % tap->period_ns);
}

static void look_at_limit(struct attach_tap *tap)
{
	uint64_t time_ns = now_ns();
	unsigned limit_hz;

	if (time_ns < tap->limit_ns)
		return;
	tap->limit_ns = time_ns + LIMIT_PERIODS * tap->period_ns;
	limit_hz = read_limit();
	tap->is_slowed = limit_hz < needed_limit(tap->rate_hz);
	if (!tap->is_slowed)
		tap->limit_hz = limit_hz;
}

bool attach_tap_is_slowed(const struct attach_tap *tap)
{
	return tap->is_slowed;
}

/* ---- Copies ----------------------------------------------------------------------------- */

static struct attach_tap_plan *plan_at(struct attach_tap *tap, size_t index)
{
	return (struct attach_tap_plan *)(void *)(tap->plans + index * tap->plan_bytes);
}

static struct slot *slot_of(struct attach_tap *tap, uint64_t cookie)
{
	struct slot *slot = &tap->slots[cookie % ATTACH_TAP_THREADS];

	return slot->used && slot->generation == cookie / ATTACH_TAP_THREADS ? slot : NULL;
}

_Static_assert((size_t)TAP_PARTS *(sizeof(struct tap_record) - offsetof(struct tap_record, bytes)) /
			       (sizeof(struct tap_range) + 8) <=
		       ATTACH_IMAGE_MAX_RANGES,
	       "an image takes all of a copy");

/* The kernel's side wrote it, but as it was told to by memory of the thread. @return false where
 * the registers are none; *is_cut is set where there is no memory for all ranges. */
static bool fill_image(struct attach_image *image, const struct tap_record *record,
		       const uint8_t *bytes, size_t len, bool *is_cut)
{
	uint8_t block[sizeof(struct user_regs_struct)] = { 0 };
	struct failure why;

	_Static_assert(sizeof(block) >= sizeof(record->registers), "registers come first");
	attach_image_clear(image);
	memcpy(block, record->registers, sizeof(record->registers));
	if (attach_decode_registers(block, sizeof(block), attach_image_registers(image), &why) != 0)
		return false;
	for (size_t at = 0; len - at >= sizeof(struct tap_range);) {
		const struct tap_range *range = (const void *)(bytes + at);
		size_t room = len - at - sizeof(*range);

		if (range->len > room ||
		    image_append(image, range->start, range + 1, range->len, &why) != 0) {
			*is_cut = true;
			break;
		}
		at += sizeof(*range) + range->len;
		at += room - range->len < 8 ? room - range->len : -(size_t)range->len % 8;
	}
	attach_image_order(image);
	return true;
}

/* Where there is no memory for it, nor for those behind it, the copy ends there. */
static void add_part(struct parts *parts, const uint8_t *bytes, size_t len)
{
	size_t size = (parts->len + len) * 2 + 8;
	uint8_t *larger;

	if (!parts->is_short && parts->len + len + 8 > parts->size) {
		larger = realloc(parts->bytes, size);
		parts->is_short = !larger;
		parts->bytes = larger ? larger : parts->bytes;
		parts->size = larger ? size : parts->size;
	}
	if (parts->is_short)
		return;
	memcpy(parts->bytes + parts->len, bytes, len);
	parts->len += (len + 7) & ~(size_t)7; /* ranges begin at multiples of 8 */
}

/* One part of a copy that takes several. @return all of them, once that was the last; NULL
 * while there are more, or one is missing: then the kernel's side has counted it as lost. */
static const struct parts *take_part(struct attach_tap *tap, const struct tap_record *record,
				     size_t len)
{
	struct parts *parts =
		record->processor < tap->processors ? &tap->parts[record->processor] : NULL;

	if (!parts)
		return NULL;
	if (record->part == 0) {
		parts->cookie = record->cookie;
		parts->time_ns = record->time_ns;
		parts->len = parts->next = 0;
		parts->is_short = false;
	} else if (parts->next != record->part || parts->cookie != record->cookie ||
		   parts->time_ns != record->time_ns) {
		return NULL;
	}
	add_part(parts, record->bytes, len);
	parts->next = record->has_more ? record->part + 1u : 0;
	return record->has_more ? NULL : parts;
}

static int take_record(void *self, void *bytes, size_t len)
{
	const struct tap_record *record = bytes;
	const size_t head = offsetof(struct tap_record, bytes);
	const uint8_t *ranges = record->bytes;
	bool is_cut = record->is_cut != 0;
	const struct parts *parts;
	struct attach_tap_timing timing;
	struct attach_tap *tap = self;
	struct slot *slot;
	uint32_t changed;

	tap->drained_bytes += len;
	if (len < head)
		return 0;
	len -= head;
	if (record->part || record->has_more) {
		parts = take_part(tap, record, len);
		if (!parts)
			return 0;
		ranges = parts->bytes;
		len = parts->len;
		is_cut |= parts->is_short;
	}
	slot = slot_of(tap, record->cookie);
	if (!slot)
		return 0;
	changed = change_period(tap, slot, plan_at(tap, (size_t)(slot - tap->slots)));
	if (!fill_image(tap->image, record, ranges, len, &is_cut))
		return 0;
	timing = (struct attach_tap_timing){ .time_ns = record->time_ns,
					     .took_ns = record->took_ns,
					     .lost = record->lost,
					     .changed = changed,
					     .is_cut = is_cut,
					     .is_late = record->is_late != 0 };
	if (!tap->take(tap->context, slot->context, &timing))
		return -ECANCELED;
	/* There may be more without end, where they are made faster than taken. */
	return record->time_ns < tap->begin_ns ? 0 : -EAGAIN;
}

bool attach_tap_drain(struct attach_tap *tap, struct attach_image *image, attach_tap_take *take,
		      void *context)
{
	tap->image = image;
	tap->take = take;
	tap->context = context;
	if (!tap->ring) /* there are none yet */
		return true;
	tap->begin_ns = now_ns();
	tap->drained_bytes = 0;
	look_at_limit(tap);
	return ring_buffer__consume(tap->ring) != -ECANCELED;
}

bool attach_tap_is_filling(const struct attach_tap *tap)
{
	return tap->drained_bytes > tap->ring_bytes / 2;
}

/* ---- Threads ---------------------------------------------------------------------------- */

_Static_assert(ATTACH_TAP_THREADS == 1024, "its failure and the manual page say so");

static struct slot *free_slot(struct attach_tap *tap)
{
	for (size_t i = 0; i < ATTACH_TAP_THREADS; i++) {
		struct slot *slot = &tap->slots[(tap->next + i) % ATTACH_TAP_THREADS];

		if (slot->used)
			continue;
		tap->next = (tap->next + i + 1) % ATTACH_TAP_THREADS;
		return slot;
	}
	return NULL;
}

static int open_timer(pid_t tid, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int attach_tap_open_event(int program_fd, const struct attach_tap_request *request,
			  struct attach_tap_event *ret_event, struct failure *why)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = request->cookie);
	struct attach_tap_event event = { .link_fd = -1 };
	int errnum;

	event.event_fd = open_timer(request->tid, request->period_ns);
	if (event.event_fd < 0)
		return failure_set_errno(why, errno, request->tid, "count the thread's time");
	event.link_fd = bpf_link_create(program_fd, event.event_fd, BPF_PERF_EVENT, &options);
	if (event.link_fd >= 0) {
		*ret_event = event;
		return 0;
	}
	errnum = errno;
	close(event.event_fd);
	return failure_set_errno(why, errnum, request->tid, "sample the thread");
}

void attach_tap_close_event(const struct attach_tap_event *event)
{
	if (event->link_fd >= 0)
		close(event->link_fd);
	if (event->event_fd >= 0)
		close(event->event_fd);
}

int attach_tap_program(const struct attach_tap *tap)
{
	return bpf_program__fd(tap->program);
}

static int enable(const struct attach_tap_event *event, pid_t tid, struct failure *why)
{
	int errnum;

	if (ioctl(event->event_fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
		return 0;
	errnum = errno;
	attach_tap_close_event(event);
	return failure_set_errno(why, errnum, tid, "begin to count the thread's time");
}

/* Have the program run at each tick of the thread from now on, or once the opener answers. */
static int begin_event(struct attach_tap *tap, const struct attach_tap_request *request,
		       struct slot *slot, struct failure *why)
{
	slot->event = (struct attach_tap_event){ .event_fd = -1, .link_fd = -1 };
	slot->asked_ns = 0;
	if (!tap->opener.ask)
		return attach_tap_open_event(attach_tap_program(tap), request, &slot->event, why) ||
				       enable(&slot->event, request->tid, why)
			       ? -1
			       : 0;
	if (tap->opener.ask(tap->opener.context, request, why) != 0)
		return -1;
	slot->asked_ns = now_ns();
	tap->asked++;
	return 0;
}

static void end_event(struct attach_tap *tap, struct slot *slot)
{
	tap->asked -= slot->asked_ns != 0;
	slot->asked_ns = 0;
	if (slot->event.event_fd >= 0)
		ioctl(slot->event.event_fd, PERF_EVENT_IOC_DISABLE, 0);
	attach_tap_close_event(&slot->event);
}

int attach_tap_add(struct attach_tap *tap, pid_t pid, pid_t tid, void *context,
		   const struct attach_tap_plan *first, struct attach_tap_plan **ret_plan,
		   struct failure *why)
{
	struct attach_tap_request request = { .pid = pid, .tid = tid };
	struct slot *slot = free_slot(tap);
	struct attach_tap_plan *plan;
	size_t index;

	if (!slot)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
				   "have the kernel copy more than 1024 threads");
	index = (size_t)(slot - tap->slots);
	request.cookie = (slot->generation + 1) * ATTACH_TAP_THREADS + index;
	plan = plan_at(tap, index);
	*plan = *first;
	plan->rested = plan->lost = 0;
	plan->period_ns = tap->period_ns;
	if (!plan->budget_ns)
		plan->budget_ns = BUDGET_NS;
	plan->tick_ns = first_period(tap);
	plan->passed_ns = tap->period_ns - plan->tick_ns;
	request.period_ns = plan->tick_ns;
	__atomic_store_n(&plan->cookie, request.cookie, __ATOMIC_RELEASE);
	if (begin_event(tap, &request, slot, why) != 0) {
		plan->cookie = 0;
		return -1;
	}
	slot->tid = tid;
	slot->generation++;
	slot->used = slot->is_first = true;
	slot->periods = 0;
	slot->context = context;
	*ret_plan = plan;
	return 0;
}

/* What is asked for no more, or had to be waited for too long, is closed. */
static void take_answer(struct attach_tap *tap, struct attach_tap_answer *answer,
			attach_tap_refused *refused, void *context)
{
	struct slot *slot = slot_of(tap, answer->cookie);

	if (!slot || !slot->asked_ns) {
		if (answer->why.kind == FAILURE_NONE)
			attach_tap_close_event(&answer->event);
		return;
	}
	slot->asked_ns = 0;
	tap->asked--;
	if (answer->why.kind == FAILURE_NONE &&
	    enable(&answer->event, slot->tid, &answer->why) == 0)
		slot->event = answer->event;
	else
		refused(context, slot->context, &answer->why);
}

/* @param end NULL: of those that have waited too long. */
static void refuse_asked(struct attach_tap *tap, const struct failure *end,
			 attach_tap_refused *refused, void *context)
{
	uint64_t time_ns = now_ns();

	for (size_t i = 0; tap->asked && i < ATTACH_TAP_THREADS; i++) {
		struct slot *slot = &tap->slots[i];
		struct failure why = end ? *end : (struct failure){ .kind = FAILURE_TIMEOUT };

		if (!slot->used || !slot->asked_ns || (!end && time_ns - slot->asked_ns < ASKED_NS))
			continue;
		why.tid = slot->tid;
		why.step = "have the opener of events open one";
		slot->asked_ns = 0;
		tap->asked--;
		refused(context, slot->context, &why);
	}
}

size_t attach_tap_take_events(struct attach_tap *tap, uint64_t until_ns,
			      attach_tap_refused *refused, void *context)
{
	struct attach_tap_answer answer;
	struct failure why;
	int got = 0;

	while (tap->asked > 0) {
		got = tap->opener.take(tap->opener.context, until_ns, &answer, &why);
		if (got <= 0)
			break;
		take_answer(tap, &answer, refused, context);
	}
	refuse_asked(tap, got < 0 ? &why : NULL, refused, context);
	return tap->asked;
}

void attach_tap_remove(struct attach_tap *tap, struct attach_tap_plan *plan)
{
	struct slot *slot = slot_of(tap, plan->cookie);

	if (!slot)
		return;
	plan->cookie = 0;
	end_event(tap, slot);
	slot->used = false;
}

void attach_tap_end(struct attach_tap *tap)
{
	for (size_t i = 0; i < ATTACH_TAP_THREADS; i++)
		if (tap->slots[i].used && tap->slots[i].event.event_fd >= 0)
			ioctl(tap->slots[i].event.event_fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t *attach_tap_known(struct attach_tap *tap)
{
	return tap->known;
}

/* ---- Beginning and end ------------------------------------------------------------------ */

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

/* One event, of our own thread: what refuses those of others may refuse that, too. */
static int try_event(struct attach_tap *tap, struct failure *why)
{
	const struct attach_tap_request own = { .period_ns = tap->period_ns,
						.cookie = ATTACH_TAP_NO_COOKIE };
	struct slot slot = { 0 };

	if (begin_event(tap, &own, &slot, why) != 0)
		return -1;
	end_event(tap, &slot);
	return 0;
}

int attach_tap_create(unsigned rate_hz, struct attach_tap **ret_tap, struct failure *why)
{
	unsigned limit_hz = read_limit();
	struct attach_tap *tap;
	int ret;

	if (limit_hz < needed_limit(rate_hz))
		return failure_set(why, FAILURE_LIMIT, 0, 0, needed_limit(rate_hz),
				   "sample so often from inside the kernel");
	tap = calloc(1, sizeof(*tap));
	if (!tap)
		return failure_set_errno(why, ENOMEM, 0, "sample from inside the kernel");
	libbpf_set_print(say_nothing);
	tap->rate_hz = rate_hz;
	tap->limit_hz = limit_hz;
	tap->period_ns = 1000000000u / rate_hz;
	tap->random = now_ns() | 1;
	tap->limit_ns = now_ns() + LIMIT_PERIODS * tap->period_ns;
	ret = load(tap, rate_hz);
	if (ret != 0) {
		attach_tap_destroy(tap);
		return failure_set_errno(why, -ret, 0, "sample from inside the kernel");
	}
	if (try_event(tap, why) != 0) {
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
		tap->ring = ring_buffer__new(bpf_map__fd(find_map(tap, "records")), take_record,
					     tap, NULL);
	return tap->ring ? 0 : failure_set_errno(why, errno, 0, "map the kernel's copies");
}

void attach_tap_destroy(struct attach_tap *tap)
{
	if (!tap)
		return;
	for (size_t i = 0; i < ATTACH_TAP_THREADS; i++)
		if (tap->slots[i].used)
			end_event(tap, &tap->slots[i]);
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

#else /* without the kernel's side */

#include "attach/failure.h"

#include <errno.h>

int attach_tap_create(unsigned rate_hz, struct attach_tap **ret_tap, struct failure *why)
{
	(void)rate_hz, (void)ret_tap;
	return failure_set_errno(why, ENOSYS, 0, "sample from inside the kernel");
}

void attach_tap_destroy(struct attach_tap *tap)
{
	(void)tap;
}

int attach_tap_program(const struct attach_tap *tap)
{
	(void)tap;
	return -1;
}

int attach_tap_open_event(int program_fd, const struct attach_tap_request *request,
			  struct attach_tap_event *ret_event, struct failure *why)
{
	(void)program_fd, (void)ret_event;
	return failure_set_errno(why, ENOSYS, request->tid, "sample from inside the kernel");
}

void attach_tap_close_event(const struct attach_tap_event *event)
{
	(void)event;
}

int attach_tap_begin(struct attach_tap *tap, const struct attach_tap_opener *opener,
		     struct failure *why)
{
	(void)tap, (void)opener;
	return failure_set_errno(why, ENOSYS, 0, "map the kernel's copies");
}

int attach_tap_add(struct attach_tap *tap, pid_t pid, pid_t tid, void *context,
		   const struct attach_tap_plan *first, struct attach_tap_plan **ret_plan,
		   struct failure *why)
{
	(void)tap, (void)pid, (void)context, (void)first, (void)ret_plan;
	return failure_set_errno(why, ENOSYS, tid, "sample from inside the kernel");
}

size_t attach_tap_take_events(struct attach_tap *tap, uint64_t until_ns,
			      attach_tap_refused *refused, void *context)
{
	(void)tap, (void)until_ns, (void)refused, (void)context;
	return 0;
}

void attach_tap_remove(struct attach_tap *tap, struct attach_tap_plan *plan)
{
	(void)tap, (void)plan;
}

void attach_tap_end(struct attach_tap *tap)
{
	(void)tap;
}

uint64_t *attach_tap_known(struct attach_tap *tap)
{
	(void)tap;
	return NULL;
}

bool attach_tap_is_slowed(const struct attach_tap *tap)
{
	(void)tap;
	return false;
}

bool attach_tap_is_filling(const struct attach_tap *tap)
{
	(void)tap;
	return false;
}

bool attach_tap_drain(struct attach_tap *tap, struct attach_image *image, attach_tap_take *take,
		      void *context)
{
	(void)tap, (void)image, (void)take, (void)context;
	return true;
}

#endif
