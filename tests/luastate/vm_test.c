/* SPDX-License-Identifier: MIT */
/* What is taken for a VM, and what is not. */
#include "sample.h"
#include "luastate/explain.h"
#include "luastate/vm/vm_internal.h"

static void expect_refused(struct sample *sample, uint64_t L)
{
	struct luastate *state = fake_vm_open(sample->vm, false);
	struct failure why = { 0 };

	assert_null(luastate_vm_of(state, &sample->vm->reader, L, &why));
	assert_int_equal(FAILURE_NOT_FOUND, why.kind);
	assert_int_equal(0, luastate_vm_count(state));
	luastate_destroy(state);
}

static void expect_found(struct sample *sample, uint64_t L, uint64_t main_thread)
{
	struct luastate *state = fake_vm_open(sample->vm, false);
	const struct luastate_vm *vm;
	struct failure why;

	vm = luastate_vm_of(state, &sample->vm->reader, L, &why);
	assert_non_null(vm);
	assert_int_equal(main_thread, vm->main_thread);
	assert_int_equal(main_thread + (uint64_t)vm->layout->lua_State_sizeof, vm->G);
	assert_int_equal(1, luastate_vm_count(state));
	assert_ptr_equal(vm, luastate_vm_get(state, 0));
	luastate_destroy(state);
}

static void test_any_coroutine_shows_its_vm(void **state)
{
	struct sample *sample = *state;

	expect_found(sample, sample->vm->main, sample->vm->main);
	expect_found(sample, fake_coroutine(sample->vm, 16), sample->vm->main);
}

static void test_layouts_have_bounded_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < luastate_layout_count; i++) {
		const struct luastate_layout *layout = &luastate_layouts[i];

		assert_true(layout->lua_State_sizeof <= STATE_OBJECT_MAX);
		assert_true(layout->GCproto_sizeof <= STATE_OBJECT_MAX);
		assert_true(layout->GCtrace_sizeof <= STATE_OBJECT_MAX);
		assert_true(layout->GCfunc_header <= STATE_OBJECT_MAX);
		assert_true(layout->GCtab_sizeof <= STATE_OBJECT_MAX);
		assert_true(layout->cframe_size <= STATE_OBJECT_MAX);
		assert_true(layout->global_State_sizeof <= 4096);
		assert_true(layout->GG_NUM_ASMFF <= STATE_FFIDS);
		assert_int_equal(
			layout->global_State_to_bcff,
			layout->global_State_to_dispatch +
				8 * (layout->BC__MAX + layout->GG_NUM_ASMFF + layout->BC_FUNCF));
	}
}

static void test_addresses_that_are_no_coroutine(void **state)
{
	struct sample *sample = *state;

	expect_refused(sample, 0);
	expect_refused(sample, 4096);
	expect_refused(sample, UINT64_MAX);
	expect_refused(sample, UINT64_MAX - 7);
	expect_refused(sample, (uint64_t)1 << 47);
	expect_refused(sample, sample->vm->main + 4);
	expect_refused(sample, sample->vm->main + 8);
	expect_refused(sample, sample->vm->G);
	expect_refused(sample, fake_string(sample->vm, "no coroutine"));
	expect_refused(sample, FAKE_END - 8);
}

/* Bytes of a valid VM, overwritten. */
static void break_and_mend(struct sample *sample, uint64_t address, const void *bytes, size_t len)
{
	uint8_t kept[8];

	assert_true(len <= sizeof(kept));
	memcpy(kept, fake_at(sample->vm, address, len), len);
	fake_put(sample->vm, address, bytes, len);
	expect_refused(sample, sample->vm->main);
	fake_put(sample->vm, address, kept, len);
	expect_found(sample, sample->vm->main, sample->vm->main);
}

static void break_u8(struct sample *sample, uint64_t object, int32_t field, uint8_t value)
{
	break_and_mend(sample, object + (uint64_t)field, &value, sizeof(value));
}

static void break_u32(struct sample *sample, uint64_t object, int32_t field, uint32_t value)
{
	break_and_mend(sample, object + (uint64_t)field, &value, sizeof(value));
}

static void break_u64(struct sample *sample, uint64_t object, int32_t field, uint64_t value)
{
	break_and_mend(sample, object + (uint64_t)field, &value, sizeof(value));
}

static void test_each_invariant(void **state)
{
	struct sample *sample = *state;
	const struct luastate_layout *layout = sample->vm->layout;
	uint64_t L = sample->vm->main, G = sample->vm->G;

	break_u8(sample, L, layout->GCobj_gct, 5);
	break_u64(sample, L, layout->lua_State_glref, 0);
	break_u64(sample, L, layout->lua_State_glref, G + 4);
	/* With eight more it would be OpenResty's 5980ef94 to the last byte. */
	break_u64(sample, L, layout->lua_State_glref, G + 16);
	break_u64(sample, L, layout->lua_State_glref, L);
	break_u64(sample, L, layout->lua_State_glref, UINT64_MAX);
	break_u64(sample, G, layout->global_State_mainthref, L + 8);
	break_u64(sample, G, layout->global_State_mainthref, 0);
	break_u8(sample, G, layout->global_State_strempty + layout->GCobj_gct, 5);
	break_u32(sample, G, layout->global_State_strempty + layout->GCstr_len, 1);
	break_u8(sample, G, layout->global_State_stremptyz, 'x');
	break_u32(sample, G, layout->global_State_str_mask, 0);
	break_u32(sample, G, layout->global_State_str_mask, 7);
	break_u32(sample, G, layout->global_State_str_mask, 254);
	break_u32(sample, G, layout->global_State_str_mask, 256);
	break_u32(sample, G, layout->global_State_vmstate, (uint32_t) ~(layout->vmst_asm + 1));
	break_u32(sample, G, layout->global_State_vmstate, 65536);
	break_u32(sample, G, layout->global_State_vmstate, 0x80000000u);
	break_u64(sample, G, layout->global_State_to_dispatch, 0);
	break_u64(sample, G, layout->global_State_to_dispatch, sample->vm->code - 1);
	break_u64(sample, G, layout->global_State_to_dispatch, sample->vm->code + FAKE_CODE_BYTES);
	break_u8(sample, G, layout->global_State_to_bcff, (uint8_t)(layout->BC__MAX + 1));
	break_u8(sample, G, layout->global_State_to_bcff + 4 * layout->GG_NUM_ASMFF - 4, 0);
}

static void test_the_current_coroutine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	int32_t field = vm->layout->global_State_cur_L;
	uint64_t foreign = fake_coroutine(vm, 16), own = fake_coroutine(vm, 16);

	fake_L_set(vm, foreign, vm->layout->lua_State_glref, vm->G + 4096);
	break_u64(sample, vm->G, field, foreign);
	break_u64(sample, vm->G, field, fake_string(vm, "current"));
	break_u64(sample, vm->G, field, 4096);
	break_u64(sample, vm->G, field, own + 4);
	fake_put_u64(vm, vm->G + (uint64_t)field, own);
	expect_found(sample, vm->main, vm->main);
	fake_put_u64(vm, vm->G + (uint64_t)field, 0);
	expect_found(sample, vm->main, vm->main);
}

static void test_states_and_masks_that_are_valid(void **state)
{
	struct sample *sample = *state;
	const struct luastate_layout *layout = sample->vm->layout;
	uint64_t vmstate = sample->vm->G + (uint64_t)layout->global_State_vmstate;

	for (int32_t i = 0; i <= layout->vmst_asm; i++) {
		fake_put_u32(sample->vm, vmstate, (uint32_t)~i);
		expect_found(sample, sample->vm->main, sample->vm->main);
	}
	fake_put_u32(sample->vm, vmstate, 65535);
	expect_found(sample, sample->vm->main, sample->vm->main);
	for (uint32_t mask = 255; mask; mask = mask == UINT32_MAX ? 0 : mask * 2 + 1) {
		fake_put_u32(sample->vm, sample->vm->G + (uint64_t)layout->global_State_str_mask,
			     mask);
		expect_found(sample, sample->vm->main, sample->vm->main);
	}
}

static void test_memory_that_cannot_be_read(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	/* Rows can differ in what such a young VM does not show. */
	const struct luastate_layout *layout = luastate_vm_get(sample->state, 0)->layout;
	const uint64_t holes[] = { vm->main,
				   vm->main + 9,
				   vm->G - 1,
				   vm->G,
				   vm->G + (uint64_t)layout->global_State_sizeof - 1,
				   vm->G + (uint64_t)layout->global_State_to_dispatch + 7 };

	for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
		fake_hide(vm, holes[i], 1);
		expect_refused(sample, vm->main);
		fake_show(vm, holes[i], 1);
	}
	expect_found(sample, vm->main, vm->main);
}

static void test_more_vms_than_are_kept(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t last = 0;

	for (int i = 0; i < STATE_VMS_MAX + 3; i++) {
		last = fake_second_vm(vm, 0);
		assert_non_null(luastate_vm_of(sample->state, &vm->reader, last, &sample->why));
		assert_true(luastate_vm_count(sample->state) <= STATE_VMS_MAX);
	}
	assert_int_equal(
		last, luastate_vm_of(sample->state, &vm->reader, last, &sample->why)->main_thread);
	assert_non_null(luastate_vm_of(sample->state, &vm->reader, vm->main, &sample->why));
}

static void test_thorough_proves_vms_again(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t second = fake_second_vm(vm, 0);

	assert_non_null(luastate_vm_of(sample->state, &vm->reader, second, &sample->why));
	assert_int_equal(2, luastate_vm_count(sample->state));
	fake_put_u8(vm, vm->main + (uint64_t)vm->layout->GCobj_gct, 0);
	luastate_begin_sample(sample->state, &vm->reader);
	assert_int_equal(2, luastate_vm_count(sample->state));
	luastate_set_thorough(sample->state, true);
	luastate_begin_sample(sample->state, &vm->reader);
	assert_int_equal(1, luastate_vm_count(sample->state));
	assert_int_equal(second, luastate_vm_get(sample->state, 0)->main_thread);
}

/* ---- Search ----------------------------------------------------------------------------- */

static const struct luastate_vm *search_stack(struct sample *sample, uint64_t sp, uint64_t limit)
{
	struct fake_vm *vm = sample->vm;

	luastate_destroy(sample->state);
	sample->state = fake_vm_open(vm, false);
	sample->why = (struct failure){ 0 };
	vm->bytes_read = vm->reads = 0;
	return luastate_find_on_stack(sample->state, &vm->reader, sp, limit, &sample->why);
}

static const struct luastate_vm *find_on_stack(struct sample *sample, uint64_t sp, uint64_t limit)
{
	const struct luastate_vm *found = search_stack(sample, sp, limit);

	assert_true(sample->vm->bytes_read < 2 << 20);
	return found;
}

static void test_stack(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16);

	fake_cframe(vm, L, 0, 0);
	fake_push(vm, vm->code + FAKE_AT_RETURN);
	for (int i = 0; i < 700; i++)
		fake_push(vm, (uint64_t)i);
	/* Words that look like return addresses, and what they show is no coroutine. */
	fake_push(vm, vm->code + FAKE_AT_PLAIN);
	fake_push(vm, vm->code);
	fake_push(vm, 0);
	assert_non_null(find_on_stack(sample, vm->sp, vm->native_end));
	assert_int_equal(vm->G, luastate_vm_get(sample->state, 0)->G);
	/* From within a word, and with a limit that is unknown or wrong. */
	assert_non_null(find_on_stack(sample, vm->sp + 3, vm->native_end));
	assert_non_null(find_on_stack(sample, vm->native_end - 4096, vm->native_end));
}

/* Where no word leads into the interpreter: the thread is in it, or in machine code below it. */
static void test_stack_from_newest_frame(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t L = fake_coroutine(vm, 16), frame;

	frame = fake_cframe(vm, L, 0, 0);
	assert_non_null(find_on_stack(sample, frame, vm->native_end));
	assert_int_equal(vm->G, luastate_vm_get(sample->state, 0)->G);
	assert_non_null(find_on_stack(sample, frame - 2048, vm->native_end));
	assert_null(find_on_stack(sample, frame - 16384, vm->native_end));
	/* In C that was called: the coroutine is known to it, but another frame is the newest. */
	fake_L_set(vm, L, vm->layout->lua_State_cframe, frame + 16);
	assert_null(find_on_stack(sample, frame, vm->native_end));
	fake_L_set(vm, L, vm->layout->lua_State_cframe, 0);
	assert_null(find_on_stack(sample, frame, vm->native_end));
	fake_L_set(vm, L, vm->layout->lua_State_cframe, frame | 3);
	assert_non_null(find_on_stack(sample, frame, vm->native_end));
}

/* Frames that are left of coroutines which are none any more are passed, but not any number. */
static void test_stack_of_old_frames(void **state)
{
	enum { FEW = 200, MANY = 300 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t old = fake_coroutine(vm, 16), reads = 0;

	fake_cframe(vm, fake_coroutine(vm, 16), 0, 0);
	fake_push(vm, vm->code + FAKE_AT_RETURN);
	fake_put_ref(vm, old + (uint64_t)vm->layout->lua_State_glref, vm->native_start);
	for (int i = 0; i < MANY; i++) {
		if (i == FEW) {
			assert_non_null(search_stack(sample, vm->sp, vm->native_end));
			reads = vm->reads;
		}
		fake_cframe(vm, old, 0, 0);
		fake_push(vm, vm->code + FAKE_AT_RETURN);
	}
	assert_null(search_stack(sample, vm->sp, vm->native_end));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	/* Half as many again, were all of them tried. */
	assert_true(vm->reads < 14 * reads / 10);
}

static void test_stack_without_vm(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;

	assert_null(find_on_stack(sample, vm->native_start, vm->native_end));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	assert_int_equal(vm->native_start, sample->why.address);
	/* A return address at the very end has no frame behind it. */
	fake_put_u64(vm, vm->native_end - 8, vm->code + FAKE_AT_RETURN);
	assert_null(find_on_stack(sample, vm->native_start, vm->native_end));
}

static void test_stack_that_ends_early(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;

	assert_null(find_on_stack(sample, vm->native_start, 0));
	assert_int_equal(FAILURE_FAULT, sample->why.kind);
	assert_int_equal(vm->native_end, sample->why.address);
	assert_null(find_on_stack(sample, vm->native_end, vm->native_end + 64));
	assert_int_equal(FAILURE_FAULT, sample->why.kind);
	assert_int_equal(vm->native_end, sample->why.address);
	assert_null(find_on_stack(sample, UINT64_MAX - 64, 0));
	assert_null(find_on_stack(sample, UINT64_MAX - 64, UINT64_MAX));
	assert_null(find_on_stack(sample, 0, UINT64_MAX));
}

static const struct luastate_vm *find_in_range(struct sample *sample, uint64_t start, uint64_t end)
{
	luastate_destroy(sample->state);
	sample->state = fake_vm_open(sample->vm, false);
	sample->why = (struct failure){ 0 };
	return luastate_find_in_range(sample->state, &sample->vm->reader, start, end, &sample->why);
}

/* Memory is searched in pieces of so much; the first bytes of a main coroutine are in one. */
enum { PIECE = 256 * 1024, PIECE_STEP = PIECE - STATE_MAIN_HEAD + 8, ZONE = 3 * PIECE };

static void test_range(void **state)
{
	static const size_t locations[] = { 0,
					    8,
					    4096,
					    PIECE_STEP - 96,
					    PIECE_STEP - 8,
					    PIECE_STEP,
					    PIECE_STEP + 8,
					    PIECE - 16,
					    PIECE - 8,
					    PIECE,
					    PIECE + 8,
					    2 * PIECE_STEP - 8,
					    2 * PIECE_STEP,
					    2 * PIECE };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t zone = fake_alloc(vm, ZONE), end = zone + ZONE;

	for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		const struct luastate_vm *found;

		memset(fake_at(vm, zone, ZONE), 0, ZONE);
		fake_second_vm(vm, zone + locations[i]);
		found = find_in_range(sample, zone, end);
		assert_non_null(found);
		assert_int_equal(zone + locations[i], found->main_thread);
		assert_int_equal(vm->layout->gc64, found->layout->gc64);
	}
	memset(fake_at(vm, zone, ZONE), 0, ZONE);
	fake_second_vm(vm, (end - fake_vm_bytes(vm->layout)) & ~(uint64_t)7);
	assert_non_null(find_in_range(sample, zone, end));
	/* Cut off before its reference to the global state. */
	assert_null(find_in_range(sample, zone,
				  ((end - fake_vm_bytes(vm->layout)) & ~(uint64_t)7) +
					  STATE_MAIN_HEAD - 8));
}

/* Memory that went away while it is searched. */
static void test_range_with_holes(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t zone = fake_alloc(vm, ZONE), end = zone + ZONE;

	fake_hide(vm, zone + 4096, 4096);
	fake_hide(vm, zone + 2 * PIECE_STEP + 65536, 4096);
	assert_null(find_in_range(sample, zone, end));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	assert_int_equal(zone, sample->why.address);
	fake_second_vm(vm, zone + PIECE + 4096);
	assert_non_null(find_in_range(sample, zone, end));
	fake_hide(vm, zone, ZONE);
	assert_null(find_in_range(sample, zone, end));
}

/* Two VMs: the search gives the one that lies first, and each by itself. */
static void test_range_with_two(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t zone = fake_alloc(vm, ZONE), end = zone + ZONE;
	uint64_t first = fake_second_vm(vm, zone + 4096), second;
	const struct luastate_vm *found;

	second = fake_second_vm(vm, zone + PIECE + 512);
	found = find_in_range(sample, zone, end);
	assert_non_null(found);
	assert_int_equal(first, found->main_thread);
	found = luastate_find_in_range(sample->state, &vm->reader, first + 8, end, &sample->why);
	assert_non_null(found);
	assert_int_equal(second, found->main_thread);
	assert_int_equal(2, luastate_vm_count(sample->state));
}

static void test_range_with_decoys(void **state)
{
	enum { ZONE_BYTES = 96 * 1024 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t zone = fake_alloc(vm, ZONE_BYTES), end = zone + ZONE_BYTES;

	/* Threads that point behind themselves, where no global state is. */
	for (uint64_t L = zone; L + 256 <= end; L += 128) {
		fake_put_u8(vm, L + (uint64_t)layout->GCobj_gct,
			    (uint8_t)state_gct(layout->tag_thread));
		fake_L_set(vm, L, layout->lua_State_glref, L + (uint64_t)layout->lua_State_sizeof);
	}
	assert_null(find_in_range(sample, zone, end));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	fake_second_vm(vm, zone + ZONE_BYTES / 2);
	assert_non_null(find_in_range(sample, zone, end));
	assert_null(find_in_range(sample, zone, zone));
	assert_null(find_in_range(sample, zone, zone + 8));
	assert_null(find_in_range(sample, FAKE_END, FAKE_END + ZONE_BYTES));
}

/* ---- Interpreters and states ------------------------------------------------------------ */

static void make_rule(struct luastate_unwind_rule *ret_rule, int64_t *saved)
{
	*ret_rule = (struct luastate_unwind_rule){ .start = 0x1000,
						   .end = 0x1000 + LUASTATE_INTERPRETER_MIN_BYTES,
						   .cfa_register = ATTACH_REG_RSP,
						   .cfa_offset = 80,
						   .saved_offset = saved };
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		saved[i] = INT64_MIN;
	saved[ATTACH_REG_RBP] = -16;
	saved[ATTACH_REG_RBX] = -24;
	saved[ATTACH_REG_R15] = -32;
	saved[ATTACH_REG_R14] = -40;
}

static void test_rule_of_the_interpreter(void **state)
{
	int64_t saved[ATTACH_REG_COUNT];
	struct luastate_unwind_rule rule;

	(void)state;
	make_rule(&rule, saved);
	assert_true(luastate_is_interpreter(&rule));
	rule.end--;
	assert_false(luastate_is_interpreter(&rule));
	rule.end++;
	rule.cfa_offset = 88;
	assert_false(luastate_is_interpreter(&rule));
	rule.cfa_offset = 80;
	rule.cfa_register = ATTACH_REG_RBP;
	assert_false(luastate_is_interpreter(&rule));
	rule.cfa_register = ATTACH_REG_RSP;
	saved[ATTACH_REG_R14] = -48;
	assert_false(luastate_is_interpreter(&rule));
}

static void test_interpreters_are_few(void **state)
{
	static const uint8_t code[16];
	struct luastate *lua = luastate_create();
	int64_t saved[ATTACH_REG_COUNT];
	struct luastate_unwind_rule rule;
	struct failure why;

	(void)state;
	assert_non_null(lua);
	assert_false(luastate_has_interpreter(lua));
	make_rule(&rule, saved);
	for (unsigned i = 0; i <= STATE_INTERPRETERS_MAX; i++) {
		rule.start = 0x10000 + 0x1000 * i;
		rule.end = rule.start + sizeof(code);
		assert_int_equal(i < STATE_INTERPRETERS_MAX ? 0 : -1,
				 luastate_add_interpreter(lua, &rule, code, &why));
	}
	assert_int_equal(FAILURE_LIMIT, why.kind);
	assert_true(luastate_in_interpreter(lua, 0x10000));
	assert_true(luastate_in_interpreter(lua, 0x1700f));
	assert_false(luastate_in_interpreter(lua, 0xffff));
	assert_false(luastate_in_interpreter(lua, 0x10010));
	luastate_reset(lua);
	assert_false(luastate_has_interpreter(lua));
	assert_false(luastate_in_interpreter(lua, 0x10000));
	luastate_destroy(lua);
	luastate_destroy(NULL);
}

/* One copy of several is unmapped; another takes its place. */
static void test_interpreters_are_dropped(void **state)
{
	static const uint8_t code[16];
	struct luastate *lua = luastate_create();
	int64_t saved[ATTACH_REG_COUNT];
	struct luastate_unwind_rule rule;
	struct luastate_interpreter interpreter;
	struct failure why;

	(void)state;
	make_rule(&rule, saved);
	for (unsigned i = 0; i < STATE_INTERPRETERS_MAX; i++) {
		rule.start = 0x10000 + 0x1000 * i;
		rule.end = rule.start + sizeof(code);
		assert_int_equal(0, luastate_add_interpreter(lua, &rule, code, &why));
	}
	luastate_drop_interpreter(lua, 1);
	luastate_drop_interpreter(lua, STATE_INTERPRETERS_MAX - 2);
	assert_int_equal(STATE_INTERPRETERS_MAX - 2, luastate_interpreter_count(lua));
	assert_true(luastate_in_interpreter(lua, 0x10000));
	assert_false(luastate_in_interpreter(lua, 0x11000));
	assert_true(luastate_in_interpreter(lua, 0x12000));
	assert_false(luastate_in_interpreter(lua, 0x17000));
	luastate_interpreter_get(lua, 1, &interpreter);
	assert_int_equal(0x12000, interpreter.start);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(i < 2 ? 0 : -1, luastate_add_interpreter(lua, &rule, code, &why));
	luastate_destroy(lua);
}

/* Its VMs go with it: those of another copy may lie where they were. */
static void test_vms_are_dropped(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;

	assert_int_equal(1, luastate_vm_count(sample->state));
	luastate_drop_interpreter(sample->state, 0);
	assert_int_equal(0, luastate_vm_count(sample->state));
	assert_null(luastate_vm_of(sample->state, &vm->reader, vm->main, &sample->why));
	assert_int_equal(0, fake_vm_add_interpreter(vm, sample->state));
	assert_non_null(luastate_vm_of(sample->state, &vm->reader, vm->main, &sample->why));
	assert_non_null(state_layout_at(sample->state, vm->code));
}

static void test_vmstate(void **state)
{
	/* Older builds do not tell Lua, fast functions and C functions apart. */
	static const int older[] = { 0, 3, 4, 5, 6, 7, 8 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_vm *known = luastate_vm_get(sample->state, 0);
	int vmstate = 99;

	for (int i = 0; i <= vm->layout->vmst_asm; i++)
		assert_int_equal(vm->layout->vmst_lfunc < 0 ? older[i] : i,
				 luastate_sysprof_state(known, ~i));
	assert_int_equal(9, luastate_sysprof_state(known, 1));
	assert_int_equal(9, luastate_sysprof_state(known, 65535));
	assert_int_equal(-1, luastate_sysprof_state(known, ~(vm->layout->vmst_asm + 1)));
	assert_int_equal(-1, luastate_sysprof_state(known, 0));
	assert_int_equal(-1, luastate_sysprof_state(known, INT32_MIN));
	fake_put_u32(vm, vm->G + (uint64_t)vm->layout->global_State_vmstate, 17);
	assert_int_equal(0, luastate_read_vmstate(sample->state, &vm->reader, vm->G, &vmstate,
						  &sample->why));
	assert_int_equal(17, vmstate);
	assert_int_equal(-1, luastate_read_vmstate(sample->state, &vm->reader, vm->G + 8, &vmstate,
						   &sample->why));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	fake_hide(vm, vm->G + (uint64_t)vm->layout->global_State_vmstate + 2, 1);
	assert_int_equal(-1, luastate_read_vmstate(sample->state, &vm->reader, vm->G, &vmstate,
						   &sample->why));
	assert_int_equal(FAILURE_FAULT, sample->why.kind);
	assert_int_equal(vm->G + (uint64_t)vm->layout->global_State_vmstate + 2,
			 sample->why.address);
	assert_int_equal(17, vmstate);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_any_coroutine_shows_its_vm),
		cmocka_unit_test(test_layouts_have_bounded_sizes),
		SAMPLE_TEST(test_addresses_that_are_no_coroutine),
		SAMPLE_TEST(test_each_invariant),
		SAMPLE_TEST(test_the_current_coroutine),
		SAMPLE_TEST(test_states_and_masks_that_are_valid),
		SAMPLE_TEST(test_memory_that_cannot_be_read),
		SAMPLE_TEST(test_more_vms_than_are_kept),
		SAMPLE_TEST(test_thorough_proves_vms_again),
		SAMPLE_TEST(test_stack),
		SAMPLE_TEST(test_stack_from_newest_frame),
		SAMPLE_TEST(test_stack_of_old_frames),
		SAMPLE_TEST(test_stack_without_vm),
		SAMPLE_TEST(test_stack_that_ends_early),
		SAMPLE_TEST(test_range),
		SAMPLE_TEST(test_range_with_holes),
		SAMPLE_TEST(test_range_with_two),
		SAMPLE_TEST(test_range_with_decoys),
		cmocka_unit_test(test_rule_of_the_interpreter),
		cmocka_unit_test(test_interpreters_are_few),
		cmocka_unit_test(test_interpreters_are_dropped),
		SAMPLE_TEST(test_vms_are_dropped),
		SAMPLE_TEST(test_vmstate),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
