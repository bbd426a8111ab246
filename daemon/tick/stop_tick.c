/* SPDX-License-Identifier: MIT */
/* What happens at one tick: which threads are polled, and which are stopped because they run? */
#include "attach/clock.h"
#include "daemon/outcome/outcomes.h"
#include "daemon/outcome/settle.h"
#include "daemon/outcome/stop_reasons.h"
#include "daemon/targets/processes.h"
#include "daemon/tick/stop_copy.h"
#include "daemon/tick/tick.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Between polls of a thread that has never run Lua; doubles after NON_LUA_POLLS polls
	 * without a result. An event loop that calls Lua is often outside of Lua. */
	NON_LUA_INTERVAL_MIN_NS = 1000 * 1000,
	NON_LUA_INTERVAL_MAX_NS = 1000 * 1000 * 1000,
	NON_LUA_POLLS = 8,
	/* Between searches for a VM on one thread's stack; doubles if a search shows the same VM as
	 * before. */
	STACK_INTERVAL_MIN_NS = 10 * 1000 * 1000,
	STACK_INTERVAL_MAX_NS = 1000 * 1000 * 1000,
	/* Listing the threads may cost 1/LIST_REST of our time. */
	LIST_REST = 20,
	/* Most stops that may be pending at one time. Each pending thread stops when it gets a
	 * processor and stays stopped until we reach it, so there must be few. */
	PENDING_MAX = 8,
	/* Longest wait for a stop: no sleep, only the time that attach_capture() spins. */
	PATIENCE_NS = 1,
	/* Longest wait if too many stops are pending: half a period, at most this. */
	PATIENCE_MAX_NS = 10 * 1000 * 1000,
};

/* ---- Modes ------------------------------------------------------------------------------ */

/* Leaf mode keeps the leaf of each stack, and the VM work between them. Default mode keeps only the
 * state. */
static void reduce(const struct recorder *recorder, struct daemon_target *target,
		   struct format_sample *sample)
{
	struct format_frame *frames = target->frames;
	const bool *native = target->is_native;
	uint32_t kept = 0;

	if (recorder->options->mode == DAEMON_MODE_CALLGRAPH)
		return;
	if (recorder->options->mode == DAEMON_MODE_LEAF && sample->frame_count > 0) {
		bool done = !native[0];

		kept = 1;
		for (uint32_t i = 1; i < sample->frame_count && !done; i++) {
			done = !native[i];
			if (done || i == target->work)
				frames[kept++] = frames[i];
		}
	}
	sample->frame_count = kept;
}

/* Add the process's frame, the outermost of each chain. */
static int add_root(struct recorder *recorder, struct recorder_target *of,
		    struct format_sample *sample, struct failure *why)
{
	const struct daemon_process *listed = recorder_listed(recorder, of);
	struct format_function function = { .kind = FORMAT_KIND_PROCESS,
					    .address = (uint64_t)of->pid };
	uint32_t last = sample->frame_count;
	char name[96];

	if (!recorder->options->process_root || recorder->options->mode == DAEMON_MODE_DEFAULT)
		return 0;
	if (!of->has_root) {
		snprintf(name, sizeof(name), "%s [%d]", listed ? listed->name : "process",
			 (int)of->pid);
		function.name = name;
		if (recorder_announce(recorder, &function, &of->root, why) != 0)
			return -1;
		of->has_root = true;
	}
	of->target->frames[last] =
		(struct format_frame){ .function = of->root, .address = (uint64_t)of->pid };
	sample->frame_count = last + 1;
	return 0;
}

/* ---- Images ----------------------------------------------------------------------------- */

/* Save what the stop and the decoding read, and what else a replay needs. */
static void save_image(struct recorder *recorder, const struct recorder_target *of, uint32_t weight)
{
	const struct luastate *lua = of->target->lua;
	struct daemon_image_origin origin = { .pid = (uint64_t)of->pid };
	struct failure why;
	char path[4096];
	const char *maps;
	size_t len;

	maps = symbols_space_text(of->target->space, &len);
	attach_image_set_note(recorder->image, "maps", maps, len, &why);
	if (luastate_vm_count(lua) > 0)
		origin.main_thread = luastate_vm_get(lua, 0)->main_thread;
	symbols_space_add_evidence(of->target->space, recorder->image, &why);
	attach_image_set_note(recorder->image, "origin", &origin, sizeof(origin), &why);
	attach_image_set_note(recorder->image, "weight", &weight, sizeof(weight), &why);
	snprintf(path, sizeof(path), "%s/%08" PRIu64 ".ljimage", recorder->options->save_images,
		 ++recorder->image_number);
	if (attach_image_save(recorder->image, path, &why) != 0) {
		snprintf(recorder->text, recorder->text_len, "cannot write the image %s: %s", path,
			 strerror(why.errnum));
		recorder->end = DAEMON_END_OUTPUT;
	}
}

/* ---- One thread ------------------------------------------------------------------------- */

static void note_failure(struct recorder_target *of, const struct attach_thread *thread,
			 struct sampled_thread *data, const struct failure *why)
{
	struct recorder *recorder = of->recorder;
	const struct daemon_process *listed = recorder_listed(recorder, of);

	switch (why->kind) {
	case FAILURE_GONE:
		sampled_report(of, data, DAEMON_EXITED);
		break;
	case FAILURE_ASLEEP:
		sampled_defer(of, data, false);
		break;
	case FAILURE_UNSCHEDULED:
		sampled_note_unscheduled(of, data);
		break;
	case FAILURE_BUSY:
		sampled_report(of, data, DAEMON_BUSY);
		break;
	case FAILURE_TIMEOUT:
		if (!thread->stop_pending)
			sampled_report(of, data, DAEMON_FAILED);
		break; /* else reported when it stops */
	case FAILURE_DENIED:
		sampled_report(of, data, DAEMON_FAILED);
		/* It was permitted before: the program has changed its credentials. */
		if (listed && listed->samples == 0)
			recorder_deny(recorder, of, why);
		break;
	default:
		sampled_report(of, data, DAEMON_FAILED);
		break;
	}
}

static bool is_pending(const struct attach_thread *thread)
{
	return thread->stop_pending && thread->interrupt_ns;
}

/* A running thread stops within some tens of microseconds. Any other thread waits for a processor,
 * and must not delay the rest. */
static uint64_t patience_of(const struct recorder *recorder)
{
	uint64_t half_ns = 500000000u / recorder->options->rate_hz;

	if (!recorder->begin_ns)
		return 0; /* no ticks yet that could be missed */
	if (recorder->pending < PENDING_MAX)
		return PATIENCE_NS;
	return half_ns < PATIENCE_MAX_NS ? half_ns : PATIENCE_MAX_NS;
}

static bool capture(struct recorder_target *of, struct attach_thread *thread,
		    struct sampled_thread *data)
{
	struct recorder *recorder = of->recorder;
	bool was_pending = is_pending(thread);
	struct attach_planner planner;
	struct attach_timing timing;
	struct failure why;
	int ret;

	if (stop_copy_plan(recorder->stop_copier, of, thread, data, was_pending, &planner, &why) !=
	    0) {
		note_failure(of, thread, data, &why);
		return false;
	}
	planner.rehearses = true;
	thread->patience_ns = patience_of(recorder);
	if (!was_pending) {
		thread->tick_ns = recorder->options->wall ? 0 : recorder->tick_ns;
		thread->is_tick_late = recorder->is_tick_late;
	}
	thread->woke_ns = recorder->woke_ns;
	ret = attach_capture(of->process, thread, &planner, recorder->image, &timing, &why);
	if (is_pending(thread) && !was_pending)
		recorder->pending++;
	else if (!is_pending(thread) && was_pending && recorder->pending > 0)
		recorder->pending--;
	if (ret == 0 || why.kind == FAILURE_UNSCHEDULED) {
		stops_note(of, thread, data, 1, 0);
		daemon_histogram_add(&recorder->stats->stopped,
				     timing.stopped_ns - timing.waited_ns);
		daemon_histogram_add(&recorder->stats->held, timing.stopped_ns - timing.stop_ns);
	}
	if (ret != 0) {
		note_failure(of, thread, data, &why);
		return false;
	}
	recorder->stats->interrupted_calls += attach_was_interrupted(
		attach_process_reader(of->process), attach_image_registers(recorder->image));
	stop_copy_take(recorder->stop_copier, of, data, recorder->image, recorder->after);
	return true;
}

static bool write_sample(struct recorder_target *of, struct format_sample *sample)
{
	struct recorder *recorder = of->recorder;
	struct failure why;

	reduce(recorder, of->target, sample);
	if (add_root(recorder, of, sample, &why) == 0)
		return sampled_put(of, sample);
	failure_describe(&why, recorder->text, recorder->text_len);
	recorder->end = DAEMON_END_SYSTEM;
	return false;
}

/* With many known VMs, the next stop copies the state of only the predicted ones. */
static void predict_vm(struct daemon_target *target, const struct attach_reader *reader,
		       const struct luastate_vm *vm, uint64_t sp,
		       struct luastate_prediction *prediction)
{
	size_t count = target->vm_frame_count;
	struct luastate_native_walk native = target_native_walk(target, LUASTATE_REACH_SOME, sp);

	if (count >= LUASTATE_PREDICTED_THREADS)
		count = LUASTATE_PREDICTED_THREADS - 1;
	target->vm_frames[count] = (struct luastate_vm_frame){ .L = vm->main_thread };
	native.vm_frame_count = count + 1;
	luastate_learn(target->lua, reader, &native, prediction);
}

static void rest_from_stack(struct sampled_thread *data, uint64_t now_ns)
{
	data->stack_interval_ns = data->stack_interval_ns < STACK_INTERVAL_MIN_NS
					  ? STACK_INTERVAL_MIN_NS
					  : 2 * data->stack_interval_ns;
	if (data->stack_interval_ns > STACK_INTERVAL_MAX_NS)
		data->stack_interval_ns = STACK_INTERVAL_MAX_NS;
	data->stack_ns = now_ns + data->stack_interval_ns;
}

static void begin_rest(struct sampled_rest *rest, uint64_t now_ns)
{
	uint64_t interval_ns = (uint64_t)NON_LUA_INTERVAL_MIN_NS << rest->polls / NON_LUA_POLLS;

	if (interval_ns < NON_LUA_INTERVAL_MAX_NS)
		rest->polls++;
	else
		interval_ns = NON_LUA_INTERVAL_MAX_NS;
	rest->until_ns = now_ns + interval_ns;
}

/* Search the stack of a thread that was just stopped. @return Whether it shows another VM than the
 * last search. */
static bool find_on_stack(struct recorder_target *of, const struct attach_thread *thread,
			  struct sampled_thread *data, uint64_t now_ns)
{
	struct recorder *recorder = of->recorder;
	const struct attach_reader *reader;
	const struct luastate_vm *vm;
	uint64_t sp = attach_sp(attach_image_registers(recorder->image));

	if (now_ns < data->stack_ns)
		return false;
	reader = attach_image_reader_behind(recorder->image, attach_process_reader(of->process),
					    false);
	vm = target_find_gap_vm(of->target, reader, thread->stack_limit);
	if (vm)
		predict_vm(of->target, reader, vm, sp, &data->prediction);
	if (!vm || vm->G == data->stack_G) {
		rest_from_stack(data, now_ns);
		return false;
	}
	data->stack_G = vm->G;
	data->stack_interval_ns = 0;
	return true;
}

/* Find a VM that samples alone do not reveal. Usually a thread in the interpreter reveals its VM. A
 * thread that is nearly always in compiled code may not do so for a long time, and its code looks
 * like any unknown code until the VM is known. The stack then reveals the VM by the interpreter's
 * frame below the trace; if nothing else does, a search of memory does. */
static void find_hidden_vm(struct recorder_target *of, const struct attach_thread *thread,
			   struct sampled_thread *data, uint64_t now_ns)
{
	struct recorder *recorder = of->recorder;

	if (of->target->gap_sp && find_on_stack(of, thread, data, now_ns))
		return;
	recorder_search_vm(recorder, of, now_ns);
	if (of->target->gap_sp)
		recorder_search_more(recorder, of, now_ns);
}

/* Act on the outcome of a poll, apart from its sample. */
static void follow_up(struct recorder_target *of, const struct attach_thread *thread,
		      struct sampled_thread *data, enum daemon_outcome outcome, uint64_t time_ns)
{
	if (outcome == DAEMON_UNWOUND) {
		/* Perhaps in a library that was loaded recently. */
		recorder_refresh_soon(of, time_ns);
		find_hidden_vm(of, thread, data, time_ns);
	} else if (!data->runs_lua && outcome == DAEMON_NO_VM &&
		   luastate_vm_count(of->target->lua) > 0) {
		begin_rest(&data->run_rest, time_ns);
	}
}

/* Keep the sample of a waiting thread. Native frames may be missing, because its registers are
 * unknown. */
static bool keep_waiting_sample(struct recorder_target *of, const struct attach_thread *thread,
				struct sampled_thread *data, const struct attach_sleep *sleep,
				struct format_sample *sample, enum daemon_outcome outcome)
{
	struct daemon_target *target = of->target;
	size_t known = luastate_vm_count(target->lua);

	if (outcome == DAEMON_UNWOUND) {
		/* Without registers the walk may have ended anywhere below Lua. */
		if (!data->runs_lua && !target->gap_sp)
			target->gap_sp = sleep->sp;
		follow_up(of, thread, data, outcome, sample->time_ns);
	}
	if (!data->runs_lua) {
		sampled_report(of, data, DAEMON_IDLE);
		if (luastate_vm_count(target->lua) == known)
			begin_rest(&data->wait_rest, sample->time_ns);
		return true;
	}
	sample->is_asleep = true;
	sample->weight = sampled_report(of, data, DAEMON_ASLEEP);
	if (!write_sample(of, sample))
		return false;
	wait_keep(of, data, sleep, sample, outcome);
	return true;
}

/* Whether the predicted part of the native stack was copied completely. */
static bool is_stack_copied(struct attach_image *image,
			    const struct luastate_prediction *prediction)
{
	uint64_t sp = attach_sp(attach_image_registers(image));
	size_t len;

	if (prediction->native_end <= sp)
		return true;
	attach_image_peek(image, remote_addr_make(sp), (size_t)(prediction->native_end - sp), &len);
	return sp + len >= prediction->native_end;
}

/* If the memory does not exist, a larger copy does not help. */
static enum luastate_reach reach_of(const struct daemon_target *target, enum daemon_outcome outcome,
				    struct attach_image *image,
				    const struct luastate_prediction *prediction)
{
	if (target->is_stack_cut && is_stack_copied(image, prediction))
		return LUASTATE_REACH_CUT;
	return daemon_outcome_reaches_root(outcome) ? LUASTATE_REACH_ALL : LUASTATE_REACH_SOME;
}

/* The first stop of a program happens before its VM is known, and copies nothing of the VM. A
 * program that lives for some milliseconds may have no second stop. */
static bool learns_first_vm(struct recorder_target *of, const struct attach_thread *thread,
			    struct sampled_thread *data, enum daemon_outcome outcome)
{
	if (daemon_outcome_reaches_root(outcome) || !entry_has_luajit(of))
		return false;
	if (outcome == DAEMON_UNWOUND)
		find_hidden_vm(of, thread, data, clock_now_ns());
	return entry_has_vm(of);
}

/* Decode the image. If the chain leads outside of the known maps, read them and decode it again: a
 * program that began lately has mapped libraries since. */
static int decode_with_maps(struct recorder_target *of, const struct luastate_memory *memory,
			    bool may_learn, struct format_sample *sample,
			    enum daemon_outcome *ret_outcome, struct failure *why)
{
	struct attach_image *image = of->recorder->image;
	int ret = target_decode(of->target, image, memory, sample, ret_outcome, why);

	if (ret == 0 && may_learn && of->target->unmapped_pc &&
	    recorder_learn_maps(of, of->target->unmapped_pc))
		ret = target_decode(of->target, image, memory, sample, ret_outcome, why);
	return ret;
}

bool sampled_decode(struct recorder_target *of, struct attach_thread *thread,
		    struct sampled_thread *data, const struct attach_sleep *sleep, uint64_t time_ns)
{
	struct recorder *recorder = of->recorder;
	struct daemon_target *target = of->target;
	uint64_t now_ns = clock_now_ns();
	struct format_sample sample = { .time_ns = time_ns,
					.pid = (int32_t)of->pid,
					.tid = (int32_t)thread->tid,
					.thread = sampled_name(of, thread, data, now_ns) };
	bool keep = recorder->options->save_images != NULL && !sleep;
	bool is_copy = data->copies.plan != NULL, knew_vm = entry_has_vm(of);
	const struct attach_reader *process = attach_process_reader(of->process);
	const struct attach_reader *after =
		attach_image_reader_behind(recorder->after, process, false);
	const struct attach_reader *reader =
		attach_image_reader_behind(recorder->image, after, keep);
	const struct luastate_memory memory = { .stopped = attach_image_reader(recorder->image),
						.any = reader,
						.later = after,
						.live = process,
						.is_kept = keep };
	uint64_t sp = attach_sp(attach_image_registers(recorder->image));
	struct luastate_native_walk native;
	enum daemon_outcome outcome;
	struct failure why;

	if (!sleep &&
	    recorder_follow_maps(recorder, of, thread->tid,
				 attach_pc(attach_image_registers(recorder->image)), sp)) {
		data->prediction = (struct luastate_prediction){ 0 };
		stop_copy_forget(data);
	}
	attach_image_order(recorder->image);
	attach_image_order(recorder->after);
	luastate_set_thorough(target->lua, keep);
	target->sleep = sleep;
	target->lacks_registers = sleep != NULL;
	if (decode_with_maps(of, &memory, !sleep, &sample, &outcome, &why) != 0) {
		sampled_report(of, data, DAEMON_FAILED);
		if (why.kind != FAILURE_NO_MEMORY)
			return true;
		failure_describe(&why, recorder->text, recorder->text_len);
		recorder->end = DAEMON_END_SYSTEM;
		return false;
	}
	if (!is_copy)
		stop_copy_learn(recorder->stop_copier, of, data);
	native = target_native_walk(
		target, reach_of(target, outcome, recorder->image, &data->prediction), sp);
	luastate_learn(target->lua, reader, &native, &data->prediction);
	recorder->stats->decode_ns += clock_now_ns() - now_ns;
	recorder->stats->native_ns += target->native_ns;
	recorder->stats->native_frames += target->item_count;
	data->runs_lua |= target->vm_frame_count > 0;
	if (!sleep && !is_copy && !knew_vm && learns_first_vm(of, thread, data, outcome))
		return capture(of, thread, data)
			       ? sampled_decode(of, thread, data, NULL, clock_now_ns())
			       : recorder->end == DAEMON_END_STOPPED;
	if (sleep)
		return keep_waiting_sample(of, thread, data, sleep, &sample, outcome);
	sample.weight = sampled_report(of, data, outcome);
	if (!is_copy && data->runs_lua)
		stops_note(of, thread, data, 0, sample.weight);
	bpf_tick_note(&data->copies, outcome);
	if (keep)
		save_image(recorder, of, sample.weight);
	if (data->runs_lua && !write_sample(of, &sample))
		return false;
	follow_up(of, thread, data, outcome, clock_now_ns());
	return true;
}

static bool take_sample(struct recorder_target *of, struct attach_thread *thread,
			struct sampled_thread *data)
{
	struct recorder *recorder = of->recorder;

	if (capture(of, thread, data) &&
	    sampled_weigh(of, data, thread->tick_ns ? thread->turn.ran_ns : 0))
		return sampled_decode(of, thread, data, NULL, clock_now_ns()) &&
		       recorder->end == DAEMON_END_STOPPED;
	return recorder->end == DAEMON_END_STOPPED;
}

/* Read a waiting thread in place. */
static int capture_asleep(struct recorder_target *of, struct attach_thread *thread,
			  struct sampled_thread *data, struct attach_sleep *ret_sleep,
			  struct failure *why)
{
	struct recorder *recorder = of->recorder;
	struct attach_planner planner;

	if (stop_copy_plan(recorder->stop_copier, of, thread, data, false, &planner, why) != 0)
		return -1;
	if (attach_capture_asleep(of->process, thread, &planner, recorder->image, ret_sleep, why) !=
	    0)
		return -1;
	stop_copy_take(recorder->stop_copier, of, data, recorder->image, recorder->after);
	return 0;
}

static bool sample_waiting(struct recorder_target *of, struct attach_thread *thread,
			   struct sampled_thread *data)
{
	struct recorder *recorder = of->recorder;
	struct attach_sleep sleep;
	struct failure why;

	if (!recorder->options->wall ||
	    (!data->runs_lua && clock_now_ns() < data->wait_rest.until_ns)) {
		sampled_report(of, data, DAEMON_IDLE);
		return true;
	}
	if (wait_goes_on(of, thread, data))
		return recorder->end == DAEMON_END_STOPPED;
	if (capture_asleep(of, thread, data, &sleep, &why) == 0)
		return sampled_decode(of, thread, data, &sleep, clock_now_ns()) &&
		       recorder->end == DAEMON_END_STOPPED;
	if (why.kind == FAILURE_TIMEOUT) { /* it runs now */
		sampled_defer(of, data, true);
		return true;
	}
	note_failure(of, thread, data, &why);
	return recorder->end == DAEMON_END_STOPPED;
}

static bool sample_thread(struct recorder_target *of, struct attach_thread *thread)
{
	struct recorder *recorder = of->recorder;
	struct sampled_thread *data = sampled_of(thread);
	uint64_t now_ns = clock_now_ns();

	/* Threads that the kernel copies, now or after they are found, have their ticks there. */
	if (!data || (recorder->sampler && !data->copies.is_stopped))
		return true;
	data->pending += recorder->weight;
	recorder->stats->thread_ticks += recorder->weight;
	/* The stop of an earlier tick is still pending: its sample comes first. */
	if (is_pending(thread))
		return take_sample(of, thread, data);
	if (thread->stop_pending && attach_thread_settle(thread) != 0) {
		sampled_report(of, data, DAEMON_EXITED);
		return true;
	}
	/* While no VM is known, any thread may be about to enter one. */
	if (!data->runs_lua && luastate_vm_count(of->target->lua) > 0 &&
	    now_ns < data->run_rest.until_ns) {
		sampled_report(of, data, DAEMON_RESTED);
		return true;
	}
	switch (attach_thread_state(thread, NULL, NULL)) {
	case ATTACH_BLOCKED:
		return sample_waiting(of, thread, data);
	case ATTACH_EXITED:
		sampled_report(of, data, DAEMON_EXITED);
		of->thread_ended = true;
		if (thread->tid == of->pid)
			of->refresh_ns = 0; /* perhaps the whole process has ended */
		return true;
	case ATTACH_RUNNING:
		break;
	}
	return take_sample(of, thread, data);
}

/* A thread may live for less than the interval between two refreshes. */
bool recorder_list_threads(struct recorder_target *of)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns < of->threads_ns)
		return false;
	if (!of->thread_ended && !attach_threads_changed(of->target->threads))
		return true;
	of->thread_ended = false;
	/* A refresh forgets ended threads and their copies, so receive these copies first. */
	if (of->recorder->sampler && (!bpf_tick_take(of->recorder) || !of->target))
		return false;
	now_ns = clock_now_ns();
	target_refresh_threads(of->target);
	of->threads_ns = now_ns + (clock_now_ns() - now_ns) * LIST_REST;
	return true;
}

static bool tick_process(struct recorder *recorder, struct recorder_target *of)
{
	/* Without LuaJIT's code there is no reason to stop a thread. */
	if (!of->target || !luastate_has_interpreter(of->target->lua))
		return true;
	recorder_list_threads(of);
	for (size_t i = 0; of->target && i < attach_threads_count(of->target->threads); i++) {
		if (!sample_thread(of, attach_threads_get(of->target->threads, i)) ||
		    (recorder->pending && !recorder_take_pending(recorder)))
			return false;
	}
	return true;
}

bool recorder_tick(struct recorder *recorder)
{
	recorder->tick_ns = clock_now_ns();
	recorder->woke_ns = 0;
	for (size_t i = 0; i < recorder->target_count; i++)
		if (!tick_process(recorder, recorder->targets[i]))
			return false;
	return true;
}

/* ---- Pending stops ---------------------------------------------------------------------- */

/* @return How many stops of the process are still pending, or -1 if the recording ends. */
static int take_pending_of(struct recorder_target *of)
{
	int pending = 0;

	for (size_t i = 0; of->target && i < attach_threads_count(of->target->threads); i++) {
		struct attach_thread *thread = attach_threads_get(of->target->threads, i);

		if (!is_pending(thread))
			continue;
		if (attach_thread_is_stopped(thread) && thread->data &&
		    !take_sample(of, thread, thread->data))
			return -1;
		if (!of->target) /* given up, and its threads with it */
			return 0;
		pending += is_pending(thread);
	}
	return pending;
}

bool recorder_take_pending(struct recorder *recorder)
{
	size_t pending = 0;

	for (size_t i = 0; i < recorder->target_count; i++) {
		int got = take_pending_of(recorder->targets[i]);

		if (got < 0)
			return false;
		pending += (size_t)got;
	}
	recorder->pending = pending;
	return true;
}

static void tell_rest(struct recorder_target *of)
{
	for (size_t i = 0; of->target && i < attach_threads_count(of->target->threads); i++) {
		struct attach_thread *thread = attach_threads_get(of->target->threads, i);

		if (!thread->data)
			continue;
		bpf_tick_end_thread(of, thread->data);
		sampled_end(of, thread->data, DAEMON_FAILED);
	}
}

void recorder_end_ticks(struct recorder *recorder)
{
	recorder_settle_all(recorder);
	for (size_t i = 0; i < recorder->target_count; i++)
		tell_rest(recorder->targets[i]);
}

/* ---- Search ----------------------------------------------------------------------------- */

static bool find_by_stop(struct recorder_target *of, struct attach_thread *thread)
{
	struct recorder *recorder = of->recorder;
	struct daemon_target *target = of->target;
	struct sampled_thread *data = sampled_of(thread);
	const struct attach_reader *reader;
	struct failure why;

	if (!data ||
	    (!thread->stop_pending && attach_thread_state(thread, NULL, NULL) != ATTACH_RUNNING))
		return false;
	stops_begin(data, DAEMON_REASON_SEARCH);
	if (!capture(of, thread, data) || !of->target)
		return false;
	reader = attach_image_reader_behind(recorder->image, attach_process_reader(of->process),
					    false);
	return luastate_find_on_stack(target->lua, reader,
				      attach_sp(attach_image_registers(recorder->image)),
				      thread->stack_limit, &why) != NULL;
}

int recorder_find_vm(struct recorder *recorder, struct recorder_target *of, struct failure *why)
{
	size_t count = of->target && stops_are_allowed(recorder)
			       ? attach_threads_count(of->target->threads)
			       : 0;

	for (size_t i = 0; of->target && i < count; i++)
		if (find_by_stop(of, attach_threads_get(of->target->threads, i)))
			return 0;
	if (!of->target)
		return failure_set(why, FAILURE_DENIED, 0, of->pid, 0, "find LuaJIT");
	return target_find_vm(of->target, why);
}
