/* SPDX-License-Identifier: MIT */
/* Which processes do the words of a command line mean? */
#include "cli/processes/operands.h"

#include <stdio.h>
#include <string.h>

#include "cli/common/options.h"
#include "cli/processes/choice.h"
#include "daemon/list.h"
#include "format/text.h"

enum {
	/* Bytes of a name in a message. */
	SHOWN_MAX = 128,
};

bool operands_is_pids(const char *word)
{
	return *word && word[strspn(word, "0123456789,")] == '\0';
}

int operands_take(const char *program, char *const *words, int count, struct options_pids *pids,
		  struct options_names *names)
{
	for (int i = 0; i < count; i++) {
		if (!*words[i])
			return options_refuse(program, "a process is an empty word", NULL);
		if (!operands_is_pids(words[i]))
			options_add_exact_name(program, words[i], names);
		else if (!options_add_pids(program, words[i], pids))
			return options_refuse(program, "not a process id:", words[i]);
	}
	return -1;
}

/* @return 0, or the exit code with a message printed. */
static int list_by_name(const char *program, const char *const *names, size_t count,
			struct daemon_list *ret_list)
{
	const struct daemon_list_options options = { .names = names, .name_count = count };

	return choice_list(program, &options, ret_list);
}

/* Whether a name is that of a process in which LuaJIT is, or may be. */
static bool is_known(const char *program, const char *pattern)
{
	struct daemon_list list;
	bool known;

	if (list_by_name(program, &pattern, 1, &list) != 0)
		return false;
	known = list.count > 0;
	daemon_list_deinit(&list);
	return known;
}

bool operands_are_processes(char *const *words, int count)
{
	struct options_names names = { 0 };
	bool all = true;

	for (int i = 0; i < count; i++)
		if (!operands_is_pids(words[i]))
			options_add_exact_name("", words[i], &names);
	for (size_t i = 0; all && i < names.count; i++)
		all = is_known("", names.patterns[i]);
	options_names_deinit(&names);
	return all;
}

/* Print that no LuaJIT process has a name; say which one has a similar name. */
static int refuse_name(const char *program, const char *name, const char *hint, bool is_there)
{
	struct options_guess guess = { 0 };
	struct daemon_list list = { 0 };
	char text[SHOWN_MAX];

	snprintf(text, sizeof(text), "%s", name);
	format_clean_text(text, strlen(text));
	if (list_by_name(program, NULL, 0, &list) != 0)
		return EXIT_SYSTEM;
	for (size_t i = 0; i < list.count; i++) {
		options_guess(name, list.processes[i].name, &guess);
		options_guess(name, list.processes[i].program, &guess);
	}
	fprintf(stderr, "%s: no %s named %s: ", program,
		is_there ? "LuaJIT is in any process" : "LuaJIT process is", text);
	if (guess.word)
		fprintf(stderr, "did you mean %s?", guess.word);
	else
		fputs("ljtop --list shows all", stderr);
	fprintf(stderr, "%s%s%s\n", hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
	daemon_list_deinit(&list);
	return is_there ? EXIT_NO_LUAJIT : EXIT_ENDED;
}

int operands_check(const char *program, const struct options_names *names, const char *hint)
{
	for (size_t i = 0; i < names->exact_count; i++) {
		const char *pattern = names->exact[i];
		struct daemon_list list;
		bool known, is_there;
		int ret = list_by_name(program, &pattern, 1, &list);

		if (ret)
			return ret;
		known = list.count > 0;
		is_there = list.matched > 0;
		daemon_list_deinit(&list);
		if (!known)
			return refuse_name(program, names->words[i], hint, is_there);
	}
	return -1;
}

int operands_resolve(const char *program, const struct options_names *names,
		     struct options_pids *pids)
{
	struct daemon_list list;
	size_t denied = 0;
	int ret = operands_check(program, names, NULL);

	if (ret >= 0 || !names->count)
		return ret;
	ret = list_by_name(program, names->patterns, names->count, &list);
	if (ret)
		return ret;
	for (size_t i = 0; i < list.count; i++) {
		denied += list.processes[i].is_denied;
		if (!list.processes[i].is_denied)
			options_add_pid(program, list.processes[i].pid, pids);
	}
	if (denied)
		fprintf(stderr, "%s: %s\n", program, list.note);
	else if (!list.count)
		fprintf(stderr, "%s: no LuaJIT process matches: ljtop --list shows all\n", program);
	ret = pids->count ? -1 : denied ? EXIT_DENIED : list.matched ? EXIT_NO_LUAJIT : EXIT_ENDED;
	daemon_list_deinit(&list);
	return ret;
}
