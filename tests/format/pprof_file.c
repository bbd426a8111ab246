/* SPDX-License-Identifier: MIT */
/* How do tests write and decode a profile in pprof's form? */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "pprof_file.h"

FILE *pprof_file_print(const struct format_profile *profile)
{
	FILE *file = tmpfile();
	struct failure why;

	assert_non_null(file);
	assert_int_equal(0, format_report_find("pprof")->print(
				    profile, &(struct format_report_options){ 0 }, file, &why));
	rewind(file);
	return file;
}

Pprof__Profile *pprof_file_decode(FILE *file)
{
	enum { MORE = 1 << 16 };
	uint8_t bytes[MORE];
	Pprof__Profile *message;
	gzFile packed;
	int len;

	rewind(file);
	packed = gzdopen(dup(fileno(file)), "rb");
	assert_non_null(packed);
	len = gzread(packed, bytes, MORE);
	gzclose(packed);
	assert_in_range(len, 1, MORE - 1);
	message = pprof__profile__unpack(NULL, (size_t)len, bytes);
	assert_non_null(message);
	rewind(file);
	return message;
}
