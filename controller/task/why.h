/* SPDX-License-Identifier: Apache-2.0 */
/* why: what the slowest executions of one task name do differently.
 *
 * The slowest are 1 % of the complete executions, CTL_WHY_SLOW_LEAST at least and
 * CTL_WHY_SLOW_MAX at most; where nothing is to be named in them, 5 %. They are compared
 * trait by trait (traits.h) with the middle half. That the slowest are slower is no news: by
 * chance they would be, too, and in something. A trait is named only if all of this holds:
 *
 *  Y1  weight: it makes a quarter of what the slowest take longer on the average, and that
 *      is a fifth of the median or more
 *  Y2  size: an execution counts for a trait if that is beyond the median of all executions
 *      by five times their spread (the upper quartile's, or what the lower one lets expect),
 *      and has outgrown its usual share of the time: it makes that share of what this
 *      execution takes longer, and 0.4 of the rest. Where everything takes longer, nothing
 *      counts
 *  Y3  agreement: of the witnesses 0.6 count, and four at least (0.4 for calls and queues, whose
 *      others may be held up beside or behind); and so many
 *      that chance would do that in one of a hundred names at most. Witnesses are slow
 *      executions, at least half as much as the slowest, that did not end together: one pause
 *      of a VM is one witness, however many requests waited for it. Chance strikes a trait as
 *      often as it takes of the time, and no less than one time in twenty (calls: in fifty, for
 *      a pause makes none); what is allowed to it is shared out among the traits in that
 *      proportion
 *  Y4  rarity, of calls: one in ten of all executions at most comes near so many. What some
 *      requests call and others do not is how they are
 *  Y5  of what comprises others the finest is named that tells 0.8 of it: an edge before its name and
 *      its service; time in a callee or in the queue before it, if one of them tells 0.7, before both
 *      together. Both together are no chance either if so many in the queue, and so many of the other
 *      witnesses held up, would be none: what strikes threads by chance makes no queue
 *  Y6  what cannot be known is not blamed: of a service that sent requests without a known
 *      caller meanwhile, nobody knows what it waited for. It is blamed only if most of the witnesses that
 *      count, and four at least, had none beside them, or such requests are fewer than these witnesses
 *  Y7  who waits before a callee whose threads wait for something further on waits for that (behind.h): so it is
 *      told, and how much of it is spent before whom
 *
 * False alarms, in random systems of one noise everywhere (uniform, exponential, half-normal,
 * log-normal up to sigma 1, pauses, load that slows down everything; with requests that are
 * alike or not): below 1 in 100 task names. test_why.c counts 3 in 1,500, and of 800 planted
 * causes 2 that are not named and none that is named wrongly. What takes most of the time
 * anyway needs many witnesses.
 */
#ifndef CTL_WHY_H
#define CTL_WHY_H

#include "analyse.h"
#include "places.h"

#define CTL_WHY_SLOW_LEAST 5u
#define CTL_WHY_SLOW_MAX   512u /* trees that are kept for it */
#define CTL_WHY_LEAST      50u  /* complete executions, below nothing is said */

#define CTL_WHY_TIMES_MAX                                                                                    \
  4096u /* orphan trees whose times are kept; with more, all may have been meanwhile */

/* A request without a known caller, with all that came of it. */
typedef struct {
  const char *service; /* that sent it */
  uint64_t start_ns, end_ns;
  uint32_t host; /* whose clock; 0: not known */
} ctl_why_orphan_t;

/* All texts are interned with those of the places. */
typedef struct {
  const ctl_analysis_orphan_t *orphan; /* how many in all, by service */
  uint32_t count;
  const ctl_why_orphan_t *time; /* each, or CTL_WHY_TIMES_MAX of them */
  uint32_t times;
} ctl_why_orphans_t;

/* sample: of one task name, an even sample, sorted; those with parts are looked at. slow: the slowest
 * complete ones, the slowest first, with parts, CTL_WHY_SLOW_MAX or all. complete: how many there are in
 * all. Texts in *ret_why are borrowed from the places. 0 or WEFT_E_NOMEM. */
int ctl_why (const ctl_places_t *places, const ctl_sample_t *sample, uint32_t samples,
             const ctl_sample_t *slow, uint32_t slows, uint64_t complete, const ctl_why_orphans_t *orphans,
             ctl_why_t *ret_why);

#endif
