/* SPDX-License-Identifier: MIT */
/* Variables of frames: which are alive, where they are, and where they are not. */
#include "fake_values.h"
#include "trace_scene.h"
#include "luastate/variables.h"

/** A function that runs: two parameters, locals, two upvalues. */
struct actor {
	struct sample *sample;
	struct fake_vm *vm;
	uint64_t proto, function, base;
	uint64_t upvalues[2];
	struct luastate_values_options options;
	struct luastate_variables *variables;
};

/* Names and lives: gone lives in instruction 1, mid in 2 and 3, later from 3 on. */
#define VARINFO        \
	"first\0\0\4"  \
	"second\0\0\4" \
	"gone\0\1\1"   \
	"mid\0\1\2"    \
	"\6\0\2"       \
	"later\0\1\1"
#define UVINFO "one\0two"

enum { NUMPARAMS = 2, SLOT_BYTES = 8 };

static uint64_t make_proto(struct fake_vm *vm, const char *varinfo, size_t len)
{
	const uint32_t bc[] = { fake_funcf(vm, 8), fake_ad(FAKE_GGET, 6, 0),
				fake_abc(FAKE_CALL, 6, 1, 1), fake_ad(FAKE_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1, 2, 3 };
	const uint64_t kgc[] = { fake_string(vm, "callee") };
	struct fake_proto proto = { .chunkname = "@actor.lua",
				    .firstline = 10,
				    .numline = 4,
				    .bc = bc,
				    .sizebc = 4,
				    .sizeuv = 2,
				    .kgc = kgc,
				    .sizekgc = 1 };
	uint64_t address;

	if (varinfo) {
		proto.lines = lines;
		proto.uvinfo = UVINFO;
		proto.uvinfo_len = sizeof(UVINFO);
		proto.varinfo = varinfo;
		proto.varinfo_len = len;
	}
	address = fake_proto(vm, &proto);
	fake_put_u8(vm, fake_member(address, vm->layout->GCproto_numparams), NUMPARAMS);
	return address;
}

static void set_slot(struct actor *actor, unsigned slot, uint64_t value)
{
	fake_put_u64(actor->vm, actor->base + SLOT_BYTES * (uint64_t)slot, value);
}

static void begin(struct actor *actor, struct sample *sample, const char *varinfo, size_t len)
{
	struct fake_vm *vm = sample->vm;

	*actor = (struct actor){ .sample = sample, .vm = vm, .options = LUASTATE_VALUES_DEFAULTS };
	actor->proto = make_proto(vm, varinfo, len);
	actor->upvalues[0] = fake_closed(vm, fake_number(0.25));
	actor->upvalues[1] = fake_closed(vm, fake_tag(vm, -1, 0));
	actor->function = fake_closure(vm, actor->proto, 2, actor->upvalues);
	sample_cframe(sample, vm->main, 1, 0);
	fake_put_ref(vm, fake_member(vm->G, vm->layout->global_State_cur_L), vm->main);
	actor->base = fake_call(vm, vm->main, actor->function, 0, FAKE_LINK_C);
	for (unsigned i = 0; i < 8; i++)
		set_slot(actor, i, fake_number(i));
}

/* The frame stands at an instruction. */
static const struct luastate_frame *stand(struct actor *actor, unsigned index)
{
	sample_leaf(actor->sample, FAKE_AT_PLAIN, actor->base,
		    fake_pc(actor->vm, actor->proto, index + 1));
	sample_walk(actor->sample);
	assert_int_equal(1, actor->sample->chain.count);
	return &actor->sample->chain.frames[0];
}

static const struct luastate_variables *read_frame(struct actor *actor,
						   const struct luastate_frame *frame)
{
	const struct luastate_memory memory = sample_memory(actor->sample);

	luastate_variables_destroy(actor->variables);
	actor->variables = NULL;
	assert_int_equal(0, luastate_read_variables(actor->sample->state, &memory, frame,
						    &actor->options, &actor->variables,
						    &actor->sample->why));
	return actor->variables;
}

static const struct luastate_variables *read_at(struct actor *actor, unsigned index)
{
	return read_frame(actor, stand(actor, index));
}

/** What is expected of a variable that is a number, or of no value. */
struct want {
	enum luastate_variable_kind kind;
	const char *name;
	double number; /* -1: unavailable */
};

static void check(const struct luastate_variables *got, size_t count, const struct want *wants)
{
	assert_true(got->count >= count);
	for (size_t i = 0; i < count; i++) {
		const struct luastate_variable *variable = &got->items[i];

		assert_int_equal(wants[i].kind, variable->kind);
		assert_string_equal(wants[i].name, variable->name);
		if (wants[i].number < 0) {
			assert_int_equal(LUASTATE_VALUE_UNAVAILABLE, variable->value.type);
		} else {
			assert_int_equal(LUASTATE_VALUE_NUMBER, variable->value.type);
			assert_true(variable->value.number == wants[i].number);
		}
	}
}

#define CHECK(got, ...)                                                 \
	do {                                                            \
		const struct want wants_[] = { __VA_ARGS__ };           \
		check(got, sizeof(wants_) / sizeof(wants_[0]), wants_); \
	} while (0)

/* ---- Lives ------------------------------------------------------------------------------ */

static void test_lives(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	got = read_at(&actor, 1);
	CHECK(got, { LUASTATE_PARAMETER, "first", 0 }, { LUASTATE_PARAMETER, "second", 1 },
	      { LUASTATE_LOCAL, "gone", 2 }, { LUASTATE_UPVALUE, "one", 0.25 });
	assert_int_equal(5, got->count);
	got = read_at(&actor, 2);
	CHECK(got, { LUASTATE_PARAMETER, "first", 0 }, { LUASTATE_PARAMETER, "second", 1 },
	      { LUASTATE_LOCAL, "mid", 2 }, { LUASTATE_LOCAL, "(for control)", 3 });
	assert_int_equal(6, got->count);
	assert_int_equal(4, got->items[3].index);
	assert_false(got->is_truncated || got->is_stripped || got->is_compiled || got->is_between);
	assert_string_equal("two", got->items[5].name);
	assert_int_equal(LUASTATE_VALUE_NIL, got->items[5].value.type);
	assert_int_equal(2, got->items[5].index);
	assert_true(got->items[5].is_immutable);
	assert_false(got->items[5].is_open);
	got = read_at(&actor, 3);
	CHECK(got, { LUASTATE_PARAMETER, "first", 0 }, { LUASTATE_PARAMETER, "second", 1 },
	      { LUASTATE_LOCAL, "mid", 2 }, { LUASTATE_LOCAL, "(for control)", 3 },
	      { LUASTATE_LOCAL, "later", 4 }, { LUASTATE_UPVALUE, "one", 0.25 });
	luastate_variables_destroy(actor.variables);
}

/* While a function is entered, parameters that were not passed are not there yet. */
static void test_entry(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;
	struct luastate_frame frame;

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	frame = *stand(&actor, 2);
	for (int i = 0; i < 2; i++) {
		frame.pc = i ? fake_pc(actor.vm, actor.proto, 0) : 0;
		got = read_frame(&actor, &frame);
		CHECK(got, { LUASTATE_PARAMETER, "first", -1 },
		      { LUASTATE_PARAMETER, "second", -1 }, { LUASTATE_UPVALUE, "one", 0.25 });
		assert_true(got->is_between);
		assert_int_equal(4, got->count);
	}
	luastate_variables_destroy(actor.variables);
}

static void test_stripped(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;

	begin(&actor, *state, NULL, 0);
	got = read_at(&actor, 2);
	CHECK(got, { LUASTATE_PARAMETER, "(*temporary)", 0 },
	      { LUASTATE_PARAMETER, "(*temporary)", 1 }, { LUASTATE_UPVALUE, "", 0.25 });
	assert_true(got->is_stripped);
	luastate_variables_destroy(actor.variables);
}

/* Lists that contradict themselves: what is sound of them, and no more. */
static void test_hostile_lists(void **state)
{
#define LIST(bytes, count)                      \
	{                                       \
		bytes, sizeof(bytes) - 1, count \
	}
	static const struct {
		const char *bytes;
		size_t len, count;
	} lists[] = {
		LIST("", 0),
		LIST("first", 0),				       /* no end */
		LIST("first\0", 0),				       /* no numbers */
		LIST("first\0\0\4", 1),				       /* no end */
		LIST("first\0\377\377\377\377\377\377\1\0", 0),	       /* no end of a number */
		LIST("first\0\0\4second\0\377\377\377\377\17\1\0", 1), /* begins never */
		LIST("\1\0\377\377\377\377\17\0", 1),		       /* lives for ever */
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct sample *sample;
		struct actor actor;
		void *own = NULL;
		const struct luastate_variables *got;
		size_t named = 0;

		(void)state;
		assert_int_equal(0, sample_setup(&own));
		sample = own;
		begin(&actor, sample, lists[i].bytes, lists[i].len);
		got = read_at(&actor, 2);
		for (size_t k = 0; k < got->count; k++)
			named += got->items[k].kind != LUASTATE_UPVALUE;
		assert_int_equal(lists[i].count, named);
		assert_int_equal(2, got->count - named);
		luastate_variables_destroy(actor.variables);
		sample_teardown(&own);
	}
}

/* More than a frame has slots. */
static void test_endless_list(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;
	char list[4 * 1000];

	for (size_t i = 0; i + 4 <= sizeof(list); i += 4)
		memcpy(list + i, "x\0\0\4", 4);
	begin(&actor, *state, list, sizeof(list));
	got = read_at(&actor, 2);
	assert_true(got->is_truncated);
	assert_int_equal(255 + 2, got->count);
	luastate_variables_destroy(actor.variables);
}

/* A position of pairs() is no value; the same bits in another variable may be one. */
static void test_position_of_pairs(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	set_slot(&actor, 3, UINT64_C(0xfffe7fff00000002));
	got = read_at(&actor, 2);
	assert_int_equal(LUASTATE_VALUE_UNAVAILABLE, got->items[3].value.type);
	luastate_variables_destroy(actor.variables);
}

static void test_budget(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	actor.options.values_left = 3;
	got = read_at(&actor, 2);
	assert_int_equal(3, got->count);
	assert_true(got->is_truncated);
	assert_int_equal(0, actor.options.values_left);
	actor.options = LUASTATE_VALUES_DEFAULTS;
	actor.options.memory_bytes = 8;
	got = read_at(&actor, 2);
	assert_true(got->is_truncated);
	luastate_variables_destroy(actor.variables);
}

/* ---- Varargs ---------------------------------------------------------------------------- */

static void test_varargs(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;
	struct fake_vm *vm;
	uint64_t below;

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	vm = actor.vm;
	below = actor.base;
	/* Two parameters' remains and three varargs below the function's second frame. */
	actor.base = fake_call(vm, vm->main, actor.function, 5, FAKE_LINK_VARG);
	for (unsigned i = 0; i < 5; i++)
		fake_put_u64(vm, below + SLOT_BYTES * (uint64_t)i, fake_number(100 + i));
	for (unsigned i = 0; i < 4; i++)
		set_slot(&actor, i, fake_number(i));
	got = read_at(&actor, 2);
	CHECK(got, { LUASTATE_PARAMETER, "first", 0 }, { LUASTATE_PARAMETER, "second", 1 },
	      { LUASTATE_LOCAL, "mid", 2 }, { LUASTATE_LOCAL, "(for control)", 3 },
	      { LUASTATE_VARARG, "(*vararg)", 102 }, { LUASTATE_VARARG, "(*vararg)", 103 },
	      { LUASTATE_VARARG, "(*vararg)", 104 }, { LUASTATE_UPVALUE, "one", 0.25 });
	assert_int_equal(3, got->items[6].index);
	luastate_variables_destroy(actor.variables);
}

/* ---- Upvalues --------------------------------------------------------------------------- */

static void test_open_upvalue(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;
	struct fake_vm *vm;

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	vm = actor.vm;
	fake_put_ref(vm, fake_member(actor.function, vm->layout->GCfuncL_uvptr),
		     fake_open(vm, actor.base + 8));
	got = read_at(&actor, 2);
	assert_true(got->items[4].is_open);
	assert_false(got->items[4].is_immutable);
	assert_true(got->items[4].value.number == 1);
	luastate_variables_destroy(actor.variables);
}

static void test_hostile_upvalues(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;
	const struct luastate_layout *layout;
	struct luastate_frame frame;
	struct fake_vm *vm;

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	vm = actor.vm;
	layout = vm->layout;
	/* Something else; nothing at all; a value at a wild place. */
	fake_put_ref(vm, fake_member(actor.function, layout->GCfuncL_uvptr), actor.proto);
	fake_put_ref(
		vm, fake_member(actor.function, layout->GCfuncL_uvptr) + (uint64_t)layout->ref_size,
		8);
	got = read_at(&actor, 2);
	assert_int_equal(LUASTATE_VALUE_UNREADABLE, got->items[4].value.type);
	assert_int_equal(LUASTATE_VALUE_UNREADABLE, got->items[5].value.type);
	fake_put_ref(vm, fake_member(actor.function, layout->GCfuncL_uvptr),
		     fake_open(vm, 0x123456781));
	got = read_at(&actor, 2);
	assert_int_equal(LUASTATE_VALUE_UNREADABLE, got->items[4].value.type);
	/* The function is another one now; and it is not known. */
	frame = *stand(&actor, 2);
	fake_put_u8(vm, fake_member(actor.function, layout->GCfunc_nupvalues), 1);
	got = read_frame(&actor, &frame);
	assert_int_equal(LUASTATE_VALUE_UNREADABLE, got->items[4].value.type);
	frame.object = 0;
	got = read_frame(&actor, &frame);
	assert_int_equal(LUASTATE_VALUE_UNAVAILABLE, got->items[4].value.type);
	luastate_variables_destroy(actor.variables);
}

/* ---- Compiled code ---------------------------------------------------------------------- */

static void set_jit(struct actor *actor, uint64_t jit_base, int32_t vmstate)
{
	const struct luastate_layout *layout = actor->vm->layout;

	fake_put_ref(actor->vm, fake_member(actor->vm->G, layout->global_State_jit_base), jit_base);
	fake_put_u32(actor->vm, fake_member(actor->vm->G, layout->global_State_vmstate),
		     (uint32_t)vmstate);
}

/* From the trace's base up slots are stale, also for upvalues that point there. */
static void test_stale_slots(void **state)
{
	struct actor actor;
	const struct luastate_variables *got;
	const struct luastate_layout *layout;
	struct luastate_frame frame;
	struct fake_vm *vm;

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	vm = actor.vm;
	layout = vm->layout;
	fake_put_ref(vm, fake_member(actor.function, layout->GCfuncL_uvptr),
		     fake_open(vm, actor.base + 8));
	frame = *stand(&actor, 2);
	set_jit(&actor, actor.base, 7);
	got = read_frame(&actor, &frame);
	CHECK(got, { LUASTATE_PARAMETER, "first", -1 }, { LUASTATE_PARAMETER, "second", -1 },
	      { LUASTATE_LOCAL, "mid", -1 }, { LUASTATE_LOCAL, "(for control)", -1 },
	      { LUASTATE_UPVALUE, "one", -1 });
	assert_true(got->is_compiled);
	assert_int_equal(LUASTATE_VALUE_NIL, got->items[5].value.type);
	/* The trace began in a frame above. */
	set_jit(&actor, actor.base + 64, 7);
	got = read_frame(&actor, &frame);
	CHECK(got, { LUASTATE_PARAMETER, "first", 0 }, { LUASTATE_PARAMETER, "second", 1 });
	assert_false(got->is_compiled);
	/* While it is left, the coroutine's base tells. */
	set_jit(&actor, 0, ~layout->vmst_exit);
	assert_true(read_frame(&actor, &frame)->is_compiled);
	fake_L_set(vm, vm->main, layout->lua_State_base, actor.base + 64);
	assert_false(read_frame(&actor, &frame)->is_compiled);
	/* Another coroutine's stack is not concerned. */
	fake_put_ref(vm, fake_member(vm->G, layout->global_State_cur_L), fake_coroutine(vm, 64));
	set_jit(&actor, fake_L_get(vm, vm->main, layout->lua_State_stack) - 8, 7);
	assert_false(read_frame(&actor, &frame)->is_compiled);
	luastate_variables_destroy(actor.variables);
}

/* Frames of a trace as a walk gives them: inlined ones have no slots at all. */
static void test_inlined(void **state)
{
	struct trace_scene scene;
	const struct luastate_chain *chain;

	trace_scene_begin(&scene, *state);
	trace_scene_at(&scene, 0);
	sample_walk(scene.sample);
	chain = &scene.sample->chain;
	assert_int_equal(3, chain->count);
	assert_int_equal(0, chain->frames[0].base);
	assert_int_equal(0, chain->frames[0].object);
	assert_int_equal(scene.base, chain->frames[1].base);
	assert_int_equal(scene.work, chain->frames[1].object);
	assert_int_equal(scene.main, chain->frames[2].object);
	assert_true(chain->frames[2].base && chain->frames[2].base < scene.base);
	for (size_t i = 0; i < chain->count; i++)
		assert_int_equal(scene.vm->main, chain->frames[i].coroutine);
}

static void test_other_functions(void **state)
{
	struct actor actor;
	struct luastate_frame frame;
	const struct luastate_memory memory = sample_memory(*state);
	struct luastate_function c = { .kind = LUASTATE_C };

	begin(&actor, *state, VARINFO, sizeof(VARINFO));
	frame = *stand(&actor, 2);
	frame.coroutine = 0;
	assert_int_equal(-1, luastate_read_variables(actor.sample->state, &memory, &frame,
						     &actor.options, &actor.variables,
						     &actor.sample->why));
	frame.function = &c;
	assert_int_equal(0, read_frame(&actor, &frame)->count);
	luastate_variables_destroy(actor.variables);
	luastate_variables_destroy(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_lives),	   SAMPLE_TEST(test_entry),
		SAMPLE_TEST(test_stripped),	   cmocka_unit_test(test_hostile_lists),
		SAMPLE_TEST(test_endless_list),	   SAMPLE_TEST(test_position_of_pairs),
		SAMPLE_TEST(test_budget),	   SAMPLE_TEST(test_varargs),
		SAMPLE_TEST(test_open_upvalue),	   SAMPLE_TEST(test_hostile_upvalues),
		SAMPLE_TEST(test_stale_slots),	   SAMPLE_TEST(test_inlined),
		SAMPLE_TEST(test_other_functions),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
