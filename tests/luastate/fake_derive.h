/* SPDX-License-Identifier: MIT */
/* A VM that shows what layouts are derived from, and what its interpreter's code would show. */
#ifndef FAKE_DERIVE_H
#define FAKE_DERIVE_H

#include "fake_vm.h"
#include "luastate/derive/derive.h"

/** Votes for what the layout has, where code shows it: nothing that live objects alone do. */
void fake_derive_reading(const struct luastate_layout *layout, struct derive_reading *ret_reading);

/** Strings, and functions that call each other on the main coroutine's stack. */
void fake_derive_objects(struct fake_vm *vm);

#endif
