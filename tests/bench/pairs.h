/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_PAIRS_H
#define TESTS_BENCH_PAIRS_H

/* Differences of pairs of measurements, and what all of them tell. */

enum { PAIRS_MAX = 2000 };

/** In percent. */
struct pairs {
	double percent[PAIRS_MAX];
	unsigned count;
};

/**
 * The mean without up to a fifth of the pairs at each end, and its interval by Yuen's term, which
 * is a little wider than that of Tukey and McLaughlin: also without any profiler a pair differs by
 * ten percent now and then, when the machine's host takes the processor. What a profiler itself
 * causes in few pairs would be left out too: so the mean of all is held to what is asked as well.
 *
 * Source: K. K. Yuen, The two-sample trimmed t for unequal population variances, Biometrika 61
 * (1974); R. R. Wilcox, Introduction to Robust Estimation and Hypothesis Testing, 4.3.
 */
struct pairs_estimate {
	double mean, half; /**< Of the trimmed mean, and half the width of its 95 % interval. */
	double plain;	   /**< Mean of all. */
};

/** @param percent Dropped where there is no room. */
void pairs_add(struct pairs *pairs, double percent);

/** Of at least four pairs. */
struct pairs_estimate pairs_estimate(const struct pairs *pairs);

#endif
