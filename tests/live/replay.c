/* SPDX-License-Identifier: MIT */
/*
 * Decode saved images and write what they show as a stream.
 * Usage: replay STREAM IMAGE...
 */
#include "tests/live/stream.h"

#include <stdio.h>
#include <string.h>

#include "daemon/replay.h"
#include "daemon/stats.h"

int main(int argc, char **argv)
{
	struct daemon_replay *replay;
	struct failure why = { 0 };
	struct stream stream;

	if (argc < 3 || daemon_replay_create(&replay, &why) != 0)
		stream_die("replay", &why);
	stream_open(&stream, argv[1], daemon_replay_functions(replay));
	for (int i = 2; i < argc; i++) {
		struct attach_image *image;
		struct format_sample sample;
		enum daemon_outcome outcome;

		if (attach_image_load_file(argv[i], &image, &why) != 0 ||
		    daemon_replay_image(replay, image, &sample, &outcome, &why) != 0)
			stream_die(argv[i], &why);
		if (outcome != DAEMON_NO_VM)
			stream_put(&stream, &sample);
		attach_image_destroy(image);
	}
	stream_close(&stream);
	daemon_replay_destroy(replay);
	return 0;
}
