/* SPDX-License-Identifier: MIT */
/* What each profiler is called with, and what its output says. */
#include "attach/bpf.h"
#include "luastate/plan.h"
#include "tests/bench/bench.h"
#include "tests/bench/peers.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1 << 16 };

static void path_of(char *path, const char *folder, const char *name)
{
	snprintf(path, PEER_PATH_BYTES, "%s/%s", folder, name);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double seconds_of(const struct rusage *usage)
{
	return (double)usage->ru_utime.tv_sec + (double)usage->ru_stime.tv_sec +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static unsigned count_in(const char *text, const char *word)
{
	unsigned count = 0;

	for (; (text = strstr(text, word)) != NULL; text += strlen(word))
		count++;
	return count;
}

static double size_of(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? (double)status.st_size : 0;
}

/* ---- Running ---------------------------------------------------------------------------- */

static void silence(int out)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDIN_FILENO);
	dup2(out < 0 ? null : out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
}

/** Takes each line of a program's output. */
typedef void (*line_reader)(void *context, char *line);

/* Run a program and read what it prints. @return Its processor time, or a negative number where it
 * failed. */
static double read_output(char *const arguments[], line_reader read_line, void *context)
{
	char *line = malloc(LINE_MAX_BYTES);
	struct rusage usage;
	int pipes[2], status;
	FILE *file;
	pid_t pid;

	if (!line || pipe2(pipes, O_CLOEXEC) != 0) {
		free(line);
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		silence(pipes[1]);
		execvp(arguments[0], arguments);
		_exit(127);
	}
	close(pipes[1]);
	if (pid < 0) {
		close(pipes[0]);
		free(line);
		return -1;
	}
	file = fdopen(pipes[0], "r");
	while (file && fgets(line, LINE_MAX_BYTES, file))
		read_line(context, line);
	if (file)
		fclose(file);
	free(line);
	if (wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		return -1;
	return seconds_of(&usage);
}

static double first_begin_s;

bool peer_has_copies(void)
{
	const struct attach_sampler_object object = luastate_bpf_object();
	struct attach_sampler *sampler;
	struct failure why;

	if (attach_sampler_create(&object, 4999, &sampler, &why) != 0)
		return false;
	attach_sampler_destroy(sampler);
	return true;
}

pid_t peer_start(const struct peer *peer, pid_t target, unsigned rate_hz, const char *folder)
{
	pid_t child;

	first_begin_s = now_s();
	child = fork();
	if (child == 0) {
		char pid[16], rate[16], path[PEER_PATH_BYTES];

		/* It is what ends them; a shell has its background commands ignore it. */
		signal(SIGINT, SIG_DFL);
		path_of(path, folder, "text");
		silence(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
		snprintf(pid, sizeof(pid), "%d", (int)target);
		snprintf(rate, sizeof(rate), "%u", rate_hz);
		peer->exec(pid, rate, folder);
		_exit(127);
	}
	return child;
}

/* End it and read its file. @return false where it failed. */
static bool end_and_digest(const struct peer *peer, pid_t pid, const char *folder,
			   struct peer_run *ret_run)
{
	struct peer_run run = { 0 };
	struct rusage usage;
	bool ok = true;
	int status;

	if (pid <= 0 || (peer->is_sampler && waitpid(pid, NULL, WNOHANG) != 0))
		return false;
	if (peer->is_sampler)
		kill(pid, SIGINT);
	if (wait4(pid, &status, 0, &usage) != pid ||
	    (WIFEXITED(status) && WEXITSTATUS(status) == 127))
		return false;
	if (!peer->is_sampler)
		run.first_ms = (now_s() - first_begin_s) * 1e3;
	run.cpu_s = seconds_of(&usage);
	run.rss_mib = (double)usage.ru_maxrss / 1024;
	if (ret_run) {
		ok = peer->digest(folder, &run);
		*ret_run = run;
	}
	return ok;
}

bool peer_end(const struct peer *peer, pid_t pid, const char *folder, struct peer_run *ret_run)
{
	static const char *const files[] = { "profile", "profile.bin.gz", "stats", "text" };
	bool ok = end_and_digest(peer, pid, folder, ret_run);

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[PEER_PATH_BYTES];

		path_of(path, folder, files[i]);
		unlink(path);
	}
	return ok;
}

bool peer_is_there(const struct peer *peer)
{
	char command[64];

	if (peer == &peer_ljrecord || peer == &peer_ljrecord_kernel || peer == &peer_bare_stop ||
	    peer == &peer_ljtop || peer == &peer_timer)
		return true;
	snprintf(command, sizeof(command), "command -v %.*s >/dev/null",
		 (int)strcspn(peer->name, " "), peer->name);
	return system(command) == 0;
}

/* ---- ljrecord --------------------------------------------------------------------------- */

static void record(const char *capture, const char *pid, const char *rate, const char *folder)
{
	char output[PEER_PATH_BYTES], stats[PEER_PATH_BYTES];

	path_of(output, folder, "profile.bin.gz");
	path_of(stats, folder, "stats");
	execl(LJRECORD_PATH, "ljrecord", "-q", "--capture", capture, "-p", pid, "-F", rate, "-o",
	      output, "--stats", stats, (char *)NULL);
}

static void exec_ljrecord(const char *pid, const char *rate, const char *folder)
{
	record("stop", pid, rate, folder);
}

static void exec_ljrecord_kernel(const char *pid, const char *rate, const char *folder)
{
	record("kernel", pid, rate, folder);
}

static void exec_ljtop(const char *pid, const char *rate, const char *folder)
{
	(void)folder;
	execl(LJTOP_PATH, "ljtop", "--batch", "--capture", "kernel", "-F", rate, "-p", pid,
	      (char *)NULL);
}

static void exec_timer(const char *pid, const char *rate, const char *folder)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.sample_period = 1000000000 / strtoull(rate, NULL, 10) };

	(void)folder;
	if (syscall(SYS_perf_event_open, &attr, atoi(pid), -1, -1, PERF_FLAG_FD_CLOEXEC) < 0)
		_exit(127);
	for (;;)
		pause();
}

/* A line is a chain and how many samples it has. */
static void read_folded(void *context, char *line)
{
	struct peer_run *run = context;
	const char *number = strrchr(line, ' ');

	if (!number)
		return;
	run->reported += atof(number);
	run->lua_frames += count_in(line, PEER_MARKER) * atof(number);
	run->whole += strstr(line, ";main;") ? atof(number) : 0;
}

static double number_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	return object && json_object_object_get_ex(object, key, &value)
		       ? json_object_get_double(value)
		       : 0;
}

/* @param gzip The program, with its options. */
static double size_through(const char *gzip, const char *path)
{
	char command[PEER_PATH_BYTES + 32];
	double bytes = 0;
	FILE *file;

	snprintf(command, sizeof(command), "%s %s | wc -c", gzip, path);
	file = popen(command, "r");
	if (file && fscanf(file, "%lf", &bytes) != 1)
		bytes = 0;
	if (file)
		pclose(file);
	return bytes;
}

static bool digest_ljrecord(const char *folder, struct peer_run *run)
{
	char output[PEER_PATH_BYTES], stats[PEER_PATH_BYTES], report[] = LJREPORT_PATH;
	char lines[] = "--lines", line[] = "line", format[] = "-f", folded[] = "folded";
	char *const arguments[] = { report, lines, line, format, folded, output, NULL };
	struct json_object *root, *stopped = NULL;
	double report_s, ticks;

	path_of(output, folder, "profile.bin.gz");
	path_of(stats, folder, "stats");
	root = json_object_from_file(stats);
	if (!root)
		return false;
	/* A chain may stand for more than one tick: each counts once, as perf's do. */
	run->samples = number_of(root, "records");
	ticks = number_of(root, "samples");
	/* Where the kernel copied the program, it waited for that. */
	if (json_object_object_get_ex(root, "copied", &stopped) && number_of(stopped, "count") == 0)
		json_object_object_get_ex(root, "stopped", &stopped);
	if (stopped) {
		run->stopped_us[0] = number_of(stopped, "p50_ns") / 1e3;
		run->stopped_us[1] = number_of(stopped, "p99_ns") / 1e3;
		run->stopped_us[2] = number_of(stopped, "max_ns") / 1e3;
	}
	json_object_put(root);
	run->packed_bytes = size_of(output);
	run->bytes = size_through("gzip -dc", output);
	report_s = read_output(arguments, read_folded, run);
	if (report_s < 0 || ticks <= 0 || run->reported != ticks)
		return false;
	run->cpu_s += report_s;
	run->lua_frames *= run->samples / ticks;
	run->whole *= run->samples / ticks;
	return true;
}

const struct peer peer_ljtop = { .name = "ljtop", .is_sampler = true, .exec = exec_ljtop };
const struct peer peer_timer = { .name = "timer", .is_sampler = true, .exec = exec_timer };

const struct peer peer_ljrecord = { "ljrecord --capture=stop", true, exec_ljrecord,
				    digest_ljrecord };
const struct peer peer_ljrecord_kernel = { "ljrecord --capture=kernel", true, exec_ljrecord_kernel,
					   digest_ljrecord };

/* ---- Bare stops ------------------------------------------------------------------------- */

static volatile sig_atomic_t is_over;

static void end_stops(int signal)
{
	(void)signal;
	is_over = 1;
}

/* Its output is the number of stops. */
static void exec_bare_stop(const char *pid, const char *rate, const char *folder)
{
	const struct sigaction action = { .sa_handler = end_stops };
	uint64_t period_ns = 1000000000u / strtoul(rate, NULL, 10);
	uint64_t next_ns = bench_now_ns();
	pid_t target = (pid_t)strtol(pid, NULL, 10);
	unsigned count = 0;

	(void)folder;
	sigaction(SIGINT, &action, NULL);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	while (!is_over) {
		struct timespec until;

		/* Missed ones are not made up for. */
		next_ns += period_ns * (1 + (bench_now_ns() - next_ns) / period_ns);
		until = (struct timespec){ .tv_sec = (time_t)(next_ns / 1000000000u),
					   .tv_nsec = (long)(next_ns % 1000000000u) };
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0)
			count += bench_bare_stop(target) != 0;
	}
	dprintf(STDOUT_FILENO, "%u\n", count);
	_exit(0);
}

static bool digest_bare_stop(const char *folder, struct peer_run *run)
{
	char path[PEER_PATH_BYTES];
	FILE *file;

	path_of(path, folder, "text");
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%lf", &run->samples) != 1)
		run->samples = 0;
	fclose(file);
	run->rss_mib = 0; /* the bench's own */
	return run->samples > 0;
}

const struct peer peer_bare_stop = { "bare stops that read only registers", true, exec_bare_stop,
				     digest_bare_stop };

/* ---- perf ------------------------------------------------------------------------------- */

static void exec_perf(const char *pid, const char *rate, const char *folder)
{
	char output[PEER_PATH_BYTES];

	path_of(output, folder, "profile");
	execlp("perf", "perf", "record", "-q", "-e", "cpu-clock", "-k", "mono", "-F", rate,
	       "--call-graph", "dwarf", "-p", pid, "-o", output, (char *)NULL);
}

/* A sample is a line with its event and time, and one for each frame. */
static void read_script(void *context, char *line)
{
	struct peer_run *run = context;
	const char *event = strstr(line, " cpu-clock:"), *time = line;

	run->lua_frames += count_in(line, PEER_MARKER);
	run->whole += strstr(line, " main+") != NULL;
	if (!event)
		return;
	/* "program pid seconds.microseconds: period cpu-clock: " */
	for (const char *at = line; at < event; at++)
		if (at[0] == ':' && at[1] == ' ')
			for (time = at; time > line && time[-1] != ' ';)
				time--;
	if (run->samples++ == 0)
		run->first_ms = (atof(time) - first_begin_s) * 1e3;
}

static bool digest_perf(const char *folder, struct peer_run *run)
{
	char output[PEER_PATH_BYTES], perf[] = "perf", script[] = "script", input[] = "-i";
	/* Without the lines of inlined C functions, which take it far longer. */
	char plain[] = "--no-inline";
	char *const arguments[] = { perf, script, plain, input, output, NULL };
	double script_s;

	path_of(output, folder, "profile");
	run->bytes = size_of(output);
	/* By its user, after it: ljrecord compresses as it goes. */
	run->packed_bytes = size_through("gzip -1 -c", output);
	script_s = read_output(arguments, read_script, run);
	run->cpu_s += script_s;
	return script_s >= 0 && run->samples > 0;
}

const struct peer peer_perf = { "perf record --call-graph dwarf, perf script", true, exec_perf,
				digest_perf };

/* ---- Single looks ----------------------------------------------------------------------- */

static void exec_eu_stack(const char *pid, const char *rate, const char *folder)
{
	(void)rate, (void)folder;
	execlp("eu-stack", "eu-stack", "-p", pid, (char *)NULL);
}

static void exec_gdb(const char *pid, const char *rate, const char *folder)
{
	(void)rate, (void)folder;
	execlp("gdb", "gdb", "-nx", "-batch", "-p", pid, "-ex", "bt", (char *)NULL);
}

static bool digest_text(const char *folder, struct peer_run *run)
{
	char path[PEER_PATH_BYTES], line[4096];
	unsigned frames = 0;
	FILE *file;

	path_of(path, folder, "text");
	file = fopen(path, "r");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		frames += line[0] == '#';
		run->lua_frames += count_in(line, PEER_MARKER);
		run->whole += strstr(line, " main") && !strstr(line, "main_");
	}
	fclose(file);
	run->samples = frames > 0;
	return frames > 0;
}

const struct peer peer_eu_stack = { "eu-stack -p", false, exec_eu_stack, digest_text };
const struct peer peer_gdb = { "gdb -batch -ex bt", false, exec_gdb, digest_text };

/* ---- LuaJIT's own ----------------------------------------------------------------------- */

/* Lines such as "93%  bench_works.lua:20". */
bool peer_digest_jit_p(const char *path, double samples, struct peer_run *run)
{
	char line[4096];
	FILE *file = fopen(path, "r");

	if (!file)
		return false;
	run->samples = samples;
	while (fgets(line, sizeof(line), file))
		if (strchr(line, '%') && strstr(line, PEER_MARKER))
			run->lua_frames += atof(line) / 100 * samples;
	fclose(file);
	return true;
}
