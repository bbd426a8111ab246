/* SPDX-License-Identifier: MIT */
/* Values of all types, by an upvalue of a function that runs; and what only looks like one. */
#include <math.h>

#include "fake_values.h"
#include "sample.h"
#include "luastate/variables.h"

/** Upvalues of one function, read in one go. */
struct shelf {
	struct sample *sample;
	struct fake_vm *vm;
	const struct luastate_layout *layout;
	struct luastate_values_options options;
	struct luastate_variables *variables;
};

static void begin(struct shelf *shelf, struct sample *sample)
{
	*shelf = (struct shelf){ .sample = sample,
				 .vm = sample->vm,
				 .layout = sample->vm->layout,
				 .options = LUASTATE_VALUES_DEFAULTS };
	fake_put_ref(shelf->vm, fake_member(shelf->vm->G, shelf->layout->global_State_cur_L),
		     shelf->vm->main);
}

/* The value of an upvalue that holds a TValue. Borrowed until the next one. */
static const struct luastate_value *read_value(struct shelf *shelf, uint64_t tvalue)
{
	struct fake_vm *vm = shelf->vm;
	const uint32_t bc[] = { fake_funcf(vm, 2), fake_ad(FAKE_RET0, 0, 1) };
	const uint64_t proto = fake_proto(vm, &(struct fake_proto){ .chunkname = "=shelf",
								    .firstline = 1,
								    .bc = bc,
								    .sizebc = 2,
								    .sizeuv = 1 });
	const uint64_t upvalue = fake_closed(vm, tvalue);
	const struct luastate_memory memory = sample_memory(shelf->sample);
	struct luastate_frame frame = { .coroutine = vm->main, .pc = fake_pc(vm, proto, 1) };
	struct state_proto *known;

	luastate_variables_destroy(shelf->variables);
	shelf->variables = NULL;
	luastate_begin_sample(shelf->sample->state, &vm->reader);
	known = sample_proto(shelf->sample, proto);
	assert_non_null(known);
	frame.function = &known->function;
	frame.object = fake_closure(vm, proto, 1, &upvalue);
	frame.base = fake_L_get(vm, vm->main, shelf->layout->lua_State_base);
	assert_int_equal(0, luastate_read_variables(shelf->sample->state, &memory, &frame,
						    &shelf->options, &shelf->variables,
						    &shelf->sample->why));
	assert_int_equal(1, shelf->variables->count);
	return &shelf->variables->items[0].value;
}

static const struct luastate_value *read_object(struct shelf *shelf, int32_t tag, uint64_t object)
{
	return read_value(shelf, fake_tag(shelf->vm, tag, object));
}

static uint64_t string(struct shelf *shelf, const char *text)
{
	return fake_tag(shelf->vm, shelf->layout->tag_str, fake_string(shelf->vm, text));
}

/* ---- What has no object ----------------------------------------------------------------- */

static void test_plain(void **state)
{
	struct shelf shelf;
	const struct luastate_value *got;

	begin(&shelf, *state);
	assert_int_equal(LUASTATE_VALUE_NIL, read_value(&shelf, UINT64_MAX)->type);
	got = read_object(&shelf, -2, 0);
	assert_int_equal(LUASTATE_VALUE_BOOLEAN, got->type);
	assert_false(got->boolean);
	assert_true(read_object(&shelf, -3, 0)->boolean);
	got = read_object(&shelf, shelf.layout->tag_isnum, (uint32_t)-5);
	assert_int_equal(LUASTATE_VALUE_INTEGER, got->type);
	assert_int_equal(-5, got->integer);
	luastate_variables_destroy(shelf.variables);
}

static void test_numbers(void **state)
{
	static const double numbers[] = { 0, -0.0, 1.5, -1e308, 4.9e-324, INFINITY, -INFINITY };
	struct shelf shelf;
	const struct luastate_value *got;

	begin(&shelf, *state);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		got = read_value(&shelf, fake_number(numbers[i]));
		assert_int_equal(LUASTATE_VALUE_NUMBER, got->type);
		assert_true(got->number == numbers[i]);
	}
	/* The one that arithmetic makes. */
	got = read_value(&shelf, UINT64_C(0xfff8000000000000));
	assert_int_equal(LUASTATE_VALUE_NUMBER, got->type);
	assert_true(isnan(got->number));
	luastate_variables_destroy(shelf.variables);
}

static void test_light_userdata(void **state)
{
	struct shelf shelf;
	const struct luastate_value *got;
	uint64_t tag, segments;

	begin(&shelf, *state);
	tag = shelf.layout->gc64 ? (uint64_t)(int64_t)shelf.layout->tag_lightud << 47
				 : UINT64_C(0xffff) << 48;
	if (shelf.layout->global_State_lightudseg == LAYOUT_ABSENT) {
		got = read_value(&shelf, tag | UINT64_C(0x7ffe12345678));
		assert_int_equal(LUASTATE_VALUE_LIGHTUSERDATA, got->type);
		assert_int_equal(UINT64_C(0x7ffe12345678), got->address);
		luastate_variables_destroy(shelf.variables);
		return;
	}
	segments = fake_alloc(shelf.vm, 16);
	fake_put_u32(shelf.vm, segments + 8, 0x7f80);
	fake_put_ref(shelf.vm, fake_member(shelf.vm->G, shelf.layout->global_State_lightudseg),
		     segments);
	got = read_value(&shelf, tag | UINT64_C(2) << 39 | 0x12345678);
	assert_int_equal(LUASTATE_VALUE_LIGHTUSERDATA, got->type);
	assert_int_equal(UINT64_C(0x7f8012345678), got->address);
	got = read_value(&shelf, tag | UINT64_C(255) << 39);
	assert_int_equal(LUASTATE_VALUE_LIGHTUSERDATA, got->type);
	assert_int_equal(0, got->address);
	/* No segments. */
	fake_put_ref(shelf.vm, fake_member(shelf.vm->G, shelf.layout->global_State_lightudseg), 0);
	assert_int_equal(LUASTATE_VALUE_UNREADABLE, read_value(&shelf, tag | 8)->type);
	luastate_variables_destroy(shelf.variables);
}

/* ---- Strings ---------------------------------------------------------------------------- */

static void test_strings(void **state)
{
	struct shelf shelf;
	const struct luastate_value *got;
	uint64_t text;

	begin(&shelf, *state);
	got = read_value(&shelf, string(&shelf, ""));
	assert_int_equal(LUASTATE_VALUE_STRING, got->type);
	assert_int_equal(0, got->size);
	assert_string_equal("", got->text);
	shelf.options.string_bytes = 4;
	got = read_value(&shelf, string(&shelf, "abcdefgh"));
	assert_int_equal(8, got->size);
	assert_int_equal(4, got->text_bytes);
	assert_string_equal("abcd", got->text);
	/* Its length is a lie: what is kept of it cannot be read. */
	shelf.options.string_bytes = 1 << 20;
	text = fake_string(shelf.vm, "short");
	fake_put_u32(shelf.vm, fake_member(text, shelf.layout->GCstr_len), UINT32_MAX);
	got = read_object(&shelf, shelf.layout->tag_str, text);
	assert_int_equal(LUASTATE_VALUE_UNREADABLE, got->type);
	/* No memory for it. */
	shelf.options.string_bytes = SIZE_MAX - 1;
	got = read_object(&shelf, shelf.layout->tag_str, text);
	assert_int_equal(LUASTATE_VALUE_OMITTED, got->type);
	luastate_variables_destroy(shelf.variables);
}

/* Wild pointers, and objects of other types, for each tag. */
static void test_what_is_no_object(void **state)
{
	struct shelf shelf;
	uint64_t other;

	begin(&shelf, *state);
	const int32_t tags[] = { shelf.layout->tag_str,	  shelf.layout->tag_tab,
				 shelf.layout->tag_func,  shelf.layout->tag_thread,
				 shelf.layout->tag_udata, shelf.layout->tag_cdata,
				 shelf.layout->tag_upval };
	const uint64_t wild[] = { 0, 8, 4096, 0x7ffffff0,
				  fake_proto(shelf.vm, &(struct fake_proto){
							       .chunkname = "=x",
							       .bc = (const uint32_t[]){ fake_funcf(
								       shelf.vm, 1) },
							       .sizebc = 1 }) };

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		for (size_t k = 0; k < sizeof(wild) / sizeof(wild[0]); k++)
			assert_int_equal(LUASTATE_VALUE_UNREADABLE,
					 read_object(&shelf, tags[i], wild[k])->type);
	other = fake_array(shelf.vm, 1, (const uint64_t[]){ UINT64_MAX });
	assert_int_equal(LUASTATE_VALUE_UNREADABLE,
			 read_object(&shelf, shelf.layout->tag_str, other)->type);
	luastate_variables_destroy(shelf.variables);
}

/* ---- Tables ----------------------------------------------------------------------------- */

static void test_table(void **state)
{
	struct shelf shelf;
	const struct luastate_table *table;
	uint64_t address;

	begin(&shelf, *state);
	const uint64_t items[] = { UINT64_MAX, fake_number(7), UINT64_MAX,
				   string(&shelf, "third") };

	address = fake_array(shelf.vm, 4, items);
	table = read_object(&shelf, shelf.layout->tag_tab, address)->table;
	assert_non_null(table);
	assert_int_equal(2, table->count);
	assert_int_equal(4, table->array_slots);
	assert_int_equal(LUASTATE_TABLE_WHOLE, table->cut);
	assert_int_equal(2, table->entry_count);
	assert_int_equal(1, table->keys[0].integer);
	assert_int_equal(3, table->keys[1].integer);
	assert_true(table->values[0].number == 7);
	assert_string_equal("third", table->values[1].text);
	assert_false(table->has_metatable);
	fake_put_ref(shelf.vm, fake_member(address, shelf.layout->GCtab_metatable), address);
	shelf.options.entries = 1;
	table = read_object(&shelf, shelf.layout->tag_tab, address)->table;
	assert_true(table->has_metatable);
	assert_int_equal(2, table->count);
	assert_int_equal(1, table->entry_count);
	assert_int_equal(LUASTATE_TABLE_ENTRIES, table->cut);
	shelf.options.depth = 0;
	table = read_object(&shelf, shelf.layout->tag_tab, address)->table;
	assert_int_equal(LUASTATE_TABLE_DEPTH, table->cut);
	assert_int_equal(0, table->entry_count);
	assert_int_equal(2, table->count);
	luastate_variables_destroy(shelf.variables);
}

static void test_hash(void **state)
{
	struct shelf shelf;
	const struct luastate_table *table;
	uint64_t address, empty;

	begin(&shelf, *state);
	address = fake_table(shelf.vm, 4);
	fake_table_set(shelf.vm, address, "key", fake_number(1));
	fake_table_set(shelf.vm, address, "gone", UINT64_MAX);
	fake_table_set(shelf.vm, address, "yes", fake_tag(shelf.vm, -3, 0));
	table = read_object(&shelf, shelf.layout->tag_tab, address)->table;
	assert_int_equal(2, table->count);
	assert_int_equal(4, table->hash_slots);
	assert_string_equal("key", table->keys[0].text);
	assert_string_equal("yes", table->keys[1].text);
	assert_true(table->values[1].boolean);
	/* An empty hash part is a node of the global state's. */
	empty = fake_table(shelf.vm, 1);
	fake_put_ref(shelf.vm, fake_member(empty, shelf.layout->GCtab_node), shelf.vm->G + 64);
	table = read_object(&shelf, shelf.layout->tag_tab, empty)->table;
	assert_int_equal(0, table->hash_slots);
	assert_int_equal(0, table->count);
	assert_int_equal(LUASTATE_TABLE_WHOLE, table->cut);
	luastate_variables_destroy(shelf.variables);
}

static void test_cycles(void **state)
{
	struct shelf shelf;
	const struct luastate_table *table;
	uint64_t one, other;

	begin(&shelf, *state);
	one = fake_table(shelf.vm, 2);
	other = fake_table(shelf.vm, 2);
	fake_table_set(shelf.vm, one, "other", fake_tag(shelf.vm, shelf.layout->tag_tab, other));
	fake_table_set(shelf.vm, other, "one", fake_tag(shelf.vm, shelf.layout->tag_tab, one));
	shelf.options.depth = 1000;
	table = read_object(&shelf, shelf.layout->tag_tab, one)->table;
	assert_int_equal(LUASTATE_TABLE_WHOLE, table->cut);
	table = table->values[0].table;
	assert_int_equal(LUASTATE_TABLE_WHOLE, table->cut);
	table = table->values[0].table;
	assert_int_equal(LUASTATE_TABLE_CYCLE, table->cut);
	assert_int_equal(0, table->entry_count);
	luastate_variables_destroy(shelf.variables);
}

/* A tree in which each table holds another one twice: the budget ends it. */
static void test_breadth(void **state)
{
	struct shelf shelf;
	uint64_t inner;

	begin(&shelf, *state);
	inner = fake_array(shelf.vm, 1, (const uint64_t[]){ UINT64_MAX });
	for (int depth = 0; depth < 40; depth++) {
		const uint64_t item = fake_tag(shelf.vm, shelf.layout->tag_tab, inner);
		const uint64_t items[] = { UINT64_MAX, item, item, item };

		inner = fake_array(shelf.vm, 4, items);
	}
	shelf.options.depth = UINT32_MAX;
	shelf.options.entries = SIZE_MAX;
	shelf.options.values_left = 10000;
	assert_non_null(read_object(&shelf, shelf.layout->tag_tab, inner)->table);
	assert_int_equal(0, shelf.options.values_left);
	shelf.options = LUASTATE_VALUES_DEFAULTS;
	shelf.options.depth = UINT32_MAX;
	shelf.options.memory_bytes = 1 << 16;
	shelf.options.read_bytes = 1 << 16;
	assert_int_equal(LUASTATE_VALUE_TABLE,
			 read_object(&shelf, shelf.layout->tag_tab, inner)->type);
	luastate_variables_destroy(shelf.variables);
}

static void test_hostile_tables(void **state)
{
	static const struct {
		uint32_t asize, hmask;
	} sizes[] = {
		{ UINT32_MAX, 0 }, { 1u << 29, 0 }, { 0, UINT32_MAX }, { 0, 2 }, { 0, 1u << 30 }
	};
	struct shelf shelf;
	const struct luastate_value *got;
	uint64_t address;

	begin(&shelf, *state);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		address = fake_array(shelf.vm, 2, (const uint64_t[]){ UINT64_MAX, UINT64_MAX });
		fake_put_u32(shelf.vm, fake_member(address, shelf.layout->GCtab_asize),
			     sizes[i].asize);
		fake_put_u32(shelf.vm, fake_member(address, shelf.layout->GCtab_hmask),
			     sizes[i].hmask);
		assert_int_equal(LUASTATE_VALUE_UNREADABLE,
				 read_object(&shelf, shelf.layout->tag_tab, address)->type);
	}
	/* As large as a table may be, and not there. */
	address = fake_array(shelf.vm, 2, (const uint64_t[]){ UINT64_MAX, fake_number(1) });
	fake_put_u32(shelf.vm, fake_member(address, shelf.layout->GCtab_asize), 1u << 28);
	got = read_object(&shelf, shelf.layout->tag_tab, address);
	assert_int_equal(LUASTATE_VALUE_TABLE, got->type);
	assert_int_equal(LUASTATE_TABLE_INCONSISTENT, got->table->cut);
	assert_true(got->table->is_count_cut);
	luastate_variables_destroy(shelf.variables);
}

static void test_large_table(void **state)
{
	enum { SLOTS = 40000 };
	static uint64_t items[SLOTS];
	struct shelf shelf;
	const struct luastate_table *table;

	begin(&shelf, *state);
	for (size_t i = 0; i < SLOTS; i++)
		items[i] = fake_number((double)i);
	table = read_object(&shelf, shelf.layout->tag_tab, fake_array(shelf.vm, SLOTS, items))
			->table;
	assert_true(table->is_count_cut);
	assert_true(table->count > 1000 && table->count < SLOTS);
	assert_int_equal(8, table->entry_count);
	assert_int_equal(LUASTATE_TABLE_ENTRIES, table->cut);
	luastate_variables_destroy(shelf.variables);
}

/* ---- Functions, coroutines, userdata ---------------------------------------------------- */

static void test_functions(void **state)
{
	struct shelf shelf;
	const struct luastate_value *got;
	uint64_t proto;

	begin(&shelf, *state);
	proto = fake_caller(shelf.vm, "@lib.lua", 33, "callee");
	got = read_object(&shelf, shelf.layout->tag_func, fake_lua_function(shelf.vm, proto));
	assert_int_equal(LUASTATE_VALUE_FUNCTION, got->type);
	assert_string_equal("@lib.lua", got->chunkname);
	assert_int_equal(33, got->firstline);
	assert_int_equal(proto, got->code);
	got = read_object(&shelf, shelf.layout->tag_func, fake_c_function(shelf.vm, 0x5000));
	assert_int_equal(LUASTATE_VALUE_C_FUNCTION, got->type);
	assert_int_equal(0x5000, got->code);
	assert_null(got->text);
	got = read_object(&shelf, shelf.layout->tag_func, fake_fast_function(shelf.vm, 77, 0x6000));
	assert_int_equal(LUASTATE_VALUE_BUILTIN, got->type);
	assert_string_equal("builtin#77", got->text);
	luastate_variables_destroy(shelf.variables);
}

static enum luastate_coroutine_status status_of(struct shelf *shelf, uint64_t L)
{
	const struct luastate_value *got = read_object(shelf, shelf->layout->tag_thread, L);

	assert_int_equal(LUASTATE_VALUE_COROUTINE, got->type);
	return got->status;
}

static void test_coroutines(void **state)
{
	struct shelf shelf;
	const struct luastate_layout *layout;
	struct fake_vm *vm;
	uint64_t L;

	begin(&shelf, *state);
	vm = shelf.vm;
	layout = shelf.layout;
	L = fake_coroutine(vm, 40);
	fake_put_u8(vm, fake_member(L, layout->lua_State_status), 0);
	assert_int_equal(LUASTATE_COROUTINE_DEAD, status_of(&shelf, L));
	fake_L_set(vm, L, layout->lua_State_top, fake_L_get(vm, L, layout->lua_State_top) + 8);
	assert_int_equal(LUASTATE_COROUTINE_SUSPENDED, status_of(&shelf, L));
	fake_call(vm, L, fake_c_function(vm, 0x5000), 1, FAKE_LINK_C);
	assert_int_equal(LUASTATE_COROUTINE_NORMAL, status_of(&shelf, L));
	fake_put_u8(vm, fake_member(L, layout->lua_State_status), 1);
	assert_int_equal(LUASTATE_COROUTINE_SUSPENDED, status_of(&shelf, L));
	fake_put_u8(vm, fake_member(L, layout->lua_State_status), 2);
	assert_int_equal(LUASTATE_COROUTINE_DEAD, status_of(&shelf, L));
	assert_int_equal(LUASTATE_COROUTINE_RUNNING, status_of(&shelf, vm->main));
	luastate_variables_destroy(shelf.variables);
}

static void test_userdata(void **state)
{
	struct shelf shelf;
	const struct luastate_value *got;
	uint64_t metatable, object;

	begin(&shelf, *state);
	metatable = fake_table(shelf.vm, 4);
	fake_table_set(shelf.vm, metatable, "__index", fake_number(1));
	fake_table_set(shelf.vm, metatable, "__name", string(&shelf, "my.type"));
	object = fake_userdata(shelf.vm, 24, metatable);
	got = read_object(&shelf, shelf.layout->tag_udata, object);
	assert_int_equal(LUASTATE_VALUE_USERDATA, got->type);
	assert_int_equal(24, got->size);
	assert_string_equal("my.type", got->text);
	assert_int_equal(object + (uint64_t)shelf.layout->GCudata_sizeof, got->address);
	got = read_object(&shelf, shelf.layout->tag_udata, fake_userdata(shelf.vm, 0, 0));
	assert_false(got->has_metatable);
	assert_null(got->text);
	/* A metatable that is none. */
	got = read_object(&shelf, shelf.layout->tag_udata, fake_userdata(shelf.vm, 8, object));
	assert_int_equal(LUASTATE_VALUE_USERDATA, got->type);
	assert_null(got->text);
	luastate_variables_destroy(shelf.variables);
}

/* ---- C data ----------------------------------------------------------------------------- */

/* Source: LuaJIT v2.1 src/lj_ctype.h. */
static const struct fake_ctype types[] = {
	{ 0, 0, NULL },
	{ 0x00030000, 8, NULL },	      /* 1 int64_t */
	{ 0x00830000, 8, NULL },	      /* 2 uint64_t */
	{ 0x00020000, 4, NULL },	      /* 3 int */
	{ 0x04030000, 8, NULL },	      /* 4 double */
	{ 0x10030000, 24, "point" },	      /* 5 struct */
	{ 0x20030005, 8, NULL },	      /* 6 struct point * */
	{ 0x30020003, 40, NULL },	      /* 7 int [10] */
	{ 0x20030007, 8, NULL },	      /* 8 int (*)[10] */
	{ 0x80010000 | 5, 0x02000000, NULL }, /* 9 const struct point */
	{ 0x60000003, 1, NULL },	      /* 10 int () */
	{ 0x2003000c, 8, NULL },	      /* 11 a pointer to itself: 11 -> 12 -> 11 */
	{ 0x2003000b, 8, NULL },	      /* 12 */
	{ 0x08800000, 1, NULL },	      /* 13 bool */
	{ 0x2003fff0, 8, NULL },	      /* 14 a pointer to what is not there */
	{ 0xf0000000, 0, NULL },	      /* 15 no type */
	{ 0x04040000, 16, NULL },	      /* 16 long double */
};

static void expect_cdata(struct shelf *shelf, uint16_t id, const char *text,
			 enum luastate_cdata_kind kind, int64_t integer)
{
	static const uint8_t bytes[40] = { 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const struct luastate_value *got = read_object(
		shelf, shelf->layout->tag_cdata, fake_cdata(shelf->vm, id, bytes, sizeof(bytes)));

	assert_int_equal(LUASTATE_VALUE_CDATA, got->type);
	if (text)
		assert_string_equal(text, got->text);
	else
		assert_null(got->text);
	assert_int_equal(kind, got->cdata_kind);
	assert_true(got->integer == integer);
}

static void test_cdata(void **state)
{
	struct shelf shelf;

	begin(&shelf, *state);
	fake_ctypes(shelf.vm, types, sizeof(types) / sizeof(types[0]));
	expect_cdata(&shelf, 1, "int64_t", LUASTATE_CDATA_INTEGER, -2);
	expect_cdata(&shelf, 2, "uint64_t", LUASTATE_CDATA_UNSIGNED, -2);
	expect_cdata(&shelf, 3, "int", LUASTATE_CDATA_INTEGER, -2);
	expect_cdata(&shelf, 4, "double", LUASTATE_CDATA_NUMBER, 0);
	expect_cdata(&shelf, 5, "struct point", LUASTATE_CDATA_OPAQUE, 0);
	expect_cdata(&shelf, 6, "struct point *", LUASTATE_CDATA_POINTER, -2);
	expect_cdata(&shelf, 7, "int [10]", LUASTATE_CDATA_OPAQUE, 0);
	expect_cdata(&shelf, 8, "int (*)[10]", LUASTATE_CDATA_POINTER, -2);
	expect_cdata(&shelf, 9, "const struct point", LUASTATE_CDATA_OPAQUE, 0);
	expect_cdata(&shelf, 10, "int ()", LUASTATE_CDATA_POINTER, -2);
	expect_cdata(&shelf, 13, "bool", LUASTATE_CDATA_BOOLEAN, 0);
	expect_cdata(&shelf, 16, "long double", LUASTATE_CDATA_OPAQUE, 0);
	/* Circles, what is not there, what is no type. */
	expect_cdata(&shelf, 11, NULL, LUASTATE_CDATA_OPAQUE, 0);
	expect_cdata(&shelf, 14, NULL, LUASTATE_CDATA_OPAQUE, 0);
	expect_cdata(&shelf, 15, NULL, LUASTATE_CDATA_OPAQUE, 0);
	expect_cdata(&shelf, 0, NULL, LUASTATE_CDATA_OPAQUE, 0);
	expect_cdata(&shelf, UINT16_MAX, NULL, LUASTATE_CDATA_OPAQUE, 0);
	luastate_variables_destroy(shelf.variables);
}

static void test_foreign_ctypes(void **state)
{
	struct shelf shelf;
	uint64_t cts;

	begin(&shelf, *state);
	/* No FFI yet. */
	fake_put_ref(shelf.vm, fake_member(shelf.vm->G, shelf.layout->global_State_ctype_state), 0);
	expect_cdata(&shelf, 1, NULL, LUASTATE_CDATA_OPAQUE, 0);
	cts = fake_ctypes(shelf.vm, types, sizeof(types) / sizeof(types[0]));
	fake_put_u64(shelf.vm, cts + 24, shelf.vm->G + 8); /* of another VM */
	expect_cdata(&shelf, 1, NULL, LUASTATE_CDATA_OPAQUE, 0);
	luastate_variables_destroy(shelf.variables);
}

/* ---- Noise ------------------------------------------------------------------------------ */

/* Any bytes in all objects: no value takes more than the budget, none is read where it is not. */
static void test_noise(void **state)
{
	enum { ROUNDS = 3000, CHANGES = 12 };
	struct shelf shelf;
	struct fake_vm *vm;
	uint64_t root, inner, state_of_noise = 1;
	size_t begin_at, end_at, kept;

	begin(&shelf, *state);
	vm = shelf.vm;
	end_at = vm->next;
	fake_ctypes(vm, types, sizeof(types) / sizeof(types[0]));
	root = fake_table(vm, 16);
	inner = fake_array(vm, 1, (const uint64_t[]){ fake_tag(vm, shelf.layout->tag_tab, root) });
	fake_table_set(vm, root, "text", string(&shelf, "some text"));
	fake_table_set(vm, root, "inner", fake_tag(vm, shelf.layout->tag_tab, inner));
	fake_table_set(vm, root, "thread",
		       fake_tag(vm, shelf.layout->tag_thread, fake_coroutine(vm, 8)));
	fake_table_set(vm, root, "userdata",
		       fake_tag(vm, shelf.layout->tag_udata, fake_userdata(vm, 8, root)));
	for (uint16_t id = 1; id < 10; id++)
		fake_table_set(
			vm, root, "cdata",
			fake_tag(vm, shelf.layout->tag_cdata, fake_cdata(vm, id, "8 bytes", 8)));
	begin_at = kept = vm->next;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint8_t *bytes = malloc(end_at - begin_at);

		MUST(bytes);
		memcpy(bytes, vm->bytes + begin_at, end_at - begin_at);
		for (int i = 0; i < CHANGES; i++) {
			state_of_noise = state_of_noise * UINT64_C(6364136223846793005) + 1442695;
			vm->bytes[begin_at + (state_of_noise >> 33) % (end_at - begin_at)] ^=
				(uint8_t)(state_of_noise >> 25);
		}
		shelf.options = LUASTATE_VALUES_DEFAULTS;
		shelf.options.depth = 6;
		shelf.options.entries = 40;
		shelf.options.values_left = 2000;
		read_object(&shelf, shelf.layout->tag_tab, root);
		memcpy(vm->bytes + begin_at, bytes, end_at - begin_at);
		free(bytes);
		/* What the reading was made with is not needed any more. */
		memset(vm->known + vm->next, 0, kept - vm->next);
		vm->next = kept;
	}
	luastate_variables_destroy(shelf.variables);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_plain),
		SAMPLE_TEST(test_numbers),
		SAMPLE_TEST(test_light_userdata),
		SAMPLE_TEST(test_strings),
		SAMPLE_TEST(test_what_is_no_object),
		SAMPLE_TEST(test_table),
		SAMPLE_TEST(test_hash),
		SAMPLE_TEST(test_cycles),
		SAMPLE_TEST(test_breadth),
		SAMPLE_TEST(test_hostile_tables),
		SAMPLE_TEST(test_large_table),
		SAMPLE_TEST(test_functions),
		SAMPLE_TEST(test_coroutines),
		SAMPLE_TEST(test_userdata),
		SAMPLE_TEST(test_cdata),
		SAMPLE_TEST(test_foreign_ctypes),
		SAMPLE_TEST(test_noise),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
