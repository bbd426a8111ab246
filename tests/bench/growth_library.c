/* SPDX-License-Identifier: MIT */
/* A small library, of which growth_target loads many copies. */
int growth_library(int value);

int growth_library(int value)
{
	return value + 1;
}
