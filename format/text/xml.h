/* SPDX-License-Identifier: MIT */
/* XML in which foreign text takes no effect. */
#ifndef FORMAT_TEXT_XML_H
#define FORMAT_TEXT_XML_H

#include <stdio.h>

/**
 * Print text as XML content or attribute value. Bytes that are no UTF-8, and characters that XML
 * has no place for, become U+FFFD.
 * Source: XML 1.0 (5th edition), section 2.2; RFC 3629.
 * @param characters At most this many characters, the last of them "…" where text is cut.
 */
void xml_print(FILE *file, const char *text, size_t characters);

#endif
