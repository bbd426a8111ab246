/* SPDX-License-Identifier: MIT */

/*
 * Show what ljprof learns of a file from its debug information.
 *
 * Usage: show_types FILE ANCHOR [MILLISECONDS]
 * With MILLISECONDS debug files are fetched before, for at most so long, as if two processes had
 * the file mapped, or until SIGINT comes. Standard input has lines "STRUCTURE MEMBER", "STRUCTURE
 * sizeof", "enum CONSTANT" and "function NAME". Each comes out with the offset and size, the size,
 * the value, or the name of the function at the address of that name, or with "-".
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "symbols/elf/elf_file.h"
#include "symbols/types.h"

#define ADDRESS ((uint64_t)0x7f0000000000)

/** A recorded space that has the file's code mapped. */
static struct symbols_space *map_file(const char *path)
{
	struct symbols_source source;
	struct symbols_elf elf;
	struct symbols_space *space;
	struct failure why;
	struct stat status;
	char text[4400];
	unsigned i = 0;

	if (stat(path, &status) != 0 ||
	    symbols_source_init_file(&source, open(path, O_RDONLY | O_CLOEXEC), &why) != 0 ||
	    symbols_elf_init(&elf, &source, &why) != 0)
		return NULL;
	while (i + 1 < elf.load_count && !elf.loads[i].executable)
		i++;
	snprintf(text, sizeof(text),
		 "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " %02x:%02x %lu %s\n", ADDRESS,
		 ADDRESS + ((elf.loads[i].filesz + 4095) & ~(uint64_t)4095),
		 elf.loads[i].offset & ~(uint64_t)4095, major(status.st_dev), minor(status.st_dev),
		 status.st_ino, path);
	symbols_elf_deinit(&elf);
	return symbols_space_create_recorded(text, strlen(text), &space, &why) == 0 ? space : NULL;
}

static void show_member(struct symbols_types *types, const char *structure, const char *member)
{
	struct failure why;
	uint64_t offset, size;

	if (strcmp(member, "sizeof") == 0 &&
	    symbols_types_find_size(types, structure, &size, &why) == 0)
		printf("%s sizeof %" PRIu64 "\n", structure, size);
	else if (strcmp(member, "sizeof") != 0 &&
		 symbols_types_find_member(types, structure, member, &offset, &size, &why) == 0)
		printf("%s %s %" PRIu64 " %" PRIu64 "\n", structure, member, offset, size);
	else
		printf("%s %s -\n", structure, member);
}

static void show_enumerator(struct symbols_types *types, const char *name)
{
	struct failure why;
	int64_t value;

	if (symbols_types_find_enumerator(types, name, &value, &why) == 0)
		printf("enum %s %" PRId64 "\n", name, value);
	else
		printf("enum %s -\n", name);
}

static void show_function(struct symbols_space *space, const char *name)
{
	struct symbols_function function = { .name = "-" };
	struct failure why;
	uint64_t address;

	if (symbols_find_address(space, name, &address, &why) == 0)
		symbols_find_function(space, address, &function, &why);
	printf("function %s %s\n", name, function.name);
}

static volatile sig_atomic_t stop;

static void note_signal(int number)
{
	(void)number;
	stop = 1;
}

static void fetch(const char *path, struct symbols_space *space, const char *limit_ms)
{
	struct symbols_space *spaces[] = { map_file(path), space };
	struct failure why = { 0 };
	char text[256] = "";
	size_t count;

	if (!spaces[0])
		exit(2);
	signal(SIGINT, note_signal);
	if (symbols_fetch_debug(spaces, 2, (unsigned)atoi(limit_ms), &stop, &count, &why) != 0)
		failure_describe(&why, text, sizeof(text));
	fprintf(stderr, "fetched %zu%s%s\n", count, *text ? ": " : "", text);
	symbols_space_destroy(spaces[0]);
}

int main(int argc, char **argv)
{
	struct symbols_space *space = argc == 3 || argc == 4 ? map_file(argv[1]) : NULL;
	struct symbols_types *types = NULL;
	struct failure why = { 0 };
	char first[128], second[128], text[256];

	if (!space) {
		fputs("usage: show_types FILE ANCHOR [MILLISECONDS]\n", stderr);
		return 2;
	}
	if (argc == 4)
		fetch(argv[1], space, argv[3]);
	if (symbols_types_create(space, ADDRESS, argv[2], &types, &why) != 0) {
		failure_describe(&why, text, sizeof(text));
		fprintf(stderr, "show_types: %s\n", text);
		symbols_space_destroy(space);
		return 1;
	}
	while (scanf("%127s %127s", first, second) == 2) {
		if (strcmp(first, "enum") == 0)
			show_enumerator(types, second);
		else if (strcmp(first, "function") == 0)
			show_function(space, second);
		else
			show_member(types, first, second);
	}
	symbols_types_destroy(types);
	symbols_space_destroy(space);
	return 0;
}
