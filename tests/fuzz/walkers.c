/* SPDX-License-Identifier: MIT */
#include "walkers.h"

#include "luastate/coroutines.h"
#include "luastate/explain.h"
#include "luastate/jit_report.h"
#include "luastate/variables.h"
#include "luastate/vm_stats.h"

#include <stdio.h>

#include "attach/image/image_internal.h"
#include "luastate/definition/definition.h"
#include "luastate/definition/definition_names.h"
#include "luastate/function/proto.h"

/** What has to be true whatever the memory holds. */
#define HOLDS(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

enum {
	/* Of each end of a chain. */
	VARIABLES_FRAMES = 3,
	VALUES_DEPTH = 4,
	COPY_BUDGET_NS = 1000 * 1000 * 1000,
};

static struct luastate_memory memory_of(const struct walkers_thread *thread)
{
	return (struct luastate_memory){ .stopped =
						 thread->stopped ? thread->stopped : thread->memory,
					 .any = thread->memory,
					 .later = thread->later };
}

/* ---- Chains ----------------------------------------------------------------------------- */

/* A name is there to its end. */
static void check_text(const char *text)
{
	HOLDS(!text || strlen(text) < SIZE_MAX);
}

static void check_frame(const struct luastate_frame *frame, size_t vm_frame_count)
{
	const struct luastate_function *function = frame->function;

	HOLDS(function && frame->owner < vm_frame_count && function->kind <= LUASTATE_TRACE &&
	      (function->kind != LUASTATE_LUA || function->chunkname));
	check_text(function->name);
	check_text(function->chunkname);
}

/* Of the frames of one coroutine, which lie above each other; those of several that call each other
 * differ by their owners. A trace as a frame has no place of its own. */
static void check_order(const struct luastate_chain *chain, const struct walkers_thread *thread)
{
	for (size_t i = 0; i < chain->count; i++) {
		const struct luastate_frame *frame = &chain->frames[i];
		const struct luastate_frame *above = i ? frame - 1 : frame;

		HOLDS(above->owner <= frame->owner || above->coroutine != frame->coroutine);
		HOLDS(frame->coroutine == thread->vm_frames[frame->owner].L ||
		      frame->function->kind == LUASTATE_TRACE);
		HOLDS(!chain->lost[frame->owner]);
		if (i && frame->coroutine == above->coroutine && frame->base && above->base)
			HOLDS(frame->base < above->base);
	}
}

/* A frame of Lua stands in its function. */
static void check_position(const struct luastate_frame *frame)
{
	const struct state_proto *proto =
		(const struct state_proto *)((const char *)frame->function -
					     offsetof(struct state_proto, function));

	if (frame->function->kind == LUASTATE_LUA && frame->pc)
		HOLDS(state_proto_holds(proto, frame->pc));
}

const struct luastate_chain *walkers_walk(struct luastate *state,
					  const struct walkers_thread *thread)
{
	static struct luastate_chain chain;
	const struct luastate_memory memory = memory_of(thread);

	luastate_begin_sample(state, thread->memory);
	luastate_walk(state, &memory, thread->vm_frames, thread->vm_frame_count, &chain);
	HOLDS(chain.count <= LUASTATE_FRAMES_MAX && (unsigned)chain.outcome <= LUASTATE_TRUNCATED &&
	      (unsigned)chain.compiled < LUASTATE_COMPILED_COUNT &&
	      (unsigned)chain.work.kind < LUASTATE_VM_WORKS);
	for (size_t i = 0; i < chain.count; i++)
		check_frame(&chain.frames[i], thread->vm_frame_count);
	if (chain.outcome == LUASTATE_FULL) {
		check_order(&chain, thread);
		for (size_t i = 0; i < chain.count; i++)
			check_position(&chain.frames[i]);
	}
	return &chain;
}

void walkers_find_cframes(struct luastate *state, const struct walkers_thread *thread)
{
	const struct luastate_memory memory = memory_of(thread);
	struct luastate_vm_frame found;
	struct failure why;

	luastate_begin_sample(state, memory.any);
	luastate_find_vm_frame(state, &memory, &thread->regs, true, &found, &why);
	luastate_find_trace_vm_frame(state, &memory, &thread->regs, true, &found, &why);
	luastate_find_vm_frame_above(state, &memory, &thread->regs, thread->vm->native_end, &found,
				     &why);
	for (size_t i = 0; i < thread->vm_frame_count; i++) {
		struct attach_registers regs = thread->regs;

		regs.r[ATTACH_REG_PC] = thread->vm->code + FAKE_AT_RETURN;
		regs.r[ATTACH_REG_SP] = thread->vm_frames[i].address;
		luastate_find_vm_frame(state, &memory, &regs, false, &found, &why);
	}
}

void walkers_learn(struct luastate *state, const struct walkers_thread *thread,
		   struct luastate_prediction *prediction)
{
	luastate_learn(state, thread->memory,
		       &(struct luastate_native_walk){ thread->vm_frames, thread->vm_frame_count,
						       thread->vm->native_end, LUASTATE_REACH_ALL,
						       thread->vm->sp },
		       prediction);
}

/* The same by the rules of the BPF program. */
static void walkers_copy(const struct luastate_plan_context *context,
			 const struct walkers_thread *thread)
{
	static struct luastate_bpf_plan plan = { .salt = 1 };
	static uint64_t known[LUASTATE_BPF_KNOWN];
	static struct luastate_copier *copier;
	static struct attach_fetcher *fetcher;
	struct attach_image *image = attach_image_create();
	struct failure why;

	HOLDS(image && (copier || luastate_copier_create(&copier, &why) == 0) &&
	      (fetcher || attach_fetcher_create(&fetcher, &why) == 0));
	luastate_plan_bpf(context, &plan);
	plan.head.budget_ns = COPY_BUDGET_NS;
	attach_fetcher_begin_from(fetcher, thread->memory);
	luastate_copier_run(copier, &plan, known, &thread->regs, fetcher);
	luastate_copier_take(copier, image);
	attach_image_destroy(image);
}

void walkers_plan(const struct luastate *state, struct luastate_prediction *prediction,
		  const struct walkers_thread *thread, struct attach_image *image,
		  struct attach_image *after)
{
	static struct luastate_plan_context context;
	bool more = true;

	memset(&context, 0, sizeof(context));
	context.state = state;
	context.prediction = prediction;
	*attach_image_registers(image) = thread->regs;
	for (unsigned round = 0; more; round++) {
		HOLDS(round < FAKE_ROUNDS_MAX);
		more = luastate_plan(&context, image, round);
		fake_fill_image(image, thread->memory);
	}
	walkers_copy(&context, thread);
	luastate_plan_after(&context, image, after);
	fake_fill_image(after, thread->memory);
}

/* ---- The VM ----------------------------------------------------------------------------- */

static void note_invariant(void *context, const char *what, uint64_t address, uint64_t value,
			   bool holds)
{
	unsigned *told = context;

	(void)address, (void)value, (void)holds;
	HOLDS(what && what[0]);
	++*told;
}

void walkers_explain(struct luastate *state, const struct walkers_thread *thread)
{
	const struct luastate_layout *fitting[4];
	struct luastate_examination vm;
	const uint64_t *refused;
	unsigned told = 0;
	char text[64];
	struct failure why;

	if (luastate_examine(state, thread->memory, thread->vm->main, note_invariant, &told, &vm) ==
	    0)
		HOLDS(told && vm.layout &&
		      luastate_fitting_layouts(state, thread->memory, vm.G, fitting, 4) <= 4);
	luastate_read_version(state, thread->memory, thread->vm->G, text, sizeof(text), &why);
	HOLDS(luastate_refused(state, &refused) <= STATE_REFUSED_MAX);
}

void walkers_search(struct luastate *state, const struct walkers_thread *thread)
{
	const struct fake_vm *vm = thread->vm;
	struct failure why;

	luastate_find_in_frame(state, thread->memory, &thread->regs, &why);
	luastate_find_on_stack(state, thread->memory, attach_sp(&thread->regs), 0, &why);
	luastate_find_in_range(state, thread->memory, vm->main & ~(uint64_t)4095,
			       vm->main + fake_vm_bytes(vm->layout), &why);
	HOLDS(luastate_vm_count(state) <= LUASTATE_VMS_MAX);
}

void walkers_vitals(struct luastate *state, const struct walkers_thread *thread)
{
	struct luastate_stats_delta *delta = luastate_stats_delta_create();
	struct luastate_vm_stats stats;
	struct failure why;

	HOLDS(delta);
	for (int i = 0; i < 2; i++)
		luastate_read_vm_stats(state, thread->memory, thread->vm->G, delta, &stats, &why);
	luastate_stats_delta_destroy(delta);
}

static void check_definition(void *context, const struct definition *definition)
{
	uint64_t *definitions = context;

	++*definitions;
	HOLDS((definition->fate == DEFINITION_NAMED) == (definition->name != NULL));
	if (definition->name)
		HOLDS(definition->name[0] && strlen(definition->name) < STATE_NAME_MAX);
}

/* Of fast functions, of what all known prototypes make, and of these themselves. */
void walkers_names(struct luastate *state, const struct walkers_thread *thread)
{
	const struct luastate_memory memory = { .stopped = thread->memory, .any = thread->memory };
	struct state_proto *proto, *next;
	uint64_t definitions = 0;
	struct failure why;

	luastate_load_names(state, thread->memory, thread->vm->G, &why);
	luastate_begin_sample(state, thread->memory);
	HASH_ITER(hh, state->protos, proto, next)
	{
		const struct state_view view = { state, &memory, proto->layout, thread->vm->G };

		definition_visit(proto->layout, thread->memory, proto->address, 0, check_definition,
				 &definitions, &why);
		state_read_parent(&view, proto->address);
		state_define_proto(&view, proto, true);
		HOLDS(!proto->function.name || strlen(proto->function.name) < STATE_NAME_MAX);
	}
}

/* ---- Coroutines ------------------------------------------------------------------------- */

static bool check_coroutine(void *context, const struct luastate_coroutine *coroutine)
{
	uint64_t *visits = context;

	++*visits;
	HOLDS((unsigned)coroutine->status < LUASTATE_COROUTINE_STATUSES &&
	      (unsigned)coroutine->outcome <= LUASTATE_TRUNCATED &&
	      coroutine->frame_count <= LUASTATE_FRAMES_MAX &&
	      luastate_coroutine_status_name(coroutine->status));
	for (size_t i = 0; i < coroutine->frame_count; i++) {
		check_frame(&coroutine->frames[i], UINT32_MAX);
		check_position(&coroutine->frames[i]);
		HOLDS(coroutine->frames[i].coroutine == coroutine->L);
	}
	return true;
}

void walkers_coroutines(struct luastate *state, const struct walkers_thread *thread)
{
	const struct luastate_memory memory = memory_of(thread);
	const struct fake_vm *vm = thread->vm;
	const struct luastate_position position = { .sp = attach_sp(&thread->regs),
						    .stack_start = vm->native_start,
						    .stack_end = vm->native_end,
						    .is_in_call = thread->vm_frame_count % 2 };
	uint64_t visits = 0, objects;
	const struct luastate_coroutines how = { .positions = &position,
						 .position_count = 1,
						 .has_all_positions = thread->vm_frame_count > 1,
						 .end_ns = UINT64_MAX,
						 .visit = check_coroutine,
						 .context = &visits };
	struct failure why;

	luastate_begin_sample(state, thread->memory);
	if (luastate_each_coroutine(state, &memory, vm->G, &how, &objects, &why) >= 0)
		HOLDS(visits && visits <= objects + 1);
}

/* ---- Values ----------------------------------------------------------------------------- */

static void check_value(const struct luastate_value *value, unsigned depth)
{
	const struct luastate_table *table = value->table;

	HOLDS((unsigned)value->type < LUASTATE_VALUE_TYPES && depth <= VALUES_DEPTH + 1);
	check_text(value->chunkname);
	if (value->type == LUASTATE_VALUE_STRING)
		HOLDS(value->text && value->text[value->text_bytes] == 0);
	check_text(value->text);
	if (value->type != LUASTATE_VALUE_TABLE || !table)
		return;
	HOLDS((unsigned)table->cut <= LUASTATE_TABLE_INCONSISTENT);
	for (size_t i = 0; i < table->entry_count; i++) {
		check_value(&table->keys[i], depth + 1);
		check_value(&table->values[i], depth + 1);
	}
}

static void read_variables(struct luastate *state, const struct luastate_memory *memory,
			   const struct luastate_frame *frame,
			   struct luastate_values_options *options)
{
	struct luastate_variables *variables;
	struct failure why;

	if (luastate_read_variables(state, memory, frame, options, &variables, &why) != 0)
		return;
	for (size_t i = 0; i < variables->count; i++) {
		const struct luastate_variable *variable = &variables->items[i];

		HOLDS((unsigned)variable->kind < LUASTATE_VARIABLE_KINDS && variable->name);
		check_text(variable->name);
		check_value(&variable->value, 0);
	}
	luastate_variables_destroy(variables);
}

void walkers_variables(struct luastate *state, const struct walkers_thread *thread,
		       const struct luastate_chain *chain)
{
	const struct luastate_memory memory = memory_of(thread);
	const uint64_t values = 2000, bytes = 1 << 20;
	struct luastate_values_options options = { .string_bytes = 80,
						   .depth = VALUES_DEPTH,
						   .entries = 12,
						   .values_left = values,
						   .memory_bytes = bytes,
						   .read_bytes = bytes };

	for (size_t i = 0; i < chain->count; i++)
		if (i < VARIABLES_FRAMES || chain->count - i <= VARIABLES_FRAMES)
			read_variables(state, &memory, &chain->frames[i], &options);
	HOLDS(options.values_left <= values && options.memory_bytes <= bytes &&
	      options.read_bytes <= bytes);
}

/* ---- Compiled code ---------------------------------------------------------------------- */

static void check_catalogue(const struct luastate_jit_report *report)
{
	for (size_t i = 0; i < report->trace_count; i++) {
		const struct luastate_trace *trace = &report->traces[i];

		HOLDS(trace->first_exit + trace->exit_count <= report->exit_count);
		HOLDS(trace->first_function + trace->function_count <=
		      report->trace_function_count);
		HOLDS(trace->start.function < report->function_count ||
		      trace->start.function == LUASTATE_NO_FUNCTION);
	}
	for (size_t i = 0; i < report->exit_count; i++)
		HOLDS(report->exits[i].location.function < report->function_count ||
		      report->exits[i].location.function == LUASTATE_NO_FUNCTION);
	for (size_t i = 0; i < report->trace_function_count; i++)
		HOLDS(report->trace_functions[i].function < report->function_count);
	for (size_t i = 0; i < report->uncompiled_count; i++)
		HOLDS(report->uncompiled[i].first_loop + report->uncompiled[i].loop_count <=
		      report->loop_count);
	for (size_t i = 0; i < report->function_count; i++)
		HOLDS(report->functions[i].chunkname);
}

void walkers_catalogue(struct luastate *state, const struct walkers_thread *thread)
{
	struct luastate_jit_report *report = NULL;
	struct failure why;

	if (luastate_jit_report_read(state, thread->memory, thread->vm->G, &report, &why) == 0)
		check_catalogue(report);
	luastate_jit_report_destroy(report);
}
