/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_FAKE_VALUES_H
#define TESTS_LUASTATE_FAKE_VALUES_H

/* Objects that only values refer to. */

#include "fake_vm.h"

/** An upvalue, closed with a value, or open at a slot. @return The GCupval. */
uint64_t fake_closed(struct fake_vm *vm, uint64_t value);
uint64_t fake_open(struct fake_vm *vm, uint64_t slot);

/** A Lua function with upvalues; its prototype has as many. */
uint64_t fake_closure(struct fake_vm *vm, uint64_t proto, unsigned count, const uint64_t *upvalues);

/** A table with an array part of @p count slots, the first is index 0. */
uint64_t fake_array(struct fake_vm *vm, uint32_t count, const uint64_t *values);

/** A userdata of @p len bytes. @param metatable May be 0. */
uint64_t fake_userdata(struct fake_vm *vm, uint32_t len, uint64_t metatable);

/** A cdata object of type @p id with these contents. */
uint64_t fake_cdata(struct fake_vm *vm, uint16_t id, const void *bytes, size_t len);

/** A C type. */
struct fake_ctype {
	uint32_t info, size;
	const char *name; /**< NULL: none. */
};

/** The VM's table of C types; type 0 is none. @return The CTState. */
uint64_t fake_ctypes(struct fake_vm *vm, const struct fake_ctype *types, uint32_t count);

/** A number as a TValue. */
uint64_t fake_number(double number);

#endif
