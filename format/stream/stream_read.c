/* SPDX-License-Identifier: MIT */
/* How are the records of a stream read and checked? */
#include "format/stream/stream_read.h"

#include "format/sysprof/stream_format.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/file/gzip_read.h"
#include "format/text.h"
#include "format/text/uleb.h"

#define SOURCE_BUFFER_LEN 65536

/** The buffer of a string grows by at most this much before more bytes are known to exist. */
#define STRING_STEP 65536

/** Bytes of a number that are read at once. */
#define SHORT_NUMBER 8

/** Bytes of a file, through a window that moves forward. */
struct source {
	struct unpack *file; /* NULL: the window is the whole content. */
	const uint8_t *window;
	size_t len, next;
	uint64_t base; /* Offset of the window's first byte. */
	uint8_t *buffer;
};

struct reader {
	struct source source;
	const struct format_visitor *visitor;
	void *context;
	struct failure *why;
	char *string;
	size_t string_capacity;
	struct format_lua_frame *lua;
	size_t lua_capacity;
	uint64_t *host;
	size_t host_capacity;
};

/* ---- Bytes ------------------------------------------------------------------------------ */

static uint64_t offset_of(const struct reader *reader)
{
	return reader->source.base + reader->source.next;
}

static int invalid(struct reader *reader, uint64_t offset, const char *what)
{
	return failure_set(reader->why, FAILURE_INVALID, 0, 0, offset, what);
}

static int no_memory(struct reader *reader)
{
	return failure_set(reader->why, FAILURE_NO_MEMORY, 0, 0, 0, "hold an item of the stream");
}

/** Ensure at least one byte in the window. @param what Phrase of the failure if there is none. */
static int fill(struct reader *reader, const char *what)
{
	struct source *source = &reader->source;

	if (source->next < source->len)
		return 0;
	source->base += source->len;
	source->next = 0;
	source->len = 0;
	if (source->file) {
		source->window = source->buffer;
		if (unpack_read(source->file, source->buffer, SOURCE_BUFFER_LEN, &source->len,
				reader->why))
			return -1;
	}
	if (source->len == 0)
		return invalid(reader, source->base, what);
	return 0;
}

static int read_header(struct reader *reader, const char *missing, uint8_t *ret_byte)
{
	if (fill(reader, missing))
		return -1;
	*ret_byte = reader->source.window[reader->source.next++];
	return 0;
}

static int read_byte(struct reader *reader, uint8_t *ret_byte)
{
	return read_header(reader, "truncated item", ret_byte);
}

/** Fast path: a number that is entirely in the window and below 2^56, as nearly all are. */
static bool take_number(struct source *source, uint64_t *ret_value)
{
	const uint8_t *at = source->window + source->next;
	uint64_t value = 0;

	if (source->len - source->next < SHORT_NUMBER)
		return false;
	for (size_t i = 0; i < SHORT_NUMBER; i++) {
		value |= (uint64_t)(at[i] & 0x7f) << 7 * i;
		if (at[i] < 0x80) {
			source->next += i + 1;
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static int read_number(struct reader *reader, uint64_t *ret_value)
{
	struct format_uleb uleb = { 0 };
	uint64_t start = offset_of(reader);
	enum format_uleb_step step;
	uint8_t byte;

	if (take_number(&reader->source, ret_value))
		return 0;
	do {
		if (read_byte(reader, &byte))
			return -1;
		step = format_uleb_decode(&uleb, byte);
		if (step == FORMAT_ULEB_TOO_LARGE)
			return invalid(reader, start, "number too large");
	} while (step == FORMAT_ULEB_MORE);
	*ret_value = uleb.value;
	return 0;
}

/** Read @p count numbers. */
static int read_numbers(struct reader *reader, size_t count, uint64_t *const ret_values[])
{
	for (size_t i = 0; i < count; i++)
		if (read_number(reader, ret_values[i]))
			return -1;
	return 0;
}

/** Ensure room for @p len bytes of string and a terminator. */
static int reserve_string(struct reader *reader, size_t len)
{
	return ARRAY_RESERVE(reader->string, reader->string_capacity, len + 1) ? 0
									       : no_memory(reader);
}

/** Read a string into reader->string. The bytes that exist bound the memory, not the stated
 * length. */
static int read_string(struct reader *reader, size_t *ret_len)
{
	struct source *source = &reader->source;
	uint64_t start = offset_of(reader), len;
	size_t done = 0;

	if (read_number(reader, &len))
		return -1;
	if (len > STREAM_STRING_MAX)
		return invalid(reader, start, "string too long");
	while (done < len) {
		size_t part;

		if (fill(reader, "truncated item"))
			return -1;
		part = source->len - source->next;
		if (part > len - done)
			part = len - done;
		if (part > STRING_STEP)
			part = STRING_STEP;
		if (reserve_string(reader, done + part))
			return -1;
		memcpy(reader->string + done, source->window + source->next, part);
		source->next += part;
		done += part;
	}
	if (reserve_string(reader, done))
		return -1;
	reader->string[done] = '\0';
	*ret_len = done;
	return 0;
}

/** Read a prologue with one of @p count magic texts. */
static int read_prologue(struct reader *reader, const char *const magics[], const int versions[],
			 size_t count, size_t *ret_index)
{
	uint64_t start = offset_of(reader), at;
	char magic[STREAM_MAGIC_LEN];
	size_t index = 0;
	uint8_t byte;

	for (size_t i = 0; i < STREAM_MAGIC_LEN; i++) {
		if (read_byte(reader, &byte))
			return -1;
		magic[i] = (char)byte;
	}
	while (index < count && memcmp(magic, magics[index], STREAM_MAGIC_LEN) != 0)
		index++;
	if (index == count)
		return invalid(reader, start, "bad magic");
	at = offset_of(reader);
	if (read_byte(reader, &byte))
		return -1;
	if (byte != versions[index])
		return invalid(reader, at, "version mismatch");
	for (size_t i = 0; i < STREAM_RESERVED_LEN; i++)
		if (read_byte(reader, &byte))
			return -1;
	*ret_index = index;
	return 0;
}

/* ---- Items ------------------------------------------------------------------------------ */

/** Pass on a callback's result. A callback does not know the offset in the file, so this adds it
 * to a failure about a bound or about the bytes. */
static int visited(struct reader *reader, int result, uint64_t offset)
{
	struct failure *why = reader->why;

	if (result == 0)
		return 0;
	if (why && (why->kind == FAILURE_INVALID || why->kind == FAILURE_LIMIT) &&
	    why->address == 0)
		why->address = offset;
	return -1;
}

static int read_symbol(struct reader *reader, unsigned kind, uint64_t offset)
{
	struct format_symbol symbol = { .kind = kind };
	int result = 0;

	if (kind == FORMAT_SYMBOL_TRACE) {
		if (read_numbers(
			    reader, 3,
			    (uint64_t *const[]){ &symbol.trace, &symbol.address, &symbol.line }))
			return -1;
	} else {
		if (read_number(reader, &symbol.address) || read_string(reader, &symbol.name_len))
			return -1;
		symbol.name = reader->string;
		if (kind == FORMAT_SYMBOL_LUA && read_number(reader, &symbol.line))
			return -1;
	}
	if (reader->visitor->symbol)
		result = reader->visitor->symbol(reader->context, &symbol, reader->why);
	return visited(reader, result, offset);
}

static int read_symtab(struct reader *reader)
{
	size_t index;

	if (read_prologue(reader, (const char *const[]){ STREAM_SYMTAB_MAGIC },
			  (const int[]){ STREAM_SYMTAB_VERSION }, 1, &index))
		return -1;
	for (;;) {
		uint64_t offset = offset_of(reader);
		uint8_t header;
		unsigned kind;

		if (read_header(reader, "missing end of the symbol table", &header))
			return -1;
		/* As in Tarantool's parser: first the end bit, then only the two low bits; an
		 * undefined type is a single byte. */
		if (header & STREAM_END)
			return 0;
		kind = header & STREAM_SYMTAB_KIND_MASK;
		if (kind <= FORMAT_SYMBOL_TRACE && read_symbol(reader, kind, offset))
			return -1;
	}
}

static int read_lua_frame(struct reader *reader, uint8_t kind, struct format_lua_frame *ret_frame)
{
	struct format_lua_frame frame = { .kind = kind };

	if (kind < STREAM_FRAME_LUA || kind > STREAM_FRAME_BUILTIN)
		return invalid(reader, offset_of(reader) - 1, "unknown frame header");
	if (read_number(reader, &frame.address))
		return -1;
	if (kind == STREAM_FRAME_LUA && read_number(reader, &frame.line))
		return -1;
	*ret_frame = frame;
	return 0;
}

static int read_lua_stack(struct reader *reader, size_t *ret_count)
{
	size_t count = 0;

	for (;;) {
		uint8_t header;

		if (read_byte(reader, &header))
			return -1;
		if (header == STREAM_END)
			break;
		if (count == STREAM_FRAMES_MAX)
			return invalid(reader, offset_of(reader) - 1, "too many frames");
		if (!ARRAY_RESERVE(reader->lua, reader->lua_capacity, count + 1))
			return no_memory(reader);
		if (read_lua_frame(reader, header, &reader->lua[count]))
			return -1;
		count++;
	}
	*ret_count = count;
	return 0;
}

static int read_host_stack(struct reader *reader, size_t *ret_count)
{
	size_t count = 0;

	for (;;) {
		uint64_t start = offset_of(reader), address;

		if (read_number(reader, &address))
			return -1;
		if (address == 0)
			break;
		if (count == STREAM_FRAMES_MAX)
			return invalid(reader, start, "too many frames");
		if (!ARRAY_RESERVE(reader->host, reader->host_capacity, count + 1))
			return no_memory(reader);
		reader->host[count++] = address;
	}
	*ret_count = count;
	return 0;
}

/**
 * Skip a number in the window.
 * @return The position after it, or NULL if it is too close to the window's end or has more bytes
 * than necessary. Such a padded 0 also ends a stack, and the search must not continue behind the
 * stack's end.
 */
static const uint8_t *skip_number(const uint8_t *at, const uint8_t *end)
{
	uint64_t last_bytes;
	int last;

	if (!at || end - at < SHORT_NUMBER)
		return NULL;
	memcpy(&last_bytes, at, sizeof(last_bytes));
	last_bytes = ~le64toh(last_bytes) & 0x8080808080808080;
	if (!last_bytes)
		return NULL;
	last = __builtin_ctzll(last_bytes) / 8;
	return last > 0 && at[last] == 0 ? NULL : at + last + 1;
}

static const uint8_t *skip_lua_stack(const uint8_t *at, const uint8_t *end)
{
	while (at && at < end && *at != STREAM_END) {
		uint8_t kind = *at++;

		at = skip_number(at, end);
		if (kind == STREAM_FRAME_LUA)
			at = skip_number(at, end);
	}
	return at && at < end ? at + 1 : NULL;
}

static const uint8_t *skip_host_stack(const uint8_t *at, const uint8_t *end)
{
	while (at && at < end && *at != 0)
		at = skip_number(at, end);
	return at && at < end ? at + 1 : NULL;
}

static bool has_lua_stack(uint8_t header)
{
	return header >= FORMAT_STATE_LFUNC && header <= FORMAT_STATE_CFUNC;
}

/** @return Length of a sample's record after its header, or 0 if not yet known. If decoding ends
 * at the same byte, these are its bytes. */
static size_t record_len(const struct source *source, uint8_t header)
{
	const uint8_t *at = source->window + source->next, *end = source->window + source->len;
	const uint8_t *behind = has_lua_stack(header) ? skip_lua_stack(at, end) : at;

	behind = skip_host_stack(behind, end);
	return behind ? (size_t)(behind - at) + 1 : 0;
}

/**
 * Offer a sample's record to the visitor.
 * @param ret_done Whether it need not be decoded.
 * @param ret_len Length of the record, or 0.
 */
static int offer_record(struct reader *reader, uint8_t header, uint64_t offset, bool *ret_done,
			size_t *ret_len)
{
	struct source *source = &reader->source;
	int result;

	*ret_done = false;
	*ret_len = 0;
	if (!reader->visitor->repeat || header == FORMAT_STATE_TRACE)
		return 0;
	*ret_len = record_len(source, header);
	if (*ret_len == 0)
		return 0;
	result = reader->visitor->repeat(reader->context, source->window + source->next - 1,
					 *ret_len, ret_done, reader->why);
	if (*ret_done)
		source->next += *ret_len - 1;
	return visited(reader, result, offset);
}

static int read_sample(struct reader *reader, uint8_t header, uint64_t offset)
{
	struct format_raw_sample sample = { .state = header };
	int result = 0;
	bool is_done;
	size_t len;

	if (offer_record(reader, header, offset, &is_done, &len))
		return -1;
	if (is_done)
		return 0;

	if (header == FORMAT_STATE_TRACE) {
		if (read_numbers(reader, 3,
				 (uint64_t *const[]){ &sample.trace, &sample.trace_proto,
						      &sample.trace_line }))
			return -1;
	} else {
		if (has_lua_stack(header) && read_lua_stack(reader, &sample.lua_count))
			return -1;
		if (read_host_stack(reader, &sample.host_count))
			return -1;
	}
	sample.lua = reader->lua;
	sample.host = reader->host;
	sample.is_offered = len > 0 && offset_of(reader) == offset + len;
	if (reader->visitor->sample)
		result = reader->visitor->sample(reader->context, &sample, reader->why);
	return visited(reader, result, offset);
}

static int read_sysprof(struct reader *reader)
{
	for (;;) {
		uint64_t offset = offset_of(reader);
		uint8_t header;
		int result;

		if (read_header(reader, "missing end byte", &header))
			return -1;
		if (header == STREAM_END)
			return 0;
		if (header < FORMAT_STATE_COUNT)
			result = read_sample(reader, header, offset);
		else if (header <= STREAM_SYSPROF_SYMBOL_BASE + FORMAT_SYMBOL_TRACE)
			result = read_symbol(reader, header - STREAM_SYSPROF_SYMBOL_BASE, offset);
		else
			result = invalid(reader, offset, "unknown state");
		if (result)
			return -1;
	}
}

static int read_event_source(struct reader *reader, struct format_raw_event *event)
{
	switch (event->source) {
	case STREAM_SOURCE_INTERNAL:
		return 0;
	case STREAM_SOURCE_LUA:
		return read_numbers(reader, 2,
				    (uint64_t *const[]){ &event->address, &event->line });
	default:
		return read_number(reader, &event->address);
	}
}

static int read_event(struct reader *reader, uint8_t header, uint64_t offset)
{
	struct format_raw_event event = {
		.kind = STREAM_EVENT_KIND(header),
		.source = STREAM_EVENT_SOURCE(header),
	};
	int result = 0;

	if (event.source < STREAM_SOURCE_INTERNAL || event.source > STREAM_SOURCE_TRACE)
		return invalid(reader, offset, "unknown allocation source");
	if (read_event_source(reader, &event))
		return -1;
	if (event.kind != STREAM_EVENT_ALLOC &&
	    read_numbers(reader, 2, (uint64_t *const[]){ &event.old_address, &event.old_size }))
		return -1;
	if (event.kind != STREAM_EVENT_FREE &&
	    read_numbers(reader, 2, (uint64_t *const[]){ &event.new_address, &event.new_size }))
		return -1;
	if (reader->visitor->event)
		result = reader->visitor->event(reader->context, &event, reader->why);
	return visited(reader, result, offset);
}

static int read_memprof(struct reader *reader)
{
	for (;;) {
		uint64_t offset = offset_of(reader);
		uint8_t header;

		if (read_header(reader, "missing end byte", &header))
			return -1;
		if (header == STREAM_END)
			return 0;
		if (header > STREAM_EVENT_HEADER_MAX)
			return invalid(reader, offset, "unknown event header");
		if (STREAM_EVENT_KIND(header) != STREAM_EVENT_SYMBOL) {
			if (read_event(reader, header, offset))
				return -1;
		} else if (STREAM_EVENT_SOURCE(header) >= STREAM_SOURCE_LUA) {
			/* Tarantool's parser reads a symbol of any other source as an empty
			 * record. */
			if (read_symbol(reader, STREAM_EVENT_SOURCE(header) - STREAM_SOURCE_LUA,
					offset))
				return -1;
		}
	}
}

/* ---- Streams ---------------------------------------------------------------------------- */

static int read_stream(struct reader *reader, enum format_stream_kind *ret_kind)
{
	static const char *const magics[] = { STREAM_SYSPROF_MAGIC, STREAM_MEMPROF_MAGIC };
	static const int versions[] = { STREAM_SYSPROF_VERSION, STREAM_MEMPROF_VERSION };
	size_t index;

	if (read_symtab(reader) || read_prologue(reader, magics, versions, 2, &index))
		return -1;
	if (index == FORMAT_STREAM_SYSPROF ? read_sysprof(reader) : read_memprof(reader))
		return -1;
	*ret_kind = (enum format_stream_kind)index;
	return 0;
}

static int run(struct reader *reader, enum format_stream_kind *ret_kind)
{
	struct failure unused;
	int result;

	if (!reader->why)
		reader->why = &unused;
	result = read_stream(reader, ret_kind);
	if (result == 0 && reader->source.file)
		result = unpack_finish(reader->source.file, reader->why);
	free(reader->source.buffer);
	free(reader->string);
	free(reader->lua);
	free(reader->host);
	return result;
}

int stream_read(struct unpack *file, const struct format_visitor *visitor, void *context,
		enum format_stream_kind *ret_kind, struct failure *why)
{
	struct reader reader = { .visitor = visitor, .context = context, .why = why };

	reader.source.file = file;
	reader.source.buffer = malloc(SOURCE_BUFFER_LEN);
	if (!reader.source.buffer)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "read the file");
	return run(&reader, ret_kind);
}

int format_read_stream(FILE *file, const struct format_visitor *visitor, void *context,
		       enum format_stream_kind *ret_kind, struct failure *why)
{
	struct unpack *unpack;
	int result;

	if (unpack_create(file, &unpack, why))
		return -1;
	result = stream_read(unpack, visitor, context, ret_kind, why);
	unpack_destroy(unpack);
	return result;
}

int format_read_bytes(const void *bytes, size_t len, const struct format_visitor *visitor,
		      void *context, enum format_stream_kind *ret_kind, struct failure *why)
{
	struct reader reader = { .visitor = visitor, .context = context, .why = why };

	reader.source.window = bytes;
	reader.source.len = len;
	return run(&reader, ret_kind);
}
