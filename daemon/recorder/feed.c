/* SPDX-License-Identifier: MIT */
/* The sampler's side of a watch: numbers, processes and VMs, a few times a second. */
#include "daemon/recorder/feed.h"
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

#include "daemon/decode/function_ids.h"
#include "daemon/recorder/recorder.h"

/** A VM that is reported. */
struct fed_vm {
	struct daemon_vm vm;
	struct luastate_pulse *pulse;
	uint64_t aborted_first; /* what was counted before the watch began */
	bool begun, met;
};

struct feed {
	uint64_t numbers_ns, vms_ns; /* not before: to tell them */
	struct feed_process *told;   /* as last reported */
	size_t told_count;
	struct fed_vm vms[FEED_VMS_MAX];
	size_t vm_count;
	bool lost; /* functions were not told */
};

int feed_start(struct recorder *recorder)
{
	struct failure why;

	recorder->feed = calloc(1, sizeof(*recorder->feed));
	if (recorder->feed &&
	    message_queue_init(&recorder->writer.queue, recorder->options->feed_fd, &why) == 0 &&
	    message_put_hello(&recorder->writer.queue, &why) == 0)
		return 0;
	return recorder_end_with(recorder, DAEMON_END_SYSTEM, "out of memory");
}

bool feed_is_full(const struct recorder *recorder)
{
	return message_queued(&recorder->writer.queue) > FEED_QUEUE_MAX;
}

void feed_note_lost(struct recorder *recorder)
{
	recorder->feed->lost = true;
}

/* ---- Notices ---------------------------------------------------------------------------- */

static void put_text(struct recorder *recorder, enum message_type type, int end, const char *text)
{
	struct feed_text body = { .end = end };
	struct failure why;

	snprintf(body.text, sizeof(body.text), "%s", text);
	message_put_bytes(&recorder->writer.queue, type, &body, sizeof(body), &why);
}

/* A stuck screen shows none, and processes may come and go without end. */
void feed_notice(struct recorder *recorder, const char *text)
{
	if (!feed_is_full(recorder))
		put_text(recorder, MESSAGE_NOTICE, 0, text);
}

static void note(struct recorder *recorder, const struct recorder_target *of, const char *what)
{
	const struct daemon_process *listed = recorder_listed(recorder, of);
	char text[FEED_TEXT_MAX];

	snprintf(text, sizeof(text), "%s [%d] %s", listed ? listed->name : "process", (int)of->pid,
		 what);
	feed_notice(recorder, text);
}

void feed_note_exec(struct recorder *recorder, const struct recorder_target *of)
{
	note(recorder, of, "runs another program now");
}

void feed_note_end(struct recorder *recorder, const struct recorder_target *of)
{
	bool waits = recorder->options->name_count > 0 && recorder->target_count <= 1;

	note(recorder, of, waits ? "ended: waiting for the next one of that name" : "ended");
}

void feed_note_found(struct recorder *recorder, const struct recorder_target *of)
{
	if (recorder->begin_ns)
		note(recorder, of, "was found");
}

/* ---- Processes -------------------------------------------------------------------------- */

/* When a process began, by the clock that goes on while the machine sleeps. 0: unknown. Source:
 * proc_pid_stat(5), starttime. */
static uint64_t start_of(pid_t pid)
{
	char path[48], line[1024], *at;
	unsigned long long ticks = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	at = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			  "%*d %*d %llu",
			  &ticks) != 1)
		return 0;
	return ticks * (1000000000u / (unsigned long)sysconf(_SC_CLK_TCK));
}

static bool grow_told(struct feed *feed, size_t count)
{
	struct feed_process *larger;

	if (count <= feed->told_count)
		return true;
	larger = realloc(feed->told, count * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger + feed->told_count, 0, (count - feed->told_count) * sizeof(*larger));
	for (size_t i = feed->told_count; i < count; i++)
		larger[i].index = UINT64_MAX; /* told of nothing yet */
	feed->told = larger;
	feed->told_count = count;
	return true;
}

/* Those of which there is news. */
static int put_processes(struct recorder *recorder, struct failure *why)
{
	const struct daemon_stats *stats = recorder->stats;
	struct feed *feed = recorder->feed;

	if (!grow_told(feed, stats->process_count))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "list the processes");
	for (size_t i = 0; i < stats->process_count; i++) {
		struct feed_process *told = &feed->told[i];
		bool is_new = told->index == UINT64_MAX;

		if (!is_new &&
		    memcmp(&told->process, &stats->processes[i], sizeof(told->process)) == 0)
			continue;
		if (is_new)
			told->start_ns = start_of(stats->processes[i].pid);
		told->index = i;
		memcpy(&told->process, &stats->processes[i], sizeof(told->process));
		if (message_put_bytes(&recorder->writer.queue, MESSAGE_PROCESS, told, sizeof(*told),
				      why) != 0)
			return -1;
	}
	return 0;
}

/* ---- VMs -------------------------------------------------------------------------------- */

static struct fed_vm *find_vm(struct feed *feed, pid_t pid, uint64_t G)
{
	struct fed_vm *fed;

	for (size_t i = 0; i < feed->vm_count; i++)
		if (feed->vms[i].vm.pid == pid && feed->vms[i].vm.G == G)
			return &feed->vms[i];
	if (feed->vm_count == FEED_VMS_MAX)
		return NULL;
	fed = &feed->vms[feed->vm_count];
	*fed = (struct fed_vm){ .vm = { .pid = pid, .G = G }, .pulse = luastate_pulse_create() };
	if (!fed->pulse)
		return NULL;
	feed->vm_count++;
	return fed;
}

static void describe_vm(const struct recorder_target *of, const struct luastate_vm *vm,
			struct daemon_vm *ret_vm)
{
	struct failure why;

	luastate_describe_layout(vm->layout, ret_vm->layout, sizeof(ret_vm->layout));
	if (luastate_read_version(of->target->lua, attach_process_reader(of->process), vm->G,
				  ret_vm->version, sizeof(ret_vm->version), &why) != 0)
		ret_vm->version[0] = '\0';
}

static void take_vitals(struct fed_vm *fed, const struct luastate_vitals *vitals)
{
	struct daemon_vm *vm = &fed->vm;

	if (!fed->begun && vitals->is_counted)
		fed->aborted_first = vitals->aborted;
	fed->begun |= vitals->has_traces;
	vm->has_heap = vm->has_pace = true;
	vm->heap_bytes = vitals->heap_bytes;
	vm->threshold_bytes = vitals->threshold_bytes;
	vm->gc_phase = vitals->gc_phase;
	vm->pause = vitals->pause;
	vm->step_multiplier = vitals->step_multiplier;
	vm->has_allocated = vitals->has_allocated;
	vm->allocated_bytes = vitals->allocated_bytes;
	vm->has_traces = vitals->has_traces;
	vm->jit_on = vitals->jit_on;
	vm->traces = vitals->traces;
	vm->mcode_bytes = vitals->mcode_bytes;
	vm->is_counted = vitals->is_counted;
	vm->created = vitals->created;
	vm->aborted = vitals->aborted - (vitals->is_counted ? fed->aborted_first : 0);
}

static void look_at_vms(struct feed *feed, const struct recorder_target *of)
{
	const struct luastate *lua = of->target->lua;

	for (size_t i = 0; i < luastate_vm_count(lua); i++) {
		const struct luastate_vm *vm = luastate_vm_get(lua, i);
		struct fed_vm *fed = find_vm(feed, of->pid, vm->G);
		struct luastate_vitals vitals;
		struct failure why;

		if (!fed || luastate_read_vitals(lua, attach_process_reader(of->process), vm->G,
						 fed->pulse, &vitals, &why) != 0)
			continue;
		if (!fed->vm.layout[0])
			describe_vm(of, vm, &fed->vm);
		fed->met = true;
		take_vitals(fed, &vitals);
	}
}

/* VMs that are gone make room. */
static void drop_unmet(struct feed *feed)
{
	size_t kept = 0;

	for (size_t i = 0; i < feed->vm_count; i++) {
		if (!feed->vms[i].met) {
			luastate_pulse_destroy(feed->vms[i].pulse);
			continue;
		}
		feed->vms[i].met = false;
		if (kept != i)
			feed->vms[kept] = feed->vms[i];
		kept++;
	}
	feed->vm_count = kept;
}

static int put_vms(struct recorder *recorder, struct failure *why)
{
	struct feed *feed = recorder->feed;
	struct feed_vm body;

	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->target)
			look_at_vms(feed, recorder->targets[i]);
	drop_unmet(feed);
	for (size_t i = 0; i < feed->vm_count; i++) {
		memset(&body, 0, sizeof(body));
		body.index = i;
		body.vm = feed->vms[i].vm;
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
	struct feed_numbers body = {
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
		.vm_count = (uint32_t)recorder->feed->vm_count,
	};

	memcpy(body.reasons, stats->reasons, sizeof(body.reasons));
	memcpy(body.states, stats->states, sizeof(body.states));
	memcpy(body.outcomes, stats->outcomes, sizeof(body.outcomes));
	memcpy(body.compiled, stats->compiled, sizeof(body.compiled));
	return message_put_bytes(&recorder->writer.queue, MESSAGE_NUMBERS, &body, sizeof(body),
				 why);
}

/* @return false where the watch has gone. */
static bool hear(struct recorder *recorder)
{
	char bytes[16];
	ssize_t got = recv(recorder->options->feed_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0)
		recorder->feed->lost = true; /* the one thing that it says */
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

static void announce_anew(struct recorder *recorder)
{
	recorder->feed->lost = false;
	for (size_t i = 0; i < recorder->target_count; i++) {
		recorder->targets[i]->has_root = false;
		if (recorder->targets[i]->target)
			target_announce_anew(recorder->targets[i]->target);
	}
}

bool feed_tell(struct recorder *recorder, uint64_t now_ns)
{
	struct feed *feed = recorder->feed;
	struct failure why;

	if (now_ns < feed->numbers_ns)
		return true;
	feed->numbers_ns = now_ns + FEED_INTERVAL_NS;
	if (!hear(recorder))
		return false;
	if (feed_is_full(recorder))
		return true;
	if (feed->lost)
		announce_anew(recorder);
	if (now_ns >= feed->vms_ns) {
		feed->vms_ns = now_ns + FEED_VMS_INTERVAL_NS;
		if (put_vms(recorder, &why) != 0 || put_processes(recorder, &why) != 0)
			return false;
	}
	return put_numbers(recorder, now_ns, &why) == 0;
}

/* ---- End -------------------------------------------------------------------------------- */

/* A watch that is stuck is not waited for long. */
static void send_last(struct recorder *recorder)
{
	uint64_t end_ns = clock_now_ns() + FEED_LAST_MS * (uint64_t)1000000;
	struct pollfd poller = { .fd = recorder->options->feed_fd, .events = POLLOUT };
	struct failure why;

	while (message_flush_now(&recorder->writer.queue, &why) == 0 && clock_now_ns() < end_ns)
		poll(&poller, 1, FEED_LAST_MS / 10);
}

void feed_finish(struct recorder *recorder)
{
	struct feed *feed = recorder->feed;
	struct failure why;

	if (!feed)
		return;
	if (recorder->writer.queue.bytes) {
		put_processes(recorder, &why);
		put_numbers(recorder, clock_now_ns(), &why);
		put_text(recorder, MESSAGE_RESULT, (int)recorder->end, recorder->text);
		send_last(recorder);
		message_queue_deinit(&recorder->writer.queue);
	}
	for (size_t i = 0; i < feed->vm_count; i++)
		luastate_pulse_destroy(feed->vms[i].pulse);
	free(feed->told);
	free(feed);
	recorder->feed = NULL;
}
