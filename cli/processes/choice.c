/* SPDX-License-Identifier: MIT */
/* Which process does a user choose who named none? */
#include "cli/processes/choice.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/options.h"
#include "cli/processes/process_table.h"

enum {
	/* More do not fit a terminal; a person who has more knows a name. */
	ROWS_MAX = 40,
	ANSWER_BYTES = 256,
};

int choice_list(const char *program, const struct daemon_list_options *options,
		struct daemon_list *ret_list)
{
	struct failure why;
	char text[256];

	if (daemon_list_processes(options, ret_list, &why) == 0)
		return 0;
	failure_describe(&why, text, sizeof(text));
	fprintf(stderr, "%s: %s\n", program, text);
	return EXIT_SYSTEM;
}

static void print(const char *program, const struct daemon_list *list, bool is_numbered)
{
	if (list->count)
		process_table_print(stderr, list, is_numbered, ROWS_MAX);
	else
		fprintf(stderr, "%s: no LuaJIT process was found\n", program);
	if (*list->note)
		fprintf(stderr, "%s: %s\n", program, list->note);
}

int choice_refuse(const char *program, const struct daemon_list *list)
{
	print(program, list, false);
	return options_refuse(program, "no process given: give a pid or a name", NULL);
}

/* Take a number of the list, a pid or a name. @return How many processes it means. */
static size_t take_answer(const char *program, const struct daemon_list *list, const char *answer,
			  struct options_pids *pids)
{
	size_t count = 0;
	long number;

	if (options_number(answer, 1, (long)list->count, &number)) {
		options_add_pid(program, list->processes[number - 1].pid, pids);
		return 1;
	}
	if (options_number(answer, 1, INT32_MAX, &number)) {
		options_add_pid(program, (pid_t)number, pids);
		return 1;
	}
	for (size_t i = 0; i < list->count; i++) {
		const struct daemon_listed *process = &list->processes[i];

		if (strcmp(process->name, answer) != 0 && strcmp(process->program, answer) != 0)
			continue;
		options_add_pid(program, process->pid, pids);
		count++;
	}
	return count;
}

/* @return -1 to continue, else the exit code. */
static int ask(const char *program, const struct daemon_list *list, struct options_pids *pids)
{
	char answer[ANSWER_BYTES];
	size_t len;

	for (;;) {
		fputs("Which one? Number, pid or name (empty: none): ", stderr);
		if (!fgets(answer, sizeof(answer), stdin)) {
			fputc('\n', stderr);
			return EXIT_USAGE;
		}
		len = strcspn(answer, "\n");
		while (len && (answer[len - 1] == ' ' || answer[len - 1] == '\t'))
			len--;
		answer[len] = '\0';
		if (!len)
			return EXIT_USAGE;
		if (take_answer(program, list, answer, pids))
			return -1;
		fputs("It is not in the list.\n", stderr);
	}
}

int choice_ask(const char *program, struct options_pids *pids)
{
	struct daemon_list list;
	int ret = choice_list(program, &(struct daemon_list_options){ .with_vms = true }, &list);

	if (ret)
		return ret;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		ret = choice_refuse(program, &list);
	} else {
		print(program, &list, true);
		ret = list.count ? ask(program, &list, pids) : EXIT_NO_LUAJIT;
	}
	daemon_list_deinit(&list);
	return ret;
}
