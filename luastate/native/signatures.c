/* SPDX-License-Identifier: MIT */
/* Which functions of known builds have the same instructions, operands apart?
 *
 * A compiler makes mostly the same instructions of one function in all versions of LuaJIT, with
 * other offsets and registers. The signatures are those of functions that are alone with theirs in
 * their own build, and of which no other build gives the signature to another function.
 */
#include <stdlib.h>

#include "attach/array.h"
#include "luastate/native/native.h"

/* signature_names, and signatures sorted by hash; each has the index of its name. */
#include "signatures.inc"

static const char *find_name(uint64_t hash)
{
	size_t count = sizeof(signatures) / sizeof(signatures[0]) - 1; /* the last one ends it */
	size_t at = ARRAY_SEARCH(count, i, signatures[i].hash < hash);

	return at < count && signatures[at].hash == hash ? signature_names[signatures[at].name]
							 : NULL;
}

/** A function of LuaJIT and its signature. */
struct own {
	uint64_t signature; /* first, for array_by_first_u64() */
	uint32_t function;
};

void native_take_signatures(struct native *native)
{
	struct own *own = calloc(native->count + 1, sizeof(*own));
	size_t count = 0;

	for (uint32_t i = 0; own && i < native->count; i++)
		if (native->functions[i].is_vm && native->functions[i].signature &&
		    native->functions[i].parent == NATIVE_NONE)
			own[count++] = (struct own){ native->functions[i].signature, i };
	if (count)
		qsort(own, count, sizeof(*own), array_by_first_u64);
	for (size_t i = 0; i < count; i++)
		if ((i == 0 || own[i - 1].signature != own[i].signature) &&
		    (i + 1 == count || own[i + 1].signature != own[i].signature))
			native_claim(native, own[i].function, find_name(own[i].signature),
				     LUASTATE_NATIVE_BY_SIGNATURE);
	free(own);
}
