/* SPDX-License-Identifier: MIT */
/* What does the sampler send to a live session: numbers, processes and VMs, a few times a
 * second? */
#include "daemon/recorder/live_channel.h"
#include "attach/clock.h"
#include "luastate/explain.h"
#include "luastate/vm_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/process.h"
#include "daemon/decode/function_ids.h"
#include "daemon/recorder/recorder.h"

/** A VM that is reported. */
struct known_vm {
	struct daemon_vm vm;
	struct luastate_stats_delta *delta;
	uint64_t aborted_first; /* aborts before the live session began */
	bool begun, met;
};

struct live_channel {
	uint64_t numbers_ns, vms_ns;   /* earliest next report */
	struct live_process *reported; /* as last reported */
	size_t reported_count;
	struct known_vm vms[CHANNEL_VMS_MAX];
	size_t vm_count;
	bool lost; /* some functions were not announced */
};

int live_channel_start(struct recorder *recorder)
{
	struct failure why;

	recorder->live_channel = calloc(1, sizeof(*recorder->live_channel));
	if (recorder->live_channel &&
	    message_queue_init(&recorder->writer.queue, recorder->options->channel_fd, &why) == 0 &&
	    message_put_hello(&recorder->writer.queue, &why) == 0)
		return 0;
	return recorder_end_with(recorder, DAEMON_END_SYSTEM, "out of memory");
}

bool live_channel_is_full(const struct recorder *recorder)
{
	return message_queued(&recorder->writer.queue) > CHANNEL_QUEUE_MAX;
}

void live_channel_note_lost(struct recorder *recorder)
{
	recorder->live_channel->lost = true;
}

/* ---- Notices ---------------------------------------------------------------------------- */

static void put_text(struct recorder *recorder, enum message_type type, int end, const char *text)
{
	struct live_text body = { .end = end };
	struct failure why;

	snprintf(body.text, sizeof(body.text), "%s", text);
	message_put_bytes(&recorder->writer.queue, type, &body, sizeof(body), &why);
}

/* Bounded, because a stuck screen shows no notices while processes come and go without end. */
void live_channel_notice(struct recorder *recorder, const char *text)
{
	if (!live_channel_is_full(recorder))
		put_text(recorder, MESSAGE_NOTICE, 0, text);
}

static void note(struct recorder *recorder, const struct recorder_target *of, const char *what)
{
	const struct daemon_process *listed = recorder_listed(recorder, of);
	char text[CHANNEL_TEXT_MAX];

	snprintf(text, sizeof(text), "%s [%d] %s", listed ? listed->name : "process", (int)of->pid,
		 what);
	live_channel_notice(recorder, text);
}

void live_channel_note_exec(struct recorder *recorder, const struct recorder_target *of)
{
	note(recorder, of, "runs another program now");
}

void live_channel_note_end(struct recorder *recorder, const struct recorder_target *of)
{
	bool waits = recorder->options->name_count > 0 && recorder->target_count <= 1;

	note(recorder, of, waits ? "ended: waiting for the next process of that name" : "ended");
}

void live_channel_note_found(struct recorder *recorder, const struct recorder_target *of)
{
	if (recorder->begin_ns)
		note(recorder, of, "was found");
}

/* ---- Processes -------------------------------------------------------------------------- */

static bool grow_reported(struct live_channel *live_channel, size_t count)
{
	struct live_process *larger;

	if (count <= live_channel->reported_count)
		return true;
	larger = realloc(live_channel->reported, count * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger + live_channel->reported_count, 0,
	       (count - live_channel->reported_count) * sizeof(*larger));
	for (size_t i = live_channel->reported_count; i < count; i++)
		larger[i].index = UINT64_MAX; /* nothing reported yet */
	live_channel->reported = larger;
	live_channel->reported_count = count;
	return true;
}

/* Send the processes that have changed. */
static int put_processes(struct recorder *recorder, struct failure *why)
{
	const struct daemon_stats *stats = recorder->stats;
	struct live_channel *live_channel = recorder->live_channel;

	if (!grow_reported(live_channel, stats->process_count))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list the processes");
	for (size_t i = 0; i < stats->process_count; i++) {
		struct live_process *reported = &live_channel->reported[i];
		bool is_new = reported->index == UINT64_MAX;

		if (!is_new && memcmp(&reported->process, &stats->processes[i],
				      sizeof(reported->process)) == 0)
			continue;
		if (is_new)
			reported->start_ns = attach_start_of(stats->processes[i].pid);
		reported->index = i;
		memcpy(&reported->process, &stats->processes[i], sizeof(reported->process));
		if (message_put_bytes(&recorder->writer.queue, MESSAGE_PROCESS, reported,
				      sizeof(*reported), why) != 0)
			return -1;
	}
	return 0;
}

/* ---- VMs -------------------------------------------------------------------------------- */

static struct known_vm *find_vm(struct live_channel *live_channel, pid_t pid, uint64_t G)
{
	struct known_vm *fed;

	for (size_t i = 0; i < live_channel->vm_count; i++)
		if (live_channel->vms[i].vm.pid == pid && live_channel->vms[i].vm.G == G)
			return &live_channel->vms[i];
	if (live_channel->vm_count == CHANNEL_VMS_MAX)
		return NULL;
	fed = &live_channel->vms[live_channel->vm_count];
	*fed = (struct known_vm){ .vm = { .pid = pid, .G = G },
				  .delta = luastate_stats_delta_create() };
	if (!fed->delta)
		return NULL;
	live_channel->vm_count++;
	return fed;
}

static void describe_vm(const struct recorder_target *of, const struct luastate_vm *vm,
			struct daemon_vm *ret_vm)
{
	struct failure why;

	luastate_describe_layout(vm->layout, ret_vm->layout, sizeof(ret_vm->layout));
	snprintf(ret_vm->fork, sizeof(ret_vm->fork), "%s", luastate_fork_of(vm->layout));
	if (luastate_read_version(of->target->lua, attach_process_reader(of->process), vm->G,
				  ret_vm->version, sizeof(ret_vm->version), &why) != 0)
		ret_vm->version[0] = '\0';
}

static void take_stats(struct known_vm *fed, const struct luastate_vm_stats *stats)
{
	struct daemon_vm *vm = &fed->vm;

	if (!fed->begun && stats->is_counted)
		fed->aborted_first = stats->aborted;
	fed->begun |= stats->has_traces;
	vm->has_heap = vm->has_pace = true;
	vm->heap_bytes = stats->heap_bytes;
	vm->threshold_bytes = stats->threshold_bytes;
	vm->gc_phase = stats->gc_phase;
	vm->pause = stats->pause;
	vm->step_multiplier = stats->step_multiplier;
	vm->has_allocated = stats->has_allocated;
	vm->allocated_bytes = stats->allocated_bytes;
	vm->has_traces = stats->has_traces;
	vm->jit_on = stats->jit_on;
	vm->traces = stats->traces;
	vm->mcode_bytes = stats->mcode_bytes;
	vm->is_counted = stats->is_counted;
	vm->created = stats->created;
	vm->aborted = stats->aborted - (stats->is_counted ? fed->aborted_first : 0);
}

static void look_at_vms(struct live_channel *live_channel, const struct recorder_target *of)
{
	const struct luastate *lua = of->target->lua;

	for (size_t i = 0; i < luastate_vm_count(lua); i++) {
		const struct luastate_vm *vm = luastate_vm_get(lua, i);
		struct known_vm *fed = find_vm(live_channel, of->pid, vm->G);
		struct luastate_vm_stats stats;
		struct failure why;

		if (!fed || luastate_read_vm_stats(lua, attach_process_reader(of->process), vm->G,
						   fed->delta, &stats, &why) != 0)
			continue;
		if (!fed->vm.layout[0])
			describe_vm(of, vm, &fed->vm);
		fed->met = true;
		take_stats(fed, &stats);
	}
}

/* Remove VMs that no longer exist. */
static void drop_unmet(struct live_channel *live_channel)
{
	size_t kept = 0;

	for (size_t i = 0; i < live_channel->vm_count; i++) {
		if (!live_channel->vms[i].met) {
			luastate_stats_delta_destroy(live_channel->vms[i].delta);
			continue;
		}
		live_channel->vms[i].met = false;
		if (kept != i)
			live_channel->vms[kept] = live_channel->vms[i];
		kept++;
	}
	live_channel->vm_count = kept;
}

static int put_vms(struct recorder *recorder, struct failure *why)
{
	struct live_channel *live_channel = recorder->live_channel;
	struct live_vm body;

	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->target)
			look_at_vms(live_channel, recorder->targets[i]);
	drop_unmet(live_channel);
	for (size_t i = 0; i < live_channel->vm_count; i++) {
		memset(&body, 0, sizeof(body));
		body.index = i;
		body.vm = live_channel->vms[i].vm;
		if (message_put_bytes(&recorder->writer.queue, MESSAGE_VM, &body, sizeof(body),
				      why) != 0)
			return -1;
	}
	return 0;
}

/* ---- Numbers ---------------------------------------------------------------------------- */

static int put_numbers(struct recorder *recorder, uint64_t now_ns, struct failure *why)
{
	const struct daemon_stats *stats = recorder->stats;
	struct live_numbers body = {
		.elapsed_ns = recorder->begin_ns ? now_ns - recorder->begin_ns : 0,
		.samples = stats->samples,
		.dropped = stats->dropped,
		.ticks = stats->ticks,
		.late_ticks = stats->late_ticks,
		.missed_ticks = stats->missed_ticks,
		.cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID),
		.stopped_p50_ns = daemon_histogram_quantile(&stats->stopped, 0.5),
		.stopped_p99_ns = daemon_histogram_quantile(&stats->stopped, 0.99),
		.stopped_max_ns = stats->stopped.max_ns,
		.copied_p99_ns = daemon_histogram_quantile(&stats->copied, 0.99),
		.capture = stats->capture,
		.unlisted_processes = stats->unlisted_processes,
		.rate_hz = recorder->options->rate_hz,
		.vm_count = (uint32_t)recorder->live_channel->vm_count,
	};

	memcpy(body.reasons, stats->reasons, sizeof(body.reasons));
	memcpy(body.states, stats->states, sizeof(body.states));
	memcpy(body.outcomes, stats->outcomes, sizeof(body.outcomes));
	memcpy(body.compiled, stats->compiled, sizeof(body.compiled));
	return message_put_bytes(&recorder->writer.queue, MESSAGE_NUMBERS, &body, sizeof(body),
				 why);
}

/* @return false if the live session has ended. */
static bool hear(struct recorder *recorder)
{
	char bytes[16];
	ssize_t got = recv(recorder->options->channel_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0)
		recorder->live_channel->lost = true; /* any byte means CHANNEL_RENEW */
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

static void announce_anew(struct recorder *recorder)
{
	recorder->live_channel->lost = false;
	for (size_t i = 0; i < recorder->target_count; i++) {
		recorder->targets[i]->has_root = false;
		if (recorder->targets[i]->target)
			target_announce_anew(recorder->targets[i]->target);
	}
}

bool live_channel_update(struct recorder *recorder, uint64_t now_ns)
{
	struct live_channel *live_channel = recorder->live_channel;
	struct failure why;

	if (now_ns < live_channel->numbers_ns)
		return true;
	live_channel->numbers_ns = now_ns + CHANNEL_INTERVAL_NS;
	if (!hear(recorder))
		return false;
	if (live_channel_is_full(recorder))
		return true;
	if (live_channel->lost)
		announce_anew(recorder);
	if (now_ns >= live_channel->vms_ns) {
		live_channel->vms_ns = now_ns + CHANNEL_VMS_INTERVAL_NS;
		if (put_vms(recorder, &why) != 0 || put_processes(recorder, &why) != 0)
			return false;
	}
	return put_numbers(recorder, now_ns, &why) == 0;
}

/* ---- End -------------------------------------------------------------------------------- */

/* Do not wait long for a stuck live session. */
static void send_last(struct recorder *recorder)
{
	uint64_t end_ns = clock_now_ns() + CHANNEL_LAST_MS * (uint64_t)1000000;
	struct pollfd poller = { .fd = recorder->options->channel_fd, .events = POLLOUT };
	struct failure why;

	while (message_flush_now(&recorder->writer.queue, &why) == 0 && clock_now_ns() < end_ns)
		poll(&poller, 1, CHANNEL_LAST_MS / 10);
}

void live_channel_finish(struct recorder *recorder)
{
	struct live_channel *live_channel = recorder->live_channel;
	struct failure why;

	if (!live_channel)
		return;
	if (recorder->writer.queue.bytes) {
		put_processes(recorder, &why);
		put_numbers(recorder, clock_now_ns(), &why);
		put_text(recorder, MESSAGE_RESULT, (int)recorder->end, recorder->text);
		send_last(recorder);
		message_queue_deinit(&recorder->writer.queue);
	}
	for (size_t i = 0; i < live_channel->vm_count; i++)
		luastate_stats_delta_destroy(live_channel->vms[i].delta);
	free(live_channel->reported);
	free(live_channel);
	recorder->live_channel = NULL;
}
