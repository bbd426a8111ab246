/* SPDX-License-Identifier: MIT */
/* How is foreign text kept from having an effect in Markdown? */
#ifndef FORMAT_TEXT_MARKDOWN_H
#define FORMAT_TEXT_MARKDOWN_H

#include <stdio.h>

/**
 * Print text as code, in a cell of a Markdown table or anywhere in a line. The text cannot add
 * markup: inside code, only a fence has an effect, and this fence is longer than any in the text. A
 * bar would end the cell before code is parsed, so bars are character references between two pieces
 * of code. Blanks replace control characters, and U+FFFD replaces bytes that are not UTF-8.
 * Source: CommonMark 0.30, code spans; GitHub Flavored Markdown 0.29, tables.
 * @param characters At most this many characters; "…" is the last one if the text is cut.
 */
void markdown_print_code(FILE *file, const char *text, size_t characters);

#endif
