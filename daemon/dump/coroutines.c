/* SPDX-License-Identifier: MIT */
/*
 * Which coroutines have all VMs of a target, read from a copy or a core file?
 *
 * A hundred thousand coroutines wait at a handful of locations, so equal stacks are stored once.
 * Stacks with variables are stored separately, but the budget of values keeps them few. Functions
 * of locations are named last, when all call sites have been read.
 */
#include "daemon/dump/coroutines.h"
#include "attach/clock.h"
#include "luastate/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/hash.h"
#include "daemon/dump/frames.h"
#include "daemon/tick_clock.h"

enum {
	/* Limits what a hostile heap makes us allocate: 40 bytes for each coroutine, some 200 for
	 * each frame of distinct stacks, and copies of the frames' names. */
	COROUTINES_MAX = 2 * 1000 * 1000,
	FRAMES_MAX = 1000 * 1000,
	NAMES_MAX_BYTES = 128 << 20,
	/* Threads whose stacks are walked for their running coroutines. */
	RUNS_MAX = 1024,
};

/** Two frames with equal keys are equal. */
struct key {
	uint64_t function, pc;
	uint32_t line, trace;
};

/** Coroutines with equal stacks. */
struct kept {
	size_t index; /* in the list of stacks */
	size_t count;
	enum luastate_outcome outcome;
	struct luastate_frame *frames;
	struct luastate_variables **variables; /* by frame; NULL if none were requested */
	struct kept *next;		       /* the entry that was added before */
	UT_hash_handle hh;
	struct key keys[]; /* one for each frame, then one for the outcome and the owner */
};

/** A stack that a thread's registers point to. */
struct run {
	uint64_t L;
	struct daemon_stack stack;
	size_t index; /* in the list of stacks; SIZE_MAX: not visited yet */
};

/** Coroutines being read. */
struct reading {
	struct daemon_target *target;
	const struct coroutines_source *source;
	struct daemon_coroutines *out;
	struct daemon_coroutine_vm *vm;
	size_t room, total, frames, name_bytes;
	struct kept *kept, *last;
	struct key *keys; /* keys of the stack to look up */
	size_t key_room;
	struct run runs[RUNS_MAX];
	size_t run_count;
	struct luastate_values_options values; /* with the rest of their budget */
	bool out_of_memory;
};

/* ---- Threads ---------------------------------------------------------------------------- */

/* @return NULL if none are requested, or there are none. */
static struct luastate_variables *read_variables(struct reading *reading,
						 const struct luastate_frame *frame)
{
	const struct coroutines_source *source = reading->source;
	struct luastate_variables *variables;
	struct failure why;

	if (!source->values || luastate_read_variables(reading->target->lua, source->heap, frame,
						       &reading->values, &variables, &why) != 0)
		return NULL;
	return variables;
}

/* Keep the frames of the newest coroutine on a thread's stack, which was just walked. */
static int keep_newest(struct reading *reading, enum daemon_outcome outcome, struct run *run,
		       struct failure *why)
{
	struct daemon_target *target = reading->target;
	const struct luastate_chain *chain = &target->chain;

	run->index = SIZE_MAX;
	for (size_t i = 0; i < target->vm_frame_count && !run->L; i++)
		run->L = target->vm_frames[i].L;
	run->stack = (struct daemon_stack){ .outcome = outcome, .trace = chain->trace };
	run->stack.frames = calloc(chain->count + 1, sizeof(*run->stack.frames));
	if (!run->stack.frames)
		return failure_set_errno(why, ENOMEM, 0, "keep a stack");
	for (size_t i = 0; i < chain->count; i++) {
		const struct luastate_frame *frame = &chain->frames[i];

		if (frame->owner >= target->vm_frame_count ||
		    target->vm_frames[frame->owner].L != run->L)
			continue;
		if (frames_of_guest(target, frame, &run->stack.frames[run->stack.count], why) != 0)
			return -1;
		run->stack.frames[run->stack.count++].variables = read_variables(reading, frame);
	}
	return 0;
}

static void read_run(struct reading *reading, struct attach_image *image)
{
	const struct luastate_memory memory = { .stopped = reading->source->snapshot,
						.any = reading->source->memory->any };
	struct run *run = &reading->runs[reading->run_count];
	struct format_sample sample = { .weight = 1 };
	enum daemon_outcome outcome;
	struct failure why;

	*run = (struct run){ 0 };
	if (target_decode(reading->target, image, &memory, &sample, &outcome, &why) != 0 ||
	    reading->target->vm_frame_count == 0)
		return;
	if (keep_newest(reading, outcome, run, &why) == 0 && run->L && run->stack.count)
		reading->run_count++;
	else
		daemon_stack_deinit(&run->stack);
}

static void read_runs(struct reading *reading)
{
	struct attach_image *image = attach_image_create();

	for (size_t i = 0; image && i < reading->source->register_count; i++) {
		if (reading->run_count == RUNS_MAX || clock_now_ns() >= reading->source->end_ns)
			break;
		*attach_image_registers(image) = reading->source->registers[i];
		read_run(reading, image);
	}
	attach_image_destroy(image);
}

static struct run *find_run(struct reading *reading, uint64_t L)
{
	for (size_t i = 0; i < reading->run_count; i++)
		if (reading->runs[i].L == L)
			return &reading->runs[i];
	return NULL;
}

/* ---- Equal stacks ----------------------------------------------------------------------- */

/* Whether the coroutine gets its own stack, because its variables are read. */
static bool has_own_stack(const struct reading *reading)
{
	return reading->source->values && !reading->values.is_exhausted;
}

static bool fill_keys(struct reading *reading, const struct luastate_coroutine *coroutine)
{
	size_t count = coroutine->frame_count;

	if (!ARRAY_RESERVE(reading->keys, reading->key_room, count + 1))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct luastate_frame *frame = &coroutine->frames[i];

		reading->keys[i] = (struct key){ .function = (uint64_t)(uintptr_t)frame->function,
						 .pc = frame->pc,
						 .line = frame->line,
						 .trace = frame->trace };
	}
	reading->keys[count] = (struct key){ .function = coroutine->outcome,
					     .pc = has_own_stack(reading) ? coroutine->L : 0 };
	return true;
}

/* @return false if memory is out. */
static bool keep_variables(struct reading *reading, struct kept *kept)
{
	if (!has_own_stack(reading))
		return true;
	kept->variables = calloc(kept->count + 1, sizeof(*kept->variables));
	for (size_t i = 0; kept->variables && i < kept->count; i++)
		kept->variables[i] = read_variables(reading, &kept->frames[i]);
	return kept->variables;
}

static struct kept *add_kept(struct reading *reading, const struct luastate_coroutine *coroutine)
{
	size_t count = coroutine->frame_count, len = (count + 1) * sizeof(struct key);
	struct kept *kept = malloc(sizeof(*kept) + len);

	if (!kept)
		return NULL;
	*kept = (struct kept){ .index = reading->out->stack_count,
			       .count = count,
			       .outcome = coroutine->outcome,
			       .frames = malloc((count + 1) * sizeof(*kept->frames)) };
	if (!kept->frames) {
		free(kept);
		return NULL;
	}
	memcpy(kept->keys, reading->keys, len);
	if (count)
		memcpy(kept->frames, coroutine->frames, count * sizeof(*kept->frames));
	if (!keep_variables(reading, kept)) {
		free(kept->frames);
		free(kept);
		return NULL;
	}
	kept->next = reading->last;
	reading->last = kept;
	reading->out->stack_count++;
	/* If memory is out, a later equal stack is stored again. */
	HASH_ADD(hh, reading->kept, keys, len, kept);
	return kept;
}

/* @return false if memory is out. */
static bool keep_stack(struct reading *reading, const struct luastate_coroutine *coroutine,
		       size_t *ret_index)
{
	struct luastate_coroutine shown = *coroutine;
	struct kept *kept = NULL;

	/* Too many distinct stacks: list the coroutine without its frames. */
	if (reading->frames + shown.frame_count > FRAMES_MAX) {
		shown.frame_count = 0;
		shown.outcome = LUASTATE_TRUNCATED;
		reading->out->is_truncated = true;
	}
	if (!fill_keys(reading, &shown))
		return false;
	HASH_FIND(hh, reading->kept, reading->keys, (shown.frame_count + 1) * sizeof(struct key),
		  kept);
	if (!kept) {
		kept = add_kept(reading, &shown);
		reading->frames += shown.frame_count;
	}
	if (kept)
		*ret_index = kept->index;
	return kept;
}

static void free_kept(struct reading *reading)
{
	HASH_CLEAR(hh, reading->kept);
	while (reading->last) {
		struct kept *kept = reading->last;

		reading->last = kept->next;
		for (size_t i = 0; kept->variables && i < kept->count; i++)
			luastate_variables_destroy(kept->variables[i]);
		free(kept->variables);
		free(kept->frames);
		free(kept);
	}
}

/* ---- Coroutines ------------------------------------------------------------------------- */

/* A running coroutine has the stack of its thread. */
static bool take_stack(struct reading *reading, const struct luastate_coroutine *coroutine,
		       size_t *ret_index)
{
	struct run *run = coroutine->status == LUASTATE_COROUTINE_RUNNING
				  ? find_run(reading, coroutine->L)
				  : NULL;

	if (!run)
		return keep_stack(reading, coroutine, ret_index);
	if (run->index == SIZE_MAX)
		run->index = reading->out->stack_count++;
	*ret_index = run->index;
	return true;
}

static bool visit(void *context, const struct luastate_coroutine *coroutine)
{
	struct reading *reading = context;
	struct daemon_coroutine item = { .L = coroutine->L,
					 .status =
						 luastate_coroutine_status_name(coroutine->status),
					 .is_main = coroutine->is_main,
					 .is_started = coroutine->is_started };

	if (reading->total == COROUTINES_MAX && !coroutine->is_main) {
		reading->out->is_truncated = true;
		return false;
	}
	reading->out_of_memory |=
		!ARRAY_RESERVE(reading->vm->coroutines, reading->room, reading->vm->count + 1) ||
		!take_stack(reading, coroutine, &item.stack);
	if (reading->out_of_memory)
		return false;
	reading->vm->coroutines[reading->vm->count++] = item;
	reading->total++;
	return true;
}

/* The VM's list has the newest coroutine first. People look for the main one and the oldest
 * ones. */
static void reverse(struct daemon_coroutine_vm *vm)
{
	for (size_t i = 0; i < vm->count / 2; i++) {
		struct daemon_coroutine item = vm->coroutines[i];

		vm->coroutines[i] = vm->coroutines[vm->count - 1 - i];
		vm->coroutines[vm->count - 1 - i] = item;
	}
}

static void read_vm(struct reading *reading, const struct luastate_vm *vm)
{
	const struct coroutines_source *source = reading->source;
	const struct attach_reader *reader = source->memory->any;
	struct luastate *lua = reading->target->lua;
	const struct luastate_coroutines how = { .positions = source->positions,
						 .position_count = source->position_count,
						 .has_all_positions = source->has_all_positions,
						 .end_ns = source->end_ns,
						 .visit = visit,
						 .context = reading };
	struct daemon_coroutine_vm *out = &reading->out->vms[reading->out->count];
	struct failure why;
	int ret;

	*out = (struct daemon_coroutine_vm){ .G = vm->G };
	reading->vm = out;
	reading->room = 0;
	luastate_describe_layout(vm->layout, out->layout, sizeof(out->layout));
	if (luastate_read_version(lua, reader, vm->G, out->version, sizeof(out->version), &why) !=
	    0)
		out->version[0] = '\0';
	ret = luastate_each_coroutine(lua, source->memory, out->G, &how, &out->objects, &why);
	reading->out_of_memory |= ret < 0 && why.kind == FAILURE_NO_MEMORY;
	out->is_truncated = ret != 0;
	reverse(out);
	reading->out->count++;
}

/* ---- Results ---------------------------------------------------------------------------- */

static enum daemon_outcome outcome_of(enum luastate_outcome outcome)
{
	switch (outcome) {
	case LUASTATE_INCONSISTENT:
		return DAEMON_INCONSISTENT;
	case LUASTATE_TRUNCATED:
		return DAEMON_TRUNCATED;
	case LUASTATE_FULL:
		break;
	}
	return DAEMON_FULL;
}

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Drop the names of a frame if there are too many. */
static void bound_names(struct reading *reading, struct daemon_frame *frame)
{
	size_t len = size_of(frame->name) + size_of(frame->source);

	if (len <= NAMES_MAX_BYTES - reading->name_bytes) {
		reading->name_bytes += len;
		return;
	}
	free(frame->name);
	free(frame->source);
	frame->name = frame->source = NULL;
	reading->out->is_truncated = true;
}

/* Moves its variables into the stack. */
static int make_stack(struct reading *reading, struct kept *kept, struct daemon_stack *stack,
		      struct failure *why)
{
	stack->outcome = outcome_of(kept->outcome);
	stack->frames = calloc(kept->count + 1, sizeof(*stack->frames));
	if (!stack->frames)
		return failure_set_errno(why, ENOMEM, 0, "keep a stack");
	for (; stack->count < kept->count; stack->count++) {
		struct daemon_frame *frame = &stack->frames[stack->count];

		if (frames_of_guest(reading->target, &kept->frames[stack->count], frame, why) != 0)
			return -1;
		bound_names(reading, frame);
		if (!kept->variables)
			continue;
		frame->variables = kept->variables[stack->count];
		kept->variables[stack->count] = NULL;
	}
	return 0;
}

static int make_stacks(struct reading *reading, struct failure *why)
{
	size_t count = reading->out->stack_count;
	struct daemon_stack *stacks = calloc(count + 1, sizeof(*stacks));

	reading->out->stacks = stacks;
	if (!stacks) {
		reading->out->stack_count = 0;
		return failure_set_errno(why, ENOMEM, 0, "keep stacks");
	}
	for (struct kept *kept = reading->last; kept; kept = kept->next)
		if (make_stack(reading, kept, &stacks[kept->index], why) != 0)
			return -1;
	for (size_t i = 0; i < reading->run_count; i++) {
		struct run *run = &reading->runs[i];

		if (run->index == SIZE_MAX)
			continue;
		stacks[run->index] = run->stack;
		run->stack = (struct daemon_stack){ 0 };
	}
	return 0;
}

static int read_vms(struct reading *reading, struct failure *why)
{
	struct luastate *lua = reading->target->lua;
	size_t count;

	/* Each of these is a separate sample; everything after them is one sample. */
	read_runs(reading);
	luastate_begin_sample(lua, reading->source->memory->any);
	count = luastate_vm_count(lua);
	reading->out->vms = calloc(count + 1, sizeof(*reading->out->vms));
	if (!reading->out->vms)
		return failure_set_errno(why, ENOMEM, 0, "list coroutines");
	for (size_t i = 0; i < count && i < luastate_vm_count(lua) && !reading->out_of_memory; i++)
		read_vm(reading, luastate_vm_get(lua, i));
	if (reading->out_of_memory)
		return failure_set_errno(why, ENOMEM, 0, "list coroutines");
	return make_stacks(reading, why);
}

struct luastate_position coroutines_position(const struct daemon_target *target, uint64_t sp,
					     uint64_t pc, int64_t syscall)
{
	const struct symbols_mapping *mapping = symbols_space_find(target->space, sp);

	return (struct luastate_position){
		.sp = sp,
		.stack_start = mapping ? mapping->start : sp,
		.stack_end = mapping ? mapping->end : UINT64_MAX,
		.is_in_call = syscall >= 0 && !luastate_in_interpreter(target->lua, pc),
	};
}

int coroutines_read(struct daemon_target *target, const struct coroutines_source *source,
		    struct daemon_coroutines *ret_coroutines, struct failure *why)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	int ret;

	if (!reading)
		return failure_set_errno(why, ENOMEM, 0, "list coroutines");
	reading->target = target;
	reading->source = source;
	reading->out = ret_coroutines;
	if (source->values)
		reading->values = *source->values;
	ret = read_vms(reading, why);
	ret_coroutines->is_exhausted = reading->values.is_exhausted;
	free_kept(reading);
	for (size_t i = 0; i < reading->run_count; i++)
		daemon_stack_deinit(&reading->runs[i].stack);
	free(reading->keys);
	free(reading);
	if (!ret_coroutines->stacks)
		ret_coroutines->stack_count = 0;
	return ret;
}

void daemon_coroutines_deinit(struct daemon_coroutines *coroutines)
{
	for (size_t i = 0; i < coroutines->count; i++)
		free(coroutines->vms[i].coroutines);
	for (size_t i = 0; i < coroutines->stack_count; i++)
		daemon_stack_deinit(&coroutines->stacks[i]);
	free(coroutines->vms);
	free(coroutines->stacks);
	*coroutines = (struct daemon_coroutines){ 0 };
}
