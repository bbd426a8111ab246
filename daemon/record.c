/* SPDX-License-Identifier: MIT */
/* The recorder: opens target and output, runs the loop, tells how it ended. */
#include "daemon/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	FLUSH_INTERVAL_NS = 250 * 1000 * 1000,
	REFRESH_INTERVAL_NS = 250 * 1000 * 1000,
	EXEC_TRIES = 4,
	BUSY_TRIES = 20,
	BUSY_NAP_NS = 1000 * 1000,
	/* A queue of so many bytes is sent at once. */
	FLUSH_BYTES = 32 * 1024,
};

static int on_function(void *context, uint32_t id, const struct format_function *function,
		       struct failure *why)
{
	struct recorder *recorder = context;

	return message_put_function(&recorder->writer.queue, id, function, why);
}

/* ---- The loop --------------------------------------------------------------------------- */

static enum daemon_end end_of_target(struct recorder *recorder, enum attach_fate fate)
{
	bool early = recorder->stats->samples == 0;

	snprintf(recorder->text, recorder->text_len, "process %d %s %s",
		 (int)recorder->options->pid,
		 fate == ATTACH_FATE_EXEC ? "runs another program now" : "ended",
		 early ? "before the first sample" : "while it was recorded");
	return early ? DAEMON_END_EARLY : DAEMON_END_TARGET;
}

static int take_new_program(struct recorder *recorder, struct failure *why)
{
	attach_process_note_exec(recorder->process);
	luastate_reset(recorder->target->lua);
	recorder->target->generation = UINT64_MAX;
	return target_refresh(recorder->target, why);
}

/* The target has another program: with a command that was just started this is its beginning, else
 * its end. */
static int follow_exec(struct recorder *recorder, enum attach_fate fate, struct failure *why)
{
	if (fate == ATTACH_FATE_ENDED || !recorder->options->await_vm)
		return -1;
	return take_new_program(recorder, why);
}

/* Look at process, threads and maps anew. @return false where the recording ends. */
static bool refresh(struct recorder *recorder)
{
	enum attach_fate fate = attach_process_fate(recorder->process);
	struct failure why;

	if (fate == ATTACH_FATE_SAME && target_refresh(recorder->target, &why) == 0)
		return true;
	if (fate == ATTACH_FATE_SAME && why.kind != FAILURE_GONE)
		return true; /* out of memory or descriptors: go on with what is known */
	if (fate == ATTACH_FATE_SAME)
		fate = ATTACH_FATE_ENDED;
	if (follow_exec(recorder, fate, &why) == 0)
		return true;
	recorder->end = end_of_target(recorder, fate);
	return false;
}

static bool send_queued(struct recorder *recorder)
{
	struct failure why;

	if (message_flush(&recorder->writer.queue, &why) == 0)
		return true;
	failure_describe(&why, recorder->text, recorder->text_len);
	recorder->end = DAEMON_END_OUTPUT;
	return false;
}

/* What happens between ticks, when it is due. */
static bool housekeeping(struct recorder *recorder, uint64_t now_ns)
{
	if (now_ns >= recorder->refresh_ns) {
		recorder->refresh_ns = now_ns + REFRESH_INTERVAL_NS;
		if (!refresh(recorder))
			return false;
	}
	if (now_ns < recorder->flush_ns && message_queued(&recorder->writer.queue) < FLUSH_BYTES)
		return true;
	recorder->flush_ns = now_ns + FLUSH_INTERVAL_NS;
	recorder->stats->elapsed_ns = now_ns - recorder->begin_ns;
	if (recorder->options->progress)
		recorder->options->progress(recorder->options->context, recorder->stats);
	return send_queued(recorder);
}

static void run(struct recorder *recorder)
{
	struct daemon_clock clock;
	uint64_t now_ns = daemon_now_ns();
	double duration_s = recorder->options->duration_s;
	uint64_t end_ns = duration_s > 0 ? now_ns + (uint64_t)(duration_s * 1e9) : UINT64_MAX;

	recorder->begin_ns = recorder->refresh_ns = now_ns;
	recorder->flush_ns = now_ns + FLUSH_INTERVAL_NS;
	daemon_clock_init(&clock, recorder->options->rate_hz, now_ns, now_ns);
	while (!*recorder->options->stop && now_ns < end_ns) {
		int64_t late_ns = daemon_clock_wait(&clock, end_ns);

		now_ns = daemon_now_ns();
		if (late_ns < 0)
			continue; /* not yet: look whether it is time to stop */
		recorder->stats->ticks++;
		recorder->stats->late_ticks += (uint64_t)late_ns > clock.period_ns / 2;
		if (!recorder_tick(recorder) || !housekeeping(recorder, daemon_now_ns()))
			break;
		now_ns = daemon_now_ns();
		recorder->stats->missed_ticks += daemon_clock_advance(&clock, now_ns);
	}
	recorder->stats->elapsed_ns = daemon_now_ns() - recorder->begin_ns;
}

/* ---- Beginning -------------------------------------------------------------------------- */

static bool is_pipe(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* Open without emptying: what is there is lost only once a recording begins. */
static int open_output(struct recorder *recorder)
{
	const char *path = recorder->options->output;

	if (strcmp(path, "-") == 0) {
		recorder->output_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		recorder->created = false;
	} else {
		recorder->output_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		recorder->created = recorder->output_fd >= 0;
		/* A pipe opened for reading too would never tell that its reader has gone. */
		if (recorder->output_fd < 0 && errno == EEXIST)
			recorder->output_fd =
				open(path, (is_pipe(path) ? O_WRONLY : O_RDWR) | O_CLOEXEC);
		if (recorder->output_fd < 0 && (errno == EACCES || errno == EINVAL)) {
			int errnum = errno;

			recorder->output_fd = open(path, O_WRONLY | O_CLOEXEC);
			/* In a folder without write permission there was nothing to open. */
			errno = errno == ENOENT ? errnum : errno;
		}
	}
	if (recorder->output_fd >= 0)
		return 0;
	snprintf(recorder->text, recorder->text_len, "cannot open %s: %s", path, strerror(errno));
	recorder->end = DAEMON_END_OUTPUT;
	return -1;
}

/* Another recorder holds a thread for some tens of microseconds; a debugger stays. */
static int open_process(pid_t pid, struct attach_process **ret_process, struct failure *why)
{
	const struct timespec nap = { .tv_nsec = BUSY_NAP_NS };

	for (int tries = 0; attach_process_open(pid, ret_process, why) != 0; tries++) {
		if (why->kind != FAILURE_BUSY || tries == BUSY_TRIES)
			return -1;
		nanosleep(&nap, NULL);
	}
	return 0;
}

static int open_target(struct recorder *recorder)
{
	const struct target_listener listener = { .function = on_function, .context = recorder };
	pid_t pid = recorder->options->pid;
	struct failure why;

	if (open_process(pid, &recorder->process, &why) != 0 ||
	    target_create(recorder->process, &listener, &recorder->target, &why) != 0 ||
	    target_refresh(recorder->target, &why) != 0) {
		attach_explain(pid, &why, recorder->text, recorder->text_len);
		recorder->end = why.kind == FAILURE_DENIED || why.kind == FAILURE_BUSY
					? DAEMON_END_DENIED
				: why.kind == FAILURE_GONE	? DAEMON_END_EARLY
				: why.kind == FAILURE_NOT_FOUND ? DAEMON_END_NO_VM
								: DAEMON_END_SYSTEM;
		return -1;
	}
	return 0;
}

/* A process that was started a moment ago may exec while we look. */
static enum attach_fate look_for_vm(struct recorder *recorder)
{
	enum attach_fate fate = ATTACH_FATE_SAME;
	struct failure why;

	for (int tries = 0; tries < EXEC_TRIES; tries++) {
		if (recorder_find_vm(recorder, &why) == 0)
			return ATTACH_FATE_SAME;
		fate = attach_process_fate(recorder->process);
		if (fate != ATTACH_FATE_EXEC || recorder->end != DAEMON_END_STOPPED ||
		    take_new_program(recorder, &why) != 0)
			break;
	}
	return fate;
}

static int find_vm(struct recorder *recorder)
{
	enum attach_fate fate;

	if (recorder->options->await_vm)
		return 0;
	fate = look_for_vm(recorder);
	if (luastate_vm_count(recorder->target->lua) > 0)
		return 0;
	if (recorder->end != DAEMON_END_STOPPED)
		return -1; /* told already */
	if (fate != ATTACH_FATE_SAME) {
		recorder->end = end_of_target(recorder, fate);
		return -1;
	}
	snprintf(recorder->text, recorder->text_len,
		 "%s in process %d: give the pid of a process that runs Lua code",
		 luastate_has_interpreter(recorder->target->lua) ? "LuaJIT's code but no Lua state"
								 : "no LuaJIT",
		 (int)recorder->options->pid);
	recorder->end = DAEMON_END_NO_VM;
	return -1;
}

static int start_writer(struct recorder *recorder)
{
	struct stat status;
	struct failure why;

	/* What our standard output leads to is the caller's, and may be appended to. */
	if (strcmp(recorder->options->output, "-") != 0 &&
	    fstat(recorder->output_fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    ftruncate(recorder->output_fd, 0) != 0) {
		snprintf(recorder->text, recorder->text_len, "cannot empty %s: %s",
			 recorder->options->output, strerror(errno));
		recorder->end = DAEMON_END_OUTPUT;
		return -1;
	}
	if (writer_start(recorder->output_fd, recorder->options->format,
			 &recorder->options->format_options, &recorder->writer, &why) != 0) {
		failure_describe(&why, recorder->text, recorder->text_len);
		recorder->end = DAEMON_END_SYSTEM;
		return -1;
	}
	recorder->output_fd = -1;
	recorder->writing = true;
	return 0;
}

/* Tell a waiting command that it may go on. */
static void say_go(struct recorder *recorder)
{
	if (recorder->options->go_fd < 0)
		return;
	if (write(recorder->options->go_fd, "g", 1) != 1)
		snprintf(recorder->text, recorder->text_len, "cannot start the command");
	close(recorder->options->go_fd);
}

/* ---- End -------------------------------------------------------------------------------- */

static void finish_output(struct recorder *recorder)
{
	const char *path = recorder->options->output;
	struct message_status status;

	if (!recorder->writing)
		return;
	writer_finish(&recorder->writer, &status);
	recorder->stats->output_bytes = status.bytes;
	if (status.errnum) {
		recorder->end = DAEMON_END_OUTPUT;
		snprintf(recorder->text, recorder->text_len,
			 status.errnum == EPIPE && !status.bytes
				 ? "the writer of %s died%s: what it had written is readable"
				 : "cannot write %s: %s: what was written is readable",
			 path,
			 status.errnum == EPIPE && !status.bytes ? "" : strerror(status.errnum));
	}
}

static void remove_unused_output(struct recorder *recorder)
{
	bool unused = recorder->stats->samples == 0 && recorder->end != DAEMON_END_STOPPED &&
		      recorder->end != DAEMON_END_TARGET;

	if (recorder->output_fd >= 0)
		close(recorder->output_fd);
	if (recorder->created && unused)
		unlink(recorder->options->output);
}

static void judge_end(struct recorder *recorder)
{
	/* A command that ended without a Lua state. */
	if ((recorder->end == DAEMON_END_EARLY || recorder->end == DAEMON_END_STOPPED) &&
	    recorder->options->await_vm && recorder->stats->samples == 0 &&
	    !luastate_has_interpreter(recorder->target->lua)) {
		snprintf(recorder->text, recorder->text_len, "no LuaJIT was seen in the command");
		recorder->end = DAEMON_END_NO_VM;
	}
}

static void record(struct recorder *recorder)
{
	if (open_output(recorder) != 0 || open_target(recorder) != 0)
		return;
	/* The writer first: it is forked before anything large is in memory. The VM then, as an
	 * error there must leave an existing file as it was. */
	if (find_vm(recorder) != 0 || start_writer(recorder) != 0)
		return;
	say_go(recorder);
	run(recorder);
	judge_end(recorder);
	finish_output(recorder);
}

enum daemon_end daemon_record(const struct daemon_options *options, struct daemon_stats *ret_stats,
			      char *ret_text, size_t len)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	enum daemon_end end = DAEMON_END_SYSTEM;

	memset(ret_stats, 0, sizeof(*ret_stats));
	snprintf(ret_text, len, "out of memory");
	if (!recorder)
		return end;
	*ret_text = '\0';
	recorder->options = options;
	recorder->stats = ret_stats;
	recorder->text = ret_text;
	recorder->text_len = len;
	recorder->output_fd = -1;
	recorder->image = attach_image_create();
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	/* Whoever started us may ignore it; it is what tells that a thread stands. */
	signal(SIGCHLD, SIG_DFL);
	if (recorder->image)
		record(recorder);
	recorder_settle(recorder);
	remove_unused_output(recorder);
	ret_stats->cpu_ns = recorder_cpu_ns();
	if (recorder->target)
		target_destroy(recorder->target);
	else
		attach_process_close(recorder->process);
	attach_image_destroy(recorder->image);
	end = recorder->image ? recorder->end : DAEMON_END_SYSTEM;
	free(recorder);
	return end;
}
