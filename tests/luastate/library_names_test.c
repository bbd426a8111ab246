/* SPDX-License-Identifier: MIT */
/* Names of fast functions and of C functions, from the target's own tables. */
#include "sample.h"
#include "attach/clock.h"
#include "luastate/function/callables.h"
#include "luastate/function/library_names.h"

#include <stdio.h>

enum { C_CODE = 0x5000 };

static const char *ff_name(struct sample *sample, int ffid)
{
	/* An address of its own for each number. */
	return state_get_callable(sample->state, LUASTATE_BUILTIN, 0x900000 + (uint64_t)ffid, ffid)
		->name;
}

static const char *c_name(struct sample *sample, uint64_t f)
{
	return state_get_callable(sample->state, LUASTATE_C, f, 1)->name;
}

static int load(struct sample *sample)
{
	sample->why = (struct failure){ 0 };
	return luastate_load_names(sample->state, &sample->vm->reader, sample->vm->G, &sample->why);
}

static void add_ff(struct sample *sample, uint64_t module, const char *name, uint8_t ffid)
{
	fake_module_set(sample->vm, module, name, fake_asm_function(sample->vm, ffid, 1));
}

static void add_c(struct sample *sample, uint64_t module, const char *name, uint64_t f)
{
	fake_module_set(sample->vm, module, name, fake_c_function(sample->vm, f));
}

static void make_builtin(struct sample *sample)
{
	struct fake_vm *vm = sample->vm;
	uint64_t globals = fake_module(vm, "_G", 16);
	uint64_t string = fake_module(vm, "string", 8);
	uint64_t coroutine = fake_module(vm, "coroutine", 8);

	add_ff(sample, globals, "print", 10);
	add_ff(sample, globals, "ipairs", 12);
	fake_table_set(vm, globals, "string", fake_tag(vm, vm->layout->tag_tab, string));
	fake_table_set(vm, globals, "_G", fake_tag(vm, vm->layout->tag_tab, globals));
	add_ff(sample, string, "gsub", 80);
	add_ff(sample, string, "gmatch", 82);
	add_ff(sample, coroutine, "wrap", 41);
}

static void test_names_of_libraries(void **state)
{
	struct sample *sample = *state;

	make_builtin(sample);
	add_c(sample, fake_module(sample->vm, "cjson", 4), "encode", C_CODE);
	add_c(sample, fake_module(sample->vm, "socket.core", 4), "tcp", C_CODE + 16);
	assert_int_equal(0, load(sample));
	assert_string_equal("print", ff_name(sample, 10));
	assert_string_equal("ipairs", ff_name(sample, 12));
	assert_string_equal("string.gsub", ff_name(sample, 80));
	assert_string_equal("coroutine.wrap", ff_name(sample, 41));
	assert_string_equal("cjson.encode", c_name(sample, C_CODE));
	assert_string_equal("socket.core.tcp", c_name(sample, C_CODE + 16));
	assert_null(c_name(sample, C_CODE + 1));
}

static void test_functions_that_no_table_holds(void **state)
{
	struct sample *sample = *state;

	make_builtin(sample);
	assert_int_equal(0, load(sample));
	assert_string_equal("ipairs_aux", ff_name(sample, 11));
	assert_string_equal("string.gmatch_aux", ff_name(sample, 81));
	assert_string_equal("coroutine.wrap_aux", ff_name(sample, 40));
	assert_string_equal("builtin#99", ff_name(sample, 99));
	assert_string_equal("builtin#255", ff_name(sample, 255));
}

/* A userdata in a module's table, and the table of its methods. */
static uint64_t make_object(struct sample *sample, uint64_t module, const char *key)
{
	const struct luastate_layout *layout = sample->vm->layout;
	uint64_t methods = fake_table(sample->vm, 8);
	uint64_t object = fake_alloc(sample->vm, (size_t)layout->GCudata_sizeof);

	fake_put_u8(sample->vm, fake_member(object, layout->GCobj_gct),
		    (uint8_t)state_gct(layout->tag_udata));
	fake_put_ref(sample->vm, fake_member(object, layout->GCudata_metatable), methods);
	fake_table_set(sample->vm, module, key, fake_tag(sample->vm, layout->tag_udata, object));
	return methods;
}

/* Those of whole libraries, by what is known of the order of their definitions. */
static void test_functions_of_the_ffi(void **state)
{
	struct sample *sample = *state;
	uint64_t ffi = fake_module(sample->vm, "ffi", 8);

	add_ff(sample, ffi, "cdef", 187);
	assert_int_equal(0, load(sample));
	assert_string_equal("builtin#163", ff_name(sample, 163));
	assert_string_equal("ffi.meta.__index", ff_name(sample, 164));
	assert_string_equal("ffi.meta.__call", ff_name(sample, 171));
	assert_string_equal("ffi.meta.__unm", ff_name(sample, 178));
	assert_string_equal("ffi.meta.__ipairs", ff_name(sample, 181));
	assert_string_equal("ffi.clib.__index", ff_name(sample, 182));
	assert_string_equal("ffi.clib.__gc", ff_name(sample, 184));
	assert_string_equal("ffi.callback.set", ff_name(sample, 186));
	assert_string_equal("ffi.cdef", ff_name(sample, 187));
}

/* Also those that modules and the registry hold, as C libraries make them. */
static void test_methods_of_modules(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t ngx = fake_module(vm, "ngx", 8), header = fake_table(vm, 4),
		 meta = fake_table(vm, 4), class = fake_table(vm, 4), index = fake_table(vm, 4),
		 data = fake_table(vm, 8192);

	fake_table_set(vm, ngx, "header", fake_tag(vm, layout->tag_tab, header));
	fake_put_ref(vm, fake_member(header, layout->GCtab_metatable), meta);
	add_c(sample, header, "clear", C_CODE);
	add_c(sample, meta, "__newindex", C_CODE + 16);
	add_c(sample, make_object(sample, ngx, "socket"), "send", C_CODE + 32);
	fake_table_set(vm, vm->registry, "tcp{client}", fake_tag(vm, layout->tag_tab, class));
	fake_table_set(vm, class, "__index", fake_tag(vm, layout->tag_tab, index));
	add_c(sample, class, "__gc", C_CODE + 48);
	add_c(sample, index, "receive", C_CODE + 64);
	/* Its own module's name comes first. */
	fake_table_set(vm, ngx, "again", fake_tag(vm, layout->tag_tab, ngx));
	add_c(sample, ngx, "say", C_CODE + 80);
	/* Data. */
	fake_table_set(vm, ngx, "data", fake_tag(vm, layout->tag_tab, data));
	add_c(sample, data, "many", C_CODE + 96);
	assert_int_equal(0, load(sample));
	assert_string_equal("ngx.header.clear", c_name(sample, C_CODE));
	assert_string_equal("ngx.header.__newindex", c_name(sample, C_CODE + 16));
	assert_string_equal("ngx.socket.send", c_name(sample, C_CODE + 32));
	assert_string_equal("tcp{client}.__gc", c_name(sample, C_CODE + 48));
	assert_string_equal("tcp{client}.receive", c_name(sample, C_CODE + 64));
	assert_string_equal("ngx.say", c_name(sample, C_CODE + 80));
	assert_null(c_name(sample, C_CODE + 96));
}

/* What the process shows comes first: of a library that has one more function than ours. */
static void test_methods_of_objects(void **state)
{
	struct sample *sample = *state;
	uint64_t io = fake_module(sample->vm, "io", 8), ffi = fake_module(sample->vm, "ffi", 8);
	uint64_t methods = make_object(sample, io, "stdout"), clib = make_object(sample, ffi, "C");

	add_ff(sample, io, "open", 110);
	add_ff(sample, methods, "close", 98);
	add_ff(sample, methods, "write", 100);
	add_ff(sample, methods, "reopen", 104);
	add_ff(sample, ffi, "cdef", 190);
	add_ff(sample, clib, "__index", 180);
	make_object(sample, io, "other");
	assert_int_equal(0, load(sample));
	assert_string_equal("io.method.close", ff_name(sample, 98));
	assert_string_equal("io.method.reopen", ff_name(sample, 104));
	/* Nothing is said where the order is another one. */
	assert_string_equal("builtin#101", ff_name(sample, 101));
	assert_string_equal("ffi.clib.__index", ff_name(sample, 180));
	assert_string_equal("ffi.meta.__ipairs", ff_name(sample, 179));
	assert_string_equal("ffi.callback.free", ff_name(sample, 188));
}

static void test_a_visible_name_comes_first(void **state)
{
	struct sample *sample = *state;
	uint64_t globals = fake_module(sample->vm, "_G", 8);

	/* The one before ipairs has a name of its own. */
	add_ff(sample, globals, "next", 11);
	add_ff(sample, globals, "ipairs", 12);
	assert_int_equal(0, load(sample));
	assert_string_equal("next", ff_name(sample, 11));
}

static void test_others_cannot_rename(void **state)
{
	struct sample *sample = *state;
	uint64_t module = fake_module(sample->vm, "aaa", 8);

	add_ff(sample, module, "my_gsub", 80);
	add_ff(sample, module, "my_own", 90);
	make_builtin(sample);
	add_c(sample, fake_module(sample->vm, "os", 4), "clock", C_CODE);
	add_c(sample, module, "clock_alias", C_CODE);
	assert_int_equal(0, load(sample));
	assert_string_equal("string.gsub", ff_name(sample, 80));
	assert_string_equal("builtin#90", ff_name(sample, 90));
	assert_string_equal("os.clock", c_name(sample, C_CODE));
}

static void test_modules_that_are_functions(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;

	add_c(sample, vm->loaded, "single", C_CODE);
	fake_table_set(vm, vm->loaded, "flag", fake_tag(vm, -3, 0)); /* true */
	assert_int_equal(0, load(sample));
	assert_string_equal("single", c_name(sample, C_CODE));
}

static void test_names_that_are_refused(void **state)
{
	static const char *const names[] = {
		"", " ", "a b", "a;b", "tab\t", "new\nline", "\x1b[0m"
	};
	struct sample *sample = *state;
	uint64_t module = fake_module(sample->vm, "module", 16);

	for (size_t i = 0; i + 1 < sizeof(names) / sizeof(names[0]); i++)
		add_c(sample, module, names[i + 1], C_CODE + i + 1);
	assert_int_equal(0, load(sample));
	for (size_t i = 0; i + 1 < sizeof(names) / sizeof(names[0]); i++)
		assert_null(c_name(sample, C_CODE + i + 1));
}

static void test_long_names_are_cut(void **state)
{
	struct sample *sample = *state;
	char module[200], function[200], expected[130];

	memset(module, 'm', sizeof(module));
	memset(function, 'f', sizeof(function));
	module[sizeof(module) - 1] = function[sizeof(function) - 1] = '\0';
	add_c(sample, fake_module(sample->vm, module, 4), function, C_CODE);
	assert_int_equal(0, load(sample));
	snprintf(expected, sizeof(expected), "%.63s.%.63s", module, function);
	assert_string_equal(expected, c_name(sample, C_CODE));
}

/* ---- When ------------------------------------------------------------------------------- */

static void test_names_that_become_known(void **state)
{
	struct sample *sample = *state;
	struct luastate_function *fast, *c;
	uint32_t serial;

	fast = state_get_callable(sample->state, LUASTATE_BUILTIN, 0x900000 + 10, 10);
	c = state_get_callable(sample->state, LUASTATE_C, C_CODE, 1);
	assert_null(fast->name); /* not "builtin#10": the tables were not read */
	assert_null(c->name);
	serial = c->name_serial;
	make_builtin(sample);
	add_c(sample, fake_module(sample->vm, "cjson", 4), "encode", C_CODE);
	assert_int_equal(0, load(sample));
	assert_ptr_equal(c, state_get_callable(sample->state, LUASTATE_C, C_CODE, 1));
	assert_string_equal("cjson.encode", c->name);
	assert_int_equal(serial + 1, c->name_serial);
	state_get_callable(sample->state, LUASTATE_C, C_CODE, 1);
	assert_int_equal(serial + 1, c->name_serial);
	assert_string_equal("print", ff_name(sample, 10));
	assert_string_equal("print", fast->name);
}

static void test_kinds_do_not_mix(void **state)
{
	struct sample *sample = *state;
	struct luastate_function *fast, *c, *trace;

	fast = state_get_callable(sample->state, LUASTATE_BUILTIN, C_CODE, 10);
	c = state_get_callable(sample->state, LUASTATE_C, C_CODE, 1);
	trace = state_get_trace(sample->state, 1, C_CODE, "@file.lua", 3);
	assert_ptr_not_equal(fast, c);
	assert_ptr_not_equal(fast, trace);
	assert_ptr_not_equal(c, trace);
	assert_int_equal(LUASTATE_TRACE, trace->kind);
	assert_ptr_not_equal(trace, state_get_trace(sample->state, 2, C_CODE, "@file.lua", 3));
	/* The number is used again for another start. */
	assert_ptr_not_equal(trace, state_get_trace(sample->state, 1, C_CODE, "@file.lua", 4));
	assert_ptr_equal(trace, state_get_trace(sample->state, 1, C_CODE, "@file.lua", 3));
}

/* The walk looks for names by itself, and not in each sample. */
static void test_walk_loads_once_a_second(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t first, reads;

	make_builtin(sample);
	sample_cframe(sample, vm->main, 1, 0);
	fake_call(vm, vm->main, fake_asm_function(vm, 10, 1), 0, FAKE_LINK_C);
	fake_call(vm, vm->main, fake_c_function(vm, C_CODE), 0, FAKE_LINK_PCALL);
	reads = vm->reads;
	sample_walk(sample);
	first = vm->reads - reads;
	assert_int_equal(2, sample->chain.count);
	assert_null(sample->chain.frames[0].function->name);
	assert_string_equal("print", sample->chain.frames[1].function->name);
	reads = vm->reads;
	sample_walk(sample);
	assert_true(vm->reads - reads < first / 2);
}

/* ---- Hostile tables --------------------------------------------------------------------- */

static void test_registries_that_are_none(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t field = vm->G + (uint64_t)vm->layout->global_State_registrytv;
	const uint64_t values[] = { 0,
				    UINT64_MAX,
				    fake_tag(vm, vm->layout->tag_tab, vm->main),
				    fake_tag(vm, vm->layout->tag_tab, FAKE_END),
				    fake_tag(vm, vm->layout->tag_tab, vm->registry + 4),
				    fake_tag(vm, vm->layout->tag_tab, fake_table(vm, 4)) };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		fake_put_u64(vm, field, values[i]);
		assert_int_equal(-1, load(sample));
		assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	}
	fake_hide(vm, field + 4, 1);
	assert_int_equal(-1, load(sample));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	fake_show(vm, field + 4, 1);
	assert_int_equal(-1,
			 luastate_load_names(sample->state, &vm->reader, vm->G + 8, &sample->why));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
}

static void test_loaded_is_no_table(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t registry = fake_table(vm, 4);

	fake_table_set(vm, registry, "_LOADED",
		       fake_tag(vm, vm->layout->tag_func, fake_c_function(vm, C_CODE)));
	fake_put_u64(vm, vm->G + (uint64_t)vm->layout->global_State_registrytv,
		     fake_tag(vm, vm->layout->tag_tab, registry));
	assert_int_equal(-1, load(sample));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
}

static void test_sizes_of_tables(void **state)
{
	static const uint32_t masks[] = { 65535, 65536, 0x7fffffff, UINT32_MAX, UINT32_MAX - 1 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t module = fake_module(vm, "cjson", 4);

	add_c(sample, module, "encode", C_CODE);
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		fake_put_u32(vm, module + (uint64_t)layout->GCtab_hmask, masks[i]);
		vm->bytes_read = 0;
		assert_int_equal(0, load(sample));
		assert_null(c_name(sample, C_CODE));
		assert_true(vm->bytes_read < 4 << 20);
	}
	fake_put_u32(vm, module + (uint64_t)layout->GCtab_hmask, 3);
	fake_put_u64(vm, module + (uint64_t)layout->GCtab_node, 0);
	assert_int_equal(0, load(sample));
	fake_put_u64(vm, module + (uint64_t)layout->GCtab_node, FAKE_END - 8);
	assert_int_equal(0, load(sample));
	fake_put_u64(vm, module + (uint64_t)layout->GCtab_node, UINT64_MAX);
	assert_int_equal(0, load(sample));
	assert_null(c_name(sample, C_CODE));
	/* The registry's own. */
	fake_put_u32(vm, vm->registry + (uint64_t)layout->GCtab_hmask, 0x7fffffff);
	vm->reads = 0;
	assert_int_equal(-1, load(sample));
	fake_put_u32(vm, vm->registry + (uint64_t)layout->GCtab_hmask, 65535);
	assert_int_equal(0, load(sample));
	fake_put_u64(vm, vm->registry + (uint64_t)layout->GCtab_node, vm->loaded);
	assert_int_equal(-1, load(sample));
	assert_true(vm->reads < 100000);
}

static void test_entries_of_any_content(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	const uint64_t values[] = { 0,
				    UINT64_MAX,
				    fake_tag(vm, layout->tag_func, 0),
				    fake_tag(vm, layout->tag_func, FAKE_END),
				    fake_tag(vm, layout->tag_func, vm->main),
				    fake_tag(vm, layout->tag_tab, vm->main),
				    fake_tag(vm, layout->tag_tab, 8),
				    fake_tag(vm, layout->tag_tab, FAKE_END - 8) };
	uint64_t module = fake_module(vm, "module", 16), node;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		fake_table_set(vm, module, "entry", values[i]);
		fake_table_set(vm, vm->loaded, "other", values[i]);
	}
	/* Keys that are no strings. */
	node = fake_get_u64(vm, module + (uint64_t)layout->GCtab_node) +
	       8 * (uint64_t)layout->Node_sizeof;
	fake_put_u64(vm, node, fake_tag(vm, layout->tag_func, fake_c_function(vm, C_CODE)));
	fake_put_u64(vm, node + 8, fake_tag(vm, layout->tag_str, vm->main));
	fake_put_u64(vm, node + 24, fake_tag(vm, layout->tag_func, fake_c_function(vm, C_CODE)));
	fake_put_u64(vm, node + 32, UINT64_C(0x3ff0000000000000));
	assert_int_equal(0, load(sample));
	assert_null(c_name(sample, C_CODE));
}

static void test_tables_in_circles(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t module = fake_module(vm, "module", 8);

	fake_table_set(vm, module, "self", fake_tag(vm, vm->layout->tag_tab, module));
	fake_table_set(vm, module, "all", fake_tag(vm, vm->layout->tag_tab, vm->loaded));
	fake_table_set(vm, vm->loaded, "loaded", fake_tag(vm, vm->layout->tag_tab, vm->loaded));
	fake_table_set(vm, vm->loaded, "_G", fake_tag(vm, vm->layout->tag_tab, vm->loaded));
	add_c(sample, module, "f", C_CODE);
	vm->reads = 0;
	assert_int_equal(0, load(sample));
	assert_true(vm->reads < 1000);
	assert_string_equal("module.f", c_name(sample, C_CODE));
}

/* Thousands of modules that are all the same large table. */
static void test_work_is_bounded(void **state)
{
	enum { MODULES = 4096, ENTRIES = 8192 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	uint64_t loaded = fake_table(vm, MODULES), large = fake_table(vm, ENTRIES);
	uint64_t key = fake_tag(vm, layout->tag_str, fake_string(vm, "key"));
	uint64_t function = fake_tag(vm, layout->tag_func, fake_c_function(vm, C_CODE));
	uint64_t nodes = fake_get_u64(vm, large + (uint64_t)layout->GCtab_node);

	for (uint64_t i = 0; i < ENTRIES; i++) {
		fake_put_u64(vm, nodes + i * (uint64_t)layout->Node_sizeof, function);
		fake_put_u64(vm, nodes + i * (uint64_t)layout->Node_sizeof + 8, key);
	}
	nodes = fake_get_u64(vm, loaded + (uint64_t)layout->GCtab_node);
	for (uint64_t i = 0; i < MODULES; i++) {
		fake_put_u64(vm, nodes + i * (uint64_t)layout->Node_sizeof,
			     fake_tag(vm, layout->tag_tab, large));
		fake_put_u64(vm, nodes + i * (uint64_t)layout->Node_sizeof + 8, key);
	}
	nodes = fake_get_u64(vm, vm->registry + (uint64_t)layout->GCtab_node);
	fake_put_u64(vm, nodes, fake_tag(vm, layout->tag_tab, loaded));
	vm->reads = 0;
	assert_int_equal(0, load(sample));
	assert_true(vm->reads < 2000000);
	assert_string_equal("key.key", c_name(sample, C_CODE));
}

/** Memory of which each read takes a while. */
struct slow_memory {
	struct attach_reader reader;
	struct fake_vm *vm;
};

static int read_slowly(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	enum { READ_NS = 200 * 1000 };
	struct slow_memory *memory = self;
	uint64_t end_ns = clock_now_ns() + READ_NS;

	while (clock_now_ns() < end_ns)
		;
	return attach_read(&memory->vm->reader, address, ret_bytes, len, why);
}

/* A registry full of other keys. The search for the loaded modules ends with the time. */
static void test_large_registry(void **state)
{
	enum { KEYS = 4096 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct slow_memory slow = { { .read = read_slowly, .self = &slow }, vm };
	uint64_t registry = fake_table(vm, KEYS);
	uint64_t key = fake_tag(vm, layout->tag_str, fake_string(vm, "key"));
	uint64_t nodes = fake_get_u64(vm, registry + (uint64_t)layout->GCtab_node);

	for (uint64_t i = 0; i < KEYS; i++)
		fake_put_u64(vm, nodes + i * (uint64_t)layout->Node_sizeof + 8, key);
	fake_put_u64(vm, vm->G + (uint64_t)layout->global_State_registrytv,
		     fake_tag(vm, layout->tag_tab, registry));
	vm->reads = 0;
	assert_int_equal(-1, luastate_load_names(sample->state, &slow.reader, vm->G, &sample->why));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	assert_true(vm->reads > 64 && vm->reads < KEYS);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_names_of_libraries),
		SAMPLE_TEST(test_functions_that_no_table_holds),
		SAMPLE_TEST(test_functions_of_the_ffi),
		SAMPLE_TEST(test_methods_of_objects),
		SAMPLE_TEST(test_a_visible_name_comes_first),
		SAMPLE_TEST(test_others_cannot_rename),
		SAMPLE_TEST(test_modules_that_are_functions),
		SAMPLE_TEST(test_names_that_are_refused),
		SAMPLE_TEST(test_long_names_are_cut),
		SAMPLE_TEST(test_names_that_become_known),
		SAMPLE_TEST(test_kinds_do_not_mix),
		SAMPLE_TEST(test_walk_loads_once_a_second),
		SAMPLE_TEST(test_registries_that_are_none),
		SAMPLE_TEST(test_loaded_is_no_table),
		SAMPLE_TEST(test_methods_of_modules),
		SAMPLE_TEST(test_sizes_of_tables),
		SAMPLE_TEST(test_entries_of_any_content),
		SAMPLE_TEST(test_tables_in_circles),
		SAMPLE_TEST(test_work_is_bounded),
		SAMPLE_TEST(test_large_registry),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
