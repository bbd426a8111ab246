/* SPDX-License-Identifier: MIT */

/* A unit without the anchor: its structures do not count. */

struct fixture_foreign {
	long other[9];
	int own;
};

struct fixture_foreign_only {
	int own;
};

struct fixture_foreign fixture_foreign_of_other;
struct fixture_foreign_only fixture_foreign_only;
