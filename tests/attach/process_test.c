/* SPDX-License-Identifier: MIT */
/* Opening processes of every kind, explanations, and fates of processes. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/process.h"
#include "children.h"

#define PAGE 4096
/** Two users that own no processes on usual systems; 65534 is "nobody". */
#define USER_A 65534
#define USER_B 64999
/** Groups of the process with many groups; their numbers fill more than a page of its status. */
#define MANY_GROUPS 2000

static void sleep_for_ever(void *argument)
{
	(void)argument;
	for (;;)
		pause();
}

static int open_failure(pid_t pid, struct failure *ret_why, char *ret_text, size_t len)
{
	struct attach_process *process;

	memset(ret_why, 0, sizeof(*ret_why));
	if (attach_process_open(pid, &process, ret_why) == 0) {
		attach_process_close(process);
		return 0;
	}
	attach_explain(pid, ret_why, ret_text, len);
	return -1;
}

static void expect_failure(pid_t pid, enum failure_kind kind, const char *part)
{
	struct failure why;
	char text[400] = "";

	assert_int_equal(-1, open_failure(pid, &why, text, sizeof(text)));
	assert_int_equal(kind, why.kind);
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
	assert_null(strchr(text, '\n'));
}

static void test_no_such_process(void **state)
{
	pid_t pid = child_start(sleep_for_ever, NULL);

	(void)state;
	child_end(pid);
	expect_failure(pid, FAILURE_GONE, "there is no process");
	expect_failure(0, FAILURE_GONE, "there is no process 0");
	expect_failure(-1, FAILURE_GONE, "there is no process -1");
	expect_failure(INT32_MAX, FAILURE_GONE, "there is no process 2147483647");
}

static void do_nothing(void *argument)
{
	(void)argument;
}

static void test_zombie(void **state)
{
	pid_t pid = child_start(do_nothing, NULL);

	(void)state;
	assert_true(child_await_state(pid, "Z"));
	expect_failure(pid, FAILURE_NOT_FOUND, "zombie");
	child_end(pid);
}

static void test_kernel_thread(void **state)
{
	const pid_t kthreadd = 2;

	(void)state;
	if (child_field(kthreadd, "PPid") != 0 || child_field(kthreadd, "VmSize") != -1)
		return; /* a pid namespace: none is visible */
	expect_failure(kthreadd, FAILURE_NOT_FOUND, "kernel thread");
}

static void fill_and_sleep(void *argument)
{
	(void)argument;
	mmap(NULL, 128 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
	     -1, 0);
	sleep_for_ever(NULL);
}

/* A process that ends has no memory for a while, as long as its pages take to be freed. */
static void test_ending(void **state)
{
	struct failure why = { 0 };
	char text[400] = "";
	unsigned ending = 0;

	(void)state;
	for (int i = 0; i < 8; i++) {
		pid_t pid = child_start(fill_and_sleep, NULL);

		assert_true(child_await_state(pid, "S"));
		kill(pid, SIGKILL);
		while (open_failure(pid, &why, text, sizeof(text)) == 0 ||
		       why.kind != FAILURE_NOT_FOUND) {
			assert_true(!why.kind || why.kind == FAILURE_GONE ||
				    why.kind == FAILURE_DENIED);
			ending += why.kind == FAILURE_GONE;
		}
		assert_non_null(strstr(text, "zombie"));
		child_end(pid);
	}
	print_message("%u looks at processes that were ending\n", ending);
}

static void *note_tid(void *argument)
{
	*(volatile uint64_t *)argument = (uint64_t)syscall(SYS_gettid);
	pause();
	return NULL;
}

static void start_thread(void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, note_tid, argument);
	pause();
}

static void test_thread_id(void **state)
{
	volatile uint64_t *tid = child_share(sizeof(*tid));
	pid_t pid = child_start(start_thread, (void *)(uintptr_t)tid);
	struct failure why;
	char text[256], part[64];

	(void)state;
	assert_true(child_await(tid, 1));
	assert_int_equal(-1, open_failure((pid_t)*tid, &why, text, sizeof(text)));
	assert_int_equal(pid, why.address);
	snprintf(part, sizeof(part), "thread of process %d: give --pid %d", (int)pid, (int)pid);
	expect_failure((pid_t)*tid, FAILURE_NOT_FOUND, part);
	child_end(pid);
}

static void test_many_groups(void **state)
{
	static gid_t groups[MANY_GROUPS];
	struct attach_process *process;
	struct failure why;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		return; /* setgroups(2) needs root */
	for (int i = 0; i < MANY_GROUPS; i++)
		groups[i] = 4000000000u + (gid_t)i;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setgroups(MANY_GROUPS, groups);
		prctl(PR_SET_NAME, "many groups");
		sleep_for_ever(NULL);
	}
	assert_true(child_await_state(pid, "S"));
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	assert_int_equal(ATTACH_FATE_SAME, attach_process_fate(process));
	attach_process_close(process);
	child_end(pid);
}

/* ---- Another tracer --------------------------------------------------------------------- */

static void trace_for_ever(void *argument)
{
	prctl(PR_SET_NAME, "a tracer");
	ptrace(PTRACE_SEIZE, *(pid_t *)argument, NULL, NULL);
	sleep_for_ever(NULL);
}

static void test_traced_process(void **state)
{
	pid_t pid = child_start(sleep_for_ever, NULL);
	pid_t tracer;
	struct attach_process *process;
	struct failure why;
	char text[256], part[64];

	(void)state;
	assert_int_equal(0, attach_tracer_of(pid, pid));
	tracer = child_start(trace_for_ever, &pid);
	while (child_field(pid, "TracerPid") == 0)
		child_nap_us(100);
	assert_int_equal(tracer, attach_tracer_of(pid, pid));
	assert_int_equal(-1, open_failure(pid, &why, text, sizeof(text)));
	assert_int_equal(tracer, why.address);
	snprintf(part, sizeof(part), "already traced by pid %d (a tracer)", (int)tracer);
	expect_failure(pid, FAILURE_BUSY, part);
	assert_int_equal(0, attach_process_open_to_read(pid, &process, &why));
	attach_process_close(process);
	child_end(tracer);
	assert_int_equal(0, attach_tracer_of(pid, pid));
	assert_int_equal(0, open_failure(pid, &why, text, sizeof(text)));
	child_end(pid);
}

/* ---- Permission ------------------------------------------------------------------------- */

/** What an unprivileged look at a process gave; shared with the process that looks. */
struct look {
	pid_t pid;
	void (*become)(void);
	int ret;
	struct failure why;
	char text[400];
};

static void become_a(void)
{
	if (setgroups(0, NULL) || setgid(USER_A) || setuid(USER_A))
		_exit(1);
}

static void become_b(void)
{
	if (setgroups(0, NULL) || setgid(USER_B) || setuid(USER_B))
		_exit(1);
}

/* Root as in a container without CAP_SYS_PTRACE. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (syscall(SYS_capset, &header, none) != 0)
		_exit(1);
}

static void look(void *argument)
{
	struct look *at = argument;

	at->become();
	at->ret = open_failure(at->pid, &at->why, at->text, sizeof(at->text));
}

static void sleep_as_a(void *argument)
{
	become_a();
	*(volatile uint64_t *)argument = 1;
	sleep_for_ever(NULL);
}

/* Look at @p pid as somebody else, and expect @p part among the words of the refusal. */
static void expect_denied(pid_t pid, void (*become)(void), const char *part)
{
	struct look *at = child_share(sizeof(*at));
	pid_t looker;
	int status;

	*at = (struct look){ .pid = pid, .become = become };
	looker = child_start(look, at);
	assert_int_equal(looker, waitpid(looker, &status, 0));
	assert_int_equal(0, status);
	assert_int_equal(-1, at->ret);
	assert_int_equal(FAILURE_DENIED, at->why.kind);
	if (!strstr(at->text, part))
		fail_msg("\"%s\" does not say \"%s\"", at->text, part);
	munmap(at, sizeof(*at));
}

static void test_permission(void **state)
{
	volatile uint64_t *ready;
	pid_t of_a, of_root;
	bool yama = access("/proc/sys/kernel/yama/ptrace_scope", F_OK) == 0;

	(void)state;
	if (geteuid() != 0) {
		printf("[ SKIPPED  ] permission: this test needs root to become two users\n");
		skip();
	}
	ready = child_share(sizeof(*ready));
	of_a = child_start(sleep_as_a, (void *)(uintptr_t)ready);
	of_root = child_start(sleep_for_ever, NULL);
	assert_true(child_await(ready, 1));
	expect_denied(of_a, become_b, "of user nobody: use sudo");
	expect_denied(of_root, become_b, "of user root: use sudo");
	expect_denied(of_root, drop_capabilities, "even as root");
	/* setuid(2) made it undumpable, which closes it to its own user. */
	expect_denied(of_a, become_a, yama ? "not permitted" : "protected itself");
	child_end(of_a);
	child_end(of_root);
}

static void test_yama_text(void **state)
{
	const struct failure why = { .kind = FAILURE_DENIED, .errnum = EPERM, .step = "x" };
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	char text[400];
	int scope = 0;

	(void)state;
	if (!file || fscanf(file, "%d", &scope) != 1 || scope == 0 ||
	    (geteuid() == 0 && scope != 3)) {
		printf("[ SKIPPED  ] Yama's texts: its setting does not matter here\n");
		if (file)
			fclose(file);
		skip();
	}
	fclose(file);
	attach_explain(getpid(), &why, text, sizeof(text));
	assert_non_null(strstr(text, "kernel.yama.ptrace_scope is"));
}

static void test_short_explanations(void **state)
{
	static const enum failure_kind kinds[] = { FAILURE_DENIED, FAILURE_BUSY, FAILURE_GONE,
						   FAILURE_NOT_FOUND, FAILURE_LIMIT };
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct failure why = { .kind = kinds[i], .step = "look", .address = 1 };

		for (size_t len = 1; len < sizeof(text); len++) {
			memset(text, '#', sizeof(text));
			attach_explain(getpid(), &why, text, len);
			assert_true(strlen(text) < len);
			assert_int_equal('#', text[len]);
		}
	}
}

/* ---- Fate ------------------------------------------------------------------------------- */

static void exec_on_request(void *argument)
{
	child_await(argument, 1);
	execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	_exit(1);
}

static void test_fate(void **state)
{
	uint64_t *go = child_share(sizeof(*go));
	pid_t pid = child_start(exec_on_request, go);
	struct attach_process *process;
	struct failure why;

	(void)state;
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	assert_int_equal(pid, attach_process_pid(process));
	assert_int_equal(ATTACH_FATE_SAME, attach_process_fate(process));
	*go = 1;
	CHILD_AWAIT(attach_process_fate(process) != ATTACH_FATE_SAME);
	assert_int_equal(ATTACH_FATE_EXEC, attach_process_fate(process));
	assert_true(child_await_state(pid, "S")); /* the addresses settle during the exec */
	attach_process_note_exec(process);
	assert_int_equal(ATTACH_FATE_SAME, attach_process_fate(process));
	kill(pid, SIGKILL);
	assert_true(child_await_state(pid, "Z"));
	assert_int_equal(ATTACH_FATE_ENDED, attach_process_fate(process));
	child_end(pid);
	assert_int_equal(ATTACH_FATE_ENDED, attach_process_fate(process));
	attach_process_close(process);
	attach_process_close(NULL);
}

/* Whether it lives is not known where we have no descriptor to look with. */
static void test_fate_without_descriptors(void **state)
{
	pid_t pid = child_start(exec_on_request, child_share(sizeof(uint64_t)));
	struct attach_process *process;
	struct rlimit limit, none;
	struct failure why;

	(void)state;
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &none));
	assert_int_equal(ATTACH_FATE_SAME, attach_process_fate(process));
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
	child_end(pid);
	assert_int_equal(ATTACH_FATE_ENDED, attach_process_fate(process));
	attach_process_close(process);
}

/* The same program again, at the same addresses: a shell that runs itself. */
static void test_exec_without_randomisation(void **state)
{
	char script[] = "trap 'exec /bin/sh -c \"$0\"' USR1; echo; while :; do sleep 0.01; done";
	struct attach_process *process;
	struct failure why;
	int ready[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(0, pipe(ready));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], STDOUT_FILENO);
		if (personality(ADDR_NO_RANDOMIZE) < 0)
			_exit(1);
		execl("/bin/sh", "/bin/sh", "-c", script, script, (char *)NULL);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(1, read(ready[0], &byte, 1));
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	assert_int_equal(ATTACH_FATE_SAME, attach_process_fate(process));
	kill(pid, SIGUSR1);
	CHILD_AWAIT(attach_process_fate(process) != ATTACH_FATE_SAME);
	assert_int_equal(ATTACH_FATE_EXEC, attach_process_fate(process));
	assert_int_equal(1, read(ready[0], &byte, 1));
	attach_process_note_exec(process);
	assert_int_equal(ATTACH_FATE_SAME, attach_process_fate(process));
	child_end(pid);
	close(ready[0]);
	attach_process_close(process);
}

static void *leave_later(void *argument)
{
	volatile uint64_t *numbers = argument;

	while (!numbers[0])
		child_nap_us(1000);
	_exit(0);
}

static void leave_main_thread(void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, leave_later, argument);
	pthread_exit(NULL);
}

/* The process goes on as long as one thread does; its memory is there too. */
static void test_main_thread_leaves(void **state)
{
	volatile uint64_t *numbers = child_share(4 * sizeof(*numbers));
	pid_t pid = child_start(leave_main_thread, (void *)(uintptr_t)numbers);
	struct attach_process *process;
	struct failure why;
	uint64_t got = 0;

	(void)state;
	numbers[1] = 4711;
	assert_true(child_await_state(pid, "Z"));
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	assert_int_not_equal(pid, attach_process_pid(process));
	assert_int_equal(ATTACH_FATE_SAME, attach_process_fate(process));
	assert_int_equal(0, attach_read(attach_process_reader(process),
					remote_addr_make((uintptr_t)&numbers[1]), &got, sizeof(got),
					&why));
	assert_int_equal(4711, got);
	numbers[0] = 1;
	CHILD_AWAIT(attach_process_fate(process) != ATTACH_FATE_SAME);
	assert_int_equal(ATTACH_FATE_ENDED, attach_process_fate(process));
	expect_failure(pid, FAILURE_NOT_FOUND, "zombie");
	child_end(pid);
	attach_process_close(process);
}

/* pause() for ever: an i386 program, by hand. ELF32 header, one program header, code. */
static const unsigned char small_i386[] = {
	0x7f, 'E',  'L',  'F',	1,    1,    1, 0, 0,	0,    0,    0,	  0,	0,    0,    0,
	2,    0,    3,	  0,	1,    0,    0, 0, 0x54, 0x80, 0x04, 0x08, 52,	0,    0,    0,
	0,    0,    0,	  0,	0,    0,    0, 0, 52,	0,    32,   0,	  1,	0,    40,   0,
	0,    0,    0,	  0,	1,    0,    0, 0, 0,	0,    0,    0,	  0,	0x80, 0x04, 0x08,
	0,    0x80, 0x04, 0x08, 0x5d, 0,    0, 0, 0x5d, 0,    0,    0,	  5,	0,    0,    0,
	0,    0x10, 0,	  0,	0xb8, 0x1d, 0, 0, 0,	0xcd, 0x80, 0xeb, 0xf7,
};

static void test_32_bit_program(void **state)
{
	char *const argv[] = { (char[]){ "small" }, NULL };
	int fd = memfd_create("small", MFD_CLOEXEC), running[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(0, pipe2(running, O_CLOEXEC));
	assert_int_equal(sizeof(small_i386), write(fd, small_i386, sizeof(small_i386)));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fexecve(fd, argv, argv + 1);
		_exit(errno == ENOEXEC && write(running[1], "", 1) == 1);
	}
	close(running[1]);
	/* Its end is closed by the exec. */
	if (read(running[0], &byte, 1) == 1) {
		child_end(pid);
		printf("[ SKIPPED  ] 32-bit programs: this kernel runs none\n");
		skip();
	}
	close(running[0]);
	assert_true(child_await_state(pid, "S"));
	close(fd);
	expect_failure(pid, FAILURE_NOT_FOUND, "32-bit program");
	child_end(pid);
}

/* ---- Reader ----------------------------------------------------------------------------- */

static void test_reader(void **state)
{
	/* The child has our memory, so that its bytes are known. */
	const size_t size = 64 * PAGE;
	uint8_t *bytes =
		mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct remote_addr at = remote_addr_make((uintptr_t)bytes);
	uint8_t *got = malloc(size + PAGE);
	const struct attach_reader *reader;
	struct attach_process *process;
	struct failure why;
	char text[32];
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	memcpy(bytes + size - 5, "tail", 5);
	munmap(bytes + size, PAGE);
	pid = child_start(sleep_for_ever, NULL);
	assert_int_equal(0, attach_process_open(pid, &process, &why));
	reader = attach_process_reader(process);
	assert_int_equal(0, attach_read(reader, at, got, size, &why));
	assert_memory_equal(bytes, got, size);
	assert_int_equal(0, attach_read(reader, at, got, 0, &why));
	/* The fault's address is the first that is not there. */
	assert_int_equal(-1, attach_read(reader, at, got, size + 1, &why));
	assert_int_equal(FAILURE_FAULT, why.kind);
	assert_int_equal(at.value + size, why.address);
	assert_int_equal(-1,
			 attach_read(reader, remote_addr_add(at, (int64_t)size + 3), got, 1, &why));
	assert_int_equal(at.value + size + 3, why.address);
	assert_int_equal(-1, attach_read(reader, remote_addr_make(0), got, 1, &why));
	assert_int_equal(0, why.address);
	assert_int_equal(FAILURE_FAULT, why.kind);
	assert_int_equal(-1, attach_read(reader, remote_addr_make(UINT64_MAX - 7), got, 8, &why));
	assert_int_equal(FAILURE_FAULT, why.kind);
	/* A string whose NUL is the last byte of its mapping. */
	assert_int_equal(0, attach_read_string(reader, remote_addr_add(at, (int64_t)size - 5), text,
					       sizeof(text), &why));
	assert_string_equal("tail", text);
	child_end(pid);
	assert_int_equal(-1, attach_read(reader, at, got, 8, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
	attach_process_close(process);
	munmap(bytes, size);
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_such_process),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_kernel_thread),
		cmocka_unit_test(test_ending),
		cmocka_unit_test(test_thread_id),
		cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_traced_process),
		cmocka_unit_test(test_permission),
		cmocka_unit_test(test_yama_text),
		cmocka_unit_test(test_short_explanations),
		cmocka_unit_test(test_fate),
		cmocka_unit_test(test_fate_without_descriptors),
		cmocka_unit_test(test_exec_without_randomisation),
		cmocka_unit_test(test_main_thread_leaves),
		cmocka_unit_test(test_32_bit_program),
		cmocka_unit_test(test_reader),
	};

	if (!child_can_trace())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
