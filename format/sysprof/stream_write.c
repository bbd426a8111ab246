/* SPDX-License-Identifier: MIT */
/* How are records written to a stream? If an item does not fit whole, the public function
 * removes its first part; the functions below it only pass the failure on. */
#include <string.h>

#include "format/file/sink.h"
#include "format/sysprof/stream_format.h"
#include "format/text/uleb.h"

static int put_byte(struct format_sink *sink, unsigned byte, struct failure *why)
{
	uint8_t value = (uint8_t)byte;

	return format_sink_put(sink, &value, 1, why);
}

static int put_number(struct format_sink *sink, uint64_t value, struct failure *why)
{
	uint8_t bytes[FORMAT_ULEB_MAX];

	return format_sink_put(sink, bytes, format_uleb_encode(value, bytes), why);
}

static int put_prologue(struct format_sink *sink, const char *magic, uint8_t version,
			struct failure *why)
{
	uint8_t bytes[STREAM_MAGIC_LEN + 1 + STREAM_RESERVED_LEN] = { 0 };

	memcpy(bytes, magic, STREAM_MAGIC_LEN);
	bytes[STREAM_MAGIC_LEN] = version;
	return format_sink_put(sink, bytes, sizeof(bytes), why);
}

/** If @p result is a failure, remove everything after @p mark. */
static int whole_or_nothing(struct format_sink *sink, size_t mark, int result)
{
	if (result)
		format_sink_rewind(sink, mark);
	return result;
}

int format_put_prologue(struct format_sink *sink, enum format_stream_kind kind, struct failure *why)
{
	if (kind == FORMAT_STREAM_SYSPROF)
		return put_prologue(sink, STREAM_SYSPROF_MAGIC, STREAM_SYSPROF_VERSION, why);
	return put_prologue(sink, STREAM_MEMPROF_MAGIC, STREAM_MEMPROF_VERSION, why);
}

int format_put_symtab_prologue(struct format_sink *sink, struct failure *why)
{
	return put_prologue(sink, STREAM_SYMTAB_MAGIC, STREAM_SYMTAB_VERSION, why);
}

int format_put_symtab_end(struct format_sink *sink, struct failure *why)
{
	return put_byte(sink, STREAM_END, why);
}

static int put_trace_symbol(struct format_sink *sink, const struct format_symbol *symbol,
			    struct failure *why)
{
	if (put_number(sink, symbol->trace, why) || put_number(sink, symbol->address, why))
		return -1;
	return put_number(sink, symbol->line, why);
}

static int put_symbol_body(struct format_sink *sink, const struct format_symbol *symbol,
			   struct failure *why)
{
	if (symbol->kind == FORMAT_SYMBOL_TRACE)
		return put_trace_symbol(sink, symbol, why);
	if (symbol->name_len > STREAM_STRING_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
				   "write a symbol with too long a name");
	if (put_number(sink, symbol->address, why) || put_number(sink, symbol->name_len, why) ||
	    format_sink_put(sink, symbol->name, symbol->name_len, why))
		return -1;
	return symbol->kind == FORMAT_SYMBOL_LUA ? put_number(sink, symbol->line, why) : 0;
}

static int put_symbol(struct format_sink *sink, unsigned header, const struct format_symbol *symbol,
		      struct failure *why)
{
	size_t mark = format_sink_pending(sink);
	int result = put_byte(sink, header, why);

	if (result == 0)
		result = put_symbol_body(sink, symbol, why);
	return whole_or_nothing(sink, mark, result);
}

int format_put_symtab_symbol(struct format_sink *sink, const struct format_symbol *symbol,
			     struct failure *why)
{
	return put_symbol(sink, symbol->kind, symbol, why);
}

int format_put_symbol(struct format_sink *sink, const struct format_symbol *symbol,
		      struct failure *why)
{
	return put_symbol(sink, STREAM_SYSPROF_SYMBOL_BASE + symbol->kind, symbol, why);
}

int format_put_event_symbol(struct format_sink *sink, const struct format_symbol *symbol,
			    struct failure *why)
{
	return put_symbol(sink, (STREAM_SOURCE_LUA + symbol->kind) << 2, symbol, why);
}

static int put_lua_stack(struct format_sink *sink, const struct format_raw_sample *sample,
			 struct failure *why)
{
	for (size_t i = 0; i < sample->lua_count; i++) {
		const struct format_lua_frame *frame = &sample->lua[i];

		if (put_byte(sink, frame->kind, why) || put_number(sink, frame->address, why))
			return -1;
		if (frame->kind == STREAM_FRAME_LUA && put_number(sink, frame->line, why))
			return -1;
	}
	return put_byte(sink, STREAM_END, why);
}

static int put_host_stack(struct format_sink *sink, const struct format_raw_sample *sample,
			  struct failure *why)
{
	for (size_t i = 0; i < sample->host_count; i++)
		if (sample->host[i] != 0 && /* 0 would end the stack */
		    put_number(sink, sample->host[i], why))
			return -1;
	return put_number(sink, 0, why);
}

static int put_sample_body(struct format_sink *sink, const struct format_raw_sample *sample,
			   struct failure *why)
{
	if (sample->state == FORMAT_STATE_TRACE) {
		if (put_number(sink, sample->trace, why) ||
		    put_number(sink, sample->trace_proto, why))
			return -1;
		return put_number(sink, sample->trace_line, why);
	}
	if (sample->state >= FORMAT_STATE_LFUNC && sample->state <= FORMAT_STATE_CFUNC &&
	    put_lua_stack(sink, sample, why))
		return -1;
	return put_host_stack(sink, sample, why);
}

int format_put_sample(struct format_sink *sink, const struct format_raw_sample *sample,
		      struct failure *why)
{
	size_t mark = format_sink_pending(sink);
	int result;

	if (sample->lua_count > STREAM_FRAMES_MAX || sample->host_count > STREAM_FRAMES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0,
				   "write a sample with too many frames");
	result = put_byte(sink, sample->state, why);
	if (result == 0)
		result = put_sample_body(sink, sample, why);
	return whole_or_nothing(sink, mark, result);
}

static int put_event_source(struct format_sink *sink, const struct format_raw_event *event,
			    struct failure *why)
{
	if (event->source == STREAM_SOURCE_INTERNAL)
		return 0;
	if (put_number(sink, event->address, why))
		return -1;
	return event->source == STREAM_SOURCE_LUA ? put_number(sink, event->line, why) : 0;
}

static int put_event_body(struct format_sink *sink, const struct format_raw_event *event,
			  struct failure *why)
{
	if (put_event_source(sink, event, why))
		return -1;
	if (event->kind != STREAM_EVENT_ALLOC &&
	    (put_number(sink, event->old_address, why) || put_number(sink, event->old_size, why)))
		return -1;
	if (event->kind != STREAM_EVENT_FREE &&
	    (put_number(sink, event->new_address, why) || put_number(sink, event->new_size, why)))
		return -1;
	return 0;
}

int format_put_event(struct format_sink *sink, const struct format_raw_event *event,
		     struct failure *why)
{
	size_t mark = format_sink_pending(sink);
	int result = put_byte(sink, (unsigned)event->source << 2 | event->kind, why);

	if (result == 0)
		result = put_event_body(sink, event, why);
	return whole_or_nothing(sink, mark, result);
}
