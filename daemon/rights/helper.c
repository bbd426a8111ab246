/* SPDX-License-Identifier: MIT */
/* How do messages carry descriptors? */
#include "daemon/helper.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	char bytes[CMSG_SPACE(HELPER_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int helper_send(int socket, const void *bytes, size_t len, const int *fds, size_t fd_count)
{
	/* sendmsg() does not write there. */
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union control control = { 0 };
	struct cmsghdr *head;

	assert(fd_count <= HELPER_FDS_MAX);
	if (fd_count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(*fds));
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(fd_count * sizeof(*fds));
		memcpy(CMSG_DATA(head), fds, fd_count * sizeof(*fds));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

ssize_t helper_receive(int socket, void *ret_bytes, size_t len, int *ret_fds, size_t fd_count,
		       int flags)
{
	struct iovec part = { .iov_base = ret_bytes, .iov_len = len };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = CMSG_SPACE(fd_count * sizeof(*ret_fds)) };
	const struct cmsghdr *head;
	ssize_t got;

	assert(fd_count <= HELPER_FDS_MAX);
	for (size_t i = 0; i < fd_count; i++)
		ret_fds[i] = -1;
	do {
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
	} while (got < 0 && errno == EINTR);
	head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		for (size_t i = 0;
		     i < fd_count && head->cmsg_len >= CMSG_LEN((i + 1) * sizeof(int)); i++)
			memcpy(&ret_fds[i], CMSG_DATA(head) + i * sizeof(int), sizeof(int));
	return got;
}
