/* SPDX-License-Identifier: MIT */
/* How many independent samples are a profile's samples worth? */
#ifndef FORMAT_DIFF_EFFECTIVE_SAMPLES_H
#define FORMAT_DIFF_EFFECTIVE_SAMPLES_H

#include "format/profile.h"
#include "format/report/call_tree.h"

/**
 * How many samples tell as much as one that is independent of all others; 1 where they are, and
 * where the profile has not kept their order.
 *
 * A recorder that the machine leaves without a processor takes one sample for all the ticks that it
 * missed, and that is in a stream as many times. A thread that waits for a processor is at the same
 * place in sample after sample. And a program does what it does for a while, which may be longer
 * than the time between two samples. All that makes shares vary more than the number of samples
 * lets expect. So the samples are taken in blocks: how much neighbours differ, against what
 * they would where samples are independent, is what is asked for. Blocks are made longer for as
 * long as that makes it more (H. Flyvbjerg, H. G. Petersen 1989). As only neighbours are compared,
 * a program that has a few long stages, one after the other, is not taken for one that wavers. But
 * if too many samples in a row for a coincidence have the same chain, most likely the thread did
 * not run at all: such a run counts as one sample.
 *
 * @param profile What was summed up before it was read must say so in its timeline: each sample
 *		  takes time here.
 * @param fold Of @p profile.
 * @return 0, or -1: FAILURE_NO_MEMORY.
 */
int effective_samples(const struct format_profile *profile, const struct call_tree *call_tree,
		      double *ret_effective, struct failure *why);

#endif
