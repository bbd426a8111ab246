/* SPDX-License-Identifier: MIT */
/* What a watch makes of what comes over its socket. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "daemon/live/live_session.h"
#include "daemon/live/live_start.h"
#include "daemon/recorder/live_channel.h"
#include "daemon/targets/processes.h"

/** A watch whose sampler is this test. */
struct scene {
	struct daemon_live *session;
	struct message_queue queue;
	int fd;
};

static void set_up(struct scene *scene, bool greets)
{
	const struct format_live_options options = { 0 };
	struct daemon_live *session = calloc(1, sizeof(*session));
	struct failure why;
	int fds[2];

	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	session->fd = fds[0];
	session->header.processes = calloc(DAEMON_PROCESSES_LISTED, sizeof(struct daemon_process));
	session->header.start_ns = calloc(DAEMON_PROCESSES_LISTED, sizeof(uint64_t));
	session->header.vms = calloc(CHANNEL_VMS_MAX, sizeof(struct daemon_vm));
	assert_int_equal(0, message_receiver_init(&session->receiver, fds[0], &why));
	assert_int_equal(0, format_live_create(&options, &session->live, &why));
	*scene = (struct scene){ .session = session, .fd = fds[1] };
	assert_int_equal(0, message_queue_init(&scene->queue, fds[1], &why));
	if (greets)
		assert_int_equal(0, message_put_hello(&scene->queue, &why));
}

static void tear_down(struct scene *scene)
{
	daemon_live_destroy(scene->session);
	message_queue_deinit(&scene->queue);
	close(scene->fd);
}

static void put(struct scene *scene, enum message_type type, const void *body, size_t len)
{
	struct failure why;

	assert_int_equal(0, message_put_bytes(&scene->queue, type, body, len, &why));
}

/* Send all of it, and have it taken. */
static const struct daemon_live_header *take(struct scene *scene)
{
	struct failure why;

	message_flush(&scene->queue, &why);
	while (daemon_live_take(scene->session, &why) > 0)
		;
	return daemon_live_header(scene->session);
}

static void test_numbers(void **state)
{
	struct live_numbers numbers = { .samples = 5, .ticks = 7, .vm_count = 1, .rate_hz = 199 };
	struct live_vm vm = { .vm = { .pid = 3, .heap_bytes = 1000, .has_allocated = true } };
	const struct daemon_live_header *header;
	const struct daemon_history_point *snapshot;
	struct scene scene;
	struct failure why;

	(void)state;
	set_up(&scene, true);
	numbers.outcomes[DAEMON_IDLE] = 2;
	vm.vm.allocated_bytes = 500;
	put(&scene, MESSAGE_VM, &vm, sizeof(vm));
	vm.index = 1;
	put(&scene, MESSAGE_VM, &vm, sizeof(vm));
	put(&scene, MESSAGE_NUMBERS, &numbers, sizeof(numbers));
	header = take(&scene);
	assert_int_equal(5, header->samples);
	assert_int_equal(1, header->vm_count); /* the second one is gone */
	assert_int_equal(0, daemon_live_refresh(scene.session, &why));
	numbers.samples = 9;
	numbers.outcomes[DAEMON_IDLE] = 3;
	put(&scene, MESSAGE_NUMBERS, &numbers, sizeof(numbers));
	vm.index = 0;
	vm.vm.allocated_bytes = 800;
	put(&scene, MESSAGE_VM, &vm, sizeof(vm));
	take(&scene);
	assert_int_equal(0, daemon_live_refresh(scene.session, &why));
	snapshot = daemon_live_history(scene.session, 0);
	assert_int_equal(4, snapshot->samples);
	assert_int_equal(1, snapshot->outcomes[DAEMON_IDLE]);
	assert_int_equal(300, snapshot->allocated_bytes);
	assert_int_equal(1000, snapshot->heap_bytes);
	assert_int_equal(0, daemon_live_history(scene.session, 1)->allocated_bytes);
	assert_null(daemon_live_history(scene.session, 2));
	tear_down(&scene);
}

static void test_texts(void **state)
{
	struct live_text text = { 0 };
	struct live_process process = { .process = { .pid = 4 } };
	const struct daemon_live_header *header;
	struct scene scene;

	(void)state;
	set_up(&scene, true);
	memset(text.text, '\033', sizeof(text.text)); /* not terminated */
	put(&scene, MESSAGE_NOTICE, &text, sizeof(text));
	memset(process.process.name, '\n', sizeof(process.process.name));
	put(&scene, MESSAGE_PROCESS, &process, sizeof(process));
	header = take(&scene);
	assert_int_equal(1, header->notice_count);
	assert_int_equal(sizeof(text.text) - 1, strlen(header->notice));
	assert_null(strchr(header->notice, '\033'));
	assert_int_equal(1, header->process_count);
	assert_null(strchr(header->processes[0].name, '\n'));
	assert_false(header->ended);
	text.end = DAEMON_END_TARGET;
	snprintf(text.text, sizeof(text.text), "process 4 ended");
	put(&scene, MESSAGE_RESULT, &text, sizeof(text));
	header = take(&scene);
	assert_true(header->ended);
	assert_int_equal(DAEMON_END_TARGET, header->end);
	assert_string_equal("process 4 ended", header->text);
	tear_down(&scene);
}

/* What no sampler says ends the watch, and nothing else. */
static void test_malformed(void **state)
{
	struct live_process process = { .index = DAEMON_PROCESSES_LISTED };
	struct live_vm vm = { .index = CHANNEL_VMS_MAX }, wrong_vm = { 0 };
	struct live_process wrong_process = { 0 };
	const struct message_status status = { 0 };
	const uint64_t noon = 12;
	const struct {
		enum message_type type;
		const void *body;
		size_t len;
		bool greets;
	} cases[] = {
		{ MESSAGE_NUMBERS, "x", 1, true },
		{ MESSAGE_PROCESS, &process, sizeof(process), true },
		{ MESSAGE_PROCESS, &process, sizeof(process) - 1, true },
		{ MESSAGE_VM, &vm, sizeof(vm), true },
		{ MESSAGE_PROCESS, &wrong_process, sizeof(wrong_process), true },
		{ MESSAGE_VM, &wrong_vm, sizeof(wrong_vm), true },
		{ MESSAGE_END, "", 0, true },
		{ MESSAGE_STATUS, &status, sizeof(status), true },
		{ MESSAGE_NOTICE, "", 0, true },
		{ MESSAGE_VM, &vm, sizeof(vm), false },
		{ MESSAGE_NOTES, "x", 1, true },
		{ MESSAGE_SNAPSHOT, &noon, sizeof(noon), true },
		{ MESSAGE_SNAPSHOT + 1, "", 0, true },
	};

	(void)state;
	/* Flags that are neither true nor false. */
	memset(&wrong_process.process.ended, 2, 1);
	memset(&wrong_vm.vm.is_counted, 2, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct daemon_live_header *header;
		struct scene scene;

		set_up(&scene, cases[i].greets);
		put(&scene, cases[i].type, cases[i].body, cases[i].len);
		header = take(&scene);
		assert_true(header->ended);
		assert_int_equal(DAEMON_END_SYSTEM, header->end);
		assert_int_equal(-1, daemon_live_fd(scene.session));
		assert_int_equal(0, header->process_count + header->vm_count);
		tear_down(&scene);
	}
}

static void test_samples(void **state)
{
	const struct format_function function = {
		.kind = FORMAT_KIND_LUA, .name = "burn", .source = "@a.lua", .first_line = 3
	};
	struct format_frame frames[] = { { .function = 0, .line = 4 }, { .function = 9 } };
	struct format_sample sample = { .weight = 1,
					.trace_function = FORMAT_NO_FUNCTION,
					.frames = frames,
					.frame_count = 2 };
	struct format_live_rows rows;
	struct scene scene;
	struct failure why;

	(void)state;
	set_up(&scene, true);
	assert_int_equal(0, message_put_function(&scene.queue, 0, &function, &why));
	assert_int_equal(0, message_put_sample(&scene.queue, &sample, &why));
	assert_false(take(&scene)->ended);
	assert_int_equal(0, format_live_query(daemon_live_profile(scene.session),
					      &(struct format_live_query){ 0 }, &rows, &why));
	assert_int_equal(2, rows.count);
	assert_string_equal("burn", rows.rows[0].name);
	assert_string_equal("[other]", rows.rows[1].name); /* of a function that was never told */
	format_live_rows_deinit(&rows);
	close(scene.fd);
	scene.fd = -1;
	assert_true(take(&scene)->ended);
	assert_non_null(strstr(take(&scene)->text, "died"));
	tear_down(&scene);
}

/* Signals that a process ignores. */
static unsigned long long ignored_by(pid_t pid)
{
	char path[64], line[256];
	unsigned long long mask = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "SigIgn: %llx", &mask) == 1)
			break;
	fclose(file);
	return mask;
}

/* No key stops a sampler, as a thread of the target may stand then. */
static void test_keys_are_not_for_the_sampler(void **state)
{
	static const int keys[] = { SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP };
	const pid_t self = getpid();
	const struct daemon_options options = {
		.pids = &self, .pid_count = 1, .mode = DAEMON_MODE_CALLGRAPH, .rate_hz = 100
	};
	struct daemon_live session = { .fd = -1 };
	unsigned long long ignored;
	struct failure why;
	char byte;

	(void)state;
	assert_int_equal(0, live_start_sampler(&options, &session.pid, &session.fd, &why));
	/* Its first word, or its end: not reaped yet, it tells what it ignored all the same. */
	assert_true(recv(session.fd, &byte, 1, 0) >= 0);
	ignored = ignored_by(session.pid);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_true(ignored >> (keys[i] - 1) & 1);
	live_end_sampler(&session);
}

/* Processes come and go without end while nobody reads. */
static void test_notices_are_bounded(void **state)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct message_queue *queue = &recorder->writer.queue;
	struct failure why;
	size_t full;

	(void)state;
	assert_int_equal(0, message_queue_init(queue, -1, &why));
	while (!live_channel_is_full(recorder))
		live_channel_notice(recorder, "a.lua [3] ended");
	full = message_queued(queue);
	for (int i = 0; i < 1000; i++)
		live_channel_notice(recorder, "a.lua [3] ended");
	assert_int_equal(full, message_queued(queue));
	message_queue_deinit(queue);
	free(recorder);
}

/* Read what is sent, as a screen that is looked at again. */
static void drain(struct message_queue *queue, int fd)
{
	char bytes[65536];
	struct failure why;

	while (message_queued(queue) > 0) {
		message_flush_now(queue, &why);
		while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
	}
}

/* What found no room is announced anew once there is some, and only then. */
static void test_lost_functions_come_again(void **state)
{
	const struct format_function function = { .kind = FORMAT_KIND_LUA, .name = "burn" };
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct message_queue *queue = &recorder->writer.queue;
	struct recorder_target of = { .has_root = true }, *targets[] = { &of };
	struct daemon_options options = { 0 };
	struct daemon_stats stats = { 0 };
	uint32_t id, next;
	struct failure why;
	size_t full;
	int fds[2];

	(void)state;
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	options.channel_fd = fds[0];
	recorder->options = &options;
	recorder->stats = &stats;
	recorder->targets = targets;
	recorder->target_count = 1;
	assert_int_equal(0, live_channel_start(recorder));
	assert_int_equal(0, recorder_announce(recorder, &function, &id, &why));
	assert_true(live_channel_update(recorder, CHANNEL_INTERVAL_NS));
	assert_true(of.has_root); /* nothing was lost */
	while (!live_channel_is_full(recorder))
		live_channel_notice(recorder, "a.lua [3] ended");
	full = message_queued(queue);
	assert_int_equal(0, recorder_announce(recorder, &function, &next, &why));
	assert_int_equal(full, message_queued(queue));
	assert_int_not_equal(id, next);
	assert_true(live_channel_update(recorder, 2 * (uint64_t)CHANNEL_INTERVAL_NS));
	assert_true(of.has_root); /* there is no room yet */
	drain(queue, fds[1]);
	assert_true(live_channel_update(recorder, 3 * (uint64_t)CHANNEL_INTERVAL_NS));
	assert_false(of.has_root);
	close(fds[1]);
	live_channel_finish(recorder);
	close(fds[0]);
	free(recorder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_keys_are_not_for_the_sampler),
		cmocka_unit_test(test_notices_are_bounded),
		cmocka_unit_test(test_lost_functions_come_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
