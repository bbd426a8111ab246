/* SPDX-License-Identifier: MIT */
/*
 * Write the seeds of fuzz_core: core files of some KiB. Usage: core_seeds FOLDER
 * The kernel's has all mappings as segments, and of what files hold the first page; gdb's has no
 * segment for what is in a file only.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "made_core.h"

#define CODE  ((uint64_t)0x555555554000)
#define HEAP  ((uint64_t)0x555555600000)
#define STACK ((uint64_t)0x7ffffff00000)
#define VDSO  ((uint64_t)0x7fffffff0000)

static void write_seed(const char *folder, const char *name, const struct made_core *core)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	if (!file || fwrite(core->file.bytes, 1, core->file.len, file) != core->file.len ||
	    fclose(file) != 0) {
		perror(path);
		exit(1);
	}
}

static void make(const char *folder, const char *name, bool by_kernel, const uint8_t *build_id)
{
	const struct made_file files[] = {
		{ CODE, CODE + MADE_PAGE, 0, "/program" },
		{ CODE + MADE_PAGE, CODE + 2 * MADE_PAGE, 1, "/program" },
	};
	struct made_core core = { 0 };
	struct made_bytes program = { 0 };

	made_program(&program, build_id, 0x90);
	made_process(&core, 4711, "luajit");
	made_thread(&core, 4711, 11, CODE + MADE_PAGE + 16, STACK);
	made_thread(&core, 4712, 0, VDSO + MADE_PAGE / 2, STACK + 256);
	made_auxv(&core, VDSO);
	made_files(&core, files, 2);
	{
		const struct made_segment segments[] = {
			{ CODE, MADE_PAGE, 512, PF_R, program.bytes },
			{ HEAP, MADE_PAGE, 512, PF_R | PF_W, NULL },
			{ STACK, MADE_PAGE, 512, PF_R | PF_W, NULL },
			{ VDSO, MADE_PAGE, MADE_PAGE, PF_R | PF_X, program.bytes },
			{ CODE + MADE_PAGE, MADE_PAGE, 0, PF_R | PF_X, NULL },
		};

		made_finish(&core, segments, by_kernel ? 5 : 4);
	}
	write_seed(folder, name, &core);
	made_free(&program);
	made_core_free(&core);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 1;
	make(argv[1], "kernel", true, made_build_id);
	make(argv[1], "gdb", false, made_build_id);
	make(argv[1], "no_build_id", true, NULL);
	return 0;
}
