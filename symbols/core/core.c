/* SPDX-License-Identifier: MIT */
/* What are the headers and the memory of a core file, if all its numbers may be hostile? */
#include "symbols/core/core_internal.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/array.h"
#include "symbols/elf/root.h"

#if defined(__x86_64__)
#define CORE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define CORE_MACHINE EM_AARCH64
#endif

/* ---- Headers ---------------------------------------------------------------------------- */

static int check_header(const Elf64_Ehdr *header, struct failure *why)
{
	const char *step = NULL;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_type != ET_CORE)
		step = "read it: it is not a core file";
	else if (header->e_ident[EI_CLASS] != ELFCLASS64)
		step = "read it: it is the core of a 32-bit program";
	else if (header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != CORE_MACHINE)
		step = "read it: it is the core of another architecture's program";
	else if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0)
		step = "read it: its headers are damaged";
	return step ? failure_set(why, FAILURE_INVALID, 0, 0, 0, step) : 0;
}

/** If the header has no room for the number of segments, the first section's header has it. */
static int count_headers(const struct symbols_core *core, const Elf64_Ehdr *header,
			 uint64_t *ret_count, struct failure *why)
{
	Elf64_Shdr section;

	*ret_count = header->e_phnum;
	if (header->e_phnum == PN_XNUM &&
	    symbols_source_read(&core->source, header->e_shoff, &section, sizeof(section)))
		*ret_count = section.sh_info;
	return *ret_count > SYMBOLS_MAPS_MAX_COUNT
		       ? failure_set(why, FAILURE_LIMIT, 0, 0, 0, "read it: too many segments")
		       : 0;
}

/** Copy the program headers that the file holds. */
static int copy_headers(struct symbols_core *core, Elf64_Phdr **ret_headers, size_t *ret_count,
			struct failure *why)
{
	Elf64_Ehdr header;
	uint64_t count, room;

	if (!symbols_source_read(&core->source, 0, &header, sizeof(header)))
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "read it: it is not a core file");
	if (check_header(&header, why) < 0 || count_headers(core, &header, &count, why) < 0)
		return -1;
	room = header.e_phoff < core->source.size ? core->source.size - header.e_phoff : 0;
	if (count > room / sizeof(**ret_headers)) {
		count = room / sizeof(**ret_headers);
		core->is_truncated = true;
	}
	*ret_headers = calloc(count + 1, sizeof(**ret_headers));
	if (!*ret_headers)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read it");
	if (!symbols_source_read(&core->source, header.e_phoff, *ret_headers,
				 count * sizeof(**ret_headers)))
		count = 0; /* the file has just become shorter */
	*ret_count = count;
	return 0;
}

/* ---- Segments --------------------------------------------------------------------------- */

static bool take_segment(struct symbols_core *core, const Elf64_Phdr *header,
			 struct symbols_core_segment *ret)
{
	uint64_t size = core->source.size,
		 room = header->p_offset < size ? size - header->p_offset : 0;

	if (header->p_memsz == 0 || header->p_vaddr + header->p_memsz < header->p_vaddr)
		return false;
	*ret = (struct symbols_core_segment){
		.start = header->p_vaddr,
		.end = header->p_vaddr + header->p_memsz,
		.offset = header->p_offset,
		.saved = header->p_filesz < header->p_memsz ? header->p_filesz : header->p_memsz,
		.readable = header->p_flags & PF_R,
		.writable = header->p_flags & PF_W,
		.executable = header->p_flags & PF_X,
	};
	ret->there = ret->saved < room ? ret->saved : room;
	core->is_truncated |= ret->there < ret->saved;
	return true;
}

/** No known writer makes segments overlap. We keep the lower segment. */
static void drop_overlaps(struct symbols_core *core)
{
	size_t kept = 0;
	uint64_t end = 0;

	qsort(core->segments, core->segment_count, sizeof(*core->segments), array_by_first_u64);
	for (size_t i = 0; i < core->segment_count; i++) {
		if (core->segments[i].start < end)
			continue;
		end = core->segments[i].end;
		core->segments[kept++] = core->segments[i];
	}
	core->segment_count = kept;
}

static int take_headers(struct symbols_core *core, const Elf64_Phdr *headers, size_t count,
			struct failure *why)
{
	core->segments = calloc(count + 1, sizeof(*core->segments));
	if (!core->segments)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read it");
	for (size_t i = 0; i < count; i++) {
		const Elf64_Phdr *header = &headers[i];

		if (header->p_type == PT_LOAD &&
		    take_segment(core, header, &core->segments[core->segment_count]))
			core->segment_count++;
		else if (header->p_type == PT_NOTE &&
			 symbols_core_take_notes(core, header->p_offset, header->p_filesz, why) < 0)
			return -1;
	}
	drop_overlaps(core);
	return 0;
}

ptrdiff_t symbols_core_find_segment(const struct symbols_core *core, uint64_t address)
{
	size_t at = ARRAY_SEARCH(core->segment_count, i, core->segments[i].end <= address);

	return at < core->segment_count && core->segments[at].start <= address ? (ptrdiff_t)at : -1;
}

static void limit_stacks(struct symbols_core *core)
{
	for (size_t i = 0; i < core->thread_count; i++) {
		struct symbols_core_thread *thread = &core->threads[i];
		ptrdiff_t index = symbols_core_find_segment(core, attach_sp(&thread->registers));

		thread->stack_limit = index < 0 ? 0 : core->segments[index].end;
	}
}

/* ---- Memory ----------------------------------------------------------------------------- */

/**
 * Copy the part of [offset, offset + len) that one cached page holds.
 * @return Number of bytes.
 */
static size_t copy_of_page(struct symbols_core *core, uint64_t offset, uint8_t *bytes, size_t len)
{
	uint64_t page = offset / SYMBOLS_CORE_PAGE_BYTES, start = page * SYMBOLS_CORE_PAGE_BYTES;
	size_t slot = page % SYMBOLS_CORE_PAGES, into = (size_t)(offset - start);
	uint64_t size = core->source.size - start;

	size = size < SYMBOLS_CORE_PAGE_BYTES ? size : SYMBOLS_CORE_PAGE_BYTES;
	if (core->pages[slot] != page + 1) {
		core->pages[slot] = 0;
		if (!symbols_source_read(&core->source, start, core->bytes[slot], size))
			return 0;
		core->pages[slot] = page + 1;
	}
	len = len < size - into ? len : (size_t)size - into;
	memcpy(bytes, core->bytes[slot] + into, len);
	return len;
}

static size_t copy_saved(struct symbols_core *core, const struct symbols_core_segment *segment,
			 uint64_t address, uint8_t *bytes, size_t len)
{
	uint64_t into = address - segment->start;

	if (into >= segment->there)
		return 0;
	len = len < segment->there - into ? len : (size_t)(segment->there - into);
	if (len <= SYMBOLS_CORE_PAGE_BYTES)
		return copy_of_page(core, segment->offset + into, bytes, len);
	return symbols_source_read(&core->source, segment->offset + into, bytes, len) ? len : 0;
}

static int read_memory(struct symbols_core *core, bool behind, uint64_t address, uint8_t *bytes,
		       size_t len, struct failure *why)
{
	while (len) {
		ptrdiff_t index = symbols_core_find_segment(core, address);
		size_t got =
			index < 0 ? 0
				  : copy_saved(core, &core->segments[index], address, bytes, len);

		if (!got && behind)
			got = symbols_core_copy_mapped(core, address, bytes, len);
		if (!got)
			return failure_set(why, FAILURE_FAULT, 0, 0, address,
					   "read the core's memory");
		address += got;
		bytes += got;
		len -= got;
	}
	return 0;
}

static int read_own(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		    struct failure *why)
{
	return read_memory(self, false, address.value, ret_bytes, len, why);
}

static int read_whole(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		      struct failure *why)
{
	return read_memory(self, true, address.value, ret_bytes, len, why);
}

const struct attach_reader *symbols_core_reader(struct symbols_core *core)
{
	return &core->whole;
}

/**
 * Visit [start, end) of a segment without the file's holes, which mean zeros.
 * @return false if the visits must end.
 */
static bool visit_segment(const struct symbols_core *core,
			  const struct symbols_core_segment *segment, uint64_t start, uint64_t end,
			  bool (*visit)(void *context, uint64_t start, uint64_t end), void *context)
{
	uint64_t delta = segment->start - segment->offset;

	while (start < end) {
		off_t data = lseek(core->source.fd, (off_t)(start - delta), SEEK_DATA);
		off_t hole = data < 0 ? -1 : lseek(core->source.fd, data, SEEK_HOLE);
		uint64_t stop = end;

		if (data < 0 && errno == ENXIO)
			return true;
		/* A file system that does not report holes has none. */
		if (data >= 0 && (uint64_t)data + delta > start)
			start = (uint64_t)data + delta;
		if (hole >= 0 && (uint64_t)hole + delta < end)
			stop = (uint64_t)hole + delta;
		if (start >= end || stop <= start)
			return true;
		if (!visit(context, start, stop))
			return false;
		start = stop;
	}
	return true;
}

void symbols_core_each_saved(const struct symbols_core *core, uint64_t start, uint64_t end,
			     bool (*visit)(void *context, uint64_t start, uint64_t end),
			     void *context)
{
	for (size_t i = 0; i < core->segment_count; i++) {
		const struct symbols_core_segment *segment = &core->segments[i];
		uint64_t stop = segment->start + segment->there;
		uint64_t from = start > segment->start ? start : segment->start;

		stop = end < stop ? end : stop;
		if (from < stop && !visit_segment(core, segment, from, stop, visit, context))
			return;
	}
}

/* ---- Open and close --------------------------------------------------------------------- */

static int read_core(struct symbols_core *core, struct failure *why)
{
	Elf64_Phdr *headers = NULL;
	size_t count = 0;
	int result = copy_headers(core, &headers, &count, why);

	if (result == 0)
		result = take_headers(core, headers, count, why);
	free(headers);
	if (result == 0)
		limit_stacks(core);
	return result;
}

int symbols_core_open(const char *path, struct symbols_core **ret_core, struct failure *why)
{
	struct symbols_core *core;
	int fd = symbols_root_open_own(path);

	if (fd < 0 && errno == EINVAL)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0,
				   "read it: it is not a regular file");
	if (fd < 0)
		return failure_set_errno(why, errno, 0, "open it");
	core = calloc(1, sizeof(*core));
	if (!core) {
		close(fd);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read it");
	}
	core->own = (struct attach_reader){ .read = read_own, .self = core };
	core->whole = (struct attach_reader){ .read = read_whole, .self = core };
	if (symbols_source_init_file(&core->source, fd, why) < 0 || read_core(core, why) < 0) {
		symbols_core_close(core);
		return -1;
	}
	*ret_core = core;
	return 0;
}

void symbols_core_close(struct symbols_core *core)
{
	if (!core)
		return;
	symbols_source_deinit(&core->source);
	free(core->segments);
	free(core->files);
	free(core->file_note);
	free(core->threads);
	free(core);
}

/* ---- Queries ---------------------------------------------------------------------------- */

pid_t symbols_core_pid(const struct symbols_core *core)
{
	return core->pid;
}

const char *symbols_core_name(const struct symbols_core *core)
{
	return core->name;
}

bool symbols_core_is_truncated(const struct symbols_core *core)
{
	return core->is_truncated;
}

size_t symbols_core_thread_count(const struct symbols_core *core)
{
	return core->thread_count;
}

const struct symbols_core_thread *symbols_core_thread_get(const struct symbols_core *core,
							  size_t index)
{
	return index < core->thread_count ? &core->threads[index] : NULL;
}
