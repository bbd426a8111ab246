/* SPDX-License-Identifier: MIT */
/*
 * How are finished chains written as a sysprof stream?
 *
 * A chain is one list, but the stream has two, which a reader merges. It prints the host frames
 * from the root. Right after a host frame named lua_call… or lua_pcall… (here: a trigger), it
 * prints the Lua frames up to the first C function. Each further trigger repeats Lua frames, so
 * chains that enter the VM twice come out wrong. We therefore shape a chain so that the merge
 * restores it:
 *
 *	chain, root first	main  lua_pcall  A  string.gsub  gsub_c  B  [gc sweep]  gc_sweep
 *	Lua list		A  string.gsub
 *	host list		main  lua_pcall  gsub_c  B  [gc sweep]  gc_sweep
 *
 * The Lua list is the first run: the rootmost sequence of Lua frames and built-ins without another
 * kind in between. It follows the only trigger, a synthetic one if the chain has none there. All
 * later frames are host frames with symbols of their own (see format/sysprof/symbol_encoding.h).
 * Any other name that would trigger is altered.
 */
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/file/sink.h"
#include "format/sysprof/stream_format.h"
#include "format/sysprof/symbol_encoding.h"
#include "format/sysprof/sysprof_symbols.h"
#include "format/text/builtin_names.h"

struct sysprof_writer {
	struct format_sink *sink;
	const struct format_functions *functions;
	struct format_options options;
	struct sysprof_symbols symbols;
	struct format_lua_frame *lua;
	uint64_t *host;
	size_t lua_room, host_room;
};

/** The parts of a chain. Frame indexes count from the leaf, as in the sample. */
struct shape {
	bool has_run;
	uint32_t run_leaf, run_root; /* Both inclusive. */
	bool own_trigger;	     /* The frame at run_root + 1 is a trigger. */
};

static void sysprof_close(void *self)
{
	struct sysprof_writer *writer = self;

	if (!writer)
		return;
	sysprof_symbols_deinit(&writer->symbols);
	free(writer->lua);
	free(writer->host);
	free(writer);
}

static int sysprof_commit(void *self, bool final, struct failure *why)
{
	struct sysprof_writer *writer = self;
	static const uint8_t end = STREAM_END;

	return format_sink_commit(writer->sink, &end, 1, final, why);
}

static int sysprof_open(struct format_sink *sink, const struct format_functions *functions,
			const struct format_options *options, void **ret_self, struct failure *why)
{
	struct sysprof_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "start a sysprof stream");
	writer->sink = sink;
	writer->functions = functions;
	if (options)
		writer->options = *options;
	/* Commit at once, so that the file is a profile from the beginning. */
	if (format_put_symtab_prologue(sink, why) || format_put_symtab_end(sink, why) ||
	    format_put_prologue(sink, FORMAT_STREAM_SYSPROF, why) ||
	    sysprof_symbols_init(&writer->symbols, sink, functions, why) ||
	    sysprof_commit(writer, false, why)) {
		sysprof_close(writer);
		return -1;
	}
	*ret_self = writer;
	return 0;
}

static const struct format_function *function_of(const struct sysprof_writer *writer,
						 const struct format_frame *frame)
{
	return format_functions_get(writer->functions, frame->function);
}

/** Whether the frame can be in the Lua list. A built-in without a number cannot. */
static bool fits_lua_list(const struct format_function *function)
{
	uint64_t number;

	if (function->kind == FORMAT_KIND_BUILTIN)
		return function->name && format_ffname_find(function->name, &number);
	return function->kind == FORMAT_KIND_LUA;
}

static struct shape find_shape(const struct sysprof_writer *writer,
			       const struct format_sample *sample)
{
	const struct format_frame *frames = sample->frames;
	struct shape shape = { 0 };
	uint32_t i = sample->frame_count;

	while (i > 0 && !fits_lua_list(function_of(writer, &frames[i - 1])))
		i--;
	if (i == 0)
		return shape;
	shape.has_run = true;
	shape.run_root = i - 1;
	if (i < sample->frame_count) {
		const struct format_function *before = function_of(writer, &frames[i]);

		shape.own_trigger = format_kind_is_native(before->kind) && before->name &&
				    symbol_role_of(before->name) == SYMBOL_ROLE_CALL;
	}
	while (i > 0 && fits_lua_list(function_of(writer, &frames[i - 1])))
		i--;
	shape.run_leaf = i;
	return shape;
}

/** Ensure room for all frames and a trigger in both lists. */
static int reserve(struct sysprof_writer *writer, size_t count, struct failure *why)
{
	return ARRAY_RESERVE(writer->lua, writer->lua_room, count) &&
			       ARRAY_RESERVE(writer->host, writer->host_room, count)
		       ? 0
		       : failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "write a sample");
}

static int64_t line_of(const struct sysprof_writer *writer, const struct format_frame *frame)
{
	if (writer->options.first_lines)
		return function_of(writer, frame)->first_line;
	return frame->line;
}

static int shape_lua(struct sysprof_writer *writer, const struct format_frame *frame,
		     struct format_lua_frame *ret_frame, struct failure *why)
{
	const struct format_function *function = function_of(writer, frame);
	struct format_lua_frame lua = { .kind = STREAM_FRAME_LUA };

	if (function->kind == FORMAT_KIND_BUILTIN) {
		lua.kind = STREAM_FRAME_BUILTIN;
		format_ffname_find(function->name, &lua.address);
	} else {
		lua.line = (uint64_t)line_of(writer, frame);
		if (sysprof_symbols_use_proto(&writer->symbols, frame, &lua.address, why))
			return -1;
	}
	*ret_frame = lua;
	return 0;
}

static int shape_chain(struct sysprof_writer *writer, const struct format_sample *sample,
		       struct format_raw_sample *raw, struct failure *why)
{
	struct shape shape = find_shape(writer, sample);

	for (uint32_t i = 0; i < sample->frame_count; i++) {
		const struct format_frame *frame = &sample->frames[i];
		bool in_run = shape.has_run && i >= shape.run_leaf && i <= shape.run_root;
		/* Without a Lua list, a trigger has no effect, and names stay unchanged. */
		bool may_trigger = !shape.has_run || (shape.own_trigger && i == shape.run_root + 1);

		if (in_run) {
			if (shape_lua(writer, frame, &writer->lua[raw->lua_count], why))
				return -1;
			raw->lua_count++;
		} else {
			if (sysprof_symbols_use_host(&writer->symbols, frame,
						     line_of(writer, frame), may_trigger,
						     &writer->host[raw->host_count], why))
				return -1;
			raw->host_count++;
		}
		if (in_run && i == shape.run_root && !shape.own_trigger &&
		    sysprof_symbols_use_trigger(&writer->symbols, &writer->host[raw->host_count++],
						why))
			return -1;
	}
	raw->lua = writer->lua;
	raw->host = writer->host;
	return 0;
}

/** The state to write. If the chain has a Lua function, a built-in or a C function, it is the
 * state of the leafmost one, because only those states allow a Lua list; frames above it show
 * other work of the VM ("[gc sweep]", a trace). A trace sample holds only the trace, so it is
 * used only for chains of just a trace, or with `trace_records`. Another chain on a trace counts
 * as a C function without Lua frames. */
static enum format_state state_of(const struct sysprof_writer *writer,
				  const struct format_sample *sample)
{
	if (writer->options.trace_records && sample->state == FORMAT_STATE_TRACE && sample->trace)
		return FORMAT_STATE_TRACE;
	for (uint32_t i = 0; i < sample->frame_count; i++) {
		switch (function_of(writer, &sample->frames[i])->kind) {
		case FORMAT_KIND_LUA:
			return FORMAT_STATE_LFUNC;
		case FORMAT_KIND_BUILTIN:
			return FORMAT_STATE_FFUNC;
		case FORMAT_KIND_CFUNC:
			return FORMAT_STATE_CFUNC;
		default:
			break;
		}
	}
	if (sample->state != FORMAT_STATE_TRACE)
		return sample->state;
	if (sample->frame_count == 0)
		return FORMAT_STATE_TRACE;
	if (sample->frame_count == 1 &&
	    function_of(writer, &sample->frames[0])->kind == FORMAT_KIND_TRACE)
		return FORMAT_STATE_TRACE;
	return FORMAT_STATE_CFUNC;
}

/** Find the running trace as a function: the one in the sample, or the chain's only frame. */
static bool find_trace(const struct sysprof_writer *writer, const struct format_sample *sample,
		       uint32_t *ret_id)
{
	const struct format_function *function = NULL;

	*ret_id = sample->trace_function;
	if (sample->trace && *ret_id != FORMAT_NO_FUNCTION)
		function = format_functions_get(writer->functions, *ret_id);
	if (function && function->kind == FORMAT_KIND_TRACE)
		return true;
	if (sample->frame_count != 1)
		return false;
	*ret_id = sample->frames[0].function;
	return function_of(writer, &sample->frames[0])->kind == FORMAT_KIND_TRACE;
}

/** Write the running trace's symbol; a trace sample holds only the trace. */
static int shape_trace(struct sysprof_writer *writer, const struct format_sample *sample,
		       struct format_raw_sample *raw, struct failure *why)
{
	uint32_t id;
	int64_t line;

	raw->trace = sample->trace;
	if (!find_trace(writer, sample, &id))
		return 0;
	if (sysprof_symbols_use_trace(&writer->symbols, id, &raw->trace_proto, &line, why))
		return -1;
	raw->trace = (uint32_t)format_functions_get(writer->functions, id)->address;
	raw->trace_line = (uint64_t)line;
	return 0;
}

/** Reject an invalid sample before the first record is put. */
static int check_sample(const struct sysprof_writer *writer, const struct format_sample *sample,
			struct failure *why)
{
	if (sample->frame_count >= STREAM_FRAMES_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, sample->tid, 0,
				   "write a sample with too many frames");
	for (uint32_t i = 0; i < sample->frame_count; i++)
		if (!function_of(writer, &sample->frames[i]))
			return failure_set(why, FAILURE_NOT_FOUND, 0, sample->tid, 0,
					   "find a frame's function");
	if ((unsigned)sample->state >= FORMAT_STATE_COUNT)
		return failure_set(why, FAILURE_INVALID, 0, sample->tid, 0, "write that VM state");
	return 0;
}

static int sysprof_sample(void *self, const struct format_sample *sample, struct failure *why)
{
	struct sysprof_writer *writer = self;
	struct format_raw_sample raw = { 0 };
	int result;

	if (check_sample(writer, sample, why) ||
	    reserve(writer, (size_t)sample->frame_count + 1, why))
		return -1;
	raw.state = state_of(writer, sample);
	result = shape_trace(writer, sample, &raw, why);
	if (result == 0 && raw.state != FORMAT_STATE_TRACE)
		result = shape_chain(writer, sample, &raw, why);
	for (uint32_t i = 0; result == 0 && i < sample->weight; i++)
		result = format_put_sample(writer->sink, &raw, why);
	return result;
}

const struct format_writer_ops format_sysprof_ops = {
	.name = "sysprof",
	.description = "binary stream of Tarantool's LuaJIT, read by its parser and by ljreport",
	.suffixes = ".bin .sysprof",
	.open = sysprof_open,
	.sample = sysprof_sample,
	.commit = sysprof_commit,
	.close = sysprof_close,
};
