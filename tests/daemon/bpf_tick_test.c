/* SPDX-License-Identifier: MIT */
/* Threads that the kernel copies: the time that a copy stands for, and when a thread is stopped as
 * its copies lack too much. */
#include "attach/clock.h"
#include "daemon/tick/tick.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- What copies stand for -------------------------------------------------------------- */

/* The copies that the kernel made: their thread, and their timing. */
static struct sampled_thread *copied;
static struct attach_sampler_timing timings[8];
static size_t timing_count;
/* Ticks that were owed when each was decoded. */
static uint32_t weights[8];
static size_t decoded;
static double ring_fill;

#define SECOND ((uint64_t)1000000000)

bool __wrap_attach_sampler_drain(struct attach_sampler *sampler, struct attach_image *image,
				 attach_sampler_take *take, void *context);
double __wrap_attach_sampler_fill(const struct attach_sampler *sampler);
void *__wrap_attach_sampler_known(struct attach_sampler *sampler);
int __wrap_attach_process_fetch(const struct attach_process *process, struct attach_image *image,
				struct failure *why);
bool __wrap_luastate_plan_copied(struct luastate_plan_context *context, struct attach_image *image,
				 struct luastate_bpf_plan *plan);
void __wrap_luastate_plan_after(const struct luastate_plan_context *context,
				struct attach_image *image, struct attach_image *after);
void __wrap_luastate_plan_bpf(const struct luastate_plan_context *context,
			      struct luastate_bpf_plan *plan);
void __wrap_luastate_renew_bpf(const struct luastate_plan_context *context,
			       struct luastate_bpf_plan *plan);
void __wrap_luastate_note_known(const struct luastate_plan_context *context,
				const struct luastate_chain *chain, uint64_t salt, uint64_t *table);
bool __wrap_sampled_decode(struct recorder_target *of, struct attach_thread *thread,
			   struct sampled_thread *data, const struct attach_sleep *sleep,
			   uint64_t time_ns);

bool __wrap_attach_sampler_drain(struct attach_sampler *sampler, struct attach_image *image,
				 attach_sampler_take *take, void *context)
{
	(void)sampler, (void)image;
	for (size_t i = 0; i < timing_count; i++)
		if (!take(context, copied, &timings[i]))
			return false;
	return true;
}

double __wrap_attach_sampler_fill(const struct attach_sampler *sampler)
{
	(void)sampler;
	return ring_fill;
}

void *__wrap_attach_sampler_known(struct attach_sampler *sampler)
{
	(void)sampler;
	return NULL;
}

int __wrap_attach_process_fetch(const struct attach_process *process, struct attach_image *image,
				struct failure *why)
{
	(void)process, (void)image, (void)why;
	return 0;
}

bool __wrap_luastate_plan_copied(struct luastate_plan_context *context, struct attach_image *image,
				 struct luastate_bpf_plan *plan)
{
	(void)context, (void)image, (void)plan;
	return false;
}

void __wrap_luastate_plan_after(const struct luastate_plan_context *context,
				struct attach_image *image, struct attach_image *after)
{
	(void)context, (void)image, (void)after;
}

void __wrap_luastate_plan_bpf(const struct luastate_plan_context *context,
			      struct luastate_bpf_plan *plan)
{
	(void)context, (void)plan;
}

void __wrap_luastate_renew_bpf(const struct luastate_plan_context *context,
			       struct luastate_bpf_plan *plan)
{
	(void)context, (void)plan;
}

void __wrap_luastate_note_known(const struct luastate_plan_context *context,
				const struct luastate_chain *chain, uint64_t salt, uint64_t *table)
{
	(void)context, (void)chain, (void)salt, (void)table;
}

bool __wrap_sampled_decode(struct recorder_target *of, struct attach_thread *thread,
			   struct sampled_thread *data, const struct attach_sleep *sleep,
			   uint64_t time_ns)
{
	(void)of, (void)thread, (void)time_ns;
	assert_null(sleep);
	weights[decoded++] = data->pending;
	data->pending = 0;
	return true;
}

static volatile sig_atomic_t stop;

static void stands_for_what_passed_without_copies(void **state)
{
	const struct daemon_options options = { .rate_hz = 100, .stop = &stop };
	struct daemon_stats stats = { 0 };
	struct daemon_target *target = calloc(1, sizeof(*target));
	struct recorder_target of = { .target = target };
	struct recorder recorder = { .options = &options,
				     .stats = &stats,
				     .after = attach_image_create() };
	struct luastate_bpf_plan plan = { 0 };
	struct attach_thread thread = { 0 };
	struct sampled_thread data = {
		/* It had run for four ticks when it was found. */
		.copies = { .plan = &plan, .of = &of, .thread = &thread, .begun = 4 },
	};

	(void)state;
	of.recorder = &recorder;
	copied = &data;
	timings[0] = (struct attach_sampler_timing){ .time_ns = 1, .changed = 2 };
	timings[1] = (struct attach_sampler_timing){ .time_ns = 2, .is_late = true };
	timings[2] = (struct attach_sampler_timing){ .time_ns = 3, .lost = 7 };
	timings[3] = (struct attach_sampler_timing){ .time_ns = 4, .lost = 7 };
	/* More than a second's: nobody knows what the thread did. */
	timings[4] = (struct attach_sampler_timing){ .time_ns = 5, .lost = 108 };
	timing_count = 5;
	assert_true(bpf_tick_take(&recorder));
	assert_int_equal(5, decoded);
	assert_int_equal(1, recorder.stats->late_copies);
	assert_int_equal(1 + 2 + 4, weights[0]);
	assert_int_equal(1, weights[1]);
	assert_int_equal(1 + 7, weights[2]);
	assert_int_equal(1, weights[3]);
	assert_int_equal(1, weights[4]);
	assert_int_equal(108, stats.missed_ticks);
	assert_int_equal(7, stats.merged_ticks);
	assert_int_equal(7 + 1 + 8 + 1 + 1, stats.thread_ticks);
	assert_int_equal(5, stats.copied.count);
	attach_image_destroy(recorder.after);
	free(target);
}

/* @return how many of four copies were decoded where the recording's end is @end_ns. */
static size_t take_four(uint64_t end_ns, uint64_t over_ns, struct daemon_stats *ret_stats,
			struct sampled_copies *ret_sampler)
{
	const struct daemon_options options = { .rate_hz = 100, .stop = &stop };
	struct daemon_target *target = calloc(1, sizeof(*target));
	struct recorder_target of = { .target = target };
	struct recorder recorder = { .options = &options,
				     .stats = ret_stats,
				     .end_ns = end_ns,
				     .over_ns = over_ns,
				     .after = attach_image_create() };
	struct luastate_bpf_plan plan = { 0 };
	struct attach_thread thread = { 0 };
	struct sampled_thread data = {
		.copies = { .plan = &plan, .of = &of, .thread = &thread, .begun = 4 },
	};

	of.recorder = &recorder;
	copied = &data;
	decoded = 0;
	timing_count = 4;
	for (unsigned i = 0; i < 4; i++)
		timings[i] = (struct attach_sampler_timing){ .time_ns = i + 1, .lost = 3 };
	timings[0].changed = 2;
	assert_true(bpf_tick_take(&recorder));
	*ret_sampler = data.copies;
	attach_image_destroy(recorder.after);
	free(target);
	return decoded;
}

/* More may have been copied than can be decoded soon: the end does not wait for it. */
static void leaves_copies_behind_the_end(void **state)
{
	struct daemon_stats stats = { 0 };
	struct sampled_copies copies;

	(void)state;
	/* Long ago. */
	assert_int_equal(0, take_four(1, 0, &stats, &copies));
	assert_int_equal(0, stats.thread_ticks);
	assert_int_equal(4 + 2 + 4 + 3, stats.missed_ticks);
	assert_int_equal(0, stats.merged_ticks);
	/* None of it was a rest. */
	assert_int_equal(4 + 2, copies.taken);
	assert_int_equal(3, copies.lost);
	assert_int_equal(0, copies.begun);
	assert_int_equal(4, stats.copied.count);
	/* Not yet. */
	assert_int_equal(4, take_four(UINT64_MAX, 0, &stats, &copies));
	/* Just now: what was copied before it counts. */
	assert_int_equal(4, take_four(clock_now_ns(), 0, &stats, &copies));
	/* Told to end, which is seen only now, or was long ago. */
	stop = 1;
	assert_int_equal(4, take_four(UINT64_MAX, 0, &stats, &copies));
	assert_int_equal(0, take_four(UINT64_MAX, 1, &stats, &copies));
	stop = 0;
}

/* ---- Threads that begin ----------------------------------------------------------------- */

/* The recording's only thread, and what comes of asking for its event. */
static struct attach_thread only_thread;
static struct sampled_thread only;
static struct luastate_bpf_plan only_plan;
static enum failure_kind add_failure, later_failure;
static unsigned added, removed;
static size_t asked;
static uint64_t waited_until_ns;

int __wrap_attach_sampler_add(struct attach_sampler *sampler, pid_t pid, pid_t tid, void *context,
			      const struct attach_sampler_plan *first,
			      struct attach_sampler_plan **ret_plan, struct failure *why);
size_t __wrap_attach_sampler_take_events(struct attach_sampler *sampler, uint64_t until_ns,
					 attach_sampler_refused *refused, void *context);
void __wrap_attach_sampler_remove(struct attach_sampler *sampler, struct attach_sampler_plan *plan);
bool __wrap_luastate_has_interpreter(const struct luastate *state);
size_t __wrap_attach_threads_count(const struct attach_threads *threads);
struct attach_thread *__wrap_attach_threads_get(struct attach_threads *threads, size_t index);
struct sampled_thread *__wrap_sampled_of(struct attach_thread *thread);
bool __wrap_recorder_list_threads(struct recorder_target *of);
void __wrap_rest_begin(struct attach_thread *thread, struct sampled_copies *sampler);
void __wrap_rest_report(struct recorder_target *of, struct attach_thread *thread,
			struct sampled_thread *data, bool has_copies);
void __wrap_rest_end(struct recorder_target *of, struct attach_thread *thread,
		     struct sampled_thread *data);
enum attach_thread_state __wrap_attach_thread_state(struct attach_thread *thread, uint64_t *first,
						    uint64_t *second);

int __wrap_attach_sampler_add(struct attach_sampler *sampler, pid_t pid, pid_t tid, void *context,
			      const struct attach_sampler_plan *first,
			      struct attach_sampler_plan **ret_plan, struct failure *why)
{
	(void)sampler, (void)pid, (void)tid, (void)first;
	assert_ptr_equal(&only, context);
	added++;
	*why = (struct failure){ .kind = add_failure, .step = "add" };
	if (add_failure != FAILURE_NONE)
		return -1;
	*ret_plan = &only_plan.head;
	return 0;
}

size_t __wrap_attach_sampler_take_events(struct attach_sampler *sampler, uint64_t until_ns,
					 attach_sampler_refused *refused, void *context)
{
	const struct failure why = { .kind = later_failure, .step = "take" };

	(void)sampler;
	waited_until_ns = until_ns;
	if (later_failure != FAILURE_NONE)
		refused(context, &only, &why);
	return asked;
}

void __wrap_attach_sampler_remove(struct attach_sampler *sampler, struct attach_sampler_plan *plan)
{
	(void)sampler;
	assert_ptr_equal(&only_plan.head, plan);
	removed++;
}

bool __wrap_luastate_has_interpreter(const struct luastate *state)
{
	(void)state;
	return true;
}

size_t __wrap_attach_threads_count(const struct attach_threads *threads)
{
	(void)threads;
	return 1;
}

struct attach_thread *__wrap_attach_threads_get(struct attach_threads *threads, size_t index)
{
	(void)threads, (void)index;
	return &only_thread;
}

struct sampled_thread *__wrap_sampled_of(struct attach_thread *thread)
{
	(void)thread;
	return &only;
}

bool __wrap_recorder_list_threads(struct recorder_target *of)
{
	(void)of;
	return true;
}

void __wrap_rest_begin(struct attach_thread *thread, struct sampled_copies *copies)
{
	(void)thread, (void)copies;
}

void __wrap_rest_report(struct recorder_target *of, struct attach_thread *thread,
			struct sampled_thread *data, bool has_copies)
{
	(void)of, (void)thread, (void)data, (void)has_copies;
}

void __wrap_rest_end(struct recorder_target *of, struct attach_thread *thread,
		     struct sampled_thread *data)
{
	(void)of, (void)thread, (void)data;
}

enum attach_thread_state __wrap_attach_thread_state(struct attach_thread *thread, uint64_t *first,
						    uint64_t *second)
{
	(void)thread, (void)first, (void)second;
	return ATTACH_BLOCKED;
}

/** A recording of it, in which threads may be stopped or not. */
struct beginning {
	struct daemon_options options;
	struct daemon_stats stats;
	struct recorder recorder;
	struct recorder_target of, *list;
};

static void begin(struct beginning *scene, enum daemon_capture capture)
{
	memset(scene, 0, sizeof(*scene));
	scene->options =
		(struct daemon_options){ .rate_hz = 100, .stop = &stop, .capture = capture };
	scene->list = &scene->of;
	scene->of = (struct recorder_target){ .recorder = &scene->recorder,
					      .target = calloc(1, sizeof(*scene->of.target)) };
	scene->recorder.options = &scene->options;
	scene->recorder.stats = &scene->stats;
	scene->recorder.targets = &scene->list;
	scene->recorder.target_count = 1;
	memset(&only, 0, sizeof(only));
	memset(&only_plan, 0, sizeof(only_plan));
	timing_count = added = removed = 0;
	asked = 0;
	add_failure = later_failure = FAILURE_NONE;
}

static void waits_for_events_only_while_none_stands(void **state)
{
	struct beginning scene;
	uint64_t before_ns;

	(void)state;
	begin(&scene, DAEMON_CAPTURE_AUTO);
	before_ns = clock_now_ns();
	assert_true(bpf_tick_drain(&scene.recorder, 1));
	assert_int_equal(1, added);
	assert_ptr_equal(&only_plan, only.copies.plan);
	assert_true(waited_until_ns > before_ns);
	assert_true(waited_until_ns < clock_now_ns() + 100 * 1000 * 1000);
	/* A thread is under an interrupt that it has not answered, and may stand by now. */
	scene.recorder.pending = 1;
	asked = 1;
	scene.recorder.unsettled_ns = 0;
	assert_true(bpf_tick_drain(&scene.recorder, 1));
	assert_int_equal(0, waited_until_ns);
	/* What is still to come is looked for soon. */
	assert_true(scene.recorder.unsettled_ns > before_ns);
	assert_int_equal(1, added);
	free(scene.of.target);
}

static void adds_the_rest_of_a_crowd_later(void **state)
{
	struct beginning scene;

	(void)state;
	begin(&scene, DAEMON_CAPTURE_AUTO);
	add_failure = FAILURE_TIMEOUT;
	assert_true(bpf_tick_drain(&scene.recorder, 1));
	assert_int_equal(2, added);
	assert_null(only.copies.plan);
	assert_false(only.copies.is_stopped || only.copies.is_refused || only.copies.is_gone);
	add_failure = FAILURE_NONE;
	assert_true(bpf_tick_drain(&scene.recorder, 1));
	assert_int_equal(3, added);
	assert_ptr_equal(&only_plan, only.copies.plan);
	free(scene.of.target);
}

static void takes_refusals_that_come_later(void **state)
{
	static const enum failure_kind kinds[] = { FAILURE_GONE, FAILURE_DENIED, FAILURE_TIMEOUT };
	struct beginning scene;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++) {
		enum failure_kind kind = kinds[i / 2];
		bool may_stop = i % 2;

		begin(&scene, may_stop ? DAEMON_CAPTURE_AUTO : DAEMON_CAPTURE_KERNEL);
		scene.recorder.reported_refused = true;
		later_failure = kind;
		assert_true(bpf_tick_drain(&scene.recorder, 1));
		assert_null(only.copies.plan);
		assert_int_equal(1, removed);
		assert_int_equal(kind == FAILURE_GONE, only.copies.is_gone);
		assert_int_equal(kind == FAILURE_GONE, scene.of.thread_ended);
		assert_int_equal(kind != FAILURE_GONE && may_stop, only.copies.is_stopped);
		assert_int_equal(kind != FAILURE_GONE && !may_stop, only.copies.is_refused);
		assert_int_equal(only.copies.is_stopped, scene.recorder.stopped_threads);
		free(scene.of.target);
	}
}

/* ---- When a thread is stopped ----------------------------------------------------------- */

/* Note this many samples, the first ones of which are not whole. */
static void note(struct sampled_copies *copies, unsigned samples, unsigned torn)
{
	for (unsigned i = 0; i < samples; i++)
		bpf_tick_note(copies, i < torn ? DAEMON_TRUNCATED : DAEMON_FULL);
}

static void lets_copies_that_lack_little(void **state)
{
	struct sampled_copies copies = { 0 };

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		note(&copies, 128, 2);
	assert_int_equal(copies.inconsistent_copies, 0);
	for (unsigned i = 0; i < 1000; i++)
		bpf_tick_note(&copies, DAEMON_NO_VM);
	assert_int_equal(copies.inconsistent_copies, 0);
}

static void stops_where_copies_lack_more(void **state)
{
	struct sampled_copies copies = { 0 };

	(void)state;
	note(&copies, 127, 3);
	assert_int_equal(copies.inconsistent_copies, 0);
	note(&copies, 1, 0);
	assert_int_equal(copies.inconsistent_copies, 3);
}

static void tells_the_last_one(void **state)
{
	struct sampled_copies copies = { 0 };

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		bpf_tick_note(&copies, DAEMON_UNWOUND);
		assert_true(copies.is_inconsistent);
		bpf_tick_note(&copies, DAEMON_FULL);
		assert_false(copies.is_inconsistent);
	}
}

static void goes_on_with_stops_that_show_more(void **state)
{
	struct sampled_copies copies = { 0 };

	(void)state;
	note(&copies, 128, 64);
	assert_int_equal(copies.inconsistent_copies, 64);
	copies.is_stopped = true;
	note(&copies, 1000, 249);
	bpf_tick_note_stops(&copies);
	assert_false(copies.is_inconsistent_by_stops);
}

static void takes_copies_where_stops_show_no_more(void **state)
{
	struct sampled_copies copies = { 0 };

	(void)state;
	note(&copies, 128, 64);
	copies.is_stopped = true;
	note(&copies, 1000, 251);
	bpf_tick_note_stops(&copies);
	assert_true(copies.is_inconsistent_by_stops);
	copies.is_stopped = false;
	copies.inconsistent_copies = 0;
	note(&copies, 1280, 1280);
	assert_int_equal(copies.inconsistent_copies, 0);
}

/* It was stopped for another cause, or slept. */
static void judges_no_stops_without_cause(void **state)
{
	struct sampled_copies copies = { .is_stopped = true };

	(void)state;
	note(&copies, 100, 100);
	bpf_tick_note_stops(&copies);
	assert_false(copies.is_inconsistent_by_stops);
	copies.inconsistent_copies = 64;
	bpf_tick_note_stops(&copies);
	assert_false(copies.is_inconsistent_by_stops);
}

/* Without news the kernel may keep copies for longer, but only where its ring has room for them. */
static void drains_seldom_where_all_is_calm(void **state)
{
	struct daemon_options options = { .rate_hz = 99 };
	struct recorder recorder = { .options = &options, .unsettled_ns = 10 * SECOND };

	(void)state;
	ring_fill = 0.1;
	assert_int_equal(9 * SECOND + SECOND / 99, bpf_tick_next_ns(&recorder, 9 * SECOND));
	assert_int_equal(11 * SECOND + SECOND / 20, bpf_tick_next_ns(&recorder, 11 * SECOND));
	assert_int_equal(12 * SECOND + SECOND / 5, bpf_tick_next_ns(&recorder, 12 * SECOND));
	ring_fill = 0.13;
	assert_int_equal(12 * SECOND + SECOND / 20, bpf_tick_next_ns(&recorder, 12 * SECOND));
	ring_fill = 0;
	options.rate_hz = 1000;
	assert_int_equal(12 * SECOND + SECOND / 1000 * 32,
			 bpf_tick_next_ns(&recorder, 12 * SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stands_for_what_passed_without_copies),
		cmocka_unit_test(leaves_copies_behind_the_end),
		cmocka_unit_test(waits_for_events_only_while_none_stands),
		cmocka_unit_test(adds_the_rest_of_a_crowd_later),
		cmocka_unit_test(takes_refusals_that_come_later),
		cmocka_unit_test(lets_copies_that_lack_little),
		cmocka_unit_test(stops_where_copies_lack_more),
		cmocka_unit_test(tells_the_last_one),
		cmocka_unit_test(goes_on_with_stops_that_show_more),
		cmocka_unit_test(takes_copies_where_stops_show_no_more),
		cmocka_unit_test(judges_no_stops_without_cause),
		cmocka_unit_test(drains_seldom_where_all_is_calm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
