/* SPDX-License-Identifier: MIT */
/* The table of a command's options, from which all that is known of them comes. */
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

/** What a command line says; each command has its own. */
struct arguments;

/** What stands behind an option. */
enum options_kind {
	OPTIONS_ALONE, /**< Nothing: a bool becomes true. */
	OPTIONS_TEXT,
	OPTIONS_NUMBER,
	OPTIONS_SECONDS,
	OPTIONS_TIME, /**< Seconds, minutes or hours. */
	OPTIONS_SIZE, /**< Bytes, KiB, MiB or GiB. */
	OPTIONS_WORD, /**< One of a list. */
	OPTIONS_PIDS, /**< With commas between them. */
	OPTIONS_NAME, /**< A pattern for names of processes. */
	OPTIONS_FILE,
	OPTIONS_FOLDER,
};

/** One word of a list. */
struct options_word {
	const char *name;
	const char *help; /**< What it means, or "default"; may be NULL. */
	unsigned value;
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

/** Where an option's value goes: into this field of struct arguments. */
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
	const char *name;
	char letter; /**< 0 without a short form. */
	enum options_kind kind;
	const char *argument; /**< What help and manual call the value; NULL: takes none. */
	/** For --help, which breaks the lines; up to the first "(", ";" or ": " for completions,
	 *  too. No stop at the end: the words of a list follow. */
	const char *help;
	/** The headline above this option and the next ones; NULL: the one before. */
	const char *section;
	/** Names of options that cannot be given with it, blanks between; one of two names the
	 *  other. */
	const char *excludes;
	bool is_repeated; /**< May be given several times. */
	/** OPTIONS_WORD: the list, ended by a word without a name. */
	const struct options_word *words;
	/** Or its words by number. @return false behind the last one. */
	bool (*word_at)(size_t index, struct options_word *ret_word);
	/** The list stands below all options, under this headline; NULL: at its option. */
	const char *words_section;
	/** Bounds of numbers and times; 0: as large as the type holds. */
	double min, max;
	/** OPTIONS_INTO(). */
	size_t offset;
	enum options_type type;
	/** Instead of a field: takes the value. @return false where it is wrong. */
	bool (*take)(struct arguments *arguments, const char *text);
	/** What is wrong with a value that is refused, up to ":" and the value; words of a list are
	 *  added. NULL: none is, or take() has said it. */
	const char *refused;
};

/** What stands behind the options. */
enum options_operand {
	OPTIONS_NO_OPERAND,
	OPTIONS_COMMAND, /**< And its own options. */
	OPTIONS_FILES,	 /**< Between the options, too. */
};

/** A command. --help and --version need no entries. */
struct options {
	const char *program;
	/** What stands behind the command's name, in the manual's SYNOPSIS, too; ended by NULL. */
	const char *const *usage;
	const char *about;  /**< Below the usage. */
	const char *ending; /**< Below the options. */
	enum options_operand operand;
	const struct options_entry *entries; /**< At most OPTIONS_MAX. */
	size_t count;
};

enum { OPTIONS_MAX = 64 };

/** The only argument of a command line that asks for the list that completions read. */
#define OPTIONS_LIST "--list-options"

/**
 * Read the options of a command line. Help and version are printed and end the process. Standard
 * files that are closed are occupied first: using them fails, and nothing else gets their numbers.
 * @param ret_first Index of the first argument that is none; but for OPTIONS_FILES reading ends at
 *		    it.
 * @return -1 to go on, else EXIT_USAGE, with a message printed.
 */
int options_parse(const struct options *options, int argc, char **argv, struct arguments *arguments,
		  int *ret_first);

/** Print what is wrong, and that there is a help. @param argument May be NULL. @return EXIT_USAGE.
 */
int options_refuse(const char *program, const char *text, const char *argument);

#endif
