/* SPDX-License-Identifier: MIT */
/* Shows the native functions of LuaJIT in a file: one line for each, with its link-time addresses,
 * how its name was found, its signature and its name. For scripts/signatures and for tests.
 *
 * usage: show_native [--no-symbols] FILE
 *   --no-symbols  as if the file exported nothing
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "attach/clock.h"
#include "luastate/native_names.h"
#include "luastate/vm.h"
#include "symbols/module.h"
#include "symbols/unwind.h"

enum {
	SEGMENTS_MAX = 64,
	PAGE = 4096,
	BASE = 0x10000000,
};

/** The interpreter of the file; 0: none. */
struct found {
	uint64_t start, end;
};

static bool visit(void *context, const struct symbols_unwind_entry *entry)
{
	struct found *found = context;
	const struct luastate_unwind_rule rule = { .start = entry->start,
						   .end = entry->end,
						   .cfa_register = entry->cfa_register,
						   .cfa_offset = entry->cfa_offset,
						   .saved_offset = entry->saved_offset };

	if (!entry->constant || !luastate_is_interpreter(&rule))
		return true;
	*found = (struct found){ entry->start, entry->end };
	return false;
}

/* The maps of a process that has only this file. @return their length, 0: it is no program. */
static size_t make_maps(const char *path, char *maps, size_t size)
{
	FILE *file = fopen(path, "rb");
	Elf64_Ehdr header;
	struct stat status;
	size_t len = 0;

	if (!file || fread(&header, sizeof(header), 1, file) != 1 ||
	    fstat(fileno(file), &status) != 0 || fseek(file, (long)header.e_phoff, SEEK_SET) != 0) {
		if (file)
			fclose(file);
		return 0;
	}
	for (unsigned i = 0; i < header.e_phnum && i < SEGMENTS_MAX; i++) {
		Elf64_Phdr segment;
		uint64_t start, end;

		if (fread(&segment, sizeof(segment), 1, file) != 1)
			break;
		if (segment.p_type != PT_LOAD)
			continue;
		start = segment.p_vaddr & -(uint64_t)PAGE;
		end = (segment.p_vaddr + segment.p_filesz + PAGE - 1) & -(uint64_t)PAGE;
		if (header.e_type == ET_DYN) {
			start += BASE;
			end += BASE;
		}
		len += (size_t)snprintf(
			maps + len, size - len,
			"%" PRIx64 "-%" PRIx64 " r%c%cp %08" PRIx64 " %02x:%02x %lu %s\n", start,
			end, segment.p_flags & PF_W ? 'w' : '-', segment.p_flags & PF_X ? 'x' : '-',
			(uint64_t)(segment.p_offset & -(uint64_t)PAGE), major(status.st_dev),
			minor(status.st_dev), (unsigned long)status.st_ino, path);
	}
	fclose(file);
	return len;
}

/** Where symbols are looked up. */
struct symbols {
	struct symbols_space *space;
	uint64_t bias;
	char name[SYMBOLS_MODULE_NAME_MAX];
};

static const char *symbol_at(void *context, uint64_t address)
{
	struct symbols *symbols = context;

	return symbols_module_symbol(symbols->space, address + symbols->bias, symbols->name)
		       ? symbols->name
		       : NULL;
}

static void show(const struct luastate_native *native)
{
	static const char *const hows[LUASTATE_NATIVE_HOWS] = { "none", "table", "calls",
								"signature" };

	struct luastate_native_calls calls;

	luastate_native_get_calls(native, &calls);
	if (calls.count)
		printf("calls %016" PRIx64, calls.flags);
	for (size_t i = 0; i < calls.count; i++)
		printf(" %" PRIx64, calls.functions[i]);
	if (calls.count)
		putchar('\n');
	for (size_t i = 0; i < luastate_native_count(native); i++) {
		struct luastate_native_function function;

		luastate_native_get(native, i, &function);
		printf("%" PRIx64 " %" PRIx64 " %s%s %016" PRIx64 " %s\n", function.start,
		       function.end, hows[function.how], function.is_cold ? ",cold" : "",
		       function.signature, function.name ? function.name : "-");
	}
}

static int show_file(struct symbols_space *space, bool has_symbols)
{
	struct found found = { 0 };
	struct symbols_module module;
	struct symbols_file_id id;
	struct luastate_native *native;
	struct symbols symbols;
	struct failure why;
	uint64_t bias, begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

	symbols_each_unwind_entry(space, LUASTATE_INTERPRETER_MIN_BYTES, visit, &found, &why);
	if (!found.start || !symbols_find_file(space, found.start, &id, &bias) ||
	    symbols_module_init(space, found.start, &module, &why) != 0) {
		fputs("show_native: the file has no interpreter of LuaJIT\n", stderr);
		return 1;
	}
	symbols = (struct symbols){ .space = space, .bias = bias };
	if (luastate_native_create(
		    &(struct luastate_module){
			    .interpreter = { found.start - bias, found.end - bias },
			    .functions = (const void *)module.functions,
			    .function_count = module.function_count,
			    .parts = (const void *)module.parts,
			    .part_count = module.part_count,
			    .symbol = has_symbols ? symbol_at : NULL,
			    .context = &symbols },
		    &native, &why) != 0) {
		fprintf(stderr, "show_native: cannot %s\n", why.step);
		return 1;
	}
	fprintf(stderr, "%" PRIu64 " us\n",
		(clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / 1000);
	show(native);
	luastate_native_destroy(native);
	symbols_module_deinit(&module);
	return 0;
}

int main(int argc, char **argv)
{
	struct symbols_space *space;
	static char maps[1 << 16];
	struct failure why;
	bool has_symbols = argc < 2 || strcmp(argv[1], "--no-symbols") != 0;
	char *path = argc == 3 - has_symbols ? realpath(argv[argc - 1], NULL) : NULL;
	size_t len = path ? make_maps(path, maps, sizeof(maps)) : 0;
	int status = 1;

	if (len == 0 || symbols_space_create_recorded(maps, len, &space, &why) != 0) {
		fputs("usage: show_native [--no-symbols] FILE\n", stderr);
	} else {
		status = show_file(space, has_symbols);
		symbols_space_destroy(space);
	}
	free(path);
	return status;
}
