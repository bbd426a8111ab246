/* SPDX-License-Identifier: MIT */
#include "hostile_elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/symbols.h"

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

	regs.r[ATTACH_REG_RIP] = pc;
	regs.r[ATTACH_REG_RSP] = STACK;
	regs.r[ATTACH_REG_RBP] = STACK + 64;
	must(symbols_unwind_begin(unwinder, &regs, memory, &why));
	for (unsigned i = 0; i < 64 && symbols_unwind_step(unwinder, &why) > 0; i++)
		symbols_unwind_frame(unwinder, &frame);
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

void hostile_elf_exercise(const uint8_t *bytes, size_t len)
{
	struct made_up *made_up = calloc(1, sizeof(*made_up));
	struct attach_reader memory = { .read = read_made_up, .self = made_up };
	struct symbols_space *space;
	struct symbols_unwinder *unwinder;
	struct failure why;
	char maps[256], byte;
	uint64_t address, end = BASE + ((len + 4095) & ~(size_t)4095);
	unsigned visits = 0;

	if (len == 0 || len > HOSTILE_ELF_MAX_BYTES || !made_up) {
		free(made_up);
		return;
	}
	memcpy(made_up->file, bytes, len);
	for (size_t i = 0; i < STACK_BYTES / 8; i++)
		made_up->stack[i] = i % 3 ? BASE + i * 0x51 % len : STACK + i * 8;
	snprintf(maps, sizeof(maps), "%lx-%lx r-xp 00000000 00:00 0 [vdso]\n", BASE, end);
	must(symbols_space_create_recorded(maps, strlen(maps), &space, &why));
	symbols_space_set_memory(space, &memory);
	must(symbols_unwinder_create(space, &unwinder, &why));
	for (uint64_t i = 0; i < PLACES; i++)
		look_at(space, unwinder, &memory, BASE + (end - BASE) * i / PLACES);
	symbols_each_unwind_entry(space, 1, walk_from, &visits, &why);
	symbols_find_address(space, "no_such_symbol", &address, &why);
	symbols_read_file_bytes(space, BASE + len / 2, &byte, 1, &why);
	symbols_unwinder_destroy(unwinder);
	symbols_space_destroy(space);
	free(made_up);
}
