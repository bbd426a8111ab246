/* SPDX-License-Identifier: MIT */
/*
 * Print the layout under which the VM of a process is walked, or one that is derived from it:
 *
 *   layout PID            the layout as it is found
 *   layout PID row        derived, as if layouts.table lacked the row that fits
 *   layout PID family     derived, as if it lacked all rows of that fork
 *
 * The first line tells where it is from and the processor time in microseconds that finding it
 * took. Then one line for each field: its name, its value, -1 where there is none or it is not
 * known, and how it is known, as a number of enum derive_source, where it was derived. Opcodes that
 * have another number than in all rows follow.
 */
#include "tests/live/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/decode/target.h"
#include "luastate/derive/derive.h"
#include "luastate/layout/fields.h"

/* A VM that runs may not pass at one look. */
enum { LOOKS = 50, PAUSE_US = 20000 };

static const struct luastate_layout *withheld;
static bool is_family;

static bool is_withheld(const struct luastate_layout *row)
{
	return row == withheld ||
	       (is_family ? strcmp(row->family, withheld->family) == 0
			  : memcmp(&row->lua_State_sizeof, &withheld->lua_State_sizeof,
				   sizeof(int32_t) * state_field_count) == 0);
}

static int ignore_function(void *context, const struct format_function *function, uint32_t *ret_id,
			   struct failure *why)
{
	(void)context, (void)function, (void)why;
	*ret_id = 0;
	return 0;
}

static long used_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static void print(const char *how, long took_us, const struct luastate_layout *layout,
		  const uint8_t *source)
{
	printf("%s like %s %s in %ld us\n", how, layout->family, layout->first, took_us);
	for (size_t i = 0; i < state_field_count; i++)
		printf("%s %d %d\n", state_fields[i].name, state_field_value(layout, i),
		       source ? source[i] : 0);
	for (uint32_t i = 0; i < (uint32_t)layout->BC_FUNCF; i++)
		if (state_instruction(layout, i) != i)
			printf("opcode.%u %u 0\n", i, state_instruction(layout, i));
}

static void print_derived(struct daemon_target *target, const char *what)
{
	const struct luastate_vm *vm = luastate_vm_get(target->lua, 0);
	struct derive_reading *reading = calloc(1, sizeof(*reading));
	struct derive *derive = calloc(1, sizeof(*derive));
	struct failure why = { 0 };
	long begin_us = used_us();
	bool found = false;

	if (!reading || !derive)
		stream_die("have memory", &why);
	withheld = vm->layout;
	is_family = strcmp(what, "family") == 0;
	derive->state = target->lua;
	derive->interpreter = &target->lua->interpreters[0];
	derive->reader = attach_process_reader(target->process);
	derive->reading = reading;
	derive->is_withheld = is_withheld;
	if (!derive_read_code(derive->interpreter, reading))
		stream_die("read the interpreter's code", &why);
	for (int look = 0; look < LOOKS && !found; look++) {
		if (look > 0)
			usleep(PAUSE_US);
		begin_us = used_us();
		found = derive_layout(derive, vm->main_thread);
	}
	if (!found)
		stream_die("derive a layout", &why);
	print("derived", used_us() - begin_us, &derive->layout, derive->source);
	free(reading);
	free(derive);
}

int main(int argc, char **argv)
{
	const struct target_listener listener = { .function = ignore_function };
	const struct state_interpreter *interpreter;
	struct attach_process *process;
	struct daemon_target *target;
	struct failure why = { 0 };
	long begin_us = used_us();

	if (argc < 2 || argc > 3)
		stream_die("usage: layout PID [row|family]", &why);
	if (attach_process_open((pid_t)strtol(argv[1], NULL, 10), &process, &why) != 0 ||
	    target_create(process, &listener, &target, &why) != 0 ||
	    target_refresh(target, &why) != 0)
		stream_die("open", &why);
	for (int look = 0; target_find_vm(target, &why) != 0; look++) {
		if (look == LOOKS)
			stream_die("find the VM", &why);
		usleep(PAUSE_US);
	}
	interpreter = &target->lua->interpreters[0];
	if (argc == 3)
		print_derived(target, argv[2]);
	else
		print(interpreter->is_derived ? "derived"
		      : interpreter->own      ? "debug"
					      : "row",
		      used_us() - begin_us, interpreter->layout,
		      interpreter->is_derived ? interpreter->source : NULL);
	target_destroy(target);
	attach_process_close(process);
	return 0;
}
