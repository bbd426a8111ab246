/* SPDX-License-Identifier: MIT */
/* How is the list of LuaJIT processes printed? */
#ifndef CLI_PROCESSES_PROCESS_TABLE_H
#define CLI_PROCESSES_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/list.h"

/** Bytes of a row, with its terminator. */
enum { PROCESS_TABLE_ROW = 256 };

/** Write the heads of the columns. */
void process_table_head(char ret_text[PROCESS_TABLE_ROW]);

/** Write the columns of a process; safe for a terminal. */
void process_table_row(const struct daemon_listed *process, char ret_text[PROCESS_TABLE_ROW]);

/**
 * Print the list as a table.
 * @param is_numbered Begin each row with its number, from 1.
 * @param max Rows at most; a line says how many were left out.
 */
void process_table_print(FILE *file, const struct daemon_list *list, bool is_numbered, size_t max);

/**
 * Print the list as a JSON object. The keys are an interface: ljtop(1).
 * @return 0, or -1 if writing failed.
 */
int process_table_print_json(FILE *file, const struct daemon_list *list);

#endif
