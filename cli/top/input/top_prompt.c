/* SPDX-License-Identifier: MIT */
/* How is a line typed, with UTF-8 and keys that erase? */
#include "cli/top/input/top_prompt.h"

#include <string.h>

#include "cli/top/model/top_keys.h"

#include <curses.h>

#define CONTROL(letter) ((letter)&0x1f)

enum { DELETE = 0x7f };

/* Erase the last character with all its bytes. */
static void erase_character(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
		len--;
	text[len > 0 ? len - 1 : 0] = '\0';
}

static void erase_word(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && text[len - 1] == ' ')
		len--;
	while (len > 0 && text[len - 1] != ' ')
		len--;
	text[len] = '\0';
}

enum top_typed top_prompt_key(char *text, size_t size, int key)
{
	size_t len = strlen(text);

	switch (key) {
	case TOP_KEY_ENTER:
	case '\r':
	case KEY_ENTER:
		return TOP_TYPED_DONE;
	case TOP_KEY_ESCAPE:
	case CONTROL('G'):
		return TOP_TYPED_CANCEL;
	case KEY_BACKSPACE:
	case DELETE:
	case CONTROL('H'):
		if (len == 0)
			return TOP_TYPED_CANCEL;
		erase_character(text);
		return TOP_TYPED_MORE;
	case CONTROL('U'):
		text[0] = '\0';
		return TOP_TYPED_MORE;
	case CONTROL('W'):
		erase_word(text);
		return TOP_TYPED_MORE;
	default:
		break;
	}
	if (key >= ' ' && key <= 0xff && len + 1 < size) {
		text[len] = (char)key;
		text[len + 1] = '\0';
	}
	return TOP_TYPED_MORE;
}
