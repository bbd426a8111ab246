/* SPDX-License-Identifier: MIT */
/* What the compiler of a VM has made. */
#include "sample.h"
#include "luastate/jit_report.h"

#include <stdlib.h>

#include "fake_traces.h"

enum {
	OP_ILOOP = 86,
	PROTO_NOJIT = 8,
	PROTO_PATCHED = 16,
	NOTHING_SLOTS = 5,
};

/** A JIT report of a fake VM, read by @p reader. */
static struct luastate_jit_report *read_by(struct sample *sample,
					   const struct attach_reader *reader)
{
	struct luastate_jit_report *report = NULL;

	assert_int_equal(0, luastate_jit_report_read(sample->state, reader, sample->vm->G, &report,
						     &sample->why));
	assert_non_null(report);
	return report;
}

static struct luastate_jit_report *read_jit_report(struct sample *sample)
{
	return read_by(sample, &sample->vm->reader);
}

static void expect_function(const struct luastate_jit_report *report, uint32_t function,
			    const char *name, const char *chunkname, int64_t firstline)
{
	assert_true(function < report->function_count);
	if (name)
		assert_string_equal(name, report->functions[function].name);
	else
		assert_null(report->functions[function].name);
	assert_string_equal(chunkname, report->functions[function].chunkname);
	assert_int_equal(firstline, report->functions[function].firstline);
}

static void expect_location(const struct luastate_jit_report *report,
			    struct luastate_location location, const char *chunkname, uint32_t line)
{
	assert_true(location.function < report->function_count);
	assert_string_equal(chunkname, report->functions[location.function].chunkname);
	assert_int_equal(line, location.line);
}

/* ---- Traces ----------------------------------------------------------------------------- */

static void test_settings(void **state)
{
	struct sample *sample = *state;
	struct fake_traces traces;
	struct luastate_jit_report *report;

	fake_traces_make(sample->vm, &traces);
	report = read_jit_report(sample);
	assert_int_equal(sample->vm->G, report->G);
	assert_int_equal(0x3ff0001, report->flags);
	for (unsigned i = 0; i < LUASTATE_PARAMS; i++)
		assert_int_equal(FAKE_TRACE_PARAM + i, report->params[i]);
	assert_int_equal(FAKE_TRACE_SLOTS, report->slots);
	assert_int_equal(1, report->areas);
	assert_int_equal(64, report->area_bytes);
	assert_int_equal(40, report->area_free_bytes);
	assert_int_equal(600, report->mcode_bytes);
	assert_int_equal(5, report->objects);
	assert_false(report->traces_cut || report->heap_cut || report->changed);
	luastate_jit_report_destroy(report);
}

static void test_traces(void **state)
{
	struct sample *sample = *state;
	struct fake_traces traces;
	struct luastate_jit_report *report;
	const struct luastate_trace *trace;

	fake_traces_make(sample->vm, &traces);
	report = read_jit_report(sample);
	assert_int_equal(FAKE_TRACES, report->trace_count);
	trace = &report->traces[0];
	assert_int_equal(1, trace->number);
	assert_int_equal(LUASTATE_TRACE_LOOP, trace->kind);
	assert_string_equal("loop", luastate_trace_link_name(trace->linktype));
	assert_int_equal(1, trace->link);
	assert_int_equal(0, trace->root);
	assert_int_equal(0, trace->parent);
	assert_int_equal(1, trace->side_traces);
	expect_location(report, trace->start, "@top.lua", 12);
	assert_int_equal(traces.traces[1], trace->address);
	assert_int_equal(0x10000, trace->mcode);
	assert_int_equal(100, trace->mcode_bytes);
	assert_int_equal(40, trace->loop_offset);
	assert_int_equal(FAKE_IR, trace->instructions);
	assert_int_equal(sample->vm->layout->gc64 ? 11 : 6, trace->constants);
	trace = &report->traces[1];
	assert_int_equal(LUASTATE_TRACE_SIDE, trace->kind);
	assert_string_equal("root", luastate_trace_link_name(trace->linktype));
	assert_int_equal(1, trace->root);
	assert_int_equal(1, trace->parent);
	assert_int_equal(2, trace->exit);
	expect_location(report, trace->start, "@top.lua", 11);
	trace = &report->traces[2];
	assert_int_equal(LUASTATE_TRACE_STITCHED, trace->kind);
	assert_string_equal("return", luastate_trace_link_name(trace->linktype));
	assert_int_equal(0, trace->link);
	assert_int_equal(1, trace->parent);
	luastate_jit_report_destroy(report);
}

static void test_exits(void **state)
{
	struct sample *sample = *state;
	struct fake_traces traces;
	struct luastate_jit_report *report;
	const struct luastate_trace_exit *exits;

	fake_traces_make(sample->vm, &traces);
	report = read_jit_report(sample);
	assert_int_equal(FAKE_TRACES * FAKE_EXITS, report->exit_count);
	for (size_t i = 0; i < FAKE_TRACES; i++) {
		assert_int_equal(FAKE_EXITS, report->traces[i].exit_count);
		exits = report->exits + report->traces[i].first_exit;
		expect_location(report, exits[0].location, "@top.lua", 11);
		assert_int_equal(3, exits[0].count);
		expect_location(report, exits[1].location, "@mid.lua", 21);
		assert_int_equal(7, exits[1].count);
		assert_int_equal(i == 0 ? 2 : 0, exits[2].trace);
		assert_int_equal(0, exits[0].trace + exits[1].trace);
		expect_location(report, exits[2].location, "@top.lua", 13);
		assert_int_equal(LUASTATE_EXIT_LINKED, exits[2].count);
	}
	luastate_jit_report_destroy(report);
}

/* A side trace whose parent is not the first trace of the list. */
static void test_exit_of_later_trace(void **state)
{
	struct sample *sample = *state;
	struct fake_traces traces;
	struct luastate_jit_report *report;

	fake_traces_make(sample->vm, &traces);
	fake_put_u32(sample->vm, fake_trace_ir(sample->vm, traces.traces[2], FAKE_REF_BASE),
		     3 | 1 << 16);
	report = read_jit_report(sample);
	assert_int_equal(FAKE_TRACES * FAKE_EXITS, report->exit_count);
	assert_int_equal(3, report->traces[1].parent);
	for (size_t i = 0; i < report->exit_count; i++)
		assert_int_equal(i == report->traces[2].first_exit + 1 ? 2 : 0,
				 report->exits[i].trace);
	luastate_jit_report_destroy(report);
}

/* Of a trace: the one that ends with this chunk name. */
static const struct luastate_trace_function *find_defined(const struct luastate_jit_report *report,
							  size_t trace, const char *chunkname,
							  int64_t firstline)
{
	const struct luastate_trace *item = &report->traces[trace];

	for (size_t i = 0; i < item->function_count; i++) {
		const struct luastate_trace_function *function =
			&report->trace_functions[item->first_function + i];

		const struct luastate_known_function *known =
			&report->functions[function->function];

		if (strcmp(known->chunkname, chunkname) == 0 &&
		    (firstline < 0 || known->firstline == firstline))
			return function;
	}
	return NULL;
}

static const struct luastate_trace_function *find_function(const struct luastate_jit_report *report,
							   size_t trace, const char *chunkname)
{
	return find_defined(report, trace, chunkname, -1);
}

static void test_functions(void **state)
{
	struct sample *sample = *state;
	struct fake_traces traces;
	struct luastate_jit_report *report;
	const struct luastate_trace_function *function;

	fake_traces_make(sample->vm, &traces);
	fake_name_function(sample->vm, "mid", fake_lua_function(sample->vm, traces.mid));
	report = read_jit_report(sample);
	assert_int_equal(3, report->traces[0].function_count);
	/* By a snapshot's frame, with a name by who holds it. */
	function = find_function(report, 0, "@mid.lua");
	assert_true(function && function->inlined);
	expect_function(report, function->function, "mid", "@mid.lua", 20);
	/* By its prototype; nobody says how it is called. */
	function = find_function(report, 0, "@leaf.lua");
	assert_true(function && function->inlined);
	expect_function(report, function->function, NULL, "@leaf.lua", 30);
	/* Only a value, with a name by where it was made. */
	function = find_defined(report, 0, "@parent.lua", 40);
	assert_true(function && !function->inlined);
	expect_function(report, function->function, "maker", "@parent.lua", 40);
	luastate_jit_report_destroy(report);
}

/* The caller of an inlined function that begins no trace, and is no constant either. */
static void test_frames_by_links(void **state)
{
	struct sample *sample = *state;
	struct fake_traces traces;
	struct luastate_jit_report *report;
	const struct luastate_trace_function *function;
	uint64_t link;

	fake_traces_make(sample->vm, &traces);
	link = fake_pc(sample->vm, traces.parent, 3);
	if (sample->vm->layout->gc64)
		fake_put_u64(sample->vm,
			     fake_trace_ir(sample->vm, traces.traces[1], FAKE_REF_BASE - 7) + 8,
			     link);
	else
		fake_put_u32(sample->vm, fake_trace_map(sample->vm, traces.traces[1], 3),
			     (uint32_t)link);
	report = read_jit_report(sample);
	function = find_defined(report, 0, "@parent.lua", 38);
	assert_true(function && function->inlined);
	assert_null(find_defined(report, 1, "@parent.lua", 38));
	luastate_jit_report_destroy(report);
}

/** A trace in the making that begins in top, beside those of the fake VM; free() it. */
static struct fake_tracing *begin_trace(const struct sample *sample,
					const struct fake_traces *traces, uint32_t number)
{
	struct fake_tracing *tracing = malloc(sizeof(*tracing));

	assert_non_null(tracing);
	fake_tracing_init(tracing, number, traces->top, 1, 0x10000 * number);
	fake_snap_begin(sample->vm, tracing, 20);
	return tracing;
}

/* Below a metamethod's frame, and below the two of a vararg function. */
static void test_frames_by_distances(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct fake_traces traces;
	struct fake_tracing *tracing;
	struct luastate_jit_report *report;
	const struct luastate_trace_function *function;
	uint64_t mid;

	fake_traces_make(vm, &traces);
	mid = fake_lua_function(vm, traces.mid);
	tracing = begin_trace(sample, &traces, 4);
	fake_snap_cont(vm, tracing, mid, 2, fake_pc(vm, traces.parent, 2));
	fake_snap_end(vm, tracing, fake_pc(vm, traces.mid, 1));
	fake_tracing_put(vm, tracing);
	free(tracing);
	tracing = begin_trace(sample, &traces, 5);
	fake_snap_call(vm, tracing, mid, fake_pc(vm, traces.parent, 3));
	fake_snap_delta(vm, tracing, mid, 3, FAKE_LINK_VARG);
	fake_snap_end(vm, tracing, fake_pc(vm, traces.mid, 1));
	fake_tracing_put(vm, tracing);
	free(tracing);
	report = read_jit_report(sample);
	assert_int_equal(FAKE_TRACES + 2, report->trace_count);
	for (size_t i = FAKE_TRACES; i < report->trace_count; i++) {
		expect_location(report, report->exits[report->traces[i].first_exit].location,
				"@mid.lua", 21);
		assert_int_equal(2, report->traces[i].function_count);
		function = find_function(report, i, "@mid.lua");
		assert_true(function && function->inlined);
		function = find_function(report, i, "@parent.lua");
		assert_true(function && function->inlined);
	}
	luastate_jit_report_destroy(report);
}

static void test_kinds(void **state)
{
	struct sample *sample = *state;
	const struct luastate_layout *layout = sample->vm->layout;
	const struct {
		uint32_t op;
		enum luastate_trace_kind kind;
	} cases[] = {
		{ 79, LUASTATE_TRACE_LOOP },
		{ 82, LUASTATE_TRACE_LOOP },
		{ 70, LUASTATE_TRACE_LOOP },
		{ 65, LUASTATE_TRACE_STITCHED },
		{ 69, LUASTATE_TRACE_STITCHED },
		{ 74, LUASTATE_TRACE_RETURN },
		{ 76, LUASTATE_TRACE_RETURN },
		{ 12, LUASTATE_TRACE_OTHER },
		{ 77, LUASTATE_TRACE_OTHER },
		{ (uint32_t)layout->BC_FUNCF, LUASTATE_TRACE_FUNCTION },
	};
	struct fake_traces traces;

	fake_traces_make(sample->vm, &traces);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct luastate_jit_report *report;

		fake_put_u32(sample->vm, fake_member(traces.traces[1], layout->GCtrace_startins),
			     cases[i].op);
		report = read_jit_report(sample);
		assert_int_equal(cases[i].kind, report->traces[0].kind);
		luastate_jit_report_destroy(report);
	}
}

static void test_words(void **state)
{
	(void)state;
	assert_string_equal("stitched", luastate_trace_kind_name(LUASTATE_TRACE_STITCHED));
	assert_string_equal("?", luastate_trace_kind_name((enum luastate_trace_kind)99));
	assert_string_equal("stitch", luastate_trace_link_name(8));
	assert_string_equal("?", luastate_trace_link_name(9));
	assert_string_equal("NYIBC", luastate_abort_name(7));
	assert_string_equal("NYICOAL", luastate_abort_name(34));
	assert_string_equal("?", luastate_abort_name(35));
	assert_string_equal("?", luastate_abort_text(UINT32_MAX));
	assert_string_equal("maxmcode", luastate_param_name(LUASTATE_PARAM_MAXMCODE));
	assert_string_equal("hotexit", luastate_param_name(LUASTATE_PARAM_HOTEXIT));
	assert_null(luastate_param_name(LUASTATE_PARAMS));
	assert_string_equal("fma", luastate_optimisation_name(10));
	assert_null(luastate_optimisation_name(11));
}

/* ---- What is not compiled --------------------------------------------------------------- */

static void test_uncompiled(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct fake_traces traces;
	struct luastate_jit_report *report;
	const struct luastate_uncompiled *item;

	fake_traces_make(vm, &traces);
	fake_put_u8(vm, fake_member(traces.mid, vm->layout->GCproto_flags), PROTO_PATCHED);
	fake_put_u32(vm, fake_pc(vm, traces.mid, 2), OP_ILOOP);
	fake_put_u8(vm, fake_member(traces.leaf, vm->layout->GCproto_flags),
		    PROTO_NOJIT | PROTO_PATCHED);
	fake_put_u32(vm, fake_pc(vm, traces.leaf, 0), (uint32_t)vm->layout->BC_FUNCF + 1);
	report = read_jit_report(sample);
	assert_int_equal(2, report->uncompiled_count);
	for (size_t i = 0; i < 2; i++) {
		item = &report->uncompiled[i];
		if (item->why == LUASTATE_BLACKLISTED) {
			expect_location(report, item->location, "@mid.lua", 20);
			assert_false(item->is_whole);
			assert_int_equal(1, item->loop_count);
			assert_int_equal(22, report->loops[item->first_loop]);
		} else {
			expect_location(report, item->location, "@leaf.lua", 30);
			assert_true(item->is_whole);
			assert_int_equal(0, item->loop_count);
		}
	}
	assert_int_not_equal(report->uncompiled[0].why, report->uncompiled[1].why);
	luastate_jit_report_destroy(report);
}

static void test_penalties(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct fake_traces traces;
	struct luastate_jit_report *report;

	fake_traces_make(vm, &traces);
	fake_penalty(vm, 5, fake_pc(vm, traces.leaf, 1), 72, 7);
	fake_penalty(vm, 6, 0x7000, 144, 9);
	fake_penalty(vm, 63, fake_pc(vm, traces.mid, 2), 40000, 10);
	fake_put_u8(vm, fake_member(traces.mid, vm->layout->GCproto_flags), PROTO_PATCHED);
	fake_put_u32(vm, fake_pc(vm, traces.mid, 2), OP_ILOOP);
	report = read_jit_report(sample);
	assert_int_equal(3, report->penalty_count);
	expect_location(report, report->penalties[0].location, "@leaf.lua", 31);
	assert_int_equal(72, report->penalties[0].value);
	assert_int_equal(7, report->penalties[0].reason);
	assert_false(report->penalties[0].blacklisted);
	assert_int_equal(LUASTATE_NO_FUNCTION, report->penalties[1].location.function);
	assert_int_equal(144, report->penalties[1].value);
	expect_location(report, report->penalties[2].location, "@mid.lua", 22);
	assert_true(report->penalties[2].blacklisted);
	luastate_jit_report_destroy(report);
}

/* Without the list of objects, traces tell of their functions still. */
static void test_lists_that_lead_nowhere(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	uint64_t root = fake_member(vm->G, vm->layout->global_State_gc_root);
	struct fake_traces traces;
	struct luastate_jit_report *report;

	fake_traces_make(vm, &traces);
	for (int i = 0; i < NOTHING_SLOTS; i++) {
		/* Nothing; no address; no object; no type of objects; a circle. */
		const uint64_t roots[NOTHING_SLOTS] = { 0, 12, 0x10000, vm->G, traces.top };

		fake_put_ref(vm, root, roots[i]);
		fake_put_ref(vm, traces.mid, traces.top);
		report = read_jit_report(sample);
		assert_true(report->heap_cut);
		assert_int_equal(FAKE_TRACES, report->trace_count);
		expect_location(report, report->exits[1].location, "@mid.lua", 21);
		luastate_jit_report_destroy(report);
	}
}

/* ---- A process that runs on ------------------------------------------------------------- */

/** A reader that changes the target when something is read for the nth time. */
struct changing {
	struct sample *sample;
	uint64_t at, write_at, value;
	unsigned after;
	bool done;
};

static int read_and_change(void *self, struct remote_addr address, void *ret_bytes, size_t len,
			   struct failure *why)
{
	struct changing *changing = self;
	int ret = attach_read(&changing->sample->vm->reader, address, ret_bytes, len, why);

	if (address.value == changing->at && !changing->done && changing->after-- == 0) {
		fake_put_ref(changing->sample->vm, changing->write_at, changing->value);
		changing->done = true;
	}
	return ret;
}

static uint64_t slot(const struct sample *sample, const struct fake_traces *traces, unsigned number)
{
	return traces->table + (uint64_t)sample->vm->layout->ref_size * number;
}

/* Where the part of a trace behind its header begins. */
static uint64_t rest_of(const struct sample *sample, uint64_t trace)
{
	return trace + (((uint64_t)sample->vm->layout->GCtrace_sizeof + 7) & ~(uint64_t)7);
}

static void test_a_trace_that_is_flushed(void **state)
{
	struct sample *sample = *state;
	struct fake_traces traces;
	struct changing changing = { .sample = sample };
	const struct attach_reader reader = { .read = read_and_change, .self = &changing };
	struct luastate_jit_report *report;

	fake_traces_make(sample->vm, &traces);
	changing.at = rest_of(sample, traces.traces[2]);
	changing.write_at = slot(sample, &traces, 2);
	report = read_by(sample, &reader);
	assert_true(changing.done);
	assert_int_equal(FAKE_TRACES - 1, report->trace_count);
	assert_int_equal(3, report->traces[1].number);
	luastate_jit_report_destroy(report);
}

/* Another trace gets the number: it is read instead. */
static void test_a_trace_that_is_made_anew(void **state)
{
	struct sample *sample = *state;
	const struct luastate_layout *layout = sample->vm->layout;
	struct fake_traces traces;
	struct changing changing = { .sample = sample };
	const struct attach_reader reader = { .read = read_and_change, .self = &changing };
	struct luastate_jit_report *report;
	uint16_t number = 2;

	fake_traces_make(sample->vm, &traces);
	fake_put(sample->vm, fake_member(traces.traces[3], layout->GCtrace_traceno), &number, 2);
	fake_put_ref(sample->vm, slot(sample, &traces, 3), 0);
	changing.at = rest_of(sample, traces.traces[2]);
	changing.write_at = slot(sample, &traces, 2);
	changing.value = traces.traces[3];
	report = read_by(sample, &reader);
	assert_true(changing.done);
	assert_int_equal(2, report->trace_count);
	assert_int_equal(2, report->traces[1].number);
	assert_int_equal(LUASTATE_TRACE_STITCHED, report->traces[1].kind);
	assert_int_equal(0, report->changed);
	luastate_jit_report_destroy(report);
}

static void test_a_trace_in_the_making(void **state)
{
	struct sample *sample = *state;
	struct fake_traces traces;
	struct luastate_jit_report *report;

	fake_traces_make(sample->vm, &traces);
	fake_put_ref(sample->vm, slot(sample, &traces, 5),
		     fake_member(sample->vm->G, sample->vm->layout->global_State_to_J));
	report = read_jit_report(sample);
	assert_int_equal(5, report->recording);
	assert_int_equal(FAKE_TRACES, report->trace_count);
	luastate_jit_report_destroy(report);
}

/* ---- Hostile memory --------------------------------------------------------------------- */

/* Trace 2 is not one any more, the others are. */
static void expect_left_out(struct sample *sample)
{
	struct luastate_jit_report *report = read_jit_report(sample);

	assert_int_equal(FAKE_TRACES - 1, report->trace_count);
	assert_int_equal(1, report->changed);
	luastate_jit_report_destroy(report);
}

static void test_traces_that_are_none(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct fake_traces traces;
	uint64_t trace;

	fake_traces_make(vm, &traces);
	trace = traces.traces[2];
	fake_hide(vm, fake_trace_map(vm, trace, 4), 4);
	expect_left_out(sample);
	fake_show(vm, fake_trace_map(vm, trace, 4), 4);
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_nins), 0x20000);
	expect_left_out(sample);
	fake_put_u32(vm, fake_member(trace, layout->GCtrace_nins), UINT32_MAX);
	expect_left_out(sample);
}

/* Its snapshots lead anywhere: then their places are not known. */
static void test_snapshots_that_are_none(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	const struct luastate_layout *layout = vm->layout;
	struct fake_traces traces;
	struct luastate_jit_report *report;
	uint64_t first, second;

	fake_traces_make(vm, &traces);
	first = fake_trace_snap(vm, traces.traces[1], 0);
	second = fake_trace_snap(vm, traces.traces[1], 1);
	fake_put_u8(vm, first, 0xff);
	fake_put_u8(vm, first + 1, 0xff);
	fake_put_u8(vm, fake_member(second, layout->SnapShot_nent), 255);
	report = read_jit_report(sample);
	assert_int_equal(LUASTATE_NO_FUNCTION, report->exits[0].location.function);
	assert_int_equal(LUASTATE_NO_FUNCTION, report->exits[1].location.function);
	expect_location(report, report->exits[2].location, "@top.lua", 13);
	luastate_jit_report_destroy(report);
}

/* A wide constant whose value would lie behind the constants. */
static void test_constants_at_the_end(void **state)
{
	struct sample *sample = *state;
	struct fake_vm *vm = sample->vm;
	struct fake_traces traces;
	struct luastate_jit_report *report;
	uint64_t last;

	fake_traces_make(vm, &traces);
	last = fake_trace_ir(vm, traces.traces[1], FAKE_REF_BASE - 1);
	fake_put_u8(vm, last + 4, 8);
	fake_put_u8(vm, last + 5, 24);
	report = read_jit_report(sample);
	assert_int_equal(FAKE_TRACES, report->trace_count);
	luastate_jit_report_destroy(report);
}

static void test_no_traces(void **state)
{
	struct sample *sample = *state;
	struct luastate_jit_report *report = read_jit_report(sample);

	assert_int_equal(0, report->trace_count);
	assert_int_equal(0, report->penalty_count);
	luastate_jit_report_destroy(report);
}

static void test_no_such_vm(void **state)
{
	struct sample *sample = *state;
	struct luastate_jit_report *report = NULL;

	assert_int_equal(-1, luastate_jit_report_read(sample->state, &sample->vm->reader,
						      sample->vm->G + 8, &report, &sample->why));
	assert_int_equal(FAILURE_NOT_FOUND, sample->why.kind);
	assert_null(report);
	luastate_jit_report_destroy(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SAMPLE_TEST(test_settings),
		SAMPLE_TEST(test_traces),
		SAMPLE_TEST(test_exits),
		SAMPLE_TEST(test_exit_of_later_trace),
		SAMPLE_TEST(test_functions),
		SAMPLE_TEST(test_frames_by_links),
		SAMPLE_TEST(test_frames_by_distances),
		SAMPLE_TEST(test_kinds),
		SAMPLE_TEST(test_words),
		SAMPLE_TEST(test_uncompiled),
		SAMPLE_TEST(test_penalties),
		SAMPLE_TEST(test_lists_that_lead_nowhere),
		SAMPLE_TEST(test_a_trace_that_is_flushed),
		SAMPLE_TEST(test_a_trace_that_is_made_anew),
		SAMPLE_TEST(test_a_trace_in_the_making),
		SAMPLE_TEST(test_traces_that_are_none),
		SAMPLE_TEST(test_snapshots_that_are_none),
		SAMPLE_TEST(test_constants_at_the_end),
		SAMPLE_TEST(test_no_traces),
		SAMPLE_TEST(test_no_such_vm),
	};

	sample_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
