/* SPDX-License-Identifier: MIT */
/* How are saved images decoded with the code of a recording? */
#include "daemon/replay.h"

#include "daemon/decode/function_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_MAX = 1 << 20 };

struct daemon_replay {
	struct daemon_target *target;
	struct format_functions *functions;
	char *maps; /* text of the last image's maps */
	size_t maps_len;
	struct daemon_image_origin origin;
};

static int on_function(void *context, const struct format_function *function, uint32_t *ret_id,
		       struct failure *why)
{
	struct daemon_replay *replay = context;

	return format_functions_add(replay->functions, function, ret_id, why);
}

int daemon_replay_create(struct daemon_replay **ret_replay, struct failure *why)
{
	struct daemon_replay *replay = calloc(1, sizeof(*replay));
	const struct target_listener listener = { .function = on_function, .context = replay };

	if (!replay)
		return failure_set_errno(why, ENOMEM, 0, "replay images");
	replay->functions = format_functions_create();
	if (!replay->functions || target_create(NULL, &listener, &replay->target, why) != 0) {
		daemon_replay_destroy(replay);
		return failure_set_errno(why, ENOMEM, 0, "replay images");
	}
	*ret_replay = replay;
	return 0;
}

void daemon_replay_destroy(struct daemon_replay *replay)
{
	if (!replay)
		return;
	target_destroy(replay->target);
	format_functions_destroy(replay->functions);
	free(replay->maps);
	free(replay);
}

const struct format_functions *daemon_replay_functions(const struct daemon_replay *replay)
{
	return replay->functions;
}

static int keep_maps(struct daemon_replay *replay, const char *maps, size_t len,
		     struct failure *why)
{
	char *copy = malloc(len ? len : 1);

	if (!copy)
		return failure_set_errno(why, ENOMEM, 0, "replay images");
	memcpy(copy, maps, len);
	free(replay->maps);
	replay->maps = copy;
	replay->maps_len = len;
	return 0;
}

static int use_space(struct daemon_target *target, const char *maps, size_t len,
		     struct failure *why)
{
	symbols_unwinder_destroy(target->unwinder);
	symbols_space_destroy(target->space);
	target->unwinder = NULL;
	target->space = NULL;
	target_native_free(target); /* names belong to the old space */
	if (symbols_space_create_recorded(maps, len, &target->space, why) != 0)
		return -1;
	return symbols_unwinder_create(target->space, &target->unwinder, why);
}

/* Images of one program share knowledge of its functions, as samples of a recording do. */
static int use_maps(struct daemon_replay *replay, struct attach_image *image, struct failure *why)
{
	struct daemon_image_origin origin = { 0 };
	size_t len, origin_len;
	const char *maps = attach_image_note(image, "maps", &len);
	const void *note = attach_image_note(image, "origin", &origin_len);
	bool same;

	if (!maps || !note || origin_len != sizeof(origin))
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "find the maps in an image");
	memcpy(&origin, note, sizeof(origin));
	if (replay->target->space)
		symbols_space_set_memory(replay->target->space, attach_image_reader(image));
	same = replay->maps && memcmp(&origin, &replay->origin, sizeof(origin)) == 0;
	if (same && len == replay->maps_len && memcmp(maps, replay->maps, len) == 0)
		return 0;
	/* If an image fails from here on, the next one must not trust its data. */
	free(replay->maps);
	replay->maps = NULL;
	if (use_space(replay->target, maps, len, why) != 0)
		return -1;
	symbols_space_set_memory(replay->target->space, attach_image_reader(image));
	if (!same && target_find_interpreters(replay->target, why) != 0)
		return -1;
	replay->origin = origin;
	return keep_maps(replay, maps, len, why);
}

/* Ticks that the image's sample represents; one if the image does not say. */
static uint32_t weight_of(const struct attach_image *image)
{
	size_t len;
	const void *note = attach_image_note(image, "weight", &len);
	uint32_t weight = 1;

	if (note && len == sizeof(weight))
		memcpy(&weight, note, sizeof(weight));
	return weight > 0 && weight <= WEIGHT_MAX ? weight : 1;
}

int daemon_replay_image(struct daemon_replay *replay, struct attach_image *image,
			struct format_sample *ret_sample, enum daemon_outcome *ret_outcome,
			struct failure *why)
{
	const struct attach_reader *reader = attach_image_reader(image);
	const struct luastate_memory memory = { .stopped = reader, .any = reader, .is_kept = true };
	struct failure ignored; /* without this VM, the walk finds the VM by its VM frames */

	if (use_maps(replay, image, why) != 0)
		return -1;
	luastate_vm_of(replay->target->lua, reader, replay->origin.main_thread, &ignored);
	*ret_sample = (struct format_sample){ .weight = weight_of(image) };
	return target_decode(replay->target, image, &memory, ret_sample, ret_outcome, why);
}
