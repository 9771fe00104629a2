/* SPDX-License-Identifier: Apache-2.0 */
/* life: a controller without sockets, as far as an intake needs one. Header only,
 * for the tests of this folder; after cmocka.h. */
#ifndef TEST_LIFE_H
#define TEST_LIFE_H

#include "../../../../controller/service/intake.h"

typedef struct {
  ctl_intake_links_t links;
  ctl_intake_t *intake;
} life_t;

/* `open_max` as of ctl_correlate_new. */
static inline life_t begin_life (uint32_t open_max)
{
  life_t life = {.links = {.instances = ctl_instances_new (), .instructions = ctl_instructions_new (100, 0)}};
  life.links.correlate = ctl_correlate_new (life.links.instances, open_max);
  life.intake = ctl_intake_new (&life.links);
  assert_non_null (life.intake);
  return life;
}

/* Its journal, too, if it has one. */
static inline void end_life (life_t *life)
{
  ctl_intake_destroy (&life->intake);
  ctl_journal_close (&life->links.journal);
  ctl_correlate_destroy (&life->links.correlate);
  ctl_instructions_destroy (&life->links.instructions);
  ctl_instances_destroy (&life->links.instances);
}

/* All that it has journalled is in the store. */
static inline int checkpoint_life (life_t *life)
{
  ctl_journal_position_t here;
  ctl_journal_position (life->links.journal, &here);
  return ctl_journal_checkpoint_at (life->links.journal, &here);
}

#endif
