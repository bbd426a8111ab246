/* SPDX-License-Identifier: MIT */
/* What do a core file's notes say about the process, its threads and its mapped files? */
#include "symbols/core/core_internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>

#include "attach/array.h"
#include "symbols/elf/bytes.h"

/**
 * The kernel's own limit for the list of mapped files.
 * Source: Linux fs/coredump.c, CORE_FILE_NOTE_SIZE_MAX.
 */
#define FILE_NOTE_MAX_BYTES ((size_t)16 << 20)
/** Some twenty entries in practice. */
#define AUXV_MAX_BYTES ((size_t)4096)

/** One note: its type, and the location of its bytes in the file. */
struct note {
	uint32_t type;
	uint64_t offset, size;
};

/* ---- Process and threads ---------------------------------------------------------------- */

static int take_thread(struct symbols_core *core, const struct note *note, struct failure *why)
{
	struct symbols_core_thread thread = { 0 };
	struct elf_prstatus status;

	if (note->size != sizeof(status) || core->thread_count == SYMBOLS_CORE_THREADS_MAX ||
	    !symbols_source_read(&core->source, note->offset, &status, sizeof(status)) ||
	    attach_decode_registers(&status.pr_reg, sizeof(status.pr_reg), &thread.registers, why) <
		    0)
		return 0;
	thread.tid = status.pr_pid;
	thread.signal = status.pr_cursig;
	if (!ARRAY_RESERVE(core->threads, core->thread_room, core->thread_count + 1))
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read it");
	core->threads[core->thread_count++] = thread;
	return 0;
}

static void take_process(struct symbols_core *core, const struct note *note)
{
	struct elf_prpsinfo info;

	if (note->size != sizeof(info) ||
	    !symbols_source_read(&core->source, note->offset, &info, sizeof(info)))
		return;
	core->pid = info.pr_pid;
	memcpy(core->name, info.pr_fname, strnlen(info.pr_fname, sizeof(info.pr_fname)));
}

static void take_auxv(struct symbols_core *core, const struct note *note)
{
	uint8_t *bytes =
		symbols_source_copy(&core->source, note->offset, note->size, AUXV_MAX_BYTES);
	Elf64_auxv_t entry;

	for (size_t at = 0; bytes && note->size - at >= sizeof(entry); at += sizeof(entry)) {
		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.a_type == AT_NULL)
			break;
		if (entry.a_type == AT_SYSINFO_EHDR)
			core->vdso = entry.a_un.a_val;
	}
	free(bytes);
}

/* ---- Mapped files ----------------------------------------------------------------------- */

/** Read one entry of the list. Offsets are in pages of @p unit bytes; gdb's have one byte. */
static bool take_file(struct symbols_core_file *file, struct symbols_bytes *entry, uint64_t unit)
{
	uint64_t offset;

	file->start = symbols_bytes_fixed(entry, 8);
	file->end = symbols_bytes_fixed(entry, 8);
	offset = symbols_bytes_fixed(entry, 8);
	return !entry->failed && file->start < file->end &&
	       !__builtin_mul_overflow(offset, unit, &file->offset) &&
	       file->offset + (file->end - file->start) >= file->offset;
}

/** Keep the file if its address ascends. No known writer lists them otherwise. */
static void keep_file(struct symbols_core *core, const struct symbols_core_file *file)
{
	const struct symbols_core_file *last =
		core->file_count ? &core->files[core->file_count - 1] : NULL;
	struct symbols_core_file *kept = &core->files[core->file_count];

	if (last && file->start < last->end)
		return;
	*kept = *file;
	kept->number = !last ? 1 : last->number + (strcmp(last->path, file->path) != 0);
	core->file_count++;
}

/**
 * Read the list: a count, the page size, then per file an entry of three numbers, then per file a
 * string.
 * @return false when out of memory.
 */
static bool list_files(struct symbols_core *core, size_t size)
{
	struct symbols_bytes numbers = { .start = core->file_note, .end = size };
	uint64_t count = symbols_bytes_fixed(&numbers, 8), unit = symbols_bytes_fixed(&numbers, 8);
	size_t path;

	if (numbers.failed || count > (size - numbers.at) / 24)
		return true;
	path = numbers.at + (size_t)count * 24;
	core->files = calloc(count + 1, sizeof(*core->files));
	if (!core->files)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		const char *text = (const char *)core->file_note + path;
		size_t len = strnlen(text, size - path);
		struct symbols_core_file file = { .path = text };

		if (len == size - path)
			break;
		path += len + 1;
		if (take_file(&file, &numbers, unit))
			keep_file(core, &file);
	}
	return true;
}

static int take_files(struct symbols_core *core, const struct note *note, struct failure *why)
{
	if (core->files)
		return 0;
	free(core->file_note);
	core->file_note =
		symbols_source_copy(&core->source, note->offset, note->size, FILE_NOTE_MAX_BYTES);
	return !core->file_note || list_files(core, note->size)
		       ? 0
		       : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read it");
}

/* ---- Notes ------------------------------------------------------------------------------ */

static int take_note(struct symbols_core *core, const struct note *note, struct failure *why)
{
	switch (note->type) {
	case NT_PRSTATUS:
		return take_thread(core, note, why);
	case NT_PRPSINFO:
		take_process(core, note);
		return 0;
	case NT_AUXV:
		take_auxv(core, note);
		return 0;
	case NT_FILE:
		return take_files(core, note, why);
	default:
		return 0;
	}
}

static bool is_process_note(const struct symbols_core *core, const Elf64_Nhdr *header,
			    uint64_t offset)
{
	char name[5];

	return header->n_namesz == sizeof(name) &&
	       symbols_source_read(&core->source, offset, name, sizeof(name)) &&
	       memcmp(name, "CORE", sizeof(name)) == 0;
}

int symbols_core_take_notes(struct symbols_core *core, uint64_t offset, uint64_t size,
			    struct failure *why)
{
	uint64_t room = offset < core->source.size ? core->source.size - offset : 0;
	uint64_t end = offset + (size < room ? size : room), at = offset;
	Elf64_Nhdr header;

	core->is_truncated |= size > room;
	while (at < end && end - at >= sizeof(header)) {
		uint64_t name = at + sizeof(header), bytes;

		if (++core->note_count > SYMBOLS_CORE_NOTES_MAX ||
		    !symbols_source_read(&core->source, at, &header, sizeof(header)))
			return 0;
		/* Both sizes have 32 bits, and file offsets have 63, so nothing overflows. */
		bytes = name + (((uint64_t)header.n_namesz + 3) & ~(uint64_t)3);
		at = bytes + (((uint64_t)header.n_descsz + 3) & ~(uint64_t)3);
		if (bytes > end || header.n_descsz > end - bytes)
			return 0;
		if (is_process_note(core, &header, name) &&
		    take_note(core,
			      &(struct note){ .type = header.n_type,
					      .offset = bytes,
					      .size = header.n_descsz },
			      why) < 0)
			return -1;
	}
	return 0;
}
