/* SPDX-License-Identifier: Apache-2.0 */
/* claims: who needs which instance until when, so that nobody leaves a VM that
 * somebody else still works in.
 *
 *   claim    uuids[] joined[] for_ms     -> claim; refused with BUSY while one of them is leaving
 *   release  claim                       -> uuids[] that leave now, kept[] that somebody needs, stays[] that
 *                                           nobody joined for a claim, or that are to stay
 *   keep     uuids[]                     -> they stay until somebody detaches them
 *
 *  H1  an instance that was joined for a claim leaves when no claim on it and no live
 *      instruction that selects it is left; one that was not stays
 *  H2  a claim ends at its time, whatever became of its owner
 *  H3  why an instance leaves by H1 is in the audit, once, with whose claim it was
 * One thread. */
#ifndef CTL_CLAIMS_H
#define CTL_CLAIMS_H

#include "requests.h"

typedef struct ctl_claims_t ctl_claims_t;

ctl_claims_t *ctl_claims_new (void);
void ctl_claims_destroy (ctl_claims_t **self_p);
/* H1, H2 at now_ns (CLOCK_MONOTONIC). */
void ctl_claims_tidy (ctl_house_t *house, uint64_t now_ns);
/* As if it had been joined for a claim that has just ended. 1: it leaves now; 0: with the last one who needs it. */
int ctl_claims_let_go (ctl_house_t *house, ctl_instance_t *instance);

/* The requests above; as those of lookups.h. */
int ctl_claims_claim (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);
int ctl_claims_release (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);
int ctl_claims_keep (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);

#endif
