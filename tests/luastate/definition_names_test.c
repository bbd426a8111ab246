/* SPDX-License-Identifier: MIT */
/* Names of functions by their definitions: whose parent is found how. */
#include "sample.h"
#include "attach/clock.h"
#include "attach/freeze.h"

#include "fake_values.h"
#include "luastate/definition/definition_names.h"
#include "luastate/definition/holder_names.h"
#include "luastate/function/bytecode.h"

enum { FLAG_CHILD = 1 };

/* A family: a parent that makes a function, and puts it into a global. */
struct family {
	uint64_t parent, child;
};

static void share_chunk(struct fake_vm *vm, const struct family *family)
{
	fake_put_ref(vm, fake_member(family->child, vm->layout->GCproto_chunkname),
		     fake_get_ref(vm, fake_member(family->parent, vm->layout->GCproto_chunkname)));
}

static struct family make_family(struct fake_vm *vm, uint64_t child, uint32_t ins, const char *name)
{
	const uint32_t bc[] = { fake_funcf(vm, 5), fake_ad(BC_FNEW, 2, 0), ins,
				fake_ad(BC_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1, 2, 3 };
	const uint64_t kgc[] = { child, fake_string(vm, name) };
	struct family family = { .child = child };

	family.parent = fake_proto(vm, &(struct fake_proto){ .chunkname = "@family.lua",
							     .firstline = 1,
							     .numline = 100,
							     .bc = bc,
							     .sizebc = 4,
							     .lines = lines,
							     .kgc = kgc,
							     .sizekgc = 2 });
	fake_put_u8(vm, fake_member(family.parent, vm->layout->GCproto_flags), FLAG_CHILD);
	share_chunk(vm, &family);
	return family;
}

static struct family make(struct fake_vm *vm, const char *name)
{
	return make_family(vm, fake_caller(vm, "@family.lua", 10, "x"), fake_ad(BC_GSET, 2, 1),
			   name);
}

/* The list of all objects: these, and the main coroutine at its end. */
static void link_objects(struct fake_vm *vm, const uint64_t *objects, size_t count)
{
	fake_put_ref(vm, fake_member(vm->G, vm->layout->global_State_gc_root),
		     count ? objects[0] : vm->main);
	for (size_t i = 0; i < count; i++)
		fake_put_ref(vm, objects[i], i + 1 < count ? objects[i + 1] : vm->main);
}

/* In a new sample with frames of these functions, leaf first: the first one's name. */
static const char *define(struct sample *sample, const uint64_t *protos, size_t count)
{
	const struct luastate_memory memory = sample_memory(sample);
	struct luastate_frame frames[8] = { 0 };

	luastate_begin_sample(sample->state, &sample->vm->reader);
	for (size_t i = 0; i < count; i++) {
		struct state_proto *proto = sample_proto(sample, protos[i]);

		assert_non_null(proto);
		frames[i].function = &proto->function;
		frames[i].coroutine = sample->vm->main;
	}
	state_define_frames(sample->state, &memory, frames, count);
	return sample_proto(sample, protos[0])->function.name;
}

static enum state_definition_state state_of(struct sample *sample, uint64_t proto)
{
	return (enum state_definition_state)sample_proto(sample, proto)->definition;
}

static void test_parent_on_the_stack(void **state)
{
	struct sample *sample = *state;
	struct family family = make(sample->vm, "f");
	uint32_t serial;

	/* The list leads nowhere. */
	fake_put_ref(sample->vm,
		     fake_member(sample->vm->G, sample->vm->layout->global_State_gc_root), 4096);
	serial = sample_proto(sample, family.child)->function.name_serial;
	assert_string_equal("f", define(sample, (uint64_t[]){ family.child, family.parent }, 2));
	assert_int_equal(STATE_DEFINITION_FOUND, state_of(sample, family.child));
	assert_int_equal(serial + 1, sample_proto(sample, family.child)->function.name_serial);
}

static void test_parent_among_all(void **state)
{
	struct sample *sample = *state;
	struct family other = make(sample->vm, "other"), family = make(sample->vm, "f");
	const uint64_t objects[] = { other.parent, other.child, family.child, family.parent };

	link_objects(sample->vm, objects, 4);
	assert_string_equal("f", define(sample, &family.child, 1));
	assert_string_equal("other", define(sample, &other.child, 1));
}

/* One whose parent was collected, and one that lies where another lay. */
static void test_no_parent(void **state)
{
	struct sample *sample = *state;
	struct family family = make(sample->vm, "f"), gone = make(sample->vm, "gone");

	link_objects(sample->vm, &family.parent, 1);
	assert_null(define(sample, &gone.child, 1));
	assert_int_equal(STATE_DEFINITION_GONE, state_of(sample, gone.child));
	/* Another prototype lies where a function of the family lay: of other lines. */
	fake_put_u32(sample->vm, fake_member(family.child, sample->vm->layout->GCproto_firstline),
		     20);
	assert_string_equal("f", define(sample, &family.child, 1));
	fake_put_u32(sample->vm, fake_member(family.child, sample->vm->layout->GCproto_firstline),
		     2000);
	assert_null(define(sample, &family.child, 1));
}

/* A list that is cut: looked for again some times, and by calls meanwhile. */
static void test_cut_list(void **state)
{
	struct sample *sample = *state;
	struct family family = make(sample->vm, "f");

	fake_put_ref(sample->vm,
		     fake_member(sample->vm->G, sample->vm->layout->global_State_gc_root), 4096);
	assert_null(define(sample, &family.child, 1));
	assert_int_equal(STATE_DEFINITION_UNKNOWN, state_of(sample, family.child));
	link_objects(sample->vm, &family.parent, 1);
	assert_string_equal("f", define(sample, &family.child, 1));
}

static void test_returned(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t child = fake_caller(vm, "@family.lua", 12, "x");
	struct family inner = make_family(vm, child, fake_ad(BC_RET1, 2, 2), "x");
	struct family outer;

	fake_put_u32(vm, fake_member(inner.parent, vm->layout->GCproto_firstline), 5);
	fake_put_u32(vm, fake_member(inner.parent, vm->layout->GCproto_numline), 20);
	outer = make_family(vm, inner.parent, fake_ad(BC_GSET, 2, 1), "maker");
	fake_put_ref(vm, fake_member(child, vm->layout->GCproto_chunkname),
		     fake_get_ref(vm, fake_member(outer.parent, vm->layout->GCproto_chunkname)));
	link_objects(vm, (uint64_t[]){ inner.parent, outer.parent }, 2);
	assert_string_equal("maker.return", define(sample, &child, 1));
	assert_string_equal("maker", define(sample, &inner.parent, 1));
}

/* A function that its definition does not name gets none from a call. */
static void test_nameless(void **state)
{
	struct sample *sample = *state;
	struct family family = make_family(sample->vm, fake_caller(sample->vm, "@f.lua", 10, "x"),
					   fake_ad(BC_KNIL, 0, 9), "x");

	link_objects(sample->vm, &family.parent, 1);
	assert_null(define(sample, &family.child, 1));
	assert_int_equal(STATE_DEFINITION_FOUND, state_of(sample, family.child));
}

/* ---- Who holds a function --------------------------------------------------------------- */

/* A prototype of the chunk, with one upvalue of that name. */
static uint64_t make_user(struct fake_vm *vm, uint64_t like, const char *upvalue)
{
	const uint32_t bc[] = { fake_funcf(vm, 5), fake_ad(BC_RET0, 0, 1) };
	const uint32_t lines[] = { 0, 1 };
	uint64_t user = fake_proto(vm, &(struct fake_proto){ .chunkname = "@family.lua",
							     .firstline = 60,
							     .numline = 5,
							     .bc = bc,
							     .sizebc = 2,
							     .lines = lines,
							     .uvinfo = upvalue,
							     .uvinfo_len = strlen(upvalue) + 1,
							     .sizeuv = 1 });

	fake_put_ref(vm, fake_member(user, vm->layout->GCproto_chunkname),
		     fake_get_ref(vm, fake_member(like, vm->layout->GCproto_chunkname)));
	return user;
}

static uint64_t make_closure(struct fake_vm *vm, uint64_t user, uint64_t value)
{
	const uint64_t upvalue = fake_closed(vm, value);

	return fake_closure(vm, user, 1, &upvalue);
}

/* In a new sample in which these functions run, leaf first: the name of @p proto. */
static const char *hold(struct sample *sample, uint64_t proto, uint64_t user,
			const uint64_t *closures, size_t count)
{
	const struct luastate_memory memory = sample_memory(sample);
	struct luastate_frame frames[8] = { 0 };

	link_objects(sample->vm, NULL, 0);
	luastate_begin_sample(sample->state, &sample->vm->reader);
	frames[0] = (struct luastate_frame){ .function = &sample_proto(sample, proto)->function,
					     .coroutine = sample->vm->main };
	for (size_t i = 0; i < count; i++)
		frames[1 + i] = (struct luastate_frame){
			.function = &sample_proto(sample, user)->function,
			.coroutine = sample->vm->main,
			.object = closures[i],
		};
	state_define_frames(sample->state, &memory, frames, 1 + count);
	return sample_proto(sample, proto)->function.name;
}

static uint64_t function_value(struct fake_vm *vm, uint64_t proto)
{
	return fake_tag(vm, vm->layout->tag_func, fake_lua_function(vm, proto));
}

static void test_held_by_a_variable(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t child = fake_caller(vm, "@family.lua", 10, "x"), user, closure;

	user = make_user(vm, child, "helper");
	closure = make_closure(vm, user, function_value(vm, child));
	assert_string_equal("helper", hold(sample, child, user, &closure, 1));
}

static void test_held_by_a_table(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t child = fake_caller(vm, "@family.lua", 10, "x"), user, closure;
	uint64_t table = fake_table(vm, 4), inner = fake_table(vm, 4);

	user = make_user(vm, child, "M");
	fake_table_set(vm, table, "inner", fake_tag(vm, vm->layout->tag_tab, inner));
	fake_table_set(vm, inner, "f", function_value(vm, child));
	closure = make_closure(vm, user, fake_tag(vm, vm->layout->tag_tab, table));
	assert_string_equal("M.inner.f", hold(sample, child, user, &closure, 1));
}

/* A parameter holds what each caller gives, and variables of other chunks are imports. */
static void test_no_name_by_others(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t one = fake_caller(vm, "@family.lua", 10, "x"), two, other, user, closures[2];

	two = fake_caller(vm, "@family.lua", 20, "x");
	other = fake_caller(vm, "@other.lua", 30, "x");
	fake_put_ref(vm, fake_member(two, vm->layout->GCproto_chunkname),
		     fake_get_ref(vm, fake_member(one, vm->layout->GCproto_chunkname)));
	user = make_user(vm, one, "fn");
	closures[0] = make_closure(vm, user, function_value(vm, one));
	closures[1] = make_closure(vm, user, function_value(vm, two));
	assert_null(hold(sample, one, user, closures, 2));
	assert_null(hold(sample, two, user, closures, 2));
	closures[0] = make_closure(vm, user, function_value(vm, other));
	assert_null(hold(sample, other, user, closures, 1));
}

/* As if it had not been met. */
static void forget(struct sample *sample, uint64_t address)
{
	struct state_proto *proto = sample_proto(sample, address);

	proto->definition = STATE_DEFINITION_UNKNOWN;
	proto->is_orphan = proto->is_asked = false;
	proto->name_rank = 0;
	proto->function.name = NULL;
}

/* Of a variable whose own function is there all that is put in it is known: this is another name.
 */
static void test_no_name_by_a_live_variable(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t child = fake_caller(vm, "@family.lua", 10, "x"), user, closure;
	struct family family;

	user = make_user(vm, child, "fn");
	family = make_family(vm, user, fake_ad(BC_GSET, 2, 1), "user");
	fake_put_ref(vm, fake_member(child, vm->layout->GCproto_chunkname),
		     fake_get_ref(vm, fake_member(family.parent, vm->layout->GCproto_chunkname)));
	fake_put_u16(vm, fake_get_ref(vm, fake_member(user, vm->layout->GCproto_uv)), 0x8000);
	closure = make_closure(vm, user, function_value(vm, child));
	/* Else it were taken. */
	assert_string_equal("fn", hold(sample, child, user, &closure, 1));
	forget(sample, child);
	forget(sample, user);
	names_forget_held(sample->state);
	{
		const struct luastate_memory memory = sample_memory(sample);
		struct luastate_frame frames[3] = { 0 };
		const uint64_t protos[] = { child, user, family.parent };

		luastate_begin_sample(sample->state, &vm->reader);
		for (size_t i = 0; i < 3; i++)
			frames[i] = (struct luastate_frame){
				.function = &sample_proto(sample, protos[i])->function,
				.coroutine = vm->main,
			};
		frames[1].object = closure;
		state_define_frames(sample->state, &memory, frames, 3);
	}
	assert_null(sample_proto(sample, child)->function.name);
	assert_string_equal("user", sample_proto(sample, user)->function.name);
}

/* What the collector is about to free refers to memory of others. */
static void test_dead_parent(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct family family = make(vm, "f");

	fake_put_u8(vm, fake_member(vm->G, layout->global_State_gc_state + STATE_WHITE_FROM_STATE),
		    1);
	fake_put_u8(vm, fake_member(family.parent, layout->GCobj_gct + STATE_MARKED_FROM_TYPE), 2);
	link_objects(vm, &family.parent, 1);
	assert_null(define(sample, &family.child, 1));
}

/* Where it is not known what the collector is about to free, that may be all that is white and does
 * not run. */
static void test_colour_is_not_known(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct luastate_layout layout = *vm->layout;
	struct family whites = make(vm, "white"), black = make(vm, "black"),
		      running = make(vm, "running");
	const uint64_t objects[] = { whites.parent, black.parent, running.parent };
	const uint64_t stack[] = { running.child, running.parent };
	const struct names_search search = { .layout = &layout, .reader = &vm->reader, .G = vm->G };
	uint64_t white = fake_member(vm->G, layout.global_State_gc_state + STATE_WHITE_FROM_STATE);

	fake_put_u8(vm, white, 1);
	assert_int_equal(2, names_dead_colour(&search));
	fake_put_u8(vm, white, 0x42);
	assert_int_equal(1, names_dead_colour(&search));
	layout.global_State_gc_state = LAYOUT_ABSENT;
	assert_int_equal(STATE_WHITES, names_dead_colour(&search));
	sample->state->vms[0].layout = &layout;
	link_objects(vm, objects, 3);
	fake_put_u8(vm, fake_member(whites.parent, layout.GCobj_gct + STATE_MARKED_FROM_TYPE), 1);
	fake_put_u8(vm, fake_member(black.parent, layout.GCobj_gct + STATE_MARKED_FROM_TYPE), 4);
	fake_put_u8(vm, fake_member(running.parent, layout.GCobj_gct + STATE_MARKED_FROM_TYPE), 2);
	assert_null(define(sample, &whites.child, 1));
	assert_string_equal("black", define(sample, &black.child, 1));
	assert_string_equal("running", define(sample, stack, 2));
	sample->state->vms[0].layout = vm->layout;
}

/* Memory of which one page is swapped out. */
struct memory_pages {
	uint64_t absent;
	unsigned asked;
	bool is_told;
};

static bool tell_pages(void *context, uint64_t start, uint64_t end, uint8_t *ret_there)
{
	struct memory_pages *pages = context;

	pages->asked++;
	for (uint64_t at = start; at < end; at += ATTACH_PAGE_BYTES)
		ret_there[(at - start) / ATTACH_PAGE_BYTES] = at != pages->absent;
	return pages->is_told;
}

/* What is swapped out is not brought in: its part of the list is seen once it is back. */
static void test_swapped_out(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct memory_pages pages = { .is_told = true };
	struct family family, between = make(vm, "between");
	uint64_t objects[2];

	/* Pages of its own. */
	fake_alloc(vm, (size_t)2 * ATTACH_PAGE_BYTES);
	family = make(vm, "f");
	fake_alloc(vm, (size_t)2 * ATTACH_PAGE_BYTES);
	objects[0] = between.parent;
	objects[1] = family.parent;
	link_objects(vm, objects, 2);
	pages.absent = family.parent & ~(uint64_t)(ATTACH_PAGE_BYTES - 1);
	luastate_set_pages(sample->state, tell_pages, &pages);
	assert_null(define(sample, &family.child, 1));
	assert_int_equal(STATE_DEFINITION_UNKNOWN, state_of(sample, family.child));
	assert_true(pages.asked > 0 && pages.asked < 20);
	pages.absent = 0;
	assert_string_equal("f", define(sample, &family.child, 1));
	/* Nobody can tell. */
	pages = (struct memory_pages){ .absent = between.parent & ~(uint64_t)0xfff };
	luastate_set_pages(sample->state, tell_pages, &pages);
	assert_string_equal("between", define(sample, &between.child, 1));
	assert_true(pages.asked > 0);
	luastate_set_pages(sample->state, NULL, NULL);
}

/* The time did not suffice to read a known parent: then no holder's name replaces the name that
 * the parent has for its function. */
static void test_no_time(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct family family = make(vm, "f"), running = make(vm, "running");
	const struct luastate_memory memory = sample_memory(sample);
	uint64_t user = make_user(vm, family.child, "helper");
	const uint64_t protos[] = { family.child, running.parent, user };
	uint64_t closure = make_closure(vm, user, function_value(vm, family.child));
	const char *name;

	link_objects(vm, &family.parent, 1);
	for (int i = 0; i < 20; i++) {
		struct luastate_frame frames[3] = { 0 };

		luastate_begin_sample(sample->state, &vm->reader);
		for (size_t k = 0; k < 3; k++)
			frames[k] = (struct luastate_frame){
				.function = &sample_proto(sample, protos[k])->function,
				.coroutine = vm->main,
			};
		frames[2].object = closure;
		/* Reading the parent that runs takes longer. */
		sample->state->read_time.left_ns = i < 10 ? 1 : INT64_MAX / 4;
		sample->state->read_time.now_ns = clock_now_ns();
		state_define_frames(sample->state, &memory, frames, 3);
		/* Whoever was interrupted here has saved time up, and may read it. */
		name = sample_proto(sample, family.child)->function.name;
		assert_true(!name || strcmp(name, "f") == 0);
	}
	assert_non_null(name);
}

/** Memory from which it takes long to copy a prototype. */
struct slow_memory {
	struct attach_reader reader;
	const struct fake_vm *vm;
	size_t copy_len; /* of a prototype */
	unsigned copies;
};

static int read_slowly(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	enum { COPY_NS = 40 * 1000 * 1000 };
	struct slow_memory *memory = self;
	uint64_t end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + COPY_NS;

	if (len == memory->copy_len) {
		memory->copies++;
		while (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
			;
	}
	return attach_read(&memory->vm->reader, address, ret_bytes, len, why);
}

/* A kept image has any number of parents on its stack, each of any size: reading them is bounded in
 * time. */
static void test_slow_image(void **state)
{
	enum { PARENTS = 7 };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct slow_memory slow = { .reader = { .read = read_slowly, .self = &slow }, .vm = vm };
	const struct luastate_memory memory = { .stopped = &slow.reader,
						.any = &slow.reader,
						.is_kept = true };
	struct luastate_frame frames[PARENTS + 1] = { 0 };
	uint64_t child = fake_caller(vm, "@family.lua", 10, "x");

	luastate_begin_sample(sample->state, &vm->reader);
	for (size_t i = 0; i <= PARENTS; i++) {
		struct family family = { .child = child, .parent = child };

		if (i) {
			family.parent = make(vm, "f").parent;
			fake_put_ref(vm, fake_member(family.parent, vm->layout->GCproto_chunkname),
				     fake_get_ref(vm, fake_member(child,
								  vm->layout->GCproto_chunkname)));
		}
		frames[i].function = &sample_proto(sample, family.parent)->function;
		frames[i].coroutine = vm->main;
		slow.copy_len =
			fake_get_u32(vm, fake_member(family.parent, vm->layout->GCproto_sizept));
	}
	state_define_frames(sample->state, &memory, frames, PARENTS + 1);
	assert_true(slow.copies > 0 && slow.copies < PARENTS / 2 + 1);
}

/* Objects without end: walks are bounded in time, all of them together. */
static void test_circle(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct family family = make(vm, "f");
	uint64_t tables[3] = { fake_table(vm, 1), fake_table(vm, 1), fake_table(vm, 1) };

	link_objects(vm, tables, 3);
	fake_put_ref(vm, tables[2], tables[0]);
	vm->reads = 0;
	assert_null(define(sample, &family.child, 1));
	assert_true(vm->reads < 1000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_parent_on_the_stack),
		SAMPLE_TEST(test_parent_among_all),
		SAMPLE_TEST(test_no_parent),
		SAMPLE_TEST(test_cut_list),
		SAMPLE_TEST(test_returned),
		SAMPLE_TEST(test_nameless),
		SAMPLE_TEST(test_no_time),
		SAMPLE_TEST(test_slow_image),
		SAMPLE_TEST(test_circle),
		SAMPLE_TEST(test_held_by_a_variable),
		SAMPLE_TEST(test_held_by_a_table),
		SAMPLE_TEST(test_no_name_by_others),
		SAMPLE_TEST(test_dead_parent),
		SAMPLE_TEST(test_colour_is_not_known),
		SAMPLE_TEST(test_swapped_out),
		SAMPLE_TEST(test_no_name_by_a_live_variable),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
