/* SPDX-License-Identifier: MIT */
#include "sample.h"

static struct fake_options chosen;

void sample_choose(int argc, char **argv)
{
	if (argc == 4)
		chosen.layout = fake_layout(argv[1], strcmp(argv[2], "gc64") == 0, argv[3]);
	else
		MUST(argc == 1);
}

int sample_setup(void **state)
{
	struct sample *sample = calloc(1, sizeof(*sample));

	if (!sample)
		return -1;
	sample->vm = fake_vm_create(&chosen);
	sample->state = fake_vm_open(sample->vm, true);
	*state = sample;
	return 0;
}

int sample_teardown(void **state)
{
	struct sample *sample = *state;

	luastate_destroy(sample->state);
	fake_vm_destroy(sample->vm);
	free(sample);
	return 0;
}

struct luastate_vm_frame *sample_cframe(struct sample *sample, uint64_t L, int32_t nres,
					uint64_t pc)
{
	struct luastate_vm_frame *frames = sample->vm_frames;

	assert_true(sample->vm_frame_count < SAMPLE_CFRAMES_MAX);
	memmove(frames + 1, frames, sample->vm_frame_count * sizeof(*frames));
	sample->vm_frame_count++;
	frames[0] = (struct luastate_vm_frame){
		.address = fake_cframe(sample->vm, L, nres, 0),
		.L = L,
		.frame.r[STATE_REG_PC] = pc,
	};
	/* The functions of C between this frame and the next. */
	fake_push(sample->vm, 0);
	return frames;
}

void sample_leaf(struct sample *sample, unsigned at, uint64_t base, uint64_t pc)
{
	sample->regs.r[ATTACH_REG_PC] = sample->vm->code + at;
	sample->regs.r[STATE_REG_BASE] = base;
	sample->regs.r[STATE_REG_PC] = pc;
	sample->regs.r[ATTACH_REG_SP] = sample->vm_frames[0].address;
	sample->vm_frames[0].leaf = true;
	sample->vm_frames[0].frame = sample->regs;
}

void sample_set_pc(struct sample *sample, size_t vm_frame, uint64_t pc)
{
	sample->vm_frames[vm_frame].frame.r[STATE_REG_PC] = pc;
}

struct luastate_memory sample_memory(const struct sample *sample)
{
	return (struct luastate_memory){ .stopped = &sample->vm->reader,
					 .any = &sample->vm->reader };
}

struct state_proto *sample_proto(struct sample *sample, uint64_t address)
{
	const struct luastate_memory memory = sample_memory(sample);
	const struct state_view view = { sample->state, &memory, sample->vm->layout,
					 sample->vm->G };

	return state_get_proto(&view, address, &sample->why);
}

void sample_walk(struct sample *sample)
{
	const struct luastate_memory memory = sample_memory(sample);

	luastate_begin_sample(sample->state, &sample->vm->reader);
	luastate_walk(sample->state, &memory, sample->vm_frames, sample->vm_frame_count,
		      &sample->chain);
}

void sample_expect(struct sample *sample, enum luastate_outcome outcome, size_t count,
		   const struct sample_frame *frames)
{
	sample_walk(sample);
	assert_int_equal(outcome, sample->chain.outcome);
	assert_int_equal(count, sample->chain.count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(frames[i].function, sample->chain.frames[i].function->address);
		assert_int_equal(frames[i].line, sample->chain.frames[i].line);
		assert_int_equal(frames[i].owner, sample->chain.frames[i].owner);
	}
}
