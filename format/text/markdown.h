/* SPDX-License-Identifier: MIT */
/* Markdown in which foreign text takes no effect. */
#ifndef FORMAT_TEXT_MARKDOWN_H
#define FORMAT_TEXT_MARKDOWN_H

#include <stdio.h>

/**
 * Print text as code in a cell of a Markdown table, or anywhere in a line. Nothing of it takes
 * effect: inside of code nothing does but a fence, which is longer than any in the text, and a bar
 * would end the cell before that is looked at, so it stands between two pieces of code, as a
 * reference. Control characters become blanks, bytes that are no UTF-8 U+FFFD.
 * Source: CommonMark 0.30, code spans; GitHub Flavored Markdown 0.29, tables.
 * @param characters At most this many characters, the last of them "…" where text is cut.
 */
void markdown_print_code(FILE *file, const char *text, size_t characters);

#endif
