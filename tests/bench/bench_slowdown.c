/* SPDX-License-Identifier: MIT */
/*
 * How much slower programs become under a profiler, and what the profiler uses itself: ours, those
 * that people would use instead, and LuaJIT's own, in one run. A program counts its units of work,
 * in a window with the profiler and one of the same length without it. Which of them is first is
 * random, in blocks of two pairs, one of each order: so whatever the machine does between windows
 * makes a pair differ one way as often as the other. One window between two others would not do:
 * the three of a machine with two speeds have a slow one on one side more often than on the other,
 * and the mean of two is more than what they have in common.
 *
 * Prints a row of docs/measurements/profilers.md for each program, rate and profiler, as a line
 * PEER.
 */
#include "tests/bench/bench.h"
#include "tests/bench/pairs.h"
#include "tests/bench/peers.h"
#include "tests/bench/worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* After a profiler has ended: the kernel may still have to take down what it used. */
	END_US = 100 * 1000,
	LIFETIME_S = 3 * 3600,
	LOOKS = 8, /* of a profiler that looks once */
};

/** How pairs of windows are made. */
struct pace {
	unsigned window_ms;
	/** From a profiler's start until it certainly samples, and up to so much more at random. */
	unsigned settle_ms, spread_ms;
	/** As many as it takes until the interval's half is so small, but not more or fewer: that
	 *  goes by the width alone, which is smaller by a percent where the mean is one. Source:
	 *  Y. S. Chow, H. Robbins, On the asymptotic theory of fixed-width sequential confidence
	 *  intervals for the mean, Annals of Mathematical Statistics 36 (1965). */
	unsigned least, most;
	double half_percent;
};

/** One profiler at one rate, and what is asked of it. */
struct row {
	const struct peer *peer;
	unsigned rate_hz;
	struct pace pace;
	double most_percent; /**< Upper end of the slowdown's interval; 0: nothing is asked. */
};

static char folder[] = BENCH_FOLDER;
static bool is_full;
/* The same in each run: what the machine does is not. */
static unsigned random_state = 12345;

static unsigned random_below(unsigned n)
{
	return n ? (unsigned)rand_r(&random_state) % n : 0;
}

/* For a profiler that takes long to start. */
static struct pace slow_pace(void)
{
	const unsigned pairs = is_full ? 16 : 4;

	return (struct pace){ .window_ms = 500, .settle_ms = 400, .least = pairs, .most = pairs };
}

/* A machine changes from one moment to the next: pairs of short windows that lie close together
 * differ less than those of half a second or more, and there are more of them in a minute. What
 * ljrecord does in its first quarter of a second alone is over then. What it does four times a
 * second for as long as it records, a look at the process and a write, would be in all windows or
 * in none if they were all as far from its start: they begin at any time of a quarter of a second.
 * At 99 Hz the writer, another process, packs its first second's samples after them. */
static struct pace quick_pace(unsigned most, double half_percent)
{
	if (!is_full)
		return slow_pace();
	return (struct pace){ .window_ms = 60,
			      .settle_ms = 320,
			      .spread_ms = 250,
			      .least = 40,
			      .most = most,
			      .half_percent = half_percent };
}

/* Where a program starts for each. */
static unsigned start_window_ms(void)
{
	return is_full ? 2000 : 500;
}

/* ---- Slowdown --------------------------------------------------------------------------- */

/* Add what the program does within a window. */
static void measure(const struct worker *worker, unsigned ms, struct pairs_work *work)
{
	uint64_t begin_ns = bench_now_ns(), begin = *worker->count;

	usleep(ms * 1000);
	work->units += *worker->count - begin;
	work->ns += bench_now_ns() - begin_ns;
}

/* Choose whether the next pair's window without a profiler is its first one. */
static bool draw_order(const struct pairs *pairs)
{
	static bool before;

	before = pairs->count % 2 == 0 ? random_below(2) == 0 : !before;
	return before;
}

/* A window with a profiler. @return false where it ended by itself. */
static bool measure_under(const struct row *row, const struct worker *worker,
			  struct pairs_work *work)
{
	const struct pace *pace = &row->pace;
	pid_t child = peer_start(row->peer, worker->pid, row->rate_hz, folder);

	usleep((pace->settle_ms + random_below(pace->spread_ms)) * 1000);
	measure(worker, pace->window_ms, work);
	if (!peer_end(row->peer, child, folder, NULL))
		return false;
	usleep(END_US);
	return true;
}

static bool measure_pair(const struct row *row, const struct worker *worker, struct pairs *pairs)
{
	const bool before = draw_order(pairs);
	struct pairs_work with = { 0 }, without = { 0 };

	if (before)
		measure(worker, row->pace.window_ms, &without);
	if (!measure_under(row, worker, &with))
		return false;
	if (!before)
		measure(worker, row->pace.window_ms, &without);
	pairs_add(pairs, with, without);
	return true;
}

/* Whether the interval is narrow enough. */
static bool is_told(const struct pairs *pairs, double half_percent)
{
	const struct pairs_estimate found = pairs_estimate(pairs);

	return found.upper - found.lower <= 2 * half_percent;
}

/* @return false where the profiler ended by itself. */
static bool measure_pairs(const struct row *row, const struct worker *worker, struct pairs *pairs)
{
	const struct pace *pace = &row->pace;

	while (pairs->count < pace->least ||
	       (pairs->count < pace->most && !is_told(pairs, pace->half_percent)))
		if (!measure_pair(row, worker, pairs))
			return false;
	return true;
}

/* LuaJIT's own profiler is in the program from its start: another program for each window with it,
 * as one program's traces may be better than another's; the one without stands meanwhile. */
static bool measure_own_pairs(const struct worker *without, const char *option, unsigned count,
			      struct pairs *pairs)
{
	for (unsigned i = 0; i < count; i++) {
		const bool before = draw_order(pairs);
		struct pairs_work changed = { 0 }, unchanged = { 0 };
		struct worker with;

		if (before)
			measure(without, start_window_ms(), &unchanged);
		kill(without->pid, SIGSTOP);
		if (!worker_start(without->work, folder, option, LIFETIME_S, &with)) {
			worker_end(&with);
			kill(without->pid, SIGCONT);
			return false;
		}
		measure(&with, start_window_ms(), &changed);
		worker_end(&with);
		kill(without->pid, SIGCONT);
		usleep(END_US);
		if (!before)
			measure(without, start_window_ms(), &unchanged);
		pairs_add(pairs, changed, unchanged);
	}
	return true;
}

/* ---- Use -------------------------------------------------------------------------------- */

static bool measure_use(const struct row *row, const struct worker *worker,
			struct peer_run *ret_run)
{
	pid_t child = peer_start(row->peer, worker->pid, row->rate_hz, folder);

	usleep((is_full ? 10 : 2) * 1000 * 1000);
	return peer_end(row->peer, child, folder, ret_run);
}

/* Single looks, one after the other: what the program loses by one, and what it costs. */
static bool measure_looks(const struct row *row, const struct worker *worker,
			  struct peer_run *ret_run, double *ret_lost_ms)
{
	struct peer_run sum = { 0 }, run;
	struct pairs_work before = { 0 };
	uint64_t begin, begin_ns;
	double done, passed_s;

	measure(worker, slow_pace().window_ms, &before);
	begin = *worker->count;
	begin_ns = bench_now_ns();
	for (unsigned i = 0; i < LOOKS; i++) {
		pid_t child = peer_start(row->peer, worker->pid, 0, folder);

		if (!peer_end(row->peer, child, folder, &run))
			return false;
		sum.cpu_s += run.cpu_s;
		sum.samples += run.samples;
		sum.lua_frames += run.lua_frames;
		sum.whole += run.whole;
		sum.first_ms += run.first_ms / LOOKS;
		sum.rss_mib = run.rss_mib > sum.rss_mib ? run.rss_mib : sum.rss_mib;
	}
	passed_s = (double)(bench_now_ns() - begin_ns) / 1e9;
	done = (double)(*worker->count - begin);
	*ret_lost_ms =
		1e3 * (passed_s - done * (double)before.ns / 1e9 / (double)before.units) / LOOKS;
	*ret_run = sum;
	return true;
}

/* ---- Rows ------------------------------------------------------------------------------- */

/* A number with what goes around it, or a dash. */
static const char *cell(char *text, size_t size, double value, const char *format)
{
	if (value > 0)
		snprintf(text, size, format, value); /* NOLINT: each is a literal below */
	else
		snprintf(text, size, "-");
	return text;
}

static void put_row(const struct worker *worker, const char *rate, const char *name,
		    const char *slower, const struct peer_run *run, const struct peer_run *ours)
{
	double n = run->samples > 0 ? run->samples : 1,
	       our_n = ours && ours->samples ? ours->samples : 1;
	char cpu[32], times[32], bytes[32], rss[32], first[32], whole[32], stopped[64] = "-";

	cell(bytes, sizeof(bytes), run->bytes / n, "%.0f");
	if (run->packed_bytes > 0)
		snprintf(bytes, sizeof(bytes), "%.0f, %.1f in .gz", run->bytes / n,
			 run->packed_bytes / n);
	if (run->stopped_us[0] > 0)
		snprintf(stopped, sizeof(stopped), "%.0f / %.0f / %.0f us", run->stopped_us[0],
			 run->stopped_us[1], run->stopped_us[2]);
	cell(times, sizeof(times),
	     ours && ours->cpu_s > 0 ? run->cpu_s / n / (ours->cpu_s / our_n) : 0, "%.1f");
	printf("PEER\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f\n", worker->work, rate, name,
	       slower, cell(cpu, sizeof(cpu), 1e6 * run->cpu_s / n, "%.0f us"), times, bytes,
	       cell(rss, sizeof(rss), run->rss_mib, "%.0f MB"), stopped,
	       cell(first, sizeof(first), run->first_ms, "%.0f ms"),
	       cell(whole, sizeof(whole), 100 * run->whole / n, "%.0f %%"), run->lua_frames / n);
	fflush(stdout);
}

static void tell_slowdown(const struct worker *worker, const struct row *row, const char *name,
			  const struct pairs *pairs, char *ret_text, size_t size)
{
	const struct pairs_estimate found = pairs_estimate(pairs);
	char what[128], asked[64] = "beside it";

	snprintf(ret_text, size, "%.2f %% (%.2f to %.2f)", found.mean, found.lower, found.upper);
	snprintf(what, sizeof(what), "%s: slowdown under %s at %u Hz", worker->work, name,
		 row->rate_hz);
	if (row->most_percent > 0)
		snprintf(asked, sizeof(asked), "<= %.0f %%, upper end of 95 %%", row->most_percent);
	bench_result(what, asked,
		     row->most_percent <= 0 ||
			     (found.upper <= row->most_percent && found.plain <= row->most_percent),
		     "%s, %u pairs; mean of all %.2f", ret_text, pairs->count, found.plain);
}

/* 0: it has none. */
static double first_sample_ms(pid_t pid, const char *capture)
{
	uint64_t first_ns = bench_first_sample_ns(pid, capture, 8);

	return first_ns == UINT64_MAX ? 0 : (double)first_ns / 1e6;
}

/* @return whether there is something to compare with. */
static bool measure_row(const struct worker *worker, const struct row *row,
			const struct peer_run *ours, struct peer_run *ret_run)
{
	struct pairs pairs = { .count = 0 };
	char slower[64], rate[16];

	if (!peer_is_there(row->peer)) {
		bench_skip(row->peer->name, "runs", "it is not installed");
		return false;
	}
	if (row->peer == &peer_ljrecord_kernel && !peer_has_copies()) {
		bench_skip(row->peer->name, "runs", "the kernel copies no threads here");
		return false;
	}
	if (!measure_pairs(row, worker, &pairs)) {
		bench_result(row->peer->name, "runs", false, "it ended by itself");
		return false;
	}
	if (!measure_use(row, worker, ret_run) || ret_run->samples <= 0) {
		bench_result(row->peer->name, "runs", false, "it has no profile");
		return false;
	}
	if (row->peer == &peer_ljrecord || row->peer == &peer_ljrecord_kernel)
		ret_run->first_ms = first_sample_ms(
			worker->pid, row->peer == &peer_ljrecord ? "stop" : "kernel");
	snprintf(rate, sizeof(rate), "%u", row->rate_hz);
	tell_slowdown(worker, row, row->peer->name, &pairs, slower, sizeof(slower));
	put_row(worker, rate, row->peer->name, slower, ret_run, ours ? ours : ret_run);
	return true;
}

/* What the stops of a profiler cost that stops its target, whatever it then does. */
static void measure_stops_row(const struct worker *worker, unsigned rate_hz,
			      const struct peer_run *ours)
{
	const struct row row = { .peer = &peer_bare_stop, .rate_hz = rate_hz };
	struct peer_run run;
	char rate[16];

	if (!measure_use(&row, worker, &run)) {
		bench_result(row.peer->name, "runs", false, "none was made");
		return;
	}
	snprintf(rate, sizeof(rate), "%u", rate_hz);
	put_row(worker, rate, row.peer->name, "-", &run, ours);
}

static void measure_look_row(const struct worker *worker, const struct peer *peer,
			     const struct peer_run *ours)
{
	const struct row row = { .peer = peer };
	struct peer_run run;
	char lost[64];
	double lost_ms;

	if (!peer_is_there(peer)) {
		bench_skip(peer->name, "runs", "it is not installed");
		return;
	}
	if (!measure_looks(&row, worker, &run, &lost_ms)) {
		bench_result(peer->name, "runs", false, "it failed");
		return;
	}
	snprintf(lost, sizeof(lost), "%.0f ms each", lost_ms);
	put_row(worker, "one look", peer->name, lost, &run, ours);
}

static void measure_own_row(const struct worker *without, unsigned rate_hz, unsigned count)
{
	const struct row row = { .rate_hz = rate_hz };
	struct pairs pairs = { .count = 0 };
	struct peer_run run = { 0 };
	char option[PEER_PATH_BYTES + 32], path[PEER_PATH_BYTES + 8], slower[64], rate[16];
	struct worker with;

	snprintf(path, sizeof(path), "%s/jit.p", folder);
	snprintf(option, sizeof(option), "-jp=lm0i%u,%s", 1000 / rate_hz, path);
	if (!measure_own_pairs(without, option, count, &pairs)) {
		bench_result("jit.p", "runs", false, "the program does not start with %s", option);
		return;
	}
	/* It writes when the program ends by itself. */
	kill(without->pid, SIGSTOP);
	if (worker_start(without->work, folder, option, 2, &with))
		waitpid(with.pid, NULL, 0);
	with.starter = 0;
	worker_end(&with);
	kill(without->pid, SIGCONT);
	peer_digest_jit_p(path, 2.0 * rate_hz, &run);
	unlink(path);
	tell_slowdown(without, &row, "jit.p", &pairs, slower, sizeof(slower));
	snprintf(rate, sizeof(rate), "%u", rate_hz);
	put_row(without, rate, "jit.p (in the process, from its start)", slower, &run, NULL);
}

/* ---- What must hold --------------------------------------------------------------------- */

static void compare_bytes(const struct worker *worker, unsigned rate_hz, const char *name,
			  const struct peer_run *ours, const struct peer_run *perf)
{
	char what[160];
	double packed = ours->packed_bytes / ours->samples, plain = ours->bytes / ours->samples;
	double bytes = perf->bytes / perf->samples,
	       packed_perf = perf->packed_bytes / perf->samples;

	snprintf(what, sizeof(what), "%s, %u Hz: bytes a sample, %s to perf", worker->work, rate_hz,
		 name);
	bench_result(what, "<= 0.01", plain * 100 <= bytes,
		     "%.4f; .gz to that %.4f, to its .gz %.4f (%.0f and %.1f, %.0f and %.0f)",
		     plain / bytes, packed / bytes, packed / packed_perf, plain, packed, bytes,
		     packed_perf);
}

static void measure_work(struct worker *worker, bool has_processor)
{
	const unsigned rates[] = { 99, 999, 4999 };
	/* To tell what is asked: some quarter of it. */
	const double most[] = { 1, 6, 0 }, half[] = { 0.3, 1.5, 3 };
	const struct peer *const own[] = { &peer_ljrecord, &peer_ljrecord_kernel };
	/* What ljrecord does without an option is held to what is asked. */
	const unsigned usual = peer_has_copies() ? 1 : 0;
	struct peer_run ours[2][3] = { 0 }, perf;
	bool has_ours[2][3];

	for (unsigned n = 0; n < 6; n++) {
		unsigned i = n % 3;
		const bool is_asked = has_processor && is_full && n / 3 == usual && most[i] > 0;
		const struct row row = {
			.peer = own[n / 3],
			.rate_hz = rates[i],
			.pace = has_processor ? quick_pace(is_asked ? PAIRS_MAX : 160, half[i])
					      : slow_pace(),
			.most_percent = is_asked ? most[i] : 0,
		};

		has_ours[n / 3][i] =
			measure_row(worker, &row, n < 3 ? NULL : &ours[0][i], &ours[n / 3][i]);
	}
	for (unsigned i = 0; i < 3; i++)
		measure_stops_row(worker, rates[i], &ours[0][i]);
	for (unsigned i = 0; i < 3; i++) {
		const struct row row = { .peer = &peer_perf,
					 .rate_hz = rates[i],
					 .pace = slow_pace() };

		if (!measure_row(worker, &row, &ours[0][i], &perf))
			continue;
		for (unsigned how = 0; how < 2; how++)
			if (has_ours[how][i])
				compare_bytes(worker, rates[i], own[how]->name, &ours[how][i],
					      &perf);
	}
	measure_look_row(worker, &peer_eu_stack, &ours[0][0]);
	measure_look_row(worker, &peer_gdb, &ours[0][0]);
	if (worker->pid == worker->starter) {
		measure_own_row(worker, 100, is_full ? 8 : 4);
		measure_own_row(worker, 1000, is_full ? 8 : 4);
	}
}

/* ---- Idle ------------------------------------------------------------------------------- */

static uint64_t switches_of(pid_t pid)
{
	char path[32], line[128];
	unsigned long long count, sum = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %llu", &count) == 1)
			sum += count;
	if (file)
		fclose(file);
	return sum;
}

static void measure_idle(const struct worker *worker)
{
	const unsigned rates[] = { 99, 999 };

	for (unsigned i = 0; i < 2; i++) {
		uint64_t before = switches_of(worker->pid);
		pid_t child = peer_start(&peer_ljrecord, worker->pid, rates[i], folder);
		struct peer_run run = { 0 };
		char what[128];
		bool is_there;

		usleep((is_full ? 10 : 2) * 1000 * 1000);
		before = switches_of(worker->pid) - before;
		is_there = child > 0 && waitpid(child, NULL, WNOHANG) == 0;
		/* There is nothing to record: it has no profile. */
		peer_end(&peer_ljrecord, child, folder, &run);
		snprintf(what, sizeof(what),
			 "%s under ljrecord --capture=stop at %u Hz: times it was woken",
			 worker->work, rates[i]);
		bench_result(what, "0", is_there && before == 0,
			     "%llu; ljrecord: %.2f %% of a processor", (unsigned long long)before,
			     100 * run.cpu_s / (is_full ? 10 : 2));
	}
}

void bench_slowdown(bool full)
{
	static const char *const works[] = { "fib", "mixed" };
	struct worker worker;

	is_full = full;
	bench_make_folder(folder);
	for (unsigned i = 0; i < 2; i++) {
		if (worker_start(works[i], folder, NULL, LIFETIME_S, &worker))
			measure_work(&worker, true);
		else
			bench_result("slowdown", "measured", false, "%s does not start", works[i]);
		worker_end(&worker);
	}
	for (unsigned i = 0; i < 2; i++) {
		if (worker_start_nginx(i == 0 ? "nginx under wrk" : "nginx, idle", folder, i == 1,
				       LIFETIME_S, &worker))
			i == 0 ? measure_work(&worker, false) : measure_idle(&worker);
		else if (!worker.is_skipped)
			bench_result("slowdown", "measured", false, "nginx does not start");
		worker_end(&worker);
	}
	rmdir(folder);
}

/* ljtop by kernel samples, against the interrupts of its timer alone. */
/* ---- ljtop beside a timer --------------------------------------------------------------- */

enum {
	TWINS = 2,
	TWIN_WINDOW_MS = 60,
	/* A program that goes on has its caches to fill. */
	TWIN_BEGIN_MS = 5,
	/* ljtop has met most functions, and the kernel's copies hold all that they need. */
	TWIN_SETTLE_PAIRS = 60,
	TWIN_PAIRS = 1500,
};

/** Two programs of one kind. ljtop watches one and the timer the other, for as long as the windows
 *  take; only one of them runs at any time. */
struct twins {
	struct worker workers[TWINS];
	pid_t peers[TWINS];
	bool has_worker[TWINS];
};

static void run_twin(const struct twins *twins, unsigned which, struct pairs_work *work)
{
	kill(twins->workers[!which].pid, SIGSTOP);
	kill(twins->workers[which].pid, SIGCONT);
	usleep(TWIN_BEGIN_MS * 1000);
	measure(&twins->workers[which], TWIN_WINDOW_MS, work);
}

static void run_both(const struct twins *twins, struct pairs_work works[TWINS])
{
	const unsigned first = random_below(TWINS);

	run_twin(twins, first, &works[first]);
	run_twin(twins, !first, &works[!first]);
}

/* @param with The one that ljtop watches. @param ret_works By pair and program. */
static bool measure_twins(struct twins *twins, unsigned with, unsigned count,
			  struct pairs_work (*ret_works)[TWINS])
{
	const struct peer *peers[TWINS] = { [0] = &peer_timer, [1] = &peer_timer };
	struct pairs_work ignored[TWINS];
	bool all = true;

	peers[with] = &peer_ljtop;
	for (unsigned i = 0; i < TWINS; i++) {
		kill(twins->workers[i].pid, SIGCONT);
		twins->peers[i] = peer_start(peers[i], twins->workers[i].pid, 199, folder);
	}
	for (unsigned i = 0; i < (is_full ? TWIN_SETTLE_PAIRS : 4); i++)
		run_both(twins, ignored);
	for (unsigned i = 0; i < count; i++)
		run_both(twins, ret_works[i]);
	for (unsigned i = 0; i < TWINS; i++)
		all &= peer_end(peers[i], twins->peers[i], folder, NULL);
	return all;
}

/* One program may be faster than its twin, so each has ljtop once, and each pair of the result has
 * both. */
static bool measure_twin_pairs(struct twins *twins, struct pairs *pairs)
{
	static struct pairs_work works[TWINS][TWIN_PAIRS][TWINS];
	const unsigned count = is_full ? TWIN_PAIRS : 20;

	memset(works, 0, sizeof(works));
	for (unsigned with = 0; with < TWINS; with++)
		if (!measure_twins(twins, with, count, works[with]))
			return false;
	for (unsigned i = 0; i < count; i++) {
		struct pairs_work sides[TWINS] = { { 0 } };

		for (unsigned with = 0; with < TWINS; with++)
			for (unsigned k = 0; k < TWINS; k++) {
				sides[k == with].units += works[with][i][k].units;
				sides[k == with].ns += works[with][i][k].ns;
			}
		pairs_add(pairs, sides[1], sides[0]);
	}
	return true;
}

void bench_top_slowdown(bool full)
{
	struct twins twins = { .peers = { 0 } };
	struct pairs pairs = { .count = 0 };
	struct pairs_estimate found;
	bool all = true;

	if (!peer_has_copies()) {
		bench_skip("slowdown under ljtop", "measured", "the kernel copies no threads here");
		return;
	}
	is_full = full;
	bench_make_folder(folder);
	for (unsigned i = 0; i < TWINS && all; i++) {
		all = worker_start("mixed", folder, NULL, LIFETIME_S, &twins.workers[i]);
		twins.has_worker[i] = true;
	}
	if (all && measure_twin_pairs(&twins, &pairs)) {
		found = pairs_estimate(&pairs);
		bench_result("slowdown under ljtop at 199 Hz by kernel samples, beyond its timer's",
			     "<= 0.3 points", !full || found.mean <= 0.3,
			     "%.2f (%.2f to %.2f), %u pairs; mean of all %.2f", found.mean,
			     found.lower, found.upper, pairs.count, found.plain);
	} else {
		bench_result("slowdown under ljtop", "measured", false,
			     "a program ended by itself");
	}
	for (unsigned i = 0; i < TWINS; i++)
		if (twins.has_worker[i])
			worker_end(&twins.workers[i]);
	rmdir(folder);
}
