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

struct stops {
	uint64_t *bare, *ours;
	size_t count;
	uint64_t decode_ns, frames, full;
};

static void measure(struct bench_sampler *sampler, struct stops *stops, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct bench_sample sample;
		uint64_t bare_ns;

		usleep(1000);
		bare_ns = bare_stop(sampler->thread->tid);
		usleep(1000);
		if (!bare_ns || bench_take_sample(sampler, &sample) != 0)
			continue;
		if (i >= rounds / 10) { /* the first tenth fills caches */
			stops->decode_ns += sample.decode_ns;
			stops->frames += sample.frames;
			stops->full += sample.full;
			stops->bare[stops->count] = bare_ns;
			stops->ours[stops->count++] = sample.stopped_ns;
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
	struct stops stops = { .bare = calloc(ROUNDS_MAX, sizeof(uint64_t)),
			       .ours = calloc(ROUNDS_MAX, sizeof(uint64_t)) };
	pid_t pid = bench_start_target(600);
	struct bench_sampler sampler;
	struct failure why;
	char text[256];

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (bench_open_sampler(pid, &sampler, &why) != 0) {
		failure_describe(&why, text, sizeof(text));
		bench_result("stops", "measured", false, "%s", text);
	} else {
		measure(&sampler, &stops, rounds);
		if (stops.count > 0)
			tell(&stops);
		else
			bench_result("stops", "measured", false, "none");
		bench_close_sampler(&sampler);
	}
	bench_end_target(pid);
	free(stops.bare);
	free(stops.ours);
}
