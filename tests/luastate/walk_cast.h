/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LUASTATE_WALK_CAST_H
#define TESTS_LUASTATE_WALK_CAST_H

/* Functions that call each other in the tests of the walk. */

#include "sample.h"

enum { C_CODE = 0x5000 };

/* A main chunk that calls work, which calls inner. */
struct cast {
	uint64_t main_proto, work_proto, inner_proto;
	uint64_t main, work, inner, c;
};

static inline struct cast make_cast(struct fake_vm *vm)
{
	struct cast cast = { .main_proto = fake_caller(vm, "@main.lua", 0, "work"),
			     .work_proto = fake_caller(vm, "@main.lua", 10, "inner"),
			     .inner_proto = fake_caller(vm, "=inner", 20, "nobody"),
			     .c = fake_c_function(vm, C_CODE) };

	cast.main = fake_lua_function(vm, cast.main_proto);
	cast.work = fake_lua_function(vm, cast.work_proto);
	cast.inner = fake_lua_function(vm, cast.inner_proto);
	return cast;
}

static inline uint64_t base_of(struct sample *sample, uint64_t L)
{
	return fake_L_get(sample->vm, L, sample->vm->layout->lua_State_base);
}

/* The address behind the call in a function of fake_caller(). */
static inline uint64_t ret_in(struct sample *sample, uint64_t proto)
{
	return fake_pc(sample->vm, proto, 3);
}

#define EXPECT(sample, outcome, ...)                                                           \
	do {                                                                                   \
		const struct sample_frame frames_[] = { __VA_ARGS__ };                         \
		sample_expect(sample, outcome, sizeof(frames_) / sizeof(frames_[0]), frames_); \
	} while (0)

#endif
