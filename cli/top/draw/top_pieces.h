/* SPDX-License-Identifier: MIT */
/* How does a line of several looks fit the screen? */
#ifndef CLI_TOP_DRAW_TOP_PIECES_H
#define CLI_TOP_DRAW_TOP_PIECES_H

#include "cli/top/model/screen_state.h"

enum { TOP_PIECES_MAX = 16, TOP_PIECE_BYTES = 160 };

/** A part of a line. Where the screen is too narrow, some are shortened. */
struct top_piece {
	char text[TOP_PIECE_BYTES], brief[TOP_PIECE_BYTES];
	unsigned rank; /**< The lowest is shortened first; 0: it never is. */
	enum top_look look;
};

/** A line. All zero is empty. */
struct top_pieces {
	struct top_piece list[TOP_PIECES_MAX];
	size_t count;
};

/** Add a piece, formatted as by printf(3). @return The piece; the last one again if there are too
 * many. */
struct top_piece *top_pieces_add(struct top_pieces *pieces, enum top_look look, const char *format,
				 ...) __attribute__((format(printf, 3, 4)));

/** Set what replaces a piece's text where there is too little room. */
void top_pieces_set_brief(struct top_piece *piece, unsigned rank, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Columns of all pieces. */
size_t top_pieces_width(const struct top_screen *screen, const struct top_pieces *pieces);

/** Draw the pieces as line @p y. Shortens as few of them as the screen's width demands. */
void top_pieces_draw(struct top_screen *screen, int y, struct top_pieces *pieces);

#endif
