/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SYMBOLS_MADE_CORE_H
#define TESTS_SYMBOLS_MADE_CORE_H

/* Core files and ELF files of a few KiB, made by hand. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MADE_PAGE 4096

/** Bytes that grow. */
struct made_bytes {
	uint8_t *bytes;
	size_t len, size;
};

void made_append(struct made_bytes *made, const void *bytes, size_t len);
void made_free(struct made_bytes *made);

/** One PT_LOAD; its bytes in the file are `saved`, of `size`. */
struct made_segment {
	uint64_t start, size, saved;
	unsigned flags;	      /* PF_R … */
	const uint8_t *bytes; /* of saved; NULL: each byte tells its address, made_byte() */
};

/** What stands in memory that was not given bytes. */
uint8_t made_byte(uint64_t address);

/** A mapped file of the note. */
struct made_file {
	uint64_t start, end, page; /* offset in pages */
	const char *path;
};

struct made_core {
	struct made_bytes notes, file;
};

/** Append a note with the name "CORE". */
void made_note(struct made_core *core, uint32_t type, const void *bytes, size_t len);
void made_thread(struct made_core *core, pid_t tid, short signal, uint64_t pc, uint64_t sp);
void made_process(struct made_core *core, pid_t pid, const char *name);
void made_auxv(struct made_core *core, uint64_t vdso);
void made_files(struct made_core *core, const struct made_file *files, size_t count);
/** Put the file together: header, program headers, notes, and memory from a page on. */
void made_finish(struct made_core *core, const struct made_segment *segments, size_t count);
void made_core_free(struct made_core *core);

/** Some build-id. */
extern const uint8_t made_build_id[20];

/** A program of two pages, code in the second, as a file and as it is mapped.
 *  @param build_id Of 20 bytes, or NULL: without. @param fill In all of the second page. */
void made_program(struct made_bytes *program, const uint8_t *build_id, uint8_t fill);

/** Put bytes into a file without a name. @return Its descriptor; *ret_path opens it. */
int made_open(const void *bytes, size_t len, char ret_path[64]);

#endif
