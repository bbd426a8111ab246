/* SPDX-License-Identifier: MIT */
/* How is foreign text kept from having an effect in XML? */
#ifndef FORMAT_TEXT_XML_H
#define FORMAT_TEXT_XML_H

#include <stdio.h>

/**
 * Print text as XML content or attribute value. U+FFFD replaces bytes that are not UTF-8 and
 * characters that XML does not allow.
 * Source: XML 1.0 (5th edition), section 2.2; RFC 3629.
 * @param characters At most this many characters; "…" is the last one if the text is cut.
 */
void xml_print(FILE *file, const char *text, size_t characters);

#endif
