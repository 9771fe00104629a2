/* SPDX-License-Identifier: Apache-2.0 */
/* instances: who is known, under which name, since when; losses per interval.
 * Owned by the service loop; read by correlate and the views. One thread. */
#ifndef CTL_INSTANCES_H
#define CTL_INSTANCES_H

#include <stdint.h>

#include "../../common/clocks.h"
#include "../../common/report.h"
#include "../../common/wire.h"
#include "names.h"

typedef enum {
  CTL_INSTANCE_PRESENT,
  CTL_INSTANCE_SILENT,
  CTL_INSTANCE_LEFT,
  CTL_INSTANCE_COUNT
} ctl_presence_t;

typedef struct {
  uint8_t uuid[WEFT_UUID_SIZE];
  uint8_t start[WEFT_UUID_SIZE];
  uint8_t boot[WEFT_UUID_SIZE];
  weft_anchor_t anchor; /* latest */
  uint32_t index;       /* as in ctl_instances_at */
  int64_t pid;
  const char *vm, *version, *service, *host, *listens; /* interned, never NULL */
  ctl_presence_t presence;
  uint8_t replayed;        /* out of a recording: LEFT from the beginning */
  uint64_t epoch;          /* last one acknowledged */
  uint32_t active;         /* WEFT_ACTION_* last acknowledged */
  uint64_t seen_ns;        /* CLOCK_MONOTONIC of the last message */
  uint64_t heard_ns;       /* wall clock of its last word */
  uint64_t last_batch;     /* number, within `start` */
  uint64_t stored;         /* reports taken */
  uint64_t written;        /* events of all its lives, as of its last acknowledgement */
  uint64_t written_before; /* of its lives before this one */
  uint32_t farewell;       /* its BYE has come: `written` is final */
  /* Wall clock; it may have written what nobody has told since. 0: no such time; `until` 0: to this day. */
  uint64_t tail_since_ns, tail_until_ns;
  uint8_t joined;      /* for a claim: goes with the last one (service/claims.h) */
  uint64_t leaving_ns; /* CLOCK_MONOTONIC: it was told to; 0: it was not */
  uint64_t losses[WEFT_LOSS_COUNT];
  uint64_t bytes_total, bytes_spoken, given_up, bare;
  uint64_t requests_in, requests_unmatched, requests_excluded;
  uint64_t rest[WEFT_PROTOCOL_COUNT]; /* of the bytes that are not understood, by weft_protocol_t */
  uint32_t slots_written, slots_restored, slots_foreign, threads_left; /* from the BYE */
} ctl_instance_t;

/* Whether it is about to go. One that is still there after WEFT_LEAVING_MS did not hear it, or cannot. */
static inline int ctl_instance_leaves (const ctl_instance_t *instance, uint64_t now_ns)
{
  return instance->leaving_ns && now_ns < instance->leaving_ns + WEFT_LEAVING_MS * WEFT_NS_PER_MS;
}

typedef struct ctl_instances_t ctl_instances_t;

ctl_instances_t *ctl_instances_new (void);
void ctl_instances_destroy (ctl_instances_t **self_p);
/* Interns `text` for the life of the registry. NULL when out of memory. */
const char *ctl_instances_intern (ctl_instances_t *self, const char *text, size_t size);
/* The pool behind it, borrowed. */
ctl_names_t *ctl_instances_names (ctl_instances_t *self);
/* NULL: unknown. Borrowed, stable until destroy. */
ctl_instance_t *ctl_instances_find (ctl_instances_t *self, const uint8_t uuid[WEFT_UUID_SIZE]);
/* Takes a HELLO/ACK/BYE in; makes the instance at its first HELLO.
 * WEFT_E_FULL beyond WEFT_INSTANCES_MAX. */
int ctl_instances_take (ctl_instances_t *self, const weft_up_message_t *message,
                        ctl_instance_t **ret_instance);
/* A batch of an instance that has not said hello (replay, restart): a nameless one. */
int ctl_instances_touch (ctl_instances_t *self, const uint8_t uuid[WEFT_UUID_SIZE],
                         ctl_instance_t **ret_instance);
uint32_t ctl_instances_count (const ctl_instances_t *self);
ctl_instance_t *ctl_instances_at (ctl_instances_t *self, uint32_t index);
/* Whether it is of interest though it may have left: something of it is missing. One out of a recording never
 * was here. */
int ctl_instance_is_notable (const ctl_instance_t *instance);
/* It has been silent for long, without a BYE: what it wrote after its last word is unknown. */
void ctl_instances_silent (ctl_instance_t *instance);
/* Instances whose tail is unknown somewhere in the window. */
uint32_t ctl_instances_tails_in (const ctl_instances_t *self, uint64_t from_ns, uint64_t to_ns);
/* Adds one interval's losses (wall-clock ns). */
void ctl_instances_lost (ctl_instances_t *self, ctl_instance_t *instance, uint64_t from_ns, uint64_t to_ns,
                         const uint64_t losses[WEFT_LOSS_COUNT]);
/* Sum by cause of the losses whose interval overlaps the window. */
void ctl_instances_losses_in (const ctl_instances_t *self, uint64_t from_ns, uint64_t to_ns,
                              uint64_t ret_losses[WEFT_LOSS_COUNT]);

#define CTL_LOSS_SEVERAL UINT32_MAX /* in place of an instance */
typedef struct {
  uint32_t instance;       /* index, or CTL_LOSS_SEVERAL */
  uint64_t from_ns, to_ns; /* wall clock */
  uint64_t losses[WEFT_LOSS_COUNT];
} ctl_loss_interval_t;
/* Every interval in which something was lost; borrowed until the next one is added. */
const ctl_loss_interval_t *ctl_instances_intervals (const ctl_instances_t *self, uint32_t *ret_count);

#endif
