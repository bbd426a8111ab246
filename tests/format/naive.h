/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FORMAT_NAIVE_H
#define TESTS_FORMAT_NAIVE_H

#include <stdio.h>

/**
 * A second implementation of the reference parser's rules, written apart from the module's: plain
 * lists, linear searches, no sharing of code but the record reader.
 * @return Lines "a;b;c; N" sorted bytewise, C symbols without their address; to be freed.
 */
char *naive_print(FILE *file);

#endif
