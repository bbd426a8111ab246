/* SPDX-License-Identifier: MIT */
/* What a stop reads of the trace that runs. */
#include "plan_stop.h"
#include "trace_scene.h"

/* The thread stands in trace 1, which has inlined a call. */
static void run_trace(struct trace_scene *traces, struct sample *sample)
{
	trace_scene_begin(traces, sample);
	trace_scene_at(traces, 70);
}

static uint64_t slot_of(const struct fake_vm *vm, uint32_t number)
{
	uint64_t J = fake_member(vm->G, vm->layout->global_State_to_J);

	return fake_get_u64(vm, fake_member(J, vm->layout->jit_State_trace)) +
	       (uint64_t)vm->layout->ref_size * number;
}

static bool has_header(const struct stop *stop, const struct trace_scene *traces)
{
	return stop_has(stop, traces->tracing.address,
			(size_t)stop->sample->vm->layout->GCtrace_sizeof);
}

static void expect_decoded(struct stop *stop, size_t count)
{
	stop_decode(stop);
	assert_int_equal(LUASTATE_FULL, stop->sample->chain.outcome);
	assert_int_equal(LUASTATE_COMPILED_EXACT, stop->sample->chain.compiled);
	assert_int_equal(count, stop->sample->chain.count);
}

static void test_trace(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct trace_scene traces;
	struct stop stop;
	uint64_t first;
	unsigned rounds;
	size_t len;

	run_trace(&traces, sample);
	stop_begin(&stop, sample);
	/* Without the trace it takes so many rounds. */
	trace_scene_vmstate(&traces, ~vm->layout->vmst_interp);
	stop_capture(&stop);
	rounds = stop.rounds;
	assert_false(stop_asked(&stop, slot_of(vm, 1)));
	/* One that nobody has met costs none more: its reads go with those of the stacks. */
	trace_scene_at(&traces, 70);
	stop_capture(&stop);
	assert_true(stop_has(&stop, slot_of(vm, 1), (size_t)vm->layout->ref_size));
	assert_true(has_header(&stop, &traces));
	assert_int_equal(rounds, stop.rounds);
	assert_int_equal(1, stop_round_of(&stop, slot_of(vm, 1)));
	assert_int_equal(2, stop_round_of(&stop, traces.tracing.address));
	/* What follows the header is read after the stop. */
	first = traces.tracing.address + (((uint64_t)vm->layout->GCtrace_sizeof + 7) & ~7);
	assert_false(stop_has(&stop, first, 8));
	expect_decoded(&stop, 3);
	assert_true(attach_image_peek(stop.after, remote_addr_make(first), 65536, &len));
	assert_true(len >= 8 * (size_t)traces.tracing.constant_count);
	/* It is expected again. */
	stop_learn(&stop);
	stop_capture(&stop);
	assert_int_equal(2, stop.rounds);
	assert_int_equal(0, stop_round_of(&stop, slot_of(vm, 1)));
	assert_int_equal(0, stop_round_of(&stop, traces.tracing.address));
	expect_decoded(&stop, 3);
	/* Another thread has not met it, but it is known. */
	stop.prediction.trace.number = 0;
	stop_capture(&stop);
	assert_int_equal(1, stop_round_of(&stop, slot_of(vm, 1)));
	assert_int_equal(1, stop_round_of(&stop, traces.tracing.address));
	assert_int_equal(3, stop.rounds);
	/* A new one. */
	traces.tracing.number = 2;
	traces.tracing.mcode += 4096;
	fake_tracing_put(vm, &traces.tracing);
	trace_scene_vmstate(&traces, 2);
	trace_scene_stand(&traces, traces.tracing.mcode + 70, true);
	stop_capture(&stop);
	assert_int_equal(1, stop_round_of(&stop, slot_of(vm, 2)));
	assert_int_equal(2, stop_round_of(&stop, traces.tracing.address));
	assert_true(stop.rounds <= 4);
	expect_decoded(&stop, 3);
	assert_int_equal(2, sample->chain.trace);
	stop_end(&stop);
}

/* The predicted trace is another one by now, and lies elsewhere. */
static void test_trace_that_moved(void **state)
{
	struct sample *sample = *state;
	struct trace_scene traces;
	struct stop stop;

	run_trace(&traces, sample);
	stop_begin(&stop, sample);
	stop_capture(&stop);
	expect_decoded(&stop, 3);
	stop_learn(&stop);
	trace_scene_again(&traces);
	trace_scene_base(&traces, 0, 1);
	fake_tracing_put(sample->vm, &traces.tracing);
	stop_capture(&stop);
	assert_int_equal(1, stop_round_of(&stop, traces.tracing.address));
	assert_true(has_header(&stop, &traces));
	assert_true(stop.rounds <= 3);
	expect_decoded(&stop, 2);
	stop_end(&stop);
}

/* A trace that is flushed before it is decoded was what the stop says, if that is known. */
static void test_trace_that_is_gone(void **state)
{
	struct sample *sample = *state;
	struct trace_scene traces;
	struct stop stop;

	run_trace(&traces, sample);
	stop_begin(&stop, sample);
	stop_capture(&stop);
	fake_trace_enter(sample->vm, 1, 0);
	stop_decode(&stop);
	assert_int_equal(LUASTATE_COMPILED_TRACE, sample->chain.compiled);
	fake_trace_enter(sample->vm, 1, traces.tracing.address);
	stop_capture(&stop);
	expect_decoded(&stop, 3);
	stop_capture(&stop);
	fake_trace_enter(sample->vm, 1, 0);
	expect_decoded(&stop, 3);
	stop_end(&stop);
}

/* Numbers and references of any value ask for little, and for nothing without end. */
static void test_hostile_traces(void **state)
{
	static const uint32_t numbers[] = {
		0, 2, SCENE_TRACES - 1, SCENE_TRACES, 65535, INT32_MAX
	};
	static const uint64_t addresses[] = { 0, 8, UINT32_MAX, FAKE_END };
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct trace_scene traces;
	struct stop stop;
	size_t usual;

	run_trace(&traces, sample);
	stop_begin(&stop, sample);
	usual = stop_capture(&stop);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		trace_scene_vmstate(&traces, (int32_t)numbers[i]);
		assert_true(stop_capture(&stop) <= usual + 4096);
		stop_ask_again(&stop);
		assert_int_equal(numbers[i] >= 1 && numbers[i] < SCENE_TRACES,
				 stop_asked(&stop, slot_of(vm, numbers[i])));
	}
	trace_scene_at(&traces, 70);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		fake_trace_enter(vm, 1, addresses[i]);
		assert_true(stop_capture(&stop) <= usual + 4096);
		stop_ask_again(&stop);
		assert_true(stop.after->arena_len <= usual + 65536);
	}
	/* A header that tells of a huge block. */
	fake_trace_enter(vm, 1, traces.tracing.address);
	fake_put_u32(vm, fake_member(traces.tracing.address, vm->layout->GCtrace_nins), 0xffff);
	stop_capture(&stop);
	stop_ask_again(&stop);
	assert_true(stop.after->arena_len <= usual + 65536);
	stop_end(&stop);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_trace),
		SAMPLE_TEST(test_trace_that_moved),
		SAMPLE_TEST(test_trace_that_is_gone),
		SAMPLE_TEST(test_hostile_traces),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
