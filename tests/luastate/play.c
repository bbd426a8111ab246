/* SPDX-License-Identifier: MIT */
#include "play.h"

#include <stdio.h>
#include <stdlib.h>

#include "attach/image/image_internal.h"

/*
 * The thread, from its root. Each C frame is followed by the frames of its run.
 *
 *   cpcall       a protected call of a C function: no run
 *   pcall        main (vararg) -> work -> pcall -> inner -> metamethod meta -> C function
 *   call         deep -> coroutine.resume
 *   resume       body, interrupted by C code of the VM
 *   call         fin -> …
 */
enum { PLAY_FF_PCALL = 7, PLAY_FF_RESUME = 9, PLAY_TRACE_NUMBER = 3 };

/* ---- The thread ------------------------------------------------------------------------- */

/** Functions and where they stand. */
struct cast {
	uint64_t main, work, inner, meta, deep, body, fin; /* prototypes */
	uint64_t pcall, resume, c;			   /* functions */
};

static void make_names(struct fake_vm *vm, const struct cast *cast)
{
	uint64_t globals = fake_module(vm, "_G", 2), coroutine = fake_module(vm, "coroutine", 2);
	uint64_t lib = fake_module(vm, "lib", 2);

	fake_module_set(vm, globals, "pcall", cast->pcall);
	fake_module_set(vm, coroutine, "resume", cast->resume);
	fake_module_set(vm, lib, "c", cast->c);
}

static struct cast make_cast(struct fake_vm *vm)
{
	struct cast cast = { .main = fake_caller(vm, "@main.lua", 0, "work"),
			     .work = fake_caller(vm, "@main.lua", 10, "pcall"),
			     .inner = fake_caller(vm, "@main.lua", 20, "index"),
			     .meta = fake_caller(vm, "@meta.lua", 30, "c"),
			     .deep = fake_caller(vm, "@deep.lua", 40, "resume"),
			     .body = fake_caller(vm, "@deep.lua", 50, "gc"),
			     .fin = fake_caller(vm, "@fin.lua", 60, "c"),
			     .pcall = fake_asm_function(vm, 20, PLAY_FF_PCALL),
			     .resume = fake_asm_function(vm, 21, PLAY_FF_RESUME),
			     .c = fake_c_function(vm, vm->host + FAKE_HOST_LEAF) };

	make_names(vm, &cast);
	return cast;
}

static uint64_t ff_code(const struct fake_vm *vm, uint64_t index)
{
	return fake_member(vm->G, vm->layout->global_State_to_bcff) + 4 * index;
}

/* Put a true frame in front of the others. */
static void expect(struct play *play, enum luastate_kind kind, uint64_t address, uint64_t vm_frame,
		   uint32_t line, const char *chunkname, const char *name)
{
	MUST(play->frame_count < PLAY_FRAMES_MAX);
	memmove(play->frames + 1, play->frames, play->frame_count * sizeof(play->frames[0]));
	play->frame_count++;
	play->frames[0] = (struct play_frame){ .kind = kind,
					       .address = address,
					       .vm_frame = vm_frame,
					       .line = line,
					       .chunkname = chunkname,
					       .name = name };
}

/* A C frame; @kept is PC as the code that called has it. */
static uint64_t enter(struct play *play, uint64_t L, int32_t nres, uint64_t kept)
{
	struct fake_vm *vm = play->vm;
	uint64_t frame = fake_cframe(vm, L, nres, 0);

	/* rbx is saved below the return address and rbp. */
	fake_put_u64(vm, fake_cframe_ret(vm, frame) - 16, kept);
	play->vm_frame_count++;
	return frame;
}

/* A function of the application that VM code called, with one word of its own. */
static void push_host(struct fake_vm *vm)
{
	fake_push(vm, vm->code + FAKE_AT_RETURN);
	fake_push(vm, 0);
}

/* The first two C frames and what runs in them. */
static void build_main(struct play *play, const struct cast *cast)
{
	struct fake_vm *vm = play->vm;
	uint64_t frame, L = vm->main, main_function = fake_lua_function(vm, cast->main);

	enter(play, L, -8, 0);
	push_host(vm);
	frame = enter(play, L, 1, 0);
	fake_call(vm, L, main_function, 0, FAKE_LINK_CP);
	fake_call(vm, L, main_function, 2, FAKE_LINK_VARG);
	expect(play, LUASTATE_LUA, cast->main, frame, 2, "@main.lua", "main chunk");
	fake_call_lua(vm, L, fake_lua_function(vm, cast->work), fake_pc(vm, cast->main, 3));
	expect(play, LUASTATE_LUA, cast->work, frame, 12, "@main.lua", "work");
	fake_call_lua(vm, L, cast->pcall, fake_pc(vm, cast->work, 3));
	expect(play, LUASTATE_BUILTIN, ff_code(vm, PLAY_FF_PCALL), frame, 0, NULL, "pcall");
	fake_call(vm, L, fake_lua_function(vm, cast->inner), 0, FAKE_LINK_PCALL);
	expect(play, LUASTATE_LUA, cast->inner, frame, 21, "@main.lua", NULL);
	fake_call_cont(vm, L, fake_lua_function(vm, cast->meta), 4, fake_pc(vm, cast->inner, 2));
	expect(play, LUASTATE_LUA, cast->meta, frame, 32, "@meta.lua", NULL);
	fake_call_lua(vm, L, cast->c, fake_pc(vm, cast->meta, 3));
	expect(play, LUASTATE_C, vm->host + FAKE_HOST_LEAF, frame, 0, NULL, "lib.c");
	push_host(vm);
}

/* A coroutine on top. @return it. */
static uint64_t build_coroutine(struct play *play, const struct cast *cast)
{
	struct fake_vm *vm = play->vm;
	uint64_t frame, L = vm->main, co = fake_coroutine(vm, 32);

	frame = enter(play, L, 2, fake_pc(vm, cast->meta, 3));
	fake_call(vm, L, fake_lua_function(vm, cast->deep), 1, FAKE_LINK_C);
	expect(play, LUASTATE_LUA, cast->deep, frame, 42, "@deep.lua", NULL);
	fake_call_lua(vm, L, cast->resume, fake_pc(vm, cast->deep, 3));
	expect(play, LUASTATE_BUILTIN, ff_code(vm, PLAY_FF_RESUME), frame, 0, NULL,
	       "coroutine.resume");
	/* VM code calls itself. */
	frame = enter(play, co, 0, 0);
	fake_put_u64(vm, fake_cframe_ret(vm, frame), vm->code + FAKE_AT_RETURN);
	fake_call(vm, co, fake_lua_function(vm, cast->body), 0, FAKE_LINK_CP);
	expect(play, LUASTATE_LUA, cast->body, frame, 51, "@deep.lua", NULL);
	push_host(vm);
	fake_put_ref(vm, fake_member(vm->G, vm->layout->global_State_cur_L), co);
	return co;
}

/* The newest C frame. @return the base of what runs in it. */
static uint64_t build_top(struct play *play, const struct cast *cast, uint64_t co,
			  enum play_leaf leaf, uint64_t *ret_frame)
{
	struct fake_vm *vm = play->vm;
	uint64_t fin = fake_lua_function(vm, cast->fin), base;

	/* body stands at its second instruction: what called C knows that alone. */
	*ret_frame = enter(play, co, 1, fake_pc(vm, cast->body, 2));
	if (leaf != PLAY_CALLBACK)
		return fake_call(vm, co, fin, 4, FAKE_LINK_C);
	base = fake_call(vm, co, fin, 4, FAKE_LINK_CONT);
	fake_put_cont(vm, base, 5, 1); /* the callback's number; LJ_CONT_FFI_CALLBACK */
	return base;
}

static void set_registers(struct play *play, uint64_t pc, uint64_t base, uint64_t position)
{
	play->regs.syscall = -1;
	play->regs.r[ATTACH_REG_PC] = pc;
	play->regs.r[ATTACH_REG_SP] = play->vm->sp;
	play->regs.r[STATE_REG_BASE] = base;
	play->regs.r[STATE_REG_PC] = position;
}

static void build_leaf(struct play *play, const struct cast *cast, uint64_t co, enum play_leaf leaf)
{
	struct fake_vm *vm = play->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t frame, base = build_top(play, cast, co, leaf, &frame);
	bool compiled = leaf == PLAY_TRACE || leaf == PLAY_LATE;
	uint32_t line = leaf == PLAY_C ? 62 : compiled ? 60 : 61;

	expect(play, LUASTATE_LUA, cast->fin, frame, line, "@fin.lua", NULL);
	if (leaf == PLAY_C) {
		fake_call_lua(vm, co, cast->c, fake_pc(vm, cast->fin, 3));
		expect(play, LUASTATE_C, vm->host + FAKE_HOST_LEAF, frame, 0, NULL, "lib.c");
		push_host(vm);
		set_registers(play, vm->host + FAKE_HOST_LEAF, 0, fake_pc(vm, cast->fin, 3));
	} else if (compiled) {
		fake_trace(vm, PLAY_TRACE_NUMBER, 8, cast->fin, 1);
		expect(play, LUASTATE_TRACE, PLAY_TRACE_NUMBER, frame, 61, "@fin.lua", NULL);
		fake_put_u32(vm, fake_member(vm->G, layout->global_State_vmstate),
			     PLAY_TRACE_NUMBER);
		fake_put_ref(vm, fake_member(vm->G, layout->global_State_jit_base), base);
		set_registers(play, play->mcode, 0, 0);
	} else {
		set_registers(play, vm->code + FAKE_AT_PLAIN, base, fake_pc(vm, cast->fin, 2));
	}
}

void play_init(struct play *play, const struct fake_options *options, enum play_leaf leaf)
{
	struct cast cast;

	memset(play, 0, sizeof(*play));
	play->vm = fake_vm_create(options);
	play->leaf = leaf;
	play->mcode = play->vm->base - 0x10000;
	cast = make_cast(play->vm);
	build_main(play, &cast);
	build_leaf(play, &cast, build_coroutine(play, &cast), leaf);
}

void play_deinit(struct play *play)
{
	fake_vm_destroy(play->vm);
}

uint64_t play_fill(const struct luastate_layout *layout)
{
	struct fake_vm *vm = fake_vm_create(&(struct fake_options){ .layout = layout });
	uint64_t object = vm->registry;

	fake_vm_destroy(vm);
	return layout->gc64 ? object : object << 32 | object;
}

/* ---- The sample ------------------------------------------------------------------------- */

static struct attach_image *stop(struct play *play, struct luastate *state)
{
	static struct luastate_plan_context context;
	struct luastate_prediction prediction = { 0 };
	struct attach_image *image = attach_image_create();
	bool more = true;

	MUST(image);
	memset(&context, 0, sizeof(context));
	context.state = state;
	context.prediction = &prediction;
	context.stack_limit = play->vm->native_end;
	*attach_image_registers(image) = play->regs;
	for (unsigned round = 0; more && round < FAKE_ROUNDS_MAX; round++) {
		more = luastate_plan(&context, image, round);
		fake_fill_image(image, &play->vm->reader);
	}
	return image;
}

/* The caller of a function of the application's, see push_host(). */
static bool unwind_host(struct attach_registers *regs, const struct attach_reader *stopped)
{
	uint64_t words[2];
	struct failure why;

	if (state_read(stopped, attach_sp(regs), words, sizeof(words), &why) != 0)
		return false;
	regs->r[ATTACH_REG_PC] = words[1];
	regs->r[ATTACH_REG_SP] += sizeof(words);
	return true;
}

bool play_find_cframes(const struct play *play, struct luastate *state,
		       const struct luastate_memory *memory, struct luastate_vm_frame *ret_cframes)
{
	struct attach_registers regs = play->regs;
	struct failure why;
	bool leaf = true;

	for (size_t i = 0; i < play->vm_frame_count; leaf = false) {
		int found;

		if (attach_pc(&regs) - play->vm->host < FAKE_HOST_BYTES) {
			if (!unwind_host(&regs, memory->stopped))
				return false;
			continue;
		}
		found = attach_pc(&regs) == play->mcode
				? luastate_find_trace_vm_frame(state, memory, &regs, i == 0,
							       &ret_cframes[i], &why)
				: luastate_find_vm_frame(state, memory, &regs, leaf,
							 &ret_cframes[i], &why);
		if (found != 0)
			return false;
		regs = ret_cframes[i++].caller;
	}
	return true;
}

/* ---- Judging ---------------------------------------------------------------------------- */

static bool same(const char *one, const char *other)
{
	return one == other || (one && other && strcmp(one, other) == 0);
}

/* What is wrong with a frame; NULL if nothing is. */
static const char *judge_frame(const struct play_frame *truth, const struct luastate_frame *frame,
			       const struct luastate_vm_frame *vm_frames)
{
	const struct luastate_function *function = frame->function;

	if (function->kind != truth->kind || function->address != truth->address)
		return "function";
	if (frame->line != truth->line)
		return "line";
	if (!same(function->chunkname, truth->chunkname))
		return "chunk name";
	if (vm_frames[frame->owner].address != truth->vm_frame)
		return "C frame";
	/* Where tables cannot be read, fast functions have their numbers. */
	if (function->name && strncmp(function->name, "builtin#", 8) != 0 &&
	    !same(function->name, truth->name))
		return "name";
	return NULL;
}

static enum play_result judge(struct play *play, const struct luastate_chain *chain,
			      const struct luastate_vm_frame *vm_frames)
{
	const struct play_frame *truth = play->frames;
	size_t count = play->frame_count;

	if (chain->outcome != LUASTATE_FULL)
		return PLAY_PARTIAL;
	/* A trace that cannot be read is left out; its number is in the chain. */
	if (truth->kind == LUASTATE_TRACE && chain->count == count - 1) {
		truth++;
		count--;
	}
	snprintf(play->text, sizeof(play->text), "%zu frames", chain->count);
	if (chain->count != count)
		return PLAY_WRONG;
	for (size_t i = 0; i < count; i++) {
		const char *what = judge_frame(&truth[i], &chain->frames[i], vm_frames);

		if (!what)
			continue;
		snprintf(play->text, sizeof(play->text), "%s of frame %zu: line %u, name %s", what,
			 i, chain->frames[i].line,
			 chain->frames[i].function->name ? chain->frames[i].function->name : "-");
		return PLAY_WRONG;
	}
	return PLAY_RIGHT;
}

enum play_result play_sample(struct play *play, struct luastate *state)
{
	static struct luastate_chain chain;
	struct luastate_vm_frame vm_frames[PLAY_CFRAMES_MAX];
	struct attach_image *image = stop(play, state);
	const struct luastate_memory memory = { .stopped = attach_image_reader(image),
						.any = &play->vm->reader };
	enum play_result result = PLAY_PARTIAL;

	luastate_begin_sample(state, memory.any);
	if (play_find_cframes(play, state, &memory, vm_frames)) {
		luastate_walk(state, &memory, vm_frames, play->vm_frame_count, &chain);
		result = judge(play, &chain, vm_frames);
	}
	attach_image_destroy(image);
	return result;
}

/* Members of the VM that tell of compiled code, and what they hold where there is none. */
struct trace_members {
	uint64_t trace, sizetrace, freetrace, vmstate, jit_base;
};

static struct trace_members swap_members(struct fake_vm *vm, struct trace_members new)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = fake_member(vm->G, layout->global_State_to_J);
	uint64_t vmstate = fake_member(vm->G, layout->global_State_vmstate);
	uint64_t jit_base = fake_member(vm->G, layout->global_State_jit_base);
	struct trace_members old = {
		.trace = fake_get_u64(vm, fake_member(J, layout->jit_State_trace)),
		.sizetrace = fake_get_u32(vm, fake_member(J, layout->jit_State_sizetrace)),
		.freetrace = fake_get_u32(vm, fake_member(J, layout->jit_State_freetrace)),
		.vmstate = fake_get_u32(vm, vmstate),
		.jit_base = fake_get_ref(vm, jit_base),
	};

	fake_put_u64(vm, fake_member(J, layout->jit_State_trace), new.trace);
	fake_put_u32(vm, fake_member(J, layout->jit_State_sizetrace), (uint32_t) new.sizetrace);
	fake_put_u32(vm, fake_member(J, layout->jit_State_freetrace), (uint32_t) new.freetrace);
	fake_put_u32(vm, vmstate, (uint32_t) new.vmstate);
	fake_put_ref(vm, jit_base, new.jit_base);
	return old;
}

/* In one of the ways of a recording. */
static bool find(struct play *play, struct luastate *state)
{
	struct fake_vm *vm = play->vm;
	struct trace_members kept = { 0 };
	uint64_t sp = attach_sp(&play->regs);
	struct failure why;
	bool found;

	if (play->leaf == PLAY_LATE)
		kept = swap_members(vm, (struct trace_members){
						.vmstate = (uint32_t)~vm->layout->vmst_interp });
	found = luastate_find_in_frame(state, &vm->reader, &play->regs, &why) ||
		luastate_find_on_stack(state, &vm->reader, sp, vm->native_end, &why) ||
		luastate_find_in_range(state, &vm->reader, vm->main, vm->main + 4096, &why);
	if (play->leaf == PLAY_LATE)
		swap_members(vm, kept);
	return found;
}

enum play_result play_run(struct play *play)
{
	struct fake_vm *vm = play->vm;
	struct luastate *state;
	enum play_result result = PLAY_REFUSED;

	if (!fake_vm_is_interpreter(vm))
		return PLAY_REFUSED;
	state = fake_vm_open(vm, false);
	if (find(play, state)) {
		result = play_sample(play, state);
		/* In the next sample functions are known. */
		if (result == PLAY_RIGHT)
			result = play_sample(play, state);
	}
	luastate_destroy(state);
	return result;
}
