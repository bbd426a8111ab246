/* SPDX-License-Identifier: MIT */
/* Where are the unwind entries of a file, and what do they contain? */
#include "symbols/elf/eh_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "symbols/elf/bytes.h"

/* Pointer encodings. Source: LSB 5.0 core, 10.5. */
#define PE_OMIT	   0xff
#define PE_ABSPTR  0x00
#define PE_UDATA4  0x03
#define PE_UDATA8  0x04
#define PE_SDATA4  0x0b
#define PE_SDATA8  0x0c
#define PE_FORMAT  0x0f
#define PE_APPLY   0x70
#define PE_PCREL   0x10
#define PE_DATAREL 0x30

/** Bytes read at a time in the search for the end. */
#define CHUNK_BYTES ((size_t)1 << 16)

/** Entries to keep of a file without a search table. */
#define ROWS_MAX (SYMBOLS_EH_MAX_BYTES / sizeof(struct symbols_eh_row))

/** Read a pointer; @p vaddr is the address of the cursor's first byte, @p data the data base. */
static uint64_t take_pointer(struct symbols_bytes *bytes, uint8_t encoding, uint64_t vaddr,
			     uint64_t data)
{
	uint64_t here = vaddr + bytes->at, value;

	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		value = symbols_bytes_fixed(bytes, 8);
		break;
	case PE_UDATA4:
		value = symbols_bytes_fixed(bytes, 4);
		break;
	case PE_SDATA4:
		value = (uint64_t)(int32_t)symbols_bytes_fixed(bytes, 4);
		break;
	default:
		bytes->failed = true;
		return 0;
	}
	if ((encoding & ~PE_FORMAT) == PE_PCREL)
		return here + value;
	if ((encoding & ~PE_FORMAT) == PE_DATAREL)
		return data + value;
	if (encoding & ~PE_FORMAT)
		bytes->failed = true;
	return value;
}

/* ---- One entry -------------------------------------------------------------------------- */

/** Properties that the common part gives its entries. */
struct common {
	uint8_t encoding;
	bool sized, is_signal;
	size_t code_start, code_end;
	uint64_t code_align, return_column;
	int64_t data_align;
};

/** Skip an encoded pointer, a personality routine's, without its value. */
static void skip_pointer(struct symbols_bytes *bytes, uint8_t encoding)
{
	if (encoding != PE_OMIT)
		take_pointer(bytes, encoding & PE_FORMAT, 0, 0);
}

static void take_augmentation(struct symbols_bytes *bytes, const char *letters, struct common *ret)
{
	uint64_t size;
	size_t end;

	if (letters[0] != 'z') {
		bytes->failed |= letters[0] != '\0';
		return;
	}
	ret->sized = true;
	size = symbols_bytes_uleb(bytes);
	end = bytes->at;
	if (bytes->failed || size > bytes->end - bytes->at) {
		bytes->failed = true;
		return;
	}
	end += size;
	for (letters++; *letters && !bytes->failed; letters++) {
		if (*letters == 'R')
			ret->encoding = (uint8_t)symbols_bytes_fixed(bytes, 1);
		else if (*letters == 'L')
			symbols_bytes_fixed(bytes, 1);
		else if (*letters == 'P')
			skip_pointer(bytes, (uint8_t)symbols_bytes_fixed(bytes, 1));
		else if (*letters == 'S')
			ret->is_signal = true;
		else
			break;
	}
	if (bytes->at > end)
		bytes->failed = true;
	/* libunwind runs the program from where its own read ended, so both must agree. */
	if (bytes->at != end)
		bytes->failed = true;
}

/** Decode the common part (CIE) at offset @p at. */
static bool take_common(const struct symbols_eh *eh, size_t at, struct common *ret)
{
	struct symbols_bytes bytes = { .start = eh->bytes, .at = at, .end = eh->len };
	uint64_t len = symbols_bytes_fixed(&bytes, 4), version;
	char letters[8] = "";

	if (bytes.failed || len == 0 || len > bytes.end - bytes.at)
		return false;
	bytes.end = bytes.at + len;
	if (symbols_bytes_fixed(&bytes, 4) != 0)
		return false;
	version = symbols_bytes_fixed(&bytes, 1);
	for (size_t i = 0;; i++) {
		if (i == sizeof(letters) - 1)
			return false;
		letters[i] = (char)symbols_bytes_fixed(&bytes, 1);
		if (!letters[i])
			break;
	}
	*ret = (struct common){ .encoding = PE_UDATA8 };
	ret->code_align = symbols_bytes_uleb(&bytes);
	ret->data_align = symbols_bytes_sleb(&bytes);
	ret->return_column =
		version == 1 ? symbols_bytes_fixed(&bytes, 1) : symbols_bytes_uleb(&bytes);
	take_augmentation(&bytes, letters, ret);
	ret->code_start = bytes.at;
	ret->code_end = bytes.end;
	return !bytes.failed && (version == 1 || version == 3);
}

/**
 * Decode the entry at offset @p at.
 * @param ret_next Offset after it; also set for a common part.
 */
static bool take_entry(const struct symbols_eh *eh, size_t at, struct symbols_eh_entry *ret,
		       size_t *ret_next)
{
	struct symbols_bytes bytes = { .start = eh->bytes, .at = at, .end = eh->len };
	uint64_t len = symbols_bytes_fixed(&bytes, 4), back, size;
	struct common common;
	size_t back_at = bytes.at;

	/* We refuse the 64-bit form (length 0xffffffff): nobody loads an .eh_frame of 4 GiB. */
	if (bytes.failed || len == 0 || len > bytes.end - bytes.at)
		return false;
	bytes.end = *ret_next = bytes.at + len;
	back = symbols_bytes_fixed(&bytes, 4);
	if (bytes.failed || back == 0 || back > back_at ||
	    !take_common(eh, back_at - back, &common))
		return false;
	ret->start = take_pointer(&bytes, common.encoding, eh->vaddr, eh->base);
	size = take_pointer(&bytes, common.encoding & PE_FORMAT, 0, 0);
	if ((common.encoding & PE_FORMAT) == PE_SDATA4)
		size &= UINT32_MAX;
	ret->end = ret->start + size;
	ret->vaddr = eh->vaddr + at;
	if (common.sized)
		symbols_bytes_skip(&bytes, symbols_bytes_uleb(&bytes));
	ret->code_start = bytes.at;
	ret->code_end = bytes.end;
	ret->cie_code_start = common.code_start;
	ret->cie_code_end = common.code_end;
	ret->code_align = common.code_align;
	ret->data_align = common.data_align;
	ret->return_column = common.return_column;
	ret->is_signal = common.is_signal;
	return !bytes.failed && ret->end > ret->start;
}

bool symbols_eh_entry_at(const struct symbols_eh *eh, size_t row, struct symbols_eh_entry *ret)
{
	uint64_t at = eh->base + (uint64_t)eh->rows[row].entry - eh->vaddr;
	size_t next;

	return at < eh->len && take_entry(eh, at, ret, &next);
}

bool symbols_eh_find(const struct symbols_eh *eh, uint64_t vaddr, struct symbols_eh_entry *ret)
{
	int64_t relative = (int64_t)(vaddr - eh->base);
	size_t end = ARRAY_SEARCH(eh->count, i, eh->rows[i].start <= relative);

	return end > 0 && symbols_eh_entry_at(eh, end - 1, ret) && vaddr >= ret->start &&
	       vaddr < ret->end;
}

/* ---- The table -------------------------------------------------------------------------- */

/** Whether the rows can be searched, and no two start at the same address. */
static bool is_ascending(const struct symbols_eh_row *rows, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (rows[i].start <= rows[i - 1].start)
			return false;
	return true;
}

/**
 * Use the search table of .eh_frame_hdr.
 * @return false if it is missing or unusable.
 */
static bool take_table(struct symbols_eh *eh, const uint8_t *header, size_t len, uint64_t vaddr,
		       uint64_t *ret_frame)
{
	struct symbols_bytes bytes = { .start = header, .end = len };
	uint8_t version = (uint8_t)symbols_bytes_fixed(&bytes, 1);
	uint8_t frame_encoding = (uint8_t)symbols_bytes_fixed(&bytes, 1);
	uint8_t count_encoding = (uint8_t)symbols_bytes_fixed(&bytes, 1);
	uint8_t table_encoding = (uint8_t)symbols_bytes_fixed(&bytes, 1);
	uint64_t frame, count;

	if (version != 1 || frame_encoding == PE_OMIT)
		return false;
	frame = take_pointer(&bytes, frame_encoding, vaddr, vaddr);
	if (bytes.failed)
		return false;
	*ret_frame = frame;
	if (count_encoding == PE_OMIT || table_encoding != (PE_DATAREL | PE_SDATA4))
		return false;
	count = take_pointer(&bytes, count_encoding, vaddr, vaddr);
	if (bytes.failed || count == 0 || count > (len - bytes.at) / sizeof(*eh->rows))
		return false;
	eh->rows = malloc(count * sizeof(*eh->rows));
	if (!eh->rows)
		return false;
	memcpy(eh->rows, header + bytes.at, count * sizeof(*eh->rows));
	if (!is_ascending(eh->rows, count)) {
		free(eh->rows);
		eh->rows = NULL;
		return false;
	}
	eh->count = count;
	eh->base = vaddr;
	return true;
}

static int compare_rows(const void *left, const void *right)
{
	const struct symbols_eh_row *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

/** Build the table by walking .eh_frame, for files without one. */
static bool build_table(struct symbols_eh *eh)
{
	size_t room = 0;

	eh->base = eh->vaddr;
	for (size_t at = 0, next = 0; at < eh->len; at = next) {
		struct symbols_eh_entry entry;
		bool valid;

		next = 0;
		valid = take_entry(eh, at, &entry, &next);
		if (next <= at || eh->count == ROWS_MAX)
			break;
		if (!valid || entry.start - eh->base != (uint64_t)(int32_t)(entry.start - eh->base))
			continue;
		if (!ARRAY_RESERVE(eh->rows, room, eh->count + 1))
			return false;
		eh->rows[eh->count++] =
			(struct symbols_eh_row){ .start = (int32_t)(entry.start - eh->base),
						 .entry = (int32_t)at };
	}
	if (eh->count)
		qsort(eh->rows, eh->count, sizeof(*eh->rows), compare_rows);
	return eh->count > 0;
}

/** Find .eh_frame in the file: by its section header, else from the table's pointer to the
 *  segment's end. */
static bool locate_frame(const struct symbols_elf *elf, uint64_t frame, struct symbols_section *ret)
{
	const struct symbols_load *load;

	if (elf->eh_frame.size && (!frame || frame == elf->eh_frame.vaddr)) {
		*ret = elf->eh_frame;
		return true;
	}
	load = frame ? symbols_elf_load_at(elf, frame) : NULL;
	if (!load || frame - load->vaddr >= load->filesz)
		return false;
	ret->vaddr = frame;
	ret->offset = load->offset + (frame - load->vaddr);
	ret->size = load->filesz - (frame - load->vaddr);
	return true;
}

/** Find the end of .eh_frame by a table's last entry; common parts are before their entries. */
static uint64_t find_end_by_table(const struct symbols_eh *eh, const struct symbols_source *source,
				  const struct symbols_section *section)
{
	uint64_t last = 0;
	uint32_t len;

	for (size_t i = 0; i < eh->count; i++) {
		uint64_t at = eh->base + (uint64_t)eh->rows[i].entry - section->vaddr;

		if (at < section->size && at > last)
			last = at;
	}
	if (!symbols_source_read(source, section->offset + last, &len, sizeof(len)))
		return section->size;
	return last + sizeof(len) + len;
}

/** Find the first entry of length 0, which ends .eh_frame. */
static uint64_t find_terminator(const struct symbols_source *source,
				const struct symbols_section *section)
{
	uint64_t at = 0, start = 0, end = 0;
	uint32_t len = 1;
	uint8_t *chunk = malloc(CHUNK_BYTES);

	while (chunk && len && at <= SYMBOLS_EH_MAX_BYTES && at + sizeof(len) <= section->size) {
		if (at + sizeof(len) > end) {
			start = at;
			end = section->size - at < CHUNK_BYTES ? section->size : at + CHUNK_BYTES;
			if (!symbols_source_read(source, section->offset + start, chunk,
						 (size_t)(end - start)))
				break;
		}
		memcpy(&len, chunk + (at - start), sizeof(len));
		at += sizeof(len) + len;
	}
	free(chunk);
	return at;
}

/** Cut the section after its last entry. A section may end in a hole of the file that is larger
 *  than our limit. */
static void cut_section(const struct symbols_eh *eh, const struct symbols_source *source,
			struct symbols_section *section)
{
	uint64_t end = eh->count ? find_end_by_table(eh, source, section)
				 : find_terminator(source, section);

	if (end < section->size)
		section->size = end;
}

int symbols_eh_init(struct symbols_eh *ret_eh, const struct symbols_elf *elf, struct failure *why)
{
	struct symbols_eh eh = { 0 };
	struct symbols_section section = { 0 };
	uint64_t frame = 0;
	uint8_t *header;

	errno = 0;
	header = symbols_source_copy(&elf->source, elf->eh_frame_hdr.offset, elf->eh_frame_hdr.size,
				     SYMBOLS_EH_MAX_BYTES);

	if (header)
		take_table(&eh, header, elf->eh_frame_hdr.size, elf->eh_frame_hdr.vaddr, &frame);
	free(header);
	if (!locate_frame(elf, frame, &section)) {
		symbols_eh_deinit(&eh);
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find unwind information");
	}
	cut_section(&eh, &elf->source, &section);
	eh.vaddr = section.vaddr;
	eh.len = section.size;
	eh.bytes = symbols_source_copy(&elf->source, section.offset, section.size,
				       SYMBOLS_EH_MAX_BYTES);
	if (!eh.bytes || (!eh.count && !build_table(&eh))) {
		enum failure_kind kind = errno == ENOMEM		       ? FAILURE_NO_MEMORY
					 : section.size > SYMBOLS_EH_MAX_BYTES ? FAILURE_LIMIT
									       : FAILURE_INVALID;

		symbols_eh_deinit(&eh);
		return failure_set(why, kind, 0, 0, 0, "load unwind information");
	}
	*ret_eh = eh;
	return 0;
}

void symbols_eh_deinit(struct symbols_eh *eh)
{
	free(eh->bytes);
	free(eh->rows);
	*eh = (struct symbols_eh){ 0 };
}
