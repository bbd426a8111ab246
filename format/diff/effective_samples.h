/* SPDX-License-Identifier: MIT */
/* How many independent samples are a profile's samples worth? */
#ifndef FORMAT_DIFF_EFFECTIVE_SAMPLES_H
#define FORMAT_DIFF_EFFECTIVE_SAMPLES_H

#include "format/profile.h"
#include "format/report/call_tree.h"

/**
 * Compute how many samples are worth one independent sample. The result is 1 if samples are
 * independent, or if the profile has not kept their order.
 *
 * Three effects make neighbouring samples similar. When the machine gives the recorder no
 * processor, the recorder takes one sample for all missed ticks, and the stream contains it once
 * per tick. A thread that waits for a processor is at the same location in each sample. And a
 * program may do the same thing for longer than the time between two samples. Shares then vary more
 * than the number of samples suggests.
 *
 * So the samples are divided into blocks, and the difference of neighbouring blocks is compared
 * with the difference that independent samples would have. The blocks grow as long as that
 * increases the result (H. Flyvbjerg, H. G. Petersen 1989). Only neighbours are compared, so a few
 * long stages of a program, one after the other, do not count as variation. But if too many samples
 * in a row have the same chain for a coincidence, the thread most likely did not run: such a run
 * counts as one sample.
 *
 * @param profile If samples were added up before they were read, its timeline must say so, because
 * here each sample takes time.
 * @param call_tree The call tree of @p profile.
 * @return 0, or -1: FAILURE_NO_MEMORY.
 */
int effective_samples(const struct format_profile *profile, const struct call_tree *call_tree,
		      double *ret_effective, struct failure *why);

#endif
