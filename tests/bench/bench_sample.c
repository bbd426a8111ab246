/* SPDX-License-Identifier: MIT */
/* Single samples of one thread, as the recorder takes them, but for what it writes. */
#include "tests/bench/bench.h"

#include <string.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int bench_open_sampler(pid_t pid, struct bench_sampler *ret_sampler, struct failure *why)
{
	*ret_sampler = (struct bench_sampler){ 0 };
	if (bench_open_target(pid, &ret_sampler->target, why) != 0)
		return -1;
	if (target_find_vm(ret_sampler->target, why) != 0) {
		bench_close_target(ret_sampler->target);
		return -1;
	}
	ret_sampler->thread = attach_threads_get(ret_sampler->target->threads, 0);
	ret_sampler->image = attach_image_create();
	ret_sampler->after = attach_image_create();
	return 0;
}

void bench_close_sampler(struct bench_sampler *sampler)
{
	attach_image_destroy(sampler->image);
	attach_image_destroy(sampler->after);
	bench_close_target(sampler->target);
}

/** A planner that counts how often it is asked. */
struct counting {
	struct luastate_plan_context context;
	unsigned rounds;
};

static bool plan_and_count(void *context, struct attach_image *image, unsigned round)
{
	struct counting *counting = context;

	counting->rounds = round + 1;
	return luastate_plan(&counting->context, image, round);
}

static int decode(struct bench_sampler *sampler, const struct luastate_plan_context *context,
		  struct bench_sample *sample)
{
	struct daemon_target *target = sampler->target;
	struct attach_image *image = sampler->image, *after = sampler->after;
	const struct attach_reader *reader;
	struct luastate_memory memory = { 0 };
	struct luastate_native_walk native;
	struct format_sample decoded = { 0 };
	enum daemon_outcome outcome;
	struct failure why;

	attach_image_clear(after);
	luastate_plan_after(context, image, after);
	attach_process_fetch(target->process, after, &why);
	reader = attach_image_reader_behind(after, attach_process_reader(target->process), false);
	reader = attach_image_reader_behind(image, reader, false);
	memory = (struct luastate_memory){ attach_image_reader(image), reader };
	if (target_decode(target, image, &memory, &decoded, &outcome, &why) != 0)
		return -1;
	native = target_native_walk(
		target, outcome == DAEMON_TRUNCATED ? LUASTATE_REACH_CUT : LUASTATE_REACH_ALL,
		attach_sp(attach_image_registers(image)));
	luastate_learn(target->lua, reader, &native, &sampler->prediction);
	sample->frames = target->item_count + target->chain.count;
	sample->full = outcome == DAEMON_FULL;
	sample->compiled = decoded.compiled;
	sample->trace = decoded.trace;
	return 0;
}

int bench_take_sample(struct bench_sampler *sampler, struct bench_sample *ret_sample)
{
	struct counting counting = { .context = { .state = sampler->target->lua,
						  .prediction = &sampler->prediction,
						  .stack_limit = sampler->thread->stack_limit } };
	const struct attach_planner planner = { .plan = plan_and_count,
						.context = &counting,
						.rehearses = true };
	struct bench_sample sample = { 0 };
	struct attach_timing timing;
	uint64_t begin_cpu_ns = cpu_ns(), begin_ns;
	struct failure why;

	if (attach_capture(sampler->target->process, sampler->thread, &planner, sampler->image,
			   &timing, &why) != 0)
		return -1;
	begin_ns = bench_now_ns();
	if (decode(sampler, &counting.context, &sample) != 0)
		return -1;
	sample.decode_ns = bench_now_ns() - begin_ns;
	sample.cpu_ns = cpu_ns() - begin_cpu_ns;
	sample.stopped_ns = timing.stopped_ns;
	sample.held_ns = timing.stopped_ns - timing.stop_ns;
	sample.rounds = counting.rounds;
	*ret_sample = sample;
	return 0;
}
