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
#include "daemon/recorder/feed.h"
#include "daemon/targets/processes.h"

/** A watch whose sampler is this test. */
struct scene {
	struct daemon_watch *watch;
	struct message_queue queue;
	int fd;
};

static void set_up(struct scene *scene, bool greets)
{
	const struct format_live_options options = { 0 };
	struct daemon_watch *watch = calloc(1, sizeof(*watch));
	struct failure why;
	int fds[2];

	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	watch->fd = fds[0];
	watch->vitals.processes = calloc(DAEMON_PROCESSES_LISTED, sizeof(struct daemon_process));
	watch->vitals.start_ns = calloc(DAEMON_PROCESSES_LISTED, sizeof(uint64_t));
	watch->vitals.vms = calloc(FEED_VMS_MAX, sizeof(struct daemon_vm));
	assert_int_equal(0, message_receiver_init(&watch->receiver, fds[0], &why));
	assert_int_equal(0, format_live_create(&options, &watch->live, &why));
	*scene = (struct scene){ .watch = watch, .fd = fds[1] };
	assert_int_equal(0, message_queue_init(&scene->queue, fds[1], &why));
	if (greets)
		assert_int_equal(0, message_put_hello(&scene->queue, &why));
}

static void tear_down(struct scene *scene)
{
	daemon_watch_destroy(scene->watch);
	message_queue_deinit(&scene->queue);
	close(scene->fd);
}

static void put(struct scene *scene, enum message_type type, const void *body, size_t len)
{
	struct failure why;

	assert_int_equal(0, message_put_bytes(&scene->queue, type, body, len, &why));
}

/* Send all of it, and have it taken. */
static const struct daemon_vitals *take(struct scene *scene)
{
	struct failure why;

	message_flush(&scene->queue, &why);
	while (daemon_watch_take(scene->watch, &why) > 0)
		;
	return daemon_watch_vitals(scene->watch);
}

static void test_numbers(void **state)
{
	struct feed_numbers numbers = { .samples = 5, .ticks = 7, .vm_count = 1, .rate_hz = 199 };
	struct feed_vm vm = { .vm = { .pid = 3, .heap_bytes = 1000, .has_allocated = true } };
	const struct daemon_vitals *vitals;
	const struct daemon_moment *moment;
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
	vitals = take(&scene);
	assert_int_equal(5, vitals->samples);
	assert_int_equal(1, vitals->vm_count); /* the second one is gone */
	assert_int_equal(0, daemon_watch_refresh(scene.watch, &why));
	numbers.samples = 9;
	numbers.outcomes[DAEMON_IDLE] = 3;
	put(&scene, MESSAGE_NUMBERS, &numbers, sizeof(numbers));
	vm.index = 0;
	vm.vm.allocated_bytes = 800;
	put(&scene, MESSAGE_VM, &vm, sizeof(vm));
	take(&scene);
	assert_int_equal(0, daemon_watch_refresh(scene.watch, &why));
	moment = daemon_watch_history(scene.watch, 0);
	assert_int_equal(4, moment->samples);
	assert_int_equal(1, moment->outcomes[DAEMON_IDLE]);
	assert_int_equal(300, moment->allocated_bytes);
	assert_int_equal(1000, moment->heap_bytes);
	assert_int_equal(0, daemon_watch_history(scene.watch, 1)->allocated_bytes);
	assert_null(daemon_watch_history(scene.watch, 2));
	tear_down(&scene);
}

static void test_texts(void **state)
{
	struct feed_text text = { 0 };
	struct feed_process process = { .process = { .pid = 4 } };
	const struct daemon_vitals *vitals;
	struct scene scene;

	(void)state;
	set_up(&scene, true);
	memset(text.text, '\033', sizeof(text.text)); /* not terminated */
	put(&scene, MESSAGE_NOTICE, &text, sizeof(text));
	memset(process.process.name, '\n', sizeof(process.process.name));
	put(&scene, MESSAGE_PROCESS, &process, sizeof(process));
	vitals = take(&scene);
	assert_int_equal(1, vitals->notice_count);
	assert_int_equal(sizeof(text.text) - 1, strlen(vitals->notice));
	assert_null(strchr(vitals->notice, '\033'));
	assert_int_equal(1, vitals->process_count);
	assert_null(strchr(vitals->processes[0].name, '\n'));
	assert_false(vitals->ended);
	text.end = DAEMON_END_TARGET;
	snprintf(text.text, sizeof(text.text), "process 4 ended");
	put(&scene, MESSAGE_RESULT, &text, sizeof(text));
	vitals = take(&scene);
	assert_true(vitals->ended);
	assert_int_equal(DAEMON_END_TARGET, vitals->end);
	assert_string_equal("process 4 ended", vitals->text);
	tear_down(&scene);
}

/* What no sampler says ends the watch, and nothing else. */
static void test_malformed(void **state)
{
	struct feed_process process = { .index = DAEMON_PROCESSES_LISTED };
	struct feed_vm vm = { .index = FEED_VMS_MAX };
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
		{ MESSAGE_END, "", 0, true },
		{ MESSAGE_STATUS, &status, sizeof(status), true },
		{ MESSAGE_NOTICE, "", 0, true },
		{ MESSAGE_VM, &vm, sizeof(vm), false },
		{ MESSAGE_ACCOUNT, "x", 1, true },
		{ MESSAGE_SNAPSHOT, &noon, sizeof(noon), true },
		{ MESSAGE_SNAPSHOT + 1, "", 0, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct daemon_vitals *vitals;
		struct scene scene;

		set_up(&scene, cases[i].greets);
		put(&scene, cases[i].type, cases[i].body, cases[i].len);
		vitals = take(&scene);
		assert_true(vitals->ended);
		assert_int_equal(DAEMON_END_SYSTEM, vitals->end);
		assert_int_equal(-1, daemon_watch_fd(scene.watch));
		assert_int_equal(0, vitals->process_count + vitals->vm_count);
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
	assert_int_equal(0, format_live_query(daemon_watch_profile(scene.watch),
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
	struct daemon_watch watch = { .fd = -1 };
	unsigned long long ignored;
	struct failure why;
	char byte;

	(void)state;
	assert_int_equal(0, watch_start_sampler(&options, &watch.pid, &watch.fd, &why));
	/* Its first word, or its end: not reaped yet, it tells what it ignored all the same. */
	assert_true(recv(watch.fd, &byte, 1, 0) >= 0);
	ignored = ignored_by(watch.pid);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_true(ignored >> (keys[i] - 1) & 1);
	watch_end_sampler(&watch);
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
	while (!feed_is_full(recorder))
		feed_notice(recorder, "a.lua [3] ended");
	full = message_queued(queue);
	for (int i = 0; i < 1000; i++)
		feed_notice(recorder, "a.lua [3] ended");
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
	options.feed_fd = fds[0];
	recorder->options = &options;
	recorder->stats = &stats;
	recorder->targets = targets;
	recorder->target_count = 1;
	assert_int_equal(0, feed_start(recorder));
	assert_int_equal(0, recorder_announce(recorder, &function, &id, &why));
	assert_true(feed_tell(recorder, FEED_INTERVAL_NS));
	assert_true(of.has_root); /* nothing was lost */
	while (!feed_is_full(recorder))
		feed_notice(recorder, "a.lua [3] ended");
	full = message_queued(queue);
	assert_int_equal(0, recorder_announce(recorder, &function, &next, &why));
	assert_int_equal(full, message_queued(queue));
	assert_int_not_equal(id, next);
	assert_true(feed_tell(recorder, 2 * (uint64_t)FEED_INTERVAL_NS));
	assert_true(of.has_root); /* there is no room yet */
	drain(queue, fds[1]);
	assert_true(feed_tell(recorder, 3 * (uint64_t)FEED_INTERVAL_NS));
	assert_false(of.has_root);
	close(fds[1]);
	feed_finish(recorder);
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
