/* SPDX-License-Identifier: MIT */
#include "hostile_elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/module.h"
#include "symbols/names.h"
#include "symbols/types.h"
#include "symbols/unwind.h"

#define BASE	    ((uint64_t)0x7f0000000000)
#define STACK	    ((uint64_t)0x7ffe00000000)
#define STACK_BYTES 2048
/** Addresses looked at, spread over the file. */
#define PLACES 24

static void must(int result)
{
	if (result != 0)
		abort();
}

/** Memory of the made-up process. */
struct made_up {
	uint8_t file[HOSTILE_ELF_MAX_BYTES];
	uint64_t stack[STACK_BYTES / 8];
};

static int read_made_up(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			struct failure *why)
{
	const struct made_up *made_up = self;
	uint64_t file_at = address.value - BASE, stack_at = address.value - STACK;

	if (file_at < sizeof(made_up->file) && len <= sizeof(made_up->file) - file_at)
		memcpy(ret_bytes, made_up->file + file_at, len);
	else if (stack_at < STACK_BYTES && len <= STACK_BYTES - stack_at)
		memcpy(ret_bytes, (const uint8_t *)made_up->stack + stack_at, len);
	else
		return failure_set(why, FAILURE_FAULT, 0, 0, address.value, "read");
	return 0;
}

static bool walk_from(void *context, const struct symbols_unwind_entry *entry)
{
	unsigned *visits = context;

	if (entry->start >= entry->end)
		abort();
	return ++*visits < 1000;
}

static void unwind(struct symbols_unwinder *unwinder, const struct attach_reader *memory,
		   uint64_t pc)
{
	struct attach_registers regs = { .syscall = -1 };
	struct symbols_native_frame frame;
	struct failure why;

	regs.r[ATTACH_REG_PC] = pc;
	regs.r[ATTACH_REG_SP] = STACK;
#if defined(__x86_64__)
	regs.r[ATTACH_REG_RBP] = STACK + 64;
#else
	regs.r[ATTACH_REG_FP] = STACK + 64;
#endif
	symbols_unwind_begin(unwinder, &regs, memory);
	for (unsigned i = 0; i < 64; i++) {
		if (symbols_unwind_step(unwinder, &why) <= 0 &&
		    symbols_unwind_step_frame_pointer(unwinder, &why) <= 0)
			break;
		symbols_unwind_frame(unwinder, &frame);
	}
}

static void look_at(struct symbols_space *space, struct symbols_unwinder *unwinder,
		    const struct attach_reader *memory, uint64_t address)
{
	struct symbols_function function;
	struct failure why;

	if (symbols_find_function(space, address, &function, &why) == 0 &&
	    (address < function.start || address >= function.end || !function.name[0]))
		abort();
	unwind(unwinder, memory, address);
}

/** Copy the file's code and data. Its functions must ascend, and not overlap. */
static void copy_module(struct symbols_space *space, uint64_t address)
{
	char name[SYMBOLS_MODULE_NAME_MAX];
	struct symbols_module module;
	struct failure why;

	symbols_module_symbol(space, address, name);
	if (symbols_module_init(space, address, &module, &why) != 0)
		return;
	for (size_t i = 0; i < module.function_count; i++)
		if (module.functions[i].start >= module.functions[i].end ||
		    (i && module.functions[i].start < module.functions[i - 1].end))
			abort();
	/* A sanitizer sees a part that ends early. */
	for (size_t i = 0; i < module.part_count; i++)
		(void)((const volatile uint8_t *)module.parts[i].bytes)[module.parts[i].len - 1];
	symbols_module_deinit(&module);
}

/** A space in which the file is the vDSO. @return Where it ends. */
static uint64_t map_file(const struct attach_reader *memory, size_t len,
			 struct symbols_space **ret_space)
{
	uint64_t end = BASE + ((len + 4095) & ~(size_t)4095);
	struct failure why;
	char maps[256];

	snprintf(maps, sizeof(maps),
		 "%lx-%lx r-xp 00000000 00:00 0 [vdso]\n%lx-%lx rw-p 00000000 00:00 0 [stack]\n",
		 BASE, end, STACK, STACK + 4096);
	must(symbols_space_create_recorded(maps, strlen(maps), ret_space, &why));
	symbols_space_set_memory(*ret_space, memory);
	return end;
}

void hostile_elf_exercise(const uint8_t *bytes, size_t len)
{
	struct made_up *made_up = calloc(1, sizeof(*made_up));
	struct attach_reader memory = { .read = read_made_up, .self = made_up };
	struct symbols_space *space;
	struct symbols_unwinder *unwinder;
	struct failure why;
	uint64_t address, end;
	unsigned visits = 0;
	char byte;

	if (len == 0 || len > HOSTILE_ELF_MAX_BYTES || !made_up) {
		free(made_up);
		return;
	}
	memcpy(made_up->file, bytes, len);
	for (size_t i = 0; i < STACK_BYTES / 8; i++)
		made_up->stack[i] = i % 3 ? BASE + i * 0x51 % len : STACK + i * 8;
	end = map_file(&memory, len, &space);
	must(symbols_unwinder_create(space, &unwinder, &why));
	for (uint64_t i = 0; i < PLACES; i++)
		look_at(space, unwinder, &memory, BASE + (end - BASE) * i / PLACES);
	symbols_each_unwind_entry(space, 1, walk_from, &visits, &why);
	symbols_find_address(space, "no_such_symbol", &address, &why);
	copy_module(space, BASE + len / 2);
	symbols_read_file_bytes(space, BASE + len / 2, &byte, 1, &why);
	symbols_unwinder_destroy(unwinder);
	symbols_space_destroy(space);
	free(made_up);
}

static void ask_types(struct symbols_types *types)
{
	static const char *const members[][2] = {
		{ "fixture_state", "gc.deep.grid" },  { "fixture_state", "tail" },
		{ "fixture_state_t", "node.high" },   { "fixture_state", "real" },
		{ "fixture_unnamed", "first" },	      { "fixture_again", "state" },
		{ "fixture_later", "value" },	      { "fixture_twice", "two" },
		{ "fixture_state", "no_such.member" }
	};
	uint64_t offset, size, whole;
	struct failure why;
	int64_t value;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (symbols_types_find_member(types, members[i][0], members[i][1], &offset, &size,
					      &why) == 0 &&
		    (symbols_types_find_size(types, members[i][0], &whole, &why) != 0 ||
		     offset > whole || size > whole - offset))
			abort();
	}
	symbols_types_find_enumerator(types, "FIXTURE_LIMIT", &value, &why);
	symbols_types_find_enumerator(types, "NO_SUCH", &value, &why);
}

void hostile_types_exercise(const uint8_t *bytes, size_t len)
{
	struct made_up *made_up = calloc(1, sizeof(*made_up));
	struct attach_reader memory = { .read = read_made_up, .self = made_up };
	struct symbols_types *types;
	struct symbols_space *space;
	struct failure why;

	if (len > 0 && len <= HOSTILE_ELF_MAX_BYTES && made_up) {
		memcpy(made_up->file, bytes, len);
		map_file(&memory, len, &space);
		if (symbols_types_create(space, BASE, "fixture_state", &types, &why) == 0) {
			ask_types(types);
			symbols_types_destroy(types);
		}
		symbols_space_destroy(space);
	}
	free(made_up);
}
