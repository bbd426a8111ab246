/* SPDX-License-Identifier: MIT */
/* What does a stop read that copies without a plan, as for ljdump? And what does a copy lack?
 *
 * The planner runs while the thread is stopped, so it only computes addresses. Round 0 asks for
 * what the thread's last sample needed: native stack, global state, coroutines and their Lua
 * stacks. Later rounds ask for coroutines that are new on the stack: a word of the copied native
 * stack that is a return address into the interpreter shows a C frame, and the frame names its
 * coroutine. The functions on the stacks follow, in the second and last round if nothing is new,
 * and then new prototypes.
 */
#include "luastate/plan/plan_internal.h"

#include "attach/freeze.h"
#include "luastate/arch/arch.h"
#include "luastate/state/invariants.h"
#include "luastate/trace/code_areas.h"
#include "luastate/trace/trace.h"
#include "luastate/trace/trace_index.h"
#include "luastate/vm/vm_internal.h"

enum {
	/* The ABI allows 128 bytes of live data below rsp, which an unwinder may read. */
	RED_ZONE = 128,
	/* Slack above the highest frame that a walk saw. */
	NATIVE_SLACK = 512,
	/* The most bytes of native stack that one stop copies. */
	NATIVE_MAX = 4 << 20,
	/* Bytes of a Lua stack to copy above the highest base seen. */
	LUA_SLACK = 1024,
	PLAN_THREADS = LUASTATE_PREDICTED_THREADS,
	/* VMs whose state is copied if the thread's own VM is unknown. */
	PLAN_UNKNOWN_VMS = 4,
	/* The global state arrives in the second round at the latest, then the table's slot, then
	 * the trace's header. */
	PLAN_TRACE_ROUNDS = 4,
};

void plan_want(struct attach_image *image, uint64_t start, uint64_t end)
{
	struct failure why;

	if (end > start)
		attach_image_want(image, remote_addr_make(start), (size_t)(end - start), &why);
}

bool plan_get(struct attach_image *image, uint64_t address, void *ret_bytes, size_t len)
{
	struct failure why;
	size_t copied;
	const void *bytes = attach_image_peek(image, remote_addr_make(address), len, &copied);

	if (copied == len) { /* nearly always one range has all of it */
		memcpy(ret_bytes, bytes, len);
		return true;
	}
	return state_read(attach_image_reader(image), address, ret_bytes, len, &why) == 0;
}

void plan_want_once(struct attach_image *image, uint64_t start, uint64_t end)
{
	size_t len = 0;

	if (end > start)
		attach_image_peek(image, remote_addr_make(start), (size_t)(end - start), &len);
	if (len < end - start)
		plan_want(image, start, end);
}

bool plan_is_copied(struct attach_image *image, uint64_t address)
{
	uint64_t word;

	return plan_get(image, address, &word, sizeof(word));
}

static int read_or_ask(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	struct plan_asking *asking = self;

	if (attach_read(attach_image_reader(asking->image), address, ret_bytes, len, why) == 0)
		return 0;
	attach_image_want(asking->image, address, len, why);
	asking->missed = true;
	return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read what was not copied");
}

void plan_begin_asking(struct plan_asking *ret_asking, struct attach_image *image)
{
	*ret_asking = (struct plan_asking){ .reader = { .read = read_or_ask, .self = ret_asking },
					    .image = image };
}

/* Ask for @start to @end. The stack may begin at the page of @at, and one read from below this page
 * would then fail as a whole, so the pages below are separate requests. */
static void want_around(struct attach_image *image, uint64_t start, uint64_t at, uint64_t end)
{
	uint64_t page = at & ~(uint64_t)(ATTACH_PAGE_BYTES - 1);

	if (start >= page) {
		plan_want(image, start, end);
		return;
	}
	plan_want(image, page, end);
	for (uint64_t lower; page > start; page = lower) {
		lower = page - start > ATTACH_PAGE_BYTES ? page - ATTACH_PAGE_BYTES : start;
		plan_want(image, lower, page);
	}
}

static void want_native(const struct luastate_plan_context *context, struct attach_image *image,
			uint64_t sp)
{
	uint64_t end = context->prediction->native_end;

	/* sp is on another stack than before, or the stack is deeper than a stop copies. The next
	 * walk will show which. */
	if (end <= sp || end - sp > NATIVE_MAX)
		end = sp + LUASTATE_NATIVE_FIRST;
	if (context->stack_limit > sp && end > context->stack_limit)
		end = context->stack_limit;
	want_around(image, sp - RED_ZONE, sp, end);
}

/* Ask for a Lua stack up to the end of its frames. Nothing above the base is walked. */
static void want_lua_stack(struct attach_image *image, uint64_t stack, uint64_t used_end)
{
	if (!state_is_pointer(stack) || used_end < stack || used_end - stack > PLAN_STACK_MAX)
		return;
	plan_want(image, stack, used_end);
}

static bool is_predicted(const struct luastate_prediction *prediction, uint64_t L, uint64_t stack)
{
	for (unsigned i = 0; i < prediction->thread_count; i++)
		if (prediction->threads[i].L == L && prediction->threads[i].stack == stack)
			return true;
	return false;
}

/* Ask for the global state and what follows it up to the table of traces; and for the last exit's
 * numbers and the notes on areas of machine code, which are adjacent in most builds. */
static void want_global(struct attach_image *image, const struct luastate_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = vm->G + (uint64_t)layout->global_State_to_J;

	if (!state_has_compiler(layout)) {
		plan_want(image, vm->G, vm->G + (uint64_t)layout->global_State_sizeof);
		return;
	}
	plan_want(image, vm->G, J + (uint64_t)layout->jit_State_sizetrace + 4);
	plan_want(image, J + (uint64_t)layout->jit_State_parent, J + areas_noted_end(layout));
	if (layout->jit_State_exitno < layout->jit_State_parent ||
	    (uint32_t)layout->jit_State_exitno >= areas_noted_end(layout))
		plan_want(image, J + (uint64_t)layout->jit_State_exitno,
			  J + (uint64_t)layout->jit_State_exitno + 4);
}

/* A new thread may be in any VM. */
static void want_known_vms(const struct luastate *state, struct attach_image *image)
{
	for (size_t i = 0; i < state->vm_count && i < PLAN_UNKNOWN_VMS; i++)
		want_global(image, &state->vms[i]);
}

static void plan_known(const struct luastate_plan_context *context, struct attach_image *image)
{
	const struct attach_registers *regs = attach_image_registers(image);
	const struct luastate_prediction *prediction = context->prediction;
	const struct luastate_vm *running;
	uint64_t last = 0, base = regs->r[STATE_REG_BASE], pc = regs->r[STATE_REG_PC];

	/* The position may be a return address that was just loaded: its call is the instruction
	 * before it. */
	if (state_layout_at(context->state, attach_pc(regs)) && state_is_pointer(pc) && pc % 4 == 0)
		plan_want(image, pc - 4, pc);
	want_native(context, image, attach_sp(regs));
	if (prediction->thread_count == 0)
		want_known_vms(context->state, image);
	running = state_vm_in_register(context->state, regs);
	if (!running)
		running =
			state_vm_by_G(context->state, trace_vm_at(context->state, attach_pc(regs)));
	if (running)
		want_global(image, running);
	for (unsigned i = 0; i < prediction->thread_count; i++) {
		uint64_t L = prediction->threads[i].L, end = prediction->threads[i].used_end;
		const struct luastate_vm *vm =
			state_vm_by_G(context->state, prediction->threads[i].G);

		if (!vm)
			continue;
		if (vm->G != last && vm != running)
			want_global(image, vm);
		last = vm->G;
		/* If the interpreter's BASE is in this stack, frames reach up to it. */
		if (base > end && base <= prediction->threads[i].limit)
			end = base;
		plan_want(image, L, L + (uint64_t)vm->layout->lua_State_sizeof);
		want_lua_stack(image, prediction->threads[i].stack, end);
	}
	for (unsigned i = 0; i < prediction->frame_count; i++)
		plan_want_frame(context->state, image, &prediction->frames[i]);
	plan_want_trace(context->state, image, &prediction->trace);
}

static void add_thread(struct luastate_plan_progress *found, uint64_t L,
		       const struct luastate_layout *layout, bool current)
{
	if (!state_is_aligned(L) || found->thread_count == PLAN_THREADS)
		return;
	for (unsigned i = 0; i < found->thread_count; i++)
		if (found->threads[i].L == L)
			return;
	found->threads[found->thread_count].L = L;
	found->threads[found->thread_count].layout = layout;
	found->threads[found->thread_count++].current = current;
}

/* Add the current coroutines of the copied VMs, because no word of the native stack names them in
 * compiled code. */
static void collect_current(const struct luastate *state, struct attach_image *image,
			    struct luastate_plan_progress *found)
{
	for (size_t i = 0; i < state->vm_count && found->thread_count < PLAN_UNKNOWN_VMS; i++) {
		const struct luastate_layout *layout = state->vms[i].layout;
		uint64_t at = state->vms[i].G + (uint64_t)layout->global_State_cur_L;
		uint8_t bytes[8];

		if (plan_get(image, at, bytes, (size_t)layout->ref_size))
			add_thread(found, state_ref(layout, bytes, 0), layout, true);
	}
}

/* Stale words look like frames too. A real frame links to an older one, or to none. */
static bool has_frame_link(const struct luastate_layout *layout, const uint8_t *frame,
			   uint64_t address)
{
	uint64_t link = state_u64(frame, layout->cframe_prev) & ~(uint64_t)7;

	return link == 0 || (link > address && link - address < LUASTATE_FRAME_DISTANCE_MAX);
}

/** A copied part of a native stack. */
struct native {
	const uint64_t *words;
	size_t count;
	uint64_t start; /* address of the first word */
};

/* The copied words of a native stack from @start on. */
static struct native native_at(struct attach_image *image, uint64_t start)
{
	struct native native = { .start = start };
	size_t len;

	native.words = attach_image_peek(image, remote_addr_make(start), NATIVE_MAX, &len);
	native.count = native.words ? len / 8 : 0;
	return native;
}

/* The native stack of the innermost frame. */
static struct native own_stack(struct attach_image *image)
{
	return native_at(image, attach_sp(attach_image_registers(image)) & ~(uint64_t)7);
}

static void add_vm_frame(struct luastate_plan_progress *found, const struct native *native,
			 uint64_t address, const struct luastate_layout *layout)
{
	uint64_t index = (address - native->start) / 8;
	const uint8_t *frame;

	if (address < native->start || address % 8 != 0 ||
	    index + (uint64_t)layout->cframe_size / 8 > native->count)
		return;
	frame = (const uint8_t *)(native->words + index);
	if (has_frame_link(layout, frame, address))
		add_thread(found, state_ref(layout, frame, layout->cframe_L), layout, false);
}

/* Add the coroutines of the C frames that words of a native stack show. @address: of the first
 * word. */
static void add_shown(struct luastate_plan_context *context, const struct native *native,
		      uint64_t address, const void *words, size_t count)
{
	for (size_t i = 0; i < context->state->interpreter_count; i++) {
		const struct state_interpreter *interpreter = &context->state->interpreters[i];
		uint64_t frame;
		size_t at = 0;

		if (!interpreter->layout)
			continue;
		while ((frame = state_arch_next_shown(interpreter, address, words, count, &at)))
			add_vm_frame(&context->progress, native, frame, interpreter->layout);
	}
}

/* Find the coroutine of each C frame on the native stack. The innermost frame starts at sp, or a
 * few words above it in a helper. */
static void collect_threads(struct luastate_plan_context *context, struct attach_image *image)
{
	struct luastate_plan_progress *found = &context->progress;
	const struct attach_registers *regs = attach_image_registers(image);
	const struct luastate_layout *leaf = state_layout_at(context->state, attach_pc(regs));
	struct native native = own_stack(image);
	uint64_t below = state_arch_word_below(regs);

	found->thread_count = 0;
	collect_current(context->state, image, found);
	for (uint64_t above = 0; leaf && above <= state_arch_helper_bytes; above += 8)
		add_vm_frame(found, &native, native.start + above, leaf);
	add_shown(context, &native, native.start - 8, &below, 1);
	add_shown(context, &native, native.start, native.words, native.count);
}

static bool want_headers(const struct luastate_plan_progress *found, struct attach_image *image)
{
	bool more = false;

	for (unsigned i = 0; i < found->thread_count; i++) {
		uint64_t L = found->threads[i].L;
		size_t size = (size_t)found->threads[i].layout->lua_State_sizeof;
		uint8_t bytes[STATE_OBJECT_MAX];

		if (plan_get(image, L, bytes, size))
			continue;
		plan_want(image, L, L + size);
		more = true;
	}
	return more;
}

/* Ask for the headers of coroutines that were not predicted. */
static bool plan_headers(struct luastate_plan_context *context, struct attach_image *image)
{
	collect_threads(context, image);
	return want_headers(&context->progress, image);
}

/* The base of compiled code is in the global state; the coroutine then has an older one. */
static uint64_t compiled_base(struct attach_image *image, const struct luastate_plan_thread *thread,
			      uint64_t G)
{
	const struct luastate_layout *layout = thread->layout;
	uint8_t L[8], base[8];

	if (!plan_get(image, G + (uint64_t)layout->global_State_cur_L, L,
		      (size_t)layout->ref_size) ||
	    state_ref(layout, L, 0) != thread->L ||
	    !plan_get(image, G + (uint64_t)layout->global_State_jit_base, base,
		      (size_t)layout->ref_size))
		return 0;
	return state_ref(layout, base, 0);
}

bool plan_read_header(struct attach_image *image, const struct luastate_plan_thread *thread,
		      struct plan_stack *ret_stack)
{
	const struct luastate_layout *layout = thread->layout;
	uint64_t base = attach_image_registers(image)->r[STATE_REG_BASE];
	uint8_t L[STATE_OBJECT_MAX];

	if (!plan_get(image, thread->L, L, (size_t)layout->lua_State_sizeof) ||
	    L[layout->GCobj_gct] != state_gct(layout->tag_thread))
		return false;
	*ret_stack = (struct plan_stack){
		.G = state_ref(layout, L, layout->lua_State_glref),
		.start = state_ref(layout, L, layout->lua_State_stack),
		.used_end = state_u64(L, layout->lua_State_base),
		.limit = state_ref(layout, L, layout->lua_State_maxstack),
		.vm_frame = state_u64(L, layout->lua_State_cframe) & ~(uint64_t)7,
	};
	if (ret_stack->limit - ret_stack->start > PLAN_STACK_MAX ||
	    ret_stack->used_end - ret_stack->start > PLAN_STACK_MAX)
		return false;
	if (base > ret_stack->used_end && base <= ret_stack->limit)
		ret_stack->used_end = base;
	base = compiled_base(image, thread, ret_stack->G);
	if (base > ret_stack->used_end && base <= ret_stack->limit)
		ret_stack->used_end = base;
	return true;
}

/* A signal handler may run on a stack of its own. The interrupted frames are then on the stack with
 * the newest C frame, and the words above that show further coroutines. With several VMs, the
 * lowest frame is taken as the newest. For a new thread the frame is not noted, because its VM may
 * be another thread's. */
static bool plan_other_stack(struct luastate_plan_context *context, struct attach_image *image,
			     uint64_t vm_frame)
{
	struct luastate_plan_progress *found = &context->progress;
	struct native own = own_stack(image);

	if (!state_is_pointer(vm_frame) ||
	    (vm_frame >= own.start && (vm_frame - own.start) / 8 < own.count))
		return false;
	if (context->prediction->thread_count > 0 &&
	    (!found->other_stack || vm_frame < found->other_stack))
		found->other_stack = vm_frame;
	if (plan_is_copied(image, vm_frame))
		return false;
	want_around(image, vm_frame - LUASTATE_OTHER_STACK_BELOW, vm_frame,
		    vm_frame + LUASTATE_NATIVE_FIRST);
	return true;
}

/* Ask for a coroutine's Lua stack, unless it is copied already. Both ends are checked, because a
 * prediction may have been too short. */
static bool plan_stack(struct luastate_plan_context *context, struct attach_image *image,
		       const struct luastate_plan_thread *thread)
{
	const struct luastate_vm *vm;
	struct plan_stack stack;
	uint64_t end;
	bool more;

	if (!plan_read_header(image, thread, &stack))
		return false;
	more = thread->current && plan_other_stack(context, image, stack.vm_frame);
	if (plan_is_copied(image, stack.start) && plan_is_copied(image, stack.used_end - 8))
		return more;
	end = stack.used_end + LUA_SLACK;
	if (end > stack.limit && stack.limit > stack.used_end)
		end = stack.limit;
	want_lua_stack(image, stack.start, end);
	vm = state_vm_by_G(context->state, stack.G);
	if (vm && !plan_is_copied(image, stack.G))
		want_global(image, vm);
	return true;
}

static bool plan_stacks(struct luastate_plan_context *context, struct attach_image *image)
{
	const struct luastate_plan_progress *found = &context->progress;
	bool more = false;

	for (unsigned i = 0; i < found->thread_count; i++)
		more |= plan_stack(context, image, &found->threads[i]);
	return more;
}

/* Find coroutines on a native stack other than the innermost frame's. */
static bool plan_other_headers(struct luastate_plan_context *context, struct attach_image *image)
{
	struct luastate_plan_progress *found = &context->progress;
	struct native other;

	if (!found->other_stack)
		return false;
	other = native_at(image, found->other_stack);
	add_shown(context, &other, other.start, other.words, other.count);
	return want_headers(found, image);
}

static bool plan_other_stacks(struct luastate_plan_context *context, struct attach_image *image)
{
	return context->progress.other_stack && plan_stacks(context, image);
}

/* Ignore failures, so that one check asks for all missing memory. */
static void ignore_invariant(void *context, const char *what, uint64_t address, uint64_t value,
			     bool holds)
{
	(void)context, (void)what, (void)address, (void)value, (void)holds;
}

/* Ask for the memory that the invariants of new VMs need. A VM may be closed before they are
 * checked. */
static bool plan_vms(struct luastate_plan_context *context, struct attach_image *image)
{
	const struct luastate_plan_progress *found = &context->progress;
	struct plan_asking asking;

	plan_begin_asking(&asking, image);
	for (unsigned i = 0; i < found->thread_count; i++) {
		const struct luastate_layout *layout = found->threads[i].layout;
		uint64_t G =
			state_global_of(layout, attach_image_reader(image), found->threads[i].L);

		if (!G || state_vm_by_G(context->state, G))
			continue;
		if (plan_is_copied(image, G)) {
			state_check_vm(context->state, layout, &asking.reader, G, ignore_invariant,
				       NULL);
			continue;
		}
		plan_want(image, G - (uint64_t)layout->lua_State_sizeof,
			  G + (uint64_t)layout->global_State_to_bcff +
				  4 * (uint64_t)layout->GG_NUM_ASMFF);
		asking.missed = true;
	}
	return asking.missed;
}

void luastate_plan_after(const struct luastate_plan_context *context, struct attach_image *image,
			 struct attach_image *after)
{
	const struct luastate_plan_progress *found = &context->progress;
	struct luastate_prediction *prediction = context->prediction;

	plan_ask_again(context, image, after);
	plan_trace_after(context, image, after);
	if (found->trace.number)
		prediction->trace = found->trace;
	prediction->frame_count = 0;
	while (prediction->frame_count < LUASTATE_PREDICTED_FRAMES &&
	       prediction->frame_count < found->frame_count) {
		prediction->frames[prediction->frame_count] =
			found->frames[prediction->frame_count];
		prediction->frame_count++;
	}
}

/* Run stages until one asks for something, because each stage needs the memory that the earlier
 * ones asked for. @return whether one did. */
static bool plan_next_stage(struct luastate_plan_context *context, struct attach_image *image)
{
	static bool (*const stages[])(struct luastate_plan_context *, struct attach_image *) = {
		plan_headers, plan_stacks, plan_other_headers, plan_other_stacks, plan_vms,
		plan_vms,     plan_vms,	   plan_functions,     plan_protos,	  plan_proto_parts
	};

	const unsigned count = sizeof(stages) / sizeof(stages[0]);
	unsigned *stage = &context->progress.stage;

	while (*stage < count) {
		if (stages[(*stage)++](context, image))
			return true;
		/* A repeated stage that asked for nothing would ask for nothing again. */
		while (*stage < count && stages[*stage] == stages[*stage - 1])
			++*stage;
	}
	return false;
}

void plan_begin(struct luastate_plan_context *context)
{
	if (context->prediction->epoch != context->state->epoch)
		*context->prediction =
			(struct luastate_prediction){ .epoch = context->state->epoch };
	context->progress.stage = context->progress.thread_count = 0;
	context->progress.frame_count = context->progress.expected = 0;
	context->progress.trace.number = context->progress.other_stack = 0;
	memset(context->progress.slots, 0, sizeof(context->progress.slots));
}

/* Asks for the trace in parallel, because no stage depends on it. */
bool plan_go_on(struct luastate_plan_context *context, struct attach_image *image, unsigned round)
{
	bool more = plan_next_stage(context, image);

	if (round <= PLAN_TRACE_ROUNDS)
		more |= plan_trace(context, image);
	return more;
}

bool luastate_plan(void *context, struct attach_image *image, unsigned round)
{
	if (round > 0)
		return plan_go_on(context, image, round);
	plan_begin(context);
	plan_known(context, image);
	return true;
}

/* ---- Learning --------------------------------------------------------------------------- */

static void learn_thread(struct luastate *state, const struct attach_reader *reader, uint64_t L,
			 struct luastate_prediction *prediction)
{
	uint8_t bytes[STATE_OBJECT_MAX];
	struct failure why;
	const struct luastate_vm *vm = state_sample_vm_of(state, reader, L, &why);
	const struct luastate_layout *layout = vm ? vm->layout : NULL;
	uint64_t stack;

	if (!vm || state_read(reader, L, bytes, (size_t)layout->lua_State_sizeof, &why) != 0)
		return;
	stack = state_ref(layout, bytes, layout->lua_State_stack);
	if (is_predicted(prediction, L, stack))
		return;
	prediction->threads[prediction->thread_count].G = vm->G;
	prediction->threads[prediction->thread_count].L = L;
	prediction->threads[prediction->thread_count].stack = stack;
	prediction->threads[prediction->thread_count].used_end =
		state_u64(bytes, layout->lua_State_base) + LUA_SLACK;
	prediction->threads[prediction->thread_count].limit =
		state_ref(layout, bytes, layout->lua_State_maxstack);
	prediction->thread_count++;
}

static bool is_vm_predicted(const struct luastate_prediction *prediction, uint64_t G)
{
	for (unsigned i = 0; i < prediction->thread_count; i++)
		if (prediction->threads[i].G == G)
			return true;
	return false;
}

/* Note that a thread changes between VMs. Each VM may be below compiled code, where no word of the
 * native stack shows it. A walk that ended early may have missed a VM for this reason. */
static void note_roaming(struct luastate *state, const struct attach_reader *reader,
			 const struct luastate_native_walk *native,
			 struct luastate_prediction *prediction)
{
	if (prediction->roams || state->vm_count < 2 || prediction->thread_count == 0)
		return;
	prediction->roams = native->reach == LUASTATE_REACH_SOME;
	for (size_t i = 0; i < native->vm_frame_count && !prediction->roams; i++) {
		uint64_t L = native->vm_frames[i].L;
		struct failure why;
		const struct luastate_vm *vm =
			L ? state_sample_vm_of(state, reader, L, &why) : NULL;

		prediction->roams = vm && !is_vm_predicted(prediction, vm->G);
	}
}

void luastate_learn(struct luastate *state, const struct attach_reader *reader,
		    const struct luastate_native_walk *native,
		    struct luastate_prediction *prediction)
{
	uint64_t sp = native->sp, top = native->top;
	uint64_t known = prediction->native_end, end = top + NATIVE_SLACK, copied;
	/* The known end may belong to another stack: the thread's own, or a signal handler's. */
	bool is_new = known < top || known - top > NATIVE_MAX;

	if (native->reach == LUASTATE_REACH_CUT) {
		copied =
			known > sp && known - sp <= NATIVE_MAX ? known - sp : LUASTATE_NATIVE_FIRST;
		end = sp + 2 * copied;
		if (end - sp > NATIVE_MAX)
			end = sp + NATIVE_MAX;
	} else if (native->reach == LUASTATE_REACH_SOME && is_new) {
		/* Guess generously: all copies up to the next decoding would be too short
		 * otherwise. */
		end = top + LUASTATE_NATIVE_FIRST;
	}
	if (top >= sp && (end > known || is_new))
		prediction->native_end = end;
	note_roaming(state, reader, native, prediction);
	prediction->thread_count = 0;
	for (size_t i = 0; i < native->vm_frame_count && prediction->thread_count < PLAN_THREADS;
	     i++)
		if (native->vm_frames[i].L)
			learn_thread(state, reader, native->vm_frames[i].L, prediction);
}
