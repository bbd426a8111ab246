/* SPDX-License-Identifier: MIT */
/*
 * What a sample costs by the number of live traces, which run evenly: each sample meets another
 * one.
 *
 * One process for each number of traces, and one that is interpreted. They run in turn, each while
 * it is measured, and this several times: what else the machine does is alike for all of one turn,
 * so ratios are taken within a turn, and their median counts.
 */
#include "tests/bench/bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	TURNS_MAX = 16,
	SAMPLES_MAX = 4000,
	/* Numbers of traces, remembered as met. */
	TRACES_MAX = 65536,
	/* Between two samples, and at most twice as long. */
	LEAST_US = 500,
};

/** Medians of one turn. */
struct turn {
	double held_ns, stopped_ns; /* all samples */
	double decode_ns, cpu_ns;   /* those that meet a known trace */
	double recorded_cpu_ns;	    /* of ljrecord and its writer for a sample */
};

struct program {
	const char *functions;
	bool interpreted;
	pid_t pid;
	struct bench_sampler sampler;
	bool open;
	struct turn turns[TURNS_MAX];
	size_t turn_count;
	uint8_t met[TRACES_MAX];
	uint64_t samples, inlined, again, rounds;
};

/* ---- Processes -------------------------------------------------------------------------- */

/* Starts, waits until all is compiled, and stops. */
static bool start(struct program *program)
{
	int fds[2];
	long traces = -1, wanted;
	FILE *out;

	if (pipe(fds) != 0)
		return false;
	program->pid = fork();
	if (program->pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		execlp("luajit", "luajit", BENCH_TRACES_LUA, program->functions,
		       program->interpreted ? "interpreted" : NULL, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	out = fdopen(fds[0], "r");
	if (!out || fscanf(out, "ready %ld", &traces) != 1)
		traces = -1;
	if (out)
		fclose(out);
	kill(program->pid, SIGSTOP);
	wanted = program->interpreted ? 0 : strtol(program->functions, NULL, 10);
	return traces >= wanted && traces <= wanted + wanted / 20;
}

static void stop(struct program *program)
{
	if (program->open)
		bench_close_sampler(&program->sampler);
	if (program->pid <= 0)
		return;
	kill(program->pid, SIGKILL);
	waitpid(program->pid, NULL, 0);
}

/* ---- Measuring -------------------------------------------------------------------------- */

struct series {
	uint64_t held[SAMPLES_MAX], stopped[SAMPLES_MAX], decode[SAMPLES_MAX], cpu[SAMPLES_MAX];
	size_t count, again; /* again: of decode and cpu */
};

/* Whether the sample's trace was met before. */
static bool count_sample(struct program *program, const struct bench_sample *sample)
{
	bool again =
		program->interpreted || (sample->trace < TRACES_MAX && program->met[sample->trace]);

	program->samples++;
	program->rounds += sample->rounds;
	program->inlined += sample->compiled == FORMAT_COMPILED_EXACT ||
			    sample->compiled == FORMAT_COMPILED_APPROXIMATE;
	program->again += again;
	if (sample->trace < TRACES_MAX)
		program->met[sample->trace] = 1;
	return again;
}

static void take_series(struct program *program, int samples, struct series *series)
{
	series->count = series->again = 0;
	for (int i = 0; i < samples; i++) {
		struct bench_sample sample;

		usleep((useconds_t)(LEAST_US + random() % LEAST_US));
		if (bench_take_sample(&program->sampler, &sample) != 0)
			continue;
		/* One in the loop that is not compiled says nothing of traces. */
		if ((sample.compiled == FORMAT_COMPILED_NONE) != program->interpreted)
			continue;
		series->held[series->count] = sample.held_ns;
		series->stopped[series->count++] = sample.stopped_ns;
		if (!count_sample(program, &sample))
			continue;
		series->decode[series->again] = sample.decode_ns;
		series->cpu[series->again++] = sample.cpu_ns;
	}
}

static double median(uint64_t *values, size_t count)
{
	return (double)bench_quantile(values, count, 0.5);
}

static bool take_turn(struct program *program, int samples, const char *seconds,
		      struct series *series)
{
	struct turn *turn = &program->turns[program->turn_count];
	struct bench_parted parted;
	struct failure why;

	kill(program->pid, SIGCONT);
	if (!program->open)
		program->open = bench_open_sampler(program->pid, &program->sampler, &why) == 0;
	bench_part(program->pid, &parted);
	if (program->open)
		take_series(program, samples, series);
	bench_join(&parted);
	if (program->open && series->again > 0) {
		turn->held_ns = median(series->held, series->count);
		turn->stopped_ns = median(series->stopped, series->count);
		turn->decode_ns = median(series->decode, series->again);
		turn->cpu_ns = median(series->cpu, series->again);
		turn->recorded_cpu_ns = bench_recorded_cpu_ns(program->pid, "997", seconds);
	}
	kill(program->pid, SIGSTOP);
	if (turn->recorded_cpu_ns == 0)
		return false;
	program->turn_count++;
	return true;
}

/* ---- Telling ---------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median over the turns of a value, or of its ratio to another program's. */
static double over_turns(const struct program *program, const struct program *base, size_t member)
{
	double values[TURNS_MAX];

	for (size_t i = 0; i < program->turn_count; i++) {
		memcpy(&values[i], (const char *)&program->turns[i] + member, sizeof(double));
		if (base) {
			double other;

			memcpy(&other, (const char *)&base->turns[i] + member, sizeof(double));
			values[i] /= other;
		}
	}
	qsort(values, program->turn_count, sizeof(values[0]), compare);
	return values[program->turn_count / 2];
}

#define RATIO(one, other, member) over_turns(one, other, offsetof(struct turn, member))
#define VALUE_US(program, member) (over_turns(program, NULL, offsetof(struct turn, member)) / 1e3)

/* One line for people. */
static void show(const struct program *program)
{
	printf("%s %s: held %.1f us, stopped %.1f us; decoding %.1f us, processor time %.1f us, as "
	       "recorded %.1f us; %.2f rounds; of %llu samples %.1f %% met a known trace, %.1f %% "
	       "have all inlined calls\n",
	       program->functions, program->interpreted ? "interpreted" : "traces",
	       VALUE_US(program, held_ns), VALUE_US(program, stopped_ns),
	       VALUE_US(program, decode_ns), VALUE_US(program, cpu_ns),
	       VALUE_US(program, recorded_cpu_ns),
	       (double)program->rounds / (double)program->samples,
	       (unsigned long long)program->samples,
	       100 * (double)program->again / (double)program->samples,
	       100 * (double)program->inlined / (double)program->samples);
}

/** The programs, by their places. */
enum { INTERPRETED, TRACES_10, TRACES_100, TRACES_1000, TRACES_5000, PROGRAMS };

static void tell(const struct program *programs)
{
	const struct program *few = &programs[TRACES_10], *many = &programs[TRACES_5000];
	double known = RATIO(many, few, cpu_ns), recorded = RATIO(many, few, recorded_cpu_ns);
	double beside = RATIO(many, &programs[INTERPRETED], cpu_ns);
	double stopped = RATIO(many, few, stopped_ns);
	double held = RATIO(many, &programs[INTERPRETED], held_ns);

	for (int i = 0; i < PROGRAMS; i++)
		show(&programs[i]);
	bench_result("processor time of a sample in a known trace, 5000 traces to 10", "<= 1.5",
		     known <= 1.5, "%.2f (%.0f us to %.0f us; 100: %.2f, 1000: %.2f)", known,
		     VALUE_US(many, cpu_ns), VALUE_US(few, cpu_ns),
		     RATIO(&programs[TRACES_100], few, cpu_ns),
		     RATIO(&programs[TRACES_1000], few, cpu_ns));
	/* What grows with the number of things in the program, not of traces: what is met once in
	 * 5000 samples is in no cache of the processor's. */
	bench_result("the same to 5000 functions interpreted", "<= 1.5", beside <= 1.5,
		     "%.2f (%.0f us to %.0f us)", beside, VALUE_US(many, cpu_ns),
		     VALUE_US(&programs[INTERPRETED], cpu_ns));
	/* Reading, naming and writing a trace's three functions is a part of it. */
	bench_result("processor time of ljrecord for a sample, 5000 traces, new in most, to 10",
		     "<= 2", recorded <= 2, "%.2f (%.0f us to %.0f us)", recorded,
		     VALUE_US(many, recorded_cpu_ns), VALUE_US(few, recorded_cpu_ns));
	bench_result("stopped time p50, 5000 traces, new in most, to 10", "<= 1.5", stopped <= 1.5,
		     "%.2f (%.1f us to %.1f us)", stopped, VALUE_US(many, stopped_ns),
		     VALUE_US(few, stopped_ns));
	bench_result("held time p50, 5000 traces to 5000 functions interpreted", "<= 1.5",
		     held <= 1.5, "%.2f (%.1f us to %.1f us)", held, VALUE_US(many, held_ns),
		     VALUE_US(&programs[INTERPRETED], held_ns));
}

static bool measure(struct program *programs, bool full, struct series *series)
{
	static const char *const functions[PROGRAMS] = { "5000", "10", "100", "1000", "5000" };
	const int turns = full ? 9 : 5, samples = full ? 2000 : 600;
	bool measured = true;

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	for (int i = 0; measured && i < PROGRAMS; i++) {
		programs[i].functions = functions[i];
		programs[i].interpreted = i == INTERPRETED;
		measured = start(&programs[i]);
	}
	for (int turn = 0; measured && turn < turns; turn++)
		for (int i = 0; measured && i < PROGRAMS; i++)
			measured = take_turn(&programs[i], samples, full ? "4" : "1.5", series);
	return measured;
}

void bench_traces(bool full)
{
	struct program *programs = calloc(PROGRAMS, sizeof(*programs));
	struct series *series = calloc(1, sizeof(*series));

	if (programs && series && measure(programs, full, series))
		tell(programs);
	else
		bench_result("samples of many traces", "measured", false, "none");
	for (int i = 0; programs && i < PROGRAMS; i++)
		stop(&programs[i]);
	free(programs);
	free(series);
}
