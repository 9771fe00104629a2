/* SPDX-License-Identifier: Apache-2.0 */
/* why: what the slowest executions of one task name do differently.
 *
 * The slowest are 1 % of the complete executions, CTL_WHY_SLOW_LEAST at least and
 * CTL_WHY_SLOW_MAX at most. They are compared trait by trait (traits.h) with the middle
 * half. That the slowest are slower is no news: by chance they would be, too, and in
 * something. A trait is named only if all of this holds:
 *
 *  Y1  weight: it makes a quarter of what the slowest take longer on the average
 *  Y2  size: in an execution that counts for it, it is beyond the median of all executions
 *      by five times their spread, and has outgrown its usual share of the time by
 *      a third of what that execution takes longer. Where everything takes longer, nothing
 *      does
 *  Y3  agreement: of witnesses, slow executions that did not overlap (one pause of a VM is
 *      one witness, however many requests waited for it), most count for it; and so many
 *      that chance would do that in one of a hundred names at most. Chance strikes a trait
 *      as often as it takes of the time, and no less than one time in twenty; it is given
 *      as many tries as there are traits
 *  Y4  what cannot be known is not blamed: of a service that sends requests without a known
 *      caller, nobody knows what it waited for
 *
 * False alarms, in random forests of one noise everywhere (uniform, exponential, log-normal
 * up to sigma 1, pauses, load that slows down everything): below 1 in 100 task names;
 * test_why.c counts them. */
#ifndef CTL_WHY_H
#define CTL_WHY_H

#include "analyse.h"
#include "places.h"

#define CTL_WHY_SLOW_LEAST 5u
#define CTL_WHY_SLOW_MAX   512u /* trees that are kept for it */
#define CTL_WHY_LEAST      50u  /* complete executions, below nothing is said */

/* sample: of one task name, an even sample, sorted; those with parts are looked at. slow: the slowest
 * complete ones, the slowest first, with parts, CTL_WHY_SLOW_MAX or all. complete: how many there are in
 * all. Texts in *ret_why are borrowed from the places. 0 or WEFT_E_NOMEM. */
int ctl_why (const ctl_places_t *places, const ctl_sample_t *sample, uint32_t samples,
             const ctl_sample_t *slow, uint32_t slows, uint64_t complete,
             const ctl_analysis_orphan_t *orphans, uint32_t orphan_count, ctl_why_t *ret_why);

#endif
