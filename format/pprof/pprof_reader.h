/* SPDX-License-Identifier: MIT */
/* Private to format: what is the state of reading a pprof profile? */
#ifndef FORMAT_PPROF_PPROF_READER_H
#define FORMAT_PPROF_PPROF_READER_H

#include "format/data/label.h"
#include "format/pprof/pprof_fields.h"
#include "format/profile.h"
#include "format/profile/profile_internal.h"

/** Bounds: bytes of a decoded message; strings, locations and frames of locations; functions;
 * mappings. */
#define PPROF_ITEM_MAX_BYTES (1u << 20)
#define PPROF_TABLE_MAX	     (4u << 20)
#define PPROF_FUNCTIONS_MAX  (1u << 20)
#define PPROF_MAPPINGS_MAX   (1u << 14)

/** Field numbers of message Profile. */
enum pprof_field_number {
	PPROF_FIELD_SAMPLE_TYPE = 1,
	PPROF_FIELD_SAMPLE,
	PPROF_FIELD_MAPPING,
	PPROF_FIELD_LOCATION,
	PPROF_FIELD_FUNCTION,
	PPROF_FIELD_STRING,
	PPROF_FIELD_TIME = 9,
	PPROF_FIELD_DURATION = 10,
	PPROF_FIELD_PERIOD_TYPE = 11,
	PPROF_FIELD_PERIOD = 12,
	PPROF_FIELD_COMMENT = 13,
	PPROF_FIELD_DEFAULT_TYPE = 14,
};

/** A text in the file. */
struct pprof_string {
	const uint8_t *bytes;
	uint32_t len;
	uint32_t label; /* id of the profile's string; 0: not yet added */
};

/** A function in the file; texts by number. */
struct pprof_function {
	int64_t name, system_name, file, first_line;
	uint32_t known; /* Id + 1 in the profile, if the function is the same at all addresses. */
};

struct pprof_mapping {
	struct format_mapping value; /* path and build_id are owned */
	char *module;		     /* owned; NULL: no name */
	bool is_known;		     /* More than the module's name is known. */
};

/** Range in `frames` of a location's frames, root first. */
struct pprof_location {
	uint32_t first, count;
};

/** A sample of the file, as it was added to the profile. */
struct pprof_sample {
	uint32_t key; /* id in the profile's `keys` */
	uint64_t count;
};

struct pprof_reader {
	struct format_profile *profile;
	struct pprof_content content;
	struct pprof_string *strings;
	size_t string_count, string_size;
	struct format_addrmap function_ids, mapping_ids,
		location_ids; /* From ids in the file to indexes. */
	struct pprof_function *functions;
	size_t function_count, function_size;
	struct pprof_mapping *mappings;
	size_t mapping_count, mapping_size;
	struct pprof_location *locations;
	size_t location_count, location_size;
	struct profile_frame *frames;
	size_t frame_count, frame_size;
	struct profile_frame *chain;
	size_t chain_count, chain_size;
	bool keeps_order;
	struct pprof_sample *samples; /* If the order is kept. */
	size_t sample_count, sample_size;
	size_t value_index;
	uint64_t period; /* The divisor of a sample's value. */
	struct label label;
	struct format_text text, name, file;
};

int pprof_no_memory(struct failure *why);

/** Set FAILURE_INVALID with the field's offset. @return -1. */
int pprof_invalid(const struct pprof_field *field, const char *what, struct failure *why);

/** Whether a field is a message with number @p number. @return 1, 0 for another field, or -1. */
int pprof_is_message(const struct pprof_field *field, uint32_t number, struct failure *why);

/** Copy a text into @p ret_buffer, terminated and safe for a terminal; "" if there is none. */
int pprof_copy_text(const struct pprof_reader *reader, int64_t id, struct format_text *ret_buffer,
		    const char **ret_text, struct failure *why);

/* Readers of one field each, in the order of calls; each ignores other fields. */
int pprof_take_mapping(struct pprof_reader *reader, const struct pprof_field *field,
		       struct failure *why);
int pprof_take_function(struct pprof_reader *reader, const struct pprof_field *field,
			struct failure *why);
int pprof_take_location(struct pprof_reader *reader, const struct pprof_field *field,
			struct failure *why);

/** Add the order of the samples that were read. If the file has none, or one that does not fit its
 * samples, they are added as sums. */
int pprof_add_order(struct pprof_reader *reader, struct failure *why);

/** Release what the readers above allocated. */
void pprof_free_locations(struct pprof_reader *reader);

#endif
