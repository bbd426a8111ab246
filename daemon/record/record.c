/* SPDX-License-Identifier: MIT */
/* How does a recording start, and run its loop? */
#include "daemon/record.h"

#include "attach/clock.h"
#include "daemon/outcome/outcomes.h"
#include "daemon/outcome/settle.h"
#include "daemon/outcome/stop_reasons.h"
#include "daemon/record/ending.h"
#include "daemon/record/startup.h"
#include "daemon/recorder/live_channel.h"
#include "daemon/rights/event_opener.h"
#include "daemon/rights/priority.h"
#include "daemon/rights/refusal.h"
#include "daemon/rights/sandbox.h"
#include "daemon/targets/finder.h"
#include "daemon/targets/processes.h"
#include "daemon/targets/target_list.h"
#include "daemon/tick/stop_copy.h"
#include "daemon/tick/tick.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
	FLUSH_INTERVAL_NS = 250 * 1000 * 1000,
	/* Longest time between two checks of pending stops. */
	PENDING_POLL_NS = 10 * 1000 * 1000,
	/* A later wake-up means that we waited for a processor. */
	TICK_LATE_NS = 200 * 1000,
	/* A queue of this size is sent at once. */
	FLUSH_BYTES = 32 * 1024,
	/* A writer that is busy with a large file may leave this much in the queue; then the
	 * recorder waits. */
	QUEUE_MAX_BYTES = 32 * 1024 * 1024,
	/* Longest time of missed ticks that the next sample represents. */
	MERGE_MAX_NS = 1000 * 1000 * 1000,
	/* For debug files of all processes: a dozen of some MiB each, over a slow line. */
	FETCH_MAX_MS = 30000,
};

/* ---- The loop --------------------------------------------------------------------------- */

static bool send_queued(struct recorder *recorder)
{
	struct failure why;
	int sent = message_flush_now(&recorder->writer.queue, &why);

	if (recorder->live_channel)
		return sent >= 0; /* the rest is sent later, or dropped */
	/* One of several outputs may have failed. If no thread runs, nothing is sent that would
	 * report it. */
	if (sent > 0 && writer_has_failed(&recorder->writer))
		sent = failure_set(&why, FAILURE_GONE, EPIPE, 0, 0, "send samples to the writer");
	if (sent == 0 && message_queued(&recorder->writer.queue) < QUEUE_MAX_BYTES)
		return true;
	if (sent == 0) {
		/* This may take a while, so no thread may be stopped meanwhile. */
		recorder_settle_all(recorder);
		sent = writer_send(&recorder->writer, QUEUE_MAX_BYTES / 2, recorder->end_ns,
				   recorder->options->stop, &why);
	}
	if (sent >= 0)
		return true;
	failure_describe(&why, recorder->text, recorder->text_len);
	recorder->end = DAEMON_END_OUTPUT;
	return false;
}

/* The signal is blocked, so that it interrupts no read of a thread; fetch it. */
static void take_snapshot(struct recorder *recorder)
{
	const struct timespec at_once = { 0 };
	struct failure why;
	sigset_t wanted;

	if (!recorder->options->snapshot_signal || recorder->live_channel)
		return;
	sigemptyset(&wanted);
	sigaddset(&wanted, recorder->options->snapshot_signal);
	if (sigtimedwait(&wanted, NULL, &at_once) > 0)
		message_put_snapshot(&recorder->writer.queue, clock_now_ns(), &why);
}

/* Ctrl-Z is blocked and stops us here: a thread of the target that we have stopped would stay so
 * until somebody continues us. */
static void take_suspension(struct recorder *recorder)
{
	sigset_t pending, suspension;

	if (sigpending(&pending) != 0 || !sigismember(&pending, SIGTSTP))
		return;
	recorder_settle_all(recorder);
	sigemptyset(&suspension);
	sigaddset(&suspension, SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &suspension, NULL);
	pthread_sigmask(SIG_BLOCK, &suspension, NULL);
}

/* Do what is due between ticks. */
static bool housekeeping(struct recorder *recorder, uint64_t now_ns)
{
	if (!recorder_refresh(recorder, now_ns))
		return false;
	if (recorder->live_channel && !live_channel_update(recorder, now_ns))
		return false;
	if (now_ns < recorder->flush_ns)
		return message_queued(&recorder->writer.queue) < FLUSH_BYTES ||
		       send_queued(recorder);
	recorder->flush_ns = now_ns + (recorder->live_channel ? (uint64_t)CHANNEL_INTERVAL_NS
							      : (uint64_t)FLUSH_INTERVAL_NS);
	recorder->stats->elapsed_ns = now_ns - recorder->begin_ns;
	if (recorder->options->progress)
		recorder->options->progress(recorder->options->context, recorder->stats);
	take_snapshot(recorder);
	take_suspension(recorder);
	return send_queued(recorder);
}

/* Wait for the tick, or for other work. @return How late the tick is, or -1 if it is in the
 * future. */
static int64_t wait_for_tick(struct recorder *recorder, const struct daemon_clock *clock,
			     uint64_t end_ns)
{
	uint64_t now_ns = clock_now_ns(), until_ns = now_ns + PENDING_POLL_NS;
	struct timespec rest = { 0 };
	sigset_t child;

	if (!recorder->pending)
		return daemon_clock_wait(clock, end_ns);
	if (until_ns > clock->deadline_ns)
		until_ns = clock->deadline_ns;
	if (until_ns > end_ns)
		until_ns = end_ns;
	if (until_ns > now_ns) {
		sigemptyset(&child);
		sigaddset(&child, SIGCHLD);
		rest.tv_nsec = (long)(until_ns - now_ns);
		/* If a thread stopped before we slept, the time of its stop is unknown. */
		if (sigtimedwait(&child, NULL, &(struct timespec){ 0 }) < 0 &&
		    sigtimedwait(&child, NULL, &rest) == SIGCHLD)
			recorder->woke_ns = clock_now_ns();
		recorder_take_pending(recorder);
		recorder->woke_ns = 0;
	}
	now_ns = clock_now_ns();
	return now_ns < clock->deadline_ns ? -1 : (int64_t)(now_ns - clock->deadline_ns);
}

/* The next sample represents the missed ticks. If it took too long, we or the machine were probably
 * stopped, and nobody knows what the threads did. */
static void note_missed(struct recorder *recorder, uint64_t missed, uint64_t period_ns)
{
	bool is_short = missed * period_ns <= MERGE_MAX_NS;

	recorder->stats->missed_ticks += missed;
	recorder->stats->merged_ticks += is_short ? missed : 0;
	recorder->weight = 1 + (is_short ? (uint32_t)missed : 0);
}

static bool goes_on(struct recorder *recorder, uint64_t now_ns)
{
	return !*recorder->options->stop && now_ns < recorder->end_ns &&
	       !recorder_is_at_limit(recorder) && recorder->end == DAEMON_END_STOPPED;
}

/* Stop each thread at each tick. */
static void run_stops(struct recorder *recorder)
{
	uint64_t now_ns = clock_now_ns();
	struct daemon_clock clock;

	recorder->weight = 1;
	daemon_clock_init(&clock, recorder->options->rate_hz, now_ns, now_ns);
	while (goes_on(recorder, now_ns)) {
		int64_t late_ns = wait_for_tick(recorder, &clock, recorder->end_ns);

		now_ns = clock_now_ns();
		if (late_ns < 0)
			continue; /* not yet: check whether to end */
		recorder->stats->ticks++;
		recorder->stats->late_ticks += (uint64_t)late_ns > clock.period_ns / 2;
		recorder->is_tick_late = late_ns > TICK_LATE_NS;
		if (!recorder_tick(recorder) || !housekeeping(recorder, clock_now_ns()))
			break;
		now_ns = clock_now_ns();
		note_missed(recorder, daemon_clock_advance(&clock, now_ns), clock.period_ns);
	}
}

/* The kernel has the clock: sleep until the next drain. Threads that are stopped nevertheless have
 * ticks before that. @return false if the recording ends. */
static bool await_copies(struct recorder *recorder, struct daemon_clock *clock, uint64_t drain_ns)
{
	const struct timespec wake = { .tv_sec = (time_t)(drain_ns / 1000000000u),
				       .tv_nsec = (long)(drain_ns % 1000000000u) };
	uint64_t now_ns;
	int64_t late_ns;

	if (!recorder->stopped_threads && !recorder->pending) {
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
		clock->period_ns = 0;
		return true;
	}
	if (!clock->period_ns) {
		now_ns = clock_now_ns();
		recorder->weight = 1;
		daemon_clock_init(clock, recorder->options->rate_hz, now_ns, now_ns);
	}
	late_ns = wait_for_tick(recorder, clock, drain_ns);
	if (late_ns < 0)
		return true;
	recorder->stats->late_ticks += (uint64_t)late_ns > clock->period_ns / 2;
	recorder->is_tick_late = late_ns > TICK_LATE_NS;
	if (!recorder_tick(recorder))
		return false;
	note_missed(recorder, daemon_clock_advance(clock, clock_now_ns()), clock->period_ns);
	return true;
}

/* Without a sampler, the opener's rights have no use. */
static void destroy_sampler(struct recorder *recorder)
{
	attach_sampler_destroy(recorder->sampler);
	recorder->sampler = NULL;
	opener_stop(recorder->opener);
	recorder->opener = NULL;
}

/* The kernel drops ticks silently, so stop threads from now on. */
static void end_copies(struct recorder *recorder)
{
	bpf_tick_end_all(recorder);
	destroy_sampler(recorder);
	recorder_notice(recorder,
			"the kernel now allows fewer samples "
			"(kernel.perf_event_max_sample_rate): threads are stopped from now on");
}

/* The kernel allows too few samples. @return Whether copies continue because stops are
 * forbidden. */
static bool take_slow(struct recorder *recorder)
{
	if (stops_are_allowed(recorder)) {
		end_copies(recorder);
		return false;
	}
	if (!recorder->reported_slow)
		recorder_notice(
			recorder,
			"the kernel now allows fewer samples "
			"(kernel.perf_event_max_sample_rate): samples are missing from now on");
	recorder->reported_slow = true;
	return true;
}

/* Drain all copies of the ticks up to now. The time of decoding them does not count for the
 * profile. @return false if the recording ends. */
static bool drain(struct recorder *recorder, uint64_t now_ns)
{
	uint64_t period_ns = 1000000000u / recorder->options->rate_hz;
	uint64_t ticks = (now_ns - recorder->begin_ns) / period_ns - recorder->stats->ticks;

	recorder->stats->elapsed_ns = now_ns - recorder->begin_ns;
	recorder->stats->ticks += ticks;
	return bpf_tick_drain(recorder, (uint32_t)ticks);
}

/* Run until the recording ends, or the kernel makes no more copies. */
static void run_copies(struct recorder *recorder)
{
	uint64_t now_ns = recorder->begin_ns, drain_ns = now_ns;
	struct daemon_clock clock = { 0 };

	while (goes_on(recorder, now_ns)) {
		if (!await_copies(recorder, &clock, drain_ns))
			return;
		now_ns = clock_now_ns();
		if (now_ns < drain_ns)
			continue;
		if (!drain(recorder, now_ns) || !housekeeping(recorder, now_ns))
			return;
		if (attach_sampler_is_slowed(recorder->sampler) && !take_slow(recorder))
			return;
		drain_ns = bpf_tick_next_ns(recorder, now_ns);
		drain_ns = drain_ns < recorder->end_ns ? drain_ns : recorder->end_ns;
	}
	/* At the end, fetch the copies made since the last drain. */
	attach_sampler_end(recorder->sampler);
	if (recorder->end == DAEMON_END_STOPPED && !recorder_is_at_limit(recorder))
		drain(recorder, clock_now_ns());
}

static void run(struct recorder *recorder)
{
	uint64_t now_ns = clock_now_ns();
	double duration_s = recorder->options->duration_s;
	sigset_t suspension, old;

	sigemptyset(&suspension);
	sigaddset(&suspension, SIGTSTP);
	pthread_sigmask(SIG_BLOCK, &suspension, &old);
	recorder->begin_ns = now_ns;
	recorder->end_ns = duration_s > 0 ? now_ns + (uint64_t)(duration_s * 1e9) : UINT64_MAX;
	recorder->flush_ns = now_ns + FLUSH_INTERVAL_NS;
	if (recorder->sampler)
		run_copies(recorder);
	if (!recorder->sampler) {
		run_stops(recorder);
		recorder->stats->elapsed_ns = clock_now_ns() - recorder->begin_ns;
	}
	recorder_end_ticks(recorder);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- Start-up --------------------------------------------------------------------------- */

/* Open without emptying: old contents are lost only when a recording begins. */
static int open_outputs(struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;

	for (size_t i = 0; i < options->output_count && i < DAEMON_OUTPUTS_MAX; i++) {
		const struct daemon_output *output = &options->outputs[i];

		if (output_open(output, options->rotate_s > 0, &recorder->outputs[i]) != 0)
			return recorder_end_with(recorder, DAEMON_END_OUTPUT, "cannot open %s: %s",
						 output->path, strerror(errno));
		recorder->output_count++;
	}
	return 0;
}

/* Start the process that receives the samples. */
static int start_writer(struct recorder *recorder)
{
	struct writer_options options = { .files = recorder->outputs,
					  .count = recorder->output_count,
					  .format = recorder->options->format_options,
					  .rotate_ns =
						  (uint64_t)(recorder->options->rotate_s * 1e9),
					  .keep = recorder->options->keep };
	struct timespec now;
	struct failure why;

	if (recorder->live_channel)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	options.format.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	options.format.start_ns = clock_now_ns();
	options.format.period_ns = 1000000000u / recorder->options->rate_hz;
	options.format.is_wall = recorder->options->wall;
	if (writer_start(&options, &recorder->writer, &why) != 0) {
		failure_describe(&why, recorder->text, recorder->text_len);
		recorder->end = DAEMON_END_SYSTEM;
		return -1;
	}
	recorder->writing = true;
	return 0;
}

/* Fetch for all processes together, because workers of one program have the same files. The
 * recording continues without files that arrive too late. */
static void fetch_debug(struct recorder *recorder)
{
	struct symbols_space *spaces[RECORDER_TARGETS_MAX];
	size_t count = 0, files;
	struct failure why = { 0 };
	char text[128];

	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->target)
			spaces[count++] = recorder->targets[i]->target->space;
	if (symbols_fetch_debug(spaces, count, FETCH_MAX_MS, recorder->options->stop, &files,
				&why) == 0)
		return;
	snprintf(text, sizeof(text), "--debuginfod: cannot %s: continuing without debug files",
		 why.step);
	recorder_notice(recorder, text);
}

static int open_sampler(struct recorder *recorder)
{
	const struct daemon_options *options = recorder->options;
	const struct attach_sampler_object object = luastate_bpf_object();
	bool is_auto = options->capture == DAEMON_CAPTURE_AUTO;
	char reason[320], text[400];
	struct refusal_facts facts;
	enum daemon_end end;
	struct failure why;

	recorder->stats->capture = DAEMON_CAPTURE_STOP;
	if (options->capture == DAEMON_CAPTURE_STOP ||
	    (is_auto && (options->wall || options->save_images)))
		return 0;
	if (attach_sampler_create(&object, options->rate_hz, &recorder->sampler, &why) == 0) {
		recorder->stats->capture = DAEMON_CAPTURE_KERNEL;
		return 0;
	}
	refusal_find_facts(&facts);
	end = refusal_describe(&why, &facts, options->rate_hz, reason, sizeof(reason));
	if (!is_auto)
		return recorder_end_with(recorder, end, "--capture=kernel: %s", reason);
	snprintf(text, sizeof(text), "threads are stopped for their samples: %s", reason);
	recorder_notice(recorder, text);
	return 0;
}

/* Later threads need their events opened when nobody else has that right. */
static int start_opener(struct recorder *recorder, struct failure *why)
{
	const struct daemon_options *options = recorder->options;
	pid_t pids[RECORDER_TARGETS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->process)
			pids[count++] = recorder->targets[i]->pid;
	return opener_start(attach_sampler_program(recorder->sampler), pids, count,
			    options->name_count > 0 || options->children, &recorder->opener, why);
}

/* The sampler starts after the writer's fork, so the writer inherits no copies. The opener forks
 * before there are any. */
static void begin_sampler(struct recorder *recorder)
{
	struct attach_sampler_opener opener = { .ask = opener_ask, .take = opener_take };
	char reason[256], text[320];
	struct failure why;

	if (!recorder->sampler)
		return;
	if (start_opener(recorder, &why) == 0) {
		opener.context = recorder->opener;
		if (attach_sampler_begin(recorder->sampler, &opener, &why) == 0)
			return;
	}
	failure_describe(&why, reason, sizeof(reason));
	if (recorder->options->capture != DAEMON_CAPTURE_AUTO) {
		recorder_end_with(recorder, DAEMON_END_SYSTEM, "--capture=kernel: %s", reason);
		return;
	}
	snprintf(text, sizeof(text), "threads are stopped for their samples: %s", reason);
	recorder_notice(recorder, text);
	destroy_sampler(recorder);
	recorder->stats->capture = DAEMON_CAPTURE_STOP;
}

/* Keep only the capabilities for reading other processes: tracing them, reading their files, and
 * following links in map_files (Linux 5.9). The opener keeps those for events of later threads.
 * This happens before the loop decodes the first byte of a process, and running a program does not
 * restore them. */
static void give_up_privileges(const struct recorder *recorder)
{
	/* Images are saved in a folder that may belong to any user. */
	static const int needed[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE,
				      CAP_DAC_OVERRIDE };
	const size_t count = sizeof(needed) / sizeof(needed[0]);

	sandbox_keep_capabilities(needed, recorder->options->save_images ? count : count - 1);
}

/* Let a waiting command continue. If it is dead, the loop sees that. */
static void say_go(struct recorder *recorder)
{
	ssize_t unused;

	if (recorder->options->go_fd < 0)
		return;
	unused = write(recorder->options->go_fd, "g", 1);
	(void)unused;
	close(recorder->options->go_fd);
}

/* All other processes exist now, and keep their priority. */
static void run_at_priority(struct recorder *recorder)
{
	bool may_stop = recorder->options->capture != DAEMON_CAPTURE_KERNEL;
	int before = may_stop ? priority_take() : 0;

	give_up_privileges(recorder);
	run(recorder);
	if (may_stop)
		priority_give_back(before);
}

/* ---- The recording ---------------------------------------------------------------------- */

static void record(struct recorder *recorder)
{
	if ((recorder->options->feeds ? live_channel_start(recorder) : open_outputs(recorder)) !=
		    0 ||
	    recorder_open_processes(recorder) != 0 || open_sampler(recorder) != 0)
		return;
	/* First find a VM, because a failure there must leave an existing file unchanged. */
	if (recorder_find_vms(recorder) != 0 || start_writer(recorder) != 0)
		return;
	if (recorder->options->debuginfod)
		fetch_debug(recorder);
	begin_sampler(recorder);
	if (recorder->end == DAEMON_END_STOPPED) {
		say_go(recorder);
		run_at_priority(recorder);
		recorder_judge_end(recorder);
	}
	recorder_finish_outputs(recorder);
}

/* SIGCHLD says that a thread has stopped. It is blocked and stays pending until we ask. */
static void block_child_signal(sigset_t *ret_old)
{
	sigset_t child;

	/* Our parent may ignore it, and then it would not be delivered. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, ret_old);
}

enum daemon_end daemon_record(const struct daemon_options *options, struct daemon_stats *ret_stats,
			      char *ret_text, size_t len)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	enum daemon_end end = DAEMON_END_SYSTEM;
	struct failure why;
	sigset_t old;

	memset(ret_stats, 0, sizeof(*ret_stats));
	snprintf(ret_text, len, "out of memory");
	if (!recorder)
		return end;
	recorder->options = options;
	recorder->sampling = &tick_sampling;
	recorder->stats = ret_stats;
	recorder->text = ret_text;
	recorder->text_len = len;
	recorder->image = attach_image_create();
	recorder->after = attach_image_create();
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	block_child_signal(&old);
	if (recorder->image && recorder->after &&
	    stop_copier_create(&recorder->stop_copier, &why) == 0) {
		*ret_text = '\0';
		record(recorder);
	}
	recorder_close_processes(recorder);
	destroy_sampler(recorder);
	recorder_close_outputs(recorder);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	ret_stats->cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	live_channel_finish(recorder);
	finder_destroy(recorder->finder);
	traces_destroy(recorder->traces);
	attach_image_destroy(recorder->image);
	attach_image_destroy(recorder->after);
	stop_copier_destroy(recorder->stop_copier);
	end = recorder->image && recorder->after ? recorder->end : DAEMON_END_SYSTEM;
	free(recorder);
	return end;
}
