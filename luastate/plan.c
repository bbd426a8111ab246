/* SPDX-License-Identifier: MIT */
/*
 * What a stop reads. Runs while the thread stands, so it only computes addresses.
 *
 * Round 0 asks for what the last sample of the thread needed: native stack, global state, its
 * coroutines and their Lua stacks. Later rounds ask for coroutines that are new on the stack: each
 * word of the copied native stack that is a return address into the interpreter shows a C frame,
 * and that names its coroutine. The last round asks for the functions on the stacks; in the steady
 * state it is the second.
 */
#include "luastate/state.h"

enum {
	/* Below rsp the ABI allows 128 bytes of live data; an unwinder may look there. */
	RED_ZONE = 128,
	/* First guess of how much native stack holds the frames, and the slack behind the highest
	 * frame that a walk has seen. */
	NATIVE_FIRST = 16384,
	NATIVE_SLACK = 512,
	/* The deepest native stack that one stop copies. */
	NATIVE_MAX = 1 << 20,
	/* Bytes of a Lua stack copied beyond the highest base seen. */
	LUA_SLACK = 1024,
	/* LuaJIT's own bound, LUAI_MAXSTACK of 65500 slots, and its extra. */
	LUA_STACK_MAX = 66000 * 8,
	PLAN_THREADS = LUASTATE_PREDICTED_THREADS,
	/* VMs whose state is copied for a thread of which no VM is known yet. */
	PLAN_UNKNOWN_VMS = 4,
	/* What a helper that VM code calls has pushed at most. */
	HELPER_WORDS = 8,
	/* Two linked C frames lie on one native stack. */
	FRAME_DISTANCE_MAX = 64 << 20,
	/* Functions read with the stop, and slots looked at for them; what is deeper is read after.
	 */
	PLAN_FUNCTIONS = 160,
	PLAN_SLOTS = 2048,
};

static void want(struct attach_image *image, uint64_t start, uint64_t end)
{
	struct failure why;

	if (end > start)
		attach_image_want(image, remote_addr_make(start), (size_t)(end - start), &why);
}

static void want_native(const struct luastate_plan_context *context, struct attach_image *image,
			uint64_t sp)
{
	uint64_t end = context->prediction->native_end;

	/* A thread's first frames stay where they are, however deep it is now. */
	if (end > sp && end - sp > NATIVE_MAX && end - sp <= NATIVE_MAX * 64)
		end = sp + NATIVE_MAX; /* deeper than a stop copies: its leaf's end */
	else if (end <= sp || end - sp > NATIVE_MAX)
		end = sp + NATIVE_FIRST;
	if (context->stack_limit > sp && end > context->stack_limit)
		end = context->stack_limit;
	want(image, sp - RED_ZONE, end);
}

/* A Lua stack from its start to where frames can be: nothing above the base is walked. */
static void want_lua_stack(struct attach_image *image, uint64_t stack, uint64_t used_end)
{
	if (!state_is_pointer(stack) || used_end < stack || used_end - stack > LUA_STACK_MAX)
		return;
	want(image, stack, used_end);
}

static bool is_predicted(const struct luastate_prediction *prediction, uint64_t L, uint64_t stack)
{
	for (unsigned i = 0; i < prediction->thread_count; i++)
		if (prediction->threads[i].L == L && prediction->threads[i].stack == stack)
			return true;
	return false;
}

/* A thread that is seen for the first time may be in any of the VMs. */
static void want_known_vms(const struct luastate *state, struct attach_image *image)
{
	for (size_t i = 0; i < state->vm_count && i < PLAN_UNKNOWN_VMS; i++)
		want(image, state->vms[i].G,
		     state->vms[i].G + (uint64_t)state->vms[i].layout->global_State_sizeof);
}

static void plan_known(const struct luastate_plan_context *context, struct attach_image *image)
{
	const struct attach_registers *regs = attach_image_registers(image);
	const struct luastate_prediction *prediction = context->prediction;
	const struct luastate_vm *vm = state_vm_by_G(context->state, prediction->G);

	want_native(context, image, attach_sp(regs));
	if (!vm) {
		want_known_vms(context->state, image);
		return;
	}
	want(image, prediction->G, prediction->G + (uint64_t)vm->layout->global_State_sizeof);
	for (unsigned i = 0; i < prediction->thread_count; i++) {
		uint64_t L = prediction->threads[i].L, stack = prediction->threads[i].stack;
		uint64_t end = prediction->threads[i].used_end;
		uint64_t base = regs->r[ATTACH_REG_RDX];

		/* The interpreter's BASE, if it is in this stack, tells how far frames reach. */
		if (base > end && base <= prediction->threads[i].limit)
			end = base;
		want(image, L, L + (uint64_t)vm->layout->lua_State_sizeof);
		want_lua_stack(image, stack, end);
	}
}

/* The copied words of the native stack. */
static const uint64_t *native_words(struct attach_image *image, size_t *ret_count)
{
	uint64_t sp = attach_sp(attach_image_registers(image)) & ~(uint64_t)7;
	size_t len;
	const void *bytes = attach_image_peek(image, remote_addr_make(sp), NATIVE_MAX, &len);

	*ret_count = bytes ? len / 8 : 0;
	return bytes;
}

static uint64_t word_at(const uint64_t *words, size_t index)
{
	uint64_t value;

	memcpy(&value, words + index, sizeof(value));
	return value;
}

/* Stale words look like frames too; the link of a real one leads to an older frame, or nowhere. */
static bool has_frame_link(const uint64_t *words, size_t frame, uint64_t sp)
{
	uint64_t link = word_at(words, frame + (size_t)luastate_layouts[0].cframe_prev / 8);
	uint64_t address = (sp & ~(uint64_t)7) + 8 * frame;

	link &= ~(uint64_t)7;
	return link == 0 || (link > address && link - address < FRAME_DISTANCE_MAX);
}

/* The current coroutines of the VMs whose state is copied: in compiled code no word of the native
 * stack names them. */
static unsigned collect_current(const struct luastate *state, struct attach_image *image,
				uint64_t *ret_threads)
{
	unsigned found = 0;

	for (size_t i = 0; i < state->vm_count && found < PLAN_UNKNOWN_VMS; i++) {
		const struct luastate_vm *vm = &state->vms[i];
		size_t len;
		const uint8_t *bytes = attach_image_peek(
			image, remote_addr_make(vm->G + (uint64_t)vm->layout->global_State_cur_L),
			8, &len);
		uint64_t L = bytes && len == 8 ? state_object(state_u64(bytes, 0)) : 0;

		if (state_is_pointer(L) && L % 8 == 0)
			ret_threads[found++] = L;
	}
	return found;
}

/* Visit the coroutine of each C frame that the words show; the leaf's own frame starts at sp. */
static unsigned collect_threads(const struct luastate_plan_context *context,
				struct attach_image *image, uint64_t *ret_threads)
{
	const struct attach_registers *regs = attach_image_registers(image);
	const struct luastate_layout *layout = &luastate_layouts[0];
	size_t words_to_L = (size_t)layout->cframe_L / 8, count;
	size_t frame_words = (size_t)layout->cframe_size / 8;
	const uint64_t *words = native_words(image, &count);
	bool leaf = luastate_in_interpreter(context->state, attach_pc(regs));
	unsigned found = collect_current(context->state, image, ret_threads);

	for (size_t frame = 0; frame + frame_words <= count && found < PLAN_THREADS; frame++) {
		uint64_t L;

		/* The leaf's own frame is at sp, or a few words above it in a helper. */
		if (!(leaf && frame <= HELPER_WORDS) &&
		    (frame == 0 ||
		     !luastate_in_interpreter(context->state, word_at(words, frame - 1))))
			continue;
		L = word_at(words, frame + words_to_L);
		if (!state_is_pointer(L) || L % 8 != 0 ||
		    !has_frame_link(words, frame, attach_sp(regs)))
			continue;
		for (unsigned k = 0; k < found && L; k++)
			if (ret_threads[k] == L)
				L = 0;
		if (L)
			ret_threads[found++] = L;
	}
	return found;
}

/* Round 1: headers of coroutines that were not predicted, and of the VM if it is a new one. */
static bool plan_headers(const struct luastate_plan_context *context, struct attach_image *image)
{
	const struct luastate_layout *layout = &luastate_layouts[0];
	uint64_t threads[PLAN_THREADS];
	unsigned count = collect_threads(context, image, threads);
	bool more = false;

	for (unsigned i = 0; i < count; i++) {
		size_t len;

		if (attach_image_peek(image, remote_addr_make(threads[i]),
				      (size_t)layout->lua_State_sizeof, &len))
			continue;
		want(image, threads[i], threads[i] + (uint64_t)layout->lua_State_sizeof);
		more = true;
	}
	return more;
}

/* A coroutine's stack by its copied header: where it begins, and how far frames reach. */
struct plan_stack {
	uint64_t G, start, used_end, limit;
};

static bool read_header(struct attach_image *image, uint64_t thread, struct plan_stack *ret_stack)
{
	const struct luastate_layout *layout = &luastate_layouts[0];
	uint64_t rdx = attach_image_registers(image)->r[ATTACH_REG_RDX];
	size_t len;
	const uint8_t *L = attach_image_peek(image, remote_addr_make(thread),
					     (size_t)layout->lua_State_sizeof, &len);

	if (!L || len < (size_t)layout->lua_State_sizeof ||
	    L[layout->GCobj_gct] != layout->gct_thread)
		return false;
	*ret_stack = (struct plan_stack){
		.G = state_u64(L, layout->lua_State_glref),
		.start = state_u64(L, layout->lua_State_stack),
		.used_end = state_u64(L, layout->lua_State_base),
		.limit = state_u64(L, layout->lua_State_maxstack),
	};
	if (ret_stack->limit - ret_stack->start > LUA_STACK_MAX ||
	    ret_stack->used_end - ret_stack->start > LUA_STACK_MAX)
		return false;
	if (rdx > ret_stack->used_end && rdx <= ret_stack->limit)
		ret_stack->used_end = rdx;
	return true;
}

static bool is_copied_at(const struct attach_image *image, uint64_t address)
{
	size_t len;

	return attach_image_peek(image, remote_addr_make(address), 8, &len) && len == 8;
}

/* The Lua stack of one coroutine whose header is there, if it is not copied yet. A range that was
 * predicted too short may cover its start. */
static bool plan_stack(const struct luastate_plan_context *context, struct attach_image *image,
		       uint64_t thread)
{
	struct plan_stack stack;

	if (!read_header(image, thread, &stack) ||
	    (is_copied_at(image, stack.start) && is_copied_at(image, stack.used_end - 8)))
		return false;
	want_lua_stack(image, stack.start,
		       stack.used_end + LUA_SLACK < stack.limit ? stack.used_end + LUA_SLACK
								: stack.used_end);
	if (!is_copied_at(image, stack.G) && state_vm_by_G(context->state, stack.G))
		want(image, stack.G, stack.G + (uint64_t)luastate_layouts[0].global_State_sizeof);
	return true;
}

static bool plan_stacks(const struct luastate_plan_context *context, struct attach_image *image)
{
	uint64_t threads[PLAN_THREADS];
	unsigned count = collect_threads(context, image, threads);
	bool more = false;

	for (unsigned i = 0; i < count; i++)
		more |= plan_stack(context, image, threads[i]);
	return more;
}

/* A slot that holds a function, and behind it what can be a frame link: a bytecode address, or a
 * distance with a type. Values of a program look different, but for zero. */
static bool is_frame(uint64_t slot, uint64_t link)
{
	if (state_tag(slot) != luastate_layouts[0].tag_func)
		return false;
	return (link & 3) == 0 ? state_is_pointer(link) : link < LUA_STACK_MAX;
}

/* Addresses already asked for; recursion repeats few of them. */
struct wanted {
	uint64_t items[PLAN_FUNCTIONS];
	unsigned count;
};

static bool is_new(struct wanted *wanted, uint64_t address)
{
	if (wanted->count == PLAN_FUNCTIONS || !state_is_pointer(address) || address % 4 != 0)
		return false;
	for (unsigned i = wanted->count; i > 0 && i + 16 > wanted->count; i--)
		if (wanted->items[i - 1] == address)
			return false;
	wanted->items[wanted->count++] = address;
	return true;
}

/* Two copied slots. Looked up by address: a wish may move the image's memory, and the stack may
 * lie in two ranges of which the first is too short. */
static bool read_slots(const struct attach_image *image, uint64_t address, uint64_t *ret_slot,
		       uint64_t *ret_link)
{
	size_t len;
	const uint8_t *bytes = attach_image_peek(image, remote_addr_make(address), 16, &len);

	if (!bytes || len < 16)
		return false;
	*ret_slot = state_u64(bytes, 0);
	*ret_link = state_u64(bytes, 8);
	return true;
}

/* Visits what can be the function and link of a frame, from the leaf's end, as deep frames live
 * longer. */
static void each_frame(const struct luastate_plan_context *context, struct attach_image *image,
		       struct wanted *wanted,
		       void (*visit)(struct attach_image *, struct wanted *, uint64_t function,
				     uint64_t link))
{
	uint64_t threads[PLAN_THREADS], slot, link;
	unsigned thread_count = collect_threads(context, image, threads);

	for (unsigned k = 0; k < thread_count; k++) {
		struct plan_stack stack;
		uint64_t count, looked = 0;

		if (!read_header(image, threads[k], &stack))
			continue;
		count = (stack.used_end - stack.start) / 8;
		for (uint64_t i = count; i >= 2 && looked < PLAN_SLOTS; i--, looked++)
			if (read_slots(image, stack.start + 8 * (i - 2), &slot, &link) &&
			    is_frame(slot, link))
				visit(image, wanted, state_object(slot), link);
	}
}

/* Closures on the stack may be garbage a moment after the thread runs on, so they are read with
 * it. */
static void want_function(struct attach_image *image, struct wanted *wanted, uint64_t function,
			  uint64_t link)
{
	(void)link;
	if (is_new(wanted, function))
		want(image, function, function + (uint64_t)luastate_layouts[0].GCfunc_header);
}

/* Prototypes live as long as their code; with the return address goes the call before it. */
static void want_proto(struct attach_image *image, struct wanted *wanted, uint64_t function,
		       uint64_t link)
{
	const struct luastate_layout *layout = &luastate_layouts[0];
	const uint8_t *bytes;
	uint64_t proto;
	size_t len;

	if ((link & 3) == 0 && is_new(wanted, link))
		want(image, link - 4, link);
	bytes = attach_image_peek(image, remote_addr_make(function), (size_t)layout->GCfunc_header,
				  &len);
	if (!bytes || len < (size_t)layout->GCfunc_header || bytes[layout->GCfunc_ffid] != 0)
		return;
	proto = state_u64(bytes, layout->GCfunc_pc) - (uint64_t)layout->GCproto_sizeof;
	if (is_new(wanted, proto))
		want(image, proto, proto + (uint64_t)layout->GCproto_sizeof);
}

void luastate_plan_after(const struct luastate_plan_context *context, struct attach_image *image)
{
	uint64_t rbx = attach_image_registers(image)->r[ATTACH_REG_RBX];
	struct wanted wanted;

	wanted.count = 0;
	/* The call before the position, in case that is a return address just loaded. */
	if (is_new(&wanted, rbx))
		want(image, rbx - 4, rbx);
	each_frame(context, image, &wanted, want_proto);
}

/* Each step needs what the one before it asked for; a step without wishes costs no round. */
bool luastate_plan(void *context, struct attach_image *image, unsigned round)
{
	struct wanted wanted;

	if (round == 0) {
		plan_known(context, image);
		return true;
	}
	if (round < 2 && plan_headers(context, image))
		return true;
	if (round < 3 && plan_stacks(context, image))
		return true;
	wanted.count = 0;
	each_frame(context, image, &wanted, want_function);
	return false;
}

void luastate_learn(struct luastate *state, const struct attach_reader *reader,
		    const struct luastate_cframe *cframes, size_t count, uint64_t native_top,
		    bool cut, uint64_t sp, struct luastate_prediction *prediction)
{
	uint8_t L[STATE_OBJECT_MAX];
	struct failure why;
	uint64_t end = native_top + NATIVE_SLACK;

	if (cut)
		end = sp + 2 * (prediction->native_end > sp ? prediction->native_end - sp
							    : NATIVE_FIRST);
	if (native_top >= sp && (end > prediction->native_end || prediction->native_end < sp ||
				 prediction->native_end - sp > NATIVE_MAX))
		prediction->native_end = end;
	prediction->thread_count = 0;
	for (size_t i = 0; i < count && prediction->thread_count < PLAN_THREADS; i++) {
		const struct luastate_vm *vm;
		uint64_t stack, base;

		if (!cframes[i].L || is_predicted(prediction, cframes[i].L, 0))
			continue;
		vm = luastate_vm_of(state, reader, cframes[i].L, &why);
		if (!vm || state_read(reader, cframes[i].L, L, (size_t)vm->layout->lua_State_sizeof,
				      &why) != 0)
			continue;
		stack = state_u64(L, vm->layout->lua_State_stack);
		base = state_u64(L, vm->layout->lua_State_base);
		if (is_predicted(prediction, cframes[i].L, stack))
			continue;
		if (prediction->thread_count == 0)
			prediction->G = vm->G;
		prediction->threads[prediction->thread_count].L = cframes[i].L;
		prediction->threads[prediction->thread_count].stack = stack;
		prediction->threads[prediction->thread_count].used_end = base + LUA_SLACK;
		prediction->threads[prediction->thread_count].limit =
			state_u64(L, vm->layout->lua_State_maxstack);
		prediction->thread_count++;
	}
}
