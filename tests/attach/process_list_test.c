/* SPDX-License-Identifier: MIT */
/* Which processes there are, their names, parents, and numbers in other namespaces. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/process.h"
#include "children.h"

static void sleep_for_ever(void *argument)
{
	(void)argument;
	for (;;)
		pause();
}

static bool is_listed(pid_t wanted)
{
	struct failure why;
	size_t count = 0;
	pid_t *pids, before = 0;
	bool found = false;

	assert_int_equal(0, attach_list_processes(&pids, &count, &why));
	for (size_t i = 0; i < count; i++) {
		assert_true(pids[i] > before);
		before = pids[i];
		found |= pids[i] == wanted;
	}
	free(pids);
	return found;
}

static void test_list(void **state)
{
	pid_t pid = child_start(sleep_for_ever, NULL);

	(void)state;
	assert_true(is_listed(getpid()));
	assert_true(is_listed(pid));
	assert_int_equal(getpid(), attach_parent_of(pid));
	assert_int_equal(getsid(0), attach_session_of(pid));
	child_end(pid);
	assert_int_equal(0, attach_session_of(pid));
	assert_false(is_listed(pid));
	assert_int_equal(0, attach_parent_of(pid));
}

static void take_odd_name(void *argument)
{
	prctl(PR_SET_NAME, "a) S 1\033[2J(", 0, 0, 0);
	*(volatile uint64_t *)argument = 1;
	sleep_for_ever(NULL);
}

static void test_names(void **state)
{
	uint64_t *ready = child_share(sizeof(*ready));
	pid_t pid = child_start(take_odd_name, ready);
	struct attach_names names;

	(void)state;
	assert_true(attach_names_of(getpid(), &names));
	assert_string_equal("attach_process_list_test", names.program);
	/* As the kernel cuts it, to 15 characters. */
	assert_string_equal("attach_process_", names.command);
	assert_true(child_await(ready, 1));
	assert_true(attach_names_of(pid, &names));
	assert_string_equal("a) S 1?[2J(", names.command);
	/* Not confused by what looks like the end of the name. */
	assert_int_equal(getpid(), attach_parent_of(pid));
	assert_int_equal(getsid(0), attach_session_of(pid));
	child_end(pid);
	assert_int_equal(0, attach_session_of(pid));
	assert_false(attach_names_of(pid, &names));
}

/* A program that was removed while it runs keeps its name. */
static void test_removed_program(void **state)
{
	char path[64], text[96];
	struct attach_names names;
	pid_t pid;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/attach_list_%d", (int)getpid());
	/* Of sleep(1) not: where that is one of busybox's names, a copy of another name is nothing.
	 */
	snprintf(text, sizeof(text), "cp /proc/%d/exe %s", (int)getpid(), path);
	if (system(text) != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, "sleep", (char *)NULL);
		_exit(1);
	}
	CHILD_AWAIT(attach_names_of(pid, &names) && strcmp(names.program, path + 5) == 0);
	assert_string_equal(path + 5, names.program);
	unlink(path);
	assert_true(attach_names_of(pid, &names));
	assert_string_equal(path + 5, names.program);
	child_end(pid);
}

static bool holds(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static void test_namespaces(void **state)
{
	uint64_t *same = child_share(sizeof(*same));
	pid_t found[512];
	size_t count;
	pid_t pid;

	(void)state;
	assert_true(attach_proc_is_ours());
	*same = 7;
	/* As clone(2): the first process of a namespace of its own, with our /proc. */
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0) {
		printf("[ SKIPPED  ] pid namespaces: not permitted\n");
		skip();
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*(volatile uint64_t *)same = attach_proc_is_ours();
		for (;;)
			pause();
	}
	CHILD_AWAIT(*(volatile uint64_t *)same != 7);
	assert_int_equal(0, *same);
	count = attach_find_inner(1, found, 512);
	assert_true(count >= 1 && count <= 512);
	assert_true(holds(found, count, pid));
	/* Processes of our own namespace have no inner number. */
	assert_false(holds(found, count, 1));
	assert_int_equal(count, attach_find_inner(1, found, 0));
	child_end(pid);
	assert_false(holds(found, attach_find_inner(1, found, 512), pid));
}

/* With an argument: a program that sleeps. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_removed_program),
		cmocka_unit_test(test_namespaces),
	};

	(void)argv;
	if (argc > 1)
		sleep_for_ever(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
