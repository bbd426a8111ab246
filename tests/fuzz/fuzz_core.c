/* SPDX-License-Identifier: MIT */
/* A core file, and all that is looked for and decoded in it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/clock.h"
#include "daemon/snapshot/core_target.h"
#include "daemon/tick_clock.h"
#include "tests/symbols/made_core.h"

enum {
	/* Inputs are some KiB, so that more only takes longer. */
	THREADS_MAX = 4,
	SEARCH_MS = 200,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int number_function(void *context, const struct format_function *function, uint32_t *ret_id,
			   struct failure *why)
{
	uint32_t *next = context;

	(void)function, (void)why;
	*ret_id = (*next)++;
	return 0;
}

static char folder[] = "/tmp/fuzz_core.XXXXXX", program_path[sizeof(folder) + 16];

static void remove_folder(void)
{
	unlink(program_path);
	rmdir(folder);
}

/* The one file to which a path can lead. */
static void make_folder(void)
{
	struct made_bytes program = { 0 };
	FILE *file;

	if (!mkdtemp(folder))
		abort();
	snprintf(program_path, sizeof(program_path), "%s/program", folder);
	made_program(&program, made_build_id, 0x90);
	file = fopen(program_path, "w");
	if (!file || fwrite(program.bytes, 1, program.len, file) != program.len)
		abort();
	fclose(file);
	made_free(&program);
	atexit(remove_folder);
}

/* Decode the threads. */
static void decode(struct daemon_core *core, struct attach_image *image)
{
	for (size_t i = 0; i < daemon_core_thread_count(core) && i < THREADS_MAX; i++) {
		struct format_sample sample = { .weight = 1 };
		struct luastate_memory memory;
		enum daemon_outcome outcome;
		struct failure why;

		daemon_core_take_thread(core, i, image, &memory);
		target_decode(daemon_core_target(core), image, &memory, &sample, &outcome, &why);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct attach_image *image;
	uint32_t next = 0;
	const struct target_listener listener = { .function = number_function, .context = &next };
	struct daemon_core *core;
	char path[64], text[256];
	struct failure why;
	int fd;

	if (!image) {
		make_folder();
		image = attach_image_create();
	}
	if (!image)
		abort();
	fd = made_open(bytes, len, path);
	if (daemon_core_open(path, folder, &listener, &core, text, sizeof(text)) ==
	    DAEMON_END_STOPPED) {
		struct daemon_target *target = daemon_core_target(core);

		target_limit_search(target, NULL, clock_now_ns() + SEARCH_MS * (uint64_t)1000000);
		target_find_vm(target, &why);
		target_find_all_vms(target);
		decode(core, image);
		daemon_core_tell_no_vm(core, text, sizeof(text));
		daemon_core_close(core);
	}
	close(fd);
	return 0;
}
