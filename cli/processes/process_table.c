/* SPDX-License-Identifier: MIT */
/* How is the list of LuaJIT processes printed? */
#include "cli/processes/process_table.h"

#include <inttypes.h>
#include <json.h>
#include <string.h>

#include "cli/common/json_keys.h"
#include "cli/processes/user_names.h"
#include "format/text.h"

/* Linux, TASK_COMM_LEN, without the terminator. */
enum { NAME_MAX_BYTES = 15 };

static void describe_bytes(uint64_t bytes, char *ret_text, size_t size)
{
	static const char units[] = "KMGT";
	double amount = (double)bytes / 1024;
	size_t unit = 0;

	while (amount >= 1000 && units[unit + 1]) {
		amount /= 1024;
		unit++;
	}
	snprintf(ret_text, size, amount < 100 ? "%.1f%c" : "%.0f%c", amount, units[unit]);
}

/* Also the program, if the process has another name. The kernel cuts names to NAME_MAX_BYTES. */
static bool has_other_program(const struct daemon_listed *process)
{
	return *process->program && strncmp(process->name, process->program, NAME_MAX_BYTES) != 0;
}

/* ---- Table ------------------------------------------------------------------------------ */

void process_table_head(char ret_text[PROCESS_TABLE_ROW])
{
	snprintf(ret_text, PROCESS_TABLE_ROW, "%7s  %-15s %-12s %-10s %4s %6s %7s", "PID", "NAME",
		 "USER", "FORK", "VMS", "CPU%", "HEAP");
}

void process_table_row(const struct daemon_listed *process, char ret_text[PROCESS_TABLE_ROW])
{
	char vms[16] = "-", cpu[16] = "-", heap[16] = "-";

	if (process->has_vms) {
		snprintf(vms, sizeof(vms), "%u%s", process->vms, process->has_more_vms ? "+" : "");
		describe_bytes(process->heap_bytes, heap, sizeof(heap));
	}
	if (process->cpu_percent >= 0)
		snprintf(cpu, sizeof(cpu), "%.1f", process->cpu_percent);
	snprintf(ret_text, PROCESS_TABLE_ROW, "%7d  %-15s %-12.12s %-10s %4s %6s %7s%s%s%s",
		 (int)process->pid, process->name, user_names_of(process->uid),
		 *process->fork ? process->fork : "-", vms, cpu, heap,
		 has_other_program(process) ? "  (" : "",
		 has_other_program(process) ? process->program : "",
		 has_other_program(process) ? ")" : "");
}

void process_table_print(FILE *file, const struct daemon_list *list, bool is_numbered, size_t max)
{
	char text[PROCESS_TABLE_ROW];

	process_table_head(text);
	fprintf(file, "%s%s\n", is_numbered ? "    " : "", text);
	for (size_t i = 0; i < list->count && i < max; i++) {
		process_table_row(&list->processes[i], text);
		if (is_numbered)
			fprintf(file, "%3zu ", i + 1);
		fprintf(file, "%s\n", text);
	}
	if (list->count > max)
		fprintf(file, "and %zu more\n", list->count - max);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static struct json_object *make_process(const struct daemon_listed *process)
{
	struct json_object *object = json_object_new_object();

	json_keys_add_number(object, "pid", (uint64_t)process->pid);
	json_keys_add_foreign(object, "name", process->name);
	json_keys_add_foreign(object, "program", *process->program ? process->program : NULL);
	json_keys_add_number(object, "uid", process->uid);
	json_keys_add_foreign(object, "user", user_names_of(process->uid));
	if (process->cpu_percent >= 0)
		json_keys_add_real(object, "cpu_percent", process->cpu_percent);
	json_keys_add_foreign(object, "fork", *process->fork ? process->fork : NULL);
	if (!process->has_vms)
		return object;
	json_keys_add_number(object, "vms", process->vms);
	json_keys_add_flag(object, "has_all_vms", !process->has_more_vms);
	json_keys_add_number(object, "heap_bytes", process->heap_bytes);
	return object;
}

int process_table_print_json(FILE *file, const struct daemon_list *list)
{
	struct json_object *root = json_object_new_object(), *processes = json_object_new_array();
	int ret;

	json_keys_add_word(root, "version", LJPROF_VERSION);
	for (size_t i = 0; i < list->count; i++)
		json_object_array_add(processes, make_process(&list->processes[i]));
	json_object_object_add(root, "processes", processes);
	json_keys_add_number(root, "unread_processes", list->denied);
	json_keys_add_foreign(root, "note", *list->note ? list->note : NULL);
	ret = json_keys_print(file, root);
	json_object_put(root);
	return ret;
}
