/* SPDX-License-Identifier: MIT */
/* What do the parts of the planner share? Private to luastate. All of it runs while the thread is
 * stopped, except plan_ask_again() and plan_trace_after(). */
#ifndef LUASTATE_PLAN_PLAN_INTERNAL_H
#define LUASTATE_PLAN_PLAN_INTERNAL_H

#include "luastate/plan.h"
#include "luastate/state/state.h"

enum {
	/* LUAI_MAXSTACK, 65500 slots, and LuaJIT's extra slots; in bytes. */
	PLAN_STACK_MAX = 66000 * 8,
};

/** A coroutine's stack, from its copied header: its start, and how far frames reach. */
struct plan_stack {
	uint64_t G, start, used_end, limit, vm_frame;
};

/** A reader of the image that asks for the missing bytes. */
struct plan_asking {
	struct attach_reader reader;
	struct attach_image *image;
	bool missed;
};

/** Start a plan, before the first round. */
void plan_begin(struct luastate_plan_context *context);

/** Plan a round after the first. @return whether anything was asked for. */
bool plan_go_on(struct luastate_plan_context *context, struct attach_image *image, unsigned round);

void plan_want(struct attach_image *image, uint64_t start, uint64_t end);

/** Ask for a range, unless one copied range holds all of it. */
void plan_want_once(struct attach_image *image, uint64_t start, uint64_t end);

/**
 * Read copied bytes, even if they are spread over ranges that were predicted for different things.
 */
bool plan_get(struct attach_image *image, uint64_t address, void *ret_bytes, size_t len);

bool plan_is_copied(struct attach_image *image, uint64_t address);

/** Start a plan_asking. @param ret_asking Must not move. */
void plan_begin_asking(struct plan_asking *ret_asking, struct attach_image *image);

bool plan_read_header(struct attach_image *image, const struct luastate_plan_thread *thread,
		      struct plan_stack *ret_stack);

/** Ask for what a frame of the last stop needed, because it most likely recurs. */
void plan_want_frame(const struct luastate *state, struct attach_image *image,
		     const struct luastate_plan_frame *frame);

/** Ask for the bytes that prove a known prototype unchanged. */
void plan_want_identity(const struct luastate_layout *layout, struct attach_image *image,
			const struct state_proto *known);

/** Stages of a stop, see luastate_plan(). @return whether anything was asked for. */
bool plan_functions(struct luastate_plan_context *context, struct attach_image *image);
bool plan_protos(struct luastate_plan_context *context, struct attach_image *image);
bool plan_proto_parts(struct luastate_plan_context *context, struct attach_image *image);

/** Ask for the running trace's header. Needs several rounds, because one read leads to the next. */
bool plan_trace(struct luastate_plan_context *context, struct attach_image *image);

/** Ask for the header of the last stop's trace, because it most likely runs again. */
void plan_want_trace(const struct luastate *state, struct attach_image *image,
		     const struct luastate_plan_trace *trace);

/** Ask for the running trace's content, after the stop. */
void plan_trace_after(const struct luastate_plan_context *context, struct attach_image *stopped,
		      struct attach_image *after);

/**
 * Ask for the bytes that prove known prototypes unchanged, if the stop did not read them; after the
 * stop.
 */
void plan_ask_again(const struct luastate_plan_context *context, struct attach_image *stopped,
		    struct attach_image *after);

#endif
