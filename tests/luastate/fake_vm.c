/* SPDX-License-Identifier: MIT */
#include "fake_vm.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
	/* Unreadable bytes between objects. */
	FAKE_GAP = 16,
	FAKE_PAGE = 4096,
	/* Slots behind maxstack, LJ_STACK_EXTRA. */
	FAKE_EXTRA_SLOTS = 7,
};

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/* ---- Memory ----------------------------------------------------------------------------- */

static bool is_inside(uint64_t address, size_t len)
{
	return address >= FAKE_BASE && address <= FAKE_END && len <= FAKE_END - address;
}

static int fake_read(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		     struct failure *why)
{
	struct fake_vm *vm = self;
	uint64_t at = address.value;
	const uint8_t *unknown;

	vm->reads++;
	vm->bytes_read += len;
	if (len == 0)
		return 0;
	if (at < FAKE_BASE || at >= FAKE_END)
		return failure_set(why, FAILURE_FAULT, 0, 0, at, "read fake memory");
	unknown = memchr(vm->known + (at - FAKE_BASE), 0,
			 len < FAKE_END - at ? len : (size_t)(FAKE_END - at));
	if (unknown)
		return failure_set(why, FAILURE_FAULT, 0, 0,
				   FAKE_BASE + (uint64_t)(unknown - vm->known), "read fake memory");
	if (len > FAKE_END - at)
		return failure_set(why, FAILURE_FAULT, 0, 0, FAKE_END, "read fake memory");
	memcpy(ret_bytes, vm->bytes + (at - FAKE_BASE), len);
	return 0;
}

uint64_t fake_alloc(struct fake_vm *vm, size_t len)
{
	uint64_t at = (vm->next - len) & ~(uint64_t)7;

	MUST(at >= FAKE_BASE + FAKE_GAP && at < vm->next);
	vm->next = at - FAKE_GAP;
	memset(vm->known + (at - FAKE_BASE), 1, len);
	return at;
}

void fake_put(struct fake_vm *vm, uint64_t address, const void *bytes, size_t len)
{
	MUST(is_inside(address, len));
	if (len)
		memcpy(vm->bytes + (address - FAKE_BASE), bytes, len);
}

void fake_put_u8(struct fake_vm *vm, uint64_t address, uint8_t value)
{
	fake_put(vm, address, &value, sizeof(value));
}

void fake_put_u32(struct fake_vm *vm, uint64_t address, uint32_t value)
{
	fake_put(vm, address, &value, sizeof(value));
}

void fake_put_u64(struct fake_vm *vm, uint64_t address, uint64_t value)
{
	fake_put(vm, address, &value, sizeof(value));
}

uint64_t fake_get_u64(const struct fake_vm *vm, uint64_t address)
{
	uint64_t value;

	MUST(is_inside(address, sizeof(value)));
	memcpy(&value, vm->bytes + (address - FAKE_BASE), sizeof(value));
	return value;
}

void fake_hide(struct fake_vm *vm, uint64_t address, size_t len)
{
	MUST(is_inside(address, len));
	memset(vm->known + (address - FAKE_BASE), 0, len);
}

void fake_show(struct fake_vm *vm, uint64_t address, size_t len)
{
	MUST(is_inside(address, len));
	memset(vm->known + (address - FAKE_BASE), 1, len);
}

/* ---- Objects ---------------------------------------------------------------------------- */

static uint64_t at(uint64_t object, int32_t offset)
{
	return object + (uint64_t)offset;
}

uint64_t fake_tag(int32_t tag, uint64_t object)
{
	return (uint64_t)(int64_t)tag << 47 | object;
}

uint32_t fake_ad(unsigned op, unsigned a, unsigned d)
{
	return op | a << 8 | d << 16;
}

uint32_t fake_abc(unsigned op, unsigned a, unsigned b, unsigned c)
{
	return op | a << 8 | c << 16 | b << 24;
}

static uint64_t new_object(struct fake_vm *vm, int32_t gct, size_t len)
{
	uint64_t object = fake_alloc(vm, len);

	fake_put_u8(vm, at(object, vm->layout->GCobj_gct), (uint8_t)gct);
	return object;
}

uint64_t fake_string(struct fake_vm *vm, const char *text)
{
	size_t len = strlen(text);
	uint64_t string =
		new_object(vm, vm->layout->gct_str, (size_t)vm->layout->GCstr_sizeof + len + 1);

	fake_put_u32(vm, at(string, vm->layout->GCstr_len), (uint32_t)len);
	fake_put(vm, at(string, vm->layout->GCstr_sizeof), text, len + 1);
	return string;
}

static void put_lines(struct fake_vm *vm, uint64_t address, const struct fake_proto *proto)
{
	const struct luastate_layout *layout = vm->layout;
	size_t width = proto->numline < 256 ? 1 : proto->numline < 65536 ? 2 : 4;
	uint64_t lines;

	if (!proto->lines)
		return;
	lines = fake_alloc(vm, width * (proto->sizebc - 1));
	for (uint32_t i = 1; i < proto->sizebc; i++)
		fake_put(vm, lines + width * (i - 1), &proto->lines[i], width);
	fake_put_u64(vm, at(address, layout->GCproto_lineinfo), lines);
}

static void put_constants(struct fake_vm *vm, uint64_t address, const struct fake_proto *proto)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t k =
		fake_alloc(vm, 8 * ((size_t)proto->sizekgc + 1)) + 8 * (uint64_t)proto->sizekgc;

	for (uint32_t i = 0; i < proto->sizekgc; i++)
		fake_put_u64(vm, k - 8 * ((uint64_t)i + 1), proto->kgc[i]);
	fake_put_u64(vm, at(address, layout->GCproto_k), k);
	fake_put_u32(vm, at(address, layout->GCproto_sizekgc), proto->sizekgc);
}

static void put_block(struct fake_vm *vm, uint64_t field, const char *bytes, size_t len)
{
	uint64_t block;

	if (!bytes)
		return;
	/* Its reader takes whole lines of 64 bytes, which lie in one page. */
	block = (fake_alloc(vm, len + 128) + 63) & ~(uint64_t)63;
	fake_put(vm, block, bytes, len);
	fake_put_u64(vm, field, block);
}

uint64_t fake_proto(struct fake_vm *vm, const struct fake_proto *proto)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t name = fake_string(vm, proto->chunkname);
	uint64_t address = new_object(vm, layout->gct_proto,
				      (size_t)layout->GCproto_sizeof + 4 * (size_t)proto->sizebc);

	fake_put_u32(vm, at(address, layout->GCproto_sizebc), proto->sizebc);
	fake_put(vm, fake_pc(vm, address, 0), proto->bc, 4 * (size_t)proto->sizebc);
	fake_put_u64(vm, at(address, layout->GCproto_chunkname), name);
	fake_put_u32(vm, at(address, layout->GCproto_firstline), (uint32_t)proto->firstline);
	fake_put_u32(vm, at(address, layout->GCproto_numline), proto->numline);
	fake_put_u8(vm, at(address, layout->GCproto_sizeuv), proto->sizeuv);
	put_lines(vm, address, proto);
	put_constants(vm, address, proto);
	put_block(vm, at(address, layout->GCproto_varinfo), proto->varinfo, proto->varinfo_len);
	put_block(vm, at(address, layout->GCproto_uvinfo), proto->uvinfo, proto->uvinfo_len);
	return address;
}

uint64_t fake_pc(const struct fake_vm *vm, uint64_t proto, unsigned index)
{
	return at(proto, vm->layout->GCproto_sizeof) + 4 * (uint64_t)index;
}

uint64_t fake_caller(struct fake_vm *vm, const char *chunkname, int32_t firstline,
		     const char *callee)
{
	const uint32_t bc[] = { fake_ad(FAKE_FUNCF, 5, 0), fake_ad(FAKE_GGET, 2, 0),
				fake_abc(FAKE_CALL, 2, 1, 1), fake_ad(FAKE_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1, 2, 3 };
	const uint64_t kgc[] = { fake_string(vm, callee) };

	return fake_proto(vm, &(struct fake_proto){ .chunkname = chunkname,
						    .firstline = firstline,
						    .numline = 4,
						    .bc = bc,
						    .sizebc = 4,
						    .lines = lines,
						    .kgc = kgc,
						    .sizekgc = 1 });
}

static uint64_t new_function(struct fake_vm *vm, uint8_t ffid, uint64_t pc, uint64_t f)
{
	uint64_t function = new_object(vm, vm->layout->gct_func, (size_t)vm->layout->GCfunc_header);

	fake_put_u8(vm, at(function, vm->layout->GCfunc_ffid), ffid);
	fake_put_u64(vm, at(function, vm->layout->GCfunc_pc), pc);
	fake_put_u64(vm, at(function, vm->layout->GCfuncC_f), f);
	return function;
}

uint64_t fake_lua_function(struct fake_vm *vm, uint64_t proto)
{
	return new_function(vm, 0, fake_pc(vm, proto, 0), 0);
}

uint64_t fake_c_function(struct fake_vm *vm, uint64_t f)
{
	return new_function(vm, 1, at(vm->G, 256), f);
}

uint64_t fake_asm_function(struct fake_vm *vm, uint8_t ffid, unsigned index)
{
	return new_function(vm, ffid, at(vm->G, vm->layout->global_State_to_bcff) + 4 * index,
			    vm->host);
}

uint64_t fake_fast_function(struct fake_vm *vm, uint8_t ffid, uint64_t f)
{
	return new_function(vm, ffid, at(vm->G, 256), f);
}

uint64_t fake_table(struct fake_vm *vm, uint32_t size)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t nodes = fake_alloc(vm, (size_t)size * (size_t)layout->Node_sizeof);
	uint64_t table = new_object(vm, layout->gct_tab, (size_t)layout->GCtab_sizeof);

	for (uint32_t i = 0; i < size; i++)
		for (int32_t word = 0; word < 16; word += 8) /* value and key: nil */
			fake_put_u64(vm, nodes + i * (uint64_t)layout->Node_sizeof + (uint64_t)word,
				     UINT64_MAX);
	fake_put_u64(vm, at(table, layout->GCtab_node), nodes);
	fake_put_u32(vm, at(table, layout->GCtab_hmask), size - 1);
	return table;
}

void fake_table_set(struct fake_vm *vm, uint64_t table, const char *key, uint64_t value)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t node = fake_get_u64(vm, at(table, layout->GCtab_node));

	while (fake_get_u64(vm, at(node, layout->Node_key)) != UINT64_MAX)
		node += (uint64_t)layout->Node_sizeof;
	fake_put_u64(vm, at(node, layout->Node_key),
		     fake_tag(layout->tag_str, fake_string(vm, key)));
	fake_put_u64(vm, at(node, layout->Node_val), value);
}

uint64_t fake_module(struct fake_vm *vm, const char *name, uint32_t size)
{
	uint64_t table = fake_table(vm, size);

	fake_table_set(vm, vm->loaded, name, fake_tag(vm->layout->tag_tab, table));
	return table;
}

void fake_module_set(struct fake_vm *vm, uint64_t module, const char *name, uint64_t function)
{
	fake_table_set(vm, module, name, fake_tag(vm->layout->tag_func, function));
}

/* ---- Stacks ----------------------------------------------------------------------------- */

uint64_t fake_L_get(const struct fake_vm *vm, uint64_t L, int32_t field)
{
	return fake_get_u64(vm, at(L, field));
}

void fake_L_set(struct fake_vm *vm, uint64_t L, int32_t field, uint64_t value)
{
	fake_put_u64(vm, at(L, field), value);
}

void fake_lua_state(struct fake_vm *vm, uint64_t L, size_t slots)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t stack = fake_alloc(vm, 8 * (slots + FAKE_EXTRA_SLOTS));

	fake_put_u8(vm, at(L, layout->GCobj_gct), (uint8_t)layout->gct_thread);
	fake_L_set(vm, L, layout->lua_State_glref, vm->G);
	fake_L_set(vm, L, layout->lua_State_stack, stack);
	fake_L_set(vm, L, layout->lua_State_base, stack + 16);
	fake_L_set(vm, L, layout->lua_State_top, stack + 16);
	fake_L_set(vm, L, layout->lua_State_maxstack, stack + 8 * slots);
	fake_L_set(vm, L, layout->lua_State_cframe, 0);
	fake_put_u32(vm, at(L, layout->lua_State_stacksize), (uint32_t)slots + FAKE_EXTRA_SLOTS);
	fake_put_u64(vm, stack, fake_tag(layout->tag_thread, L));
}

uint64_t fake_coroutine(struct fake_vm *vm, size_t slots)
{
	uint64_t L = fake_alloc(vm, (size_t)vm->layout->lua_State_sizeof);

	fake_lua_state(vm, L, slots);
	return L;
}

static uint64_t push_frame(struct fake_vm *vm, uint64_t L, uint64_t function, uint64_t delta,
			   uint64_t link)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t base = fake_L_get(vm, L, layout->lua_State_base) + delta;

	MUST(base <= fake_L_get(vm, L, layout->lua_State_maxstack));
	fake_put_u64(vm, base - 16, fake_tag(layout->tag_func, function));
	fake_put_u64(vm, base - 8, link);
	fake_L_set(vm, L, layout->lua_State_base, base);
	fake_L_set(vm, L, layout->lua_State_top, base);
	return base;
}

uint64_t fake_call(struct fake_vm *vm, uint64_t L, uint64_t function, unsigned gap, unsigned type)
{
	uint64_t delta = 16 + 8 * (uint64_t)gap;

	return push_frame(vm, L, function, delta, delta | type);
}

uint64_t fake_call_lua(struct fake_vm *vm, uint64_t L, uint64_t function, uint64_t ret)
{
	uint32_t ins = (uint32_t)(fake_get_u64(vm, ret - 8) >> 32);

	return push_frame(vm, L, function, 16 + 8 * (uint64_t)(ins >> 8 & 0xff), ret);
}

uint64_t fake_call_cont(struct fake_vm *vm, uint64_t L, uint64_t function, unsigned gap,
			uint64_t pc)
{
	uint64_t base;

	MUST(gap >= 2);
	base = fake_call(vm, L, function, gap, FAKE_LINK_CONT);
	fake_put_u64(vm, base - 24, pc);
	fake_put_u64(vm, base - 32, vm->code + FAKE_AT_PLAIN);
	return base;
}

void fake_push(struct fake_vm *vm, uint64_t word)
{
	vm->sp -= 8;
	MUST(vm->sp >= vm->native_start);
	fake_put_u64(vm, vm->sp, word);
}

uint64_t fake_cframe(struct fake_vm *vm, uint64_t L, int32_t nres, uint64_t pc)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t frame = vm->sp - (uint64_t)layout->cframe_size;

	MUST(frame >= vm->native_start);
	vm->sp = frame;
	fake_put_u32(vm, at(frame, layout->cframe_nres), (uint32_t)nres);
	fake_put_u64(vm, at(frame, layout->cframe_L), L);
	fake_put_u64(vm, at(frame, layout->cframe_pc), pc);
	fake_put_u64(vm, at(frame, layout->cframe_prev),
		     fake_L_get(vm, L, layout->lua_State_cframe));
	fake_put_u64(vm, at(frame, layout->cframe_r14), 0x1414);
	fake_put_u64(vm, at(frame, layout->cframe_r15), 0x1515);
	fake_put_u64(vm, at(frame, layout->cframe_rbx), 0x3333);
	fake_put_u64(vm, at(frame, layout->cframe_rbp), 0x6666);
	fake_put_u64(vm, at(frame, layout->cframe_ret), vm->host + FAKE_HOST_DIRECT);
	fake_L_set(vm, L, layout->lua_State_cframe, frame);
	return frame;
}

/* ---- The VM ----------------------------------------------------------------------------- */

static void put_call(struct fake_vm *vm, uint64_t address, uint64_t callee)
{
	fake_put_u8(vm, address, 0xe8);
	fake_put_u32(vm, address + 1, (uint32_t)(callee - address - 5));
}

static void make_code(struct fake_vm *vm)
{
	static const uint8_t prologue[] = { 0x55, 0x53, 0x41, 0x57, 0x41,
					    0x56, 0x48, 0x83, 0xec, 0x28 };
	static const uint8_t epilogue[] = { 0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e,
					    0x41, 0x5f, 0x5b, 0x5d, 0xc3 };
	static const uint8_t next[] = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f,
					0xb6, 0xe8, 0x48, 0x83, 0xc3, 0x04 };
	static const uint8_t store_link[] = { 0x48, 0x89, 0x5a, 0xf8 };
	static const uint8_t load_pc[] = { 0x48, 0x8b, 0x5d, 0x20 };
	static const uint8_t indirect[] = { 0xff, 0xd0 };

	vm->code = fake_alloc(vm, FAKE_CODE_BYTES);
	memset(vm->bytes + (vm->code - FAKE_BASE), 0x90, FAKE_CODE_BYTES);
	fake_put(vm, vm->code + FAKE_AT_PROLOGUE, prologue, sizeof(prologue));
	fake_put(vm, vm->code + FAKE_AT_EPILOGUE, epilogue, sizeof(epilogue));
	fake_put(vm, vm->code + FAKE_AT_NEXT, next, sizeof(next));
	fake_put(vm, vm->code + FAKE_AT_STORE_LINK, store_link, sizeof(store_link));
	fake_put(vm, vm->code + FAKE_AT_LOAD_PC, load_pc, sizeof(load_pc));
	put_call(vm, vm->code + FAKE_AT_CALL, vm->code + FAKE_AT_HELPER);
	vm->host = fake_alloc(vm, FAKE_HOST_BYTES);
	put_call(vm, vm->host, vm->code + FAKE_AT_PROLOGUE);
	fake_put(vm, vm->host + FAKE_HOST_INDIRECT - sizeof(indirect), indirect, sizeof(indirect));
	put_call(vm, vm->host + FAKE_HOST_OTHER - 5, vm->host);
}

static void make_dispatch(struct fake_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t dispatch = at(vm->G, layout->global_State_to_dispatch);
	uint64_t bcff = at(vm->G, layout->global_State_to_bcff);

	for (int32_t i = 0; i < layout->dispatch_ff_first + layout->dispatch_ff_count; i++)
		fake_put_u64(vm, dispatch + 8 * (uint64_t)i, vm->code + FAKE_AT_NEXT);
	for (int32_t i = 0; i < layout->dispatch_ff_count; i++) {
		int32_t op = layout->dispatch_ff_first + i;

		fake_put_u64(vm, dispatch + 8 * (uint64_t)op,
			     vm->code + FAKE_AT_FF + 16 * (uint64_t)i);
		fake_put_u32(vm, bcff + 4 * (uint64_t)i, (uint32_t)op);
	}
}

static void make_global(struct fake_vm *vm, size_t main_slots)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t G;

	vm->main = fake_alloc(vm, (size_t)(layout->lua_State_sizeof + layout->global_State_to_bcff +
					   layout->global_State_bcff_size));
	G = vm->G = at(vm->main, layout->lua_State_sizeof);
	fake_lua_state(vm, vm->main, main_slots);
	fake_put_u8(vm, at(G, layout->global_State_strempty + layout->GCobj_gct),
		    (uint8_t)layout->gct_str);
	fake_put_u32(vm, at(G, layout->global_State_str_mask), 255);
	fake_put_u32(vm, at(G, layout->global_State_vmstate), (uint32_t)~layout->vmst_interp);
	fake_put_u64(vm, at(G, layout->global_State_mainthref), vm->main);
	fake_put_u64(vm, at(G, layout->global_State_cur_L), vm->main);
	make_dispatch(vm);
}

static void make_registry(struct fake_vm *vm, uint32_t modules)
{
	const struct luastate_layout *layout = vm->layout;

	vm->registry = fake_table(vm, 4);
	vm->loaded = fake_table(vm, modules);
	fake_table_set(vm, vm->registry, "_LOADED", fake_tag(layout->tag_tab, vm->loaded));
	fake_put_u64(vm, at(vm->G, layout->global_State_registrytv),
		     fake_tag(layout->tag_tab, vm->registry));
}

struct fake_vm *fake_vm_create(void)
{
	return fake_vm_create_sized(65536, 256, 32);
}

struct fake_vm *fake_vm_create_sized(size_t native_bytes, size_t main_slots, uint32_t modules)
{
	struct fake_vm *vm = calloc(1, sizeof(*vm));

	MUST(vm);
	vm->bytes = mmap(NULL, FAKE_BYTES + FAKE_PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	vm->known =
		mmap(NULL, FAKE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(vm->bytes != MAP_FAILED && vm->known != MAP_FAILED &&
	     mprotect(vm->bytes + FAKE_BYTES, FAKE_PAGE, PROT_NONE) == 0);
	vm->next = FAKE_END;
	vm->layout = &luastate_layouts[0];
	vm->reader = (struct attach_reader){ .read = fake_read, .self = vm };
	make_code(vm);
	make_global(vm, main_slots);
	make_registry(vm, modules);
	vm->native_start = fake_alloc(vm, native_bytes);
	vm->native_end = vm->native_start + native_bytes;
	/* Room above the first frame, as in a process. */
	vm->sp = vm->native_end - native_bytes / 256;
	return vm;
}

void fake_vm_destroy(struct fake_vm *vm)
{
	if (!vm)
		return;
	munmap(vm->bytes, FAKE_BYTES + FAKE_PAGE);
	munmap(vm->known, FAKE_BYTES);
	free(vm);
}

struct luastate *fake_vm_open(struct fake_vm *vm, bool with_vm)
{
	struct luastate *state = luastate_create();
	struct failure why;

	MUST(state && luastate_add_interpreter(state, vm->code, vm->code + FAKE_CODE_BYTES,
					       vm->bytes + (vm->code - FAKE_BASE), &why) == 0);
	MUST(!with_vm || luastate_vm_of(state, &vm->reader, vm->main, &why));
	return state;
}
