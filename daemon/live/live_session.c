/* SPDX-License-Identifier: MIT */
/* The caller's side of a watch: what the sampler tells goes into the tables. */
#include "daemon/live/live_session.h"
#include "attach/clock.h"
#include "format/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/recorder/feed.h"
#include "daemon/tick_clock.h"

enum {
	/* A key that was pressed is not kept waiting for longer. */
	TAKE_NS = 5 * 1000 * 1000,
};

const char *daemon_gc_phase_name(unsigned phase)
{
	static const char *const names[LUASTATE_GC_PHASES] = {
		[LUASTATE_GC_PAUSE] = "pause",	 [LUASTATE_GC_PROPAGATE] = "propagate",
		[LUASTATE_GC_ATOMIC] = "atomic", [LUASTATE_GC_SWEEP_STRING] = "sweep string",
		[LUASTATE_GC_SWEEP] = "sweep",	 [LUASTATE_GC_FINALIZE] = "finalize",
	};

	return phase < LUASTATE_GC_PHASES ? names[phase] : "?";
}

/* ---- What comes ------------------------------------------------------------------------- */

static int malformed(struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, 0, "understand the sampler");
}

/* Text of the target's, in a field of fixed size. */
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	format_clean_text(text, strlen(text));
}

static void take_numbers(struct daemon_watch *watch, const struct feed_numbers *numbers)
{
	struct daemon_vitals *vitals = &watch->vitals;

	vitals->rate_hz = numbers->rate_hz;
	vitals->elapsed_ns = numbers->elapsed_ns;
	vitals->samples = numbers->samples;
	vitals->dropped = numbers->dropped;
	vitals->ticks = numbers->ticks;
	vitals->late_ticks = numbers->late_ticks;
	vitals->missed_ticks = numbers->missed_ticks;
	vitals->cpu_ns = numbers->cpu_ns;
	vitals->stopped_p50_ns = numbers->stopped_p50_ns;
	vitals->stopped_p99_ns = numbers->stopped_p99_ns;
	vitals->stopped_max_ns = numbers->stopped_max_ns;
	vitals->unlisted_processes = numbers->unlisted_processes;
	vitals->copied_p99_ns = numbers->copied_p99_ns;
	vitals->capture = numbers->capture == DAEMON_CAPTURE_KERNEL ? DAEMON_CAPTURE_KERNEL
								    : DAEMON_CAPTURE_STOP;
	memcpy(vitals->reasons, numbers->reasons, sizeof(vitals->reasons));
	memcpy(vitals->states, numbers->states, sizeof(vitals->states));
	memcpy(vitals->outcomes, numbers->outcomes, sizeof(vitals->outcomes));
	memcpy(vitals->compiled, numbers->compiled, sizeof(vitals->compiled));
	if (vitals->vm_count > numbers->vm_count)
		vitals->vm_count = numbers->vm_count;
}

static int take_process(struct daemon_watch *watch, struct feed_process *from, struct failure *why)
{
	struct daemon_vitals *vitals = &watch->vitals;

	if (from->index >= DAEMON_PROCESSES_LISTED || from->index > vitals->process_count ||
	    (unsigned)from->process.kind >= DAEMON_PROCESS_KIND_COUNT)
		return malformed(why);
	clean(from->process.name, sizeof(from->process.name));
	vitals->processes[from->index] = from->process;
	vitals->start_ns[from->index] = from->start_ns;
	if (from->index == vitals->process_count)
		vitals->process_count++;
	return 0;
}

static int take_vm(struct daemon_watch *watch, struct feed_vm *from, struct failure *why)
{
	struct daemon_vitals *vitals = &watch->vitals;

	if (from->index >= FEED_VMS_MAX || from->index > vitals->vm_count)
		return malformed(why);
	clean(from->vm.version, sizeof(from->vm.version));
	clean(from->vm.layout, sizeof(from->vm.layout));
	vitals->vms[from->index] = from->vm;
	if (from->index == vitals->vm_count)
		vitals->vm_count++;
	return 0;
}

static void take_text(struct daemon_watch *watch, enum message_type type, struct feed_text *from)
{
	struct daemon_vitals *vitals = &watch->vitals;

	clean(from->text, sizeof(from->text));
	if (type == MESSAGE_NOTICE) {
		memcpy(vitals->notice, from->text, sizeof(vitals->notice));
		vitals->notice_count++;
		return;
	}
	vitals->ended = true;
	vitals->end = from->end >= 0 && from->end <= DAEMON_END_SYSTEM ? (enum daemon_end)from->end
								       : DAEMON_END_SYSTEM;
	memcpy(vitals->text, from->text, sizeof(vitals->text));
}

/* A body of fixed size. */
static bool read_body(const struct message *message, void *ret_body, size_t len)
{
	if (message->body.len != len)
		return false;
	memcpy(ret_body, message->body.bytes, len);
	return true;
}

static int handle(struct daemon_watch *watch, const struct message *message, struct failure *why)
{
	union {
		struct feed_numbers numbers;
		struct feed_process process;
		struct feed_vm vm;
		struct feed_text text;
	} body;

	if (watch->greeted == (message->type == MESSAGE_HELLO))
		return malformed(why);
	switch (message->type) {
	case MESSAGE_HELLO:
		watch->greeted = message->version == MESSAGE_VERSION;
		return watch->greeted ? 0 : malformed(why);
	case MESSAGE_FUNCTION:
		return format_live_function(watch->live, message->function.id,
					    &message->function.value, why);
	case MESSAGE_SAMPLE:
		return format_live_sample(watch->live, &message->sample, why);
	case MESSAGE_NUMBERS:
		if (!read_body(message, &body.numbers, sizeof(body.numbers)))
			return malformed(why);
		take_numbers(watch, &body.numbers);
		return 0;
	case MESSAGE_PROCESS:
		return read_body(message, &body.process, sizeof(body.process))
			       ? take_process(watch, &body.process, why)
			       : malformed(why);
	case MESSAGE_VM:
		return read_body(message, &body.vm, sizeof(body.vm)) ? take_vm(watch, &body.vm, why)
								     : malformed(why);
	case MESSAGE_NOTICE:
	case MESSAGE_RESULT:
		if (!read_body(message, &body.text, sizeof(body.text)))
			return malformed(why);
		take_text(watch, message->type, &body.text);
		return 0;
	default:
		return malformed(why);
	}
}

/* The socket is at its end, or says what cannot be. */
static void note_end(struct daemon_watch *watch)
{
	struct daemon_vitals *vitals = &watch->vitals;

	if (!vitals->ended) {
		vitals->ended = true;
		vitals->end = DAEMON_END_SYSTEM;
		snprintf(vitals->text, sizeof(vitals->text),
			 "the sampler died: what was sampled stays");
	}
	watch_end_sampler(watch);
}

int daemon_watch_take(struct daemon_watch *watch, struct failure *why)
{
	uint64_t end_ns = clock_now_ns() + TAKE_NS;

	while (watch->fd >= 0) {
		struct message message;
		struct failure reason = { 0 };
		int got = message_receive_now(&watch->receiver, &message, &reason);

		if (got == 2)
			return 0;
		if (got == 1 && handle(watch, &message, &reason) == 0) {
			if (clock_now_ns() >= end_ns)
				return 1;
			continue;
		}
		if (got != 0 && reason.kind == FAILURE_NO_MEMORY) {
			*why = reason;
			return -1;
		}
		note_end(watch);
	}
	return 0;
}

/* ---- History ---------------------------------------------------------------------------- */

/* Everything since the beginning; numbers of 32 bits may wrap, their differences do not. */
static struct daemon_moment sum_up(const struct daemon_watch *watch)
{
	const struct daemon_vitals *vitals = &watch->vitals;
	struct daemon_moment sums = { .time_ns = clock_now_ns(),
				      .samples = (uint32_t)vitals->samples,
				      .sampler_cpu_ns = vitals->cpu_ns,
				      .own_cpu_ns = vitals->own_cpu_ns };

	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		sums.states[i] = (uint32_t)vitals->states[i];
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		sums.outcomes[i] = (uint32_t)vitals->outcomes[i];
	for (size_t i = 0; i < vitals->vm_count; i++) {
		const struct daemon_vm *vm = &vitals->vms[i];

		sums.heap_bytes += vm->heap_bytes;
		sums.allocated_bytes += vm->allocated_bytes;
		sums.has_allocated |= vm->has_allocated;
		sums.traces += vm->traces;
		sums.mcode_bytes += vm->mcode_bytes;
		sums.created += vm->created;
		sums.aborted += vm->aborted;
	}
	return sums;
}

/* VMs that are gone take their sums with them. */
static uint64_t rise(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

int daemon_watch_refresh(struct daemon_watch *watch, struct failure *why)
{
	const struct daemon_moment *before = &watch->totals;
	struct daemon_moment now, moment;
	bool first = watch->moments == 0;

	watch->vitals.own_cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	now = moment = sum_up(watch);
	moment.span_ns = first ? watch->vitals.elapsed_ns : now.time_ns - before->time_ns;
	moment.samples -= before->samples;
	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		moment.states[i] -= before->states[i];
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		moment.outcomes[i] -= before->outcomes[i];
	/* What was allocated before the watch began says nothing of now. */
	moment.allocated_bytes =
		!before->has_allocated ? 0 : rise(before->allocated_bytes, now.allocated_bytes);
	moment.created = rise(before->created, now.created);
	moment.aborted = rise(before->aborted, now.aborted);
	moment.sampler_cpu_ns = rise(before->sampler_cpu_ns, now.sampler_cpu_ns);
	moment.own_cpu_ns = rise(before->own_cpu_ns, now.own_cpu_ns);
	watch->totals = now;
	watch->history[watch->moments++ % DAEMON_HISTORY] = moment;
	if (watch->fd >= 0 && format_live_take_forgotten(watch->live)) {
		const char renew = FEED_RENEW;

		send(watch->fd, &renew, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	return format_live_refresh(watch->live, why);
}

const struct daemon_moment *daemon_watch_history(const struct daemon_watch *watch, size_t age)
{
	if (age >= watch->moments || age >= DAEMON_HISTORY)
		return NULL;
	return &watch->history[(watch->moments - 1 - age) % DAEMON_HISTORY];
}

/* ---- Beginning and end ------------------------------------------------------------------ */

int daemon_watch_start(const struct daemon_options *options, const struct format_live_options *live,
		       struct daemon_watch **ret_watch, struct failure *why)
{
	static const struct format_live_options defaults = { 0 };
	struct daemon_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "start the sampler");
	watch->fd = -1;
	watch->vitals.rate_hz = options->rate_hz;
	/* The sampler first: it is forked before anything large is in memory. */
	if (watch_start_sampler(options, &watch->pid, &watch->fd, why) != 0) {
		free(watch);
		return -1;
	}
	watch->vitals.processes = calloc(DAEMON_PROCESSES_LISTED, sizeof(*watch->vitals.processes));
	watch->vitals.start_ns = calloc(DAEMON_PROCESSES_LISTED, sizeof(*watch->vitals.start_ns));
	watch->vitals.vms = calloc(FEED_VMS_MAX, sizeof(*watch->vitals.vms));
	if (watch->vitals.processes && watch->vitals.start_ns && watch->vitals.vms &&
	    message_receiver_init(&watch->receiver, watch->fd, why) == 0 &&
	    format_live_create(live ? live : &defaults, &watch->live, why) == 0) {
		*ret_watch = watch;
		return 0;
	}
	daemon_watch_destroy(watch);
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "start the sampler");
}

void daemon_watch_destroy(struct daemon_watch *watch)
{
	if (!watch)
		return;
	watch_end_sampler(watch);
	if (watch->receiver.bytes)
		message_receiver_deinit(&watch->receiver);
	format_live_destroy(watch->live);
	free(watch->vitals.processes);
	free(watch->vitals.start_ns);
	free(watch->vitals.vms);
	free(watch);
}

int daemon_watch_fd(const struct daemon_watch *watch)
{
	return watch->fd;
}

struct format_live *daemon_watch_profile(struct daemon_watch *watch)
{
	return watch->live;
}

const struct daemon_vitals *daemon_watch_vitals(const struct daemon_watch *watch)
{
	return &watch->vitals;
}
