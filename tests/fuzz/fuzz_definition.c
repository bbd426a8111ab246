/* SPDX-License-Identifier: MIT */
/*
 * Names of functions in the bytecode that makes them: a prototype of any content. Two bytes choose
 * the layout and how many instructions there are, which follow; the rest is its debug part.
 */
#include <string.h>

#include "fake_vm.h"
#include "luastate/function/bytecode.h"
#include "luastate/definition/definition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INSTRUCTIONS = 256, DEBUG_BYTES = 1024, CONSTANTS = 8, PLACES = 12, LAYOUT_STEP = 8 };

/** A VM, and room for one prototype in it. */
struct location {
	struct fake_vm *vm;
	uint64_t proto;
	uint64_t kgc[CONSTANTS];
	size_t next, blocks; /* the memory that this takes */
};

static void expect(bool holds)
{
	if (!holds)
		abort();
}

static struct fake_proto proto_of(struct location *location, const uint32_t *bc, uint32_t sizebc,
				  const char *debug, size_t len)
{
	return (struct fake_proto){ .chunkname = "@parent.lua",
				    .firstline = 1,
				    .numline = 100,
				    .bc = bc,
				    .sizebc = sizebc,
				    .uvinfo = debug,
				    .uvinfo_len = len / 3,
				    .sizeuv = 4,
				    .varinfo = debug + len / 3,
				    .varinfo_len = len - len / 3,
				    .kgc = location->kgc,
				    .sizekgc = CONSTANTS };
}

static struct location *get_location(uint8_t number)
{
	static struct location locations[PLACES];
	static const char *const names[] = {
		"f", "M", "setmetatable", "__index", "two words", "_G"
	};
	static uint32_t bc[INSTRUCTIONS];
	static char debug[DEBUG_BYTES];
	struct location *location = &locations[number % PLACES];
	struct fake_proto proto;

	if (location->vm)
		return location;
	location->vm = fake_vm_create(
		&(struct fake_options){ .layout = fake_layout_at(number % PLACES * LAYOUT_STEP) });
	expect(location->vm != NULL);
	location->kgc[0] = fake_caller(location->vm, "@parent.lua", 2, "x");
	location->kgc[1] = location->vm->main; /* no prototype */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		location->kgc[2 + i] = fake_string(location->vm, names[i]);
	proto = proto_of(location, bc, INSTRUCTIONS, debug, DEBUG_BYTES);
	location->proto = fake_proto(location->vm, &proto);
	location->next = location->vm->next;
	location->blocks = location->vm->block_count;
	return location;
}

/* Give back what was taken since, or there is none left for the inputs of some minutes. */
static void give_back(struct location *location)
{
	struct fake_vm *vm = location->vm;

	memset(vm->known + vm->next, 0, location->next - vm->next);
	vm->next = location->next;
	vm->block_count = location->blocks;
}

static void check(void *context, const struct definition *definition)
{
	unsigned *left = context;

	expect((*left)-- > 0);
	expect((definition->fate == DEFINITION_NAMED) == (definition->name != NULL));
	for (const char *c = definition->name; c && *c; c++)
		expect((unsigned char)*c >= 32 && *c != 127);
	expect(!definition->name ||
	       (definition->name[0] && strlen(definition->name) < STATE_NAME_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char debug[DEBUG_BYTES];
	uint32_t bc[INSTRUCTIONS], sizebc;
	unsigned left = INSTRUCTIONS;
	struct fake_proto proto;
	struct location *location;
	struct failure why;

	if (size < 2)
		return 0;
	location = get_location(data[0]);
	sizebc = 1 + data[1] % (INSTRUCTIONS - 1);
	data += 2;
	size -= 2;
	bc[0] = fake_funcf(location->vm, 20);
	for (uint32_t i = 1; i < sizebc; i++) {
		bc[i] = fake_ad(BC_FNEW, i % 16, i % 2);
		if (size >= 4) {
			memcpy(&bc[i], data, 4);
			data += 4;
			size -= 4;
		}
	}
	if (size > DEBUG_BYTES)
		size = DEBUG_BYTES;
	memset(debug, 0, sizeof(debug));
	memcpy(debug, data, size);
	proto = proto_of(location, bc, sizebc, debug, size);
	fake_put_proto(location->vm, location->proto, &proto);
	location->vm->reads = 0;
	definition_visit(location->vm->layout, &location->vm->reader, location->proto, 0, check,
			 &left, &why);
	give_back(location);
	return 0;
}
