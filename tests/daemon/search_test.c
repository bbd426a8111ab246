/* SPDX-License-Identifier: MIT */
/* Searches of a VM that changes while it is looked at. */
#include "attach/clock.h"
#include "daemon/decode/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LONG_NS 1000000000000u /* more than any search here takes */

/* What is refused, and how many looks it takes until that fits. */
static uint64_t refused[2];
static size_t refused_count;
static unsigned looks, looks_until_fit;
static struct luastate_vm vm;

bool __wrap_luastate_has_interpreter(const struct luastate *state);
size_t __wrap_luastate_vm_count(const struct luastate *state);
size_t __wrap_attach_threads_count(const struct attach_threads *threads);
size_t __wrap_symbols_space_count(const struct symbols_space *space);
const struct attach_reader *__wrap_target_reader(const struct daemon_target *target);
pid_t __wrap_attach_process_pid(const struct attach_process *process);
size_t __wrap_luastate_refused(const struct luastate *state, const uint64_t **ret_coroutines);
const struct luastate_vm *__wrap_luastate_vm_of(struct luastate *state,
						const struct attach_reader *reader, uint64_t L,
						struct failure *why);

bool __wrap_luastate_has_interpreter(const struct luastate *state)
{
	(void)state;
	return true;
}

size_t __wrap_luastate_vm_count(const struct luastate *state)
{
	(void)state;
	return 0;
}

size_t __wrap_attach_threads_count(const struct attach_threads *threads)
{
	(void)threads;
	return 0;
}

size_t __wrap_symbols_space_count(const struct symbols_space *space)
{
	(void)space;
	return 0;
}

const struct attach_reader *__wrap_target_reader(const struct daemon_target *target)
{
	(void)target;
	return NULL;
}

pid_t __wrap_attach_process_pid(const struct attach_process *process)
{
	(void)process;
	return 42;
}

size_t __wrap_luastate_refused(const struct luastate *state, const uint64_t **ret_coroutines)
{
	(void)state;
	*ret_coroutines = refused;
	return refused_count;
}

const struct luastate_vm *__wrap_luastate_vm_of(struct luastate *state,
						const struct attach_reader *reader, uint64_t L,
						struct failure *why)
{
	(void)state, (void)reader;
	assert_int_equal(refused[0], L);
	if (looks++ < looks_until_fit) {
		failure_set(why, FAILURE_NOT_FOUND, 0, 0, L, "recognise the VM");
		return NULL;
	}
	refused[0] = refused[--refused_count];
	return &vm;
}

static int setup(void **state)
{
	(void)state;
	refused[0] = 0x1000;
	refused[1] = 0x2000;
	refused_count = 1;
	looks = 0;
	return 0;
}

static void test_fits_later(void **state)
{
	struct daemon_target target = { .core = NULL };
	struct failure why;

	(void)state;
	looks_until_fit = 2;
	assert_int_equal(0, target_find_vm(&target, &why));
	assert_int_equal(3, looks);
}

/* All VMs are looked for to the end. */
static void test_all_fit_later(void **state)
{
	struct daemon_target target = { .core = NULL };

	(void)state;
	refused_count = 2;
	looks_until_fit = 0;
	assert_true(target_find_all_vms(&target));
	assert_int_equal(2, looks);
	assert_int_equal(0, refused_count);
}

/* An unknown build is looked at a few times. */
static void test_fits_never(void **state)
{
	struct daemon_target target = { .core = NULL };
	struct failure why;

	(void)state;
	looks_until_fit = UINT32_MAX;
	assert_int_equal(-1, target_find_vm(&target, &why));
	assert_int_equal(FAILURE_NOT_FOUND, why.kind);
	assert_in_range(looks, 2, 20);
}

/* Others wait for the end of a search: it does not begin a nap that ends later. */
static void test_in_time(void **state)
{
	struct daemon_target target = { .core = NULL };
	struct failure why;

	(void)state;
	looks_until_fit = UINT32_MAX;
	target_limit_search(&target, NULL, clock_now_ns() + 20000000);
	assert_int_equal(-1, target_find_vm(&target, &why));
	assert_in_range(looks, 0, 4); /* 1, 2, 4 and 8 ms */
}

/* Neither a core file changes, nor does a search go on that is to end. */
static void test_no_second_look(void **state)
{
	static const volatile sig_atomic_t stop = 1;
	struct daemon_target target = { .core = NULL };
	struct failure why;

	(void)state;
	looks_until_fit = 0;
	target_limit_search(&target, &stop, 0);
	assert_int_equal(-1, target_find_vm(&target, &why));
	target_limit_search(&target, NULL, 1); /* long ago */
	assert_int_equal(-1, target_find_vm(&target, &why));
	assert_int_equal(0, looks);
	target_limit_search(&target, NULL, clock_now_ns() + LONG_NS);
	assert_int_equal(0, target_find_vm(&target, &why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fits_later, setup),
		cmocka_unit_test_setup(test_all_fit_later, setup),
		cmocka_unit_test_setup(test_fits_never, setup),
		cmocka_unit_test_setup(test_in_time, setup),
		cmocka_unit_test_setup(test_no_second_look, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
