/* SPDX-License-Identifier: MIT */
#include "hostile_derive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_derive.h"
#include "luastate/layout/fields.h"

enum {
	VMS = 8,
	LAYOUT_STEP = 11,
	/* The search gives up after that; the rest is of checks. */
	READS_MAX = 210000,
	CHANGES_MAX = 64,
	/* Of a reader that is slow on purpose. */
	READ_NS = 1000 * 1000,
	/* A search that ends soon takes some of them; one that does not, as many as it may. */
	SHORT_SEARCHES = 300,
	LONG_SEARCHES = 20,
	SHARE = 20, /* of what goes by; see derive_interpreter.c */
};

/** A VM with functions, coroutines and traces, and what its code would show. */
struct scene {
	struct fake_vm *vm;
	struct luastate *state;
	struct derive_reading reading;
};

/* A byte, and what was there before. */
struct change {
	uint64_t address;
	uint8_t before[8];
};

static void expect(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "hostile_derive: %s\n", what);
	abort();
}

static struct scene *get_scene(uint8_t number)
{
	static struct scene scenes[VMS];
	struct scene *scene = &scenes[number % VMS];

	if (scene->vm)
		return scene;
	scene->vm = fake_vm_create(&(struct fake_options){
		.layout = fake_layout_at((unsigned)(number % VMS) * LAYOUT_STEP) });
	expect(scene->vm != NULL, "no memory");
	fake_derive_objects(scene->vm);
	scene->state = fake_vm_open(scene->vm, false);
	expect(scene->state != NULL, "no memory");
	fake_derive_reading(scene->vm->layout, &scene->reading);
	return scene;
}

/* Each change has four bytes: where in the VM's block, and what is there. */
static size_t apply(struct scene *scene, const uint8_t *data, size_t size,
		    struct change ret_changes[CHANGES_MAX])
{
	struct fake_vm *vm = scene->vm;
	size_t count = 0;

	for (; size >= 4 && count < CHANGES_MAX; data += 4, size -= 4) {
		uint64_t at = (uint64_t)(data[0] | data[1] << 8) % (fake_vm_bytes(vm->layout) - 8) /
			      8 * 8;
		uint8_t *bytes = fake_at(vm, vm->main + at, 8);
		uint64_t value = (uint64_t)data[2] << 3;

		ret_changes[count].address = vm->main + at;
		memcpy(ret_changes[count++].before, bytes, 8);
		/* A small number, an address of the VM, or one beside what was there. */
		if (data[3] % 3 == 0)
			value += data[3];
		else if (data[3] % 3 == 1)
			value += vm->main;
		else
			value += state_u64(bytes, 0);
		memcpy(bytes, &value, 8);
	}
	return count;
}

/* Derive a layout. @return whether one was found. */
static bool try(struct scene *scene, const struct derive_reading *reading)
{
	struct derive *derive = calloc(1, sizeof(*derive));
	bool found;

	expect(derive != NULL, "no memory");
	derive->state = scene->state;
	derive->interpreter = &scene->state->interpreters[0];
	derive->reader = &scene->vm->reader;
	derive->reading = reading;
	scene->vm->reads = 0;
	found = derive_layout(derive, scene->vm->main);
	expect(scene->vm->reads < READS_MAX, "too many reads");
	expect(!found || state_layout_is_bounded(&derive->layout), "a layout without bounds");
	free(derive);
	return found;
}

int hostile_derive_code(const uint8_t *data, size_t size)
{
	struct state_interpreter interpreter = { .start = 0 };
	struct derive_reading reading;
	bool found;

	if (size < 2)
		return 0;
	/* A copy, so that nothing behind its end is read. */
	interpreter.end = size - 1;
	interpreter.code = malloc(size - 1);
	expect(interpreter.code != NULL, "no memory");
	memcpy(interpreter.code, data + 1, size - 1);
	found = derive_read_code(&interpreter, &reading) && try(get_scene(data[0]), &reading);
	free(interpreter.code);
	return found;
}

int hostile_derive(const uint8_t *data, size_t size)
{
	struct change changes[CHANGES_MAX];
	struct derive_reading reading;
	struct scene *scene;
	size_t count;
	bool found;

	if (size < 6)
		return 0;
	scene = get_scene(data[0]);
	reading = scene->reading;
	/* Some votes are for other values. */
	for (size_t i = 1; i < 5; i += 2)
		if (data[i] < state_field_count)
			reading.votes[data[i]].value[0] += 4 * (int8_t)data[i + 1];
	count = apply(scene, data + 5, size - 5, changes);
	found = try(scene, &reading);
	while (count-- > 0)
		memcpy(fake_at(scene->vm, changes[count].address, 8), changes[count].before, 8);
	return found;
}

/* ---- Time ------------------------------------------------------------------------------- */

static int64_t time_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int read_slowly(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	const struct scene *scene = self;
	int64_t end_ns = time_ns(CLOCK_THREAD_CPUTIME_ID) + READ_NS;

	while (time_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
	return attach_read(&scene->vm->reader, address, ret_bytes, len, why);
}

/* Processor time of some searches of a VM that has no layout, without the part of the time that
 * they may take in the long run. A word of the VM is another one meanwhile. */
static int64_t search_often(struct scene *scene, uint64_t address, unsigned count)
{
	const struct attach_reader slow = { .read = read_slowly, .self = scene };
	struct state_interpreter *interpreter = &scene->state->interpreters[0];
	uint64_t before = fake_get_u64(scene->vm, address);
	int64_t used_ns = time_ns(CLOCK_THREAD_CPUTIME_ID), since_ns = time_ns(CLOCK_MONOTONIC);

	memset(&scene->state->derive_time, 0, sizeof(scene->state->derive_time));
	interpreter->reading = malloc(sizeof(*interpreter->reading));
	expect(interpreter->reading != NULL, "no memory");
	*interpreter->reading = scene->reading;
	fake_put_u64(scene->vm, address, 0);
	for (unsigned i = 0; i < count; i++) {
		interpreter->derive_due_ns = 0; /* as if it were another copy each time */
		expect(!derive_interpreter(scene->state, interpreter, &slow, scene->vm->main),
		       "a layout of what is no VM");
	}
	fake_put_u64(scene->vm, address, before);
	free(interpreter->reading);
	interpreter->reading = NULL;
	interpreter->derive_tries = 0;
	return time_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns -
	       (time_ns(CLOCK_MONOTONIC) - since_ns) / SHARE;
}

void hostile_derive_slowly(int64_t ret_used_ns[2])
{
	struct scene *scene = get_scene(0);
	const struct luastate_layout *layout = scene->vm->layout;
	uint64_t stack = fake_member(scene->vm->main, layout->lua_State_stack);

	ret_used_ns[0] = search_often(
		scene, fake_member(scene->vm->G, layout->global_State_to_dispatch), SHORT_SEARCHES);
	ret_used_ns[1] = search_often(scene, fake_get_ref(scene->vm, stack), LONG_SEARCHES);
}
