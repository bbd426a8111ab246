/* SPDX-License-Identifier: MIT */
/* Private to daemon: how do recorder and writer talk to each other? */
#ifndef DAEMON_WRITER_MESSAGE_H
#define DAEMON_WRITER_MESSAGE_H

#include "daemon/stats.h"

/*
 * A message is a header and a body, in the machine's own byte order, because both ends are on one
 * machine:
 *
 *   recorder -> writer   HELLO     version; first message
 *                        FUNCTION  id, kind, address, lines, prototype, name, source,
 *                                  mapping with path and build-id
 *                        SAMPLE    time, pid, tid, name of the thread, state, trace and
 *                                  location, weight, heap, frames
 *                        NOTES     recording notes; before END
 *                        SNAPSHOT  time; write everything so far to the files
 *                        END       last message: finish the file
 *   sampler -> session   NUMBERS, PROCESS, VM, NOTICE, RESULT: see live_channel.h
 *   writer -> recorder   STATUS    errno (0 success), samples, each output's errno, files
 *                                  and bytes; last message
 */
enum message_type {
	MESSAGE_HELLO = 1,
	MESSAGE_FUNCTION,
	MESSAGE_SAMPLE,
	MESSAGE_END,
	MESSAGE_STATUS,
	/* For a live channel; bodies are structs of live_channel.h. */
	MESSAGE_NUMBERS,
	MESSAGE_PROCESS,
	MESSAGE_VM,
	MESSAGE_NOTICE,
	MESSAGE_RESULT,
	/* For a recording. */
	MESSAGE_NOTES,
	MESSAGE_SNAPSHOT,
};

enum {
	MESSAGE_VERSION = 8,
	/* A sample of the longest chain fits; a longer message is the sender's error. */
	MESSAGE_MAX_BYTES = 1 << 19,
	/* A writer that receives nothing for this time is stuck on its disk or pipe. */
	MESSAGE_PATIENCE_MS = 10000,
	/* Longest string in a FUNCTION message. */
	MESSAGE_STRING_MAX = 4096,
	/* Bytes of a thread's name with its NUL. Source: Linux, include/linux/sched.h,
	 * TASK_COMM_LEN. */
	MESSAGE_THREAD_NAME = 16,
};

struct message_header {
	uint32_t len; /* of the body */
	uint32_t type;
};

/** Result of a writer. */
struct message_status {
	int32_t errnum; /* 0: all files are complete */
	uint32_t reserved;
	uint64_t samples;
	struct daemon_output_result outputs[DAEMON_OUTPUTS_MAX];
};

/** An outgoing queue. */
struct message_queue {
	int fd;
	uint8_t *bytes;
	size_t sent, len, size; /* bytes before @p sent are no longer needed */
	bool stuck; /* the other end received nothing for a long time: do not wait for it again */
};

int message_queue_init(struct message_queue *queue, int fd, struct failure *why);
void message_queue_deinit(struct message_queue *queue);

int message_put_hello(struct message_queue *queue, struct failure *why);
int message_put_function(struct message_queue *queue, uint32_t id,
			 const struct format_function *function, struct failure *why);
int message_put_sample(struct message_queue *queue, const struct format_sample *sample,
		       struct failure *why);
int message_put_notes(struct message_queue *queue, const char *text, struct failure *why);
/** @param time_ns By clock_now_ns(): later samples belong to the next file. */
int message_put_snapshot(struct message_queue *queue, uint64_t time_ns, struct failure *why);
int message_put_end(struct message_queue *queue, struct failure *why);
/** Queue a message of a live channel with @p len bytes. */
int message_put_bytes(struct message_queue *queue, enum message_type type, const void *bytes,
		      size_t len, struct failure *why);
int message_put_status(struct message_queue *queue, const struct message_status *status,
		       struct failure *why);

/** Send what is queued. FAILURE_GONE (EPIPE) if the other end is closed; FAILURE_TIMEOUT if it
 * receives nothing for MESSAGE_PATIENCE_MS, and at every later call. */
int message_flush(struct message_queue *queue, struct failure *why);

/**
 * Send what can be sent without waiting.
 * @return 1 if all is sent, 0 if the rest has to wait, or -1.
 */
int message_flush_now(struct message_queue *queue, struct failure *why);

/** Bytes that wait in the queue. */
size_t message_queued(const struct message_queue *queue);

/** A received message; pointers into the receiver's buffer are valid until the next receive. */
struct message {
	enum message_type type;
	union {
		uint32_t version;
		struct {
			uint32_t id;
			struct format_function value;
			struct format_mapping mapping; /* of `value`, if it has one */
		} function;
		struct format_sample sample;
		struct message_status status;
		const char *notes;
		uint64_t snapshot_ns; /* by clock_now_ns() */
		struct {
			const uint8_t *bytes; /* not aligned */
			size_t len;
		} body; /* of a live channel's message */
	};
};

/** A receiver with its buffer. */
struct message_receiver {
	int fd;
	uint8_t *bytes;
	size_t begin, end;
	struct format_frame *frames;
	size_t frame_size;
	struct format_coroutine coroutines[FORMAT_COROUTINES_MAX];
	char thread[MESSAGE_THREAD_NAME];
};

int message_receiver_init(struct message_receiver *receiver, int fd, struct failure *why);
void message_receiver_deinit(struct message_receiver *receiver);

/**
 * Receive one message; blocks. Checks lengths and counts.
 * @return 1, 0 at the end of the stream, or -1: FAILURE_INVALID for a malformed message.
 */
int message_receive(struct message_receiver *receiver, struct message *ret_message,
		    struct failure *why);

/**
 * Receive one message without waiting.
 * @return 1; 2 if no complete message has arrived; 0 at the end of the stream, or -1.
 */
int message_receive_now(struct message_receiver *receiver, struct message *ret_message,
			struct failure *why);

/** Whether a complete message is in the buffer. */
bool message_is_ready(const struct message_receiver *receiver);

/**
 * Decode one message's body. Exposed for tests.
 * @return 0, or -1 with FAILURE_INVALID.
 */
int message_parse(struct message_receiver *receiver, uint32_t type, const uint8_t *body, size_t len,
		  struct message *ret_message, struct failure *why);

#endif
