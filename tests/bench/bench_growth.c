/* SPDX-License-Identifier: MIT */
/*
 * What a sample costs by how much a process has of something: native frames, Lua frames, threads,
 * traces, libraries, heap.
 *
 * For each kind one process for each size. They run in turn, each while it is measured, and this
 * several times: what else the machine does is alike for all of one turn, so ratios to the smallest
 * size are taken within a turn, and their median counts.
 */
#include "tests/bench/bench.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SIZES_MAX = 5,
	TURNS_MAX = 9,
	SAMPLES_MAX = 1000,
	/* Of a turn, where samples take long. */
	SAMPLES_MIN = 8,
	WARM_UP = 400, /* traces are to be met twice */
	WARM_UP_NS = 300000000,
	/* Numbers of traces, remembered as met. */
	TRACES_MAX = 65536,
	RELEASE_TRIES = 100,
	/* Between two samples, and at most twice as long. */
	LEAST_US = 400,
	/* Besides the heaps themselves. */
	SPARE_MIB = 1024,
	TEXT_BYTES = 256,
};

/** How a cost may grow. */
enum bound { FLAT, LINEAR };

/** What is measured in each turn: medians of single samples, and what only whole runs of ljrecord
 *  tell. */
enum value { STOPPED, CPU, RECORDED, FIRST_SAMPLE, VALUES };

static const struct {
	const char *name, *unit;
	double unit_ns;
} values[VALUES] = {
	[STOPPED] = { "stopped time p50", "us", 1e3 },
	[CPU] = { "processor time of a sample", "us", 1e3 },
	[RECORDED] = { "processor time of a tick at 99 Hz", "us", 1e3 },
	[FIRST_SAMPLE] = { "first sample after the start", "ms", 1e6 },
};

struct kind {
	const char *name, *label;
	size_t count;
	int sizes[SIZES_MAX];
	enum bound bound; /* of single samples */
	enum value run;	  /* measured as well; CPU: neither */
	enum bound run_bound;
	bool counts_frames;
};

static const struct kind kinds[] = {
	{ "native", "native frames", 4, { 10, 100, 1000, 10000 }, LINEAR, CPU, FLAT, true },
	/* A Lua stack has 65500 slots at most, and a frame has two or more. */
	{ "lua", "Lua frames", 5, { 10, 100, 1000, 10000, 30000 }, LINEAR, CPU, FLAT, true },
	/* Each tick looks at all threads, to see which of them run. */
	{ "threads", "threads", 4, { 1, 10, 100, 500 }, FLAT, RECORDED, LINEAR, false },
	{ "traces", "traces", 4, { 10, 100, 1000, 5000 }, FLAT, CPU, FLAT, false },
	{ "libraries", "libraries", 4, { 10, 100, 400, 1000 }, FLAT, FIRST_SAMPLE, LINEAR, false },
	{ "heap", "MiB of heap", 4, { 1, 16, 128, 1024 }, FLAT, FIRST_SAMPLE, FLAT, false },
};

/** How long it takes. */
struct plan {
	int turns, samples;
	uint64_t turn_ns; /* a turn of one process at most, from when SAMPLES_MIN were taken */
	const char *recorded_s; /* of ljrecord, at 99 Hz */
	size_t runs;		/* of ljrecord, for its first sample */
};

static const struct plan short_plan = { 3, 150, 150000000, "1.2", 3 };
static const struct plan full_plan = { 7, 600, 600000000, "3.2", 3 };

/** One process. */
struct point {
	int size;
	pid_t pid;
	struct bench_sampler sampler;
	bool open, ready;
	bool measured[TURNS_MAX]; /* by turn: where something else took the processors, not */
	double turns[VALUES][TURNS_MAX];
	uint64_t samples, full, rounds, frames; /* frames: of all samples */
	uint8_t met[TRACES_MAX];
};

struct series {
	uint64_t stopped[SAMPLES_MAX], cpu[SAMPLES_MAX];
	size_t count, known; /* known: of cpu */
};

/** The kind that is measured. */
struct growth {
	const struct kind *kind;
	const struct plan *plan;
	char folder[sizeof(BENCH_FOLDER)];
	struct point *points;
	cpu_set_t processors;
	size_t count; /* of the kind's sizes, those that this machine has memory for */
	struct series series;
};

/* ---- Libraries -------------------------------------------------------------------------- */

static void name_copy(const struct growth *growth, int number, char name[TEXT_BYTES])
{
	snprintf(name, TEXT_BYTES, "%s/%d", growth->folder, number);
}

static bool copy_library(const char *name)
{
	int from = open(BENCH_GROWTH_LIBRARY, O_RDONLY | O_CLOEXEC);
	int to = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	bool copied = false;
	struct stat stat;

	if (from >= 0 && to >= 0 && fstat(from, &stat) == 0)
		copied = sendfile(to, from, NULL, (size_t)stat.st_size) == stat.st_size;
	close(from);
	close(to);
	return copied;
}

/* As many as the largest process loads: files of their own, as a process's libraries are. */
static bool make_libraries(const struct growth *growth)
{
	char name[TEXT_BYTES];

	for (int i = 1; i <= growth->points[growth->count - 1].size; i++) {
		name_copy(growth, i, name);
		if (!copy_library(name))
			return false;
	}
	return true;
}

static void remove_libraries(const struct growth *growth)
{
	char name[TEXT_BYTES];

	for (int i = 1; i <= growth->points[growth->count - 1].size; i++) {
		name_copy(growth, i, name);
		unlink(name);
	}
}

/* ---- Processes -------------------------------------------------------------------------- */

static bool is_kind(const struct growth *growth, const char *name)
{
	return strcmp(growth->kind->name, name) == 0;
}

/* A stop takes several times as long where the target runs on another processor. So that no turn is
 * of one kind and the next of the other, the targets have the first processor for themselves. */
static void move_to(const cpu_set_t *all, bool first)
{
	cpu_set_t set = *all;
	int cpu = 0;

	if (CPU_COUNT(all) < 2)
		return;
	while (!CPU_ISSET(cpu, all))
		cpu++;
	if (first)
		CPU_ZERO(&set);
	if (first)
		CPU_SET(cpu, &set);
	else
		CPU_CLR(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Starts, waits until all is there, and stops. */
static bool start(const struct growth *growth, struct point *point)
{
	const char *file = is_kind(growth, "traces") ? BENCH_TRACES_LUA : growth->folder;
	char line[64] = "", size[16];
	int fds[2];
	FILE *out;

	snprintf(size, sizeof(size), "%d", point->size);
	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	point->pid = fork();
	if (point->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		move_to(&growth->processors, true);
		dup2(fds[1], STDOUT_FILENO);
		execl(BENCH_GROWTH_TARGET, "growth_target", growth->kind->name, size, file,
		      (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	out = fdopen(fds[0], "r");
	if (out && !fgets(line, sizeof(line), out))
		line[0] = '\0';
	if (out)
		fclose(out);
	if (point->pid > 0)
		kill(point->pid, SIGSTOP);
	return strncmp(line, "ready", strlen("ready")) == 0;
}

static void stop(struct point *point)
{
	if (point->open)
		bench_close_sampler(&point->sampler);
	if (point->pid > 0)
		bench_end_target(point->pid);
}

/* ---- Measuring -------------------------------------------------------------------------- */

/* Whether the sample's trace, if it is in one, was met before. */
static bool is_known(struct point *point, const struct bench_sample *sample)
{
	bool known = true;

	if (sample->compiled != FORMAT_COMPILED_NONE && sample->trace < TRACES_MAX) {
		known = point->met[sample->trace];
		point->met[sample->trace] = 1;
	}
	return known;
}

static void take_one(const struct growth *growth, struct point *point, struct series *series)
{
	struct bench_sample sample;
	bool known;

	usleep((useconds_t)(LEAST_US + random() % LEAST_US));
	if (bench_take_sample(&point->sampler, &sample) != 0)
		return;
	/* One in the loop that is not compiled says nothing of traces. */
	if (is_kind(growth, "traces") && sample.compiled == FORMAT_COMPILED_NONE)
		return;
	known = is_known(point, &sample);
	if (!series)
		return;
	point->samples++;
	point->full += sample.full;
	point->rounds += sample.rounds;
	point->frames += sample.frames;
	series->stopped[series->count++] = sample.stopped_ns;
	if (known)
		series->cpu[series->known++] = sample.cpu_ns;
}

static void take_series(const struct growth *growth, struct point *point, struct series *series)
{
	uint64_t begin_ns = bench_now_ns();

	series->count = series->known = 0;
	for (int i = 0; i < growth->plan->samples; i++) {
		if (i >= SAMPLES_MIN && bench_now_ns() - begin_ns > growth->plan->turn_ns)
			break;
		take_one(growth, point, series);
	}
}

/* A thread that did not stop in time is still traced, and no other program may: until one has. */
static void let_go(struct point *point)
{
	struct bench_sample sample;

	for (int i = 0; i < RELEASE_TRIES && bench_take_sample(&point->sampler, &sample) != 0; i++)
		usleep(LEAST_US);
}

static void warm_up(const struct growth *growth, struct point *point)
{
	uint64_t begin_ns = bench_now_ns();

	for (int i = 0; i < WARM_UP && bench_now_ns() - begin_ns < WARM_UP_NS; i++)
		take_one(growth, point, NULL);
}

/* For a sample, without what ljrecord takes to start and to end: a short run has that as well.
 * @return false also where ticks were lost, so that the difference is none. */
static bool measure_recorded(const struct growth *growth, pid_t pid, double *ret_ns)
{
	const double few_s = 0.2, all_s = strtod(growth->plan->recorded_s, NULL);
	double few_ns = bench_recorded_cpu_ns(pid, "99", "0.2");
	double all_ns = bench_recorded_cpu_ns(pid, "99", growth->plan->recorded_s);

	if (few_ns == 0 || all_ns == 0)
		return false;
	*ret_ns = (all_ns * all_s - few_ns * few_s) / (all_s - few_s);
	return *ret_ns > 0;
}

static bool measure_first_sample(const struct growth *growth, pid_t pid, double *ret_ns)
{
	uint64_t ns = bench_first_sample_ns(pid, "stop", growth->plan->runs);

	*ret_ns = (double)ns;
	return ns != UINT64_MAX;
}

/* @return whether the process could be measured. */
static bool take_turn(struct growth *growth, struct point *point, int turn)
{
	struct series *series = &growth->series;
	enum value run = growth->kind->run;
	struct failure why;

	if (!point->open) {
		point->open = bench_open_sampler(point->pid, &point->sampler, &why) == 0;
		if (!point->open)
			return false;
		warm_up(growth, point);
	}
	take_series(growth, point, series);
	if (series->known == 0)
		return false;
	point->turns[STOPPED][turn] = (double)bench_quantile(series->stopped, series->count, 0.5);
	point->turns[CPU][turn] = (double)bench_quantile(series->cpu, series->known, 0.5);
	if (run != CPU)
		let_go(point);
	if (run == RECORDED)
		return measure_recorded(growth, point->pid, &point->turns[run][turn]);
	if (run == FIRST_SAMPLE)
		return measure_first_sample(growth, point->pid, &point->turns[run][turn]);
	return true;
}

static void measure(struct growth *growth)
{
	for (size_t i = 0; i < growth->count; i++)
		growth->points[i].ready = start(growth, &growth->points[i]);
	for (int turn = 0; turn < growth->plan->turns; turn++)
		for (size_t i = 0; i < growth->count; i++) {
			struct point *point = &growth->points[i];

			if (!point->ready)
				continue;
			kill(point->pid, SIGCONT);
			point->measured[turn] = take_turn(growth, point, turn);
			kill(point->pid, SIGSTOP);
		}
}

/* ---- Telling ---------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list, size_t count)
{
	qsort(list, count, sizeof(list[0]), compare);
	return count ? list[count / 2] : 0;
}

static double value_of(const struct growth *growth, const struct point *point, enum value value)
{
	double list[TURNS_MAX];
	size_t count = 0;

	for (int i = 0; i < growth->plan->turns; i++)
		if (point->measured[i])
			list[count++] = point->turns[value][i];
	return median(list, count);
}

/* @return 0 where no turn has both. */
static double ratio_of(const struct growth *growth, const struct point *point,
		       const struct point *base, enum value value)
{
	double list[TURNS_MAX];
	size_t count = 0;

	for (int i = 0; i < growth->plan->turns; i++)
		if (point->measured[i] && base->measured[i])
			list[count++] = point->turns[value][i] / base->turns[value][i];
	/* As a difference it is too small in some turns to divide by. */
	if (value == RECORDED && count)
		return value_of(growth, point, value) / value_of(growth, base, value);
	return median(list, count);
}

static double in_units(const struct growth *growth, const struct point *point, enum value value)
{
	return value_of(growth, point, value) / values[value].unit_ns;
}

static void show(const struct growth *growth, const struct point *base, const struct point *point)
{
	const struct kind *kind = growth->kind;

	printf("%d %s: of %llu samples %.1f %% full, %.1f frames, %.2f rounds\n", point->size,
	       kind->label, (unsigned long long)point->samples,
	       100 * (double)point->full / (double)point->samples,
	       (double)point->frames / (double)point->samples,
	       (double)point->rounds / (double)point->samples);
	printf("GROWTH\t%s\t%d\t%.1f\t%.1f\t%.2f\t%.2f\n", kind->label, point->size,
	       in_units(growth, point, STOPPED), in_units(growth, point, CPU),
	       ratio_of(growth, point, base, STOPPED), ratio_of(growth, point, base, CPU));
	if (kind->run != CPU)
		printf("GROWTH-RUN\t%s\t%s\t%s\t%d\t%.1f\t%.2f\n", kind->label,
		       values[kind->run].name, values[kind->run].unit, point->size,
		       in_units(growth, point, kind->run),
		       ratio_of(growth, point, base, kind->run));
}

/* Largest to smallest. */
static void tell_ratio(const struct growth *growth, const struct point *base,
		       const struct point *last, enum value value, enum bound bound)
{
	double ratio = ratio_of(growth, last, base, value);
	double most = bound == FLAT ? 2 : (double)last->size / base->size;
	char what[TEXT_BYTES], asked[32];

	snprintf(what, sizeof(what), "%s, %d %s to %d", values[value].name, last->size,
		 growth->kind->label, base->size);
	snprintf(asked, sizeof(asked), bound == FLAT ? "<= %.0f" : "at most linear: <= %.0f", most);
	bench_result(what, asked, ratio <= most, "%.2f (%.1f %s to %.1f %s)", ratio,
		     in_units(growth, last, value), values[value].unit,
		     in_units(growth, base, value), values[value].unit);
}

/* A cost that does not grow is no merit where the frames are not looked at. */
static void tell_frames(const struct growth *growth, const struct point *last)
{
	double frames = (double)last->frames / (double)last->samples;
	char what[TEXT_BYTES], asked[32];

	snprintf(what, sizeof(what), "frames found in a sample, %d %s", last->size,
		 growth->kind->label);
	snprintf(asked, sizeof(asked), ">= %d", last->size);
	bench_result(what, asked, frames >= last->size, "%.1f on average", frames);
}

static void tell(const struct growth *growth)
{
	const struct point *base = NULL, *last = NULL;
	const struct kind *kind = growth->kind;

	for (size_t i = 0; i < growth->count; i++) {
		const struct point *point = &growth->points[i];
		const struct point *other = base ? base : point;
		char what[TEXT_BYTES];

		if (ratio_of(growth, point, other, STOPPED) == 0) {
			snprintf(what, sizeof(what), "samples, %d %s", point->size, kind->label);
			bench_result(what, "measured", false, "none");
			continue;
		}
		base = other;
		last = point;
		show(growth, base, point);
	}
	if (!last)
		return;
	tell_ratio(growth, base, last, CPU, kind->bound);
	tell_ratio(growth, base, last, STOPPED, kind->bound);
	if (kind->run != CPU)
		tell_ratio(growth, base, last, kind->run, kind->run_bound);
	if (kind->counts_frames)
		tell_frames(growth, last);
}

/* ---- Kinds ------------------------------------------------------------------------------ */

/* Heaps need as much memory as they are large, all of them at a time. */
static size_t count_sizes(const struct kind *kind)
{
	unsigned long mib = bench_available_mib(), needed = SPARE_MIB;
	size_t count = 0;

	if (strcmp(kind->name, "heap") != 0)
		return kind->count;
	while (count < kind->count) {
		needed += (unsigned long)kind->sizes[count];
		if (needed > mib)
			break;
		count++;
	}
	return count;
}

/* All of them, with what they need. */
static void measure_points(struct growth *growth)
{
	bool needs_libraries = is_kind(growth, "libraries");

	bench_make_folder(growth->folder);
	if (needs_libraries && !make_libraries(growth))
		bench_result("growth by libraries", "measured", false, "no copies of a library");
	else {
		measure(growth);
		tell(growth);
	}
	for (size_t i = 0; i < growth->count; i++)
		stop(&growth->points[i]);
	if (needs_libraries)
		remove_libraries(growth);
	rmdir(growth->folder);
}

static void measure_kind(const struct kind *kind, struct growth *growth, struct point *points)
{
	growth->kind = kind;
	growth->points = points;
	growth->count = count_sizes(kind);
	memcpy(growth->folder, BENCH_FOLDER, sizeof(growth->folder));
	memset(points, 0, SIZES_MAX * sizeof(*points));
	for (size_t i = 0; i < kind->count; i++) {
		char what[TEXT_BYTES];

		points[i].size = kind->sizes[i];
		if (i < growth->count)
			continue;
		snprintf(what, sizeof(what), "samples, %d %s", kind->sizes[i], kind->label);
		bench_skip(what, "measured", "%lu MiB of memory are available",
			   bench_available_mib());
	}
	if (growth->count > 0)
		measure_points(growth);
}

void bench_growth(bool full)
{
	struct point *points;
	struct growth *growth;

	if (!*BENCH_GROWTH_TARGET) {
		bench_skip("growth by the size of the process", "measured",
			   "no headers of LuaJIT to build the targets with");
		return;
	}
	points = calloc(SIZES_MAX, sizeof(*points));
	growth = calloc(1, sizeof(*growth));
	if (!points || !growth)
		exit(1);
	growth->plan = full ? &full_plan : &short_plan;
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (sched_getaffinity(0, sizeof(growth->processors), &growth->processors) != 0)
		CPU_ZERO(&growth->processors);
	move_to(&growth->processors, false);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		measure_kind(&kinds[i], growth, points);
	if (CPU_COUNT(&growth->processors) > 0)
		sched_setaffinity(0, sizeof(growth->processors), &growth->processors);
	free(growth);
	free(points);
}
