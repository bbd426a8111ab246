/* SPDX-License-Identifier: MIT */
/* Layouts from debug information: builds that no row describes, and information that lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "luastate/arch/arch.h"
#include "luastate/explain.h"
#include "luastate/layout/fields.h"
#include "play.h"
#include "shift.h"

/* ---- Information ------------------------------------------------------------------------ */

/** Debug information of a build with a layout. */
struct build {
	const struct luastate_layout *layout;
	size_t without;	  /* a field of which it does not tell; SIZE_MAX none */
	unsigned answers; /* given so far */
	bool late;	  /* the last answers did not come in time */
};

static const struct {
	const char *debug, *field;
} names[] = {
	{ "GChead.gct", "GCobj.gct" },
	{ "GCfuncC.ffid", "GCfunc.ffid" },
	{ "GCfuncC.nupvalues", "GCfunc.nupvalues" },
	{ "GCfuncC.pc", "GCfunc.pc" },
	{ "global_State.gc.state", "global_State.gc_state" },
	{ "global_State.gc.root", "global_State.gc_root" },
	{ "global_State.gc.lightudseg", "global_State.lightudseg" },
	{ "global_State.str.mask", "global_State.str_mask" },
	{ "BC_FUNCF", "BC_FUNCF" },
	{ "BC__MAX", "BC__MAX" },
	{ "LJ_VMST_INTERP", "vmst.interp" },
	{ "LJ_VMST_LFUNC", "vmst.lfunc" },
	{ "LJ_VMST_FFUNC", "vmst.ffunc" },
	{ "LJ_VMST_CFUNC", "vmst.cfunc" },
	{ "LJ_VMST_GC", "vmst.gc" },
	{ "LJ_VMST_EXIT", "vmst.exit" },
	{ "LJ_VMST_RECORD", "vmst.record" },
	{ "LJ_VMST_OPT", "vmst.opt" },
	{ "LJ_VMST_ASM", "vmst.asm" },
};

static bool find(struct build *build, const char *name, int64_t *ret_value)
{
	int32_t value;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].debug, name) == 0)
			name = names[i].field;
	for (size_t i = 0; i < state_field_count; i++) {
		if (strcmp(state_fields[i].name, name) != 0 || i == build->without)
			continue;
		memcpy(&value, (const char *)build->layout + state_fields[i].offset, sizeof(value));
		if (value == LAYOUT_ABSENT)
			return false;
		*ret_value = value;
		build->answers++;
		return true;
	}
	return false;
}

static bool tell_member(void *context, const char *structure, const char *path, int64_t *ret_offset)
{
	struct build *build = context;
	const struct luastate_layout *layout = build->layout;
	char name[96];

	if (strcmp(structure, "GG_State") == 0) {
		*ret_offset = layout->lua_State_sizeof +
			      (strcmp(path, "J") == 0	       ? layout->global_State_to_J
			       : strcmp(path, "dispatch") == 0 ? layout->global_State_to_dispatch
			       : strcmp(path, "bcff") == 0     ? layout->global_State_to_bcff
							       : 0);
		return true;
	}
	snprintf(name, sizeof(name), "%s.%s", structure, path);
	return find(build, name, ret_offset);
}

static bool tell_size(void *context, const char *structure, int64_t *ret_size)
{
	struct build *build = context;
	char name[96];

	*ret_size = build->layout->ref_size;
	if (strcmp(structure, "MRef") == 0)
		return true;
	snprintf(name, sizeof(name), "%s.sizeof", structure);
	return find(build, name, ret_size);
}

static bool tell_enumerator(void *context, const char *name, int64_t *ret_value)
{
	return find(context, name, ret_value);
}

static bool is_late(void *context)
{
	const struct build *build = context;

	return build->late;
}

static int use(struct luastate *state, uint64_t code, struct build *build, struct failure *why)
{
	const struct luastate_debug debug = { .member = tell_member,
					      .size = tell_size,
					      .enumerator = tell_enumerator,
					      .is_late = is_late,
					      .context = build };

	return luastate_use_debug(state, code, &debug, why);
}

/* A sample of a VM with the layout that debug information says, or another. */
static enum play_result run(const struct luastate_layout *layout, struct build *build,
			    enum play_leaf leaf)
{
	struct play play;
	struct luastate *state;
	enum play_result result = PLAY_REFUSED;
	struct failure why;

	play_init(&play, &(struct fake_options){ .layout = layout }, leaf);
	if (fake_vm_is_interpreter(play.vm)) {
		state = fake_vm_open(play.vm, false);
		if (use(state, play.vm->code, build, &why) == 0 &&
		    luastate_vm_of(state, &play.vm->reader, play.vm->main, &why))
			result = play_sample(&play, state);
		luastate_destroy(state);
	}
	play_deinit(&play);
	return result;
}

static const struct luastate_layout *row_of(bool gc64)
{
	return gc64 ? fake_layout("mainline", true, "a32aeadc")
		    : fake_layout("tarantool", false, "285a1b0a");
}

/* ---- Builds ----------------------------------------------------------------------------- */

static void test_builds_of_rows(void **state)
{
	unsigned bad = 0;

	(void)state;
	for (size_t i = 0; i < luastate_layout_count; i++)
		for (int leaf = 0; leaf < PLAY_LEAFS; leaf++) {
			const struct luastate_layout *layout = &luastate_layouts[i];
			struct build build = { .layout = layout, .without = SIZE_MAX };
			char text[160];

			if (strcmp(layout->arch, state_arch_name) != 0 ||
			    run(layout, &build, leaf) == PLAY_RIGHT)
				continue;
			luastate_describe_layout(layout, text, sizeof(text));
			print_error("%s, leaf %d\n", text, leaf);
			bad++;
		}
	assert_int_equal(0, bad);
}

/* What macros and assembler decide is not in debug information; and no build has anything between
 * dispatch table and bytecode. */
static bool is_told(size_t field)
{
	static const char *const untold[] = { "tag.",	      "global_State.to_bcff",
					      "cframe.",      "LJ_STACK_EXTRA",
					      "GG_NUM_ASMFF", "GCfunc.header" };

	for (size_t i = 0; i < sizeof(untold) / sizeof(untold[0]); i++)
		if (strncmp(state_fields[field].name, untold[i], strlen(untold[i])) == 0)
			return false;
	return true;
}

/* Builds that differ from every row are walked as they are. */
static void test_builds_without_a_row(void **state)
{
	unsigned right = 0, all = 0;

	(void)state;
	for (int model = 0; model < 2; model++)
		for (size_t field = 0; field < state_field_count; field++) {
			struct luastate_layout layout;
			struct build build = { .layout = &layout, .without = SIZE_MAX };
			enum play_result result;

			if (!is_told(field) || shift_is_number(field) ||
			    !shift_layout(row_of(model), field, SHIFT_TAIL, 8, &layout))
				continue;
			result = run(&layout, &build, PLAY_LUA);
			assert_int_not_equal(PLAY_WRONG, result);
			if (result != PLAY_RIGHT)
				print_error("gc%d: all from %s on moved\n", model ? 64 : 32,
					    state_fields[field].name);
			right += result == PLAY_RIGHT;
			all++;
		}
	assert_true(all > 60);
	assert_int_equal(all, right);
}

/* Where it is silent, the nearest row tells. */
static void test_silence(void **state)
{
	(void)state;
	for (size_t field = 0; field < state_field_count; field++)
		for (int model = 0; model < 2; model++) {
			struct build build = { .layout = row_of(model), .without = field };

			assert_int_equal(PLAY_RIGHT, run(build.layout, &build, PLAY_LUA));
		}
}

/* Sound, but of another build: no VM has that layout, and the row that they have is found. */
static void test_wrong_debug_file(void **state)
{
	(void)state;
	for (int model = 0; model < 2; model++) {
		struct luastate_layout layout = *row_of(model);
		struct build build = { .layout = &layout, .without = SIZE_MAX };

		layout.lua_State_glref += 8;
		layout.lua_State_sizeof += 16;
		layout.global_State_mainthref += 16;
		assert_int_equal(PLAY_RIGHT, run(row_of(model), &build, PLAY_LUA));
	}
}

/* Debug information that knows the VM, but not how it goes on, does not win over a row either. */
static void test_wrong_members(void **state)
{
	const struct luastate_layout *row = row_of(true), *nearest;
	struct luastate_layout layout = *row;
	struct build build = { .layout = &layout, .without = SIZE_MAX };
	struct fake_vm *vm = fake_vm_create(&(struct fake_options){ .layout = row });
	struct luastate *lua = fake_vm_open(vm, false);
	const struct luastate_vm *found;
	struct failure why;

	(void)state;
	layout.global_State_str_mask += 4;
	assert_int_equal(0, use(lua, vm->code, &build, &why));
	found = luastate_vm_of(lua, &vm->reader, vm->main, &why);
	assert_non_null(found);
	assert_int_equal(row->global_State_str_mask, found->layout->global_State_str_mask);
	/* Then it no longer counts as taken. */
	assert_int_equal(-1, luastate_compare_debug(lua, 0, NULL, NULL, &nearest));
	luastate_destroy(lua);
	fake_vm_destroy(vm);
}

/* Nothing of what was cut short counts: rows of it all. */
static void test_late_answers(void **state)
{
	const struct luastate_layout *row = row_of(true), *nearest;
	struct build build = { .layout = row, .without = SIZE_MAX, .late = true };
	struct fake_vm *vm = fake_vm_create(&(struct fake_options){ .layout = row });
	struct luastate *lua = fake_vm_open(vm, false);
	struct failure why;

	(void)state;
	assert_int_equal(-1, use(lua, vm->code, &build, &why));
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_int_equal(-1, luastate_compare_debug(lua, 0, NULL, NULL, &nearest));
	assert_non_null(luastate_vm_of(lua, &vm->reader, vm->main, &why));
	luastate_destroy(lua);
	fake_vm_destroy(vm);
}

static void count(void *context, const char *field, int32_t row, int32_t debug, const char *how)
{
	assert_non_null(field);
	assert_null(how);
	assert_int_not_equal(row, debug);
	++*(unsigned *)context;
}

static void test_differences_are_told(void **state)
{
	const struct luastate_layout *row = row_of(true), *nearest = NULL;
	struct luastate_layout layout = *row;
	struct build build = { .layout = &layout, .without = SIZE_MAX };
	struct fake_vm *vm = fake_vm_create(&(struct fake_options){ .layout = row });
	struct luastate *lua = fake_vm_open(vm, false);
	struct failure why;
	unsigned differences = 0;

	(void)state;
	assert_int_equal(-1, luastate_compare_debug(lua, 0, count, &differences, &nearest));
	layout.GCproto_firstline = row->GCproto_numline;
	layout.GCproto_numline = row->GCproto_firstline;
	assert_int_equal(0, use(lua, vm->code, &build, &why));
	assert_int_equal(0, luastate_compare_debug(lua, 0, count, &differences, &nearest));
	assert_int_equal(2, differences);
	assert_string_equal(row->family, nearest->family);
	/* No interpreter there. */
	assert_int_equal(-1, use(lua, vm->host, &build, &why));
	assert_int_equal(FAILURE_NOT_FOUND, why.kind);
	luastate_destroy(lua);
	fake_vm_destroy(vm);
}

/* ---- Lies ------------------------------------------------------------------------------- */

/* Any number in any place: nothing is read or written where it should not be. */
static void test_hostile_answers(void **state)
{
	static const int32_t values[] = { 0,	 1,	  7,	   255,		  256,
					  257,	 1024,	  4095,	   4096,	  65535,
					  65536, 1 << 20, 1 << 30, INT32_MAX - 7, INT32_MAX };

	(void)state;
	for (int model = 0; model < 2; model++)
		for (size_t field = 0; field < state_field_count; field++)
			for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
				struct luastate_layout layout = *row_of(model);
				struct build build = { .layout = &layout, .without = SIZE_MAX };

				if (!is_told(field))
					continue;
				memcpy((char *)&layout + state_fields[field].offset, &values[i],
				       sizeof(values[i]));
				run(row_of(model), &build, PLAY_LATE);
			}
}

/* All at once. */
static void test_hostile_information(void **state)
{
	static const int32_t values[] = { 0, 64, 257, 5000, 1 << 24, INT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct luastate_layout layout = *row_of(true);
		struct build build = { .layout = &layout, .without = SIZE_MAX };

		for (size_t field = 0; field < state_field_count; field++)
			memcpy((char *)&layout + state_fields[field].offset, &values[i],
			       sizeof(values[i]));
		assert_int_not_equal(PLAY_WRONG, run(row_of(true), &build, PLAY_LUA));
	}
}

static size_t field_index(const char *name)
{
	for (size_t i = 0; i < state_field_count; i++)
		if (strcmp(state_fields[i].name, name) == 0)
			return i;
	return SIZE_MAX;
}

static bool is_bounded_with(const struct luastate_layout *row, size_t field, int32_t value)
{
	struct luastate_layout layout = *row;

	memcpy((char *)&layout + state_fields[field].offset, &value, sizeof(value));
	return state_layout_is_bounded(&layout);
}

/* The size of the structure that a field is a member of, 0 if none. */
static int32_t size_of_parent(const struct luastate_layout *layout, size_t field)
{
	char name[96];
	size_t parent;
	int32_t size;

	snprintf(name, sizeof(name), "%s", state_fields[field].name);
	if (!strchr(name, '.') || strstr(name, ".sizeof") || strstr(name, ".to_"))
		return 0;
	strcpy(strchr(name, '.'), ".sizeof");
	parent = field_index(name);
	if (parent == SIZE_MAX)
		return 0;
	memcpy(&size, (const char *)layout + state_fields[parent].offset, sizeof(size));
	return size;
}

/* No member lies outside its structure, nor reaches out of it. */
static void test_members_are_bounded(void **state)
{
	const struct luastate_layout *row = row_of(true);
	unsigned members = 0;

	(void)state;
	for (size_t i = 0; i < luastate_layout_count; i++)
		assert_true(state_layout_is_bounded(&luastate_layouts[i]));
	for (size_t field = 0; field < state_field_count; field++) {
		int32_t size = size_of_parent(row, field);

		if (size == 0)
			continue;
		assert_false(is_bounded_with(row, field, size));
		if (!state_may_lack(state_fields[field].name))
			assert_false(is_bounded_with(row, field, -1));
		members++;
	}
	assert_true(members > 45);
	assert_true(is_bounded_with(row, field_index("Node.val"), row->Node_sizeof - 8));
	assert_false(is_bounded_with(row, field_index("Node.val"), row->Node_sizeof - 7));
	assert_true(is_bounded_with(row, field_index("GCtab.hmask"), row->GCtab_sizeof - 4));
	assert_false(is_bounded_with(row, field_index("GCtab.hmask"), row->GCtab_sizeof - 3));
	/* The structure is the smaller one. */
	assert_false(is_bounded_with(row, field_index("Node.sizeof"), row->Node_key + 7));
	assert_false(is_bounded_with(row, field_index("GCstr.sizeof"), row->GCstr_len + 3));
	/* What is cleared lies before it. */
	assert_true(is_bounded_with(row, field_index("GCtrace.ir"), row->ref_size));
	assert_false(is_bounded_with(row, field_index("GCtrace.ir"), row->ref_size - 1));
	assert_false(is_bounded_with(row, field_index("GCtrace.ir"), 0));
	/* Read behind another object, and within the global state. */
	assert_false(is_bounded_with(row, field_index("global_State.strempty"),
				     row->global_State_sizeof - row->GCstr_sizeof + 1));
	assert_false(is_bounded_with(row, field_index("GCobj.gct"), row->GCstr_sizeof));
	/* The mark is between the reference to the next object and the type. */
	assert_true(is_bounded_with(row, field_index("GCobj.gct"), row->ref_size + 1));
	assert_false(is_bounded_with(row, field_index("GCobj.gct"), row->ref_size));
}

static void test_members_outside_are_refused(void **state)
{
	const struct luastate_layout *row = row_of(true);
	struct luastate_layout layout = *row;
	struct build build = { .layout = &layout, .without = SIZE_MAX };
	struct fake_vm *vm = fake_vm_create(&(struct fake_options){ .layout = row });
	struct luastate *lua = fake_vm_open(vm, false);
	struct failure why;

	(void)state;
	layout.Node_sizeof = 8;
	layout.Node_key = 232;
	assert_int_equal(-1, use(lua, vm->code, &build, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	layout = *row;
	layout.lua_State_maxstack = layout.lua_State_sizeof - 4;
	assert_int_equal(-1, use(lua, vm->code, &build, &why));
	assert_int_equal(FAILURE_INVALID, why.kind);
	luastate_destroy(lua);
	fake_vm_destroy(vm);
}

/* Structures that are called like our names for other things. */
static void test_namesakes(void **state)
{
	const struct luastate_layout *row = row_of(true), *nearest;
	struct luastate_layout layout = *row;
	struct build build = { .layout = &layout, .without = SIZE_MAX };
	struct fake_vm *vm = fake_vm_create(&(struct fake_options){ .layout = row });
	struct luastate *lua = fake_vm_open(vm, false);
	struct failure why;
	unsigned differences = 0;

	(void)state;
	layout.cframe_L = 200;
	layout.cframe_size = 1;
	layout.tag_str = 7;
	assert_int_equal(0, use(lua, vm->code, &build, &why));
	assert_int_equal(0, luastate_compare_debug(lua, 0, count, &differences, &nearest));
	assert_int_equal(0, differences);
	luastate_destroy(lua);
	fake_vm_destroy(vm);
}

/* A copy that is loaded anew has the layout that it had: a VM's objects may still refer to it. */
static void test_layouts_of_dropped_copies(void **state)
{
	const struct luastate_layout *row = row_of(true);
	struct luastate_layout other = *row;
	struct build build = { .layout = row, .without = SIZE_MAX };
	struct fake_vm *vm = fake_vm_create(&(struct fake_options){ .layout = row });
	struct luastate *lua = fake_vm_open(vm, false);
	const struct luastate_layout *known;
	struct failure why;

	(void)state;
	assert_int_equal(0, use(lua, vm->code, &build, &why));
	known = luastate_vm_of(lua, &vm->reader, vm->main, &why)->layout;
	for (int i = 0; i < 2 * STATE_RETIRED_MAX; i++) {
		luastate_drop_interpreter(lua, 0);
		assert_int_equal(0, luastate_interpreter_count(lua));
		assert_int_equal(0, fake_vm_add_interpreter(vm, lua));
		assert_int_equal(0, use(lua, vm->code, &build, &why));
		assert_ptr_equal(known, luastate_vm_of(lua, &vm->reader, vm->main, &why)->layout);
	}
	/* Ever other builds in turn: what is kept has a bound. */
	build.layout = &other;
	for (int i = 0; i < STATE_RETIRED_MAX + 2; i++) {
		other.jit_State_L = row->jit_State_L + 8 * (i + 1);
		luastate_drop_interpreter(lua, 0);
		if (luastate_interpreter_count(lua) > 0)
			break;
		assert_int_equal(0, fake_vm_add_interpreter(vm, lua));
		assert_int_equal(0, use(lua, vm->code, &build, &why));
	}
	assert_int_equal(1, luastate_interpreter_count(lua));
	assert_false(luastate_in_interpreter(lua, vm->code));
	luastate_destroy(lua);
	fake_vm_destroy(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_builds_of_rows),
		cmocka_unit_test(test_builds_without_a_row),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_differences_are_told),
		cmocka_unit_test(test_hostile_answers),
		cmocka_unit_test(test_hostile_information),
		cmocka_unit_test(test_members_are_bounded),
		cmocka_unit_test(test_members_outside_are_refused),
		cmocka_unit_test(test_namesakes),
		cmocka_unit_test(test_layouts_of_dropped_copies),
		cmocka_unit_test(test_wrong_debug_file),
		cmocka_unit_test(test_wrong_members),
		cmocka_unit_test(test_late_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
