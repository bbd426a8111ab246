/* SPDX-License-Identifier: MIT */
/* Private to daemon: how do processes pass descriptors to each other? */
#ifndef DAEMON_HELPER_H
#define DAEMON_HELPER_H

#include <stddef.h>
#include <sys/types.h>

/** Most descriptors of one message. */
enum { HELPER_FDS_MAX = 2 };

/**
 * Send a message with descriptors, which stay open here.
 * @param socket AF_UNIX, SOCK_SEQPACKET.
 * @return 0 or an errno: the other end is closed, or the kernel refuses more descriptors in
 * transit. Source: unix(7), SCM_RIGHTS; cmsg(3).
 */
int helper_send(int socket, const void *bytes, size_t len, const int *fds, size_t fd_count);

/**
 * Receive a message.
 * @param ret_fds @p fd_count descriptors, close-on-exec; -1 for each one that did not come.
 * @param flags Flags of recvmsg().
 * @return Its length, or -1 with errno set.
 */
ssize_t helper_receive(int socket, void *ret_bytes, size_t len, int *ret_fds, size_t fd_count,
		       int flags);

#endif
