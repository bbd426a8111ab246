/* SPDX-License-Identifier: MIT */
/* Searches for VMs: how often, and what is forgotten in between. */
#include "daemon/decode/target.h"

#include "daemon/dump/dump_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* What a process shows. */
static size_t vms_by_search[2];
static bool has_interpreter, has_all_vms;
static enum attach_fate fate;
/* What was done. */
static unsigned searches, begun_anew;

bool __wrap_target_find_all_vms(struct daemon_target *target);
size_t __wrap_luastate_vm_count(const struct luastate *state);
bool __wrap_luastate_has_interpreter(const struct luastate *state);
int __wrap_target_find_interpreters(struct daemon_target *target, struct failure *why);
size_t __wrap_luastate_refused(const struct luastate *state, const uint64_t **ret_coroutines);
int __wrap_target_find_vm(struct daemon_target *target, struct failure *why);
void __wrap_target_limit_search(struct daemon_target *target, const volatile sig_atomic_t *stop,
				uint64_t end_ns);
enum attach_fate __wrap_attach_process_fate(struct attach_process *process);

bool __wrap_target_find_all_vms(struct daemon_target *target)
{
	(void)target;
	assert_true(searches < 2);
	searches++;
	return has_all_vms;
}

size_t __wrap_luastate_vm_count(const struct luastate *state)
{
	(void)state;
	return searches ? vms_by_search[searches - 1] : 0;
}

bool __wrap_luastate_has_interpreter(const struct luastate *state)
{
	(void)state;
	return has_interpreter;
}

int __wrap_target_find_interpreters(struct daemon_target *target, struct failure *why)
{
	(void)target, (void)why;
	begun_anew++;
	return 0;
}

size_t __wrap_luastate_refused(const struct luastate *state, const uint64_t **ret_coroutines)
{
	(void)state, (void)ret_coroutines;
	return 0;
}

int __wrap_target_find_vm(struct daemon_target *target, struct failure *why)
{
	(void)target;
	return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0, "find a LuaJIT VM");
}

void __wrap_target_limit_search(struct daemon_target *target, const volatile sig_atomic_t *stop,
				uint64_t end_ns)
{
	(void)target, (void)stop, (void)end_ns;
}

enum attach_fate __wrap_attach_process_fate(struct attach_process *process)
{
	(void)process;
	return fate;
}

static int begin(void **state)
{
	(void)state;
	vms_by_search[0] = vms_by_search[1] = 0;
	has_interpreter = has_all_vms = true;
	fate = ATTACH_FATE_SAME;
	searches = begun_anew = 0;
	return 0;
}

static void search(bool is_live)
{
	/* Too large for a stack. */
	static struct daemon_target target;
	static char process;

	memset(&target, 0, sizeof(target));
	if (is_live)
		target.process = (struct attach_process *)(void *)&process;
	assert_int_equal(has_all_vms, target_search_vms(&target));
}

static void test_found_at_once(void **state)
{
	(void)state;
	vms_by_search[0] = 1;
	search(true);
	assert_int_equal(1, searches);
	assert_int_equal(0, begun_anew);
}

/* What it showed at first spoke against its build, and is forgotten. */
static void test_found_at_the_second(void **state)
{
	(void)state;
	vms_by_search[1] = 1;
	search(true);
	assert_int_equal(2, searches);
	assert_int_equal(1, begun_anew);
}

static void test_never_found(void **state)
{
	(void)state;
	search(true);
	assert_int_equal(2, searches);
}

/* Without LuaJIT, of a process that has ended, where time was over, and of a core file another
 * search shows no more. */
static void test_of_no_use(void **state)
{
	has_interpreter = false;
	search(true);
	assert_int_equal(1, searches);
	begin(state);
	fate = ATTACH_FATE_ENDED;
	search(true);
	assert_int_equal(1, searches);
	begin(state);
	has_all_vms = false;
	search(true);
	assert_int_equal(1, searches);
	begin(state);
	search(false);
	assert_int_equal(1, searches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_found_at_once, begin),
		cmocka_unit_test_setup(test_found_at_the_second, begin),
		cmocka_unit_test_setup(test_never_found, begin),
		cmocka_unit_test_setup(test_of_no_use, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
