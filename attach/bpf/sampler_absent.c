/* SPDX-License-Identifier: MIT */
/* What does the sampler do if ljprof was built without clang or libbpf? The kernel copies no
 * thread. */
#include "attach/bpf.h"
#include "attach/failure.h"

#include <errno.h>

int attach_sampler_create(const struct attach_sampler_object *object, unsigned rate_hz,
			  struct attach_sampler **ret_sampler, struct failure *why)
{
	(void)object, (void)rate_hz, (void)ret_sampler;
	return failure_set_errno(why, ENOSYS, 0, "sample from inside the kernel");
}

void attach_sampler_destroy(struct attach_sampler *sampler)
{
	(void)sampler;
}

int attach_sampler_program(const struct attach_sampler *sampler)
{
	(void)sampler;
	return -1;
}

int attach_sampler_open_event(int program_fd, const struct attach_sampler_request *request,
			      struct attach_sampler_event *ret_event, struct failure *why)
{
	(void)program_fd, (void)ret_event;
	return failure_set_errno(why, ENOSYS, request->tid, "sample from inside the kernel");
}

void attach_sampler_close_event(const struct attach_sampler_event *event)
{
	(void)event;
}

int attach_sampler_begin(struct attach_sampler *sampler, const struct attach_sampler_opener *opener,
			 struct failure *why)
{
	(void)sampler, (void)opener;
	return failure_set_errno(why, ENOSYS, 0, "map the kernel's copies");
}

int attach_sampler_add(struct attach_sampler *sampler, pid_t pid, pid_t tid, void *context,
		       const struct attach_sampler_plan *first,
		       struct attach_sampler_plan **ret_plan, struct failure *why)
{
	(void)sampler, (void)pid, (void)context, (void)first, (void)ret_plan;
	return failure_set_errno(why, ENOSYS, tid, "sample from inside the kernel");
}

size_t attach_sampler_take_events(struct attach_sampler *sampler, uint64_t until_ns,
				  attach_sampler_refused *refused, void *context)
{
	(void)sampler, (void)until_ns, (void)refused, (void)context;
	return 0;
}

void attach_sampler_remove(struct attach_sampler *sampler, struct attach_sampler_plan *plan)
{
	(void)sampler, (void)plan;
}

void attach_sampler_end(struct attach_sampler *sampler)
{
	(void)sampler;
}

void *attach_sampler_known(struct attach_sampler *sampler)
{
	(void)sampler;
	return NULL;
}

bool attach_sampler_is_slowed(const struct attach_sampler *sampler)
{
	(void)sampler;
	return false;
}

double attach_sampler_fill(const struct attach_sampler *sampler)
{
	(void)sampler;
	return 0;
}

bool attach_sampler_drain(struct attach_sampler *sampler, struct attach_image *image,
			  attach_sampler_take *take, void *context)
{
	(void)sampler, (void)image, (void)take, (void)context;
	return true;
}
