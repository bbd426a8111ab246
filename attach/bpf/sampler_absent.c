/* SPDX-License-Identifier: MIT */
/* Without clang or libbpf at build time: the kernel copies no thread. */
#include "attach/bpf.h"
#include "attach/failure.h"

#include <errno.h>

int attach_tap_create(unsigned rate_hz, struct attach_tap **ret_tap, struct failure *why)
{
	(void)rate_hz, (void)ret_tap;
	return failure_set_errno(why, ENOSYS, 0, "sample from inside the kernel");
}

void attach_tap_destroy(struct attach_tap *tap)
{
	(void)tap;
}

int attach_tap_program(const struct attach_tap *tap)
{
	(void)tap;
	return -1;
}

int attach_tap_open_event(int program_fd, const struct attach_tap_request *request,
			  struct attach_tap_event *ret_event, struct failure *why)
{
	(void)program_fd, (void)ret_event;
	return failure_set_errno(why, ENOSYS, request->tid, "sample from inside the kernel");
}

void attach_tap_close_event(const struct attach_tap_event *event)
{
	(void)event;
}

int attach_tap_begin(struct attach_tap *tap, const struct attach_tap_opener *opener,
		     struct failure *why)
{
	(void)tap, (void)opener;
	return failure_set_errno(why, ENOSYS, 0, "map the kernel's copies");
}

int attach_tap_add(struct attach_tap *tap, pid_t pid, pid_t tid, void *context,
		   const struct attach_tap_plan *first, struct attach_tap_plan **ret_plan,
		   struct failure *why)
{
	(void)tap, (void)pid, (void)context, (void)first, (void)ret_plan;
	return failure_set_errno(why, ENOSYS, tid, "sample from inside the kernel");
}

size_t attach_tap_take_events(struct attach_tap *tap, uint64_t until_ns,
			      attach_tap_refused *refused, void *context)
{
	(void)tap, (void)until_ns, (void)refused, (void)context;
	return 0;
}

void attach_tap_remove(struct attach_tap *tap, struct attach_tap_plan *plan)
{
	(void)tap, (void)plan;
}

void attach_tap_end(struct attach_tap *tap)
{
	(void)tap;
}

uint64_t *attach_tap_known(struct attach_tap *tap)
{
	(void)tap;
	return NULL;
}

bool attach_tap_is_slowed(const struct attach_tap *tap)
{
	(void)tap;
	return false;
}

bool attach_tap_is_filling(const struct attach_tap *tap)
{
	(void)tap;
	return false;
}

bool attach_tap_drain(struct attach_tap *tap, struct attach_image *image, attach_tap_take *take,
		      void *context)
{
	(void)tap, (void)image, (void)take, (void)context;
	return true;
}
