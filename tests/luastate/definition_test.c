/* SPDX-License-Identifier: MIT */
/* Names of functions, from the bytecode that makes them. */
#include "sample.h"

#include <stdio.h>

#include "luastate/function/bytecode.h"
#include "luastate/definition/definition.h"

enum { CODE_MAX = 400, FOUND_MAX = 300 };

/* Constants of all parents. */
enum { CHILD, METHOD, NAME_F, NAME_M, NAME_A, NAME_SETMETATABLE, NAME_INDEX, NAME_ODD, CONSTANTS };

/* A parent in the making: instruction 0 is its header. */
struct parent {
	struct fake_proto proto;
	uint32_t bc[CODE_MAX];
	uint64_t kgc[CONSTANTS];
	char variables[512];
};

/* What a visit has told. */
struct found {
	struct definition definitions[FOUND_MAX];
	char names[FOUND_MAX][STATE_NAME_MAX];
	size_t count;
};

static uint64_t make_method(struct fake_vm *vm)
{
	const uint32_t bc[] = { fake_funcf(vm, 3), fake_ad(BC_RET0, 0, 1) };
	uint64_t method = fake_proto(vm, &(struct fake_proto){ .chunkname = "@parent.lua",
							       .firstline = 3,
							       .numline = 1,
							       .bc = bc,
							       .sizebc = 2,
							       .varinfo = "self\0\0\2",
							       .varinfo_len = 8 });

	fake_put_u8(vm, fake_member(method, vm->layout->GCproto_numparams), 1);
	return method;
}

static void begin(struct sample *sample, struct parent *parent)
{
	static const char *const names[] = {
		"f", "M", "a", "setmetatable", "__index", "two words"
	};
	struct fake_vm *vm = sample->vm;

	memset(parent, 0, sizeof(*parent));
	parent->bc[0] = fake_funcf(vm, 20);
	parent->kgc[CHILD] = fake_caller(vm, "@parent.lua", 2, "x");
	parent->kgc[METHOD] = make_method(vm);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		parent->kgc[NAME_F + i] = fake_string(vm, names[i]);
	parent->proto = (struct fake_proto){ .chunkname = "@parent.lua",
					     .firstline = 1,
					     .numline = 20,
					     .bc = parent->bc,
					     .sizebc = 1,
					     .kgc = parent->kgc,
					     .sizekgc = CONSTANTS };
}

/* @return its index. */
static uint32_t emit(struct parent *parent, uint32_t ins)
{
	assert_true(parent->proto.sizebc < CODE_MAX);
	parent->bc[parent->proto.sizebc] = ins;
	return parent->proto.sizebc++;
}

static uint32_t jump_to(unsigned op, unsigned a, uint32_t from, uint32_t to)
{
	return fake_ad(op, a, BCBIAS_J + to - from - 1);
}

/* Variables in slots 0, 1, …: each from an instruction on to the end. */
static void add_variable(struct parent *parent, const char *name, uint32_t start)
{
	static uint32_t last;
	size_t at = parent->proto.varinfo_len;

	if (at == 0)
		last = 0;
	else
		at--; /* the end of the table */
	at += (size_t)snprintf(parent->variables + at, 64, "%s", name) + 1;
	parent->variables[at++] = (char)(start - last);
	parent->variables[at++] = 120;
	parent->variables[at++] = 0;
	last = start;
	parent->proto.varinfo = parent->variables;
	parent->proto.varinfo_len = at;
}

static void note(void *context, const struct definition *definition)
{
	struct found *found = context;

	assert_true(found->count < FOUND_MAX);
	assert_int_equal(definition->fate == DEFINITION_NAMED, definition->name != NULL);
	snprintf(found->names[found->count], STATE_NAME_MAX, "%s",
		 definition->name ? definition->name : "");
	found->definitions[found->count++] = *definition;
}

static void visit(struct sample *sample, struct parent *parent, struct found *found)
{
	struct fake_vm *vm = sample->vm;
	uint64_t address;

	emit(parent, fake_ad(BC_RET0, 0, 1));
	address = fake_proto(vm, &parent->proto);
	found->count = 0;
	assert_int_equal(0, definition_visit(vm->layout, &vm->reader, address, 0, note, found,
					     &sample->why));
}

static void expect_fate(struct sample *sample, struct parent *parent, enum definition_fate fate)
{
	struct found found;

	visit(sample, parent, &found);
	assert_int_equal(1, found.count);
	assert_int_equal(fate, found.definitions[0].fate);
}

/* The name of the only function that is made. */
static void expect(struct sample *sample, struct parent *parent, const char *name)
{
	struct found found;

	visit(sample, parent, &found);
	assert_int_equal(1, found.count);
	assert_string_equal(name, found.names[0]);
}

/* ---- Variables and globals -------------------------------------------------------------- */

static void test_local(void **state)
{
	struct parent parent;

	/* local f = function() end */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_FNEW, 0, CHILD));
	add_variable(&parent, "f", 2);
	expect(*state, &parent, "f");
	/* local one, two = 1, function() end */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_KSHORT, 0, 1));
	emit(&parent, fake_ad(BC_FNEW, 1, CHILD));
	add_variable(&parent, "one", 3);
	add_variable(&parent, "two", 3);
	expect(*state, &parent, "two");
	/* local f; f = function() end */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_KPRI, 0, 0));
	emit(&parent, fake_ad(BC_FNEW, 0, CHILD));
	add_variable(&parent, "f", 2);
	expect(*state, &parent, "f");
	/* What no compiler makes. */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_FNEW, 0, CHILD));
	add_variable(&parent, ".", 2);
	expect(*state, &parent, ".");
	/* Slots of loops have no names. */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_FNEW, 0, CHILD));
	add_variable(&parent, "\1", 2);
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
}

static void test_moved(void **state)
{
	struct parent parent;

	/* one, two = two, function() end */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_KNIL, 0, 1));
	emit(&parent, fake_ad(BC_FNEW, 3, CHILD));
	emit(&parent, fake_ad(BC_MOV, 0, 1));
	emit(&parent, fake_ad(BC_MOV, 1, 3));
	add_variable(&parent, "one", 2);
	add_variable(&parent, "two", 2);
	expect(*state, &parent, "two");
	/* Written over before it comes to a variable. */
	parent.proto.sizebc = 3;
	emit(&parent, fake_ad(BC_KSHORT, 3, 1));
	emit(&parent, fake_ad(BC_MOV, 1, 3));
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
}

static void test_upvalue_and_global(void **state)
{
	struct parent parent;

	begin(*state, &parent);
	parent.proto.uvinfo = "first\0second\0";
	parent.proto.uvinfo_len = 13;
	parent.proto.sizeuv = 2;
	emit(&parent, fake_ad(BC_FNEW, 2, CHILD));
	emit(&parent, fake_ad(BC_USETV, 1, 2));
	expect(*state, &parent, "second");
	parent.bc[2] = fake_ad(BC_USETV, 2, 2);
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
	parent.bc[2] = fake_ad(BC_GSET, 2, NAME_F);
	expect(*state, &parent, "f");
	parent.bc[2] = fake_ad(BC_GSET, 3, NAME_F); /* another value */
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
	parent.bc[2] = fake_ad(BC_GSET, 2, CHILD); /* no string */
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
	parent.bc[2] = fake_ad(BC_GSET, 2, CONSTANTS);
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
}

/* ---- Fields ----------------------------------------------------------------------------- */

static void test_field(void **state)
{
	struct parent parent;

	/* local M = {}; function M.f() end */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_TNEW, 0, 0));
	emit(&parent, fake_ad(BC_FNEW, 1, CHILD));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_F));
	add_variable(&parent, "lib", 2);
	expect(*state, &parent, "lib.f");
	/* Without names of variables, the field's alone. */
	parent.proto.varinfo = NULL;
	expect(*state, &parent, "f");
	/* Global tables, and tables in them. */
	parent.bc[1] = fake_ad(BC_GGET, 0, NAME_M);
	expect(*state, &parent, "M.f");
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_GGET, 0, NAME_M));
	emit(&parent, fake_abc(BC_TGETS, 0, 0, NAME_A));
	emit(&parent, fake_abc(BC_TGETB, 0, 0, 7));
	emit(&parent, fake_ad(BC_FNEW, 1, CHILD));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_ODD));
	expect(*state, &parent, "M.a[7][\"two words\"]");
}

static void test_method(void **state)
{
	struct parent parent;

	begin(*state, &parent);
	emit(&parent, fake_ad(BC_GGET, 0, NAME_M));
	emit(&parent, fake_ad(BC_FNEW, 1, METHOD));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_F));
	expect(*state, &parent, "M:f");
	/* Nobody's method. */
	parent.bc[1] = fake_ad(BC_TNEW, 0, 0);
	expect(*state, &parent, "f");
}

/* What has a number above 255 has its name in a slot. */
static void test_key_in_slot(void **state)
{
	struct parent parent;

	begin(*state, &parent);
	emit(&parent, fake_ad(BC_GGET, 0, NAME_M));
	emit(&parent, fake_ad(BC_FNEW, 1, CHILD));
	emit(&parent, fake_ad(BC_KSTR, 2, NAME_F));
	emit(&parent, fake_abc(BC_TSETV, 1, 0, 2));
	expect(*state, &parent, "M.f");
	parent.bc[3] = fake_ad(BC_KSHORT, 2, 300);
	expect(*state, &parent, "M[300]");
	parent.bc[3] = fake_ad(BC_GGET, 2, NAME_F);
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
}

/* (cond and M or a).f = function() end: either table's. */
static void test_table_of_two(void **state)
{
	struct parent parent;
	uint32_t at;

	begin(*state, &parent);
	emit(&parent, fake_ad(BC_ISF, 0, 5));
	at = emit(&parent, 0);
	emit(&parent, fake_ad(BC_GGET, 0, NAME_M));
	parent.bc[at] = jump_to(BC_JMP, 1, at, 5);
	at = emit(&parent, 0);
	emit(&parent, fake_ad(BC_GGET, 0, NAME_A));
	parent.bc[at] = jump_to(BC_JMP, 1, at, 6);
	emit(&parent, fake_ad(BC_FNEW, 1, CHILD));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_F));
	expect(*state, &parent, "f");
}

/* However far before: (cond and 1 or M).f = function() end, with so much in between. */
static void test_jump_from_far_before(void **state)
{
	struct parent parent;
	uint32_t from, to;

	begin(*state, &parent);
	emit(&parent, fake_ad(BC_ISF, 0, 5));
	from = emit(&parent, 0);
	for (unsigned i = 0; i < 300; i++)
		emit(&parent, fake_ad(BC_KSHORT, 9, i));
	emit(&parent, fake_ad(BC_GGET, 0, NAME_M));
	to = emit(&parent, fake_ad(BC_FNEW, 1, CHILD));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_F));
	parent.bc[from] = jump_to(BC_JMP, 1, from, to);
	expect(*state, &parent, "f");
	/* To before the table is taken, and to behind its use. */
	parent.proto.sizebc--;
	parent.bc[from] = jump_to(BC_JMP, 1, from, to - 1);
	expect(*state, &parent, "M.f");
	parent.proto.sizebc--;
	parent.bc[from] = jump_to(BC_JMP, 1, from, to + 2);
	expect(*state, &parent, "M.f");
	/* An instruction that leaves a block, and one that is not known. */
	parent.proto.sizebc--;
	parent.bc[from] = jump_to(BC_UCLO, 1, from, to);
	expect(*state, &parent, "f");
	parent.proto.sizebc--;
	parent.bc[from] = jump_to(254, 1, from, to + 1);
	expect(*state, &parent, "f");
}

/* ---- Constructors ----------------------------------------------------------------------- */

static void test_constructors(void **state)
{
	struct parent parent;

	/* local t = { a = { f = function() end } } */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_TNEW, 0, 0));
	emit(&parent, fake_ad(BC_TDUP, 1, 0));
	emit(&parent, fake_ad(BC_FNEW, 2, CHILD));
	emit(&parent, fake_abc(BC_TSETS, 2, 1, NAME_F));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_A));
	add_variable(&parent, "t", 6);
	expect(*state, &parent, "t.a.f");
	/* M.a = { f = function() end } */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_GGET, 0, NAME_M));
	emit(&parent, fake_ad(BC_TNEW, 1, 0));
	emit(&parent, fake_ad(BC_FNEW, 2, CHILD));
	emit(&parent, fake_abc(BC_TSETB, 2, 1, 1));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_A));
	expect(*state, &parent, "M.a[1]");
	/* return { f = function() end } */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_TNEW, 0, 0));
	emit(&parent, fake_ad(BC_FNEW, 1, CHILD));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_F));
	emit(&parent, fake_ad(BC_RET1, 0, 2));
	expect(*state, &parent, "f");
}

/* local t = setmetatable({}, { [field] = { f = function(self) end } }), as far as it goes. */
static void emit_metatable(struct sample *sample, struct parent *parent, unsigned function,
			   unsigned field)
{
	unsigned first = sample->vm->layout->gc64 ? 2 : 1;

	begin(sample, parent);
	emit(parent, fake_ad(BC_GGET, 0, function));
	emit(parent, fake_ad(BC_TNEW, first, 0));
	emit(parent, fake_ad(BC_TNEW, first + 1, 0));
	emit(parent, fake_ad(BC_TNEW, first + 2, 0));
	emit(parent, fake_ad(BC_FNEW, first + 3, METHOD));
	emit(parent, fake_abc(BC_TSETS, first + 3, first + 2, NAME_F));
	emit(parent, fake_abc(BC_TSETS, first + 2, first + 1, field));
}

static void test_metatable(void **state)
{
	struct parent parent;

	emit_metatable(*state, &parent, NAME_SETMETATABLE, NAME_INDEX);
	emit(&parent, fake_abc(BC_CALL, 0, 2, 3));
	add_variable(&parent, "t", 9);
	expect(*state, &parent, "t:f");
	emit_metatable(*state, &parent, NAME_SETMETATABLE, NAME_A);
	emit(&parent, fake_abc(BC_CALL, 0, 2, 3));
	add_variable(&parent, "t", 9);
	expect(*state, &parent, "t.a:f");
	/* return setmetatable({}, …) */
	emit_metatable(*state, &parent, NAME_SETMETATABLE, NAME_INDEX);
	emit(&parent, fake_ad(BC_CALLT, 0, 3));
	expect(*state, &parent, "f");
	/* Another function may do anything with it. */
	emit_metatable(*state, &parent, NAME_M, NAME_A);
	emit(&parent, fake_abc(BC_CALL, 0, 2, 3));
	add_variable(&parent, "t", 9);
	expect(*state, &parent, "a.f");
}

/* ---- Jumps ------------------------------------------------------------------------------ */

static void test_and_or(void **state)
{
	struct parent parent;

	/* local f = cond and function() end or nil */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_ISF, 0, 5));
	emit(&parent, jump_to(BC_JMP, 0, 2, 6));
	emit(&parent, fake_ad(BC_FNEW, 0, CHILD));
	emit(&parent, fake_ad(BC_IST, 0, 0));
	emit(&parent, jump_to(BC_JMP, 0, 5, 7));
	emit(&parent, fake_ad(BC_KPRI, 0, 0));
	add_variable(&parent, "f", 7);
	expect(*state, &parent, "f");
	/* Backwards is a loop. */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_FNEW, 0, CHILD));
	emit(&parent, jump_to(BC_JMP, 0, 2, 1));
	add_variable(&parent, "f", 3);
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
	/* Out of the function. */
	parent.bc[2] = jump_to(BC_JMP, 0, 2, 100);
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
}

static void test_fates(void **state)
{
	struct parent parent;
	unsigned first = ((struct sample *)*state)->vm->layout->gc64 ? 2 : 1;

	/* return function() end */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_FNEW, 3, CHILD));
	emit(&parent, fake_ad(BC_RET1, 3, 2));
	expect_fate(*state, &parent, DEFINITION_RETURNED);
	parent.proto.sizebc = 3;
	parent.bc[2] = fake_ad(BC_RET, 2, 3);
	expect_fate(*state, &parent, DEFINITION_RETURNED);
	parent.proto.sizebc = 3;
	parent.bc[2] = fake_ad(BC_RET, 1, 3);
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
	parent.proto.sizebc = 3;
	parent.bc[2] = fake_ad(BC_RETM, 3, 1);
	expect_fate(*state, &parent, DEFINITION_RETURNED);
	/* f(function() end) */
	begin(*state, &parent);
	emit(&parent, fake_ad(BC_GGET, 0, NAME_F));
	emit(&parent, fake_ad(BC_FNEW, first, CHILD));
	emit(&parent, fake_abc(BC_CALL, 0, 2, 2));
	add_variable(&parent, "result", 4);
	expect_fate(*state, &parent, DEFINITION_NAMELESS);
}

/* ---- Foreign memory --------------------------------------------------------------------- */

static void test_unknown_opcodes(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct luastate_layout layout = *vm->layout;
	struct parent parent;
	struct found found = { .count = 0 };
	uint64_t address;

	begin(sample, &parent);
	emit(&parent, fake_ad(BC_FNEW, 2, CHILD));
	emit(&parent, fake_ad(BC_GSET, 2, NAME_F));
	emit(&parent, fake_ad(BC_RET0, 0, 1));
	address = fake_proto(vm, &parent.proto);
	layout.BC_FUNCF++;
	assert_int_equal(
		-1, definition_visit(&layout, &vm->reader, address, 0, note, &found, &sample->why));
	assert_int_equal(FAILURE_INVALID, sample->why.kind);
	assert_int_equal(0, found.count);
}

/* KSTR 1 "f"; an instruction; FNEW 2; TSETV 2 0 1. */
static void begin_between(struct sample *sample, struct parent *parent, uint32_t ins)
{
	begin(sample, parent);
	emit(parent, fake_ad(BC_GGET, 0, NAME_M));
	emit(parent, fake_ad(BC_KSTR, 1, NAME_F));
	emit(parent, ins);
	emit(parent, fake_ad(BC_FNEW, 2, CHILD));
	emit(parent, fake_abc(BC_TSETV, 2, 0, 1));
}

/* Since 2026 bit operators are instructions of their own. */
static void test_bit_operators(void **state)
{
	struct parent parent;

	for (unsigned op = BC_BNOT; op <= BC_BSAR; op++) {
		begin_between(*state, &parent, fake_abc(op, 1, 1, 1));
		expect_fate(*state, &parent, DEFINITION_NAMELESS);
		begin_between(*state, &parent, fake_abc(op, 5, 1, 1));
		expect(*state, &parent, "M.f");
		/* M.a = { f = function() end, op } */
		begin(*state, &parent);
		emit(&parent, fake_ad(BC_GGET, 0, NAME_M));
		emit(&parent, fake_ad(BC_TNEW, 1, 0));
		emit(&parent, fake_ad(BC_FNEW, 2, CHILD));
		emit(&parent, fake_abc(BC_TSETS, 2, 1, NAME_F));
		emit(&parent, fake_abc(op, 2, 3, 3));
		emit(&parent, fake_abc(BC_TSETB, 2, 1, 1));
		emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_A));
		expect(*state, &parent, "M.a.f");
	}
}

/* What is not known may write any slot, and lead anywhere. */
static void test_unknown_instructions(void **state)
{
	static const unsigned ops[] = { BC_BSAR + 20, 200, STATE_OPCODE_UNKNOWN };
	struct parent parent;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		for (unsigned a = 0; a < 10; a++) {
			begin_between(*state, &parent, fake_ad(ops[i], a, 0));
			expect_fate(*state, &parent, DEFINITION_NAMELESS);
			/* Behind the value. */
			begin(*state, &parent);
			emit(&parent, fake_ad(BC_FNEW, 2, CHILD));
			emit(&parent, fake_ad(ops[i], a, 0));
			emit(&parent, fake_ad(BC_GSET, 2, NAME_F));
			expect_fate(*state, &parent, DEFINITION_NAMELESS);
		}
}

static int read_anything(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			 struct failure *why)
{
	unsigned *reads = self;

	(void)address, (void)why;
	++*reads;
	memset(ret_bytes, 0, len);
	return 0;
}

/* All memory of a hostile process can be read, and look like a prototype. */
static void test_references(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	enum { MANY = 1300 };
	uint64_t kgc[MANY] = { 0 }, address;
	unsigned reads = 0, left = 100;
	const struct attach_reader anything = { .read = read_anything, .self = &reads };
	uint8_t header[STATE_OBJECT_MAX];
	struct parent parent;

	begin(sample, &parent);
	kgc[0] = parent.kgc[CHILD];
	kgc[MANY - 1] = parent.kgc[METHOD];
	emit(&parent, fake_ad(BC_RET0, 0, 1));
	parent.proto.kgc = kgc;
	parent.proto.sizekgc = MANY;
	address = fake_proto(vm, &parent.proto);
	memcpy(header, fake_at(vm, address, (size_t)layout->GCproto_sizeof),
	       (size_t)layout->GCproto_sizeof);
	assert_true(definition_refers(layout, &vm->reader, address, header, kgc[0], &left));
	assert_int_equal(99, left);
	assert_true(definition_refers(layout, &vm->reader, address, header, kgc[MANY - 1], &left));
	assert_int_equal(96, left);
	assert_false(definition_refers(layout, &vm->reader, address, header, 8, &left));
	left = 2;
	assert_false(definition_refers(layout, &vm->reader, address, header, kgc[MANY - 1], &left));
	assert_int_equal(0, left);
	/* More than it has room for, and more than any has. */
	left = 1000;
	for (uint64_t count = MANY + 1; count <= UINT32_MAX; count *= 7) {
		uint32_t sizekgc = (uint32_t)count;

		memcpy(header + layout->GCproto_sizekgc, &sizekgc, 4);
		assert_false(definition_refers(layout, &anything, address, header, 8, &left));
	}
	assert_int_equal(0, reads);
	assert_int_equal(1000, left);
}

static void test_unreadable(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct parent parent;
	struct found found;
	uint64_t address;

	assert_int_equal(-1,
			 definition_visit(layout, &vm->reader, 8, 0, note, &found, &sample->why));
	assert_int_equal(
		-1, definition_visit(layout, &vm->reader, vm->main, 0, note, &found, &sample->why));
	begin(sample, &parent);
	emit(&parent, fake_ad(BC_FNEW, 2, CHILD));
	emit(&parent, fake_ad(BC_GSET, 2, NAME_F));
	emit(&parent, fake_ad(BC_RET0, 0, 1));
	/* A text that is gone, and a child. */
	parent.kgc[NAME_F] = 4096;
	parent.kgc[CHILD] = 8192;
	address = fake_proto(vm, &parent.proto);
	found.count = 0;
	assert_int_equal(
		0, definition_visit(layout, &vm->reader, address, 0, note, &found, &sample->why));
	assert_int_equal(1, found.count);
	assert_int_equal(DEFINITION_NAMELESS, found.definitions[0].fate);
	assert_int_equal(8192, found.definitions[0].child);
	/* Sizes that contradict each other, or are too large. */
	fake_put_u32(vm, fake_member(address, layout->GCproto_sizekgc), 1000);
	assert_int_equal(
		-1, definition_visit(layout, &vm->reader, address, 0, note, &found, &sample->why));
	fake_put_u32(vm, fake_member(address, layout->GCproto_sizept), UINT32_MAX);
	assert_int_equal(
		-1, definition_visit(layout, &vm->reader, address, 0, note, &found, &sample->why));
	assert_int_equal(FAILURE_LIMIT, sample->why.kind);
}

/* Any instructions: no name is expected, but an end. */
static void test_any_bytecode(void **state)
{
	struct sample *sample = *state;
	struct parent parent;
	struct found found;
	uint32_t random = 1;

	for (unsigned round = 0; round < 300; round++) {
		begin(sample, &parent);
		parent.kgc[NAME_F] = round % 2 ? parent.kgc[NAME_F] : 12345;
		for (unsigned i = 0; i < FOUND_MAX; i++) {
			random = random * 1664525 + 1013904223;
			emit(&parent,
			     i % 3 ? random >> 8 : fake_ad(BC_FNEW, random >> 24 & 7, CHILD));
		}
		visit(sample, &parent, &found);
		assert_true(found.count >= FOUND_MAX / 3);
		if (round % 20 == 19) { /* there is room for so many */
			sample_teardown(state);
			sample_setup(state);
			sample = *state;
		}
	}
}

static void test_long_names(void **state)
{
	struct sample *sample = *state;
	char text[STATE_NAME_MAX + 50];
	struct parent parent;

	memset(text, 'n', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	begin(sample, &parent);
	emit(&parent, fake_ad(BC_GGET, 0, NAME_M));
	emit(&parent, fake_ad(BC_FNEW, 1, CHILD));
	emit(&parent, fake_abc(BC_TSETS, 1, 0, NAME_F));
	parent.kgc[NAME_F] = fake_string(sample->vm, text + sizeof(text) - 100);
	/* What has no room is left out, from the left. */
	parent.kgc[NAME_M] = fake_string(sample->vm, text);
	expect(sample, &parent, text + sizeof(text) - 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_local),
		SAMPLE_TEST(test_moved),
		SAMPLE_TEST(test_upvalue_and_global),
		SAMPLE_TEST(test_field),
		SAMPLE_TEST(test_method),
		SAMPLE_TEST(test_key_in_slot),
		SAMPLE_TEST(test_table_of_two),
		SAMPLE_TEST(test_jump_from_far_before),
		SAMPLE_TEST(test_constructors),
		SAMPLE_TEST(test_metatable),
		SAMPLE_TEST(test_and_or),
		SAMPLE_TEST(test_fates),
		SAMPLE_TEST(test_unknown_opcodes),
		SAMPLE_TEST(test_bit_operators),
		SAMPLE_TEST(test_unknown_instructions),
		SAMPLE_TEST(test_references),
		SAMPLE_TEST(test_unreadable),
		SAMPLE_TEST(test_any_bytecode),
		SAMPLE_TEST(test_long_names),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
