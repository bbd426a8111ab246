/* SPDX-License-Identifier: MIT */
/* Decoding of saved images: the code of a recording over recorded memory. */
#include "daemon/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct daemon_replay {
	struct daemon_target *target;
	struct format_functions *functions;
};

static int on_function(void *context, uint32_t id, const struct format_function *function,
		       struct failure *why)
{
	struct daemon_replay *replay = context;
	uint32_t given;

	(void)id; /* both count from 0 */
	return format_functions_add(replay->functions, function, &given, why);
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
	free(replay);
}

const struct format_functions *daemon_replay_functions(const struct daemon_replay *replay)
{
	return replay->functions;
}

/* The maps of the image; those of the next image of the same target differ seldom. */
static int use_maps(struct daemon_replay *replay, struct attach_image *image, struct failure *why)
{
	struct daemon_target *target = replay->target;
	size_t len;
	const char *maps = attach_image_note(image, "maps", &len);

	if (!maps)
		return failure_set(why, FAILURE_INVALID, 0, 0, 0, "find the maps in an image");
	symbols_unwinder_destroy(target->unwinder);
	symbols_space_destroy(target->space);
	target->unwinder = NULL;
	target->space = NULL;
	if (symbols_space_create_recorded(maps, len, &target->space, why) != 0 ||
	    symbols_unwinder_create(target->space, &target->unwinder, why) != 0)
		return -1;
	return target_find_interpreters(target, why);
}

int daemon_replay_image(struct daemon_replay *replay, struct attach_image *image,
			struct format_sample *ret_sample, enum daemon_outcome *ret_outcome,
			struct failure *why)
{
	const struct attach_reader *reader = attach_image_reader(image);
	uint64_t main_thread = 0;
	const void *note;
	size_t len;

	if (use_maps(replay, image, why) != 0)
		return -1;
	note = attach_image_note(image, "main_thread", &len);
	if (note && len == sizeof(main_thread)) {
		struct failure ignored; /* the walk finds it by the C frames */

		memcpy(&main_thread, note, len);
		luastate_vm_of(replay->target->lua, reader, main_thread, &ignored);
	}
	*ret_sample = (struct format_sample){ .weight = 1 };
	return target_decode(replay->target, image, reader, ret_sample, ret_outcome, why);
}
