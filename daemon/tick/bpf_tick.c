/* SPDX-License-Identifier: MIT */
/* How do kernel samples, copied while a thread runs, become samples without a stop? */
#include "attach/clock.h"
#include "attach/hash.h"
#include "daemon/outcome/outcomes.h"
#include "daemon/outcome/stop_reasons.h"
#include "daemon/targets/processes.h"
#include "daemon/tick/tick.h"

#include <stdio.h>
#include <string.h>

enum {
	/* Copies are drained from the kernel after this many ticks, within these bounds: most of
	 * the steady-state cost is waking up. */
	DRAIN_TICKS = 32,
	DRAIN_MIN_NS = 10 * 1000 * 1000,
	DRAIN_MAX_NS = 50 * 1000 * 1000,
	/* The same once there was no news for CALM_AFTER_NS: copies hold all that they need. */
	DRAIN_CALM_NS = 200 * 1000 * 1000,
	CALM_AFTER_NS = 2 * 1000 * 1000 * 1000,
	/* Not if one drain finds more than one in this many bytes of the ring in use: the next one,
	 * four times as long after, may find it full. */
	CALM_FILL = 8,
	/* For this time after news (new threads, or memory that copies lacked), drain more
	 * often. */
	UNSETTLED_NS = 250 * 1000 * 1000,
	UNSETTLED_MIN_NS = 1000 * 1000,
	/* The same after a new thread, because more short-lived threads may follow. */
	NEW_THREADS_NS = 2 * 1000 * 1000 * 1000,
	/* A new thread most likely began within this time. */
	BEGUN_MAX_NS = 1000 * 1000 * 1000,
	/* Time during which a thread that the kernel cannot copy completely is stopped; doubles
	 * each time. */
	STOPS_NS = 1000 * 1000 * 1000,
	STOPS_DOUBLED = 6,
	/* A thread is also stopped if more than INCONSISTENT_MAX of this many copies gave a partial
	 * chain. For example, the program flushes all traces so often that they are gone before
	 * they are read. */
	INCONSISTENT_OF = 128,
	INCONSISTENT_MAX = 2,
	/* The opener usually answers within this time, and the thread's copies begin. Other threads
	 * begin with the next drain. */
	EVENTS_NS = 20 * 1000 * 1000,
	/* After the end of the recording, earlier copies are decoded for this time. If copies
	 * arrive faster than they are decoded, the kernel may hold seconds of them. */
	END_PATIENCE_NS = 250 * 1000 * 1000,
};

static bool awaits_vm(const struct recorder_target *of)
{
	return of->awaits_vm && !entry_has_vm(of);
}

uint64_t bpf_tick_next_ns(const struct recorder *recorder, uint64_t now_ns)
{
	uint64_t period_ns = 1000000000u / recorder->options->rate_hz;
	uint64_t ns = DRAIN_TICKS * period_ns, max_ns = DRAIN_MAX_NS;

	bool is_begin = now_ns < recorder->begin_ns + CALM_AFTER_NS;

	/* A new command has no samples that would wake us for its interpreter. */
	if (recorder_any(recorder, awaits_vm))
		max_ns = is_begin ? DRAIN_MIN_NS : DRAIN_MAX_NS;
	else if (!is_begin && now_ns >= recorder->unsettled_ns + CALM_AFTER_NS &&
		 attach_sampler_fill(recorder->sampler) * CALM_FILL <= 1)
		max_ns = DRAIN_CALM_NS;
	if (now_ns < recorder->unsettled_ns || now_ns < recorder->new_threads_ns)
		return now_ns + (period_ns > UNSETTLED_MIN_NS ? period_ns : UNSETTLED_MIN_NS);
	return now_ns + (ns < DRAIN_MIN_NS ? DRAIN_MIN_NS : ns > max_ns ? max_ns : ns);
}

static void note_news(struct recorder *recorder)
{
	recorder->unsettled_ns = clock_now_ns() + UNSETTLED_NS;
}

void bpf_tick_note(struct sampled_copies *copies, enum daemon_outcome outcome)
{
	copies->samples++;
	/* A chain that reaches the root is as it should be: more memory would not improve it. */
	copies->is_inconsistent = !daemon_outcome_reaches_root(outcome);
	copies->inconsistent += copies->is_inconsistent;
	if (copies->is_stopped || copies->samples < INCONSISTENT_OF)
		return;
	if (copies->inconsistent > INCONSISTENT_MAX && !copies->is_inconsistent_by_stops)
		copies->inconsistent_copies = copies->inconsistent;
	copies->samples = copies->inconsistent = 0;
}

void bpf_tick_note_stops(struct sampled_copies *copies)
{
	/* Stops did not avoid even half of the partial chains: the chains themselves are
	 * partial. */
	if (copies->inconsistent_copies > 0 &&
	    2 * copies->inconsistent * INCONSISTENT_OF >
		    copies->inconsistent_copies * copies->samples)
		copies->is_inconsistent_by_stops = true;
	copies->samples = copies->inconsistent = 0;
}

/* Stop the thread for a while, instead of copies. */
static void begin_stops(struct recorder_target *of, struct sampled_thread *data,
			enum daemon_reason reason)
{
	struct sampled_copies *copies = &data->copies;

	copies->samples = copies->inconsistent = 0;
	copies->retry_ns = clock_now_ns() + ((uint64_t)STOPS_NS << copies->tries);
	copies->tries += copies->tries < STOPS_DOUBLED;
	copies->is_refused = !stops_are_allowed(of->recorder);
	if (copies->is_refused)
		return;
	copies->is_stopped = true;
	sampled_forget_time(of, data);
	stops_begin(data, reason);
	of->recorder->stopped_threads++;
}

static void tell_refused(struct recorder *recorder, const struct failure *why)
{
	char reason[256], text[320];

	if (recorder->reported_refused)
		return;
	recorder->reported_refused = true;
	failure_describe(why, reason, sizeof(reason));
	snprintf(text, sizeof(text), "%s: such threads are %s", reason,
		 stops_are_allowed(recorder) ? "stopped for their samples" : "left out");
	recorder_notice(recorder, text);
}

/* Handle a thread that the kernel does not copy. */
static void refuse_thread(struct recorder_target *of, struct sampled_thread *data,
			  const struct failure *why)
{
	if (why->kind == FAILURE_GONE) { /* or a main thread that has ended before the others */
		of->thread_ended = true;
		data->copies.is_gone = true;
		return;
	}
	tell_refused(of->recorder, why);
	begin_stops(of, data, DAEMON_REASON_REFUSED);
}

/* Handle the opener's refusal of an earlier request. */
static void refuse_asked(void *context, void *asked, const struct failure *why)
{
	struct sampled_thread *data = asked;
	struct recorder_target *of = data->copies.of;

	(void)context;
	bpf_tick_end_thread(of, data);
	refuse_thread(of, data, why);
}

/* Start the copies of threads whose events have arrived. Do not wait if other threads are
 * stopped. */
static void take_events(struct recorder *recorder)
{
	uint64_t until_ns = recorder->pending ? 0 : clock_now_ns() + EVENTS_NS;

	if (attach_sampler_take_events(recorder->sampler, until_ns, refuse_asked, recorder) > 0)
		note_news(recorder);
}

/* @return 0 or -1. */
static int add_thread(struct recorder_target *of, struct attach_thread *thread,
		      struct sampled_thread *data, struct failure *why)
{
	const struct luastate_plan_context context = { .state = of->target->lua,
						       .prediction = &data->prediction,
						       .stack_limit = thread->stack_limit };
	struct luastate_bpf_plan first = { .salt = hash_spread((uint64_t)of->pid) | 1 };
	struct attach_sampler *sampler = of->recorder->sampler;
	struct attach_sampler_plan *head;
	int ret;

	luastate_plan_bpf(&context, &first);
	ret = attach_sampler_add(sampler, of->pid, thread->tid, data, &first.head, &head, why);
	if (ret != 0 && why->kind == FAILURE_TIMEOUT) {
		take_events(of->recorder); /* many threads begin: take earlier answers */
		ret = attach_sampler_add(sampler, of->pid, thread->tid, data, &first.head, &head,
					 why);
	}
	data->copies.plan = ret == 0 ? (struct luastate_bpf_plan *)head : NULL;
	return ret;
}

static void begin_thread(struct recorder_target *of, struct attach_thread *thread,
			 struct sampled_thread *data)
{
	struct sampled_copies *copies = &data->copies;
	struct failure why;

	*copies = (struct sampled_copies){ .of = of,
					   .thread = thread,
					   .tries = copies->tries,
					   .is_inconsistent_by_stops =
						   copies->is_inconsistent_by_stops };
	if (add_thread(of, thread, data, &why) == 0) {
		rest_begin(thread, copies);
		note_news(of->recorder);
	} else if (why.kind == FAILURE_TIMEOUT) {
		note_news(of->recorder); /* with the next drain, as it has no plan */
	} else {
		refuse_thread(of, data, &why);
	}
}

static void end_stops(struct recorder *recorder, struct sampled_thread *data)
{
	struct sampled_copies *copies = &data->copies;

	if (!copies->is_stopped)
		return;
	recorder->stopped_threads--;
	sampled_forget_time(copies->of, data);
	bpf_tick_note_stops(copies);
	copies->is_stopped = false;
}

static void add_pending(struct recorder *recorder, struct sampled_thread *data, uint32_t ticks)
{
	data->pending += ticks;
	recorder->stats->thread_ticks += ticks;
}

void bpf_tick_end_thread(struct recorder_target *of, struct sampled_thread *data)
{
	struct sampled_copies *copies = &data->copies;

	end_stops(of->recorder, data);
	copies->is_gone = false;
	if (!copies->plan)
		return;
	of->recorder->stats->missed_ticks +=
		copies->plan->head.lost - copies->lost; /* no copy follows */
	rest_end(of, copies->thread, data);
	add_pending(of->recorder, data, copies->begun);
	copies->begun = 0;
	attach_sampler_remove(of->recorder->sampler, &copies->plan->head);
	copies->plan = NULL;
}

void bpf_tick_end_process(struct recorder_target *of)
{
	for (size_t i = 0; of->target && i < attach_threads_count(of->target->threads); i++) {
		struct sampled_thread *data =
			sampled_of(attach_threads_get(of->target->threads, i));

		if (data)
			bpf_tick_end_thread(of, data);
	}
}

void bpf_tick_end_all(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->target_count; i++)
		bpf_tick_end_process(recorder->targets[i]);
}

/* Ticks that the kernel lost before a copy because it had no room. The copy represents them, unless
 * they span so much time that the thread's work is unknown. */
static uint32_t take_lost(struct recorder *recorder, struct sampled_copies *copies, uint64_t so_far)
{
	uint64_t lost = so_far - copies->lost;
	bool is_short = lost <= recorder->options->rate_hz;

	copies->lost = so_far;
	recorder->stats->missed_ticks += lost;
	recorder->stats->merged_ticks += is_short ? lost : 0;
	return is_short ? (uint32_t)lost : 0;
}

/* Memory of functions that is read after a copy also serves all copies of the process made before
 * that read. */
static void begin_after(struct recorder *recorder, const struct recorder_target *of,
			uint64_t time_ns)
{
	if (time_ns < recorder->after_ns && recorder->after_pid == of->pid)
		return;
	attach_image_clear(recorder->after);
	recorder->after_ns = clock_now_ns();
	recorder->after_pid = of->pid;
}

/* Whether the recording ended too long ago to decode another copy. */
static bool is_over(struct recorder *recorder)
{
	uint64_t now_ns = clock_now_ns();

	if (recorder->over_ns == 0 && *recorder->options->stop)
		recorder->over_ns = now_ns;
	if (recorder->over_ns == 0 && recorder->end_ns && now_ns >= recorder->end_ns)
		recorder->over_ns = recorder->end_ns;
	return recorder->over_ns && now_ns - recorder->over_ns >= END_PATIENCE_NS;
}

/* Account for a copy that is not decoded: its ticks are missed, and are not rest. */
static void miss_copy(struct recorder *recorder, struct sampled_copies *copies,
		      const struct attach_sampler_timing *timing)
{
	recorder->stats->missed_ticks += 1 + timing->changed + copies->begun;
	recorder->stats->missed_ticks += timing->lost - copies->lost;
	copies->lost = timing->lost;
	copies->begun = 0;
	copies->taken += 1 + timing->changed;
}

/* Decode one copy, which is in the recorder's image. */
static bool take_copy(void *context, void *copied, const struct attach_sampler_timing *timing)
{
	struct recorder *recorder = context;
	struct sampled_thread *data = copied;
	struct sampled_copies *copies = &data->copies;
	struct recorder_target *of = copies->of;
	struct luastate_plan_context plan = { .state = of->target->lua,
					      .prediction = &data->prediction,
					      .stack_limit = copies->thread->stack_limit };
	struct failure why;
	uint32_t ticks;
	bool lacked;

	daemon_histogram_add(&recorder->stats->copied, timing->took_ns);
	recorder->stats->late_copies += timing->is_late;
	if (is_over(recorder)) {
		miss_copy(recorder, copies, timing);
		return true;
	}
	ticks = 1 + timing->changed + copies->begun + take_lost(recorder, copies, timing->lost);
	add_pending(recorder, data, ticks);
	copies->begun = 0;
	copies->taken += 1 + timing->changed;
	lacked = luastate_plan_copied(&plan, recorder->image, copies->plan);
	begin_after(recorder, of, timing->time_ns);
	luastate_plan_after(&plan, recorder->image, recorder->after);
	attach_process_fetch(of->process, recorder->after, &why);
	if (!sampled_decode(of, copies->thread, data, NULL, timing->time_ns) ||
	    recorder->end != DAEMON_END_STOPPED)
		return false;
	if (!of->target) /* given up, and its threads with it */
		return true;
	if (copies->is_inconsistent) {
		copies->is_truncated |= timing->is_truncated;
		if (lacked)
			note_news(recorder);
	}
	luastate_note_known(&plan, &of->target->chain, copies->plan->salt,
			    attach_sampler_known(recorder->sampler));
	copies->plan->head.rest_ns = data->runs_lua ? 0 : data->run_rest.until_ns;
	luastate_renew_bpf(&plan, copies->plan);
	return !recorder_is_at_limit(recorder);
}

/* If threads come and go, a thread that was just copied may have ended, and another may have
 * replaced it. Check for that if the threads may be listed. */
static bool may_have_ended(const struct recorder_target *of, bool is_at_rest)
{
	uint64_t now_ns = clock_now_ns();

	return is_at_rest || (now_ns < of->recorder->new_threads_ns && now_ns >= of->threads_ns);
}

/* Account for ticks of the clock without a tick of the thread's processor time. Copies may be a few
 * ticks early or late. */
static void account_rest(struct recorder_target *of, struct attach_thread *thread,
			 struct sampled_thread *data, uint32_t ticks)
{
	struct sampled_copies *copies = &data->copies;
	uint64_t skipped = copies->plan->head.skipped - copies->skipped;
	/* the next copy represents them */
	uint64_t lost = copies->plan->head.lost - copies->lost_seen;

	copies->skipped += skipped;
	copies->lost_seen += lost;
	add_pending(of->recorder, data, (uint32_t)skipped);
	sampled_report(of, data, DAEMON_RESTED);
	copies->rest += (int64_t)ticks - copies->taken - (int64_t)skipped - (int64_t)lost;
	if (may_have_ended(of, copies->taken == 0 && skipped == 0) &&
	    attach_thread_state(thread, NULL, NULL) == ATTACH_EXITED) {
		of->thread_ended = true;
		if (thread->tid == of->pid)
			of->refresh_ns = 0; /* perhaps the whole process has ended */
	}
	rest_report(of, thread, data, copies->taken > 0);
	copies->taken = 0;
}

/* If a thread began since the last list and runs, it has run for half of that time on average. Its
 * first copy represents that time. */
static void note_beginning(struct recorder_target *of, struct attach_thread *thread,
			   struct sampled_thread *data, uint64_t since_ns)
{
	uint64_t period_ns = 1000000000u / of->recorder->options->rate_hz;
	struct recorder *recorder = of->recorder;

	if (since_ns == 0 || !data->copies.plan)
		return;
	recorder->new_threads_ns = clock_now_ns() + NEW_THREADS_NS;
	if (attach_thread_state(thread, NULL, NULL) != ATTACH_RUNNING)
		return;
	recorder->begun_ns += (since_ns < BEGUN_MAX_NS ? since_ns : BEGUN_MAX_NS) / 2;
	data->copies.begun = (uint32_t)(recorder->begun_ns / period_ns);
	recorder->begun_ns %= period_ns;
}

/* Stop a thread whose copies lack something, if stops are allowed. */
static void leave_copies(struct recorder_target *of, struct sampled_thread *data)
{
	struct sampled_copies *copies = &data->copies;
	enum daemon_reason reason =
		copies->is_truncated ? DAEMON_REASON_LARGE : DAEMON_REASON_PARTIAL;

	if (stops_are_allowed(of->recorder)) {
		bpf_tick_end_thread(of, data);
		begin_stops(of, data, reason);
		return;
	}
	copies->is_truncated = false;
	copies->inconsistent_copies = 0;
}

/* Account for a thread that the kernel does not copy and that may not be stopped. */
static void account_refused(struct recorder_target *of, struct attach_thread *thread,
			    struct sampled_thread *data, uint32_t ticks)
{
	add_pending(of->recorder, data, ticks);
	switch (attach_thread_state(thread, NULL, NULL)) {
	case ATTACH_RUNNING:
		sampled_report(of, data, DAEMON_FAILED);
		break;
	case ATTACH_BLOCKED:
		sampled_report(of, data, DAEMON_IDLE);
		break;
	case ATTACH_EXITED:
		sampled_report(of, data, DAEMON_EXITED);
		of->thread_ended = true;
		return;
	}
	if (clock_now_ns() >= data->copies.retry_ns)
		begin_thread(of, thread, data);
}

static void account_thread(struct recorder_target *of, struct attach_thread *thread, uint32_t ticks)
{
	struct recorder *recorder = of->recorder;
	struct sampled_thread *data = sampled_of(thread);

	if (!data)
		return;
	if (data->copies.is_stopped) { /* its stops report its ticks */
		if (clock_now_ns() < data->copies.retry_ns || thread->stop_pending)
			return;
		end_stops(recorder, data);
		begin_thread(of, thread, data);
		return;
	}
	if (data->copies.is_refused) {
		account_refused(of, thread, data, ticks);
		return;
	}
	if (data->copies.is_gone) {
		add_pending(recorder, data, ticks);
		sampled_report(of, data, DAEMON_IDLE);
		return;
	}
	if (!data->copies.plan)
		return;
	account_rest(of, thread, data, ticks);
	if (data->copies.is_truncated || data->copies.inconsistent_copies)
		leave_copies(of, data);
}

bool bpf_tick_take(struct recorder *recorder)
{
	recorder->after_ns = 0;
	if (!attach_sampler_drain(recorder->sampler, recorder->image, take_copy, recorder))
		return false;
	if (attach_sampler_fill(recorder->sampler) > 0.5)
		note_news(recorder); /* drain more often for a while */
	return true;
}

/* Account for the known threads, find out which have ended, then start the new ones. */
static void account_process(struct recorder_target *of, uint32_t ticks)
{
	size_t count = attach_threads_count(of->target->threads);
	uint64_t since_ns, now_ns;

	for (size_t i = 0; i < count; i++)
		account_thread(of, attach_threads_get(of->target->threads, i), ticks);
	if (!recorder_list_threads(of))
		return;
	now_ns = clock_now_ns();
	since_ns = of->begun_ns ? now_ns - of->begun_ns : 0;
	of->begun_ns = now_ns;
	for (size_t i = 0; i < attach_threads_count(of->target->threads); i++) {
		struct attach_thread *thread = attach_threads_get(of->target->threads, i);
		struct sampled_thread *data = sampled_of(thread);

		if (!data || data->copies.plan || data->copies.is_gone || data->copies.is_stopped ||
		    data->copies.is_refused)
			continue;
		begin_thread(of, thread, data);
		note_beginning(of, thread, data, since_ns);
	}
}

bool bpf_tick_drain(struct recorder *recorder, uint32_t ticks)
{
	if (!bpf_tick_take(recorder))
		return false;
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct recorder_target *of = recorder->targets[i];

		if (of->target && luastate_has_interpreter(of->target->lua))
			account_process(of, ticks);
	}
	take_events(recorder);
	return recorder->end == DAEMON_END_STOPPED;
}
