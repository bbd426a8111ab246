/* SPDX-License-Identifier: MIT */
/* One tick: each thread of interest is looked at, and stopped if it runs. */
#include "daemon/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	/* A thread that has never run Lua is looked at again after so long. */
	NON_LUA_INTERVAL_NS = 1000 * 1000 * 1000,
	/* Between searches in memory: at least so long, and so many times what the last one took.
	 */
	SEARCH_INTERVAL_NS = 10 * 1000 * 1000,
	SEARCH_REST = 20,
	/* Reading the maps holds a lock of the target's: not at every tick. */
	REFRESH_SOON_NS = 5 * 1000 * 1000,
	SETTLE_TRIES = 100,
	SETTLE_NAP_NS = 10 * 1000 * 1000,
};

/** What the sampler keeps with a thread; freed with it. */
struct sampled_thread {
	struct luastate_prediction prediction;
	bool runs_lua;
	uint64_t skip_until_ns;
};

uint64_t recorder_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void count(struct recorder *recorder, enum daemon_outcome outcome)
{
	recorder->stats->outcomes[outcome]++;
}

void recorder_refresh_soon(struct recorder *recorder, uint64_t now_ns)
{
	if (recorder->refresh_ns > now_ns + REFRESH_SOON_NS)
		recorder->refresh_ns = now_ns + REFRESH_SOON_NS;
}

/* ---- Modes ------------------------------------------------------------------------------ */

/* Leaf mode keeps the leaf of each stack; default mode keeps the state alone. */
static void reduce(const struct recorder *recorder, struct format_sample *sample)
{
	struct format_frame *frames = recorder->target->frames;
	const bool *native = recorder->target->is_native;
	uint32_t kept = 0;

	if (recorder->options->mode == DAEMON_MODE_CALLGRAPH)
		return;
	if (recorder->options->mode == DAEMON_MODE_LEAF && sample->frame_count > 0) {
		kept = 1;
		for (uint32_t i = 1; native[0] && i < sample->frame_count && kept == 1; i++)
			if (!native[i])
				frames[kept++] = frames[i];
	}
	sample->frame_count = kept;
}

/* ---- Images ----------------------------------------------------------------------------- */

/* Save what the stop and the decoding read, with what a replay needs besides. */
static void save_image(struct recorder *recorder)
{
	const struct luastate *lua = recorder->target->lua;
	struct daemon_image_origin origin = { .pid = (uint64_t)recorder->options->pid };
	struct failure why;
	char path[4096];
	const char *maps;
	size_t len;

	maps = symbols_space_text(recorder->target->space, &len);
	attach_image_set_note(recorder->image, "maps", maps, len, &why);
	if (luastate_vm_count(lua) > 0)
		origin.main_thread = luastate_vm_get(lua, 0)->main_thread;
	symbols_space_add_evidence(recorder->target->space, recorder->image, &why);
	attach_image_set_note(recorder->image, "origin", &origin, sizeof(origin), &why);
	snprintf(path, sizeof(path), "%s/%08" PRIu64 ".ljimage", recorder->options->save_images,
		 ++recorder->image_number);
	if (attach_image_save(recorder->image, path, &why) != 0) {
		snprintf(recorder->text, recorder->text_len, "cannot write the image %s: %s", path,
			 strerror(why.errnum));
		recorder->end = DAEMON_END_OUTPUT;
	}
}

/* ---- One thread ------------------------------------------------------------------------- */

static struct sampled_thread *data_of(struct attach_thread *thread)
{
	if (!thread->data)
		thread->data = calloc(1, sizeof(struct sampled_thread));
	return thread->data;
}

/* A thread that went to sleep between our look and the stop was woken by it; the kernel restarts
 * most calls, some report EINTR. */
static bool was_interrupted(const struct attach_registers *regs)
{
	int64_t rax = (int64_t)regs->r[ATTACH_REG_RAX];

	/* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK: linux/errno.h. */
	return regs->syscall >= 0 &&
	       (rax == -EINTR || rax == -512 || rax == -513 || rax == -514 || rax == -516);
}

static void note_failure(struct recorder *recorder, const struct failure *why)
{
	switch (why->kind) {
	case FAILURE_GONE:
		count(recorder, DAEMON_EXITED);
		break;
	case FAILURE_BUSY:
		count(recorder, DAEMON_BUSY);
		break;
	case FAILURE_DENIED:
		/* Permission was there a moment ago: the program changed its credentials. */
		if (recorder->stats->samples == 0) {
			attach_explain(recorder->options->pid, why, recorder->text,
				       recorder->text_len);
			recorder->end = DAEMON_END_DENIED;
		}
		count(recorder, DAEMON_FAILED);
		break;
	default:
		count(recorder, DAEMON_FAILED);
		break;
	}
}

static bool capture(struct recorder *recorder, struct attach_thread *thread,
		    struct sampled_thread *data)
{
	struct luastate_plan_context context = { .state = recorder->target->lua,
						 .prediction = &data->prediction,
						 .stack_limit = thread->stack_limit };
	const struct attach_planner planner = { .plan = luastate_plan, .context = &context };
	struct attach_timing timing;
	struct failure why;

	if (attach_capture(recorder->process, thread, &planner, recorder->image, &timing, &why) !=
	    0) {
		note_failure(recorder, &why);
		return false;
	}
	daemon_histogram_add(&recorder->stats->stopped, timing.stopped_ns);
	daemon_histogram_add(&recorder->stats->held, timing.stopped_ns - timing.stop_ns);
	recorder->stats->interrupted_calls +=
		was_interrupted(attach_image_registers(recorder->image));
	luastate_plan_after(&context, recorder->image);
	attach_process_fetch(recorder->process, recorder->image, &why);
	return true;
}

static bool write_sample(struct recorder *recorder, struct format_sample *sample)
{
	struct daemon_stats *stats = recorder->stats;
	struct failure why;

	stats->frames += sample->frame_count;
	reduce(recorder, sample);
	if (message_put_sample(&recorder->writer.queue, sample, &why) != 0) {
		failure_describe(&why, recorder->text, recorder->text_len);
		recorder->end = DAEMON_END_SYSTEM;
		return false;
	}
	if (stats->samples == 0)
		stats->first_sample_ns = daemon_now_ns() - recorder->begin_ns;
	stats->samples++;
	stats->states[sample->state]++;
	return true;
}

/*
 * A command's VM is found when a thread is seen in the interpreter. One that is in compiled code
 * nearly all the time may not be for long, and that code looks like any unknown code until the VM
 * is known: so look for the VM in memory.
 */
static bool search_vm(struct recorder *recorder, uint64_t now_ns)
{
	struct daemon_target *target = recorder->target;
	struct failure why;
	bool found;

	if (luastate_vm_count(target->lua) > 0 || !luastate_has_interpreter(target->lua) ||
	    now_ns < recorder->search_ns)
		return false;
	found = target_find_vm(target, &why) == 0;
	recorder->search_ns =
		now_ns + (daemon_now_ns() - now_ns) * SEARCH_REST + SEARCH_INTERVAL_NS;
	return found;
}

static bool decode(struct recorder *recorder, struct attach_thread *thread,
		   struct sampled_thread *data, uint64_t time_ns)
{
	struct daemon_target *target = recorder->target;
	struct format_sample sample = { .time_ns = time_ns,
					.pid = (int32_t)recorder->options->pid,
					.tid = (int32_t)thread->tid,
					.weight = 1 };
	bool keep = recorder->options->save_images != NULL;
	const struct attach_reader *reader = attach_image_reader_behind(
		recorder->image, attach_process_reader(recorder->process), keep);
	const struct luastate_memory memory = { .stopped = attach_image_reader(recorder->image),
						.any = reader };
	uint64_t sp = attach_sp(attach_image_registers(recorder->image));
	enum daemon_outcome outcome;
	struct failure why;

	luastate_set_thorough(target->lua, keep);
	if (target_decode(target, recorder->image, &memory, &sample, &outcome, &why) != 0) {
		count(recorder, DAEMON_FAILED);
		if (why.kind != FAILURE_NO_MEMORY)
			return true;
		failure_describe(&why, recorder->text, recorder->text_len);
		recorder->end = DAEMON_END_SYSTEM;
		return false;
	}
	luastate_learn(target->lua, reader, target->cframes, target->cframe_count,
		       target->stack_top, outcome == DAEMON_TRUNCATED, sp, &data->prediction);
	recorder->stats->decode_ns += daemon_now_ns() - time_ns;
	recorder->stats->native_ns += target->native_ns;
	recorder->stats->native_frames += target->item_count;
	count(recorder, outcome);
	if (outcome == DAEMON_UNWOUND) /* perhaps in a library that was loaded a moment ago */
		recorder_refresh_soon(recorder, time_ns);
	data->runs_lua |= target->cframe_count > 0;
	if (keep)
		save_image(recorder);
	if (!data->runs_lua) {
		bool found = outcome == DAEMON_UNWOUND && search_vm(recorder, time_ns);

		if (!found && outcome == DAEMON_NO_VM && luastate_vm_count(target->lua) > 0)
			data->skip_until_ns = time_ns + NON_LUA_INTERVAL_NS;
		return true;
	}
	return write_sample(recorder, &sample);
}

static bool sample_thread(struct recorder *recorder, struct attach_thread *thread)
{
	struct sampled_thread *data = data_of(thread);
	uint64_t now_ns = daemon_now_ns();

	if (!data)
		return true;
	if (thread->stop_pending && attach_thread_settle(thread) != 0)
		return true;
	/* While no VM is known any thread may be about to enter one. */
	if (!data->runs_lua && luastate_vm_count(recorder->target->lua) > 0 &&
	    now_ns < data->skip_until_ns)
		return true;
	switch (attach_thread_activity(thread, NULL, NULL)) {
	case ATTACH_BLOCKED:
		count(recorder, DAEMON_IDLE);
		return true;
	case ATTACH_EXITED:
		count(recorder, DAEMON_EXITED);
		recorder->refresh_ns = 0;
		return true;
	case ATTACH_RUNNING:
		break;
	}
	if (!capture(recorder, thread, data))
		return recorder->end == DAEMON_END_STOPPED;
	return decode(recorder, thread, data, daemon_now_ns()) &&
	       recorder->end == DAEMON_END_STOPPED;
}

bool recorder_tick(struct recorder *recorder)
{
	struct attach_threads *threads = recorder->target->threads;

	/* A command's program may just have been started, or be mapping its libraries. */
	if (luastate_vm_count(recorder->target->lua) == 0)
		recorder_refresh_soon(recorder, daemon_now_ns());
	for (size_t i = 0; i < attach_threads_count(threads); i++)
		if (!sample_thread(recorder, attach_threads_get(threads, i)))
			return false;
	return true;
}

/* ---- Search ----------------------------------------------------------------------------- */

static bool find_by_stop(struct recorder *recorder, struct attach_thread *thread)
{
	struct daemon_target *target = recorder->target;
	struct sampled_thread *data = data_of(thread);
	const struct attach_reader *reader;
	struct failure why;

	if (!data || attach_thread_activity(thread, NULL, NULL) != ATTACH_RUNNING ||
	    !capture(recorder, thread, data))
		return false;
	reader = attach_image_reader_behind(recorder->image,
					    attach_process_reader(recorder->process), false);
	return luastate_find_on_stack(target->lua, reader,
				      attach_sp(attach_image_registers(recorder->image)),
				      thread->stack_limit, &why) != NULL;
}

int recorder_find_vm(struct recorder *recorder, struct failure *why)
{
	struct attach_threads *threads = recorder->target->threads;

	if (!luastate_has_interpreter(recorder->target->lua))
		return failure_set(why, FAILURE_NOT_FOUND, 0, recorder->options->pid, 0,
				   "find LuaJIT");
	for (size_t i = 0; i < attach_threads_count(threads); i++)
		if (find_by_stop(recorder, attach_threads_get(threads, i)))
			return 0;
	return target_find_vm(recorder->target, why);
}

void recorder_settle(struct recorder *recorder)
{
	const struct timespec nap = { .tv_nsec = SETTLE_NAP_NS };
	struct attach_threads *threads = recorder->target ? recorder->target->threads : NULL;

	for (size_t i = 0; threads && i < attach_threads_count(threads); i++)
		for (int tries = 0; tries < SETTLE_TRIES; tries++) {
			if (attach_thread_settle(attach_threads_get(threads, i)) == 0)
				break;
			nanosleep(&nap, NULL);
		}
}
