/* SPDX-License-Identifier: MIT */
/* What a live session and its views do with messages of a hostile sampler.
 *
 * Each message of the input has a type, a length and a body. Types are brought into range, and
 * bodies of fixed size get that size, so that most messages are understood.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/live/live_session.h"
#include "daemon/recorder/live_channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	TYPES = MESSAGE_SNAPSHOT + 2,
	/* Less than a socket holds. */
	SENT_MAX = 64 * 1024,
};

/** Messages on their way. */
struct stream {
	uint8_t bytes[SENT_MAX];
	size_t len;
};

static size_t size_of(uint32_t type, size_t len)
{
	switch (type) {
	case MESSAGE_NUMBERS:
		return sizeof(struct live_numbers);
	case MESSAGE_PROCESS:
		return sizeof(struct live_process);
	case MESSAGE_VM:
		return sizeof(struct live_vm);
	case MESSAGE_NOTICE:
	case MESSAGE_RESULT:
		return sizeof(struct live_text);
	case MESSAGE_STATUS:
		return sizeof(struct message_status);
	default:
		return len;
	}
}

/* @return false if it does not fit. */
static bool put(struct stream *stream, uint32_t type, const uint8_t *bytes, size_t len)
{
	const struct message_header header = { .len = (uint32_t)size_of(type, len), .type = type };

	if (sizeof(header) + header.len > sizeof(stream->bytes) - stream->len)
		return false;
	memcpy(stream->bytes + stream->len, &header, sizeof(header));
	stream->len += sizeof(header);
	memset(stream->bytes + stream->len, 0, header.len);
	memcpy(stream->bytes + stream->len, bytes, len < header.len ? len : header.len);
	stream->len += header.len;
	return true;
}

static void make_stream(const uint8_t *data, size_t size, struct stream *ret_stream)
{
	const uint32_t version = MESSAGE_VERSION;
	bool fits = put(ret_stream, MESSAGE_HELLO, (const uint8_t *)&version, sizeof(version));

	while (fits && size >= 3) {
		size_t len = (size_t)data[1] << 8 | data[2];

		len = len < size - 3 ? len : size - 3;
		fits = put(ret_stream, data[0] % TYPES, data + 3, len);
		data += 3 + len;
		size -= 3 + len;
	}
}

static struct daemon_live *open_session(int fd)
{
	const struct format_live_options small = {
		.functions_max = 16, .lines_max = 16, .nodes_max = 64, .window = 2
	};
	struct daemon_live *session = calloc(1, sizeof(*session));
	struct failure why;

	if (!session)
		abort();
	session->fd = fd;
	session->header.processes = calloc(DAEMON_PROCESSES_LISTED, sizeof(struct daemon_process));
	session->header.start_ns = calloc(DAEMON_PROCESSES_LISTED, sizeof(uint64_t));
	session->header.vms = calloc(CHANNEL_VMS_MAX, sizeof(struct daemon_vm));
	if (!session->header.processes || !session->header.start_ns || !session->header.vms ||
	    message_receiver_init(&session->receiver, fd, &why) != 0 ||
	    format_live_create(&small, &session->live, &why) != 0)
		abort();
	return session;
}

/* Use what a screen uses. */
static void look(struct daemon_live *session)
{
	const struct daemon_live_header *header = daemon_live_header(session);
	struct format_live_rows rows;
	struct failure why;

	daemon_live_refresh(session, &why);
	for (int view = 0; view <= FORMAT_LIVE_PROCESSES; view++) {
		const struct format_live_query query = { .view = (enum format_live_view)view,
							 .no_natives = view & 1 };

		if (format_live_query(session->live, &query, &rows, &why) == 0)
			format_live_rows_deinit(&rows);
	}
	for (size_t i = 0; i < header->process_count; i++)
		if (strlen(header->processes[i].name) >= sizeof(header->processes[i].name) ||
		    !daemon_process_kind_name(header->processes[i].kind))
			abort();
	for (size_t i = 0; i < header->vm_count; i++)
		if (strlen(header->vms[i].version) >= sizeof(header->vms[i].version) ||
		    !daemon_gc_phase_name(header->vms[i].gc_phase))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	struct daemon_live *session;
	struct failure why;
	int fds[2];

	if (!stream || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		abort();
	make_stream(data, size, stream);
	if (send(fds[1], stream->bytes, stream->len, 0) != (ssize_t)stream->len)
		abort();
	session = open_session(fds[0]);
	daemon_live_take(session, &why);
	look(session);
	close(fds[1]);
	while (daemon_live_take(session, &why) > 0)
		;
	look(session);
	daemon_live_destroy(session);
	free(stream);
	return 0;
}
