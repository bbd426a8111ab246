/* SPDX-License-Identifier: MIT */
/*
 * Walkers over VMs whose structures are changed at random, round by round: no fault, no walk that
 * does not end, no chain that is too long, and no chain that is said to be whole and contradicts
 * itself. What is counted are reads of the VM's memory, each of which follows a link, an index or
 * an address.
 *
 * Usage: walkers_test [--full] [--seed N] [--rounds N] [--round N]
 *   --full      as many rounds as 100 million reads take
 *   --seed N    others than those of seed 1
 *   --rounds N  so many; not together with --full
 *   --round N   only this one, in this process
 * A round follows from the seed and its number, save where the clock ends a search for names. One
 * that ends its child process is reported.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "walkers.h"

#define FULL_READS UINT64_C(100000000)

enum {
	/* Rounds on one VM. With these numbers each situation has nearly two under each layout. */
	BATCH = 8,
	USUAL_ROUNDS = 20000,
	CHANGES_MAX = 8,
	/* A round takes less than a millisecond; under sanitizers, on a machine with much to do,
	 * some. */
	STUCK_S = 60,
	POLL_MS = 50,
};

/** What the child tells. */
struct progress {
	uint64_t round; /* the one that runs */
	struct walkers_count count;
};

/** What to run. */
struct order {
	uint64_t seed, rounds, reads; /* until one of the last two is reached */
	uint64_t only;
	bool is_single, is_full;
};

/* ---- Rounds ----------------------------------------------------------------------------- */

/* Reads of those that follow what they read; not of those that try many layouts and addresses. */
static uint64_t sum(const uint64_t *reads)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < WALKER_EXPLAIN; i++)
		all += reads[i];
	return all;
}

/* All situations in turn, under layouts in an order that visits all. */
static void open_stage(struct stage *stage, const struct order *order, uint64_t round)
{
	uint64_t batch = round / BATCH + order->seed;

	stage_init(stage, (unsigned)(batch / STAGE_COUNT % stage_layout_count()),
		   (unsigned)(batch % STAGE_COUNT));
}

static void run_round(struct stage *stage, const struct order *order, uint64_t round,
		      struct walkers_count *count)
{
	struct choices choices = choices_from_seed(order->seed << 40 ^ round);
	unsigned changes = 1 + (unsigned)choose(&choices, CHANGES_MAX);

	walkers_run(stage, &choices, ~0u, changes, count);
}

static void run_rounds(const struct order *order, struct progress *progress)
{
	struct stage stage;

	for (uint64_t i = 0; i < order->rounds && sum(progress->count.reads) < order->reads; i++) {
		if (i % BATCH == 0) {
			if (i)
				stage_deinit(&stage);
			open_stage(&stage, order, i);
		}
		progress->round = i;
		run_round(&stage, order, i, &progress->count);
	}
	stage_deinit(&stage);
	progress->round++;
}

static void run_one(const struct order *order)
{
	struct walkers_count count = { 0 };
	struct stage stage;

	open_stage(&stage, order, order->only);
	run_round(&stage, order, order->only, &count);
	stage_deinit(&stage);
	for (unsigned i = 0; i < WALKERS; i++)
		printf("%s: %" PRIu64 " reads\n", walker_names[i], count.reads[i]);
}

/* ---- The child -------------------------------------------------------------------------- */

/* @return Its status, or -1 where it had to be ended. */
static int wait_for(pid_t child, const volatile struct progress *progress)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	uint64_t round = 0;
	unsigned polls = 0;
	int status;

	while (waitpid(child, &status, WNOHANG) == 0) {
		polls = progress->round == round ? polls + 1 : 0;
		round = progress->round;
		if (polls > STUCK_S * 1000 / POLL_MS) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return status;
}

static void tell(const struct order *order, const struct progress *progress, bool ok,
		 double seconds)
{
	const struct walkers_count *count = &progress->count;

	for (unsigned i = 0; i < WALKERS; i++)
		printf("%-12s %12" PRIu64 " reads, at most %" PRIu64 "\n", walker_names[i],
		       count->reads[i], count->most_reads[i]);
	printf("%" PRIu64 " chains, %" PRIu64 " of them full, %" PRIu64 " frames; %.1f s\n",
	       count->chains, count->full, count->frames, seconds);
	if (order->is_full)
		printf("RESULT\twalks over randomly changed memory: reads without fault, hang or "
		       "false frame\t>= 100000000, 0 failures\t%" PRIu64
		       " in %.0f s, %d failures (%" PRIu64 " rounds, %u layouts, %d situations, "
		       "longest chain %" PRIu64 ")\t%s\n",
		       sum(count->reads), seconds, !ok, progress->round, stage_layout_count(),
		       STAGE_COUNT, count->longest, ok ? "ok" : "FAILED");
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int run(const struct order *order)
{
	struct progress *progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double begin = now_s();
	pid_t child;
	int status;

	MUST(progress != MAP_FAILED);
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		run_rounds(order, progress);
		exit(0);
	}
	status = wait_for(child, progress);
	if (status != 0)
		fprintf(stderr,
			"%s in round %" PRIu64 ": walkers_test --seed %" PRIu64 " --round %" PRIu64
			"\n",
			status == -1	      ? "no end"
			: WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
					      : "failure",
			progress->round, order->seed, progress->round);
	tell(order, progress, status == 0, now_s() - begin);
	return status != 0;
}

/* ---- Arguments -------------------------------------------------------------------------- */

static uint64_t number_of(const char *text)
{
	char *end;
	uint64_t number = text ? strtoull(text, &end, 10) : 0;

	if (!text || !*text || *end) {
		fprintf(stderr,
			"usage: walkers_test [--full] [--seed N] [--rounds N] [--round N]\n");
		exit(2);
	}
	return number;
}

int main(int argc, char **argv)
{
	struct order order = { .seed = 1, .rounds = USUAL_ROUNDS, .reads = UINT64_MAX };

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--full") == 0) {
			order.is_full = true;
			order.rounds = UINT64_MAX;
			order.reads = FULL_READS;
		} else if (strcmp(argv[i], "--seed") == 0) {
			order.seed = number_of(argv[++i]);
		} else if (strcmp(argv[i], "--rounds") == 0) {
			order.rounds = number_of(argv[++i]);
		} else if (strcmp(argv[i], "--round") == 0) {
			order.is_single = true;
			order.only = number_of(argv[++i]);
		} else {
			number_of(NULL);
		}
	}
	if (order.is_single) {
		run_one(&order);
		return 0;
	}
	return run(&order);
}
