/* SPDX-License-Identifier: MIT */
/* Write a large sysprof stream: many samples of many distinct chains, the frequent ones among them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/writer.h"

enum {
	NATIVES = 2000,
	LUAS = 4000,
	DEPTH_MIN = 12,
	DEPTH_MAX = 40,
	COMMIT_SAMPLES = 20000,
};

static uint64_t state = 88172645463325252;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "make_stream: %s\n", what);
	exit(1);
}

static void add_functions(struct format_functions *functions)
{
	char name[64], chunk[64];
	struct failure why;
	uint32_t id;

	for (int i = 0; i < NATIVES + LUAS; i++) {
		bool lua = i >= NATIVES;
		struct format_function function = {
			.kind = lua ? FORMAT_KIND_LUA : FORMAT_KIND_NATIVE,
			.address = 0x400000 + 0x1000 * (uint64_t)i,
			.name = name,
			.source = lua ? chunk : "server",
			.first_line = lua ? 10 * (i % 50) + 1 : 0,
		};

		snprintf(name, sizeof(name), lua ? "handle_%d" : "native_function_%d", i);
		snprintf(chunk, sizeof(chunk), "@src/module_%d.lua", i / 50);
		if (format_functions_add(functions, &function, &id, &why))
			die("no memory");
	}
}

/** The chain with that number: what its draws from its own seed say. */
static uint32_t make_chain(uint64_t number, struct format_frame *frames)
{
	uint64_t kept = state;
	uint32_t depth, natives;

	state = (number + 1) * 0x9e3779b97f4a7c15;
	depth = DEPTH_MIN + (uint32_t)draw(DEPTH_MAX - DEPTH_MIN);
	natives = 3 + (uint32_t)draw(4);
	for (uint32_t i = 0; i < depth; i++) {
		bool native = i >= depth - natives; /* from the root on */
		uint32_t function = native ? depth - i : NATIVES + (uint32_t)draw(LUAS);

		frames[i] = (struct format_frame){
			.address = 0x400000 + 0x1000 * (uint64_t)function + 0x68,
			.function = function,
			.line = native ? 0 : 10 * (function % 50) + 1 + (uint32_t)draw(9),
		};
	}
	state = kept;
	return depth;
}

int main(int argc, char **argv)
{
	const struct format_writer_ops *ops = format_writer_find("sysprof");
	struct format_functions *functions = format_functions_create();
	struct format_frame frames[DEPTH_MAX];
	struct format_sink *sink;
	uint64_t samples, chains;
	struct failure why;
	void *self;
	int fd;

	if (argc != 4)
		die("usage: make_stream SAMPLES CHAINS OUT");
	samples = strtoull(argv[1], NULL, 10);
	chains = strtoull(argv[2], NULL, 10);
	fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || !functions || format_sink_create(fd, &sink, &why))
		die("cannot open the output");
	add_functions(functions);
	if (ops->open(sink, functions, NULL, &self, &why))
		die("cannot write");
	for (uint64_t i = 0; i < samples; i++) {
		/* All of them once, then the first ones more often. */
		uint64_t number = i < chains ? i : draw(draw(chains) + 1);
		struct format_sample sample = { .state = FORMAT_STATE_LFUNC,
						.weight = 1,
						.full = true,
						.frames = frames,
						.frame_count = make_chain(number, frames) };

		if (ops->sample(self, &sample, &why) ||
		    (i % COMMIT_SAMPLES == 0 && ops->commit(self, false, &why)))
			die("cannot write");
	}
	if (ops->commit(self, true, &why))
		die("cannot write");
	ops->close(self);
	format_sink_destroy(sink);
	format_functions_destroy(functions);
	return 0;
}
