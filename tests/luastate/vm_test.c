/* SPDX-License-Identifier: MIT */
/* What is taken for a VM, and what is not. */
#include "sample.h"

/* GG_State in the fake VM. */
static size_t gg_bytes(const struct luastate_layout *layout)
{
	return (size_t)(layout->lua_State_sizeof + layout->global_State_to_bcff +
			layout->global_State_bcff_size);
}

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
		assert_true(layout->dispatch_ff_count <= STATE_FFIDS);
		assert_int_equal(4 * layout->dispatch_ff_count, layout->global_State_bcff_size);
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
	memcpy(kept, sample->vm->bytes + (address - FAKE_BASE), len);
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
	break_u64(sample, L, layout->lua_State_glref, G + 8);
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
	break_u8(sample, G, layout->global_State_to_bcff, (uint8_t)(layout->dispatch_ff_first + 1));
	break_u8(sample, G, layout->global_State_to_bcff + layout->global_State_bcff_size - 4, 0);
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
	for (uint32_t mask = 15; mask; mask = mask == UINT32_MAX ? 0 : mask * 2 + 1) {
		fake_put_u32(sample->vm, sample->vm->G + (uint64_t)layout->global_State_str_mask,
			     mask);
		expect_found(sample, sample->vm->main, sample->vm->main);
	}
}

/*
 * The VM of a build that has one more member, or one less, at @offset of GG_State: all that follows
 * lies @shift bytes off, and what points to it follows.
 */
static void try_shift(struct sample *sample, const uint8_t *original, size_t len, size_t offset,
		      int shift)
{
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	size_t sizeof_L = (size_t)layout->lua_State_sizeof;
	uint8_t *to = vm->bytes + (vm->main - FAKE_BASE);
	uint64_t glref_at = vm->main + (uint64_t)layout->lua_State_glref;

	memset(to, 0, len);
	memcpy(to, original, offset);
	if (shift > 0)
		memcpy(to + offset + shift, original + offset, len - offset - (size_t)shift);
	else
		memcpy(to + offset, original + offset - shift, len - offset - (size_t)-shift);
	/* Here the coroutine's pointer to the global state is kept right. */
	if (offset > (size_t)layout->lua_State_glref && offset <= sizeof_L)
		fake_put_u64(vm, glref_at, vm->G + (uint64_t)(int64_t)shift);
	else if (offset <= (size_t)layout->lua_State_glref)
		fake_put_u64(vm, glref_at + (uint64_t)(int64_t)shift,
			     vm->G + (uint64_t)(int64_t)shift);
	for (int i = -16; i <= 16; i += 4)
		expect_refused(sample, vm->main + (uint64_t)(int64_t)i);
}

static void test_shifted_members(void **state)
{
	static const int shifts[] = { -8, -4, 4, 8 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	/* What lies behind is hostile enough if it is zero. */
	size_t len = gg_bytes(layout);
	uint8_t *original = malloc(len);
	uint64_t dispatch = vm->G + (uint64_t)layout->global_State_to_dispatch;

	assert_non_null(original);
	/* Hot counters before the dispatch table. */
	for (int i = 1; i <= 16; i++)
		fake_put_u64(vm, dispatch - 8 * (uint64_t)i, UINT64_C(0x006f006f006f006f));
	fake_put_u64(vm, vm->G + (uint64_t)layout->global_State_cur_L, 0);
	expect_found(sample, vm->main, vm->main);
	memcpy(original, vm->bytes + (vm->main - FAKE_BASE), len);
	for (size_t offset = 8;
	     offset < (size_t)(layout->lua_State_sizeof + layout->global_State_to_dispatch);
	     offset +=
	     offset < (size_t)(layout->lua_State_sizeof + layout->global_State_sizeof) ? 4 : 64)
		for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++)
			try_shift(sample, original, len, offset, shifts[i]);
	fake_put(vm, vm->main, original, len);
	expect_found(sample, vm->main, vm->main);
	free(original);
}

static void test_memory_that_cannot_be_read(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
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

/* A second VM of the same program at @address. */
static uint64_t copy_vm(struct fake_vm *vm, uint64_t address)
{
	const struct luastate_layout *layout = vm->layout;
	uint64_t G = address + (uint64_t)layout->lua_State_sizeof;

	fake_put(vm, address, vm->bytes + (vm->main - FAKE_BASE), gg_bytes(layout));
	fake_L_set(vm, address, layout->lua_State_glref, G);
	fake_put_u64(vm, G + (uint64_t)layout->global_State_mainthref, address);
	fake_put_u64(vm, G + (uint64_t)layout->global_State_cur_L, address);
	return address;
}

static void test_more_vms_than_are_kept(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t last = 0;

	for (int i = 0; i < STATE_VMS_MAX + 3; i++) {
		last = copy_vm(vm, fake_alloc(vm, gg_bytes(vm->layout)));
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
	uint64_t second = copy_vm(vm, fake_alloc(vm, gg_bytes(vm->layout)));

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

static const struct luastate_vm *find_on_stack(struct sample *sample, uint64_t sp, uint64_t limit)
{
	struct fake_vm *vm = sample->vm;
	const struct luastate_vm *found;

	luastate_destroy(sample->state);
	sample->state = fake_vm_open(vm, false);
	sample->why = (struct failure){ 0 };
	vm->bytes_read = 0;
	found = luastate_find_on_stack(sample->state, &vm->reader, sp, limit, &sample->why);
	assert_true(vm->bytes_read < 2 << 20);
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

static void test_range(void **state)
{
	enum { ZONE_BYTES = 256 * 1024 };
	static const size_t places[] = { 0,
					 8,
					 32 * 1024,
					 64 * 1024 - 96,
					 64 * 1024 - 8,
					 64 * 1024,
					 64 * 1024 + 8,
					 128 * 1024 - 16 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t zone = fake_alloc(vm, ZONE_BYTES), end = zone + ZONE_BYTES;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct luastate_vm *found;

		memset(vm->bytes + (zone - FAKE_BASE), 0, ZONE_BYTES);
		copy_vm(vm, zone + places[i]);
		found = find_in_range(sample, zone, end);
		assert_non_null(found);
		assert_int_equal(zone + places[i], found->main_thread);
	}
	memset(vm->bytes + (zone - FAKE_BASE), 0, ZONE_BYTES);
	copy_vm(vm, (end - gg_bytes(vm->layout)) & ~(uint64_t)7);
	assert_non_null(find_in_range(sample, zone, end));
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
		fake_put_u8(vm, L + (uint64_t)layout->GCobj_gct, (uint8_t)layout->gct_thread);
		fake_L_set(vm, L, layout->lua_State_glref, L + (uint64_t)layout->lua_State_sizeof);
	}
	assert_null(find_in_range(sample, zone, end));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	copy_vm(vm, zone + ZONE_BYTES / 2);
	assert_non_null(find_in_range(sample, zone, end));
	assert_null(find_in_range(sample, zone, zone));
	assert_null(find_in_range(sample, zone, zone + 8));
	assert_null(find_in_range(sample, FAKE_END, FAKE_END + ZONE_BYTES));
}

/* ---- Interpreters and states ------------------------------------------------------------- */

static void test_rule_of_the_interpreter(void **state)
{
	int64_t saved[ATTACH_REG_COUNT];
	struct luastate_unwind_rule rule = { .start = 0x1000,
					     .end = 0x1000 + LUASTATE_INTERPRETER_MIN_BYTES,
					     .cfa_register = ATTACH_REG_RSP,
					     .cfa_offset = 80,
					     .saved_offset = saved };

	(void)state;
	for (int i = 0; i < ATTACH_REG_COUNT; i++)
		saved[i] = INT64_MIN;
	assert_false(luastate_is_interpreter(&rule));
	saved[ATTACH_REG_RBP] = -16;
	saved[ATTACH_REG_RBX] = -24;
	saved[ATTACH_REG_R15] = -32;
	saved[ATTACH_REG_R14] = -40;
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
	struct failure why;

	(void)state;
	assert_non_null(lua);
	assert_false(luastate_has_interpreter(lua));
	for (unsigned i = 0; i < STATE_INTERPRETERS_MAX; i++)
		assert_int_equal(0, luastate_add_interpreter(lua, 0x10000 + 0x1000 * i,
							     0x10010 + 0x1000 * i, code, &why));
	assert_int_equal(-1, luastate_add_interpreter(lua, 0x90000, 0x90010, code, &why));
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

static void test_vmstate(void **state)
{
	static const int numbers[] = { 0, 3, 4, 5, 6, 7, 8 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	int vmstate = 99;

	for (int i = 0; i < 7; i++)
		assert_int_equal(numbers[i], luastate_sysprof_state(sample->state, ~i));
	assert_int_equal(9, luastate_sysprof_state(sample->state, 1));
	assert_int_equal(9, luastate_sysprof_state(sample->state, 65535));
	assert_int_equal(-1, luastate_sysprof_state(sample->state, ~7));
	assert_int_equal(-1, luastate_sysprof_state(sample->state, 0));
	assert_int_equal(-1, luastate_sysprof_state(sample->state, INT32_MIN));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_any_coroutine_shows_its_vm),
		cmocka_unit_test(test_layouts_have_bounded_sizes),
		SAMPLE_TEST(test_addresses_that_are_no_coroutine),
		SAMPLE_TEST(test_each_invariant),
		SAMPLE_TEST(test_the_current_coroutine),
		SAMPLE_TEST(test_states_and_masks_that_are_valid),
		SAMPLE_TEST(test_shifted_members),
		SAMPLE_TEST(test_memory_that_cannot_be_read),
		SAMPLE_TEST(test_more_vms_than_are_kept),
		SAMPLE_TEST(test_thorough_proves_vms_again),
		SAMPLE_TEST(test_stack),
		SAMPLE_TEST(test_stack_without_vm),
		SAMPLE_TEST(test_stack_that_ends_early),
		SAMPLE_TEST(test_range),
		SAMPLE_TEST(test_range_with_decoys),
		cmocka_unit_test(test_rule_of_the_interpreter),
		cmocka_unit_test(test_interpreters_are_few),
		SAMPLE_TEST(test_vmstate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
