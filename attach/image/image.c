/* SPDX-License-Identifier: MIT */
/* How does an image keep what one stop read, as ranges over one arena? */
#include "attach/bpf_program.h"
#include "attach/image/image_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "attach/hash.h"

struct attach_image *attach_image_create(void)
{
	struct attach_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->reader.read = NULL; /* set on first use, because it needs the final address */
	return image;
}

static void drop_notes(struct attach_image *image)
{
	for (size_t i = 0; i < image->note_count; i++)
		free(image->notes[i].bytes);
	image->note_count = 0;
}

void attach_image_destroy(struct attach_image *image)
{
	if (!image)
		return;
	drop_notes(image);
	free(image->ranges);
	free(image->locations);
	free(image->arena);
	free(image);
}

void attach_image_clear(struct attach_image *image)
{
	drop_notes(image);
	image->range_count = 0;
	image->location_count = 0;
	image->arena_len = 0;
	image->last_hit = 0;
	image->planned = 0;
	memset(image->filter, 0, sizeof(image->filter));
}

struct attach_registers *attach_image_registers(struct attach_image *image)
{
	return &image->registers;
}

enum {
	FILTER_PAGE_BYTES = 4096,
	/* A range of more pages sets all bits. */
	FILTER_PAGES_MAX = 512,
};

static size_t filter_bit(uint64_t page)
{
	return (size_t)(hash_spread(page) >> 40) % IMAGE_FILTER_BITS;
}

static void add_to_filter(struct attach_image *image, uint64_t start, size_t len)
{
	uint64_t first = start / FILTER_PAGE_BYTES, last = (start + len - 1) / FILTER_PAGE_BYTES;

	if (last - first >= FILTER_PAGES_MAX) {
		memset(image->filter, 0xff, sizeof(image->filter));
		return;
	}
	for (uint64_t page = first; page <= last; page++)
		image->filter[filter_bit(page) / 64] |= (uint64_t)1 << filter_bit(page) % 64;
}

/* Whether a range may touch the address's page. Most reads behind an image touch none of its
 * ranges. */
static bool may_hold(const struct attach_image *image, uint64_t address)
{
	size_t bit = filter_bit(address / FILTER_PAGE_BYTES);

	return image->filter[bit / 64] >> bit % 64 & 1;
}

static bool reserve_bytes(struct attach_image *image, size_t len)
{
	size_t size = (image->arena_len + len) * 2 + 65536;
	uint8_t *arena;

	if (image->arena_len + len <= image->arena_size)
		return true;
	arena = realloc(image->arena, size);
	if (!arena)
		return false;
	image->arena = arena;
	image->arena_size = size;
	return true;
}

bool image_make_room(struct attach_image *image, size_t len, size_t *ret_offset)
{
	if (len > ATTACH_IMAGE_MAX_BYTES - image->arena_len || !reserve_bytes(image, len))
		return false;
	*ret_offset = image->arena_len;
	image->arena_len += len;
	return true;
}

/* Make room for @len more arena bytes and one more range. */
static int reserve(struct attach_image *image, size_t len, struct failure *why)
{
	if (len > ATTACH_IMAGE_MAX_BYTES - image->arena_len ||
	    image->range_count >= ATTACH_IMAGE_MAX_RANGES)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "keep one more range in an image");
	if (!reserve_bytes(image, len))
		return failure_set_errno(why, ENOMEM, 0, "grow an image");
	if (!ARRAY_RESERVE(image->ranges, image->range_size, image->range_count + 1))
		return failure_set_errno(why, ENOMEM, 0, "grow an image");
	return 0;
}

/* Earlier requests to compare with. */
enum { WANTED_COMPARED = 12 };

/* Planners often ask for the same range again a few requests later. */
static bool is_wanted(const struct attach_image *image, uint64_t start, size_t len)
{
	size_t first =
		image->range_count > WANTED_COMPARED ? image->range_count - WANTED_COMPARED : 0;

	for (size_t i = first < image->planned ? image->planned : first; i < image->range_count;
	     i++)
		if (image->ranges[i].start == start && image->ranges[i].wanted == len)
			return true;
	return false;
}

static int add_range(struct attach_image *image, struct remote_addr address, size_t len,
		     struct failure *why)
{
	struct image_range *range;

	if (address.value + len < address.value)
		return failure_set(why, FAILURE_LIMIT, 0, 0, address.value,
				   "plan a read across the end of memory");
	if (reserve(image, len, why) != 0)
		return -1;
	range = &image->ranges[image->range_count++];
	*range = (struct image_range){
		.start = address.value, .len = 0, .wanted = len, .offset = image->arena_len
	};
	image->arena_len += len;
	add_to_filter(image, address.value, len);
	return 0;
}

int attach_image_want(struct attach_image *image, struct remote_addr address, size_t len,
		      struct failure *why)
{
	if (len == 0 || is_wanted(image, address.value, len))
		return 0;
	return add_range(image, address, len, why);
}

int attach_image_add(struct attach_image *image, struct remote_addr address, const void *bytes,
		     size_t len, struct failure *why)
{
	struct image_range *range;

	if (len == 0)
		return 0;
	if (add_range(image, address, len, why) != 0)
		return -1;
	range = &image->ranges[image->range_count - 1];
	memcpy(image->arena + range->offset, bytes, len);
	range->len = len;
	image->planned = image->range_count;
	return 0;
}

int image_append(struct attach_image *image, uint64_t start, const void *bytes, size_t len,
		 struct failure *why)
{
	struct image_range *last =
		image->range_count ? &image->ranges[image->range_count - 1] : NULL;
	size_t offset;

	if (!last || len == 0 || last->len != last->wanted || last->start + last->len != start ||
	    last->offset + last->len != image->arena_len)
		return attach_image_add(image, remote_addr_make(start), bytes, len, why);
	if (!image_make_room(image, len, &offset))
		return failure_set(why, FAILURE_LIMIT, 0, 0, start, "keep more in an image");
	memcpy(image->arena + offset, bytes, len);
	if (image->location_count == image->range_count) /* its end in `locations` is old */
		image->location_count = 0;
	last->len += len;
	last->wanted += len;
	add_to_filter(image, start, len);
	return 0;
}

static int compare_locations(const void *a, const void *b)
{
	const struct image_location *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->index < right->index ? -1 : left->index > right->index;
}

void attach_image_order(struct attach_image *image)
{
	size_t count = image->range_count;
	struct image_location *locations = image->locations;

	if (count - image->location_count <= IMAGE_UNORDERED_MAX)
		return;
	if (image->location_size < count) {
		locations = realloc(locations, image->range_size * sizeof(*locations));
		if (!locations) /* lookups then search all ranges, slowly */
			return;
		image->locations = locations;
		image->location_size = image->range_size;
	}
	for (size_t i = 0; i < count; i++)
		locations[i] = (struct image_location){ .start = image->ranges[i].start,
							.last = image->ranges[i].start +
								(image->ranges[i].wanted - 1),
							.index = (uint32_t)i };
	qsort(locations, count, sizeof(*locations), compare_locations);
	for (size_t i = 1; i < count; i++)
		if (locations[i].last < locations[i - 1].last)
			locations[i].last = locations[i - 1].last;
	image->location_count = count;
}

/*
 * Find the range with the address that was added first, among the sorted ones.
 * @return its index, or range_count.
 */
static size_t find_ordered(const struct attach_image *image, uint64_t address)
{
	size_t at = ARRAY_SEARCH(image->location_count, i, image->locations[i].start <= address);
	size_t found = image->range_count;

	while (at-- > 0 && image->locations[at].last >= address) {
		size_t index = image->locations[at].index;

		if (index < found &&
		    address - image->ranges[index].start < image->ranges[index].len)
			found = index;
	}
	return found;
}

static size_t hit_of(uint64_t address)
{
	return (size_t)(address >> 6 ^ address >> 13) % IMAGE_HITS;
}

/* Updates a cache; the image's content is unchanged. */
static const struct image_range *note_hit(const struct attach_image *image, uint64_t address,
					  size_t index)
{
	struct attach_image *noted = (struct attach_image *)(uintptr_t)image;

	noted->last_hit = index;
	noted->hits[hit_of(address)] = (uint32_t)index;
	return &image->ranges[index];
}

static const struct image_range *find_range(const struct attach_image *image, uint64_t address)
{
	const struct image_range *range;
	size_t hit;

	/* Readers mostly follow the order in which the planner asked. */
	for (size_t i = image->last_hit; i < image->last_hit + 2 && i < image->range_count; i++) {
		range = &image->ranges[i];
		if (address - range->start < range->len)
			return note_hit(image, address, i);
	}
	/* Successive images of a thread are similar. */
	hit = image->hits[hit_of(address)];
	if (hit < image->range_count && address - image->ranges[hit].start < image->ranges[hit].len)
		return note_hit(image, address, hit);
	if (!may_hold(image, address))
		return NULL;
	hit = find_ordered(image, address);
	if (hit < image->range_count)
		return note_hit(image, address, hit);
	for (size_t i = image->location_count; i < image->range_count; i++) {
		range = &image->ranges[i];
		if (address - range->start < range->len)
			return note_hit(image, address, i);
	}
	return NULL;
}

bool attach_image_add_ranges(struct attach_image *image, const void *bytes, size_t len)
{
	struct failure why;

	for (size_t at = 0; len - at >= sizeof(struct attach_sampler_range);) {
		const struct attach_sampler_range *range =
			(const void *)((const uint8_t *)bytes + at);
		size_t room = len - at - sizeof(*range);

		if (range->len > room ||
		    image_append(image, range->start, range + 1, range->len, &why) != 0)
			return false;
		at += sizeof(*range) + range->len;
		at += room - range->len < 8 ? room - range->len : -(size_t)range->len % 8;
	}
	return true;
}

const void *attach_image_peek(const struct attach_image *image, struct remote_addr address,
			      size_t len, size_t *ret_len)
{
	const struct image_range *range = find_range(image, address.value);
	uint64_t skip, rest;

	if (!range) {
		*ret_len = 0;
		return NULL;
	}
	skip = address.value - range->start;
	rest = range->len - skip;
	*ret_len = rest < len ? (size_t)rest : len;
	return image->arena + range->offset + skip;
}

static int image_read(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		      struct failure *why)
{
	uint8_t *to = ret_bytes;

	while (len > 0) {
		size_t part;
		const void *from = attach_image_peek(self, address, len, &part);

		if (!from)
			return failure_set(why, FAILURE_FAULT, 0, 0, address.value,
					   "read the image");
		memcpy(to, from, part);
		to += part;
		len -= part;
		address.value += part;
	}
	return 0;
}

const struct attach_reader *attach_image_reader(struct attach_image *image)
{
	image->reader.read = image_read;
	image->reader.self = image;
	return &image->reader;
}

static int behind_read(void *self, struct remote_addr address, void *ret_bytes, size_t len,
		       struct failure *why)
{
	struct attach_image *image = self;
	struct failure missing; /* discarded: the reader behind may succeed */

	if (!image->behind)
		return image_read(image, address, ret_bytes, len, why);
	if (image_read(image, address, ret_bytes, len, &missing) == 0)
		return 0;
	if (attach_read(image->behind, address, ret_bytes, len, why) != 0)
		return -1;
	if (image->keep) {
		struct failure full; /* discarded: the next read then fetches the bytes again */

		attach_image_add(image, address, ret_bytes, len, &full);
	}
	return 0;
}

const struct attach_reader *attach_image_reader_behind(struct attach_image *image,
						       const struct attach_reader *behind,
						       bool keep)
{
	image->behind = behind;
	image->keep = keep;
	image->reader_behind.read = behind_read;
	image->reader_behind.self = image;
	return &image->reader_behind;
}

bool attach_image_next_missing(const struct attach_image *image, size_t *at, uint64_t *ret_start,
			       uint64_t *ret_size)
{
	for (; *at < image->range_count; ++*at) {
		const struct image_range *range = &image->ranges[*at];

		if (range->len == range->wanted)
			continue;
		*ret_start = range->start;
		*ret_size = range->wanted;
		++*at;
		return true;
	}
	return false;
}

int attach_image_set_note(struct attach_image *image, const char *name, const void *bytes,
			  size_t len, struct failure *why)
{
	struct image_note *note;
	void *copy;

	if (image->note_count == IMAGE_NOTES || strlen(name) >= sizeof(note->name) ||
	    len > ATTACH_IMAGE_MAX_BYTES)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "keep one more note in an image");
	copy = malloc(len ? len : 1);
	if (!copy)
		return failure_set_errno(why, ENOMEM, 0, "keep a note in an image");
	if (len)
		memcpy(copy, bytes, len);
	note = &image->notes[image->note_count++];
	memset(note, 0, sizeof(*note));
	memcpy(note->name, name, strlen(name));
	note->bytes = copy;
	note->len = len;
	return 0;
}

const void *attach_image_note(const struct attach_image *image, const char *name, size_t *ret_len)
{
	for (size_t i = 0; i < image->note_count; i++) {
		if (strcmp(image->notes[i].name, name) == 0) {
			*ret_len = image->notes[i].len;
			return image->notes[i].bytes;
		}
	}
	*ret_len = 0;
	return NULL;
}

int attach_read_string(const struct attach_reader *reader, struct remote_addr address,
		       char *ret_text, size_t size, struct failure *why)
{
	size_t done = 0;

	/* Read pieces that never cross a 64-byte line, because the byte after the NUL may be
	 * unmapped. */
	while (done + 1 < size) {
		size_t part = 64 - ((address.value + done) & 63);
		char *nul;

		if (part > size - 1 - done)
			part = size - 1 - done;
		if (attach_read(reader, remote_addr_add(address, (int64_t)done), ret_text + done,
				part, why) != 0)
			return -1;
		nul = memchr(ret_text + done, '\0', part);
		if (nul)
			return 0;
		done += part;
	}
	ret_text[done] = '\0';
	return 0;
}
