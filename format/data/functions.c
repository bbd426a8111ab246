/* SPDX-License-Identifier: MIT */
/* How does a table of functions store copies of their texts? */
#include <stdlib.h>
#include <string.h>

#include "format/data/mappings.h"

/* Functions are in chunks that never move, so a pointer from format_functions_get() stays valid. */
#define CHUNK_FUNCTIONS 512

/** More functions than any program has; keeps a faulty source of ids from using all memory. */
#define FUNCTIONS_MAX (1u << 24)

struct format_functions {
	struct format_function **chunks;
	uint32_t count;
	struct format_mappings *mappings;
};

struct format_functions *format_functions_create(void)
{
	struct format_functions *functions = calloc(1, sizeof(*functions));

	if (functions)
		functions->mappings = mappings_create();
	if (functions && functions->mappings)
		return functions;
	free(functions);
	return NULL;
}

static struct format_function *slot(const struct format_functions *functions, uint32_t id)
{
	return &functions->chunks[id / CHUNK_FUNCTIONS][id % CHUNK_FUNCTIONS];
}

/* The table owns its strings, but the public type shows them as borrowed; hence the casts. */
static void free_strings(struct format_function *function)
{
	free((void *)(uintptr_t)function->name);
	free((void *)(uintptr_t)function->source);
	free((void *)(uintptr_t)function->file);
}

void format_functions_destroy(struct format_functions *functions)
{
	if (!functions)
		return;
	for (uint32_t id = 0; id < functions->count; id++)
		free_strings(slot(functions, id));
	for (uint32_t id = 0; id < functions->count; id += CHUNK_FUNCTIONS)
		free(functions->chunks[id / CHUNK_FUNCTIONS]);
	free(functions->chunks);
	mappings_destroy(functions->mappings);
	free(functions);
}

/** Ensure room for the function with the next id. */
static int grow(struct format_functions *functions)
{
	size_t chunk = functions->count / CHUNK_FUNCTIONS;
	struct format_function **chunks;

	if (functions->count % CHUNK_FUNCTIONS != 0)
		return 0;
	chunks = reallocarray(functions->chunks, chunk + 1, sizeof(*chunks));
	if (!chunks)
		return -1;
	functions->chunks = chunks;
	chunks[chunk] = calloc(CHUNK_FUNCTIONS, sizeof(**chunks));
	return chunks[chunk] ? 0 : -1;
}

static int copy_function(struct format_functions *functions, const struct format_function *from,
			 struct format_function *ret_copy, struct failure *why)
{
	struct format_function copy = *from;
	uint32_t mapping;

	if (from->mapping) {
		if (mappings_put(functions->mappings, from->mapping, &mapping, why))
			return -1;
		copy.mapping = mappings_get(functions->mappings, mapping);
	}
	copy.name = from->name ? strdup(from->name) : NULL;
	copy.source = from->source ? strdup(from->source) : NULL;
	copy.file = from->file ? strdup(from->file) : NULL;
	if ((from->name && !copy.name) || (from->source && !copy.source) ||
	    (from->file && !copy.file)) {
		free_strings(&copy);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "remember another function");
	}
	*ret_copy = copy;
	return 0;
}

int format_functions_add(struct format_functions *functions, const struct format_function *function,
			 uint32_t *ret_id, struct failure *why)
{
	struct format_function copy;
	uint32_t id = functions->count;

	if (id >= FUNCTIONS_MAX)
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "remember another function");
	if (copy_function(functions, function, &copy, why))
		return -1;
	if (grow(functions)) {
		free_strings(&copy);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "remember another function");
	}
	*slot(functions, id) = copy;
	functions->count++;
	*ret_id = id;
	return 0;
}

int format_functions_rename(struct format_functions *functions, uint32_t id, const char *name,
			    struct failure *why)
{
	struct format_function *function = slot(functions, id);
	char *copy;

	if (function->name && strcmp(function->name, name) == 0)
		return 0;
	copy = strdup(name);
	if (!copy)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "rename a function");
	free((void *)(uintptr_t)function->name);
	function->name = copy;
	return 0;
}

const struct format_function *format_functions_get(const struct format_functions *functions,
						   uint32_t id)
{
	return id < functions->count ? slot(functions, id) : NULL;
}

uint32_t format_functions_count(const struct format_functions *functions)
{
	return functions->count;
}
