/* SPDX-License-Identifier: MIT */
/* The opener of events: for whom it opens them, with what rights, and how it ends. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/clock.h"
#include "daemon/rights/event_opener.h"
#include "daemon/tick_clock.h"
#include "luastate/plan.h"

enum { RATE_HZ = 99, PERIOD_NS = 10 * 1000 * 1000, TRIES = 3000, NAP_NS = 10 * 1000 * 1000 };

#define DEADLINE_NS ((uint64_t)30 * 1000000000)

/* Our children that run, among them the opener. */
static pid_t find_opener(void)
{
	char path[64], name[32] = "";
	FILE *list, *file;
	int pid, found = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	list = fopen(path, "re");
	while (list && !found && fscanf(list, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		file = fopen(path, "re");
		if (file && fscanf(file, "%31s", name) == 1 && !strcmp(name, "ljprof-opener"))
			found = pid;
		if (file)
			fclose(file);
	}
	if (list)
		fclose(list);
	assert_true(found > 0);
	return found;
}

static uint64_t status_of(pid_t pid, const char *field, int base)
{
	char path[64], line[256];
	uint64_t value = UINT64_MAX;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, field, strlen(field)))
			value = strtoull(line + strlen(field) + 1, NULL, base);
	fclose(file);
	return value;
}

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct scene {
	struct attach_sampler *sampler;
	struct opener *opener;
	pid_t pid; /* of the recording */
};

static int create_sampler(struct attach_sampler **ret_sampler, struct failure *why)
{
	const struct attach_sampler_object object = luastate_bpf_object();

	return attach_sampler_create(&object, RATE_HZ, ret_sampler, why);
}

static void begin_scene(struct scene *scene, bool grows)
{
	struct failure why;

	scene->pid = start_sleeper();
	if (create_sampler(&scene->sampler, &why) != 0) {
		end(scene->pid);
		print_message("skipped: the kernel copies no threads here\n");
		skip();
	}
	assert_int_equal(0, opener_start(attach_sampler_program(scene->sampler), &scene->pid, 1,
					 grows, &scene->opener, &why));
}

static void end_scene(struct scene *scene)
{
	opener_stop(scene->opener);
	attach_sampler_destroy(scene->sampler);
	end(scene->pid);
}

/* @param until_ns The answer is waited for up to then. @return 1, 0 or -1 as opener_take(). */
static int take(const struct scene *scene, uint64_t until_ns,
		struct attach_sampler_answer *ret_answer, struct failure *ret_why)
{
	int got;

	do { /* the end of a child is a signal */
		got = opener_take(scene->opener, until_ns, ret_answer, ret_why);
	} while (got == 0 && clock_now_ns() < until_ns);
	return got;
}

static int ask(const struct scene *scene, pid_t pid, pid_t tid, uint64_t period_ns, uint64_t cookie,
	       struct failure *ret_why)
{
	const struct attach_sampler_request request = {
		.pid = pid, .tid = tid, .period_ns = period_ns, .cookie = cookie
	};

	return opener_ask(scene->opener, &request, ret_why);
}

static int try_open(const struct scene *scene, pid_t pid, pid_t tid, uint64_t period_ns,
		    struct failure *ret_why)
{
	struct attach_sampler_answer answer;

	if (ask(scene, pid, tid, period_ns, ATTACH_SAMPLER_NO_COOKIE, ret_why) != 0)
		return -1;
	if (take(scene, clock_now_ns() + DEADLINE_NS, &answer, ret_why) != 1)
		return -1;
	assert_true(answer.cookie == ATTACH_SAMPLER_NO_COOKIE);
	if (answer.why.kind != FAILURE_NONE) {
		assert_int_equal(-1, answer.event.event_fd);
		assert_int_equal(-1, answer.event.link_fd);
		*ret_why = answer.why;
		return -1;
	}
	assert_true(fcntl(answer.event.event_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(answer.event.link_fd, F_GETFD) & FD_CLOEXEC);
	attach_sampler_close_event(&answer.event);
	return 0;
}

static void opens_for_processes_of_the_recording(void **state)
{
	struct scene scene;
	struct failure why;
	pid_t other;

	(void)state;
	begin_scene(&scene, false);
	other = start_sleeper();
	assert_int_equal(0, try_open(&scene, scene.pid, scene.pid, PERIOD_NS, &why));
	assert_int_equal(-1, try_open(&scene, other, other, PERIOD_NS, &why));
	assert_int_equal(FAILURE_DENIED, why.kind);
	assert_int_equal(-1, try_open(&scene, scene.pid, other, PERIOD_NS, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
	assert_int_equal(-1, try_open(&scene, scene.pid, 0, PERIOD_NS, &why));
	assert_int_equal(-1, try_open(&scene, 0, 0, PERIOD_NS, &why));
	assert_int_equal(-1, try_open(&scene, -1, -1, PERIOD_NS, &why));
	/* So often it would be a burden. */
	assert_int_equal(-1, try_open(&scene, scene.pid, scene.pid, 1, &why));
	assert_int_equal(0, try_open(&scene, scene.pid, scene.pid, PERIOD_NS, &why));
	end(other);
	end_scene(&scene);
}

static void opens_for_later_ones_where_these_may_come(void **state)
{
	struct scene scene;
	struct failure why;
	pid_t other;

	(void)state;
	begin_scene(&scene, true);
	other = start_sleeper();
	assert_int_equal(0, try_open(&scene, other, other, PERIOD_NS, &why));
	end(other);
	assert_int_equal(-1, try_open(&scene, other, other, PERIOD_NS, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
	end_scene(&scene);
}

static void keeps_no_more_than_it_needs(void **state)
{
	const uint64_t allowed = 1ull << CAP_PERFMON | 1ull << CAP_BPF | 1ull << CAP_SYS_ADMIN;
	struct scene scene;
	uint64_t kept;
	int paranoid;
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");

	(void)state;
	assert_non_null(file);
	assert_int_equal(1, fscanf(file, "%d", &paranoid));
	fclose(file);
	begin_scene(&scene, false);
	kept = status_of(find_opener(), "CapPrm:", 16);
	assert_int_equal(0, kept & ~allowed);
	assert_int_equal(kept, status_of(find_opener(), "CapEff:", 16));
	if (paranoid <= 2 && kept & 1ull << CAP_PERFMON)
		assert_int_equal(0, kept & 1ull << CAP_SYS_ADMIN);
	assert_int_equal(2, status_of(find_opener(), "Seccomp:", 10));
	assert_int_equal(1, status_of(find_opener(), "NoNewPrivs:", 10));
	end_scene(&scene);
}

/* What keeps it from opening events is no reason to keep more rights. */
static void gives_up_where_it_cannot_open(void **state)
{
	struct attach_sampler *sampler;
	struct opener *opener;
	struct failure why;
	pid_t own = getpid();
	int no_program;

	(void)state;
	if (create_sampler(&sampler, &why) != 0)
		skip();
	attach_sampler_destroy(sampler);
	no_program = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(no_program >= 0);
	assert_int_equal(-1, opener_start(no_program, &own, 1, false, &opener, &why));
	assert_int_equal(FAILURE_SYSTEM, why.kind);
	assert_int_equal(EINVAL, why.errnum);
	close(no_program);
}

static void tells_that_it_is_gone(void **state)
{
	struct scene scene;
	struct failure why;

	(void)state;
	begin_scene(&scene, false);
	kill(find_opener(), SIGKILL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(-1, try_open(&scene, scene.pid, scene.pid, PERIOD_NS, &why));
		assert_int_equal(FAILURE_SYSTEM, why.kind);
	}
	end_scene(&scene);
}

/* As where the kernel holds it up: nobody waits for longer than he wants to. */
static void waits_for_nothing_by_itself(void **state)
{
	struct attach_sampler_answer answer;
	struct scene scene;
	struct failure why;
	unsigned asked = 0;
	uint64_t begin_ns;
	pid_t opener;

	(void)state;
	begin_scene(&scene, false);
	opener = find_opener();
	kill(opener, SIGSTOP);
	begin_ns = clock_now_ns();
	/* At last there are too many, and the failure says so. */
	while (ask(&scene, scene.pid, scene.pid, PERIOD_NS, asked + 1, &why) == 0) {
		assert_int_equal(0, opener_take(scene.opener, 0, &answer, &why));
		assert_true(++asked < 1000);
	}
	assert_int_equal(FAILURE_TIMEOUT, why.kind);
	assert_true(asked > 50);
	assert_int_equal(0, opener_take(scene.opener, clock_now_ns() + NAP_NS, &answer, &why));
	assert_true(clock_now_ns() - begin_ns < DEADLINE_NS);
	kill(opener, SIGCONT);
	/* All are answered, each one as what it is. */
	for (unsigned i = 1; i <= asked; i++) {
		assert_int_equal(1, take(&scene, clock_now_ns() + DEADLINE_NS, &answer, &why));
		assert_int_equal(i, answer.cookie);
		assert_int_equal(FAILURE_NONE, answer.why.kind);
		attach_sampler_close_event(&answer.event);
	}
	assert_int_equal(0, opener_take(scene.opener, 0, &answer, &why));
	assert_int_equal(0, try_open(&scene, scene.pid, scene.pid, PERIOD_NS, &why));
	end_scene(&scene);
}

static void is_ended_where_it_is_held_up(void **state)
{
	struct scene scene;

	(void)state;
	begin_scene(&scene, false);
	kill(find_opener(), SIGSTOP);
	alarm(TRIES * (NAP_NS / 1000 / 1000) / 1000);
	end_scene(&scene);
	alarm(0);
}

static void end_recorder_first(int how)
{
	int fds[2], status;
	struct scene scene;
	pid_t recorder, opener = 0;

	assert_int_equal(0, pipe2(fds, O_CLOEXEC));
	recorder = fork();
	if (recorder == 0) {
		struct failure why;
		pid_t own = getpid();

		if (create_sampler(&scene.sampler, &why) != 0)
			_exit(77);
		if (opener_start(attach_sampler_program(scene.sampler), &own, 1, false,
				 &scene.opener, &why) != 0)
			_exit(1);
		opener = find_opener();
		if (write(fds[1], &opener, sizeof(opener)) != sizeof(opener))
			_exit(1);
		kill(opener, how);
		kill(own, SIGKILL);
	}
	close(fds[1]);
	waitpid(recorder, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		close(fds[0]);
		print_message("skipped: the kernel copies no threads here\n");
		skip();
	}
	assert_int_equal(sizeof(opener), read(fds[0], &opener, sizeof(opener)));
	close(fds[0]);
	for (int i = 0; i < TRIES && kill(opener, 0) == 0; i++) {
		/* Where nobody collects orphans it stays a zombie. */
		char path[64], state_letter = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)opener);
		file = fopen(path, "re");
		if (!file || fscanf(file, "%*d %*s %c", &state_letter) != 1 ||
		    state_letter == 'Z') {
			if (file)
				fclose(file);
			return;
		}
		fclose(file);
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		assert_true(i < TRIES - 1);
	}
}

static void ends_with_its_recorder(void **state)
{
	(void)state;
	end_recorder_first(0);
}

static void ends_with_its_recorder_where_it_is_held_up(void **state)
{
	(void)state;
	end_recorder_first(SIGSTOP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_for_processes_of_the_recording),
		cmocka_unit_test(opens_for_later_ones_where_these_may_come),
		cmocka_unit_test(keeps_no_more_than_it_needs),
		cmocka_unit_test(gives_up_where_it_cannot_open),
		cmocka_unit_test(tells_that_it_is_gone),
		cmocka_unit_test(waits_for_nothing_by_itself),
		cmocka_unit_test(is_ended_where_it_is_held_up),
		cmocka_unit_test(ends_with_its_recorder),
		cmocka_unit_test(ends_with_its_recorder_where_it_is_held_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
