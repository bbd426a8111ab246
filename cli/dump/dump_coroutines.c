/* SPDX-License-Identifier: MIT */
/* How are coroutines printed, for people and as JSON? The keys are an interface: ljdump(1). */
#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/json_keys.h"
#include "cli/dump/dump.h"
#include "format/json.h"
#include "format/text.h"

enum {
	FRAME_INDENT = 4,
	/* Addresses of coroutines that wait at one location; JSON has all. */
	ADDRESSES_SHOWN = 4,
};

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* ---- What may be missing ---------------------------------------------------------------- */

static struct dump_reasons list_reasons(const struct daemon_coroutines *coroutines)
{
	struct dump_reasons reasons = { 0 };
	bool is_list_cut = false;

	for (size_t i = 0; i < coroutines->count; i++)
		is_list_cut |= coroutines->vms[i].is_truncated;
	dump_add_snapshot_reasons(&reasons, coroutines->is_late, coroutines->is_huge,
				  coroutines->has_woken, coroutines->is_exhausted,
				  coroutines->is_core_truncated);
	dump_add_reason(
		&reasons, is_list_cut,
		"a heap's list of objects could not be read to its end, so coroutines are missing",
		"list");
	dump_add_reason(&reasons, coroutines->is_truncated, "too many coroutines to list", "limit");
	return reasons;
}

/* ---- Groups ----------------------------------------------------------------------------- */

/** Coroutines with the same status and location. */
struct group {
	const struct daemon_coroutine *first;
	size_t count;
	size_t members[ADDRESSES_SHOWN]; /* by their index */
};

/* People look for these first. */
static int rank_of(const struct daemon_coroutine *coroutine)
{
	static const char *const order[] = { "running", "normal", "idle", "suspended" };

	for (int i = 0; i < (int)(sizeof(order) / sizeof(order[0])); i++)
		if (strcmp(coroutine->status, order[i]) == 0)
			return i;
	return (int)(sizeof(order) / sizeof(order[0]));
}

static int by_kind(const struct daemon_coroutine *x, const struct daemon_coroutine *y)
{
	int a = rank_of(x), b = rank_of(y);

	if (a != b)
		return a < b ? -1 : 1;
	if (x->is_main != y->is_main)
		return x->is_main ? -1 : 1;
	if (x->is_started != y->is_started)
		return x->is_started ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return strcmp(x->status, y->status);
}

/* Equal ones become neighbours, in the order of their creation. */
static int by_kind_and_location(const void *a, const void *b)
{
	const struct daemon_coroutine *const *x = a, *const *y = b;
	int order = by_kind(*x, *y);

	if (order != 0)
		return order;
	return *x < *y ? -1 : *x > *y;
}

/* Large groups before small ones. */
static int by_count(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int m = rank_of(x->first), n = rank_of(y->first);

	if (m != n)
		return m < n ? -1 : 1;
	if (x->first->is_main != y->first->is_main)
		return x->first->is_main ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static size_t make_groups(const struct daemon_coroutine_vm *vm,
			  const struct daemon_coroutine **sorted, struct group *groups)
{
	size_t count = 0;

	for (size_t i = 0; i < vm->count; i++)
		sorted[i] = &vm->coroutines[i];
	qsort(sorted, vm->count, sizeof(*sorted), by_kind_and_location);
	for (size_t i = 0; i < vm->count; i++) {
		struct group *last = count ? &groups[count - 1] : NULL;

		if (!last || by_kind(last->first, sorted[i]) != 0) {
			last = &groups[count++];
			*last = (struct group){ .first = sorted[i] };
		}
		if (last->count < ADDRESSES_SHOWN)
			last->members[last->count] = (size_t)(sorted[i] - vm->coroutines);
		last->count++;
	}
	qsort(groups, count, sizeof(*groups), by_count);
	return count;
}

/* ---- For people ------------------------------------------------------------------------- */

static void print_group(FILE *file, const struct daemon_coroutines *coroutines,
			const struct daemon_coroutine_vm *vm, const struct group *group)
{
	size_t shown = group->count < ADDRESSES_SHOWN ? group->count : ADDRESSES_SHOWN;

	fprintf(file, "\n  %zu coroutine%s, %s%s%s:", group->count, plural(group->count),
		group->first->status, group->first->is_main ? ", main" : "",
		group->first->is_started ? "" : ", not started");
	for (size_t i = 0; i < shown; i++)
		fprintf(file, "%s 0x%" PRIx64, i ? "," : "", vm->coroutines[group->members[i]].L);
	if (shown < group->count)
		fprintf(file, " and %zu more", group->count - shown);
	fputc('\n', file);
	dump_print_frames(file, &coroutines->stacks[group->first->stack], FRAME_INDENT);
}

/* Print how many coroutines have each status. */
static void print_counts(FILE *file, const struct group *groups, size_t count)
{
	for (size_t i = 0; i < count;) {
		const char *status = groups[i].first->status;
		size_t all = 0;

		fputs(i ? ", " : ": ", file);
		for (; i < count && strcmp(groups[i].first->status, status) == 0; i++)
			all += groups[i].count;
		fprintf(file, "%zu %s", all, status);
	}
	fputc('\n', file);
}

static void print_vm(FILE *file, const struct daemon_coroutines *coroutines,
		     const struct daemon_coroutine_vm *vm)
{
	const struct daemon_coroutine **sorted = calloc(vm->count + 1, sizeof(*sorted));
	struct group *groups = calloc(vm->count + 1, sizeof(*groups));
	char *version = format_clean_copy(vm->version);
	size_t count = 0;

	fprintf(file, "\nVM at 0x%" PRIx64 ", %s, %zu coroutine%s", vm->G,
		version && *version ? version : "jit.version unknown", vm->count,
		plural(vm->count));
	if (sorted && groups) {
		count = make_groups(vm, sorted, groups);
		print_counts(file, groups, count);
	} else {
		fputs(": out of memory\n", file);
	}
	for (size_t i = 0; i < count; i++)
		print_group(file, coroutines, vm, &groups[i]);
	free(version);
	free(sorted);
	free(groups);
}

void dump_print_coroutines(FILE *file, const struct daemon_coroutines *coroutines)
{
	struct dump_reasons reasons = list_reasons(coroutines);
	char *name = format_clean_copy(coroutines->name);

	if (coroutines->core)
		fprintf(file, "core %s of ", coroutines->core);
	fprintf(file, "process %d (%s), ", (int)coroutines->pid, name ? name : "?");
	if (coroutines->core)
		fprintf(file, "%zu VM%s\n", coroutines->count, plural(coroutines->count));
	else if (coroutines->frozen)
		dump_print_freeze(file, coroutines->frozen, coroutines->pause_ns);
	else
		fputs("no thread ran, so none was frozen\n", file);
	dump_print_reasons(file, &reasons);
	if (!coroutines->has_all_vms)
		fputs("  not all memory was searched: there may be more VMs\n", file);
	for (size_t i = 0; i < coroutines->count; i++)
		print_vm(file, coroutines, &coroutines->vms[i]);
	free(name);
}

/* ---- JSON ------------------------------------------------------------------------------- */

/* A hundred thousand coroutines are too many for a tree in memory, so they are written one by one.
 * The text of each stack is made once. */

static const char *text_of(struct json_object *object)
{
	return json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE);
}

/* Begin an object with the members of another one, which is freed. */
static void open_with(struct json_out *json, struct json_object *object)
{
	json_out_open(json, '{');
	json_object_object_foreach(object, key, value)
	{
		const char *text = text_of(value);

		json_out_key(json, key);
		json_out_raw(json, text, text ? strlen(text) : 0);
		json->failed |= !text;
	}
	json_object_put(object);
}

/* @return Freed by the caller; NULL if memory is out. */
static char *make_stack(const struct daemon_stack *stack)
{
	struct json_object *object = json_object_new_object(), *frames = NULL;
	const char *text = NULL;
	char *copy;

	dump_add_frames(object, stack);
	if (json_object_object_get_ex(object, "frames", &frames))
		text = text_of(frames);
	copy = text ? strdup(text) : NULL;
	json_object_put(object);
	return copy;
}

static void print_coroutine(struct json_out *json, const struct daemon_coroutines *coroutines,
			    const struct daemon_coroutine *coroutine, const char *stack)
{
	char address[24];

	snprintf(address, sizeof(address), "0x%" PRIx64, coroutine->L);
	json_out_break(json);
	json_out_open(json, '{');
	json_out_key_text(json, "address", address);
	json_out_key_text(json, "status", coroutine->status);
	json_out_key(json, "main");
	json_out_bool(json, coroutine->is_main);
	json_out_key(json, "started");
	json_out_bool(json, coroutine->is_started);
	json_out_key_text(json, "outcome",
			  daemon_outcome_name(coroutines->stacks[coroutine->stack].outcome));
	json_out_key(json, "frames");
	json_out_raw(json, stack ? stack : "null", strlen(stack ? stack : "null"));
	json_out_close(json, '}');
}

static void print_json_vm(struct json_out *json, const struct daemon_coroutines *coroutines,
			  const struct daemon_coroutine_vm *vm, char *const *stacks)
{
	struct json_object *object = json_object_new_object();

	json_keys_add_address(object, "global_state", vm->G);
	json_keys_add_text(object, "version", vm->version[0] ? vm->version : NULL);
	json_keys_add_word(object, "layout", vm->layout);
	json_keys_add_number(object, "objects", vm->objects);
	json_out_break(json);
	open_with(json, object);
	json_out_key(json, "coroutines");
	json_out_open(json, '[');
	for (size_t i = 0; i < vm->count; i++)
		print_coroutine(json, coroutines, &vm->coroutines[i],
				stacks[vm->coroutines[i].stack]);
	json_out_close(json, ']');
	json_out_close(json, '}');
}

static struct json_object *make_head(const struct daemon_coroutines *coroutines)
{
	struct json_object *object = json_object_new_object();
	struct dump_reasons reasons = list_reasons(coroutines);

	if (coroutines->core)
		json_keys_add_text(object, "core", coroutines->core);
	json_keys_add_number(object, "pid", (uint64_t)coroutines->pid);
	json_keys_add_text(object, "name", coroutines->name);
	json_keys_add_flag(object, "all_vms", coroutines->has_all_vms);
	dump_add_freeze(object, coroutines->frozen, coroutines->pause_ns);
	json_keys_add_number(object, "copied_bytes", coroutines->copied_bytes);
	dump_add_reasons(object, &reasons);
	return object;
}

static void print_json_process(struct json_out *json, const struct daemon_coroutines *coroutines)
{
	char **stacks = calloc(coroutines->stack_count + 1, sizeof(*stacks));

	for (size_t i = 0; stacks && i < coroutines->stack_count; i++)
		stacks[i] = make_stack(&coroutines->stacks[i]);
	json_out_break(json);
	open_with(json, make_head(coroutines));
	json_out_key(json, "vms");
	json_out_open(json, '[');
	for (size_t i = 0; stacks && i < coroutines->count; i++)
		print_json_vm(json, coroutines, &coroutines->vms[i], stacks);
	json_out_close(json, ']');
	json_out_close(json, '}');
	for (size_t i = 0; stacks && i < coroutines->stack_count; i++)
		free(stacks[i]);
	json->failed |= !stacks;
	free(stacks);
}

int dump_print_coroutines_json(FILE *file, const struct daemon_coroutines *coroutines, size_t count)
{
	struct json_out json = { .file = file };

	json_out_open(&json, '{');
	json_out_key_text(&json, "version", LJPROF_VERSION);
	json_out_key(&json, "processes");
	json_out_open(&json, '[');
	for (size_t i = 0; i < count; i++)
		print_json_process(&json, &coroutines[i]);
	json_out_close(&json, ']');
	json_out_close(&json, '}');
	json_out_line(&json);
	return !json.failed && !ferror(file) ? 0 : -1;
}
