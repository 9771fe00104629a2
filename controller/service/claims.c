/* SPDX-License-Identifier: Apache-2.0 */
#include "claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/ids.h"
#include "../../common/status.h"

typedef struct {
  uint32_t number; /* 0: free */
  uint64_t until_ns;
  char who[WEFT_WHO_MAX];                /* made it */
  uint8_t holds[WEFT_INSTANCES_MAX / 8]; /* a bit for each instance's index */
} claim_t;

struct ctl_claims_t {
  claim_t claim[WEFT_CLAIMS_MAX];
  uint32_t last_number;
};

ctl_claims_t *ctl_claims_new (void)
{
  return calloc (1, sizeof (ctl_claims_t));
}

void ctl_claims_destroy (ctl_claims_t **self_p)
{
  free (*self_p);
  *self_p = NULL;
}

static claim_t *find (ctl_claims_t *self, uint32_t number)
{
  for (uint32_t n = 0; n < WEFT_CLAIMS_MAX; n++)
    if (self->claim[n].number == number)
      return &self->claim[n];
  return NULL;
}

static int holds (const claim_t *claim, const ctl_instance_t *instance)
{
  return claim->number && (claim->holds[instance->index / 8] >> instance->index % 8 & 1);
}

static int is_needed (const ctl_house_t *house, const ctl_instance_t *instance)
{
  for (uint32_t n = 0; n < WEFT_CLAIMS_MAX; n++)
    if (holds (&house->claims->claim[n], instance))
      return 1;
  uint32_t count = 0;
  const weft_instruction_t *live = ctl_instructions_live (house->instructions, &count);
  for (uint32_t n = 0; n < count; n++)
    if (ctl_instruction_selects (&live[n], instance))
      return 1;
  return 0;
}

/* H1. 1: it is told to leave, once more where that was lost. */
static int leave_unneeded (ctl_house_t *house, ctl_instance_t *instance)
{
  if (!instance->joined || instance->presence == CTL_INSTANCE_LEFT || is_needed (house, instance))
    return 0;
  ctl_request_leave (house, instance);
  return 1;
}

/* The same, and H3. `claim` has just ended; NULL: none, it was an instruction. */
static int leave_released (ctl_house_t *house, ctl_instance_t *instance, const claim_t *claim,
                           const char *how)
{
  char reason[64];
  int told_before = ctl_instance_leaves (instance, weft_mono_ns ());
  if (!leave_unneeded (house, instance))
    return 0;
  snprintf (reason, sizeof reason, "claim %u %s", claim ? claim->number : 0, how);
  if (!told_before)
    ctl_audit_release (house->audit, claim ? claim->who : "controller", instance,
                       claim ? reason : "the last instruction for it ended");
  return 1;
}

int ctl_claims_let_go (ctl_house_t *house, ctl_instance_t *instance)
{
  instance->joined = 1;
  return leave_unneeded (house, instance);
}

void ctl_claims_tidy (ctl_house_t *house, uint64_t now_ns)
{
  ctl_claims_t *self = house->claims;
  for (uint32_t n = 0; n < WEFT_CLAIMS_MAX; n++)
    if (self->claim[n].number && self->claim[n].until_ns <= now_ns) {
      claim_t ended = self->claim[n];
      self->claim[n].number = 0;
      for (uint32_t k = 0; k < ctl_instances_count (house->instances); k++) {
        ctl_instance_t *instance = ctl_instances_at (house->instances, k);
        if (holds (&ended, instance))
          leave_released (house, instance, &ended, "ended at its time");
      }
    }
  for (uint32_t n = 0; n < ctl_instances_count (house->instances); n++)
    leave_released (house, ctl_instances_at (house->instances, n), NULL, "");
}

static ctl_instance_t *instance_of (ctl_house_t *house, const json_t *text)
{
  uint8_t uuid[WEFT_UUID_SIZE];
  const char *name = json_string_value (text);
  return name && weft_uuid_get (uuid, name) == 0 ? ctl_instances_find (house->instances, uuid) : NULL;
}

int ctl_claims_claim (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  const json_t *uuids = json_object_get (request, "uuids"), *joined = json_object_get (request, "joined");
  json_int_t for_ms = json_integer_value (json_object_get (request, "for_ms"));
  if (for_ms <= 0 || for_ms > 2 * (json_int_t) WEFT_FOR_MAX_MS)
    return ctl_reply_refuse (reply, WEFT_E_RANGE, "a claim has a duration");
  uint64_t now_ns = weft_mono_ns ();
  ctl_claims_tidy (house, now_ns);
  claim_t *claim = find (house->claims, 0);
  if (!claim)
    return ctl_reply_refuse (reply, WEFT_E_FULL, "%d clients work at once already; try again later",
                             WEFT_CLAIMS_MAX);
  for (size_t n = 0; n < json_array_size (uuids); n++) {
    const ctl_instance_t *instance = instance_of (house, json_array_get (uuids, n));
    if (!instance || ctl_instance_leaves (instance, now_ns) || instance->presence == CTL_INSTANCE_LEFT)
      return ctl_reply_refuse (reply, WEFT_E_BUSY, "one of the instances is about to leave; join it again");
  }
  *claim = (claim_t){.until_ns = now_ns + (uint64_t) for_ms * WEFT_NS_PER_MS};
  for (size_t n = 0; n < json_array_size (uuids); n++) {
    uint32_t index = instance_of (house, json_array_get (uuids, n))->index;
    claim->holds[index / 8] |= (uint8_t) (1u << index % 8);
  }
  for (size_t n = 0; n < json_array_size (joined); n++) {
    ctl_instance_t *instance = instance_of (house, json_array_get (joined, n));
    if (instance)
      instance->joined = 1;
  }
  claim->number = ++house->claims->last_number;
  snprintf (claim->who, sizeof claim->who, "%s", house->who ? house->who : "");
  return json_object_set_new (reply->body, "claim", json_integer (claim->number)) < 0 ? WEFT_E_NOMEM : 0;
}

int ctl_claims_release (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  json_int_t number = json_integer_value (json_object_get (request, "claim"));
  claim_t *claim = number > 0 && number <= UINT32_MAX ? find (house->claims, (uint32_t) number) : NULL;
  if (!claim)
    return ctl_reply_refuse (reply, WEFT_E_NOT_FOUND, "no such claim; it may have ended by itself");
  json_t *uuids = json_array (), *kept = json_array (), *stays = json_array ();
  claim_t released = *claim;
  claim->number = 0;
  for (uint32_t n = 0; n < ctl_instances_count (house->instances); n++) {
    ctl_instance_t *instance = ctl_instances_at (house->instances, n);
    char text[37];
    if (!holds (&released, instance) || instance->presence == CTL_INSTANCE_LEFT)
      continue;
    weft_uuid_put (text, instance->uuid);
    json_t *list = !instance->joined                                             ? stays
                   : leave_released (house, instance, &released, "was released") ? uuids
                                                                                 : kept;
    json_array_append_new (list, json_string (text));
  }
  int rc = json_object_set_new (reply->body, "uuids", uuids);
  rc |= json_object_set_new (reply->body, "kept", kept);
  rc |= json_object_set_new (reply->body, "stays", stays);
  return rc < 0 ? WEFT_E_NOMEM : 0;
}

int ctl_claims_keep (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  const json_t *uuids = json_object_get (request, "uuids");
  for (size_t n = 0; n < json_array_size (uuids); n++) {
    ctl_instance_t *instance = instance_of (house, json_array_get (uuids, n));
    if (instance)
      instance->joined = 0;
  }
  return 0;
}
