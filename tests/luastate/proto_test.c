/* SPDX-License-Identifier: MIT */
/* Prototypes: what is kept of them, and when it is no longer true. */
#include "sample.h"
#include "luastate/function/callables.h"

static struct state_proto *get(struct sample *sample, uint64_t address)
{
	sample->why = (struct failure){ 0 };
	sample->vm->reads = 0;
	return sample_proto(sample, address);
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

static void put_ref(struct sample *sample, uint64_t proto, int32_t field, uint64_t value)
{
	fake_put_ref(sample->vm, proto + (uint64_t)field, value);
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
	/* Header, chunk name and debug part. */
	assert_int_equal(3, sample->vm->reads);
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
	put_ref(sample, address, layout->GCproto_chunkname, fake_string(sample->vm, "@other.lua"));
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

/* It has no line at all, and may be any function, not just a main chunk. */
static void test_stripped_prototype(void **state)
{
	struct sample *sample = *state;
	const struct luastate_layout *layout = sample->vm->layout;
	uint64_t address = fake_caller(sample->vm, "@file.lua", 0, "callee");

	assert_string_equal("main chunk", get(sample, address)->function.name);
	put_u32(sample, address, layout->GCproto_numline, 0);
	put_ref(sample, address, layout->GCproto_lineinfo, 0);
	put_ref(sample, address, layout->GCproto_uvinfo, 0);
	put_ref(sample, address, layout->GCproto_varinfo, 0);
	assert_null(get_next(sample, address)->function.name);
	assert_int_equal(STATE_DEFINITION_UNKNOWN, get(sample, address)->definition);
}

/* Read the prototype, change a byte of it, and read it again. */
static struct state_proto *get_changed(struct sample *sample, uint64_t proto, uint64_t at,
				       uint8_t *ret_kept)
{
	get_next(sample, proto)->function.caller_id = 17;
	*ret_kept = *fake_at(sample->vm, at, 1);
	fake_put_u8(sample->vm, at, *ret_kept ^ 1);
	return get_next(sample, proto);
}

/* A prototype that took another's place, whose header may be the same to the last bit. */
static void test_each_part_counts(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	uint64_t name = fake_get_ref(vm, address + (uint64_t)layout->GCproto_chunkname);
	uint64_t lines = fake_get_ref(vm, address + (uint64_t)layout->GCproto_lineinfo);
	const uint64_t parts[] = { address + (uint64_t)layout->GCproto_firstline,
				   address + (uint64_t)layout->GCproto_numline,
				   name + (uint64_t)layout->GCstr_hash, lines, lines + 2 };
	uint8_t kept;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct state_proto *proto = get_changed(sample, address, parts[i], &kept);

		assert_non_null(proto);
		assert_int_equal(0, proto->function.caller_id);
		fake_put_u8(vm, parts[i], kept);
	}
	/* The end of the name's text. */
	get_next(sample, address)->function.caller_id = 17;
	fake_put_u32(vm, name + (uint64_t)layout->GCstr_len, 8);
	assert_null(get_next(sample, address));
	fake_put_u8(vm, name + (uint64_t)layout->GCstr_sizeof + 8, 0);
	assert_string_equal("@file.lu", get_next(sample, address)->function.chunkname);
	assert_int_equal(0, get_next(sample, address)->function.caller_id);
}

/* The same function of another file: only the name's text is another. */
static void test_same_header_other_chunk_name(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@one.lua", 30, "callee");
	uint64_t name = fake_get_ref(vm, address + (uint64_t)vm->layout->GCproto_chunkname);
	uint64_t other = fake_string(vm, "@two.lua");
	struct state_proto *proto = get(sample, address);
	size_t len = (size_t)vm->layout->GCstr_sizeof + 9;

	strcpy(proto->name, "old");
	proto->name_rank = 3;
	proto->function.name = proto->name;
	fake_put(vm, name, fake_at(vm, other, len), len);
	assert_string_equal("@one.lua", get(sample, address)->function.chunkname);
	proto = get_next(sample, address);
	assert_string_equal("@two.lua", proto->function.chunkname);
	assert_null(proto->function.name);
	assert_int_equal(30, proto->function.firstline);
}

/* The same file, edited and loaded again: only the lines are others. */
static void test_same_header_other_lines(void **state)
{
	const uint32_t lines[] = { 0, 2, 3, 4 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@one.lua", 30, "callee");
	uint64_t lineinfo = fake_get_ref(vm, address + (uint64_t)vm->layout->GCproto_lineinfo);
	struct state_proto *proto = get(sample, address);

	proto->function.caller_id = 17;
	assert_int_equal(32, state_proto_line(proto, &vm->reader, fake_pc(vm, address, 2)));
	for (unsigned i = 1; i < 4; i++)
		fake_put_u8(vm, lineinfo + i - 1, (uint8_t)lines[i]);
	proto = get_next(sample, address);
	assert_int_equal(33, state_proto_line(proto, &vm->reader, fake_pc(vm, address, 2)));
	assert_int_equal(0, proto->function.caller_id);
}

/* Sizes and pointers that contradict each other. */
static void test_contradictions(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	const int32_t fields[] = { layout->GCproto_sizebc,   layout->GCproto_k,
				   layout->GCproto_uv,	     layout->GCproto_sizekgc,
				   layout->GCproto_sizekn,   layout->GCproto_sizeuv,
				   layout->GCproto_lineinfo, layout->GCproto_uvinfo,
				   layout->GCproto_varinfo };
	uint8_t kept;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		assert_null(get_changed(sample, address, address + (uint64_t)fields[i], &kept));
		assert_int_equal(FAILURE_INVALID, sample->why.kind);
		fake_put_u8(vm, address + (uint64_t)fields[i], kept);
		assert_non_null(get_next(sample, address));
	}
	put_u32(sample, address, layout->GCproto_sizept, 0);
	expect_invalid(sample, address);
	/* More than 255 lines have lines of two bytes. */
	put_u32(sample, address, layout->GCproto_sizept, 4096);
	put_u32(sample, address, layout->GCproto_numline, 256);
	expect_invalid(sample, address);
}

/* Bytecode that does not begin as a function's. */
static void test_first_instruction(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");

	for (int op = 0; op < 256; op++) {
		fake_put_u8(vm, fake_pc(vm, address, 0), (uint8_t)op);
		luastate_reset(sample->state);
		if (op >= vm->layout->BC_FUNCF && op < vm->layout->BC__MAX)
			assert_non_null(get_next(sample, address));
		else
			expect_invalid(sample, address);
	}
}

/* What the collector and the compiler change is no change. */
static void test_volatile_members(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	struct state_proto *proto = get(sample, address);

	proto->function.caller_id = 17;
	fake_put_ref(vm, address, 0x123456);			       /* nextgc */
	fake_put_u8(vm, address + (uint64_t)layout->GCobj_gct - 1, 3); /* marked */
	fake_put_ref(vm, address + (uint64_t)layout->GCproto_gclist, 0x654321);
	fake_put_u8(vm, address + (uint64_t)layout->GCproto_flags, 0xff);
	fake_put(vm, address + (uint64_t)layout->GCproto_trace, "\11\11", 2);
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
	fake_put_u8(vm, address + (uint64_t)vm->layout->GCobj_gct,
		    (uint8_t)state_gct(vm->layout->tag_proto));
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

/* A function of @size instructions, each on the line of its number. */
static uint64_t make_long(struct fake_vm *vm, uint32_t size)
{
	uint32_t *bc = calloc(2 * (size_t)size, sizeof(*bc)), *lines = bc + size;
	uint64_t proto;

	assert_non_null(bc);
	for (uint32_t i = 0; i < size; i++) {
		bc[i] = i ? fake_ad(FAKE_MOV, 1, i & 0xffff) : fake_funcf(vm, 1);
		lines[i] = i;
	}
	proto = fake_proto(vm, &(struct fake_proto){ .chunkname = "@long.lua",
						     .firstline = 30,
						     .numline = size,
						     .bc = bc,
						     .sizebc = size,
						     .lines = lines });
	free(bc);
	return proto;
}

static void test_sizes(void **state)
{
	static const uint32_t sizes[] = { 1, 5, STATE_BYTECODE_KEEP, STATE_BYTECODE_KEEP + 1,
					  60000 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint32_t ins = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t last = sizes[i] - 1;
		uint64_t address = make_long(vm, sizes[i]);
		struct state_proto *proto;

		vm->bytes_read = 0;
		proto = get_next(sample, address);
		assert_non_null(proto);
		assert_int_equal(sizes[i] <= STATE_BYTECODE_KEEP, proto->bc != NULL);
		assert_true(vm->bytes_read <= 8 * STATE_BYTECODE_KEEP);
		assert_int_equal(0, state_proto_instruction(proto, &vm->reader,
							    fake_pc(vm, address, last), &ins,
							    &sample->why));
		assert_int_equal(last ? fake_ad(FAKE_MOV, 1, last & 0xffff) : fake_funcf(vm, 1),
				 ins);
		assert_int_equal(-1, state_proto_instruction(proto, &vm->reader,
							     fake_pc(vm, address, last + 1), &ins,
							     &sample->why));
		assert_int_equal(FAILURE_INVALID, sample->why.kind);
		assert_int_equal(30 + last,
				 state_proto_line(proto, &vm->reader, fake_pc(vm, address, last)));
		assert_int_equal(30 + last / 2, state_proto_line(proto, &vm->reader,
								 fake_pc(vm, address, last / 2)));
	}
}

static void test_sizes_that_are_none(void **state)
{
	static const uint32_t invalid[] = { 0, STATE_BYTECODE_MAX + 1, UINT32_MAX };
	struct sample *sample = *state;
	uint64_t address = fake_caller(sample->vm, "@file.lua", 30, "callee");

	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		put_u32(sample, address, sample->vm->layout->GCproto_sizebc, invalid[i]);
		expect_invalid(sample, address);
	}
}

/* Bytecode that is copied in part, or not at all: what is there is read one by one. */
static void test_bytecode_that_cannot_be_read(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	struct state_proto *proto;
	uint32_t ins = 0;

	fake_hide(vm, fake_pc(vm, address, 3), 1);
	proto = get(sample, address);
	assert_non_null(proto);
	assert_null(proto->bc);
	assert_int_equal(0, state_proto_instruction(proto, &vm->reader, fake_pc(vm, address, 2),
						    &ins, &sample->why));
	assert_int_equal(fake_abc(FAKE_CALL, 2, 1, 1), ins);
	assert_int_equal(-1, state_proto_instruction(proto, &vm->reader, fake_pc(vm, address, 3),
						     &ins, &sample->why));
	assert_int_equal(FAILURE_FAULT, sample->why.kind);
	assert_int_equal(fake_pc(vm, address, 3), sample->why.address);
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
	uint64_t lines = fake_get_ref(vm, address + (uint64_t)layout->GCproto_lineinfo);
	struct state_proto *proto;

	/* A table that cannot be read to its end. */
	fake_hide(vm, lines + 2, 1);
	proto = get_next(sample, address);
	assert_null(proto->debug);
	assert_int_equal(30, state_proto_line(proto, &vm->reader, proto->bytecode));
	assert_int_equal(32, state_proto_line(proto, &vm->reader, proto->bytecode + 8));
	assert_int_equal(0, state_proto_line(proto, &vm->reader, proto->bytecode + 12));
	fake_show(vm, lines + 2, 1);
	/* First lines that are none. */
	put_u32(sample, address, layout->GCproto_firstline, UINT32_MAX);
	expect_invalid(sample, address);
	put_u32(sample, address, layout->GCproto_firstline, INT32_MAX - 3);
	expect_invalid(sample, address);
	put_u32(sample, address, layout->GCproto_firstline, INT32_MAX - 4);
	assert_non_null(get_next(sample, address));
	/* Tables elsewhere, and names without lines. */
	put_ref(sample, address, layout->GCproto_lineinfo, lines + 1);
	expect_invalid(sample, address);
	put_ref(sample, address, layout->GCproto_lineinfo, 0);
	expect_invalid(sample, address);
	put_ref(sample, address, layout->GCproto_uvinfo, 0);
	put_ref(sample, address, layout->GCproto_varinfo, 0);
	/* LuaJIT's own functions in Lua are like that. */
	put_u32(sample, address, layout->GCproto_firstline, UINT32_MAX);
	proto = get_next(sample, address);
	assert_non_null(proto);
	assert_int_equal(0, state_proto_line(proto, &vm->reader, proto->bytecode + 4));
	put_u32(sample, address, layout->GCproto_firstline, UINT32_MAX - 1);
	expect_invalid(sample, address);
	put_u32(sample, address, layout->GCproto_firstline, 30);
	proto = get_next(sample, address);
	assert_non_null(proto);
	assert_int_equal(0, state_proto_line(proto, &vm->reader, proto->bytecode + 4));
}

/* A function that is known already turns into what is none. */
static void test_lines_behind_the_last(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t address = fake_caller(vm, "@file.lua", 30, "callee");
	uint64_t lines = fake_get_ref(vm, address + (uint64_t)vm->layout->GCproto_lineinfo);

	for (unsigned i = 0; i < 3; i++) {
		assert_non_null(get_next(sample, address));
		fake_put_u8(vm, lines + i, 5);
		expect_invalid(sample, address);
		expect_invalid(sample, address);
		fake_put_u8(vm, lines + i, 4);
		assert_string_equal("@file.lua", get_next(sample, address)->function.chunkname);
	}
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
	put_ref(sample, address, layout->GCproto_chunkname, string);
	proto = get_next(sample, address);
	assert_int_equal(STATE_CHUNKNAME_MAX - 1, strlen(proto->function.chunkname));
	/* A length that is a lie is refused, and costs no more. */
	put_u32(sample, string, layout->GCstr_len, UINT32_MAX);
	vm->bytes_read = 0;
	expect_invalid(sample, address);
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
		put_ref(sample, address, vm->layout->GCproto_chunkname, names[i]);
		/* Nor is it taken as what it was when it was valid. */
		assert_null(get_next(sample, address));
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

/* Without room for copies a prototype is read in pieces; the next sample makes room. */
static void test_copies_are_bounded(void **state)
{
	struct sample *sample = *state;
	const struct attach_reader *reader = &sample->vm->reader;
	uint64_t address = fake_caller(sample->vm, "@file.lua", 30, "callee");
	struct state_proto *proto;
	uint32_t ins;

	sample->state->proto_bytes = STATE_PROTO_BYTES_MAX;
	proto = get(sample, address);
	assert_non_null(proto);
	assert_null(proto->bc);
	assert_null(proto->debug);
	assert_int_equal(
		0, state_proto_instruction(proto, reader, proto->bytecode + 4, &ins, &sample->why));
	assert_int_not_equal(0, state_proto_line(proto, reader, proto->bytecode + 4));
	luastate_begin_sample(sample->state, reader);
	assert_null(sample->state->protos);
	sample->state->proto_bytes = 0;
	assert_non_null(get(sample, address)->bc);
	assert_true(sample->state->proto_bytes >= 4 * 4);
	luastate_reset(sample->state);
	assert_int_equal(0, sample->state->proto_bytes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_contents),
		SAMPLE_TEST(test_one_comparison_a_sample),
		SAMPLE_TEST(test_another_prototype_at_the_address),
		SAMPLE_TEST(test_stripped_prototype),
		SAMPLE_TEST(test_each_part_counts),
		SAMPLE_TEST(test_same_header_other_chunk_name),
		SAMPLE_TEST(test_same_header_other_lines),
		SAMPLE_TEST(test_contradictions),
		SAMPLE_TEST(test_first_instruction),
		SAMPLE_TEST(test_volatile_members),
		SAMPLE_TEST(test_gone),
		SAMPLE_TEST(test_sizes),
		SAMPLE_TEST(test_sizes_that_are_none),
		SAMPLE_TEST(test_bytecode_that_cannot_be_read),
		SAMPLE_TEST(test_positions),
		SAMPLE_TEST(test_line_tables),
		SAMPLE_TEST(test_lines_behind_the_last),
		SAMPLE_TEST(test_chunk_names),
		SAMPLE_TEST(test_bad_chunk_names),
		SAMPLE_TEST(test_caches_are_emptied),
		SAMPLE_TEST(test_copies_are_bounded),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
