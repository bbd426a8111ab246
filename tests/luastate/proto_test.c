/* SPDX-License-Identifier: MIT */
/* Prototypes: what is kept of them, and when it is no longer true. */
#include "sample.h"

static struct state_proto *get(struct sample *sample, uint64_t address)
{
	sample->why = (struct failure){ 0 };
	sample->vm->reads = 0;
	return state_get_proto(sample->state, sample->vm->layout, &sample->vm->reader, address,
			       &sample->why);
}

static struct state_proto *get_next(struct sample *sample, uint64_t address)
{
	luastate_begin_sample(sample->state, &sample->vm->reader);
	return get(sample, address);
}

static void expect_invalid(struct sample *sample, uint64_t address)
{
	assert_null(get_next(sample, address));
	assert_int_equal(FAILURE_INVALID, sample->why.kind);
	assert_int_equal(address, sample->why.address);
}

static void put_u32(struct sample *sample, uint64_t proto, int32_t field, uint32_t value)
{
	fake_put_u32(sample->vm, proto + (uint64_t)field, value);
}

static void put_u64(struct sample *sample, uint64_t proto, int32_t field, uint64_t value)
{
	fake_put_u64(sample->vm, proto + (uint64_t)field, value);
}

static void test_contents(void **state)
{
	struct sample *sample = *state;
	uint64_t address = fake_caller(sample->vm, "@file.lua", 30, "callee");
	struct state_proto *proto = get(sample, address);

	assert_non_null(proto);
	assert_int_equal(4, proto->sizebc);
	assert_int_equal(fake_pc(sample->vm, address, 0), proto->bytecode);
	assert_string_equal("@file.lua", proto->function.chunkname);
	assert_int_equal(30, proto->function.firstline);
	assert_int_equal(LUASTATE_LUA, proto->function.kind);
	assert_int_equal(address, proto->function.address);
	assert_null(proto->function.name);
	assert_int_equal(0, proto->function.caller_serial);
	assert_int_not_equal(0, proto->function.name_serial);
}

static void test_one_comparison_a_sample(void **state)
{
	struct sample *sample = *state;
	uint64_t address = fake_caller(sample->vm, "@file.lua", 30, "callee");
	struct state_proto *proto = get(sample, address);

	assert_true(sample->vm->reads > 1);
	assert_ptr_equal(proto, get(sample, address));
	assert_int_equal(0, sample->vm->reads);
	assert_ptr_equal(proto, get_next(sample, address));
	assert_int_equal(1, sample->vm->reads);
	assert_ptr_equal(proto, get(sample, address));
	assert_int_equal(0, sample->vm->reads);
}

static void test_another_prototype_at_the_address(void **state)
{
	const struct luastate_layout *layout;
	struct sample *sample = *state;
	uint64_t address = fake_caller(sample->vm, "@file.lua", 30, "callee");
	struct state_proto *proto = get(sample, address);
	uint32_t serial = proto->function.name_serial;

	layout = sample->vm->layout;
	strcpy(proto->name, "old");
	proto->name_rank = 3;
	proto->function.name = proto->name;
	proto->function.caller_id = 17;
	proto->function.caller_serial = serial;
	put_u32(sample, address, layout->GCproto_firstline, 40);
	put_u64(sample, address, layout->GCproto_chunkname, fake_string(sample->vm, "@other.lua"));
	/* Within one sample nothing changes. */
	assert_ptr_equal(proto, get(sample, address));
	assert_int_equal(30, proto->function.firstline);
	proto = get_next(sample, address);
	assert_int_equal(40, proto->function.firstline);
	assert_string_equal("@other.lua", proto->function.chunkname);
	assert_null(proto->function.name);
	assert_int_equal(0, proto->function.caller_id);
	assert_int_equal(0, proto->function.caller_serial);
	assert_int_equal(0, proto->name_rank);
	/* A main chunk took its place, and left. */
	put_u32(sample, address, layout->GCproto_firstline, 0);
	assert_string_equal("main chunk", get_next(sample, address)->function.name);
	put_u32(sample, address, layout->GCproto_firstline, 1);
	assert_null(get_next(sample, address)->function.name);
}

static void test_each_member_counts(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	const int32_t fields[] = { layout->GCproto_framesize, layout->GCproto_k,
				   layout->GCproto_sizekgc,   layout->GCproto_sizeuv,
				   layout->GCproto_numline,   layout->GCproto_uvinfo,
				   layout->GCproto_varinfo };

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct state_proto *proto = get_next(sample, address);

		proto->function.caller_id = 17;
		fake_put_u8(vm, address + (uint64_t)fields[i], 0x11);
		assert_int_equal(0, get_next(sample, address)->function.caller_id);
	}
}

/* What the collector and the compiler change is no change. */
static void test_volatile_members(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	struct state_proto *proto = get(sample, address);

	proto->function.caller_id = 17;
	fake_put_u64(vm, address, 0x123456);	  /* nextgc */
	fake_put_u8(vm, address + 8, 3);	  /* marked */
	fake_put_u64(vm, address + 24, 0x654321); /* gclist */
	fake_put_u8(vm, address + 61, 0xff);	  /* flags */
	fake_put_u8(vm, address + 62, 9);	  /* trace */
	fake_put_u8(vm, address + 63, 9);
	assert_ptr_equal(proto, get_next(sample, address));
	assert_int_equal(17, proto->function.caller_id);
}

static void test_gone(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");

	assert_non_null(get(sample, address));
	fake_put_u8(vm, address + (uint64_t)vm->layout->GCobj_gct, 4);
	expect_invalid(sample, address);
	fake_put_u8(vm, address + (uint64_t)vm->layout->GCobj_gct, (uint8_t)vm->layout->gct_proto);
	assert_non_null(get_next(sample, address));
	fake_hide(vm, address + 50, 1);
	assert_null(get_next(sample, address));
	assert_int_equal(FAILURE_FAULT, sample->why.kind);
	assert_int_equal(address + 50, sample->why.address);
	expect_invalid(sample, address + 4);
	expect_invalid(sample, 0);
	expect_invalid(sample, UINT64_MAX);
	expect_invalid(sample, UINT64_MAX - 103);
}

static void test_sizes(void **state)
{
	static const uint32_t invalid[] = { 0, STATE_BYTECODE_MAX + 1, UINT32_MAX };
	static const uint32_t large[] = { 5, STATE_BYTECODE_KEEP, STATE_BYTECODE_KEEP + 1,
					  STATE_BYTECODE_MAX };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	struct state_proto *proto;
	uint32_t ins = 0;

	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		put_u32(sample, address, vm->layout->GCproto_sizebc, invalid[i]);
		expect_invalid(sample, address);
	}
	/* Longer than its memory: what is there is read one by one. */
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		put_u32(sample, address, vm->layout->GCproto_sizebc, large[i]);
		vm->bytes_read = 0;
		proto = get_next(sample, address);
		assert_non_null(proto);
		assert_null(proto->bc);
		assert_true(vm->bytes_read <= 8 * STATE_BYTECODE_KEEP);
		assert_int_equal(0, state_proto_instruction(proto, &vm->reader,
							    fake_pc(vm, address, 3), &ins,
							    &sample->why));
		assert_int_equal(fake_ad(FAKE_RET0, 0, 1), ins);
		assert_int_equal(-1, state_proto_instruction(proto, &vm->reader,
							     fake_pc(vm, address, 4), &ins,
							     &sample->why));
		assert_int_equal(FAILURE_FAULT, sample->why.kind);
		assert_int_equal(fake_pc(vm, address, 4), sample->why.address);
		assert_int_equal(33, state_proto_line(proto, &vm->reader, fake_pc(vm, address, 3)));
		assert_int_equal(0, state_proto_line(proto, &vm->reader, fake_pc(vm, address, 4)));
	}
}

static void test_positions(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	struct state_proto *proto = get(sample, address);
	uint64_t bytecode = proto->bytecode;
	uint32_t ins;

	assert_true(state_proto_holds(proto, bytecode));
	assert_true(state_proto_holds(proto, bytecode + 16));
	assert_false(state_proto_holds(proto, bytecode + 20));
	assert_false(state_proto_holds(proto, bytecode + 2));
	assert_false(state_proto_holds(proto, bytecode - 4));
	assert_false(state_proto_holds(proto, 0));
	assert_false(state_proto_holds(proto, UINT64_MAX - 3));
	assert_int_equal(
		-1, state_proto_instruction(proto, &vm->reader, bytecode + 16, &ins, &sample->why));
	assert_int_equal(FAILURE_INVALID, sample->why.kind);
	assert_int_equal(
		-1, state_proto_instruction(proto, &vm->reader, bytecode - 4, &ins, &sample->why));
	assert_int_equal(30, state_proto_line(proto, &vm->reader, bytecode));
	assert_int_equal(33, state_proto_line(proto, &vm->reader, bytecode + 12));
	assert_int_equal(34, state_proto_line(proto, &vm->reader, bytecode + 16));
	assert_int_equal(0, state_proto_line(proto, &vm->reader, bytecode + 20));
	assert_int_equal(0, state_proto_line(proto, &vm->reader, bytecode - 4));
}

static void test_line_tables(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	struct state_proto *proto;

	/* A table that is not there. */
	put_u64(sample, address, layout->GCproto_lineinfo, FAKE_END - 2);
	proto = get_next(sample, address);
	assert_null(proto->lines);
	assert_int_equal(30, state_proto_line(proto, &vm->reader, proto->bytecode));
	assert_int_equal(0, state_proto_line(proto, &vm->reader, proto->bytecode + 12));
	put_u64(sample, address, layout->GCproto_lineinfo, 1);
	expect_invalid(sample, address);
	put_u64(sample, address, layout->GCproto_lineinfo, UINT64_MAX);
	expect_invalid(sample, address);
	/* A first line that is none. */
	put_u64(sample, address, layout->GCproto_lineinfo, fake_alloc(vm, 16));
	put_u32(sample, address, layout->GCproto_firstline, UINT32_MAX);
	proto = get_next(sample, address);
	assert_int_equal(0, state_proto_line(proto, &vm->reader, proto->bytecode + 4));
}

static void test_chunk_names(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t address = fake_caller(vm, "", 30, "callee"), string;
	char text[STATE_CHUNKNAME_MAX + 500];
	struct state_proto *proto;

	assert_string_equal("", get(sample, address)->function.chunkname);
	/* Kept up to a length; a chunk name can be a whole source. */
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	string = fake_string(vm, text);
	put_u64(sample, address, layout->GCproto_chunkname, string);
	proto = get_next(sample, address);
	assert_int_equal(STATE_CHUNKNAME_MAX - 1, strlen(proto->function.chunkname));
	/* A length that is a lie costs no more. */
	put_u32(sample, string, layout->GCstr_len, UINT32_MAX);
	put_u32(sample, address, layout->GCproto_firstline, 31);
	vm->bytes_read = 0;
	proto = get_next(sample, address);
	assert_int_equal(STATE_CHUNKNAME_MAX - 1, strlen(proto->function.chunkname));
	assert_true(vm->bytes_read < 4096);
}

static void test_bad_chunk_names(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	uint64_t cut = fake_string(vm, "@short.lua");
	const uint64_t names[] = { 0, vm->main, address, FAKE_END, FAKE_END - 4, cut + 4, cut };

	put_u32(sample, cut, vm->layout->GCstr_len, 64);
	assert_non_null(get(sample, address));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		put_u64(sample, address, vm->layout->GCproto_chunkname, names[i]);
		expect_invalid(sample, address);
		/* Nor is it kept from the time when it was valid. */
		assert_null(sample->state->protos);
	}
}

static void test_caches_are_emptied(void **state)
{
	struct sample *sample = *state;
	uint64_t proto = fake_caller(sample->vm, "@file.lua", 30, "callee");

	assert_non_null(get(sample, proto));
	for (uint64_t i = 0; i <= STATE_FUNCTIONS_MAX; i++)
		assert_non_null(state_get_callable(sample->state, LUASTATE_C, 0x10000 + i, 1));
	assert_int_equal(STATE_FUNCTIONS_MAX + 1, HASH_COUNT(sample->state->callables));
	luastate_begin_sample(sample->state, &sample->vm->reader);
	assert_null(sample->state->callables);
	assert_non_null(sample->state->protos);
	luastate_reset(sample->state);
	assert_null(sample->state->protos);
	assert_int_equal(0, luastate_vm_count(sample->state));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_contents),
		SAMPLE_TEST(test_one_comparison_a_sample),
		SAMPLE_TEST(test_another_prototype_at_the_address),
		SAMPLE_TEST(test_each_member_counts),
		SAMPLE_TEST(test_volatile_members),
		SAMPLE_TEST(test_gone),
		SAMPLE_TEST(test_sizes),
		SAMPLE_TEST(test_positions),
		SAMPLE_TEST(test_line_tables),
		SAMPLE_TEST(test_chunk_names),
		SAMPLE_TEST(test_bad_chunk_names),
		SAMPLE_TEST(test_caches_are_emptied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
