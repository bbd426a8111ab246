/* SPDX-License-Identifier: MIT */
/*
 * Print the variables of all Lua frames of a process's first thread, in a form that a Lua program
 * can write, too: variables PID SAMPLES [compiled]. The process stands meanwhile. With "compiled"
 * samples without compiled code are taken again.
 *
 *   frame CHUNK:LINE [compiled]
 *   KIND INDEX NAME VALUE
 *   end
 */
#include "luastate/variables.h"
#include "tests/live/stream.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/decode/target.h"

enum {
	TRIES = 4000,
	NAP_NS = 5 * 1000 * 1000,
	STRING_BYTES = 4096,
	ENTRIES = 256,
	DEPTH = 3,
};

static int ignore_function(void *context, const struct format_function *function, uint32_t *ret_id,
			   struct failure *why)
{
	(void)context, (void)function, (void)why;
	*ret_id = 0;
	return 0;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

static bool is_stopped(pid_t pid)
{
	char path[64], text[512] = "";
	const char *state;
	FILE *file;
	size_t got;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[got] = '\0';
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'T';
}

static void stop(pid_t pid)
{
	struct failure why = { 0 };

	kill(pid, SIGSTOP);
	for (int i = 0; i < TRIES && !is_stopped(pid); i++)
		nap();
	if (!is_stopped(pid))
		stream_die("stop the process", &why);
}

/* ---- Values ----------------------------------------------------------------------------- */

static void print_value(const struct luastate_value *value);

static void print_string(const struct luastate_value *value)
{
	putchar('"');
	for (size_t i = 0; i < value->text_bytes; i++) {
		unsigned char c = (unsigned char)value->text[i];

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
			putchar(c);
		else
			printf("\\%03d", c);
	}
	printf("\"%" PRIu64, value->size);
}

static void print_table(const struct luastate_value *value)
{
	const struct luastate_table *table = value->table;

	printf("table 0x%" PRIx64, value->address);
	if (!table || table->cut == LUASTATE_TABLE_CYCLE) {
		fputs(" cycle", stdout);
		return;
	}
	printf(" %" PRIu64 "%s", table->count, table->has_metatable ? " meta" : "");
	if (table->cut == LUASTATE_TABLE_DEPTH)
		return;
	fputs(" {", stdout);
	for (size_t i = 0; i < table->entry_count; i++) {
		print_value(&table->keys[i]);
		putchar('=');
		print_value(&table->values[i]);
		putchar(',');
	}
	putchar('}');
}

static void print_cdata(const struct luastate_value *value)
{
	const char *text = value->text ? value->text : "?";

	if (strcmp(text, "int64_t") == 0)
		printf("%" PRId64 "LL", value->integer);
	else if (strcmp(text, "uint64_t") == 0)
		printf("%" PRIu64 "ULL", (uint64_t)value->integer);
	else if (value->cdata_kind == LUASTATE_CDATA_POINTER)
		printf("cdata<%s> 0x%" PRIx64, text, (uint64_t)value->integer);
	else if (value->cdata_kind == LUASTATE_CDATA_OPAQUE)
		printf("cdata<%s> %" PRIu64, text, value->size);
	else if (value->cdata_kind == LUASTATE_CDATA_NUMBER)
		printf("cdata<%s> %.14g", text, value->number);
	else if (value->cdata_kind == LUASTATE_CDATA_BOOLEAN)
		printf("cdata<%s> %s", text, value->boolean ? "true" : "false");
	else
		printf("cdata<%s> %" PRId64, text, value->integer);
}

static void print_value(const struct luastate_value *value)
{
	switch (value->type) {
	case LUASTATE_VALUE_BOOLEAN:
		fputs(value->boolean ? "true" : "false", stdout);
		break;
	case LUASTATE_VALUE_INTEGER:
		printf("%" PRId64, value->integer);
		break;
	case LUASTATE_VALUE_NUMBER:
		if (isnan(value->number))
			fputs("nan", stdout);
		else
			printf("%.14g", value->number);
		break;
	case LUASTATE_VALUE_STRING:
		print_string(value);
		break;
	case LUASTATE_VALUE_TABLE:
		print_table(value);
		break;
	case LUASTATE_VALUE_FUNCTION:
		printf("function 0x%" PRIx64 " %s:%" PRId64, value->address,
		       value->chunkname ? value->chunkname : "?", value->firstline);
		break;
	case LUASTATE_VALUE_C_FUNCTION:
	case LUASTATE_VALUE_BUILTIN:
		printf("function %s", value->text ? value->text : "?");
		break;
	case LUASTATE_VALUE_COROUTINE:
		printf("thread 0x%" PRIx64 " %s", value->address,
		       luastate_coroutine_status_name(value->status));
		break;
	case LUASTATE_VALUE_USERDATA:
		printf("userdata 0x%" PRIx64 " %s", value->address,
		       value->text ? value->text : "-");
		break;
	case LUASTATE_VALUE_LIGHTUSERDATA:
		printf("light 0x%" PRIx64, value->address);
		break;
	case LUASTATE_VALUE_CDATA:
		print_cdata(value);
		break;
	default:
		fputs(luastate_value_type_name(value->type), stdout);
	}
}

/* ---- Frames ----------------------------------------------------------------------------- */

static void print_frame(struct daemon_target *target, const struct luastate_memory *memory,
			const struct luastate_frame *frame)
{
	struct luastate_values_options options = LUASTATE_VALUES_DEFAULTS;
	struct luastate_variables *variables;
	struct failure why = { 0 };

	options.string_bytes = STRING_BYTES;
	options.depth = DEPTH;
	options.entries = ENTRIES;
	if (luastate_read_variables(target->lua, memory, frame, &options, &variables, &why) != 0)
		stream_die("read variables", &why);
	printf("frame %s:%" PRIu32 "%s%s%s\n", frame->function->chunkname, frame->line,
	       variables->is_compiled ? " compiled" : "", variables->is_between ? " between" : "",
	       variables->is_truncated ? " cut" : "");
	for (size_t i = 0; i < variables->count; i++) {
		const struct luastate_variable *variable = &variables->items[i];

		printf("%s %u %s ", luastate_variable_kind_name(variable->kind), variable->index,
		       *variable->name ? variable->name : "-");
		print_value(&variable->value);
		putchar('\n');
	}
	luastate_variables_destroy(variables);
}

/* @return Whether it is a sample that was asked for. */
static bool sample(struct daemon_target *target, struct attach_image *image, bool compiled)
{
	struct luastate_prediction prediction = { 0 };
	struct luastate_plan_context context = { .state = target->lua, .prediction = &prediction };
	const struct attach_planner planner = { .plan = luastate_plan, .context = &context };
	struct attach_thread *thread = attach_threads_get(target->threads, 0);
	const struct attach_reader *reader;
	struct luastate_memory memory = { 0 };
	struct format_sample decoded = { 0 };
	enum daemon_outcome outcome;
	struct attach_timing timing;
	struct failure why = { 0 };

	context.stack_limit = thread->stack_limit;
	if (attach_capture(target->process, thread, &planner, image, &timing, &why) != 0)
		return false;
	/* The process stands: all of its memory is of the same moment. */
	reader = attach_image_reader_behind(image, attach_process_reader(target->process), false);
	memory = (struct luastate_memory){ .stopped = reader, .any = reader };
	if (target_decode(target, image, &memory, &decoded, &outcome, &why) != 0)
		stream_die("decode", &why);
	if (outcome != DAEMON_FULL ||
	    (compiled && target->chain.compiled == LUASTATE_COMPILED_NONE))
		return false;
	for (size_t i = 0; i < target->chain.count; i++)
		if (target->chain.frames[i].function->kind == LUASTATE_LUA)
			print_frame(target, &memory, &target->chain.frames[i]);
	puts("end");
	return true;
}

int main(int argc, char **argv)
{
	const struct target_listener listener = { .function = ignore_function };
	struct attach_process *process;
	struct daemon_target *target;
	struct attach_image *image = attach_image_create();
	struct failure why = { 0 };
	bool compiled = argc == 4 && strcmp(argv[3], "compiled") == 0;
	pid_t pid;
	long left;
	int tries;

	if (argc < 3 || !image)
		stream_die("usage: variables PID SAMPLES [compiled]", &why);
	pid = (pid_t)strtol(argv[1], NULL, 10);
	left = strtol(argv[2], NULL, 10);
	if (attach_process_open(pid, &process, &why) != 0 ||
	    target_create(process, &listener, &target, &why) != 0 ||
	    target_refresh(target, &why) != 0)
		stream_die("open", &why);
	for (tries = 0; tries < TRIES && target_find_vm(target, &why) != 0; tries++)
		nap();
	for (; tries < TRIES && left > 0; tries++) {
		stop(pid);
		left -= sample(target, image, compiled);
		kill(pid, SIGCONT);
		nap();
	}
	attach_image_destroy(image);
	target_destroy(target);
	attach_process_close(process);
	return left == 0 ? 0 : 1;
}
