/* SPDX-License-Identifier: Apache-2.0 */
#include "rate.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/limits.h"

#define IDENTITY_MAX 32 /* bytes; libzmq makes 5, a longer one that a client chose is cut */
#define FULL         ((uint64_t) WEFT_REQUESTS_BURST * WEFT_NS_PER_S)

typedef struct {
  uint8_t identity[IDENTITY_MAX];
  uint8_t size;
  uint64_t credit; /* requests, in 1e-9 */
  uint64_t at_ns;  /* of the last request; 0: the place is free */
} bucket_t;

struct ctl_rate_t {
  bucket_t bucket[WEFT_REQUESTS_PEERS];
};

ctl_rate_t *ctl_rate_new (void)
{
  return calloc (1, sizeof (ctl_rate_t));
}

void ctl_rate_destroy (ctl_rate_t **self_p)
{
  free (*self_p);
  *self_p = NULL;
}

static bucket_t *find (ctl_rate_t *self, const void *identity, size_t size)
{
  bucket_t *oldest = &self->bucket[0];
  for (unsigned n = 0; n < WEFT_REQUESTS_PEERS; n++) {
    bucket_t *one = &self->bucket[n];
    if (one->at_ns && one->size == size && memcmp (one->identity, identity, size) == 0)
      return one;
    if (one->at_ns < oldest->at_ns)
      oldest = one;
  }
  *oldest = (bucket_t){.size = (uint8_t) size, .credit = FULL};
  memcpy (oldest->identity, identity, size);
  return oldest;
}

int ctl_rate_take (ctl_rate_t *self, const void *identity, size_t size, uint64_t now_ns)
{
  bucket_t *one = find (self, identity, size < IDENTITY_MAX ? size : IDENTITY_MAX);
  uint64_t past_ns = one->at_ns && now_ns > one->at_ns ? now_ns - one->at_ns : 0;
  /* Beyond the time that fills it, it is full: no product overflows. */
  if (past_ns > FULL / WEFT_REQUESTS_RATE)
    past_ns = FULL / WEFT_REQUESTS_RATE;
  one->credit += past_ns * WEFT_REQUESTS_RATE;
  if (one->credit > FULL)
    one->credit = FULL;
  one->at_ns = now_ns ? now_ns : 1;
  if (one->credit < WEFT_NS_PER_S)
    return 0;
  one->credit -= WEFT_NS_PER_S;
  return 1;
}
