/* SPDX-License-Identifier: MIT */
/* How does a live view also count what the view of a program shows? */
#include "format/live/live_internal.h"

#include <stdlib.h>
#include <string.h>

#include "attach/array.h"

/** Id of a function that the view makes of a step, by the step's kind; announced with each sample.
 */
#define MADE_ID(kind) (UINT32_MAX - (uint32_t)(kind))

int live_program_create(const struct format_live_options *options,
			struct live_program **ret_program, struct failure *why)
{
	struct live_program *program = calloc(1, sizeof(*program));

	if (!program || live_create_plain(options, &program->live, why) != 0) {
		free(program);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count samples");
	}
	*ret_program = program;
	return 0;
}

void live_program_destroy(struct live_program *program)
{
	if (!program)
		return;
	format_live_destroy(program->live);
	format_text_deinit(&program->text);
	free(program->classes);
	free(program->steps);
	free(program->frames);
	free(program);
}

/** Make the frame of a step. */
static int make_frame(struct live_program *program, const struct format_live *from,
		      const struct format_sample *sample, struct view_step step,
		      struct format_frame *ret_frame, struct failure *why)
{
	const struct format_frame *frame = &sample->frames[sample->frame_count - 1 - step.frame];
	struct format_function function;

	*ret_frame = *frame;
	if (step.kind == VIEW_KEEP)
		return 0;
	*ret_frame = (struct format_frame){ .function = MADE_ID(step.kind) };
	if (!view_step_function(step.kind,
				&from->function_info[live_function_of(from, frame->function)].value,
				&program->text, &function))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a function");
	return format_live_function(program->live, ret_frame->function, &function, why);
}

int live_program_sample(struct live_program *program, const struct format_live *from,
			const struct format_sample *sample, struct failure *why)
{
	struct format_sample viewed = *sample;
	size_t count = sample->frame_count, steps;

	if (!ARRAY_RESERVE(program->classes, program->class_capacity, count) ||
	    !ARRAY_RESERVE(program->steps, program->step_capacity, count) ||
	    !ARRAY_RESERVE(program->frames, program->frame_capacity, count))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "count a sample");
	for (size_t i = 0; i < count; i++) {
		uint32_t id = live_function_of(from, sample->frames[count - 1 - i].function);

		program->classes[i] = from->function_info[id].class;
	}
	steps = view_reduce(program->classes, count, FORMAT_NATIVE_PROGRAM, program->steps);
	for (size_t i = 0; i < steps; i++)
		if (make_frame(program, from, sample, program->steps[i],
			       &program->frames[steps - 1 - i], why) != 0)
			return -1;
	viewed.frames = program->frames;
	viewed.frame_count = (uint32_t)steps;
	return format_live_sample(program->live, &viewed, why);
}
