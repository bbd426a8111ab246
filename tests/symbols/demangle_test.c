/* SPDX-License-Identifier: MIT */
/* Names of C++ functions, and symbols that are made to be decoded for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "symbols/names/demangle.h"

static void test_names(void **state)
{
	static const char *const names[][2] = {
		{ "_ZN4core4loop3runEv", "core::loop::run" },
		{ "_Z4stepi", "step" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
		  "std::vector<int, std::allocator<int> >::push_back" },
		{ "_ZN3FooD1Ev", "Foo::~Foo" },
		{ "_ZZN4core4mainEvENKUlvE_clEv", "core::main()::{lambda()#1}::operator()" },
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(symbols_demangle(names[i][0], text, sizeof(text)));
		assert_string_equal(names[i][1], text);
	}
}

static void test_others(void **state)
{
	static const char *const names[] = {
		"main", "", "_Z", "_ZN", "_Z5shor", "lj_gc_step", "_RNvC4core4main"
	};
	char text[128] = "unchanged";

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(symbols_demangle(names[i], text, sizeof(text)));
}

/* A long name is cut. */
static void test_long(void **state)
{
	char symbol[400], text[16];
	int len = snprintf(symbol, sizeof(symbol), "_Z300");

	(void)state;
	memset(symbol + len, 'x', 300);
	strcpy(symbol + len + 300, "v");
	assert_true(symbols_demangle(symbol, text, sizeof(text)));
	assert_string_equal("xxxxxxxxxxxxxxx", text);
}

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Each level of templates has the one before it twice. */
static void make_bomb(unsigned levels, char *symbol, size_t size)
{
	size_t len = (size_t)snprintf(symbol, size, "_Z1fI");

	for (unsigned i = 0; i < levels; i++)
		len += (size_t)snprintf(symbol + len, size - len, "1pI");
	len += (size_t)snprintf(symbol + len, size - len, "i");
	for (unsigned i = 0; i < levels; i++) {
		static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

		len += i ? (size_t)snprintf(symbol + len, size - len, "S%c_E", digits[i % 36])
			 : (size_t)snprintf(symbol + len, size - len, "iE");
	}
	snprintf(symbol + len, size - len, "Evv");
}

static void test_bombs(void **state)
{
	double begin_s = now_s();
	char symbol[1024], text[512];

	(void)state;
	for (unsigned levels = 1; levels < 60; levels++) {
		make_bomb(levels, symbol, sizeof(symbol));
		if (symbols_demangle(symbol, text, sizeof(text)))
			assert_true(strlen(text) < sizeof(text));
	}
	assert_true(now_s() - begin_s < 1);
}

/* Random changes of real symbols. */
static void test_mutations(void **state)
{
	static const char real[] = "_ZNSt6vectorIN4core4pairIiS0_EESaIS2_EE9push_backERKT_DpT0_";
	double begin_s = now_s();
	char symbol[sizeof(real)], text[64];
	uint32_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		memcpy(symbol, real, sizeof(real));
		for (unsigned k = 0; k < 1 + i % 4; k++) {
			seed = seed * 1664525 + 1013904223;
			symbol[2 + (seed >> 8) % (sizeof(real) - 3)] =
				real[2 + (seed >> 20) % (sizeof(real) - 3)];
		}
		if (symbols_demangle(symbol, text, sizeof(text)))
			assert_in_range(strlen(text), 1, sizeof(text) - 1);
	}
	assert_true(now_s() - begin_s < 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	  cmocka_unit_test(test_others),
		cmocka_unit_test(test_long),	  cmocka_unit_test(test_bombs),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
