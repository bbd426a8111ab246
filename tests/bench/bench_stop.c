/* SPDX-License-Identifier: MIT */
#include "tests/bench/bench.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ROUNDS_MAX = 20000,
	/* A thread that stands later waits for a processor, perhaps for ours. */
	SPIN_NS = 60 * 1000,
};

uint64_t bench_bare_stop(pid_t tid)
{
	struct user_regs_struct regs;
	struct iovec iov = { .iov_base = &regs, .iov_len = sizeof(regs) };
	uint64_t begin_ns;
	long signal = 0;
	int status = 0;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return 0;
	begin_ns = bench_now_ns();
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	while (waitpid(tid, &status, __WALL | WNOHANG) == 0)
		if (bench_now_ns() - begin_ns > SPIN_NS) {
			waitpid(tid, &status, __WALL);
			break;
		}
	ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &iov);
	/* Another stop than ours is one for a signal, which goes with it. */
	if (status >> 16 != PTRACE_EVENT_STOP)
		signal = WSTOPSIG(status);
	ptrace(PTRACE_DETACH, tid, NULL, (void *)signal);
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
		bare_ns = bench_bare_stop(sampler->thread->tid);
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

/* Where a processor halts as soon as it is idle, as a virtual machine's may, letting a thread go
 * takes an interrupt that wakes it, and a bare stop ends before it has halted. Kept from that, all
 * the difference is what we do. Source: Linux, Documentation/power/pm_qos_interface.rst.
 * @return A descriptor that holds it, or -1. */
static int keep_awake(void)
{
	const int32_t latency_us = 0;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, &latency_us, sizeof(latency_us)) == sizeof(latency_us))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void tell_ratio(struct stops *stops, double quantile, double most, const char *how)
{
	double bare = (double)bench_quantile(stops->bare, stops->count, quantile);
	double ours = (double)bench_quantile(stops->ours, stops->count, quantile);
	char what[96], asked[16];

	snprintf(what, sizeof(what), "stopped time p%.0f, ratio to a bare stop%s", 100 * quantile,
		 how);
	snprintf(asked, sizeof(asked), "<= %g", most);
	bench_result(what, asked, ours <= most * bare, "%.2f (%.1f us to %.1f us, %zu stops)",
		     ours / bare, ours / 1e3, bare / 1e3, stops->count);
}

static void tell(struct stops *stops)
{
	double per_frame = (double)stops->decode_ns / (double)stops->frames;

	tell_ratio(stops, 0.5, 1.4, "");
	tell_ratio(stops, 0.99, 3, "");
	bench_result("unwinding and Lua walk per frame, after the stop", "<= 2 us",
		     per_frame <= 2000, "%.2f us (%.1f frames a sample)", per_frame / 1e3,
		     (double)stops->frames / (double)stops->count);
}

static void measure_awake(struct bench_sampler *sampler, struct stops *stops, int rounds)
{
	int fd = keep_awake();

	if (fd < 0) {
		printf("left out: stops with processors kept from halting: /dev/cpu_dma_latency: "
		       "%s\n",
		       strerror(errno));
		return;
	}
	stops->count = 0;
	measure(sampler, stops, rounds);
	close(fd);
	if (stops->count > 0) {
		tell_ratio(stops, 0.5, 1.4, ", no processor halts");
		tell_ratio(stops, 0.99, 3, ", no processor halts");
	}
}

void bench_stop(int rounds)
{
	struct stops stops = { .bare = calloc(ROUNDS_MAX, sizeof(uint64_t)),
			       .ours = calloc(ROUNDS_MAX, sizeof(uint64_t)) };
	pid_t pid = bench_start_target(600);
	struct bench_sampler sampler;
	struct failure why;
	char text[256];
	struct bench_parted parted;

	if (!bench_part(pid, &parted))
		printf("stops: there is one processor only: the kernel shares it out\n");
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
		measure_awake(&sampler, &stops, rounds);
		bench_close_sampler(&sampler);
	}
	bench_join(&parted);
	bench_end_target(pid);
	free(stops.bare);
	free(stops.ours);
}
