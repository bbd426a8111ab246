/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_PAIRS_H
#define TESTS_BENCH_PAIRS_H

/* Pairs of measurements, with a profiler and without, and what all of them tell. */

#include <stdint.h>

enum { PAIRS_MAX = 4000, PAIRS_MIN = 4 };

/** What a program has done in one window. */
struct pairs_work {
	uint64_t units, ns;
};

/** Of each pair the logarithm of how many times as fast the program is without: that is as far from
 *  zero for a program that becomes faster as for one that becomes as much slower. The mean
 *  of the plain fraction that is lost is too small, and even smaller if the pairs differ more. */
struct pairs {
	double logs[PAIRS_MAX];
	unsigned count;
};

/**
 * How much slower the program is, in percent of its speed without: of the mean of the logarithms
 * without up to a fifth of them at each end, and its interval by Yuen's term, which is a little
 * wider than that of Tukey and McLaughlin. Also without any profiler a pair differs by ten percent
 * now and then, when the machine's host takes the processor, or by far more where it has two
 * speeds. What a profiler itself causes in few pairs would be left out too: so the mean of all is
 * held to what is asked as well. Both favour neither side if the window with the profiler is as
 * long as the other and as often the first as the second: without an effect, each pair is then as
 * probable as its inverse, but for what a machine does that looks another way backwards, of which
 * the mean of all is free where the machine is on average the same from begin to end.
 *
 * Source: K. K. Yuen, The two-sample trimmed t for unequal population variances, Biometrika 61
 * (1974); R. R. Wilcox, Introduction to Robust Estimation and Hypothesis Testing, 4.3.
 */
struct pairs_estimate {
	double mean, lower, upper; /**< Of the trimmed mean, and its 95 % interval. */
	double plain;		   /**< By the mean of all. */
};

/** Units in a second. Half a unit counts more than there are, so that a window without any has a
 *  logarithm, too. Source: F. J. Anscombe, On estimating binomial response relations, Biometrika 43
 *  (1956). */
double pairs_rate(struct pairs_work work);

/** Add one, of windows that take time. Dropped where there is no room. */
void pairs_add(struct pairs *pairs, struct pairs_work with, struct pairs_work without);

/** Of PAIRS_MIN at least: its caller sees to that, and a debug build asserts it. */
struct pairs_estimate pairs_estimate(const struct pairs *pairs);

#endif
