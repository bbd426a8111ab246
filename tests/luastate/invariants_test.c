/* SPDX-License-Identifier: MIT */
/* The invariants of a VM: each one broken alone is refused, and named. */
#include "sample.h"
#include "luastate/state/invariants.h"

/** What the check has said of the invariants of one VM. */
struct verdict {
	const char *failed[32]; /* in their order */
	size_t failed_count, held;
	uint64_t address, value; /* of the first that failed */
};

static void note(void *context, const char *what, uint64_t address, uint64_t value, bool holds)
{
	struct verdict *verdict = context;

	assert_non_null(what);
	if (holds) {
		verdict->held++;
		return;
	}
	if (verdict->failed_count == 0) {
		verdict->address = address;
		verdict->value = value;
	}
	assert_true(verdict->failed_count < sizeof(verdict->failed) / sizeof(verdict->failed[0]));
	verdict->failed[verdict->failed_count++] = what;
}

static bool check(struct sample *sample, struct verdict *ret_verdict)
{
	struct fake_vm *vm = sample->vm;
	bool good;

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	good = state_check_vm(sample->state, vm->layout, &vm->reader, vm->G, note, ret_verdict);
	assert_int_equal(good, ret_verdict->failed_count == 0);
	assert_int_equal(good,
			 state_check_vm(sample->state, vm->layout, &vm->reader, vm->G, NULL, NULL));
	return good;
}

/* All hold, and a recording tells how many there are. */
static void test_all_hold(void **state)
{
	struct sample *sample = *state;
	struct verdict verdict;
	size_t held;

	assert_true(check(sample, &verdict));
	held = verdict.held;
	assert_true(held >= 15);
	/* Whatever has happened so far: compiled code, another coroutine, a phase of the collector.
	 */
	fake_trace(sample->vm, 1, 4, fake_caller(sample->vm, "@a.lua", 1, "f"), 1);
	fake_put_ref(sample->vm, fake_member(sample->vm->G, sample->vm->layout->global_State_cur_L),
		     fake_coroutine(sample->vm, 16));
	fake_put_u8(sample->vm,
		    fake_member(sample->vm->G, sample->vm->layout->global_State_gc_state), 5);
	assert_true(check(sample, &verdict));
	assert_int_equal(held, verdict.held);
	fake_put_ref(sample->vm, fake_member(sample->vm->G, sample->vm->layout->global_State_cur_L),
		     0);
	assert_true(check(sample, &verdict));
}

/* Objects whose members are broken. */
enum object { MAIN, G, J, CURRENT, STACK, CURRENT_STACK, TRACE, TRACES, REGISTRY };

struct breakage {
	const char *what; /* the invariant that tells */
	enum object object;
	int32_t offset;
	unsigned width; /* bytes; 0: that of a reference */
	uint64_t value;
};

/* The VM of all breakages. */
struct scene {
	uint64_t objects[REGISTRY + 1];
	uint64_t proto;
};

static struct scene make_scene(struct fake_vm *vm)
{
	const struct luastate_layout *layout = vm->layout;
	struct scene scene = { .proto = fake_caller(vm, "@a.lua", 1, "f") };
	uint64_t current = fake_coroutine(vm, 16);

	scene.objects[MAIN] = vm->main;
	scene.objects[G] = vm->G;
	scene.objects[J] = fake_member(vm->G, layout->global_State_to_J);
	scene.objects[CURRENT] = current;
	scene.objects[STACK] = fake_L_get(vm, vm->main, layout->lua_State_stack);
	scene.objects[CURRENT_STACK] = fake_L_get(vm, current, layout->lua_State_stack);
	scene.objects[TRACE] = fake_trace(vm, 2, 4, scene.proto, 1);
	scene.objects[TRACES] =
		fake_get_u64(vm, fake_member(scene.objects[J], layout->jit_State_trace));
	scene.objects[REGISTRY] = vm->registry;
	fake_put_ref(vm, fake_member(vm->G, layout->global_State_cur_L), current);
	return scene;
}

static void expect_told(struct sample *sample, const struct scene *scene,
			const struct breakage *breakage)
{
	struct fake_vm *vm = sample->vm;
	size_t width = breakage->width ? breakage->width : (size_t)vm->layout->ref_size;
	uint64_t at = fake_member(scene->objects[breakage->object], breakage->offset);
	struct verdict verdict;
	uint8_t kept[8];

	memcpy(kept, fake_at(vm, at, width), width);
	fake_put(vm, at, &breakage->value, width);
	assert_false(check(sample, &verdict));
	assert_string_equal(breakage->what, verdict.failed[0]);
	fake_put(vm, at, kept, width);
	assert_true(check(sample, &verdict));
}

#define EXPECT_TOLD(...)                                                         \
	do {                                                                     \
		const struct breakage list_[] = { __VA_ARGS__ };                 \
		for (size_t i_ = 0; i_ < sizeof(list_) / sizeof(list_[0]); i_++) \
			expect_told(sample, &scene, &list_[i_]);                 \
	} while (0)

static void test_main(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct scene scene = make_scene(vm);
	static const char type[] = "the main coroutine is a coroutine";
	static const char glref[] = "it refers to the global state right behind it";
	static const char back[] = "the global state refers back to it";

	EXPECT_TOLD({ type, MAIN, layout->GCobj_gct, 1, 5 },
		    { type, MAIN, layout->GCobj_gct, 1, 0 },
		    { glref, MAIN, layout->lua_State_glref, 0, 0 },
		    { glref, MAIN, layout->lua_State_glref, 0, vm->G + 8 },
		    { glref, MAIN, layout->lua_State_glref, 0, vm->G - 8 },
		    { glref, MAIN, layout->lua_State_glref, 0, vm->main },
		    { back, G, layout->global_State_mainthref, 0, 0 },
		    { back, G, layout->global_State_mainthref, 0, vm->main + 8 });
}

static void test_strings(void **state)
{
	struct sample *sample = *state;
	const struct luastate_layout *layout = sample->vm->layout;
	struct scene scene = make_scene(sample->vm);
	static const char mask[] = "the string table's mask is 2^n-1";
	int32_t empty = layout->global_State_strempty;

	EXPECT_TOLD({ "the empty string is a string", G, empty + layout->GCobj_gct, 1, 5 },
		    { "its length is 0", G, empty + layout->GCstr_len, 4, 1 },
		    { "its text is terminated", G, layout->global_State_stremptyz, 1, 'x' },
		    { mask, G, layout->global_State_str_mask, 4, 0 },
		    { mask, G, layout->global_State_str_mask, 4, 127 },
		    { mask, G, layout->global_State_str_mask, 4, 254 },
		    { mask, G, layout->global_State_str_mask, 4, 256 });
}

static void test_state(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct scene scene = make_scene(vm);
	static const char phase[] = "the collector is in a phase";
	static const char in_state[] = "the VM is in a state";
	static const char registry[] = "the registry is a table";
	uint64_t beyond = (uint64_t) ~(int64_t)(layout->vmst_asm + 1);

	EXPECT_TOLD({ phase, G, layout->global_State_gc_state, 1, 6 },
		    { phase, G, layout->global_State_gc_state, 1, 255 },
		    { in_state, G, layout->global_State_vmstate, 4, 0 },
		    { in_state, G, layout->global_State_vmstate, 4, beyond },
		    { in_state, G, layout->global_State_vmstate, 4, 65536 },
		    { in_state, G, layout->global_State_vmstate, 4, 0x80000000u },
		    { registry, G, layout->global_State_registrytv, 8, 0 },
		    { registry, G, layout->global_State_registrytv, 8, UINT64_MAX },
		    { registry, G, layout->global_State_registrytv, 8,
		      fake_tag(vm, layout->tag_tab, vm->main) },
		    { registry, G, layout->global_State_registrytv, 8,
		      fake_tag(vm, layout->tag_func, vm->registry) },
		    { registry, REGISTRY, layout->GCtab_hmask, 4, 2 },
		    { registry, REGISTRY, layout->GCobj_gct, 1, 0 });
}

static void test_coroutines(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct scene scene = make_scene(vm);
	static const char current[] = "the current coroutine is of this VM";
	static const char stack[] = "its stack holds it in its lowest slot";
	static const char base[] = "the base of compiled code is none or a slot";
	uint64_t lowest = scene.objects[STACK];

	EXPECT_TOLD({ current, G, layout->global_State_cur_L, 0, 8 },
		    { current, G, layout->global_State_cur_L, 0, vm->registry },
		    { current, G, layout->global_State_cur_L, 0, scene.objects[CURRENT] + 4 },
		    { current, CURRENT, layout->lua_State_glref, 0, vm->G + 8 },
		    { current, CURRENT, layout->GCobj_gct, 1, 5 },
		    { base, G, layout->global_State_jit_base, 0, 4 },
		    { base, G, layout->global_State_jit_base, 0, lowest + 4 });
	for (int i = 0; i < 2; i++) {
		enum object L = i ? CURRENT : MAIN, slots = i ? CURRENT_STACK : STACK;
		uint64_t own = scene.objects[slots];

		EXPECT_TOLD({ stack, L, layout->lua_State_stack, 0, 0 },
			    { stack, L, layout->lua_State_stack, 0, own + 8 },
			    { stack, L, layout->lua_State_stack, 0, own - 8 },
			    { stack, L, layout->lua_State_maxstack, 0, own },
			    { stack, L, layout->lua_State_maxstack, 0, 0 },
			    { stack, L, layout->lua_State_stacksize, 4, 0 },
			    { stack, L, layout->lua_State_stacksize, 4, UINT32_MAX },
			    { stack, L, layout->lua_State_base, 8, 0 },
			    { stack, L, layout->lua_State_base, 8, own },
			    { stack, L, layout->lua_State_base, 8, own + 4 },
			    { stack, L, layout->lua_State_base, 8, UINT64_MAX - 7 },
			    { stack, L, layout->lua_State_top, 8, own + 12 },
			    { stack, slots, 0, 8, fake_tag(vm, layout->tag_thread, vm->G) });
	}
}

static void test_dispatch(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct scene scene = make_scene(vm);
	static const char dispatch[] = "the dispatch table leads into one interpreter";
	static const char behind[] = "the built-ins' bytecode follows it";
	int32_t to = layout->global_State_to_dispatch, bcff = layout->global_State_to_bcff;

	EXPECT_TOLD({ dispatch, G, to, 8, 0 }, { dispatch, G, to, 8, vm->code - 1 },
		    { dispatch, G, to, 8, vm->code + FAKE_CODE_BYTES },
		    { dispatch, G, to + 8 * layout->BC__MAX, 8, vm->host },
		    { dispatch, G, bcff - 8, 8, 0 },
		    { behind, G, bcff, 1, (uint64_t)layout->BC__MAX + 1 },
		    { behind, G, bcff + 4 * (layout->GG_NUM_ASMFF - 1), 1, 0 });
}

static void test_compiler(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct scene scene = make_scene(vm);
	static const char names[] = "the compiler's state names an object or none";
	static const char traces[] = "its traces have their numbers and parts";
	uint64_t trace = scene.objects[TRACE];

	EXPECT_TOLD({ names, J, layout->jit_State_L, 8, 4 },
		    { names, J, layout->jit_State_L, 8, vm->main + 4 },
		    { names, J, layout->jit_State_L, 8, UINT64_MAX },
		    { traces, J, layout->jit_State_trace, 8, 0 },
		    { traces, J, layout->jit_State_trace, 8, FAKE_END },
		    { traces, J, layout->jit_State_sizetrace, 4, 0 },
		    { traces, J, layout->jit_State_sizetrace, 4, 65537 },
		    { traces, J, layout->jit_State_freetrace, 4, 5 },
		    { traces, TRACES, 0, 0, trace }, /* number 0 is none */
		    { traces, TRACES, layout->ref_size, 0, trace },
		    { traces, TRACES, layout->ref_size, 0, vm->main },
		    { traces, TRACE, layout->GCobj_gct, 1, 0 },
		    { traces, TRACE, layout->GCtrace_traceno, 2, 3 },
		    { traces, TRACE, layout->GCtrace_nins, 4, 0x8000 },
		    { traces, TRACE, layout->GCtrace_nins, 4, 0x8000 + 41 },
		    { traces, TRACE, layout->GCtrace_nk, 4, 0x8001 },
		    { traces, TRACE, layout->GCtrace_nsnap, 2, 6 },
		    { traces, TRACE, layout->GCtrace_snap, 8, trace + 8 },
		    { traces, TRACE, layout->GCtrace_snapmap, 8, trace + 8 },
		    { traces, TRACE, layout->GCtrace_linktype, 1, 9 },
		    { traces, TRACE, layout->GCtrace_mcode, 8, 0 },
		    { traces, TRACE, layout->GCtrace_szmcode, 4, 0 },
		    { traces, TRACE, layout->GCtrace_startpc, 0, 0 },
		    { traces, TRACE, layout->GCtrace_startpt, 0, vm->main });
}

/* The frames that the code's unwind rule tells are not those of the layout. */
static void test_frames_of_another_size(void **state)
{
	struct sample *sample = *state;
	struct verdict verdict;

	for (int i = 0; i < 2; i++) {
		int32_t *number = i ? &sample->state->interpreters[0].shape.prev
				    : &sample->state->interpreters[0].shape.size;

		*number += 16;
		assert_false(check(sample, &verdict));
		assert_string_equal("its C frames have this size", verdict.failed[0]);
		*number -= 16;
	}
	assert_true(check(sample, &verdict));
}

static void test_memory_that_cannot_be_read(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct verdict verdict;
	static const char readable[] = "the global state is readable";
	const struct {
		const char *what;
		uint64_t address;
	} holes[] = {
		{ readable, vm->main },
		{ readable, vm->G - 1 },
		{ readable, vm->G },
		{ readable, fake_member(vm->G, layout->global_State_sizeof - 1) },
		{ "the registry is a table", vm->registry },
		{ "its stack holds it in its lowest slot",
		  fake_L_get(vm, vm->main, layout->lua_State_stack) },
		{ "the dispatch table leads into one interpreter",
		  fake_member(vm->G, layout->global_State_to_dispatch) },
		{ "the dispatch table leads into one interpreter",
		  fake_member(vm->G, layout->global_State_to_bcff) },
		{ "its traces have their numbers and parts",
		  fake_member(vm->G, layout->global_State_to_J + layout->jit_State_trace) },
	};

	for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
		fake_hide(vm, holes[i].address, 1);
		assert_false(check(sample, &verdict));
		assert_string_equal(holes[i].what, verdict.failed[0]);
		fake_show(vm, holes[i].address, 1);
	}
	assert_true(check(sample, &verdict));
}

/* One who explains hears of all invariants, also of those behind the first that fails. */
static void test_all_are_told(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct verdict verdict;
	size_t all;

	assert_true(check(sample, &verdict));
	all = verdict.held;
	fake_put_u32(vm, fake_member(vm->G, layout->global_State_str_mask), 5);
	fake_put_u32(vm, fake_member(vm->G, layout->global_State_vmstate), 0);
	fake_put_u64(vm, fake_member(vm->G, layout->global_State_to_dispatch), 77);
	assert_false(check(sample, &verdict));
	assert_int_equal(all, verdict.held + verdict.failed_count);
	assert_int_equal(fake_member(vm->G, layout->global_State_str_mask), verdict.address);
	assert_int_equal(5, verdict.value);
	assert_string_equal("the string table's mask is 2^n-1", verdict.failed[0]);
	assert_string_equal("the VM is in a state", verdict.failed[1]);
	assert_string_equal("the dispatch table leads into one interpreter", verdict.failed[2]);
}

/* ---- Explaining ------------------------------------------------------------------------- */

/* A VM that fits no layout is explained by the one that comes nearest. */
static void test_examine(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct luastate *lua = fake_vm_open(vm, false);
	struct luastate_examination examined = { 0 };
	const uint64_t *refused;
	struct verdict verdict = { 0 };

	assert_int_equal(0, luastate_refused(lua, &refused));
	fake_put_u32(vm, fake_member(vm->G, vm->layout->global_State_str_mask), 5);
	assert_int_equal(0,
			 luastate_examine(lua, &vm->reader, vm->main, note, &verdict, &examined));
	assert_false(examined.fits);
	assert_int_equal(vm->G, examined.G);
	assert_int_equal(1, verdict.failed_count);
	assert_string_equal("the string table's mask is 2^n-1", verdict.failed[0]);
	assert_int_equal(vm->layout->global_State_str_mask, examined.layout->global_State_str_mask);
	/* It is remembered, once. */
	assert_null(luastate_vm_of(lua, &vm->reader, vm->main, &sample->why));
	assert_int_equal(1, luastate_refused(lua, &refused));
	assert_int_equal(vm->main, refused[0]);
	/* Nothing is said of what is no coroutine. */
	assert_int_equal(
		-1, luastate_examine(lua, &vm->reader, vm->registry, note, &verdict, &examined));
	fake_put_u32(vm, fake_member(vm->G, vm->layout->global_State_str_mask), 255);
	memset(&verdict, 0, sizeof(verdict));
	assert_int_equal(0,
			 luastate_examine(lua, &vm->reader, vm->main, note, &verdict, &examined));
	assert_true(examined.fits);
	assert_int_equal(0, verdict.failed_count);
	/* What fits at another look is not refused. */
	assert_non_null(luastate_vm_of(lua, &vm->reader, vm->main, &sample->why));
	assert_int_equal(0, luastate_refused(lua, &refused));
	luastate_destroy(lua);
}

static void test_refused_are_few(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const uint64_t *refused;

	luastate_destroy(sample->state);
	sample->state = fake_vm_open(vm, false);
	fake_put_u32(vm, fake_member(vm->G, vm->layout->global_State_str_mask), 5);
	for (int i = 0; i < STATE_REFUSED_MAX + 5; i++)
		assert_null(luastate_vm_of(sample->state, &vm->reader, fake_coroutine(vm, 16),
					   &sample->why));
	assert_int_equal(STATE_REFUSED_MAX, luastate_refused(sample->state, &refused));
	luastate_reset(sample->state);
	assert_int_equal(0, luastate_refused(sample->state, &refused));
}

static void test_version(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t jit = fake_module(vm, "jit", 4);
	char text[16] = "unchanged";

	assert_int_equal(-1, luastate_read_version(sample->state, &vm->reader, vm->G, text,
						   sizeof(text), &sample->why));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	assert_string_equal("unchanged", text);
	fake_table_set(vm, jit, "version",
		       fake_tag(vm, vm->layout->tag_str, fake_string(vm, "LuaJIT 2.1.1 and more")));
	assert_int_equal(0, luastate_read_version(sample->state, &vm->reader, vm->G, text,
						  sizeof(text), &sample->why));
	assert_string_equal("LuaJIT 2.1.1 an", text);
	assert_int_equal(-1, luastate_read_version(sample->state, &vm->reader, vm->G + 8, text,
						   sizeof(text), &sample->why));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_all_hold),
		SAMPLE_TEST(test_main),
		SAMPLE_TEST(test_strings),
		SAMPLE_TEST(test_state),
		SAMPLE_TEST(test_coroutines),
		SAMPLE_TEST(test_dispatch),
		SAMPLE_TEST(test_compiler),
		SAMPLE_TEST(test_frames_of_another_size),
		SAMPLE_TEST(test_memory_that_cannot_be_read),
		SAMPLE_TEST(test_all_are_told),
		SAMPLE_TEST(test_examine),
		SAMPLE_TEST(test_refused_are_few),
		SAMPLE_TEST(test_version),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
