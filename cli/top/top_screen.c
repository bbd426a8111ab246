/* SPDX-License-Identifier: MIT */
/* How does ljtop's loop combine new samples, keys and drawing? */
#include "cli/top/top_screen.h"
#include "attach/clock.h"

#include <stdlib.h>
#include <string.h>

#include "cli/top/draw/top_draw.h"
#include "cli/top/input/top_actions.h"
#include "cli/top/model/view_model.h"

enum {
	/* Ticks between two rounds of the loop, so that not each tick wakes us. */
	TICKS_PER_TURN = 40,
	TURN_MAX_MS = 200,
	/* How long the sampler's notices stay. */
	NOTICE_S = 10,
	/* Most receives in a row before keys are handled. */
	TAKES_MAX = 50,
	MS_PER_S = 1000,
	NS_PER_MS = 1000 * 1000,
};

struct top_screen *top_screen_create(const pid_t *pids, size_t count, const char **ret_why)
{
	struct top_screen *screen;

	*ret_why = top_terminal_refuse();
	if (*ret_why)
		return NULL;
	screen = calloc(1, sizeof(*screen));
	if (screen)
		screen->helper = source_helper_create(pids, count);
	if (screen && screen->helper)
		return screen;
	free(screen);
	*ret_why = "cannot start the process that opens source files";
	return NULL;
}

void top_screen_destroy(struct top_screen *screen)
{
	if (!screen)
		return;
	source_helper_destroy(screen->helper);
	top_table_deinit(&screen->table);
	top_folds_deinit(&screen->folds);
	view_model_forget_source(&screen->source);
	format_text_deinit(&screen->line);
	free(screen);
}

/* ---- Messages of the sampler ------------------------------------------------------------ */

static int take_samples(struct top_screen *screen, struct failure *why)
{
	int ret = 1;

	for (int i = 0; i < TAKES_MAX && ret == 1; i++)
		ret = daemon_live_take(screen->session, why);
	return ret < 0 ? -1 : 0;
}

/* The message about the end stays in the last line; notices disappear after a while. */
static void take_notes(struct top_screen *screen)
{
	const struct daemon_live_header *header = daemon_live_header(screen->session);

	if (screen->note_end_ns && clock_now_ns() > screen->note_end_ns) {
		screen->note[0] = '\0';
		screen->note_end_ns = 0;
	}
	if (header->notice_count != screen->notices) {
		screen->notices = header->notice_count;
		screen->note_end_ns = clock_now_ns() + (uint64_t)NOTICE_S * MS_PER_S * NS_PER_MS;
		top_actions_note(screen, "%s", header->notice);
	}
	if (!header->ended || (screen->note[0] && !screen->note_end_ns))
		return;
	screen->note_end_ns = 0;
	top_actions_note(screen, "%s; q quits",
			 header->text[0] ? header->text : "the sampling has ended");
}

/* Refresh all numbers. After the end, refresh once more, then keep them. */
static int move_on(struct top_screen *screen, struct failure *why)
{
	if (screen->is_over)
		return 0;
	screen->is_over = daemon_live_header(screen->session)->ended;
	if (daemon_live_refresh(screen->session, why) != 0)
		return -1;
	if (!screen->is_frozen)
		screen->is_dirty = true;
	return 0;
}

/* ---- The loop --------------------------------------------------------------------------- */

static int turn_ms(const struct top_screen *screen)
{
	unsigned rate_hz = daemon_live_header(screen->session)->rate_hz;
	unsigned ms = rate_hz ? TICKS_PER_TURN * MS_PER_S / rate_hz : TURN_MAX_MS;

	return ms < 1 ? 1 : ms > TURN_MAX_MS ? TURN_MAX_MS : (int)ms;
}

/* @return 1 if the user leaves. */
static int take_keys(struct top_screen *screen, bool *ret_any, struct failure *why)
{
	int key = top_terminal_key(turn_ms(screen)), ret = 0;

	for (; key != ERR && ret == 0; key = top_terminal_key(0)) {
		*ret_any = true;
		if (key == KEY_EXIT)
			return 1;
		ret = top_actions_run(screen, key, why);
	}
	return ret;
}

static int update(struct top_screen *screen, struct failure *why)
{
	if (screen->is_dirty &&
	    view_model_update(screen, top_draw_height(), top_draw_process_columns(), why) != 0)
		return -1;
	take_notes(screen);
	top_draw(screen);
	return 0;
}

static int loop(struct top_screen *screen, struct failure *why)
{
	uint64_t delay_ns = (uint64_t)screen->options.delay_ms * NS_PER_MS;
	uint64_t next_ns = clock_now_ns() + delay_ns;
	int ret = update(screen, why);

	while (ret == 0 && !*screen->options.stop) {
		bool any = false, was_over = screen->is_over;

		ret = take_keys(screen, &any, why);
		if (ret == 0)
			ret = take_samples(screen, why);
		if (ret == 0 && clock_now_ns() >= next_ns) {
			ret = move_on(screen, why);
			any |= !screen->is_frozen && !screen->is_over;
			any |= screen->is_dirty || screen->is_over != was_over;
			next_ns += delay_ns;
			/* After the machine or ljtop was suspended, do not catch up. */
			next_ns = next_ns < clock_now_ns() ? clock_now_ns() + delay_ns : next_ns;
		}
		if (ret == 0 && any)
			ret = update(screen, why);
	}
	return ret < 0 ? -1 : 0;
}

int top_screen_run(struct top_screen *screen, struct daemon_live *session,
		   const struct top_screen_options *options, const char **ret_why)
{
	struct failure why = { 0 };
	int ret;

	screen->session = session;
	screen->options = *options;
	top_choice_begin(&screen->choice, options->query);
	screen->is_dirty = true;
	if (top_terminal_open(options->takes_mouse, &screen->terminal, ret_why) != 0)
		return -1;
	ret = loop(screen, &why);
	top_terminal_close();
	if (ret != 0)
		*ret_why = "out of memory";
	return ret;
}
