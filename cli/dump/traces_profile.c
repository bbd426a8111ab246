/* SPDX-License-Identifier: MIT */
/* How many samples has each trace, according to the JSON of ljrecord --stats? */
#include "cli/dump/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attach/array.h"
#include "format/text.h"

enum {
	/* There are at most DAEMON_TRACES_LISTED traces, of some 150 bytes and a chunk name
	 * each. */
	FILE_MAX_BYTES = 32 << 20,
};

/* With this limit the sums of all numbers in a file fit in 64 bits. */
static const uint64_t samples_max = (uint64_t)1 << 40;

/** The samples of one trace. */
struct entry {
	uint32_t number;
	pid_t pid;
	int64_t line;
	const char *chunk; /* of the JSON object, NULL: unknown */
	struct dump_samples samples;
	bool is_dumped; /* its process is shown */
	size_t fitting; /* number of shown traces that may be this one */
};

struct dump_profile {
	struct json_object *root;
	struct entry *entries; /* by number */
	size_t count;
	pid_t *pids; /* recorded processes, sorted */
	size_t pid_count;
};

static int refuse(const char *path, const char *what)
{
	fprintf(stderr, "ljdump: %s: %s (give a file that ljrecord --stats has written)\n", path,
		what);
	return -1;
}

/* ---- Reading ---------------------------------------------------------------------------- */

static bool get_number(struct json_object *object, const char *key, uint64_t *ret_value)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return false;
	*ret_value = json_object_get_uint64(value);
	return true;
}

/* The recorder knows no chunk if a function was gone before its name was read. */
static bool get_chunk(struct json_object *object, const char **ret_chunk)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, "chunk", &value) ||
	    !(json_object_is_type(value, json_type_string) ||
	      json_object_is_type(value, json_type_null)))
		return false;
	*ret_chunk = value ? json_object_get_string(value) : NULL;
	return true;
}

static bool get_line(struct json_object *object, int64_t *ret_line)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, "line", &value) ||
	    !json_object_is_type(value, json_type_int))
		return false;
	*ret_line = json_object_get_int64(value);
	return true;
}

static bool get_pid(struct json_object *object, pid_t *ret_pid)
{
	uint64_t pid;

	if (!get_number(object, "pid", &pid) || pid == 0 || pid > INT32_MAX)
		return false;
	*ret_pid = (pid_t)pid;
	return true;
}

static bool get_samples(struct json_object *object, const char *key, uint64_t *ret_samples)
{
	return get_number(object, key, ret_samples) && *ret_samples <= samples_max;
}

static bool read_entry(struct json_object *object, struct entry *ret_entry)
{
	uint64_t number;

	if (!json_object_is_type(object, json_type_object) ||
	    !get_number(object, "trace", &number) || number > UINT32_MAX ||
	    !get_pid(object, &ret_entry->pid) || !get_line(object, &ret_entry->line) ||
	    !get_chunk(object, &ret_entry->chunk) ||
	    !get_samples(object, "samples", &ret_entry->samples.all) ||
	    !get_samples(object, "exact", &ret_entry->samples.exact) ||
	    !get_samples(object, "approximate", &ret_entry->samples.approximate) ||
	    !get_samples(object, "trace_only", &ret_entry->samples.trace_only))
		return false;
	ret_entry->number = (uint32_t)number;
	return true;
}

static int by_number(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int by_pid(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool get_list(struct json_object *root, const char *key, struct json_object **ret_list)
{
	return json_object_is_type(root, json_type_object) &&
	       json_object_object_get_ex(root, key, ret_list) &&
	       json_object_is_type(*ret_list, json_type_array);
}

/* Pids from the list of processes, which includes processes without traces but is limited, and from
 * the traces. */
static const char *read_pids(struct dump_profile *profile)
{
	struct json_object *processes = NULL;
	size_t listed = get_list(profile->root, "processes", &processes)
				? json_object_array_length(processes)
				: 0;

	profile->pids = calloc(listed + profile->count + 1, sizeof(*profile->pids));
	if (!profile->pids)
		return "out of memory";
	for (size_t i = 0; i < listed; i++)
		if (!get_pid(json_object_array_get_idx(processes, i),
			     &profile->pids[profile->pid_count++]))
			return "an invalid process";
	for (size_t i = 0; i < profile->count; i++)
		profile->pids[profile->pid_count++] = profile->entries[i].pid;
	qsort(profile->pids, profile->pid_count, sizeof(*profile->pids), by_pid);
	return NULL;
}

/* @return NULL, or what is wrong with the file. */
static const char *read_entries(struct dump_profile *profile)
{
	struct json_object *traces;
	size_t count;

	if (!get_list(profile->root, "traces", &traces))
		return "no samples by trace in it";
	count = json_object_array_length(traces);
	profile->entries = calloc(count + 1, sizeof(*profile->entries));
	if (!profile->entries)
		return "out of memory";
	for (size_t i = 0; i < count; i++)
		if (!read_entry(json_object_array_get_idx(traces, i), &profile->entries[i]))
			return "invalid samples of a trace";
	profile->count = count;
	qsort(profile->entries, count, sizeof(*profile->entries), by_number);
	return read_pids(profile);
}

int dump_profile_read(const char *path, struct dump_profile **ret_profile)
{
	struct dump_profile *profile = calloc(1, sizeof(*profile));
	struct stat status;
	const char *wrong;

	if (!profile)
		return refuse(path, "out of memory");
	if (stat(path, &status) != 0)
		wrong = strerror(errno);
	else if (!S_ISREG(status.st_mode) || status.st_size > FILE_MAX_BYTES)
		wrong = "not a file, or too large";
	else
		wrong = (profile->root = json_object_from_file(path)) == NULL
				? "not JSON"
				: read_entries(profile);
	if (wrong) {
		refuse(path, wrong);
		dump_profile_destroy(profile);
		return -1;
	}
	*ret_profile = profile;
	return 0;
}

void dump_profile_destroy(struct dump_profile *profile)
{
	if (!profile)
		return;
	json_object_put(profile->root);
	free(profile->entries);
	free(profile->pids);
	free(profile);
}

/* ---- Queries ---------------------------------------------------------------------------- */

/* Both names may already have been cleaned. */
static bool is_chunk(const char *chunk, const char *own)
{
	char *one = format_clean_copy(chunk), *other = format_clean_copy(own);
	bool same = one && other && strcmp(one, other) == 0;

	free(one);
	free(other);
	return same;
}

/* A process that was not recorded may be a recorded one after a restart: it gets the samples of
 * processes that are not shown. */
static bool is_of_process(const struct dump_profile *profile, const struct entry *entry, pid_t pid)
{
	if (entry->pid == pid)
		return true;
	return !entry->is_dumped &&
	       !bsearch(&pid, profile->pids, profile->pid_count, sizeof(*profile->pids), by_pid);
}

static bool fits(const struct dump_profile *profile, const struct entry *entry, pid_t pid,
		 const struct luastate_jit_report *report, const struct luastate_trace *trace)
{
	return entry->chunk && entry->line == trace->start.line &&
	       is_of_process(profile, entry, pid) &&
	       is_chunk(entry->chunk, report->functions[trace->start.function].chunkname);
}

/* The next entry that matches a trace, after @p after or, if that is NULL, the first. */
static struct entry *next_fitting(const struct dump_profile *profile, const struct entry *after,
				  pid_t pid, const struct luastate_jit_report *report,
				  const struct luastate_trace *trace)
{
	struct entry *entries = profile->entries;
	size_t at;

	if (trace->start.function == LUASTATE_NO_FUNCTION)
		return NULL;
	at = after ? (size_t)(after - entries) + 1
		   : ARRAY_SEARCH(profile->count, i, entries[i].number < trace->number);
	for (; at < profile->count && entries[at].number == trace->number; at++)
		if (fits(profile, &entries[at], pid, report, trace))
			return &entries[at];
	return NULL;
}

static void match_traces(struct dump_profile *profile, pid_t pid,
			 const struct luastate_jit_report *report)
{
	for (size_t i = 0; i < report->trace_count; i++) {
		struct entry *entry = NULL;

		while ((entry = next_fitting(profile, entry, pid, report, &report->traces[i])) !=
		       NULL)
			entry->fitting++;
	}
}

void dump_profile_match(struct dump_profile *profile, const struct daemon_dump *dumps, size_t count)
{
	for (size_t i = 0; i < profile->count; i++) {
		profile->entries[i].fitting = 0;
		profile->entries[i].is_dumped = false;
		for (size_t j = 0; j < count; j++)
			profile->entries[i].is_dumped |= profile->entries[i].pid == dumps[j].pid;
	}
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < dumps[i].count; j++)
			match_traces(profile, dumps[i].pid, dumps[i].vms[j].report);
}

struct dump_samples dump_profile_find(const struct dump_profile *profile, pid_t pid,
				      const struct luastate_jit_report *report,
				      const struct luastate_trace *trace)
{
	struct dump_samples samples = { 0 };
	const struct entry *entry = NULL;

	while ((entry = next_fitting(profile, entry, pid, report, trace)) != NULL) {
		if (entry->fitting > 1) {
			samples.shared += entry->samples.all;
			continue;
		}
		samples.all += entry->samples.all;
		samples.exact += entry->samples.exact;
		samples.approximate += entry->samples.approximate;
		samples.trace_only += entry->samples.trace_only;
	}
	return samples;
}

struct dump_totals dump_profile_count(const struct dump_profile *profile)
{
	struct dump_totals totals = { 0 };

	for (size_t i = 0; i < profile->count; i++) {
		const struct entry *entry = &profile->entries[i];

		totals.all += entry->samples.all;
		totals.unknown += entry->fitting == 0 ? entry->samples.all : 0;
		totals.shared += entry->fitting > 1 ? entry->samples.all : 0;
	}
	return totals;
}
