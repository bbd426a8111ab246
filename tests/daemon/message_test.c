/* SPDX-License-Identifier: MIT */
/* Messages between recorder and writer: round trips, and hostile bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/writer/message.h"
#include "tests/rounds.h"

#define PAGE 4096

/** Both ends of a connection. */
struct ends {
	int fds[2];
	struct message_queue queue;
	struct message_receiver receiver;
};

static int setup(void **state)
{
	static struct ends ends;
	struct failure why;

	*state = &ends;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.fds) != 0 ||
	       message_queue_init(&ends.queue, ends.fds[0], &why) != 0 ||
	       message_receiver_init(&ends.receiver, ends.fds[1], &why) != 0;
}

static int teardown(void **state)
{
	struct ends *ends = *state;

	message_queue_deinit(&ends->queue);
	message_receiver_deinit(&ends->receiver);
	close(ends->fds[0]);
	if (ends->fds[1] >= 0)
		close(ends->fds[1]);
	return 0;
}

static const struct format_mapping mapping = { .start = 0x7f0012340000,
					       .limit = 0x7f0012350000,
					       .offset = 0x1000,
					       .path = "/usr/lib/libfib.so",
					       .build_id = "0123abcd" };

static const struct format_function function = { .kind = FORMAT_KIND_LUA,
						 .mapping = &mapping,
						 .address = 0x7f0012345678,
						 .name = "fib",
						 .source = "@fib.lua",
						 .first_line = -1,
						 .proto = 0x7f0012345000,
						 .proto_line = -1 };

static const struct format_frame frames[] = {
	{ .address = 0xfedcba9876543210,
	  .function = 3,
	  .line = 77,
	  .trace = 65535,
	  .approximate = true },
	{ .address = 1, .function = UINT32_MAX, .line = 0 },
	{ 0 },
};

static const struct format_coroutine coroutines[] = {
	{ .address = 0x7f0000001000, .function = 7 },
	{ .address = 0x7f0000002000, .function = FORMAT_NO_FUNCTION, .is_main = true },
};

static const struct format_sample sample = { .time_ns = 0x1122334455667788,
					     .pid = 4711,
					     .tid = 4712,
					     .state = FORMAT_STATE_TRACE,
					     .trace = 9,
					     .trace_function = FORMAT_NO_FUNCTION,
					     .compiled = FORMAT_COMPILED_APPROXIMATE,
					     .weight = 3,
					     .full = true,
					     .is_asleep = true,
					     .frames = frames,
					     .frame_count = 3,
					     .coroutines = coroutines,
					     .coroutine_count = 2 };

static void receive(struct ends *ends, enum message_type type, struct message *ret_message)
{
	struct failure why;

	assert_int_equal(1, message_receive(&ends->receiver, ret_message, &why));
	assert_int_equal(type, ret_message->type);
}

static void expect_sample(const struct format_sample *got, uint32_t frame_count)
{
	assert_int_equal(sample.time_ns, got->time_ns);
	assert_int_equal(sample.pid, got->pid);
	assert_int_equal(sample.tid, got->tid);
	assert_int_equal(sample.state, got->state);
	assert_int_equal(sample.trace, got->trace);
	assert_int_equal(sample.trace_function, got->trace_function);
	assert_int_equal(sample.compiled, got->compiled);
	assert_int_equal(sample.weight, got->weight);
	assert_int_equal(sample.full, got->full);
	assert_int_equal(sample.is_asleep, got->is_asleep);
	assert_int_equal(frame_count, got->frame_count);
	assert_int_equal(2, got->coroutine_count);
	for (uint32_t i = 0; i < got->coroutine_count; i++) {
		assert_int_equal(coroutines[i].address, got->coroutines[i].address);
		assert_int_equal(coroutines[i].function, got->coroutines[i].function);
		assert_int_equal(coroutines[i].is_main, got->coroutines[i].is_main);
	}
	for (uint32_t i = 0; i < frame_count; i++) {
		assert_int_equal(frames[i].address, got->frames[i].address);
		assert_int_equal(frames[i].function, got->frames[i].function);
		assert_int_equal(frames[i].line, got->frames[i].line);
		assert_int_equal(frames[i].trace, got->frames[i].trace);
		assert_int_equal(frames[i].approximate, got->frames[i].approximate);
	}
}

static void expect_function(const struct message *message, uint32_t id)
{
	const struct format_function *got = &message->function.value;

	assert_int_equal(id, message->function.id);
	assert_int_equal(function.kind, got->kind);
	assert_int_equal(function.address, got->address);
	assert_int_equal(function.first_line, got->first_line);
	assert_int_equal(function.proto, got->proto);
	assert_int_equal(function.proto_line, got->proto_line);
	assert_string_equal(function.name, got->name);
	assert_string_equal(function.source, got->source);
	assert_non_null(got->mapping);
	assert_int_equal(mapping.start, got->mapping->start);
	assert_int_equal(mapping.limit, got->mapping->limit);
	assert_int_equal(mapping.offset, got->mapping->offset);
	assert_string_equal(mapping.path, got->mapping->path);
	assert_string_equal(mapping.build_id, got->mapping->build_id);
}

static void test_round_trips(void **state)
{
	const struct format_function bare = { .kind = FORMAT_KIND_PSEUDO, .name = "" };
	const struct message_status status = { .errnum = ENOSPC,
					       .samples = 7,
					       .outputs = { [15] = { .bytes = 1 << 20 } } };
	struct format_sample empty = sample;
	struct ends *ends = *state;
	struct message message;
	struct failure why;

	empty.frame_count = 0;
	assert_int_equal(0, message_put_hello(&ends->queue, &why));
	assert_int_equal(0, message_put_function(&ends->queue, 5, &function, &why));
	assert_int_equal(0, message_put_function(&ends->queue, 6, &bare, &why));
	assert_int_equal(0, message_put_sample(&ends->queue, &sample, &why));
	assert_int_equal(0, message_put_sample(&ends->queue, &empty, &why));
	assert_int_equal(0, message_put_status(&ends->queue, &status, &why));
	assert_int_equal(0, message_put_notes(&ends->queue, "ticks 1\nsamples 1\n", &why));
	assert_int_equal(0, message_put_end(&ends->queue, &why));
	assert_true(message_queued(&ends->queue) > 0);
	assert_false(message_is_ready(&ends->receiver));
	assert_int_equal(0, message_flush(&ends->queue, &why));
	assert_int_equal(0, message_queued(&ends->queue));

	receive(ends, MESSAGE_HELLO, &message);
	assert_int_equal(MESSAGE_VERSION, message.version);
	assert_true(message_is_ready(&ends->receiver));
	receive(ends, MESSAGE_FUNCTION, &message);
	expect_function(&message, 5);
	receive(ends, MESSAGE_FUNCTION, &message);
	assert_int_equal(6, message.function.id);
	assert_string_equal("", message.function.value.name);
	assert_null(message.function.value.source);
	assert_null(message.function.value.mapping);
	receive(ends, MESSAGE_SAMPLE, &message);
	expect_sample(&message.sample, 3);
	receive(ends, MESSAGE_SAMPLE, &message);
	expect_sample(&message.sample, 0);
	receive(ends, MESSAGE_STATUS, &message);
	assert_memory_equal(&status, &message.status, sizeof(status));
	receive(ends, MESSAGE_NOTES, &message);
	assert_string_equal("ticks 1\nsamples 1\n", message.notes);
	receive(ends, MESSAGE_END, &message);
	assert_false(message_is_ready(&ends->receiver));
	shutdown(ends->fds[0], SHUT_WR);
	assert_int_equal(0, message_receive(&ends->receiver, &message, &why));
	assert_int_equal(0, message_receive(&ends->receiver, &message, &why));
}

static void test_long_strings_are_cut(void **state)
{
	char text[MESSAGE_STRING_MAX * 2];
	struct format_function large = { .kind = FORMAT_KIND_LUA, .name = text, .source = text };
	struct ends *ends = *state;
	struct message message;
	struct failure why;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(0, message_put_function(&ends->queue, 0, &large, &why));
	assert_int_equal(0, message_flush(&ends->queue, &why));
	receive(ends, MESSAGE_FUNCTION, &message);
	assert_int_equal(MESSAGE_STRING_MAX - 1, strlen(message.function.value.name));
	assert_int_equal(MESSAGE_STRING_MAX - 1, strlen(message.function.value.source));
}

/* The longest sample that fits, and one frame more. */
static void test_largest_sample(void **state)
{
	const uint32_t many = MESSAGE_MAX_BYTES / 16;
	struct format_frame *large = calloc(many, sizeof(*large));
	struct format_sample longest = { .frames = large, .weight = 1 };
	struct ends *ends = *state;
	struct message message;
	struct failure why;
	uint32_t low = 0, high = many;
	pid_t pid;

	/* The bound in frames, found without knowing the message's layout. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		longest.frame_count = middle;
		ends->queue.len = 0;
		if (message_put_sample(&ends->queue, &longest, &why) == 0)
			low = middle;
		else
			high = middle;
	}
	assert_true(low > 6200); /* longer than any chain of the recorder */
	longest.frame_count = high;
	ends->queue.len = 0;
	assert_int_equal(-1, message_put_sample(&ends->queue, &longest, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_int_equal(0, message_queued(&ends->queue));
	longest.frame_count = low;
	assert_int_equal(0, message_put_sample(&ends->queue, &longest, &why));
	/* More than a socket takes at once: it needs a receiver. */
	pid = fork();
	if (pid == 0)
		_exit(message_flush(&ends->queue, &why) ? 1 : 0);
	receive(ends, MESSAGE_SAMPLE, &message);
	assert_int_equal(low, message.sample.frame_count);
	free(large);
}

static void test_other_end_closed(void **state)
{
	struct ends *ends = *state;
	struct failure why;

	close(ends->fds[1]);
	ends->fds[1] = -1;
	message_put_hello(&ends->queue, &why);
	assert_int_equal(-1, message_flush(&ends->queue, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
	assert_int_equal(EPIPE, why.errnum);
}

/* ---- Hostile bytes ---------------------------------------------------------------------- */

/* Parse a body that ends at a page which must not be touched. */
static int parse(struct ends *ends, uint32_t type, const uint8_t *body, size_t len)
{
	static uint8_t *room;
	uint8_t *at;
	struct message message;
	struct failure why = { 0 };
	int ret;

	if (!room) {
		room = mmap(NULL, PAGE * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		assert_true(room != MAP_FAILED);
		assert_int_equal(0, mprotect(room + PAGE, PAGE, PROT_NONE));
	}
	assert_true(len <= PAGE);
	at = room + PAGE - len;
	if (len)
		memcpy(at, body, len);
	ret = message_parse(&ends->receiver, type, at, len, &message, &why);
	if (ret != 0) {
		assert_int_equal(FAILURE_INVALID, why.kind);
	} else if (type == MESSAGE_FUNCTION) {
		const struct format_function *got = &message.function.value;

		assert_in_range(got->kind, 0, FORMAT_KIND_COUNT - 1);
		assert_true(!got->name || strlen(got->name) < len);
		assert_true(!got->source || strlen(got->source) < len);
		assert_true(!got->mapping || strlen(got->mapping->path) < len);
		assert_true(!got->mapping || !got->mapping->build_id ||
			    strlen(got->mapping->build_id) < len);
	} else if (type == MESSAGE_SAMPLE) {
		assert_in_range(message.sample.state, 0, FORMAT_STATE_COUNT - 1);
		assert_in_range(message.sample.compiled, 0, FORMAT_COMPILED_COUNT - 1);
		assert_true(message.sample.frame_count < len);
		assert_in_range(message.sample.coroutine_count, 0, FORMAT_COROUTINES_MAX);
	} else if (type == MESSAGE_NOTES) {
		assert_int_equal(len - 1, strlen(message.notes));
	}
	return ret;
}

/* Bodies of one message of each type. */
static void each_body(struct ends *ends, void (*visit)(struct ends *ends, uint32_t type,
						       const uint8_t *body, size_t len))
{
	const struct message_status status = { .samples = 7 };
	struct message_queue *queue = &ends->queue;
	struct message_header header;
	struct failure why;
	size_t at = 0;

	message_put_hello(queue, &why);
	message_put_function(queue, 5, &function, &why);
	message_put_sample(queue, &sample, &why);
	message_put_notes(queue, "ticks 1\n", &why);
	message_put_end(queue, &why);
	message_put_status(queue, &status, &why);
	for (; at < queue->len; at += sizeof(header) + header.len) {
		memcpy(&header, queue->bytes + at, sizeof(header));
		visit(ends, header.type, queue->bytes + at + sizeof(header), header.len);
	}
	assert_int_equal(queue->len, at);
}

static void cut(struct ends *ends, uint32_t type, const uint8_t *body, size_t len)
{
	uint8_t longer[1024];

	assert_int_equal(0, parse(ends, type, body, len));
	for (size_t part = 0; part < len; part++)
		assert_int_equal(-1, parse(ends, type, body, part));
	memcpy(longer, body, len);
	memset(longer + len, 0, sizeof(longer) - len);
	for (size_t more = 1; more < 100; more++)
		assert_int_equal(-1, parse(ends, type, longer, len + more));
}

static void test_truncations(void **state)
{
	each_body(*state, cut);
}

static void corrupt(struct ends *ends, uint32_t type, const uint8_t *body, size_t len)
{
	const unsigned step = 256 / test_rounds(256);
	uint8_t bytes[1024];

	for (size_t at = 0; at < len; at++)
		for (unsigned value = at % step; value < 256; value += step) {
			memcpy(bytes, body, len);
			bytes[at] = (uint8_t)value;
			parse(ends, type, bytes, len);
		}
}

static void test_corruptions(void **state)
{
	each_body(*state, corrupt);
}

static void overwrite(struct ends *ends, uint32_t type, const uint8_t *body, size_t len)
{
	static const uint32_t words[] = { 0xffffffff, 0x80000000, 0x7fffffff, 0xaaaaaab, 0x10000 };
	uint8_t bytes[1024];

	for (size_t at = 0; at + 4 <= len; at++)
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			memcpy(bytes, body, len);
			memcpy(bytes + at, &words[i], 4);
			parse(ends, type, bytes, len);
		}
}

static void test_hostile_numbers(void **state)
{
	each_body(*state, overwrite);
}

static void test_unknown_types(void **state)
{
	static const uint32_t types[] = { 0,   MESSAGE_SNAPSHOT + 1, MESSAGE_SNAPSHOT + 2,
					  256, 0x80000001,	     UINT32_MAX };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		assert_int_equal(-1, parse(*state, types[i], NULL, 0));
		assert_int_equal(-1, parse(*state, types[i], (const uint8_t *)"abcdefgh", 8));
	}
}

static void send_raw(struct ends *ends, const void *bytes, size_t len)
{
	assert_int_equal((ssize_t)len, send(ends->fds[0], bytes, len, 0));
}

static void test_oversize(void **state)
{
	const struct message_header header = { .len = MESSAGE_MAX_BYTES + 1,
					       .type = MESSAGE_SAMPLE };
	struct ends *ends = *state;
	struct message message;
	struct failure why;

	send_raw(ends, &header, sizeof(header));
	assert_int_equal(-1, message_receive(&ends->receiver, &message, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
}

/* A stream in single bytes, cut anywhere. */
static void test_stream_ends_inside_a_message(void **state)
{
	struct ends *ends = *state;
	struct message message;
	struct failure why;
	size_t len;

	message_put_hello(&ends->queue, &why);
	message_put_sample(&ends->queue, &sample, &why);
	len = ends->queue.len;
	for (size_t i = 0; i < len - 1; i++) {
		send_raw(ends, ends->queue.bytes + i, 1);
		if (i == sizeof(struct message_header) + 4)
			receive(ends, MESSAGE_HELLO, &message);
	}
	shutdown(ends->fds[0], SHUT_WR);
	assert_int_equal(-1, message_receive(&ends->receiver, &message, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
}

/* What does not go at once stays, in order, and goes later. */
static void test_flush_without_waiting(void **state)
{
	struct ends *ends = *state;
	unsigned sent = 0, received = 0;
	struct message message;
	struct failure why;
	int ret = 1;

	while (ret == 1 && sent < 100000) {
		assert_int_equal(0, message_put_function(&ends->queue, sent++, &function, &why));
		ret = message_flush_now(&ends->queue, &why);
	}
	assert_int_equal(0, ret);
	assert_true(message_queued(&ends->queue) > 0);
	assert_int_equal(0, message_flush_now(&ends->queue, &why));
	while (received < sent) {
		receive(ends, MESSAGE_FUNCTION, &message);
		assert_int_equal(received++, message.function.id);
		assert_true(message_flush_now(&ends->queue, &why) >= 0);
	}
	assert_int_equal(0, message_queued(&ends->queue));
	close(ends->fds[1]);
	ends->fds[1] = -1;
	assert_int_equal(0, message_put_function(&ends->queue, 0, &function, &why));
	assert_int_equal(-1, message_flush_now(&ends->queue, &why));
	assert_int_equal(FAILURE_GONE, why.kind);
}

int main(void)
{
#define MESSAGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		MESSAGE_TEST(test_round_trips),
		MESSAGE_TEST(test_long_strings_are_cut),
		MESSAGE_TEST(test_largest_sample),
		MESSAGE_TEST(test_other_end_closed),
		MESSAGE_TEST(test_truncations),
		MESSAGE_TEST(test_corruptions),
		MESSAGE_TEST(test_hostile_numbers),
		MESSAGE_TEST(test_unknown_types),
		MESSAGE_TEST(test_oversize),
		MESSAGE_TEST(test_stream_ends_inside_a_message),
		MESSAGE_TEST(test_flush_without_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
