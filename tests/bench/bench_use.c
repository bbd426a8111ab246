/* SPDX-License-Identifier: MIT */
/*
 * The processor time that ljrecord, as it is without an option, and ljreport take for a sample, to
 * that of perf record and perf script: in rounds of one recording each, as a machine with two
 * speeds has one in one minute and another in the next. Both start once for each recording, perf at
 * a greater cost: so recordings of half a minute stand beside those of ten seconds, of which it is
 * asked.
 */
#include "tests/bench/bench.h"
#include "tests/bench/peers.h"
#include "tests/bench/worker.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { LIFETIME_S = 3600 };

/** How long, and how often: as many rounds with one of both first as with the other. */
struct pace {
	unsigned seconds, rounds;
	bool is_asked;
};

static char folder[] = BENCH_FOLDER;

/** Of one recording. */
struct use {
	double sample_s, samples; /**< Processor time of one; how many. */
};

/* Record once. @return false where there is no profile, with a message. */
static bool take_run(const struct worker *worker, const struct peer *peer, unsigned rate_hz,
		     unsigned seconds, struct use *ret_use)
{
	pid_t child = peer_start(peer, worker->pid, rate_hz, folder);
	struct peer_run run;

	usleep(seconds * 1000 * 1000);
	if (!peer_end(peer, child, folder, &run) || run.samples <= 0) {
		bench_result(peer->name, "runs", false, "it has no profile of %s", worker->work);
		return false;
	}
	*ret_use = (struct use){ .sample_s = run.cpu_s / run.samples, .samples = run.samples };
	return true;
}

static bool take_round(const struct worker *worker, const struct peer *const peers[2],
		       unsigned rate_hz, unsigned seconds, unsigned first, struct use ret_uses[2])
{
	return take_run(worker, peers[first], rate_hz, seconds, &ret_uses[first]) &&
	       take_run(worker, peers[!first], rate_hz, seconds, &ret_uses[!first]);
}

/* The same program for as long: one of both that lost many had less to do. */
static bool are_alike(const struct use uses[2])
{
	return uses[0].samples < 1.5 * uses[1].samples && uses[1].samples < 1.5 * uses[0].samples;
}

static void compare(const struct worker *worker, const struct peer *peer, unsigned rate_hz,
		    const struct pace *pace)
{
	const struct peer *const peers[2] = { peer, &peer_perf };
	double least = INFINITY, most = 0, logs = 0, ours_s = 0, perf_s = 0, ratio;
	struct use uses[2];
	char what[160];

	snprintf(what, sizeof(what), "%s, %u Hz, %u s: processor time a sample, %s to perf",
		 worker->work, rate_hz, pace->seconds, peer->name);
	for (unsigned i = 0; i < pace->rounds; i++) {
		if (!take_round(worker, peers, rate_hz, pace->seconds, i % 2, uses))
			return;
		if (!are_alike(uses)) {
			bench_result(what, "measured", false, "of %.0f samples and of %.0f",
				     uses[0].samples, uses[1].samples);
			return;
		}
		ratio = uses[0].sample_s / uses[1].sample_s;
		least = fmin(least, ratio);
		most = fmax(most, ratio);
		logs += log(ratio) / pace->rounds;
		ours_s += uses[0].sample_s / pace->rounds;
		perf_s += uses[1].sample_s / pace->rounds;
	}
	ratio = exp(logs);
	bench_result(what, pace->is_asked ? "<= 0.5" : "beside it", !pace->is_asked || ratio <= 0.5,
		     "%.2f (%.0f us, %.0f us), geometric mean of %u rounds, %.2f to %.2f", ratio,
		     1e6 * ours_s, 1e6 * perf_s, pace->rounds, least, most);
}

static void compare_all(const struct worker *worker, bool full)
{
	static const struct pace paces[] = { { .seconds = 10, .rounds = 4, .is_asked = true },
					     { .seconds = 30, .rounds = 2 } },
				 brief = { .seconds = 2, .rounds = 2, .is_asked = true };
	const struct peer *const peers[2] = { peer_has_copies() ? &peer_ljrecord_kernel
								: &peer_ljrecord,
					      &peer_perf };
	const unsigned rates[] = { 99, 999 };
	struct use uses[2];

	/* At first both look into files that nobody has looked into yet. */
	if (!take_round(worker, peers, rates[1], brief.seconds, 0, uses))
		return;
	for (unsigned i = 0; i < 2; i++) {
		compare(worker, peers[0], rates[i], full ? &paces[0] : &brief);
		if (full)
			compare(worker, peers[0], rates[i], &paces[1]);
	}
}

void bench_use(bool full)
{
	static const char *const works[] = { "fib", "mixed" };
	struct worker worker;

	if (!peer_is_there(&peer_perf)) {
		bench_skip("processor time a sample, to perf", "<= 0.5", "perf is not installed");
		return;
	}
	bench_make_folder(folder);
	for (unsigned i = 0; i < 2; i++) {
		if (worker_start(works[i], folder, NULL, LIFETIME_S, &worker))
			compare_all(&worker, full);
		else
			bench_result("use", "measured", false, "%s does not start", works[i]);
		worker_end(&worker);
	}
	if (worker_start_nginx("nginx under wrk", folder, false, LIFETIME_S, &worker))
		compare_all(&worker, full);
	else if (!worker.is_skipped)
		bench_result("use", "measured", false, "nginx does not start");
	worker_end(&worker);
	rmdir(folder);
}
