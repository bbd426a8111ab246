/* SPDX-License-Identifier: MIT */
/* How do the kernel's records become images? Parts of a copy are joined first. */
#include "attach/bpf/sampler_internal.h"
#include "attach/clock.h"
#include "attach/failure.h"
#include "attach/image/image_internal.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>

_Static_assert((size_t)ATTACH_SAMPLER_PARTS *(sizeof(struct attach_sampler_record) -
					      offsetof(struct attach_sampler_record, bytes)) /
			       (sizeof(struct attach_sampler_range) + 8) <=
		       ATTACH_IMAGE_MAX_RANGES,
	       "an image takes all of a copy");

/* Fill an image from a record. The record is untrusted: the BPF program followed the thread's
 * memory. @return false if the registers are invalid; *is_truncated is set if memory runs out. */
static bool fill_image(struct attach_image *image, const struct attach_sampler_record *record,
		       const uint8_t *bytes, size_t len, bool *is_truncated)
{
	uint8_t block[sizeof(struct user_regs_struct)] = { 0 };
	struct failure why;

	_Static_assert(sizeof(block) >= sizeof(record->registers), "registers come first");
	attach_image_clear(image);
	memcpy(block, record->registers, sizeof(record->registers));
	if (attach_decode_registers(block, sizeof(block), attach_image_registers(image), &why) != 0)
		return false;
	*is_truncated |= !attach_image_add_ranges(image, bytes, len);
	attach_image_order(image);
	return true;
}

/* If memory runs out, the copy ends here: later parts are dropped too. */
static void add_part(struct sampler_parts *parts, const uint8_t *bytes, size_t len)
{
	size_t size = (parts->len + len) * 2 + 8;
	uint8_t *larger;

	if (!parts->is_short && parts->len + len + 8 > parts->size) {
		larger = realloc(parts->bytes, size);
		parts->is_short = !larger;
		parts->bytes = larger ? larger : parts->bytes;
		parts->size = larger ? size : parts->size;
	}
	if (parts->is_short)
		return;
	memcpy(parts->bytes + parts->len, bytes, len);
	parts->len += (len + 7) & ~(size_t)7; /* ranges begin at multiples of 8 */
}

/* Add one part of a copy that has several. @return all parts after the last one; NULL before, or if
 * a part is missing, which the BPF program has counted as lost. */
static const struct sampler_parts *take_part(struct attach_sampler *sampler,
					     const struct attach_sampler_record *record, size_t len)
{
	struct sampler_parts *parts =
		record->processor < sampler->processors ? &sampler->parts[record->processor] : NULL;

	if (!parts)
		return NULL;
	if (record->part == 0) {
		parts->cookie = record->cookie;
		parts->time_ns = record->time_ns;
		parts->len = parts->next = 0;
		parts->is_short = false;
	} else if (parts->next != record->part || parts->cookie != record->cookie ||
		   parts->time_ns != record->time_ns) {
		return NULL;
	}
	add_part(parts, record->bytes, len);
	parts->next = record->has_more ? record->part + 1u : 0;
	return record->has_more ? NULL : parts;
}

int sampler_take_record(void *self, void *bytes, size_t len)
{
	const struct attach_sampler_record *record = bytes;
	const size_t head = offsetof(struct attach_sampler_record, bytes);
	const uint8_t *ranges = record->bytes;
	bool is_truncated = record->is_truncated != 0;
	const struct sampler_parts *parts;
	struct attach_sampler_timing timing;
	struct attach_sampler *sampler = self;
	struct sampler_slot *slot;
	uint32_t changed;

	sampler->drained_bytes += len;
	if (len < head)
		return 0;
	len -= head;
	if (record->part || record->has_more) {
		parts = take_part(sampler, record, len);
		if (!parts)
			return 0;
		ranges = parts->bytes;
		len = parts->len;
		is_truncated |= parts->is_short;
	}
	slot = sampler_slot_of(sampler, record->cookie);
	if (!slot)
		return 0;
	changed = sampler_change_period(sampler, slot,
					sampler_plan_at(sampler, (size_t)(slot - sampler->slots)));
	if (!fill_image(sampler->image, record, ranges, len, &is_truncated))
		return 0;
	timing = (struct attach_sampler_timing){ .time_ns = record->time_ns,
						 .took_ns = record->took_ns,
						 .lost = record->lost,
						 .changed = changed,
						 .is_truncated = is_truncated,
						 .is_late = record->is_late != 0 };
	if (!sampler->take(sampler->context, slot->context, &timing))
		return -ECANCELED;
	/* Stop at the drain's start time: the kernel may make records faster than we read them. */
	return record->time_ns < sampler->begin_ns ? 0 : -EAGAIN;
}

bool attach_sampler_drain(struct attach_sampler *sampler, struct attach_image *image,
			  attach_sampler_take *take, void *context)
{
	sampler->image = image;
	sampler->take = take;
	sampler->context = context;
	if (!sampler->ring) /* attach_sampler_begin() has not run */
		return true;
	sampler->begin_ns = clock_now_ns();
	sampler->drained_bytes = 0;
	sampler_watch_limit(sampler);
	return ring_buffer__consume(sampler->ring) != -ECANCELED;
}

double attach_sampler_fill(const struct attach_sampler *sampler)
{
	return (double)sampler->drained_bytes / (double)sampler->ring_bytes;
}
