/* SPDX-License-Identifier: MIT */
/* How do the sampler's messages get into the tables of a live session? */
#include "daemon/live/live_session.h"
#include "attach/clock.h"
#include "format/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/live/live_start.h"
#include "daemon/recorder/live_channel.h"
#include "daemon/tick_clock.h"

enum {
	/* Longest time to keep a pressed key waiting. */
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

/* ---- Messages --------------------------------------------------------------------------- */

static int malformed(struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, 0, "understand the sampler");
}

/* Clean text of the target in a field of fixed size. */
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	format_clean_text(text, strlen(text));
}

/* A byte other than 0 and 1 in a flag would be undefined behaviour later. */
static bool are_flags(const bool *const flags[], size_t count)
{
	uint8_t byte;

	for (size_t i = 0; i < count; i++) {
		memcpy(&byte, flags[i], sizeof(byte));
		if (byte > 1)
			return false;
	}
	return true;
}

static void take_numbers(struct daemon_live *session, const struct live_numbers *numbers)
{
	struct daemon_live_header *header = &session->header;

	header->rate_hz = numbers->rate_hz;
	header->elapsed_ns = numbers->elapsed_ns;
	header->samples = numbers->samples;
	header->dropped = numbers->dropped;
	header->ticks = numbers->ticks;
	header->late_ticks = numbers->late_ticks;
	header->missed_ticks = numbers->missed_ticks;
	header->cpu_ns = numbers->cpu_ns;
	header->stopped_p50_ns = numbers->stopped_p50_ns;
	header->stopped_p99_ns = numbers->stopped_p99_ns;
	header->stopped_max_ns = numbers->stopped_max_ns;
	header->unlisted_processes = numbers->unlisted_processes;
	header->copied_p99_ns = numbers->copied_p99_ns;
	header->capture = numbers->capture == DAEMON_CAPTURE_KERNEL ? DAEMON_CAPTURE_KERNEL
								    : DAEMON_CAPTURE_STOP;
	memcpy(header->reasons, numbers->reasons, sizeof(header->reasons));
	memcpy(header->states, numbers->states, sizeof(header->states));
	memcpy(header->outcomes, numbers->outcomes, sizeof(header->outcomes));
	memcpy(header->compiled, numbers->compiled, sizeof(header->compiled));
	if (header->vm_count > numbers->vm_count)
		header->vm_count = numbers->vm_count;
}

static int take_process(struct daemon_live *session, struct live_process *from, struct failure *why)
{
	struct daemon_live_header *header = &session->header;

	if (from->index >= DAEMON_PROCESSES_LISTED || from->index > header->process_count ||
	    (unsigned)from->process.kind >= DAEMON_PROCESS_KIND_COUNT ||
	    !are_flags((const bool *const[]){ &from->process.ended }, 1))
		return malformed(why);
	clean(from->process.name, sizeof(from->process.name));
	header->processes[from->index] = from->process;
	header->start_ns[from->index] = from->start_ns;
	if (from->index == header->process_count)
		header->process_count++;
	return 0;
}

static int take_vm(struct daemon_live *session, struct live_vm *from, struct failure *why)
{
	struct daemon_live_header *header = &session->header;
	const struct daemon_vm *vm = &from->vm;
	const bool *const flags[] = { &vm->has_heap,   &vm->has_pace, &vm->has_allocated,
				      &vm->has_traces, &vm->jit_on,   &vm->is_counted };

	if (from->index >= CHANNEL_VMS_MAX || from->index > header->vm_count ||
	    !are_flags(flags, sizeof(flags) / sizeof(flags[0])))
		return malformed(why);
	clean(from->vm.version, sizeof(from->vm.version));
	clean(from->vm.layout, sizeof(from->vm.layout));
	header->vms[from->index] = from->vm;
	if (from->index == header->vm_count)
		header->vm_count++;
	return 0;
}

static void take_text(struct daemon_live *session, enum message_type type, struct live_text *from)
{
	struct daemon_live_header *header = &session->header;

	clean(from->text, sizeof(from->text));
	if (type == MESSAGE_NOTICE) {
		memcpy(header->notice, from->text, sizeof(header->notice));
		header->notice_count++;
		return;
	}
	header->ended = true;
	header->end = from->end >= 0 && from->end <= DAEMON_END_SYSTEM ? (enum daemon_end)from->end
								       : DAEMON_END_SYSTEM;
	memcpy(header->text, from->text, sizeof(header->text));
}

/* Read a body of fixed size. */
static bool read_body(const struct message *message, void *ret_body, size_t len)
{
	if (message->body.len != len)
		return false;
	memcpy(ret_body, message->body.bytes, len);
	return true;
}

static int handle(struct daemon_live *session, const struct message *message, struct failure *why)
{
	union {
		struct live_numbers numbers;
		struct live_process process;
		struct live_vm vm;
		struct live_text text;
	} body;

	if (session->greeted == (message->type == MESSAGE_HELLO))
		return malformed(why);
	switch (message->type) {
	case MESSAGE_HELLO:
		session->greeted = message->version == MESSAGE_VERSION;
		return session->greeted ? 0 : malformed(why);
	case MESSAGE_FUNCTION:
		return format_live_function(session->live, message->function.id,
					    &message->function.value, why);
	case MESSAGE_SAMPLE:
		return format_live_sample(session->live, &message->sample, why);
	case MESSAGE_NUMBERS:
		if (!read_body(message, &body.numbers, sizeof(body.numbers)))
			return malformed(why);
		take_numbers(session, &body.numbers);
		return 0;
	case MESSAGE_PROCESS:
		return read_body(message, &body.process, sizeof(body.process))
			       ? take_process(session, &body.process, why)
			       : malformed(why);
	case MESSAGE_VM:
		return read_body(message, &body.vm, sizeof(body.vm))
			       ? take_vm(session, &body.vm, why)
			       : malformed(why);
	case MESSAGE_NOTICE:
	case MESSAGE_RESULT:
		if (!read_body(message, &body.text, sizeof(body.text)))
			return malformed(why);
		take_text(session, message->type, &body.text);
		return 0;
	default:
		return malformed(why);
	}
}

/* The socket ended, or sent an invalid message. */
static void note_end(struct daemon_live *session)
{
	struct daemon_live_header *header = &session->header;

	if (!header->ended) {
		header->ended = true;
		header->end = DAEMON_END_SYSTEM;
		snprintf(header->text, sizeof(header->text),
			 "the sampler died: earlier samples stay");
	}
	live_end_sampler(session);
}

int daemon_live_take(struct daemon_live *session, struct failure *why)
{
	uint64_t end_ns = clock_now_ns() + TAKE_NS;

	while (session->fd >= 0) {
		struct message message;
		struct failure reason = { 0 };
		int got = message_receive_now(&session->receiver, &message, &reason);

		if (got == 2)
			return 0;
		if (got == 1 && handle(session, &message, &reason) == 0) {
			if (clock_now_ns() >= end_ns)
				return 1;
			continue;
		}
		if (got != 0 && reason.kind == FAILURE_NO_MEMORY) {
			*why = reason;
			return -1;
		}
		note_end(session);
	}
	return 0;
}

/* ---- History ---------------------------------------------------------------------------- */

/* Totals since the start; 32-bit numbers may wrap, but their differences are right. */
static struct daemon_history_point sum_up(const struct daemon_live *session)
{
	const struct daemon_live_header *header = &session->header;
	struct daemon_history_point sums = { .time_ns = clock_now_ns(),
					     .samples = (uint32_t)header->samples,
					     .sampler_cpu_ns = header->cpu_ns,
					     .own_cpu_ns = header->own_cpu_ns };

	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		sums.states[i] = (uint32_t)header->states[i];
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		sums.outcomes[i] = (uint32_t)header->outcomes[i];
	for (size_t i = 0; i < header->vm_count; i++) {
		const struct daemon_vm *vm = &header->vms[i];

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

/* Sums drop when VMs disappear. */
static uint64_t rise(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

int daemon_live_refresh(struct daemon_live *session, struct failure *why)
{
	const struct daemon_history_point *before = &session->totals;
	struct daemon_history_point now, point;
	bool first = session->refreshes == 0;

	session->header.own_cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	now = point = sum_up(session);
	point.span_ns = first ? session->header.elapsed_ns : now.time_ns - before->time_ns;
	point.samples -= before->samples;
	for (int i = 0; i < FORMAT_STATE_COUNT; i++)
		point.states[i] -= before->states[i];
	for (int i = 0; i < DAEMON_OUTCOME_COUNT; i++)
		point.outcomes[i] -= before->outcomes[i];
	/* What was allocated before the live session began says nothing about now. */
	point.allocated_bytes =
		!before->has_allocated ? 0 : rise(before->allocated_bytes, now.allocated_bytes);
	point.created = rise(before->created, now.created);
	point.aborted = rise(before->aborted, now.aborted);
	point.sampler_cpu_ns = rise(before->sampler_cpu_ns, now.sampler_cpu_ns);
	point.own_cpu_ns = rise(before->own_cpu_ns, now.own_cpu_ns);
	session->totals = now;
	session->history[session->refreshes++ % DAEMON_HISTORY] = point;
	if (session->fd >= 0 && format_live_take_forgotten(session->live)) {
		const char renew = CHANNEL_RENEW;

		send(session->fd, &renew, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	return format_live_refresh(session->live, why);
}

const struct daemon_history_point *daemon_live_history(const struct daemon_live *session,
						       size_t age)
{
	if (age >= session->refreshes || age >= DAEMON_HISTORY)
		return NULL;
	return &session->history[(session->refreshes - 1 - age) % DAEMON_HISTORY];
}

/* ---- Start and end ---------------------------------------------------------------------- */

int daemon_live_start(const struct daemon_options *options, const struct format_live_options *live,
		      struct daemon_live **ret_session, struct failure *why)
{
	static const struct format_live_options defaults = { 0 };
	struct daemon_live *session = calloc(1, sizeof(*session));

	if (!session)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "start the sampler");
	session->fd = -1;
	session->header.rate_hz = options->rate_hz;
	/* First the sampler, which is forked before anything large is in memory. */
	if (live_start_sampler(options, &session->pid, &session->fd, why) != 0) {
		free(session);
		return -1;
	}
	session->header.processes =
		calloc(DAEMON_PROCESSES_LISTED, sizeof(*session->header.processes));
	session->header.start_ns =
		calloc(DAEMON_PROCESSES_LISTED, sizeof(*session->header.start_ns));
	session->header.vms = calloc(CHANNEL_VMS_MAX, sizeof(*session->header.vms));
	if (session->header.processes && session->header.start_ns && session->header.vms &&
	    message_receiver_init(&session->receiver, session->fd, why) == 0 &&
	    format_live_create(live ? live : &defaults, &session->live, why) == 0) {
		*ret_session = session;
		return 0;
	}
	daemon_live_destroy(session);
	return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "start the sampler");
}

void daemon_live_destroy(struct daemon_live *session)
{
	if (!session)
		return;
	live_end_sampler(session);
	if (session->receiver.bytes)
		message_receiver_deinit(&session->receiver);
	format_live_destroy(session->live);
	free(session->header.processes);
	free(session->header.start_ns);
	free(session->header.vms);
	free(session);
}

int daemon_live_fd(const struct daemon_live *session)
{
	return session->fd;
}

struct format_live *daemon_live_profile(struct daemon_live *session)
{
	return session->live;
}

const struct daemon_live_header *daemon_live_header(const struct daemon_live *session)
{
	return &session->header;
}
