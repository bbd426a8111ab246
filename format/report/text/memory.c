/* SPDX-License-Identifier: MIT */
/* How is a memory profile printed, as by Tarantool's parser and as a list of leaks? */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/formats/reports.h"
#include "format/profile/profile_internal.h"

/** Locations with texts, in some order. */
struct listing {
	const struct heap *heap;
	const struct format_report_options *options;
	char **texts;	 /* By location. */
	uint32_t *order; /* All locations, sorted by text. */
	uint32_t *ranks; /* By location: its index in `order`. */
	uint32_t *links; /* All links, sorted by kind, location, and text of the old location. */
	enum heap_kind kind;
};

static void listing_deinit(struct listing *listing)
{
	heap_free_texts(listing->heap, listing->texts);
	free(listing->order);
	free(listing->ranks);
	free(listing->links);
}

static int compare_texts(const void *left, const void *right, void *context)
{
	const struct listing *listing = context;

	return strcmp(listing->texts[*(const uint32_t *)left],
		      listing->texts[*(const uint32_t *)right]);
}

static int compare_links(const void *left, const void *right, void *context)
{
	const struct listing *listing = context;
	struct heap_count count;
	const struct heap_link *a = heap_link(listing->heap, *(const uint32_t *)left, &count);
	const struct heap_link *b = heap_link(listing->heap, *(const uint32_t *)right, &count);

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->location != b->location)
		return a->location < b->location ? -1 : 1;
	return listing->ranks[a->old] < listing->ranks[b->old] ? -1 : 1;
}

static int listing_init(struct listing *listing, const struct heap *heap,
			const struct format_report_options *options, struct failure *why)
{
	uint32_t locations = heap_location_count(heap), links = heap_link_count(heap);

	*listing = (struct listing){ .heap = heap, .options = options };
	listing->texts = heap_texts(heap, why);
	listing->order = calloc((size_t)locations + 1, sizeof(uint32_t));
	listing->ranks = calloc((size_t)locations + 1, sizeof(uint32_t));
	listing->links = calloc((size_t)links + 1, sizeof(uint32_t));
	if (!listing->texts || !listing->order || !listing->ranks || !listing->links) {
		listing_deinit(listing);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "sort the locations");
	}
	for (uint32_t i = 0; i < locations; i++)
		listing->order[i] = i;
	for (uint32_t i = 0; i < links; i++)
		listing->links[i] = i;
	qsort_r(listing->order, locations, sizeof(uint32_t), compare_texts, listing);
	for (uint32_t i = 0; i < locations; i++)
		listing->ranks[listing->order[i]] = i;
	qsort_r(listing->links, links, sizeof(uint32_t), compare_links, listing);
	return 0;
}

/** Format a size: "1536B", or "1.50KiB" if human-readable. */
static const char *size_text(const struct format_report_options *options, uint64_t bytes,
			     char text[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	uint64_t unit = 1;
	size_t power = 0;

	while (options->human_readable && power < 3 && bytes / unit >= 1024) {
		unit *= 1024;
		power++;
	}
	if (bytes % unit == 0)
		snprintf(text, 32, "%" PRIu64 "%s", bytes / unit, units[power]);
	else
		snprintf(text, 32, "%.2f%s", (double)bytes / (double)unit, units[power]);
	return text;
}

/* ---- Events ----------------------------------------------------------------------------- */

static int compare_events(const void *left, const void *right, void *context)
{
	const struct listing *listing = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint64_t a_events = listing->heap->locations[a].counts[listing->kind].events;
	uint64_t b_events = listing->heap->locations[b].counts[listing->kind].events;

	if (a_events != b_events)
		return a_events > b_events ? -1 : 1;
	return listing->ranks[a] < listing->ranks[b] ? -1 : 1;
}

static bool is_link_before(const struct listing *listing, uint32_t index, uint32_t location)
{
	struct heap_count count;
	const struct heap_link *link = heap_link(listing->heap, index, &count);

	return link->kind < listing->kind ||
	       (link->kind == listing->kind && link->location < location);
}

/** @return The first link of a location, or the end if it has none; links are sorted. */
static uint32_t first_link(const struct listing *listing, uint32_t location)
{
	return (uint32_t)ARRAY_SEARCH(heap_link_count(listing->heap), i,
				      is_link_before(listing, listing->links[i], location));
}

static void print_overrides(const struct listing *listing, uint32_t location, FILE *file)
{
	uint32_t first = first_link(listing, location), i;
	struct heap_count count;

	for (i = first; i < heap_link_count(listing->heap); i++) {
		const struct heap_link *link = heap_link(listing->heap, listing->links[i], &count);

		if (link->kind != listing->kind || link->location != location)
			break;
		fprintf(file, "%s\t\t%s\n", i == first ? "\tOverrides:\n" : "",
			listing->texts[link->old]);
	}
	if (i > first)
		putc('\n', file);
}

static void print_events(struct listing *listing, enum heap_kind kind, FILE *file)
{
	static const char *const titles[HEAP_KIND_COUNT] = {
		"ALLOCATIONS",
		"REALLOCATIONS",
		"DEALLOCATIONS",
	};
	uint32_t count = heap_location_count(listing->heap);
	char allocated[32], freed[32];

	listing->kind = kind;
	qsort_r(listing->order, count, sizeof(uint32_t), compare_events, listing);
	fprintf(file, "%s\n", titles[kind]);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t location = listing->order[i];
		const struct heap_count *sum = &listing->heap->locations[location].counts[kind];

		if (sum->events == 0)
			break;
		fprintf(file, "%s: %" PRIu64 " events\t+%s\t-%s\n", listing->texts[location],
			sum->events, size_text(listing->options, sum->allocated_bytes, allocated),
			size_text(listing->options, sum->freed_bytes, freed));
		print_overrides(listing, location, file);
	}
	putc('\n', file);
}

/* ---- Heap ------------------------------------------------------------------------------- */

/** The balance of a location, as Tarantool's parser computes it: a reallocation counts for the
 * location that allocated the old block, with new and old size. */
struct balance {
	uint64_t allocated_bytes, freed_bytes, allocations, frees;
	uint32_t rank, location;
};

static uint64_t held(const struct balance *balance)
{
	return balance->allocated_bytes > balance->freed_bytes
		       ? balance->allocated_bytes - balance->freed_bytes
		       : 0;
}

static int compare_balances(const void *left, const void *right)
{
	const struct balance *a = left, *b = right;

	if (held(a) != held(b))
		return held(a) > held(b) ? -1 : 1;
	return a->rank < b->rank ? -1 : 1;
}

static void fill_balances(const struct listing *listing, struct balance *balances)
{
	const struct heap *heap = listing->heap;
	struct heap_count count;

	for (uint32_t i = 0; i < heap_location_count(heap); i++) {
		const struct heap_count *allocs = &heap->locations[i].counts[HEAP_ALLOC];

		balances[i].location = i;
		balances[i].rank = listing->ranks[i];
		balances[i].allocated_bytes = allocs->allocated_bytes;
		balances[i].allocations = allocs->allocated_bytes ? allocs->events : 0;
	}
	for (uint32_t i = 0; i < heap_link_count(heap); i++) {
		struct balance *balance = &balances[heap_link(heap, i, &count)->old];

		balance->allocated_bytes += count.allocated_bytes;
		balance->allocations += count.allocated_bytes ? count.events : 0;
		balance->freed_bytes += count.freed_bytes;
		balance->frees += count.freed_bytes ? count.events : 0;
	}
}

static int print_heap(const struct listing *listing, FILE *file, struct failure *why)
{
	uint32_t count = heap_location_count(listing->heap);
	struct balance *balances = calloc((size_t)count + 1, sizeof(*balances));
	char size[32];

	if (!balances)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "sum up the heap");
	fill_balances(listing, balances);
	qsort(balances, count, sizeof(*balances), compare_balances);
	fputs("HEAP SUMMARY:\n", file);
	for (uint32_t i = 0; i < count && held(&balances[i]); i++)
		fprintf(file, "%s holds %s: %" PRIu64 " allocs, %" PRIu64 " frees\n",
			listing->texts[balances[i].location],
			size_text(listing->options, held(&balances[i]), size),
			balances[i].allocations, balances[i].frees);
	putc('\n', file);
	free(balances);
	return 0;
}

/* ---- Aliases ---------------------------------------------------------------------------- */

/** Print the lines of a chunk's source. Empty lines are counted but omitted, as in Tarantool's
 * parser. */
static int print_source(const char *source, size_t len, FILE *file, struct failure *why)
{
	const char *end = source + len;
	struct format_text shown = { 0 };
	unsigned number = 0;
	int result = 0;

	while (source < end && result == 0) {
		const char *newline = memchr(source, '\n', (size_t)(end - source));
		size_t line_len = (size_t)((newline ? newline : end) - source);
		const char *text;

		number++;
		format_text_clear(&shown);
		format_text_add_shown(&shown, source, line_len);
		if (line_len > 0) {
			result = format_text_take(&shown, &text, why);
			if (result == 0)
				fprintf(file, "%u\t| %s\n", number, text);
		}
		source += line_len + 1;
	}
	format_text_deinit(&shown);
	return result;
}

static int print_aliases(const struct heap *heap, FILE *file, struct failure *why)
{
	uint32_t count = intern_count(heap->aliases.chunks);
	size_t len;

	if (count > 0)
		fputs("ALIASES:\n", file);
	for (uint32_t i = 0; i < count; i++) {
		const char *source = intern_get(heap->aliases.chunks, i, &len);

		fprintf(file, "function_alias_%" PRIu32 ":\n", i + 1);
		if (print_source(source, len, file, why))
			return -1;
		fputs("\n\n", file);
	}
	return 0;
}

int report_memory_print(const struct heap *heap, const struct format_report_options *options,
			FILE *file, struct failure *why)
{
	struct listing listing;
	int result;

	if (listing_init(&listing, heap, options, why))
		return -1;
	for (int i = 0; i < HEAP_KIND_COUNT && !options->leak_only; i++)
		print_events(&listing, (enum heap_kind)i, file);
	result = print_heap(&listing, file, why);
	listing_deinit(&listing);
	return result ? -1 : print_aliases(heap, file, why);
}

/* ---- Leaks ------------------------------------------------------------------------------ */

static int compare_held(const void *left, const void *right, void *context)
{
	const struct listing *listing = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct heap_location *locations = listing->heap->locations;

	if (locations[a].held_bytes != locations[b].held_bytes)
		return locations[a].held_bytes > locations[b].held_bytes ? -1 : 1;
	if (locations[a].held_blocks != locations[b].held_blocks)
		return locations[a].held_blocks > locations[b].held_blocks ? -1 : 1;
	return listing->ranks[a] < listing->ranks[b] ? -1 : 1;
}

static void print_leaks(const struct listing *listing, FILE *file)
{
	const struct heap *heap = listing->heap;
	struct heap_location sum = heap_sum(heap);
	char size[32];

	fprintf(file, "%s in %" PRIu64 " blocks are still allocated\n\n",
		size_text(listing->options, sum.held_bytes, size), sum.held_blocks);
	fprintf(file, "%12s %6s %9s  %s\n", "BYTES", "%", "BLOCKS", "LOCATION");
	for (uint32_t i = 0; i < heap_location_count(heap); i++) {
		const struct heap_location *location = &heap->locations[listing->order[i]];

		if (location->held_blocks == 0)
			continue;
		if (listing->options->human_readable)
			fprintf(file, "%12s",
				size_text(listing->options, location->held_bytes, size));
		else
			fprintf(file, "%12" PRIu64, location->held_bytes);
		fprintf(file, " %6.2f %9" PRIu64 "  %s\n",
			sum.held_bytes ? 100 * (double)location->held_bytes / (double)sum.held_bytes
				       : 0,
			location->held_blocks, listing->texts[listing->order[i]]);
	}
}

static int leaks_print(const struct format_profile *profile,
		       const struct format_report_options *options, FILE *file, struct failure *why)
{
	struct listing listing;

	if (profile->kind != FORMAT_STREAM_MEMPROF)
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0,
				   "list what is allocated: not a memory profile");
	if (listing_init(&listing, &profile->heap, options, why))
		return -1;
	qsort_r(listing.order, heap_location_count(&profile->heap), sizeof(uint32_t), compare_held,
		&listing);
	print_leaks(&listing, file);
	listing_deinit(&listing);
	if (intern_count(profile->heap.aliases.chunks) == 0)
		return 0;
	putc('\n', file);
	return print_aliases(&profile->heap, file, why);
}

const struct format_report_ops format_report_leaks = {
	.name = "leaks",
	.description = "memory that was not freed, by location, from a memory profile",
	.takes_memory = true,
	.print = leaks_print,
};
