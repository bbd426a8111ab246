/* SPDX-License-Identifier: MIT */
/* Names of functions, from the bytecode that called them. */
#include "sample.h"
#include "luastate/function/call_names.h"

#include <stdio.h>

enum { RANK_NONE = 0, RANK_LOCAL = 1, RANK_FIELD = 2, RANK_GLOBAL = 3, CODE_MAX = 600 };

/* A caller in the making: instruction 0 is its header. */
struct caller {
	struct fake_proto proto;
	uint32_t bc[CODE_MAX];
	uint64_t kgc[4];
	char name[STATE_NAME_MAX];
};

static void begin(struct sample *sample, struct caller *caller)
{
	memset(caller, 0, sizeof(*caller));
	caller->bc[0] = fake_funcf(sample->vm, 20);
	caller->kgc[0] = fake_string(sample->vm, "zero");
	caller->kgc[1] = fake_string(sample->vm, "one");
	caller->kgc[2] = fake_string(sample->vm, "");
	caller->kgc[3] = fake_string(sample->vm, "line\nbreak");
	caller->proto = (struct fake_proto){ .chunkname = "@caller.lua",
					     .firstline = 1,
					     .numline = 1,
					     .bc = caller->bc,
					     .sizebc = 1,
					     .kgc = caller->kgc,
					     .sizekgc = 4 };
}

static void emit(struct caller *caller, uint32_t ins)
{
	assert_true(caller->proto.sizebc < CODE_MAX);
	caller->bc[caller->proto.sizebc++] = ins;
}

/* Name what an instruction of a known caller calls. */
static int name_at(struct sample *sample, struct caller *caller, const struct state_proto *proto,
		   unsigned index)
{
	const struct fake_vm *vm = sample->vm;
	size_t left = STATE_PACKED_NAMES_MAX;

	return state_name_call(vm->layout, proto, &vm->reader, fake_pc(vm, proto->address, index),
			       &left, caller->name, sizeof(caller->name));
}

/* Name what the last instruction calls. */
static int name_last(struct sample *sample, struct caller *caller)
{
	uint64_t address = fake_proto(sample->vm, &caller->proto);
	const struct state_proto *proto = sample_proto(sample, address);

	assert_non_null(proto);
	return name_at(sample, caller, proto, caller->proto.sizebc - 1);
}

static void expect_name(struct sample *sample, struct caller *caller, int rank, const char *name)
{
	assert_int_equal(rank, name_last(sample, caller));
	assert_string_equal(name, caller->name);
}

static void expect_none(struct sample *sample, struct caller *caller)
{
	assert_int_equal(RANK_NONE, name_last(sample, caller));
}

static uint32_t call(unsigned a)
{
	return fake_abc(FAKE_CALL, a, 1, 1);
}

/* ---- Sources ---------------------------------------------------------------------------- */

static void test_global(void **state)
{
	struct caller caller;

	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	emit(&caller, call(2));
	expect_name(*state, &caller, RANK_GLOBAL, "one");
}

static void test_field_and_method(void **state)
{
	struct caller caller;

	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	emit(&caller, fake_abc(FAKE_TGETS, 2, 2, 0));
	emit(&caller, call(2));
	expect_name(*state, &caller, RANK_FIELD, "zero");
	/* object:zero() moves the object behind the frame before the method is taken. */
	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	emit(&caller, fake_ad(FAKE_MOV, 4, 2));
	emit(&caller, fake_abc(FAKE_TGETS, 2, 2, 0));
	emit(&caller, call(2));
	expect_name(*state, &caller, RANK_FIELD, "zero");
}

static void test_upvalue(void **state)
{
	struct caller caller;

	begin(*state, &caller);
	caller.proto.uvinfo = "first\0second\0";
	caller.proto.uvinfo_len = 13;
	caller.proto.sizeuv = 2;
	emit(&caller, fake_ad(FAKE_UGET, 2, 1));
	emit(&caller, call(2));
	expect_name(*state, &caller, RANK_LOCAL, "second");
	caller.bc[1] = fake_ad(FAKE_UGET, 2, 0);
	expect_name(*state, &caller, RANK_LOCAL, "first");
	caller.bc[1] = fake_ad(FAKE_UGET, 2, 2);
	expect_none(*state, &caller);
	caller.proto.sizeuv = 3; /* a lie: the table has two */
	expect_none(*state, &caller);
	caller.proto.uvinfo = NULL;
	expect_none(*state, &caller);
}

/* "a" in slot 0 from instruction 1 on for 9, "(for index)" in slot 1 from 2 on, "b" in slot 2 from
 * 3 on for 2. */
static const char varinfo[] = "a\0\1\11"
			      "\1\1\7"
			      "b\0\1\2";

static void test_local(void **state)
{
	struct caller caller;

	begin(*state, &caller);
	caller.proto.varinfo = varinfo;
	caller.proto.varinfo_len = sizeof(varinfo);
	emit(&caller, fake_ad(FAKE_FNEW, 0, 0));
	emit(&caller, fake_ad(FAKE_MOV, 5, 0));
	emit(&caller, call(5));
	expect_name(*state, &caller, RANK_LOCAL, "a");
	/* Without the move: a local that is called where it lies. */
	caller.bc[3] = call(0);
	expect_name(*state, &caller, RANK_LOCAL, "a");
	/* Slots with internal variables have no name. */
	caller.bc[3] = call(1);
	expect_none(*state, &caller);
	caller.bc[3] = call(2);
	expect_name(*state, &caller, RANK_LOCAL, "b");
	emit(&caller, fake_ad(FAKE_ADDVV, 9, 0));
	emit(&caller, call(2));
	/* Its life is over. */
	expect_none(*state, &caller);
	caller.bc[5] = call(0);
	expect_name(*state, &caller, RANK_LOCAL, "a");
}

static void test_moves(void **state)
{
	struct caller caller;

	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 10, 1));
	for (unsigned i = 0; i < 8; i++)
		emit(&caller, fake_ad(FAKE_MOV, 11 + i, 10 + i));
	emit(&caller, call(18));
	expect_name(*state, &caller, RANK_GLOBAL, "one");
	caller.bc[caller.proto.sizebc - 1] = fake_ad(FAKE_MOV, 19, 18);
	emit(&caller, call(19));
	expect_none(*state, &caller);
	/* In a circle. */
	begin(*state, &caller);
	for (unsigned i = 0; i < 100; i++)
		emit(&caller, fake_ad(FAKE_MOV, 2 + i % 2, 3 - i % 2));
	emit(&caller, call(2));
	expect_none(*state, &caller);
	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_MOV, 2, 2));
	emit(&caller, call(2));
	expect_none(*state, &caller);
}

/* ---- What lies between ------------------------------------------------------------------ */

static void test_kinds_of_calls(void **state)
{
	static const struct {
		unsigned op;
		int rank;
	} ops[] = { { FAKE_CALLM, RANK_GLOBAL },  { FAKE_CALL, RANK_GLOBAL },
		    { FAKE_CALLMT, RANK_GLOBAL }, { FAKE_CALLT, RANK_GLOBAL },
		    { FAKE_ITERC, RANK_NONE },	  { FAKE_GGET, RANK_NONE },
		    { FAKE_ADDVV, RANK_NONE },	  { 255, RANK_NONE } };
	struct caller caller;

	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	emit(&caller, 0);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		caller.bc[2] = fake_ad(ops[i].op, 2, 1);
		assert_int_equal(ops[i].rank, name_last(*state, &caller));
	}
}

static void test_arguments_between(void **state)
{
	struct caller caller;

	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	emit(&caller, fake_ad(FAKE_GGET, 4, 0));
	emit(&caller, fake_ad(FAKE_GGET, 5, 0));
	emit(&caller, call(5));
	emit(&caller, fake_ad(FAKE_KNIL, 3, 9));
	emit(&caller, fake_ad(FAKE_ADDVV, 3, 0));
	emit(&caller, call(2));
	expect_name(*state, &caller, RANK_GLOBAL, "one");
}

static void test_slot_is_overwritten(void **state)
{
	const uint32_t overwriting[] = { call(2),
					 call(1),
					 fake_ad(FAKE_KNIL, 1, 2),
					 fake_ad(FAKE_KNIL, 2, 2),
					 fake_ad(FAKE_ADDVV, 2, 0),
					 fake_ad(FAKE_FNEW, 2, 0),
					 fake_ad(FAKE_ITERC, 2, 0),
					 fake_ad(77, 1, 0) /* FORI */ };
	const uint32_t harmless[] = { call(3),
				      fake_ad(FAKE_KNIL, 0, 1),
				      fake_ad(FAKE_KNIL, 3, 200),
				      fake_ad(FAKE_ADDVV, 1, 2),
				      fake_ad(46, 2, 0) /* USETV */,
				      fake_ad(88, 2, 0) /* JMP */ };
	struct caller caller;

	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	emit(&caller, 0);
	emit(&caller, call(2));
	for (size_t i = 0; i < sizeof(overwriting) / sizeof(overwriting[0]); i++) {
		caller.bc[2] = overwriting[i];
		expect_none(*state, &caller);
	}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		caller.bc[2] = harmless[i];
		expect_name(*state, &caller, RANK_GLOBAL, "one");
	}
}

/* Bit operators write a slot; what is not known may write any. */
static void test_newer_instructions(void **state)
{
	struct caller caller;

	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	emit(&caller, fake_abc(89, 2, 3, 4));
	emit(&caller, call(2));
	expect_none(*state, &caller);
	caller.bc[2] = fake_abc(95, 3, 3, 4);
	expect_name(*state, &caller, RANK_GLOBAL, "one");
	for (unsigned a = 0; a < 5; a++) {
		caller.bc[2] = fake_ad(STATE_OPCODE_UNKNOWN, a, 0);
		expect_none(*state, &caller);
	}
}

static void test_far_away(void **state)
{
	struct caller caller;

	begin(*state, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	while (caller.proto.sizebc < 400)
		emit(&caller, fake_ad(FAKE_ADDVV, 3, 0));
	emit(&caller, call(2));
	expect_name(*state, &caller, RANK_GLOBAL, "one");
	caller.bc[caller.proto.sizebc - 1] = fake_ad(FAKE_ADDVV, 3, 0);
	while (caller.proto.sizebc < 500)
		emit(&caller, fake_ad(FAKE_ADDVV, 3, 0));
	emit(&caller, call(2));
	expect_none(*state, &caller);
	/* A parameter: no instruction wrote it. */
	begin(*state, &caller);
	emit(&caller, call(2));
	expect_none(*state, &caller);
}

/* ---- Names that are none ---------------------------------------------------------------- */

static void test_constants(void **state)
{
	struct sample *sample = *state;
	struct caller caller;
	char text[STATE_NAME_MAX + 50];

	begin(sample, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 2));
	emit(&caller, call(2));
	expect_none(sample, &caller); /* empty */
	caller.bc[1] = fake_ad(FAKE_GGET, 2, 3);
	expect_none(sample, &caller); /* with a line break */
	caller.bc[1] = fake_ad(FAKE_GGET, 2, 4);
	expect_none(sample, &caller); /* behind the last */
	caller.bc[1] = fake_ad(FAKE_GGET, 2, 65535);
	caller.proto.sizekgc = 4;
	expect_none(sample, &caller);
	caller.bc[1] = fake_ad(FAKE_GGET, 2, 0);
	caller.kgc[0] = sample->vm->main;
	expect_none(sample, &caller); /* no string */
	caller.kgc[0] = UINT64_MAX;
	expect_none(sample, &caller);
	caller.kgc[0] = FAKE_END;
	expect_none(sample, &caller);
	memset(text, 'n', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	caller.kgc[0] = fake_string(sample->vm, text);
	text[STATE_NAME_MAX - 1] = '\0';
	expect_name(sample, &caller, RANK_GLOBAL, text);
}

static void test_constants_that_cannot_be_read(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct state_proto *proto;
	struct caller caller;
	uint64_t address, k;

	begin(sample, &caller);
	emit(&caller, fake_ad(FAKE_GGET, 2, 1));
	emit(&caller, call(2));
	address = fake_proto(vm, &caller.proto);
	proto = sample_proto(sample, address);
	assert_non_null(proto);
	k = fake_get_ref(vm, address + (uint64_t)vm->layout->GCproto_k);
	fake_hide(vm, k - 2 * (uint64_t)vm->layout->ref_size, 1);
	assert_int_equal(RANK_NONE, name_at(sample, &caller, proto, 2));
	fake_show(vm, k - 2 * (uint64_t)vm->layout->ref_size, 1);
	assert_int_equal(RANK_GLOBAL, name_at(sample, &caller, proto, 2));
}

/* ---- Hostile tables --------------------------------------------------------------------- */

static void expect_bounded(struct sample *sample, const char *bytes, size_t len)
{
	struct fake_vm *vm = sample->vm;
	struct caller caller;

	begin(sample, &caller);
	caller.proto.varinfo = bytes;
	caller.proto.varinfo_len = len;
	caller.proto.uvinfo = bytes;
	caller.proto.uvinfo_len = len;
	caller.proto.sizeuv = 255;
	emit(&caller, fake_ad(FAKE_UGET, 10, 254));
	/* Each move has the table of variables searched anew. */
	for (unsigned slot = 10; slot > 2; slot--)
		emit(&caller, fake_ad(FAKE_MOV, slot - 1, slot));
	emit(&caller, call(2));
	vm->bytes_read = 0;
	expect_none(sample, &caller);
	/* The bound of a name, the copies of a prototype, and a little. */
	assert_true(vm->bytes_read < STATE_PACKED_NAMES_MAX + STATE_DEBUG_KEEP + 4096);
}

static void test_tables_without_end(void **state)
{
	enum { LEN = 200000 };
	char *bytes = malloc(LEN);

	assert_non_null(bytes);
	memset(bytes, 'v', LEN); /* one name */
	expect_bounded(*state, bytes, LEN);
	expect_bounded(*state, bytes, 100); /* up to the end of memory */
	memset(bytes, 1, LEN);		    /* internal variables that live from 1 to 2, … */
	expect_bounded(*state, bytes, LEN);
	memset(bytes, 0xff, LEN); /* numbers without end */
	expect_bounded(*state, bytes, LEN);
	for (size_t i = 0; i < LEN; i++) /* variables that live nowhere */
		bytes[i] = i % 4 ? '\0' : 'v';
	expect_bounded(*state, bytes, LEN);
	memset(bytes, 0, LEN);
	expect_bounded(*state, bytes, LEN);
	memcpy(bytes, "\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 13);
	expect_bounded(*state, bytes, LEN);
	free(bytes);
}

static void test_tables_anywhere(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const uint64_t locations[] = { 1,	   4096,	FAKE_END - 1, (uint64_t)1 << 47,
				       UINT64_MAX, vm->code + 1 };
	struct caller caller;

	begin(sample, &caller);
	caller.proto.sizeuv = 255;
	emit(&caller, fake_ad(FAKE_UGET, 2, 200));
	emit(&caller, call(2));
	caller.proto.uvinfo = "a\0b\0";
	caller.proto.uvinfo_len = 4;
	for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		uint64_t variables = fake_proto(vm, &caller.proto);
		uint64_t upvalues = fake_proto(vm, &caller.proto);

		fake_put_ref(vm, variables + (uint64_t)vm->layout->GCproto_varinfo, locations[i]);
		fake_put_ref(vm, upvalues + (uint64_t)vm->layout->GCproto_uvinfo, locations[i]);
		/* What lies outside its prototype is no table of it. */
		assert_null(sample_proto(sample, variables));
		assert_null(sample_proto(sample, upvalues));
	}
}

static void test_last_names(void **state)
{
	(void)state;
	assert_string_equal("f", state_last_name("f"));
	assert_string_equal("f", state_last_name("M.a.f"));
	assert_string_equal("method", state_last_name("Class:method"));
	assert_string_equal("", state_last_name(""));
	assert_string_equal(".", state_last_name("."));
}

/* What tells names of variables is long and read byte by byte: a known caller needs none of it from
 * the target. */
static void test_variables_of_a_known_caller(void **state)
{
	static char many[16 * 60 + sizeof(varinfo)];
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct caller caller;
	struct state_proto *proto;
	uint64_t address, table;
	size_t len = 0;

	begin(sample, &caller);
	/* In slots 0 to 59, from instruction 1 on for 100. */
	for (int i = 0; i < 60; i++) {
		len += (size_t)snprintf(many + len, 16, "variable%02d", i) + 1;
		many[len++] = i ? 0 : 1;
		many[len++] = 100;
	}
	many[len++] = 0;
	caller.proto.varinfo = many;
	caller.proto.varinfo_len = len;
	emit(&caller, fake_ad(FAKE_FNEW, 59, 0));
	emit(&caller, call(59));
	address = fake_proto(vm, &caller.proto);
	table = fake_get_ref(vm, fake_member(address, vm->layout->GCproto_varinfo));
	proto = sample_proto(sample, address);
	assert_non_null(proto);
	fake_hide(vm, table, len);
	assert_int_equal(RANK_LOCAL, name_at(sample, &caller, proto, 2));
	assert_string_equal("variable59", caller.name);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_global),
		SAMPLE_TEST(test_field_and_method),
		SAMPLE_TEST(test_upvalue),
		SAMPLE_TEST(test_local),
		SAMPLE_TEST(test_moves),
		SAMPLE_TEST(test_kinds_of_calls),
		SAMPLE_TEST(test_arguments_between),
		SAMPLE_TEST(test_slot_is_overwritten),
		SAMPLE_TEST(test_newer_instructions),
		SAMPLE_TEST(test_far_away),
		SAMPLE_TEST(test_constants),
		SAMPLE_TEST(test_constants_that_cannot_be_read),
		SAMPLE_TEST(test_tables_without_end),
		SAMPLE_TEST(test_tables_anywhere),
		SAMPLE_TEST(test_last_names),
		SAMPLE_TEST(test_variables_of_a_known_caller),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
