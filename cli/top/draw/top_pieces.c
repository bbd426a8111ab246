/* SPDX-License-Identifier: MIT */
/* How does a line of several looks fit the screen? */
#include "cli/top/draw/top_pieces.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/top/draw/top_draw.h"

struct top_piece *top_pieces_add(struct top_pieces *pieces, enum top_look look, const char *format,
				 ...)
{
	size_t index = pieces->count < TOP_PIECES_MAX ? pieces->count++ : TOP_PIECES_MAX - 1;
	struct top_piece *piece = &pieces->list[index];
	va_list args;

	*piece = (struct top_piece){ .look = look };
	va_start(args, format);
	vsnprintf(piece->text, sizeof(piece->text), format, args);
	va_end(args);
	return piece;
}

void top_pieces_set_brief(struct top_piece *piece, unsigned rank, const char *format, ...)
{
	va_list args;

	piece->rank = rank;
	va_start(args, format);
	vsnprintf(piece->brief, sizeof(piece->brief), format, args);
	va_end(args);
}

size_t top_pieces_width(const struct top_screen *screen, const struct top_pieces *pieces)
{
	size_t width = 0;

	for (size_t i = 0; i < pieces->count; i++)
		width += top_columns_width(pieces->list[i].text, screen->terminal.utf8);
	return width;
}

static struct top_piece *next_to_shorten(struct top_pieces *pieces)
{
	struct top_piece *next = NULL;

	for (size_t i = 0; i < pieces->count; i++) {
		struct top_piece *piece = &pieces->list[i];

		if (piece->rank && (!next || piece->rank < next->rank))
			next = piece;
	}
	return next;
}

void top_pieces_draw(struct top_screen *screen, int y, struct top_pieces *pieces)
{
	struct top_piece *piece;
	int x = 0;

	while (top_pieces_width(screen, pieces) > (size_t)COLS &&
	       (piece = next_to_shorten(pieces)) != NULL) {
		memcpy(piece->text, piece->brief, sizeof(piece->text));
		piece->rank = 0;
	}
	top_draw_line(screen, y, TOP_LOOK_PLAIN);
	for (size_t i = 0; i < pieces->count && x < COLS; i++) {
		piece = &pieces->list[i];
		top_draw_text(screen, piece->text, (size_t)(COLS - x), TOP_CUT_END);
		top_draw_at(screen, y, x, piece->look);
		x += (int)top_columns_width(piece->text, screen->terminal.utf8);
	}
}
