/* SPDX-License-Identifier: MIT */
/*
 * Start of the host: loads the LuaJIT library that an argument names, then the modules of the
 * cases, which take LuaJIT's functions from it. Usage: cases_host LIBRARY MODULE_FOLDER [SCRIPT
 * CASE SECONDS SEED RECORD THREADS] Without a script it only tells by its exit code whether all can
 * be loaded.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/live/cases/host.h"

enum { ARGUMENTS = 9 };

static void load(const char *folder, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", name);
	if (!dlopen(path, RTLD_LAZY | RTLD_GLOBAL)) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const char *const modules[] = { "libcases.so", "libcases_bare.so", "libcases_fp.so",
					       "libcases_far.so", "libcases_plt.so" };
	host_run_function *run;

	if (argc != ARGUMENTS && argc != 3) {
		fprintf(stderr, "usage: cases_host LIBRARY MODULE_FOLDER [SCRIPT CASE SECONDS SEED "
				"RECORD THREADS]\n");
		return 1;
	}
	load("", argv[1]);
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		load(argv[2], modules[i]);
	if (argc == 3)
		return 0;
	run = (host_run_function *)dlsym(RTLD_DEFAULT, "host_run");
	return run ? run(argv + 3) : 1;
}
