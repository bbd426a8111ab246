/* SPDX-License-Identifier: MIT */
/* The collector's objects, and stacks. */
#include "fake_vm.h"

#include <stdlib.h>

enum {
	/* What a reader of packed bytes takes at a time. */
	FAKE_LINE = 64,
	/* lj_ir.h: references below are constants. */
	FAKE_REF_BIAS = 0x8000,
};

/* ---- Objects ---------------------------------------------------------------------------- */

uint64_t fake_tag(const struct fake_vm *vm, int32_t tag, uint64_t object)
{
	return (uint64_t)(int64_t)tag << (vm->layout->gc64 ? 47 : 32) | object;
}

uint32_t fake_ad(unsigned op, unsigned a, unsigned d)
{
	return op | a << 8 | d << 16;
}

uint32_t fake_abc(unsigned op, unsigned a, unsigned b, unsigned c)
{
	return op | a << 8 | c << 16 | b << 24;
}

uint64_t fake_alloc_struct(struct fake_vm *vm, size_t size, size_t more)
{
	uint64_t address = fake_alloc(vm, size + more);
	uint8_t *bytes = fake_at(vm, address, size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(vm->fill >> (8 * (i % 8)));
	vm->blocks[vm->block_count - 1].is_struct = true;
	return address;
}

static void put_type(struct fake_vm *vm, uint64_t object, int32_t tag)
{
	fake_put_u8(vm, fake_member(object, vm->layout->GCobj_gct), (uint8_t)state_gct(tag));
}

/* An object with @more bytes behind its struct. */
static uint64_t new_object(struct fake_vm *vm, int32_t tag, int32_t size, size_t more)
{
	uint64_t object = fake_alloc_struct(vm, (size_t)size, more);

	put_type(vm, object, tag);
	return object;
}

uint32_t fake_funcf(const struct fake_vm *vm, unsigned framesize)
{
	return fake_ad((unsigned)vm->layout->BC_FUNCF, framesize, 0);
}

uint64_t fake_string(struct fake_vm *vm, const char *text)
{
	const struct luastate_layout *layout = vm->layout;
	size_t len = strlen(text);
	uint64_t string = new_object(vm, layout->tag_str, layout->GCstr_sizeof, len + 1);
	uint32_t hash = (uint32_t)len;

	for (size_t i = 0; i < len; i++)
		hash = hash * 31 + (uint8_t)text[i];
	fake_put_u32(vm, fake_member(string, layout->GCstr_hash), hash);
	fake_put_u32(vm, fake_member(string, layout->GCstr_len), (uint32_t)len);
	fake_put(vm, fake_member(string, layout->GCstr_sizeof), text, len + 1);
	return string;
}

/* Where the parts of a prototype begin, as distances from its own address; proto.c draws them. */
struct parts {
	size_t k, uv, lines, uvinfo, varinfo, end;
	size_t line_width;
	bool stripped;
};

static struct parts lay_out(const struct luastate_layout *layout, const struct fake_proto *proto)
{
	size_t constants = (size_t)layout->ref_size * proto->sizekgc;
	struct parts parts = {
		.stripped = !proto->lines && !proto->varinfo && !proto->uvinfo,
		.line_width = proto->numline < 256     ? 1
			      : proto->numline < 65536 ? 2
						       : 4,
	};

	parts.k = ((size_t)layout->GCproto_sizeof + 4 * (size_t)proto->sizebc + constants + 7) &
		  ~(size_t)7;
	parts.uv = parts.k + 8 * (size_t)proto->sizekn;
	parts.lines = parts.uv + 2 * (((size_t)proto->sizeuv + 1) & ~(size_t)1);
	parts.uvinfo = parts.lines + parts.line_width * (proto->sizebc - 1);
	parts.varinfo = parts.uvinfo + proto->uvinfo_len;
	parts.end = parts.stripped ? parts.lines : parts.varinfo + proto->varinfo_len;
	return parts;
}

static void put_debug(struct fake_vm *vm, uint64_t address, const struct fake_proto *proto,
		      const struct parts *parts)
{
	const struct luastate_layout *layout = vm->layout;

	fake_put_ref(vm, fake_member(address, layout->GCproto_lineinfo), 0);
	fake_put_ref(vm, fake_member(address, layout->GCproto_uvinfo), 0);
	fake_put_ref(vm, fake_member(address, layout->GCproto_varinfo), 0);
	if (parts->stripped)
		return;
	fake_put_ref(vm, fake_member(address, layout->GCproto_lineinfo), address + parts->lines);
	fake_put_ref(vm, fake_member(address, layout->GCproto_uvinfo), address + parts->uvinfo);
	fake_put_ref(vm, fake_member(address, layout->GCproto_varinfo), address + parts->varinfo);
	for (uint32_t i = 1; proto->lines && i < proto->sizebc; i++)
		fake_put(vm, address + parts->lines + parts->line_width * (i - 1), &proto->lines[i],
			 parts->line_width);
	fake_put(vm, address + parts->uvinfo, proto->uvinfo, proto->uvinfo_len);
	fake_put(vm, address + parts->varinfo, proto->varinfo, proto->varinfo_len);
}

static void put_constants(struct fake_vm *vm, uint64_t address, const struct fake_proto *proto,
			  const struct parts *parts)
{
	const struct luastate_layout *layout = vm->layout;

	for (uint32_t i = 0; i < proto->sizekgc; i++)
		fake_put_ref(vm,
			     address + parts->k - (uint64_t)layout->ref_size * ((uint64_t)i + 1),
			     proto->kgc[i]);
	fake_put_ref(vm, fake_member(address, layout->GCproto_k), address + parts->k);
	fake_put_ref(vm, fake_member(address, layout->GCproto_uv), address + parts->uv);
	fake_put_u32(vm, fake_member(address, layout->GCproto_sizekgc), proto->sizekgc);
	fake_put_u32(vm, fake_member(address, layout->GCproto_sizekn), proto->sizekn);
	fake_put_u8(vm, fake_member(address, layout->GCproto_sizeuv), proto->sizeuv);
}

uint64_t fake_proto(struct fake_vm *vm, const struct fake_proto *proto)
{
	const struct luastate_layout *layout = vm->layout;
	struct parts parts = lay_out(layout, proto);
	size_t more = parts.end - (size_t)layout->GCproto_sizeof;
	/* A reader takes whole lines of packed bytes, which lie in one page. */
	size_t slack = parts.stripped ? 0 : 2 * FAKE_LINE;
	uint64_t address = new_object(vm, layout->tag_proto, layout->GCproto_sizeof, more + slack);

	fake_put_proto(vm, address, proto);
	return address;
}

void fake_put_proto(struct fake_vm *vm, uint64_t address, const struct fake_proto *proto)
{
	const struct luastate_layout *layout = vm->layout;
	struct parts parts = lay_out(layout, proto);
	uint64_t name = fake_string(vm, proto->chunkname);

	fake_put_u32(vm, fake_member(address, layout->GCproto_sizebc), proto->sizebc);
	fake_put_u32(vm, fake_member(address, layout->GCproto_sizept), (uint32_t)parts.end);
	fake_put(vm, fake_pc(vm, address, 0), proto->bc, 4 * (size_t)proto->sizebc);
	fake_put_ref(vm, fake_member(address, layout->GCproto_chunkname), name);
	fake_put_u32(vm, fake_member(address, layout->GCproto_firstline),
		     (uint32_t)proto->firstline);
	fake_put_u32(vm, fake_member(address, layout->GCproto_numline), proto->numline);
	fake_put_ref(vm, fake_member(address, layout->GCproto_gclist), 0);
	fake_put_u8(vm, fake_member(address, layout->GCproto_flags), 0);
	fake_put(vm, fake_member(address, layout->GCproto_trace), "\0", 2);
	put_constants(vm, address, proto, &parts);
	put_debug(vm, address, proto, &parts);
}

uint64_t fake_pc(const struct fake_vm *vm, uint64_t proto, unsigned index)
{
	return fake_member(proto, vm->layout->GCproto_sizeof) + 4 * (uint64_t)index;
}

uint64_t fake_caller(struct fake_vm *vm, const char *chunkname, int32_t firstline,
		     const char *callee)
{
	const uint32_t bc[] = { fake_funcf(vm, 5), fake_ad(FAKE_GGET, 2, 0),
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
	uint64_t function = new_object(vm, vm->layout->tag_func, vm->layout->GCfunc_header, 0);

	fake_put_u8(vm, fake_member(function, vm->layout->GCfunc_ffid), ffid);
	fake_put_ref(vm, fake_member(function, vm->layout->GCfunc_pc), pc);
	fake_put_u64(vm, fake_member(function, vm->layout->GCfuncC_f), f);
	return function;
}

uint64_t fake_lua_function(struct fake_vm *vm, uint64_t proto)
{
	return new_function(vm, 0, fake_pc(vm, proto, 0), 0);
}

uint64_t fake_c_function(struct fake_vm *vm, uint64_t f)
{
	return new_function(vm, 1, fake_member(vm->G, 256), f);
}

uint64_t fake_asm_function(struct fake_vm *vm, uint8_t ffid, unsigned index)
{
	return new_function(vm, ffid,
			    fake_member(vm->G, vm->layout->global_State_to_bcff) + 4 * index,
			    vm->host);
}

uint64_t fake_fast_function(struct fake_vm *vm, uint8_t ffid, uint64_t f)
{
	return new_function(vm, ffid, fake_member(vm->G, 256), f);
}

/* Of each trace here. */
enum { TRACE_NINS = 40, TRACE_NK = 8, TRACE_NSNAP = 5, TRACE_NSNAPMAP = 9 };

/* Source: LuaJIT v2.1 src/lj_trace.c, lj_trace_alloc(). */
static uint64_t alloc_trace(struct fake_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	size_t header = ((size_t)layout->GCtrace_sizeof + 7) & ~(size_t)7;
	size_t snap = header + 8 * (TRACE_NINS + TRACE_NK);
	size_t snapmap = snap + TRACE_NSNAP * (size_t)layout->SnapShot_sizeof;
	uint64_t trace = new_object(vm, layout->tag_trace, layout->GCtrace_sizeof,
				    snapmap + 4 * TRACE_NSNAPMAP - (size_t)layout->GCtrace_sizeof);

	fake_put_u64(vm, fake_member(trace, layout->GCtrace_snap), trace + snap);
	fake_put_u64(vm, fake_member(trace, layout->GCtrace_snapmap), trace + snapmap);
	fake_put_u64(vm, fake_member(trace, layout->GCtrace_ir),
		     trace + header - 8 * (FAKE_REF_BIAS - TRACE_NK));
	return trace;
}

static void put_trace(struct fake_vm *vm, uint64_t trace, uint32_t number, uint64_t proto,
		      unsigned index)
{
	const struct luastate_layout *layout = vm->layout;

	fake_put_u32(vm, fake_member(trace, layout->GCtrace_nins), FAKE_REF_BIAS + TRACE_NINS);
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_nk), FAKE_REF_BIAS - TRACE_NK);
	fake_put_u16(vm, fake_member(trace, layout->GCtrace_nsnap), TRACE_NSNAP);
	fake_put_u16(vm, fake_member(trace, layout->GCtrace_nsnapmap), TRACE_NSNAPMAP);
	fake_put_ref(vm, fake_member(trace, layout->GCtrace_startpt), proto);
	fake_put_ref(vm, fake_member(trace, layout->GCtrace_startpc), fake_pc(vm, proto, index));
	fake_put_u64(vm, fake_member(trace, layout->GCtrace_mcode), vm->base - 0x10000);
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_szmcode), 200);
	fake_put_u16(vm, fake_member(trace, layout->GCtrace_traceno), number);
	fake_put_u8(vm, fake_member(trace, layout->GCtrace_linktype), 1);
}

uint64_t fake_trace(struct fake_vm *vm, uint32_t number, uint32_t size, uint64_t proto,
		    unsigned index)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t J = fake_member(vm->G, layout->global_State_to_J);
	uint64_t table = fake_alloc(vm, (size_t)layout->ref_size * size);
	uint64_t trace = alloc_trace(vm);

	put_trace(vm, trace, number, proto, index);
	fake_put_ref(vm, table + (uint64_t)layout->ref_size * number, trace);
	fake_put_u64(vm, fake_member(J, layout->jit_State_trace), table);
	fake_put_u32(vm, fake_member(J, layout->jit_State_sizetrace), size);
	fake_put_u32(vm, fake_member(J, layout->jit_State_freetrace), number + 1);
	return trace;
}

uint64_t fake_table(struct fake_vm *vm, uint32_t size)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t nodes = fake_alloc(vm, (size_t)size * (size_t)layout->Node_sizeof);
	uint64_t table = new_object(vm, layout->tag_tab, layout->GCtab_sizeof, 0);

	for (uint32_t i = 0; i < size; i++) {
		uint64_t node = nodes + i * (uint64_t)layout->Node_sizeof;

		fake_put_u64(vm, fake_member(node, layout->Node_val), UINT64_MAX); /* nil */
		fake_put_u64(vm, fake_member(node, layout->Node_key), UINT64_MAX);
	}
	fake_put_ref(vm, fake_member(table, layout->GCtab_node), nodes);
	fake_put_u32(vm, fake_member(table, layout->GCtab_hmask), size - 1);
	return table;
}

void fake_table_set(struct fake_vm *vm, uint64_t table, const char *key, uint64_t value)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t node = fake_get_ref(vm, fake_member(table, layout->GCtab_node));

	while (fake_get_u64(vm, fake_member(node, layout->Node_key)) != UINT64_MAX)
		node += (uint64_t)layout->Node_sizeof;
	fake_put_u64(vm, fake_member(node, layout->Node_key),
		     fake_tag(vm, layout->tag_str, fake_string(vm, key)));
	fake_put_u64(vm, fake_member(node, layout->Node_val), value);
}

uint64_t fake_module(struct fake_vm *vm, const char *name, uint32_t size)
{
	uint64_t table = fake_table(vm, size);

	fake_table_set(vm, vm->loaded, name, fake_tag(vm, vm->layout->tag_tab, table));
	return table;
}

void fake_name_function(struct fake_vm *vm, const char *name, uint64_t function)
{
	fake_table_set(vm, vm->loaded, name, fake_tag(vm, vm->layout->tag_func, function));
}

void fake_module_set(struct fake_vm *vm, uint64_t module, const char *name, uint64_t function)
{
	fake_table_set(vm, module, name, fake_tag(vm, vm->layout->tag_func, function));
}

/* ---- Stacks ----------------------------------------------------------------------------- */

/* Members of a lua_State that are references have their width, others are pointers. */
static bool is_ref(const struct luastate_layout *layout, int32_t field)
{
	return field == layout->lua_State_glref || field == layout->lua_State_stack ||
	       field == layout->lua_State_maxstack;
}

uint64_t fake_L_get(const struct fake_vm *vm, uint64_t L, int32_t field)
{
	return is_ref(vm->layout, field) ? fake_get_ref(vm, fake_member(L, field))
					 : fake_get_u64(vm, fake_member(L, field));
}

void fake_L_set(struct fake_vm *vm, uint64_t L, int32_t field, uint64_t value)
{
	if (is_ref(vm->layout, field))
		fake_put_ref(vm, fake_member(L, field), value);
	else
		fake_put_u64(vm, fake_member(L, field), value);
}

/* Source: LuaJIT v2.1 src/lj_state.c, stack_init(). */
void fake_lua_state(struct fake_vm *vm, uint64_t L, size_t slots)
{
	const struct luastate_layout *layout = vm->layout;
	size_t size = slots + 1 + (size_t)layout->LJ_STACK_EXTRA;
	uint64_t stack = fake_alloc(vm, 8 * size);

	put_type(vm, L, layout->tag_thread);
	fake_L_set(vm, L, layout->lua_State_glref, vm->G);
	fake_L_set(vm, L, layout->lua_State_stack, stack);
	fake_L_set(vm, L, layout->lua_State_base, stack + vm->frame_bytes);
	fake_L_set(vm, L, layout->lua_State_top, stack + vm->frame_bytes);
	fake_L_set(vm, L, layout->lua_State_maxstack, stack + 8 * slots);
	fake_L_set(vm, L, layout->lua_State_cframe, 0);
	fake_put_u32(vm, fake_member(L, layout->lua_State_stacksize), (uint32_t)size);
	fake_put_u64(vm, stack, fake_tag(vm, layout->tag_thread, L));
}

uint64_t fake_coroutine(struct fake_vm *vm, size_t slots)
{
	uint64_t L = new_object(vm, vm->layout->tag_thread, vm->layout->lua_State_sizeof, 0);

	fake_lua_state(vm, L, slots);
	return L;
}

void fake_put_slot(struct fake_vm *vm, uint64_t base, uint64_t value)
{
	fake_put_ref(vm, base - vm->frame_bytes, value);
}

void fake_put_function(struct fake_vm *vm, uint64_t base, uint64_t function)
{
	fake_put_slot(vm, base, fake_tag(vm, vm->layout->tag_func, function));
}

void fake_put_link(struct fake_vm *vm, uint64_t base, uint64_t link)
{
	fake_put_ref(vm, base - (uint64_t)vm->layout->ref_size, link);
}

uint64_t fake_get_link(const struct fake_vm *vm, uint64_t base)
{
	return fake_get_ref(vm, base - (uint64_t)vm->layout->ref_size);
}

void fake_put_results(struct fake_vm *vm, uint64_t base)
{
	for (uint64_t below = 8; below <= vm->frame_bytes; below += 8)
		fake_put_u64(vm, base - below, UINT64_C(0x3ff0000000000000)); /* 1.0 */
}

void fake_put_cont(struct fake_vm *vm, uint64_t base, uint64_t pc, uint64_t cont)
{
	fake_put_ref(vm, base - vm->frame_bytes - (uint64_t)vm->layout->ref_size, pc);
	fake_put_ref(vm, base - 2 * vm->frame_bytes, cont);
}

static uint64_t push_frame(struct fake_vm *vm, uint64_t L, uint64_t function, uint64_t delta,
			   uint64_t link)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t base = fake_L_get(vm, L, layout->lua_State_base) + delta;

	MUST(base <= fake_L_get(vm, L, layout->lua_State_maxstack));
	fake_put_function(vm, base, function);
	fake_put_link(vm, base, link);
	fake_L_set(vm, L, layout->lua_State_base, base);
	fake_L_set(vm, L, layout->lua_State_top, base);
	return base;
}

uint64_t fake_call(struct fake_vm *vm, uint64_t L, uint64_t function, unsigned gap, unsigned type)
{
	uint64_t delta = vm->frame_bytes + 8 * (uint64_t)gap;

	return push_frame(vm, L, function, delta, delta | type);
}

uint64_t fake_call_lua(struct fake_vm *vm, uint64_t L, uint64_t function, uint64_t ret)
{
	uint32_t ins = fake_get_u32(vm, ret - 4);

	return push_frame(vm, L, function, vm->frame_bytes + 8 * (uint64_t)(ins >> 8 & 0xff), ret);
}

uint64_t fake_call_cont(struct fake_vm *vm, uint64_t L, uint64_t function, unsigned gap,
			uint64_t pc)
{
	uint64_t base;

	MUST(8 * gap >= vm->frame_bytes);
	base = fake_call(vm, L, function, gap, FAKE_LINK_CONT);
	fake_put_cont(vm, base, pc, vm->code + FAKE_AT_PLAIN);
	return base;
}

void fake_push(struct fake_vm *vm, uint64_t word)
{
	vm->sp -= 8;
	MUST(vm->sp >= vm->native_start);
	fake_put_u64(vm, vm->sp, word);
}

/* What the callee-saved registers hold in the caller of the VM, from the return address down. */
static const uint64_t saved_values[] = { 0x6666, 0x3333, 0x1515, 0x1414 };

uint64_t fake_cframe(struct fake_vm *vm, uint64_t L, int32_t nres, uint64_t pc)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t frame = vm->sp - (uint64_t)layout->cframe_size;

	MUST(frame >= vm->native_start);
	vm->sp = frame;
	for (uint64_t i = 0; i + 8 <= (uint64_t)layout->cframe_size; i += 8)
		fake_put_u64(vm, frame + i, vm->fill);
	for (int i = 0; i < 4; i++)
		fake_put_u64(vm, fake_member(frame, layout->cframe_size - 16 - 8 * i),
			     saved_values[i]);
	fake_put_u64(vm, fake_cframe_ret(vm, frame), vm->host + FAKE_HOST_DIRECT);
	fake_put_u32(vm, fake_member(frame, layout->cframe_nres), (uint32_t)nres);
	fake_put_ref(vm, fake_member(frame, layout->cframe_L), L);
	fake_put_ref(vm, fake_member(frame, layout->cframe_pc), pc);
	fake_put_u64(vm, fake_member(frame, layout->cframe_prev),
		     fake_L_get(vm, L, layout->lua_State_cframe));
	fake_L_set(vm, L, layout->lua_State_cframe, frame);
	return frame;
}

uint64_t fake_cframe_ret(const struct fake_vm *vm, uint64_t frame)
{
	return fake_member(frame, vm->layout->cframe_size - 8);
}
