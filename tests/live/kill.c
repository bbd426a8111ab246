/* SPDX-License-Identifier: MIT */
/*
 * End a recorder at random instants and see that its target goes on as if nothing had been there.
 *
 * Usage: kill alone|together COUNT SEED DELAY_US AT_ONCE_S LJRECORD LJREPORT PROFILE KIND:PID...
 *
 * KIND is "busy" for a process with a thread that uses its processor, "asleep" for one that waits,
 * "stopped" for one that SIGSTOP holds. Each round records the next of them, ends the recorder, its
 * writer or both by SIGKILL, or the recorder by SIGHUP, up to DELAY_US later, and asks for what
 * must hold then, AT_ONCE_S seconds later at the latest. With "alone", all are stopped before, and
 * each goes on for its rounds. Prints the counts. The first round in which something is wrong is
 * the last.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** Rounds between two looks at what was written: by turns of each kind and way. */
enum { REPORT_EVERY = 5 };

enum way { KILL_RECORDER, KILL_WRITER, KILL_BOTH, HANG_UP, WAYS };

enum kind { BUSY, ASLEEP, STOPPED };

struct target {
	enum kind kind;
	pid_t pid;
};

/** What went wrong, and how often the recorder was met in which part of its life. */
struct counts {
	unsigned frozen, changed, crashed, stuck, unreadable, sampling, read;
};

static const char *ljrecord, *ljreport, *profile;
static long delay_max_us;

/** In which a thread that was held goes on, and a recorder ends whose writer is gone or that is
 * told to. */
static int at_once_ms;

static void nap_us(long us)
{
	const struct timespec nap = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	nanosleep(&nap, NULL);
}

/* ---- The target ------------------------------------------------------------------------- */

/* @return the file's first bytes as text, or "" where there is none. */
static const char *read_text(const char *path)
{
	static char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	return text;
}

static bool is_gone(pid_t pid)
{
	char path[64];
	const char *text;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	text = strstr(read_text(path), "State:\t");
	return !text || text[7] == 'Z' || text[7] == 'X';
}

/* Whether a thread is free: nobody traces it, and it stands only where its process is stopped. */
static bool is_thread_free(const struct target *target, const char *tid)
{
	char path[300];
	const char *text, *state, *tracer;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)target->pid, tid);
	text = read_text(path);
	state = strstr(text, "State:\t");
	tracer = strstr(text, "TracerPid:\t");
	if (!state || !tracer)
		return true; /* it has ended */
	if (strtol(tracer + 11, NULL, 10) != 0 || state[7] == 't')
		return false;
	return (state[7] == 'T') == (target->kind == STOPPED);
}

static bool is_free(const struct target *target)
{
	char path[64];
	struct dirent *entry;
	bool all = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)target->pid);
	dir = opendir(path);
	if (!dir)
		return true;
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			all &= is_thread_free(target, entry->d_name);
	closedir(dir);
	return all;
}

/* Processor time in ns and turns of all threads together. */
static void read_use(const struct target *target, unsigned long long *ret_ns,
		     unsigned long long *ret_turns)
{
	unsigned long long ns, wait, turns;
	char path[300];
	struct dirent *entry;
	DIR *dir;

	*ret_ns = *ret_turns = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)target->pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)target->pid,
			 entry->d_name);
		if (entry->d_name[0] != '.' &&
		    sscanf(read_text(path), "%llu %llu %llu", &ns, &wait, &turns) == 3) {
			*ret_ns += ns;
			*ret_turns += turns;
		}
	}
	closedir(dir);
}

/* Whether it goes on with what it did: a busy one gets processor time, others do not. */
static bool goes_on(const struct target *target)
{
	unsigned long long ns, turns, begin_ns, begin_turns;

	read_use(target, &begin_ns, &begin_turns);
	if (target->kind == STOPPED) {
		nap_us(2000);
		read_use(target, &ns, &turns);
		return ns == begin_ns;
	}
	for (int ms = 0; ms < at_once_ms; ms++) {
		nap_us(1000);
		read_use(target, &ns, &turns);
		if (ns != begin_ns || turns != begin_turns)
			return true;
	}
	return false;
}

static void check_target(const struct target *target, struct counts *counts)
{
	int ms = 0;

	if (is_gone(target->pid)) {
		counts->crashed++;
		return;
	}
	while (!is_free(target) && ms++ < at_once_ms)
		nap_us(1000);
	if (!is_free(target))
		counts->frozen++;
	else if (!goes_on(target))
		counts->changed++;
}

/* ---- The recorder ----------------------------------------------------------------------- */

static pid_t start_recorder(const struct target *target)
{
	char pid[16];
	pid_t child = fork();

	if (child == 0) {
		setpgid(0, 0);
		/* Ignored where the test runs under nohup, and that would be inherited. */
		signal(SIGHUP, SIG_DFL);
		snprintf(pid, sizeof(pid), "%d", (int)target->pid);
		execl(ljrecord, "ljrecord", "-q", "-F", "4999", "-o", profile, "-p", pid,
		      (char *)NULL);
		_exit(127);
	}
	if (child > 0)
		setpgid(child, child);
	return child;
}

static pid_t find_writer(pid_t recorder)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)recorder, (int)recorder);
	return (pid_t)strtol(read_text(path), NULL, 10);
}

static void end_recorder(pid_t recorder, enum way way, struct counts *counts)
{
	pid_t writer = find_writer(recorder);
	int ms = 0;

	counts->sampling += writer > 0;
	switch (way) {
	case KILL_RECORDER:
		kill(recorder, SIGKILL);
		break;
	case KILL_WRITER:
		kill(writer > 0 ? writer : recorder, SIGKILL);
		break;
	case KILL_BOTH:
		kill(-recorder, SIGKILL);
		break;
	default:
		kill(recorder, SIGHUP);
		break;
	}
	for (; waitpid(recorder, NULL, WNOHANG) == 0 && ms < at_once_ms; ms++)
		nap_us(1000);
	if (ms < at_once_ms)
		return;
	counts->stuck++;
	kill(-recorder, SIGKILL);
	waitpid(recorder, NULL, 0);
}

/* A writer that has outlived its recorder ends what it writes. It is our child then. */
static void await_group(pid_t group, struct counts *counts)
{
	int ms = 0;
	pid_t got;

	while ((got = waitpid(-group, NULL, WNOHANG)) >= 0 && ms < at_once_ms) {
		if (got == 0) {
			nap_us(1000);
			ms++;
		}
	}
	if (ms == at_once_ms) {
		counts->stuck++;
		kill(-group, SIGKILL);
		waitpid(-group, NULL, 0);
	}
}

/* What was written before is a profile. */
static void check_profile(struct counts *counts)
{
	struct stat status;
	int result;
	pid_t child;

	if (stat(profile, &status) != 0 || status.st_size == 0)
		return;
	counts->read++;
	child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDOUT_FILENO);
		execl(ljreport, "ljreport", "-f", "counters", profile, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &result, 0) != child || result != 0)
		counts->unreadable++;
}

/* ---- Rounds ----------------------------------------------------------------------------- */

static bool is_good(const struct counts *counts)
{
	return !(counts->frozen || counts->changed || counts->crashed || counts->stuck ||
		 counts->unreadable);
}

static void run_round(unsigned round, const struct target *target, enum way way,
		      struct counts *counts)
{
	pid_t recorder;

	unlink(profile);
	recorder = start_recorder(target);
	if (recorder < 0) {
		counts->stuck++;
		return;
	}
	nap_us(rand() % delay_max_us);
	end_recorder(recorder, way, counts);
	check_target(target, counts);
	await_group(recorder, counts);
	if (round % REPORT_EVERY == 0)
		check_profile(counts);
}

static bool parse_target(const char *text, struct target *ret_target)
{
	static const char *const kinds[] = {
		[BUSY] = "busy:", [ASLEEP] = "asleep:", [STOPPED] = "stopped:"
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i]);

		if (strncmp(text, kinds[i], len) == 0) {
			*ret_target = (struct target){ .kind = (enum kind)i,
						       .pid = (pid_t)strtol(text + len, NULL, 10) };
			return ret_target->pid > 0;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	struct target targets[16];
	struct counts counts = { 0 };
	unsigned count, target_count = 0;
	bool alone;

	if (argc < 10 || argc > 9 + 16)
		return 2;
	alone = strcmp(argv[1], "alone") == 0;
	count = (unsigned)strtoul(argv[2], NULL, 10);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	srand((unsigned)strtoul(argv[3], NULL, 10));
	delay_max_us = strtol(argv[4], NULL, 10);
	at_once_ms = 1000 * (int)strtol(argv[5], NULL, 10);
	ljrecord = argv[6];
	ljreport = argv[7];
	profile = argv[8];
	for (int i = 9; i < argc; i++)
		if (delay_max_us <= 0 || at_once_ms <= 0 ||
		    !parse_target(argv[i], &targets[target_count++]))
			return 2;
	for (unsigned round = 0; round < count && is_good(&counts); round++) {
		const struct target *target = &targets[round % target_count];
		const bool resume = alone && target->kind != STOPPED;

		if (resume)
			kill(target->pid, SIGCONT);
		run_round(round, target, (enum way)(round / target_count % WAYS), &counts);
		if (resume)
			kill(target->pid, SIGSTOP);
	}
	printf("frozen %u changed %u crashed %u stuck %u unreadable %u read %u sampling %u\n",
	       counts.frozen, counts.changed, counts.crashed, counts.stuck, counts.unreadable,
	       counts.read, counts.sampling);
	return 0;
}
