/* SPDX-License-Identifier: MIT */
/* How do descriptors come from a process that may open more? */
#ifndef DAEMON_HELPER_H
#define DAEMON_HELPER_H

#include <stddef.h>
#include <sys/types.h>

/** Descriptors that come with one message, at most. */
enum { HELPER_FDS_MAX = 2 };

/**
 * Send a message with descriptors, which stay open here.
 * @param socket Of AF_UNIX, SOCK_SEQPACKET.
 * @return 0 or an errno: nobody is there, or there is no room for descriptors that are under way.
 * Source: unix(7), SCM_RIGHTS; cmsg(3).
 */
int helper_send(int socket, const void *bytes, size_t len, const int *fds, size_t fd_count);

/**
 * Receive one. @param ret_fds @p fd_count of them; -1 those that did not come. Close-on-exec.
 * @param flags Of recvmsg(). @return Its length, or -1 with errno set.
 */
ssize_t helper_receive(int socket, void *ret_bytes, size_t len, int *ret_fds, size_t fd_count,
		       int flags);

#endif
