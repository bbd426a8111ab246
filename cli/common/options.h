/* SPDX-License-Identifier: MIT */
/* Which options has a command? Parser, help and completions all use its table. */
#ifndef CLI_COMMON_OPTIONS_H
#define CLI_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/common/option_values.h"

/* Exit codes are an interface: ljrecord(1), ljdump(1). */
enum {
	EXIT_PROFILE = 0,
	EXIT_USAGE = 1,
	EXIT_DENIED = 2,
	EXIT_NO_LUAJIT = 3,
	EXIT_OUTPUT = 4,
	EXIT_ENDED = 5,
	EXIT_SYSTEM = 6,
	EXIT_EMPTY = 7,
};

/** Values of a command line; each command has its own. */
struct arguments;

/** The argument of an option. */
enum options_kind {
	OPTIONS_ALONE, /**< None: a bool becomes true. */
	OPTIONS_TEXT,
	OPTIONS_NUMBER,
	OPTIONS_TIME, /**< Milliseconds, seconds, minutes or hours. */
	OPTIONS_SIZE, /**< Bytes, KiB, MiB or GiB. */
	OPTIONS_WORD, /**< One of a list. */
	OPTIONS_PIDS, /**< Separated by commas. */
	OPTIONS_NAME, /**< A pattern for names of processes. */
	OPTIONS_FILE,
	OPTIONS_FOLDER,
};

/** One word of a list. */
struct options_word {
	const char *name;
	const char *help; /**< What it means, or "default"; may be NULL. */
	unsigned value;
	bool is_old; /**< A former spelling: accepted, but not shown. */
};

/** The type of a field of struct arguments. */
enum options_type {
	OPTIONS_NOWHERE,
	OPTIONS_BOOL,
	OPTIONS_UNSIGNED, /**< Or an enumeration. */
	OPTIONS_LONG,
	OPTIONS_UINT64,
	OPTIONS_DOUBLE,
	OPTIONS_STRING,
	OPTIONS_PID_LIST,
	OPTIONS_NAME_LIST,
};

/** Put the value of an option into this field of struct arguments. */
#define OPTIONS_INTO(field) \
	.offset = offsetof(struct arguments, field),                 \
	.type = _Generic(((struct arguments *)0)->field,             \
			 bool: OPTIONS_BOOL,                         \
			 unsigned: OPTIONS_UNSIGNED,                 \
			 long: OPTIONS_LONG,                         \
			 uint64_t: OPTIONS_UINT64,                   \
			 double: OPTIONS_DOUBLE,                     \
			 const char *: OPTIONS_STRING,               \
			 struct options_pids: OPTIONS_PID_LIST,      \
			 struct options_names: OPTIONS_NAME_LIST)

/** One option. */
struct options_entry {
	const char *name; /**< NULL: no long form, only for a former spelling. */
	char letter;	  /**< 0: no short form. */
	enum options_kind kind;
	const char *argument; /**< Name of the value in help and manual; NULL: no argument. */
	/** For --help, which wraps it; completions use the part before the first "(", ";" or ": ".
	 * Without a full stop, because the words of a list may follow. */
	const char *help;
	/** The headline above this option and the next ones; NULL: the one before. */
	const char *section;
	/** Names of options that exclude this one, separated by blanks; only one of the two options
	 * needs to name the other. */
	const char *excludes;
	bool is_repeated; /**< May be given several times. */
	/** OPTIONS_WORD: the list, ended by a word without a name. */
	const struct options_word *words;
	/** Or a function that returns its words by index; false after the last one. */
	bool (*word_at)(size_t index, struct options_word *ret_word);
	/** Print the list after all options, with this headline; NULL: print it at its option. */
	const char *words_section;
	/** Limits of numbers and times; 0: those of the type. */
	double min, max;
	/** OPTIONS_INTO(). */
	size_t offset;
	enum options_type type;
	/** Instead of a field: handles the value. Returns false if it is invalid. */
	bool (*take)(struct arguments *arguments, const char *text);
	/** Message about an invalid value, followed by ":" and the value; words of a list are
	 * added. NULL: no value is invalid, or take() has printed a message. */
	const char *refused;
	/** A former spelling of the option with this name: accepted, but not shown. Members other
	 * than name and letter are unused. NULL: an option of its own. */
	const char *old_of;
};

/** The operands after the options. */
enum options_operand {
	OPTIONS_NO_OPERAND,
	OPTIONS_COMMAND, /**< And its own options. */
	OPTIONS_FILES,	 /**< Also between the options. */
	/** Process ids and names, also between the options. */
	OPTIONS_PROCESSES,
	/** Process ids and names, or a command and its own options. */
	OPTIONS_PROCESSES_OR_COMMAND,
};

/** A command. --help and --version need no entries. */
struct options {
	const char *program;
	/** Usage lines without the command's name, as in the manual's SYNOPSIS; ended by NULL. */
	const char *const *usage;
	const char *about;  /**< Below the usage. */
	const char *ending; /**< Below the options. */
	enum options_operand operand;
	const struct options_entry *entries; /**< At most OPTIONS_MAX. */
	size_t count;
};

enum { OPTIONS_MAX = 64 };

/** The only argument of a command line that requests the list for completions. */
#define OPTIONS_LIST "--list-options"

/**
 * Read the options of a command line. --help and --version print and end the process. First, closed
 * standard files are occupied: using them then fails, and no other file gets their numbers.
 * @param ret_first Index of the first operand. Reading stops there if the operands may be a
 * command.
 * @return -1 to continue, else EXIT_USAGE, with a message printed.
 */
int options_parse(const struct options *options, int argc, char **argv, struct arguments *arguments,
		  int *ret_first);

/**
 * Read more of the same command line: options may stand between the operands.
 * @param argv The first word is skipped; the operands move to the end.
 * @param ret_first Index of the first operand.
 * @return As options_parse().
 */
int options_parse_more(const struct options *options, int argc, char **argv,
		       struct arguments *arguments, int *ret_first);

/**
 * Whether options_parse_more() would accept the options of these words, apart from their values.
 * @param argv As for options_parse_more(), which also moves the operands.
 */
bool options_fit(const struct options *options, int argc, char **argv, int *ret_first);

/**
 * Print what is wrong, and a hint at --help.
 * @param argument May be NULL.
 * @return EXIT_USAGE.
 */
int options_refuse(const char *program, const char *text, const char *argument);

/**
 * Refuse a file whose suffix tells no format.
 * @param suffixes_at The suffixes of one format, separated by blanks; NULL after the last format.
 * @return EXIT_USAGE.
 */
int options_refuse_suffix(const char *program, const char *(*suffixes_at)(size_t index),
			  const char *path);

/** Print what is wrong, and what was probably meant; without @p guess as options_refuse(). */
int options_refuse_guess(const char *program, const char *text, const char *argument,
			 const char *guess);

#endif
