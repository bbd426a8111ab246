/* SPDX-License-Identifier: MIT */
#include "tests/bench/bench.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/target.h"

enum { ROUNDS_MAX = 20000 };

/* The least that any profiler of this kind does to a thread. @return how long it took. */
static uint64_t bare_stop(pid_t tid)
{
	struct user_regs_struct regs;
	struct iovec iov = { .iov_base = &regs, .iov_len = sizeof(regs) };
	uint64_t begin_ns;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return 0;
	begin_ns = bench_now_ns();
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	while (waitpid(tid, &status, __WALL | WNOHANG) == 0)
		continue;
	ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov);
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	return bench_now_ns() - begin_ns;
}

static int ignore_function(void *context, uint32_t id, const struct format_function *function,
			   struct failure *why)
{
	(void)context;
	(void)id;
	(void)function;
	(void)why;
	return 0;
}

struct stops {
	uint64_t *bare, *ours;
	size_t count;
	uint64_t decode_ns, frames, full;
};

static void measure(struct daemon_target *target, struct attach_thread *thread,
		    struct attach_image *image, struct stops *stops, int rounds)
{
	struct luastate_prediction prediction = { 0 };
	const struct attach_reader *live = attach_process_reader(target->process);

	for (int i = 0; i < rounds; i++) {
		struct luastate_plan_context context = { .state = target->lua,
							 .prediction = &prediction,
							 .stack_limit = thread->stack_limit };
		const struct attach_planner planner = { .plan = luastate_plan,
							.context = &context };
		const struct attach_reader *reader;
		struct luastate_memory memory;
		struct format_sample sample = { 0 };
		struct attach_timing timing;
		enum daemon_outcome outcome;
		struct failure why;
		uint64_t begin_ns, bare_ns;

		usleep(1000);
		bare_ns = bare_stop(thread->tid);
		usleep(1000);
		if (!bare_ns ||
		    attach_capture(target->process, thread, &planner, image, &timing, &why) != 0)
			continue;
		begin_ns = bench_now_ns();
		luastate_plan_after(&context, image);
		attach_process_fetch(target->process, image, &why);
		reader = attach_image_reader_behind(image, live, false);
		memory = (struct luastate_memory){ attach_image_reader(image), reader };
		if (target_decode(target, image, &memory, &sample, &outcome, &why) != 0)
			continue;
		luastate_learn(target->lua, reader, target->cframes, target->cframe_count,
			       target->stack_top, outcome == DAEMON_TRUNCATED,
			       attach_sp(attach_image_registers(image)), &prediction);
		if (i >= rounds / 10) { /* the first tenth fills caches */
			stops->decode_ns += bench_now_ns() - begin_ns;
			stops->frames += target->item_count + target->chain.count;
			stops->full += outcome == DAEMON_FULL;
			stops->bare[stops->count] = bare_ns;
			stops->ours[stops->count++] = timing.stopped_ns;
		}
	}
}

static void tell(struct stops *stops)
{
	double bare50 = (double)bench_quantile(stops->bare, stops->count, 0.5);
	double bare99 = (double)bench_quantile(stops->bare, stops->count, 0.99);
	double ours50 = (double)bench_quantile(stops->ours, stops->count, 0.5);
	double ours99 = (double)bench_quantile(stops->ours, stops->count, 0.99);
	double per_frame = (double)stops->decode_ns / (double)stops->frames;

	bench_result("stopped time p50, ratio to a bare stop", "<= 1.4", ours50 <= 1.4 * bare50,
		     "%.2f (%.1f us to %.1f us, %zu stops)", ours50 / bare50, ours50 / 1e3,
		     bare50 / 1e3, stops->count);
	bench_result("stopped time p99, ratio to a bare stop", "<= 3", ours99 <= 3 * bare99,
		     "%.2f (%.1f us to %.1f us)", ours99 / bare99, ours99 / 1e3, bare99 / 1e3);
	bench_result("unwinding and Lua walk per frame, after the stop", "<= 2 us",
		     per_frame <= 2000, "%.2f us (%.1f frames a sample)", per_frame / 1e3,
		     (double)stops->frames / (double)stops->count);
}

void bench_stop(int rounds)
{
	const struct target_listener listener = { .function = ignore_function };
	struct stops stops = { .bare = calloc(ROUNDS_MAX, sizeof(uint64_t)),
			       .ours = calloc(ROUNDS_MAX, sizeof(uint64_t)) };
	struct attach_image *image = attach_image_create();
	pid_t pid = bench_start_target(600);
	struct attach_process *process;
	struct daemon_target *target;
	struct failure why;
	char text[256];

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (attach_process_open(pid, &process, &why) != 0 ||
	    target_create(process, &listener, &target, &why) != 0 ||
	    target_refresh(target, &why) != 0 || target_find_vm(target, &why) != 0) {
		failure_describe(&why, text, sizeof(text));
		bench_result("stops", "measured", false, "%s", text);
		bench_end_target(pid);
		return;
	}
	measure(target, attach_threads_get(target->threads, 0), image, &stops, rounds);
	if (stops.count > 0)
		tell(&stops);
	else
		bench_result("stops", "measured", false, "none");
	target_destroy(target);
	attach_image_destroy(image);
	bench_end_target(pid);
	free(stops.bare);
	free(stops.ours);
}
