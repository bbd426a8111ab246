/* SPDX-License-Identifier: MIT */
/* Private to luastate: the parts of the planner. All of it runs while a thread stands, but for
 * plan_ask_again() and plan_trace_after(). */
#ifndef LUASTATE_PLAN_PLAN_INTERNAL_H
#define LUASTATE_PLAN_PLAN_INTERNAL_H

#include "luastate/plan.h"
#include "luastate/state/state.h"

enum {
	/* LuaJIT's own bound, LUAI_MAXSTACK of 65500 slots, and its extra. */
	PLAN_STACK_MAX = 66000 * 8,
};

/** A coroutine's stack by its copied header: where it begins, and how far frames reach. */
struct plan_stack {
	uint64_t G, start, used_end, limit, vm_frame;
};

/** A reader over the image that asks for what is not there yet. */
struct plan_asking {
	struct attach_reader reader;
	struct attach_image *image;
	bool missed;
};

/** Before the first round. */
void plan_begin(struct luastate_plan_context *context);

/** One round behind the first. @return whether anything was asked for. */
bool plan_go_on(struct luastate_plan_context *context, struct attach_image *image, unsigned round);

void plan_want(struct attach_image *image, uint64_t start, uint64_t end);

/** The same, unless one range holds all of it already. */
void plan_want_once(struct attach_image *image, uint64_t start, uint64_t end);

/** Copied bytes, from whatever ranges: one that was predicted of something else may hold a part. */
bool plan_get(struct attach_image *image, uint64_t address, void *ret_bytes, size_t len);

bool plan_is_copied(struct attach_image *image, uint64_t address);

/** @param ret_asking Must stay where it is. */
void plan_begin_asking(struct plan_asking *ret_asking, struct attach_image *image);

bool plan_read_header(struct attach_image *image, const struct luastate_plan_thread *thread,
		      struct plan_stack *ret_stack);

/** Ask for what a frame of the last stop needed, as it most likely is there again. */
void plan_want_frame(const struct luastate *state, struct attach_image *image,
		     const struct luastate_plan_frame *frame);

/** Ask for what proves that a known prototype is the same still. */
void plan_want_identity(const struct luastate_layout *layout, struct attach_image *image,
			const struct state_proto *known);

/** Stages of a stop, see luastate_plan(). @return whether anything was asked for. */
bool plan_functions(struct luastate_plan_context *context, struct attach_image *image);
bool plan_protos(struct luastate_plan_context *context, struct attach_image *image);
bool plan_proto_parts(struct luastate_plan_context *context, struct attach_image *image);

/** The header of the running trace; more than once, as one read leads to the next. */
bool plan_trace(struct luastate_plan_context *context, struct attach_image *image);

/** Ask for the header of a trace that ran in the last stop, as it most likely does again. */
void plan_want_trace(const struct luastate *state, struct attach_image *image,
		     const struct luastate_plan_trace *trace);

/** Ask for the running trace's content. */
void plan_trace_after(const struct luastate_plan_context *context, struct attach_image *stopped,
		      struct attach_image *after);

/** Ask for what proves that the known prototypes that the stop did not read are the same still. */
void plan_ask_again(const struct luastate_plan_context *context, struct attach_image *stopped,
		    struct attach_image *after);

#endif
