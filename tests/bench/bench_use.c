/* SPDX-License-Identifier: MIT */
/*
 * The processor time that ljrecord, as it is without an option, and ljreport take for a sample, to
 * that of perf record and perf script: in rounds of one recording each, as a machine with two
 * speeds has one in one minute and another in the next.
 */
#include "tests/bench/bench.h"
#include "tests/bench/peers.h"
#include "tests/bench/worker.h"

#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 5, SHORT_ROUNDS = 2, LIFETIME_S = 3600 };

static char folder[] = BENCH_FOLDER;
static bool is_full;

/** What one profiler has used in all rounds. */
struct use {
	double cpu_s, samples;
};

static double of_a_sample(const struct use *use)
{
	return use->cpu_s / use->samples;
}

/* Record once, and add it. @return false where there is no profile; that is told. */
static bool add_run(const struct worker *worker, const struct peer *peer, unsigned rate_hz,
		    struct use *sum, struct use *ret_one)
{
	pid_t child = peer_start(peer, worker->pid, rate_hz, folder);
	struct peer_run run;

	usleep((is_full ? 10 : 2) * 1000 * 1000);
	if (!peer_end(peer, child, folder, &run) || run.samples <= 0) {
		bench_result(peer->name, "runs", false, "it has no profile of %s", worker->work);
		return false;
	}
	*ret_one = (struct use){ .cpu_s = run.cpu_s, .samples = run.samples };
	sum->cpu_s += run.cpu_s;
	sum->samples += run.samples;
	return true;
}

static void compare(const struct worker *worker, const struct peer *peer, unsigned rate_hz)
{
	const unsigned rounds = is_full ? ROUNDS : SHORT_ROUNDS;
	struct use ours = { 0 }, perf = { 0 }, our_run, perf_run;
	double least = 0, most = 0, ratio;
	char what[160];

	for (unsigned i = 0; i < rounds; i++) {
		/* In turn the first. */
		bool done = i % 2 == 0
				    ? add_run(worker, peer, rate_hz, &ours, &our_run) &&
					      add_run(worker, &peer_perf, rate_hz, &perf, &perf_run)
				    : add_run(worker, &peer_perf, rate_hz, &perf, &perf_run) &&
					      add_run(worker, peer, rate_hz, &ours, &our_run);

		if (!done)
			return;
		ratio = of_a_sample(&our_run) / of_a_sample(&perf_run);
		least = i == 0 || ratio < least ? ratio : least;
		most = ratio > most ? ratio : most;
	}
	ratio = of_a_sample(&ours) / of_a_sample(&perf);
	snprintf(what, sizeof(what), "%s, %u Hz: processor time a sample, %s to perf", worker->work,
		 rate_hz, peer->name);
	bench_result(what, "<= 0.5", ratio <= 0.5,
		     "%.2f (%.0f us, %.0f us), %u rounds: %.2f to %.2f", ratio,
		     1e6 * of_a_sample(&ours), 1e6 * of_a_sample(&perf), rounds, least, most);
}

static void compare_at_rates(const struct worker *worker)
{
	const struct peer *peer = peer_has_copies() ? &peer_ljrecord_kernel : &peer_ljrecord;

	compare(worker, peer, 99);
	compare(worker, peer, 999);
}

void bench_use(bool full)
{
	static const char *const works[] = { "fib", "mixed" };
	struct worker worker;

	is_full = full;
	if (!peer_is_there(&peer_perf)) {
		bench_skip("processor time a sample, to perf", "<= 0.5", "perf is not installed");
		return;
	}
	bench_make_folder(folder);
	for (unsigned i = 0; i < 2; i++) {
		if (worker_start(works[i], folder, NULL, LIFETIME_S, &worker))
			compare_at_rates(&worker);
		else
			bench_result("use", "measured", false, "%s does not start", works[i]);
		worker_end(&worker);
	}
	if (worker_start_nginx("nginx under wrk", folder, false, LIFETIME_S, &worker))
		compare_at_rates(&worker);
	else if (!worker.is_skipped)
		bench_result("use", "measured", false, "nginx does not start");
	worker_end(&worker);
	rmdir(folder);
}
