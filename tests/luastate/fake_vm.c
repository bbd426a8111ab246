/* SPDX-License-Identifier: MIT */
#include "luastate/arch/arch.h"
#include "fake_vm.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "attach/image/image_internal.h"

enum {
	/* Unreadable bytes between objects. */
	FAKE_GAP = 16,
	FAKE_PAGE = 4096,
};

/* ---- Memory ----------------------------------------------------------------------------- */

size_t fake_offset(const struct fake_vm *vm, uint64_t address)
{
	if (address >= vm->base + vm->split && address < vm->base + FAKE_BYTES)
		return (size_t)(address - vm->base);
	if (address >= vm->heap_base && address < vm->heap_base + vm->split)
		return (size_t)(address - vm->heap_base);
	return FAKE_BYTES;
}

uint64_t fake_address(const struct fake_vm *vm, size_t offset)
{
	return (offset < vm->split ? vm->heap_base : vm->base) + offset;
}

size_t fake_left(const struct fake_vm *vm, size_t offset)
{
	return vm->heap_base != vm->base && offset < vm->split ? vm->split - offset
							       : FAKE_BYTES - offset;
}

static int fake_read(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		     struct failure *why)
{
	struct fake_vm *vm = self;
	size_t at = fake_offset(vm, address.value), left = fake_left(vm, at);
	const uint8_t *unknown;

	vm->reads++;
	vm->bytes_read += len;
	if (len == 0)
		return 0;
	if (at == FAKE_BYTES)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read fake memory");
	unknown = memchr(vm->known + at, 0, len < left ? len : left);
	if (unknown)
		return failure_set(why, FAILURE_FAULT, 0, 0,
				   address.value + (uint64_t)(unknown - vm->known) - at,
				   "read fake memory");
	if (len > left)
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value + left,
				   "read fake memory");
	memcpy(ret_bytes, vm->bytes + at, len);
	return 0;
}

static void note_block(struct fake_vm *vm, uint64_t address, size_t len)
{
	size_t count = vm->block_count;

	if ((count & (count - 1)) == 0) {
		vm->blocks = realloc(vm->blocks, (count ? 2 * count : 1) * sizeof(*vm->blocks));
		MUST(vm->blocks);
	}
	vm->blocks[vm->block_count++] = (struct fake_block){ .address = address, .len = len };
}

uint64_t fake_alloc(struct fake_vm *vm, size_t len)
{
	size_t at = (vm->next - len) & ~(size_t)7;

	MUST(len < vm->next && at >= FAKE_GAP);
	vm->next = at - FAKE_GAP;
	memset(vm->known + at, 1, len);
	note_block(vm, fake_address(vm, at), len);
	return fake_address(vm, at);
}

uint8_t *fake_at(const struct fake_vm *vm, uint64_t address, size_t len)
{
	size_t at = fake_offset(vm, address);

	MUST(at < FAKE_BYTES && len <= fake_left(vm, at));
	return vm->bytes + at;
}

void fake_put(struct fake_vm *vm, uint64_t address, const void *bytes, size_t len)
{
	if (len)
		memcpy(fake_at(vm, address, len), bytes, len);
}

void fake_put_u8(struct fake_vm *vm, uint64_t address, uint8_t value)
{
	fake_put(vm, address, &value, sizeof(value));
}

void fake_put_u16(struct fake_vm *vm, uint64_t address, uint32_t value)
{
	fake_put(vm, address, &value, 2);
}

void fake_put_u32(struct fake_vm *vm, uint64_t address, uint32_t value)
{
	fake_put(vm, address, &value, sizeof(value));
}

void fake_put_u64(struct fake_vm *vm, uint64_t address, uint64_t value)
{
	fake_put(vm, address, &value, sizeof(value));
}

void fake_put_ref(struct fake_vm *vm, uint64_t address, uint64_t value)
{
	fake_put(vm, address, &value, (size_t)vm->layout->ref_size);
}

uint32_t fake_get_u32(const struct fake_vm *vm, uint64_t address)
{
	return state_u32(fake_at(vm, address, 4), 0);
}

uint64_t fake_get_u64(const struct fake_vm *vm, uint64_t address)
{
	return state_u64(fake_at(vm, address, 8), 0);
}

uint64_t fake_get_ref(const struct fake_vm *vm, uint64_t address)
{
	return state_ref(vm->layout, fake_at(vm, address, (size_t)vm->layout->ref_size), 0);
}

void fake_hide(struct fake_vm *vm, uint64_t address, size_t len)
{
	memset(vm->known + (fake_at(vm, address, len) - vm->bytes), 0, len);
}

void fake_show(struct fake_vm *vm, uint64_t address, size_t len)
{
	memset(vm->known + (fake_at(vm, address, len) - vm->bytes), 1, len);
}

/* ---- The VM ----------------------------------------------------------------------------- */

static void put_call(struct fake_vm *vm, uint64_t address, uint64_t callee)
{
	fake_put_u8(vm, address, 0xe8);
	fake_put_u32(vm, address + 1, (uint32_t)(callee - address - 5));
}

static void put_sequences(struct fake_vm *vm)
{
	uint8_t room = (uint8_t)(vm->layout->cframe_size - 40);
	const uint8_t prologue[] = { 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, room };
	const uint8_t epilogue[] = { 0x48, 0x83, 0xc4, room, 0x41, 0x5e,
				     0x41, 0x5f, 0x5b, 0x5d, 0xc3 };

	fake_put(vm, vm->code + FAKE_AT_PROLOGUE, prologue, sizeof(prologue));
	fake_put(vm, vm->code + FAKE_AT_EPILOGUE, epilogue, sizeof(epilogue));
}

/* The instructions that move PC and BASE; a prefix makes them 64 bits wide. */
static void put_moments(struct fake_vm *vm)
{
	static const uint8_t next[] = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f,
					0xb6, 0xe8, 0x48, 0x83, 0xc3, 0x04 };
	static const uint8_t next32[] = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f,
					  0xb6, 0xe8, 0x83, 0xc3, 0x04 };
	static const uint8_t store_link[] = { 0x48, 0x89, 0x5a, 0xf8 };
	static const uint8_t store_link32[] = { 0x89, 0x5a, 0xfc };
	static const uint8_t load_pc[] = { 0x48, 0x8b, 0x5d, 0x20 };
	static const uint8_t load_pc32[] = { 0x8b, 0x5d, 0x10 };

	if (vm->layout->gc64) {
		fake_put(vm, vm->code + FAKE_AT_NEXT, next, sizeof(next));
		fake_put(vm, vm->code + FAKE_AT_STORE_LINK, store_link, sizeof(store_link));
		fake_put(vm, vm->code + FAKE_AT_LOAD_PC, load_pc, sizeof(load_pc));
	} else {
		fake_put(vm, vm->code + FAKE_AT_NEXT, next32, sizeof(next32));
		fake_put(vm, vm->code + FAKE_AT_STORE_LINK, store_link32, sizeof(store_link32));
		fake_put(vm, vm->code + FAKE_AT_LOAD_PC, load_pc32, sizeof(load_pc32));
	}
}

static void make_code(struct fake_vm *vm)
{
	static const uint8_t indirect[] = { 0xff, 0xd0 };

	vm->code = fake_alloc(vm, FAKE_CODE_BYTES);
	memset(fake_at(vm, vm->code, FAKE_CODE_BYTES), 0x90, FAKE_CODE_BYTES);
	put_sequences(vm);
	put_moments(vm);
	put_call(vm, vm->code + FAKE_AT_CALL, vm->code + FAKE_AT_HELPER);
	vm->host = fake_alloc(vm, FAKE_HOST_BYTES);
	put_call(vm, vm->host, vm->code + FAKE_AT_PROLOGUE);
	fake_put(vm, vm->host + FAKE_HOST_INDIRECT - sizeof(indirect), indirect, sizeof(indirect));
	put_call(vm, vm->host + FAKE_HOST_OTHER - 5, vm->host);
}

/* Source: LuaJIT v2.1 src/lj_dispatch.c, lj_dispatch_init(). */
static void make_dispatch(struct fake_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t dispatch = fake_member(vm->G, layout->global_State_to_dispatch);
	uint64_t bcff = fake_member(vm->G, layout->global_State_to_bcff);

	for (int32_t i = 0; i < layout->BC__MAX + layout->GG_NUM_ASMFF + layout->BC_FUNCF; i++)
		fake_put_u64(vm, dispatch + 8 * (uint64_t)i, vm->code + FAKE_AT_NEXT);
	for (int32_t i = 0; i < layout->GG_NUM_ASMFF; i++) {
		int32_t op = layout->BC__MAX + i;

		fake_put_u64(vm, dispatch + 8 * (uint64_t)op,
			     vm->code + FAKE_AT_FF + 16 * (uint64_t)i);
		fake_put_u32(vm, bcff + 4 * (uint64_t)i, (uint32_t)op);
	}
}

static void make_compiler(struct fake_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = fake_member(vm->G, layout->global_State_to_J);

	fake_put_u64(vm, fake_member(J, layout->jit_State_L), 0);
	fake_put_u64(vm, fake_member(J, layout->jit_State_trace), 0);
	fake_put_u32(vm, fake_member(J, layout->jit_State_sizetrace), 0);
	fake_put_u32(vm, fake_member(J, layout->jit_State_freetrace), 0);
}

/* GG_State. */
size_t fake_vm_bytes(const struct luastate_layout *layout)
{
	return (size_t)(layout->lua_State_sizeof + layout->global_State_to_bcff +
			4 * layout->GG_NUM_ASMFF);
}

static void make_global(struct fake_vm *vm, size_t main_slots)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t G;

	vm->main = fake_alloc_struct(vm, fake_vm_bytes(layout), 0);
	G = vm->G = fake_member(vm->main, layout->lua_State_sizeof);
	fake_lua_state(vm, vm->main, main_slots);
	fake_put_u8(vm, fake_member(G, layout->global_State_strempty + layout->GCobj_gct),
		    (uint8_t)state_gct(layout->tag_str));
	fake_put_u32(vm, fake_member(G, layout->global_State_strempty + layout->GCstr_len), 0);
	fake_put_u8(vm, fake_member(G, layout->global_State_stremptyz), 0);
	fake_put_u32(vm, fake_member(G, layout->global_State_str_mask), 255);
	fake_put_u8(vm, fake_member(G, layout->global_State_gc_state), 0);
	fake_put_u32(vm, fake_member(G, layout->global_State_vmstate),
		     (uint32_t)~layout->vmst_interp);
	fake_put_ref(vm, fake_member(G, layout->global_State_mainthref), vm->main);
	fake_put_ref(vm, fake_member(G, layout->global_State_cur_L), vm->main);
	/* The list of all objects ends with the main coroutine. */
	if (layout->global_State_gc_root != LAYOUT_ABSENT)
		fake_put_ref(vm, fake_member(G, layout->global_State_gc_root), vm->main);
	fake_put_ref(vm, fake_member(G, layout->global_State_jit_base), 0);
	make_compiler(vm);
	make_dispatch(vm);
}

static void make_registry(struct fake_vm *vm, uint32_t modules)
{
	const struct luastate_layout *layout = vm->layout;

	vm->registry = fake_table(vm, 4);
	vm->loaded = fake_table(vm, modules);
	fake_table_set(vm, vm->registry, "_LOADED", fake_tag(vm, layout->tag_tab, vm->loaded));
	fake_put_u64(vm, fake_member(vm->G, layout->global_State_registrytv),
		     fake_tag(vm, layout->tag_tab, vm->registry));
}

const struct luastate_layout *fake_layout(const char *family, bool gc64, const char *first)
{
	const struct luastate_layout *found = NULL;

	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];

		if (strcmp(layout->family, family) == 0 && strcmp(layout->first, first) == 0 &&
		    strcmp(layout->arch, state_arch_name) == 0 && layout->gc64 == gc64)
			found = layout;
	}
	MUST(found);
	return found;
}

const struct luastate_layout *fake_layout_at(unsigned number)
{
	unsigned count = 0;

	for (size_t i = 0; i < luastate_layout_count; i++)
		count += strcmp(luastate_layouts[i].arch, state_arch_name) == 0;
	number %= count;
	for (size_t i = 0; i < luastate_layout_count; i++)
		if (strcmp(luastate_layouts[i].arch, state_arch_name) == 0 && number-- == 0)
			return &luastate_layouts[i];
	abort();
}

/* Code and native stack; all that is allocated later lies below. */
static void make_native(struct fake_vm *vm, size_t native_bytes)
{
	vm->next = FAKE_BYTES;
	make_code(vm);
	vm->native_start = fake_alloc(vm, native_bytes);
	vm->native_end = vm->native_start + native_bytes;
	/* Room above the first frame, as in a process. */
	vm->sp = vm->native_end - native_bytes / 256;
	vm->split = vm->next;
}

uint64_t fake_second_vm(struct fake_vm *vm, uint64_t address)
{
	const struct luastate_layout *layout = vm->layout;
	size_t size = fake_vm_bytes(layout);
	uint64_t second = address ? address : fake_alloc(vm, size);
	uint64_t first = vm->G, G = fake_member(second, layout->lua_State_sizeof);

	fake_put(vm, second, fake_at(vm, vm->main, size), size);
	vm->G = G;
	fake_lua_state(vm, second, 64);
	vm->G = first;
	fake_put_ref(vm, fake_member(G, layout->global_State_mainthref), second);
	fake_put_ref(vm, fake_member(G, layout->global_State_cur_L), second);
	return second;
}

/* Of the VM that ended last: to touch new pages takes longer than most tests of a VM. */
static uint8_t *spare_bytes, *spare_known;

static void take_memory(struct fake_vm *vm)
{
	vm->bytes = spare_bytes;
	vm->known = spare_known;
	spare_bytes = spare_known = NULL;
	if (vm->bytes)
		return;
	vm->bytes = mmap(NULL, FAKE_BYTES + FAKE_PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	vm->known =
		mmap(NULL, FAKE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(vm->bytes != MAP_FAILED && vm->known != MAP_FAILED &&
	     mprotect(vm->bytes + FAKE_BYTES, FAKE_PAGE, PROT_NONE) == 0);
}

/* All zeros again, also where nothing was allocated. */
static void clear(uint8_t *memory, size_t used)
{
	size_t page = used & ~(size_t)(FAKE_PAGE - 1);

	MUST(page == 0 || madvise(memory, page, MADV_DONTNEED) == 0);
	memset(memory + page, 0, FAKE_BYTES - page);
}

static void give_memory(struct fake_vm *vm)
{
	if (spare_bytes) {
		munmap(vm->bytes, FAKE_BYTES + FAKE_PAGE);
		munmap(vm->known, FAKE_BYTES);
		return;
	}
	clear(vm->bytes, vm->next);
	clear(vm->known, vm->next);
	spare_bytes = vm->bytes;
	spare_known = vm->known;
}

struct fake_vm *fake_vm_create(const struct fake_options *options)
{
	static const struct fake_options usual;
	struct fake_vm *vm = calloc(1, sizeof(*vm));

	options = options ? options : &usual;
	MUST(vm);
	take_memory(vm);
	vm->layout = options->layout ? options->layout : fake_layout("mainline", true, "a32aeadc");
	vm->base = FAKE_BASE + options->displaced;
	vm->heap_base = vm->layout->gc64 ? vm->base : FAKE_LOW_BASE + options->displaced;
	vm->frame_bytes = vm->layout->gc64 ? 16 : 8;
	vm->fill = options->fill;
	vm->reader = (struct attach_reader){ .read = fake_read, .self = vm };
	make_native(vm, options->native_bytes ? options->native_bytes : 65536);
	make_global(vm, options->main_slots ? options->main_slots : 256);
	make_registry(vm, options->modules ? options->modules : 32);
	return vm;
}

void fake_vm_destroy(struct fake_vm *vm)
{
	if (!vm)
		return;
	give_memory(vm);
	free(vm->blocks);
	free(vm);
}

/* @param saved Room for the rule's registers. */
static struct luastate_unwind_rule make_rule(const struct fake_vm *vm, int64_t *saved)
{
	static const int saved_order[] = { ATTACH_REG_RBP, ATTACH_REG_RBX, ATTACH_REG_R15,
					   ATTACH_REG_R14 };

	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		saved[i] = INT64_MIN;
	for (int i = 0; i < 4; i++)
		saved[saved_order[i]] = -16 - 8 * i;
	return (struct luastate_unwind_rule){ .start = vm->code,
					      .end = vm->code + FAKE_CODE_BYTES,
					      .cfa_register = ATTACH_REG_RSP,
					      .cfa_offset = vm->layout->cframe_size,
					      .saved_offset = saved };
}

bool fake_vm_is_interpreter(const struct fake_vm *vm)
{
	int64_t saved[ATTACH_REG_COUNT];
	const struct luastate_unwind_rule rule = make_rule(vm, saved);

	return luastate_is_interpreter(&rule);
}

int fake_vm_add_interpreter(struct fake_vm *vm, struct luastate *state)
{
	int64_t saved[ATTACH_REG_COUNT];
	const struct luastate_unwind_rule rule = make_rule(vm, saved);
	struct failure why;

	return luastate_add_interpreter(state, &rule, fake_at(vm, vm->code, FAKE_CODE_BYTES), &why);
}

struct luastate *fake_vm_open(struct fake_vm *vm, bool with_vm)
{
	struct luastate *state = luastate_create();
	struct failure why;

	MUST(state && fake_vm_add_interpreter(vm, state) == 0);
	MUST(!with_vm || luastate_vm_of(state, &vm->reader, vm->main, &why));
	return state;
}

uint64_t fake_second_interpreter(struct fake_vm *vm, struct luastate *state, uint64_t main)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t first = vm->code, code = fake_alloc(vm, FAKE_CODE_BYTES);
	uint64_t dispatch = main + (uint64_t)layout->lua_State_sizeof +
			    (uint64_t)layout->global_State_to_dispatch;

	fake_put(vm, code, fake_at(vm, first, FAKE_CODE_BYTES), FAKE_CODE_BYTES);
	for (int32_t i = 0; i < layout->BC__MAX + layout->GG_NUM_ASMFF + layout->BC_FUNCF; i++) {
		uint64_t slot = dispatch + 8 * (uint64_t)i;

		fake_put_u64(vm, slot, fake_get_u64(vm, slot) - first + code);
	}
	vm->code = code;
	MUST(fake_vm_add_interpreter(vm, state) == 0);
	vm->code = first;
	return code;
}

void fake_fill_image(struct attach_image *image, const struct attach_reader *memory)
{
	for (; image->planned < image->range_count; image->planned++) {
		struct image_range *range = &image->ranges[image->planned];
		uint8_t *to = image->arena + range->offset;
		struct failure why;

		range->len = range->wanted;
		if (attach_read(memory, remote_addr_make(range->start), to, range->wanted, &why) !=
		    0)
			range->len = why.address > range->start ? why.address - range->start : 0;
		if (range->len && range->len < range->wanted)
			attach_read(memory, remote_addr_make(range->start), to, range->len, &why);
	}
}
