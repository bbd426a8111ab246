/* SPDX-License-Identifier: MIT */
/* How are the stacks of threads printed, for people and as JSON? The keys are an interface:
 * ljdump(1). */
#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/json_keys.h"
#include "cli/dump/dump.h"
#include "format/text.h"

enum {
	DOING_MAX = 64,
	FRAME_INDENT = 2,
};

/* ---- For people ------------------------------------------------------------------------- */

static void print_shown(FILE *file, const char *text)
{
	char *shown = format_clean_copy(text);

	fputs(shown ? shown : "?", file);
	free(shown);
}

static void write_doing(const struct daemon_thread *thread, char *ret_text)
{
	const char *name = daemon_call_name(thread->syscall);
	bool is_saved = thread->doing == DAEMON_SAVED;
	const char *in = is_saved ? "in a core, in" : "waiting in";

	switch (thread->doing) {
	case DAEMON_RUNNING:
		snprintf(ret_text, DOING_MAX, "running");
		return;
	case DAEMON_STOPPED:
		snprintf(ret_text, DOING_MAX, "stopped by a signal");
		return;
	case DAEMON_WAITING:
	case DAEMON_SAVED:
		break;
	}
	if (name)
		snprintf(ret_text, DOING_MAX, "%s %s", in, name);
	else if (thread->syscall >= 0)
		snprintf(ret_text, DOING_MAX, "%s system call %" PRId64, in, thread->syscall);
	else
		snprintf(ret_text, DOING_MAX, is_saved ? "in a core" : "waiting for memory");
}

static void print_version(FILE *file, const struct daemon_stack_vm *vm)
{
	print_shown(file, vm->version[0] ? vm->version : "LuaJIT of an unknown version");
}

static void print_thread(FILE *file, const struct daemon_stacks *stacks,
			 const struct daemon_thread *thread)
{
	char doing[DOING_MAX];

	write_doing(thread, doing);
	fprintf(file, "\nthread %d", (int)thread->tid);
	if (!stacks->core) {
		fputs(" \"", file);
		print_shown(file, thread->name);
		fputc('"', file);
	}
	fprintf(file, ", %s", doing);
	if (!thread->stack.G)
		fputs(", no Lua", file);
	else
		fprintf(file, ", VM in state %s", format_state_name(thread->stack.state));
	if (thread->stack.G && stacks->vm_count > 1)
		fprintf(file, ", VM at 0x%" PRIx64, thread->stack.G);
	fputc('\n', file);
	dump_print_frames(file, &thread->stack, FRAME_INDENT);
}

/* Several VMs get one line each. */
static void print_vms(FILE *file, const struct daemon_stacks *stacks)
{
	if (stacks->vm_count == 1) {
		fputs(", ", file);
		print_version(file, &stacks->vms[0]);
	}
	fputc('\n', file);
	for (size_t i = 0; i < stacks->vm_count && stacks->vm_count > 1; i++) {
		fprintf(file, "  VM at 0x%" PRIx64 ", ", stacks->vms[i].G);
		print_version(file, &stacks->vms[i]);
		fputc('\n', file);
	}
}

/* Why the stacks are not complete, or not a consistent snapshot. */
static struct dump_reasons list_reasons(const struct daemon_stacks *stacks)
{
	struct dump_reasons reasons = { 0 };

	dump_add_reason(&reasons, stacks->not_frozen[0],
			"threads could not be frozen, so this is not a consistent snapshot",
			"not_frozen");
	if (reasons.count)
		reasons.items[0].more = stacks->not_frozen;
	dump_add_snapshot_reasons(&reasons, stacks->is_late, stacks->is_huge, stacks->has_woken,
				  stacks->is_exhausted, stacks->is_truncated);
	dump_add_reason(&reasons, stacks->ended, "the program ended while it was read", "ended");
	dump_add_reason(&reasons, stacks->unread, "not all threads could be read", "unread");
	return reasons;
}

static void print_rest(FILE *file, const struct daemon_stacks *stacks)
{
	const char *begin = stacks->count ? "\n" : "";

	if (stacks->others)
		fprintf(file, "%s%zu thread%s without Lua, which --all-threads shows\n", begin,
			stacks->others, stacks->others == 1 ? "" : "s");
	if (stacks->unread)
		fprintf(file, "%s%zu thread%s that could not be read\n",
			stacks->others ? "" : begin, stacks->unread,
			stacks->unread == 1 ? "" : "s");
}

void dump_print_stacks(FILE *file, const struct daemon_stacks *stacks)
{
	struct dump_reasons reasons = list_reasons(stacks);

	if (stacks->core)
		fprintf(file, "core %s of ", stacks->core);
	fprintf(file, "process %d (", (int)stacks->pid);
	print_shown(file, stacks->name);
	fputc(')', file);
	print_vms(file, stacks);
	if (stacks->frozen) {
		fputs("  ", file);
		dump_print_freeze(file, stacks->frozen, stacks->pause_ns);
	}
	dump_print_reasons(file, &reasons);
	if (stacks->count == 0)
		fputs(stacks->core ? "  no thread ran Lua\n" : "  no thread runs Lua now\n", file);
	for (size_t i = 0; i < stacks->count; i++)
		print_thread(file, stacks, &stacks->threads[i]);
	print_rest(file, stacks);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static struct json_object *make_thread(const struct daemon_thread *thread)
{
	static const char *const doing[] = {
		[DAEMON_RUNNING] = "running",
		[DAEMON_WAITING] = "waiting",
		[DAEMON_STOPPED] = "stopped",
		[DAEMON_SAVED] = "saved",
	};
	struct json_object *object = json_object_new_object();
	const char *call = daemon_call_name(thread->syscall);

	json_keys_add_number(object, "tid", (uint64_t)thread->tid);
	if (thread->doing != DAEMON_SAVED)
		json_keys_add_text(object, "name", thread->name);
	json_keys_add_word(object, "doing", doing[thread->doing]);
	if (thread->syscall >= 0)
		json_keys_add_number(object, "syscall", (uint64_t)thread->syscall);
	if (call)
		json_keys_add_word(object, "syscall_name", call);
	json_keys_add_number(object, "stops", thread->stops);
	dump_add_frames(object, &thread->stack);
	return object;
}

static struct json_object *make_vm(const struct daemon_stack_vm *vm)
{
	struct json_object *object = json_object_new_object();

	json_keys_add_address(object, "global_state", vm->G);
	json_keys_add_text(object, "version", vm->version[0] ? vm->version : NULL);
	json_keys_add_word(object, "layout", vm->layout);
	return object;
}

static struct json_object *make_process(const struct daemon_stacks *stacks)
{
	struct json_object *object = json_object_new_object();
	struct json_object *vms = json_object_new_array(), *threads = json_object_new_array();
	struct dump_reasons reasons = list_reasons(stacks);

	if (stacks->core) {
		json_keys_add_text(object, "core", stacks->core);
		json_keys_add_flag(object, "core_truncated", stacks->is_truncated);
	}
	json_keys_add_number(object, "pid", (uint64_t)stacks->pid);
	json_keys_add_text(object, "name", stacks->name);
	json_keys_add_flag(object, "ended", stacks->ended);
	json_keys_add_number(object, "threads_without_lua", stacks->others);
	json_keys_add_number(object, "unread_threads", stacks->unread);
	dump_add_freeze(object, stacks->frozen, stacks->pause_ns);
	dump_add_reasons(object, &reasons);
	for (size_t i = 0; i < stacks->vm_count; i++)
		json_object_array_add(vms, make_vm(&stacks->vms[i]));
	json_object_object_add(object, "vms", vms);
	for (size_t i = 0; i < stacks->count; i++)
		json_object_array_add(threads, make_thread(&stacks->threads[i]));
	json_object_object_add(object, "threads", threads);
	return object;
}

int dump_print_stacks_json(FILE *file, const struct daemon_stacks *stacks, size_t count)
{
	struct json_object *root = json_object_new_object(), *list = json_object_new_array();
	int ret;

	json_keys_add_word(root, "version", LJPROF_VERSION);
	for (size_t i = 0; i < count; i++)
		json_object_array_add(list, make_process(&stacks[i]));
	json_object_object_add(root, "processes", list);
	ret = json_keys_print(file, root);
	json_object_put(root);
	return ret;
}
