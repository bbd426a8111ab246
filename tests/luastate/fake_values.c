/* SPDX-License-Identifier: MIT */
#include "fake_values.h"

/* Source: LuaJIT v2.1 src/lj_ctype.h, CTState and CType. */
enum { CTSTATE_BYTES = 64, CTSTATE_TOP = 8, CTSTATE_SIZE = 12, CTSTATE_L = 16, CTSTATE_G = 24 };

static uint64_t new_object(struct fake_vm *vm, int32_t tag, int32_t size, size_t more)
{
	uint64_t object = fake_alloc_struct(vm, (size_t)size, more);

	fake_put_u8(vm, fake_member(object, vm->layout->GCobj_gct), (uint8_t)state_gct(tag));
	return object;
}

uint64_t fake_number(double number)
{
	uint64_t value;

	memcpy(&value, &number, sizeof(value));
	return value;
}

static uint64_t new_upvalue(struct fake_vm *vm, uint8_t closed)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t upvalue = new_object(vm, layout->tag_upval, layout->GCupval_sizeof, 8);

	fake_put_u8(vm, fake_member(upvalue, layout->GCupval_closed), closed);
	fake_put_u8(vm, fake_member(upvalue, layout->GCupval_immutable), closed);
	return upvalue;
}

/* The value lies where no row has another member: behind the struct. */
uint64_t fake_closed(struct fake_vm *vm, uint64_t value)
{
	uint64_t upvalue = new_upvalue(vm, 1);
	uint64_t at = (fake_member(upvalue, vm->layout->GCupval_sizeof) + 7) & ~(uint64_t)7;

	fake_put_u64(vm, at, value);
	fake_put_ref(vm, fake_member(upvalue, vm->layout->GCupval_v), at);
	return upvalue;
}

uint64_t fake_open(struct fake_vm *vm, uint64_t slot)
{
	uint64_t upvalue = new_upvalue(vm, 0);

	fake_put_ref(vm, fake_member(upvalue, vm->layout->GCupval_v), slot);
	return upvalue;
}

uint64_t fake_closure(struct fake_vm *vm, uint64_t proto, unsigned count, const uint64_t *upvalues)
{
	const struct luastate_layout *layout = vm->layout;
	size_t ref = (size_t)layout->ref_size;
	uint64_t function =
		new_object(vm, layout->tag_func, layout->GCfunc_header, ref * count + 8);

	fake_put_u8(vm, fake_member(function, layout->GCfunc_ffid), 0);
	fake_put_u8(vm, fake_member(function, layout->GCfunc_nupvalues), (uint8_t)count);
	fake_put_ref(vm, fake_member(function, layout->GCfunc_pc), fake_pc(vm, proto, 0));
	for (unsigned i = 0; i < count; i++)
		fake_put_ref(vm, fake_member(function, layout->GCfuncL_uvptr) + ref * i,
			     upvalues[i]);
	return function;
}

uint64_t fake_array(struct fake_vm *vm, uint32_t count, const uint64_t *values)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t table = fake_table(vm, 1), array = fake_alloc(vm, 8 * (size_t)count);

	fake_put(vm, array, values, 8 * (size_t)count);
	fake_put_ref(vm, fake_member(table, layout->GCtab_array), array);
	fake_put_u32(vm, fake_member(table, layout->GCtab_asize), count);
	fake_put_ref(vm, fake_member(table, layout->GCtab_metatable), 0);
	return table;
}

uint64_t fake_userdata(struct fake_vm *vm, uint32_t len, uint64_t metatable)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t object = new_object(vm, layout->tag_udata, layout->GCudata_sizeof, len);

	fake_put_u32(vm, fake_member(object, layout->GCudata_len), len);
	fake_put_ref(vm, fake_member(object, layout->GCudata_metatable), metatable);
	return object;
}

uint64_t fake_cdata(struct fake_vm *vm, uint16_t id, const void *bytes, size_t len)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t object = new_object(vm, layout->tag_cdata, layout->GCcdata_sizeof, len);

	fake_put_u8(vm, fake_member(object, layout->GCobj_gct - 1), 0);
	fake_put_u16(vm, fake_member(object, layout->GCcdata_ctypeid), id);
	fake_put(vm, fake_member(object, layout->GCcdata_sizeof), bytes, len);
	return object;
}

uint64_t fake_ctypes(struct fake_vm *vm, const struct fake_ctype *types, uint32_t count)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t size = layout->gc64 ? 24 : 16, name_at = layout->gc64 ? 16 : 12;
	uint64_t cts = fake_alloc(vm, CTSTATE_BYTES), table = fake_alloc(vm, size * count);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = table + size * i;

		fake_put_u32(vm, at, types[i].info);
		fake_put_u32(vm, at + 4, types[i].size);
		fake_put_ref(vm, at + name_at, types[i].name ? fake_string(vm, types[i].name) : 0);
	}
	fake_put_u64(vm, cts, table);
	fake_put_u32(vm, cts + CTSTATE_TOP, count);
	fake_put_u32(vm, cts + CTSTATE_SIZE, count);
	fake_put_u64(vm, cts + CTSTATE_L, vm->main);
	fake_put_u64(vm, cts + CTSTATE_G, vm->G);
	fake_put_ref(vm, fake_member(vm->G, layout->global_State_ctype_state), cts);
	return cts;
}
