/* SPDX-License-Identifier: MIT */
/* How does a table of options give getopt's arrays, the help, and the list for completions? */
#include "cli/common/options.h"

#include <assert.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/stdio_setup.h"
#include "format/text.h"

/* getopt_long() returns this plus the index of an option without a letter. */
enum { ENTRY_FIRST = 256 };

/* Width of the help, and columns of its texts and lists of words. */
enum { COLUMNS = 80, TEXT_COLUMN = 26, WORDS_COLUMN = 28, WORDS_ONLY_COLUMN = 2 };

/* Longest list of words in a sentence; a longer list has one line for each word. */
enum { TEXT_BYTES = 256 };

/* Options that a message lists if an abbreviation fits several. */
enum { ABBREVIATED_MAX = 4 };

enum { OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_COMMON };

/* Each command has these after its own options. */
static const struct options_entry common[OPTIONS_COMMON] = {
	[OPTIONS_HELP] = { "help", 'h', .help = "print this help", .section = "Other" },
	[OPTIONS_VERSION] = { "version", 'V', .help = "print the version" },
};

static size_t entry_count(const struct options *options)
{
	return options->count + OPTIONS_COMMON;
}

static bool is_common(const struct options_entry *entry)
{
	return entry == &common[OPTIONS_HELP] || entry == &common[OPTIONS_VERSION];
}

static const struct options_entry *entry_at(const struct options *options, size_t index)
{
	return index < options->count ? &options->entries[index] : &common[index - options->count];
}

/* The option that a former spelling means, or the entry itself. */
static const struct options_entry *meant_by(const struct options *options,
					    const struct options_entry *entry)
{
	for (size_t i = 0; entry->old_of && i < options->count; i++)
		if (options->entries[i].name && !options->entries[i].old_of &&
		    strcmp(options->entries[i].name, entry->old_of) == 0)
			return &options->entries[i];
	assert(!entry->old_of);
	return entry;
}

/* @return false after the last word; former spellings count. */
static bool any_word_at(const struct options_entry *entry, size_t index,
			struct options_word *ret_word)
{
	if (entry->word_at)
		return entry->word_at(index, ret_word);
	*ret_word = entry->words[index];
	return ret_word->name;
}

/* @return false after the last word that is shown. */
static bool word_at(const struct options_entry *entry, size_t index, struct options_word *ret_word)
{
	for (size_t i = 0; any_word_at(entry, i, ret_word); i++)
		if (!ret_word->is_old && index-- == 0)
			return true;
	return false;
}

static size_t count_words(const struct options_entry *entry)
{
	struct options_word word;
	size_t count = 0;

	while (word_at(entry, count, &word))
		count++;
	return count;
}

/* Whether the list has the name between blanks. */
static bool names(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at && (at = strstr(at, name)); at += len)
		if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

static bool exclude_each_other(const struct options_entry *one, const struct options_entry *other)
{
	if (one->old_of || other->old_of)
		return false;
	return names(one->excludes, other->name) || names(other->excludes, one->name);
}

/* ---- Help ------------------------------------------------------------------------------- */

/* Text with line breaks. */
struct paragraph {
	size_t indent;
	size_t column; /* current column */
};

static void end_line(struct paragraph *paragraph)
{
	putchar('\n');
	paragraph->column = 0;
}

/* Continue at a column: on this line if it is not reached yet. */
static void indent(struct paragraph *paragraph, size_t column)
{
	if (paragraph->column > column)
		end_line(paragraph);
	printf("%*s", (int)(column - paragraph->column), "");
	paragraph->indent = paragraph->column = column;
}

static void put_text(struct paragraph *paragraph, const char *text)
{
	for (size_t len; *text; text += len) {
		bool begins = paragraph->column == paragraph->indent;

		len = strcspn(text, " \n");
		if (len && !begins && paragraph->column + 1 + len > COLUMNS)
			indent(paragraph, paragraph->indent);
		else if (len && !begins)
			paragraph->column += (size_t)printf(" ");
		paragraph->column += (size_t)printf("%.*s", (int)len, text);
		if (text[len] == '\n') {
			end_line(paragraph);
			if (text[len + 1] != '\n')
				indent(paragraph, paragraph->indent);
		}
		len += text[len] != '\0';
	}
}

static void put_paragraph(const char *text)
{
	struct paragraph paragraph = { 0 };

	put_text(&paragraph, text);
	end_line(&paragraph);
}

/* Print one line for each word and its meaning. */
static void put_rows(const struct options_entry *entry, size_t column)
{
	struct options_word word;
	size_t widest = 0;

	for (size_t i = 0; word_at(entry, i, &word); i++)
		widest = strlen(word.name) > widest ? strlen(word.name) : widest;
	for (size_t i = 0; word_at(entry, i, &word); i++) {
		struct paragraph paragraph = { 0 };

		indent(&paragraph, column);
		paragraph.column += (size_t)printf("%s", word.name);
		indent(&paragraph, column + widest + 2);
		put_text(&paragraph, word.help);
		end_line(&paragraph);
	}
}

/* Make "self (default), total or name". @param with_help Add the words' meanings. */
static void join_words(const struct options_entry *entry, bool with_help, char *ret_text,
		       size_t size)
{
	size_t count = count_words(entry), len = 0;
	struct options_word word;

	for (size_t i = 0; word_at(entry, i, &word) && len < size; i++) {
		const char *help = with_help ? word.help : NULL;

		len += (size_t)snprintf(ret_text + len, size - len, help ? "%s%s (%s)" : "%s%s%s",
					i == 0		 ? ""
					: i + 1 == count ? " or "
							 : ", ",
					word.name, help ? help : "");
	}
}

/* If each word of a list has a meaning, each gets its own line. */
static bool has_rows(const struct options_entry *entry)
{
	struct options_word word;

	for (size_t i = 0; word_at(entry, i, &word); i++)
		if (!word.help)
			return false;
	return true;
}

static void put_entry(const struct options_entry *entry)
{
	bool has_words = entry->kind == OPTIONS_WORD && !entry->words_section;
	struct paragraph paragraph = { 0 };
	char words[TEXT_BYTES];

	if (entry->letter)
		paragraph.column += (size_t)printf("  -%c, --%s", entry->letter, entry->name);
	else
		paragraph.column += (size_t)printf("      --%s", entry->name);
	if (entry->argument)
		paragraph.column += (size_t)printf(" %s", entry->argument);
	/* Two blanks, or a new line. */
	if (paragraph.column + 2 > TEXT_COLUMN)
		end_line(&paragraph);
	indent(&paragraph, TEXT_COLUMN);
	put_text(&paragraph, entry->help);
	if (has_words)
		paragraph.column += (size_t)printf(":");
	if (has_words && !has_rows(entry)) {
		join_words(entry, true, words, sizeof(words));
		put_text(&paragraph, words);
	}
	if (entry->is_repeated)
		put_text(&paragraph, "(may be given several times)");
	end_line(&paragraph);
	if (has_words && has_rows(entry))
		put_rows(entry, WORDS_COLUMN);
}

static void print_help(const struct options *options)
{
	const char *section = "";

	for (size_t i = 0; options->usage[i]; i++)
		printf("%s %s %s\n", i ? "      " : "Usage:", options->program, options->usage[i]);
	put_paragraph(options->about);
	for (size_t i = 0; i < entry_count(options); i++) {
		const struct options_entry *entry = entry_at(options, i);

		if (entry->old_of)
			continue;
		if (entry->section && strcmp(entry->section, section) != 0)
			printf("\n%s:\n", entry->section);
		section = entry->section ? entry->section : section;
		put_entry(entry);
	}
	for (size_t i = 0; i < options->count; i++) {
		if (!options->entries[i].words_section)
			continue;
		printf("\n%s:\n", options->entries[i].words_section);
		put_rows(&options->entries[i], WORDS_ONLY_COLUMN);
	}
	putchar('\n');
	put_paragraph(options->ending);
}

/* ---- The list for completions ----------------------------------------------------------- */

static const char *const kinds[] = {
	[OPTIONS_ALONE] = "nothing", [OPTIONS_TEXT] = "text", [OPTIONS_NUMBER] = "text",
	[OPTIONS_TIME] = "text",     [OPTIONS_SIZE] = "text", [OPTIONS_WORD] = "words",
	[OPTIONS_PIDS] = "pids",     [OPTIONS_NAME] = "text", [OPTIONS_FILE] = "file",
	[OPTIONS_FOLDER] = "folder"
};

static const char *const operands[] = { [OPTIONS_NO_OPERAND] = "none",
					[OPTIONS_COMMAND] = "command",
					[OPTIONS_FILES] = "file",
					[OPTIONS_PROCESSES] = "process",
					[OPTIONS_PROCESSES_OR_COMMAND] = "process-or-command" };

/* Print the text up to its first bracket, semicolon or colon. */
static void list_brief(const char *text)
{
	size_t len = strcspn(text, "(;");
	const char *colon = strstr(text, ": ");

	if (colon && (size_t)(colon - text) < len)
		len = (size_t)(colon - text);
	while (len && text[len - 1] == ' ')
		len--;
	printf("%.*s\n", (int)len, text);
}

static void list_exclusions(const struct options *options, const struct options_entry *entry)
{
	/* Excludes any other option, and operands. */
	if (is_common(entry))
		fputs(" - *", stdout);
	for (size_t i = 0; i < options->count && !is_common(entry); i++) {
		const struct options_entry *other = &options->entries[i];

		if (other->old_of ||
		    (entry == other ? entry->is_repeated : !exclude_each_other(entry, other)))
			continue;
		if (other->letter)
			printf(" -%c", other->letter);
		printf(" --%s", other->name);
	}
}

/*
 * Print one line for the operands, one for each option and, below it, one for each of its words.
 * Fields are separated by tabs, and none is empty:
 *   operand  none, command, file, process or process-or-command
 *   old      letter or - and name or - of a former spelling, which completions do not offer
 *   option   letter or -, name, kind, once or many, ":" and all that it excludes, argument or -,
 *            description
 *   word     itself, description or -
 */
static void print_list(const struct options *options)
{
	printf("operand\t%s\n", operands[options->operand]);
	for (size_t i = 0; i < entry_count(options); i++) {
		const struct options_entry *entry = entry_at(options, i);
		struct options_word word;

		if (entry->old_of) {
			printf("old\t%c\t%s\n", entry->letter ? entry->letter : '-',
			       entry->name ? entry->name : "-");
			continue;
		}
		printf("option\t%c\t%s\t%s\t%s\t:", entry->letter ? entry->letter : '-',
		       entry->name, kinds[entry->kind], entry->is_repeated ? "many" : "once");
		list_exclusions(options, entry);
		printf("\t%s\t", entry->argument ? entry->argument : "-");
		list_brief(entry->help);
		for (size_t k = 0; entry->kind == OPTIONS_WORD && word_at(entry, k, &word); k++) {
			printf("word\t%s\t", word.name);
			list_brief(word.help ? word.help : "-");
		}
	}
}

/* ---- Values ----------------------------------------------------------------------------- */

static void put_integer(const struct options_entry *entry, void *field, long number)
{
	if (entry->type == OPTIONS_BOOL) {
		*(bool *)field = number != 0;
	} else if (entry->type == OPTIONS_UNSIGNED) {
		*(unsigned *)field = (unsigned)number;
	} else if (entry->type == OPTIONS_UINT64) {
		*(uint64_t *)field = (uint64_t)number;
	} else {
		assert(entry->type == OPTIONS_LONG);
		*(long *)field = number;
	}
}

static bool put_word(const struct options_entry *entry, void *field, const char *text)
{
	struct options_word word;

	for (size_t i = 0; any_word_at(entry, i, &word); i++) {
		if (strcmp(word.name, text) != 0)
			continue;
		put_integer(entry, field, word.value);
		return true;
	}
	return false;
}

/* Put a value into its field. @return false if it is invalid. */
static bool put_value(const struct options *options, const struct options_entry *entry,
		      struct arguments *arguments, const char *text)
{
	void *field = (char *)arguments + entry->offset;
	long number;

	switch (entry->kind) {
	case OPTIONS_ALONE:
		assert(entry->type == OPTIONS_BOOL);
		*(bool *)field = true;
		return true;
	case OPTIONS_TEXT:
	case OPTIONS_FILE:
	case OPTIONS_FOLDER:
		assert(entry->type == OPTIONS_STRING);
		*(const char **)field = text;
		return true;
	case OPTIONS_NUMBER:
		if (!options_number(text, (long)entry->min,
				    entry->max > 0 ? (long)entry->max : LONG_MAX, &number))
			return false;
		put_integer(entry, field, number);
		return true;
	case OPTIONS_TIME:
		assert(entry->type == OPTIONS_DOUBLE);
		return options_time(text, 1, entry->min, entry->max, field);
	case OPTIONS_SIZE:
		assert(entry->type == OPTIONS_UINT64);
		return options_size(text, field);
	case OPTIONS_WORD:
		return put_word(entry, field, text);
	case OPTIONS_PIDS:
		assert(entry->type == OPTIONS_PID_LIST);
		return options_add_pids(options->program, text, field);
	case OPTIONS_NAME:
		assert(entry->type == OPTIONS_NAME_LIST);
		return options_add_name(options->program, text, field);
	}
	return false;
}

static int refuse_value(const struct options *options, const struct options_entry *entry,
			const char *text)
{
	char words[TEXT_BYTES], message[2 * TEXT_BYTES];
	bool has_words = entry->kind == OPTIONS_WORD && !entry->take;
	struct options_guess guess = { 0 };
	struct options_word word;

	if (!entry->refused)
		return EXIT_USAGE;
	if (has_words)
		join_words(entry, false, words, sizeof(words));
	snprintf(message, sizeof(message), has_words ? "%s (%s):" : "%s:", entry->refused, words);
	for (size_t i = 0; entry->kind == OPTIONS_WORD && word_at(entry, i, &word); i++)
		options_guess(text, word.name, &guess);
	return options_refuse_guess(options->program, message, text, guess.word);
}

/* ---- Reading ---------------------------------------------------------------------------- */

int options_refuse(const char *program, const char *text, const char *argument)
{
	fprintf(stderr, "%s: %s%s%s: try %s --help\n", program, text, argument ? " " : "",
		argument ? argument : "", program);
	return EXIT_USAGE;
}

int options_refuse_suffix(const char *program, const char *(*suffixes_at)(size_t index),
			  const char *path)
{
	struct format_text text = { 0 };
	const char *suffixes, *message;
	struct failure why;
	int ret;

	format_text_add_string(&text, "unknown suffix (known:");
	for (size_t i = 0; (suffixes = suffixes_at(i)) != NULL; i++)
		format_text_addf(&text, " %s", suffixes);
	format_text_add_string(&text, "; or give --format):");
	if (format_text_take(&text, &message, &why) != 0)
		message = "unknown suffix, so give --format:";
	ret = options_refuse(program, message, path);
	format_text_deinit(&text);
	return ret;
}

int options_refuse_guess(const char *program, const char *text, const char *argument,
			 const char *guess)
{
	if (!guess)
		return options_refuse(program, text, argument);
	fprintf(stderr, "%s: %s%s%s: did you mean %s?\n", program, text, argument ? " " : "",
		argument ? argument : "", guess);
	return EXIT_USAGE;
}

/** What getopt_long() takes. */
struct getopt_table {
	struct option longs[OPTIONS_MAX + OPTIONS_COMMON + 1];
	char letters[2 * (OPTIONS_MAX + OPTIONS_COMMON) + 3];
};

/* Make getopt_long()'s arrays from the table. @param in_order Stop at the first operand. */
static void list_entries(const struct options *options, bool in_order,
			 struct getopt_table *ret_table)
{
	struct option *longs = ret_table->longs;
	char *letters = ret_table->letters;

	assert(options->count <= OPTIONS_MAX);
	/* Report a missing argument as ':'. */
	if (in_order)
		*letters++ = '+';
	*letters++ = ':';
	for (size_t i = 0; i < entry_count(options); i++) {
		const struct options_entry *entry = entry_at(options, i);
		bool is_alone = meant_by(options, entry)->kind == OPTIONS_ALONE;

		if (entry->name)
			*longs++ = (struct option){ .name = entry->name,
						    .has_arg = is_alone ? no_argument
									: required_argument,
						    .val = ENTRY_FIRST + (int)i };
		if (!entry->letter)
			continue;
		*letters++ = entry->letter;
		if (!is_alone)
			*letters++ = ':';
	}
	*longs = (struct option){ 0 };
	*letters = '\0';
	opterr = 0; /* one line of ours instead of two */
}

/* @return NULL if there is none. */
static const struct options_entry *find_entry(const struct options *options, int option)
{
	for (size_t i = 0; i < entry_count(options); i++)
		if (option == ENTRY_FIRST + (int)i || option == entry_at(options, i)->letter)
			return meant_by(options, entry_at(options, i));
	return NULL;
}

static _Noreturn void finish(void)
{
	exit(fflush(stdout) || ferror(stdout) ? EXIT_OUTPUT : EXIT_SUCCESS);
}

/* @return -1, or EXIT_USAGE with a message printed. */
static int take_entry(const struct options *options, const struct options_entry *entry,
		      struct arguments *arguments, const char *text)
{
	if (entry == &common[OPTIONS_HELP]) {
		print_help(options);
		finish();
	}
	if (entry == &common[OPTIONS_VERSION]) {
		printf("%s " LJPROF_VERSION "\n", options->program);
		finish();
	}
	if (entry->take ? entry->take(arguments, text) : put_value(options, entry, arguments, text))
		return -1;
	return refuse_value(options, entry, text);
}

/* List the options that begin with the word, "--lines or --limit-bytes". @return How many. */
static size_t list_abbreviated(const struct options *options, const char *word, size_t len,
			       char *ret_text, size_t size)
{
	const char *found[ABBREVIATED_MAX];
	size_t count = 0, used = 0;

	for (size_t i = 0; i < entry_count(options) && count < ABBREVIATED_MAX; i++) {
		const struct options_entry *entry = entry_at(options, i);

		if (!entry->old_of && strncmp(entry->name, word, len) == 0)
			found[count++] = entry->name;
	}
	for (size_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(ret_text + used, size - used, "%s--%s",
					 i == 0		  ? ""
					 : i + 1 == count ? " or "
							  : ", ",
					 found[i]);
	return count;
}

/* Print that there is no such long option, and which one was probably meant. */
static int refuse_name(const struct options *options, const char *word)
{
	const char *name = word + strlen("--");
	struct options_guess guess = { 0 };
	char typed[TEXT_BYTES], text[TEXT_BYTES];
	size_t len = strcspn(name, "=");

	snprintf(typed, sizeof(typed), "%.*s", (int)len, name);
	/* getopt_long() refuses an abbreviation only if it fits several. */
	if (len && list_abbreviated(options, name, len, text, sizeof(text)))
		return options_refuse_guess(options->program, "unknown option", word, text);
	for (size_t i = 0; i < entry_count(options); i++)
		if (!entry_at(options, i)->old_of)
			options_guess(typed, entry_at(options, i)->name, &guess);
	if (guess.word)
		snprintf(text, sizeof(text), "--%s", guess.word);
	return options_refuse_guess(options->program, "unknown option", word,
				    guess.word ? text : NULL);
}

/* Print which option getopt_long() does not accept. @return EXIT_USAGE. */
static int refuse_option(const struct options *options, const char *word)
{
	const char letter[] = { '-', (char)optopt, '\0' };

	if (optopt == 0)
		return strncmp(word, "--", 2) == 0
			       ? refuse_name(options, word)
			       : options_refuse(options->program, "unknown option", word);
	if (optopt >= ENTRY_FIRST)
		return options_refuse(options->program, "the option takes no value:", word);
	/* Letters may stand together, and the word may then be the one before. */
	return options_refuse(options->program, "unknown option",
			      optopt > ' ' && optopt < 0x7f ? letter : NULL);
}

/* Check for given options that exclude each other. @return As take_entry(). */
static int check_exclusions(const struct options *options, const bool *given)
{
	char text[TEXT_BYTES];

	for (size_t i = 0; i < options->count; i++)
		for (size_t k = i + 1; k < options->count; k++) {
			const struct options_entry *one = &options->entries[i];
			const struct options_entry *other = &options->entries[k];

			if (!given[i] || !given[k] || !exclude_each_other(one, other))
				continue;
			snprintf(text, sizeof(text), "--%s and --%s cannot be used together",
				 one->name, other->name);
			return options_refuse(options->program, text, NULL);
		}
	return -1;
}

static int read_options(const struct options *options, bool in_order, int argc, char **argv,
			struct arguments *arguments, int *ret_first)
{
	bool given[OPTIONS_MAX] = { 0 };
	struct getopt_table table;
	int option, ret = -1;

	list_entries(options, in_order, &table);
	optind = 0; /* begin with these words, GNU */
	while (ret < 0 &&
	       (option = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1) {
		const struct options_entry *entry = find_entry(options, option);

		if (option == ':')
			return options_refuse(options->program, "an argument is missing after",
					      argv[optind - 1]);
		if (!entry)
			return refuse_option(options, argv[optind - 1]);
		if (!is_common(entry))
			given[entry - options->entries] = true;
		ret = take_entry(options, entry, arguments, optarg);
	}
	*ret_first = optind;
	return ret < 0 ? check_exclusions(options, given) : ret;
}

int options_parse(const struct options *options, int argc, char **argv, struct arguments *arguments,
		  int *ret_first)
{
	bool in_order = options->operand != OPTIONS_FILES && options->operand != OPTIONS_PROCESSES;

	stdio_occupy_files();
	/* Not in the table, because it is only for completions. */
	if (argc == 2 && strcmp(argv[1], OPTIONS_LIST) == 0) {
		print_list(options);
		finish();
	}
	return read_options(options, in_order, argc, argv, arguments, ret_first);
}

int options_parse_more(const struct options *options, int argc, char **argv,
		       struct arguments *arguments, int *ret_first)
{
	return read_options(options, false, argc, argv, arguments, ret_first);
}

bool options_fit(const struct options *options, int argc, char **argv, int *ret_first)
{
	struct getopt_table table;
	int option;

	list_entries(options, false, &table);
	optind = 0; /* begin with these words, GNU */
	do {
		option = getopt_long(argc, argv, table.letters, table.longs, NULL);
	} while (option != -1 && option != ':' && find_entry(options, option));
	*ret_first = optind;
	return option == -1;
}
