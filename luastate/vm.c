/* SPDX-License-Identifier: MIT */
/* Finding VMs and proving that they are what they seem. */
#define LUASTATE_LAYOUT_ROWS
#include "luastate/state.h"

#include <stdlib.h>

struct luastate *luastate_create(void)
{
	struct luastate *state = calloc(1, sizeof(*state));

	if (state)
		state->serial = 1;
	return state;
}

void luastate_reset(struct luastate *state)
{
	for (size_t i = 0; i < state->interpreter_count; i++)
		free(state->interpreters[i].code);
	state->interpreter_count = 0;
	state->vm_count = 0;
	state_free_protos(state);
	state_free_callables(state);
	state_free_names(state);
}

void luastate_destroy(struct luastate *state)
{
	if (!state)
		return;
	luastate_reset(state);
	free(state);
}

/* Prove the known VMs again, so that an image holds what the proof needs. */
static void find_again(struct luastate *state, const struct attach_reader *reader)
{
	size_t count = state->vm_count;
	struct failure why;

	state->vm_count = 0;
	for (size_t i = 0; i < count; i++)
		luastate_vm_of(state, reader, state->vms[i].main_thread, &why);
}

void luastate_begin_sample(struct luastate *state, const struct attach_reader *reader)
{
	state->serial++;
	if (state->thorough)
		find_again(state, reader);
	/* Here nothing of an earlier sample is referred to any more. */
	if (HASH_COUNT(state->protos) > STATE_FUNCTIONS_MAX)
		state_free_protos(state);
	if (HASH_COUNT(state->callables) > STATE_FUNCTIONS_MAX)
		state_free_callables(state);
}

void luastate_set_thorough(struct luastate *state, bool thorough)
{
	state->thorough = thorough;
}

/* ---- The interpreter's code ------------------------------------------------------------- */

/*
 * The VM's C frame on x86-64 (vm_x64.dasc, "Stack layout while in interpreter"):
 *
 *   rsp+72  return address   CFA-8
 *   rsp+64  rbp              CFA-16
 *   rsp+56  rbx              CFA-24
 *   rsp+48  r15              CFA-32
 *   rsp+40  r14              CFA-40
 *   rsp+32  SAVE_CFRAME      link to the previous C frame
 *   rsp+24  SAVE_PC
 *   rsp+16  SAVE_L
 *   rsp+8   SAVE_NRES, SAVE_ERRF
 *   rsp     TMP1             <- rsp while in the interpreter
 */
bool luastate_is_interpreter(const struct luastate_unwind_rule *rule)
{
	const int64_t *saved = rule->saved_offset;

	return rule->end - rule->start >= LUASTATE_INTERPRETER_MIN_BYTES &&
	       rule->cfa_register == ATTACH_REG_RSP && rule->cfa_offset == 80 &&
	       saved[ATTACH_REG_RBP] == -16 && saved[ATTACH_REG_RBX] == -24 &&
	       saved[ATTACH_REG_R15] == -32 && saved[ATTACH_REG_R14] == -40;
}

int luastate_add_interpreter(struct luastate *state, uint64_t start, uint64_t end,
			     const uint8_t *code, struct failure *why)
{
	struct state_interpreter *interpreter;

	if (state->interpreter_count == STATE_INTERPRETERS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, start, "follow one more interpreter");
	interpreter = &state->interpreters[state->interpreter_count];
	interpreter->code = malloc(end - start);
	if (!interpreter->code)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, start, "keep the interpreter");
	memcpy(interpreter->code, code, end - start);
	interpreter->start = start;
	interpreter->end = end;
	state->interpreter_count++;
	return 0;
}

const struct state_interpreter *state_interpreter_at(const struct luastate *state, uint64_t pc)
{
	for (size_t i = 0; i < state->interpreter_count; i++)
		if (pc >= state->interpreters[i].start && pc < state->interpreters[i].end)
			return &state->interpreters[i];
	return NULL;
}

bool luastate_in_interpreter(const struct luastate *state, uint64_t pc)
{
	return state_interpreter_at(state, pc) != NULL;
}

bool luastate_has_interpreter(const struct luastate *state)
{
	return state->interpreter_count > 0;
}

/* ---- Objects ---------------------------------------------------------------------------- */

int state_read_object(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, int32_t gct, void *ret_bytes, size_t len,
		      struct failure *why)
{
	if (!state_is_pointer(address) || address % 8 != 0)
		return failure_set(why, FAILURE_INVALID, 0, 0, address, "follow an object");
	if (state_read(reader, address, ret_bytes, len, why) != 0)
		return -1;
	if (((const uint8_t *)ret_bytes)[layout->GCobj_gct] != gct)
		return failure_set(why, FAILURE_INVALID, 0, 0, address, "follow an object");
	return 0;
}

int state_read_string(const struct luastate_layout *layout, const struct attach_reader *reader,
		      uint64_t address, char *ret_text, size_t size, struct failure *why)
{
	uint8_t header[STATE_OBJECT_MAX];
	uint32_t len;

	if (state_read_object(layout, reader, address, layout->gct_str, header,
			      (size_t)layout->GCstr_sizeof, why) != 0)
		return -1;
	len = state_u32(header, layout->GCstr_len);
	if (len > size - 1)
		len = (uint32_t)size - 1;
	if (len &&
	    state_read(reader, address + (uint64_t)layout->GCstr_sizeof, ret_text, len, why) != 0)
		return -1;
	ret_text[len] = '\0';
	return 0;
}

/* ---- Invariants ------------------------------------------------------------------------- */

/* Right behind the dispatch table the fast functions' bytecode counts up their opcodes
 * (lj_dispatch_init). That tells builds in which any part before it is longer or shorter. */
static bool check_bcff(const struct luastate_layout *layout, const struct attach_reader *reader,
		       uint64_t G)
{
	uint32_t bcff[STATE_FFIDS];
	struct failure why;

	if (state_read(reader, G + (uint64_t)layout->global_State_to_bcff, bcff,
		       (size_t)layout->global_State_bcff_size, &why) != 0)
		return false;
	for (int32_t i = 0; i < layout->global_State_bcff_size / 4; i++)
		if ((bcff[i] & 0xff) != (uint32_t)(layout->dispatch_ff_first + i))
			return false;
	return true;
}

/*
 * What must hold of a live global_State, whatever the program does:
 * - the main thread and it point at each other, and the main thread lies right before it;
 * - the empty string inside it is a string of length 0, terminated;
 * - the string table's mask is 2^n-1;
 * - vmstate is the complement of a state, or a trace number;
 * - a current coroutine, if any, is a thread of the same VM;
 * - the dispatch table points into an interpreter, and what lies behind it is in its place.
 */
static bool check_global(const struct luastate *state, const struct luastate_layout *layout,
			 const struct attach_reader *reader, uint64_t G, uint64_t main_thread)
{
	uint8_t g[4096], L[STATE_OBJECT_MAX];
	uint64_t cur, dispatch;
	uint32_t mask;
	int32_t vmstate;
	struct failure why;

	if (state_read(reader, G, g, (size_t)layout->global_State_sizeof, &why) != 0 ||
	    state_object(state_u64(g, layout->global_State_mainthref)) != main_thread)
		return false;
	if (g[layout->global_State_strempty + layout->GCobj_gct] != layout->gct_str ||
	    state_u32(g, layout->global_State_strempty + layout->GCstr_len) != 0 ||
	    g[layout->global_State_stremptyz] != 0)
		return false;
	mask = state_u32(g, layout->global_State_str_mask);
	vmstate = (int32_t)state_u32(g, layout->global_State_vmstate);
	if (mask < 15 || (mask & (mask + 1)) != 0 || vmstate < ~layout->vmst_asm || vmstate > 65535)
		return false;
	cur = state_object(state_u64(g, layout->global_State_cur_L));
	if (cur && (state_read_object(layout, reader, cur, layout->gct_thread, L,
				      (size_t)layout->lua_State_sizeof, &why) != 0 ||
		    state_u64(L, layout->lua_State_glref) != G))
		return false;
	return state_read(reader, G + (uint64_t)layout->global_State_to_dispatch, &dispatch,
			  sizeof(dispatch), &why) == 0 &&
	       luastate_in_interpreter(state, dispatch) && check_bcff(layout, reader, G);
}

const struct luastate_vm *state_vm_by_G(const struct luastate *state, uint64_t G)
{
	for (size_t i = 0; i < state->vm_count; i++)
		if (state->vms[i].G == G)
			return &state->vms[i];
	return NULL;
}

static const struct luastate_vm *add_vm(struct luastate *state,
					const struct luastate_layout *layout,
					const struct attach_reader *reader, uint64_t G,
					struct failure *why)
{
	uint64_t main_thread = G - (uint64_t)layout->lua_State_sizeof;
	uint8_t L[STATE_OBJECT_MAX];
	struct luastate_vm *vm;

	if (state_read_object(layout, reader, main_thread, layout->gct_thread, L,
			      (size_t)layout->lua_State_sizeof, why) != 0)
		return NULL;
	if (state_u64(L, layout->lua_State_glref) != G ||
	    !check_global(state, layout, reader, G, main_thread)) {
		failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "recognise the VM");
		return NULL;
	}
	if (state->vm_count == STATE_VMS_MAX) {
		/* VMs come and go; those that still live are found again. */
		state->vm_count = 0;
	}
	vm = &state->vms[state->vm_count++];
	*vm = (struct luastate_vm){ .G = G, .main_thread = main_thread, .layout = layout };
	return vm;
}

const struct luastate_vm *luastate_vm_of(struct luastate *state, const struct attach_reader *reader,
					 uint64_t L, struct failure *why)
{
	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];
		const struct luastate_vm *vm;
		uint8_t bytes[STATE_OBJECT_MAX];
		uint64_t G;

		if (state_read_object(layout, reader, L, layout->gct_thread, bytes,
				      (size_t)layout->lua_State_sizeof, why) != 0)
			continue;
		G = state_u64(bytes, layout->lua_State_glref);
		vm = state_vm_by_G(state, G);
		if (!vm && state_is_pointer(G) && G % 8 == 0)
			vm = add_vm(state, layout, reader, G, why);
		if (vm)
			return vm;
	}
	failure_set(why, FAILURE_NOT_FOUND, 0, 0, L, "recognise the VM");
	return NULL;
}

size_t luastate_vm_count(const struct luastate *state)
{
	return state->vm_count;
}

const struct luastate_vm *luastate_vm_get(const struct luastate *state, size_t index)
{
	return &state->vms[index];
}

/* ---- Search ----------------------------------------------------------------------------- */

enum {
	/* The interpreter's frame nearest to the leaf is seldom deeper than this. */
	SEARCH_STACK_BYTES = 256 * 1024,
	SEARCH_CHUNK = 64 * 1024,
};

/* Every word of a native stack that is a return address into the interpreter ends a callee right
 * below an interpreter frame, whose SAVE_L names the coroutine. */
const struct luastate_vm *luastate_find_on_stack(struct luastate *state,
						 const struct attach_reader *reader, uint64_t sp,
						 uint64_t limit, struct failure *why)
{
	uint64_t words[64], L; /* small pieces: the stack ends anywhere in its last page */

	if (limit <= sp || limit - sp > SEARCH_STACK_BYTES)
		limit = sp + SEARCH_STACK_BYTES;
	for (uint64_t at = sp & ~(uint64_t)7; at < limit; at += sizeof(words)) {
		size_t len = limit - at < sizeof(words) ? (size_t)(limit - at) : sizeof(words);

		if (state_read(reader, at, words, len, why) != 0)
			return NULL;
		for (size_t i = 0; i < len / 8; i++) {
			const struct luastate_vm *vm;
			uint64_t frame = at + i * 8 + 8;

			if (!luastate_in_interpreter(state, words[i]) ||
			    state_read(reader, frame + (uint64_t)luastate_layouts[0].cframe_L, &L,
				       sizeof(L), why) != 0)
				continue;
			vm = luastate_vm_of(state, reader, L, why);
			if (vm)
				return vm;
		}
	}
	failure_set(why, FAILURE_NOT_FOUND, 0, 0, sp, "find a VM on the stack");
	return NULL;
}

static const struct luastate_vm *check_main_thread(struct luastate *state,
						   const struct attach_reader *reader,
						   const uint8_t *bytes, uint64_t address,
						   struct failure *why)
{
	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];

		if (bytes[layout->GCobj_gct] == layout->gct_thread &&
		    state_u64(bytes, layout->lua_State_glref) ==
			    address + (uint64_t)layout->lua_State_sizeof)
			return luastate_vm_of(state, reader, address, why);
	}
	return NULL;
}

const struct luastate_vm *luastate_find_in_range(struct luastate *state,
						 const struct attach_reader *reader, uint64_t start,
						 uint64_t end, struct failure *why)
{
	uint8_t *chunk = malloc(SEARCH_CHUNK + STATE_OBJECT_MAX);
	const struct luastate_vm *found = NULL;

	if (!chunk) {
		failure_set(why, FAILURE_NO_MEMORY, 0, 0, start, "search memory");
		return NULL;
	}
	for (uint64_t at = start; at < end && !found; at += SEARCH_CHUNK) {
		size_t len = end - at < SEARCH_CHUNK + STATE_OBJECT_MAX
				     ? (size_t)(end - at)
				     : SEARCH_CHUNK + STATE_OBJECT_MAX;

		if (state_read(reader, at, chunk, len, why) != 0) {
			if (why->kind == FAILURE_GONE)
				break;
			continue; /* a hole: memory comes and goes while it is searched */
		}
		for (size_t i = 0; i + STATE_OBJECT_MAX <= len && i < SEARCH_CHUNK && !found;
		     i += 8)
			found = check_main_thread(state, reader, chunk + i, at + i, why);
	}
	free(chunk);
	if (!found)
		failure_set(why, FAILURE_NOT_FOUND, 0, 0, start, "find a VM in memory");
	return found;
}

/* ---- VM state --------------------------------------------------------------------------- */

int luastate_read_vmstate(struct luastate *state, const struct attach_reader *reader, uint64_t G,
			  int *ret_vmstate, struct failure *why)
{
	const struct luastate_vm *vm = state_vm_by_G(state, G);
	int32_t vmstate;

	if (!vm)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, G, "find the VM");
	if (state_read(reader, G + (uint64_t)vm->layout->global_State_vmstate, &vmstate,
		       sizeof(vmstate), why) != 0)
		return -1;
	*ret_vmstate = vmstate;
	return 0;
}

/* Mainline's states in sysprof's numbers; its C is CFUNC there. */
int luastate_sysprof_state(const struct luastate *state, int vmstate)
{
	const struct luastate_layout *layout =
		state->vm_count ? state->vms[0].layout : &luastate_layouts[0];
	int number = ~vmstate;

	if (vmstate > 0)
		return 9;
	if (number == layout->vmst_interp)
		return 0;
	if (number == layout->vmst_c)
		return 3;
	if (number >= layout->vmst_gc && number <= layout->vmst_asm)
		return 4 + number - layout->vmst_gc;
	return -1;
}
