/* SPDX-License-Identifier: MIT */
/* How are messages packed, sent, received and checked? */
#include "daemon/writer/message.h"
#include "attach/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/array.h"
#include "daemon/tick_clock.h"

/* ---- Sending ---------------------------------------------------------------------------- */

int message_queue_init(struct message_queue *queue, int fd, struct failure *why)
{
	*queue = (struct message_queue){ .fd = fd, .size = 64 * 1024 };
	queue->bytes = malloc(queue->size);
	if (!queue->bytes)
		return failure_set_errno(why, ENOMEM, 0, "queue a message");
	return 0;
}

void message_queue_deinit(struct message_queue *queue)
{
	free(queue->bytes);
	queue->bytes = NULL;
}

size_t message_queued(const struct message_queue *queue)
{
	return queue->len - queue->sent;
}

/* Reserve room for a message with a body of @p len bytes, and write its header. */
static uint8_t *start_message(struct message_queue *queue, enum message_type type, size_t len,
			      struct failure *why)
{
	struct message_header header = { .len = (uint32_t)len, .type = type };
	size_t need = queue->len + sizeof(header) + len;
	uint8_t *body;

	if (len > MESSAGE_MAX_BYTES) {
		failure_set(why, FAILURE_LIMIT, 0, 0, 0, "send a message of this size");
		return NULL;
	}
	if (!ARRAY_RESERVE(queue->bytes, queue->size, need)) {
		failure_set_errno(why, ENOMEM, 0, "queue a message");
		return NULL;
	}
	memcpy(queue->bytes + queue->len, &header, sizeof(header));
	body = queue->bytes + queue->len + sizeof(header);
	queue->len = need;
	return body;
}

static uint8_t *put(uint8_t *to, const void *bytes, size_t len)
{
	if (len)
		memcpy(to, bytes, len);
	return to + len;
}

int message_put_hello(struct message_queue *queue, struct failure *why)
{
	const uint32_t version = MESSAGE_VERSION;
	uint8_t *body = start_message(queue, MESSAGE_HELLO, sizeof(version), why);

	if (!body)
		return -1;
	put(body, &version, sizeof(version));
	return 0;
}

/* Fixed part of a FUNCTION body; the strings follow, each with its NUL. */
struct function_body {
	uint32_t id, kind;
	uint64_t address;
	int64_t first_line;
	uint64_t proto;
	int64_t proto_line;
	uint64_t start, limit, offset; /* of the mapping */
	/* With NUL; 0 for NULL. Without a path there is no mapping. */
	uint32_t name_len, source_len, path_len, build_id_len;
};

static uint32_t string_len(const char *text)
{
	return text ? (uint32_t)strnlen(text, MESSAGE_STRING_MAX - 1) + 1 : 0;
}

static uint8_t *put_string(uint8_t *to, const char *text, uint32_t len)
{
	if (!len)
		return to;
	to = put(to, text, len - 1);
	*to = '\0';
	return to + 1;
}

int message_put_function(struct message_queue *queue, uint32_t id,
			 const struct format_function *function, struct failure *why)
{
	static const struct format_mapping none = { 0 };
	const struct format_mapping *mapping = function->mapping ? function->mapping : &none;
	const struct function_body fixed = {
		.id = id,
		.kind = function->kind,
		.address = function->address,
		.first_line = function->first_line,
		.proto = function->proto,
		.proto_line = function->proto_line,
		.name_len = string_len(function->name),
		.source_len = string_len(function->source),
		.start = mapping->start,
		.limit = mapping->limit,
		.offset = mapping->offset,
		.path_len = string_len(mapping->path),
		.build_id_len = string_len(mapping->build_id),
	};
	uint8_t *body = start_message(queue, MESSAGE_FUNCTION,
				      sizeof(fixed) + fixed.name_len + fixed.source_len +
					      fixed.path_len + fixed.build_id_len,
				      why);

	if (!body)
		return -1;
	body = put(body, &fixed, sizeof(fixed));
	body = put_string(body, function->name, fixed.name_len);
	body = put_string(body, function->source, fixed.source_len);
	body = put_string(body, mapping->path, fixed.path_len);
	put_string(body, mapping->build_id, fixed.build_id_len);
	return 0;
}

struct sample_body {
	uint64_t time_ns, heap_bytes;
	int32_t pid, tid;
	uint32_t state, trace, trace_function, compiled, weight, full, asleep, frame_count,
		coroutine_count, unused;
	char thread[MESSAGE_THREAD_NAME]; /* "" for NULL */
};

struct frame_body {
	uint64_t address;
	uint32_t function, line, trace, approximate;
};

struct coroutine_body {
	uint64_t address;
	uint32_t function, is_main;
};

static uint8_t *put_frames(uint8_t *to, const struct format_sample *sample)
{
	for (uint32_t i = 0; i < sample->frame_count; i++) {
		const struct frame_body frame = {
			.address = sample->frames[i].address,
			.function = sample->frames[i].function,
			.line = sample->frames[i].line,
			.trace = sample->frames[i].trace,
			.approximate = sample->frames[i].approximate,
		};

		to = put(to, &frame, sizeof(frame));
	}
	return to;
}

static void put_coroutines(uint8_t *to, const struct format_sample *sample)
{
	for (uint32_t i = 0; i < sample->coroutine_count; i++) {
		const struct coroutine_body coroutine = {
			.address = sample->coroutines[i].address,
			.function = sample->coroutines[i].function,
			.is_main = sample->coroutines[i].is_main,
		};

		to = put(to, &coroutine, sizeof(coroutine));
	}
}

int message_put_sample(struct message_queue *queue, const struct format_sample *sample,
		       struct failure *why)
{
	struct sample_body fixed = {
		.time_ns = sample->time_ns,
		.pid = sample->pid,
		.tid = sample->tid,
		.state = sample->state,
		.trace = sample->trace,
		.trace_function = sample->trace_function,
		.compiled = sample->compiled,
		.weight = sample->weight,
		.full = sample->full,
		.asleep = sample->is_asleep,
		.heap_bytes = sample->heap_bytes,
		.frame_count = sample->frame_count,
		.coroutine_count = sample->coroutine_count,
	};
	uint8_t *body =
		start_message(queue, MESSAGE_SAMPLE,
			      sizeof(fixed) + sample->frame_count * sizeof(struct frame_body) +
				      sample->coroutine_count * sizeof(struct coroutine_body),
			      why);

	if (!body)
		return -1;
	if (sample->thread)
		memcpy(fixed.thread, sample->thread,
		       strnlen(sample->thread, MESSAGE_THREAD_NAME - 1));
	body = put(body, &fixed, sizeof(fixed));
	body = put_frames(body, sample);
	put_coroutines(body, sample);
	return 0;
}

int message_put_notes(struct message_queue *queue, const char *text, struct failure *why)
{
	uint32_t len = string_len(text);
	uint8_t *body = start_message(queue, MESSAGE_NOTES, len, why);

	if (!body)
		return -1;
	put_string(body, text, len);
	return 0;
}

int message_put_snapshot(struct message_queue *queue, uint64_t time_ns, struct failure *why)
{
	return message_put_bytes(queue, MESSAGE_SNAPSHOT, &time_ns, sizeof(time_ns), why);
}

int message_put_end(struct message_queue *queue, struct failure *why)
{
	return start_message(queue, MESSAGE_END, 0, why) ? 0 : -1;
}

int message_put_bytes(struct message_queue *queue, enum message_type type, const void *bytes,
		      size_t len, struct failure *why)
{
	uint8_t *body = start_message(queue, type, len, why);

	if (!body)
		return -1;
	put(body, bytes, len);
	return 0;
}

int message_put_status(struct message_queue *queue, const struct message_status *status,
		       struct failure *why)
{
	return message_put_bytes(queue, MESSAGE_STATUS, status, sizeof(*status), why);
}

/* Wait until the other end receives something. Signals do not extend the wait. */
static int await_room(struct message_queue *queue, uint64_t end_ms, struct failure *why)
{
	struct pollfd poller = { .fd = queue->fd, .events = POLLOUT };
	uint64_t time_ms = clock_now_ms();
	int got = 0;

	if (!queue->stuck && time_ms < end_ms)
		got = poll(&poller, 1, (int)(end_ms - time_ms));
	if (got < 0 && errno != EINTR)
		return failure_set_errno(why, errno, 0, "send samples to the writer");
	if (got != 0)
		return 0;
	queue->stuck = true;
	return failure_set(why, FAILURE_TIMEOUT, 0, 0, 0, "send samples to the writer");
}

/* Send what can be sent. @return 0 if all is sent, 1 if the rest would have to wait but @p wait is
 * false, or -1. */
static int send_from(struct message_queue *queue, size_t *done, bool wait, struct failure *why)
{
	uint64_t end_ms = clock_now_ms() + MESSAGE_PATIENCE_MS;

	while (*done < queue->len) {
		ssize_t part = send(queue->fd, queue->bytes + *done, queue->len - *done,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (part >= 0) {
			*done += (size_t)part;
			end_ms = clock_now_ms() + MESSAGE_PATIENCE_MS;
			continue;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK) {
			if (!wait)
				return 1;
			if (await_room(queue, end_ms, why) != 0)
				return -1;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			return failure_set(why, FAILURE_GONE, errno, 0, 0,
					   "send samples to the writer");
		} else if (errno != EINTR) {
			return failure_set_errno(why, errno, 0, "send samples to the writer");
		}
	}
	return 0;
}

static int flush(struct message_queue *queue, bool wait, struct failure *why)
{
	int ret = send_from(queue, &queue->sent, wait, why);

	/* Keep only the unsent rest, because a message is never sent twice. Move it to the front
	 * seldom, because it may be large. */
	if (queue->sent > queue->len / 2) {
		memmove(queue->bytes, queue->bytes + queue->sent, queue->len - queue->sent);
		queue->len -= queue->sent;
		queue->sent = 0;
	}
	return ret;
}

int message_flush(struct message_queue *queue, struct failure *why)
{
	return flush(queue, true, why);
}

int message_flush_now(struct message_queue *queue, struct failure *why)
{
	int ret = flush(queue, false, why);

	return ret < 0 ? -1 : !ret;
}

/* ---- Receiving -------------------------------------------------------------------------- */

int message_receiver_init(struct message_receiver *receiver, int fd, struct failure *why)
{
	*receiver = (struct message_receiver){ .fd = fd };
	receiver->bytes = malloc(MESSAGE_MAX_BYTES + sizeof(struct message_header));
	if (!receiver->bytes)
		return failure_set_errno(why, ENOMEM, 0, "receive messages");
	return 0;
}

void message_receiver_deinit(struct message_receiver *receiver)
{
	free(receiver->bytes);
	free(receiver->frames);
	receiver->bytes = NULL;
	receiver->frames = NULL;
}

static int malformed(struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, 0, "understand a message");
}

/* Get a string of @p len bytes with its only NUL at the end. */
static bool get_string(const uint8_t **at, const uint8_t *end, uint32_t len, const char **ret_text)
{
	*ret_text = NULL;
	if (len == 0)
		return true;
	if (len > MESSAGE_STRING_MAX || len > (size_t)(end - *at) ||
	    memchr(*at, '\0', len) != *at + len - 1)
		return false;
	*ret_text = (const char *)*at;
	*at += len;
	return true;
}

static int parse_function(const uint8_t *body, size_t len, struct message *ret_message,
			  struct failure *why)
{
	const uint8_t *end = body + len;
	struct format_function *value = &ret_message->function.value;
	struct format_mapping *mapping = &ret_message->function.mapping;
	struct function_body fixed;

	if (len < sizeof(fixed))
		return malformed(why);
	memcpy(&fixed, body, sizeof(fixed));
	body += sizeof(fixed);
	if (fixed.kind >= FORMAT_KIND_COUNT ||
	    !get_string(&body, end, fixed.name_len, &value->name) ||
	    !get_string(&body, end, fixed.source_len, &value->source) ||
	    !get_string(&body, end, fixed.path_len, &mapping->path) ||
	    !get_string(&body, end, fixed.build_id_len, &mapping->build_id) || body != end)
		return malformed(why);
	mapping->start = fixed.start;
	mapping->limit = fixed.limit;
	mapping->offset = fixed.offset;
	value->mapping = mapping->path ? mapping : NULL;
	value->file = NULL;
	ret_message->function.id = fixed.id;
	value->kind = (enum format_kind)fixed.kind;
	value->address = fixed.address;
	value->first_line = fixed.first_line;
	value->proto = fixed.proto;
	value->proto_line = fixed.proto_line;
	return 0;
}

static int parse_notes(const uint8_t *body, size_t len, struct message *ret_message,
		       struct failure *why)
{
	const uint8_t *at = body;

	if (len == 0 || len > MESSAGE_STRING_MAX ||
	    !get_string(&at, body + len, (uint32_t)len, &ret_message->notes))
		return malformed(why);
	return 0;
}

static int grow_frames(struct message_receiver *receiver, size_t count, struct failure *why)
{
	return ARRAY_RESERVE(receiver->frames, receiver->frame_size, count)
		       ? 0
		       : failure_set_errno(why, ENOMEM, 0, "receive a sample");
}

static void get_frames(struct message_receiver *receiver, const uint8_t *body, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct frame_body frame;

		memcpy(&frame, body + i * sizeof(frame), sizeof(frame));
		receiver->frames[i] = (struct format_frame){ .address = frame.address,
							     .function = frame.function,
							     .line = frame.line,
							     .trace = frame.trace,
							     .approximate = frame.approximate };
	}
}

static void get_coroutines(struct message_receiver *receiver, const uint8_t *body, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct coroutine_body coroutine;

		memcpy(&coroutine, body + i * sizeof(coroutine), sizeof(coroutine));
		receiver->coroutines[i] =
			(struct format_coroutine){ .address = coroutine.address,
						   .function = coroutine.function,
						   .is_main = coroutine.is_main != 0 };
	}
}

static int parse_sample(struct message_receiver *receiver, const uint8_t *body, size_t len,
			struct message *ret_message, struct failure *why)
{
	struct sample_body fixed;

	if (len < sizeof(fixed))
		return malformed(why);
	memcpy(&fixed, body, sizeof(fixed));
	body += sizeof(fixed);
	if (fixed.coroutine_count > FORMAT_COROUTINES_MAX ||
	    len - sizeof(fixed) != (uint64_t)fixed.frame_count * sizeof(struct frame_body) +
					   fixed.coroutine_count * sizeof(struct coroutine_body) ||
	    fixed.state >= FORMAT_STATE_COUNT || fixed.compiled >= FORMAT_COMPILED_COUNT ||
	    memchr(fixed.thread, '\0', sizeof(fixed.thread)) == NULL)
		return malformed(why);
	if (grow_frames(receiver, fixed.frame_count, why) != 0)
		return -1;
	get_frames(receiver, body, fixed.frame_count);
	get_coroutines(receiver, body + fixed.frame_count * sizeof(struct frame_body),
		       fixed.coroutine_count);
	memcpy(receiver->thread, fixed.thread, sizeof(receiver->thread));
	ret_message->sample = (struct format_sample){
		.time_ns = fixed.time_ns,
		.pid = fixed.pid,
		.tid = fixed.tid,
		.thread = *receiver->thread ? receiver->thread : NULL,
		.state = (enum format_state)fixed.state,
		.trace = fixed.trace,
		.trace_function = fixed.trace_function,
		.compiled = (enum format_compiled)fixed.compiled,
		.weight = fixed.weight,
		.full = fixed.full,
		.is_asleep = fixed.asleep,
		.heap_bytes = fixed.heap_bytes,
		.frames = receiver->frames,
		.frame_count = fixed.frame_count,
		.coroutines = receiver->coroutines,
		.coroutine_count = fixed.coroutine_count,
	};
	return 0;
}

int message_parse(struct message_receiver *receiver, uint32_t type, const uint8_t *body, size_t len,
		  struct message *ret_message, struct failure *why)
{
	ret_message->type = (enum message_type)type;
	switch (type) {
	case MESSAGE_HELLO:
		if (len != sizeof(ret_message->version))
			return malformed(why);
		memcpy(&ret_message->version, body, len);
		return 0;
	case MESSAGE_FUNCTION:
		return parse_function(body, len, ret_message, why);
	case MESSAGE_SAMPLE:
		return parse_sample(receiver, body, len, ret_message, why);
	case MESSAGE_NOTES:
		return parse_notes(body, len, ret_message, why);
	case MESSAGE_SNAPSHOT:
		if (len != sizeof(ret_message->snapshot_ns))
			return malformed(why);
		memcpy(&ret_message->snapshot_ns, body, len);
		return 0;
	case MESSAGE_END:
		return len == 0 ? 0 : malformed(why);
	case MESSAGE_STATUS:
		if (len != sizeof(ret_message->status))
			return malformed(why);
		memcpy(&ret_message->status, body, len);
		return 0;
	case MESSAGE_NUMBERS:
	case MESSAGE_PROCESS:
	case MESSAGE_VM:
	case MESSAGE_NOTICE:
	case MESSAGE_RESULT:
		ret_message->body.bytes = body;
		ret_message->body.len = len;
		return 0;
	default:
		return malformed(why);
	}
}

static bool peek_header(const struct message_receiver *receiver, struct message_header *ret_header)
{
	if (receiver->end - receiver->begin < sizeof(*ret_header))
		return false;
	memcpy(ret_header, receiver->bytes + receiver->begin, sizeof(*ret_header));
	return true;
}

bool message_is_ready(const struct message_receiver *receiver)
{
	struct message_header header;

	return peek_header(receiver, &header) &&
	       receiver->end - receiver->begin - sizeof(header) >= header.len;
}

/* Read more bytes. @return 1, 0 at the end of the stream, 2 if it would have to wait but @p wait is
 * false, -1. */
static int fill(struct message_receiver *receiver, bool wait, struct failure *why)
{
	const size_t size = MESSAGE_MAX_BYTES + sizeof(struct message_header);
	ssize_t part;

	if (receiver->begin > 0) {
		memmove(receiver->bytes, receiver->bytes + receiver->begin,
			receiver->end - receiver->begin);
		receiver->end -= receiver->begin;
		receiver->begin = 0;
	}
	do {
		part = recv(receiver->fd, receiver->bytes + receiver->end, size - receiver->end,
			    wait ? 0 : MSG_DONTWAIT);
	} while (part < 0 && errno == EINTR);
	if (part < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 2;
	if (part < 0)
		return errno == ECONNRESET ? 0
					   : failure_set_errno(why, errno, 0, "receive messages");
	receiver->end += (size_t)part;
	return part > 0;
}

static int receive(struct message_receiver *receiver, bool wait, struct message *ret_message,
		   struct failure *why)
{
	struct message_header header;

	while (!message_is_ready(receiver)) {
		int got;

		if (peek_header(receiver, &header) && header.len > MESSAGE_MAX_BYTES)
			return malformed(why);
		got = fill(receiver, wait, why);
		if (got < 0 || got == 2)
			return got;
		if (got == 0)
			return receiver->end > receiver->begin ? malformed(why) : 0;
	}
	peek_header(receiver, &header);
	receiver->begin += sizeof(header) + header.len;
	if (message_parse(receiver, header.type, receiver->bytes + receiver->begin - header.len,
			  header.len, ret_message, why) != 0)
		return -1;
	return 1;
}

int message_receive(struct message_receiver *receiver, struct message *ret_message,
		    struct failure *why)
{
	return receive(receiver, true, ret_message, why);
}

int message_receive_now(struct message_receiver *receiver, struct message *ret_message,
			struct failure *why)
{
	return receive(receiver, false, ret_message, why);
}
