/* SPDX-License-Identifier: MIT */
/* How do frames outlive the decoding of one image, with their own copies of all texts? */
#include "daemon/dump/frames.h"
#include "symbols/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/function_ids.h"

int frames_keep_function(void *context, const struct format_function *function, uint32_t *ret_id,
			 struct failure *why)
{
	return format_functions_add(context, function, ret_id, why);
}

void frames_deinit_frame(struct daemon_frame *frame)
{
	free(frame->name);
	free(frame->source);
	luastate_variables_destroy(frame->variables);
	*frame = (struct daemon_frame){ 0 };
}

void daemon_stack_deinit(struct daemon_stack *stack)
{
	for (size_t i = 0; i < stack->count; i++)
		frames_deinit_frame(&stack->frames[i]);
	free(stack->frames);
	*stack = (struct daemon_stack){ 0 };
}

/* The file of a C function is where its code is; that of compiled Lua code is its chunk. */
static const char *source_of(struct daemon_target *target, const struct format_function *function)
{
	struct symbols_function native;
	struct failure why;

	if (function->kind != FORMAT_KIND_CFUNC || !target->space)
		return function->source;
	return symbols_find_function(target->space, function->address, &native, &why) == 0
		       ? native.module
		       : NULL;
}

static int set_texts(struct daemon_target *target, const struct format_function *function,
		     struct daemon_frame *frame, struct failure *why)
{
	const char *source = source_of(target, function);

	frame->kind = function->kind;
	frame->first_line = function->first_line;
	frame->name = function->name ? strndup(function->name, FRAMES_TEXT_MAX_BYTES) : NULL;
	frame->source = source ? strndup(source, FRAMES_TEXT_MAX_BYTES) : NULL;
	if ((!function->name || frame->name) && (!source || frame->source))
		return 0;
	frames_deinit_frame(frame);
	return failure_set_errno(why, ENOMEM, 0, "keep a stack");
}

int frames_of_guest(struct daemon_target *target, const struct luastate_frame *frame,
		    struct daemon_frame *ret_frame, struct failure *why)
{
	struct format_function function;
	struct daemon_frame copy = {
		.line = frame->line,
		.pc = frame->pc ? frame->pc : frame->function->address,
		.trace = frame->trace,
		.approximate = frame->approximate,
	};

	target_describe_guest(target, frame->function, &function);
	if (set_texts(target, &function, &copy, why) != 0)
		return -1;
	*ret_frame = copy;
	return 0;
}

static int copy_frame(struct daemon_target *target, const struct format_functions *functions,
		      const struct format_frame *frame, struct daemon_frame *ret_frame,
		      struct failure *why)
{
	const struct format_function *function = format_functions_get(functions, frame->function);
	struct daemon_frame copy = { .line = frame->line,
				     .pc = frame->address,
				     .trace = frame->trace,
				     .approximate = frame->approximate };

	if (!function)
		return failure_set(why, FAILURE_INVALID, 0, 0, frame->function, "keep a stack");
	if (set_texts(target, function, &copy, why) != 0)
		return -1;
	*ret_frame = copy;
	return 0;
}

/* A VM that the thread is just entering or leaving has no coroutine yet. */
static void note_vm(struct daemon_target *target, const struct attach_reader *reader,
		    struct daemon_stack *stack)
{
	const struct luastate_vm *vm;
	struct failure why;

	for (size_t i = 0; i < target->vm_frame_count && !stack->L; i++)
		stack->L = target->vm_frames[i].L;
	vm = stack->L ? luastate_vm_of(target->lua, reader, stack->L, &why) : NULL;
	stack->G = vm ? vm->G : 0;
}

int frames_copy_stack(struct daemon_target *target, const struct format_functions *functions,
		      const struct attach_reader *reader, const struct format_sample *sample,
		      enum daemon_outcome outcome, struct daemon_stack *ret_stack,
		      struct failure *why)
{
	struct daemon_stack stack = { .outcome = outcome,
				      .state = sample->state,
				      .compiled = sample->compiled,
				      .trace = sample->trace };

	note_vm(target, reader, &stack);
	stack.frames = calloc(sample->frame_count + (size_t)1, sizeof(*stack.frames));
	if (!stack.frames)
		return failure_set_errno(why, ENOMEM, 0, "keep a stack");
	while (stack.count < sample->frame_count) {
		if (copy_frame(target, functions, &sample->frames[stack.count],
			       &stack.frames[stack.count], why) != 0) {
			daemon_stack_deinit(&stack);
			return -1;
		}
		stack.count++;
	}
	*ret_stack = stack;
	return 0;
}

void frames_read_variables(struct daemon_target *target, const struct luastate_memory *memory,
			   struct luastate_values_options *options, struct daemon_stack *stack)
{
	const struct luastate_chain *chain = &target->chain;
	struct failure why;

	for (size_t i = 0; i < stack->count; i++) {
		uint32_t guest = target->guests[i];

		if (guest == 0 || guest > chain->count || stack->frames[i].kind != FORMAT_KIND_LUA)
			continue;
		luastate_variables_destroy(stack->frames[i].variables);
		stack->frames[i].variables = NULL;
		luastate_read_variables(target->lua, memory, &chain->frames[guest - 1], options,
					&stack->frames[i].variables, &why);
	}
}
